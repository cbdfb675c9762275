package route

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

const (
	// sweepTicks is how many ticks of a second one revolution over all chunks
	// takes, whatever their number.
	sweepTicks = 64
	// maxEmpty bounds the tables kept without routes (mostly names that do not
	// exist); more are forgotten at the next tick.
	maxEmpty = 1024
)

// janitor runs the coarse clock, and forgets what nobody uses.
func (c *Cache) janitor() {
	defer c.wg.Done()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
		}
		// Starts at 1, as New does, so that no route is as old as zero.
		now := uint32(time.Since(c.began)/time.Second) + 1
		c.now.Store(now)
		for _, t := range *c.tables.Load() {
			c.sweep(t, now)
		}
		c.tidy(time.Now())
	}
}

// sweep looks at a 64th of the table's chunks and takes out the routes that
// have not been used for long.
func (c *Cache) sweep(t *table, now uint32) {
	if t.isMeta {
		return
	}
	n := len(t.root.Load().chunks)
	if n == 0 {
		return
	}
	limit := c.idleLimit()
	share := (n + sweepTicks - 1) / sweepTicks
	// Small tables have their turn once in a revolution, not with every tick.
	if n < sweepTicks && int(now)%(sweepTicks/n) != 0 {
		return
	}
	lo := t.cursor
	if lo >= n {
		lo = 0
	}
	t.cursor = lo + share
	drop := func(r *Route) bool { return float64(r.idle(now)) > limit*(1+c.jitterOf(r)) }
	old := false
	for _, ch := range t.root.Load().chunks[lo:min(lo+share, n)] {
		for _, r := range ch.routes {
			old = old || drop(r)
		}
	}
	if !old {
		return
	}
	removed := t.remove(lo, lo+share, drop)
	c.stats.evicted.Add(int64(len(removed)))
	c.settled(t, nil, removed)
}

// idleLimit is the idle time allowed, in seconds: shorter the further the
// number of routes is beyond its bound.
func (c *Cache) idleLimit() float64 {
	limit := c.cfg.IdleTime.Seconds()
	if over := float64(c.routes.Load()) / float64(c.cfg.MaxRoutes); over > 1 {
		limit /= over * over * over * over
	}
	return limit
}

// jitterOf gives a route's own part of the jitter, up to a quarter: routes
// learned in one page are not forgotten in one tick.
func (c *Cache) jitterOf(r *Route) float64 { return float64(r.encoded[0]) / 1024 }

// tidy forgets tables without routes, plans of servers that are gone with what
// they left over, and probations that are over.
func (c *Cache) tidy(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.plans {
		if c.cfg.Servers.Lookup(s.Addr()) != s {
			delete(c.plans, s)
			delete(c.left, s)
		}
	}
	tables := *c.tables.Load()
	empty := 0
	for _, t := range tables {
		for r, p := range t.probed {
			if now.Sub(p.at) > probationTime {
				delete(t.probed, r)
			}
		}
		if t.root.Load().n == 0 && t.idle() {
			empty++
		}
	}
	if empty > maxEmpty {
		c.forgetEmpty()
	}
}

// forgetEmpty drops the tables without routes and waiters. Under c.mu.
func (c *Cache) forgetEmpty() {
	kept := make(map[meta.TableName]*table)
	for name, t := range *c.tables.Load() {
		if t.root.Load().n > 0 || !t.idle() {
			kept[name] = t
		}
	}
	c.tables.Store(&kept)
}
