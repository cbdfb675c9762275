package zk

import (
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// transport is one established connection. Its reader and writer hand everything to the loop; it decides nothing.
type transport struct {
	est    *established
	since  time.Time
	frames chan<- inbound
	max    int

	mu     sync.Mutex
	out    []byte
	wake   chan struct{} // size one
	closed chan struct{}
	once   sync.Once
}

// inbound is a frame, or the end of a transport.
type inbound struct {
	t     *transport
	frame []byte
	err   error
}

func newTransport(est *established, frames chan<- inbound, max int) *transport {
	return &transport{est: est, since: time.Now(), frames: frames, max: max, wake: make(chan struct{}, 1), closed: make(chan struct{})}
}

// send queues bytes for the writer. It never blocks; the loop bounds what it lets in.
func (t *transport) send(b []byte) {
	t.mu.Lock()
	t.out = append(t.out, b...)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *transport) close() {
	t.once.Do(func() {
		close(t.closed)
		t.est.nc.Close()
	})
}

func (t *transport) report(in inbound) bool {
	select {
	case t.frames <- in:
		return true
	case <-t.closed:
		return false
	}
}

func (t *transport) readLoop() {
	for {
		frame, err := jute.ReadFrame(t.est.br, t.max)
		if !t.report(inbound{t: t, frame: frame, err: err}) || err != nil {
			return
		}
	}
}

func (t *transport) writeLoop() {
	var spare []byte
	for {
		select {
		case <-t.wake:
		case <-t.closed:
			return
		}
		t.mu.Lock()
		batch := t.out
		t.out = spare[:0]
		t.mu.Unlock()
		if len(batch) > 0 {
			if _, err := t.est.nc.Write(batch); err != nil {
				t.report(inbound{t: t, err: err})
				return
			}
		}
		if spare = batch; cap(spare) > keepBuffer {
			spare = nil
		}
	}
}

// keepBuffer is the largest write buffer kept for the next write.
const keepBuffer = 64 << 10
