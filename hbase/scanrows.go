package hbase

import (
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// scanRows are the results of one answer, in order. Those of plain rows are made
// as they are taken, a few at a time: an answer may hold ten thousand rows, and
// as many cells and results, full of pointers, are what a garbage collector
// spends its time on while the rows are being read.
type scanRows struct {
	made []*Result
	next int // of made
	left plainRows
	at   wire.CellReader // of left
	room []*Result       // memory for made
	err  error           // of the making

	// With Scan.ReuseResults:
	reuse *resultRoom // what results are made in
	loan  *rpc.Loan   // left's memory, until nothing is left
}

// resultRoom is memory for the results that are valid at one time.
type resultRoom struct {
	results []Result
	cells   []Cell
}

// madeAtOnce is how many results are made at one time: they and their cells fit
// into a processor's nearest caches.
const madeAtOnce = 128

// plainRows are rows whose cells have arrived whole, one result a row (but for
// the last, which a server cuts where the answer is full), in a block that has
// been looked through.
type plainRows struct {
	block  []byte
	counts []uint32 // of cells, by result; 0 for none
	stale  bool
	cut    bool // the last result is only a part of its row
}

// rowsMade are results that are made already.
func rowsMade(rs []*Result) scanRows { return scanRows{made: rs} }

// rowsOf are results that will be made of p.
func rowsOf(p plainRows) scanRows { return scanRows{left: p, at: codec.Reader(p.block)} }

// len is how many results are left.
func (r *scanRows) len() int {
	n := len(r.made) - r.next
	for _, c := range r.left.counts {
		n += min(int(c), 1)
	}
	return n
}

// more says whether a result is left.
func (r *scanRows) more() bool { return r.next < len(r.made) || r.make() }

// take gives the next result; only while there is more. It lets go of it before
// the caller does.
func (r *scanRows) take() *Result {
	res := r.made[r.next]
	r.made[r.next] = nil
	r.next++
	return res
}

// make makes some more results of those left, and says whether there are any.
func (r *scanRows) make() bool {
	counts, total, n, used := r.left.counts, 0, 0, 0
	for used < len(counts) && n < madeAtOnce {
		total += int(counts[used])
		n += min(int(counts[used]), 1)
		used++
	}
	if n == 0 {
		r.giveBack()
		return false
	}
	var cells []Cell
	var results []Result
	if r.reuse != nil {
		cells, results = r.reuse.cells[:0], r.reuse.results[:0]
	}
	all, err := r.at.Take(total, cells)
	if err != nil {
		// Not after check, whatever callers do with what they were given.
		r.left, r.err = plainRows{}, err
		r.giveBack()
		return false
	}
	if cap(results) < n {
		results = make([]Result, 0, n)
	}
	if r.reuse != nil {
		r.reuse.cells, r.reuse.results = all, results
	}
	if r.room == nil {
		r.room = make([]*Result, 0, madeAtOnce)
	}
	r.made, r.next = r.room[:0], 0
	for _, c := range counts[:used] {
		if c == 0 {
			continue
		}
		results = append(results, Result{Row: all[0].Row, Cells: all[:c:c], Stale: r.left.stale})
		r.made, all = append(r.made, &results[len(results)-1]), all[c:]
	}
	r.left.counts = counts[used:]
	return true
}

// isMade says whether the results are made already.
func (r *scanRows) isMade() bool { return len(r.left.counts) == 0 }

// giveBack gives up what is left, and with it the memory that was lent.
func (r *scanRows) giveBack() {
	if r.loan != nil {
		r.made, r.next, r.left = nil, 0, plainRows{}
		r.loan.Return()
		r.loan = nil
	}
}

// parts makes what the state machine takes of any answer. Results without cells
// say nothing, and are not worth their memory; more, if not nil, adds what else
// is known of the i-th.
func (p plainRows) parts(more func(i int, part *scanPart)) ([]scanPart, error) {
	total, n := 0, 0
	for _, c := range p.counts {
		total += int(c)
		n += min(int(c), 1)
	}
	all, err := decodeCells(p.block, total, nil)
	if err != nil {
		return nil, err
	}
	parts := make([]scanPart, 0, n)
	for i, c := range p.counts {
		if c == 0 {
			continue
		}
		parts, all = append(parts, scanPart{cells: all[:c:c], stale: p.stale}), all[c:]
		if more != nil {
			more(i, &parts[len(parts)-1])
		}
	}
	if p.cut {
		parts[len(parts)-1].partial = true
	}
	return parts, nil
}

// check looks through the block: nothing of it is handed out before all of it
// is known to make sense.
func (p plainRows) check() error {
	r := codec.Reader(p.block)
	for _, c := range p.counts {
		if err := r.Check(int(c)); err != nil {
			return err
		}
	}
	return nil
}
