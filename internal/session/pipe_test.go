package session

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// newPipe gives two ends of a stream that buffers like a kernel's sockets: a
// frozen process still takes in some bytes.
func newPipe() (net.Conn, net.Conn) {
	a, b := newQueue(), newQueue()
	return &pipeEnd{in: a, out: b}, &pipeEnd{in: b, out: a}
}

const pipeBuffer = 1 << 20

type queue struct {
	mu      sync.Mutex
	cond    *sync.Cond
	buf     []byte
	closed  bool
	expired bool
}

func newQueue() *queue {
	q := &queue{}
	q.cond = sync.NewCond(&q.mu)
	return q
}

func (q *queue) read(b []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.buf) == 0 && !q.closed && !q.expired {
		q.cond.Wait()
	}
	if q.expired {
		return 0, os.ErrDeadlineExceeded
	}
	if len(q.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(b, q.buf)
	q.buf = q.buf[n:]
	q.cond.Broadcast()
	return n, nil
}

func (q *queue) write(b []byte) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(b) > 0 {
		for len(q.buf) >= pipeBuffer && !q.closed {
			q.cond.Wait()
		}
		if q.closed {
			return n, net.ErrClosed
		}
		k := min(len(b), pipeBuffer-len(q.buf))
		q.buf = append(q.buf, b[:k]...)
		b, n = b[k:], n+k
		q.cond.Broadcast()
	}
	return n, nil
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.cond.Broadcast()
}

type pipeEnd struct{ in, out *queue }

func (p *pipeEnd) Read(b []byte) (int, error)  { return p.in.read(b) }
func (p *pipeEnd) Write(b []byte) (int, error) { return p.out.write(b) }

func (p *pipeEnd) Close() error {
	p.in.close()
	p.out.close()
	return nil
}

// SetDeadline knows "now" and "never", which is all a handshake needs.
func (p *pipeEnd) SetDeadline(t time.Time) error {
	p.in.mu.Lock()
	p.in.expired = !t.IsZero()
	p.in.mu.Unlock()
	p.in.cond.Broadcast()
	return nil
}

func (p *pipeEnd) SetReadDeadline(t time.Time) error  { return p.SetDeadline(t) }
func (p *pipeEnd) SetWriteDeadline(t time.Time) error { return nil }
func (p *pipeEnd) LocalAddr() net.Addr                { return pipeAddr{} }
func (p *pipeEnd) RemoteAddr() net.Addr               { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
