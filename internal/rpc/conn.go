package rpc

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Conn is one connection, safe for concurrent use. See the package comment.
type Conn struct {
	addr string
	settings
	log    *slog.Logger
	nc     net.Conn // what Close closes
	stream net.Conn // nc, or TLS or SASL over it
	reader *bufio.Reader
	start  time.Time
	idle   time.Duration

	w     writer
	token token // who reads
	// peek looks for bytes that have come, without taking them or waiting; an
	// error if there will be none. nil if the stream cannot.
	peek  func() (int, error)
	calls calls
	pool  sync.Pool // *pending

	// lastReply and lastUse count nanoseconds since start; 0 = never.
	lastReply atomic.Int64
	lastHeard atomic.Int64
	lastUse   atomic.Int64

	idleTimer  *time.Timer
	goroutines sync.WaitGroup
	done       chan struct{} // closed once err is set
	err        error         // written before done is closed
}

// pending is a call on its way.
type pending struct {
	// done gets one value when the call is ended by someone else than Do.
	// What is below is written before that.
	done chan struct{}

	id uint32 // under calls.mu

	yield   bool // may be interrupted
	borrows bool // its Result is a Borrower
	// timeout counts from began; timer is made and armed only by who has to
	// wait, and kept for the next call.
	timeout time.Duration
	began   time.Time
	timer   *time.Timer
	armed   bool

	// start and end are the request's place in the byte stream; under writer.mu.
	start, end uint64

	heard     int64 // when the answer came, as lastHeard; 0 if it did not
	exception *wire.RemoteError
	result    []byte
	cells     []byte
	loan      *Loan // the memory of the two
	err       error
	sent      bool // with err
}

// Call is one request and its answer. It must not be shared or changed while
// Do runs.
type Call struct {
	// Method is the RPC's name, such as Get.
	Method string
	// Param is the request message. Required.
	Param wire.Marshaler
	// Result, if not nil, receives the answer's message; it is merged, so pass
	// a fresh one. If it is a CellsReader, it gets the cells after that; if it
	// is a Borrower, what it gets may be lent.
	Result wire.Unmarshaler
	// Cells is a cell block in the connection's codec, not compressed.
	Cells []byte
	// Priority as HBase numbers it: 0 = the server decides, 200 = system table.
	Priority uint32
	// Attributes of the call; servers since 2.6 log them.
	Attributes []*pb.NameBytesPair
	// Trace is passed on to the server.
	Trace *pb.RPCTInfo
	// Timeout bounds the call besides the context, and costs less than a
	// context of one's own; 0 = none. It ends with context.DeadlineExceeded.
	Timeout time.Duration
	// Began is when Timeout began to count, for callers who have looked at the
	// clock anyway; the zero time means: when Do is called.
	Began time.Time
	// Yield lets Interrupt end the call.
	Yield bool
	// Watched says that the context may be canceled at any moment, and that Do
	// is to return at once then: a caller who reads its answer itself would
	// notice a few milliseconds late.
	Watched bool

	// ResultCells is the answer's cell block, decompressed, in the connection's
	// codec. It belongs to the caller, unless it was lent to the Result.
	ResultCells []byte
	// Sent says, whatever Do returned, whether the server may have got the
	// whole request.
	Sent bool
	// Received counts the bytes of the answer's message and cells as they
	// travelled, 0 if none came.
	Received int
	// Answered is when the answer's last bytes were read; the zero time if none
	// came.
	Answered time.Time
}

// Do sends a request and waits for its answer. Errors are
//
//   - a *wire.RemoteError: the server's exception,
//   - the context's cause, if ctx ended first,
//   - a *ConnError: the connection failed, or the answer made no sense,
//   - any other error: the request could not be encoded; nothing was sent.
//
// The deadline of ctx, in milliseconds, goes along as the request's timeout.
func (c *Conn) Do(ctx context.Context, call *Call) error {
	call.Sent, call.ResultCells, call.Received, call.Answered = false, nil, 0, time.Time{}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	req := wire.Request{
		Method: call.Method, Param: call.Param, Priority: call.Priority, Cells: call.Cells,
		Attributes: call.Attributes, Trace: call.Trace,
	}
	mayLead := !call.Watched
	deadline, bounded := ctx.Deadline()
	left := call.Timeout
	if bounded {
		if until := time.Until(deadline); left <= 0 || until < left {
			left = until
		}
	}
	if bounded || call.Timeout > 0 {
		if left <= 0 {
			return context.DeadlineExceeded
		}
		mayLead = mayLead && left > leadMargin
		req.Timeout = uint32(min(max(left.Milliseconds(), 1), math.MaxInt32))
	}
	if len(call.Cells) > 0 {
		if c.codec == wire.CodecNone {
			return errors.New("cells for a connection without a cell codec")
		}
		if c.compress.Kind() != wire.NoCompression {
			var err error
			if req.Cells, err = c.compress.Compress(nil, call.Cells); err != nil {
				return err
			}
		}
	}

	p := c.newPending()
	p.yield = call.Yield
	_, p.borrows = call.Result.(Borrower)
	if p.timeout = call.Timeout; p.timeout > 0 {
		if p.began = call.Began; p.began.IsZero() {
			p.began = time.Now()
		}
		c.look(p.began.Sub(c.start))
	}
	if err := c.send(ctx, p, &req); err != nil {
		c.release(p) // send ended the call by itself: nobody else knows p
		return err
	}
	if c.seeRead(p, mayLead) {
		return c.finish(p, call)
	}
	if len(p.done) > 0 { // no need to look at the clock
		<-p.done
		return c.finish(p, call)
	}
	select {
	case <-p.done:
		return c.finish(p, call)
	case <-ctx.Done():
	case <-p.expired():
	}
	if c.calls.forget(p) {
		call.Sent = !c.w.withdraw(p)
		c.touch()
		c.release(p)
		return givenUp(ctx)
	}
	// Someone took it out of the calls and is about to end it.
	<-p.done
	return c.finish(p, call)
}

// finish hands the outcome to the caller.
func (c *Conn) finish(p *pending, call *Call) error {
	exception, result, cells, loan, err := p.exception, p.result, p.cells, p.loan, p.err
	call.Sent = err == nil || p.sent
	call.Received = len(result) + len(cells)
	if p.heard > 0 {
		call.Answered = c.start.Add(time.Duration(p.heard))
	}
	c.release(p)
	if err == nil && exception != nil {
		err = exception
	}
	if err == nil && len(cells) > 0 {
		if call.ResultCells, err = c.compress.Decompress(nil, cells); err != nil {
			err = c.Nonsense(err)
		}
	}
	if err != nil {
		loan.Return()
		return err
	}
	if loan != nil {
		call.Result.(Borrower).Borrow(loan)
	}
	return c.Decode(call, result)
}

// Decode reads an answer's message into call.Result, and then call.ResultCells
// if that is a CellsReader. The error is Nonsense.
func (c *Conn) Decode(call *Call, message []byte) error {
	if call.Result != nil {
		if err := call.Result.UnmarshalVT(message); err != nil {
			return c.Nonsense(&wire.FormatError{What: call.Method + " answer", Detail: err.Error()})
		}
	}
	if r, ok := call.Result.(CellsReader); ok {
		if err := r.ReadCells(call.ResultCells); err != nil {
			return c.Nonsense(err)
		}
	}
	return nil
}

// CellsReader is a Result that reads the cells beside its message, so that
// cells which make no sense are what a message is that makes none: an answer
// that did not come.
type CellsReader interface{ ReadCells(block []byte) error }

// Nonsense reports an answer that cannot be read. The frames around it are
// sound, so other calls go on.
func (c *Conn) Nonsense(err error) error { return &ConnError{Addr: c.addr, Cause: err, Sent: true} }

func (c *Conn) newPending() *pending {
	if p, ok := c.pool.Get().(*pending); ok {
		return p
	}
	return &pending{done: make(chan struct{}, 1)}
}

// release gives a call back that ended and whose done is empty.
func (c *Conn) release(p *pending) {
	if p.armed {
		p.timer.Stop()
	}
	*p = pending{done: p.done, timer: p.timer}
	c.pool.Put(p)
}

// Addr is the server's host:port, as configured.
func (c *Conn) Addr() string { return c.addr }

// Codec is how cells of this connection are laid out.
func (c *Conn) Codec() wire.Codec { return c.codec }

// InFlight is the number of calls waiting for an answer.
func (c *Conn) InFlight() int { return int(c.calls.count.Load()) }

// LastReply is when the server last answered anything, or the zero time.
func (c *Conn) LastReply() time.Time {
	if at := c.lastReply.Load(); at > 0 {
		return c.start.Add(time.Duration(at))
	}
	return time.Time{}
}

// Done is closed when the connection has failed or was closed.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection failed, a *ConnError; nil while it lives.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Close ends the connection and all its calls, which return a *ConnError with
// ErrClosed, and waits until its goroutines are gone.
func (c *Conn) Close() error {
	c.fail(ErrClosed, false)
	c.goroutines.Wait()
	return nil
}

// touch notes that the connection is in use.
func (c *Conn) touch() { c.lastUse.Store(int64(time.Since(c.start))) }

// closeIfIdle runs from the idle timer.
func (c *Conn) closeIfIdle() {
	quiet := time.Since(c.start) - time.Duration(c.lastUse.Load())
	wait := c.idle - quiet
	if wait <= 0 {
		if c.fail(ErrIdle, true) {
			return
		}
		wait = c.idle // calls are under way; each renews lastUse when it ends
	}
	select {
	case <-c.done:
	default:
		c.idleTimer.Reset(wait)
	}
}

// fail ends the connection with its one cause and every call with it. With
// ifIdle it does so only if there are no calls. It says whether the connection
// is over.
func (c *Conn) fail(cause error, ifIdle bool) bool {
	c.w.mu.Lock()
	ended, over, ok := c.calls.end(ifIdle)
	if !ok {
		c.w.mu.Unlock()
		return over
	}
	reached := c.w.close()
	c.err = &ConnError{Addr: c.addr, Cause: cause}
	close(c.done)
	c.w.mu.Unlock()

	if c.idleTimer != nil {
		c.idleTimer.Stop()
	}
	if err := c.nc.Close(); err != nil && c.log != nil && !errors.Is(err, net.ErrClosed) {
		c.log.Debug("close connection", "addr", c.addr, "err", err)
	}
	if c.log != nil {
		c.log.Debug("connection over", "addr", c.addr, "cause", cause, "calls", len(ended))
	}
	var refused *wire.RemoteError
	if c.lastReply.Load() == 0 && errors.As(cause, &refused) {
		// The server refused the connection header, so it never looked at a
		// request.
		reached = 0
	}
	sent := &ConnError{Addr: c.addr, Cause: cause, Sent: true}
	for _, p := range ended {
		p.err, p.sent = c.err, p.end <= reached
		if p.sent {
			p.err = sent
		}
		p.done <- struct{}{}
	}
	return true
}

// readError words the end of the stream.
func readError(err error) error {
	switch {
	case err == io.EOF:
		return ErrServerClosed
	case err == io.ErrUnexpectedEOF:
		return &closedWithinError{}
	}
	return err
}

// closedWithinError is ErrServerClosed in the middle of an answer.
type closedWithinError struct{}

func (*closedWithinError) Error() string { return "server closed the connection within an answer" }
func (*closedWithinError) Unwrap() error { return ErrServerClosed }
