package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// MajorCompact removes what no reader can see any more in the rows
// [start, end) (empty: open), as HBase's major compaction does, but keeps what
// scanners now open may return. families nil means all.
//
// It runs beside writes: the range is read once, and each row with something
// to remove is judged again and cleaned with its lock held. (Without the lock,
// a put that arrives while its row is being judged, older than a marker about
// to go, would be hidden first and then come back.)
//
// An end of ctx leaves the rows reached so far compacted.
func (t *Table) MajorCompact(ctx context.Context, start, end []byte, families [][]byte) error {
	s := t.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	g := &compaction{t: t, schema: t.Schema(), now: s.now()}
	g.only(families)
	opts := cells.CollectorOptions{Now: g.now, ReadPoint: s.readers.oldest(t.id, start, end, &s.mvcc), PurgeAfter: g.schema.PurgeDeletesAfter.Milliseconds()}
	// What is judged must not be lost later, or it would have hidden what is
	// then missed. HBase would not look at what is only in memory.
	t.saved(start, end)
	earliest, err := g.earliestPuts(ctx, start, end)
	if err != nil {
		return err
	}
	for i := range g.families {
		o := opts
		o.EarliestPut = earliest[i]
		if d := g.families[i].PurgeDeletesAfter; d > 0 {
			o.PurgeAfter = d.Milliseconds()
		}
		g.families[i].collector = cells.NewCollector(g.families[i].Family, o)
	}
	if err := g.run(ctx, start, end); err != nil {
		return err
	}
	if g.removed >= worthRewriting {
		lower, upper := t.bounds(start, end)
		return s.db.Compact(ctx, lower, upper, false)
	}
	return nil
}

// worthRewriting: from this many removed cells on, the engine is told to
// reclaim the space at once; below, its own schedule will do.
const worthRewriting = 10_000

// compaction is one run of MajorCompact.
type compaction struct {
	t        *Table
	schema   *cells.Schema
	now      int64
	families []collected
	removed  int
	// flushed is, in a flush, where earlier ones ended.
	flushed *flushLog
}

type collected struct {
	*cells.Family
	collector *cells.Collector
	// Cells of the row are judged that were written in (after, upTo].
	after, upTo uint64
}

func (g *compaction) only(families [][]byte) {
	for i := range g.schema.Families {
		f := &g.schema.Families[i]
		wanted := families == nil
		for _, name := range families {
			wanted = wanted || bytes.Equal(name, f.Name)
		}
		if wanted {
			g.families = append(g.families, collected{Family: f, upTo: math.MaxUint64})
		}
	}
}

func (g *compaction) find(family []byte) *collected {
	for i := range g.families {
		if bytes.Equal(g.families[i].Name, family) {
			return &g.families[i]
		}
	}
	return nil
}

// bounds are the keys of the rows [start, end).
func (t *Table) bounds(start, end []byte) (lower, upper []byte) {
	lower, upper = t.prefix, t.upper
	if len(start) > 0 {
		lower = appendRowKey(nil, t.id, start)
	}
	if len(end) > 0 {
		upper = appendRowKey(nil, t.id, end)
	}
	return lower, upper
}

// rawSource reads every stored cell of the rows [start, end).
func (t *Table) rawSource(start, end []byte) *source {
	src := &source{s: t.s, prefix: t.prefix, readPoint: math.MaxUint64}
	src.opts.LowerBound, src.opts.UpperBound = t.bounds(start, end)
	return src
}

// earliestPuts finds the smallest timestamp of a put in each family that
// needs it.
func (g *compaction) earliestPuts(ctx context.Context, start, end []byte) (_ []int64, err error) {
	earliest := make([]int64, len(g.families))
	needed := false
	for i := range g.families {
		earliest[i] = math.MaxInt64
		needed = needed || g.families[i].NeedsEarliestPut()
	}
	if !needed {
		return earliest, nil
	}
	src := g.t.rawSource(start, end)
	defer func() { err = errors.Join(err, src.suspend()) }()
	err = src.SeekRow(nil, true)
	for ; err == nil && src.Row() != nil; err = src.NextRow() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for c := src.Cell(); c != nil && err == nil; c = src.Cell() {
			for i := range g.families {
				if !c.Type.IsDelete() && bytes.Equal(g.families[i].Name, c.Family) {
					earliest[i] = min(earliest[i], c.Timestamp)
				}
			}
			err = src.Next()
		}
		if err != nil {
			return nil, err
		}
	}
	return earliest, err
}

func (g *compaction) run(ctx context.Context, start, end []byte) (err error) {
	src := g.t.rawSource(start, end)
	defer func() { err = errors.Join(err, src.suspend()) }()
	err = src.SeekRow(nil, true)
	for ; err == nil && src.Row() != nil; err = src.NextRow() {
		if err := ctx.Err(); err != nil {
			return err
		}
		dirty, err := g.judge(src, nil)
		if err != nil {
			return err
		}
		if dirty > 0 {
			if err := g.clean(src.Row()); err != nil {
				return err
			}
		}
	}
	return err
}

// judge counts the cells of the row that can go, and puts their removal into
// b, if that is not nil. It reads the row to its end.
func (g *compaction) judge(src *source, b *pebble.Batch) (remove int, err error) {
	for i := range g.families {
		f := &g.families[i]
		f.collector.NewRow()
		if g.flushed != nil {
			f.after = g.flushed.last(src.Row(), f.Name)
		}
	}
	for c := src.Cell(); c != nil; c = src.Cell() {
		f := g.find(c.Family)
		if f != nil && c.Seq > f.after && c.Seq <= f.upTo && !f.collector.Keep(c) {
			remove++
			if b != nil {
				if err := b.Delete(src.at, nil); err != nil {
					return 0, err
				}
			}
		}
		if err := src.Next(); err != nil {
			return 0, err
		}
	}
	return remove, nil
}

// clean removes what can go of one row, locked against writers.
func (g *compaction) clean(row []byte) (err error) {
	s := g.t.s
	var rows rowSet
	rows.add(s.stripe(g.t.id, row))
	s.locks.lock(&rows)
	defer s.locks.unlock(&rows)
	src := g.t.rawSource(nil, nil)
	src.single = true
	defer func() { err = errors.Join(err, src.suspend()) }()
	if err := src.SeekRow(row, true); err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	n, err := g.judge(src, b)
	if err != nil || n == 0 {
		return err
	}
	g.removed += n
	// A removal lost in a crash only means that there is something to compact
	// again.
	return b.Commit(pebble.NoSync)
}

// DropFamilies removes every cell of the families given, durably. The table's
// schema must be without them already: writes that were validated before that
// are waited for, or are validated again.
func (t *Table) DropFamilies(ctx context.Context, families [][]byte) (err error) {
	s := t.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.locks.passed()
	src := t.rawSource(nil, nil)
	defer func() { err = errors.Join(err, src.suspend()) }()
	b := s.db.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	var lower, upper []byte
	err = src.SeekRow(nil, true)
	for ; err == nil && src.Row() != nil; err = src.NextRow() {
		for _, f := range families {
			lower = appendField(append(lower[:0], src.rowKey...), f)
			upper = append(upper[:0], lower...)
			upper[len(upper)-1] = afterTerminator
			if err := b.DeleteRange(lower, upper, nil); err != nil {
				return err
			}
		}
		if b.Len() >= copyBatchBytes {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := b.Commit(pebble.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err != nil {
		return err
	}
	if err := b.Commit(s.writeOptions(true)); err != nil {
		return err
	}
	return s.failure()
}

// SizeBytes estimates the bytes the rows [start, end) take, in files; what is
// only in memory yet is not counted.
func (t *Table) SizeBytes(start, end []byte) uint64 {
	if t.s.enter() != nil {
		return 0
	}
	defer t.s.leave()
	lower, upper := t.bounds(start, end)
	n, err := t.s.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return 0
	}
	return n
}

// MidRow finds a row that roughly halves the rows [start, end); nil if there
// are not two. The row found is not the first.
//
// Much data is halved by what the engine knows of its files, little (or what
// that does not tell apart) by counting rows.
func (t *Table) MidRow(start, end []byte) (_ []byte, err error) {
	if err := t.s.enter(); err != nil {
		return nil, err
	}
	defer t.s.leave()
	lower, upper := t.bounds(start, end)
	it, err := t.s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.First() {
		return nil, it.Error()
	}
	first := bytes.Clone(it.Key()[:splitRow(it.Key())])
	size, err := t.s.db.EstimateDiskUsage(lower, upper)
	if err != nil {
		return nil, err
	}
	if size >= halveBySize {
		row, err := t.midBySize(it, first, lower, upper, size)
		if row != nil || err != nil {
			return row, err
		}
	}
	return midByCount(it)
}

// halveBySize: less than this is counted in a fraction of a second.
const halveBySize = 64 << 20

// midBySize looks for the key below which half the bytes lie, by halving the
// space of keys between the first and the last: their first eight bytes after
// what they have in common.
func (t *Table) midBySize(it *pebble.Iterator, first, lower, upper []byte, size uint64) ([]byte, error) {
	if !it.Last() {
		return nil, it.Error()
	}
	last := it.Key()
	n := 0
	for n < len(first) && n < len(last) && first[n] == last[n] {
		n++
	}
	key := bytes.Clone(first[:n])
	number := func(k []byte) uint64 {
		var b [8]byte
		copy(b[:], k[n:])
		return binary.BigEndian.Uint64(b[:])
	}
	low, high := number(first), number(last)
	for low < high {
		mid := low + (high-low)/2
		key = binary.BigEndian.AppendUint64(key[:n], mid)
		if bytes.Compare(key, lower) <= 0 {
			low = mid + 1
			continue
		}
		below, err := t.s.db.EstimateDiskUsage(lower, key)
		if err != nil {
			return nil, err
		}
		if below < size/2 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	key = binary.BigEndian.AppendUint64(key[:n], low)
	if bytes.Compare(key, upper) >= 0 || !it.SeekGE(key) {
		return nil, it.Error()
	}
	found := it.Key()[:splitRow(it.Key())]
	if bytes.Equal(found, first) {
		return nil, nil
	}
	return rowOf(found)
}

// midRowSamples is how many rows midByCount remembers, at most.
const midRowSamples = 1024

// midByCount remembers every step-th row; when these are too many, every
// second of them is forgotten and the step doubled.
func midByCount(it *pebble.Iterator) ([]byte, error) {
	var sample [][]byte
	step, n := 1, 0
	for ok := it.First(); ok; ok = it.NextPrefix() {
		if n%step == 0 {
			key := it.Key()
			sample = append(sample, bytes.Clone(key[:splitRow(key)]))
			if len(sample) == midRowSamples {
				for i := range len(sample) / 2 {
					sample[i] = sample[2*i]
				}
				sample, step = sample[:len(sample)/2], 2*step
			}
		}
		n++
	}
	if err := it.Error(); err != nil || len(sample) < 2 {
		return nil, err
	}
	return rowOf(sample[len(sample)/2])
}

func rowOf(rowKey []byte) ([]byte, error) {
	var buf []byte
	row, _, err := decodeField(rowKey[tablePrefixLen:], &buf)
	return bytes.Clone(row), err
}
