package filter

import (
	"bytes"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// compare is the operator and comparator of the filters that compare
// (CompareFilter in HBase): "stored op expected".
type compare struct {
	op         pb.CompareType
	comparator Comparator
}

// fails says that the bytes do not satisfy the comparison. NO_OP fails always.
func (c *compare) fails(b []byte) (bool, error) {
	if c.op == pb.CompareType_NO_OP {
		return true, nil
	}
	return c.failsStrictly(b)
}

// failsStrictly is fails for the filters that refuse NO_OP.
func (c *compare) failsStrictly(b []byte) (bool, error) {
	cmp, err := c.comparator.Compare(b) // expected against stored
	if err != nil {
		return false, err
	}
	switch c.op {
	case pb.CompareType_LESS:
		return cmp <= 0, nil
	case pb.CompareType_LESS_OR_EQUAL:
		return cmp < 0, nil
	case pb.CompareType_EQUAL:
		return cmp != 0, nil
	case pb.CompareType_NOT_EQUAL:
		return cmp == 0, nil
	case pb.CompareType_GREATER_OR_EQUAL:
		return cmp > 0, nil
	case pb.CompareType_GREATER:
		return cmp >= 0, nil
	}
	return false, cells.IOException("Unknown Compare op " + c.op.String())
}

// row is RowFilter: whole rows by their key.
type row struct {
	base
	compare
	out bool
}

func (f *row) Reset() error {
	f.out = false
	return nil
}

func (f *row) FilterRowKey(c *cells.Cell) (bool, error) {
	fails, err := f.fails(c.Row)
	if fails {
		f.out = true
	}
	return f.out, err
}

func (f *row) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	if f.out {
		return cells.NextRow, nil
	}
	return cells.Include, nil
}

func (f *row) FilterRow() (bool, error) { return f.out, nil }

// family is FamilyFilter.
type family struct {
	base
	compare
}

func (f *family) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if len(c.Family) > 0 {
		if fails, err := f.fails(c.Family); fails || err != nil {
			return cells.NextRow, err
		}
	}
	return cells.Include, nil
}

// qualifier is QualifierFilter.
type qualifier struct {
	base
	compare
}

func (f *qualifier) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if fails, err := f.fails(c.Qualifier); fails || err != nil {
		return cells.Skip, err
	}
	return cells.Include, nil
}

// value is ValueFilter.
type value struct {
	base
	compare
}

func (f *value) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if fails, err := f.fails(c.Value); fails || err != nil {
		return cells.Skip, err
	}
	return cells.Include, nil
}

// dependent is DependentColumnFilter: cells whose timestamp a cell of the
// reference column has that passes the comparison, if there is one.
type dependent struct {
	base
	compare
	family, qualifier []byte
	drop              bool
	stamps            map[int64]struct{}
}

func (f *dependent) Reset() error {
	clear(f.stamps)
	return nil
}

func (f *dependent) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if !bytes.Equal(c.Family, f.family) || !bytes.Equal(c.Qualifier, f.qualifier) {
		return cells.Include, nil // judged at the row's end
	}
	if f.comparator != nil {
		if fails, err := f.fails(c.Value); fails || err != nil {
			return cells.Skip, err
		}
	}
	if f.stamps == nil {
		f.stamps = make(map[int64]struct{})
	}
	f.stamps[c.Timestamp] = struct{}{}
	if f.drop {
		return cells.Skip, nil
	}
	return cells.Include, nil
}

func (f *dependent) FilterRowCells(row []cells.Cell) ([]cells.Cell, error) {
	kept := row[:0]
	for i := range row {
		if _, ok := f.stamps[row[i].Timestamp]; ok {
			kept = append(kept, row[i])
		}
	}
	return kept, nil
}

func (f *dependent) HasFilterRow() bool { return true }

// columnValue is ColumnValueFilter: the column's cells that pass, nothing else.
type columnValue struct {
	base
	compare
	family, qualifier []byte
	found             bool
}

func (f *columnValue) Reset() error {
	f.found = false
	return nil
}

func (f *columnValue) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if !bytes.Equal(c.Family, f.family) || !bytes.Equal(c.Qualifier, f.qualifier) {
		if f.found {
			return cells.NextRow, nil
		}
		return cells.NextCol, nil
	}
	f.found = true
	if fails, err := f.fails(c.Value); fails || err != nil {
		return cells.Skip, err
	}
	return cells.Include, nil
}

func (f *columnValue) FamilyEssential(family []byte) bool { return bytes.Equal(family, f.family) }

// singleColumn is SingleColumnValueFilter: whole rows by one column's value.
type singleColumn struct {
	base
	compare
	family, qualifier []byte
	ifMissing, latest bool
	found, matched    bool
}

func (f *singleColumn) Reset() error {
	f.found, f.matched = false, false
	return nil
}

func (f *singleColumn) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	if f.matched {
		return cells.Include, nil
	}
	if f.latest && f.found {
		return cells.NextRow, nil
	}
	if !f.isColumn(c) {
		return cells.Include, nil
	}
	f.found = true
	fails, err := f.failsStrictly(c.Value)
	if err != nil {
		return cells.Skip, err
	}
	if fails {
		if f.latest {
			return cells.NextRow, nil
		}
		return cells.Include, nil
	}
	f.matched = true
	return cells.Include, nil
}

func (f *singleColumn) isColumn(c *cells.Cell) bool {
	return bytes.Equal(c.Family, f.family) && bytes.Equal(c.Qualifier, f.qualifier)
}

func (f *singleColumn) FilterRow() (bool, error) {
	if f.found {
		return !f.matched, nil
	}
	return f.ifMissing, nil
}

func (f *singleColumn) HasFilterRow() bool { return true }

func (f *singleColumn) FamilyEssential(family []byte) bool {
	return !f.ifMissing || bytes.Equal(family, f.family)
}

// singleColumnExclude is SingleColumnValueExcludeFilter: the same without the
// column itself.
type singleColumnExclude struct{ singleColumn }

func (f *singleColumnExclude) FilterRowCells(row []cells.Cell) ([]cells.Cell, error) {
	kept := row[:0]
	for i := range row {
		if !f.isColumn(&row[i]) {
			kept = append(kept, row[i])
		}
	}
	return kept, nil
}
