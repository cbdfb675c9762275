package rpc

import (
	"math"
	"sync"
	"sync/atomic"
)

// calls are the calls that wait for an answer. Whoever takes one out ends it,
// so that it ends exactly once.
//
// Ids are given out in sequence, so those in use lie close together, and a ring
// indexed by their low bits does for what a map would cost several times as
// much. An id whose place is still taken by an older call is passed over.
type calls struct {
	mu sync.Mutex
	// ring has a power of two places, at least twice as many as calls; nil once
	// the connection failed.
	ring   []*pending
	n      int
	lastID uint32
	count  atomic.Int64 // n, readable without the lock
	// overlaps counts the calls that began while another was under way.
	overlaps atomic.Uint64
}

const (
	minRing = 64
	// keepRing is how many places are kept while there are no calls: 32 KiB.
	keepRing = 4096
)

func (cs *calls) place(id uint32) **pending { return &cs.ring[id&uint32(len(cs.ring)-1)] }

// register gives the call an id. It fails if the connection has.
func (cs *calls) register(p *pending) bool {
	cs.mu.Lock()
	if cs.ring == nil {
		cs.mu.Unlock()
		return false
	}
	if 2*cs.n >= len(cs.ring) {
		cs.grow()
	}
	for {
		// Ids are Java ints: 31 bits, then from the start. 0 is left out, as it
		// is what a header without an id reads as.
		cs.lastID = (cs.lastID + 1) & math.MaxInt32
		if cs.lastID != 0 && *cs.place(cs.lastID) == nil {
			break
		}
	}
	p.id = cs.lastID
	*cs.place(p.id) = p
	cs.n++
	if cs.count.Add(1) > 1 {
		cs.overlaps.Add(1)
	}
	cs.mu.Unlock()
	return true
}

// grow doubles the ring. Calls that had places of their own have so in a
// larger ring.
func (cs *calls) grow() {
	old := cs.ring
	cs.ring = make([]*pending, 2*len(old))
	for _, p := range old {
		if p != nil {
			*cs.place(p.id) = p
		}
	}
}

// find gives the call of this id, nil if there is none. Under the lock.
func (cs *calls) find(id uint32) *pending {
	if cs.ring == nil {
		return nil
	}
	if p := *cs.place(id); p != nil && p.id == id {
		return p
	}
	return nil
}

// remove takes out a call that is there. Under the lock.
func (cs *calls) remove(p *pending) {
	*cs.place(p.id) = nil
	cs.n--
	cs.count.Add(-1)
	if cs.n == 0 && len(cs.ring) > keepRing {
		cs.ring = make([]*pending, minRing)
	}
}

// take removes a call, nil if there is none of this id.
func (cs *calls) take(id uint32) *pending {
	cs.mu.Lock()
	p := cs.find(id)
	if p != nil {
		cs.remove(p)
	}
	cs.mu.Unlock()
	return p
}

// forget removes this very call; false if someone else took it.
func (cs *calls) forget(p *pending) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.find(p.id) != p {
		return false
	}
	cs.remove(p)
	return true
}

// waiting says whether somebody waits for an answer of this id, and would take
// it lent.
func (cs *calls) waiting(id uint32) (waited, borrows bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	p := cs.find(id)
	return p != nil, p != nil && p.borrows
}

// takeYielding removes the calls that may be interrupted.
func (cs *calls) takeYielding() (taken []*pending) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, p := range cs.ring {
		if p != nil && p.yield {
			taken = append(taken, p)
		}
	}
	for _, p := range taken {
		cs.remove(p)
	}
	return taken
}

// end removes all calls for good; ok is false if that was done before, or if
// ifIdle is set and there are calls.
func (cs *calls) end(ifIdle bool) (taken []*pending, over, ok bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.ring == nil {
		return nil, true, false
	}
	if ifIdle && cs.n > 0 {
		return nil, false, false
	}
	for _, p := range cs.ring {
		if p != nil {
			taken = append(taken, p)
		}
	}
	cs.ring, cs.n = nil, 0
	cs.count.Store(0)
	return taken, true, true
}
