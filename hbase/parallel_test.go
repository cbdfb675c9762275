package hbase_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

const parallelRows = 2000

// parallelTable is a table of 11 regions; its rows are r0000 to r1999.
func parallelTable(t *testing.T) (*minihbase.Cluster, *hbase.Table, []string) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	c := startCluster(t)
	var splits [][]byte
	for i := 1; i <= 10; i++ {
		splits = append(splits, fmt.Appendf(nil, "r%04d", i*180))
	}
	if err := c.CreateTable(t.Context(), "p", []string{"f"}, splits...); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("p")
	if err != nil {
		t.Fatal(err)
	}
	var ops []hbase.Op
	var rows []string
	for i := range parallelRows {
		row := fmt.Sprintf("r%04d", i)
		rows = append(rows, row)
		ops = append(ops, hbase.NewPut(row).Set("f", "a", []byte(row)).Set("f", "b", []byte("x")))
	}
	if err := tab.Batch(t.Context(), ops).Err(); err != nil {
		t.Fatal(err)
	}
	return c, tab, rows
}

func collect(t *testing.T, p *hbase.ParallelScanner) []string {
	t.Helper()
	var got []string
	for r, err := range p.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Cells) != 2 {
			t.Fatalf("%s: %d cells, want 2", r.Row, len(r.Cells))
		}
		got = append(got, string(r.Row))
	}
	return got
}

func TestScanParallel(t *testing.T) {
	_, tab, rows := parallelTable(t)
	reversed := slices.Clone(rows)
	slices.Reverse(reversed)
	for _, tt := range []struct {
		name string
		scan *hbase.Scan
		want []string
	}{
		{"all", nil, rows},
		{"range", hbase.NewScanRange("r0100", "r0900"), rows[100:900]},
		{"bounds the other way round", &hbase.Scan{Start: []byte("r0100"), Stop: []byte("r0900"), ExcludeStart: true, IncludeStop: true}, rows[101:901]},
		{"one row at a border", &hbase.Scan{Start: []byte("r0180"), Stop: []byte("r0180"), IncludeStop: true}, rows[180:181]},
		{"ends with a border, included", &hbase.Scan{Start: []byte("r0100"), Stop: []byte("r0360"), IncludeStop: true}, rows[100:361]},
		{"nothing", hbase.NewScanRange("s", "t"), nil},
		{"small answers", &hbase.Scan{Caching: 7}, rows},
		{"reversed", hbase.NewScan().Reverse(), reversed},
		{"reversed range", hbase.NewScanRange("r0100", "r0900").Reverse(), reversed[parallelRows-900 : parallelRows-100]},
		{"reversed from a border", &hbase.Scan{Reversed: true, Start: []byte("r0360"), ExcludeStart: true, Stop: []byte("r0180"), IncludeStop: true}, reversed[parallelRows-360 : parallelRows-180]},
	} {
		for _, o := range []hbase.ParallelOptions{{}, {Workers: 1}, {Workers: 3, Ordered: true}, {Workers: 64, Ordered: true}} {
			p := tab.ScanParallel(t.Context(), tt.scan, o)
			got := collect(t, p)
			if !o.Ordered {
				slices.Sort(got)
				if tt.scan != nil && tt.scan.Reversed {
					slices.Reverse(got)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s %+v: %d rows, want %d", tt.name, o, len(got), len(tt.want))
			}
			if left := p.Remaining(); len(left) != 0 {
				t.Errorf("%s %+v: %v remains", tt.name, o, left)
			}
		}
	}
}

func TestScanParallelLimit(t *testing.T) {
	_, tab, rows := parallelTable(t)
	got := collect(t, tab.ScanParallel(t.Context(), &hbase.Scan{Limit: 500}, hbase.ParallelOptions{Ordered: true}))
	if !slices.Equal(got, rows[:500]) {
		t.Errorf("ordered: %d rows, want the first 500", len(got))
	}
	got = collect(t, tab.ScanParallel(t.Context(), &hbase.Scan{Limit: 500}, hbase.ParallelOptions{}))
	slices.Sort(got)
	if got = slices.Compact(got); len(got) != 500 {
		t.Errorf("unordered: %d different rows, want 500", len(got))
	}
}

// TestScanParallelResumes stops scans at random places and lets another
// scanner do the rest: every row comes once.
func TestScanParallelResumes(t *testing.T) {
	_, tab, rows := parallelTable(t)
	for _, reversed := range []bool{false, true} {
		for _, ordered := range []bool{false, true} {
			scan := hbase.NewScan()
			scan.Caching = 13
			if reversed {
				scan.Reverse()
			}
			var got []string
			o := hbase.ParallelOptions{Workers: 4, Ordered: ordered}
			for stops := 0; ; stops++ {
				p := tab.ScanParallel(t.Context(), scan, o)
				stop := 1 + rand.IntN(300)
				for r, err := range p.Rows() {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, string(r.Row))
					if stop--; stop == 0 {
						break
					}
				}
				if o.Ranges = p.Remaining(); len(o.Ranges) == 0 {
					break
				}
				if stops > parallelRows {
					t.Fatal("no end")
				}
			}
			if ordered && reversed {
				slices.Reverse(got)
			}
			if ordered && !slices.IsSorted(got) {
				t.Errorf("reversed %v: out of order", reversed)
			}
			slices.Sort(got)
			if !slices.Equal(got, rows) {
				t.Errorf("ordered %v, reversed %v: %d rows, want each of %d once", ordered, reversed, len(got), len(rows))
			}
		}
	}
}

// TestScanParallelOverMoves moves, splits and merges under scans.
func TestScanParallelOverMoves(t *testing.T) {
	c, tab, rows := parallelTable(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	adm := tab.Client().Admin()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			regions, err := adm.Regions(ctx, "p")
			if err != nil {
				t.Error(err)
				return
			}
			r := regions[rand.IntN(len(regions))]
			switch {
			case i%8 == 3:
				err = adm.SplitRegion(ctx, r.Region.EncodedName(), fmt.Appendf(nil, "%s5", r.Region.Start))
			case i%8 == 7 && len(regions) > 2:
				n := rand.IntN(len(regions) - 1)
				err = adm.MergeRegions(ctx, []string{regions[n].Region.EncodedName(), regions[n+1].Region.EncodedName()}, true)
			default:
				err = c.MoveRegion(ctx, r.Region.EncodedName(), rand.IntN(3))
			}
			_ = err // a region may have changed meanwhile; what counts is the scans
		}
	}()
	defer func() { close(stop); <-done }()
	for i := range 20 {
		o := hbase.ParallelOptions{Workers: 5, Ordered: i%2 == 0}
		got := collect(t, tab.ScanParallel(ctx, &hbase.Scan{Caching: 29}, o))
		if !o.Ordered {
			slices.Sort(got)
		}
		if !slices.Equal(got, rows) {
			t.Fatalf("%d, %+v: %d rows, want %d in order", i, o, len(got), len(rows))
		}
	}
}

func TestScanParallelErrors(t *testing.T) {
	_, tab, _ := parallelTable(t)
	for name, p := range map[string]*hbase.ParallelScanner{
		"workers": tab.ScanParallel(t.Context(), nil, hbase.ParallelOptions{Workers: 1000}),
		"cursor":  tab.ScanParallel(t.Context(), &hbase.Scan{NeedCursor: true}, hbase.ParallelOptions{}),
		"batch":   tab.ScanParallel(t.Context(), &hbase.Scan{Batch: -1}, hbase.ParallelOptions{}),
	} {
		if _, err := p.Next(); !errors.Is(err, hbase.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
	missing, err := tab.Client().Table("missing")
	if err != nil {
		t.Fatal(err)
	}
	for _, ordered := range []bool{false, true} {
		p := missing.ScanParallel(t.Context(), nil, hbase.ParallelOptions{Ordered: ordered})
		if _, err := p.Next(); !errors.Is(err, hbase.ErrTableNotFound) {
			t.Errorf("missing table: %v", err)
		}
		if left := p.Remaining(); len(left) != 1 {
			t.Errorf("remains %v, want the whole range", left)
		}
		family := tab.ScanParallel(t.Context(), hbase.NewScan().Family("nope"), hbase.ParallelOptions{Ordered: ordered})
		_, err := family.Next()
		if !errors.Is(err, hbase.ErrNoSuchFamily) {
			t.Errorf("missing family: %v", err)
		}
		if _, again := family.Next(); again != err {
			t.Errorf("the second error is another: %v", again)
		}
		closed := tab.ScanParallel(t.Context(), nil, hbase.ParallelOptions{Ordered: ordered})
		if _, err := closed.Next(); err != nil {
			t.Fatal(err)
		}
		closed.Close()
		for err = nil; err == nil; {
			_, err = closed.Next()
		}
		if !errors.Is(err, hbase.ErrScannerClosed) && err != io.EOF {
			t.Errorf("after Close: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := tab.ScanParallel(ctx, &hbase.Scan{Caching: 1}, hbase.ParallelOptions{Ordered: ordered})
		if _, err := cancelled.Next(); err != nil {
			t.Fatal(err)
		}
		cancel()
		for err = nil; err == nil; {
			_, err = cancelled.Next()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("after cancel: %v", err)
		}
	}
}

// TestParallelLimitCountsRows: also when rows come in parts, of which the last
// does not say that it is one.
func TestParallelLimitCountsRows(t *testing.T) {
	_, tab, rows := parallelTable(t)
	for _, s := range []hbase.Scan{{Batch: 1}, {Batch: 2}, {Batch: 3}, {AllowPartial: true, MaxResultSize: 60}, {Batch: 1, Reversed: true}} {
		for _, ordered := range []bool{false, true} {
			t.Run(fmt.Sprintf("batch %d, partial %v, reversed %v, ordered %v", s.Batch, s.AllowPartial, s.Reversed, ordered), func(t *testing.T) {
				s.Limit = 7
				cells := map[string]int{}
				p := tab.ScanParallel(t.Context(), &s, hbase.ParallelOptions{Ordered: ordered, Workers: 4})
				for r, err := range p.Rows() {
					if err != nil {
						t.Fatal(err)
					}
					cells[string(r.Row)] += len(r.Cells)
				}
				if len(cells) != s.Limit {
					t.Errorf("%d rows, want %d: %v", len(cells), s.Limit, cells)
				}
				for row, n := range cells {
					if n != 2 || ordered && !s.Reversed && !slices.Contains(rows[:s.Limit], row) {
						t.Errorf("row %s with %d cells, want one of the first %d with 2", row, n, s.Limit)
					}
				}
				if rest := p.Remaining(); len(rest) != 0 {
					t.Errorf("a scan that has reached its limit has %v left", rest)
				}
			})
		}
	}
}
