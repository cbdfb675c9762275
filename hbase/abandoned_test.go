package hbase_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// within fails the test if f takes longer than anything here may.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s hangs", what)
	}
}

// TestClientClosesUnderScanners: who forgets to close a scanner, or closes the
// client first, does not keep Client.Close waiting, and is told why the rows
// end.
func TestClientClosesUnderScanners(t *testing.T) {
	t.Run("ordered", func(t *testing.T) { closesUnderScanners(t, true) })
	t.Run("unordered", func(t *testing.T) { closesUnderScanners(t, false) })
}

func closesUnderScanners(t *testing.T, ordered bool) {
	_, tab, _ := parallelTable(t)
	client := tab.Client()
	//holdfast:allow context the scans are not to end by themselves
	ctx := context.Background()
	scan := &hbase.Scan{Caching: 3}
	p := tab.ScanParallel(ctx, scan, hbase.ParallelOptions{Ordered: ordered})
	s := tab.Scan(ctx, &hbase.Scan{Caching: 3, Prefetch: hbase.PrefetchAlways})
	for range 10 {
		if _, err := p.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "Client.Close under a scan that nobody reads", func() { client.Close() })
	for name, next := range map[string]func() (*hbase.Result, error){"scan": s.Next, "parallel scan": p.Next} {
		within(t, "Next after Client.Close", func() {
			for n := 0; ; n++ {
				_, err := next()
				if err == nil && n < parallelRows {
					continue // what had come
				}
				if !errors.Is(err, hbase.ErrClosed) {
					t.Errorf("%s, ordered %v: %v, want ErrClosed", name, ordered, err)
				}
				return
			}
		})
	}
	if left := p.Remaining(); len(left) == 0 {
		t.Error("nothing remains of a scan that was cut short")
	}
	late := tab.ScanParallel(ctx, scan, hbase.ParallelOptions{Ordered: ordered})
	if _, err := late.Next(); !errors.Is(err, hbase.ErrClosed) {
		t.Errorf("parallel scan of a closed client: %v, want ErrClosed", err)
	}
	s.Close()
	p.Close()
	late.Close()
}
