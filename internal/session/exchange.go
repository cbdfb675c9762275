package session

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// request is what one attempt sends. build makes the message when the target
// is certain.
type request struct {
	service, method string
	priority        uint32
	timeout         time.Duration
	param           wire.Marshaler
	cells           []byte
	result          wire.Unmarshaler
	build           func(region []byte, attempt int) (wire.Marshaler, []byte)
	names           *RegionNames
	yield           bool // may be given up when the server falls silent
	watched         bool // may be canceled at any moment, see rpc.Call
	spare           bool // goes over the server's second connection
	combine         bool // see RegionCall.Combine
	trace           *pb.RPCTInfo
}

// exchange is what became of a request.
type exchange struct {
	conn  *conn
	tried bool // the request was handed to the connection
	sent  bool // the server may have got it
	full  bool // not tried: the server's limit is reached, and there was no context to wait in
	cells []byte
	began time.Time
	took  time.Duration
	// received counts the bytes of the answer.
	received int
}

// exchange takes a place in the server's line, sends and waits for the answer.
// ctx is the caller's; waiting is for the line, nil for "do not wait". timeout
// counts from x.began, which is moved if the line takes time.
func (c *Core) exchange(ctx, waiting context.Context, srv *health.Server, cn *conn, q *request, timeout time.Duration, x *exchange) error {
	x.conn = cn
	if x.full = false; !srv.TryAcquire() {
		if waiting == nil {
			x.full = true
			return nil
		}
		if err := srv.Acquire(waiting); err != nil {
			return err
		}
		now := time.Now()
		timeout -= now.Sub(x.began)
		x.began = now
	}
	call := rpc.Call{
		Method: q.method, Param: q.param, Cells: q.cells, Result: q.result, Priority: q.priority,
		Timeout: max(timeout, 1), Began: x.began, Yield: q.yield, Watched: q.watched, Trace: q.trace,
	}
	x.tried = true
	var err error
	if q.combine && q.trace == nil && q.priority == 0 {
		err = cn.gets.do(ctx, &call)
	} else {
		err = cn.Do(ctx, &call)
	}
	if x.took = call.Answered.Sub(x.began); call.Answered.IsZero() {
		x.took = time.Since(x.began)
	}
	x.sent, x.cells, x.received = call.Sent, call.ResultCells, call.Received
	srv.Release(loadOf(err), x.took)
	return err
}

// loadOf says what the end of a call means for the server's load.
func loadOf(err error) health.Result {
	if err == nil {
		return health.OK
	}
	remote, ok := errors.AsType[*wire.RemoteError](err)
	switch {
	case !ok:
		return health.Lost
	case remote.Overloaded || remote.Class == wire.ClassServerTooBusy:
		return health.Busy
	}
	return health.OK
}

// feedServer applies a decision's evidence about the server.
func (c *Core) feedServer(srv *health.Server, cn *conn, sent bool, began time.Time, err error, d retry.Decision) {
	switch d.Server {
	case retry.MarkDown:
		// A failed dial has been judged where it happened, with more knowledge.
		// A master that says it is not serving (yet) is asked again soon, by
		// those who need it, rather than by a prober.
		_, dial := errors.AsType[*rpc.DialError](err)
		_, said := errors.AsType[*wire.RemoteError](err)
		if !dial && !(said && d.FindMaster) {
			srv.Refused(err)
		}
	case retry.Suspect:
		if cn != nil && sent {
			cn.look(began)
		}
	}
	if d.FindMaster {
		c.master.forget(srv)
	}
}
