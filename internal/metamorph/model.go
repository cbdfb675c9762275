package metamorph

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// The table has three families, read in this order:
//
//	n  counters (c*) and appended values (a*), stamped by the server
//	s  cells stamped by the server
//	v  cells and markers with timestamps of the history's own, small numbers
//
// Of n and s, one version is kept; of v, all.
const (
	familyN = "n"
	familyS = "s"
	familyV = "v"
)

// serverTime stands for any timestamp of the server's clock: later than all of
// the history's own.
const serverTime = int64(1) << 50

// state is what a row holds. It is never changed: apply makes another.
type state struct {
	puts  []Cell // of v, by qualifier and timestamp, newest first
	marks []Cell
	n, s  []Cell // newest values by qualifier
}

// key tells states apart.
func (s *state) key() string {
	var b strings.Builder
	for _, list := range [][]Cell{s.puts, s.marks, s.n, s.s} {
		for _, c := range list {
			fmt.Fprintf(&b, "%s/%s/%s/%d/%q,", c.Mark, c.Family, c.Qualifier, c.Timestamp, c.Value)
		}
		b.WriteByte(';')
	}
	return b.String()
}

// with gives the list with a cell in its place; one that is there already stays
// (replace: is replaced).
func with(list []Cell, c Cell, replace bool) []Cell {
	order := func(a, b Cell) int {
		if d := strings.Compare(a.Qualifier, b.Qualifier); d != 0 {
			return d
		}
		if d := strings.Compare(a.Mark, b.Mark); d != 0 {
			return d
		}
		switch {
		case a.Timestamp > b.Timestamp:
			return -1
		case a.Timestamp < b.Timestamp:
			return 1
		}
		return 0
	}
	i, found := slices.BinarySearchFunc(list, c, order)
	if found {
		if !replace {
			return list
		}
		list = slices.Clone(list)
		list[i] = c
		return list
	}
	return slices.Insert(slices.Clone(list), i, c)
}

func value(list []Cell, q string) (string, bool) {
	for _, c := range list {
		if c.Qualifier == q {
			return c.Value, true
		}
	}
	return "", false
}

// hidden says whether a marker hides a cell of v. When it was written does not
// matter, only the timestamps do.
func (s *state) hidden(c Cell) bool {
	for _, m := range s.marks {
		switch m.Mark {
		case "family":
			if c.Timestamp <= m.Timestamp {
				return true
			}
		case "family-version":
			if c.Timestamp == m.Timestamp {
				return true
			}
		case "column":
			if c.Qualifier == m.Qualifier && c.Timestamp <= m.Timestamp {
				return true
			}
		case "version":
			if c.Qualifier == m.Qualifier && c.Timestamp == m.Timestamp {
				return true
			}
		}
	}
	return false
}

// apply performs a change; results are the new values of increments and
// appends.
func (s state) apply(c *Change) (state, []Cell) {
	var results []Cell
	switch c.Kind {
	case "row":
		for i := range c.Parts {
			var r []Cell
			s, r = s.apply(&c.Parts[i])
			results = append(results, r...)
		}
	case "put":
		for _, x := range c.Cells {
			if x.Family == familyS {
				s.s = with(s.s, Cell{Family: familyS, Qualifier: x.Qualifier, Value: x.Value}, true)
			} else {
				s.puts = with(s.puts, x, false)
			}
		}
	case "increment", "append":
		for _, x := range c.Cells {
			old, _ := value(s.n, x.Qualifier)
			v := old + x.Value
			if c.Kind == "increment" {
				var n uint64
				if len(old) == 8 {
					n = binary.BigEndian.Uint64([]byte(old))
				}
				v = string(binary.BigEndian.AppendUint64(nil, n+uint64(x.Amount)))
			}
			cell := Cell{Family: familyN, Qualifier: x.Qualifier, Value: v}
			s.n = with(s.n, cell, true)
			results = append(results, cell)
		}
	case "delete":
		if len(c.Cells) == 0 {
			ts := c.UpTo
			if ts == 0 {
				ts, s.n, s.s = serverTime, nil, nil
			}
			s.marks = with(s.marks, Cell{Mark: "family", Family: familyV, Timestamp: ts}, false)
		}
		for _, x := range c.Cells {
			switch {
			case x.Family == familyV:
				if x.Mark == "latest" {
					at := slices.IndexFunc(s.puts, func(p Cell) bool { return p.Qualifier == x.Qualifier && !s.hidden(p) })
					if at < 0 {
						continue
					}
					x.Mark, x.Timestamp = "version", s.puts[at].Timestamp
				}
				s.marks = with(s.marks, x, false)
			case x.Mark == "family":
				if x.Family == familyN {
					s.n = nil
				} else {
					s.s = nil
				}
			case x.Mark == "column":
				drop := func(list []Cell) []Cell {
					return slices.DeleteFunc(slices.Clone(list), func(c Cell) bool { return c.Qualifier == x.Qualifier })
				}
				if x.Family == familyN {
					s.n = drop(s.n)
				} else {
					s.s = drop(s.s)
				}
			}
		}
	}
	return s, results
}

// holds decides a condition.
func (s *state) holds(c *Check) bool {
	stored, ok := s.newest(c.Family, c.Qualifier)
	if c.Value == "" {
		absent := !ok || stored == ""
		return absent != (c.Op == "!=")
	}
	if !ok {
		return false
	}
	d := strings.Compare(c.Value, stored)
	switch c.Op {
	case "=":
		return d == 0
	case "!=":
		return d != 0
	case "<":
		return d < 0
	case "<=":
		return d <= 0
	case ">":
		return d > 0
	}
	return d >= 0
}

func (s *state) newest(family, q string) (string, bool) {
	switch family {
	case familyN:
		return value(s.n, q)
	case familyS:
		return value(s.s, q)
	}
	for _, c := range s.puts {
		if c.Qualifier == q && !s.hidden(c) {
			return c.Value, true
		}
	}
	return "", false
}

// read gives the cells a read finds. Those stamped by the server have no
// timestamp here.
func (s *state) read(r *Read) []Cell {
	var out []Cell
	timed := r.From != 0 || r.To != 0
	for _, f := range []struct {
		name string
		list []Cell
	}{{familyN, s.n}, {familyS, s.s}, {familyV, s.puts}} {
		if f.name != familyV && timed {
			continue
		}
		n, versions, last := 0, 0, ""
		for _, c := range f.list {
			if !r.wants(f.name, c.Qualifier) || f.name == familyV && s.hidden(c) {
				continue
			}
			if timed && (c.Timestamp < r.From || c.Timestamp >= r.To) {
				continue
			}
			if r.Filter == "column-prefix" && !strings.HasPrefix(c.Qualifier, r.Prefix) {
				continue
			}
			if c.Qualifier != last {
				versions, last = 0, c.Qualifier
			}
			if versions++; versions > max(r.Versions, 1) {
				continue
			}
			if n++; n <= r.Offset || r.PerFamily > 0 && n > r.Offset+r.PerFamily {
				continue
			}
			c.Family = f.name
			out = append(out, c)
		}
	}
	if r.Filter == "first-key" && len(out) > 1 {
		out = out[:1]
	}
	return out
}

func (r *Read) wants(family, q string) bool {
	if len(r.Columns) == 0 {
		return true
	}
	return slices.Contains(r.Columns, family) || slices.Contains(r.Columns, family+":"+q)
}

// late is a change that may still be applied.
type late struct {
	change *Change
	check  *Check
}

// maybe is a possible state, and the late changes (by index) that have not been
// applied in it.
type maybe struct {
	state
	open string // one byte for each: its index
}

// row is the model of one row.
type row struct {
	states []maybe
	late   []late
	// vague rows are those of which too much is possible.
	vague bool
	// parted says that an operation failed, or had no known outcome: another
	// run of the history may hold something else.
	parted bool
}

// The most that is kept of a row.
const (
	maxStates = 96
	maxLate   = 6
)

func newRow() *row { return &row{states: []maybe{{}}} }

// spread adds what the late changes may have made of the states.
func (r *row) spread() {
	if len(r.late) == 0 || r.vague {
		return
	}
	seen := map[string]bool{}
	var all []maybe
	add := func(m maybe) {
		if k := m.key() + "|" + m.open; !seen[k] {
			seen[k] = true
			all = append(all, m)
		}
	}
	for _, m := range r.states {
		add(m)
	}
	for i := 0; i < len(all); i++ {
		m := all[i]
		for j := range len(m.open) {
			l := r.late[m.open[j]]
			next := maybe{state: m.state, open: m.open[:j] + m.open[j+1:]}
			if l.check == nil || m.holds(l.check) {
				next.state, _ = m.apply(l.change)
			}
			add(next)
		}
		if len(all) > maxStates {
			r.vague = true
			return
		}
	}
	r.states = all
}

// saw keeps the states in which ok holds. It returns false if there is none.
func (r *row) saw(ok func(s *state) bool) bool {
	r.spread()
	if r.vague {
		return true
	}
	var left []maybe
	for _, m := range r.states {
		if ok(&m.state) {
			left = append(left, m)
		}
	}
	if len(left) == 0 {
		return false
	}
	r.states = left
	return true
}

// did performs a change that was acknowledged, and keeps the states in which it
// gives these results. It returns false if there is none.
func (r *row) did(c *Change, ok func(results []Cell) bool) bool {
	r.spread()
	if r.vague {
		return true
	}
	var left []maybe
	for _, m := range r.states {
		next, results := m.apply(c)
		if ok == nil || ok(results) {
			left = append(left, maybe{next, m.open})
		}
	}
	if len(left) == 0 {
		return false
	}
	r.states = left
	return true
}

// mayCome notes a change that may be applied at any later time, once.
func (r *row) mayCome(c *Change, check *Check) {
	r.parted = true
	if r.vague {
		return
	}
	if stampedByServer(c) && c.deletes() || len(r.late) == maxLate {
		// Which of the cells written later it hides is a matter of
		// milliseconds.
		r.vague = true
		return
	}
	r.late = append(r.late, late{c, check})
	open := string([]byte{byte(len(r.late) - 1)})
	for i := range r.states {
		r.states[i].open += open
	}
}

// certain gives the only possible state.
func (r *row) certain() (*state, bool) {
	if r.vague || r.parted || len(r.states) != 1 {
		return nil, false
	}
	return &r.states[0].state, true
}

// deletes says whether there is a delete in it.
func (c *Change) deletes() bool {
	return c.Kind == "delete" || slices.ContainsFunc(c.Parts, func(p Change) bool { return p.deletes() })
}

// stampedByServer says whether a cell or a marker gets its timestamp from the
// server's clock. (Not that of the latest version: it gets the version's.)
func stampedByServer(c *Change) bool {
	if c.Kind == "delete" && len(c.Cells) == 0 {
		return c.UpTo == 0
	}
	return slices.ContainsFunc(c.Cells, func(x Cell) bool { return x.Family != familyV }) ||
		slices.ContainsFunc(c.Parts, func(p Change) bool { return stampedByServer(&p) })
}

// showsTwice says whether a change that is repeated may hide something written
// in between. Increments and appends are recognised by the server.
func (c *Change) showsTwice() bool {
	switch c.Kind {
	case "put", "delete":
		return stampedByServer(c)
	}
	return slices.ContainsFunc(c.Parts, func(p Change) bool { return p.showsTwice() })
}

// repeatable is the part of a change that a repetition performs again.
func (c *Change) repeatable() *Change {
	if c.Kind != "row" {
		return c
	}
	d := *c
	d.Parts = slices.DeleteFunc(slices.Clone(c.Parts), func(p Change) bool { return !p.showsTwice() })
	return &d
}
