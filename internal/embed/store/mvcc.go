package store

import (
	"sync"
	"sync/atomic"
)

// mvcc gives out sequence numbers and keeps the read point: numbers are
// finished in any order, the read point passes them in theirs.
//
// Numbers given out are promised never to be given out again, also after a
// crash: the store keeps a limit on disk below which they all lie. The limit
// is raised while half of it is still unused, so that the write that carries
// the new limit is in the log long before a number beyond the old one is.
type mvcc struct {
	mu    sync.Mutex
	last  uint64 // given out
	limit uint64 // promised on disk
	// waiting are those for whom the read point has not come far enough.
	waiting []*waiter
	// ring[(seq-1)%len] says whether seq, read < seq <= last, is finished.
	ring []bool
	read atomic.Uint64
}

// seqBlock is by how much the limit is raised: at 100,000 writes a second once
// in ten seconds; a restart wastes at most this many of 2^64 numbers.
const seqBlock = 1 << 20

type waiter struct {
	seq  uint64
	done chan struct{} // holds one
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

func (m *mvcc) init() { m.ring = make([]bool, 64) }

// start goes on behind limit and returns the new limit to be written.
func (m *mvcc) start(limit uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = limit
	m.limit = limit + seqBlock
	m.read.Store(limit)
	return m.limit
}

func (m *mvcc) readPoint() uint64 { return m.read.Load() }

// begin gives out a number. If limit is not 0 the caller writes it to disk,
// no later than what has the number.
func (m *mvcc) begin() (seq, limit uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last++
	if m.last-m.read.Load() > uint64(len(m.ring)) {
		m.grow()
	}
	m.ring[m.slot(m.last)] = false
	if m.limit-m.last < seqBlock/2 {
		m.limit += seqBlock
		limit = m.limit
	}
	return m.last, limit
}

// begun is the last number given out.
func (m *mvcc) begun() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func (m *mvcc) slot(seq uint64) uint64 { return (seq - 1) % uint64(len(m.ring)) }

func (m *mvcc) grow() {
	old, n := m.ring, uint64(len(m.ring))
	m.ring = make([]bool, 2*n)
	for seq := m.read.Load() + 1; seq < m.last; seq++ {
		m.ring[m.slot(seq)] = old[(seq-1)%n]
	}
}

// complete marks a number finished.
func (m *mvcc) complete(seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ring[m.slot(seq)] = true
	read := m.read.Load()
	if seq != read+1 {
		return
	}
	for read < m.last && m.ring[m.slot(read+1)] {
		read++
	}
	m.read.Store(read)
	rest := m.waiting[:0]
	for _, w := range m.waiting {
		if w.seq <= read {
			w.done <- struct{}{}
		} else {
			rest = append(rest, w)
		}
	}
	clear(m.waiting[len(rest):])
	m.waiting = rest
}

// wait returns once the read point has reached seq: every write before it is
// finished, which takes no longer than the slowest of those under way.
func (m *mvcc) wait(seq uint64) {
	if m.read.Load() >= seq {
		return
	}
	m.mu.Lock()
	if m.read.Load() >= seq {
		m.mu.Unlock()
		return
	}
	w := waiters.Get().(*waiter)
	w.seq = seq
	m.waiting = append(m.waiting, w)
	m.mu.Unlock()
	<-w.done
	waiters.Put(w)
}
