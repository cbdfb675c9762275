package route

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// maxChunk is the number of routes in a chunk. An update copies one chunk
// (16 KB at 512) and the list of chunks (8 bytes each): half as many would
// make the list the larger part at a million regions, double would make every
// update of a small table cost more than it saves.
const maxChunk = 512

// minChunk: a smaller one joins its neighbour when it is rewritten.
const minChunk = maxChunk / 4

// root is the index of one table: its routes in the order of their start keys,
// disjoint, in chunks. It is immutable once published; writers make a new one
// that shares the chunks not touched.
//
// A search goes over heads: the bytes that all start keys have in common are
// compared once, and the next eight bytes of each key lie as numbers in one
// array. Comparing through pointers would cost one cache miss per step, twenty
// at a million regions; heads cost five or six in all.
type root struct {
	heads  heads // of the chunks' first routes
	chunks []*chunk
	n      int // routes
}

type chunk struct {
	heads  heads
	tight  bool     // no holes: each route but the last ends where the next starts
	routes []*Route // never empty
	steps  steps
}

// steps is the upper level of a search in a chunk's heads: each eighth head, as 32
// bits. It takes four cache lines, and leaves eight heads to look at, which are
// one; without it, six or seven of the heads' 64 lines are read one after the
// other.
type steps struct {
	base  uint64 // the first head; the others are relative to it
	shift uint8
	n     uint8
	part  [maxChunk / stepSize]uint32
}

const stepSize = 8

func makeSteps(head []uint64) (t steps) {
	t.base = head[0]
	if d := head[len(head)-1] - t.base; d > 1<<32-1 {
		t.shift = uint8(bits.Len64(d) - 32)
	}
	t.n = uint8((len(head) + stepSize - 1) / stepSize)
	for i := range int(t.n) {
		t.part[i] = uint32((head[i*stepSize] - t.base) >> t.shift)
	}
	return t
}

// last gives the index of the last head that is at most x, -1 if there is none.
func (t *steps) last(head []uint64, x uint64) int {
	if x < t.base {
		return -1
	}
	d := (x - t.base) >> t.shift
	if d > 1<<32-1 {
		return len(head) - 1
	}
	// The last part that is at most d: parts before it begin with heads that are
	// at most x, parts after it with heads that are larger. Several parts may be
	// equal, if many heads share their upper bits; then the heads decide.
	lo, n := 0, int(t.n)
	for n > 1 {
		half := n >> 1
		_, more := bits.Sub64(d, uint64(t.part[lo+half]), 0) // 1 if d is less
		lo += half & (int(more) - 1)
		n -= half
	}
	first := lo
	for first > 0 && t.part[first] == uint32(d) {
		first-- // x may lie before this part's first head
	}
	from, to := first*stepSize, min((lo+1)*stepSize, len(head))
	if x == ^uint64(0) {
		return len(head) - 1
	}
	return from + lowerBound(head[from:to], x+1) - 1
}

// heads is the searchable form of a sorted list of keys.
type heads struct {
	prefix []byte // common to all keys but an empty first one
	head   []uint64
	// open says that the first key is empty: it precedes everything, whatever
	// the prefix.
	open bool
}

var emptyRoot = &root{}

// head8 gives the first eight bytes as a number, padded with zeros. Keys that
// differ only in trailing zeros have equal heads.
func head8(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	var h uint64
	for i, c := range b {
		h |= uint64(c) << (56 - 8*i)
	}
	return h
}

// makeHeads builds the heads of n keys. If old is given and has the same
// prefix, reuse(i) may name the key's index there, whose head is copied: that
// saves the cache misses of looking at the key.
func makeHeads(n int, key func(int) []byte, old *heads, reuse func(int) int) heads {
	h := heads{head: make([]uint64, n)}
	if n == 0 {
		return h
	}
	first := 0
	if len(key(0)) == 0 {
		h.open, first = true, 1
	}
	if first == n {
		return h
	}
	lo, hi := key(first), key(n-1)
	p := 0
	for p < len(lo) && p < len(hi) && lo[p] == hi[p] {
		p++
	}
	if first == n-1 {
		// A lone key keeps its bytes in the head, where they can be compared.
		p = max(0, len(lo)-8)
	}
	h.prefix = lo[:p:p]
	same := old != nil && bytes.Equal(old.prefix, h.prefix)
	for i := first; i < n; i++ {
		if same {
			if j := reuse(i); j >= 0 {
				h.head[i] = old.head[j]
				continue
			}
		}
		h.head[i] = head8(key(i)[p:])
	}
	return h
}

// find gives the range of keys that only a full comparison can order relative
// to row; all keys before lo are smaller, all from hi on are larger.
func (h *heads) find(row []byte) (lo, hi int) {
	n := len(h.head)
	p := len(h.prefix)
	if p > 0 {
		m := min(p, len(row))
		c := bytes.Compare(row[:m], h.prefix[:m])
		if c == 0 && m < p {
			c = -1 // row is the beginning of the prefix
		}
		if c < 0 {
			if h.open {
				return 1, 1
			}
			return 0, 0
		}
		if c > 0 {
			return n, n
		}
	}
	x := head8(row[p:])
	lo = lowerBound(h.head, x)
	if lo == n || h.head[lo] != x {
		return lo, lo
	}
	// The next one is seldom equal too.
	if lo+1 == n || h.head[lo+1] != x {
		return lo, lo + 1
	}
	if x == ^uint64(0) {
		return lo, n
	}
	return lo, lo + lowerBound(h.head[lo:], x+1)
}

// lowerBound gives the first index whose head is at least x. The borrow of a
// subtraction stands for the comparison: a branch would be guessed wrong half
// of the time.
func lowerBound(head []uint64, x uint64) int {
	base, n := 0, len(head)
	for n > 1 {
		half := n >> 1
		_, less := bits.Sub64(head[base+half-1], x, 0)
		base += half & -int(less)
		n -= half
	}
	if n == 1 && head[base] < x {
		base++
	}
	return base
}

// floor gives the index of the last route that starts at or before row, -1 if
// there is none.
func (c *chunk) floor(row []byte) int {
	lo, hi := c.heads.find(row)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if bytes.Compare(c.routes[m].startKey(), row) <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// below is floor for routes that start strictly before row.
func (c *chunk) below(row []byte) int {
	lo, hi := c.heads.find(row)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if bytes.Compare(c.routes[m].startKey(), row) < 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// floorChunk gives the index of the chunk that holds the floor of row, -1 if
// row precedes everything.
func (r *root) floorChunk(row []byte) int {
	lo, hi := r.heads.find(row)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if bytes.Compare(r.chunks[m].routes[0].startKey(), row) <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// floor gives the last route that starts at or before row, or nil.
func (r *root) floor(row []byte) *Route {
	ci := r.floorChunk(row)
	if ci < 0 {
		return nil
	}
	c := r.chunks[ci]
	return c.routes[c.floor(row)]
}

// guess gives the route that holds row, if it is where the heads say; nil
// means that floor has to look.
//
// The heads are compared as if row had the prefix, and the route found is
// asked whether it holds the row: the same answer, since no other route can
// hold it. Mostly not even that is needed. If row does have the chunk's prefix
// and its head lies strictly between two neighbouring heads, then row lies
// between the two start keys, and if the left region ends where the right one
// starts (tight), it holds the row: no key has been looked at, which at a
// million regions is one cache miss of three.
func (r *root) guess(row []byte) *Route {
	i, _ := r.heads.guess(row)
	if i < 0 {
		return nil
	}
	c := r.chunks[i]
	i, between := c.guess(row)
	if i < 0 {
		return nil
	}
	x := c.routes[i]
	if between && c.tight && bytes.HasPrefix(row, c.heads.prefix) || x.Contains(row) {
		return x
	}
	return nil
}

// guess gives the last key whose head is at most that of row, -1 if there is
// none, and whether row's head lies strictly between this one and the next.
func (h *heads) guess(row []byte) (i int, between bool) {
	p := len(h.prefix)
	if p > len(row) || len(h.head) == 0 {
		return -1, false
	}
	x := head8(row[p:])
	if x == ^uint64(0) {
		return len(h.head) - 1, false
	}
	i = lowerBound(h.head, x+1) - 1
	return i, i >= 0 && i+1 < len(h.head) && h.head[i] < x
}

// guess is the same for a chunk's routes.
func (c *chunk) guess(row []byte) (i int, between bool) {
	h := &c.heads
	p := len(h.prefix)
	if p > len(row) {
		return -1, false
	}
	x := head8(row[p:])
	i = c.steps.last(h.head, x)
	return i, i >= 0 && i+1 < len(h.head) && h.head[i] < x
}

// at is a place in a root: the i-th route of chunk ci. The place before the
// first route is {0, -1}; the place after the last has i == len(routes).
type at struct{ ci, i int }

// seek gives the place of the last route that starts at or before row (or
// strictly before, if before is set), {0, -1} if there is none.
func (r *root) seek(row []byte, before bool) at {
	ci := r.floorChunk(row)
	if ci < 0 {
		return at{0, -1}
	}
	if !before {
		return at{ci, r.chunks[ci].floor(row)}
	}
	i := r.chunks[ci].below(row)
	if i < 0 { // the chunk starts exactly at row
		if ci == 0 {
			return at{0, -1}
		}
		ci--
		i = len(r.chunks[ci].routes) - 1
	}
	return at{ci, i}
}

// last gives the place of the last route.
func (r *root) last() at {
	if len(r.chunks) == 0 {
		return at{0, -1}
	}
	ci := len(r.chunks) - 1
	return at{ci, len(r.chunks[ci].routes) - 1}
}

// get gives the route at a place, nil if there is none.
func (r *root) get(p at) *Route {
	if p.i < 0 || p.ci >= len(r.chunks) || p.i >= len(r.chunks[p.ci].routes) {
		return nil
	}
	return r.chunks[p.ci].routes[p.i]
}

// next gives the place that follows.
func (r *root) next(p at) at {
	if p.ci < len(r.chunks) && p.i+1 >= len(r.chunks[p.ci].routes) && p.ci+1 < len(r.chunks) {
		return at{p.ci + 1, 0}
	}
	return at{p.ci, p.i + 1}
}

// makeChunk takes ownership of routes. Route i was number from[i] of the old
// chunk, or is not of it (-1); old may be nil.
func makeChunk(routes []*Route, old *chunk, from []int32) *chunk {
	c := &chunk{routes: routes, tight: true}
	for i := 0; i+1 < len(routes) && c.tight; i++ {
		a, b := routes[i], routes[i+1]
		// Neighbours share the key; equal keys in two places are not worth
		// looking at.
		c.tight = a.end == b.start && a.endLen == b.startLen
	}
	var oldHeads *heads
	if old != nil {
		oldHeads = &old.heads
	}
	c.heads = makeHeads(len(routes), func(i int) []byte { return routes[i].startKey() },
		oldHeads, func(i int) int { return int(from[i]) })
	c.steps = makeSteps(c.heads.head)
	return c
}

// makeChunks cuts routes into chunks of about equal size, copying them.
func makeChunks(dst []*chunk, routes []*Route, old *chunk, from []int32) []*chunk {
	n := (len(routes) + maxChunk - 1) / maxChunk
	for i := range n {
		lo, hi := i*len(routes)/n, (i+1)*len(routes)/n
		own := make([]*Route, hi-lo)
		copy(own, routes[lo:hi])
		dst = append(dst, makeChunk(own, old, from[lo:hi]))
	}
	return dst
}

// splice makes a root in which the chunks [lo, hi) are replaced.
func (r *root) splice(lo, hi int, chunks []*chunk) *root {
	n := len(r.chunks) - (hi - lo) + len(chunks)
	if n == 0 {
		return emptyRoot
	}
	s := &root{chunks: make([]*chunk, 0, n), n: r.n}
	s.chunks = append(s.chunks, r.chunks[:lo]...)
	s.chunks = append(s.chunks, chunks...)
	s.chunks = append(s.chunks, r.chunks[hi:]...)
	for _, c := range r.chunks[lo:hi] {
		s.n -= len(c.routes)
	}
	for _, c := range chunks {
		s.n += len(c.routes)
	}
	shift := len(chunks) - (hi - lo)
	s.heads = makeHeads(n, func(i int) []byte { return s.chunks[i].routes[0].startKey() },
		&r.heads, func(i int) int {
			switch {
			case i < lo:
				return i
			case i < lo+len(chunks):
				return -1
			}
			return i - shift
		})
	return s
}
