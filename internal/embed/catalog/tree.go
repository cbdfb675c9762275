package catalog

import (
	"iter"
	"slices"
	"sort"
	"sync/atomic"
)

// maxItems is the fan-out of a tree node. At 64 a change of one entry among
// 100,000 copies three nodes (about 1.5 KiB); half of it would add a level,
// double of it would double the copying.
const maxItems = 64

// tree is an immutable sorted map in the form of a B+ tree: every change
// copies the path from the root to one leaf and shares the rest. The zero
// value with cmp set is empty and ready.
type tree[V any] struct {
	root *node[V]
	size int
	cmp  func(a, b V) int
}

// node is a leaf (kids nil) or an inner node, whose items[i] is the smallest
// item below kids[i].
type node[V any] struct {
	items []V
	kids  []*node[V]
	// newest is the latest time of an item below, once somebody has asked for
	// it; 0 before. A node never changes, so it holds for good.
	newest atomic.Int64
}

func newTree[V any](cmp func(a, b V) int) tree[V] { return tree[V]{cmp: cmp} }

// buildTree makes a tree of items, which are sorted here.
func buildTree[V any](cmp func(a, b V) int, items []V) tree[V] {
	slices.SortFunc(items, cmp)
	t := tree[V]{cmp: cmp, size: len(items)}
	if len(items) == 0 {
		return t
	}
	const fill = maxItems * 3 / 4
	var level []*node[V]
	for c := range slices.Chunk(items, fill) {
		level = append(level, &node[V]{items: slices.Clone(c)})
	}
	for len(level) > 1 {
		var up []*node[V]
		for c := range slices.Chunk(level, fill) {
			n := &node[V]{kids: slices.Clone(c)}
			for _, k := range c {
				n.items = append(n.items, k.items[0])
			}
			up = append(up, n)
		}
		level = up
	}
	t.root = level[0]
	return t
}

// find gives the item for which at answers 0. at compares an item with the
// wanted position: negative when the item lies before it.
func (t tree[V]) find(at func(V) int) (v V, ok bool) {
	n := t.root
	for n != nil {
		i := sort.Search(len(n.items), func(i int) bool { return at(n.items[i]) > 0 }) - 1
		if i < 0 {
			return v, false
		}
		if n.kids == nil {
			if at(n.items[i]) == 0 {
				return n.items[i], true
			}
			return v, false
		}
		n = n.kids[i]
	}
	return v, false
}

// set adds the item or replaces the equal one.
func (t tree[V]) set(v V) tree[V] {
	if t.root == nil {
		return tree[V]{root: &node[V]{items: []V{v}}, size: 1, cmp: t.cmp}
	}
	a, b, added := t.root.set(v, t.cmp)
	if added {
		t.size++
	}
	t.root = a
	if b != nil {
		t.root = &node[V]{items: []V{a.items[0], b.items[0]}, kids: []*node[V]{a, b}}
	}
	return t
}

func (n *node[V]) set(v V, cmp func(a, b V) int) (a, b *node[V], added bool) {
	i, found := slices.BinarySearchFunc(n.items, v, cmp)
	if n.kids == nil {
		m := &node[V]{items: make([]V, 0, len(n.items)+1)}
		m.items = append(m.items, n.items[:i]...)
		m.items = append(m.items, v)
		if found {
			i++
		}
		m.items = append(m.items, n.items[i:]...)
		a, b = m.split()
		return a, b, !found
	}
	if !found && i > 0 {
		i--
	}
	x, y, added := n.kids[i].set(v, cmp)
	m := &node[V]{items: slices.Clone(n.items), kids: slices.Clone(n.kids)}
	m.kids[i], m.items[i] = x, x.items[0]
	if y != nil {
		m.kids = slices.Insert(m.kids, i+1, y)
		m.items = slices.Insert(m.items, i+1, y.items[0])
	}
	a, b = m.split()
	return a, b, added
}

// split halves a node that has grown over maxItems. The node is fresh, so its
// slices may be cut; capacities are clipped so that nobody appends into the
// other half.
func (n *node[V]) split() (a, b *node[V]) {
	if len(n.items) <= maxItems {
		return n, nil
	}
	h := len(n.items) / 2
	a = &node[V]{items: slices.Clip(n.items[:h])}
	b = &node[V]{items: slices.Clip(n.items[h:])}
	if n.kids != nil {
		a.kids, b.kids = slices.Clip(n.kids[:h]), slices.Clip(n.kids[h:])
	}
	return a, b
}

// remove takes out the item equal to v, if there.
func (t tree[V]) remove(v V) tree[V] {
	if t.root == nil {
		return t
	}
	n, removed := t.root.remove(v, t.cmp)
	if !removed {
		return t
	}
	t.size--
	for n != nil && len(n.kids) == 1 {
		n = n.kids[0]
	}
	t.root = n
	return t
}

func (n *node[V]) remove(v V, cmp func(a, b V) int) (*node[V], bool) {
	i, found := slices.BinarySearchFunc(n.items, v, cmp)
	if n.kids == nil {
		if !found {
			return n, false
		}
		if len(n.items) == 1 {
			return nil, true
		}
		m := &node[V]{items: make([]V, 0, len(n.items)-1)}
		m.items = append(append(m.items, n.items[:i]...), n.items[i+1:]...)
		return m, true
	}
	if !found {
		i--
	}
	if i < 0 {
		return n, false
	}
	k, removed := n.kids[i].remove(v, cmp)
	if !removed {
		return n, false
	}
	m := &node[V]{items: slices.Clone(n.items), kids: slices.Clone(n.kids)}
	if k == nil {
		m.items, m.kids = slices.Delete(m.items, i, i+1), slices.Delete(m.kids, i, i+1)
		if len(m.kids) == 0 {
			return nil, true
		}
		return m, true
	}
	m.kids[i], m.items[i] = k, k.items[0]
	// A thin child joins its neighbour, so that mass deletion leaves no tree
	// of single-item leaves behind.
	if len(k.items) < maxItems/4 && len(m.kids) > 1 {
		if i == len(m.kids)-1 {
			i--
		}
		l, r := m.kids[i], m.kids[i+1]
		if len(l.items)+len(r.items) <= maxItems {
			j := &node[V]{items: slices.Concat(l.items, r.items)}
			if l.kids != nil {
				j.kids = slices.Concat(l.kids, r.kids)
			}
			m.kids[i] = j
			m.items, m.kids = slices.Delete(m.items, i+1, i+2), slices.Delete(m.kids, i+1, i+2)
		}
	}
	return m, true
}

// all gives every item in order.
func (t tree[V]) all() iter.Seq[V] { return t.from(func(V) int { return 0 }) }

// from gives, in order, the items for which at is not negative.
func (t tree[V]) from(at func(V) int) iter.Seq[V] {
	return func(yield func(V) bool) {
		if t.root != nil {
			t.root.ascend(at, false, yield)
		}
	}
}

func (n *node[V]) ascend(at func(V) int, all bool, yield func(V) bool) bool {
	if n.kids == nil {
		i := 0
		if !all {
			i = sort.Search(len(n.items), func(i int) bool { return at(n.items[i]) >= 0 })
		}
		for _, v := range n.items[i:] {
			if !yield(v) {
				return false
			}
		}
		return true
	}
	i := 0
	if !all {
		// The last child whose smallest item lies before the position may
		// still hold items behind it.
		i = max(sort.Search(len(n.items), func(i int) bool { return at(n.items[i]) >= 0 })-1, 0)
	}
	for j, k := range n.kids[i:] {
		if !k.ascend(at, all || j > 0, yield) {
			return false
		}
	}
	return true
}

// fromSince is from without the items of which when is before since.
func (t tree[V]) fromSince(at func(V) int, when func(V) int64, since int64) iter.Seq[V] {
	if since <= 0 {
		return t.from(at)
	}
	return func(yield func(V) bool) {
		if t.root != nil {
			t.root.ascendSince(at, false, when, since, yield)
		}
	}
}

func (n *node[V]) ascendSince(at func(V) int, all bool, when func(V) int64, since int64, yield func(V) bool) bool {
	if n.latest(when) < since {
		return true
	}
	i := 0
	if !all {
		i = sort.Search(len(n.items), func(i int) bool { return at(n.items[i]) >= 0 })
	}
	if n.kids == nil {
		for _, v := range n.items[i:] {
			if when(v) >= since && !yield(v) {
				return false
			}
		}
		return true
	}
	if !all {
		i = max(i-1, 0)
	}
	for j, k := range n.kids[i:] {
		if !k.ascendSince(at, all || j > 0, when, since, yield) {
			return false
		}
	}
	return true
}

// latest is the latest time of an item below n.
func (n *node[V]) latest(when func(V) int64) int64 {
	if t := n.newest.Load(); t != 0 {
		return t
	}
	var t int64
	for _, k := range n.kids {
		t = max(t, k.latest(when))
	}
	if n.kids == nil {
		for _, v := range n.items {
			t = max(t, when(v))
		}
	}
	n.newest.Store(t)
	return t
}

// downFrom gives, in descending order, the items for which at is not positive.
func (t tree[V]) downFrom(at func(V) int) iter.Seq[V] {
	return func(yield func(V) bool) {
		if t.root != nil {
			t.root.descend(at, false, yield)
		}
	}
}

func (n *node[V]) descend(at func(V) int, all bool, yield func(V) bool) bool {
	i := len(n.items)
	if !all {
		i = sort.Search(len(n.items), func(i int) bool { return at(n.items[i]) > 0 })
	}
	for j := i - 1; j >= 0; j-- {
		if n.kids == nil {
			if !yield(n.items[j]) {
				return false
			}
			continue
		}
		if !n.kids[j].descend(at, all || j < i-1, yield) {
			return false
		}
	}
	return true
}
