package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
)

// Scanner walks the rows of a [Scan]. It is for one goroutine at a time,
// except that Close may be called from any.
//
// It opens a scanner on one region after another, reads it in answers of
// bounded size, keeps its lease alive while the caller is slow, and resumes
// after any failure without losing or repeating a row or a cell. Memory: one
// answer, or two (Scan.Prefetch), and what has arrived of an unfinished row.
type Scanner struct {
	c      *Client
	t      scanTransport
	seen   *scanSeen // nil: nobody looks
	scan   *Scan
	ctx    context.Context // the caller's, ended by Close
	cancel context.CancelFunc
	step   time.Duration

	// io is held by whoever talks to the servers or touches the fields of the
	// second block: the caller, the prefetcher, the renewer.
	io chan struct{}

	st      *scanState
	reg     scanRegion // nil: none open
	fails   int        // failures since the last progress
	err     error      // how fetching ended; io.EOF after the last row
	metrics map[string]int64
	stats   ScanStats
	renewer *time.Timer
	// epoch counts what makes an earlier renewer void.
	epoch uint64

	// Of the caller alone:
	queue scanRows
	room  *resultRoom // with Scan.ReuseResults
	long  bool        // an answer has been consumed
	asked bool        // one answer is on its way, to come through ahead
	ahead chan fetched

	closeOnce sync.Once
	closed    chan struct{}
}

// ScanStats counts what a scan has cost so far.
type ScanStats struct {
	// RPCs counts requests: openings, nexts, renewals.
	RPCs int
	// Regions counts the regions entered, Reopened how often a scanner was
	// lost and opened again, Heartbeats the answers that only said "alive".
	Regions, Reopened, Heartbeats, Renewals int
}

// scanTransport carries the steps of a region scanner; tests play faults
// through it.
type scanTransport interface {
	// open finds the region, opens a scanner on it and brings the first
	// answer. It retries by itself until ctx ends.
	open(ctx context.Context, o scanOpening) (scanRegion, *scanReply, error)
}

// scanRegion is an open scanner on one region. Its steps are one attempt each.
type scanRegion interface {
	bounds() (start, end []byte)
	next(ctx context.Context, seq uint64, limit int) (*scanReply, error)
	renew(ctx context.Context, seq uint64) error
	close(ctx context.Context)
}

// scanReply is an answer with what does not concern the order of rows.
type scanReply struct {
	scanAnswer
	ttl     time.Duration // the lease; 0 = not said
	metrics map[string]int64
	loan    *rpc.Loan // the memory of its cells, if that is used again
}

type fetched struct {
	rows scanRows
	err  error
}

// defaultLease is HBase's default scanner lease
// (hbase.client.scanner.timeout.period on the server).
const defaultLease = time.Minute

func newScanner(ctx context.Context, t *Table, s *Scan) *Scanner {
	if s == nil {
		s = &Scan{}
	}
	if err := checkScan(s); err != nil {
		return deadScanner(ctx, err)
	}
	cp := *s
	cp.Start, cp.Stop = bytes.Clone(s.Start), bytes.Clone(s.Stop)
	if cp.Caching == 0 {
		cp.Caching = t.c.cfg.ScannerCaching
	}
	if cp.MaxResultSize == 0 {
		cp.MaxResultSize = t.c.cfg.ScannerMaxResultSize
	}
	sc := startScanner(ctx, t.c, &cp, &rpcScan{t: t, scan: &cp}, t.c.cfg.ScannerTimeout, t.c.cfg.MaxRowSize)
	if t.name == meta.MetaTable {
		sc.st.orderBy(meta.CompareRows)
	}
	return sc
}

func startScanner(ctx context.Context, c *Client, s *Scan, tr scanTransport, step time.Duration, maxRow int64) *Scanner {
	sc := &Scanner{
		c: c, t: tr, scan: s, step: step, io: make(chan struct{}, 1),
		st: newScanState(s, maxRow), closed: make(chan struct{}), ahead: make(chan fetched, 1),
	}
	if s.ReuseResults {
		sc.room = new(resultRoom)
	}
	ctx = sc.observe(ctx)
	sc.ctx, sc.cancel = context.WithCancel(ctx)
	return sc
}

// deadScanner answers every Next with err.
func deadScanner(ctx context.Context, err error) *Scanner {
	sc := &Scanner{io: make(chan struct{}, 1), err: err, closed: make(chan struct{}), st: &scanState{done: true}}
	sc.ctx, sc.cancel = context.WithCancel(ctx)
	return sc
}

// Rows walks the remaining results:
//
//	for row, err := range table.Scan(ctx, scan).Rows() {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// An error is the last thing it yields. The scanner is closed when the loop
// ends, however it ends.
func (sc *Scanner) Rows() iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		defer func() {
			sc.Close()
			sc.queue.giveBack()
		}()
		for {
			r, err := sc.Next()
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
// every further call gives the same error.
func (sc *Scanner) Next() (*Result, error) {
	for !sc.queue.more() {
		if sc.queue.err != nil {
			return nil, sc.queue.err
		}
		select {
		case <-sc.closed:
			return nil, ErrScannerClosed
		default:
		}
		sc.queue = scanRows{}
		rows, err := sc.take()
		rows.reuse = sc.room
		if !rows.more() && rows.err == nil {
			return nil, err
		}
		sc.queue = rows
		if err == nil && (sc.scan.Prefetch == PrefetchAlways || sc.scan.Prefetch == PrefetchLong && sc.long) {
			sc.startPrefetch()
		}
		sc.long = true
	}
	return sc.queue.take(), nil
}

// take gets the next answer: the one already on its way, or a new one.
func (sc *Scanner) take() (scanRows, error) {
	if !sc.asked {
		return sc.fetch()
	}
	sc.asked = false
	// The prefetcher ends with sc.ctx, so this does not wait longer. Without a
	// look at closed it might wait for what Close has taken.
	select {
	case f := <-sc.ahead:
		return f.rows, f.err
	case <-sc.closed:
		return scanRows{}, ErrScannerClosed
	}
}

func (sc *Scanner) startPrefetch() {
	sc.asked = sc.c.background(func() {
		rows, err := sc.fetch()
		sc.ahead <- fetched{rows, err}
		select {
		case <-sc.closed:
			sc.dropAhead()
		default:
		}
	})
}

// dropAhead gives up an answer that nobody will take, so that its memory can be
// used again.
func (sc *Scanner) dropAhead() {
	select {
	case f := <-sc.ahead:
		f.rows.giveBack()
	default:
	}
}

// Close ends the scan and tells the server, in the background, if a scanner is
// open there. It may be called more than once and from any goroutine; a Next
// that waits returns.
func (sc *Scanner) Close() error {
	sc.closeOnce.Do(func() {
		close(sc.closed)
		sc.cancel()
		sc.dropAhead()
		// Whoever talks to the server gives up now that the context is gone.
		sc.io <- struct{}{}
		defer sc.unlock()
		sc.stopRenewer()
		sc.release()
		sc.st.finish()
		sc.observed()
	})
	return nil
}

// Stats gives the counts so far.
func (sc *Scanner) Stats() ScanStats {
	sc.io <- struct{}{}
	defer sc.unlock()
	return sc.stats
}

// Metrics gives the server's own counters, summed up, if Scan.Metrics asked for
// them: ROWS_SCANNED, ROWS_FILTERED, BLOCK_BYTES_SCANNED and the like.
func (sc *Scanner) Metrics() map[string]int64 {
	sc.io <- struct{}{}
	defer sc.unlock()
	m := make(map[string]int64, len(sc.metrics))
	for k, v := range sc.metrics {
		m[k] = v
	}
	return m
}

func (sc *Scanner) unlock() { <-sc.io }

// fetch talks to the servers until there is something to hand out or the scan
// is over. With rows the error is nil or what comes after them.
func (sc *Scanner) fetch() (scanRows, error) {
	select {
	case sc.io <- struct{}{}:
	case <-sc.ctx.Done():
		return scanRows{}, sc.ended()
	}
	defer sc.unlock()
	if sc.err != nil {
		return scanRows{}, sc.err
	}
	sc.stopRenewer()
	deadline := time.Now().Add(sc.step)
	for !sc.st.done {
		ctx, cancel := context.WithDeadline(sc.ctx, deadline)
		reply, err := sc.round(ctx)
		if err != nil {
			// The scanner on the server is in an unknown state, or gone.
			sc.release()
			sc.st.lost()
			if err = sc.judge(ctx, err); err != nil {
				cancel()
				return scanRows{}, sc.fail(err)
			}
			cancel()
			continue
		}
		cancel()
		before := sc.st.pos
		rows, err := sc.st.answer(&reply.scanAnswer)
		n := rows.len()
		switch {
		case n > 0 && !rows.isMade():
			rows.loan = reply.loan
		case n > 0 || len(reply.parts) > 0:
			reply.loan.Keep() // results, or the beginning of one, are made of it
		default:
			reply.loan.Return()
		}
		if !sc.st.open {
			sc.leave(reply)
		}
		sc.count(reply)
		if err != nil {
			sc.release()
			sc.st.finish()
			return rows, sc.fail(err)
		}
		if n > 0 || reply.heartbeat || len(reply.parts) > 0 || !sameBytes(before, sc.st.pos) {
			// Progress, if only a sign of life: the step begins anew.
			deadline, sc.fails = time.Now().Add(sc.step), 0
		}
		if n > 0 {
			if sc.reg != nil {
				sc.startRenewer(reply.ttl)
			}
			sc.rowsSeen(n)
			return rows, nil
		}
	}
	sc.release()
	return scanRows{}, sc.fail(io.EOF)
}

// round is one request: an opening if no scanner is open, else a next.
func (sc *Scanner) round(ctx context.Context) (*scanReply, error) {
	sc.stats.RPCs++
	began := sc.clock()
	if sc.reg == nil {
		o := sc.st.opening()
		reg, reply, err := sc.t.open(ctx, o)
		if err != nil {
			return nil, err
		}
		sc.reg = reg
		sc.stats.Regions++
		start, end := reg.bounds()
		sc.tell(ScanEvent{Kind: ScanRegionEntered, RegionStart: start, RegionEnd: end, Took: time.Since(began)})
		if err := sc.st.opened(o, start, end, reply.mvcc); err != nil {
			reply.loan.Return()
			return nil, err
		}
		return reply, nil
	}
	reply, err := sc.reg.next(ctx, sc.st.nextSeq, sc.st.rowsLeft)
	if err == nil {
		sc.st.nextSeq++
	}
	return reply, err
}

// judge decides after a failed round: nil to open again (having waited if need
// be), or the error that ends the scan.
func (sc *Scanner) judge(step context.Context, err error) error {
	if sc.ctx.Err() != nil {
		return sc.ended()
	}
	var lost *scannerLostError
	if !errors.As(err, &lost) {
		return err
	}
	sc.stats.Reopened++
	sc.tell(ScanEvent{Kind: ScanRegionLost, Err: lost.Err})
	wait := retry.Reopen.Schedule().Wait(sc.fails, rand.Float64())
	sc.fails++
	if end, ok := step.Deadline(); step.Err() != nil || ok && time.Until(end) < wait {
		return fmt.Errorf("%w: no progress within %v, opened again %d times: %w",
			ErrRetriesExhausted, sc.step, sc.stats.Reopened, lost.Err)
	}
	if wait == 0 {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-sc.ctx.Done():
		return sc.ended()
	}
}

// scannerLostError marks a failure after which the scan goes on with a new
// scanner. Err is what the caller gets if time runs out.
type scannerLostError struct{ Err error }

func (e *scannerLostError) Error() string { return "scanner lost: " + e.Err.Error() }
func (e *scannerLostError) Unwrap() error { return e.Err }

// ended is the error of a scan whose context is over.
func (sc *Scanner) ended() error {
	select {
	case <-sc.closed:
		return ErrScannerClosed
	default:
		return context.Cause(sc.ctx)
	}
}

// fail remembers how fetching ended.
func (sc *Scanner) fail(err error) error {
	if err != io.EOF {
		err = wrap("scan", sc.name(), err)
	}
	sc.err = err
	return err
}

func (sc *Scanner) name() string {
	s := "from row \"" + cells.QuoteShort(sc.st.pos, 64) + "\""
	if n, ok := sc.t.(interface{ name() string }); ok {
		return n.name() + " " + s
	}
	return s
}

// leave forgets a region scanner the state has finished with; it is closed if
// the server has not closed it by itself.
func (sc *Scanner) leave(reply *scanReply) {
	if reply.more && reply.moreInRegion {
		sc.release()
	}
	sc.reg = nil
}

// release gives up the region scanner, telling the server in the background:
// nobody waits for it, and if it fails the lease runs out.
func (sc *Scanner) release() {
	reg := sc.reg
	sc.reg = nil
	if reg == nil {
		return
	}
	sc.c.background(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(sc.ctx), closeTimeout)
		defer cancel()
		reg.close(ctx)
	})
}

// closeTimeout bounds the wish to close a scanner. Longer would only delay
// Client.Close behind a server that does not answer; the lease (60 s) frees
// the scanner anyway.
const closeTimeout = time.Second

func (sc *Scanner) count(reply *scanReply) {
	if reply.heartbeat {
		sc.stats.Heartbeats++
		sc.tell(ScanEvent{Kind: ScanHeartbeat})
	}
	for k, v := range reply.metrics {
		if sc.metrics == nil {
			sc.metrics = map[string]int64{}
		}
		sc.metrics[k] += v
	}
}

// startRenewer keeps the lease alive while the caller consumes what it was
// given: at half the lease, so that one lost renewal is not yet fatal.
func (sc *Scanner) startRenewer(ttl time.Duration) {
	if ttl <= 0 {
		ttl = defaultLease
	}
	half := max(ttl/2, time.Millisecond)
	sc.epoch++
	epoch := sc.epoch
	sc.renewer = time.AfterFunc(half, func() {
		sc.c.background(func() { sc.renew(epoch, half) })
	})
}

func (sc *Scanner) renew(epoch uint64, half time.Duration) {
	select {
	case sc.io <- struct{}{}:
	case <-sc.ctx.Done():
		return
	}
	defer sc.unlock()
	// A request since then has renewed the lease, and started another renewer
	// if one is needed.
	if sc.epoch != epoch || sc.reg == nil || sc.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(sc.ctx, half)
	defer cancel()
	sc.stats.RPCs++
	sc.stats.Renewals++
	if err := sc.reg.renew(ctx, sc.st.nextSeq); err != nil {
		// The next fetch opens again where this one stood.
		sc.release()
		sc.st.lost()
		sc.stats.Reopened++
		sc.tell(ScanEvent{Kind: ScanRegionLost, Err: err})
		return
	}
	sc.tell(ScanEvent{Kind: ScanRenewed})
	sc.st.nextSeq++
	sc.renewer.Reset(half)
}

func (sc *Scanner) stopRenewer() {
	sc.epoch++
	if sc.renewer != nil {
		sc.renewer.Stop()
		sc.renewer = nil
	}
}

// sameBytes says whether two slices are the same memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
