package cells

// Source is a sorted stream of cells, row by row, which a Scanner reads: the
// embedded store's engine, or rows held in memory. Markers, surplus versions
// and expired cells are all in it; only what the read point hides is not.
//
// A source starts before the first row. Cells and rows it hands out stay valid
// until the next call.
type Source interface {
	// SeekRow goes to the first row at or (inclusive false) after row, in the
	// source's direction. An empty row means the first of all.
	SeekRow(row []byte, inclusive bool) error
	// NextRow goes to the row after the current one, wherever in it we are.
	NextRow() error
	// Row is the current row; nil at the end of the source.
	Row() []byte
	// Cell is the current cell of the current row; nil at the row's end. Cells
	// of a row come in the order of CompareWithinRow whatever the direction.
	Cell() *Cell
	// Next goes to the next cell of the row.
	Next() error
	// SeekCell goes to the first cell of the row, at or after the current one,
	// that does not sort before (family, qualifier, ts, type).
	SeekCell(family, qualifier []byte, ts int64, typ Type) error
}
