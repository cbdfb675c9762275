package session

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

const (
	// metaAgainMin and metaAgainMax bound how long a read of hbase:meta has
	// before it is sent once more. One lost answer would else hold up everybody
	// who waits for it until the read's deadline.
	metaAgainMin = 500 * time.Millisecond
	metaAgainMax = 1500 * time.Millisecond
)

// metaAgain is how long a read of hbase:meta on the server has alone.
func (c *Core) metaAgain(s *health.Server) time.Duration {
	c.servers.Observe()
	_, p999 := s.Quantiles()
	return min(max(silenceFactor*p999, metaAgainMin), metaAgainMax)
}

// readMeta is CallReplica for reads of hbase:meta: if the primary takes unusually
// long, it is asked a second time over another connection. It is a hedge like
// any other and paid for from the same budget.
func (c *Core) readMeta(ctx context.Context, r *route.Route, replica *route.Replica, call *RegionCall) (Answer, error) {
	if replica != nil || r == nil || r.Server() == nil {
		return c.CallReplica(ctx, r, replica, call)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // the message is rendered by one at a time
	render := func(region []byte, attempt int) (wire.Marshaler, []byte) {
		mu.Lock()
		defer mu.Unlock()
		return renderCall(call, region, attempt)
	}
	ends := make(chan ending, 2)
	ask := func(spare bool) bool {
		own, answer := *call, new(unread)
		own.Param, own.Result, own.Names, own.watched = render, answer, nil, true
		return c.spawn(func() {
			e := ending{place: place{spare: spare}}
			e.answer, e.decision, e.err = c.attempt(ctx, r, nil, spare, &own)
			e.raw = answer.b
			ends <- e
		})
	}
	if !ask(false) {
		return Answer{}, ErrClosed
	}
	running := 1
	defer func() {
		cancel()
		for ; running > 0; running-- {
			<-ends
		}
	}()
	timer := time.NewTimer(c.metaAgain(r.Server()))
	defer timer.Stop()
	for {
		select {
		case e := <-ends:
			running--
			if e.err == nil {
				if e.spare {
					c.hedges.won.Add(1)
				}
				return e.answer, call.Result.UnmarshalVT(e.raw)
			}
			if running == 0 || !e.decision.Retriable {
				return e.answer, &AttemptError{Decision: e.decision, Err: e.err}
			}
		case <-timer.C:
			if c.mayHedge(r.Server()) && ask(true) {
				running++
			}
		}
	}
}

// renderCall makes the request of a call and encodes it, so that nothing of the
// caller's is looked at later.
func renderCall(call *RegionCall, region []byte, attempt int) (wire.Marshaler, []byte) {
	m, block := call.Param(region, attempt)
	b := make([]byte, m.SizeVT())
	n, err := m.MarshalToSizedBufferVT(b)
	if err != nil {
		return rendered{err: err}, nil
	}
	return rendered{b: b[len(b)-n:]}, block
}
