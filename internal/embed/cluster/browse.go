package cluster

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Browse asks for some rows of a table, past all servers: whoever looks into a
// broken cluster is not held up by what is broken, and leaves no trace in the
// event log.
type Browse struct {
	Table meta.TableName
	// From is the first row wanted; empty means the table's first.
	From []byte
	// Rows, Cells and Bytes bound the answer; each must be positive. A row is
	// not cut by Bytes (counted as a scan counts them), but by Cells.
	Rows, Cells int
	Bytes       int64
	// Family, if not empty, is the only one read.
	Family string
	// Versions of each column, at least 1. Raw shows delete markers and what
	// they hide.
	Versions int
	Raw      bool
}

// BrowsedRow is one row; More says that it has further cells.
type BrowsedRow struct {
	Cells []cells.Cell
	More  bool
}

// Browsed is the answer: Next is the row to go on from, nil at the table's end.
type Browsed struct {
	Rows []BrowsedRow
	Next []byte
}

// maxBrowsedRegions bounds how many regions of a generated table one call looks
// into: they may all be empty.
const maxBrowsedRegions = 1000

// rowReader is a scanner over rows of the store or over rendered ones.
type rowReader interface {
	Next(dst []cells.Cell, lim *cells.Limits) ([]cells.Cell, cells.State, error)
}

// Browse reads rows. The errors are for people: no such table, no such family,
// ctx's, the store's.
func (c *Cluster) Browse(ctx context.Context, q Browse) (Browsed, error) {
	s := c.catalog.State()
	t := s.Table(q.Table)
	if t == nil {
		return Browsed{}, fmt.Errorf("there is no table %s", q.Table)
	}
	query := cells.NewQuery()
	query.MaxVersions, query.Raw = q.Versions, q.Raw
	if q.Family != "" {
		query.AddFamily([]byte(q.Family))
	}
	b := &browsing{ctx: ctx, q: &q, left: q.Bytes}
	spec := &cells.ScanSpec{Start: q.From, IncludeStart: true, Query: query}
	if t.Virtual() {
		v := c.catalog.Virtual(t.Name)
		if v == nil {
			return Browsed{}, fmt.Errorf("table %s has no rows to show", t.Name)
		}
		rows := func(start []byte, reversed bool) iter.Seq[[]cells.Cell] { return v.Rows(start, reversed, 0) }
		_, err := b.rendered(rows, v.Compare, v.Schema(), spec, c.clock.Millis())
		return b.out, err
	}
	data, err := c.tables.Handle(t)
	if err != nil {
		return Browsed{}, err
	}
	if t.Formula == nil {
		_, err := b.stored(data, spec)
		return b.out, err
	}
	return b.out, c.browseGenerated(b, s, t, data, spec)
}

// browseGenerated goes through the regions of a generated table: the rows of
// some follow the formula, those of the others are in the store.
func (c *Cluster) browseGenerated(b *browsing, s *catalog.State, t *catalog.Table, data *store.Table, spec *cells.ScanSpec) error {
	at := spec.Start
	for range maxBrowsedRegions {
		r := s.Holding(t.Name, at)
		if r == nil {
			return nil // a hole: nothing is known of what lies behind it
		}
		spec.Lower, spec.Upper = r.Info.Start, r.Info.End
		full := false
		var err error
		if _, slot := s.Generated(r.Name); slot.Formula != nil && !slot.Written {
			rows := func(start []byte, reversed bool) iter.Seq[[]cells.Cell] {
				return slot.Formula.RegionRows(slot.Index, start, reversed)
			}
			full, err = b.rendered(rows, bytes.Compare, data.Schema(), spec, c.clock.Millis())
		} else {
			full, err = b.stored(data, spec)
		}
		if full || err != nil || len(r.Info.End) == 0 {
			return err
		}
		at = r.Info.End
		spec.Start = at
	}
	b.out.Next = at
	return nil
}

// browsing collects an answer.
type browsing struct {
	ctx  context.Context
	q    *Browse
	left int64
	out  Browsed
}

func (b *browsing) stored(data *store.Table, spec *cells.ScanSpec) (full bool, err error) {
	in, err := data.NewScan(spec, 0)
	if err != nil {
		return false, err
	}
	full, err = b.read(in)
	if e := in.Close(); err == nil {
		err = e
	}
	return full, err
}

func (b *browsing) rendered(rows func([]byte, bool) iter.Seq[[]cells.Cell], compare func(a, b []byte) int, schema *cells.Schema, spec *cells.ScanSpec, now int64) (full bool, err error) {
	src := cells.NewRowsSource(rows, compare, false)
	defer src.Close()
	in, err := cells.NewScanner(src, schema, spec, compare, now)
	if err != nil {
		return false, err
	}
	return b.read(in)
}

// read takes rows from one source until that ends or the answer is full. One
// row more than wanted is looked at, to name the row to go on from.
func (b *browsing) read(in rowReader) (full bool, err error) {
	lim := &cells.Limits{Batch: b.q.Cells, Expired: func() bool { return b.ctx.Err() != nil }}
	for {
		list, state, err := in.Next(nil, lim)
		if e := b.ctx.Err(); err == nil && e != nil {
			err = fmt.Errorf("reading %s: %w", b.q.Table, e)
		}
		if err != nil {
			return false, err
		}
		if len(list) > 0 {
			row := list[0].Row
			if len(b.out.Rows) == b.q.Rows || b.left <= 0 {
				b.out.Next = bytes.Clone(row)
				return true, nil
			}
			more := state == cells.BatchReached
			for i := range list {
				list[i] = list[i].Clone()
				b.left -= int64(list[i].ResultSize())
			}
			b.out.Rows = append(b.out.Rows, BrowsedRow{Cells: list, More: more})
			if more {
				// Nobody reads a million cells to get past a row.
				b.out.Next = append(bytes.Clone(row), 0)
				return true, nil
			}
		}
		if state == cells.NoMoreRows {
			return false, nil
		}
	}
}
