package session

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// op is one operation on its way: the state of the loop. Each turn chooses a
// target, makes one attempt, and, if that fails, asks next what to do.
//
//	for {
//		answer, err := choose and send
//		if err == nil { return answer }
//		if err := o.next(err); err != nil { return err }
//	}
//
// It is used by one goroutine and lives on its stack; what only the slow path
// needs is made when it is needed.
type op struct {
	core   *Core
	ctx    context.Context // the caller's
	budget retry.Budget
	at     retry.Attempt

	// The last target, and what became of the request. replica is set if the
	// target is not the region's primary; route is nil then.
	route   *route.Route
	replica *route.Replica
	srv     *health.Server
	conn    *conn
	sent    bool
	began   time.Time // of the request

	// owed is a wait that one server has asked for: paid only if the next
	// attempt goes to that server again.
	owed struct {
		srv   *health.Server
		class retry.Class
		hint  time.Duration
	}
	busy *health.Server // who gave the last busy answer
	dear *health.Server // whose last failure was of the kind that retries make worse
	held *peer          // among whose waiting callers the operation counts

	name  string
	table meta.TableName
	// tried says that the last failure is that of a request, not of what has to
	// happen before one.
	tried bool
	// waited says that the operation has done more than compute since it began.
	waited bool
	// stay says that the target is fixed: a server that is down is an error at
	// once, since there is nobody else to wait for.
	stay bool
	// trouble, if set, hears of everything that keeps the operation from being
	// answered by its first attempt; false ends the operation.
	trouble func() bool

	single   bool // one attempt is all
	timeouts int  // attempts that took as long as they might
	// seen is the operation as hooks see it; nil if nobody looks.
	seen     *Operation
	internal bool // the Core's own work
	nested   bool // a part of an operation that hooks have heard of
	entries  int  // of a batch
	failed   int  // of them

	slow       context.Context
	slowCancel context.CancelFunc
	slowStop   func() bool
}

func (o *op) start(c *Core, ctx context.Context, cfg retry.Config) {
	o.core, o.ctx = c, ctx
	o.name, o.table = cfg.Op, cfg.Table
	o.at.Idempotency = cfg.Idempotency
	if c.hooks != nil && len(c.hooks.operations) > 0 && !o.nested {
		ctx = o.observe(&cfg)
	}
	if _, ok := ctx.Deadline(); !ok && cfg.Timeout == 0 {
		cfg.Timeout = c.cfg.OperationTimeout
	}
	if cfg.MaxAttempts == 0 {
		cfg.MaxAttempts = c.cfg.MaxAttempts
	}
	cfg.Tokens, cfg.Rand = c.tokens, c.cfg.Rand
	o.budget.Start(ctx, cfg)
}

// observe tells the hooks that the operation begins.
func (o *op) observe(cfg *retry.Config) context.Context {
	o.seen = &Operation{
		Name: cfg.Op, Table: cfg.Table, Row: cfg.Row, Items: max(o.entries, 1), Internal: o.internal,
		Start: time.Now(), Timeout: cfg.Timeout,
	}
	if d, ok := o.ctx.Deadline(); ok {
		o.seen.Timeout = d.Sub(o.seen.Start)
	} else if o.seen.Timeout == 0 {
		o.seen.Timeout = o.core.cfg.OperationTimeout
	}
	o.ctx = o.core.hooks.begin(o.ctx, *o.seen)
	return o.ctx
}

// end tells the hooks and frees what the slow path made.
func (o *op) end(err error) {
	if o.seen != nil {
		o.core.hooks.ended(o.ctx, *o.seen, OperationResult{
			Took: time.Since(o.seen.Start), Attempts: o.budget.Attempts(), Failed: o.failed, Err: err,
		})
	}
	if o.slow != nil {
		o.slowStop()
		o.slowCancel()
	}
	o.waitNoMore()
}

// waiting gives the context for everything that blocks besides the request
// itself: it ends with the caller's context, with the operation's deadline,
// and with the Core.
func (o *op) waiting() context.Context {
	if o.slow == nil {
		if d, ok := o.budget.Deadline(); ok {
			o.slow, o.slowCancel = context.WithDeadline(o.ctx, d)
		} else {
			o.slow, o.slowCancel = context.WithCancel(o.ctx)
		}
		o.slowStop = context.AfterFunc(o.core.ctx, o.slowCancel)
	}
	return o.slow
}

// locate finds the route for a row.
func (o *op) locate(table meta.TableName, row []byte, before bool) error {
	cache := o.core.routes
	if before {
		o.route = cache.LookupBefore(table, row)
	} else {
		o.route = cache.Lookup(table, row)
	}
	if o.route == nil {
		o.srv, o.conn, o.sent, o.tried = nil, nil, false, false
		o.waited = true
		if o.trouble != nil {
			o.trouble()
		}
		if err := o.waitForRegion(table, row, before); err != nil {
			return err
		}
		o.budget.Enter(retry.Locating)
		var began time.Time
		if o.core.hooks != nil {
			began = time.Now()
		}
		var err error
		if before {
			o.route, err = cache.LocateBefore(o.waiting(), table, row)
		} else {
			o.route, err = cache.Locate(o.waiting(), table, row)
		}
		if o.core.hooks != nil {
			o.core.lookedUp(o.ctx, Lookup{Op: o.name, Table: table, Row: row, Rows: 1, Start: began, Err: err}, o.route)
		}
		if err != nil {
			return err
		}
	}
	o.srv = o.route.Server()
	return nil
}

// attempt counts an attempt and tells the time.
func (o *op) attempt(server string) (began time.Time, err error) {
	if !o.waited {
		o.waited = true
		return o.budget.FirstAttempt(server, "")
	}
	err = o.budget.Attempt(server, "")
	return time.Now(), err
}

// endError marks errors of the budget: the operation is over.
type endError struct{ error }

func (e endError) Unwrap() error { return e.error }

// send makes one attempt on o.srv: pay what is owed, fail fast if the server
// is down, take a connection and a place in the server's line, send, wait.
func (o *op) send(q *request) ([]byte, error) {
	o.sent, o.conn, o.tried = false, nil, false
	srv := o.srv
	if o.owed.srv != nil {
		owed := o.owed
		o.owed.srv = nil
		if owed.srv == srv {
			if err := o.pause(owed.class, owed.hint, nil); err != nil {
				return nil, endError{err}
			}
		}
	}
	if srv.State() != health.Healthy {
		if err := o.wait(srv); err != nil {
			return nil, err
		}
		if err := srv.Err(); err != nil {
			return nil, err
		}
	}
	p := peerOf(srv)
	o.budget.On(p.tokens)
	if o.budget.Attempts() == 0 {
		p.tokens.Begun()
	} else if o.dear == srv {
		if err := o.pay(p); err != nil {
			return nil, endError{err}
		}
	}
	began, err := o.attempt(p.name)
	if err != nil {
		return nil, endError{err}
	}
	cn := p.client.conn.Load()
	if q.service != ClientService || q.spare || cn == nil || cn.Err() != nil {
		if cn, err = p.get(o.waiting(), q.service, q.spare); err != nil {
			return nil, err
		}
		began = time.Now()
	}
	if q.build != nil {
		name := []byte(nil)
		if o.replica != nil {
			name = o.replica.Name()
		} else {
			name = q.names.of(o.route)
		}
		q.param, q.cells = q.build(name, o.budget.Attempts())
	}
	if o.budget.Attempts() > 1 {
		if r, ok := q.result.(interface{ Reset() }); ok {
			r.Reset()
		}
	}
	limit := q.timeout
	q.yield = o.at.Idempotency != retry.Unsafe
	if limit == 0 && q.yield {
		// A request that must not be repeated gains nothing from giving up
		// early; the others do.
		limit = o.limit()
	}
	o.tried = true
	var seen *observing
	if h := o.core.hooks; h != nil {
		seen = h.observe(o.ctx, o.describe(began, o.budget.AttemptTimeoutFrom(began, limit)), q)
	}
	var x exchange
	x.began = began
	err = o.core.exchange(o.ctx, nil, srv, cn, q, o.budget.AttemptTimeoutFrom(began, limit), &x)
	if x.full {
		// The line is long: wait in it, under the operation's time as well.
		x.began = time.Now()
		err = o.core.exchange(o.ctx, o.waiting(), srv, cn, q, o.budget.AttemptTimeoutFrom(x.began, limit), &x)
	}
	o.conn, o.sent, o.began = cn, x.sent, x.began
	if seen != nil {
		seen.end(o.core.hooks, &x, err, o.at)
	}
	return x.cells, err
}

// next takes a failed attempt: it hands the evidence to routes and health,
// decides, and waits if that is the decision. nil means: try again.
func (o *op) next(err error) error {
	if end, ok := err.(endError); ok {
		return o.over(end.error)
	}
	d := o.judge(err)
	if o.ctx.Err() != nil || !d.Retriable || o.core.ctx.Err() != nil || o.trouble != nil && !o.trouble() {
		return o.over(o.budget.Fail(o.ctx, d))
	}
	if d.TurnedAway {
		return o.over(o.budget.Fail(o.ctx, d))
	}
	if o.stay && (d.Server == retry.MarkDown || d.Wait == retry.ServerDown) {
		return o.over(o.budget.Fail(o.ctx, d))
	}
	switch {
	case d.Deferred:
		o.owed.srv, o.owed.class, o.owed.hint = o.srv, d.Wait, d.Hint
		return nil
	case d.Wait == retry.ServerDown && o.srv != nil:
		if o.route != nil {
			if !o.route.Valid() {
				return nil // locate knows better
			}
			o.core.scout(o.srv, o.route)
		}
		if err = o.wait(o.srv); err != nil {
			return o.next(err)
		}
		news := peerOf(o.srv).news()
		if r := o.route; r != nil && (!r.Valid() || o.core.routes.Known(r.Table(), r.Start(), false) != r) {
			return nil // the news came before it was listened to
		}
		err = o.pause(d.Wait, d.Hint, news)
	default:
		err = o.pause(d.Wait, d.Hint, nil)
	}
	if err != nil {
		return o.over(err)
	}
	return nil
}

// scoutEvery is how often hbase:meta is asked whether the regions of a silent
// server are served elsewhere by now, and how long their callers take to
// notice. Half of it doubles the reads, double is felt when a server dies
// without a word.
const scoutEvery = 500 * time.Millisecond

// scoutSoon is the same once a region has turned out to be elsewhere.
const scoutSoon = 50 * time.Millisecond

// judge classifies a failure, applies the evidence and enters it in the
// ledger.
func (o *op) judge(err error) retry.Decision {
	at := o.at
	at.Sent = o.sent
	if !o.sent {
		// Nothing left this process, so repeating is as good as beginning.
		at.Idempotency = retry.Safe
	}
	if o.busy != o.srv {
		at.Busy = 0
	}
	d := retry.Classify(err, at)
	if !o.sent {
		d.MaybeApplied = false
	}
	if o.route != nil && o.srv != nil {
		if o.core.feedRoute(o.route, err, d) {
			o.at.Hints++
		}
		o.budget.OnRegion(o.route.Encoded())
	}
	if o.replica != nil {
		o.budget.OnRegion(o.replica.Encoded())
		if goneElsewhere(d) {
			o.core.routes.ReplicaRejected(*o.replica)
		}
	}
	if o.ctx.Err() != nil && o.conn != nil && o.sent {
		o.conn.look(o.began) // given up, perhaps because the server is silent
	}
	if o.srv != nil {
		o.core.feedServer(o.srv, o.conn, o.sent, o.began, err, d)
	}
	if o.dear = nil; d.Costly() {
		o.dear = o.srv
	}
	o.at.Busy = 0
	if d.Server == retry.Overloaded {
		o.busy, o.at.Busy = o.srv, at.Busy+1
	}
	switch d.Rule {
	case retry.RuleUnknownClass:
		o.at.Unknown++
	case retry.RuleTimeout:
		o.timeouts++
	}
	o.budget.Failed(err, d)
	if h := o.core.hooks; h != nil && !o.tried {
		f := Failure{Op: o.name, Table: o.table, Attempts: o.budget.Attempts(), At: time.Now(), Err: err, Decision: decisionOf(d)}
		if o.route != nil {
			f.Region = o.route.Encoded()
		}
		if o.srv != nil {
			f.Server = o.srv.Name()
		}
		h.failure(o.ctx, f)
	}
	return d
}

// pay waits until the next retry to a server most of whose calls fail is paid
// for. That may take all the time there is: then the operation ends.
func (o *op) pay(p *peer) error {
	for !p.tokens.Pay() {
		if err := o.pause(retry.ServerBusy, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// pause waits in a class, and ends early when ready is closed.
func (o *op) pause(c retry.Class, hint time.Duration, ready <-chan struct{}) error {
	if c == retry.NoWait && hint == 0 {
		return nil
	}
	wait, ok := o.budget.Next(c, hint)
	if !ok {
		return o.budget.Exhausted()
	}
	if wait <= 0 {
		return nil
	}
	if ready != nil {
		wait = min(wait, peerOf(o.srv).untilScout())
	}
	began := time.Now()
	err := o.budget.WaitFor(o.waiting(), c, wait, ready)
	if o.core.hooks != nil {
		o.core.hooks.waited(o.ctx, Wait{Op: o.name, Table: o.table, Class: c.String(), Start: began, Planned: wait, Took: time.Since(began), Err: o.budget.LastCause()})
	}
	return err
}

// over is the end of the operation with an error.
func (o *op) over(err error) error {
	if o.core.ctx.Err() != nil && o.ctx.Err() == nil {
		return &closedError{err}
	}
	return err
}

// closedError is whatever happened to a call when the Core was closed under
// it.
type closedError struct{ err error }

func (e *closedError) Error() string {
	if errors.Is(e.err, ErrClosed) {
		return e.err.Error() // it says so itself
	}
	return ErrClosed.Error() + ": " + e.err.Error()
}
func (e *closedError) Unwrap() []error { return []error{ErrClosed, e.err} }

// describe is the attempt as hooks see it.
func (o *op) describe(began time.Time, timeout time.Duration) Attempt {
	a := Attempt{
		Op: o.name, Table: o.table, Server: o.srv.Name(), Number: o.budget.Attempts(), Items: 1,
		Start: began, Timeout: timeout,
	}
	switch {
	case o.replica != nil:
		a.Region, a.Regions, a.Replica = o.replica.Encoded(), 1, o.replica.ID
	case o.route != nil:
		a.Region, a.Regions = o.route.Encoded(), 1
	}
	return a
}

// lookedUp tells the hooks what a lookup found.
func (c *Core) lookedUp(ctx context.Context, l Lookup, r *route.Route) {
	l.Took = time.Since(l.Start)
	if l.Err == nil && r != nil {
		l.Region = r.Encoded()
		if s := r.Server(); s != nil {
			l.Server = s.Name()
		}
	}
	c.hooks.lookedUp(ctx, l)
}

// feedRoute corrects the cache: only what the failure proves, about exactly the
// route that was used. It says whether a hint was followed.
func (c *Core) feedRoute(r *route.Route, err error, d retry.Decision) (hinted bool) {
	switch d.Route {
	case retry.Reject:
		c.rejected(r, err)
	case retry.Replace:
		remote, ok := errors.AsType[*wire.RemoteError](err)
		if !ok || remote.Moved == nil {
			c.rejected(r, err)
			return false
		}
		to := remote.Moved
		name := meta.ServerName{Host: to.Host, Port: to.Port, StartCode: to.StartCode}
		if c.routes.Moved(r, name, to.SeqNum) == nil {
			c.rejected(r, err)
			return false
		}
		c.routeChanged(RouteMoved, r, name, err)
		return true
	case retry.Recheck:
		c.routes.Recheck(r)
		c.routeChanged(RouteRechecked, r, meta.ServerName{}, err)
	case retry.DropTable:
		c.routes.InvalidateTable(r.Table())
		if c.hooks != nil {
			c.hooks.routeChanged(RouteEvent{Change: TableForgotten, Table: r.Table(), Cause: err})
		}
	}
	return false
}

func (c *Core) rejected(r *route.Route, err error) {
	c.routes.Rejected(r)
	c.routeChanged(RouteRejected, r, meta.ServerName{}, err)
}

func (c *Core) routeChanged(what RouteChange, r *route.Route, to meta.ServerName, err error) {
	if c.hooks == nil {
		return
	}
	e := RouteEvent{Change: what, Table: r.Table(), Region: r.Encoded(), To: to, Cause: err}
	if s := r.Server(); s != nil {
		e.From = s.Name()
	}
	c.hooks.routeChanged(e)
}
