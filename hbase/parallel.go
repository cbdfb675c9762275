package hbase

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// ParallelOptions say how a [Table.ScanParallel] goes about it. The zero value
// is fine.
type ParallelOptions struct {
	// Workers is how many regions are read at one time. Default 8, 1 to 256.
	Workers int
	// Ordered gives the rows in the order of a plain scan. It costs
	// parallelism: a region can be read ahead only as far as its share of the
	// memory goes, until those before it have been handed out. Default: rows
	// come in order within a region, and regions as they like.
	Ordered bool
	// Ranges are the parts of the Scan's rows to read, see
	// [ParallelScanner.Remaining]. Default: all of them.
	Ranges []RowRange
}

// RowRange is a range of rows, with bounds as a [Scan]'s: in a reversed scan
// Start is the larger key.
type RowRange struct {
	Start, Stop  []byte
	ExcludeStart bool
	IncludeStop  bool
}

func (r RowRange) clone() RowRange {
	r.Start, r.Stop = bytes.Clone(r.Start), bytes.Clone(r.Stop)
	return r
}

// String prints the range as an interval.
func (r RowRange) String() string {
	open, end := "[", ")"
	if r.ExcludeStart {
		open = "("
	}
	if r.IncludeStop {
		end = "]"
	}
	return fmt.Sprintf("%s%q,%q%s", open, cells.QuoteShort(r.Start, 64), cells.QuoteShort(r.Stop, 64), end)
}

// ParallelScanner reads several regions of a range at one time. It is for one
// goroutine, except that Close may be called from any.
//
// The rows are cut where the regions meet, as the client believes them to be
// when it comes there, and each piece is a scan of its own: it resumes after
// failures like one, also when its region has split or merged meanwhile, since
// the pieces are ranges of rows and not regions. Pieces are begun so that all
// servers are kept busy. Memory: two answers (Scan.MaxResultSize) per worker.
type ParallelScanner struct {
	t       *Table
	scan    Scan
	ordered bool
	cancel  context.CancelCauseFunc
	ctx     context.Context
	begin   sync.Once
	end     sync.Once
	closed  chan struct{}

	// Unordered, everybody sends to out; ordered, units come in their order and
	// each has an out of its own.
	out   chan unitRows
	units chan *scanUnit
	slots chan struct{} // taken by units that are being read or waiting to be drained
	stop  chan struct{} // closed by the first failure, so that no unit is begun

	mu    sync.Mutex
	todo  []RowRange  // not cut into units yet
	ahead []*scanUnit // cut, not begun
	live  []*scanUnit // begun, not handed out completely
	busy  map[meta.ServerName]int
	stats ScanStats

	// Of the caller alone:
	unit *scanUnit // being drained (ordered)
	cur  unitRows
	room *resultRoom // with Scan.ReuseResults
	left int         // of Scan.Limit: rows that may still begin
	open int         // units whose last row handed out may go on
	err  error
}

// scanUnit is one piece of the range.
type scanUnit struct {
	left   RowRange // what has not been handed out; the consumer's
	last   []byte   // memory for left.Start
	begun  bool     // something has been: left.Start is its row
	open   bool     // and that row may go on
	server meta.ServerName
	out    chan unitRows
}

// unitRows is an answer's worth of a unit, its end, or its failure.
type unitRows struct {
	unit *scanUnit
	rows scanRows
	err  error // io.EOF at the unit's end
}

// ScanParallel makes a scanner that reads several regions at one time. Nothing
// is sent before the first row is asked for, and errors in the Scan or the
// options come with it. ctx bounds the whole scan. Scan.Limit counts the rows
// handed out (without Ordered: whichever come first). Scan.Prefetch has no
// effect, since reading ahead is what workers do; Scan.NeedCursor is refused.
func (t *Table) ScanParallel(ctx context.Context, s *Scan, o ParallelOptions) *ParallelScanner {
	if s == nil {
		s = &Scan{}
	}
	p := &ParallelScanner{t: t, scan: *s, ordered: o.Ordered, closed: make(chan struct{}), stop: make(chan struct{}),
		busy: map[meta.ServerName]int{}, left: s.Limit}
	p.ctx, p.cancel = context.WithCancelCause(ctx)
	if o.Workers == 0 {
		o.Workers = 8
	}
	p.err = checkParallel(s, o)
	p.scan.Prefetch = PrefetchNever
	if s.ReuseResults {
		p.room = new(resultRoom)
	}
	p.slots = make(chan struct{}, max(o.Workers, 1))
	p.out = make(chan unitRows, cap(p.slots))
	p.units = make(chan *scanUnit, cap(p.slots))
	p.todo = slices.Clone(o.Ranges)
	if o.Ranges == nil {
		p.todo = []RowRange{{s.Start, s.Stop, s.ExcludeStart, s.IncludeStop}}
	}
	for i := range p.todo {
		p.todo[i] = p.todo[i].clone()
	}
	return p
}

func checkParallel(s *Scan, o ParallelOptions) error {
	if err := checkScan(s); err != nil {
		return err
	}
	if o.Workers < 1 || o.Workers > 256 {
		return invalid("scan", "workers", fmt.Sprintf("%d is not between 1 and 256", o.Workers))
	}
	if s.NeedCursor {
		return invalid("scan", "cursors", "say nothing about a scan that is in several places at once")
	}
	for _, r := range o.Ranges {
		if len(r.Start) > cells.MaxRowLength+1 || len(r.Stop) > cells.MaxRowLength+1 {
			return invalid("scan", "range "+r.String(), fmt.Sprintf("a row is at most %d bytes", cells.MaxRowLength))
		}
	}
	return nil
}

// Rows walks the remaining results like [Scanner.Rows].
func (p *ParallelScanner) Rows() iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		defer func() {
			p.Close()
			p.cur.rows.giveBack()
		}()
		for {
			r, err := p.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Next gives the next result, or io.EOF behind the last one. After an error
// every further call gives the same error; [ParallelScanner.Remaining] says
// what has not been handed out.
func (p *ParallelScanner) Next() (*Result, error) {
	for {
		for !p.cur.rows.more() {
			if p.err == nil && p.cur.rows.err != nil {
				p.finish(p.cur.rows.err)
			}
			if p.err != nil {
				return nil, p.err
			}
			if p.scan.Limit > 0 && p.left <= 0 && p.open == 0 {
				p.finish(io.EOF)
				continue
			}
			p.begin.Do(p.start)
			if err := p.take(); err != nil {
				p.finish(err)
			}
		}
		r := p.cur.rows.take()
		if p.advance(r) {
			return r, nil
		}
		p.cur.rows.giveBack()
		p.cur.rows = scanRows{}
	}
}

// advance notes that r is handed out, or says that it is one row too many.
func (p *ParallelScanner) advance(r *Result) bool {
	u := p.cur.unit
	if !u.begun || !bytes.Equal(u.left.Start, r.Row) {
		// That a part is not Partial would not tell: the last part of a row is,
		// if it is as large as Scan.Batch.
		p.goesOn(u, false)
		if p.scan.Limit > 0 {
			if p.left <= 0 {
				return false
			}
			p.left--
		}
	}
	p.goesOn(u, r.Partial)
	// A row that is not complete has to be read again from its start.
	u.last = append(u.last[:0], r.Row...) // r is the caller's
	u.begun, u.left.Start, u.left.ExcludeStart = true, u.last, !r.Partial
	return true
}

// goesOn notes whether the row that a unit is in may go on.
func (p *ParallelScanner) goesOn(u *scanUnit, open bool) {
	if open && !u.open {
		p.open++
	} else if !open && u.open {
		p.open--
	}
	u.open = open
}

// take gets the next answer of any unit, or of the unit whose turn it is.
func (p *ParallelScanner) take() error {
	for {
		from := p.out
		if p.ordered {
			if p.unit == nil {
				select {
				case u, ok := <-p.units:
					if !ok {
						return p.ended(io.EOF)
					}
					p.unit = u
				case <-p.ctx.Done():
					return p.ended(nil)
				}
			}
			from = p.unit.out
		}
		var got unitRows
		select {
		case g, ok := <-from:
			if !ok {
				return p.ended(io.EOF)
			}
			got = g
		case <-p.ctx.Done():
			return p.ended(nil)
		}
		switch {
		case got.err == io.EOF:
			p.goesOn(got.unit, false)
			p.drained(got.unit)
			p.unit = nil
		case got.err != nil:
			return got.err
		default:
			p.cur = got
			p.cur.rows.reuse = p.room
			return nil
		}
	}
}

// ended is why there is nothing more to take.
func (p *ParallelScanner) ended(err error) error {
	select {
	case <-p.closed:
		return ErrScannerClosed
	default:
	}
	if p.ctx.Err() != nil {
		return p.t.wrap("scan", context.Cause(p.ctx))
	}
	return err
}

func (p *ParallelScanner) finish(err error) {
	p.err = err
	p.cancel(nil)
}

// drained forgets a unit that has been handed out completely.
func (p *ParallelScanner) drained(u *scanUnit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.live, u); i >= 0 {
		p.live = slices.Delete(p.live, i, i+1)
	}
	if p.ordered {
		<-p.slots
	}
}

// Remaining gives the ranges whose rows have not been handed out, in the order
// of the scan; none when it is complete. With them as
// [ParallelOptions.Ranges] another scanner, perhaps in another process,
// finishes what this one has begun. A row of which only a part was handed out
// (AllowPartial, Batch) is in them from its start.
func (p *ParallelScanner) Remaining() []RowRange {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []RowRange
	if p.err == io.EOF && p.scan.Limit > 0 && p.left <= 0 {
		return nil
	}
	for _, u := range slices.Concat(p.live, p.ahead) {
		all = append(all, u.left)
	}
	all = append(all, p.todo...)
	for i := range all {
		all[i] = all[i].clone()
	}
	slices.SortFunc(all, func(a, b RowRange) int {
		if p.scan.Reversed {
			return compareStarts(b.Start, a.Start)
		}
		return bytes.Compare(a.Start, b.Start)
	})
	return all
}

// compareStarts orders the starts of reversed ranges: empty is the end of the
// table.
func compareStarts(a, b []byte) int {
	switch {
	case len(a) == 0 && len(b) == 0:
		return 0
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	}
	return bytes.Compare(a, b)
}

// Stats sums up the counts of the pieces that have ended.
func (p *ParallelScanner) Stats() ScanStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stats
}

// Close ends the scan. It may be called more than once and from any goroutine;
// a Next that waits returns.
func (p *ParallelScanner) Close() error {
	p.end.Do(func() {
		close(p.closed)
		p.cancel(nil)
		p.drop()
	})
	return nil
}

// drop gives up answers that nobody will take, so that their memory can be used
// again.
func (p *ParallelScanner) drop() {
	drain := func(from <-chan unitRows) {
		for {
			select {
			case got, ok := <-from:
				if !ok {
					return
				}
				got.rows.giveBack()
			default:
				return
			}
		}
	}
	drain(p.out)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, u := range p.live {
		drain(u.out)
	}
}

// start begins the work behind the scanner.
func (p *ParallelScanner) start() {
	// Workers wait for the caller, who may never come again.
	unlink := context.AfterFunc(p.t.c.over, func() { p.cancel(ErrClosed) })
	if !p.t.c.background(func() {
		defer unlink()
		p.dispatch()
	}) {
		unlink()
		p.cancel(ErrClosed)
	}
}

// dispatch begins units as workers become free, until there are none or the
// scan ends, and closes the channels behind the last.
func (p *ParallelScanner) dispatch() {
	var workers sync.WaitGroup
	defer func() {
		workers.Wait()
		close(p.out)
		if p.ctx.Err() != nil {
			p.drop()
		}
	}()
	defer close(p.units)
	for {
		select {
		case p.slots <- struct{}{}:
		case <-p.stop:
			return
		case <-p.ctx.Done():
			return
		}
		u, err := p.begun()
		if err != nil {
			// As a unit of its own, the failure comes in its turn.
			u = &scanUnit{out: make(chan unitRows, 1)}
			p.send(unitRows{u, scanRows{}, p.t.wrap("scan", err)})
		}
		if u == nil {
			return
		}
		if p.ordered {
			p.units <- u // has room for as many as there are slots
		}
		if err != nil {
			return
		}
		workers.Go(func() { p.read(u) })
	}
}

// read hands out a unit's rows.
func (p *ParallelScanner) read(u *scanUnit) {
	s := p.scan
	s.Start, s.Stop, s.ExcludeStart, s.IncludeStop = u.left.Start, u.left.Stop, u.left.ExcludeStart, u.left.IncludeStop
	sc := newScanner(p.ctx, p.t, &s)
	var err error
	for err == nil {
		var rows scanRows
		if rows, err = sc.fetch(); rows.len() > 0 && !p.send(unitRows{u, rows, nil}) {
			rows.giveBack()
			break
		}
	}
	sc.Close()
	p.mu.Lock()
	p.stats.add(sc.Stats())
	p.busy[u.server]--
	p.mu.Unlock()
	if err != nil && err != io.EOF {
		p.failed()
	}
	if !p.ordered {
		<-p.slots
	}
	if err != nil {
		p.send(unitRows{u, scanRows{}, err})
	}
}

func (p *ParallelScanner) failed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
}

func (p *ParallelScanner) send(r unitRows) bool {
	to := p.out
	if p.ordered {
		to = r.unit.out
	}
	select {
	case to <- r:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// begun chooses the unit to be read next, nil if there are no more: in order,
// or else one of the server that has the least to do for this scan.
func (p *ParallelScanner) begun() (*scanUnit, error) {
	window := 1
	if !p.ordered {
		window = 4 * cap(p.slots)
	}
	for len(p.ahead) < window && len(p.todo) > 0 {
		if err := p.cut(); err != nil {
			if len(p.ahead) > 0 {
				break // what is known can be read meanwhile
			}
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.ahead) == 0 {
		return nil, nil
	}
	best := 0
	if !p.ordered {
		for i, u := range p.ahead {
			if p.busy[u.server] < p.busy[p.ahead[best].server] {
				best = i
			}
		}
	}
	u := p.ahead[best]
	p.ahead = slices.Delete(p.ahead, best, best+1)
	p.live = append(p.live, u)
	p.busy[u.server]++
	return u, nil
}

// cut takes the first region's part of what is to be done. Only the dispatcher
// calls it, so the lock is not held while the region is looked up.
func (p *ParallelScanner) cut() error {
	r := p.todo[0]
	ctx, cancel := context.WithTimeout(p.ctx, p.t.c.cfg.ScannerTimeout)
	defer cancel()
	routes := p.t.c.core.Routes()
	var reg *route.Route
	var err error
	switch {
	case !p.scan.Reversed:
		reg, err = routes.LocateAhead(ctx, p.t.name, r.Start, r.Stop)
	case len(r.Start) == 0 || r.ExcludeStart:
		reg, err = routes.LocateBefore(ctx, p.t.name, r.Start)
	default:
		reg, err = routes.Locate(ctx, p.t.name, r.Start)
	}
	if err != nil {
		return err
	}
	u := &scanUnit{left: r, out: make(chan unitRows, 1)}
	if s := reg.Server(); s != nil {
		u.server = s.Name()
	}
	last := true
	if p.scan.Reversed {
		if edge := reg.Start(); len(edge) > 0 && bytes.Compare(edge, r.Stop) > 0 {
			u.left.Stop, u.left.IncludeStop = edge, true
			r.Start, r.ExcludeStart, last = edge, true, false
		}
	} else if edge := reg.End(); len(edge) > 0 && (len(r.Stop) == 0 || bytes.Compare(edge, r.Stop) < 0) {
		u.left.Stop, u.left.IncludeStop = edge, false
		r.Start, r.ExcludeStart, last = edge, false, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = append(p.ahead, u)
	if last {
		p.todo = p.todo[1:]
	} else {
		p.todo[0] = r
	}
	return nil
}

func (s *ScanStats) add(o ScanStats) {
	s.RPCs += o.RPCs
	s.Regions += o.Regions
	s.Reopened += o.Reopened
	s.Heartbeats += o.Heartbeats
	s.Renewals += o.Renewals
}
