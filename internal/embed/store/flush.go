package store

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Flush is a flush of the rows [start, end) (empty: open), of the families given
// (nil: all): what was written to them before is on disk, and no kill of a
// region server loses it.
//
// As in HBase, what is flushed goes without the versions beyond VERSIONS among
// it, and without what has expired or is hidden by a marker that is flushed with
// it, but for families of NEW_VERSION_BEHAVIOR; only reads of the past, raw scans, and a VERSIONS raised later can tell.
// HBase leaves these cells out of the file it writes; here they are removed, row
// by row as by MajorCompact. An end of ctx leaves the rows behind for the next
// flush.
func (t *Table) Flush(ctx context.Context, start, end []byte, families [][]byte) error {
	s := t.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	// In this order: what is judged must not be lost later, or it would have
	// hidden what is then missed.
	upTo := s.mvcc.readPoint()
	t.saved(start, end)
	earlier := t.flushes.within(start, end)
	if t.flushes.newest() > earlier.floor(start, end) {
		g := &compaction{t: t, schema: t.Schema(), now: s.now(), flushed: earlier}
		g.only(families)
		// In the order of arrival a version counts by what lies elsewhere, too.
		g.families = slices.DeleteFunc(g.families, func(f collected) bool { return f.NewVersionBehavior })
		o := cells.CollectorOptions{Now: g.now, ReadPoint: s.readers.oldest(t.id, start, end, &s.mvcc), KeepMarkers: true}
		for i := range g.families {
			g.families[i].upTo = upTo
			g.families[i].collector = cells.NewCollector(g.families[i].Family, o)
		}
		if err := g.run(ctx, start, end); err != nil {
			return err
		}
	}
	t.flushes.note(start, end, families, upTo)
	return s.Flush(ctx)
}

// flushLog knows up to which number of a write a table's rows have been flushed.
// Safe for concurrent use.
type flushLog struct {
	mu sync.Mutex
	// base is the number up to which all was there when the table was opened.
	base uint64
	// wrote is the number of the newest write.
	wrote uint64
	list  []flushed
}

// flushed is one flush: of one family, or with a nil one of all.
type flushed struct {
	start, end, family []byte
	upTo               uint64
}

func (l *flushLog) noteWrite(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote = max(l.wrote, seq)
}

func (l *flushLog) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wrote
}

// within gives what concerns some of the rows [start, end).
func (l *flushLog) within(start, end []byte) *flushLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	part := &flushLog{base: l.base, wrote: l.wrote}
	for _, f := range l.list {
		if (len(end) == 0 || bytes.Compare(f.start, end) < 0) && (len(f.end) == 0 || bytes.Compare(start, f.end) < 0) {
			part.list = append(part.list, f)
		}
	}
	return part
}

// covers says whether all of the rows [start, end) were flushed.
func (f *flushed) covers(start, end []byte) bool {
	return bytes.Compare(f.start, start) <= 0 && (len(f.end) == 0 || len(end) > 0 && bytes.Compare(end, f.end) <= 0)
}

// floor is the number up to which all families of all rows were flushed, or a
// smaller one.
func (l *flushLog) floor(start, end []byte) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.base
	for i := range l.list {
		if f := &l.list[i]; f.family == nil && f.covers(start, end) {
			n = max(n, f.upTo)
		}
	}
	return n
}

// last is the number up to which a family of a row was flushed.
func (l *flushLog) last(row, family []byte) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.base
	for i := range l.list {
		f := &l.list[i]
		if f.upTo > n && (f.family == nil || bytes.Equal(f.family, family)) && bytes.Compare(f.start, row) <= 0 && (len(f.end) == 0 || bytes.Compare(row, f.end) < 0) {
			n = f.upTo
		}
	}
	return n
}

// note forgets the flushes that this one covers.
func (l *flushLog) note(start, end []byte, families [][]byte, upTo uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add := func(family []byte) {
		n := flushed{bytes.Clone(start), bytes.Clone(end), bytes.Clone(family), upTo}
		l.list = slices.DeleteFunc(l.list, func(f flushed) bool {
			return f.upTo <= upTo && (family == nil || bytes.Equal(family, f.family)) && n.covers(f.start, f.end)
		})
		l.list = append(l.list, n)
	}
	if families == nil {
		add(nil)
	}
	for _, f := range families {
		add(f)
	}
}
