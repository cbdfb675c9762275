package route

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// The server that holds hbase:meta dies with regions of a table. Reads of meta
// need meta's own route, so its repair must never be part of such a read: the
// two would wait for one another until the read's time is up.
func TestMetaDiesWithRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			c, f := newCache(t, Config{})
			f.fill(tbl, 100, 2)
			var mu sync.Mutex
			holder := server(1)
			f.locator = func() (meta.ServerName, error) {
				mu.Lock()
				defer mu.Unlock()
				return holder, nil
			}
			f.before = func(_ *MetaScan, rows [][]byte) error {
				if slices.ContainsFunc(rows, func(r []byte) bool { return string(r) == meta.MetaRegionName }) {
					t.Error("meta is asked where meta is")
				}
				if c.Lookup(meta.MetaTable, nil) != nil {
					return nil
				}
				ctx, cancel := context.WithTimeout(context.Background(), c.cfg.ReadTimeout)
				defer cancel()
				_, err := c.Locate(ctx, meta.MetaTable, nil)
				return err
			}
			for i := range 100 {
				mustLocate(t, c, key(i))
			}
			f.kill(c, server(1))
			time.AfterFunc(400*time.Millisecond, func() {
				mu.Lock()
				holder = server(2)
				mu.Unlock()
				f.change(func(l *meta.Location) bool {
					l.Server, l.SeqNum = server(2), 20
					return true
				})
			})
			began := time.Now()
			var wg sync.WaitGroup
			for i := range 100 {
				wg.Go(func() {
					// They come one after another, so that repairs are due at
					// different times.
					time.Sleep(time.Duration(i) * 7 * time.Millisecond)
					if r := c.Lookup(tbl, key(i)); r != nil && time.Since(began) < 400*time.Millisecond {
						c.Rejected(r)
					}
					mustLocate(t, c, key(i))
				})
			}
			wg.Wait()
			if d := time.Since(began); d > 1500*time.Millisecond {
				t.Fatalf("took %v", d)
			}
		}
	})
}
