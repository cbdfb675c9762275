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
	if err := c.readAnswer(); err != nil {
		var format *wire.FormatError
		var large *wire.TooLargeError
		if errors.As(err, &format) || errors.As(err, &large) && large.Size > wire.DefaultMaxFrame {
			return &NotHBaseError{Addr: c.addr, Saw: "bytes that are no answer", Bytes: first, Cause: err}
		}
		return err
	}
	for c.standBy() {
		if err := c.readAnswer(); err != nil {
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

// readAnswer reads one frame, for who holds the token. It returns only errors that end the connection.
func (c *Conn) readAnswer() error {
	total, err := wire.ReadTotal(c.reader, c.maxFrame)
	if err != nil {
		return err
	}
	var h wire.ResponseHeader
	left, err := c.readHeader(total, &h)
	if err != nil {
		return err
	}
	// The time the bytes came: a clock reading per read is enough.
	now := c.lastHeard.Load()
	c.lastUse.Store(now)
	if int32(h.CallID) < 0 {
		// An answer to no call, about the connection.
		if h.Exception != nil {
			return h.Exception
		}
		return c.discard(left)
	}
	c.lastReply.Store(max(now, 1))

	// A body that is still on its way is read before the call is taken out of
	// the map, so that its caller can leave meanwhile.
	var p *pending
	if left <= c.reader.Buffered() {
		if p = c.calls.take(h.CallID); p == nil {
			return c.discard(left)
		}
	} else if !c.calls.waiting(h.CallID) {
		return c.discard(left)
	}
	var body []byte
	if left > 0 {
		body, err = wire.ReadBody(c.reader, left, nil)
	}
	var result, cells []byte
	if err == nil {
		result, cells, err = h.DecodeResponseBody(body)
	}
	if p == nil {
		if err != nil {
			return err // the call is still in the map and fails with the rest
		}
		if p = c.calls.take(h.CallID); p == nil {
			return nil
		}
	}
	if err != nil {
		// The call is ours to end; the rest ends with the connection.
		p.err, p.sent = &ConnError{Addr: c.addr, Cause: readError(err), Sent: true}, true
		p.done <- struct{}{}
		return err
	}
	p.exception, p.result, p.cells = h.Exception, result, cells
	p.done <- struct{}{}
	if h.Exception != nil && h.Exception.Fatal() {
		return h.Exception
	}
	return nil
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
