package route

import "time"

// RecheckAll is Recheck for many routes at once and whatever their age: they
// go into the same reads of hbase:meta. It is for the regions of a server that
// is silent, whose routes nothing invalidates; the caller bounds how often.
func (c *Cache) RecheckAll(routes []*Route) {
	now := time.Now()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	for _, r := range routes {
		if r.Valid() && r.table.root.Load().floor(r.startKey()) == r {
			r.learned.Store(c.now.Load()) // the question counts as asked
			c.repairOf(r, now)
		}
	}
	done := c.runAll(now)
	c.mu.Unlock()
	wake(done)
}
