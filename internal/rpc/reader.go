package rpc

import (
	"bytes"
	"errors"
	"io"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// readLoop reads answers until the stream ends.
func (c *Conn) readLoop() {
	c.fail(readError(c.read()), false)
}

func (c *Conn) read() error {
	first, err := c.sniff()
	if err != nil {
		return err
	}
	if _, err := c.readAnswer(nil); err != nil {
		var format *wire.FormatError
		var large *wire.TooLargeError
		if errors.As(err, &format) || errors.As(err, &large) && large.Size > wire.DefaultMaxFrame {
			return &NotHBaseError{Addr: c.addr, Saw: "bytes that are no answer", Bytes: first, Cause: err}
		}
		return err
	}
	for c.standBy() {
		if _, err := c.readAnswer(nil); err != nil {
			return err
		}
	}
	return ErrClosed // standBy saw that it is over already
}

// sniff looks at the first bytes of the stream, to tell the user what they
// talk to rather than that 1.2 GB are too large for a frame.
func (c *Conn) sniff() (first []byte, err error) {
	b, err := c.reader.Peek(4)
	if len(b) == 0 {
		return nil, err
	}
	b, _ = c.reader.Peek(min(max(c.reader.Buffered(), len(b)), sniffLength))
	first = bytes.Clone(b)
	if saw := foreign(b); saw != "" {
		return nil, &NotHBaseError{Addr: c.addr, Saw: saw, Bytes: first}
	}
	if len(b) < 4 {
		return nil, io.ErrUnexpectedEOF
	}
	return first, nil
}

// readAnswer reads one frame, for who holds the token. It returns only errors
// that end the connection. own is the reading caller's own call, nil if it has
// none: if the answer is to that, it is not told so through done, but by over.
func (c *Conn) readAnswer(own *pending) (over bool, err error) {
	total, err := wire.ReadTotal(c.reader, c.maxFrame)
	if err != nil {
		return false, err
	}
	var h wire.ResponseHeader
	if total <= c.reader.Buffered() {
		frame, err := c.reader.Peek(total)
		if err != nil {
			return false, err
		}
		body, err := wire.CutResponseHeader(frame, &h)
		if err != nil {
			return false, err
		}
		p, err := c.addressee(&h)
		if p != nil && err == nil {
			// The answer's parts are the caller's to keep, the buffer is ours.
			var room []byte
			if p.borrows {
				p.loan = lend()
				room = p.loan.room(len(body))
			}
			body = append(room, body...)
			p.loan.holds(body)
			over, err = c.deliver(p, own, &h, body)
		}
		if err == nil {
			_, err = c.reader.Discard(total)
		}
		return over, err
	}
	return c.readLarge(own, total, &h)
}

// trusted is the most memory that is taken on the word of a server alone. The
// answers of scans, 2 MiB and a row more by default, are read in one piece.
const trusted = 4 << 20

// addressee takes out the call that a whole answer is for; nil if
// there is none, or if it is an answer to no call. The error ends the
// connection.
func (c *Conn) addressee(h *wire.ResponseHeader) (*pending, error) {
	if err := c.heard(h); err != nil || int32(h.CallID) < 0 {
		return nil, err
	}
	return c.calls.take(h.CallID), nil
}

// heard notes that an answer came. One to no call is about the connection, and
// an exception there ends it.
func (c *Conn) heard(h *wire.ResponseHeader) error {
	// The time the bytes came: a clock reading per read is enough.
	now := c.lastHeard.Load()
	c.lastUse.Store(now)
	if int32(h.CallID) < 0 {
		if h.Exception != nil {
			return h.Exception
		}
		return nil
	}
	c.lastReply.Store(max(now, 1))
	return nil
}

// readLarge is readAnswer for a frame that is not yet, or will never be, in the
// buffer as a whole. The body is read before the call is taken out,
// so that its caller can leave meanwhile.
func (c *Conn) readLarge(own *pending, total int, h *wire.ResponseHeader) (over bool, err error) {
	left, err := c.readHeader(total, h)
	if err != nil {
		return false, err
	}
	if err := c.heard(h); err != nil {
		return false, err
	}
	waited, borrows := c.calls.waiting(h.CallID)
	if int32(h.CallID) < 0 || !waited {
		return false, c.discard(left)
	}
	var room []byte
	var loan *Loan
	if borrows {
		loan = lend()
		room = loan.room(left)
	} else if left <= trusted {
		room = make([]byte, 0, left)
	}
	body, err := wire.ReadBody(c.reader, left, room)
	if err != nil {
		loan.Return()
		return false, err // the call is still there and fails with the rest
	}
	p := c.calls.take(h.CallID)
	if p == nil {
		loan.Return()
		return false, nil
	}
	loan.holds(body)
	p.loan = loan
	return c.deliver(p, own, h, body)
}

// deliver ends a call with its answer. What is wrong with the answer ends the
// connection as well.
func (c *Conn) deliver(p, own *pending, h *wire.ResponseHeader, body []byte) (over bool, err error) {
	p.heard, p.exception = c.lastHeard.Load(), h.Exception
	p.result, p.cells, err = h.DecodeResponseBody(body)
	if err != nil {
		p.err, p.sent = &ConnError{Addr: c.addr, Cause: err, Sent: true}, true
	} else if h.Exception != nil && h.Exception.Fatal() {
		err = h.Exception
	}
	if p == own {
		return true, err
	}
	p.done <- struct{}{}
	return false, err
}

// readHeader reads the header with its length and returns how many bytes of
// the frame are left.
func (c *Conn) readHeader(total int, h *wire.ResponseHeader) (int, error) {
	n, left := uint64(0), total
	for shift := 0; ; shift += 7 {
		if left == 0 || shift > 28 {
			return 0, &wire.FormatError{What: "response header", Detail: "length without an end"}
		}
		b, err := c.reader.ReadByte()
		if err != nil {
			return 0, noEOF(err)
		}
		left--
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			break
		}
	}
	if n > uint64(left) {
		return 0, &wire.FormatError{What: "response header", Detail: "longer than its frame"}
	}
	if n > wire.MaxHeader {
		return 0, &wire.TooLargeError{What: "response header", Size: int64(n), Max: wire.MaxHeader}
	}
	left -= int(n)
	if int(n) <= c.reader.Size() {
		b, err := c.reader.Peek(int(n))
		if err != nil {
			return 0, noEOF(err)
		}
		if err := wire.DecodeResponseHeader(b, h); err != nil {
			return 0, err
		}
		_, err = c.reader.Discard(int(n))
		return left, err
	}
	b, err := wire.ReadBody(c.reader, int(n), nil)
	if err != nil {
		return 0, err
	}
	return left, wire.DecodeResponseHeader(b, h)
}

// discard passes over the rest of a frame nobody wants.
func (c *Conn) discard(n int) error {
	_, err := c.reader.Discard(n)
	return noEOF(err)
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
