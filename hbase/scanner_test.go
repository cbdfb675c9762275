package hbase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
)

func TestMain(m *testing.M) {
	rpc.Poison(true)
	goleak.VerifyTestMain(m)
}

// fakeCluster is a table in regions whose scanners break, cut and dawdle as the
// dice say. It checks that the client keeps the protocol.
type fakeCluster struct {
	t     *testing.T
	rnd   *rand.Rand
	rows  [][]Cell // sorted
	edges [][]byte // inner region boundaries, sorted
	scan  *Scan

	// Probabilities in percent.
	fault, heartbeat int
	ignoreLimit      bool
	pieces           bool // never a whole row at once
	liePartial       bool // flag ends of rows as partial, as if the rest were filtered

	mvcc    uint64
	current *fakeRegion
	opens   int
	midRow  int // openings within a row
	final   error
}

type fakeRegion struct {
	c          *fakeCluster
	start, end []byte
	// left is what this scanner still has to give: rows in scan order, the
	// first perhaps in part.
	left    [][]Cell
	seq     uint64
	mvcc    uint64
	closed  atomic.Bool // also set by closings in the background
	renewed int
}

func (c *fakeCluster) chance(percent int) bool { return c.rnd.IntN(100) < percent }

func (c *fakeCluster) bounds(i int) (start, end []byte) {
	if i > 0 {
		start = c.edges[i-1]
	}
	if i < len(c.edges) {
		end = c.edges[i]
	}
	return start, end
}

// shake splits, merges or leaves the regions.
func (c *fakeCluster) shake() {
	switch c.rnd.IntN(3) {
	case 0:
		row := c.rows[c.rnd.IntN(len(c.rows))][0].Row
		if i, have := slices.BinarySearchFunc(c.edges, row, bytes.Compare); !have {
			c.edges = slices.Insert(slices.Clone(c.edges), i, row)
		}
	case 1:
		if n := len(c.edges); n > 0 {
			i := c.rnd.IntN(n)
			c.edges = slices.Delete(slices.Clone(c.edges), i, i+1)
		}
	}
}

func (c *fakeCluster) open(ctx context.Context, o scanOpening) (scanRegion, *scanReply, error) {
	c.opens++
	if c.final != nil {
		return nil, nil, c.final
	}
	if c.current != nil && !c.current.closed.Load() {
		c.current.closed.Store(true)
	}
	if c.chance(c.fault / 3) {
		c.shake()
		return nil, nil, &scannerLostError{errors.New("broke while opening")}
	}
	at := -1
	for i := range len(c.edges) + 1 {
		start, end := c.bounds(i)
		if o.before {
			if len(o.row) == 0 && len(end) == 0 || len(o.row) > 0 && bytes.Compare(start, o.row) < 0 && (len(end) == 0 || bytes.Compare(end, o.row) >= 0) {
				at = i
			}
		} else if bytes.Compare(start, o.row) <= 0 && (len(end) == 0 || bytes.Compare(o.row, end) < 0) {
			at = i
		}
	}
	if at < 0 {
		c.t.Fatalf("no region for %q (before %v)", o.row, o.before)
	}
	r := &fakeRegion{c: c, mvcc: o.mvcc}
	if o.mvcc != 0 {
		c.midRow++
		if !o.inclusive {
			c.t.Fatalf("mid-row opening at %q exclusive", o.row)
		}
	} else {
		c.mvcc++
		r.mvcc = c.mvcc
	}
	r.start, r.end = c.bounds(at)
	for _, row := range c.expected(o.row, o.inclusive) {
		key := row[0].Row
		if bytes.Compare(key, r.start) >= 0 && (len(r.end) == 0 || bytes.Compare(key, r.end) < 0) {
			r.left = append(r.left, row)
		}
	}
	c.current = r
	reply := &scanReply{ttl: time.Minute}
	reply.more, reply.moreInRegion, reply.mvcc = true, true, r.mvcc
	if c.chance(30) {
		return r, reply, nil // just opened
	}
	r.serve(reply, o.limit)
	return r, reply, nil
}

// expected gives the rows of the scan from a position on, in scan order.
func (c *fakeCluster) expected(from []byte, inclusive bool) [][]Cell {
	rows := slices.Clone(c.rows)
	if c.scan.Reversed {
		slices.Reverse(rows)
	}
	dir := func(a, b []byte) int {
		if c.scan.Reversed {
			return bytes.Compare(b, a)
		}
		return bytes.Compare(a, b)
	}
	var out [][]Cell
	for _, row := range rows {
		key := row[0].Row
		if len(from) > 0 {
			if d := dir(key, from); d < 0 || d == 0 && !inclusive {
				continue
			}
		}
		if len(c.scan.Stop) > 0 {
			if d := dir(key, c.scan.Stop); d > 0 || d == 0 && !c.scan.IncludeStop {
				continue
			}
		}
		out = append(out, row)
	}
	return out
}

// serve fills an answer and advances the scanner.
func (r *fakeRegion) serve(reply *scanReply, limit int) {
	c := r.c
	reply.more, reply.moreInRegion = true, true
	if c.chance(c.heartbeat) && len(r.left) > 0 {
		reply.heartbeat = true
		if c.chance(50) {
			return
		}
	}
	rowsDone := 0
	for budget := 1 + c.rnd.IntN(12); budget > 0 && len(r.left) > 0; {
		row := r.left[0]
		n := min(1+c.rnd.IntN(budget), len(row))
		if c.scan.Batch > 0 {
			n = min(n, c.scan.Batch)
		} else if !c.pieces && c.chance(40) {
			n = len(row)
		}
		part := scanPart{cells: row[:n:n], partial: n < len(row)}
		budget -= n
		if part.partial {
			r.left[0] = row[n:]
		} else {
			r.left = r.left[1:]
			rowsDone++
			if c.liePartial && c.chance(50) {
				part.partial = true
			}
		}
		reply.parts = append(reply.parts, part)
		if limit > 0 && rowsDone == limit && !c.ignoreLimit {
			reply.more = false
			r.closed.Store(true)
			return
		}
	}
	if len(r.left) == 0 && c.chance(70) {
		reply.moreInRegion = false
		r.closed.Store(true)
	} else if len(r.left) == 0 && len(reply.parts) == 0 {
		reply.moreInRegion = false
		r.closed.Store(true)
	}
}

func (r *fakeRegion) bounds() (start, end []byte) { return r.start, r.end }

func (r *fakeRegion) check(what string, seq uint64) {
	if r.closed.Load() || r.c.current != r {
		r.c.t.Errorf("%s on a scanner that is closed", what)
	}
	if seq != r.seq {
		r.c.t.Errorf("%s with sequence %d, want %d", what, seq, r.seq)
	}
	r.seq++
}

func (r *fakeRegion) next(ctx context.Context, seq uint64, limit int) (*scanReply, error) {
	r.check("next", seq)
	lose := r.c.chance(r.c.fault)
	if lose && r.c.chance(50) {
		r.c.shake()
		return nil, &scannerLostError{errors.New("not serving")}
	}
	reply := &scanReply{}
	r.serve(reply, limit)
	if lose {
		r.c.shake()
		return nil, &scannerLostError{errors.New("answer lost")}
	}
	return reply, nil
}

func (r *fakeRegion) renew(ctx context.Context, seq uint64) error {
	r.check("renew", seq)
	r.renewed++
	if r.c.chance(r.c.fault) {
		return errors.New("lease is gone")
	}
	return nil
}

func (r *fakeRegion) close(context.Context) { r.closed.Store(true) }

func makeRows(rnd *rand.Rand, n, maxCells int, raw bool) [][]Cell {
	rows := make([][]Cell, n)
	for i := range rows {
		key := fmt.Appendf(nil, "row%03d", i)
		for j := range 1 + rnd.IntN(maxCells) {
			c := Cell{Row: key, Family: []byte("f"), Qualifier: fmt.Appendf(nil, "q%02d", j/3), Timestamp: int64(100 - j%3), Type: cells.Put, Value: fmt.Appendf(nil, "%d.%d", i, j)}
			rows[i] = append(rows[i], c)
			if raw && rnd.IntN(3) == 0 {
				// A raw scan may show the same coordinates more than once.
				for k := range rnd.IntN(3) {
					d := c
					d.Value = fmt.Appendf(nil, "%d.%d again %d", i, j, k)
					rows[i] = append(rows[i], d)
				}
			}
		}
	}
	return rows
}

// TestScanModel plays random histories of cuts, heartbeats, losses, splits and
// merges, and compares what is handed out with the table.
func TestScanModel(t *testing.T) {
	seeds := 3000
	if testing.Short() {
		seeds = 500
	}
	var midRow, lost int
	synctest.Test(t, func(t *testing.T) {
		for seed := range seeds {
			rnd := rand.New(rand.NewPCG(uint64(seed), 1))
			scan := &Scan{Reversed: rnd.IntN(2) == 0, Prefetch: Prefetch(rnd.IntN(3))}
			switch rnd.IntN(4) {
			case 0:
				scan.AllowPartial = true
			case 1:
				scan.Batch = 1 + rnd.IntN(4)
			}
			if rnd.IntN(3) == 0 {
				scan.Limit = 1 + rnd.IntN(12)
			}
			if rnd.IntN(2) == 0 {
				a, b := fmt.Appendf(nil, "row%03d", rnd.IntN(30)), fmt.Appendf(nil, "row%03d", rnd.IntN(30))
				if c := bytes.Compare(a, b); c > 0 != scan.Reversed && c != 0 {
					a, b = b, a
				}
				scan.Start, scan.Stop = a, b
				if rnd.IntN(4) == 0 {
					scan.Start = nil
				}
				if rnd.IntN(4) == 0 {
					scan.Stop = nil
				}
				scan.ExcludeStart, scan.IncludeStop = rnd.IntN(3) == 0, rnd.IntN(3) == 0
			}
			c := &fakeCluster{
				t: t, rnd: rnd, scan: scan, rows: makeRows(rnd, 30, 9, rnd.IntN(2) == 0),
				fault: []int{0, 5, 20, 45}[rnd.IntN(4)], heartbeat: rnd.IntN(30),
				ignoreLimit: rnd.IntN(4) == 0, liePartial: rnd.IntN(3) == 0,
			}
			for range rnd.IntN(6) {
				c.shake()
			}
			client := &Client{}
			sc := startScanner(t.Context(), client, scan, c, time.Hour, 1<<30)
			checkScanned(t, seed, c, sc, rand.New(rand.NewPCG(uint64(seed), 2)))
			client.drain()
			midRow += c.midRow
			lost += sc.Stats().Reopened
			if t.Failed() {
				return
			}
		}
	})
	if midRow == 0 || lost == 0 {
		t.Fatalf("the test tests nothing: %d openings in mid-row, %d scanners lost", midRow, lost)
	}
}

func checkScanned(t *testing.T, seed int, c *fakeCluster, sc *Scanner, rnd *rand.Rand) {
	t.Helper()
	want := c.expected(c.scan.Start, !c.scan.ExcludeStart)
	if c.scan.Limit > 0 && len(want) > c.scan.Limit {
		want = want[:c.scan.Limit]
	}
	if c.scan.Start != nil && c.scan.Stop != nil && bytes.Equal(c.scan.Start, c.scan.Stop) && (c.scan.ExcludeStart || !c.scan.IncludeStop) {
		want = nil
	}
	var got [][]Cell
	for res, err := range sc.Rows() {
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
			return
		}
		if len(res.Cells) == 0 {
			t.Errorf("seed %d: an empty result of row %q", seed, res.Row)
		}
		if rnd.IntN(8) == 0 {
			time.Sleep(time.Duration(rnd.IntN(100)) * time.Second) // a slow caller
		}
		last := len(got) - 1
		same := last >= 0 && bytes.Equal(got[last][0].Row, res.Row)
		switch {
		case !same:
			got = append(got, slices.Clone(res.Cells))
		case c.scan.Batch == 0 && !c.scan.AllowPartial:
			t.Errorf("seed %d: row %q comes twice", seed, res.Row)
		default:
			got[last] = append(got[last], res.Cells...)
		}
		if b := c.scan.Batch; b > 0 {
			full := len(got[len(got)-1])
			if len(res.Cells) > b || len(res.Cells) < b && (res.Partial || full != len(want[len(got)-1])) {
				t.Errorf("seed %d: batch of %d cells (partial %v) of row %q, asked for %d", seed, len(res.Cells), res.Partial, res.Row, b)
			}
		}
	}
	if len(got) != len(want) {
		t.Errorf("seed %d: %d rows, want %d; %+v", seed, len(got), len(want), *c.scan)
		return
	}
	for i := range want {
		if !sameCells(got[i], want[i]) {
			t.Errorf("seed %d: row %q:\n got %d cells %v\nwant %d cells %v", seed, want[i][0].Row, len(got[i]), got[i], len(want[i]), want[i])
			return
		}
	}
}

func sameCells(a, b []Cell) bool {
	return slices.EqualFunc(a, b, func(x, y Cell) bool {
		return cells.Compare(&x, &y) == 0 && bytes.Equal(x.Value, y.Value)
	})
}

func TestScanLeaseIsRenewedForASlowCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(7, 7))
		scan := &Scan{}
		c := &fakeCluster{t: t, rnd: rnd, scan: scan, rows: makeRows(rnd, 40, 4, false)}
		client := &Client{}
		sc := startScanner(t.Context(), client, scan, c, time.Minute, 1<<30)
		if _, err := sc.Next(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := c.current.renewed; got != 10 && got != 9 {
			t.Errorf("%d renewals in 5 minutes with a lease of 1, want one every 30 s", got)
		}
		n := 1
		for {
			_, err := sc.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 40 {
			t.Errorf("%d rows, want 40", n)
		}
		if err := sc.Close(); err != nil {
			t.Fatal(err)
		}
		client.drain()
		if _, err := sc.Next(); err != io.EOF && !errors.Is(err, ErrScannerClosed) {
			t.Errorf("Next after Close: %v", err)
		}
	})
}

func TestScanGivesUpWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(1, 2))
		c := &fakeCluster{t: t, rnd: rnd, scan: &Scan{}, rows: makeRows(rnd, 3, 3, false), final: &scannerLostError{io.ErrUnexpectedEOF}}
		client := &Client{}
		sc := startScanner(t.Context(), client, c.scan, c, 30*time.Second, 1<<30)
		start := time.Now()
		_, err := sc.Next()
		if !errors.Is(err, ErrRetriesExhausted) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("error %v, want retries exhausted and its cause", err)
		}
		if took := time.Since(start); took > 30*time.Second || took < 25*time.Second {
			t.Errorf("gave up after %v, want within the step of 30 s", took)
		}
		if _, again := sc.Next(); !errors.Is(again, err) && again.Error() != err.Error() {
			t.Errorf("second Next: %v, want the same %v", again, err)
		}
		sc.Close()
	})
}

func TestScanFinalErrorIsNotRetried(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	boom := errors.New("no such family")
	c := &fakeCluster{t: t, rnd: rnd, scan: &Scan{}, rows: makeRows(rnd, 3, 3, false), final: boom}
	sc := startScanner(t.Context(), &Client{}, c.scan, c, time.Minute, 1<<30)
	for _, err := range sc.Rows() {
		if !errors.Is(err, boom) {
			t.Errorf("error %v, want %v", err, boom)
		}
	}
	if c.opens != 1 {
		t.Errorf("%d openings, want 1", c.opens)
	}
}

// stuckTransport never answers.
type stuckTransport struct{}

func (stuckTransport) open(ctx context.Context, _ scanOpening) (scanRegion, *scanReply, error) {
	<-ctx.Done()
	return nil, nil, context.Cause(ctx)
}

func TestScanCloseFreesAWaitingNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := startScanner(t.Context(), &Client{}, &Scan{}, stuckTransport{}, time.Minute, 1<<30)
		done := make(chan error, 1)
		go func() { _, err := sc.Next(); done <- err }()
		synctest.Wait()
		sc.Close()
		if err := <-done; !errors.Is(err, ErrScannerClosed) {
			t.Errorf("error %v, want %v", err, ErrScannerClosed)
		}
	})
}

func TestScanEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sc := startScanner(ctx, &Client{}, &Scan{}, stuckTransport{}, time.Minute, 1<<30)
		start := time.Now()
		_, err := sc.Next()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("error %v after %v, want the deadline after 1s", err, time.Since(start))
		}
		sc.Close()
	})
}

func TestScanRowTooLarge(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	rows := makeRows(rnd, 1, 1, false)
	for range 200 {
		c := rows[0][0]
		c.Qualifier = fmt.Appendf(nil, "z%03d", len(rows[0]))
		rows[0] = append(rows[0], c)
	}
	c := &fakeCluster{t: t, rnd: rnd, scan: &Scan{}, rows: rows, pieces: true}
	client := &Client{}
	sc := startScanner(t.Context(), client, c.scan, c, time.Minute, 1000)
	var err error
	for _, err = range sc.Rows() {
		break
	}
	if !errors.Is(err, ErrRowTooLarge) {
		t.Errorf("error %v, want %v", err, ErrRowTooLarge)
	}
	client.drain()
}

func TestReverseTurnsTheRange(t *testing.T) {
	s := NewScanRange("b", "d").Reverse()
	if string(s.Start) != "d" || string(s.Stop) != "b" || !s.ExcludeStart || !s.IncludeStop || !s.Reversed {
		t.Errorf("got %+v", *s)
	}
	s = NewScan().Reverse()
	if s.ExcludeStart || s.IncludeStop {
		t.Errorf("an open range keeps its ends: %+v", *s)
	}
}

func TestPrefixStop(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a", "b"}, {"ab\xff", "ac"}, {"\xff\xff", ""}, {"", ""}, {"a\x00", "a\x01"},
	} {
		if got := PrefixStop([]byte(c.in)); string(got) != c.want {
			t.Errorf("PrefixStop(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// drain is what Close does beside closing the session.
func (c *Client) drain() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.bg.Wait()
}

func TestScanCursor(t *testing.T) {
	beat := &scanAnswer{heartbeat: true, more: true, moreInRegion: true, cursor: []byte("m"), hasCursor: true}
	for _, asked := range []bool{true, false} {
		st := newScanState(&Scan{NeedCursor: asked}, 1<<20)
		if err := st.opened(st.opening(), nil, nil, 1); err != nil {
			t.Fatal(err)
		}
		out, err := st.accept(beat, nil)
		if err != nil {
			t.Fatal(err)
		}
		if asked && (len(out) != 1 || !out[0].Cursor || string(out[0].Row) != "m" || len(out[0].Cells) != 0) || !asked && len(out) != 0 {
			t.Errorf("asked %v: %v", asked, out)
		}
		// A cursor is no position: the scan goes on behind what it handed out.
		if o := st.opening(); len(o.row) != 0 || !o.inclusive {
			t.Errorf("after a cursor the scan would open at %q", o.row)
		}
	}
}

func TestScanRefusesWrongRegionsAndRows(t *testing.T) {
	row := func(key string) *scanAnswer {
		return &scanAnswer{more: true, moreInRegion: true, parts: []scanPart{{cells: []Cell{{Row: []byte(key), Type: cells.Put}}}}}
	}
	st := newScanState(&Scan{Start: []byte("c")}, 1<<20)
	if err := st.opened(st.opening(), []byte("d"), nil, 1); err == nil {
		t.Error("a region behind the start was taken")
	}
	if err := st.opened(st.opening(), []byte("a"), []byte("m"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := st.accept(row("b"), nil); err == nil {
		t.Error("a row before the start was taken")
	}
	st = newScanState(&Scan{Start: []byte("m"), Reversed: true}, 1<<20)
	if err := st.opened(st.opening(), []byte("a"), nil, 1); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		key string
		ok  bool
	}{{"m", true}, {"k", true}, {"k", false}, {"l", false}} {
		if _, err := st.accept(row(step.key), nil); (err == nil) != step.ok {
			t.Errorf("row %s in a reversed scan: %v", step.key, err)
		}
	}
}
