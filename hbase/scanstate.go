package hbase

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// scanState is where a scan stands: what to ask for next, and what of the
// answers to hand out. It is pure, so that every history of cuts and failures
// can be played to it.
//
// Its promise: whatever happens between answers (the scanner is lost, the
// region moves, splits, merges), the results handed out are the rows and cells
// of the range, each once, in order. It keeps it by remembering the last row
// finished and, within an unfinished row, the last cell accepted:
//
//   - Whole rows (the default): the parts of a row are buffered until the row
//     is known to be complete. After a failure the buffered part is dropped and
//     the row is read again from its start, with one fresh read point.
//   - Partial results and batches: the accepted part of a row is not taken back.
//     The scan is opened again at that row, inclusive, with the read point of
//     the lost scanner, so that the row looks as it did, and the cells up to the
//     last accepted one are dropped.
//
// A row is complete when a result of it comes without the partial flag, when
// another row comes, or when the region or the scan is at its end: the flag
// alone only says that more may follow, and the rest may have been filtered.
type scanState struct {
	s    *Scan
	done bool

	// pos is where the next opening begins if no row is unfinished.
	pos       []byte
	inclusive bool
	rowsLeft  int // of Scan.Limit; meaningless without one
	// compare is the table's order of rows: bytes, but for hbase:meta.
	compare func(a, b []byte) int

	// row is the unfinished row, nil if there is none. buf holds accepted
	// cells of it not yet handed out: all of them when rows are joined, less
	// than a batch with Scan.Batch, none with AllowPartial.
	row      []byte
	buf      []Cell
	bufBytes int64
	maxRow   int64
	stale    bool
	scanned  uint64 // bytes of blocks for what is not handed out yet

	// last is the last accepted cell of row, equals how many accepted cells in
	// a row had its coordinates (a raw scan may show several). Only kept when
	// results are handed out before the row is complete.
	last    Cell
	hasLast bool
	equals  int
	// drop says that a reopened scanner is repeating row; dropEquals counts
	// the cells equal to last still to be dropped.
	drop       bool
	dropEquals int

	// mvcc is the read point of the region's scanner.
	mvcc uint64
	// slab is room for the results of the answer being accepted.
	slab []Result

	// The open region, if any.
	open       bool
	start, end []byte
	nextSeq    uint64
}

// scanPart is one Result of an answer.
type scanPart struct {
	cells   []Cell
	partial bool
	stale   bool
	scanned uint64 // bytes of blocks, if the server says
}

// scanAnswer is the answer to an opening or a next call. It has parts or plain
// rows, not both.
type scanAnswer struct {
	parts     []scanPart
	plain     plainRows
	heartbeat bool
	cursor    []byte
	hasCursor bool
	// moreInRegion and more are the server's flags; absent counts as true.
	moreInRegion, more bool
	// mvcc is the read point; only an opening's answer brings one.
	mvcc uint64
}

// scanOpening is what the next opening asks for.
type scanOpening struct {
	row       []byte
	inclusive bool
	// before: the region wanted is the one before row, not the one of row.
	before bool
	mvcc   uint64
	limit  int // rows still wanted; 0 = all
}

func newScanState(s *Scan, maxRow int64) *scanState {
	st := &scanState{s: s, pos: s.Start, inclusive: !s.ExcludeStart || len(s.Start) == 0, rowsLeft: s.Limit, maxRow: maxRow, compare: bytes.Compare}
	st.done = st.nothing()
	return st
}

// orderBy sets the table's order of rows. It is called before anything else.
func (st *scanState) orderBy(compare func(a, b []byte) int) {
	st.compare = compare
	st.done = st.nothing()
}

// nothing says whether the range is empty by its bounds: then the scan is done
// before it starts.
func (st *scanState) nothing() bool {
	s := st.s
	if len(s.Start) == 0 || len(s.Stop) == 0 {
		return false
	}
	c := st.compare(s.Start, s.Stop)
	if s.Reversed {
		c = -c
	}
	return c > 0 || c == 0 && !(s.IncludeStop && !s.ExcludeStart)
}

// joins says whether whole rows are handed out.
func (st *scanState) joins() bool { return !st.s.AllowPartial && st.s.Batch == 0 }

// opening gives what the next opening asks for. It is called with no region
// open and the scan not done.
func (st *scanState) opening() scanOpening {
	o := scanOpening{row: st.pos, inclusive: st.inclusive, limit: st.rowsLeft}
	if st.row != nil {
		// Only the modes that cannot take back have an unfinished row here.
		o.row, o.inclusive, o.mvcc = st.row, true, st.mvcc
	}
	o.before = st.s.Reversed && (!o.inclusive || len(o.row) == 0)
	return o
}

// opened notes that a scanner is open on the region [start, end), as o asked
// for. A region that is not the one asked for is an error: from one that does
// not hold the position a scan might walk in circles.
func (st *scanState) opened(o scanOpening, start, end []byte, mvcc uint64) error {
	holds := bytes.Compare(start, o.row) <= 0 && (len(end) == 0 || bytes.Compare(o.row, end) < 0)
	switch {
	case o.before && len(o.row) == 0:
		holds = len(end) == 0
	case o.before:
		holds = bytes.Compare(start, o.row) < 0 && (len(end) == 0 || bytes.Compare(o.row, end) <= 0)
	}
	if !holds {
		return fmt.Errorf("a scanner was opened on the region from %q to %q, which does not hold row %q",
			cells.QuoteShort(start, 64), cells.QuoteShort(end, 64), cells.QuoteShort(o.row, 64))
	}
	st.open, st.start, st.end, st.nextSeq = true, start, end, 0
	if st.row == nil || st.mvcc == 0 {
		st.mvcc = mvcc
	}
	if st.row != nil {
		st.drop, st.dropEquals = st.hasLast, st.equals
	}
	return nil
}

// lost notes that the region's scanner is gone.
func (st *scanState) lost() {
	st.open = false
	if st.joins() {
		st.row, st.buf, st.bufBytes, st.scanned = nil, nil, 0, 0
	}
	// With batches buf stays: its cells are accepted, and the cells dropped
	// after reopening include them.
}

// answer takes an answer and gives what can be handed out. Errors end the scan.
func (st *scanState) answer(a *scanAnswer) (scanRows, error) {
	if st.inPieces(a) {
		return st.acceptPieces(a)
	}
	plain, ok, err := st.acceptPlain(a)
	if ok {
		return rowsOf(plain), err
	}
	if len(a.plain.counts) > 0 {
		if a.parts, err = a.plain.parts(nil); err != nil {
			return scanRows{}, err
		}
	}
	out, err := st.accept(a, nil)
	return rowsMade(out), err
}

// accept takes the parts of an answer and appends what can be handed out to out. Errors end
// the scan.
func (st *scanState) accept(a *scanAnswer, out []*Result) ([]*Result, error) {
	if n := len(a.parts); n > 0 {
		// One more for a row that an earlier answer left unfinished.
		st.slab = make([]Result, 0, n+1)
		out = slices.Grow(out, n+1)
	}
	before := st.pos
	defer func() {
		st.slab = nil
		st.keep(before)
	}()
	for i := range a.parts {
		p := &a.parts[i]
		if len(p.cells) == 0 {
			continue
		}
		if st.row != nil && !bytes.Equal(p.cells[0].Row, st.row) {
			out = st.complete(out)
		}
		if st.done {
			// Limit reached; a server that knows limits sends no more, one
			// that does not is cut here.
			return out, nil
		}
		if st.row == nil {
			row := p.cells[0].Row
			if st.outside(row) {
				return out, errOutside(row)
			}
			st.row, st.hasLast, st.equals, st.drop = row, false, 0, false
		}
		var err error
		if out, err = st.take(p, out); err != nil {
			return out, err
		}
		if !p.partial {
			out = st.complete(out)
		}
	}
	if st.done {
		return out, nil
	}
	if a.hasCursor && st.s.NeedCursor && len(out) == 0 {
		out = append(out, &Result{Row: a.cursor, Cursor: true})
	}
	if !a.more || !a.moreInRegion {
		out = st.complete(out)
	}
	st.turn(a)
	return out, nil
}

// acceptPlain is accept for an answer of plain rows, if they can be handed out
// as they are. It looks at each row's key only.
func (st *scanState) acceptPlain(a *scanAnswer) (rows plainRows, ok bool, err error) {
	if len(a.plain.counts) == 0 || st.row != nil || !st.joins() || a.plain.cut {
		return rows, false, nil
	}
	rows = a.plain
	before := st.pos
	defer func() { st.keep(before) }()
	r := codec.Reader(rows.block)
	var first Cell
	for i, n := range rows.counts {
		if n == 0 {
			continue
		}
		if st.done {
			// As in accept.
			rows.counts = rows.counts[:i]
			return rows, true, nil
		}
		if err := cmp.Or(r.Next(&first), r.Skip(int(n)-1)); err != nil {
			rows.counts = rows.counts[:i]
			return rows, true, err
		}
		if st.outside(first.Row) {
			rows.counts = rows.counts[:i]
			return rows, true, errOutside(first.Row)
		}
		st.passed(first.Row)
	}
	if !st.done {
		st.turn(a)
	}
	return rows, true, nil
}

// inPieces says whether an answer is one of plain rows but for the rest of a row
// at its beginning and a part of one at its end, which is what the answers of a
// long scan of rows of several cells look like.
func (st *scanState) inPieces(a *scanAnswer) bool {
	if len(a.plain.counts) == 0 || !st.joins() || st.row == nil && !a.plain.cut || !a.more || !a.moreInRegion {
		return false
	}
	n := 0
	for _, c := range a.plain.counts {
		if n += min(int(c), 1); n > 2 {
			return true
		}
	}
	return false
}

// acceptPieces is accept for such an answer: the rows in between are not made
// here. The part of a row at the end is copied, so that nothing of the answer is
// needed when its rows have been taken.
func (st *scanState) acceptPieces(a *scanAnswer) (rows scanRows, err error) {
	p := a.plain
	part := func(n uint32, block []byte, partial bool) error {
		r := codec.Reader(block)
		all, err := r.Take(int(n), nil)
		if err == nil {
			rows.made, err = st.accept(&scanAnswer{parts: []scanPart{{cells: all, partial: partial, stale: p.stale}}, more: true, moreInRegion: true}, rows.made)
		}
		return err
	}
	skip := func(n int) (int, error) {
		r := codec.Reader(p.block)
		err := r.Skip(n)
		return len(p.block) - r.Left(), err
	}
	if st.row != nil {
		for p.counts[0] == 0 {
			p.counts = p.counts[1:]
		}
		size, err := skip(int(p.counts[0]))
		if err == nil {
			err = part(p.counts[0], p.block[:size], false)
		}
		if err != nil || st.done {
			return rows, err
		}
		p.counts, p.block = p.counts[1:], p.block[size:]
	}
	tail := uint32(0)
	for p.cut && tail == 0 {
		last := len(p.counts) - 1
		tail, p.counts = p.counts[last], p.counts[:last]
	}
	p.cut = false
	plain, _, err := st.acceptPlain(&scanAnswer{plain: p, more: true, moreInRegion: true})
	made := rows.made
	rows = rowsOf(plain)
	rows.made = made
	if err != nil || st.done || tail == 0 {
		return rows, err
	}
	total := 0
	for _, c := range p.counts {
		total += int(c)
	}
	size, err := skip(total)
	if err != nil {
		return rows, err
	}
	return rows, part(tail, bytes.Clone(p.block[size:]), true)
}

// turn goes on to what comes after an answer.
func (st *scanState) turn(a *scanAnswer) {
	switch {
	case !a.more:
		st.finish()
	case !a.moreInRegion && !st.done:
		st.leaveRegion()
	}
}

func errOutside(row []byte) error {
	return fmt.Errorf("the server sent row %q, which is out of order or outside the scan", cells.QuoteShort(row, 64))
}

// keep copies what is remembered of an answer: its bytes are the caller's now,
// who may write into them.
func (st *scanState) keep(before []byte) {
	if !sameBytes(st.pos, before) {
		st.pos = bytes.Clone(st.pos)
	}
	if st.row != nil && !st.joins() {
		st.row = bytes.Clone(st.row)
		st.last.Family, st.last.Qualifier = bytes.Clone(st.last.Family), bytes.Clone(st.last.Qualifier)
	}
}

// outside says whether row cannot follow what was accepted so far.
func (st *scanState) outside(row []byte) bool {
	if len(st.pos) == 0 {
		return false
	}
	c := st.compare(row, st.pos)
	if st.s.Reversed {
		c = -c
	}
	return c < 0 || c == 0 && !st.inclusive
}

// take accepts the cells of one part of the current row.
func (st *scanState) take(p *scanPart, out []*Result) ([]*Result, error) {
	cs := p.cells
	st.stale = st.stale || p.stale
	st.scanned += p.scanned
	if st.drop {
		cs = st.dropRepeated(cs)
	}
	if len(cs) == 0 {
		return out, nil
	}
	if st.joins() {
		if st.buf == nil {
			// The common case, a row in one part, is handed out as it is. The
			// capacity is cut so that joining copies it out of the answer.
			st.buf = cs[:len(cs):len(cs)]
		} else {
			st.buf = append(st.buf, cs...)
		}
		if p.partial || st.bufBytes > 0 {
			for i := range cs {
				st.bufBytes += int64(cs[i].HeapSize())
			}
			if st.bufBytes > st.maxRow {
				return out, fmt.Errorf("%w: more than %d bytes of row %q; read it with AllowPartial or Batch",
					ErrRowTooLarge, st.maxRow, cells.QuoteShort(st.row, 64))
			}
		}
		return out, nil
	}
	st.remember(cs)
	if st.s.AllowPartial {
		return append(out, st.result(cs, p.partial)), nil
	}
	// Batches: a server may cut earlier than asked, for size; the pieces are
	// put together again, so that a batch is short only at the end of its row.
	batch := st.s.Batch
	all := cs
	if len(st.buf) > 0 {
		all = append(st.buf[:len(st.buf):len(st.buf)], cs...)
	}
	for len(all) > batch {
		out = append(out, st.result(all[:batch:batch], true))
		all = all[batch:]
	}
	st.buf = nil
	if len(all) == batch {
		return append(out, st.result(all, p.partial)), nil
	}
	st.buf = all // complete() hands it out if the row ends here
	return out, nil
}

// dropRepeated removes what was accepted before the scanner was lost.
func (st *scanState) dropRepeated(cs []Cell) []Cell {
	i := 0
	for ; i < len(cs); i++ {
		c := cells.CompareWithinRow(&cs[i], &st.last)
		if c < 0 {
			continue
		}
		if c == 0 && st.dropEquals > 0 {
			st.dropEquals--
			continue
		}
		st.drop = false
		break
	}
	return cs[i:]
}

// remember notes the last accepted cell of the row.
func (st *scanState) remember(cs []Cell) {
	n := len(cs)
	l := &cs[n-1]
	eq := 1
	for eq < n && cells.CompareWithinRow(&cs[n-1-eq], l) == 0 {
		eq++
	}
	if eq == n && st.hasLast && cells.CompareWithinRow(&st.last, l) == 0 {
		eq += st.equals
	}
	st.last, st.hasLast, st.equals = *l, true, eq
	st.last.Row, st.last.Value, st.last.Tags = nil, nil, nil // only its place in the row counts
}

// complete ends the unfinished row, if any.
func (st *scanState) complete(out []*Result) []*Result {
	if st.row == nil {
		return out
	}
	if len(st.buf) > 0 {
		out = append(out, st.result(st.buf, false))
	}
	row := st.row
	st.row, st.buf, st.bufBytes, st.hasLast, st.equals, st.drop, st.stale, st.scanned = nil, nil, 0, false, 0, false, false, 0
	st.passed(row)
	return out
}

// passed notes that a row is complete.
func (st *scanState) passed(row []byte) {
	st.pos, st.inclusive = row, false
	if st.s.Limit > 0 {
		if st.rowsLeft--; st.rowsLeft <= 0 {
			st.finish()
		}
	}
	if len(st.s.Stop) > 0 && bytes.Equal(st.pos, st.s.Stop) {
		st.finish()
	}
}

// leaveRegion moves on to the next region, or ends the scan if there is none
// within the bounds.
func (st *scanState) leaveRegion() {
	st.open = false
	stop := st.s.Stop
	if st.s.Reversed {
		if len(st.start) == 0 || len(stop) > 0 && bytes.Compare(st.start, stop) <= 0 {
			st.finish()
			return
		}
		st.pos, st.inclusive = st.start, false
		return
	}
	if len(st.end) == 0 {
		st.finish()
		return
	}
	if len(stop) > 0 {
		if c := bytes.Compare(st.end, stop); c > 0 || c == 0 && !st.s.IncludeStop {
			st.finish()
			return
		}
	}
	st.pos, st.inclusive = st.end, true
}

func (st *scanState) finish() { st.done, st.open = true, false }

// result makes a Result of one cell or more in the answer's slab: one allocation
// for all results of an answer, which share its buffer anyway.
func (st *scanState) result(cs []Cell, partial bool) *Result {
	if len(st.slab) == cap(st.slab) {
		st.slab = make([]Result, 0, 1)
	}
	st.slab = append(st.slab, Result{Row: cs[0].Row, Cells: cs, Partial: partial, Stale: st.stale, BlockBytesScanned: st.scanned})
	st.scanned = 0
	return &st.slab[len(st.slab)-1]
}
