package hbase_test

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestResultsAreTheCallers: whoever writes into what he was given, or appends to
// it, disturbs neither the scan nor his other results; nor does it matter what
// becomes of the Scan's keys.
func TestResultsAreTheCallers(t *testing.T) {
	c, tab, rows := parallelTable(t)
	rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Scan", Table: "p"}, Every: 3, Action: minihbase.CloseAfter})
	backwards := slices.Clone(rows)
	slices.Reverse(backwards)
	spoil := func(b []byte) {
		for i := range b {
			b[i] ^= 0x55
		}
		_ = append(b, "spoilt"...)
	}
	next := func(scan hbase.Scan, ordered, parallel bool) (func() (*hbase.Result, error), func() []hbase.RowRange) {
		scan.Start, scan.Stop = []byte("r0000"), []byte("r2000")
		if scan.Reversed {
			scan.Start, scan.Stop, scan.ExcludeStart, scan.IncludeStop = scan.Stop, scan.Start, true, true
		}
		start, stop := scan.Start, scan.Stop
		defer func() { clear(start); clear(stop) }()
		if parallel {
			p := tab.ScanParallel(t.Context(), &scan, hbase.ParallelOptions{Workers: 3, Ordered: ordered})
			t.Cleanup(func() { p.Close() })
			return p.Next, p.Remaining
		}
		s := tab.Scan(t.Context(), &scan)
		t.Cleanup(func() { s.Close() })
		return s.Next, nil
	}
	for _, scan := range []hbase.Scan{
		{Caching: 100}, {Caching: 100, Reversed: true}, {Caching: 100, AllowPartial: true, MaxResultSize: 200}, {Caching: 100, Batch: 1},
		{Caching: 100, Prefetch: hbase.PrefetchAlways}, {Caching: 100, ReuseResults: true},
	} {
		for _, mode := range []string{"plain", "ordered", "parallel"} {
			t.Run(fmt.Sprintf("%s reversed %v batch %d partial %v prefetch %v reuse %v", mode, scan.Reversed, scan.Batch, scan.AllowPartial, scan.Prefetch, scan.ReuseResults), func(t *testing.T) {
				get, remaining := next(scan, mode == "ordered", mode != "plain")
				var got []string
				for cells := 0; cells < 2*len(rows); {
					r, err := get()
					if err != nil {
						t.Fatalf("after %d cells: %v", cells, err)
					}
					cells += len(r.Cells)
					for _, c := range r.Cells {
						if string(c.Row) != string(r.Row) || string(c.Family) != "f" || string(c.Qualifier) == "a" && string(c.Value) != string(r.Row) {
							t.Fatalf("row %q has %v", r.Row, c)
						}
					}
					if n := len(got); n == 0 || got[n-1] != string(r.Row) {
						got = append(got, string(r.Row))
					}
					for i := range r.Cells {
						c := &r.Cells[i]
						spoil(c.Value)
						spoil(c.Qualifier)
						spoil(c.Family)
						if i > 0 {
							spoil(c.Row)
						}
					}
					spoil(r.Row)
					if remaining != nil && cells == 300 {
						for _, left := range remaining() {
							for _, key := range [][]byte{left.Start, left.Stop} {
								if len(key) != 5 || key[0] != 'r' {
									t.Errorf("remaining: %s", left)
								}
							}
						}
					}
				}
				if r, err := get(); err != io.EOF {
					t.Errorf("after the last row: %v, %v", r, err)
				}
				want := rows
				if scan.Reversed && mode != "parallel" {
					want = backwards
				} else if mode == "parallel" {
					slices.Sort(got)
					got = slices.Compact(got)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%d rows, want %d", len(got), len(want))
				}
			})
		}
	}
}
