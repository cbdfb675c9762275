package rpc

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

const (
	// maxWrite is how much one write takes. A request that was not yet taken
	// can still be withdrawn, so a stuck peer should not have it all.
	maxWrite = 256 << 10
	// inlineRounds is how often a caller writes, its own request first, before
	// it leaves what others keep queueing to the flusher.
	inlineRounds = 2
	// keepBuffer is the largest send buffer kept while there is nothing to send.
	keepBuffer = 256 << 10
)

// writer is the sending half: a buffer of whole frames and at most one
// goroutine that writes it out, either a caller (without waiting) or the
// flusher.
//
// Who sets active writes: nobody else touches the stream, head moves only by
// its hand, and it does not stop before the buffer is empty (or the connection
// over). So a frame in the buffer never waits for anything but the network.
type writer struct {
	// try writes without waiting; nil if the stream cannot.
	try func([]byte) (int, error)

	mu sync.Mutex
	// buf[head:] is queued. buf[0] is byte number base of the stream.
	buf  []byte
	head int
	base uint64
	// taken is up to which byte of the stream the server may have got: what was
	// written, and what a write under way was given.
	taken uint64
	// queue holds the calls whose frames lie wholly behind taken, in order.
	queue []*pending

	active bool
	closed bool
	// space, if somebody waits for room, is closed when there is some.
	space chan struct{}
}

func (w *writer) queued() int { return len(w.buf) - w.head }

// send queues a request and sees to it that it is written. On error the call
// is over and p unknown to anyone.
func (c *Conn) send(ctx context.Context, p *pending, req *wire.Request) error {
	w := &c.w
	w.mu.Lock()
	for !w.closed && w.queued() >= maxQueued {
		if w.space == nil {
			w.space = make(chan struct{})
		}
		space := w.space
		w.mu.Unlock()
		select {
		case <-space:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.expired():
			return context.DeadlineExceeded
		case <-c.done:
		}
		w.mu.Lock()
	}
	if w.closed || !c.calls.register(p) {
		w.mu.Unlock()
		return c.err
	}
	req.CallID = p.id
	p.start = w.base + uint64(len(w.buf))
	if err := w.append(req); err != nil {
		c.calls.forget(p)
		w.mu.Unlock()
		return err
	}
	p.end = w.base + uint64(len(w.buf))
	w.queue = append(w.queue, p)
	if w.active {
		w.mu.Unlock()
		return nil
	}
	w.active = true
	if w.try == nil {
		c.startFlusher()
		w.mu.Unlock()
		return nil
	}
	c.writeInline()
	return nil
}

// append encodes a request at the end of the buffer. A message that another
// goroutine changes meanwhile can make its encoder panic; that must not leave
// the connection locked for all.
func (w *writer) append(req *wire.Request) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("encode %s: %v (was the message changed during the call?)", req.Method, r)
		}
	}()
	buf, err := wire.AppendRequest(w.buf, req)
	if err == nil {
		w.buf = buf
	}
	return err
}

// writeInline writes on the caller's goroutine, never waiting. It is entered
// with the lock and active, and leaves without the lock.
func (c *Conn) writeInline() {
	w := &c.w
	for range inlineRounds {
		chunk := w.takeChunk()
		if chunk == nil {
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		n, err := w.try(chunk)
		w.mu.Lock()
		w.wrote(len(chunk), n)
		if err != nil {
			w.mu.Unlock()
			c.writeFailed(err)
			return
		}
		if n < len(chunk) {
			break // the socket is full
		}
	}
	if w.queued() > 0 && !w.closed {
		c.startFlusher()
	} else {
		w.rest()
	}
	w.mu.Unlock()
}

// startFlusher is called with the lock, active, and not closed.
func (c *Conn) startFlusher() { c.goroutines.Go(c.flush) }

// flush writes until there is nothing left.
func (c *Conn) flush() {
	w := &c.w
	for {
		w.mu.Lock()
		chunk := w.takeChunk()
		w.mu.Unlock()
		if chunk == nil {
			return
		}
		n, err := c.stream.Write(chunk)
		w.mu.Lock()
		w.wrote(len(chunk), n)
		w.mu.Unlock()
		if err != nil {
			c.writeFailed(err)
			return
		}
	}
}

// takeChunk gives the next bytes to write; nil ends the writer's turn.
func (w *writer) takeChunk() []byte {
	if w.closed || w.queued() == 0 {
		w.rest()
		return nil
	}
	chunk := w.buf[w.head:min(len(w.buf), w.head+maxWrite)]
	w.taken = w.base + uint64(w.head+len(chunk))
	i := 0
	for i < len(w.queue) && w.queue[i].start < w.taken {
		w.queue[i] = nil
		i++
	}
	if i == len(w.queue) {
		w.queue = w.queue[:0]
	} else {
		w.queue = w.queue[i:]
	}
	return chunk
}

// wrote takes note that n bytes of a chunk went out.
func (w *writer) wrote(chunk, n int) {
	if w.closed {
		return
	}
	w.head += n
	if n < chunk {
		w.taken = w.base + uint64(w.head)
	}
	switch {
	case w.head == len(w.buf):
		w.base += uint64(w.head)
		w.head = 0
		w.buf = w.buf[:0]
	case w.head >= maxWrite && w.head >= len(w.buf)/2:
		// No write is under way, so the rest may move.
		w.base += uint64(w.head)
		w.buf = w.buf[:copy(w.buf, w.buf[w.head:])]
		w.head = 0
	}
	if w.space != nil && w.queued() <= maxQueued/2 {
		close(w.space)
		w.space = nil
	}
}

// rest ends the writer's turn; there is nothing to write.
func (w *writer) rest() {
	w.active = false
	if cap(w.buf) > keepBuffer && len(w.buf) == 0 {
		w.buf = nil
	}
	if len(w.queue) == 0 && cap(w.queue) > 1024 {
		w.queue = nil
	}
}

// withdraw cuts a request out of the buffer if no byte of it was given to the
// stream yet, and says whether it did.
func (w *writer) withdraw(p *pending) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return p.end > w.taken
	}
	for i, q := range w.queue {
		if q != p {
			continue
		}
		from, to := int(p.start-w.base), int(p.end-w.base)
		w.buf = append(w.buf[:from], w.buf[to:]...)
		for _, later := range w.queue[i+1:] {
			later.start -= uint64(to - from)
			later.end -= uint64(to - from)
		}
		w.queue = append(w.queue[:i], w.queue[i+1:]...)
		if w.space != nil && w.queued() <= maxQueued/2 {
			close(w.space)
			w.space = nil
		}
		return true
	}
	return false
}

// close drops what is queued and says up to which byte of the stream the
// server may have got. Called with the lock.
func (w *writer) close() (reached uint64) {
	w.closed = true
	w.buf, w.head, w.queue = nil, 0, nil
	return w.taken
}
