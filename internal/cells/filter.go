package cells

// ReturnCode is a filter's answer for a cell (Filter.ReturnCode in HBase).
// Larger steps have larger codes among the last four.
type ReturnCode uint8

// The codes. NextRow ends the row for the cell's family only: other families
// of the row are still offered.
const (
	Include ReturnCode = iota
	IncludeAndNextCol
	Skip
	NextCol
	NextRow
	SeekNextUsingHint
	IncludeAndSeekNextRow
)

func (r ReturnCode) String() string {
	return [...]string{"INCLUDE", "INCLUDE_AND_NEXT_COL", "SKIP", "NEXT_COL", "NEXT_ROW", "SEEK_NEXT_USING_HINT", "INCLUDE_AND_SEEK_NEXT_ROW"}[r]
}

// Filter is a server-side filter, one object for all families of all rows of
// one region's scan (or of one Get). The scanner drives it per row:
//
//	FilterAllRemaining -> FilterRowKey (first cell) -> FilterCell for each cell
//	that columns, markers, TTL and time range let through -> TransformCell of
//	the included -> FilterRowCells (if HasFilterRow) -> FilterRow -> Reset
//
// Implementations (package filter) have state and are not safe for concurrent
// use. Cells passed in are valid during the call only.
type Filter interface {
	// Reset forgets the row just finished.
	Reset() error
	// FilterAllRemaining says that no later cell or row can pass.
	FilterAllRemaining() bool
	// FilterRowKey says that the row that begins with c is out.
	FilterRowKey(c *Cell) (bool, error)
	// FilterCell judges a cell.
	FilterCell(c *Cell) (ReturnCode, error)
	// TransformCell gives what is returned instead of an included cell. It may
	// change *c in place; it never writes into the slices c points to.
	TransformCell(c *Cell) error
	// FilterRowCells takes cells away from a whole row.
	FilterRowCells(row []Cell) ([]Cell, error)
	// FilterRow says, at the row's end, that the row is out.
	FilterRow() (bool, error)
	// HasFilterRow says that whole rows are needed to decide: no batches, no
	// partial rows.
	HasFilterRow() bool
	// NextCellHint is the cell to seek to after SeekNextUsingHint; nil if there
	// is none.
	NextCellHint(c *Cell) (*Cell, error)
	// FamilyEssential says whether the filter needs the family to decide.
	FamilyEssential(family []byte) bool
	// SetReversed tells the filter the direction before the first row.
	SetReversed(reversed bool)
	IsReversed() bool
}
