package route

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// flight is one read of hbase:meta on behalf of a table's waiters. It runs on
// the cache's context with a deadline of its own: no caller's leaving
// concerns it, and whatever it brings is published, wanted or not.
type flight struct {
	table  *table
	w      *waiter // that it was sent for
	lo, hi []byte  // the gap it was sent into: [lo, hi)
	scan   MetaScan
	size   int // of the page
	began  time.Time
}

// Sizes of pages. One region is what a lone miss needs; the steps up are those
// of a file's read-ahead: a page too many costs meta little, since a page of
// 16 rows is hardly more work than one row.
var pageSizes = [...]int{1, 16, 128, 1000}

func pageAfter(size int) int {
	for _, s := range pageSizes {
		if s > max(size, 1) {
			return s
		}
	}
	return pageSizes[len(pageSizes)-1]
}

const (
	// denseWaiters: with more waiters than this beyond the last answer, the
	// regions that follow it are read as a page.
	denseWaiters = 8
	// holePage: a row that an answer left out is read again with a few rows
	// before it, in case a split parent stood first.
	holePage = 4
	// aheadTime is how long somebody who asks for exactly what follows the last
	// answer counts as walking on: as long as a scanner may take over a page.
	aheadTime = time.Minute
	// sparseTime is how long a table whose pages serve nobody is read row by
	// row.
	sparseTime = time.Second
)

// readAhead is a table's memory of its last lookups.
type readAhead struct {
	start  []byte // where the last answer began and ended
	end    []byte
	size   int // of the last forward page that served somebody
	at     time.Time
	sparse time.Time // until then forward pages are known to miss
	spread int       // flights allowed in one gap
	window time.Time // the second being counted
	count  [2]int    // flights in this second and the one before
}

// rate gives the flights of the last second or two.
func (a *readAhead) rate(now time.Time) int {
	switch d := now.Sub(a.window); {
	case d >= 2*time.Second:
		a.count, a.window = [2]int{}, now
	case d >= time.Second:
		a.count, a.window = [2]int{0, a.count[0]}, a.window.Add(time.Second)
	}
	return a.count[0] + a.count[1]
}

// pageFor gives the page of a lookup at a random place: misses that keep
// coming will want the neighbours too.
func pageFor(rate int) int {
	switch {
	case rate < 4:
		return 1
	case rate < 8:
		return 16
	case rate < 16:
		return 128
	}
	return 1000
}

// dispatch sends flights for the table's waiters as far as limits allow. Under
// c.mu.
func (c *Cache) dispatch(t *table, now time.Time) {
	t.next = time.Time{}
	if len(t.wants)+len(t.fresh) == 0 {
		return
	}
	if now.Before(t.after) {
		t.next = t.after
		return
	}
	for len(t.flights) < c.cfg.TableFlights {
		if len(t.flights) > 0 && t.allExpected() {
			return
		}
		f := t.plan(now)
		if f == nil {
			return
		}
		// Finding meta itself does not count as reading it; it would wait for
		// the reads that wait for it.
		if !t.isMeta && !c.limit.admit(demand, now) {
			return
		}
		f.began = now
		f.w.flight = f
		if f.w.fails == 0 {
			f.scan.Replica = c.metaReplica(t)
		}
		t.flights = append(t.flights, f)
		t.expected = 0
		t.ahead.count[0]++
		checkFlights(c)
		c.wg.Add(1)
		go c.fly(f)
	}
}

// allExpected says whether every waiter that came since the last flight began
// lies where a running flight is expected to bring its region: sorting them in
// can wait for that flight. With it, ten thousand callers of one region cost
// one look each. Under c.mu.
func (t *table) allExpected() bool {
	for ; t.expected < len(t.fresh); t.expected++ {
		p := t.fresh[t.expected].pos
		n := 0
		for _, f := range t.flights {
			if p.inGap(f.lo, f.hi) {
				n++
			}
		}
		if n < max(t.ahead.spread, 1) {
			return false
		}
	}
	return len(t.wants) == 0 || len(t.fresh) > 0
}

// plan chooses the next flight: for the smallest waiter that no running flight
// is expected to serve. A flight into a gap is expected to serve everybody in
// the gap until it has shown otherwise; then more may fly, spread out evenly.
// Under c.mu.
func (t *table) plan(now time.Time) *flight {
	t.sortWants()
	r := t.root.Load()
	for i := 0; i < len(t.wants); {
		w := t.wants[i]
		if x := r.find(w.pos); x != nil && w.pos.in(x) {
			i++ // published, and about to be settled
			continue
		}
		lo, hi := r.gap(w.pos)
		_, j := t.wantsIn(lo, hi)
		j = max(j, i+1)
		running := 0
		for _, f := range t.flights {
			if (len(f.hi) == 0 || bytes.Compare(lo, f.hi) < 0) && (len(hi) == 0 || bytes.Compare(f.lo, hi) < 0) {
				running++
			}
		}
		if allowed := max(t.ahead.spread, 1); running < allowed {
			from := i + (j-i)*running/allowed
			for _, w := range t.wants[from:j] {
				if w.flight != nil {
					continue
				}
				if now.Before(w.after) {
					t.wakeAt(w.after)
					continue
				}
				return t.flightFor(w, lo, hi, j-i, now)
			}
		}
		i = j
	}
	return nil
}

func (t *table) wakeAt(at time.Time) {
	if t.next.IsZero() || at.Before(t.next) {
		t.next = at
	}
}

// flightFor decides how to read.
//
// Backwards from the waiter's row brings its region for certain, and some
// before it. Forwards from the start of the gap brings all of the gap, if the
// page is large enough: better when misses keep coming, unless the table has
// just turned out to be so large that pages end before they serve anybody.
// When many wait in many gaps, a page goes on through what is known between
// them: a sweep.
func (t *table) flightFor(w *waiter, lo, hi []byte, waiting int, now time.Time) *flight {
	f := &flight{table: t, w: w, lo: lo, hi: hi}
	a := &t.ahead
	rate := a.rate(now)
	recent := !a.at.IsZero() && now.Sub(a.at) < aheadTime
	adjacent := recent && len(a.end) > 0 && bytes.Equal(a.end, lo)
	exact := !w.pos.before && bytes.Equal(w.pos.key, lo) // its region starts at lo
	served := !now.Before(a.sparse)                      // forward pages serve
	f.size = pageFor(rate)
	switch {
	case w.alone:
		f.size = holePage
	case recent && w.pos.before && len(a.start) > 0 && bytes.Equal(a.start, w.pos.key):
		f.size = max(f.size, pageAfter(a.size)) // walking backwards
	case exact && w.walk != nil:
		f.size = pageSizes[2]
		if adjacent {
			f.size = max(f.size, pageAfter(a.size))
		}
		if stop := w.walk.stop; len(stop) > 0 && (len(hi) == 0 || bytes.Compare(stop, hi) < 0) && bytes.Compare(lo, stop) < 0 {
			hi = stop
		}
		return f.forward(hi)
	case exact && adjacent:
		f.size = max(f.size, pageAfter(a.size))
		return f.forward(hi)
	case w.behind:
	case served && rate > 0 && len(t.wants) > denseWaiters:
		f.size = max(f.size, pageAfter(a.size))
		f.hi = nil
		return f.forward(nil)
	case served && f.size > 1 && !w.pos.before:
		return f.forward(hi)
	}
	if len(t.wants) <= 8*denseWaiters && !w.pos.before {
		f.size = min(f.size, pageSizes[2])
	}
	start := meta.SearchRow(t.name, w.pos.key)
	if w.pos.before {
		start = meta.SearchRowBefore(t.name, w.pos.key)
	}
	stop := meta.FirstRow(t.name)
	if f.size > holePage {
		// A page ends where the known regions begin. One row does not: the
		// region to the left may have been merged with the one that is missed,
		// into one that starts before the gap.
		stop = t.firstRow(lo)
	}
	f.scan = MetaScan{StartRow: start, StopRow: stop, Reversed: true, Limit: f.size}
	return f
}

// forward makes it a page from the start of the gap to stop.
func (f *flight) forward(stop []byte) *flight {
	f.scan = MetaScan{StartRow: f.table.firstRow(f.lo), StopRow: f.table.stopRow(stop), Limit: f.size}
	return f
}

// firstRow precedes the meta row of a region that starts at key, and follows
// those of all regions that start before it.
func (t *table) firstRow(key []byte) []byte {
	if len(key) == 0 {
		return meta.FirstRow(t.name)
	}
	return meta.SearchRowBefore(t.name, key)
}

// stopRow precedes the meta row of a region that starts at key; for an empty
// key it follows all rows of the table.
func (t *table) stopRow(key []byte) []byte {
	if len(key) == 0 {
		return meta.StopRow(t.name)
	}
	return meta.SearchRowBefore(t.name, key)
}

// fly makes the read and lands it.
func (c *Cache) fly(f *flight) {
	defer c.wg.Done()
	if f.scan.Replica != nil {
		if locs, err := c.readReplica(f.table, f.scan); err == nil {
			wake(c.land(f, locs, nil))
			return
		}
		f.scan.Replica = nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ReadTimeout)
	locs, err := c.read(ctx, f.table, f.scan)
	cancel()
	wake(c.land(f, locs, err))
}

// read is one read of a table's locations; for hbase:meta it asks the
// registry.
func (c *Cache) read(ctx context.Context, t *table, scan MetaScan) ([]meta.Location, error) {
	if t.isMeta {
		l, err := c.locateMeta(ctx)
		if err != nil {
			return nil, err
		}
		return []meta.Location{l}, nil
	}
	c.stats.scans.Add(1)
	if scan.Replica != nil {
		c.stats.replicaReads.Add(1)
	}
	return c.cfg.Source.ScanMeta(ctx, scan)
}

// locateMeta asks the registry.
func (c *Cache) locateMeta(ctx context.Context) (meta.Location, error) {
	c.stats.registry.Add(1)
	server, err := c.cfg.Locator(ctx)
	l := meta.Location{Region: meta.MetaRegion, Server: server, SeqNum: meta.NoSeqNum}
	if err == nil && c.cfg.MetaReplicas != nil {
		list, err := c.cfg.MetaReplicas(ctx)
		if err != nil { // it goes without
			c.cfg.Logger.Warn("replicas of hbase:meta not found", "err", err)
		}
		l.Replicas = list
	}
	return l, err
}

// ascending gives the answer's regions of the table in ascending order. Split
// parents and other offline regions are never routes.
func (t *table) ascending(locs []meta.Location, reversed bool) []meta.Location {
	keep := make([]meta.Location, 0, len(locs))
	for i := range locs {
		r := &locs[i].Region
		if r.Table == t.name && !r.Split && !r.Offline && r.Replica == 0 &&
			(len(r.End) == 0 || bytes.Compare(r.Start, r.End) < 0) {
			keep = append(keep, locs[i])
		}
	}
	if reversed {
		slices.Reverse(keep)
	}
	return keep
}

// land publishes what the flight brought and serves whom it can.
func (c *Cache) land(f *flight, locs []meta.Location, err error) (done []*waiter) {
	t := f.table
	var added, removed []*Route
	rows := 0
	var start, end []byte
	if err == nil {
		keep := t.ascending(locs, f.scan.Reversed)
		for i := range locs {
			if locs[i].Region.Table == t.name {
				rows++
			}
		}
		if n := len(keep); n > 0 {
			start, end = keep[0].Region.Start, keep[n-1].Region.End
		}
		added, removed = t.publish(t.makeRoutes(keep, f.scan.origin()))
		t.noteReplicas(keep)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	t.flights = slices.DeleteFunc(t.flights, func(x *flight) bool { return x == f })
	t.expected = 0
	failed := c.unavailable(err)
	if !t.isMeta {
		c.limit.done(demand, now, now.Sub(f.began), f.size <= pageSizes[1], failed)
	}
	if c.closed {
		return nil
	}
	if f.w.flight == f {
		f.w.flight = nil
	}
	if err != nil {
		return append(c.landBadly(f, err, failed, now), c.runAll(now)...)
	}
	t.failures, t.after = 0, time.Time{}

	before := len(t.wants) + len(t.fresh)
	done = c.settle(t, added, removed, now)
	served := before - len(t.wants) - len(t.fresh)
	t.remember(f, start, end, served, now)
	done = append(done, c.unserved(f, rows, now)...)
	return append(done, c.runAll(now)...)
}

// unavailable says whether an error means that meta does not answer (and not
// that it refuses, or that we are closing).
func (c *Cache) unavailable(err error) bool {
	return err != nil && c.ctx.Err() == nil && retry.Classify(err, retry.Attempt{}).Retriable
}

// landBadly notes a failed read. Under c.mu.
func (c *Cache) landBadly(f *flight, err error, transient bool, now time.Time) []*waiter {
	t := f.table
	t.lastErr = err
	c.stats.readErrors.Add(1)
	t.sortWants()
	lo, hi := t.wantsIn(f.lo, f.hi)
	if transient {
		for _, w := range t.wants[lo:hi] {
			w.fails++
			w.last = err
		}
		t.after = now.Add(retry.MetaUnavailable.Schedule().Wait(t.failures, c.cfg.Rand()))
		t.failures++
		if t.failures == 3 {
			c.cfg.Logger.Warn("hbase:meta cannot be read", "table", t.text, "error", err)
		}
		return nil
	}
	// Trying again would not help. Everybody who was to be served by this
	// flight hears of it; those who come later try anew.
	done := c.failAll(t.wants[lo:hi], &finalError{err})
	t.wants = slices.Delete(t.wants, lo, hi)
	return done
}

// remember adapts the page size and the spread to what the flight achieved.
// Under c.mu.
func (t *table) remember(f *flight, start, end []byte, served int, now time.Time) {
	a := &t.ahead
	waiting := len(t.wants) + len(t.fresh)
	if !f.scan.Reversed {
		// The next page is larger, whether this one served somebody (there is
		// more to come) or not (the table is larger than it looked).
		a.size = f.size
		if served <= 0 && waiting > 0 {
			f.w.behind = true
			if f.size == pageSizes[len(pageSizes)-1] {
				a.sparse = now.Add(sparseTime)
			}
		}
	} else if f.w.pos.before {
		a.size = f.size
	} else if !(len(a.end) > 0 && bytes.Equal(a.end, f.lo)) && waiting <= denseWaiters {
		a.size = 1
	}
	a.at, a.start, a.end = now, bytes.Clone(start), bytes.Clone(end)
	switch {
	case waiting > 0 && (now.Before(a.sparse) || waiting <= denseWaiters && f.size == 1):
		a.spread = min(2*max(a.spread, 1), 8)
	default:
		a.spread = 1
	}
}

// unserved looks after the flight's own waiter, if the answer did not cover
// it. Under c.mu.
func (c *Cache) unserved(f *flight, rows int, now time.Time) (done []*waiter) {
	t, w := f.table, f.w
	if w.gone || w.route != nil || w.err != nil || w.table != t || !slices.Contains(t.wants, w) {
		return nil
	}
	if !f.scan.Reversed && !(rows == 0 && len(f.lo) == 0) {
		// A page that ended before it; or one from the row itself, where no
		// region starts any more: one that starts further left holds it, after a
		// merge, and no page forwards will ever bring that.
		if !w.pos.before && bytes.Equal(w.pos.key, f.lo) {
			w.alone = true
		}
		return nil
	}
	if rows == 0 && len(f.lo) == 0 {
		// Nothing of the table precedes the row, and the first region of a
		// table precedes every row.
		return c.vanished(t, now)
	}
	w.holes++
	w.fails++
	w.alone = true
	w.last = errHole
	c.stats.holes.Add(1)
	if w.holes > 1 {
		w.after = now.Add(holeWaits.Wait(w.holes-2, c.cfg.Rand()))
	}
	return nil
}

// notFoundTime is how long a table that does not exist is not asked for again.
const notFoundTime = time.Second

// vanished ends the lookups of a table that meta does not know. Under c.mu.
func (c *Cache) vanished(t *table, now time.Time) (done []*waiter) {
	t.notFound = now.Add(notFoundTime)
	c.stats.notFound.Add(1)
	t.sortWants()
	done = c.failAll(t.wants, ErrTableNotFound)
	t.wants = nil
	// What is known of it belongs to a table that has been dropped; each of
	// these is read again before it is used.
	for _, ch := range t.root.Load().chunks {
		for _, r := range ch.routes {
			r.reject()
		}
	}
	return done
}

// settle serves the waiters whom a publication concerns: those in gaps that
// are filled now, and those of repairs whose route has been replaced or
// removed. Under c.mu.
func (c *Cache) settle(t *table, added, removed []*Route, now time.Time) (done []*waiter) {
	if len(added)+len(removed) == 0 {
		return nil
	}
	if len(added) > 0 {
		t.notFound = time.Time{}
		if t.isMeta {
			c.metaFound(now)
		}
	}
	c.tellLeft(removed)
	var homeless []*waiter
	for _, r := range removed {
		delete(t.probed, r)
		q := t.repairs[r]
		if q == nil {
			continue
		}
		c.drop(q)
		q.compact()
		ws := q.waiters
		q.waiters = nil
		for _, w := range ws {
			checkOwner(w, false)
		}
		if size := q.firstWave(); q.gated() && len(ws) > size {
			for _, w := range ws {
				checkOwner(w, true)
				w.repair = nil
			}
			c.waves = append(c.waves, &wave{waiters: ws, size: size, due: now})
			continue
		}
		homeless = append(homeless, ws...)
	}
	if len(added) > 0 && len(t.wants)+len(t.fresh) > 0 {
		t.sortWants()
		for _, r := range added {
			lo, hi := t.wantsIn(r.startKey(), r.endKey())
			if lo == hi {
				continue
			}
			for _, w := range t.wants[lo:hi] {
				checkOwner(w, false)
				homeless = append(homeless, w)
			}
			t.wants = slices.Delete(t.wants, lo, hi)
			if r.Rejected() {
				// Meta has just said that nobody serves it: do not ask again
				// at once.
				c.gate(r, now)
			}
		}
	}
	for _, w := range homeless {
		if c.replace(w, now) {
			done = append(done, w)
		}
	}
	return append(done, c.rollWaves(now)...)
}

// firstWave is how many waiters of a region in transition go first when it
// opens; the next wave, a millisecond later, is twice as large.
const firstWave = 32

// scoutTime is how far ahead of the others one goes when a region is tried that
// nobody has said is open: as long as an answer usually takes.
const scoutTime = 10 * time.Millisecond

func (q *repair) firstWave() int {
	if q.trying {
		return 1
	}
	return firstWave
}

// wave is the waiters of a gate that has opened, on their way in doubling
// groups, so that a fresh region does not meet the whole queue at once.
type wave struct {
	waiters []*waiter
	size    int
	due     time.Time
}

// rollWaves lets the next group of each due wave go. Whoever finds the region
// in transition again goes back to its gate. Under c.mu.
func (c *Cache) rollWaves(now time.Time) (done []*waiter) {
	kept := c.waves[:0]
	for _, v := range c.waves {
		if now.Before(v.due) {
			kept = append(kept, v)
			continue
		}
		n := min(v.size, len(v.waiters))
		for _, w := range v.waiters[:n] {
			checkOwner(w, false)
			if c.replace(w, now) {
				done = append(done, w)
			}
		}
		v.waiters = v.waiters[n:]
		if len(v.waiters) > 0 {
			wait := time.Millisecond
			if v.size == 1 {
				v.size, wait = firstWave/2, scoutTime
			}
			v.size, v.due = 2*v.size, now.Add(wait)
			kept = append(kept, v)
		}
	}
	clear(c.waves[len(kept):])
	c.waves = kept
	return done
}
