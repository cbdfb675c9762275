package catalog

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// generated is what a State knows about the regions of a generated table: a
// formula for where they are, and pages with those that are elsewhere. A page
// costs 24 bytes per region, a region on none costs nothing. Regions that were
// split or merged away, and what came of them, are ordinary entries.
type generated struct {
	name    meta.TableName
	text    string
	formula *Formula
	base    base
	servers []meta.ServerName // that slots name by number; 0 is none
	pages   tree[*page]
	away    tree[int32] // regions that are ordinary entries, or gone
	written tree[int32] // regions whose rows are in the store
	open    *openCount
}

// openCount counts the open slots by server, once somebody has asked.
type openCount struct {
	once sync.Once
	by   map[meta.ServerName]int
}

// base is the assignment of the regions that are on no page: in turn to some
// servers.
type base struct {
	state   pb.RegionState_State
	servers []uint16
	seq     int64
	time    int64
}

func (b *base) slot(i int) slot {
	s := slot{state: uint8(b.state), seq: b.seq, time: b.time}
	if len(b.servers) > 0 {
		s.server = b.servers[i%len(b.servers)]
		s.target = s.server
	}
	return s
}

// slot is the assignment of one region: see Region. from is the server it was
// on before.
type slot struct {
	time, seq            int64
	server, target, from uint16
	state                uint8
}

// pageSlots is how many regions share a page: what a change of one copies.
const pageSlots = 128

type page struct {
	number int
	newest int64 // no slot has a later time
	slots  [pageSlots]slot
}

func newGenerated(t *Table) *generated {
	return &generated{
		name: t.Name, text: t.Name.String(), formula: t.Formula,
		base:    base{state: pb.RegionState_OFFLINE, seq: meta.NoSeqNum, time: t.Formula.CreatedAt},
		servers: []meta.ServerName{{}},
		pages:   newTree(func(a, b *page) int { return cmp.Compare(a.number, b.number) }),
		away:    newTree(cmp.Compare[int32]),
		written: newTree(cmp.Compare[int32]),
		open:    &openCount{},
	}
}

func compareGenerated(a, b *generated) int { return strings.Compare(a.text, b.text) }

func (g *generated) page(number int) *page {
	p, _ := g.pages.find(func(p *page) int { return p.number - number })
	return p
}

func has(t tree[int32], i int) bool {
	_, ok := t.find(func(n int32) int { return int(n) - i })
	return ok
}

func (g *generated) slot(i int) slot {
	if p := g.page(i / pageSlots); p != nil {
		return p.slots[i%pageSlots]
	}
	return g.base.slot(i)
}

// fill puts what a slot knows into a region.
func (g *generated) fill(r *Region, s slot) {
	r.State, r.OpenSeq, r.StateTime, r.InfoTime = pb.RegionState_State(s.state), s.seq, s.time, g.formula.CreatedAt
	r.Server, r.Target = g.servers[s.server], g.servers[s.target]
}

// region renders region i.
func (g *generated) region(i int, s slot) *Region {
	r := &Region{Info: g.formula.Region(g.name, i)}
	r.Name = r.Info.Name()
	r.Encoded, _ = meta.EncodedNameOf(r.Name)
	g.fill(r, s)
	return r
}

// count is the number of regions that are slots.
func (g *generated) count() int { return g.formula.Regions - g.away.size }

// each gives the slots from region i on whose page may hold a time of at least
// since, in order or, reversed, backwards. Regions that are away are left out.
func (g *generated) each(i int, reversed bool, since int64, yield func(int, slot) bool) bool {
	step := 1
	if reversed {
		step = -1
	}
	gone := g.away.size > 0
	for i >= 0 && i < g.formula.Regions {
		number := i / pageSlots
		p := g.page(number)
		lo, hi := number*pageSlots, min((number+1)*pageSlots, g.formula.Regions)
		newest := max(g.base.time, g.formula.CreatedAt)
		if p != nil {
			newest = max(p.newest, g.formula.CreatedAt)
		}
		if newest < since {
			if i = hi; reversed {
				i = lo - 1
			}
			continue
		}
		for ; i >= lo && i < hi; i += step {
			if gone && has(g.away, i) {
				continue
			}
			s := g.base.slot(i)
			if p != nil {
				s = p.slots[i%pageSlots]
			}
			if max(s.time, g.formula.CreatedAt) >= since && !yield(i, s) {
				return false
			}
		}
	}
	return true
}

// held adds up the slots by the server that holds them.
func (g *generated) held() map[meta.ServerName]int {
	counts := make([]int, len(g.servers))
	if n := len(g.base.servers); g.pages.size == 0 && n > 0 {
		// In turn: the first servers have one more.
		for k, s := range g.base.servers {
			counts[s] += (g.formula.Regions - k + n - 1) / n
		}
		for i := range g.away.all() {
			counts[g.base.servers[int(i)%n]]--
		}
	} else if g.pages.size > 0 {
		g.each(0, false, 0, func(_ int, s slot) bool {
			counts[s.target]++
			return true
		})
	}
	out := map[meta.ServerName]int{}
	for i, n := range counts[1:] {
		if n > 0 {
			out[g.servers[i+1]] += n
		}
	}
	return out
}

// GeneratedOn is how many generated regions are open on a server.
func (s *State) GeneratedOn(server meta.ServerName) (n int) {
	for g := range s.generated.all() {
		g.open.once.Do(func() {
			if g.pages.size == 0 {
				if g.base.state == pb.RegionState_OPEN {
					g.open.by = g.held()
				}
				return
			}
			counts := make([]int, len(g.servers))
			g.each(0, false, 0, func(_ int, s slot) bool {
				if pb.RegionState_State(s.state) == pb.RegionState_OPEN {
					counts[s.server]++
				}
				return true
			})
			g.open.by = make(map[meta.ServerName]int, len(counts))
			for i, n := range counts {
				g.open.by[g.servers[i]] += n
			}
		})
		n += g.open.by[server]
	}
	return n
}

// from finds where the iteration over slots begins for a row of hbase:meta: at
// the first region at or after it, reversed at the last at or before it.
func (g *generated) from(row []byte, reversed bool) int {
	if row == nil {
		if reversed {
			return g.formula.Regions - 1
		}
		return 0
	}
	name := func(i int) []byte {
		r := g.formula.Region(g.name, i)
		return r.Name()
	}
	if reversed {
		return sort.Search(g.formula.Regions, func(i int) bool { return meta.CompareRows(name(i), row) > 0 }) - 1
	}
	return sort.Search(g.formula.Regions, func(i int) bool { return meta.CompareRows(name(i), row) >= 0 })
}

// generatedOf gives the generated table of that name, nil if there is none.
func (s *State) generatedOf(name meta.TableName) *generated {
	if s.generated.root == nil {
		return nil
	}
	text := name.String()
	g, _ := s.generated.find(func(g *generated) int { return strings.Compare(g.text, text) })
	return g
}

// generatedNamed finds a generated region by encoded or full name.
func (s *State) generatedNamed(encoded string, name []byte) (*generated, int) {
	for g := range s.generated.all() {
		var i int
		var ok bool
		if name != nil {
			i, ok = g.formula.indexNamed(g.name, name)
		} else {
			i, ok = g.formula.indexEncoded(g.name, encoded)
		}
		if ok && !has(g.away, i) {
			return g, i
		}
	}
	return nil, 0
}

// regionsFrom gives regions in hbase:meta's order, beginning with the first at
// or after the row (reversed: backwards from the last at or before it); a nil
// row means from the end. Regions whose last change is older than since may be
// left out.
func (s *State) regionsFrom(row []byte, reversed bool, since int64) iter.Seq[*Region] {
	return func(yield func(*Region) bool) {
		at := func(r *Region) int { return meta.CompareRows(r.Name, row) }
		if row == nil {
			at = func(*Region) int { return 0 }
		}
		ordinary := func() iter.Seq[*Region] {
			if reversed {
				return s.regions.downFrom(at)
			}
			return s.regions.fromSince(at, regionTime, since)
		}
		if s.generated.root == nil {
			ordinary()(yield)
			return
		}
		// Tables are ranges of the order: whole ranges are passed through, and
		// only within a generated table two orders are merged.
		tables := slices.Collect(s.generated.all())
		if reversed {
			slices.Reverse(tables)
		}
		sign := 1
		if reversed {
			sign = -1
		}
		var prefix []byte // of the row's table
		if row != nil {
			prefix, _, _ = bytes.Cut(row, []byte{','})
		}
		tables = slices.DeleteFunc(tables, func(g *generated) bool {
			return row != nil && strings.Compare(g.text, string(prefix))*sign < 0
		})
		next, stop := iter.Pull(ordinary())
		defer stop()
		r, more := next()
		for _, g := range tables {
			// What lies before the table.
			for more && strings.Compare(r.Info.Table.String(), g.text)*sign < 0 {
				if !yield(r) {
					return
				}
				r, more = next()
			}
			begin := 0
			if reversed {
				begin = g.formula.Regions - 1
			}
			if row != nil && g.text == string(prefix) {
				begin = g.from(row, reversed)
			}
			if !g.each(begin, reversed, since, func(i int, sl slot) bool {
				mine := g.region(i, sl)
				for more && r.Info.Table == g.name && meta.CompareRows(r.Name, mine.Name)*sign < 0 {
					if !yield(r) {
						return false
					}
					r, more = next()
				}
				return yield(mine)
			}) {
				return
			}
		}
		for more {
			if !yield(r) {
				return
			}
			r, more = next()
		}
	}
}

func regionTime(r *Region) int64 { return max(r.InfoTime, r.StateTime) }

// Select gives the regions of a table (of all tables and hbase:meta, if it is
// the zero name) that want chooses, in no particular order. The regions of
// generated tables are shown to want without their names and keys, and made
// only if it wants them: over a million regions that is a hundred times
// quicker than RegionsOf.
func (s *State) Select(name meta.TableName, want func(*Region) bool) iter.Seq[*Region] {
	return func(yield func(*Region) bool) {
		pick := func(r *Region) bool { return !want(r) || yield(r) }
		if name == meta.MetaTable || name.IsZero() {
			if s.meta != nil && !pick(s.meta) || !name.IsZero() {
				return
			}
		}
		if name.IsZero() {
			for r := range s.regions.all() {
				if !pick(r) {
					return
				}
			}
			for g := range s.generated.all() {
				if !g.pick(want, yield) {
					return
				}
			}
			return
		}
		for r := range s.ordinaryOf(name) {
			if !pick(r) {
				return
			}
		}
		if g := s.generatedOf(name); g != nil {
			g.pick(want, yield)
		}
	}
}

// pick is Select over slots.
func (g *generated) pick(want, yield func(*Region) bool) bool {
	scratch := &Region{Info: meta.Region{Table: g.name}}
	return g.each(0, false, 0, func(i int, sl slot) bool {
		g.fill(scratch, sl)
		return !want(scratch) || yield(g.region(i, sl))
	})
}

// SelectGenerated is Select over those regions of a generated table that are
// no entries of their own.
func (s *State) SelectGenerated(name meta.TableName, want func(*Region) bool) iter.Seq[*Region] {
	return func(yield func(*Region) bool) {
		if g := s.generatedOf(name); g != nil {
			g.pick(want, yield)
		}
	}
}

// IsGenerated says whether the region is one of a generated table, and no entry
// of its own.
func (s *State) IsGenerated(info *meta.Region) bool {
	g, i := s.slotOf(info)
	return g != nil && !has(g.away, i)
}

// Unplaced says whether no region of a generated table has been assigned since
// the start.
func (s *State) Unplaced(name meta.TableName) bool {
	g := s.generatedOf(name)
	return g != nil && len(g.base.servers) == 0 && g.pages.size == 0 && g.base.state == pb.RegionState_OFFLINE
}

// Ordinary gives those of a table's regions that are entries of their own: all,
// unless the table is a generated one.
func (s *State) Ordinary(name meta.TableName) iter.Seq[*Region] { return s.ordinaryOf(name) }

// ordinaryOf gives those of a table's regions that are entries of their own.
func (s *State) ordinaryOf(name meta.TableName) iter.Seq[*Region] {
	first := meta.FirstRow(name)
	return func(yield func(*Region) bool) {
		for r := range s.regions.from(func(r *Region) int { return meta.CompareRows(r.Name, first) }) {
			if r.Info.Table != name || !yield(r) {
				return
			}
		}
	}
}

// Holding gives the region of a table that holds a row and was not split or
// merged away; nil if there is none.
func (s *State) Holding(name meta.TableName, row []byte) *Region {
	if g := s.generatedOf(name); g != nil {
		if i := g.formula.Holding(row); !has(g.away, i) {
			return g.region(i, g.slot(i))
		}
	}
	for r := range s.regionsFrom(meta.SearchRow(name, row), true, 0) {
		if r.Info.Table != name {
			break
		}
		if !r.Parent() && r.Info.Contains(row) {
			return r
		}
		// Behind a hole, or a row that lies in a parent only, another one may
		// hold it, but none that ends at or before the row's region's start.
	}
	if name == meta.MetaTable {
		return s.meta
	}
	return nil
}

// Slot tells about a generated region that is one: which it is by its table's
// formula, and the server it was on before.
type Slot struct {
	Formula *Formula
	Index   int
	From    meta.ServerName
	Written bool
}

// Generated finds a generated region by its full or encoded name; nil, if it is
// none, or one that has become an ordinary entry.
func (s *State) Generated(name []byte) (*Region, Slot) {
	var g *generated
	var i int
	if _, full := meta.EncodedNameOf(name); full {
		g, i = s.generatedNamed("", name)
	} else {
		g, i = s.generatedNamed(string(name), nil)
	}
	if g == nil {
		return nil, Slot{}
	}
	sl := g.slot(i)
	return g.region(i, sl), Slot{Formula: g.formula, Index: i, From: g.servers[sl.from], Written: has(g.written, i)}
}

// GeneratedWritten says whether the rows of region i of a generated table are
// in the store.
func (s *State) GeneratedWritten(name meta.TableName, i int) bool {
	g := s.generatedOf(name)
	return g == nil || has(g.written, i)
}

// slotOf finds the slot that an identity belongs to.
func (s *State) slotOf(info *meta.Region) (*generated, int) {
	g := s.generatedOf(info.Table)
	if g == nil {
		return nil, 0
	}
	if i, ok := g.formula.Index(info); ok {
		return g, i
	}
	return nil, 0
}

// own gives the transaction's own copy of a generated table.
func (tx *Tx) own(g *generated) *generated {
	if o := tx.owned[g.text]; o != nil {
		return o
	}
	o := *g
	o.servers = slices.Clip(o.servers)
	o.open = &openCount{}
	if tx.owned == nil {
		tx.owned = map[string]*generated{}
		tx.pages = map[*page]bool{}
	}
	tx.owned[g.text] = &o
	tx.generated = tx.generated.set(&o)
	return &o
}

// server gives a server's number in g, which the transaction owns.
func (g *generated) server(n meta.ServerName) (uint16, bool) {
	// The newest incarnations are at the end.
	for i := len(g.servers) - 1; i >= 0; i-- {
		if g.servers[i] == n {
			return uint16(i), true
		}
	}
	if len(g.servers) > 65_000 {
		return 0, false
	}
	g.servers = append(g.servers, n)
	return uint16(len(g.servers) - 1), true
}

// putSlot records the assignment of a generated region; false if it cannot be
// kept as a slot.
func (tx *Tx) putSlot(g *generated, i int, r *Region) bool {
	if r.Parent() || r.Info.Offline || r.SplitA != nil || r.SplitB != nil || len(r.Merged) > 0 {
		return false
	}
	g = tx.own(g)
	server, ok := g.server(r.Server)
	target, also := g.server(r.Target)
	if !ok || !also {
		return false
	}
	old := g.slot(i)
	s := slot{time: r.StateTime, seq: r.OpenSeq, server: server, target: target, from: old.from, state: uint8(r.State)}
	if server != old.server {
		s.from = old.server
	}
	tx.hold(g.servers[old.target], -1)
	tx.hold(r.Target, 1)
	p := g.page(i / pageSlots)
	if p == nil || !tx.pages[p] {
		c := &page{number: i / pageSlots, newest: g.base.time}
		if p != nil {
			*c = *p
		} else {
			for k := range c.slots {
				c.slots[k] = g.base.slot(c.number*pageSlots + k)
			}
		}
		p = c
		tx.pages[p] = true
		g.pages = g.pages.set(p)
	}
	p.slots[i%pageSlots] = s
	p.newest = max(p.newest, s.time)
	return true
}

// sendAway makes a generated region one that the formula does not describe any
// more. The caller has counted it out.
func (tx *Tx) sendAway(g *generated, i int) {
	g = tx.own(g)
	g.away = g.away.set(int32(i))
	tx.set(slotKey(awayPrefix, g.text, i), nil)
}

// Place assigns all regions of a generated table that are slots: to the
// servers in turn, or, without servers, to none. It costs the same for any
// number of regions that are where the formula puts them.
func (tx *Tx) Place(name meta.TableName, state pb.RegionState_State, servers []meta.ServerName, seq int64) {
	g := tx.generatedOf(name)
	if g == nil {
		return
	}
	g = tx.own(g)
	for n, count := range g.held() {
		tx.hold(n, -count)
	}
	g.base = base{state: state, seq: seq, time: tx.now}
	g.pages = tree[*page]{cmp: g.pages.cmp}
	// Numbers may be given anew: there is no slot left that uses the old ones.
	g.servers = []meta.ServerName{{}}
	for _, n := range servers {
		if k, ok := g.server(n); ok {
			g.base.servers = append(g.base.servers, k)
		}
	}
	for n, count := range g.held() {
		tx.hold(n, count)
	}
}

// SetWritten records that the rows of a generated region are in the store.
func (tx *Tx) SetWritten(name meta.TableName, i int) {
	g := tx.generatedOf(name)
	if g == nil || has(g.written, i) {
		return
	}
	g = tx.own(g)
	g.written = g.written.set(int32(i))
	tx.set(slotKey(writtenPrefix, g.text, i), nil)
}

// dropGenerated forgets what is known of a table's slots.
func (tx *Tx) dropGenerated(name meta.TableName) {
	g := tx.generatedOf(name)
	if g == nil {
		return
	}
	for n, count := range g.held() {
		tx.hold(n, -count)
	}
	for i := range g.away.all() {
		tx.drop(slotKey(awayPrefix, g.text, int(i)))
	}
	for i := range g.written.all() {
		tx.drop(slotKey(writtenPrefix, g.text, int(i)))
	}
	delete(tx.owned, g.text)
	tx.generated = tx.generated.remove(g)
}

// CountStates counts a table's regions by what they are doing.
func (s *State) CountStates(name meta.TableName) (open, parents, closed, transition int) {
	for range s.Select(name, func(r *Region) bool {
		switch {
		case r.State == pb.RegionState_OPEN:
			open++
		case r.Parent():
			parents++
		case r.InTransition():
			transition++
		default:
			closed++
		}
		return false
	}) {
	}
	return open, parents, closed, transition
}
