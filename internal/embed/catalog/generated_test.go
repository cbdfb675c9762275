package catalog

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestKeyFormat(t *testing.T) {
	for _, text := range []string{"%08d", "user%06d", "%04x", "a,%03d,z", "%01d"} {
		f, err := ParseKeyFormat(text)
		if err != nil {
			t.Fatal(err)
		}
		if f.String() != text {
			t.Errorf("%q printed as %q", text, f)
		}
		for _, n := range []int{0, 1, 7} {
			key := f.Append(nil, n)
			if want := fmt.Sprintf(text, n); string(key) != want {
				t.Errorf("%s of %d: %q, want %q", text, n, key, want)
			}
			if got, ok := f.Number(key); !ok || got != n {
				t.Errorf("number of %q: %d, %v", key, got, ok)
			}
			if _, ok := f.Number(append(key, 'x')); ok {
				t.Errorf("%sx has a number", key)
			}
		}
	}
	for _, text := range []string{"", "x", "%d", "%0d", "%8d", "%016d", "%08s", "%08d%08d", "%%08d", "%0+8d", "%08d%"} {
		if f, err := ParseKeyFormat(text); err == nil {
			t.Errorf("%q was taken for %v", text, f)
		}
	}
}

func FuzzKeyFormat(f *testing.F) {
	f.Add("user%06d", "user000017")
	f.Add("%04x", "00ff")
	f.Fuzz(func(t *testing.T, text, key string) {
		format, err := ParseKeyFormat(text)
		if err != nil {
			return
		}
		if again, err := ParseKeyFormat(format.String()); err != nil || again != format {
			t.Fatalf("%q read again: %v, %v", format, again, err)
		}
		if n, ok := format.Number([]byte(key)); ok && string(format.Append(nil, n)) != key {
			t.Fatalf("%s: %q is %d, whose key is %q", format, key, n, format.Append(nil, n))
		}
	})
}

// generate makes a generated table, spread over the servers.
func generate(t testing.TB, c *Catalog, text string, regions int, servers ...meta.ServerName) *Formula {
	t.Helper()
	n := name(t, text)
	format, err := ParseKeyFormat("%08d")
	if err != nil {
		t.Fatal(err)
	}
	f := &Formula{Regions: regions, Rows: 3, Format: format, Families: []string{"f"}}
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	err = c.Update(func(tx *Tx) error {
		s := NormalSchema(&pb.TableSchema{TableName: n.ToProto(), ColumnFamilies: []*pb.ColumnFamilySchema{{Name: []byte("f")}}})
		f.ID, f.CreatedAt = tx.NextRegionID(), tx.Now()
		tx.PutTable(&Table{Name: n, ID: tx.NextTableID(), Schema: s, StateTime: tx.Now(), State: pb.TableState_ENABLED, Formula: f})
		tx.Place(n, pb.RegionState_OPEN, servers, 5)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func server(n int) meta.ServerName { return meta.ServerName{Host: "h", Port: n, StartCode: 1} }

// What is said about generated regions agrees, whichever way they are asked
// for, also when there are ordinary tables around them, and after regions have
// moved, split, merged, and the catalog was opened again.
func TestGeneratedRegions(t *testing.T) {
	now := int64(1000)
	kv := &memKV{}
	c := open(t, kv, &now)
	addTable(t, c, "a", "m")
	addTable(t, c, "z", "m")
	n := name(t, "g")
	f := generate(t, c, "g", 1000, server(1), server(2), server(3))
	generate(t, c, "h", 1)
	agree(t, c)
	s := c.State()
	if got := s.RegionCount(); got != 2+2+1000+1+1 { // hbase:namespace's too
		t.Errorf("%d regions", got)
	}
	if got := []int{s.Held(server(1)), s.Held(server(2)), s.Held(server(3))}; !slices.Equal(got, []int{334, 333, 333}) {
		t.Errorf("held: %v", got)
	}
	// Moves.
	now = 2000
	rnd := rand.New(rand.NewPCG(1, 2))
	moved := map[string]meta.ServerName{}
	for range 300 {
		i := rnd.IntN(1000)
		info := f.Region(n, i)
		to := server(1 + rnd.IntN(4))
		if err := c.Update(func(tx *Tx) error {
			r := *tx.Region(info.EncodedName())
			r.Server, r.Target, r.OpenSeq, r.StateTime = to, to, 77, tx.Now()
			tx.PutRegion(&r)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		moved[info.EncodedName()] = to
	}
	agree(t, c)
	for e, to := range moved {
		if r := c.State().Region(e); r.Server != to || r.OpenSeq != 77 || r.StateTime != 2000 {
			t.Fatalf("moved region: %+v", r)
		}
	}
	// The picture from before is what it was.
	for r := range s.RegionsOf(n) {
		if r.OpenSeq != 5 {
			t.Fatalf("an old picture has changed: %+v", r)
		}
	}
	if len(kv.m) > 20 {
		t.Errorf("%d entries are stored", len(kv.m))
	}
	// A time range finds what has moved.
	v := c.Virtual(meta.MetaTable)
	found := 0
	for row := range v.Rows(nil, false, 1500) {
		if meta.CompareRows(row[0].Row, meta.FirstRow(n)) > 0 && meta.CompareRows(row[0].Row, meta.StopRow(n)) < 0 {
			found++
		}
	}
	if found != len(moved) {
		t.Errorf("%d rows are new, want %d", found, len(moved))
	}
	// A split and a merge.
	if err := c.Update(func(tx *Tx) error {
		p := *tx.Holding(n, []byte("00000500"))
		id := tx.NextRegionID()
		p.Info.Split, p.Info.Offline, p.State = true, true, pb.RegionState_SPLIT
		a := NewRegion(meta.Region{Table: n, ID: id, Start: p.Info.Start, End: []byte("00000500x")}, tx.Now())
		b := NewRegion(meta.Region{Table: n, ID: id, Start: []byte("00000500x"), End: p.Info.End}, tx.Now())
		p.SplitA, p.SplitB = &a.Info, &b.Info
		tx.PutRegion(&p)
		tx.PutRegion(a)
		tx.PutRegion(b)
		x, y := tx.Holding(n, nil), tx.Holding(n, []byte("00000001"))
		tx.DeleteRegion(x)
		tx.DeleteRegion(y)
		m := NewRegion(meta.Region{Table: n, ID: id, Start: []byte{}, End: y.Info.End}, tx.Now())
		m.Merged = []meta.Region{x.Info, y.Info}
		tx.PutRegion(m)
		tx.SetWritten(n, 7)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	agree(t, c)
	if r := c.State().Holding(n, []byte("00000500y")); r == nil || string(r.Info.Start) != "00000500x" {
		t.Errorf("the row behind a split is held by %+v", r)
	}
	if r := c.State().Holding(n, []byte("0000000100")); r == nil || len(r.Merged) != 2 {
		t.Errorf("the row in a merged region is held by %+v", r)
	}
	// 1,000 slots, less 500 and 0, 1; the parent, its daughters, the merged one.
	if got := c.State().RegionCount(); got != 2+2+997+4+1+1 {
		t.Errorf("%d regions", got)
	}
	again, err := Open(kv, func() int64 { return now })
	if err != nil {
		t.Fatal(err)
	}
	agree(t, again)
	if got := again.State().RegionCount(); got != c.State().RegionCount() {
		t.Errorf("%d regions after a restart", got)
	}
	if !again.State().GeneratedWritten(n, 7) || again.State().GeneratedWritten(n, 8) {
		t.Error("what was written is not known after a restart")
	}
	for r := range again.State().RegionsOf(n) {
		if r.State == pb.RegionState_OPEN || !r.Server.IsZero() {
			t.Fatalf("assigned after a restart: %+v", r)
		}
	}
	// It goes without a trace.
	if err := c.Update(func(tx *Tx) error {
		for _, text := range []string{"g", "h"} {
			tx.DeleteRegionsOf(name(t, text))
			tx.DeleteTable(tx.Table(name(t, text)))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	agree(t, c)
	if got := c.State().RegionCount(); got != 5 {
		t.Errorf("%d regions are left", got)
	}
	for n, count := range c.State().held {
		t.Errorf("%v still holds %d", n, count)
	}
	for k := range kv.m {
		if k[0] == 'a' || k[0] == 'w' {
			t.Errorf("%q is left", k)
		}
	}
}

// agree checks that a picture says the same by every way of asking.
func agree(t *testing.T, c *Catalog) {
	t.Helper()
	s := c.State()
	all := slices.Collect(s.Regions())
	if len(all) != s.RegionCount() {
		t.Errorf("%d regions listed, %d counted", len(all), s.RegionCount())
	}
	if !slices.IsSortedFunc(all, compareRegions) {
		t.Error("regions are not in order")
	}
	held := map[meta.ServerName]int{}
	for _, r := range all {
		if !r.Target.IsZero() && !r.Parent() {
			held[r.Target]++
		}
		e, full := s.Region(r.Encoded), s.RegionNamed(r.Name)
		if e == nil || full == nil || string(e.Name) != string(r.Name) || full.Encoded != r.Encoded || e.Server != r.Server || e.OpenSeq != r.OpenSeq {
			t.Fatalf("%s: by encoded name %+v, by name %+v", r.Name, e, full)
		}
	}
	for n, count := range held {
		if s.Held(n) != count {
			t.Errorf("%v holds %d, counted %d", n, count, s.Held(n))
		}
	}
	v := c.Virtual(meta.MetaTable)
	rows := rowsOf(v, nil, false)
	back := rowsOf(v, nil, true)
	slices.Reverse(back)
	if !slices.EqualFunc(rows, back, slices.Equal) {
		t.Errorf("%d rows forwards, %d backwards, or another order", len(rows), len(back))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		i := rnd.IntN(len(rows))
		for _, start := range [][]byte{rows[i], append(slices.Clone(rows[i]), 0)} {
			forward, backward := rowsOf(v, start, false), rowsOf(v, start, true)
			if !bytes.ContainsRune(start, ',') && i+1 < len(rows) && len(backward) != i+1 {
				continue // a longer name sorts behind the table's regions
			}
			at, _ := slices.BinarySearchFunc(rows, start, meta.CompareRows)
			if len(forward) != len(rows)-at || len(forward) > 0 && string(forward[0]) != string(rows[at]) {
				t.Fatalf("from %q: %d rows, want %d", start, len(forward), len(rows)-at)
			}
			if len(backward) != i+1 || string(backward[0]) != string(rows[i]) {
				t.Fatalf("back from %q: %d rows, want %d", start, len(backward), i+1)
			}
		}
	}
}

func TestGeneratedRows(t *testing.T) {
	now := int64(1000)
	c := open(t, &memKV{}, &now)
	f := generate(t, c, "g", 10)
	rows := func(i int, start string, reversed bool) (out []string) {
		from := []byte(start)
		if start == "" {
			from = nil
		}
		for r := range f.RegionRows(i, from, reversed) {
			if len(r) != 1 || r[0].Timestamp != 1000 || string(r[0].Qualifier) != "q" || string(r[0].Value) != string(r[0].Row) || r[0].Type != cells.Put {
				t.Fatalf("row %v", r)
			}
			out = append(out, string(r[0].Row))
		}
		return out
	}
	all := []string{"00000004", "00000004-00001", "00000004-00002"}
	for _, tc := range []struct {
		start    string
		reversed bool
		want     []string
	}{
		{"", false, all}, {"00000004", false, all}, {"00000004-", false, all[1:]}, {"00000005", false, nil},
		{"", true, []string{all[2], all[1], all[0]}}, {"00000004-00001", true, []string{all[1], all[0]}}, {"00000003-00001", true, nil},
	} {
		if got := rows(4, tc.start, tc.reversed); !slices.Equal(got, tc.want) {
			t.Errorf("from %q, reversed %v: %q, want %q", tc.start, tc.reversed, got, tc.want)
		}
	}
	f.ValueSize = 20
	for r := range f.RegionRows(4, nil, false) {
		if string(r[0].Value) != "00000004000000040000" {
			t.Errorf("value %q", r[0].Value)
		}
		break
	}
	f.ValueSize = 0
}

// A million regions: made at once, looked up in microseconds; those that have
// changed lately are found without looking at the others.
func BenchmarkGenerated(b *testing.B) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, regions := range []int{300_000, 1_000_000} {
		now := int64(1000)
		c := open(b, &memKV{}, &now)
		n := name(b, "g")
		before := heap()
		f := generate(b, c, "g", regions, server(1), server(2), server(3))
		v := c.Virtual(meta.MetaTable)
		rnd := rand.New(rand.NewPCG(1, 1))
		run := func(what string, fn func(b *testing.B)) { b.Run(fmt.Sprintf("%d/%s", regions, what), fn) }
		run("locate", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for range v.Rows(meta.SearchRow(n, fmt.Appendf(nil, "%08d", rnd.IntN(regions))), true, 0) {
					break
				}
			}
		})
		run("scan", func(b *testing.B) {
			for b.Loop() {
				for range v.Rows(nil, false, 0) {
				}
			}
		})
		run("since", func(b *testing.B) {
			for b.Loop() {
				for range v.Rows(nil, false, 5000) {
				}
			}
		})
		run("moveAll", func(b *testing.B) {
			b.ReportMetric(float64(heap()-before)/float64(regions), "B/region-before")
			for b.Loop() {
				now++
				var ps []*Region
				put := func() {
					if err := c.Update(func(tx *Tx) error {
						for _, r := range ps {
							q := *tx.Region(r.Encoded)
							q.Server, q.Target, q.OpenSeq, q.StateTime = server(4), server(4), q.OpenSeq+1, now
							tx.PutRegion(&q)
						}
						return nil
					}); err != nil {
						b.Fatal(err)
					}
					ps = ps[:0]
				}
				for r := range c.State().RegionsOf(n) {
					if ps = append(ps, r); len(ps) == 1000 {
						put()
					}
				}
				put()
			}
			b.ReportMetric(float64(heap()-before)/float64(regions), "B/region-after")
		})
		run("select", func(b *testing.B) {
			for b.Loop() {
				for range c.State().Select(meta.TableName{}, func(r *Region) bool { return r.Target == server(1) }) {
				}
			}
		})
		_ = f
	}
}

// Ordinary regions that changed lately are found as quickly.
func BenchmarkOrdinarySince(b *testing.B) {
	c, _ := bigCatalog(b, 300_000)
	v := c.Virtual(meta.MetaTable)
	for range v.Rows(nil, false, 1<<60) {
	}
	for b.Loop() {
		for range v.Rows(nil, false, 1<<60) {
		}
	}
}
