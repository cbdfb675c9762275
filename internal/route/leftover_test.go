package route

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// A dead server's 3,000 regions are opened elsewhere one after the other, over
// two seconds, while 64 callers need them all, each caller one at a time: it
// costs hbase:meta full batches, not a read for each region.
func TestDeadServerSlowRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		const n = 3000
		f.fill(tbl, n, 1)
		if err := c.Warm(context.Background(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			mustLocate(t, c, key(i))
		}
		before := f.reads()
		f.kill(c, server(1))
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			defer close(done)
			time.Sleep(200 * time.Millisecond)
			order := rand.New(rand.NewPCG(1, 1)).Perm(n)
			at := make(map[string]int, n)
			for i, k := range order {
				at[string(key(k))] = i
			}
			for i := 0; i < n; i += 30 {
				f.change(func(l *meta.Location) bool {
					if k := at[string(l.Region.Start)]; k < i || k >= i+30 {
						return false
					}
					l.Server, l.SeqNum = server(2), l.SeqNum+5
					return true
				})
				time.Sleep(20 * time.Millisecond)
			}
		}()
		var wg sync.WaitGroup
		for w := range 64 {
			wg.Go(func() {
				for i := w; i < n; i += 64 {
					if r, err := c.Locate(context.Background(), tbl, key(i)); err != nil || r.Server().Name() != server(2) {
						t.Errorf("region %d: %v, %v", i, r, err)
						return
					}
				}
			})
		}
		wg.Wait()
		<-done
		reads := f.reads() - before
		t.Logf("%d reads of hbase:meta", reads)
		if reads > 600 {
			t.Errorf("%d reads of hbase:meta for %d regions", reads, n)
		}
		for _, l := range c.left {
			if len(l.line) > n {
				t.Errorf("%d routes are left over of %d", len(l.line), n)
			}
		}
	})
}
