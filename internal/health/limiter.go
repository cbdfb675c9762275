package health

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// limiter bounds the calls in flight to one server: additive increase,
// multiplicative decrease. Those above the limit wait in a bounded queue in
// order of arrival.
//
// The fast path is one compare-and-swap on inflight. No wakeup is lost: a
// waiter raises waiting before it looks at inflight again (grant, under mu),
// a finisher lowers inflight before it looks at waiting; one of the two sees
// the other.
type limiter struct {
	inflight atomic.Int64
	limit    atomic.Int64
	waiting  atomic.Int64
	ok       atomic.Int64 // successes since the last increase, while below max
	shed     atomic.Int64 // when a call was last turned away, Unix nanoseconds

	min, max, queue int64

	mu         sync.Mutex
	head, tail *waiter
	lastCut    time.Time
}

type waiter struct {
	ready      chan error // capacity 1: nil = admitted
	prev, next *waiter
	queued     bool
}

// cutInterval keeps one burst of busy answers from cutting the limit to the
// floor: the answers of calls that were in flight at the cut say nothing new.
const cutInterval = 100 * time.Millisecond

func (l *limiter) init(c *Config) {
	l.min, l.max, l.queue = int64(c.MinInFlight), int64(c.MaxInFlight), int64(c.MaxQueue)
	l.limit.Store(l.max)
}

func (l *limiter) try() bool {
	if l.waiting.Load() > 0 {
		return false
	}
	for {
		n := l.inflight.Load()
		if n >= l.limit.Load() {
			return false
		}
		if l.inflight.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// wait queues the caller. It returns nil when admitted.
func (l *limiter) wait(ctx context.Context, full func() error) error {
	l.mu.Lock()
	if l.waiting.Load() >= l.queue {
		l.mu.Unlock()
		return full()
	}
	w := &waiter{ready: make(chan error, 1), queued: true}
	if l.tail == nil {
		l.head, l.tail = w, w
	} else {
		w.prev, l.tail.next, l.tail = l.tail, w, w
	}
	l.waiting.Add(1)
	l.grant()
	l.mu.Unlock()
	select {
	case err := <-w.ready:
		return err
	case <-ctx.Done():
	}
	l.mu.Lock()
	if w.queued {
		l.unlink(w)
		l.mu.Unlock()
		return ctx.Err()
	}
	l.mu.Unlock()
	if err := <-w.ready; err == nil { // admitted in the same moment: give it back
		l.done()
	}
	return ctx.Err()
}

func (l *limiter) unlink(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.tail = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
	l.waiting.Add(-1)
}

// grant admits waiters while there is room. Under mu.
func (l *limiter) grant() {
	for l.head != nil {
		n := l.inflight.Load()
		if n >= l.limit.Load() {
			return
		}
		if !l.inflight.CompareAndSwap(n, n+1) {
			continue
		}
		w := l.head
		l.unlink(w)
		w.ready <- nil
	}
}

// fail turns all waiters away.
func (l *limiter) fail(err error) {
	if l.waiting.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.head != nil {
		w := l.head
		l.unlink(w)
		w.ready <- err
	}
}

func (l *limiter) done() {
	l.inflight.Add(-1)
	if l.waiting.Load() > 0 {
		l.mu.Lock()
		l.grant()
		l.mu.Unlock()
	}
}

// grow raises the limit by one for each full window of successes.
func (l *limiter) grow() {
	n := l.limit.Load()
	if n >= l.max {
		return
	}
	if l.ok.Add(1) >= n {
		l.ok.Store(0)
		l.limit.CompareAndSwap(n, n+1)
	}
}

// cut lowers the limit to 7/10 of what was in flight or allowed.
func (l *limiter) cut(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.lastCut) < cutInterval {
		return
	}
	l.lastCut = now
	// Start from what was really in flight: a limit far above it would need
	// many cuts before it began to limit anything.
	n := min(l.limit.Load(), max(l.inflight.Load(), 1))
	l.limit.Store(max(l.min, n*7/10))
	l.ok.Store(0)
}
