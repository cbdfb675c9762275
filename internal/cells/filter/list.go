package filter

import (
	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// list is what FilterLists of both operators share.
type list struct {
	base
	filters []cells.Filter
	// took says which filters included the present cell and so may transform
	// it.
	took []bool
}

func newList(filters []cells.Filter) list {
	return list{filters: filters, took: make([]bool, len(filters))}
}

func (l *list) TransformCell(c *cells.Cell) error {
	for i, f := range l.filters {
		if l.took[i] {
			if err := f.TransformCell(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *list) FilterRowCells(row []cells.Cell) (_ []cells.Cell, err error) {
	for _, f := range l.filters {
		if row, err = f.FilterRowCells(row); err != nil {
			return row, err
		}
	}
	return row, nil
}

func (l *list) HasFilterRow() bool {
	for _, f := range l.filters {
		if f.HasFilterRow() {
			return true
		}
	}
	return false
}

func (l *list) FamilyEssential(family []byte) bool {
	for _, f := range l.filters {
		if f.FamilyEssential(family) {
			return true
		}
	}
	return len(l.filters) == 0
}

func (l *list) SetReversed(reversed bool) {
	l.reversed = reversed
	for _, f := range l.filters {
		f.SetReversed(reversed)
	}
}

// behind says whether a comes after b in scan direction. Only rows run
// backwards in a reversed scan, but HBase turns the whole comparison round.
func (l *list) behind(a, b *cells.Cell) bool {
	if l.reversed {
		return cells.Compare(a, b) < 0
	}
	return cells.Compare(a, b) > 0
}

// and is FilterList MUST_PASS_ALL.
type and struct {
	list
	hinted []cells.Filter // that answered SeekNextUsingHint for the present cell
}

// hinting marks the filters that an AND list asks about a cell even after
// another one has rejected it, in case they know to seek farther (HintingFilter
// in HBase, since 2.6.1). Those that count what they are shown are not among
// them.
type hinting interface{ mayHint() }

func (*columnPrefix) mayHint()   {}
func (*columnPrefixes) mayHint() {}
func (*columnRange) mayHint()    {}
func (*timestamps) mayHint()     {}
func (*fuzzyRow) mayHint()       {}
func (*rowRanges) mayHint()      {}

func (l *and) Reset() error {
	l.hinted = l.hinted[:0]
	for i, f := range l.filters {
		l.took[i] = false
		if err := f.Reset(); err != nil {
			return err
		}
	}
	return nil
}

func (l *and) FilterAllRemaining() bool {
	for _, f := range l.filters {
		if f.FilterAllRemaining() {
			return true
		}
	}
	return false
}

// FilterRowKey asks every filter: some keep track of rows by it.
func (l *and) FilterRowKey(c *cells.Cell) (bool, error) {
	out := false
	for _, f := range l.filters {
		if f.FilterAllRemaining() {
			out = true
			continue
		}
		o, err := f.FilterRowKey(c)
		if err != nil {
			return true, err
		}
		out = out || o
	}
	return out, nil
}

// FilterCell takes the largest step. Filters behind the first that rejects
// the cell are not asked, so that their counts do not move, but for those that
// may have a hint.
func (l *and) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	code := cells.Include
	rejected := false
	l.hinted = l.hinted[:0]
	clear(l.took)
	for i, f := range l.filters {
		if rejected {
			if _, ok := f.(hinting); !ok {
				continue
			}
		}
		if f.FilterAllRemaining() {
			if !rejected {
				code, rejected = cells.NextRow, true
			}
			continue
		}
		said, err := f.FilterCell(c)
		if err != nil {
			return cells.Skip, err
		}
		if said == cells.SeekNextUsingHint {
			l.hinted = append(l.hinted, f)
		}
		if rejected {
			continue
		}
		code = mergeAnd(code, said)
		rejected = !included(code)
		l.took[i] = !rejected
	}
	if len(l.hinted) > 0 {
		return cells.SeekNextUsingHint, nil
	}
	return code, nil
}

// mergeAnd combines a code that includes with the next filter's.
func mergeAnd(code, said cells.ReturnCode) cells.ReturnCode {
	switch said {
	case cells.Include:
		return code
	case cells.IncludeAndNextCol:
		if code == cells.Include {
			return said
		}
		return code
	case cells.Skip:
		switch code {
		case cells.IncludeAndNextCol:
			return cells.NextCol
		case cells.IncludeAndSeekNextRow:
			return cells.NextRow
		}
	case cells.NextCol:
		if code == cells.IncludeAndSeekNextRow {
			return cells.NextRow
		}
	}
	return said
}

func (l *and) FilterRow() (bool, error) {
	for _, f := range l.filters {
		if out, err := f.FilterRow(); out || err != nil {
			return out, err
		}
	}
	return false, nil
}

// NextCellHint is the farthest hint.
func (l *and) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	var farthest *cells.Cell
	for _, f := range l.hinted {
		if f.FilterAllRemaining() {
			continue
		}
		hint, err := f.NextCellHint(c)
		if err != nil {
			return nil, err
		}
		if hint != nil && (farthest == nil || l.behind(hint, farthest)) {
			farthest = hint
		}
	}
	return farthest, nil
}

// or is FilterList MUST_PASS_ONE.
type or struct {
	list
	prev []previous
}

// previous is a filter's last answer, as far as it still covers cells to come:
// they are not shown to it.
type previous struct {
	code cells.ReturnCode
	cell cells.Cell // only its coordinates
	have bool
}

func newOr(filters []cells.Filter) *or {
	return &or{list: newList(filters), prev: make([]previous, len(filters))}
}

func (l *or) Reset() error {
	for i, f := range l.filters {
		l.took[i], l.prev[i].have = false, false
		if err := f.Reset(); err != nil {
			return err
		}
	}
	return nil
}

func (l *or) FilterAllRemaining() bool {
	for _, f := range l.filters {
		if !f.FilterAllRemaining() {
			return false
		}
	}
	return len(l.filters) > 0
}

func (l *or) FilterRowKey(c *cells.Cell) (bool, error) {
	out := len(l.filters) > 0
	for _, f := range l.filters {
		if f.FilterAllRemaining() {
			continue
		}
		o, err := f.FilterRowKey(c)
		if err != nil {
			return true, err
		}
		out = out && o
	}
	return out, nil
}

// FilterCell takes the smallest step. A filter is not asked about a cell that
// its last answer already covers.
func (l *or) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if len(l.filters) == 0 {
		return cells.Include, nil
	}
	var code cells.ReturnCode
	have := false
	for i, f := range l.filters {
		l.took[i] = false
		if f.FilterAllRemaining() {
			continue
		}
		p := &l.prev[i]
		said, covered, err := p.covers(f, c, &l.list)
		if err == nil && !covered {
			said, err = f.FilterCell(c)
		}
		if err != nil {
			return cells.Skip, err
		}
		p.note(said, c)
		if have {
			code = mergeOr(code, said)
		} else {
			code, have = said, true
		}
		l.took[i] = included(said)
	}
	if !have {
		return cells.Skip, nil
	}
	return code, nil
}

func (p *previous) note(code cells.ReturnCode, c *cells.Cell) {
	p.have = code != cells.Include && code != cells.Skip
	if !p.have {
		return
	}
	p.code = code
	p.cell.Row = append(p.cell.Row[:0], c.Row...)
	p.cell.Family = append(p.cell.Family[:0], c.Family...)
	p.cell.Qualifier = append(p.cell.Qualifier[:0], c.Qualifier...)
	p.cell.Timestamp, p.cell.Type, p.cell.Seq = c.Timestamp, c.Type, c.Seq
}

// covers says whether the last answer also holds for c, and as what.
func (p *previous) covers(f cells.Filter, c *cells.Cell, l *list) (cells.ReturnCode, bool, error) {
	if !p.have {
		return 0, false, nil
	}
	switch p.code {
	case cells.SeekNextUsingHint:
		hint, err := f.NextCellHint(&p.cell)
		if err != nil || hint == nil {
			return 0, false, err
		}
		return cells.SeekNextUsingHint, l.behind(hint, c), nil
	case cells.NextCol, cells.IncludeAndNextCol:
		return cells.NextCol, cells.SameColumn(&p.cell, c), nil
	}
	return cells.NextRow, string(p.cell.Family) == string(c.Family), nil
}

// mergeOr combines two answers into the smaller step; a cell that one includes
// is included.
func mergeOr(code, said cells.ReturnCode) cells.ReturnCode {
	if code == cells.SeekNextUsingHint && said == cells.SeekNextUsingHint {
		return code
	}
	in := included(code) || included(said)
	step := min(stepOf(code), stepOf(said))
	switch {
	case in && step == 0:
		return cells.Include
	case in && step == 1:
		return cells.IncludeAndNextCol
	case in:
		return cells.IncludeAndSeekNextRow
	case step == 0:
		return cells.Skip
	case step == 1:
		return cells.NextCol
	}
	return cells.NextRow
}

// stepOf orders how far codes go on: to the next cell, column, row. Where a
// hint leads is not known here, so beside other answers it counts as the next
// cell.
func stepOf(code cells.ReturnCode) int {
	switch code {
	case cells.NextCol, cells.IncludeAndNextCol:
		return 1
	case cells.NextRow, cells.IncludeAndSeekNextRow:
		return 2
	}
	return 0
}

func (l *or) FilterRow() (bool, error) {
	for _, f := range l.filters {
		if out, err := f.FilterRow(); !out || err != nil {
			return false, err
		}
	}
	return len(l.filters) > 0, nil
}

// NextCellHint is the nearest hint, if every filter has one.
func (l *or) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	var nearest *cells.Cell
	for _, f := range l.filters {
		if f.FilterAllRemaining() {
			continue
		}
		hint, err := f.NextCellHint(c)
		if err != nil || hint == nil {
			return nil, err
		}
		if nearest == nil || l.behind(nearest, hint) {
			nearest = hint
		}
	}
	return nearest, nil
}
