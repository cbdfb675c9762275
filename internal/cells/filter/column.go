package filter

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// keyOnly is KeyOnlyFilter: empty values, or their length as 4 bytes.
type keyOnly struct {
	base
	lengths bool
}

func (f *keyOnly) TransformCell(c *cells.Cell) error {
	if f.lengths {
		c.Value = binary.BigEndian.AppendUint32(nil, uint32(len(c.Value)))
	} else {
		c.Value = nil
	}
	return nil
}

// firstKeyOnly is FirstKeyOnlyFilter: the first cell of the row.
type firstKeyOnly struct {
	base
	found bool
}

func (f *firstKeyOnly) Reset() error {
	f.found = false
	return nil
}

func (f *firstKeyOnly) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	if f.found {
		return cells.NextRow, nil
	}
	f.found = true
	return cells.Include, nil
}

// firstMatching is FirstKeyValueMatchingQualifiersFilter: cells up to the first
// whose qualifier is in the set.
type firstMatching struct {
	base
	qualifiers map[string]struct{}
	found      bool
}

func (f *firstMatching) Reset() error {
	f.found = false
	return nil
}

func (f *firstMatching) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if f.found {
		return cells.NextRow, nil
	}
	if _, ok := f.qualifiers[string(c.Qualifier)]; ok {
		f.found = true
	}
	return cells.Include, nil
}

// columnCount is ColumnCountGetFilter: the first columns of the row.
type columnCount struct {
	base
	limit, count int
}

func (f *columnCount) Reset() error {
	f.count = 0
	return nil
}

func (f *columnCount) FilterAllRemaining() bool { return f.count > f.limit }

func (f *columnCount) FilterRowKey(*cells.Cell) (bool, error) { return f.FilterAllRemaining(), nil }

func (f *columnCount) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	f.count++
	if f.FilterAllRemaining() {
		return cells.NextCol, nil
	}
	return cells.IncludeAndNextCol, nil
}

// columnPage is ColumnPaginationFilter: limit columns, from a count or a
// qualifier on.
type columnPage struct {
	base
	limit, offset int64
	from          []byte // instead of offset, if not nil
	count         int64
}

func (f *columnPage) Reset() error {
	f.count = 0
	return nil
}

func (f *columnPage) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if f.from != nil {
		if f.count >= f.limit {
			return cells.NextRow, nil
		}
		// Only until the first column counts: later families start at theirs.
		if f.count == 0 && bytes.Compare(c.Qualifier, f.from) < 0 {
			return cells.SeekNextUsingHint, nil
		}
		f.count++
		return cells.IncludeAndNextCol, nil
	}
	if f.count >= f.offset+f.limit {
		return cells.NextRow, nil
	}
	f.count++
	if f.count <= f.offset {
		return cells.NextCol, nil
	}
	return cells.IncludeAndNextCol, nil
}

func (f *columnPage) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	return firstOfColumn(c, f.from), nil
}

// columnPrefix is ColumnPrefixFilter.
type columnPrefix struct {
	base
	prefix []byte
}

func (f *columnPrefix) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	q := c.Qualifier
	if len(q) < len(f.prefix) {
		if bytes.Compare(q, f.prefix[:len(q)]) <= 0 {
			return cells.SeekNextUsingHint, nil
		}
		return cells.NextRow, nil
	}
	switch bytes.Compare(q[:len(f.prefix)], f.prefix) {
	case -1:
		return cells.SeekNextUsingHint, nil
	case 1:
		return cells.NextRow, nil
	}
	return cells.Include, nil
}

func (f *columnPrefix) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	return firstOfColumn(c, f.prefix), nil
}

// columnPrefixes is MultipleColumnPrefixFilter. Of prefixes that begin one
// another only the longest not after the qualifier is tried, as in HBase.
type columnPrefixes struct {
	base
	prefixes [][]byte // sorted
	hint     []byte
}

func (f *columnPrefixes) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if len(f.prefixes) == 0 {
		return cells.Include, nil
	}
	at, found := slices.BinarySearchFunc(f.prefixes, c.Qualifier, bytes.Compare)
	if found || at > 0 && bytes.HasPrefix(c.Qualifier, f.prefixes[at-1]) {
		return cells.Include, nil
	}
	if at == len(f.prefixes) {
		return cells.NextRow, nil
	}
	f.hint = f.prefixes[at]
	return cells.SeekNextUsingHint, nil
}

func (f *columnPrefixes) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	return firstOfColumn(c, f.hint), nil
}

// columnRange is ColumnRangeFilter; a nil bound is open.
type columnRange struct {
	base
	min, max                 []byte
	minIncluded, maxIncluded bool
}

func (f *columnRange) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	low := 1
	if f.min != nil {
		low = bytes.Compare(c.Qualifier, f.min)
	}
	if low < 0 {
		return cells.SeekNextUsingHint, nil
	}
	if low == 0 && !f.minIncluded {
		return cells.NextCol, nil
	}
	if f.max == nil {
		return cells.Include, nil
	}
	if high := bytes.Compare(c.Qualifier, f.max); high < 0 || high == 0 && f.maxIncluded {
		return cells.Include, nil
	}
	return cells.NextRow, nil
}

func (f *columnRange) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	return firstOfColumn(c, f.min), nil
}

// timestamps is TimestampsFilter.
type timestamps struct {
	base
	wanted []int64 // sorted, unique
	hints  bool
}

func (f *timestamps) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	at, found := slices.BinarySearch(f.wanted, c.Timestamp)
	switch {
	case found:
		return cells.Include, nil
	case at == 0: // all wanted are newer, and cells get older
		return cells.NextCol, nil
	case f.hints:
		return cells.SeekNextUsingHint, nil
	}
	return cells.Skip, nil
}

func (f *timestamps) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	if !f.hints {
		return nil, nil
	}
	hint := &cells.Cell{Row: c.Row, Family: c.Family, Qualifier: c.Qualifier}
	if at, _ := slices.BinarySearch(f.wanted, c.Timestamp); at > 0 {
		hint.Timestamp, hint.Type = f.wanted[at-1], cells.Maximum
	} // else the last key of the column
	return hint, nil
}
