package master

import (
	"context"
	"sync"
)

// locks are named read-write locks that can be waited for with a context.
// Waiters are served in order of arrival, so that a stream of readers cannot
// starve a writer. The zero value is ready.
type locks struct {
	mu sync.Mutex
	m  map[string]*lock
}

type lock struct {
	readers int
	writer  bool
	queue   []*waiter
}

type waiter struct {
	write bool
	ready chan struct{} // closed when the lock was handed over
}

func (l *lock) free(write bool) bool { return !l.writer && (!write || l.readers == 0) }

func (l *lock) take(write bool) {
	if write {
		l.writer = true
	} else {
		l.readers++
	}
}

// acquire takes the named lock and gives the function that releases it, or the
// context's error.
func (ls *locks) acquire(ctx context.Context, name string, write bool) (release func(), err error) {
	ls.mu.Lock()
	if ls.m == nil {
		ls.m = map[string]*lock{}
	}
	l := ls.m[name]
	if l == nil {
		l = &lock{}
		ls.m[name] = l
	}
	release = func() { ls.release(name, l, write) }
	if len(l.queue) == 0 && l.free(write) {
		l.take(write)
		ls.mu.Unlock()
		return release, nil
	}
	w := &waiter{write: write, ready: make(chan struct{})}
	l.queue = append(l.queue, w)
	ls.mu.Unlock()
	select {
	case <-w.ready:
		return release, nil
	case <-ctx.Done():
	}
	ls.mu.Lock()
	select {
	case <-w.ready:
		// Handed over at the same moment: give it back.
		ls.mu.Unlock()
		release()
		return nil, ctx.Err()
	default:
	}
	for i := range l.queue {
		if l.queue[i] == w {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			break
		}
	}
	ls.handOver(name, l)
	ls.mu.Unlock()
	return nil, ctx.Err()
}

func (ls *locks) release(name string, l *lock, write bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if write {
		l.writer = false
	} else {
		l.readers--
	}
	ls.handOver(name, l)
}

// handOver gives the lock to as many waiters as can have it together.
func (ls *locks) handOver(name string, l *lock) {
	for len(l.queue) > 0 && l.free(l.queue[0].write) {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.take(w.write)
		close(w.ready)
	}
	if len(l.queue) == 0 && l.readers == 0 && !l.writer {
		delete(ls.m, name)
	}
}

// lockTable takes a table's lock.
func (m *Master) lockTable(ctx context.Context, table string, write bool) (func(), error) {
	return m.locks.acquire(ctx, "t:"+table, write)
}

// lockRegion takes a table's lock shared and one region's exclusively.
func (m *Master) lockRegion(ctx context.Context, table, encoded string) (func(), error) {
	t, err := m.lockTable(ctx, table, false)
	if err != nil {
		return nil, err
	}
	r, err := m.locks.acquire(ctx, "r:"+encoded, true)
	if err != nil {
		t()
		return nil, err
	}
	return func() { r(); t() }, nil
}
