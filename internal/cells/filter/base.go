package filter

import "github.com/holdfast-hbase/holdfast/internal/cells"

// base is a filter that lets everything through (FilterBase in HBase). Filters
// embed it and override what they are about.
type base struct{ reversed bool }

func (*base) Reset() error                                  { return nil }
func (*base) FilterAllRemaining() bool                      { return false }
func (*base) FilterRowKey(*cells.Cell) (bool, error)        { return false, nil }
func (*base) TransformCell(*cells.Cell) error               { return nil }
func (*base) FilterRow() (bool, error)                      { return false, nil }
func (*base) HasFilterRow() bool                            { return false }
func (*base) NextCellHint(*cells.Cell) (*cells.Cell, error) { return nil, nil }
func (*base) FamilyEssential([]byte) bool                   { return true }
func (b *base) SetReversed(reversed bool)                   { b.reversed = reversed }
func (b *base) IsReversed() bool                            { return b.reversed }

func (*base) FilterCell(*cells.Cell) (cells.ReturnCode, error) { return cells.Include, nil }

func (*base) FilterRowCells(row []cells.Cell) ([]cells.Cell, error) { return row, nil }

// firstOfColumn is the smallest key a cell of the column can have.
func firstOfColumn(c *cells.Cell, qualifier []byte) *cells.Cell {
	return &cells.Cell{Row: c.Row, Family: c.Family, Qualifier: qualifier, Timestamp: cells.LatestTimestamp, Type: cells.Maximum}
}

// firstOfRow is the smallest key a cell of the row can have.
func firstOfRow(row []byte) *cells.Cell {
	return &cells.Cell{Row: row, Timestamp: cells.LatestTimestamp, Type: cells.Maximum}
}

func included(code cells.ReturnCode) bool {
	return code == cells.Include || code == cells.IncludeAndNextCol || code == cells.IncludeAndSeekNextRow
}
