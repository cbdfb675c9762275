package route

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// repair is the re-reading of one region's row in hbase:meta. It begins when
// somebody needs a route that has become invalid, and goes on, as the region's
// gate, while meta gives the answer that has just been disproved or says that
// nobody serves the region. There is at most one per route; all repairs of all
// tables share batches. Everything is under cache.mu.
type repair struct {
	table    *table
	route    *Route
	waiters  []*waiter
	left     int       // of them, so many have left
	attempts int       // answers that did not cure it
	failures int       // reads that failed in a row
	since    time.Time // of the first
	paced    time.Time // what its waits grow from; see gatePace
	trying   bool      // meta has not changed its mind, but callers are let through
	due      time.Time
	last     error
	place    repairPlace
	spare    *leftovers // it fills up a batch; see fillUp
	index    int        // in the heap
}

type repairPlace uint8

const (
	nowhere repairPlace = iota
	isReady
	isDelayed
	isReading
)

// gated says whether the region is known to be in transition.
func (q *repair) gated() bool { return q.attempts > 0 }

// compact forgets the waiters who left.
func (q *repair) compact() {
	q.waiters = slices.DeleteFunc(q.waiters, func(w *waiter) bool { return w.gone })
	q.left = 0
}

// present is the number of waiters who have not left.
func (q *repair) present() int { return len(q.waiters) - q.left }

const (
	// repairBatch is the number of regions read in one go. A row of meta has
	// about a kilobyte.
	repairBatch = 200
	// batchPatience is how long a batch that is not full waits for the one that
	// is being read: longer, and one lost answer holds up everybody.
	batchPatience = 100 * time.Millisecond
	// probationTime is how long a route that was let through by trying is
	// remembered: rejected again, its gate goes on where it stopped.
	probationTime = 10 * time.Second
)

// probation remembers how far the gate was of a route that is being tried.
type probation struct {
	attempts int
	since    time.Time
	age      time.Duration // of the gate's pace
	last     error         // what was wrong with the region
	at       time.Time
}

// repairOf gives the repair of a route, beginning it if needed. Under c.mu.
func (c *Cache) repairOf(r *Route, now time.Time) *repair {
	t := r.table
	if q := t.repairs[r]; q != nil {
		return q
	}
	q := t.newRepair(r, now)
	if p, ok := t.probed[r]; ok {
		q.attempts, q.since, q.paced, q.last = p.attempts, p.since, now.Add(-p.age), p.last
		delete(t.probed, r)
		c.delay(q, now)
		return q
	}
	if r.server != nil && !r.Rejected() && !r.Valid() {
		c.planFor(r.server)
	}
	c.makeReady(q)
	return q
}

// gate begins a repair that has read its row already. Under c.mu.
func (c *Cache) gate(r *Route, now time.Time) {
	if r.table.repairs[r] != nil {
		return
	}
	q := r.table.newRepair(r, now)
	q.last = r.transit("")
	q.attempts = 1
	c.delay(q, now)
}

func (t *table) newRepair(r *Route, now time.Time) *repair {
	q := &repair{table: t, route: r, since: now, paced: now}
	if t.repairs == nil {
		t.repairs = make(map[*Route]*repair)
	}
	t.repairs[r] = q
	t.cache.pending[t] = struct{}{}
	return q
}

// makeReady queues a repair that is due. A repair enters the queue once
// before it is read; one that is dropped meanwhile is skipped. Under c.mu.
func (c *Cache) makeReady(q *repair) {
	q.place = isReady
	if q.table.isMeta {
		c.readyMeta = append(c.readyMeta, q)
		return
	}
	c.ready = append(c.ready, q)
	c.nready++
}

// transit describes why the route is no use.
func (r *Route) transit(state string) error {
	e := &transitError{region: r.Encoded(), state: state}
	if r.server != nil {
		e.server = r.server.Name().String()
		e.cause = r.server.Err()
	}
	return e
}

// delay schedules the next read of a gated repair. Under c.mu.
func (c *Cache) delay(q *repair, now time.Time) {
	c.delayUntil(q, now.Add(jittered(c.gatePace(q, now), c.cfg.Rand())))
}

func (c *Cache) delayUntil(q *repair, due time.Time) {
	q.due = due
	q.place = isDelayed
	heap.Push(&c.delayed, q)
}

// drop ends a repair. Its waiters are the caller's. Under c.mu.
func (c *Cache) drop(q *repair) {
	if q.table.repairs[q.route] == q {
		delete(q.table.repairs, q.route)
	}
	switch q.place {
	case isDelayed:
		heap.Remove(&c.delayed, q.index)
		q.place = nowhere
	case isReady:
		q.place = nowhere // skipped when its turn comes
		if !q.table.isMeta {
			c.nready--
		}
	}
}

// current says whether the repair has not been dropped.
func (q *repair) current() bool { return q.table.repairs[q.route] == q }

// runRepairs sends batches of repairs as far as limits allow. A batch that is
// not full waits while another is being read: what comes meanwhile fills it.
// Under c.mu.
func (c *Cache) runRepairs(now time.Time) {
	for len(c.delayed) > 0 && !c.delayed[0].due.After(now) {
		c.makeReady(heap.Pop(&c.delayed).(*repair))
	}
	for _, q := range c.readyMeta {
		if q.place == isReady {
			q.place = isReading
			c.wg.Add(1)
			go c.repairMeta(q)
		}
	}
	c.readyMeta = nil
	if c.planned > 0 {
		return // whatever the plans bring belongs into the same batches
	}
	for c.nready > 0 {
		if c.limit.of[repairing] > 0 && c.nready < repairBatch && now.Sub(c.batched) < batchPatience {
			return
		}
		if !c.limit.admit(repairing, now) {
			return
		}
		batch := make([]*repair, 0, min(c.nready, repairBatch))
		for len(batch) < cap(batch) {
			q := c.ready[0]
			c.ready[0] = nil
			c.ready = c.ready[1:]
			if q.place == isReady {
				batch = append(batch, q)
			}
		}
		c.nready -= len(batch)
		if c.nready == 0 {
			c.ready = nil
		}
		// Those that are nearly due come along: one read now instead of two.
		for len(batch) < repairBatch && len(c.delayed) > 0 {
			q := c.delayed[0]
			// hbase:meta's own region is not in hbase:meta; and a batch that had
			// its repair would wait for it to be read.
			if q.due.Sub(now) > c.gatePace(q, now)/2 || q.table.isMeta {
				break
			}
			heap.Pop(&c.delayed)
			batch = append(batch, q)
		}
		batch = c.fillUp(batch, now)
		for _, q := range batch {
			q.place = isReading
		}
		checkFlights(c)
		c.batched = now
		c.wg.Add(1)
		go c.repairMany(batch, now)
	}
}

// repairMeta asks the registry again where hbase:meta is.
func (c *Cache) repairMeta(q *repair) {
	defer c.wg.Done()
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ReadTimeout)
	l, err := c.locateMeta(ctx)
	cancel()
	wake(c.repaired([]*repair{q}, []*meta.Location{&l}, err))
}

// repairMany reads one batch.
func (c *Cache) repairMany(batch []*repair, began time.Time) {
	defer c.wg.Done()
	rows := make([][]byte, len(batch))
	for i, q := range batch {
		rows[i] = q.route.Name()
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ReadTimeout)
	defer cancel()
	c.stats.gets.Add(1)
	locs, err := c.cfg.Source.GetMeta(ctx, rows)
	if err == nil && len(locs) != len(rows) {
		err = errHole
	}
	now := time.Now()
	c.mu.Lock()
	c.limit.done(repairing, now, now.Sub(began), false, c.unavailable(err))
	if err != nil {
		c.stats.readErrors.Add(1)
	}
	c.mu.Unlock()
	wake(c.repaired(batch, locs, err))
	if err == nil {
		c.askDisabled(ctx, batch)
	}
}

// findings are what a batch means for one table.
type findings struct {
	routes []*Route // better ones
	tries  []*Route // to be tried: they may be as bad as those before
	news   []*Route // of the tries, those that meta vouches for
	gone   map[*Route]bool
}

// repaired applies what a batch has read.
func (c *Cache) repaired(batch []*repair, locs []*meta.Location, err error) (done []*waiter) {
	now := time.Now()
	cured := make(map[*repair]bool, len(batch))
	lasts := make([]error, len(batch))
	byTable := make(map[*table]*findings)
	for i, q := range batch {
		if err != nil {
			break
		}
		f := byTable[q.table]
		if f == nil {
			f = &findings{gone: make(map[*Route]bool)}
			byTable[q.table] = f
		}
		lasts[i] = c.examine(q, locs[i], f, now)
		cured[q] = lasts[i] == nil
	}
	type change struct {
		t              *table
		added, removed []*Route
		tried, news    []*Route
	}
	var changes []change
	for t, f := range byTable {
		ch := change{t: t, tried: f.tries, news: f.news}
		if len(f.gone) > 0 {
			ch.removed = t.removeExactly(f.gone)
		}
		sortRoutes(f.routes)
		a, r := t.publish(f.routes)
		ch.added, ch.removed = a, append(ch.removed, r...)
		if len(f.tries) > 0 {
			sortRoutes(f.tries)
			a, r := t.publishForced(f.tries)
			ch.added, ch.removed = append(ch.added, a...), append(ch.removed, r...)
		}
		changes = append(changes, ch)
	}
	for i, q := range batch {
		if err == nil && locs[i] != nil {
			q.table.noteReplicas([]meta.Location{*locs[i]})
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	for _, ch := range changes {
		for _, n := range ch.tried {
			for _, q := range batch {
				if q.table == ch.t && q.route.sameRegion(n) && q.current() {
					if ch.t.probed == nil {
						ch.t.probed = make(map[*Route]probation)
					}
					ch.t.probed[n] = probation{
						attempts: q.attempts + 1, since: q.since, age: now.Sub(q.paced), last: cmp.Or(q.last, n.transit("")), at: now,
					}
					q.trying = !slices.Contains(ch.news, n)
				}
			}
		}
		done = append(done, c.settle(ch.t, ch.added, ch.removed, now)...)
	}
	for i, q := range batch {
		if cured[q] && q.spare != nil {
			q.spare.found++
		}
		if !q.current() {
			continue
		}
		q.place = nowhere
		done = append(done, c.uncured(q, lasts[i], cured[q], err, now)...)
	}
	return append(done, c.runAll(now)...)
}

// examine judges one row of a batch. It gives nil if the finding cures the
// repair, and otherwise what is wrong with the region. Not under c.mu: of the
// repair it reads only what does not change while it is being read.
func (c *Cache) examine(q *repair, l *meta.Location, f *findings, now time.Time) error {
	r := q.route
	if l == nil || l.Region.Split || l.Region.Offline || l.Region.Table != q.table.name {
		// Split or merged away: its rows have to be looked up.
		f.gone[r] = true
		return nil
	}
	routes := q.table.makeRoutes([]meta.Location{*l}, FromMeta)
	if len(routes) == 0 || !routes[0].sameRegion(r) {
		f.gone[r] = true
		return nil
	}
	n := routes[0]
	same := n.server == r.server && (n.openSeq == r.openSeq || n.openSeq < 0 || r.openSeq < 0)
	switch {
	case n.Rejected():
		// Nobody serves it, or its server is down.
		if r.Valid() {
			return nil
		}
		if ahead := n.opening(l, r); ahead != nil && q.attempts > 0 {
			// The server that opens it knows first when that is done; meta hears
			// of it from the master.
			f.tries = append(f.tries, ahead)
			return nil
		}
		return n.transit(l.State)
	case !same, !r.Rejected() && !r.Valid():
		f.routes = append(f.routes, n)
		return nil
	case r.Valid():
		r.confirmed(n.learned.Load(), FromMeta)
		return nil
	case r.Origin() == FromHint:
		// The old server named the new one before the region was open there, and
		// the new one did not have it yet. Now meta says that it is open: that
		// is news, though server and sequence number are the hint's.
		f.tries = append(f.tries, n)
		f.news = append(f.news, n)
		return nil
	case q.attempts > 0:
		// Meta keeps to the answer that was disproved. It may be right and the
		// server of another mind by now, or of that mind from the start but for
		// one wrong answer.
		f.tries = append(f.tries, r.restamp())
		return nil
	}
	return n.transit(l.State)
}

// uncured decides what becomes of a repair that is still there after its
// batch. Under c.mu.
func (c *Cache) uncured(q *repair, last error, cured bool, err error, now time.Time) []*waiter {
	q.compact()
	t := q.table
	if err != nil {
		t.lastErr = err
		if !retry.Classify(err, retry.Attempt{}).Retriable && err != errHole {
			c.drop(q)
			done := c.failAll(q.waiters, &finalError{err})
			q.waiters = nil
			return done
		}
		if len(q.waiters) == 0 {
			c.drop(q)
			return nil
		}
		q.fruitless(err)
		q.failures++
		c.delayUntil(q, now.Add(retry.MetaUnavailable.Schedule().Wait(q.failures-1, c.cfg.Rand())))
		return nil
	}
	q.failures = 0
	if cured && !q.route.Valid() && t.root.Load().floor(q.route.startKey()) == q.route {
		// What was found did not win against the route. That is not expected,
		// and must not make us read the row over and over.
		cured, last = false, q.route.transit("")
	}
	if cured || len(q.waiters) == 0 {
		// Confirmed; or found, but what is known now is better still; or
		// nobody cares. Waiters look for themselves.
		c.drop(q)
		if !cured {
			c.leaveOver(q.route)
		}
		var done []*waiter
		ws := q.waiters
		q.waiters = nil
		for _, w := range ws {
			checkOwner(w, false)
			if c.replace(w, now) {
				done = append(done, w)
			}
		}
		return done
	}
	q.attempts++
	q.fruitless(last)
	c.delay(q, now)
	return nil
}

// fruitless tells the waiters of a read that did not help.
func (q *repair) fruitless(err error) {
	q.last = err
	for _, w := range q.waiters {
		w.fails++
		w.last = err
	}
}

// askDisabled ends the wait for regions of a table that is disabled.
func (c *Cache) askDisabled(ctx context.Context, batch []*repair) {
	states, ok := c.cfg.Source.(TableStates)
	if !ok {
		return
	}
	now := time.Now()
	var ask []*table
	c.mu.Lock()
	for _, q := range batch {
		if q.current() && q.attempts >= 2 && now.Sub(q.table.asked) >= notFoundTime {
			q.table.asked = now
			ask = append(ask, q.table)
		}
	}
	c.mu.Unlock()
	for _, t := range ask {
		if off, err := states.TableDisabled(ctx, t.name); err != nil || !off {
			continue
		}
		var done []*waiter
		c.mu.Lock()
		t.disabled = time.Now().Add(notFoundTime)
		for _, q := range t.repairs {
			done = append(done, c.failAll(q.waiters, ErrTableNotEnabled)...)
			q.waiters = nil
		}
		c.mu.Unlock()
		wake(done)
	}
}

// ServerUp tells that the server answers again: those who wait for its regions
// try at once. Wire it to health.Config.Changed. It does not block.
func (c *Cache) ServerUp(s *health.Server) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	now := time.Now()
	for t := range c.pending {
		for r, q := range t.repairs {
			if r.server == s && q.place == isDelayed {
				heap.Remove(&c.delayed, q.index)
				c.makeReady(q)
			}
		}
	}
	done := c.runAll(now)
	c.mu.Unlock()
	wake(done)
}

// repairHeap orders repairs by when they are due.
type repairHeap []*repair

func (h repairHeap) Len() int           { return len(h) }
func (h repairHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h repairHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *repairHeap) Push(x any) {
	q := x.(*repair)
	q.index = len(*h)
	*h = append(*h, q)
}
func (h *repairHeap) Pop() any {
	old := *h
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return q
}
