package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// spread is one read that may be asked in several places at once: the region's
// primary, which has a head start and all the patience of a call, the region's
// other replicas, and, as a hedge, the primary's server once more.
//
// The caller's goroutine decides, one goroutine per place asks. The first
// success wins. An error ends the read only if it is final or if nobody is left
// who might answer. Before the read returns, the losers have been canceled and
// have let go of everything that is the caller's: they render the request under
// the spread's lock and read answers into memory of their own.
type spread struct {
	core   *Core
	call   *RegionCall
	ctx    context.Context // of all places
	cancel context.CancelFunc
	ends   chan ending
	timer  *time.Timer
	// after is the pause between asking two places.
	after time.Duration

	began             time.Time
	second            time.Duration // after which the second place was asked
	asked             int           // places, but for hbase:meta
	running, replicas int           // places being asked; of them, replicas
	trouble           chan struct{}
	hedged            bool
	paid              bool // the first replica is a hedge: it comes before its time

	stage   stage
	route   *route.Route    // whose replicas these are
	queue   []route.Replica // not asked yet in this round
	round   int
	primary error // how the primary ended

	mu   sync.Mutex
	over bool // nobody renders a request any more
}

// stage is how far the asking of replicas has got.
type stage uint8

const (
	idle     stage = iota // waiting for the time to come
	locating              // finding out where they are
	asking
	without // there are none
)

// place is who is asked.
type place struct {
	replica  *route.Replica
	spare    bool // the primary's server over a second connection
	locating bool // hbase:meta, about replicas
}

func (p place) isPrimary() bool { return p.replica == nil && !p.spare && !p.locating }

// ending is what came of asking in one place.
type ending struct {
	place
	answer   Answer
	raw      []byte
	err      error
	decision retry.Decision
	found    []route.Replica
}

// callSpread is CallRegion for calls with Timeline or Hedge.
func (c *Core) callSpread(ctx context.Context, call *RegionCall) (a Answer, err error) {
	s := &spread{core: c, call: call, ends: make(chan ending, 2), trouble: make(chan struct{}, 1), began: time.Now()}
	if c.hooks != nil {
		cfg := call.config()
		seen := Operation{Name: cfg.Op, Table: call.Table, Row: call.Row, Items: 1, Start: s.began, Timeout: c.cfg.OperationTimeout}
		if d, ok := ctx.Deadline(); ok {
			seen.Timeout = d.Sub(s.began)
		}
		ctx = c.hooks.begin(ctx, seen)
		defer func() { s.tell(ctx, seen, a, err) }()
	}
	if call.Abandoned != nil {
		// The losers may outlive the call.
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if d, ok := ctx.Deadline(); ok {
			s.ctx, s.cancel = context.WithDeadline(context.WithoutCancel(ctx), d)
		}
		defer context.AfterFunc(ctx, func() {
			if ctx.Err() == context.Canceled { // the deadline is its own as well
				s.cancel()
			}
		})()
	} else {
		s.ctx, s.cancel = context.WithCancel(ctx)
	}
	s.after = call.ReplicaAfter
	if s.after <= 0 {
		s.after = c.cfg.ReplicaAfter
	}
	s.timer = time.NewTimer(s.headStart())
	defer s.timer.Stop()
	// The losers are ended before the deferred calls above are made.
	defer s.leave()
	return s.run(ctx)
}

// tell gives the hooks the end of the story; of what happened in each place they
// have heard already.
func (s *spread) tell(ctx context.Context, seen Operation, a Answer, err error) {
	took := time.Since(s.began)
	if s.asked > 1 {
		h := Hedge{Op: seen.Name, Table: seen.Table, Replicas: s.asked, After: s.second, Took: took, Err: err}
		if s.route != nil {
			h.Region = s.route.Encoded()
		}
		switch {
		case err != nil:
		case a.Replica != nil:
			h.Server, h.Replica = a.Replica.Server.Name(), a.Replica.ID
		case a.Route != nil:
			h.Server = a.Route.Server().Name()
		}
		s.core.hooks.hedged(ctx, h)
	}
	s.core.hooks.ended(ctx, seen, OperationResult{Took: took, Attempts: s.asked - 1 + max(a.Attempts, 1), Err: err})
}

// headStart is how long the primary has alone. None if it cannot answer now.
func (s *spread) headStart() time.Duration {
	c, call := s.core, s.call
	r := c.routes.Known(call.Table, call.Row, call.Before)
	after := s.after
	if !call.Timeline {
		after = hedgeMax
	}
	if r == nil || r.Server() == nil {
		return after
	}
	if call.Timeline && (!r.Valid() || r.Server().State() != health.Healthy) {
		return 0
	}
	if call.Hedge {
		if d := c.hedgeDelay(r.Server()); d < after || !call.Timeline {
			s.paid = call.Timeline
			return d
		}
	}
	return after
}

func (s *spread) run(ctx context.Context) (Answer, error) {
	if !s.start(place{}) {
		return Answer{}, ErrClosed
	}
	for {
		select {
		case e := <-s.ends:
			s.running--
			if e.replica != nil {
				s.replicas--
			}
			if e.err == nil && !e.locating {
				return s.win(e)
			}
			if err := s.lost(ctx, e); err != nil {
				return Answer{Attempts: e.answer.Attempts}, err
			}
		case <-s.trouble:
			if s.call.Timeline && s.stage == idle && s.round == 0 {
				s.paid = false
				s.locate()
			}
		case <-s.timer.C:
			s.due()
		}
	}
}

// due is when somebody else is to be asked.
func (s *spread) due() {
	switch {
	case s.call.Timeline && s.stage == idle:
		s.locate()
	case s.call.Timeline && s.stage == asking:
		s.askNext()
	case s.call.Hedge && !s.hedged && s.stage != locating:
		s.hedge()
	}
}

// locate begins to ask the replicas: first, where they are.
func (s *spread) locate() {
	s.route = s.core.routes.Known(s.call.Table, s.call.Row, s.call.Before)
	if s.route == nil {
		// The primary's lookup will bring them.
		s.timer.Reset(s.after)
		return
	}
	if s.start(place{locating: true}) {
		s.stage = locating
	}
}

// located takes in where the replicas are.
func (s *spread) located(found []route.Replica) {
	if s.paid && len(found) > 0 {
		// Before its time only as a hedge.
		if s.paid = false; !s.core.mayHedge(found[0].Server) {
			s.stage = idle
			s.timer.Reset(s.after)
			return
		}
	}
	if len(found) == 0 {
		if s.round > 0 {
			s.nextRound(true)
			return
		}
		s.stage = without
		s.due()
		return
	}
	s.stage, s.queue = asking, s.core.order(found)
	s.askNext()
}

// askNext asks the next replica and gives it as long as the primary had.
func (s *spread) askNext() {
	if len(s.queue) == 0 {
		return
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	if s.start(place{replica: &next}) {
		s.core.replicaReads.Add(1)
	}
	s.timer.Reset(s.after)
}

// hedge asks the primary's server once more.
func (s *spread) hedge() {
	r := s.core.routes.Lookup(s.call.Table, s.call.Row)
	if s.call.Before {
		r = s.core.routes.LookupBefore(s.call.Table, s.call.Row)
	}
	if r == nil || r.Server() == nil {
		s.timer.Reset(hedgeMin) // it is still being located
		return
	}
	s.hedged = true
	if s.core.mayHedge(r.Server()) {
		s.route = r
		s.start(place{spare: true})
	}
}

// roundPause is how often is looked whether replicas are known again. That costs
// nothing but the look.
const roundPause = 50 * time.Millisecond

// nextRound asks all replicas again after a while, as long as the primary tries.
func (s *spread) nextRound(none bool) {
	s.stage = idle
	wait := retry.Transit.Schedule().Wait(s.round, s.core.cfg.Rand())
	if none {
		wait = min(wait, roundPause)
	}
	s.timer.Reset(wait)
	s.round++
}

// lost takes in a failure; an error ends the read.
func (s *spread) lost(ctx context.Context, e ending) error {
	switch {
	case e.locating:
		if e.err != nil && s.round == 0 && s.primary == nil && s.ctx.Err() == nil {
			s.nextRound(false) // hbase:meta cannot be read just now
		} else {
			s.located(e.found)
		}
	case e.isPrimary():
		s.primary = e.err
		// A primary that has had its attempts, or for which too many wait
		// already, is no reason for the others not to answer.
		story, ok := errors.AsType[*retry.Error](e.err)
		over := ok && story.Reason == retry.TooManyAttempts || turnedAway(e.err)
		if !over || !s.call.Timeline {
			if s.hedged && s.running > 0 && over {
				return nil // the hedge may still answer
			}
			return e.err
		}
		if s.stage == idle && s.round == 0 {
			s.locate()
		}
	case !e.decision.Retriable && s.ctx.Err() == nil && ctx.Err() == nil:
		return e.err
	case e.replica != nil && len(s.queue) > 0:
		s.askNext()
	case e.replica != nil && s.replicas == 0 && s.primary == nil:
		s.nextRound(false)
	}
	if s.primary != nil && s.running == 0 {
		return s.primary
	}
	return nil
}

// win hands the answer to the caller.
func (s *spread) win(e ending) (Answer, error) {
	if r, ok := s.call.Result.(interface{ Reset() }); ok {
		r.Reset()
	}
	if s.call.Result != nil {
		if err := s.call.Result.UnmarshalVT(e.raw); err != nil {
			return Answer{}, &wire.FormatError{What: s.call.Method + " answer", Detail: err.Error()}
		}
	}
	switch {
	case e.replica != nil:
		s.core.replicaAnswers.Add(1)
	case e.spare:
		s.core.hedges.won.Add(1)
	}
	return e.answer, nil
}

// leave ends the losers and waits for them: they notice at once. If their
// answers leave something behind on a server, they are let go on for a while,
// without anything that is the caller's, so that it can be cleaned up.
func (s *spread) leave() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if s.call.Abandoned == nil || s.ctx.Err() != nil {
		s.cancel()
		for ; s.running > 0; s.running-- {
			<-s.ends
		}
		return
	}
	if s.running == 0 {
		s.cancel()
		return
	}
	abandoned, n := s.call.Abandoned, s.running
	s.running = 0
	clean := func() {
		stop := time.AfterFunc(s.core.cfg.RPCTimeout, s.cancel)
		defer stop.Stop()
		defer s.cancel()
		for range n {
			if e := <-s.ends; e.err == nil && !e.locating {
				abandoned(e.answer, e.raw)
			}
		}
	}
	if !s.core.spawn(clean) {
		s.cancel()
		for range n {
			<-s.ends
		}
	}
}

// errOver ends places that are asked after the read has its answer.
var errOver = errors.New("answered by somebody else")

// render makes the request for one place, all of it, so that nothing of the
// caller's is looked at later.
func (s *spread) render(region []byte, attempt int) (wire.Marshaler, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return rendered{err: errOver}, nil
	}
	return renderCall(s.call, region, attempt)
}

// rendered is a message that has been encoded already.
type rendered struct {
	b   []byte
	err error
}

// SizeVT gives the size.
func (m rendered) SizeVT() int { return len(m.b) }

// MarshalToSizedBufferVT copies it to the end of the buffer.
func (m rendered) MarshalToSizedBufferVT(b []byte) (int, error) {
	return copy(b[len(b)-len(m.b):], m.b), m.err
}

// unread is an answer that is read by whoever wants it. The bytes are a call's
// own.
type unread struct{ b []byte }

// UnmarshalVT keeps the bytes.
func (u *unread) UnmarshalVT(b []byte) error { u.b = b; return nil }

// Reset forgets them.
func (u *unread) Reset() { u.b = nil }

// start asks in one place, on a goroutine of its own; false if the Core is
// closed.
func (s *spread) start(p place) bool {
	var answer unread
	call := RegionCall{
		Table: s.call.Table, Row: slices.Clone(s.call.Row), Before: s.call.Before, Service: s.call.Service, Method: s.call.Method,
		Param: s.render, Result: &answer, Idempotency: s.call.Idempotency, Priority: s.call.Priority, Timeout: s.call.Timeout,
		Op: s.call.Op, watched: true,
	}
	r := s.route
	ok := s.core.spawn(func() {
		e := ending{place: p}
		switch {
		case p.locating:
			e.found, e.err = s.core.routes.LocateReplicas(s.ctx, r)
		case p.isPrimary():
			call.trouble = s.troubled
			e.answer, e.err = s.core.CallRegion(s.ctx, &call)
		default:
			e.answer, e.decision, e.err = s.core.attempt(s.ctx, r, p.replica, p.spare, &call)
		}
		e.raw = answer.b
		s.ends <- e
	})
	if ok && !p.locating {
		if s.asked++; s.asked == 2 {
			s.second = time.Since(s.began)
		}
	}
	if ok {
		s.running++
		if p.replica != nil {
			s.replicas++
		}
	}
	return ok
}

// troubled hears that the primary does not answer straight away; false ends it.
func (s *spread) troubled() bool {
	select {
	case s.trouble <- struct{}{}:
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over
}

// order puts the replicas most likely to answer soon first: those whose servers
// answer at all, then the faster ones. Equals take turns.
func (c *Core) order(found []route.Replica) []route.Replica {
	c.servers.Observe()
	list := slices.Clone(found)
	first := int(c.cfg.Rand() * float64(len(list)))
	list = append(list[first:], list[:first]...)
	rank := func(r route.Replica) int {
		s := r.Server
		n := int(min(s.State(), health.Down)) * 100
		if s.Slow() {
			n += 50
		}
		for d := s.Latency() / time.Millisecond; d > 0; d /= 2 {
			n++
		}
		return n
	}
	slices.SortStableFunc(list, func(a, b route.Replica) int { return cmp.Compare(rank(a), rank(b)) })
	return list
}

// NoReplicaError says that hbase:meta names no server for a replica.
type NoReplicaError struct {
	Region  string // encoded name of the primary
	Replica int
	// Tries counts the readings of hbase:meta.
	Tries int
}

func (e *NoReplicaError) Error() string {
	return fmt.Sprintf("hbase:meta names no server for replica %d of region %s", e.Replica, e.Region)
}

// maxReplicaTries is how often a replica is looked for that hbase:meta does not
// know: it may be on its way, or the table may have none. About three seconds.
const maxReplicaTries = 10

// LocateFailed says that nothing was sent.
func (e *NoReplicaError) LocateFailed() (final bool, retryAfter time.Duration) {
	return e.Tries >= maxReplicaTries, 0
}

// callPinned performs a call on one replica of the region, wherever that goes.
func (c *Core) callPinned(ctx context.Context, call *RegionCall) (_ Answer, err error) {
	var o op
	o.start(c, ctx, call.config())
	defer func() { o.end(err) }()
	q := call.request()
	missing := 0
	for {
		var cells []byte
		o.replica = nil
		err := o.locate(call.Table, call.Row, call.Before)
		r := o.route
		if err == nil {
			err = o.pin(r, call.Replica, &missing)
		}
		if err == nil {
			cells, err = o.send(&q)
		}
		if err == nil {
			c.replicaReads.Add(1)
			c.replicaAnswers.Add(1)
			o.budget.Succeeded()
			return Answer{Route: r, Replica: o.replica, Cells: cells, Attempts: o.budget.Attempts()}, nil
		}
		if err = o.next(err); err != nil {
			return Answer{Attempts: o.budget.Attempts()}, err
		}
	}
}

// pin makes a replica of the region the target.
func (o *op) pin(r *route.Route, id int, missing *int) error {
	o.waited = true
	o.route, o.srv, o.conn, o.sent = nil, nil, nil, false
	list, err := o.core.routes.LocateReplicas(o.waiting(), r)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].ID == id {
			o.replica, o.srv = &list[i], list[i].Server
			*missing = 0
			return nil
		}
	}
	if *missing++; *missing > 1 {
		if _, err := o.core.routes.Refresh(o.waiting(), r); err != nil {
			return err
		}
	}
	return &NoReplicaError{Region: r.Encoded(), Replica: id, Tries: *missing}
}
