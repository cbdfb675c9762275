package route

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

func TestMain(m *testing.M) {
	// The same each time; make random takes new ones.
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func TestLocateReadsOnceAndHitsAfterwards(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	ctx := context.Background()
	r, err := c.Locate(ctx, tbl, key(4))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.Start(), key(4)) || !bytes.Equal(r.End(), key(5)) || r.Server().Name() != server(2) || r.OpenSeq() != 10 {
		t.Errorf("route %v", r)
	}
	want := regionOf(tbl, 4, 10)
	if string(r.Name()) != string(want.Name()) || r.Encoded() != want.EncodedName() {
		t.Errorf("name %q, want %q", r.Name(), want.Name())
	}
	if got := c.Lookup(tbl, append(key(4), 'x')); got != r {
		t.Errorf("lookup inside the region gives %v", got)
	}
	if got := c.Lookup(tbl, key(5)); got != nil {
		t.Errorf("lookup of the region's end gives %v", got)
	}
	if got := c.LookupBefore(tbl, key(5)); got != r {
		t.Errorf("lookup before the region's end gives %v", got)
	}
	if f.reads() != 1 {
		t.Errorf("%d reads of meta, want 1", f.reads())
	}
}

func TestLocateBefore(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	ctx := context.Background()
	for _, r := range []struct {
		row  []byte
		want int
	}{{nil, 9}, {key(9), 8}, {append(key(9), 0), 9}, {key(1), 0}, {[]byte("a"), 0}, {[]byte("zzz"), 9}} {
		got, err := c.LocateBefore(ctx, tbl, r.row)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Start(), key(r.want)) {
			t.Errorf("before %q: region %v, want %d", r.row, got, r.want)
		}
		if again := c.LookupBefore(tbl, r.row); again != got {
			t.Errorf("lookup before %q: %v, want %v", r.row, again, got)
		}
	}
}

func TestTableNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(meta.TableName{Namespace: "default", Qualifier: "s"}, 3, 1)
		f.fill(meta.TableName{Namespace: "default", Qualifier: "tt"}, 3, 1)
		ctx := context.Background()
		for _, before := range []bool{false, true} {
			var err error
			if before {
				_, err = c.LocateBefore(ctx, tbl, nil)
			} else {
				_, err = c.Locate(ctx, tbl, []byte("x"))
			}
			if !errors.Is(err, ErrTableNotFound) {
				t.Fatalf("before %t: %v", before, err)
			}
			if final, _ := locateError(t, err).LocateFailed(); !final {
				t.Error("not final")
			}
		}
		if f.reads() != 1 {
			t.Errorf("%d reads of meta: the second answer comes from the negative cache", f.reads())
		}
		// Hits do not extend it.
		for range 4 {
			time.Sleep(260 * time.Millisecond)
			_, _ = c.Locate(ctx, tbl, []byte("y"))
		}
		if f.reads() != 2 {
			t.Errorf("%d reads of meta, want another after a second", f.reads())
		}
		// Creating the table through this client evicts it at once.
		f.fill(tbl, 3, 1)
		if _, err := c.Locate(ctx, tbl, []byte("x")); !errors.Is(err, ErrTableNotFound) {
			t.Errorf("within the second: %v", err)
		}
		c.InvalidateTable(tbl)
		if _, err := c.Locate(ctx, tbl, []byte("x")); err != nil {
			t.Error(err)
		}
	})
}

// 10,000 callers of one region, cold: one read, whether they ask for one row
// or for many.
func TestHerdOfOneRegion(t *testing.T) {
	for _, rows := range []int{1, 10000} {
		t.Run(fmt.Sprint(rows, " rows"), func(t *testing.T) {
			c, f := newCache(t, Config{})
			f.fill(tbl, 100, 5)
			f.setDelay(20 * time.Millisecond)
			herd(t, c, 10000, func(i int) []byte { return fmt.Appendf(key(50), "%05d", i%rows) })
			if n := f.reads(); n > 2 {
				t.Errorf("%d reads of meta, want at most 2", n)
			} else {
				t.Logf("%d reads of meta", n)
			}
		})
	}
}

func herd(t *testing.T, c *Cache, n int, row func(int) []byte) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			k := row(i)
			r, err := c.Locate(context.Background(), tbl, k)
			if err != nil {
				t.Errorf("row %q: %v", k, err)
			} else if !r.Contains(k) {
				t.Errorf("row %q: route %v", k, r)
			}
		})
	}
	wg.Wait()
}

// A cold start over a whole table costs tens of reads, not one per region.
func TestHerdOfManyRegions(t *testing.T) {
	for _, callers := range []int{4, 64, 10000} {
		t.Run(fmt.Sprint(callers, " callers"), func(t *testing.T) {
			c, f := newCache(t, Config{})
			f.fill(tbl, 1000, 5)
			f.setDelay(time.Millisecond)
			per := 10000 / callers
			var wg sync.WaitGroup
			for w := range callers {
				wg.Go(func() {
					for j := range per {
						k := append(key((w*7919+j*104729)%1000), 'x')
						if _, err := c.Locate(context.Background(), tbl, k); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d reads, %d rows", f.reads(), f.scanned.Load())
			if n := f.reads(); n > 60 {
				t.Errorf("%d reads of meta for 1000 regions", n)
			}
			if n := f.most.Load(); n > 8 {
				t.Errorf("%d reads at one time, want at most 8", n)
			}
		})
	}
}
