package store

import (
	"bytes"
	"errors"
	"sync"
)

// readers are the open scanners. What the oldest of them may still return is
// spared by major compactions of the same rows.
type readers struct {
	mu   sync.Mutex
	open map[*Scanner]reading
}

// reading is what an open scanner reads: rows [lower, upper) of a table, empty
// being open. As in HBase the region counts, not the scan's own bounds.
type reading struct {
	table        uint32
	lower, upper []byte
	readPoint    uint64
}

// touches says whether the rows [start, end) of the table are read.
func (r *reading) touches(table uint32, start, end []byte) bool {
	return r.table == table && (len(end) == 0 || bytes.Compare(r.lower, end) < 0) && (len(r.upper) == 0 || bytes.Compare(start, r.upper) < 0)
}

// add registers a scanner. A read point of 0 means the present one; the read
// point comes back.
func (r *readers) add(sc *Scanner, what reading, m *mvcc) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = make(map[*Scanner]reading)
	}
	if what.readPoint == 0 {
		what.readPoint = m.readPoint()
	}
	r.open[sc] = what
	return what.readPoint
}

func (r *readers) remove(sc *Scanner) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, sc)
}

// oldest is the smallest read point at which one of the rows [start, end) of a
// table is read, at most the present one.
func (r *readers) oldest(table uint32, start, end []byte, m *mvcc) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := m.readPoint()
	for _, p := range r.open {
		if p.touches(table, start, end) {
			at = min(at, p.readPoint)
		}
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
