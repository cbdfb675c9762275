package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// While one of three servers is out altogether, everything the client sends
// beyond one request per operation (retries, hedges, reads of meta, pings, dials)
// is at most a fifth of that.
func TestAnOutageDoesNotMultiplyTheLoad(t *testing.T) {
	for i, tc := range []struct {
		name string
		out  func(c *fakeCluster)
	}{
		{"dead", func(c *fakeCluster) { c.server(2).kill() }},
		{"frozen", func(c *fakeCluster) { c.server(2).freeze() }},
		{"busy", func(c *fakeCluster) {
			c.hook(func(q *query) *reply {
				if (q.method == "Get" || q.method == "Multi" && c.tableOf(q) == "t") && q.srv.name.Host == "rs2" {
					return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
				}
				return nil
			})
		}},
		{"answers nothing but pings", func(c *fakeCluster) {
			c.hook(func(q *query) *reply {
				if (q.method == "Get" || q.method == "Multi" && c.tableOf(q) == "t") && q.srv.name.Host == "rs2" {
					return &reply{swallow: true}
				}
				return nil
			})
		}},
		{"strange exceptions", func(c *fakeCluster) {
			c.hook(func(q *query) *reply {
				if (q.method == "Get" || q.method == "Multi" && c.tableOf(q) == "t") && q.srv.name.Host == "rs2" {
					return &reply{err: wire.NewRemoteError("com.example.Strange", "")}
				}
				return nil
			})
		}},
	} {
		if testing.Short() && i >= 2 {
			break // the others differ in what the server answers, not in who shares what
		}
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 4)
				table := c.table("t", "1", "2", "3", "4", "5", "6", "7", "8")
				c.mu.Lock()
				c.meta = c.servers["rs4:16020"]
				for i, r := range c.regions {
					r.on = c.servers[fmt.Sprintf("rs%d:16020", 1+i%3)]
				}
				c.mu.Unlock()
				core := c.open()
				rnd := rand.New(rand.NewPCG(1, 2))
				var wg sync.WaitGroup
				// 200 operations a second, whatever becomes of them.
				load := func(d time.Duration) (ops int) {
					for range int(d / (5 * time.Millisecond)) {
						row := fmt.Sprint(rnd.IntN(9), "x")
						many := ops%3 == 0
						wg.Go(func() {
							ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
							defer cancel()
							if many {
								core.Batch(ctx, table, []Item{getItem(row), getItem(row + "y")})
								return
							}
							_, _, _ = read(ctx, core, table, row, hedged)
						})
						time.Sleep(5 * time.Millisecond)
						ops++
					}
					return ops
				}
				load(3 * time.Second)
				wg.Wait()
				c.forgetLog()
				c.mu.Lock()
				clear(c.dials)
				c.mu.Unlock()
				tc.out(c)
				ops := load(20 * time.Second)
				wg.Wait()
				c.mu.Lock()
				sent, dials := len(c.log), 0
				for _, n := range c.dials {
					dials += n
				}
				c.mu.Unlock()
				c.server(2).thaw()
				t.Logf("%d operations, %d requests, %d dials, %+v", ops, sent, dials, core.ReadStats())
				if 5*(sent+dials) > 6*ops {
					t.Errorf("%d requests and %d dials for %d operations", sent, dials, ops)
				}
			})
		})
	}
}
