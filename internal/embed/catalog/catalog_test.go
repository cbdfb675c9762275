package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// memKV is a KV in memory that can be told to fail.
type memKV struct {
	m    map[string][]byte
	fail error
	n    int // Apply calls
}

func (k *memKV) Apply(cs []Change) error {
	k.n++
	if k.fail != nil {
		return k.fail
	}
	if k.m == nil {
		k.m = map[string][]byte{}
	}
	for _, c := range cs {
		if c.Delete {
			delete(k.m, string(c.Key))
		} else {
			k.m[string(c.Key)] = bytes.Clone(c.Value)
		}
	}
	return nil
}

func (k *memKV) Iterate() iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(k.m)) {
			if !yield(Change{Key: []byte(key), Value: k.m[key]}, nil) {
				return
			}
		}
	}
}

func open(t testing.TB, kv *memKV, now *int64) *Catalog {
	t.Helper()
	c, err := Open(kv, func() int64 { return *now })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Update(func(tx *Tx) error { Bootstrap(tx); return nil }); err != nil {
		t.Fatal(err)
	}
	return c
}

func name(t testing.TB, s string) meta.TableName {
	t.Helper()
	n, err := meta.ParseTableName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// addTable makes a table with the region start keys given ("" is put first).
func addTable(t testing.TB, c *Catalog, text string, starts ...string) {
	t.Helper()
	n := name(t, text)
	err := c.Update(func(tx *Tx) error {
		s := NormalSchema(&pb.TableSchema{TableName: n.ToProto(), ColumnFamilies: []*pb.ColumnFamilySchema{{Name: []byte("f")}}})
		tx.PutTable(&Table{Name: n, ID: tx.NextTableID(), Schema: s, StateTime: tx.Now()})
		id := tx.NextRegionID()
		starts := append([]string{""}, starts...)
		for i, s := range starts {
			end := ""
			if i+1 < len(starts) {
				end = starts[i+1]
			}
			tx.PutRegion(NewRegion(meta.Region{Table: n, ID: id, Start: []byte(s), End: []byte(end)}, tx.Now()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func rowsOf(v *View, start []byte, reversed bool) (rows [][]byte) {
	for r := range v.Rows(start, reversed, 0) {
		rows = append(rows, r[0].Row)
	}
	return rows
}

// The traps of the meta order: table names that continue one another with
// bytes around the comma, start keys with commas, spaces and zero bytes.
func TestMetaOrder(t *testing.T) {
	now := int64(1_700_000_000_000)
	c := open(t, &memKV{}, &now)
	if err := c.Update(func(tx *Tx) error { tx.PutNamespace(&Namespace{Name: "ns"}); return nil }); err != nil {
		t.Fatal(err)
	}
	starts := []string{"\x00", "\x00\x00", " ", "!", ",", ",,", "a", "a\x00", "a!", "a,", "a,b", "aa", "\xff"}
	for _, n := range []string{"t", "t.x", "t-1", "ns:t", "tt", "t0"} {
		addTable(t, c, n, starts...)
	}
	v := c.Virtual(meta.MetaTable)
	rows := rowsOf(v, nil, false)
	if want := 6*(len(starts)+2) + 3; len(rows) != want { // + hbase:meta, hbase:namespace, its region
		t.Fatalf("got %d rows, want %d", len(rows), want)
	}
	if !slices.IsSortedFunc(rows, meta.CompareRows) {
		t.Fatal("rows are not in meta order")
	}
	back := rowsOf(v, nil, true)
	slices.Reverse(back)
	if diff := cmp.Diff(rows, back); diff != "" {
		t.Fatalf("reversed rows differ: %s", diff)
	}
	// From every row and around it, both ways.
	for i, r := range rows {
		for _, probe := range [][]byte{r, append(bytes.Clone(r), 0), r[:len(r)-1]} {
			wantUp := slices.DeleteFunc(slices.Clone(rows), func(x []byte) bool { return meta.CompareRows(x, probe) < 0 })
			if got := rowsOf(v, probe, false); !slices.EqualFunc(got, wantUp, bytes.Equal) {
				t.Fatalf("row %d: from %q: %d rows, want %d", i, probe, len(got), len(wantUp))
			}
			wantDown := slices.DeleteFunc(slices.Clone(rows), func(x []byte) bool { return meta.CompareRows(x, probe) > 0 })
			slices.Reverse(wantDown)
			if got := rowsOf(v, probe, true); !slices.EqualFunc(got, wantDown, bytes.Equal) {
				t.Fatalf("row %d: down from %q: %d rows, want %d", i, probe, len(got), len(wantDown))
			}
		}
	}
	// What clients scan to list a table's regions holds exactly those.
	for _, n := range []string{"t", "t.x", "t-1", "ns:t"} {
		tn := name(t, n)
		count := 0
		for r := range v.Rows(meta.FirstRow(tn), false, 0) {
			if meta.CompareRows(r[0].Row, meta.StopRow(tn)) >= 0 {
				break
			}
			loc, ok, err := meta.ParseLocation(r)
			if err != nil || !ok || loc.Region.Table != tn {
				t.Fatalf("%s: row %q: %v %v", n, r[0].Row, ok, err)
			}
			count++
		}
		if count != len(starts)+1 {
			t.Errorf("%s: %d regions listed, want %d", n, count, len(starts)+1)
		}
		// And the reversed search finds the region of a row.
		for _, key := range append([]string{"b", "a,,", " x"}, starts...) {
			for r := range v.Rows(meta.SearchRow(tn, []byte(key)), true, 0) {
				loc, ok, err := meta.ParseLocation(r)
				if err != nil || !ok || loc.Region.Table != tn || !loc.Region.Contains([]byte(key)) {
					t.Errorf("%s: search %q found %q (%v, %v)", n, key, r[0].Row, ok, err)
				}
				break
			}
		}
	}
}

func TestPersistence(t *testing.T) {
	now := int64(1_700_000_000_000)
	kv := &memKV{}
	c := open(t, kv, &now)
	addTable(t, c, "t", "m")
	var parent, a, b *Region
	err := c.Update(func(tx *Tx) error {
		tx.PutGroup(&Group{Name: "g", Servers: []string{"127.0.0.1:1234"}, Config: []*pb.NameStringPair{{Name: new("k"), Value: new("v")}}})
		tx.PutNamespace(&Namespace{Name: "ns", Config: []*pb.NameStringPair{{Name: new("k"), Value: new("v")}}, Time: 5})
		tx.SetSetting("x", "y")
		r := slices.Collect(tx.RegionsOf(name(t, "t")))[0]
		p := *r
		p.Info.Split, p.Info.Offline, p.State = true, true, pb.RegionState_SPLIT
		id := tx.NextRegionID()
		ia := meta.Region{Table: r.Info.Table, ID: id, End: []byte("c")}
		ib := meta.Region{Table: r.Info.Table, ID: id, Start: []byte("c"), End: []byte("m")}
		p.SplitA, p.SplitB = &ia, &ib
		parent, a, b = &p, NewRegion(ia, 7), NewRegion(ib, 7)
		b.Merged = []meta.Region{ia}
		tx.PutRegion(parent)
		tx.PutRegion(a)
		tx.PutRegion(b)
		tx.PutSnapshot(&Snapshot{Description: &pb.SnapshotDescription{Name: new("s")}, Schema: tx.Table(name(t, "t")).Schema, DataID: 9, Starts: [][]byte{{}, []byte("m")}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	id := c.State().Counter(counterRegionID)

	d, err := Open(kv, func() int64 { return now })
	if err != nil {
		t.Fatal(err)
	}
	s := d.State()
	// All is as before, but for the assignment, which starts afresh.
	if got, want := len(slices.Collect(s.Regions())), c.State().RegionCount(); got != want || s.RegionCount() != want {
		t.Errorf("%d regions after reopening, want %d", got, want)
	}
	p := s.Region(parent.Encoded)
	if p == nil || !p.Info.Split || !p.Info.Offline || p.State != pb.RegionState_SPLIT || !sameRegion(p.SplitA, &a.Info) || !sameRegion(p.SplitB, &b.Info) {
		t.Errorf("split parent came back as %+v", p)
	}
	if r := s.Region(b.Encoded); r == nil || len(r.Merged) != 1 || !sameRegion(&r.Merged[0], &a.Info) || r.InfoTime != 7 || !bytes.Equal(r.Name, b.Name) {
		t.Errorf("daughter came back as %+v", r)
	}
	if r := s.RegionNamed(a.Name); r == nil || r.Encoded != a.Encoded || r.State != pb.RegionState_OFFLINE {
		t.Errorf("daughter by name: %+v", r)
	}
	tb := s.Table(name(t, "t"))
	if tb == nil || tb.ID != 1 || !SameSchema(tb.Schema, c.State().Table(name(t, "t")).Schema) || tb.StateTime != now {
		t.Errorf("table came back as %+v", tb)
	}
	if g := s.Group("g"); g == nil || !slices.Equal(g.Servers, []string{"127.0.0.1:1234"}) || g.Config[0].GetValue() != "v" {
		t.Errorf("group came back as %+v", g)
	}
	if n := s.Namespace("ns"); n == nil || n.Setting("k") != "v" || n.Time != 5 {
		t.Errorf("namespace came back as %+v", n)
	}
	if p := s.Snapshot("s"); p == nil || p.DataID != 9 || len(p.Starts) != 2 || string(p.Starts[1]) != "m" {
		t.Errorf("snapshot came back as %+v", p)
	}
	if s.Setting("x") != "y" {
		t.Error("setting lost")
	}
	// Counters go on, also when the clock went back.
	now -= 1_000_000
	_ = d.Update(func(tx *Tx) error {
		if got := tx.NextRegionID(); got <= id {
			t.Errorf("region id %d after %d", got, id)
		}
		if got := tx.NextTableID(); got != 2 {
			t.Errorf("table id %d, want 2", got)
		}
		return nil
	})
}

func TestUpdateIsAtomic(t *testing.T) {
	now := int64(1)
	kv := &memKV{}
	c := open(t, kv, &now)
	before := c.State()
	boom := errors.New("boom")
	put := func(tx *Tx) { tx.SetSetting("a", "b"); tx.PutNamespace(&Namespace{Name: "x"}) }
	if err := c.Update(func(tx *Tx) error { put(tx); return boom }); !errors.Is(err, boom) || c.State() != before {
		t.Fatalf("an aborted transaction was published (%v)", err)
	}
	n := kv.n
	// An assignment is published without a write.
	if err := c.Update(func(tx *Tx) error {
		r := *slices.Collect(tx.RegionsOf(meta.NamespaceTable))[0]
		r.State, r.OpenSeq, r.Server = pb.RegionState_OPEN, 5, meta.ServerName{Host: "h", Port: 1, StartCode: 2}
		tx.PutRegion(&r)
		return nil
	}); err != nil || kv.n != n {
		t.Fatalf("assignment: %v, %d writes", err, kv.n-n)
	}
	_, changed := c.Changed()
	kv.fail = boom
	before = c.State()
	if err := c.Update(func(tx *Tx) error { put(tx); return nil }); !errors.Is(err, boom) || c.State() != before {
		t.Fatalf("a failed write was published (%v)", err)
	}
	kv.fail = nil
	if err := c.Update(func(tx *Tx) error { put(tx); return nil }); !errors.Is(err, ErrBroken) {
		t.Fatalf("update after a failed write: %v", err)
	}
	select {
	case <-changed:
		t.Fatal("watchers woken though nothing was published")
	default:
	}
}

// The counts by server follow every kind of change.
func TestHeld(t *testing.T) {
	now := int64(1)
	c := open(t, &memKV{}, &now)
	addTable(t, c, "t", "a", "b", "c")
	a, b := meta.ServerName{Host: "a", Port: 1, StartCode: 1}, meta.ServerName{Host: "b", Port: 1, StartCode: 1}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		all := slices.Collect(c.State().AllRegions())
		r := *all[rnd.IntN(len(all))]
		before := c.State()
		wasA := before.Held(a)
		_ = c.Update(func(tx *Tx) error {
			switch {
			case rnd.IntN(10) == 0 && r.Info.Table.Qualifier == "t" && len(all) > 4:
				tx.DeleteRegion(&r)
			case rnd.IntN(10) == 0:
				r.Info.Split, r.State = true, pb.RegionState_SPLIT
				tx.PutRegion(&r)
			default:
				r.Info.Split, r.State = false, pb.RegionState_OPEN
				r.Target = []meta.ServerName{{}, a, b}[rnd.IntN(3)]
				tx.PutRegion(&r)
			}
			return nil
		})
		want := map[meta.ServerName]int{}
		for r := range c.State().AllRegions() {
			if !r.Parent() && !r.Target.IsZero() {
				want[r.Target]++
			}
		}
		if c.State().Held(a) != want[a] || c.State().Held(b) != want[b] || len(c.State().held) != len(want) {
			t.Fatalf("counted %v, want %v", c.State().held, want)
		}
		if before.Held(a) != wasA {
			t.Fatal("an older picture changed")
		}
	}
}

func TestRegionRow(t *testing.T) {
	srv := meta.ServerName{Host: "127.0.0.1", Port: 16020, StartCode: 1700000000001}
	target := meta.ServerName{Host: "127.0.0.1", Port: 16021, StartCode: 1700000000002}
	r := NewRegion(meta.Region{Table: meta.TableName{Namespace: "default", Qualifier: "t"}, ID: 1700000000000, Start: []byte("a")}, 10)
	got := regionRow(r)
	if q := qualifiers(got); !slices.Equal(q, []string{"regioninfo", "state"}) {
		t.Errorf("a new region has columns %v", q)
	}
	r.State, r.Server, r.Target, r.OpenSeq, r.StateTime = pb.RegionState_OPENING, srv, target, 42, 20
	r.SplitA, r.SplitB = &r.Info, &r.Info
	r.Merged = []meta.Region{r.Info, r.Info}
	got = regionRow(r)
	want := []string{"merge0000", "merge0001", "regioninfo", "seqnumDuringOpen", "server", "serverstartcode", "sn", "splitA", "splitB", "state"}
	if q := qualifiers(got); !slices.Equal(q, want) || !slices.IsSorted(q) {
		t.Errorf("columns %v, want %v", q, want)
	}
	if !slices.IsSortedFunc(got, func(a, b cells.Cell) int { return cells.Compare(&a, &b) }) {
		t.Error("cells are not in order")
	}
	loc, ok, err := meta.ParseLocation(got)
	if err != nil || !ok || loc.Server != srv || loc.SeqNum != 42 || loc.State != "OPENING" || loc.Region.ID != r.Info.ID {
		t.Errorf("parsed back as %+v (%v, %v)", loc, ok, err)
	}
	if s := string(got[6].Value); s != "127.0.0.1,16021,1700000000002" {
		t.Errorf("sn %q", s)
	}
}

func qualifiers(row []cells.Cell) (q []string) {
	for i := range row {
		q = append(q, string(row[i].Qualifier))
	}
	return q
}

func TestGroups(t *testing.T) {
	now := int64(1)
	c := open(t, &memKV{}, &now)
	addTable(t, c, "t")
	_ = c.Update(func(tx *Tx) error {
		tx.PutNamespace(&Namespace{Name: "ns", Config: []*pb.NameStringPair{{Name: new(GroupAttribute), Value: new("g")}}})
		tx.PutGroup(&Group{Name: "g", Servers: []string{"a:1"}})
		return nil
	})
	addTable(t, c, "ns:u")
	group := func(n string) string { return c.State().GroupOfTable(c.State().Table(name(t, n))) }
	if g := group("t"); g != DefaultGroup {
		t.Errorf("t is in %q", g)
	}
	if g := group("ns:u"); g != "g" {
		t.Errorf("ns:u is in %q: the namespace's group counts", g)
	}
	_ = c.Update(func(tx *Tx) error {
		u := *tx.Table(name(t, "t"))
		u.Schema = NormalSchema(&pb.TableSchema{TableName: u.Schema.TableName, Attributes: SetAttribute(u.Schema.Attributes, GroupAttribute, "g")})
		tx.PutTable(&u)
		return nil
	})
	if g := group("t"); g != "g" {
		t.Errorf("t is in %q: the descriptor's group counts", g)
	}
	s := c.State()
	info := s.GroupInfo("g", nil)
	if len(info.GetTables()) != 2 || len(info.GetServers()) != 1 || info.GetServers()[0].StartCode != nil {
		t.Errorf("group g is %v", info)
	}
	def := s.GroupInfo(DefaultGroup, []string{"a:1", "b:2"})
	if len(def.GetServers()) != 1 || def.GetServers()[0].GetHostName() != "b" {
		t.Errorf("default group is %v", def)
	}
	if s.GroupInfo("none", nil) != nil {
		t.Error("an unknown group has an info")
	}
	_ = c.Update(func(tx *Tx) error { tx.DeleteGroup("g"); return nil })
	if g := group("t"); g != DefaultGroup {
		t.Errorf("t is in %q though its group is gone", g)
	}
}

func FuzzDecode(f *testing.F) {
	r := NewRegion(meta.Region{Table: meta.TableName{Namespace: "ns", Qualifier: "t"}, ID: 1, Start: []byte("a")}, 3)
	r.SplitA, r.Merged = &r.Info, []meta.Region{r.Info}
	f.Add(encodeRegion(r))
	f.Add(encodeTable(&Table{ID: 3, Schema: MetaSchema(), Group: "g"}))
	f.Add(encodeGroup(&Group{Name: "g", Servers: []string{"a:1"}}))
	f.Add(encodeNamespace(&Namespace{Name: "n"}))
	f.Add(encodeSnapshot(&Snapshot{Description: &pb.SnapshotDescription{Name: new("s")}, Schema: MetaSchema(), Starts: [][]byte{{1}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decodeTable(b)
		_, _ = decodeNamespace(b)
		_, _ = decodeGroup(b)
		_, _ = decodeSnapshot(b)
		if r, err := decodeRegion(b); err == nil {
			if again, err := decodeRegion(encodeRegion(r)); err != nil || !bytes.Equal(again.Name, r.Name) {
				t.Errorf("region changed in a round trip: %v", err)
			}
		}
	})
}

// bigCatalog has n regions, in tables of 1,000.
func bigCatalog(b testing.TB, n int) (*Catalog, *memKV) {
	now := int64(1_700_000_000_000)
	kv := &memKV{}
	c := open(b, kv, &now)
	for i := range n / 1000 {
		var starts []string
		for j := 1; j < 1000; j++ {
			starts = append(starts, fmt.Sprintf("%04d", j))
		}
		addTable(b, c, fmt.Sprintf("t%03d", i), starts...)
	}
	return c, kv
}

func BenchmarkCatalog100k(b *testing.B) {
	c, kv := bigCatalog(b, 100_000)
	rnd := rand.New(rand.NewPCG(1, 1))
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := Open(kv, func() int64 { return 1 }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("locate", func(b *testing.B) {
		b.ReportAllocs()
		v := c.Virtual(meta.MetaTable)
		for b.Loop() {
			n := meta.TableName{Namespace: "default", Qualifier: fmt.Sprintf("t%03d", rnd.IntN(100))}
			for range v.Rows(meta.SearchRow(n, fmt.Appendf(nil, "%04d", rnd.IntN(1000))), true, 0) {
				break
			}
		}
	})
	b.Run("move", func(b *testing.B) {
		b.ReportAllocs()
		all := slices.Collect(c.State().Regions())
		for b.Loop() {
			r := *all[rnd.IntN(len(all))]
			r.OpenSeq++
			if err := c.Update(func(tx *Tx) error { tx.PutRegion(&r); return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("scan", func(b *testing.B) {
		v := c.Virtual(meta.MetaTable)
		for b.Loop() {
			for range v.Rows(nil, false, 0) {
			}
		}
	})
}
