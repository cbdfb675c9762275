package route

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// leftovers are the routes to a server that is down whose rows were read ahead
// of callers and named no other server yet: a cluster takes its time to open a
// dead server's regions elsewhere. They fill the batches that are read for
// callers of that server's other regions. Without that, the routes of a server
// would be read ahead once, most likely too early, and then one by one, each
// when its next caller comes.
type leftovers struct {
	line []*Route
	at   time.Time // when a batch was last filled up
	// Of those it was filled up with, so many were found elsewhere.
	filled, found int
}

// fillPause: if of what a batch was filled up with not one in stormYield had
// been opened elsewhere, the next one is filled only after so long. It takes a
// row's worth of work to read a row, also in a large read.
const fillPause = 100 * time.Millisecond

// leaveOver remembers the route for later. Under c.mu.
func (c *Cache) leaveOver(r *Route) {
	if r.server == nil || r.Valid() || r.Rejected() || r.table.isMeta {
		return
	}
	l := c.left[r.server]
	if l == nil {
		if c.left == nil {
			c.left = make(map[*health.Server]*leftovers)
		}
		l = &leftovers{}
		c.left[r.server] = l
	}
	l.line = append(l.line, r)
}

// fillUp adds to a batch that has room repairs of routes left over from the
// servers the batch is about. It makes reads larger, not more: what is found
// nowhere goes back to the end of the line. Under c.mu.
func (c *Cache) fillUp(batch []*repair, now time.Time) []*repair {
	if len(c.left) == 0 {
		return batch
	}
	for i, n := 0, len(batch); i < n && len(batch) < repairBatch; i++ {
		l := c.left[batch[i].route.server]
		if l == nil || now.Sub(l.at) < fillPause && l.found*stormYield < l.filled {
			continue
		}
		l.at, l.filled, l.found = now, 0, 0
		for len(l.line) > 0 && len(batch) < repairBatch {
			r := l.line[0]
			l.line[0] = nil
			l.line = l.line[1:]
			t := r.table
			if r.Valid() || t.repairs[r] != nil || t.root.Load().floor(r.startKey()) != r {
				continue // somebody asked for it, or it has been replaced
			}
			q := t.newRepair(r, now)
			q.spare = l
			l.filled++
			batch = append(batch, q)
		}
		if len(l.line) == 0 {
			l.line = nil
		}
	}
	return batch
}
