package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

const (
	scanRows    = 120
	scanColumns = 4
)

// fillScan writes scanRows rows of scanColumns cells, stamped 1..4.
func (s *suite) fillScan(t *testing.T, tab *hbase.Table) {
	t.Helper()
	var ops []hbase.Op
	for i, row := range keys(scanRows) {
		p := hbase.NewPut(row)
		for c := range scanColumns {
			p.SetAt("f", fmt.Sprintf("c%d", c), int64(c+1), fmt.Appendf(nil, "%d.%d", i, c))
		}
		ops = append(ops, p)
	}
	if err := tab.Batch(t.Context(), ops).Err(); err != nil {
		t.Fatal(err)
	}
}

// wholeRow checks that a result holds all of row i.
func wholeRow(r *hbase.Result) error {
	if len(r.Cells) != scanColumns {
		return fmt.Errorf("row %q has %d cells, want %d: %s", r.Row, len(r.Cells), scanColumns, show(r.Cells))
	}
	for c, cell := range r.Cells {
		var i int
		fmt.Sscanf(string(r.Row), "r%03d", &i)
		if string(cell.Qualifier) != fmt.Sprintf("c%d", c) || string(cell.Value) != fmt.Sprintf("%d.%d", i, c) {
			return fmt.Errorf("row %q: %s", r.Row, show(r.Cells))
		}
	}
	return nil
}

func (s *suite) scans(t *testing.T) {
	tab := s.table(t, plain("f"), split("r030", "r060", "r090")...)
	s.fillScan(t, tab)
	all := keys(scanRows)
	reversed := slices.Clone(all)
	slices.Reverse(reversed)
	b := func(s string) []byte { return []byte(s) }
	for _, test := range []struct {
		name string
		scan *hbase.Scan
		want [][]byte
	}{
		{"all", &hbase.Scan{}, all},
		{"reversed", &hbase.Scan{Reversed: true}, reversed},
		{"range", &hbase.Scan{Start: b("r010"), Stop: b("r070")}, all[10:70]},
		{"range within a region", &hbase.Scan{Start: b("r040"), Stop: b("r045")}, all[40:45]},
		{"from a region's edge", &hbase.Scan{Start: b("r030"), Stop: b("r060")}, all[30:60]},
		{"stop included at an edge", &hbase.Scan{Start: b("r029"), Stop: b("r060"), IncludeStop: true}, all[29:61]},
		{"start excluded at an edge", &hbase.Scan{Start: b("r030"), ExcludeStart: true, Stop: b("r032")}, all[31:32]},
		{"between rows", &hbase.Scan{Start: b("r0305"), Stop: b("r0315")}, all[31:32]},
		{"one row", &hbase.Scan{Start: b("r050"), Stop: b("r050"), IncludeStop: true}, all[50:51]},
		{"nothing", &hbase.Scan{Start: b("r050"), Stop: b("r050")}, nil},
		{"bounds reversed by mistake", &hbase.Scan{Start: b("r070"), Stop: b("r050")}, nil},
		{"behind the end", &hbase.Scan{Start: b("s")}, nil},
		{"reversed range", &hbase.Scan{Start: b("r070"), Stop: b("r010"), Reversed: true}, reversed[49:109]},
		{"reversed from an edge", &hbase.Scan{Start: b("r060"), Stop: b("r030"), Reversed: true}, reversed[59:89]},
		{"reversed start excluded", &hbase.Scan{Start: b("r060"), ExcludeStart: true, Stop: b("r030"), IncludeStop: true, Reversed: true}, reversed[60:90]},
		{"prefix", hbase.NewScanPrefix("r00"), all[:10]},
		{"prefix turned round", hbase.NewScanPrefix("r03").Reverse(), reversed[80:90]},
		{"limit", &hbase.Scan{Limit: 45}, all[:45]},
		{"limit of one region", &hbase.Scan{Limit: 30}, all[:30]},
		{"limit reversed", &hbase.Scan{Limit: 45, Reversed: true}, reversed[:45]},
		{"caching", &hbase.Scan{Caching: 7}, all},
		{"caching and limit", &hbase.Scan{Caching: 7, Limit: 33}, all[:33]},
		{"small answers", &hbase.Scan{MaxResultSize: 100}, all},
		{"small answers reversed", &hbase.Scan{MaxResultSize: 100, Reversed: true, Limit: 100}, reversed[:100]},
		{"prefetch", &hbase.Scan{Caching: 5, Prefetch: hbase.PrefetchAlways}, all},
		{"streaming", &hbase.Scan{ReadType: hbase.ReadStream, SkipBlockCache: true, ID: "conformance"}, all},
		{"metrics", &hbase.Scan{Metrics: true}, all},
	} {
		t.Run(test.name, func(t *testing.T) {
			sc := tab.Scan(t.Context(), test.scan)
			var got [][]byte
			for r, err := range sc.Rows() {
				if err != nil {
					t.Fatal(err)
				}
				if err := wholeRow(r); err != nil {
					t.Fatal(err)
				}
				got = append(got, r.Row)
			}
			if !slices.EqualFunc(got, test.want, bytes.Equal) {
				t.Errorf("%d rows, want %d:\n got %s\nwant %s", len(got), len(test.want), bytes.Join(got, []byte(" ")), bytes.Join(test.want, []byte(" ")))
			}
		})
	}
}

func (s *suite) scanSpecials(t *testing.T) {
	tab := s.table(t, []*admin.FamilyDescriptor{admin.NewFamily("f").Versions(3)}, split("r060")...)
	s.fillScan(t, tab)
	parts := func(scan *hbase.Scan) (sizes []int, cells int) {
		t.Helper()
		var last []byte
		for _, r := range collect(t, tab, scan) {
			sizes = append(sizes, len(r.Cells))
			cells += len(r.Cells)
			if len(last) > 0 && bytes.Compare(r.Row, last) < 0 {
				t.Errorf("row %q after %q", r.Row, last)
			}
			last = r.Row
		}
		return sizes, cells
	}
	sizes, n := parts(&hbase.Scan{Batch: 3})
	if n != scanRows*scanColumns || len(sizes) != 2*scanRows || sizes[0] != 3 || sizes[1] != 1 {
		t.Errorf("batch 3: %d cells in %d results, the first of %v", n, len(sizes), sizes[:min(4, len(sizes))])
	}
	sizes, n = parts(&hbase.Scan{Batch: 3, MaxResultSize: 40})
	if n != scanRows*scanColumns || len(sizes) != 2*scanRows {
		t.Errorf("batch 3 in small answers: %d cells in %d results", n, len(sizes))
	}
	if sizes, n = parts(&hbase.Scan{Batch: 3, Limit: 2}); n != 2*scanColumns || len(sizes) != 4 {
		t.Errorf("batch 3, limit 2: %d cells in %d results", n, len(sizes))
	}
	if sizes, n = parts(&hbase.Scan{AllowPartial: true, MaxResultSize: 40}); n != scanRows*scanColumns || len(sizes) <= scanRows {
		t.Errorf("partial results: %d cells in %d results, want %d cells in more than %d results", n, len(sizes), scanRows*scanColumns, scanRows)
	}
	if sizes, n = parts(&hbase.Scan{AllowPartial: true}); n != scanRows*scanColumns {
		t.Errorf("partial results in large answers: %d cells in %d results", n, len(sizes))
	}
	one := func(what string, scan *hbase.Scan, want string) {
		t.Helper()
		scan.Start, scan.Limit = []byte("r005"), 1
		rs := collect(t, tab, scan)
		if want == "" {
			return
		}
		if len(rs) != 1 {
			t.Errorf("%s: %d results", what, len(rs))
			return
		}
		expect(t, what, rs[0], want)
	}
	one("columns", hbase.NewScan().Column("f", "c1", "c3"), "f:c1@2=5.1 f:c3@4=5.3")
	one("time range", hbase.NewScan().In(hbase.TimeRange{From: 2, To: 4}), "f:c1@2=5.1 f:c2@3=5.2")
	one("range of a family", &hbase.Scan{FamilyTimeRange: map[string]hbase.TimeRange{"f": hbase.At(1)}}, "f:c0@1=5.0")
	one("per family", &hbase.Scan{MaxPerFamily: 2, OffsetPerFamily: 1}, "f:c1@2=5.1 f:c2@3=5.2")
	put(t, tab, hbase.NewPut("r005").SetAt("f", "c0", 10, []byte("new")))
	one("versions", hbase.NewScan().Column("f", "c0").Versions(2), "f:c0@10=new f:c0@1=5.0")
	if err := tab.Delete(t.Context(), hbase.NewDelete("r005").Version("f", "c0", 10)); err != nil {
		t.Fatal(err)
	}
	one("after a delete", hbase.NewScan().Column("f", "c0").Versions(2), "f:c0@1=5.0")
	one("raw", &hbase.Scan{Raw: true, MaxVersions: 3},
		"f:c0@10!Delete f:c0@10=new f:c0@1=5.0 f:c1@2=5.1 f:c2@3=5.2 f:c3@4=5.3")
	if err := tab.Delete(t.Context(), hbase.NewDelete("r006")); err != nil {
		t.Fatal(err)
	}
	if rs := collect(t, tab, hbase.NewScanRange("r005", "r008")); rowsOf(rs) != "r005 r007" {
		t.Errorf("a deleted row shows: %s", rowsOf(rs))
	}
	// Metrics are the server's to fill; the call must at least work.
	sc := tab.Scan(t.Context(), &hbase.Scan{Metrics: true})
	for _, err := range sc.Rows() {
		if err != nil {
			t.Fatal(err)
		}
	}
	if st := sc.Stats(); st.Regions != 2 || st.RPCs < 2 || st.Reopened != 0 {
		t.Errorf("stats of a quiet scan over two regions: %+v", st)
	}
	if _, err := tab.Scan(t.Context(), hbase.NewScan().Family("nofamily")).Next(); !errors.Is(err, hbase.ErrNoSuchFamily) {
		t.Errorf("unknown family: %v, want ErrNoSuchFamily", err)
	}
	// Closing early, twice, and reading on.
	sc = tab.Scan(t.Context(), &hbase.Scan{Caching: 2})
	if _, err := sc.Next(); err != nil {
		t.Fatal(err)
	}
	sc.Close()
	sc.Close()
	for range 3 {
		if _, err := sc.Next(); err != nil && !errors.Is(err, hbase.ErrScannerClosed) {
			t.Errorf("Next after Close: %v", err)
		}
	}
}

func (s *suite) scanFilters(t *testing.T) {
	tab := s.table(t, plain("f"), split("r060")...)
	s.fillScan(t, tab)
	for _, test := range []struct {
		name        string
		f           hbase.Filter
		rows, cells int
	}{
		{"first key only", filter.FirstKeyOnly(), scanRows, scanRows},
		{"key only", filter.KeyOnly(), scanRows, scanRows * scanColumns},
		{"prefix", filter.Prefix("r11"), 10, 40},
		{"page", filter.Page(5), 10, 40}, // five of each region
		{"row greater", filter.Row(filter.GreaterOrEqual, filter.Binary("r110")), 10, 40},
		{"row regex", filter.Row(filter.Equal, filter.Regex("^r..7$")), 12, 48},
		{"single value", filter.SingleColumnValue("f", "c1", filter.Equal, filter.Binary("64.1")), 1, 4},
		{"value substring", filter.Value(filter.Equal, filter.Substring(".3")), scanRows, scanRows},
		{"qualifier", filter.Qualifier(filter.Less, filter.Binary("c2")), scanRows, 2 * scanRows},
		{"and", filter.And(filter.Prefix("r05"), filter.FirstKeyOnly()), 10, 10},
		{"or", filter.Or(filter.Prefix("r05"), filter.Prefix("r07")), 20, 80},
		{"nothing", filter.Prefix("zzz"), 0, 0},
		{"inclusive stop", filter.InclusiveStop("r009"), 10, 40},
	} {
		rows, cells := 0, 0
		for _, r := range collect(t, tab, hbase.NewScan().WithFilter(test.f)) {
			rows++
			cells += len(r.Cells)
		}
		if rows != test.rows || cells != test.cells {
			t.Errorf("%s: %d rows and %d cells, want %d and %d", test.name, rows, cells, test.rows, test.cells)
		}
	}
	if r := collect(t, tab, hbase.NewScan().WithFilter(filter.KeyOnly()).WithLimit(1)); len(r) != 1 || len(r[0].Cells[0].Value) != 0 {
		t.Errorf("key only: %v", r)
	}
}

// scanUnderChange walks scans step by step while regions move, split and merge
// between the steps, so that each change falls into an open scanner.
func (s *suite) scanUnderChange(t *testing.T) {
	tab := s.table(t, plain("f"), split("r060")...)
	s.fillScan(t, tab)
	name := tab.Name().String()
	moveAll := func(t *testing.T) {
		for _, r := range s.locations(t, tab) {
			ctx, cancel := s.step(t)
			if err := s.adm.MoveRegion(ctx, r.Region.EncodedName(), s.otherServer(t, r.Server)); err != nil {
				t.Fatalf("move: %v", err)
			}
			cancel()
		}
	}
	changes := []struct {
		name string
		do   func(*testing.T)
	}{
		{"move", moveAll},
		{"split", func(t *testing.T) {
			ctx, cancel := s.step(t)
			defer cancel()
			if err := s.adm.SplitTable(ctx, name, []byte("r030")); err != nil {
				t.Fatalf("split: %v", err)
			}
		}},
		{"move again", moveAll},
		{"split at the row", func(t *testing.T) {
			ctx, cancel := s.step(t)
			defer cancel()
			if err := s.adm.SplitTable(ctx, name, []byte("r012")); err != nil {
				t.Fatalf("split: %v", err)
			}
		}},
	}
	scans := []struct {
		name string
		scan hbase.Scan
	}{
		{"forward", hbase.Scan{Caching: 5}},
		{"reversed", hbase.Scan{Caching: 5, Reversed: true}},
		{"batch", hbase.Scan{Caching: 3, Batch: 3}},
		{"partial", hbase.Scan{AllowPartial: true, MaxResultSize: 40}},
		{"prefetch", hbase.Scan{Caching: 5, Prefetch: hbase.PrefetchAlways}},
	}
	for _, change := range changes {
		// One change for all scanners: each is opened and read a little, then
		// the change comes, then each is read to its end.
		open := make([]*hbase.Scanner, len(scans))
		got := make([][]*hbase.Result, len(scans))
		for i := range scans {
			open[i] = tab.Scan(t.Context(), &scans[i].scan)
			for range 13 {
				r, err := open[i].Next()
				if err != nil {
					t.Fatalf("%s, %s: %v", change.name, scans[i].name, err)
				}
				got[i] = append(got[i], r)
			}
		}
		change.do(t)
		for i := range scans {
			for r, err := range open[i].Rows() {
				if err != nil {
					t.Fatalf("%s, %s: %v", change.name, scans[i].name, err)
				}
				got[i] = append(got[i], r)
			}
			if err := complete(got[i], scans[i].scan.Reversed); err != nil {
				t.Errorf("%s, %s: %v (%+v)", change.name, scans[i].name, err, open[i].Stats())
			}
		}
	}
}

// complete checks that results are all rows, whole, once, in order.
func complete(rs []*hbase.Result, reversed bool) error {
	var rows []*hbase.Result
	for _, r := range rs {
		if n := len(rows); n > 0 && bytes.Equal(rows[n-1].Row, r.Row) {
			joined := *rows[n-1]
			joined.Cells = slices.Concat(joined.Cells, r.Cells)
			rows[n-1] = &joined
			continue
		}
		rows = append(rows, r)
	}
	want := keys(scanRows)
	if reversed {
		slices.Reverse(want)
	}
	for i := range min(len(rows), len(want)) {
		if !bytes.Equal(rows[i].Row, want[i]) {
			return fmt.Errorf("row %d is %q, want %q", i, rows[i].Row, want[i])
		}
		if err := wholeRow(rows[i]); err != nil {
			return err
		}
	}
	if len(rows) != len(want) {
		return fmt.Errorf("%d rows, want %d", len(rows), len(want))
	}
	return nil
}

// routes: what is warm needs no further reading of hbase:meta.
func (s *suite) routes(t *testing.T) {
	tab := s.table(t, plain("f"), split("g", "n", "t")...)
	if err := tab.Warm(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	before := s.client.RouteStats()
	for _, row := range []string{"a", "h", "o", "z"} {
		if !get(t, tab, hbase.NewGet(row)).Empty() {
			t.Errorf("row %s of an empty table", row)
		}
	}
	after := s.client.RouteStats()
	if n := after.Scans + after.Gets - before.Scans - before.Gets; n != 0 || after.Routes < 4 {
		t.Errorf("%d reads of hbase:meta for warm regions, %d routes held", n, after.Routes)
	}
	tab.ForgetRoutes()
	get(t, tab, hbase.NewGet("h"))
	if again := s.client.RouteStats(); again.Scans == after.Scans {
		t.Error("forgotten routes were not read again")
	}
}

// deadlines: no call outlives its context, and a cancelled one says so.
func (s *suite) deadlines(t *testing.T) {
	tab := s.table(t, plain("f"))
	put(t, tab, hbase.NewPut("r").Set("f", "q", []byte("v")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tab.Get(ctx, hbase.NewGet("r")); !errors.Is(err, context.Canceled) {
		t.Errorf("get with a cancelled context: %v", err)
	}
	if err := tab.Put(ctx, hbase.NewPut("r").Set("f", "q", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("put with a cancelled context: %v", err)
	}
	if err := tab.Batch(ctx, []hbase.Op{hbase.NewGet("r")}).Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("batch with a cancelled context: %v", err)
	}
	if _, err := tab.Scan(ctx, nil).Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("scan with a cancelled context: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Microsecond)
	defer cancel()
	start := time.Now()
	_, err := tab.Get(short, hbase.NewGet("r"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get with a deadline too short: %v", err)
	}
	if took := time.Since(start); took > 100*time.Millisecond {
		t.Errorf("a deadline of 1 µs was kept after %v", took)
	}
	// The client still works.
	expect(t, "afterwards", get(t, tab, hbase.NewGet("r")), "f:q=v")
}
