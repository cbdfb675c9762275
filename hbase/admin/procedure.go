package admin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The waits between questions about a procedure: 2 ms doubling to 500 ms, with
// jitter in [1/2, 1]. Fast ones (embedded: a few ms) are seen at once; a real
// create takes about a second, so half of the cap would only double the
// questions, and twice of it would show as latency.
const (
	firstPoll = 2 * time.Millisecond
	lastPoll  = 500 * time.Millisecond
)

// submitted is the answer to a call that starts a procedure.
type submitted interface {
	wire.Unmarshaler
	GetProcId() uint64
}

// run submits a procedure and waits for its end. param carries nonces, so the
// submission may be repeated.
func (a *Admin) run(ctx context.Context, op, object, method string, param wire.Marshaler, result submitted) error {
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	if err := a.master(ctx, op, method, param, result, session.Nonced); err != nil {
		return fault.Wrap(op, object, err)
	}
	// A server that does such things without a procedure has answered when it
	// was done.
	id := result.GetProcId()
	if id == 0 {
		return nil
	}
	_, err := a.wait(ctx, op, object, id)
	return err
}

// wait asks until the procedure has ended and gives its result.
func (a *Admin) wait(ctx context.Context, op, object string, id uint64) ([]byte, error) {
	if a.detached != nil {
		a.detached(id)
		return nil, nil
	}
	start := time.Now()
	pause := firstPoll
	for polls := 1; ; polls++ {
		var res pb.GetProcedureResultResponse
		err := a.master(ctx, op, "getProcedureResult", &pb.GetProcedureResultRequest{ProcId: &id}, &res, session.Safe)
		if err != nil {
			return nil, fault.Wrap(op, object, fmt.Errorf("waiting for procedure %d, which may go on: %w", id, err))
		}
		// NOT_FOUND means that it ended long ago and was forgotten; the Java
		// client takes that for success too.
		done := res.GetState() != pb.GetProcedureResultResponse_RUNNING
		if a.progress != nil {
			a.progress(Progress{Op: op, Object: object, ProcID: id, Polls: polls, Elapsed: time.Since(start), Done: done})
		}
		if done {
			if res.Exception != nil {
				return nil, fault.Wrap(op, object, foreign(res.Exception))
			}
			return res.Result, nil
		}
		if err := sleep(ctx, pause/2+rand.N(pause/2+1)); err != nil {
			return nil, fault.Wrap(op, object, fmt.Errorf("procedure %d is still running: %w", id, err))
		}
		pause = min(2*pause, lastPoll)
	}
}

// foreign reads the exception with which a procedure ended.
func foreign(m *pb.ForeignExceptionMessage) error {
	g := m.GetGenericException()
	e := wire.NewRemoteError(g.GetClassName(), g.GetMessage())
	// Whatever its class, this procedure will not be tried again.
	e.DoNotRetry = true
	return e
}

// sleep waits for d, or for the end of ctx, or not at all if that comes first.
func sleep(ctx context.Context, d time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
		if err := ctx.Err(); err != nil {
			return err
		}
		return context.DeadlineExceeded
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
