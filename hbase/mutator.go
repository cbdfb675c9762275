package hbase

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"
)

// MutatorOptions are the settings of a [Mutator]. The zero value is fine.
type MutatorOptions struct {
	// BufferBytes is how much is gathered before it is sent: the size of one
	// batch. Default [Config.WriteBuffer], 1 KiB to 1 GiB. Sizes are
	// those of the mutations in memory, see [MutationSize].
	BufferBytes int
	// InFlight is how many batches may be on their way at one time. Default 4,
	// 1 to 64. A Mutator holds at most BufferBytes * (InFlight+1) of mutations,
	// and one mutation more for each of these; while a batch is on its way its
	// cells are in memory twice.
	InFlight int
	// FlushInterval is the longest that a mutation waits for others before it
	// is sent. Default 1 s; 1 ms to 1 h; negative: until the buffer is full or
	// Flush is called.
	FlushInterval time.Duration
	// Timeout bounds one batch with all its retries. Default 0:
	// [Config.OperationTimeout]; otherwise 1 ms to 24 h.
	Timeout time.Duration
	// OnError is told of every mutation that failed, once. It runs on a
	// goroutine of the Mutator, never twice at a time, and what failed counts as
	// on its way until it returns. It must not call Add, Flush or Close of the
	// Mutator: they may wait for it. (To try again, hand the mutation to another
	// goroutine.) Without OnError, failures come back from the next Add, Flush
	// or Close.
	OnError func(FailedMutation)
}

// FailedMutation is a mutation that was not, or not certainly, applied.
// [SafeToRetry] and [ErrUnknownOutcome] say of Err which it is.
type FailedMutation struct {
	// Mutation is what was given to Add.
	Mutation RowAction
	Err      error
}

// MutatorError says how many mutations failed since the Mutator last said so.
type MutatorError struct {
	// Count of the failed mutations.
	Count int
	// First is the error of the first.
	First error
	// Failed holds them all; nil with OnError, which was told of them already.
	Failed []FailedMutation
}

// Error names the number of failures and the first.
func (e *MutatorError) Error() string {
	if e.Count == 1 {
		return "mutator: a mutation failed: " + e.First.Error()
	}
	return fmt.Sprintf("mutator: %d mutations failed, the first: %v", e.Count, e.First)
}

// Unwrap gives the first error.
func (e *MutatorError) Unwrap() error { return e.First }

// ErrMutatorClosed: the Mutator was closed before the mutation was sent. It
// was certainly not applied.
var ErrMutatorClosed = errors.New("mutator is closed")

// Mutator writes mutations of one table in batches: what is added is gathered,
// and sent when there is a buffer full of it, when it has waited for
// FlushInterval, or on Flush. Batches are [Table.Batch]es, with all their
// retries. Make it with [Table.Mutator]; it is safe for concurrent use, and
// needs a Close.
//
// What it guarantees:
//
//   - Memory is bounded: Add waits while the buffer is full.
//   - Every mutation that Add took is acknowledged by a server before Flush or
//     Close return nil, or its failure is reported exactly once.
//   - Mutations of one row are applied in the order in which they were added:
//     one is sent when the one before has its outcome. (So a row that is
//     written all the time takes one batch for each of its mutations;
//     RowMutations join them.) A mutation that has failed does not stop those
//     behind it, not even if its outcome is unknown: a server may then apply
//     it after them. Between rows there is no order.
//
// Goroutines run while batches are on their way, and none when there is nothing
// to do.
type Mutator struct {
	t *Table
	o MutatorOptions

	ctx    context.Context // of the batches
	cancel context.CancelFunc
	work   sync.WaitGroup // batches, and a timer that may fire

	report sync.Mutex // held around OnError

	mu     sync.Mutex
	closed bool
	done   chan struct{} // closed when Close has finished

	// rows has the last mutation of a row that has no outcome yet, by the row's
	// hash: two rows that share one wait for each other, which does no harm.
	rows  map[uint64]*buffered
	seed  maphash.Seed
	ready fifo       // those without one before them of the same row
	slab  []buffered // made, not taken yet
	seq   uint64     // of the last mutation taken
	// forced: whatever was taken up to it is to be sent as soon as possible;
	// urgent counts those of them that are still in the buffer.
	forced uint64
	urgent int

	count, bytes int // in the buffer
	flying       int // batches on their way
	open         int // mutations without an outcome
	waiting      []*admission
	flushes      []*flush
	alarm        *alarm // nil if none is set

	failures MutatorError
	stats    MutatorStats
}

// MutatorStats counts what a Mutator has done.
type MutatorStats struct {
	// Added mutations, and what became of them. The rest has no outcome yet.
	Added, Acknowledged, Failed uint64
	// Batches sent.
	Batches uint64
	// Buffered is the bytes of mutations that wait to be sent, InFlight the
	// number of batches that are on their way.
	Buffered, InFlight int
}

// buffered is a mutation on its way through the Mutator.
type buffered struct {
	op   RowAction
	size int
	seq  uint64
	row  uint64    // its hash
	next *buffered // in a fifo
	then *buffered // the next mutation of the row
}

// fifo is a list of mutations.
type fifo struct{ head, tail *buffered }

func (f *fifo) push(b *buffered) {
	if f.tail == nil {
		f.head = b
	} else {
		f.tail.next = b
	}
	f.tail = b
}

func (f *fifo) pop() *buffered {
	b := f.head
	if f.head = b.next; f.head == nil {
		f.tail = nil
	}
	b.next = nil
	return b
}

// admission is somebody who waits for room in the buffer.
type admission struct{ admitted chan struct{} }

// alarm ends FlushInterval.
type alarm struct{ timer *time.Timer }

// flush is somebody who waits until the mutations up to seq have an outcome.
type flush struct {
	seq  uint64
	left int
	done chan struct{}
}

// Mutator makes a buffered writer for the table.
func (t *Table) Mutator(o MutatorOptions) (*Mutator, error) {
	if o.BufferBytes == 0 {
		o.BufferBytes = t.c.cfg.WriteBuffer
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	m := &Mutator{t: t, o: o, rows: map[uint64]*buffered{}, seed: maphash.MakeSeed(), done: make(chan struct{})}
	//holdfast:allow context batches outlive the Add that filled them; Close ends them
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m, nil
}

func (o *MutatorOptions) complete() error {
	if o.InFlight == 0 {
		o.InFlight = 4
	}
	if o.FlushInterval == 0 {
		o.FlushInterval = time.Second
	}
	var errs []error
	bad := func(name string, v, lo, hi any) {
		errs = append(errs, invalid("mutator", name, fmt.Sprintf("%v is not between %v and %v", v, lo, hi)))
	}
	if o.BufferBytes < 1<<10 || o.BufferBytes > 1<<30 {
		bad("BufferBytes", o.BufferBytes, 1<<10, 1<<30)
	}
	if o.InFlight < 1 || o.InFlight > 64 {
		bad("InFlight", o.InFlight, 1, 64)
	}
	if o.FlushInterval > 0 && (o.FlushInterval < time.Millisecond || o.FlushInterval > time.Hour) {
		bad("FlushInterval", o.FlushInterval, time.Millisecond, time.Hour)
	}
	if o.Timeout != 0 && (o.Timeout < time.Millisecond || o.Timeout > 24*time.Hour) {
		bad("Timeout", o.Timeout, time.Millisecond, 24*time.Hour)
	}
	return errors.Join(errs...)
}

// MutationSize is what a mutation counts for in a Mutator's buffer: the bytes
// of its cells and what Go needs around them, about 136 bytes a cell and 200 a
// mutation.
func MutationSize(a RowAction) int {
	const perMutation, perCell = 200, 136
	of := func(m Mutation) int {
		n := perMutation + len(m.RowKey())
		cs := m.mutation().cells
		for i := range cs {
			c := &cs[i]
			// The row is shared by the cells.
			n += perCell + len(c.Family) + len(c.Qualifier) + len(c.Value) + len(c.Tags)
		}
		o := m.options()
		n += len(o.ID)
		for name, v := range o.Attributes {
			n += len(name) + len(v) + 64
		}
		return n
	}
	switch a := a.(type) {
	case *RowMutations:
		n := perMutation
		for _, m := range a.Mutations {
			n += of(m)
		}
		return n
	case Mutation:
		return of(a)
	}
	return 0
}

// Add takes a mutation (*Put, *Delete, *Increment, *Append or *RowMutations)
// and returns when it is in the buffer: at once if there is room, otherwise
// when there is, or when ctx ends. The mutation and its bytes belong to the
// Mutator until its outcome is known, at the latest when Flush returns nil.
//
// An error means that this mutation was not taken: it is invalid, ctx ended,
// the Mutator was closed ([ErrMutatorClosed]), or, without OnError, others
// failed that were added before ([*MutatorError]; the next Add goes on).
func (m *Mutator) Add(ctx context.Context, a RowAction) error {
	if err := m.check(a); err != nil {
		return err
	}
	size := MutationSize(a)
	m.mu.Lock()
	if err := m.admit(ctx); err != nil {
		m.mu.Unlock()
		return err
	}
	m.take(a, size, maphash.Bytes(m.seed, a.RowKey()))
	m.dispatch()
	m.mu.Unlock()
	return nil
}

func (m *Mutator) check(a RowAction) error {
	switch a := a.(type) {
	case *RowMutations:
		return m.t.checkRowMutations("mutate", a)
	case Mutation:
		return m.t.checkMutation("mutate", a)
	}
	return invalid("mutate", "mutation", "is nil")
}

// admit waits, with the lock held before and after, until there is room.
func (m *Mutator) admit(ctx context.Context) error {
	for first := true; ; first = false {
		switch {
		case m.closed:
			return ErrMutatorClosed
		case ctx.Err() != nil:
			m.wake() // whoever is next, if this one was chosen
			return m.t.wrap("mutate", ctx.Err())
		case len(m.failures.Failed) > 0:
			m.wake()
			return m.failed()
		case m.bytes < m.o.BufferBytes && (!first || len(m.waiting) == 0):
			return nil
		}
		w := &admission{admitted: make(chan struct{})}
		if first {
			m.waiting = append(m.waiting, w)
		} else {
			m.waiting = slices.Insert(m.waiting, 0, w) // it was its turn
		}
		m.mu.Unlock()
		select {
		case <-w.admitted:
		case <-ctx.Done():
		}
		m.mu.Lock()
		m.waiting = slices.DeleteFunc(m.waiting, func(o *admission) bool { return o == w })
	}
}

// wake lets the next one in if there is room; that one wakes the one after it.
func (m *Mutator) wake() {
	if len(m.waiting) > 0 && (m.bytes < m.o.BufferBytes || m.closed || len(m.failures.Failed) > 0) {
		w := m.waiting[0]
		m.waiting = m.waiting[1:]
		close(w.admitted)
	}
}

// take puts a mutation into the buffer.
func (m *Mutator) take(op RowAction, size int, row uint64) {
	if len(m.slab) == 0 {
		m.slab = make([]buffered, 64)
	}
	b := &m.slab[0]
	m.slab = m.slab[1:]
	m.seq++
	b.op, b.size, b.row, b.seq = op, size, row, m.seq
	m.count++
	m.open++
	m.bytes += b.size
	m.stats.Added++
	if last := m.rows[row]; last != nil {
		last.then = b
	} else {
		m.ready.push(b)
	}
	m.rows[row] = b
}

// dispatch sends batches as long as there is reason to, and lets others in.
func (m *Mutator) dispatch() {
	for m.flying < m.o.InFlight && m.ready.head != nil && (m.bytes >= m.o.BufferBytes || m.urgent > 0) {
		var batch []*buffered
		for size := 0; m.ready.head != nil && size < m.o.BufferBytes; {
			b := m.ready.pop()
			batch = append(batch, b)
			size += b.size
			m.bytes -= b.size
			m.count--
			if b.seq <= m.forced {
				m.urgent--
			}
		}
		m.flying++
		m.stats.Batches++
		m.work.Go(func() { m.send(batch) })
	}
	switch {
	case m.count == 0 && m.alarm != nil:
		if m.alarm.timer.Stop() {
			m.work.Done()
		}
		m.alarm = nil
	case m.count > m.urgent && m.alarm == nil && m.o.FlushInterval > 0 && !m.closed:
		a := new(alarm)
		m.work.Add(1)
		a.timer = time.AfterFunc(m.o.FlushInterval, func() {
			defer m.work.Done()
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.alarm == a { // or else it was too late to stop it
				m.alarm = nil
				m.force()
				m.dispatch()
			}
		})
		m.alarm = a
	}
	m.wake()
}

// force makes everything in the buffer urgent.
func (m *Mutator) force() { m.forced, m.urgent = m.seq, m.count }

// send performs a batch and takes in its outcome.
func (m *Mutator) send(batch []*buffered) {
	ops := make([]Op, len(batch))
	for i, b := range batch {
		ops[i] = b.op
	}
	var out Outcomes
	if m.ctx.Err() == nil {
		ctx, cancel := m.ctx, context.CancelFunc(func() {})
		if m.o.Timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, m.o.Timeout)
		}
		out = m.t.batch(ctx, "mutate", ops)
		cancel()
	}
	var failed []FailedMutation
	for i, b := range batch {
		err := ErrMutatorClosed
		if out != nil {
			err = out[i].Err
		}
		if err != nil {
			failed = append(failed, FailedMutation{b.op, err})
		}
	}
	if len(failed) > 0 && m.o.OnError != nil {
		m.report.Lock()
		for _, f := range failed {
			m.o.OnError(f)
		}
		m.report.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flying--
	m.stats.Failed += uint64(len(failed))
	m.stats.Acknowledged += uint64(len(batch) - len(failed))
	if len(failed) > 0 {
		if m.failures.Count == 0 {
			m.failures.First = failed[0].Err
		}
		m.failures.Count += len(failed)
		if m.o.OnError == nil {
			m.failures.Failed = append(m.failures.Failed, failed...)
		}
	}
	for _, b := range batch {
		m.settled(b)
	}
	m.dispatch()
}

// settled takes a mutation that has its outcome off the books.
func (m *Mutator) settled(b *buffered) {
	m.open--
	if b.then != nil {
		m.ready.push(b.then)
	} else {
		delete(m.rows, b.row)
	}
	b.op, b.then = nil, nil // its neighbours in memory may stay for long
	kept := m.flushes[:0]
	for _, f := range m.flushes {
		if b.seq <= f.seq {
			f.left--
		}
		if f.left == 0 {
			close(f.done)
		} else {
			kept = append(kept, f)
		}
	}
	m.flushes = kept
}

// failed gives what has failed since the last report, nil if nothing has.
func (m *Mutator) failed() error {
	if m.failures.Count == 0 {
		return nil
	}
	e := m.failures
	m.failures = MutatorError{}
	return &e
}

// Flush sends what is in the buffer and returns when everything that was added
// before has its outcome. The error is a [*MutatorError] if mutations failed
// since the last report (they need not be of this Flush), or ctx's, if that
// ends first; then the mutations are still on their way.
func (m *Mutator) Flush(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrMutatorClosed
	}
	return m.flush(ctx)
}

// flush does it, with the lock held before and after.
func (m *Mutator) flush(ctx context.Context) error {
	if m.open == 0 {
		return m.failed()
	}
	f := &flush{seq: m.seq, left: m.open, done: make(chan struct{})}
	m.flushes = append(m.flushes, f)
	m.force()
	m.dispatch()
	m.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	m.mu.Lock()
	if f.left == 0 {
		return m.failed()
	}
	m.flushes = slices.DeleteFunc(m.flushes, func(o *flush) bool { return o == f })
	return m.t.wrap("flush", ctx.Err())
}

// Close takes no more mutations, sends what is in the buffer, and returns when
// everything has its outcome and no goroutine is left. If ctx ends first, it
// gives up what is on its way and fails what has not been sent
// ([ErrMutatorClosed]); that is reported like every failure, before Close
// returns. The error is a [*MutatorError] if mutations failed since the last
// report, joined with ctx's error if that ended Close early. A second Close
// waits for the first and gives nil.
func (m *Mutator) Close(ctx context.Context) error {
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		<-m.done
		return nil
	}
	m.closed = true
	for len(m.waiting) > 0 {
		m.wake()
	}
	err := m.flush(ctx)
	var early error
	if m.open > 0 {
		// Cut short: what was sent ends with the context, what was not fails at
		// once, and the books are settled in the usual way.
		early = err
		m.cancel()
		//holdfast:allow context nothing that it waits for outlives m.ctx
		err = m.flush(context.Background())
	}
	m.mu.Unlock()
	m.cancel()
	m.work.Wait()
	close(m.done)
	return errors.Join(early, err)
}

// Stats tells what the Mutator has done so far.
func (m *Mutator) Stats() MutatorStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Buffered, s.InFlight = m.bytes, m.flying
	return s
}
