package route

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Moved tells that the route's server named the region's new place (a
// RegionMovedException), as of sequence number seq (negative: not said). It
// gives the route to use now, or nil if the hint is no use: older than what is
// known, or to a server that is down; then call Rejected.
func (c *Cache) Moved(r *Route, to meta.ServerName, seq int64) *Route {
	t := r.table
	if r.reject() {
		t.doubt()
		c.noticed(r)
	}
	cur := t.root.Load().floor(r.startKey())
	if cur != r && cur != nil && cur.endsAfter(r.startKey()) {
		// Somebody knows better already: by the same hint, or from meta.
		if cur.sameRegion(r) && cur.Valid() {
			return cur
		}
		if !cur.sameRegion(r) {
			return nil
		}
	}
	if to.IsZero() || seq >= 0 && seq < r.openSeq {
		return nil
	}
	s := c.cfg.Servers.Get(to)
	if s == r.server || !s.Usable() {
		return nil
	}
	n := r.leadTo(s, max(seq, r.openSeq), FromHint)
	added, removed := t.publish([]*Route{n})
	c.settled(t, added, removed)
	if len(added) == 0 {
		return nil
	}
	c.stats.hints.Add(1)
	return n
}

// settled is settle for those who do not hold c.mu.
func (c *Cache) settled(t *table, added, removed []*Route) {
	if len(added)+len(removed) == 0 {
		return
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	now := time.Now()
	done := c.settle(t, added, removed, now)
	done = append(done, c.runAll(now)...)
	c.mu.Unlock()
	wake(done)
}

// Recheck asks for one re-reading of the region's row in the background, at
// most about once a second per region. The route stays valid meanwhile.
func (c *Cache) Recheck(r *Route) {
	if r.Age() < time.Second || !r.Valid() {
		return
	}
	c.mu.Lock()
	if c.closed || r.table.root.Load().floor(r.startKey()) != r {
		c.mu.Unlock()
		return
	}
	r.learned.Store(c.now.Load()) // the question counts as asked, whatever comes
	now := time.Now()
	c.repairOf(r, now)
	done := c.runAll(now)
	c.mu.Unlock()
	wake(done)
}

// Refresh re-reads the region's row in hbase:meta and gives the route for its
// start key.
func (c *Cache) Refresh(ctx context.Context, r *Route) (*Route, error) {
	began := time.Now()
	p := position{key: r.startKey()}
	c.mu.Lock()
	cur := r.table.root.Load().find(p)
	if c.closed || cur == nil || !p.in(cur) || !cur.Valid() {
		c.mu.Unlock()
		return c.locate(ctx, r.table.name, p, nil)
	}
	w := &waiter{pos: p, table: r.table, done: make(chan struct{})}
	c.put(w, cur, true, began)
	done := c.run(r.table)
	c.mu.Unlock()
	wake(done)
	select {
	case <-w.done:
	case <-ctx.Done():
		if c.leave(w) {
			return nil, c.locateError(ctx, r.table.name, p, began, ctx.Err(), w)
		}
		<-w.done
	}
	if w.err != nil {
		return nil, c.locateError(ctx, r.table.name, p, began, w.err, w)
	}
	if w.route.Valid() {
		return w.route, nil
	}
	return c.locate(ctx, r.table.name, p, nil)
}

// Transit waits until the region of a rejected route may be served again: by
// another server, by the same one under a new sequence number, or because it
// is time to try. Locate does the same; Transit is for those who have no row.
func (c *Cache) Transit(ctx context.Context, r *Route) error {
	if r.table.root.Load().floor(r.startKey()) == r && r.Valid() {
		return nil
	}
	_, err := c.locate(ctx, r.table.name, position{key: r.startKey()}, nil)
	return err
}

// InvalidateTable forgets everything about the table, negative answers
// included.
func (c *Cache) InvalidateTable(table meta.TableName) {
	t := c.lookupTable(table)
	if t == nil {
		return
	}
	c.mu.Lock()
	t.notFound, t.disabled, t.asked, t.ahead = time.Time{}, time.Time{}, time.Time{}, readAhead{}
	c.mu.Unlock()
	removed := t.remove(0, len(t.root.Load().chunks)+1, func(*Route) bool { return true })
	c.settled(t, nil, removed)
}

// InvalidateServer makes every route to the server invalid, and gives their
// number: each is read again before it is used. Nothing has been disproved, so
// what meta says then counts.
func (c *Cache) InvalidateServer(s *health.Server) (n int) {
	for _, t := range *c.tables.Load() {
		for _, ch := range t.root.Load().chunks {
			for _, r := range ch.routes {
				if r.server == s && r.Valid() {
					n++
				}
			}
		}
	}
	if n > 0 {
		s.Distrust()
	}
	return n
}
