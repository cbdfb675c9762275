package route

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// all gives every route of a cache as text.
func all(c *Cache) (s []string) {
	for name, t := range *c.tables.Load() {
		for _, ch := range t.root.Load().chunks {
			for _, r := range ch.routes {
				s = append(s, fmt.Sprintf("%s %v %d", name, r, r.id))
			}
		}
	}
	return s
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 2500, 7)
		other := meta.TableName{Namespace: "ns", Qualifier: "other"}
		f.put(
			meta.Location{Region: meta.Region{Table: other, ID: 5, End: []byte("b\x00c")}, Server: server(1), SeqNum: meta.NoSeqNum, State: "OPEN"},
			meta.Location{Region: meta.Region{Table: other, ID: 1 << 60, Start: []byte("b\x00c"), End: []byte("d")}, Server: server(2), SeqNum: 1 << 62, State: "OPEN"},
			meta.Location{Region: meta.Region{Table: other, ID: 6, Start: []byte("d")}, Server: server(3), SeqNum: 0, State: "OPEN"})
		for _, name := range []meta.TableName{tbl, other} {
			if err := c.Warm(t.Context(), name, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Locate(t.Context(), meta.MetaTable, nil); err != nil {
			t.Fatal(err)
		}
		// What is known to be wrong is not saved.
		c.Rejected(c.Lookup(other, []byte("c")))
		c.Rejected(c.Lookup(tbl, key(77)))
		var file bytes.Buffer
		in, err := c.Save(&file, Cluster{Address: "there"})
		if err != nil || in.Routes != 2501 {
			t.Fatalf("saved %v, %v", in, err)
		}
		want := make([]string, 2500)
		for i := range want {
			want[i] = fmt.Sprint(c.Lookup(tbl, key(i)))
		}
		time.Sleep(time.Hour)

		d, g := newCache(t, Config{})
		out, err := d.Load(bytes.NewReader(file.Bytes()), Cluster{Address: "there"})
		if err != nil || out.Routes != 2501 || out.Cluster != in.Cluster || out.Created.UnixMilli() != in.Created.UnixMilli() {
			t.Fatalf("loaded %v, %v", out, err)
		}
		for i := range 2500 {
			r := d.Lookup(tbl, key(i))
			if i == 77 {
				if r != nil {
					t.Errorf("a route that was invalid was saved: %v", r)
				}
				continue
			}
			if r == nil || r.String() != want[i] || r.id != 1700000000000 || r.Origin() != FromSnapshot || r.Age() < time.Hour {
				t.Fatalf("region %d: %v, want %v", i, r, want[i])
			}
		}
		if r := d.Lookup(other, nil); r == nil || r.openSeq != meta.NoSeqNum || r.id != 5 {
			t.Errorf("got %v", r)
		}
		if g.reads() != 0 {
			t.Errorf("%d reads of meta", g.reads())
		}
		if _, err := d.Load(bytes.NewReader(file.Bytes()), Cluster{Address: "elsewhere"}); !errors.Is(err, ErrSnapshotForeign) {
			t.Errorf("another cluster's: %v", err)
		}
		for _, tc := range []struct {
			saved, now Cluster
			ok         bool
		}{
			{Cluster{"a", "1"}, Cluster{"b", "1"}, true}, {Cluster{"a", "1"}, Cluster{"a", "2"}, false},
			{Cluster{"a", ""}, Cluster{"a", "2"}, true}, {Cluster{"a", "1"}, Cluster{"b", ""}, false},
		} {
			var file bytes.Buffer
			if _, err := d.Save(&file, tc.saved); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Load(&file, tc.now); errors.Is(err, ErrSnapshotForeign) == tc.ok {
				t.Errorf("saved for %v, loaded by %v: %v", tc.saved, tc.now, err)
			}
		}
		// Unused, they are forgotten like others.
		time.Sleep(20 * time.Minute)
		if n := d.Stats().Routes; n != 0 {
			t.Errorf("%d routes that nobody used are kept", n)
		}
	})
}

// TestSnapshotIsTheLeastAuthority: whatever else is known wins, and a route that
// is wrong costs one call.
func TestSnapshotIsTheLeastAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 1)
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := c.Save(&file, Cluster{}); err != nil {
			t.Fatal(err)
		}
		f.move(2, func(i int) bool { return i < 5 })

		d, g := newCache(t, Config{})
		g.rows = f.rows
		if _, err := d.Locate(t.Context(), tbl, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := d.Load(bytes.NewReader(file.Bytes()), Cluster{}); err != nil || n.Routes != 9 {
			t.Errorf("loaded %v, %v; want the 9 that were not known", n, err)
		}
		if r := d.Lookup(tbl, nil); r == nil || r.Server().Name() != server(2) {
			t.Errorf("the snapshot beat meta: %v", r)
		}
		// Stale: the old server says so, once.
		r := d.Lookup(tbl, key(3))
		if r == nil || r.Server().Name() != server(1) {
			t.Fatalf("got %v", r)
		}
		d.Rejected(r)
		if r, err := d.Locate(t.Context(), tbl, key(3)); err != nil || r.Server().Name() != server(2) {
			t.Errorf("got %v, %v", r, err)
		}
		// Meta says the same of another: it is meta's now.
		if r, err := d.Refresh(t.Context(), d.Lookup(tbl, key(7))); err != nil || r.Origin() != FromMeta || r.Age() > 0 {
			t.Errorf("%v from %v, %v", r, r.Origin(), err)
		}
		d.ForgetSnapshot()
		if n := d.Stats().Routes; n != 3 {
			t.Errorf("%d routes that others told of, want 3: %v", n, all(d))
		}
	})
}

// TestSnapshotOfDeadServers: a cluster that was restarted meanwhile does not
// make us read the rows of all that is in the file.
func TestSnapshotOfDeadServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 5000, 5)
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := c.Save(&file, Cluster{}); err != nil {
			t.Fatal(err)
		}
		f.change(func(l *meta.Location) bool { l.Server.StartCode++; l.SeqNum++; return true })
		d, g := newCache(t, Config{})
		g.rows = f.rows
		if _, err := d.Load(&file, Cluster{}); err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			r := d.Lookup(tbl, key(i))
			if r != nil {
				d.Rejected(r)
			}
			if _, err := d.Locate(t.Context(), tbl, key(i)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * second)
		if n := g.got.Load() + g.scanned.Load(); n > 20 {
			t.Errorf("%d rows read for 10 that were used", n)
		}
	})
}

// TestSnapshotAndWatch: what happened while nobody ran is read first thing, and
// nothing else.
func TestSnapshotAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 3000)
		time.Sleep(5 * second)
		var file bytes.Buffer
		if _, err := c.Save(&file, Cluster{Address: "x"}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		time.Sleep(time.Hour)
		f.move(50, func(i int) bool { return i%100 == 0 })
		time.Sleep(time.Hour)

		d, g := newCache(t, Config{WatchInterval: second})
		g.rows = f.rows
		if n, err := d.Load(&file, Cluster{Address: "x"}); err != nil || n.Routes != 3000 {
			t.Fatalf("loaded %v, %v", n, err)
		}
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		for i := range 3000 {
			if r := d.Lookup(tbl, key(i)); r == nil || (i%100 == 0) != (r.Server().Name() == server(50)) {
				t.Fatalf("region %d: %v", i, r)
			}
		}
		if s := d.Stats().Watch; s.Rows != 30 || s.Polls != 1 || g.reads() != 0 {
			t.Errorf("%d other reads, %+v; want 30 rows in one poll", g.reads(), s)
		}
	})
}

// reframe gives a snapshot with this body.
func reframe(body []byte, version uint16) []byte {
	z, _ := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<16))
	body = z.EncodeAll(body, nil)
	z.Close()
	b := append([]byte(nil), snapshotMagic...)
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func TestDamagedSnapshots(t *testing.T) {
	c, f := newCache(t, Config{MaxRoutes: 1000})
	f.fill(tbl, 100, 3)
	if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := c.Save(&file, Cluster{Address: "x"}); err != nil {
		t.Fatal(err)
	}
	good := file.Bytes()
	d, _ := newCache(t, Config{MaxRoutes: 1000})
	try := func(name string, b []byte, want error) {
		t.Helper()
		if _, err := d.Load(bytes.NewReader(b), Cluster{Address: "x"}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if n := d.Stats().Routes; n != 0 {
			t.Errorf("%s: %d routes were taken in", name, n)
		}
	}
	for n := range good {
		if n%7 == 0 || n < 32 {
			try(fmt.Sprintf("the first %d bytes", n), good[:n], ErrSnapshotDamaged)
		}
		bad := bytes.Clone(good)
		bad[n] ^= 0x40
		if n < 8 || n >= 14 {
			try(fmt.Sprintf("byte %d changed", n), bad, ErrSnapshotDamaged)
		}
	}
	try("nothing", nil, ErrSnapshotDamaged)
	try("a later version", reframe(nil, 2), ErrSnapshotVersion)
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[10:], 1<<31)
	try("a huge length", huge, ErrSnapshotSize)

	str := func(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s))), s...) }
	num := func(ns ...uint64) (b []byte) {
		for _, n := range ns {
			b = binary.AppendUvarint(b, n)
		}
		return b
	}
	join := func(parts ...[]byte) []byte { return reframe(bytes.Join(parts, nil), 1) }
	head := append(str("x"), num(0, 0, 0)...)
	one := append(append(num(1), str("rs")...), num(16020, 17)...)
	try("too many servers", join(head, num(1<<40)), ErrSnapshotDamaged)
	try("a server without a name", join(head, num(1, 0, 1, 1)), ErrSnapshotDamaged)
	try("a table without a name", join(head, one, num(1, 0, 1)), ErrSnapshotDamaged)
	try("routes of meta", join(head, one, num(1), str("hbase:meta"), num(0)), ErrSnapshotDamaged)
	try("too many routes", join(head, one, num(1), str("t"), num(1001)), ErrSnapshotSize)
	try("too many routes by far", join(head, one, num(1), str("t"), num(1<<63)), ErrSnapshotSize)
	try("no servers", join(head, num(0, 1), str("t"), num(1, 0, 0, 0, 0, 0, 0, 0, 0)), ErrSnapshotDamaged)
	try("no such server", join(head, one, num(1), str("t"), num(1, 0, 0, 0, 0, 0, 0, 0, 1)), ErrSnapshotDamaged)
	try("follows nothing", join(head, one, num(1), str("t"), num(1, 1, 0, 0, 0, 0, 0)), ErrSnapshotDamaged)
	try("shares what is not there", join(head, one, num(1), str("t"), num(1, 0, 1, 0, 0, 0, 0, 0, 0)), ErrSnapshotDamaged)
	try("a key that is too long", join(head, one, num(1), str("t"), num(1, 0, 0, 40000)), ErrSnapshotDamaged)
	try("empty region", join(head, one, num(1), str("t"), num(1, 0, 0, 1), []byte("b"), num(0, 1), []byte("a"), num(0, 0, 0)), ErrSnapshotDamaged)
	try("overlap", join(head, one, num(1), str("t"), num(2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)), ErrSnapshotDamaged)
	try("something follows", join(head, one, num(1), str("t"), num(1, 0, 0, 0, 0, 0, 0, 0, 0), []byte("x")), ErrSnapshotDamaged)
	if n, err := d.Load(bytes.NewReader(join(head, one, num(1), str("t"), num(1, 0, 0, 0, 0, 0, 0, 0, 0))), Cluster{Address: "x"}); err != nil || n.Routes != 1 {
		t.Errorf("a good one: %v, %v", n, err)
	}
}

func FuzzLoad(f *testing.F) {
	c, m := newCache(f, Config{MaxRoutes: 10_000})
	m.fill(tbl, 30, 3)
	if err := c.Warm(f.Context(), tbl, nil, nil); err != nil {
		f.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := c.Save(&file, Cluster{Address: "x"}); err != nil {
		f.Fatal(err)
	}
	z, _ := zstd.NewReader(nil)
	body, err := z.DecodeAll(file.Bytes()[snapshotHead:file.Len()-4], nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file.Bytes(), body)
	f.Fuzz(func(t *testing.T, whole, body []byte) {
		for _, b := range [][]byte{whole, reframe(body, 1)} {
			d, _ := newCache(t, Config{MaxRoutes: 10_000})
			n, err := d.Load(bytes.NewReader(b), Cluster{Address: "x"})
			if err != nil {
				if _, ok := errors.AsType[*SnapshotError](err); !ok || d.Stats().Routes != 0 {
					t.Errorf("%v, %d routes", err, d.Stats().Routes)
				}
				continue
			}
			if n.Routes != d.Stats().Routes {
				t.Errorf("loaded %v, there are %d", n, d.Stats().Routes)
			}
			var again bytes.Buffer
			if m, err := d.Save(&again, Cluster{Address: "x"}); err != nil || m.Routes > n.Routes {
				t.Errorf("loaded %v, saved %v, %v", n, m, err)
			}
		}
	})
}

// BenchmarkSnapshot is a restart: size of the file, time to save and to load,
// and what the loaded routes cost in memory.
func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{300_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, _ := loaded(b, n, 1000)
			rng := rand.New(rand.NewPCG(1, 2))
			for _, ch := range c.lookupTable(tbl).root.Load().chunks {
				for _, r := range ch.routes { // as after months of moving about
					r.openSeq = rng.Int64N(1 << 24)
					r.id += uint64(rng.IntN(1 << 20))
					r.server = c.cfg.Servers.Get(server(rng.IntN(300)))
				}
			}
			var file bytes.Buffer
			for b.Loop() {
				file.Reset()
				began := time.Now()
				if saved, err := c.Save(&file, Cluster{Address: "x"}); err != nil || saved.Routes != n {
					b.Fatal(saved, err)
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-save")
				servers := health.NewTable()
				d, _ := newCache(b, Config{Servers: servers})
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				began = time.Now()
				if loaded, err := d.Load(bytes.NewReader(file.Bytes()), Cluster{Address: "x"}); err != nil || loaded.Routes != n {
					b.Fatal(loaded, err)
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-load")
				runtime.GC()
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/route-loaded")
				runtime.KeepAlive(d)
				servers.Close()
			}
			b.ReportMetric(float64(file.Len())/float64(n), "B/route-file")
		})
	}
}
