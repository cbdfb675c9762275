package route

import (
	"container/heap"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// metaFound tells everything that waits to read hbase:meta again that it has a
// new place: pauses taken after failures, and the breaker's, were on account of
// the old one. Each of them is half a second at most, but they come one after
// another. Under c.mu.
func (c *Cache) metaFound(now time.Time) {
	if b := &c.limit.breaker; b.state == Open {
		b.until = now
	}
	for t := range c.pending {
		if t.isMeta {
			continue
		}
		t.failures, t.after = 0, time.Time{}
		for _, q := range t.repairs {
			if q.place == isDelayed && q.failures > 0 {
				heap.Remove(&c.delayed, q.index)
				c.makeReady(q)
			}
		}
	}
}

// tellLeft tells Config.Left which servers that do not answer have lost regions.
// Under c.mu.
func (c *Cache) tellLeft(removed []*Route) {
	if c.cfg.Left == nil {
		return
	}
	var last *health.Server
	for _, r := range removed {
		if s := r.server; s != nil && s != last && !s.Usable() {
			last = s
			c.cfg.Left(s)
		}
	}
}
