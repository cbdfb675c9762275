package store

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// lockStripes: rows that share a stripe wait for each other for the time a
// write takes to reach the memtable (some microseconds). With a thousand
// stripes a few hundred writers seldom meet by chance.
const lockStripes = 1024

// rowLocks are exclusive locks by row, striped by hash. Several rows are
// locked in the order of stripes, so that writers can't wait in a circle.
type rowLocks struct {
	stripes [lockStripes]rowLock
}

type rowLock struct {
	sync.Mutex
	// marker is the newest timestamp that the clock (not a client) gave to a
	// delete marker in this stripe.
	marker int64
	_      [40]byte // one stripe per cache line
}

func newRowLocks() *rowLocks { return &rowLocks{} }

// rowSet is a set of stripes, held or to be held.
type rowSet struct {
	few   [4]uint16
	index []uint16
}

func (s *Store) stripe(table uint32, row []byte) uint16 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	var id [4]byte
	id[0], id[1], id[2], id[3] = byte(table), byte(table>>8), byte(table>>16), byte(table>>24)
	h.Write(id[:])
	h.Write(row)
	return uint16(h.Sum64() % lockStripes)
}

func (r *rowSet) add(stripe uint16) {
	if r.index == nil {
		r.index = r.few[:0]
	}
	r.index = append(r.index, stripe)
}

// lock takes all stripes of the set.
func (l *rowLocks) lock(r *rowSet) {
	slices.Sort(r.index)
	r.index = slices.Compact(r.index)
	for _, i := range r.index {
		l.stripes[i].Lock()
	}
}

func (l *rowLocks) unlock(r *rowSet) {
	for _, i := range r.index {
		l.stripes[i].Unlock()
	}
}

// passed waits until every stripe has been free once: who holds one now has
// let go of it.
func (l *rowLocks) passed() {
	for i := range l.stripes {
		l.stripes[i].Lock()
		//lint:ignore SA2001 to wait is all that is wanted
		l.stripes[i].Unlock()
	}
}

// marked notes that the clock stamped a marker in a locked stripe.
func (l *rowLocks) marked(stripe uint16, ts int64) {
	l.stripes[stripe].marker = max(l.stripes[stripe].marker, ts)
}

// clockPastMarkers reads the clock, for stamping values, after every marker it
// stamped on the locked rows. A value of the same millisecond would be hidden
// by the marker, which HBase's clients almost never see since a delete and a
// put take it longer than that; we are faster, and so we wait the rest of the
// millisecond. A clock that stands still or ran backwards is not waited for.
func (s *Store) clockPastMarkers(ctx context.Context, r *rowSet) int64 {
	now := s.now()
	newest := int64(-1)
	for _, i := range r.index {
		newest = max(newest, s.locks.stripes[i].marker)
	}
	if newest != now {
		return now
	}
	for range 3 {
		timer := time.NewTimer(500 * time.Microsecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return now
		}
		if now = s.now(); now > newest {
			break
		}
	}
	return now
}
