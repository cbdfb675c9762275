package store

import (
	"bytes"
	"errors"
	"math"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Table is one table's data. Safe for concurrent use.
type Table struct {
	s      *Store
	id     uint32
	prefix []byte // of its keys
	upper  []byte // behind its keys
	schema atomic.Pointer[cells.Schema]

	flushes flushLog
}

// ID is the table's id in the store.
func (t *Table) ID() uint32 { return t.id }

// Schema is the present schema.
func (t *Table) Schema() *cells.Schema { return t.schema.Load() }

// SetSchema replaces the schema; reads and writes that start later use it.
func (t *Table) SetSchema(schema *cells.Schema) { t.schema.Store(schema) }

// Get reads one row at the present read point. The cells are the caller's.
// Errors are *cells.Exception for what HBase refuses, ErrClosed, or the
// engine's.
func (t *Table) Get(row []byte, q *cells.Query) ([]cells.Cell, error) {
	if err := t.s.enter(); err != nil {
		return nil, err
	}
	defer t.s.leave()
	if err := validRow(row); err != nil {
		return nil, err
	}
	rp := uint64(presently)
	if q.Uncommitted {
		rp = math.MaxUint64
	}
	return t.read(t.Schema(), row, q, rp, t.s.now())
}

// presently, as a read point, is the one at the time of the read.
const presently = 0

// read is a Get at a read point; the store is entered.
func (t *Table) read(schema *cells.Schema, row []byte, q *cells.Query, readPoint uint64, now int64) (_ []cells.Cell, err error) {
	g := t.s.getters.Get().(*getter)
	src := &g.src
	t.initSource(src, schema, q, readPoint, false, now)
	src.single = true
	defer func() {
		if e := src.suspend(); err == nil {
			err = e
		}
		g.release()
		t.s.getters.Put(g)
	}()
	sc := &g.scanner
	if err := sc.Init(src, schema, cells.RowSpec(row, q), bytes.Compare, now); err != nil {
		return nil, err
	}
	if readPoint == presently {
		// First the engine's view, then the read point: the other way round, a
		// major compaction in between could take away what the read point
		// shows, and leave only what it hides.
		if err := src.open(); err != nil {
			return nil, err
		}
		src.readPoint = t.s.mvcc.readPoint()
	}
	g.cells, _, err = sc.Next(g.cells[:0], &cells.Limits{})
	if err != nil || len(g.cells) == 0 {
		return nil, err
	}
	return append(make([]cells.Cell, 0, len(g.cells)), g.cells...), nil
}

// getter is what one Get after the other can use again: the source with its
// buffers, and room for the cells before their number is known. (Without it a
// Get of ten cells allocates twice as often.) Cells given out never point
// into it.
type getter struct {
	src     source
	scanner cells.Scanner
	cells   []cells.Cell
}

// keptCells and keptBytes bound what a getter keeps between two Gets.
const (
	keptCells = 64
	keptBytes = 4 << 10
)

func newGetter() any { return new(getter) }

func (g *getter) release() {
	if cap(g.cells) > keptCells {
		g.cells = nil
	}
	clear(g.cells[:cap(g.cells)])
	g.scanner.Release()
	g.src.release()
}

func (t *Table) initSource(src *source, schema *cells.Schema, q *cells.Query, readPoint uint64, reversed bool, now int64) {
	src.s, src.prefix, src.readPoint, src.reversed = t.s, t.prefix, readPoint, reversed
	src.opts.LowerBound, src.opts.UpperBound = t.prefix, t.upper
	if r := timesOfInterest(schema, q, now); !r.All() {
		src.opts.PointKeyFilters = []pebble.BlockPropertyFilter{tsFilter(r)}
	}
}

// timesOfInterest is the range outside of which no cell can matter to a query.
func timesOfInterest(schema *cells.Schema, q *cells.Query, now int64) cells.TimeRange {
	var all cells.TimeRange
	first := true
	add := func(f *cells.Family) {
		if f == nil {
			return
		}
		r, ok := q.FamilyRanges[string(f.Name)]
		if !ok {
			r = q.Range
		}
		if f.NewVersionBehavior {
			r = cells.AllTime // every cell counts towards the versions
		}
		if f.TTL != cells.Forever && f.MinVersions <= 0 && !q.Raw && !f.NewVersionBehavior {
			r.Min = max(r.Min, now-f.TTL)
		}
		if first {
			all, first = r, false
			return
		}
		all.Min, all.Max = min(all.Min, r.Min), max(all.Max, r.Max)
	}
	if len(q.Columns) == 0 {
		for i := range schema.Families {
			add(&schema.Families[i])
		}
	} else {
		for i := range q.Columns {
			add(schema.Family(q.Columns[i].Family))
		}
	}
	if first || all.Max < all.Min {
		return cells.AllTime
	}
	return all
}

// NewScan opens a scanner over the table that sees what was written up to
// readPoint; 0 means the present one. The scanner holds no engine resources
// between calls once paused. Queries with Uncommitted set see everything.
func (t *Table) NewScan(spec *cells.ScanSpec, readPoint uint64) (*Scanner, error) {
	if err := t.s.enter(); err != nil {
		return nil, err
	}
	defer t.s.leave()
	schema, now := t.Schema(), t.s.now()
	sc := &Scanner{s: t.s}
	// Registered before the read point is taken for good, so that a major
	// compaction that starts meanwhile spares what we may see.
	sc.readPoint = t.s.readers.add(sc, reading{t.id, spec.Lower, spec.Upper, readPoint}, &t.s.mvcc)
	see := sc.readPoint
	if spec.Uncommitted {
		see = math.MaxUint64
	}
	sc.src = new(source)
	t.initSource(sc.src, schema, spec.Query, see, spec.Reversed, now)
	in, err := cells.NewScanner(sc.src, schema, spec, bytes.Compare, now)
	if err != nil {
		t.s.readers.remove(sc)
		return nil, err
	}
	sc.in = in
	return sc, nil
}

// Scanner reads a table at a fixed read point: a cells.Scanner that can let go
// of the engine between calls. It must be closed, by the goroutine that uses
// it or after that has ended. Not safe for concurrent use.
type Scanner struct {
	s         *Store
	readPoint uint64
	src       *source
	in        *cells.Scanner
	closed    bool
}

// ReadPoint is what the scanner sees (mvcc_read_point).
func (sc *Scanner) ReadPoint() uint64 { return sc.readPoint }

// Next appends the next row, or a part of it, to dst: see cells.Scanner. The
// engine is held until Pause or Close, for at most as long as an RPC takes.
func (sc *Scanner) Next(dst []cells.Cell, lim *cells.Limits) ([]cells.Cell, cells.State, error) {
	if err := sc.s.enter(); err != nil {
		return dst, cells.NoMoreRows, err
	}
	defer sc.s.leave()
	if sc.closed {
		return dst, cells.NoMoreRows, errScannerClosed
	}
	dst, state, err := sc.in.Next(dst, lim)
	if state == cells.NoMoreRows || err != nil {
		if e := sc.src.suspend(); err == nil {
			err = e
		}
	}
	return dst, state, err
}

var errScannerClosed = errors.New("scanner is closed")

// Pause lets go of the engine's resources until the next call of Next; call it
// when an RPC is answered. The Store can be closed while scanners are paused
// or not.
func (sc *Scanner) Pause() error {
	if err := sc.s.enter(); err != nil {
		return nil // Store.Close has done it
	}
	defer sc.s.leave()
	return sc.src.suspend()
}

// FilterDone says that the filter wants nothing more: see cells.Scanner.
func (sc *Scanner) FilterDone() bool { return sc.in.FilterDone() }

// LastRow is the row reached; nil before the first. Valid until the next call.
func (sc *Scanner) LastRow() []byte { return sc.in.LastRow() }

// Close ends the scanner. A second call does nothing.
func (sc *Scanner) Close() error {
	if err := sc.s.enter(); err != nil {
		return nil // Store.Close has done it
	}
	defer sc.s.leave()
	if sc.closed {
		return nil
	}
	sc.closed = true
	sc.s.readers.remove(sc)
	return sc.src.suspend()
}
