package session

import (
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// maxLanes bounds the requests of one batch that are in flight to one server
// at one time. One would leave the server idle between two requests; many
// would put other callers behind this one.
const maxLanes = 4

// lane is a chain of chunks that are sent one after another.
type lane struct {
	head, tail *chunk
	length     int
}

// group is what goes to one server.
type group struct {
	srv    *health.Server
	unsafe bool
	lanes  []lane
}

// chunks groups the items of ready that have a route by server and region and
// cuts the groups into requests. It gives the heads of the lanes. ready is in
// row order, so the items of a region are neighbours; within a region they are
// put into the caller's order.
func chunks(items []Item, ready []int, routes []*route.Route, cfg *Config) []*chunk {
	var groups []*group
	find := func(srv *health.Server, unsafe bool) *group {
		for _, g := range groups {
			if g.srv == srv && g.unsafe == unsafe {
				return g
			}
		}
		g := &group{srv: srv, unsafe: unsafe}
		groups = append(groups, g)
		return g
	}
	for k := 0; k < len(ready); {
		r := routes[k]
		end := k + 1
		for end < len(ready) && routes[end] == r {
			end++
		}
		if r != nil {
			run := slices.Clone(ready[k:end])
			slices.Sort(run)
			cut(items, run, r, find, cfg)
		}
		k = end
	}
	var heads []*chunk
	for _, g := range groups {
		for _, l := range g.lanes {
			heads = append(heads, l.head)
		}
	}
	return heads
}

// cut puts the items of one region into chunks of its server. A region that
// does not fit into one request goes on in the next of the same lane, so that
// its items stay in order.
func cut(items []Item, run []int, r *route.Route, find func(*health.Server, bool) *group, cfg *Config) {
	var in [2]*lane // by unsafe
	for _, i := range run {
		it := &items[i]
		unsafe := it.Idempotency == retry.Unsafe
		size, count := it.size(), len(it.Actions)
		which := 0
		if unsafe {
			which = 1
		}
		if l := in[which]; l == nil {
			in[which] = find(r.Server(), unsafe).room(size, count, cfg)
		} else if !l.tail.fits(size, count, cfg) {
			l.extend(&chunk{srv: r.Server(), unsafe: unsafe})
		}
		c := in[which].tail
		c.add(i, r, it.Atomic || it.Condition != nil || count != 1)
		c.bytes += size
		c.count += count
	}
}

// room gives a lane whose last chunk has room: one that has, a new one, or the
// shortest with a fresh chunk. The pointer is good until the next call.
func (g *group) room(size, count int, cfg *Config) *lane {
	short := 0
	for k := range g.lanes {
		if g.lanes[k].tail.fits(size, count, cfg) {
			return &g.lanes[k]
		}
		if g.lanes[k].length < g.lanes[short].length {
			short = k
		}
	}
	c := &chunk{srv: g.srv, unsafe: g.unsafe}
	if len(g.lanes) < maxLanes {
		g.lanes = append(g.lanes, lane{c, c, 1})
		return &g.lanes[len(g.lanes)-1]
	}
	g.lanes[short].extend(c)
	return &g.lanes[short]
}

func (l *lane) extend(c *chunk) {
	l.tail.next, l.tail = c, c
	l.length++
}

// fits says whether one more item may go into the chunk; an empty one takes
// any.
func (c *chunk) fits(size, count int, cfg *Config) bool {
	return c.count == 0 || c.bytes+size <= cfg.BatchBytes && c.count+count <= cfg.BatchActions
}

func (c *chunk) add(item int, r *route.Route, grouped bool) {
	if n := len(c.parts) - 1; !grouped && n >= 0 && c.parts[n].route == r && !c.parts[n].group {
		c.parts[n].items = append(c.parts[n].items, item)
		return
	}
	c.parts = append(c.parts, part{route: r, items: []int{item}, group: grouped})
}

// size estimates an item's bytes on the wire.
func (it *Item) size() int {
	n := len(it.Cells) + len(it.Row) + 32
	if len(it.Cells) == 0 {
		for _, a := range it.Actions {
			n += a.SizeVT()
		}
	}
	return n
}
