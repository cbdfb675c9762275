package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Whatever was out: within a second of the moment the cluster serves again,
// every caller is served, be it alone, in a batch or new.
func TestServedSoonAfterTheClusterServes(t *testing.T) {
	restart := func(c *fakeCluster, n int) {
		old := c.server(n)
		next := c.start(meta.ServerName{Host: old.name.Host, Port: old.name.Port, StartCode: old.name.StartCode + 100})
		c.mu.Lock()
		if c.meta == old {
			c.meta = next
		}
		regions := c.regions
		c.mu.Unlock()
		for _, r := range regions {
			if r.on == old {
				c.move(r, next, false)
			}
		}
	}
	handOver := func(c *fakeCluster, n, to int) {
		old := c.server(n)
		c.mu.Lock()
		if c.meta == old {
			c.meta = c.servers[fmt.Sprintf("rs%d:16020", to)]
		}
		regions := c.regions
		c.mu.Unlock()
		for _, r := range regions {
			if r.on == old {
				c.move(r, c.server(to), false)
			}
		}
	}
	for _, tc := range []struct {
		name      string
		out, back func(c *fakeCluster)
	}{
		{"one server dies, others take over", func(c *fakeCluster) { c.server(2).kill() }, func(c *fakeCluster) { handOver(c, 2, 3) }},
		{"the server of meta dies, another takes over", func(c *fakeCluster) { c.server(1).kill() }, func(c *fakeCluster) { handOver(c, 1, 3) }},
		{"one server dies and comes back", func(c *fakeCluster) { c.server(2).kill() }, func(c *fakeCluster) { restart(c, 2) }},
		{"the server of meta dies and comes back", func(c *fakeCluster) { c.server(1).kill() }, func(c *fakeCluster) { restart(c, 1) }},
		{"one server refuses connections for a while", func(c *fakeCluster) { c.server(2).kill() }, func(c *fakeCluster) { c.server(2).revive() }},
		{"all die and come back", func(c *fakeCluster) {
			for n := 1; n <= 3; n++ {
				c.server(n).kill()
			}
		}, func(c *fakeCluster) {
			for n := 1; n <= 3; n++ {
				restart(c, n)
			}
		}},
		{"one server freezes, others take over", func(c *fakeCluster) { c.server(2).freeze() }, func(c *fakeCluster) { handOver(c, 2, 3) }},
		{"the server of meta freezes, another takes over", func(c *fakeCluster) { c.server(1).freeze() }, func(c *fakeCluster) { handOver(c, 1, 3) }},
		{"the server of meta freezes and goes on", func(c *fakeCluster) { c.server(1).freeze() }, func(c *fakeCluster) { c.server(1).thaw() }},
		{"all freeze and go on", func(c *fakeCluster) {
			for n := 1; n <= 3; n++ {
				c.server(n).freeze()
			}
		}, func(c *fakeCluster) {
			for n := 1; n <= 3; n++ {
				c.server(n).thaw()
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var worst time.Duration
			seeds := uint64(12)
			if testing.Short() {
				seeds = 3
			}
			for seed := range seeds {
				synctest.Test(t, func(t *testing.T) {
					rnd := rand.New(rand.NewPCG(seed, 7))
					var mu sync.Mutex
					late := recovery(t, 3*time.Second+time.Duration(rnd.Int64N(int64(40*time.Second))), func() float64 {
						mu.Lock()
						defer mu.Unlock()
						return rnd.Float64()
					}, tc.out, tc.back)
					worst = max(worst, late)
				})
			}
			t.Logf("the last was served %v after", worst)
			if worst > time.Second {
				t.Errorf("the last caller was served %v after the cluster", worst)
			}
		})
	}
}

// recovery lets callers of all regions run into an outage and gives how long
// after its end the last of them was served.
func recovery(t *testing.T, outage time.Duration, random func() float64, out, back func(*fakeCluster)) time.Duration {
	c := newFake(t, 3)
	var cuts []string
	for i := 1; i < 12; i++ {
		cuts = append(cuts, fmt.Sprintf("%02d", i))
	}
	table := c.table("t", cuts...)
	core := c.open(func(cfg *Config) { cfg.Rand = random })
	rows := func() (items []Item) {
		for i := range 12 {
			items = append(items, getItem(fmt.Sprintf("%02d", i)))
		}
		return items
	}
	for _, o := range core.Batch(t.Context(), table, rows()) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	synctest.Wait()
	out(c)
	var served time.Time
	var last atomic.Int64
	done := func(began time.Time) {
		late := time.Since(served)
		if began.After(served) {
			late = time.Since(began)
		}
		for {
			old := last.Load()
			if int64(late) <= old || last.CompareAndSwap(old, int64(late)) {
				return
			}
		}
	}
	served = time.Now().Add(outage)
	var wg sync.WaitGroup
	for i := range 12 {
		// One who comes right at the start, one who comes later and later.
		for _, at := range []time.Duration{0, outage * time.Duration(i) / 12, outage + time.Duration(i)*50*time.Millisecond} {
			wg.Go(func() {
				time.Sleep(at)
				began := time.Now()
				if _, _, err := get(context.Background(), core, table, fmt.Sprintf("%02d", i)); err != nil {
					t.Error(err)
				}
				done(began)
			})
		}
	}
	for _, at := range []time.Duration{0, outage / 2} {
		wg.Go(func() {
			time.Sleep(at)
			began := time.Now()
			for _, o := range core.Batch(context.Background(), table, rows()) {
				if o.Err != nil {
					t.Error(o.Err)
				}
			}
			done(began)
		})
	}
	time.Sleep(outage)
	back(c)
	wg.Wait()
	for n := 1; n <= 3; n++ {
		c.server(n).thaw()
	}
	return time.Duration(last.Load())
}
