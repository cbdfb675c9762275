package rpcserver

import (
	"context"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
)

// writer sends the answers of one connection. There is no goroutine for it:
// whoever has an answer while nobody writes becomes the writer, and goes on
// until nothing is left, taking along what others put down meanwhile. A lone
// answer is thus written at once by who made it, and answers that come up
// during a write leave together in the next.
type writer struct {
	conn *Conn

	mu      sync.Mutex
	pending [][]byte
	slow    map[*byte]pace // of those pending: nil but for what a rule throttles
	bytes   int
	average int // size of an answer, lately
	writing bool
	closed  bool
	ended   bool // nothing is taken any more; what is pending still goes out
	// room is there while somebody waits for bytes to be written or calls to
	// end, and closed then; waiting says so without the lock.
	room    chan struct{}
	waiting atomic.Bool
}

// fatal is how many times MaxUnread may wait before a connection is ended.
const fatal = 8

// coalesce is the size up to which answers are copied together; larger ones go
// out by themselves in one vectored write.
const coalesce = 64 << 10

// send takes over frame. It may block as long as the peer does not read.
func (w *writer) send(frame []byte) { w.put(frame, false, pace{}) }

// maxHeldBytes is how much is held before it is written after all.
const maxHeldBytes = 16 << 10

// hold takes over frame, and writes it with what comes next, or when flush is
// called.
func (w *writer) hold(frame []byte) {
	w.mu.Lock()
	if w.closed || w.ended {
		w.mu.Unlock()
		return
	}
	w.pending = append(w.pending, frame)
	w.count(cost(frame))
	w.average += (len(frame) - w.average) / 8
	if w.bytes > maxHeldBytes {
		w.flushLocked()
		return
	}
	w.mu.Unlock()
}

// flush writes what is pending, if nobody does yet.
func (w *writer) flush() {
	w.mu.Lock()
	w.flushLocked()
}

// sendLast is send for what nothing may follow on this connection, such as half
// a frame: what other calls answer from now on is dropped.
func (w *writer) sendLast(frame []byte) { w.put(frame, true, pace{}) }

// sendSlowly is send at a pace; what other calls answer goes out behind it.
func (w *writer) sendSlowly(frame []byte, p pace) { w.put(frame, false, p) }

func (w *writer) put(frame []byte, last bool, p pace) {
	w.mu.Lock()
	if w.closed || w.ended {
		w.mu.Unlock()
		return
	}
	w.ended = last
	if w.writing && p.rate == 0 && cap(frame) > 2*len(frame)+512 {
		// It will wait: not in a buffer made for larger ones.
		own := append(make([]byte, 0, len(frame)), frame...)
		w.conn.server.frames.put(frame)
		frame = own
	}
	if p.rate > 0 {
		if w.slow == nil {
			w.slow = make(map[*byte]pace)
		}
		w.slow[&frame[0]] = p
	}
	w.pending = append(w.pending, frame)
	w.count(cost(frame))
	if w.bytes > fatal*w.conn.server.cfg.MaxUnread {
		// So many calls were in their handlers when nothing waited yet; HBase
		// too ends such a connection (netty's fatal watermark).
		w.mu.Unlock()
		w.conn.server.log.Warn("connection ended: its client does not read", "remote", w.conn.remote)
		w.conn.close()
		return
	}
	w.average += (len(frame) - w.average) / 8
	if !w.writing && w.conn.calls.Load() > 1 {
		// Others of this connection are about to have answers, too, most likely:
		// one fsync ends the waiting of many. Those that can go on now do, so
		// that one write takes all along.
		w.writing = true
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
		w.writing = false
	}
	w.flushLocked()
}

// cost is what a waiting answer takes: its whole buffer, and its place in the list.
func cost(frame []byte) int { return cap(frame) + 24 }

// count changes how much waits, here and on the server. Called with the lock held.
func (w *writer) count(n int) {
	w.bytes += n
	w.conn.server.unread.Add(int64(n))
}

// kick writes what was held back.
func (w *writer) kick() {
	w.mu.Lock()
	if len(w.pending) == 0 || w.writing || w.closed {
		w.mu.Unlock()
		return
	}
	w.conn.server.wg.Add(1)
	go func() {
		defer w.conn.server.wg.Done()
		w.mu.Lock()
		w.flushLocked()
	}()
	w.mu.Unlock()
}

// flushLocked is called with the lock held and releases it.
func (w *writer) flushLocked() {
	if w.writing {
		w.mu.Unlock()
		return
	}
	w.writing = true
	var spare [][]byte
	for len(w.pending) > 0 && !w.closed && !w.conn.server.mode.Load().silent() {
		batch, slow := w.pending, w.slow
		w.pending, w.slow = spare[:0], nil
		w.mu.Unlock()
		n, held := 0, 0
		for _, f := range batch {
			n += len(f)
			held += cost(f)
		}
		var err error
		if slow == nil {
			err = w.write(batch, n)
		} else {
			err = w.trickle(batch, slow)
		}
		for i, f := range batch {
			w.conn.server.frames.put(f)
			batch[i] = nil
		}
		spare = batch
		w.mu.Lock()
		if !w.closed { // close has counted everything out
			w.count(-held)
		}
		w.wake()
		if err != nil {
			w.closed = true
			w.pending = nil
			w.count(-w.bytes)
			w.mu.Unlock()
			w.conn.close()
			return
		}
	}
	w.writing = false
	w.mu.Unlock()
}

func (w *writer) write(batch [][]byte, n int) error {
	nc := w.conn.nc
	if len(batch) == 1 {
		_, err := nc.Write(batch[0])
		return err
	}
	if n <= coalesce {
		buf := w.conn.server.frames.get(n)
		for _, f := range batch {
			buf = append(buf, f...)
		}
		_, err := nc.Write(buf)
		w.conn.server.frames.put(buf)
		return err
	}
	list := net.Buffers(append([][]byte(nil), batch...))
	_, err := list.WriteTo(nc)
	return err
}

// awaitRoom blocks while the peer is behind with reading, and more than limit
// bytes wait to be written or are about to (going by the size of the answers so
// far). False: the connection ended.
func (w *writer) awaitRoom(limit int) bool {
	return w.await(w.conn.ctx, func() bool {
		calls := int(w.conn.calls.Load())
		return w.full(limit) || calls > always && w.bytes+calls*w.average > limit
	}) == nil && w.conn.ctx.Err() == nil
}

// awaitTurn blocks a call that has not begun yet while more than limit bytes
// wait to be written: what answers weigh is not known before they are made, so
// that of many calls read at once only as many may run as have room. The
// context's error: the call's time ran out, or its connection ended.
func (w *writer) awaitTurn(ctx context.Context, limit int) error {
	return w.await(ctx, func() bool { return w.full(limit) })
}

// full says whether more waits than may wait, here or on the server. Called
// with the lock held.
func (w *writer) full(limit int) bool {
	return w.bytes > limit || w.bytes > fairShare && w.conn.server.unread.Load() > w.conn.server.cfg.MaxUnreadAll
}

// flushed waits until everything is written, the connection ends, or ctx does,
// which is an error.
func (w *writer) flushed(ctx context.Context) error {
	return w.await(ctx, func() bool { return w.bytes > 0 })
}

// always is how many calls a connection may have in flight whatever their
// answers may weigh.
const always = 16

// await waits until the connection ends or behind, called with the lock held,
// says no.
func (w *writer) await(ctx context.Context, behind func() bool) error {
	for {
		w.mu.Lock()
		if w.closed || !behind() {
			w.mu.Unlock()
			return nil
		}
		// Said before looking once more: a call that ends after our look sees
		// it and wakes us.
		w.waiting.Store(true)
		if !behind() {
			w.mu.Unlock()
			return nil
		}
		if w.room == nil {
			w.room = make(chan struct{})
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake has those who wait look again. Called with the lock held.
func (w *writer) wake() {
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
	w.waiting.Store(false)
}

// callEnded is called after a call was counted out of what is in flight.
func (w *writer) callEnded() {
	if w.waiting.Load() {
		w.mu.Lock()
		w.wake()
		w.mu.Unlock()
	}
}

// close drops what is pending.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.pending = nil
	w.count(-w.bytes)
	w.wake()
}

// frames keeps buffers of answers, small ones and large ones apart so that a
// small answer does not sit in a large buffer while it waits. Very large ones
// are not kept.
type frames struct{ small, large sync.Pool }

const (
	maxSmall  = 64 << 10
	maxPooled = 8 << 20
)

// get gives an empty buffer with room for n bytes, as far as n is known.
func (f *frames) get(n int) []byte {
	pool := &f.small
	if n > maxSmall {
		pool = &f.large
	}
	if p, ok := pool.Get().(*[]byte); ok && cap(*p) >= n {
		return (*p)[:0]
	}
	return make([]byte, 0, max(n, 512))
}

func (f *frames) put(b []byte) {
	switch c := cap(b); {
	case c <= maxSmall:
		f.small.Put(&b)
	case c <= maxPooled:
		f.large.Put(&b)
	}
}
