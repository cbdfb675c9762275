package rpc

import (
	"sync"
	"sync/atomic"
)

// Loan is memory that an answer was read into and that is used again for
// another once it is given back. All methods may be called on nil, which is no
// loan. A loan is for one goroutine at a time.
type Loan struct {
	buf []byte
	out bool
}

// Borrower is a Result whose answer, message and cells, may lie in memory that
// is lent. Borrow is called before anything of it is decoded, once for each
// answer that is; the Result then has to see to it that the loan ends.
type Borrower interface{ Borrow(*Loan) }

const (
	// loanStep is what the size of lent memory is rounded up to: the answers of
	// one scan differ by a row or so, and one buffer is to do for all of them.
	loanStep = 64 << 10
	// keptLoan is the most memory that is kept to be lent again: the default
	// limit of an answer's size and a large row more.
	keptLoan = 8 << 20
)

var (
	loans  sync.Pool // *Loan
	lent   atomic.Int64
	poison atomic.Bool
)

// Poison makes loans that are returned be overwritten at once, so that a test
// sees who still uses one.
func Poison(on bool) { poison.Store(on) }

// Lent is the number of loans that have not ended.
func Lent() int64 { return lent.Load() }

func lend() *Loan {
	l, ok := loans.Get().(*Loan)
	if !ok {
		l = new(Loan)
	}
	l.out = true
	lent.Add(1)
	return l
}

// room gives room for n bytes, nil if it is not to be taken on the word of a
// server alone.
func (l *Loan) room(n int) []byte {
	if n > cap(l.buf) && n <= trusted {
		l.buf = make([]byte, 0, (n+loanStep-1)/loanStep*loanStep)
	}
	if n > cap(l.buf) {
		return nil
	}
	return l.buf[:0]
}

// holds notes what was read.
func (l *Loan) holds(b []byte) {
	if l != nil {
		l.buf = b
	}
}

// Return ends the loan: nothing of the answer is used any more. Only the first
// end of a loan counts.
func (l *Loan) Return() {
	if !l.end() {
		return
	}
	if poison.Load() {
		for b := l.buf[:cap(l.buf)]; len(b) > 0; {
			b = b[copy(b, "returned"):]
		}
	}
	if cap(l.buf) <= keptLoan {
		loans.Put(l)
	}
}

// Keep ends the loan and leaves the memory to who has it.
func (l *Loan) Keep() {
	if l.end() {
		l.buf = nil
		loans.Put(l)
	}
}

func (l *Loan) end() bool {
	if l == nil || !l.out {
		return false
	}
	l.out = false
	lent.Add(-1)
	return true
}
