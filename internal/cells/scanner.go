package cells

import (
	"slices"
	"strconv"
)

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
	// Bytes (by Cell.ResultSize) after which to stop; 0 is no limit. The cell
	// that crosses it is returned. Only consulted where MidRow is set; whole
	// rows are the caller's to count.
	Bytes int64
	// MidRow lets Bytes and Expired end a call inside a row. A filter that
	// needs whole rows overrules it.
	MidRow bool
	// Expired, if not nil, is asked now and then whether time is up.
	Expired func() bool
	// Transient: the cells are the caller's only until the next call of Next,
	// which uses their buffers again.
	Transient bool
}

// Scanner runs a ScanSpec over a Source: what HBase's RegionScannerImpl and
// StoreScanner do together. Not safe for concurrent use; it starts no
// goroutine and holds nothing to close.
type Scanner struct {
	src    Source
	schema *Schema
	spec   *ScanSpec
	filter Filter
	cmp    func(a, b []byte) int
	limit  int // cells per row and family, offset included; -1 none
	one    bool
	whole  bool // the filter wants whole rows

	families []familyScan
	started  bool
	done     bool
	inRow    bool
	at       int    // index of the family we are in
	reading  bool   // that family has had a cell in this row
	row      []byte // of the row we are in, or were last
	kept     Cell   // the cell being transformed
	arena    arena
	rowOut   []byte // the row's bytes as handed out
	scanned  int    // cells looked at since the clock was last asked
}

// familyScan is the part of a scan that concerns one family: HBase has a
// scanner of its own for each.
type familyScan struct {
	name    []byte
	matcher *Matcher
	taken   int // cells of this row included so far, skipped ones too
	// resume, if set, is a row ahead to which a filter's hint sent this family:
	// rows before it are not looked at.
	resume []byte
	// done: the filter was done when a cell of this family came up. HBase ends
	// the family's scanner then, for good; other families go on if the filter
	// thinks otherwise in the next row.
	done bool
}

// cellsPerClock is how many cells may be looked at between two questions to
// Limits.Expired: cheap enough to ask, and at a million cells a second often
// enough to notice within a tenth of a millisecond.
const cellsPerClock = 100

// maxRowBytes is hbase.table.max.rowsize: more than this is not returned in one
// piece.
const maxRowBytes = 1 << 30

// NewScanner validates the spec and makes a scanner. The source must run in
// the spec's direction; cmp orders its rows (bytes.Compare but for hbase:meta);
// now is the time against which TTLs count, in milliseconds.
func NewScanner(src Source, schema *Schema, spec *ScanSpec, cmp func(a, b []byte) int, now int64) (*Scanner, error) {
	s := new(Scanner)
	if err := s.Init(src, schema, spec, cmp, now); err != nil {
		return nil, err
	}
	return s, nil
}

// Init is NewScanner with a scanner that was used before, some of whose memory
// serves again; cells that it has given out stay as they are.
func (s *Scanner) Init(src Source, schema *Schema, spec *ScanSpec, cmp func(a, b []byte) int, now int64) error {
	if err := spec.Validate(schema); err != nil {
		return err
	}
	families, row := s.families[:0], s.row[:0]
	*s = Scanner{src: src, schema: schema, spec: spec, filter: spec.Filter, cmp: cmp, limit: -1, families: families, row: row}
	if spec.StoreLimit >= 0 {
		s.limit = spec.StoreLimit + max(spec.StoreOffset, 0)
	}
	s.one = spec.IncludeStart && spec.IncludeStop && len(spec.Start) > 0 && string(spec.Start) == string(spec.Stop)
	s.done = spec.MaxVersions <= 0
	if s.filter != nil {
		s.filter.SetReversed(spec.Reversed)
		s.whole = s.filter.HasFilterRow()
	}
	if len(spec.Columns) == 0 {
		s.families = slices.Grow(s.families, len(schema.Families))
		for i := range schema.Families {
			s.addFamily(&schema.Families[i], nil, now)
		}
	} else {
		s.families = slices.Grow(s.families, len(spec.Columns))
		for i := range spec.Columns {
			c := &spec.Columns[i]
			s.addFamily(schema.Family(c.Family), c.Qualifiers, now)
		}
	}
	if s.filter != nil && spec.Reversed && !spec.LoadAll {
		for i := range s.families {
			if !s.filter.FamilyEssential(s.families[i].name) {
				return DoNotRetry("Reverse scan with loading CFs on demand is not supported")
			}
		}
	}
	return nil
}

// Release forgets everything but memory that serves the next Init, if it is of
// moderate size.
func (s *Scanner) Release() {
	families, row := s.families, s.row
	if cap(families) > keptFamilies {
		families = nil
	}
	if cap(row) > keptRow {
		row = nil
	}
	for i := range families[:cap(families)] {
		f := &families[:cap(families)][i]
		if f.matcher != nil {
			*f.matcher = Matcher{}
		}
		*f = familyScan{matcher: f.matcher}
	}
	*s = Scanner{families: families[:0], row: row[:0]}
}

// What Release keeps at most.
const (
	keptFamilies = 8
	keptRow      = 4 << 10
)

func (s *Scanner) addFamily(f *Family, qualifiers [][]byte, now int64) {
	// A matcher that was used for this place before serves again.
	n := len(s.families)
	m := s.families[:n+1][n].matcher
	if m == nil {
		m = new(Matcher)
	}
	m.Init(f, s.spec.Query, qualifiers, now)
	s.families = append(s.families, familyScan{name: f.Name, matcher: m})
}

// FilterDone says that the filter wants nothing more (filterAllRemaining): if
// the answer being built carries no rows, the whole scan is over.
func (s *Scanner) FilterDone() bool { return s.filter != nil && s.filter.FilterAllRemaining() }

// LastRow is the row the scanner reached, for cursors; nil before the first.
// It is valid until the next call.
func (s *Scanner) LastRow() []byte { return s.row }

// Next appends the cells of the next row, or of a part of it, to dst. The
// cells are the caller's to keep (but see Limits.Transient), and share buffers
// with one another.
//
// Rows without a visible cell are passed over. After an error the scanner is
// of no more use.
func (s *Scanner) Next(dst []Cell, lim *Limits) ([]Cell, State, error) {
	base := len(dst)
	if lim.Transient {
		s.arena.reuse()
		s.rowOut = nil
	}
	for !s.done {
		if !s.inRow {
			found, err := s.nextRow()
			if err != nil {
				return dst[:base], NoMoreRows, err
			}
			if !found {
				break
			}
			if lim.Expired != nil && s.clock() && lim.Expired() {
				return dst, TimeReached, nil
			}
			out, err := s.enterRow()
			if err != nil {
				return dst[:base], NoMoreRows, err
			}
			if out { // by its key
				if s.FilterDone() {
					s.done = true
					break
				}
				if err := s.leaveRow(); err != nil {
					return dst[:base], NoMoreRows, err
				}
				continue
			}
		}
		var state State
		var err error
		dst, state, err = s.readRow(dst, base, lim)
		if err != nil {
			return dst[:base], NoMoreRows, err
		}
		if state.MidRow() {
			return dst, state, nil
		}
		keep := len(dst) > base
		if state == MoreRows {
			if dst, keep, err = s.judgeRow(dst, base); err != nil {
				return dst[:base], NoMoreRows, err
			}
		}
		if err := s.leaveRow(); err != nil {
			return dst[:base], NoMoreRows, err
		}
		if s.FilterDone() {
			s.done = true
		} else if state == MoreRows {
			found, err := s.nextRow()
			if err != nil {
				return dst[:base], NoMoreRows, err
			}
			s.done = !found
		}
		switch {
		case keep && s.done:
			return dst, NoMoreRows, nil
		case keep:
			return dst, state, nil
		}
		dst = dst[:base]
	}
	s.done = true
	return dst, NoMoreRows, nil
}

// clock says whether it is time to look at the clock, counting a row as a
// cell.
func (s *Scanner) clock() bool {
	s.scanned++
	if s.scanned < cellsPerClock {
		return false
	}
	s.scanned = 0
	return true
}

// nextRow makes sure the source stands at the first cell, in a family we read,
// of a row in range. It changes nothing if it stands there already.
func (s *Scanner) nextRow() (found bool, err error) {
	if !s.started {
		s.started = true
		if err := s.seekStart(); err != nil {
			return false, err
		}
	}
	for {
		row := s.src.Row()
		if row == nil || s.beyond(row) {
			return false, nil
		}
		s.at = 0
		for i := range s.families {
			f := &s.families[i]
			if f.resume != nil && !s.ahead(f.resume, row) {
				f.resume = nil
			}
		}
		c, err := s.peek()
		if err != nil {
			return false, err
		}
		if c != nil {
			return true, nil
		}
		if err := s.toNextRow(); err != nil {
			return false, err
		}
	}
}

// toNextRow leaves the source's row, for the nearest row any family still
// waits for.
func (s *Scanner) toNextRow() error {
	if s.one {
		s.done = true
		return nil
	}
	var to []byte
	open := false
	for i := range s.families {
		if s.families[i].done {
			continue
		}
		open = true
		r := s.families[i].resume
		if r == nil {
			return s.src.NextRow()
		}
		if to == nil || s.ahead(to, r) {
			to = r
		}
	}
	if !open {
		s.done = true
		return nil
	}
	return s.src.SeekRow(to, true)
}

// ahead says whether row a comes after row b in scan direction.
func (s *Scanner) ahead(a, b []byte) bool {
	if s.spec.Reversed {
		return s.cmp(a, b) < 0
	}
	return s.cmp(a, b) > 0
}

func (s *Scanner) seekStart() error {
	from, inclusive := s.spec.Start, s.spec.IncludeStart
	if s.spec.Reversed {
		if len(s.spec.Upper) > 0 && (len(from) == 0 || s.cmp(from, s.spec.Upper) >= 0) {
			from, inclusive = s.spec.Upper, false
		}
	} else if len(s.spec.Lower) > 0 && (len(from) == 0 || s.cmp(from, s.spec.Lower) < 0) {
		from, inclusive = s.spec.Lower, true
	}
	return s.src.SeekRow(from, inclusive)
}

// beyond says whether row lies behind the end of the range.
func (s *Scanner) beyond(row []byte) bool {
	if s.done {
		return true
	}
	if s.spec.Reversed {
		if len(s.spec.Lower) > 0 && s.cmp(row, s.spec.Lower) < 0 {
			return true
		}
	} else if len(s.spec.Upper) > 0 && s.cmp(row, s.spec.Upper) >= 0 {
		return true
	}
	if len(s.spec.Stop) == 0 {
		return false
	}
	if s.cmp(row, s.spec.Stop) == 0 {
		return !s.spec.IncludeStop
	}
	return s.ahead(row, s.spec.Stop)
}

// peek finds the next cell of the row in a family we read, and sets s.at to
// that family; nil at the row's end.
func (s *Scanner) peek() (*Cell, error) {
	for {
		c := s.src.Cell()
		if c == nil {
			s.leaveFamily()
			return nil, nil
		}
		cmp := -1
		for s.at < len(s.families) {
			f := &s.families[s.at]
			if f.resume == nil && !f.done {
				if cmp = compareFamily(c.Family, f.name); cmp <= 0 {
					break
				}
			}
			s.leaveFamily()
			s.at++
		}
		if s.at == len(s.families) {
			return nil, nil
		}
		if cmp == 0 {
			s.reading = true
			return c, nil
		}
		if err := s.src.SeekCell(s.families[s.at].name, nil, LatestTimestamp, Maximum); err != nil {
			return nil, err
		}
	}
}

// leaveFamily ends a family's part of a row. HBase's scanner of the family then
// looks at its first cell of a later row, and closes for good if the filter is
// done just now, even if it is not any more once the row has ended
// (ColumnCountGetFilter).
func (s *Scanner) leaveFamily() {
	if s.reading && s.FilterDone() {
		s.families[s.at].done = true
	}
	s.reading = false
}

func compareFamily(a, b []byte) int {
	switch {
	case string(a) == string(b):
		return 0
	case string(a) < string(b):
		return -1
	}
	return 1
}

// enterRow begins the row the source stands at; out says the filter wants none
// of it.
func (s *Scanner) enterRow() (out bool, err error) {
	c := s.src.Cell()
	s.row = append(s.row[:0], s.src.Row()...)
	s.rowOut = nil
	s.inRow = true
	for i := range s.families {
		f := &s.families[i]
		f.taken = 0
		f.matcher.NewRow()
	}
	if s.filter == nil {
		return false, nil
	}
	return s.filter.FilterRowKey(c)
}

// judgeRow asks the filter about a row read to its end.
func (s *Scanner) judgeRow(dst []Cell, base int) (_ []Cell, keep bool, err error) {
	keep = len(dst) > base
	if s.filter == nil {
		return dst, keep, nil
	}
	if s.whole {
		left, err := s.filter.FilterRowCells(dst[base:])
		if err != nil {
			return dst, false, err
		}
		dst = append(dst[:base], left...)
		if len(dst) == base {
			return dst, false, nil
		}
	}
	if !keep { // N6: filterRow does not see empty rows
		return dst, false, nil
	}
	out, err := s.filter.FilterRow()
	return dst, !out, err
}

// leaveRow ends the row: what is left of it still passes through the matchers
// (and so through the filter, as in HBase), but is not kept.
func (s *Scanner) leaveRow() error {
	for s.inRow {
		c, err := s.peek()
		if err != nil {
			return err
		}
		if c == nil {
			s.inRow = false
			break
		}
		if _, err := s.step(c, nil); err != nil {
			return err
		}
	}
	if s.filter != nil {
		if err := s.filter.Reset(); err != nil {
			return err
		}
	}
	return s.toNextRow()
}

// readRow reads on in the row until its end (MoreRows) or a limit.
func (s *Scanner) readRow(dst []Cell, base int, lim *Limits) ([]Cell, State, error) {
	midRow := lim.MidRow && !s.whole
	var bytes, weight int64
	for {
		c, err := s.peek()
		if err != nil {
			return dst, NoMoreRows, err
		}
		if c == nil {
			s.inRow = false
			return dst, MoreRows, nil
		}
		if midRow && lim.Expired != nil && s.clock() && lim.Expired() {
			return dst, TimeReachedMidRow, nil
		}
		dst = append(dst, Cell{})
		out := &dst[len(dst)-1]
		taken, err := s.step(c, out)
		if err != nil {
			return dst, NoMoreRows, err
		}
		if !taken {
			dst = dst[:len(dst)-1]
			continue
		}
		if bytes += int64(out.HeapSize()); bytes > maxRowBytes {
			return dst, NoMoreRows, &Exception{Class: ClassRowTooBig, DoNotRetry: true,
				Message: "Max row size allowed: " + strconv.Itoa(maxRowBytes) + ", but the row is bigger than that."}
		}
		weight += int64(out.ResultSize())
		state := MoreRows
		switch {
		case lim.Batch > 0 && len(dst)-base >= lim.Batch:
			state = BatchReached
		case midRow && lim.Bytes > 0 && weight >= lim.Bytes:
			state = SizeReachedMidRow
		default:
			continue
		}
		// The limit only counts as reached inside the row if there is
		// something left of it, visible or not.
		if c, err = s.peek(); err != nil {
			return dst, NoMoreRows, err
		}
		if c == nil {
			s.inRow = false
			if state == SizeReachedMidRow {
				return dst, SizeReached, nil
			}
			return dst, MoreRows, nil
		}
		return dst, state, nil
	}
}

// step judges the cell the source stands at and moves the source on. If the
// cell is to be returned and out is not nil, out becomes a copy of it.
func (s *Scanner) step(c *Cell, out *Cell) (taken bool, err error) {
	f := &s.families[s.at]
	code, err := f.matcher.Match(c)
	if err != nil {
		return false, err
	}
	if code.Included() {
		from := c
		if s.filter != nil {
			s.kept = *c
			if err := s.filter.TransformCell(&s.kept); err != nil {
				return false, err
			}
			from = &s.kept
		}
		f.taken++
		if f.taken > s.spec.StoreOffset && out != nil {
			s.copyOut(from, f.name, out)
			taken = true
		}
		if s.limit >= 0 && f.taken >= s.limit {
			code = MatchIncludeNextRow
		}
	}
	switch code {
	case MatchInclude, MatchSkip:
		err = s.src.Next()
	case MatchIncludeNextCol, MatchNextCol:
		if q := f.matcher.SeekQualifier(); q != nil && string(q) > string(c.Qualifier) {
			err = s.src.SeekCell(f.name, q, LatestTimestamp, Maximum)
		} else {
			err = s.src.SeekCell(f.name, c.Qualifier, 0, Minimum)
		}
	case MatchIncludeNextRow, MatchNextRow:
		s.endFamily()
	case MatchDone:
		f.done = true
		s.endFamily()
	case MatchHint:
		err = s.follow(f, c)
	}
	return taken, err
}

// endFamily leaves the family's cells of this row: the next peek seeks past
// them.
func (s *Scanner) endFamily() { s.at++ }

// follow goes where the filter's hint says, if that is ahead. In HBase each
// family has its own scanner, so a hint that leaves the row takes away this
// family's part only.
func (s *Scanner) follow(f *familyScan, c *Cell) error {
	hint, err := s.filter.NextCellHint(c)
	if err != nil {
		return err
	}
	if hint == nil {
		return s.src.Next()
	}
	if s.cmp(hint.Row, s.row) == 0 {
		switch {
		case s.spec.Reversed || CompareWithinRow(hint, c) <= 0 || len(c.Qualifier) == 0: // there may be markers in between
			return s.src.Next()
		case string(hint.Family) != string(f.name):
			s.endFamily()
			return nil
		}
		return s.src.SeekCell(hint.Family, hint.Qualifier, hint.Timestamp, hint.Type)
	}
	if !s.ahead(hint.Row, s.row) {
		return s.src.Next()
	}
	f.resume = append([]byte{}, hint.Row...)
	s.endFamily()
	return nil
}

// copyOut copies a cell into buffers of the caller's own. The family name is
// the schema's, which never changes; the row is copied once per row.
func (s *Scanner) copyOut(c *Cell, family []byte, out *Cell) {
	if s.rowOut == nil {
		s.rowOut = s.arena.copy(s.row)
	}
	out.Row, out.Family = s.rowOut, family
	out.Timestamp, out.Type, out.Seq = c.Timestamp, c.Type, c.Seq
	s.arena.reserve(len(c.Qualifier) + len(c.Value) + len(c.Tags))
	out.Qualifier = s.arena.copy(c.Qualifier)
	out.Value = s.arena.copy(c.Value)
	if len(c.Tags) > 0 {
		out.Tags = s.arena.copy(c.Tags)
	}
}

// arena hands out copies of small byte strings from larger pieces, so that a
// scan does not allocate per cell. Pieces are used again only after reuse.
type arena struct {
	free  []byte // of piece, what has not been handed out
	piece []byte
	size  int
}

// reuse takes back everything handed out.
func (a *arena) reuse() {
	if len(a.piece) > maxReused {
		a.piece = nil
	}
	a.free = a.piece
}

// Pieces grow so that a Get of one small cell does not pay for a scan's: at
// most 32 KiB, beyond which the saving is nil and a kept cell pins too much.
const (
	minPiece = 128
	maxPiece = 32 << 10
	// maxReused is the largest piece that is used again: cells larger than a
	// usual piece get one of their own.
	maxReused = 1 << 20
)

// reserve makes room for n bytes in one piece.
func (a *arena) reserve(n int) {
	if n <= len(a.free) {
		return
	}
	a.size = min(max(2*a.size, minPiece), maxPiece)
	a.piece = make([]byte, max(n, a.size))
	a.free = a.piece
}

func (a *arena) copy(b []byte) []byte {
	n := len(b)
	if n == 0 {
		return []byte{}
	}
	a.reserve(n)
	out := a.free[:n:n]
	copy(out, b)
	a.free = a.free[n:]
	return out
}
