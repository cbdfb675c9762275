package rpcserver

import (
	"bufio"
	"fmt"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// fairShare is what may wait to be written to any one connection, however much waits for the others.
const fairShare = 64 << 10

// handshakeBuffer is the size of the read buffer until the connection header is there: a connection that says nothing costs little.
const handshakeBuffer = 512

// slowest is the rate in bytes per second below which a large frame's sender is given up, FrameTimeout being over.
const slowest = 1 << 20

// prefixed reads what a smaller buffer held before it reads the connection.
type prefixed struct {
	net.Conn
	rest []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.rest)
	if p.rest = p.rest[n:]; len(p.rest) == 0 {
		p.rest = nil
	}
	return n, nil
}

// grow gives the connection its full read buffer, once it has said who it is.
func (c *Conn) grow() error {
	rest, err := c.r.Peek(c.r.Buffered())
	if err != nil {
		return err
	}
	return c.readFrom(rest)
}

// readFrom gives the connection a new read buffer that begins with rest, which it copies.
func (c *Conn) readFrom(rest []byte) error {
	if len(rest) == 0 {
		c.r = bufio.NewReaderSize(c.nc, readBuffer)
		return nil
	}
	c.r = bufio.NewReaderSize(&prefixed{Conn: c.nc, rest: append([]byte(nil), rest...)}, readBuffer)
	// All of it is in the buffer from here on, and who takes over reading need not know.
	_, err := c.r.Peek(len(rest))
	return err
}

// begun bounds the time for the rest of a frame of which the beginning has arrived.
func (c *Conn) begun(total int) error {
	return c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.FrameTimeout + time.Duration(total/slowest)*time.Second))
}

// firstStep is what a length alone can make us allocate.
const firstStep = 64 << 10

// readLarge reads a frame that does not fit the read buffer. Its memory grows with the bytes that arrive, and counts as in flight (Config.MaxBytes)
// while it does; a connection whose frame would go beyond that is refused.
func (c *Conn) readLarge(total int) ([]byte, error) {
	s := c.server
	held := 0
	defer func() { s.bytes.Add(-int64(held)) }()
	var buf []byte
	for len(buf) < total {
		size := min(total, max(firstStep, 2*len(buf)))
		more := size - len(buf)
		held += more
		if all := s.bytes.Add(int64(more)); all > s.cfg.MaxBytes && all > int64(held) {
			return nil, c.crowded(buf)
		}
		next, err := wire.ReadBody(c.r, more, make([]byte, 0, more))
		if err != nil {
			return nil, err
		}
		if buf == nil {
			buf = next
			continue
		}
		whole := make([]byte, size)
		copy(whole[copy(whole, buf):], next)
		buf = whole
	}
	return buf, nil
}

// crowded refuses a frame that is not all there.
func (c *Conn) crowded(head []byte) error {
	if len(head) == 0 {
		head = c.head(readBuffer)
	}
	var req wire.ReceivedRequest
	_ = wire.DecodeRequest(head, &req) // it is cut; the call id is set if it is there
	x := wire.NewRemoteError(wire.ClassCallQueueTooBig, fmt.Sprintf("Call queue is full on %s, too many items queued ?", c.server.fullName))
	c.refuse(req.CallID, x)
	return x
}

// unpack decompresses a call's cell block. As many at one time as there are processors, and what comes out counts as in flight.
func (c *Call) unpack(block []byte) ([]byte, error) {
	s := c.Conn.server
	select {
	case s.unpacking <- struct{}{}:
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	defer func() { <-s.unpacking }()
	out, err := c.Conn.compressor.Decompress(nil, block)
	if err != nil {
		return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, err.Error())
	}
	c.size += len(out)
	if all := s.bytes.Add(int64(len(out))); all > s.cfg.MaxBytes && all > int64(c.size) {
		return nil, wire.NewRemoteError(wire.ClassCallQueueTooBig, fmt.Sprintf("Call queue is full on %s, too many items queued ?", s.fullName))
	}
	return out, nil
}
