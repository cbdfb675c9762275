package route

import (
	"bytes"
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// maxJoined bounds the waiters one LocateMany has at a time.
const maxJoined = 1024

// walk finds routes of ascending rows: mostly the same one again, or the next.
type walk struct {
	root *root
	at   at
	r    *Route
}

// to gives the route that starts last at or before row, nil if none does.
func (k *walk) to(row []byte) *Route {
	if k.r != nil && bytes.Compare(k.r.startKey(), row) <= 0 {
		if k.r.endsAfter(row) {
			return k.r
		}
		for range 2 {
			next := k.root.next(k.at)
			r := k.root.get(next)
			if r == nil || bytes.Compare(r.startKey(), row) > 0 {
				return k.r
			}
			k.at, k.r = next, r
			if r.endsAfter(row) {
				return r
			}
		}
	}
	k.at = k.root.seek(row, false)
	k.r = k.root.get(k.at)
	return k.r
}

// LocateMany locates rows in one walk over the index and as few reads of meta
// as it takes. The rows should be sorted ascending (repetitions allowed).
// Entry i has either a route or an error. If ctx ends, what has been located
// by then is there, and the rest has a *LocateError.
func (c *Cache) LocateMany(ctx context.Context, table meta.TableName, rows [][]byte) ([]*Route, []error) {
	routes, errs := make([]*Route, len(rows)), make([]error, len(rows))
	began := time.Now()
	if t := c.lookupTable(table); t != nil {
		k := walk{root: t.root.Load()}
		now := c.now.Load()
		for i, row := range rows {
			if r := k.to(row); r != nil && r.endsAfter(row) && r.Valid() {
				routes[i] = r
				r.touch(now)
			}
		}
	}
	var missing []int
	for i := range rows {
		if routes[i] == nil {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		missing = c.locateSome(ctx, table, rows, missing, routes, errs, began)
	}
	return routes, errs
}

// locateSome waits for the first of the missing rows and gives those that are
// still missing: routes that came meanwhile serve later rows too.
func (c *Cache) locateSome(ctx context.Context, name meta.TableName, rows [][]byte, missing []int, routes []*Route, errs []error, began time.Time) (left []int) {
	type joined struct {
		w    *waiter
		row  int // index into rows
		next int // index into missing after the rows it stands for
	}
	var waits []joined
	var done []*waiter
	var failed error
	k := 0
	c.mu.Lock()
	var same *Route // the region the last waiter is for, if it is known
	for k < len(missing) && len(waits) < maxJoined {
		i := missing[k]
		if n := len(waits); n > 0 && (same != nil && same.Contains(rows[i]) || bytes.Equal(rows[waits[n-1].row], rows[i])) {
			k++
			waits[n-1].next = k
			continue
		}
		w, r, err := c.joinLocked(ctx, name, position{key: rows[i]}, nil)
		if err != nil {
			failed = err
			break
		}
		k++
		if w == nil {
			routes[i] = r
			same = nil
			continue
		}
		same = w.table.root.Load().floor(rows[i])
		if same != nil && !same.Contains(rows[i]) {
			same = nil
		}
		waits = append(waits, joined{w: w, row: i, next: k})
	}
	if len(waits) > 0 {
		done = c.run(waits[0].w.table)
	}
	c.mu.Unlock()
	wake(done)

	for _, j := range waits {
		select {
		case <-j.w.done:
		case <-ctx.Done():
			if c.leave(j.w) {
				errs[j.row] = c.locateError(ctx, name, j.w.pos, began, ctx.Err(), j.w)
				continue
			}
			<-j.w.done
		}
		if j.w.err != nil {
			errs[j.row] = c.locateError(ctx, name, j.w.pos, began, j.w.err, j.w)
		} else if j.w.route.Valid() {
			routes[j.row] = j.w.route
			j.w.route.touch(c.now.Load())
		}
	}
	if failed != nil && len(waits) == 0 {
		// Nothing can be asked: closed, no time, no such table, or too many
		// waiters. The first three hold for all that is left.
		i := missing[k]
		errs[i] = c.locateError(ctx, name, position{key: rows[i]}, began, failed, nil)
	}

	// What has become known serves the rest too.
	t := c.lookupTable(name)
	var wk walk
	if t != nil {
		wk.root = t.root.Load()
	}
	var last error
	for _, i := range missing {
		if routes[i] != nil {
			continue
		}
		if errs[i] != nil {
			last = errs[i]
			continue
		}
		if t != nil {
			if r := wk.to(rows[i]); r != nil && r.endsAfter(rows[i]) && r.Valid() {
				routes[i] = r
				continue
			}
		}
		if ctx.Err() != nil {
			// No row need have failed: time may also be up just when a route
			// that was found has become invalid.
			if last == nil {
				last = c.locateError(ctx, name, position{key: rows[i]}, began, ctx.Err(), nil)
			}
			e := *last.(*LocateError)
			e.Row = bytes.Clone(rows[i][:min(len(rows[i]), maxRow)])
			errs[i] = &e
			continue
		}
		left = append(left, i)
	}
	return left
}

// pageSize of those who read a table on their own account.
const pageSize = 1000

// Regions reads the regions of the table that meet [start, stop) afresh from
// hbase:meta, in order and without holes (empty stop: to the end). Routes to
// regions in transition are included; they are not Valid. The error is a
// *LocateError.
func (c *Cache) Regions(ctx context.Context, table meta.TableName, start, stop []byte) ([]*Route, error) {
	var all []*Route
	err := c.readAll(ctx, table, start, stop, demand, func(r []*Route) bool { all = append(all, r...); return true })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Warm reads the routes of [start, stop) in large pages, behind everybody
// else. What was read before an error stays. The error is a *LocateError.
func (c *Cache) Warm(ctx context.Context, table meta.TableName, start, stop []byte) error {
	return c.readAll(ctx, table, start, stop, background, func([]*Route) bool { return true })
}

// readAll reads and publishes pages until the range is covered, or emit says
// that it is enough.
func (c *Cache) readAll(ctx context.Context, name meta.TableName, start, stop []byte, k class, emit func([]*Route) bool) error {
	began := time.Now()
	c.mu.Lock()
	t := c.tableFor(name)
	t.users++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		t.users--
		c.mu.Unlock()
	}()
	w := &waiter{pos: position{key: start}, table: t}
	fail := func(err error) error { return c.locateError(ctx, name, w.pos, began, err, w) }
	next, first := start, true
	for waits := 0; ; {
		scan := MetaScan{StartRow: t.firstRow(next), StopRow: t.stopRow(stop), Limit: pageSize}
		if first && len(next) > 0 {
			// The region that holds start begins before it.
			scan = MetaScan{StartRow: meta.SearchRow(name, next), StopRow: meta.FirstRow(name), Reversed: true, Limit: holePage}
		}
		if k == background && waits == 0 {
			scan.Replica = c.metaReplica(t)
		}
		locs, err := c.readOnce(ctx, t, scan, k)
		var routes []*Route
		if err == nil {
			routes, err = c.takePage(t, locs, scan, next, first)
		}
		switch {
		case err == nil:
			waits = 0
		case scan.Replica != nil && ctx.Err() == nil:
			t.doubt() // the primary knows better
			continue
		case c.ctx.Err() != nil:
			return fail(ErrClosed)
		case ctx.Err() != nil:
			return fail(ctx.Err())
		case err == ErrTableNotFound, err == ErrClosed:
			return fail(err)
		case err != errHole && !retry.Classify(err, retry.Attempt{}).Retriable:
			return fail(&finalError{err})
		default:
			w.last = err
			w.fails++
			if err := pause(ctx, retry.MetaUnavailable.Schedule().Wait(waits, c.cfg.Rand())); err != nil {
				return fail(err)
			}
			waits++
			continue
		}
		if !emit(routes) {
			return nil
		}
		first = false
		last := routes[len(routes)-1]
		next = last.endKey()
		if last.endLen == 0 || len(stop) > 0 && bytes.Compare(next, stop) >= 0 {
			return nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readOnce is one read within the limits.
func (c *Cache) readOnce(ctx context.Context, t *table, scan MetaScan, k class) ([]meta.Location, error) {
	if !t.isMeta {
		if err := c.acquire(ctx, k); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	rctx, cancel := context.WithTimeout(ctx, c.cfg.ReadTimeout)
	stop := context.AfterFunc(c.ctx, cancel)
	locs, err := c.read(rctx, t, scan)
	stop()
	cancel()
	if !t.isMeta {
		c.release(k, began, err)
	}
	if err != nil {
		c.stats.readErrors.Add(1)
	}
	return locs, err
}

// takePage publishes a page and gives the routes of those of its regions that
// continue, without a hole, from next on.
func (c *Cache) takePage(t *table, locs []meta.Location, scan MetaScan, next []byte, first bool) ([]*Route, error) {
	keep := t.ascending(locs, scan.Reversed)
	if len(keep) == 0 {
		if first && len(locs) == 0 {
			return nil, ErrTableNotFound
		}
		return nil, errHole
	}
	routes := t.makeRoutes(keep, scan.origin())
	added, removed := t.publish(routes)
	t.noteReplicas(keep)
	c.settled(t, added, removed)
	if first && len(next) > 0 {
		r := routes[len(routes)-1]
		if !r.Contains(next) {
			return nil, errHole
		}
		return []*Route{t.known(r)}, nil
	}
	var page []*Route
	for _, r := range routes {
		if !bytes.Equal(r.startKey(), next) {
			break
		}
		page = append(page, t.known(r))
		next = r.endKey()
		if r.endLen == 0 {
			break
		}
	}
	if len(page) == 0 {
		return nil, errHole
	}
	return page, nil
}

// known gives what the index has for the region of r, or r itself.
func (t *table) known(r *Route) *Route {
	if x := t.root.Load().floor(r.startKey()); x != nil && x.sameRegion(r) {
		return x
	}
	return r
}
