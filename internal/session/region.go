package session

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// systemPriority is what HBase's clients send for calls on system tables, so
// that such calls do not wait behind user calls.
const systemPriority = 200

// CallRegion performs one operation on the region that holds the call's row.
// The error is a *retry.Error with the whole story.
func (c *Core) CallRegion(ctx context.Context, call *RegionCall) (_ Answer, err error) {
	switch {
	case call.Replica > 0:
		return c.callPinned(ctx, call)
	case call.Timeline, call.Hedge:
		return c.callSpread(ctx, call)
	}
	var o op
	o.trouble, o.nested = call.trouble, call.watched
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	q := call.request()
	q.combine = call.Combine
	for {
		var cells []byte
		err := o.locate(call.Table, call.Row, call.Before)
		if err == nil {
			cells, err = o.send(&q)
		}
		if err == nil {
			o.budget.Succeeded()
			c.hedges.succeeded()
			return Answer{Route: o.route, Cells: cells, Attempts: o.budget.Attempts()}, nil
		}
		if err = o.next(err); err != nil {
			return Answer{Attempts: o.budget.Attempts()}, err
		}
	}
}

// CallRoute makes exactly one attempt on the region of r: no lookup, no retry.
// Routes and health learn of a failure as in CallRegion. The error is an
// *AttemptError, so that the caller (a scanner) can decide what to do next.
// The context's deadline bounds the attempt if Timeout is 0.
func (c *Core) CallRoute(ctx context.Context, r *route.Route, call *RegionCall) (Answer, error) {
	return c.CallReplica(ctx, r, nil, call)
}

// CallReplica is CallRoute on a replica of the region, if it is not nil.
func (c *Core) CallReplica(ctx context.Context, r *route.Route, replica *route.Replica, call *RegionCall) (Answer, error) {
	a, d, err := c.attempt(ctx, r, replica, false, call)
	if err != nil {
		return a, &AttemptError{Decision: d, Err: err}
	}
	return a, nil
}

// attempt is one attempt on the primary of r, perhaps over the spare
// connection, or on a replica.
func (c *Core) attempt(ctx context.Context, r *route.Route, replica *route.Replica, spare bool, call *RegionCall) (_ Answer, _ retry.Decision, err error) {
	var o op
	o.internal, o.single, o.nested = call.internal, true, call.watched && !call.internal
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	if replica != nil {
		o.replica, o.srv = replica, replica.Server
	} else {
		o.route, o.srv = r, r.Server()
	}
	if o.srv == nil {
		return Answer{}, retry.Decision{Route: retry.Reject, Wait: retry.Relocate, Retriable: true}, errNoServer
	}
	q := call.request()
	q.spare = spare
	cells, err := o.send(&q)
	if err == nil {
		o.budget.Succeeded()
		return Answer{Route: r, Replica: replica, Cells: cells, Attempts: 1}, retry.Decision{}, nil
	}
	if end, ok := err.(endError); ok {
		return Answer{}, retry.Decision{}, o.over(end.error)
	}
	d := o.judge(err)
	if d.Wait == retry.ServerDown && replica == nil {
		c.scout(o.srv, r)
	}
	return Answer{Attempts: o.budget.Attempts()}, d, o.over(err)
}

func (call *RegionCall) config() retry.Config {
	op := call.Op
	if op == "" {
		op = call.Method
	}
	return retry.Config{Op: op, Table: call.Table, Row: call.Row, Idempotency: call.Idempotency}
}

func (call *RegionCall) request() request {
	q := request{
		service: call.Service, method: call.Method, priority: call.Priority, timeout: call.Timeout,
		result: call.Result, build: call.Param, names: call.Names, watched: call.watched,
	}
	if q.service == "" {
		q.service = ClientService
	}
	if q.priority == 0 && call.Table.IsSystem() {
		q.priority = systemPriority
	}
	return q
}
