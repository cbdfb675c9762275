package route

import (
	"bytes"
	"sort"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// verdict is what becomes of a new belief that meets an old one.
type verdict uint8

const (
	lose    verdict = iota // the old one stays
	confirm                // they say the same; the old one is fresh again
	win                    // the new one replaces the old one
)

// judge applies the ordering rules (docs/design/routing.md) to a new belief and
// an old one whose key ranges overlap.
//
// A cut of the key space is newer if its region id is larger; a location of
// one region is newer if its open sequence number is larger. Since one wrong
// number must not strand the client for ever, an older answer from meta's
// primary is accepted once the belief it would replace has been disproved
// (rejected, or its server is down), or when meta has said so three times
// (insists).
func (m *merge) judge(n, o *Route) verdict {
	fromPrimary := n.Origin() >= FromMeta
	older := func() verdict {
		if fromPrimary && (!o.Valid() || n.Origin() == FromMeta && m.insists(n)) {
			return win
		}
		return lose
	}
	if !n.sameRegion(o) {
		switch {
		case n.id > o.id:
			return win
		case n.id == o.id && fromPrimary:
			// Two regions of one birth do not overlap, so one of the two
			// answers is damaged; the latest is as good as any.
			return win
		}
		return older()
	}
	if m.force {
		return win
	}
	if n.Rejected() {
		// Meta knows the region but not that anybody serves it. That tells us
		// nothing better than what we have.
		return lose
	}
	unknown := n.openSeq < 0 || o.openSeq < 0
	if n.server == o.server {
		switch {
		case o.Rejected() && (unknown || n.openSeq == o.openSeq):
			return lose // exactly what has been disproved
		case n.openSeq > o.openSeq, !o.Valid():
			return win
		case n.openSeq == o.openSeq:
			return confirm
		}
		return older()
	}
	switch {
	case unknown:
		if fromPrimary {
			return win
		}
		return lose
	case n.openSeq > o.openSeq:
		return win
	case n.openSeq == o.openSeq:
		if !o.Valid() || n.Origin() >= o.Origin() {
			return win
		}
		return lose
	}
	return older()
}

// rewindAfter is how many identical answers of meta's primary outweigh larger
// numbers in the cache.
const rewindAfter = 3

// maxRewinds bounds the answers remembered; there are none in a sane cluster.
const maxRewinds = 64

type rewind struct {
	openSeq int64
	server  *health.Server
	seen    int
}

// insists counts meta's answers that contradict valid beliefs with smaller
// numbers; an answer counts once, however many beliefs it contradicts.
func (m *merge) insists(n *Route) bool {
	if m.asked != n {
		m.asked, m.insisted = n, m.t.insists(n)
	}
	return m.insisted
}

// insists is the count itself. Under t.pub.
func (t *table) insists(n *Route) bool {
	w := t.rewinds[n.encoded]
	if w.seen == 0 || w.openSeq != n.openSeq || w.server != n.server {
		w = rewind{openSeq: n.openSeq, server: n.server}
	}
	w.seen++
	if w.seen >= rewindAfter {
		delete(t.rewinds, n.encoded)
		return true
	}
	if t.rewinds == nil || len(t.rewinds) >= maxRewinds {
		t.rewinds = make(map[[16]byte]rewind)
	}
	t.rewinds[n.encoded] = w
	return false
}

// publish makes new beliefs known, which are sorted by start key, and gives
// those that were accepted and those that they replaced. One call is one new
// root, whatever the number of routes.
func (t *table) publish(routes []*Route) (added, removed []*Route) { return t.put(routes, false) }

// publishForced is publish for copies of routes that are to replace those,
// whatever is known against them.
func (t *table) publishForced(routes []*Route) (added, removed []*Route) { return t.put(routes, true) }

func (t *table) put(routes []*Route, force bool) (added, removed []*Route) {
	if len(routes) == 0 {
		return nil, nil
	}
	t.pub.Lock()
	defer t.pub.Unlock()
	old := t.root.Load()
	next := old
	// From the right, so that the chunk numbers of the left stay true.
	for hi := len(routes); hi > 0; {
		first, last := next.span(routes[hi-1])
		lo := hi - 1
		for lo > 0 {
			f, l := next.span(routes[lo-1])
			if l < first {
				break
			}
			first, last = min(f, first), max(last, l)
			lo--
		}
		m := merge{t: t, force: force, alone: !force && len(routes) < blockKeys}
		m.run(next, first, last, routes[lo:hi])
		if m.changed {
			next = m.rewrite(next, first, last)
		}
		added = append(added, m.added...)
		removed = append(removed, m.removed...)
		hi = lo
	}
	t.store(old, next)
	t.forgetReplicas(removed)
	return added, removed
}

// remove takes out routes that drop says yes to, within the chunks [lo, hi).
func (t *table) remove(lo, hi int, drop func(*Route) bool) (removed []*Route) {
	t.pub.Lock()
	defer t.pub.Unlock()
	old := t.root.Load()
	next := old
	for ci := min(hi, len(old.chunks)) - 1; ci >= lo; ci-- {
		m := merge{t: t, right: true}
		for i, r := range next.chunks[ci].routes {
			if drop(r) {
				m.removed = append(m.removed, r)
			} else {
				m.keep(r, int32(i))
			}
		}
		if len(m.removed) > 0 {
			next = m.rewrite(next, ci, ci)
			removed = append(removed, m.removed...)
		}
	}
	t.store(old, next)
	t.forgetReplicas(removed)
	return removed
}

// removeExactly takes out these routes, if they are still there.
func (t *table) removeExactly(routes map[*Route]bool) (removed []*Route) {
	r := t.root.Load()
	lo, hi := len(r.chunks), 0
	for x := range routes {
		ci := max(r.floorChunk(x.startKey()), 0)
		lo, hi = min(lo, ci), max(hi, ci+1)
	}
	// A writer may have moved them by a chunk or two meanwhile; looking at all
	// of a table's chunks is cheap enough for a rare event, but only where
	// there is no other way.
	if removed = t.remove(lo, hi, func(x *Route) bool { return routes[x] }); len(removed) < len(routes) {
		removed = append(removed, t.remove(0, len(t.root.Load().chunks)+1, func(x *Route) bool { return routes[x] })...)
	}
	return removed
}

// store publishes a root. Under t.pub.
func (t *table) store(old, next *root) {
	if old != next {
		checkRoot(t, old, next)
		t.root.Store(next)
		t.cache.routes.Add(int64(next.n - old.n))
	}
}

// span gives the chunks (first and last, inclusive) that a route touches: from
// the one that holds its left neighbour to the one with the last route that
// starts before its end.
func (r *root) span(n *Route) (first, last int) {
	first = max(r.floorChunk(n.startKey()), 0)
	if first > 0 && bytes.Equal(r.chunks[first].routes[0].startKey(), n.startKey()) {
		// The left neighbour is in the chunk before, and may reach into n.
		first--
	}
	if n.endLen == 0 {
		return first, max(len(r.chunks)-1, 0)
	}
	return first, max(r.floorChunk(n.endKey()), first)
}

// merge rewrites a run of neighbouring chunks.
type merge struct {
	t              *table
	out            []*Route
	from           []int32 // place of out[i] in the first old chunk, or -1
	added, removed []*Route
	changed        bool
	force          bool
	alone          bool   // the new ones have keys of their own, in no block
	right          bool   // join right neighbours only: those to the left are still to be looked at
	asked          *Route // the last one insists was asked about, and what it said
	insisted       bool
}

func (m *merge) keep(r *Route, from int32) {
	m.out = append(m.out, r)
	m.from = append(m.from, from)
}

// run merges news, sorted, with the routes of the chunks first to last.
func (m *merge) run(r *root, first, last int, news []*Route) {
	var olds []*Route
	if first < len(r.chunks) {
		if first == last {
			olds = r.chunks[first].routes
		} else {
			for _, c := range r.chunks[first : last+1] {
				olds = append(olds, c.routes...)
			}
		}
	}
	single := first == last
	m.out = make([]*Route, 0, len(olds)+len(news))
	m.from = make([]int32, 0, len(olds)+len(news))
	keep := func(i int) {
		if single {
			m.keep(olds[i], int32(i))
		} else {
			m.keep(olds[i], -1)
		}
	}
	i := 0
	for _, n := range news {
		for i < len(olds) && !olds[i].endsAfter(n.startKey()) {
			keep(i)
			i++
		}
		// An answer may contradict itself: two of its regions overlap.
		if k := len(m.out) - 1; k >= 0 && m.out[k].endsAfter(n.startKey()) {
			if m.judge(n, m.out[k]) != win {
				continue
			}
			m.drop(k)
		}
		j := i
		v := win
		for j < len(olds) && n.endsAfter(olds[j].startKey()) {
			v = min(v, m.judge(n, olds[j]))
			j++
		}
		switch v {
		case confirm:
			olds[i].confirmed(n.learned.Load(), n.Origin())
		case win:
			m.removed = append(m.removed, olds[i:j]...)
			m.share(n, olds, j)
			m.keep(n, -1)
			m.added = append(m.added, n)
			m.changed = true
			i = j
		}
	}
	for ; i < len(olds); i++ {
		keep(i)
	}
}

// drop takes back out[k], the last, which is one of this merge's own.
func (m *merge) drop(k int) {
	r := m.out[k]
	m.out, m.from = m.out[:k], m.from[:k]
	if n := len(m.added) - 1; n >= 0 && m.added[n] == r {
		m.added = m.added[:n]
	} else {
		m.removed = append(m.removed, r)
	}
	m.changed = true
}

// share lets n use the keys of its neighbours where they are equal. Other keys
// of routes that are learned alone go into blocks of a few, as those of pages
// have been put. n is not published yet.
func (m *merge) share(n *Route, olds []*Route, j int) {
	if k := len(m.out) - 1; k >= 0 && n.startLen > 0 && bytes.Equal(m.out[k].endKey(), n.startKey()) {
		n.start = m.out[k].end
	} else if m.alone && n.startLen > 0 {
		n.start = m.t.keys.adopt(n.start, n.startLen)
	}
	if j < len(olds) && n.endLen > 0 && bytes.Equal(olds[j].startKey(), n.endKey()) {
		n.end = olds[j].start
	} else if m.alone && n.endLen > 0 {
		n.end = m.t.keys.adopt(n.end, n.endLen)
	}
}

// rewrite gives the root with the chunks first to last replaced by out.
func (m *merge) rewrite(r *root, first, last int) *root {
	if len(r.chunks) == 0 {
		return r.splice(0, 0, makeChunks(nil, m.out, nil, m.from))
	}
	var old *chunk
	if first == last {
		old = r.chunks[first]
	}
	if len(m.out) < minChunk && len(r.chunks) > last-first+1 {
		// Too small to stand alone: join a neighbour.
		old = nil
		switch {
		case last+1 < len(r.chunks):
			last++
			m.out = append(m.out, r.chunks[last].routes...)
		case !m.right:
			first--
			m.out = append(append([]*Route(nil), r.chunks[first].routes...), m.out...)
		}
		m.from = make([]int32, len(m.out))
		for i := range m.from {
			m.from[i] = -1
		}
	}
	return r.splice(first, last+1, makeChunks(nil, m.out, old, m.from))
}

// sortRoutes sorts by start key; of equal ones, the larger id comes last.
func sortRoutes(routes []*Route) {
	sort.SliceStable(routes, func(i, j int) bool {
		if c := bytes.Compare(routes[i].startKey(), routes[j].startKey()); c != 0 {
			return c < 0
		}
		return routes[i].id < routes[j].id
	})
}
