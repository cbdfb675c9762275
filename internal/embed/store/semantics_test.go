package store

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Each entry stands for a rule of the semantics reference, by its number. They
// run on a clock at 1000 ms that moves on by one with every mutation.
func TestSemantics(t *testing.T) {
	ranged := func(lo, hi int64) *cells.Query {
		q := all()
		q.Range = cells.TimeRange{Min: lo, Max: hi}
		return q
	}
	raw := func() *cells.Query {
		q := all()
		q.Raw = true
		return q
	}
	versions := func(n int) *cells.Query {
		q := all()
		q.MaxVersions = n
		return q
	}
	keep := func(k cells.KeepDeleted) *cells.Family {
		f := fam("f", 3)
		f.KeepDeleted = k
		return &f
	}
	ttl := func(ms int64, minVersions, maxVersions int) *cells.Family {
		f := fam("f", maxVersions)
		f.TTL, f.MinVersions = ms, minVersions
		return &f
	}
	nvb := func(versions int) *cells.Family {
		f := fam("f", versions)
		f.NewVersionBehavior = true
		return &f
	}
	three := []Op{put(at("f:q", 10, "a")), put(at("f:q", 20, "b")), put(at("f:q", 30, "c"))}
	with := func(ops []Op, more ...Op) []Op { return append(append([]Op{}, ops...), more...) }
	one, two := fam("f", 1), fam("f", 2)
	gc := Op{Kind: 99} // stands for a major compaction

	for _, c := range []struct {
		rule   string
		family *cells.Family // VERSIONS=3 if nil
		ops    []Op
		q      *cells.Query
		want   string
	}{
		{"A3", nil, []Op{put(at("f:", 30, "n")), del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:", 10, "o"))}, raw(), "f:@30=n f:@20=DeleteFamily f:@10=o"},
		{"A4", nil, []Op{put(at("f:b", 1, "B"), at("f:a", 1, "A"))}, all("f:b", "f:a", "f:b"), "f:a@1=A f:b@1=B"},
		{"B1", nil, three[:2], newest(), "f:q@20=b"},
		{"B2", nil, with(three, put(at("f:q", 40, "d"))), versions(10), "f:q@40=d f:q@30=c f:q@20=b"},
		{"B3", &one, three[:2], versions(5), "f:q@20=b"},
		{"B4", nil, []Op{put(at("f:q", 10, "a")), put(at("f:q", 10, "b"))}, all(), "f:q@10=b"},
		{"B5", nil, []Op{put(at("f:q", 20, "b")), put(at("f:q", 10, "a"))}, newest(), "f:q@20=b"},
		{"B7", nil, []Op{put(at("f:q", -1, "a"), at("f:r", -1, "b"))}, all(), "f:q@1001=a f:r@1001=b"},
		{"B8", nil, []Op{put(at("f:q", math.MaxInt64-1, "a"))}, all(), "f:q@9223372036854775806=a"},
		{"B9", nil, []Op{put(at("f:q", 10, ""))}, all(), "f:q@10="},
		{"B10", nil, []Op{put(at("f:", 10, "e"), at("f:q", 10, "q"))}, all("f:"), "f:@10=e"},
		{"B11", nil, []Op{put(at("f:q1", 10, "1"))}, all("f:q9", "f:q1"), "f:q1@10=1"},
		{"B13", &one, three[:2], raw(), "f:q@20=b f:q@10=a"},
		{"B13 own max", &one, three, func() *cells.Query { q := raw(); q.MaxVersions = 1; return q }(), "f:q@30=c"},
		{"B13 twice", nil, []Op{put(at("f:q", 10, "a")), put(at("f:q", 10, "b"))}, raw(), "f:q@10=b"},
		{"B14", nil, three, versions(0), ""},
		{"C1", nil, []Op{put(at("f:q", 10, "a")), del(marker(cells.Delete, "f:q", 10))}, all(), ""},
		{"C2", nil, with(three[:2], del(marker(cells.Delete, "f:q", 20))), all(), "f:q@10=a"},
		{"C3", nil, with(three[:2], del(marker(cells.Delete, "f:q", 15))), all(), "f:q@20=b f:q@10=a"},
		{"C4", nil, with(three, del(marker(cells.DeleteColumn, "f:q", 20))), all(), "f:q@30=c"},
		{"C5", nil, []Op{put(at("f:a", 10, "a"), at("f:b", 20, "b")), del(marker(cells.DeleteFamily, "f:", 15))}, all(), "f:b@20=b"},
		{"C6", nil, []Op{put(at("f:a", 20, "x"), at("f:b", 20, "y"), at("f:a", 10, "z")), del(marker(cells.DeleteFamilyVersion, "f:", 20))}, all(), "f:a@10=z"},
		{"C7", nil, []Op{del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:q", 15, "x"))}, all(), ""},
		{"C8", nil, []Op{del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:q", 20, "x"))}, all(), ""},
		{"C9", nil, []Op{del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:q", 21, "x"))}, all(), "f:q@21=x"},
		{"C10", nil, []Op{del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:q", 15, "x")), gc, put(at("f:q", 15, "z"))}, all(), "f:q@15=z"},
		{"C10 nothing comes back", nil, []Op{del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:q", 15, "x")), gc}, raw(), ""},
		{"C11", &one, with(three[:2], del(marker(cells.Delete, "f:q", 20))), all(), "f:q@10=a"},
		{"C12", &one, with(three[:2], gc, del(marker(cells.Delete, "f:q", 20))), all(), ""},
		{"C13", &two, with(three, put(at("f:q", 40, "d")), del(marker(cells.Delete, "f:q", 40)), del(marker(cells.Delete, "f:q", 30))), versions(2), "f:q@20=b f:q@10=a"},
		{"C14", nil, with(three, put(at("f:q", 1000, "n")), del(marker(cells.DeleteColumn, "f:q", -1)), put(at("f:q", 2000, "x"))), all(), "f:q@2000=x"},
		{"C15", nil, with(three[:2], del(marker(cells.Delete, "f:q", -1))), all(), "f:q@10=a"},
		{"C16", nil, with(three, del(marker(cells.Delete, "f:q", -1), marker(cells.Delete, "f:q", -1))), all(), "f:q@10=a"},
		{"C17", nil, []Op{del(marker(cells.Delete, "f:q", -1))}, raw(), "f:q@1001=Delete"},
		{"C18", nil, []Op{put(at("f:q", 10, "a"), at("g:q", 2000, "n")), del()}, raw(), "f:@1002=DeleteFamily f:q@10=a g:@1002=DeleteFamily g:q@2000=n"},
		{"C18 with a timestamp", nil, []Op{put(at("f:q", 10, "a"), at("g:q", 20, "b")), {Kind: Delete, Timestamp: 15}}, all(), "g:q@20=b"},
		{"C19", nil, []Op{put(at("f:q", 10, "a"), at("f:q2", 10, "b"), at("g:q", 10, "c")), del(marker(cells.DeleteColumn, "f:q", 20))}, all(), "f:q2@10=b g:q@10=c"},
		{"C20", nil, []Op{put(at("f:q", 20, "b"), at("f:q", 15, "m"), at("f:q", 10, "a")), del(marker(cells.Delete, "f:q", 20), marker(cells.DeleteColumn, "f:q", 10))}, all(), "f:q@15=m"},
		{"C21", nil, []Op{put(at("f:", 10, "e"), at("f:q", 10, "q")), del(marker(cells.DeleteColumn, "f:", 20))}, all(), "f:q@10=q"},
		{"C22", nil, []Op{put(at("f:q", 10, "a")), del(marker(cells.Delete, "f:q", 10))}, raw(), "f:q@10=Delete f:q@10=a"},
		{"C26", nil, []Op{del(marker(cells.DeleteColumn, "f:q", 5))}, raw(), "f:q@5=DeleteColumn"},
		{"D1", ttl(500, 0, 3), []Op{put(at("f:q", 502, "x")), put(at("f:q", 501, "y"))}, all(), "f:q@502=x"}, // the clock stands at 1002
		{"D2", ttl(10, 1, 3), three, all(), "f:q@30=c"},
		{"D3", ttl(500, 2, 4), with(three, put(at("f:q", 900, "n"))), all(), "f:q@900=n f:q@30=c"},
		{"D4", ttl(500, 0, 3), []Op{put(at("f:q", 100, "x"))}, all(), ""},
		{"D5", ttl(1_000_000, 0, 3), []Op{{Kind: Put, TTL: 1, Cells: []cells.Cell{at("f:q", 1000, "x"), at("f:q", 1001, "y")}}, put(at("g:x", 1, ""))}, all("f"), "f:q@1001=y"},
		{"D5 no extension", ttl(500, 0, 3), []Op{{Kind: Put, TTL: 1_000_000, Cells: []cells.Cell{at("f:q", 100, "x")}}}, all(), ""},
		{"D7", ttl(500, 0, 3), []Op{put(at("f:q", 900, "n")), del(marker(cells.DeleteColumn, "f:q", 100))}, all(), "f:q@900=n"},
		{"D8", ttl(500, 1, 3), with(three, gc), raw(), "f:q@30=c"},
		{"D9", keep(cells.KeepTrue), []Op{put(at("f:q", 10, "a")), del(marker(cells.DeleteColumn, "f:q", 30))}, ranged(0, 20), "f:q@10=a"},
		{"D10", nil, []Op{put(at("f:q", 10, "a")), del(marker(cells.DeleteColumn, "f:q", 30))}, ranged(0, 20), ""},
		{"D11", keep(cells.KeepTrue), []Op{put(at("f:q", 10, "a")), del(marker(cells.DeleteColumn, "f:q", 30)), gc}, raw(), "f:q@30=DeleteColumn f:q@10=a"},
		{"D11 no victim", keep(cells.KeepTrue), []Op{put(at("f:q", 40, "a")), del(marker(cells.DeleteColumn, "f:q", 30)), gc}, raw(), "f:q@40=a"},
		{"D12 young", func() *cells.Family { f := keep(cells.KeepTTL); f.TTL = 5000; return f }(), []Op{put(at("f:q", 10, "a")), del(marker(cells.DeleteColumn, "f:q", 30)), gc}, raw(), "f:q@30=DeleteColumn f:q@10=a"},
		{"D12 old", func() *cells.Family { f := keep(cells.KeepTTL); f.TTL, f.MinVersions = 500, 1; return f }(), []Op{put(at("f:q", 10, "a")), del(marker(cells.DeleteColumn, "f:q", 30)), gc}, raw(), ""},
		{"D13", keep(cells.KeepTrue), []Op{put(at("f:q", 10, "a")), del(marker(cells.DeleteColumn, "f:q", 30))}, all(), ""},
		{"D14", nil, []Op{put(at("f:q", 10, "old")), {Kind: Put, TTL: 1, Cells: []cells.Cell{at("f:q", 10, "gone"), at("f:q", 20, "gone")}}}, all(), "f:q@10=old"},
		{"D14 raw", nil, []Op{{Kind: Put, TTL: 1, Cells: []cells.Cell{at("f:q", 10, "gone")}}}, raw(), ""},
		{"E1", nil, three, ranged(10, 30), "f:q@20=b f:q@10=a"},
		{"E2", &one, three[:2], ranged(0, 15), "f:q@10=a"},
		{"E3", &one, with(three[:2], gc), ranged(0, 15), ""},
		{"E4", nil, []Op{put(at("f:q", 10, "a"), at("g:q", 10, "b"))}, func() *cells.Query {
			return ranged(50, 60).SetFamilyRange([]byte("g"), cells.TimeRange{Min: 0, Max: 20})
		}(), "g:q@10=b"},
		{"E5", nil, three, ranged(20, 20), ""},
		{"E6", nil, three, ranged(20, 21), "f:q@20=b"},
		{"E7", nil, []Op{put(at("f:q", 10, "a"), at("f:q", 20, "b")), del(marker(cells.Delete, "f:q", 10))}, ranged(11, 100), "f:q@20=b"},
		{"F1", nvb(3), []Op{del(marker(cells.DeleteFamily, "f:", 20)), put(at("f:q", 15, "x"))}, all(), "f:q@15=x"},
		{"F2", nvb(3), []Op{del(marker(cells.Delete, "f:q", 10)), put(at("f:q", 10, "x"))}, all(), "f:q@10=x"},
		{"F3", nvb(1), with(three[:2], del(marker(cells.Delete, "f:q", 20))), all(), ""},
		{"F3 after GC", nvb(1), with(three[:2], del(marker(cells.Delete, "f:q", 20)), gc), raw(), ""},
		{"F hidden then", nvb(3), with(three[:2], del(marker(cells.DeleteColumn, "f:q", 15))), all(), "f:q@20=b"},
		{"F4", nvb(1), with(three[:2], del(marker(cells.Delete, "f:q", 20))), raw(), "f:q@20=Delete f:q@20=b f:q@10=a"},
		{"H4", nil, []Op{put(at("f:a", 1, "1"), at("f:b", 1, "2"), at("f:c", 1, "3"), at("g:a", 1, "4"), at("g:b", 1, "5"))}, func() *cells.Query { q := all(); q.StoreLimit, q.StoreOffset = 1, 1; return q }(), "f:b@1=2 g:b@1=5"},
		{"H4 zero", nil, []Op{put(at("f:a", 1, "1"), at("f:b", 1, "2"))}, func() *cells.Query { q := all(); q.StoreLimit = 0; return q }(), "f:a@1=1"},
		{"S3", nil, []Op{put(at("f:q", 10, "a"), at("g:q", 10, "b")), del(marker(cells.DeleteColumn, "f:q", 20)), del(marker(cells.DeleteColumn, "g:q", 20)), {Kind: 98}}, raw(), "g:q@20=DeleteColumn g:q@10=b"},
		{"M4", nil, []Op{put(at("f:q", math.MaxInt64, "a"))}, all(), "f:q@1001=a"},
		{"M6", nil, []Op{put(marker(cells.DeleteColumn, "f:q", 7))}, raw(), "f:q@7=DeleteColumn"},
	} {
		for _, flushed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s flushed=%v", c.rule, flushed), func(t *testing.T) {
				k := &clock{1000}
				s := testStore(t, Options{Now: k.now})
				f := c.family
				if f == nil {
					d := fam("f", 3)
					f = &d
				}
				tab := s.Table(1, cells.NewSchema(*f, fam("g", 3)))
				ctx := context.Background()
				for _, op := range c.ops {
					k.ms++
					var err error
					switch op.Kind {
					case 98:
						err = tab.MajorCompact(ctx, nil, nil, [][]byte{[]byte("f")})
					case 99:
						err = tab.MajorCompact(ctx, nil, nil, nil)
					default:
						mutate(t, tab, "r", op)
					}
					if err == nil && flushed { // every cell in a file of its own
						err = s.Flush(ctx)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				same(t, "get", get(t, tab, "r", c.q), c.want)
				want := ""
				if c.want != "" {
					want = "r{" + c.want + "}"
				}
				same(t, "scan", scanAll(t, tab, whole(c.q), 0), want)
				same(t, "reversed", scanAll(t, tab, &cells.ScanSpec{IncludeStart: true, Reversed: true, Query: c.q}, 0), want)
			})
		}
	}
}

// Rule E8: a marker newer than the range is found in whatever file it lies.
func TestMarkerInNewerBlock(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	ctx := context.Background()
	mutate(t, tab, "r", put(at("f:q", 10, "a")))
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	mutate(t, tab, "r", del(marker(cells.DeleteColumn, "f:q", 1000)))
	mutate(t, tab, "other", put(at("f:q", 1001, "x")))
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	q := all()
	q.Range = cells.TimeRange{Min: 0, Max: 20}
	same(t, "range below the marker", get(t, tab, "r", q), "")
	q.Range = cells.TimeRange{Min: 1001, Max: 1002}
	same(t, "range above it", get(t, tab, "other", q), "f:q@1001=x")
}

// Data dropped stays dropped for reads that pass over blocks by time.
func TestDropWithTimeRange(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	ctx := context.Background()
	mutate(t, tab, "r", put(at("f:q", 10, "a"), at("f:q", 5000, "b")))
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.DropData(1); err != nil {
		t.Fatal(err)
	}
	tab = testTable(t, s)
	mutate(t, tab, "z", put(at("f:q", 7000, "z")))
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	q := all()
	q.Range = cells.TimeRange{Min: 0, Max: 100}
	same(t, "dropped", scanAll(t, tab, whole(q), 0), "")
	same(t, "whole", scanAll(t, tab, whole(all()), 0), "z{f:q@7000=z}")
}
