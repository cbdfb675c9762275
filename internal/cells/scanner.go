package cells

// State is where a Scanner stands after a call of Next (NextState in HBase).
type State uint8

const (
	// MoreRows: the cells are a whole row, or the end of one. More rows may
	// follow.
	MoreRows State = iota
	// NoMoreRows: as MoreRows, but the range is exhausted (or the filter done).
	// The cells, if any, are still to be delivered.
	NoMoreRows
	// BatchReached: Limits.Batch cells, and the row goes on.
	BatchReached
	// SizeReachedMidRow: Limits.Bytes spent, and the row goes on.
	SizeReachedMidRow
	// SizeReached: Limits.Bytes spent exactly at the end of the row.
	SizeReached
	// TimeReachedMidRow: Limits.Expired, and the row goes on.
	TimeReachedMidRow
	// TimeReached: Limits.Expired between two rows; usually without cells.
	TimeReached
)

// MidRow says that the cells are a part of a row with more to come (the
// Result's partial flag).
func (s State) MidRow() bool {
	return s == BatchReached || s == SizeReachedMidRow || s == TimeReachedMidRow
}

// Limits bound one call of Next. The zero value is one whole row.
type Limits struct {
	// Batch is the most cells to return; 0 is no limit.
	Batch int
	// Bytes (by Cell.HeapSize) after which to stop; 0 is no limit. The cell
	// that crosses it is returned. Only consulted where MidRow is set; whole
	// rows are the caller's to count.
	Bytes int64
	// MidRow lets Bytes and Expired end a call inside a row. A filter that
	// needs whole rows overrules it.
	MidRow bool
	// Expired, if not nil, is asked now and then whether time is up.
	Expired func() bool
}

// Scanner runs a ScanSpec over a Source: what HBase's RegionScannerImpl and
// StoreScanner do together. Not safe for concurrent use; it starts no
// goroutine and holds nothing to close.
type Scanner struct {
	src    Source
	schema *Schema
	spec   *ScanSpec
	cmp    func(a, b []byte) int
}

// NewScanner validates the spec and makes a scanner. The source must run in
// the spec's direction; cmp orders its rows (bytes.Compare but for hbase:meta);
// now is the time against which TTLs count, in milliseconds.
func NewScanner(src Source, schema *Schema, spec *ScanSpec, cmp func(a, b []byte) int, now int64) (*Scanner, error) {
	if err := spec.Validate(schema); err != nil {
		return nil, err
	}
	return &Scanner{src: src, schema: schema, spec: spec, cmp: cmp}, nil
}

// Next appends the cells of the next row, or of a part of it, to dst. The
// cells are the caller's to keep.
func (s *Scanner) Next(dst []Cell, lim *Limits) ([]Cell, State, error) {
	return dst, NoMoreRows, nil
}

// FilterDone says that the filter wants nothing more (filterAllRemaining): if
// the answer being built carries no rows, the whole scan is over.
func (s *Scanner) FilterDone() bool { return s.spec.Filter != nil && s.spec.Filter.FilterAllRemaining() }

// LastRow is the row the scanner reached, for cursors; nil before the first.
func (s *Scanner) LastRow() []byte { return nil }
