package rpcserver

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// readBuffer is the size of a connection's read buffer. Frames that fit are
// parsed where they are.
const readBuffer = 16 << 10

// maxHeld is how many answers wait for one more at most: more together would save
// little, and keep the client from working meanwhile.
const maxHeld = 7

// minTimeout is the least a request's timeout counts as, in HBase too
// (hbase.ipc.min.client.request.timeout).
const minTimeout = 20 * time.Millisecond

// Conn is one client connection.
type Conn struct {
	server *Server
	nc     net.Conn
	id     uint64
	remote string
	ctx    context.Context
	cancel context.CancelFunc
	out    writer
	calls  atomic.Int64
	gone   atomic.Bool

	// Set once the connection header was read, before the first call.
	header     atomic.Pointer[header]
	codec      wire.Codec
	compressor *wire.Compressor

	// inline is the number of the call that runs on the reading goroutine; see
	// watchdog. r, inlines and wary belong to whoever has the role of reader.
	inline  atomic.Uint64
	r       *bufio.Reader
	inlines uint64
	frame   int // length of the frame of the call that runs inline
	held    int // answers that wait for those of the calls behind them
	wary    int // so many more calls are not run inline
}

// header is what the connection header said.
type header struct {
	service  *Service
	user     string
	realUser string
	version  Version
}

func newConn(s *Server, nc net.Conn) *Conn {
	c := &Conn{server: s, nc: nc, r: bufio.NewReaderSize(nc, handshakeBuffer)}
	if a := nc.RemoteAddr(); a != nil {
		c.remote = a.String()
	}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.out.conn = c
	return c
}

// Remote is the client's address.
func (c *Conn) Remote() string { return c.remote }

// User is the effective user the client named, "" if none.
func (c *Conn) User() string { return c.header.Load().user }

// RealUser is who acts in the effective user's name, "" if it is the same.
func (c *Conn) RealUser() string { return c.header.Load().realUser }

// Version is the client's; zero if it does not tell.
func (c *Conn) Version() Version { return c.header.Load().version }

// CellBlocks says whether answers may carry cell blocks.
func (c *Conn) CellBlocks() bool { return c.codec != wire.CodecNone }

// close ends the connection; what was not written is lost.
func (c *Conn) close() {
	if c.gone.CompareAndSwap(false, true) {
		c.cancel()
		c.out.close()
		c.nc.Close()
		c.server.forget(c)
	}
}

// reset ends the connection with an RST, as a dying process does.
func (c *Conn) reset() {
	if t, ok := c.nc.(interface{ SetLinger(int) error }); ok {
		// An error here means that the connection is closed already.
		_ = t.SetLinger(0)
	}
	// The socket first: once the handlers hear that the connection has ended,
	// what they answer must find it gone. Closing it again is harmless.
	_ = c.nc.Close()
	c.close()
}

// start is the connection's first goroutine.
func (c *Conn) start() {
	if err := c.handshake(); err != nil {
		var x *wire.RemoteError
		if errors.As(err, &x) {
			c.refuse(wire.PreambleCallID, x)
		}
		c.server.log.Debug("connection refused", "remote", c.remote, "err", err)
		c.close()
		return
	}
	c.read()
}

// refuse answers and closes. The peer may have sent more than we read; closing
// then would reset the connection under the answer, so we end our half first
// and read on for a while.
func (c *Conn) refuse(callID uint32, x *wire.RemoteError) {
	c.out.send(wire.AppendException(c.server.frames.get(0), callID, x))
	c.linger()
}

func (c *Conn) linger() {
	ctx, cancel := context.WithTimeout(c.ctx, time.Second)
	defer cancel()
	if c.out.flushed(ctx) != nil {
		c.close()
		return
	}
	if t, ok := c.nc.(interface{ CloseWrite() error }); ok && t.CloseWrite() == nil {
		if c.nc.SetReadDeadline(time.Now().Add(time.Second)) == nil {
			_, _ = io.CopyN(io.Discard, c.r, 1<<20)
		}
	}
	c.close()
}

// takeOver makes the calling goroutine the reader.
func (c *Conn) takeOver() {
	c.release()
	// The call running inline still uses the old buffer; what is behind it there
	// is ours.
	behind, err := c.r.Peek(c.r.Buffered())
	if err != nil {
		c.close()
		return
	}
	if err := c.readFrom(behind[c.frame:]); err != nil {
		c.close()
		return
	}
	c.wary = waryCalls
	c.read()
}

// release writes the answers that are held.
func (c *Conn) release() {
	if c.held > 0 {
		c.held = 0
		c.out.flush()
	}
}

// another says whether a whole frame more is in the read buffer behind the first
// n bytes.
func (c *Conn) another(n int) bool {
	const head = 4
	if c.r.Buffered() < n+head {
		return false
	}
	b, err := c.r.Peek(n + head)
	if err != nil {
		return false
	}
	size := binary.BigEndian.Uint32(b[n:])
	return uint64(c.r.Buffered()) >= uint64(n+head)+uint64(size)
}

// read reads and serves calls until the connection ends or the role of reader
// was taken away.
func (c *Conn) read() {
	s := c.server
	for {
		if !c.another(0) {
			c.release()
		}
		call, err := c.next()
		if err != nil {
			c.release()
			if !errors.Is(err, io.EOF) && c.ctx.Err() == nil {
				s.log.Debug("connection ended", "remote", c.remote, "err", err)
			}
			c.close()
			return
		}
		if call == nil {
			continue // answered or refused already
		}
		if !call.inlineNow {
			s.workers.serve(call)
			continue
		}
		if !call.method.brief {
			c.release()
		}
		c.inlines++
		n := c.inlines
		c.frame = call.frame
		if call.hold = c.another(call.frame) && c.held < maxHeld; call.hold {
			c.held++
		} else {
			c.held = 0 // its own answer takes the others along
		}
		// From here until the swap back, the role of reader may be taken away:
		// nothing that belongs to it may be touched.
		c.inline.Store(n)
		s.watch()
		call.serve()
		if !c.inline.CompareAndSwap(n, 0) {
			// Who has the role now has written what was held before.
			c.out.flush()
			return
		}
		if call.frame > 0 {
			if _, err := c.r.Discard(call.frame); err != nil {
				c.close()
				return
			}
		}
	}
}

// next reads a frame and makes a call of it. It gives nil, nil if the frame
// was dealt with on the spot, an error if the connection is to end.
func (c *Conn) next() (*Call, error) {
	s := c.server
	if !c.out.awaitRoom(s.cfg.MaxUnread) {
		return nil, net.ErrClosed
	}
	total, err := wire.ReadTotal(c.r, s.cfg.MaxFrame)
	if err != nil {
		var big *wire.TooLargeError
		if errors.As(err, &big) {
			return nil, c.tooBig(big)
		}
		return nil, err
	}
	if !s.gate(c) {
		return nil, net.ErrClosed
	}
	var frame []byte
	alone := false
	partial := c.r.Buffered() < total
	if partial {
		if err := c.begun(total); err != nil {
			return nil, err
		}
	}
	if total <= c.r.Size() {
		if frame, err = c.r.Peek(total); err != nil {
			return nil, err
		}
		alone = c.r.Buffered() == total
	} else if frame, err = c.readLarge(total); err != nil {
		return nil, err
	}
	if partial {
		if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
			return nil, err
		}
	}
	inBuffer := total <= c.r.Size()

	call := &Call{Conn: c, Received: time.Now(), size: total}
	var req wire.ReceivedRequest
	err = wire.DecodeRequest(frame, &req)
	call.ID = req.CallID
	if err == nil && !req.HasParam {
		err = fmt.Errorf("call without a param message")
	}
	if err == nil && len(req.Cells) > 0 && c.codec == wire.CodecNone {
		err = fmt.Errorf("cell block on a connection without a codec")
	}
	h := c.header.Load()
	if err == nil {
		m := h.service.methods[string(req.Method)]
		if m == nil {
			call.Method = string(req.Method)
			err = c.unknownMethod(call.Method)
		} else {
			call.method, call.Method = m, m.name
		}
	}
	if err != nil && req.Method == nil {
		return nil, err // not even a header: nothing to answer
	}
	if req.Timeout > 0 {
		call.Deadline = call.Received.Add(max(time.Duration(req.Timeout)*time.Millisecond, minTimeout))
	}
	call.ctx = callContext{parent: c.ctx, deadline: call.Deadline}

	// From here on the call counts as in flight until it is answered or
	// dropped.
	nc := c.calls.Add(1)
	ns, nb := s.callBegins(call)
	if err == nil && (nc > int64(s.cfg.MaxConnCalls) || ns > int64(s.cfg.MaxCalls) || nb > s.cfg.MaxBytes && ns > 1) {
		err = wire.NewRemoteError(wire.ClassCallQueueTooBig,
			fmt.Sprintf("Call queue is full on %s, too many items queued ?", s.fullName))
	}
	if err != nil {
		if inBuffer {
			if _, derr := c.r.Discard(total); derr != nil {
				call.drop(eventlog.Closed)
				return nil, derr
			}
		}
		call.fail(err)
		return nil, nil
	}
	call.Param, call.block = req.Param, req.Cells
	if c.wary > 0 {
		c.wary--
	} else if inBuffer && (alone && call.method.inline || call.method.brief) && !s.cfg.Chaos.Active() && s.mode.Load().normal() {
		call.inlineNow, call.frame = true, total
		return call, nil
	}
	if inBuffer {
		// Param and cells are the end of the frame.
		own := make([]byte, len(req.Param)+len(req.Cells))
		at := copy(own, req.Param)
		copy(own[at:], req.Cells)
		call.Param, call.block = own[:at:at], own[at:]
		if _, err = c.r.Discard(total); err != nil {
			call.drop(eventlog.Closed)
			return nil, err
		}
	}
	return call, nil
}

// head is the beginning of a frame of which no more is going to be read: it says
// which call to refuse, if it comes soon.
func (c *Conn) head(most int) (head []byte) {
	if c.nc.SetReadDeadline(time.Now().Add(time.Second)) == nil {
		head, _ = c.r.Peek(min(readBuffer, most))
	}
	return head
}

// tooBig answers a request over the limit and ends the connection: what follows
// in the stream would have to be read to be skipped.
func (c *Conn) tooBig(big *wire.TooLargeError) error {
	head := c.head(int(min(big.Size, readBuffer)))
	var req wire.ReceivedRequest
	// The frame is cut, so this fails; the call id is set if it is there.
	_ = wire.DecodeRequest(head, &req)
	class := wire.ClassRequestTooBig
	if !c.Version().AtLeast(1, 3) {
		class = wire.ClassDoNotRetryIO
	}
	c.refuse(req.CallID, wire.NewRemoteError(class, fmt.Sprintf(
		"RPC data length of %d received from %s is greater than max allowed %d. Set \"hbase.ipc.max.request.size\" on server to override this limit (not recommended)",
		big.Size, c.remote, big.Max)))
	return big
}
