package store

import (
	"errors"
	"sync"
)

// readers are the open scanners. What the oldest of them may still return is
// spared by major compactions.
type readers struct {
	mu   sync.Mutex
	open map[*Scanner]uint64
}

// add registers a scanner at a read point, 0 meaning the present one.
func (r *readers) add(sc *Scanner, readPoint uint64, m *mvcc) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[*Scanner]uint64)
	}
	if readPoint == 0 {
		readPoint = m.readPoint()
	}
	r.open[sc] = readPoint
	return readPoint
}

func (r *readers) remove(sc *Scanner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, sc)
}

// oldest is the smallest read point in use, at most the present one.
func (r *readers) oldest(m *mvcc) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := m.readPoint()
	for _, p := range r.open {
		at = min(at, p)
	}
	return at
}

// closeAll lets every scanner go of the engine; the store is locked against
// their use.
func (r *readers) closeAll() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	for sc := range r.open {
		sc.closed = true
		err = errors.Join(err, sc.src.suspend())
	}
	clear(r.open)
	return err
}
