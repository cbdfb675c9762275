package route

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// plannedUse: of a dead server's routes, those used within this time are read
// again before anybody asks.
const plannedUse = 60 // seconds

// ServerDown tells that the server's epoch has been bumped: the recently used
// routes to it are re-read in large batches before callers ask for them one by
// one. Wire it to health.Config.Changed. It does not block.
func (c *Cache) ServerDown(s *health.Server) {
	c.mu.Lock()
	if !c.closed {
		c.planFor(s)
	}
	c.mu.Unlock()
}

// planFor starts the planning for a server's present epoch, once. Repairs wait
// until it has ended, a few milliseconds, so that all go into full batches.
// Under c.mu.
func (c *Cache) planFor(s *health.Server) {
	epoch := s.Epoch()
	if e, ok := c.plans[s]; ok && e >= epoch {
		return
	}
	c.plans[s] = epoch
	c.planned++
	c.wg.Add(1)
	go c.plan(s)
}

// plan is one walk over all routes.
func (c *Cache) plan(s *health.Server) {
	defer c.wg.Done()
	now := c.now.Load()
	var stale []*Route
	for _, t := range *c.tables.Load() {
		for _, ch := range t.root.Load().chunks {
			for _, r := range ch.routes {
				if r.server == s && !r.Valid() && r.idle(now) <= plannedUse {
					stale = append(stale, r)
				}
			}
		}
	}
	c.mu.Lock()
	c.planned--
	if c.closed {
		c.mu.Unlock()
		return
	}
	at := time.Now()
	for _, r := range stale {
		c.repairOf(r, at)
	}
	c.stats.planned.Add(int64(len(stale)))
	done := c.runAll(at)
	c.mu.Unlock()
	wake(done)
}
