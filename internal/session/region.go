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
	var o op
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	q := call.request()
	for {
		var cells []byte
		err := o.locate(call.Table, call.Row, call.Before)
		if err == nil {
			cells, err = o.send(&q)
		}
		if err == nil {
			o.budget.Succeeded()
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
func (c *Core) CallRoute(ctx context.Context, r *route.Route, call *RegionCall) (_ Answer, err error) {
	var o op
	o.internal = call.internal
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	o.route, o.srv = r, r.Server()
	if o.srv == nil {
		return Answer{}, &AttemptError{Decision: retry.Decision{Route: retry.Reject, Wait: retry.Relocate, Retriable: true}, Err: errNoServer}
	}
	q := call.request()
	cells, err := o.send(&q)
	if err == nil {
		o.budget.Succeeded()
		return Answer{Route: r, Cells: cells, Attempts: 1}, nil
	}
	if end, ok := err.(endError); ok {
		return Answer{}, &AttemptError{Decision: retry.Decision{}, Err: o.over(end.error)}
	}
	d := o.judge(err)
	if d.Wait == retry.ServerDown {
		c.scout(o.srv, r)
	}
	return Answer{Attempts: o.budget.Attempts()}, &AttemptError{Decision: d, Err: o.over(err)}
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
		result: call.Result, build: call.Param, names: call.Names,
	}
	if q.service == "" {
		q.service = ClientService
	}
	if q.priority == 0 && call.Table.IsSystem() {
		q.priority = systemPriority
	}
	return q
}
