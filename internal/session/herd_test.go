package session

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// herd is callers of a table, each of which asks for a row of its own.
type herd struct {
	t      *testing.T
	c      *fakeCluster
	core   *Core
	table  meta.TableName
	n      int // regions
	failed atomic.Int64
	first  atomic.Pointer[error]
	wg     sync.WaitGroup
}

// newHerd makes a cluster whose hbase:meta takes a moment to answer: if it took
// none, there would be nothing to wait for together.
func newHerd(t *testing.T, servers, regions int) *herd {
	h := &herd{t: t, c: newFake(t, servers), n: regions}
	other := h.c.start(meta.ServerName{Host: "meta", Port: 16020, StartCode: 100})
	h.c.mu.Lock()
	h.c.meta = other
	h.c.mu.Unlock()
	var cuts []string
	for i := 1; i < regions; i++ {
		cuts = append(cuts, herdRow(i))
	}
	h.table = h.c.table("t", cuts...)
	h.c.hook(func(q *query) *reply {
		if h.c.tableOf(q) == "hbase:meta" {
			return &reply{apply: true, delay: 2 * time.Millisecond}
		}
		return nil
	})
	h.core = h.c.open()
	return h
}

func herdRow(region int) string { return fmt.Sprintf("%06d", region) }

// call lets every caller call once.
func (h *herd) call(callers int) {
	for i := range callers {
		row := herdRow(i%h.n) + fmt.Sprint("-", i)
		h.wg.Go(func() {
			if _, _, err := get(h.t.Context(), h.core, h.table, row); err != nil {
				h.failed.Add(1)
				h.first.CompareAndSwap(nil, &err)
			}
		})
	}
}

// done waits for them.
func (h *herd) done() {
	h.wg.Wait()
	if n := h.failed.Load(); n > 0 {
		h.t.Errorf("%d of the herd failed: %v", n, *h.first.Load())
	}
}

// all calls f with every region, under the lock.
func (h *herd) all(f func(i int, r *fakeRegion)) {
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for i, r := range h.c.regions {
		f(i, r)
	}
}

// TestHerds: herdSize callers in whatever happens to many regions at once,
// with the numbers that must not be exceeded.
func TestHerds(t *testing.T) {
	for _, tc := range []struct {
		name             string
		servers, regions int
		cold             bool
		happen           func(h *herd)
		// at most
		reads int
		took  time.Duration
		// requests to the servers beyond the callers' own
		extra int
	}{
		{name: "cold start of one region", servers: 3, regions: 1, cold: true, reads: 1},
		{name: "cold start of a thousand regions", servers: 10, regions: 1000, cold: true, reads: 30},
		{
			// 100 regions on the dead server, read in one batch a round.
			name: "dead server", servers: 10, regions: 1000,
			happen: func(h *herd) {
				dead := h.c.server(4)
				dead.kill()
				time.AfterFunc(3*time.Second, func() {
					h.all(func(i int, r *fakeRegion) {
						if r.on == dead {
							r.on = h.c.servers["rs5:16020"]
							r.seq += 10
						}
					})
				})
			},
			reads: 100, took: 4 * time.Second, extra: 1000,
		},
		{
			// One region with everybody at its gate: 4,096 wait, the others come
			// back.
			name: "dead server of one region", servers: 2, regions: 1,
			happen: func(h *herd) {
				dead := h.c.server(1)
				dead.kill()
				time.AfterFunc(3*time.Second, func() {
					h.all(func(i int, r *fakeRegion) { r.on, r.seq = h.c.servers["rs2:16020"], r.seq+10 })
				})
			},
			reads: 100, took: 6 * time.Second, extra: 2 * herdSize,
		},
		{
			name: "split storm", servers: 10, regions: 300,
			happen: func(h *herd) {
				var daughters []*fakeRegion
				h.all(func(i int, r *fakeRegion) {
					r.Split = true
					mid := []byte(herdRow(i) + "-5")
					for half := range 2 {
						d := &fakeRegion{Region: r.Region, on: r.on, seq: 3, count: map[string]int{}}
						d.ID, d.Split = r.ID+1, false
						if half == 0 {
							d.End = mid
						} else {
							d.Start = mid
						}
						d.name = d.Name()
						daughters = append(daughters, d)
					}
				})
				h.c.mu.Lock()
				for _, d := range daughters {
					h.c.regions = append(h.c.regions, d)
					h.c.byName[string(d.name)] = d
				}
				h.c.sorted = nil
				h.c.mu.Unlock()
			},
			reads: 60, took: time.Second, extra: herdSize,
		},
		{
			// As the move of a whole table to another group of servers.
			name: "whole table moved, with hints", servers: 10, regions: 1000,
			happen: func(h *herd) {
				var regions []*fakeRegion
				h.all(func(_ int, r *fakeRegion) { regions = append(regions, r) })
				for i, r := range regions {
					h.c.move(r, h.c.server(6+i%5), true)
				}
			},
			reads: 2, took: 100 * time.Millisecond, extra: herdSize,
		},
		{
			name: "whole table moved, without a word", servers: 10, regions: 1000,
			happen: func(h *herd) {
				h.all(func(i int, r *fakeRegion) { r.on, r.seq = h.c.servers[fmt.Sprintf("rs%d:16020", 1+(i+3)%10)], r.seq+10 })
			},
			reads: 12, took: time.Second, extra: herdSize,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHerd(t, tc.servers, tc.regions)
				if !tc.cold {
					h.call(tc.regions)
					h.done()
					synctest.Wait()
				}
				before := runtime.NumGoroutine()
				h.c.forgetLog()
				if tc.happen != nil {
					tc.happen(h)
				}
				began := time.Now()
				h.call(herdSize)
				time.Sleep(time.Second / 2) // whoever waits, waits now
				waiting := runtime.NumGoroutine() - before
				h.done()
				took := time.Since(began)
				if tc.took == 0 {
					tc.took = 500 * time.Millisecond
				}
				if took > max(tc.took, time.Second/2) {
					t.Errorf("the last one was served after %v, want %v at most", took, tc.took)
				}
				reads, requests := h.c.metaReads(), h.c.calls("Get", "t")
				if reads > tc.reads {
					t.Errorf("%d reads of meta, want %d at most", reads, tc.reads)
				}
				if requests > herdSize+tc.extra {
					t.Errorf("%d requests for %d calls, want %d at most", requests, herdSize, herdSize+tc.extra)
				}
				// A caller is one goroutine, and all the rest some dozens.
				if waiting > herdSize+100 {
					t.Errorf("%d goroutines more than before, of which %d are callers", waiting, herdSize)
				}
				synctest.Wait()
				if n := runtime.NumGoroutine(); n > before+100 {
					t.Errorf("%d goroutines were left, %d before", n, before)
				}
				t.Logf("%v, %d reads of meta, %d requests, %d goroutines at most", took.Round(time.Millisecond), reads, requests, waiting)
			})
		})
	}
}
