package route

import (
	"bytes"
	"container/heap"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// position is what is asked for: the region that holds key, or (before) the
// one that ends before or at it; before with an empty key is the last region.
type position struct {
	key    []byte
	before bool
}

func (p position) atEnd() bool { return p.before && len(p.key) == 0 }

// compare orders positions along the key space.
func (p position) compare(q position) int {
	switch {
	case p.atEnd() || q.atEnd():
		if p.atEnd() && q.atEnd() {
			return 0
		} else if p.atEnd() {
			return 1
		}
		return -1
	}
	if c := bytes.Compare(p.key, q.key); c != 0 {
		return c
	}
	switch {
	case p.before == q.before:
		return 0
	case p.before:
		return -1
	}
	return 1
}

// in says whether r is the region asked for.
func (p position) in(r *Route) bool {
	if !p.before {
		return r.Contains(p.key)
	}
	if len(p.key) == 0 {
		return r.endLen == 0
	}
	return bytes.Compare(r.startKey(), p.key) < 0 && (r.endLen == 0 || bytes.Compare(p.key, r.endKey()) <= 0)
}

// place gives the place of the route that the position is in, if any is.
func (r *root) place(p position) at {
	if p.atEnd() {
		return r.last()
	}
	return r.seek(p.key, p.before)
}

// find gives the route that the position is in, if any is; the answer is to be
// checked with position.in.
func (r *root) find(p position) *Route { return r.get(r.place(p)) }

// inGap says whether a region that fills [lo, hi) would be the one asked for.
func (p position) inGap(lo, hi []byte) bool {
	if !p.before {
		return bytes.Compare(lo, p.key) <= 0 && (len(hi) == 0 || bytes.Compare(p.key, hi) < 0)
	}
	if len(p.key) == 0 {
		return len(hi) == 0
	}
	return bytes.Compare(lo, p.key) < 0 && (len(hi) == 0 || bytes.Compare(p.key, hi) <= 0)
}

// gap gives the bounds of the hole in the index around a position that no
// route covers: [lo, hi), empty for unbounded.
func (r *root) gap(p position) (lo, hi []byte) {
	k := r.place(p)
	if prev := r.get(k); prev != nil {
		lo = prev.endKey()
	}
	if next := r.get(r.next(k)); next != nil {
		hi = next.startKey()
	}
	return lo, hi
}

// ahead says that a caller is going to walk on from its row to stop.
type ahead struct{ stop []byte }

// waiter is one caller that waits for a route. It has exactly one owner at a
// time: a table's wants, a repair or a wave; or it is done.
type waiter struct {
	pos    position
	table  *table
	walk   *ahead    // nil unless the caller is going to walk on
	repair *repair   // that owns it, if one does
	flight *flight   // that was sent for it
	after  time.Time // not to be served before
	holes  int       // answers that left its row out
	alone  bool      // read exactly its region next, no page
	behind bool      // a page forwards ended before its row
	gone   bool      // the caller has left
	checks waiterChecks
	fails  int   // reads that failed, or did not help
	last   error // last trouble

	done  chan struct{} // closed when route or err is set
	route *Route
	err   error
}

// wake tells waiters that are done. Not under a lock.
func wake(ws []*waiter) {
	for _, w := range ws {
		close(w.done)
	}
}

// finish ends the wait; the caller wakes what it returns. Under c.mu.
func (w *waiter) finish(r *Route, err error) { w.route, w.err = r, err }

// failAll ends waits with an error and gives those to wake. Under c.mu.
func (c *Cache) failAll(ws []*waiter, err error) (done []*waiter) {
	for _, w := range ws {
		if !w.gone {
			checkOwner(w, false)
			w.finish(nil, err)
			done = append(done, w)
		}
	}
	return done
}

// locate waits for a route.
func (c *Cache) locate(ctx context.Context, name meta.TableName, p position, walk *ahead) (*Route, error) {
	began := time.Now()
	for {
		w, r, err := c.join(ctx, name, p, walk)
		if w == nil {
			if err != nil {
				return nil, c.locateError(ctx, name, p, began, err, nil)
			}
			r.touch(c.now.Load())
			return r, nil
		}
		select {
		case <-w.done:
		case <-ctx.Done():
			if c.leave(w) {
				return nil, c.locateError(ctx, name, p, began, ctx.Err(), w)
			}
			<-w.done // it was just being told
		}
		if w.err != nil {
			return nil, c.locateError(ctx, name, p, began, w.err, w)
		}
		if w.route.Valid() {
			w.route.touch(c.now.Load())
			return w.route, nil
		}
		// It became invalid between then and now: go again.
	}
}

// join finds a route, or registers a waiter for one. It returns exactly one of
// a waiter, a route and an error.
func (c *Cache) join(ctx context.Context, name meta.TableName, p position, walk *ahead) (*waiter, *Route, error) {
	var done []*waiter
	c.mu.Lock()
	w, r, err := c.joinLocked(ctx, name, p, walk)
	if w != nil {
		done = c.run(w.table)
	}
	c.mu.Unlock()
	wake(done)
	return w, r, err
}

func (c *Cache) joinLocked(ctx context.Context, name meta.TableName, p position, walk *ahead) (*waiter, *Route, error) {
	if c.closed {
		return nil, nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	t := c.tableFor(name)
	r := t.root.Load().find(p)
	covered := r != nil && p.in(r)
	if covered && r.Valid() {
		return nil, r, nil
	}
	now := time.Now()
	if now.Before(t.disabled) {
		return nil, nil, ErrTableNotEnabled
	}
	if !covered && now.Before(t.notFound) {
		return nil, nil, ErrTableNotFound
	}
	if covered {
		if q := t.repairs[r]; q != nil && q.gated() && q.present() >= c.cfg.GateWaiters {
			return nil, nil, &unavailable{since: q.since, last: q.last, after: time.Until(q.due)}
		}
	}
	c.stats.misses.Add(1)
	w := &waiter{pos: p, table: t, walk: walk, done: make(chan struct{})}
	c.put(w, r, covered, now)
	return w, nil, nil
}

// put gives an unowned waiter an owner. r is the route for its position, if
// covered. Under c.mu.
func (c *Cache) put(w *waiter, r *Route, covered bool, now time.Time) {
	checkOwner(w, true)
	t := w.table
	c.pending[t] = struct{}{}
	if covered {
		q := c.repairOf(r, now)
		if q.place == isDelayed && !q.gated() && q.failures == 0 {
			// It was for something that had time (ReplicaRejected).
			heap.Remove(&c.delayed, q.index)
			c.makeReady(q)
		}
		q.waiters = append(q.waiters, w)
		w.repair = q
		return
	}
	w.repair = nil
	t.fresh = append(t.fresh, w)
}

// replace finds a new owner for a waiter that has none, or ends its wait if
// there is a valid route by now. Under c.mu.
func (c *Cache) replace(w *waiter, now time.Time) (done bool) {
	if w.gone {
		return false
	}
	t := w.table
	r := t.root.Load().find(w.pos)
	covered := r != nil && w.pos.in(r)
	if covered && r.Valid() {
		w.finish(r, nil)
		return true
	}
	w.flight = nil
	c.put(w, r, covered, now)
	return false
}

// leave takes the caller's waiter away. It is false if the waiter has been
// told already.
func (c *Cache) leave(w *waiter) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.done:
		return false
	default:
	}
	if w.route != nil || w.err != nil {
		return false
	}
	// The owner forgets it the next time it goes through its waiters; nobody
	// else is concerned.
	w.gone = true
	if q := w.repair; q != nil {
		if w.last == nil {
			w.last = q.last
		}
		// When half of its waiters have left, the repair counts anew.
		if q.left++; 2*q.left > len(q.waiters) {
			q.compact()
		}
	}
	if w.last == nil && (w.table.failures > 0 || c.limit.breaker.state != Closed) {
		w.last = w.table.lastErr
	}
	if m := c.lookupTable(meta.MetaTable); w.last == nil && m != nil && m.failures > 0 {
		// The read for it still waits for meta itself to be found.
		w.last = m.lastErr
	}
	return true
}

// unavailable is ErrRegionUnavailable with the gate's facts.
type unavailable struct {
	since time.Time
	last  error
	after time.Duration
}

func (e *unavailable) Error() string {
	return ErrRegionUnavailable.Error() + ", and too many callers wait for it"
}
func (e *unavailable) Is(target error) bool { return target == ErrRegionUnavailable }

func (c *Cache) locateError(ctx context.Context, name meta.TableName, p position, began time.Time, err error, w *waiter) error {
	e := &LocateError{
		Table: name, Row: bytes.Clone(p.key[:min(len(p.key), maxRow)]), Before: p.before,
		Waited: time.Since(began), Err: err,
	}
	if u, ok := err.(*unavailable); ok {
		e.RetryAfter, e.Last = max(u.after, 0), u.last
	}
	if w != nil {
		e.Failures, e.Last = w.fails, w.last
	}
	if cause := context.Cause(ctx); cause != nil && err == ctx.Err() && e.Last == nil {
		if cause != err {
			e.Last = cause
		} else if w != nil {
			// Nothing has failed yet: what is it that takes so long?
			e.Last = c.stuck(w)
		}
	}
	return e
}

// stuck tells what a waiter that has left was waiting for, nil if that cannot
// be said.
func (c *Cache) stuck(w *waiter) error {
	if c.cfg.Why != nil {
		if err := c.cfg.Why(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var since time.Time
	for _, f := range w.table.flights {
		if since.IsZero() || f.began.Before(since) {
			since = f.began
		}
	}
	if since.IsZero() {
		return nil
	}
	return &unansweredError{time.Since(since)}
}

// sortWants brings the waiters in gaps into order and forgets those who left.
// Under c.mu.
func (t *table) sortWants() {
	t.expected = 0
	if len(t.fresh) > 0 {
		slices.SortStableFunc(t.fresh, func(a, b *waiter) int { return a.pos.compare(b.pos) })
		if len(t.wants) == 0 {
			t.wants, t.fresh = t.fresh, nil
		} else {
			merged := make([]*waiter, 0, len(t.wants)+len(t.fresh))
			i, j := 0, 0
			for i < len(t.wants) && j < len(t.fresh) {
				if t.fresh[j].pos.compare(t.wants[i].pos) < 0 {
					merged = append(merged, t.fresh[j])
					j++
				} else {
					merged = append(merged, t.wants[i])
					i++
				}
			}
			merged = append(append(merged, t.wants[i:]...), t.fresh[j:]...)
			t.wants, t.fresh = merged, nil
		}
	}
	t.wants = slices.DeleteFunc(t.wants, func(w *waiter) bool { return w.gone })
}

// wantsIn gives the range of waiters whose positions a region [start, end)
// covers. The position before its end is one of them, the one before its start
// is not. wants must be in order.
func (t *table) wantsIn(start, end []byte) (lo, hi int) {
	from := func(key []byte) int {
		p := position{key: key}
		return sort.Search(len(t.wants), func(i int) bool { return t.wants[i].pos.compare(p) >= 0 })
	}
	if len(end) == 0 {
		return from(start), len(t.wants)
	}
	return from(start), from(end)
}

// idle says whether nobody waits for anything of the table. Under c.mu.
func (t *table) idle() bool {
	return len(t.wants) == 0 && len(t.fresh) == 0 && len(t.flights) == 0 && len(t.repairs) == 0 && t.users == 0
}
