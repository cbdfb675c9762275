package rpcserver

import (
	"context"
	"net"
	"sync"
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
	bytes   int
	average int // size of an answer, lately
	writing bool
	closed  bool
	// room is closed and replaced when bytes were written while a reader
	// waits for that.
	room chan struct{}
}

// coalesce is the size up to which answers are copied together; larger ones go
// out by themselves in one vectored write.
const coalesce = 64 << 10

// send takes over frame. It may block as long as the peer does not read.
func (w *writer) send(frame []byte) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.pending = append(w.pending, frame)
	w.bytes += len(frame)
	w.average += (len(frame) - w.average) / 8
	w.flushLocked()
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
		batch := w.pending
		w.pending = spare[:0]
		w.mu.Unlock()
		n := 0
		for _, f := range batch {
			n += len(f)
		}
		err := w.write(batch, n)
		for i, f := range batch {
			putFrame(f)
			batch[i] = nil
		}
		spare = batch
		w.mu.Lock()
		w.bytes -= n
		if w.room != nil {
			close(w.room)
			w.room = nil
		}
		if err != nil {
			w.closed = true
			w.pending, w.bytes = nil, 0
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
		buf := getFrame(n)
		for _, f := range batch {
			buf = append(buf, f...)
		}
		_, err := nc.Write(buf)
		putFrame(buf)
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
	return w.await(w.conn.ctx, limit) == nil && w.conn.ctx.Err() == nil
}

// flushed waits until everything is written, the connection ends, or ctx does,
// which is an error.
func (w *writer) flushed(ctx context.Context) error { return w.await(ctx, 0) }

func (w *writer) await(ctx context.Context, limit int) error {
	for {
		w.mu.Lock()
		if w.closed || w.bytes == 0 || w.bytes+int(w.conn.calls.Load())*w.average <= limit {
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

// close drops what is pending.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.pending, w.bytes = nil, 0
	if w.room != nil {
		close(w.room)
		w.room = nil
	}
}

// framePool keeps buffers of answers. Only middling ones are kept, so that one
// large answer does not stay in memory.
var framePool = sync.Pool{New: func() any { return new(make([]byte, 0, 1024)) }}

const maxPooled = 256 << 10

func getFrame(n int) []byte {
	p := framePool.Get().(*[]byte)
	b := (*p)[:0]
	if cap(b) < n {
		return make([]byte, 0, n)
	}
	return b
}

func putFrame(b []byte) {
	if cap(b) <= maxPooled {
		framePool.Put(&b)
	}
}
