package hbase_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// rowScanner is what both kinds of scanner are.
type rowScanner interface {
	Next() (*hbase.Result, error)
	Close() error
}

// reusing gives each kind of scan that uses its memory again.
func reusing(tab *hbase.Table) map[string]func(context.Context, hbase.Scan) rowScanner {
	parallel := func(ordered bool) func(context.Context, hbase.Scan) rowScanner {
		return func(ctx context.Context, s hbase.Scan) rowScanner {
			s.ReuseResults = true
			return tab.ScanParallel(ctx, &s, hbase.ParallelOptions{Workers: 3, Ordered: ordered})
		}
	}
	return map[string]func(context.Context, hbase.Scan) rowScanner{
		"plain": func(ctx context.Context, s hbase.Scan) rowScanner {
			s.ReuseResults = true
			return tab.Scan(ctx, &s)
		},
		"ordered": parallel(true), "parallel": parallel(false),
	}
}

// settled waits until nothing is lent any more: what is on its way when a scan
// is given up comes back a little later.
func settled(t *testing.T, what string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); rpc.Lent() != 0; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d buffers are still lent", what, rpc.Lent())
		}
	}
}

// TestReusedResults: rows whose memory is used again are the rows of the table,
// also when answers are lost, and a copy of one stays what it was.
func TestReusedResults(t *testing.T) {
	c, tab, rows := parallelTable(t)
	rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Scan", Table: "p"}, Every: 5, Action: minihbase.CloseAfter})
	for name, scan := range reusing(tab) {
		// Answers of a few rows and of a whole region; a row in one part and in
		// two; prefetched and not.
		for _, s := range []hbase.Scan{
			{Caching: 7}, {}, {MaxResultSize: 999, Prefetch: hbase.PrefetchAlways}, {Caching: 7, Prefetch: hbase.PrefetchNever}, {Batch: 1, Caching: 7},
		} {
			what := fmt.Sprintf("%s caching %d size %d batch %d", name, s.Caching, s.MaxResultSize, s.Batch)
			var got []string
			var copies []*hbase.Result
			sc := scan(t.Context(), s)
			for {
				r, err := sc.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if want := 2 - min(s.Batch, 1); len(r.Cells) != want {
					t.Fatalf("%s: %v, want %d cells", what, r, want)
				}
				if r.Has("f", "a") {
					got = append(got, string(r.Row))
					copies = append(copies, r.Clone())
				}
			}
			sc.Close()
			settled(t, what)
			for i, r := range copies {
				if v := r.Value("f", "a"); string(r.Row) != got[i] || string(v) != got[i] {
					t.Fatalf("%s: the copy of row %s is %q with %q", what, got[i], r.Row, v)
				}
			}
			if name == "parallel" {
				slices.Sort(got)
			}
			if !slices.Equal(got, rows) {
				t.Fatalf("%s: %d rows, want %d", what, len(got), len(rows))
			}
		}
	}
}

// TestReusedResultsAreOverwritten: what is kept without a copy is another row,
// as Scan.ReuseResults says.
func TestReusedResultsAreOverwritten(t *testing.T) {
	_, tab, rows := parallelTable(t)
	i, overwritten := 0, 0
	var kept *hbase.Result
	for r, err := range tab.Scan(t.Context(), &hbase.Scan{ReuseResults: true}).Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && string(kept.Row) != rows[i-1] {
			overwritten++
		}
		kept = r
		i++
	}
	if overwritten == 0 {
		t.Error("each result stays as it was: no memory is used again")
	}
}

// TestReuseGivesBack: wherever a scan is given up, the memory of its answers is
// free again.
func TestReuseGivesBack(t *testing.T) {
	_, tab, rows := parallelTable(t)
	for name, scan := range reusing(tab) {
		for _, after := range []int{1, 50, 51, 700, len(rows) - 1} {
			for _, how := range []string{"Close", "another goroutine's Close", "context", "loop"} {
				what := fmt.Sprintf("%s, %s after %d rows", name, how, after)
				ctx, cancel := context.WithCancel(t.Context())
				sc := scan(ctx, hbase.Scan{Caching: 50, Prefetch: hbase.PrefetchAlways})
				next := func() error {
					_, err := sc.Next()
					return err
				}
				if how == "loop" {
					n := 0
					each := func(_ *hbase.Result, err error) bool {
						if err != nil {
							t.Errorf("%s: %v", what, err)
						}
						n++
						return n < after
					}
					switch sc := sc.(type) {
					case *hbase.Scanner:
						sc.Rows()(each)
					case *hbase.ParallelScanner:
						sc.Rows()(each)
					}
				} else {
					for range after {
						if err := next(); err != nil {
							t.Fatalf("%s: %v", what, err)
						}
					}
				}
				switch how {
				case "Close":
					sc.Close()
				case "another goroutine's Close":
					done := make(chan struct{})
					go func() {
						defer close(done)
						sc.Close()
					}()
					for next() == nil {
					}
					<-done
				case "context":
					cancel()
				}
				// The answer that is being read goes with the next call; only
				// then can nobody look at its rows any more.
				for next() == nil {
				}
				sc.Close()
				cancel()
				settled(t, what)
			}
		}
	}
}
