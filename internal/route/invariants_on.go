//go:build invariants

package route

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"unsafe"
)

// tableChecks remembers what the published root looked like.
type tableChecks struct{ sums map[*root]uint64 }

// waiterChecks remembers whether the waiter has an owner.
type waiterChecks struct{ owned bool }

// assertf ends the program: what follows a broken invariant is not worth
// running.
func assertf(ok bool, format string, args ...any) {
	if !ok {
		panic("route invariant broken: " + fmt.Sprintf(format, args...))
	}
}

// checkRoot: published routes are sorted and disjoint (I1), the heads agree
// with the keys, and the root published before has not changed (I2). Under
// t.pub.
func checkRoot(t *table, old, next *root) {
	if sum, ok := t.checks.sums[old]; ok {
		assertf(sum == sumOf(old), "a published root of %s has changed", t.text)
	}
	n := 0
	var prev *Route
	for ci, c := range next.chunks {
		assertf(len(c.routes) > 0 && len(c.routes) <= maxChunk, "chunk of %d routes", len(c.routes))
		for i, r := range c.routes {
			n++
			assertf(r.table == t, "route of another table")
			assertf(r.endLen == 0 || bytes.Compare(r.startKey(), r.endKey()) < 0, "route %v is empty", r)
			if prev != nil {
				assertf(prev.endLen > 0 && bytes.Compare(prev.endKey(), r.startKey()) <= 0, "routes %v and %v overlap", prev, r)
			}
			assertf(next.seek(r.startKey(), false) == at{ci, i}, "route %v is not found where it is", r)
			assertf(r.server == nil || r.epoch <= uint32(r.server.Epoch()), "route %v is ahead of its server's epoch", r) // I3
			if i > 0 && c.tight {
				assertf(bytes.Equal(prev.endKey(), r.startKey()), "chunk with a hole before %v is said to be tight", r)
			}
			prev = r
		}
	}
	assertf(n == next.n, "root counts %d routes, has %d", next.n, n)
	t.checks.sums = map[*root]uint64{next: sumOf(next)}
}

var seed = maphash.MakeSeed()

func sumOf(r *root) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	word := func(p uint64) {
		b := (*[8]byte)(unsafe.Pointer(&p))
		h.Write(b[:])
	}
	for i, c := range r.chunks {
		word(r.heads.head[i])
		word(uint64(uintptr(unsafe.Pointer(c))))
		for j, x := range c.routes {
			word(c.heads.head[j])
			word(uint64(uintptr(unsafe.Pointer(x))))
		}
	}
	return h.Sum64()
}

// checkOwner: a waiter gets an owner only when it has none (I4). Under
// cache.mu.
func checkOwner(w *waiter, owned bool) {
	assertf(w.checks.owned != owned, "waiter for %q: owned %t twice", w.pos.key, owned)
	w.checks.owned = owned
}

// checkFlights: no more flights than allowed (I5). Under cache.mu.
func checkFlights(c *Cache) {
	assertf(c.limit.inflight <= c.cfg.Flights, "%d reads of meta, limit %d", c.limit.inflight, c.cfg.Flights)
	for t := range c.pending {
		assertf(len(t.flights) <= c.cfg.TableFlights, "%d flights of %s", len(t.flights), t.text)
	}
}
