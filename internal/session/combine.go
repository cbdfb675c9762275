package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// combiner makes one request of the Gets that queue for one connection.
//
// A Get by itself costs client and server several times the reading of its row:
// a frame, a handler, a wake-up on both sides. So while others are out, Gets
// queue, and go together as one Multi when one of those returns, or when there
// are as many as shall go together. Nobody waits on purpose: with fewer than
// combineDepth requests out, a Get goes at once and as a Get.
//
// The server works a Multi off one action after another, where Gets of their
// own would share its handlers: good where rows are in its memory, bad where
// each costs it a look at a disk. So how many go together, and whether any do,
// is tried out: see combinePace. And nobody is to wait for another's trouble,
// a region that cannot answer just now or a block that has to come from far:
// who has queued for combineWait goes whatever is out, and a Multi that takes
// much longer than usual is dissolved, its Gets asked for one by one.
//
// Everything above knows nothing of it: every Get keeps its own deadline, its
// own place in the server's line, its own answer or exception.
type combiner struct {
	cn   *conn
	pace combinePace
	pool sync.Pool // *combined

	mu      sync.Mutex
	out     int // requests on their way
	queue   []*combined
	since   time.Time // the first of the queue has been there
	running []*combinedRun
	spare   [][]*combined // slices to use again
	// clock runs while there is something to look after.
	clock   *time.Timer
	ticking bool
	credit  int // Gets that may be asked for again, in twentieths
}

const (
	// combineDepth is how many requests may be out before Gets queue. With one,
	// the server has nothing to do while an answer travels.
	combineDepth = 2
	// combineWait is how long a Get queues at most, give or take as long again.
	combineWait = 2 * time.Millisecond
	// A Multi is dissolved after combineTooLong, or after so many times what
	// its Gets usually take.
	combineTooLong, combineTooLongTimes = 50 * time.Millisecond, 4
	// Dissolving doubles the work, so it is for the odd one out and not for a
	// server that has stopped: one Get in so many may be asked for again, and
	// no more than combineCredit at one time.
	combineAgain, combineCredit = 20, 128
)

// combined is one Get among others.
type combined struct {
	request []byte // the GetRequest, and its parts
	region  []byte
	get     []byte
	index   int // among the actions of its region
	// until is when its caller gives up; zero: never.
	until time.Time
	yield bool

	// state is under combiner.mu.
	state combinedState

	// done gets one value once what is below is written.
	done chan struct{}

	alone    bool // the caller is to send the request himself: he has a place
	err      error
	sent     bool
	answered time.Time
	message  []byte // a GetResponse
	cells    []byte // aliases the whole answer's block

	timer *time.Timer
}

type combinedState uint8

const (
	combinedQueued combinedState = iota
	combinedSent                 // in a Multi
	combinedAlone                // told to go alone
	combinedLeft                 // in a Multi, but nobody waits
)

// combinedRun is a Multi on its way.
type combinedRun struct {
	began time.Time

	mu      sync.Mutex // held while outcomes are given out
	request combinedRequest
}

// do is rpc.Conn.Do for a Get, whose Param is a GetRequest.
func (g *combiner) do(ctx context.Context, call *rpc.Call) error {
	goes, pressed := g.enter(nil)
	if pressed {
		// Only those are compared who would go with others if others did.
		defer func() {
			if !call.Answered.IsZero() {
				g.pace.took(call.Began, call.Answered)
			}
		}()
	}
	if goes {
		return g.goAlone(ctx, call)
	}
	call.Sent, call.ResultCells, call.Received, call.Answered = false, nil, 0, time.Time{}
	m, ok := g.pool.Get().(*combined)
	if !ok {
		m = &combined{done: make(chan struct{}, 1)}
	}
	if err := m.fill(ctx, call); err != nil {
		g.free(m)
		return err
	}
	if goes, _ = g.enter(m); goes {
		g.free(m)
		return g.goAlone(ctx, call)
	}
	var expired <-chan time.Time
	if !m.until.IsZero() {
		left := time.Until(m.until)
		if m.timer == nil {
			m.timer = time.NewTimer(left)
		} else {
			m.timer.Reset(left)
		}
		expired = m.timer.C
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		return g.leave(ctx, m, call)
	case <-expired:
		return g.leave(ctx, m, call)
	}
	if m.alone {
		g.free(m)
		return g.goAlone(ctx, call)
	}
	return g.finish(m, call)
}

// goAlone sends the Get as what it is. The caller has a place.
func (g *combiner) goAlone(ctx context.Context, call *rpc.Call) error {
	defer g.returned()
	return g.cn.Do(ctx, call)
}

// enter takes a place for one request, if there is one to be had; if not, m
// queues, unless it is nil. pressed says that others are out already.
func (g *combiner) enter(m *combined) (goes, pressed bool) {
	most := g.pace.most()
	g.mu.Lock()
	pressed = g.out >= g.pace.depth()
	if most == 1 || !pressed && len(g.queue) == 0 {
		g.out++
		g.mu.Unlock()
		return true, pressed
	}
	if m == nil {
		g.mu.Unlock()
		return false, true
	}
	if len(g.queue) == 0 {
		if n := len(g.spare); n > 0 {
			g.queue, g.spare = g.spare[n-1], g.spare[:n-1]
		}
		g.since = time.Now()
		g.tick()
	}
	m.state = combinedQueued
	g.queue = append(g.queue, m)
	batch := g.take(false)
	g.mu.Unlock()
	g.launch(batch)
	return false, true
}

// returned gives a place back, to those who queue if there are any.
func (g *combiner) returned() {
	g.mu.Lock()
	g.out--
	g.credit = min(g.credit+1, combineCredit*combineAgain)
	batch := g.take(false)
	g.mu.Unlock()
	g.launch(batch)
}

// take takes out of the queue who may go now, and gives them a place, together.
// Under mu.
func (g *combiner) take(hurry bool) []*combined {
	batch := g.queue
	if len(batch) == 0 || !hurry && g.out >= g.pace.depth() && len(batch) < g.pace.most() {
		return nil
	}
	g.queue = nil
	g.out++
	state := combinedSent
	if len(batch) == 1 {
		state = combinedAlone
	}
	for _, m := range batch {
		m.state = state
	}
	return batch
}

// launch sends a batch on its way, on a goroutine of its own: it belongs to no
// caller.
func (g *combiner) launch(batch []*combined) {
	switch len(batch) {
	case 0:
	case 1:
		m := batch[0]
		g.recycle(batch)
		m.alone = true
		m.done <- struct{}{}
	default:
		if !g.cn.peer.core.spawn(func() { g.run(batch) }) {
			for _, m := range batch {
				m.end(&rpc.ConnError{Addr: g.cn.Addr(), Cause: ErrClosed}, false)
			}
			g.returned()
		}
	}
}

func (g *combiner) recycle(batch []*combined) {
	clear(batch)
	g.mu.Lock()
	if len(g.spare) < combineDepth {
		g.spare = append(g.spare, batch[:0])
	}
	g.mu.Unlock()
}

// run sends a batch, and then what has queued meanwhile.
func (g *combiner) run(batch []*combined) {
	for len(batch) > 1 {
		n := len(batch)
		g.send(batch)
		g.recycle(batch)
		g.mu.Lock()
		g.out--
		g.credit = min(g.credit+n, combineCredit*combineAgain)
		batch = g.take(false)
		g.mu.Unlock()
	}
	g.launch(batch)
}

// send sends a batch and gives everybody in it their due.
func (g *combiner) send(batch []*combined) {
	r := &combinedRun{began: time.Now()}
	r.request.build(batch)
	var answer rawAnswer
	call := rpc.Call{Method: "Multi", Param: &r.request, Result: &answer, Began: r.began, Yield: true}
	bounded := true
	for _, m := range batch {
		call.Yield = call.Yield && m.yield
		bounded = bounded && !m.until.IsZero()
		call.Timeout = max(call.Timeout, m.until.Sub(r.began), 1)
	}
	if !bounded {
		call.Timeout = 0
	}
	g.mu.Lock()
	g.running = append(g.running, r)
	g.tick()
	g.mu.Unlock()
	err := g.cn.Do(g.cn.peer.core.ctx, &call)
	g.mu.Lock()
	if i := slices.Index(g.running, r); i >= 0 {
		g.running = slices.Delete(g.running, i, i+1)
	}
	g.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		if err = r.request.answers(answer, call.ResultCells, call.Answered); err == nil {
			return
		}
		err = g.cn.Nonsense(err)
	}
	if excluding(err) {
		r.dissolve(g)
		return
	}
	for _, m := range r.request.members {
		if m != nil {
			m.answered = call.Answered
			m.end(err, call.Sent)
		}
	}
}

// excluding says of the exception to a whole Multi that it may be about one Get
// among the others, which is then to be found by asking for each by itself.
func excluding(err error) bool {
	remote, ok := errors.AsType[*wire.RemoteError](err)
	return ok && !remote.Overloaded && remote.Class != wire.ClassServerTooBusy && !remote.Fatal()
}

// dissolve sends everybody who still waits on their own way. Under r.mu.
func (r *combinedRun) dissolve(g *combiner) {
	for i, m := range r.request.members {
		if m == nil {
			continue
		}
		r.request.members[i] = nil
		g.mu.Lock()
		stays := m.state == combinedSent
		if stays {
			m.state = combinedAlone
			g.out++
		}
		g.mu.Unlock()
		if stays {
			m.alone = true
			m.done <- struct{}{}
		}
	}
}

// tick sees to it that somebody looks after the queue and the requests. Under
// mu.
func (g *combiner) tick() {
	if g.ticking {
		return
	}
	g.ticking = true
	if g.clock == nil {
		g.clock = time.AfterFunc(combineWait, g.look)
	} else {
		g.clock.Reset(combineWait)
	}
}

// look lets go who has queued for long, and dissolves what takes too long.
func (g *combiner) look() {
	now := time.Now()
	tooLong := max(combineTooLong, combineTooLongTimes*g.pace.mean())
	var batch []*combined
	var late []*combinedRun
	g.mu.Lock()
	if len(g.queue) > 0 && now.Sub(g.since) >= combineWait {
		batch = g.take(true)
	}
	for _, r := range g.running {
		if n := len(r.request.members); now.Sub(r.began) > tooLong && g.credit >= n*combineAgain {
			g.credit -= n * combineAgain
			late = append(late, r)
		}
	}
	for _, r := range late {
		g.running = slices.Delete(g.running, slices.Index(g.running, r), slices.Index(g.running, r)+1)
	}
	g.ticking = false
	if len(g.queue) > 0 || len(g.running) > 0 {
		g.tick()
	}
	g.mu.Unlock()
	g.launch(batch)
	for _, r := range late {
		r.mu.Lock()
		r.dissolve(g)
		r.mu.Unlock()
	}
}

// leave is the end of a caller's patience.
func (g *combiner) leave(ctx context.Context, m *combined, call *rpc.Call) error {
	g.mu.Lock()
	state := m.state
	switch state {
	case combinedQueued:
		i := slices.Index(g.queue, m)
		g.queue = slices.Delete(g.queue, i, i+1)
	case combinedSent:
		m.state = combinedLeft
	}
	g.mu.Unlock()
	switch state {
	case combinedQueued:
		g.free(m)
	case combinedAlone:
		<-m.done
		g.free(m)
		g.returned()
	case combinedSent:
		call.Sent = true // and m is left to those who write to it
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return context.DeadlineExceeded
}

// finish hands the outcome to the caller, and m to the next.
func (g *combiner) finish(m *combined, call *rpc.Call) error {
	call.Sent, call.Answered = m.sent, m.answered
	call.Received = len(m.message) + len(m.cells)
	err := m.err
	if err == nil {
		// The cells are the caller's to keep, and not to keep all the others'.
		call.ResultCells = append([]byte(nil), m.cells...)
		err = g.cn.Decode(call, m.message)
	}
	g.free(m)
	return err
}

// fill takes from the call what outlives its caller's patience.
func (m *combined) fill(ctx context.Context, call *rpc.Call) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n := call.Param.SizeVT()
	m.request = slices.Grow(m.request[:0], n)[:n]
	if _, err := call.Param.MarshalToSizedBufferVT(m.request); err != nil {
		return err
	}
	if err := m.split(); err != nil {
		return err
	}
	m.yield = call.Yield
	if call.Timeout > 0 {
		m.until = call.Began.Add(call.Timeout)
	}
	if d, ok := ctx.Deadline(); ok && (m.until.IsZero() || d.Before(m.until)) {
		m.until = d
	}
	return nil
}

// end is the outcome of a Get without an answer.
func (m *combined) end(err error, sent bool) {
	m.err, m.sent = err, sent
	m.done <- struct{}{}
}

// keepRequest is the largest buffer that is kept for the next Get.
const keepRequest = 4 << 10

// free gives m back, which nobody else knows any more.
func (g *combiner) free(m *combined) {
	if m.timer != nil {
		m.timer.Stop()
	}
	request, message := m.request[:0], m.message[:0]
	if cap(request) > keepRequest || cap(message) > keepRequest {
		request, message = nil, nil
	}
	*m = combined{request: request, message: message, done: m.done, timer: m.timer}
	g.pool.Put(m)
}
