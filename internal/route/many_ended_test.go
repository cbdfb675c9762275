package route

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Time may be up at the very moment at which a route that was found becomes
// invalid; the row then has an error, too.
func TestLocateManyEndsWhileServersDie(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 4, 2)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			// A new start code ends the old incarnation, and every route to it.
			n := server(1 + i%2)
			n.StartCode += uint64(i)
			c.cfg.Servers.Get(n)
			f.change(func(l *meta.Location) bool {
				if l.Server.Host == n.Host {
					l.Server = n
				}
				return true
			})
		}
	})
	rows := [][]byte{key(1), append(key(1), 'x'), key(3)}
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			for begin := time.Now(); time.Since(begin) < 300*time.Millisecond; {
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(time.Millisecond))
				routes, errs := c.LocateMany(ctx, tbl, rows)
				cancel()
				for i := range rows {
					if (routes[i] == nil) == (errs[i] == nil) {
						t.Errorf("row %d: %v, %v", i, routes[i], errs[i])
					}
				}
			}
		})
	}
	callers.Wait()
	close(done)
	wg.Wait()
}
