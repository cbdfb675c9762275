package store

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// validate refuses what can be refused without reading: HBase's checks, with
// its classes.
func (t *Table) validate(schema *cells.Schema, m *RowMutation) error {
	if schema.ReadOnly {
		return cells.DoNotRetry("region is read only")
	}
	if err := validRow(m.Row); err != nil {
		return err
	}
	if m.Condition != nil {
		if err := m.Condition.validate(schema); err != nil {
			return err
		}
		if r := m.Condition.Row; r != nil && !bytes.Equal(r, m.Row) {
			return rowMismatch(m.Row, r)
		}
		// What the mutation names counts only if the condition holds (L15).
		return nil
	}
	return validOps(schema, m)
}

func rowMismatch(action, original []byte) error {
	return cells.DoNotRetry("The row of the action <" + cells.Quote(action) + "> doesn't match the original one <" + cells.Quote(original) + ">")
}

func validRow(row []byte) error {
	if len(row) == 0 {
		return cells.IOException("Row length 0")
	}
	if len(row) > cells.MaxRowLength {
		return cells.IOException("Row length " + strconv.Itoa(len(row)) + " is > " + strconv.Itoa(cells.MaxRowLength))
	}
	return nil
}

func validOps(schema *cells.Schema, m *RowMutation) error {
	for i := range m.Ops {
		op := &m.Ops[i]
		for k := range op.Cells {
			c := &op.Cells[k]
			if len(c.Family) == 0 {
				return cells.IOException("Family cannot be null")
			}
			if schema.Family(c.Family) == nil {
				return cells.NoSuchFamily(c.Family)
			}
			if c.Timestamp < 0 {
				return cells.IOException("Timestamp cannot be negative. ts=" + strconv.FormatInt(c.Timestamp, 10))
			}
			if op.Kind != Delete {
				if err := checkCellSize(schema, m.Row, c); err != nil {
					return err
				}
			}
		}
		if op.Timestamp < 0 {
			return cells.IOException("Timestamp cannot be negative. ts=" + strconv.FormatInt(op.Timestamp, 10))
		}
	}
	return nil
}

// CheckCellSizes refuses cells over the table's limit, which HBase does for
// all puts of a Multi before it applies any. Cells' own Row is not looked at.
func CheckCellSizes(schema *cells.Schema, row []byte, cs []cells.Cell) error {
	for i := range cs {
		if err := checkCellSize(schema, row, &cs[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkCellSize counts as HBase does: the KeyValue and four bytes more.
func checkCellSize(schema *cells.Schema, row []byte, c *cells.Cell) error {
	size := 24 + len(row) + len(c.Family) + len(c.Qualifier) + len(c.Value)
	if n := len(c.Tags); n > 0 {
		size += 2 + n
	}
	if schema.MaxCellSize <= 0 || size <= schema.MaxCellSize {
		return nil
	}
	return cells.DoNotRetry("Cell[" + cells.QuoteShort(row, 64) + "/" + cells.Quote(c.Family) + ":" + cells.QuoteShort(c.Qualifier, 64) +
		"] with size " + strconv.Itoa(size) + " exceeds limit of " + strconv.Itoa(schema.MaxCellSize) + " bytes")
}

// stamp turns a mutation into cells with timestamps. The row is locked. seen
// is the timestamp of the cell a condition looked at: puts must not end up
// below it.
func (w *writer) stamp(m *RowMutation, seen int64) error {
	if m.Condition != nil {
		if err := validOps(w.schema, m); err != nil {
			return err
		}
	}
	for i := range m.Ops {
		op := &m.Ops[i]
		d, from := w.durability(op), len(w.cells)
		if d >= cells.SyncWAL {
			w.durable = true
		}
		var err error
		switch op.Kind {
		case Put:
			w.put(m.Row, op, max(w.now, seen))
		case Delete:
			err = w.delete(m.Row, op)
		case Increment, Append:
			err = w.reckon(m.Row, op)
		default:
			err = cells.DoNotRetry("unsupported: mutation kind " + strconv.Itoa(int(op.Kind)))
		}
		if err != nil {
			return err
		}
		if d < cells.SyncWAL && len(w.cells) > from {
			if n := len(w.spans); n > 0 && w.spans[n-1].to == from && w.spans[n-1].durability == d {
				w.spans[n-1].to = len(w.cells)
			} else {
				w.spans = append(w.spans, span{from, len(w.cells), d})
			}
		}
	}
	return nil
}

// span is a run of cells that are not synced before they are answered.
type span struct {
	from, to   int
	durability cells.Durability
}

func (w *writer) durability(op *Op) cells.Durability {
	d := op.Durability
	if d == cells.UseDefault {
		d = w.schema.Durability
	}
	if d == cells.UseDefault {
		d = cells.SyncWAL
	}
	return d
}

// add takes a cell up for writing; row is the mutation's.
func (w *writer) add(row []byte, c cells.Cell, ttl int64) {
	c.Row = row
	if ttl > 0 && ttl != NoTTL {
		c.Tags = cells.WithTTL(c.Tags, ttl)
	}
	w.cells = append(w.cells, c)
}

func (w *writer) put(row []byte, op *Op, now int64) {
	for _, c := range op.Cells {
		if c.Type == 0 {
			c.Type = cells.Put
		}
		if c.Timestamp == cells.LatestTimestamp {
			c.Timestamp = now
		}
		w.add(row, c, op.TTL)
	}
}

func (w *writer) delete(row []byte, op *Op) error {
	if len(op.Cells) == 0 {
		for i := range w.schema.Families {
			w.marker(row, op, cells.Cell{Family: w.schema.Families[i].Name, Type: cells.DeleteFamily, Timestamp: op.Timestamp})
		}
		return nil
	}
	// The same column several times means its newest versions, one after the
	// other (C16).
	var times map[string]int
	for _, c := range op.Cells {
		if c.Type == 0 {
			c.Type = cells.Delete
		}
		if c.Type == cells.Delete && c.Timestamp == cells.LatestTimestamp {
			if times == nil {
				times = make(map[string]int)
			}
			column := string(c.Family) + ":" + string(c.Qualifier)
			times[column]++
			ts, err := w.nthNewest(row, &c, times[column])
			if err != nil {
				return err
			}
			c.Timestamp = ts
		}
		w.marker(row, op, c)
	}
	return nil
}

// marker adds a delete marker, stamping it if it has no timestamp.
func (w *writer) marker(row []byte, op *Op, c cells.Cell) {
	if c.Timestamp == cells.LatestTimestamp {
		c.Timestamp = w.now
		w.t.s.locks.marked(w.t.s.stripe(w.t.id, row), w.now)
	}
	w.add(row, c, op.TTL)
}

// nthNewest is the timestamp of the n-th version of a column; LatestTimestamp
// if there are fewer.
func (w *writer) nthNewest(row []byte, c *cells.Cell, n int) (int64, error) {
	q := cells.NewQuery().AddColumn(c.Family, c.Qualifier)
	q.MaxVersions = n
	got, err := w.t.read(w.schema, row, q, math.MaxUint64, w.t.s.now())
	if err != nil {
		return 0, err
	}
	if len(got) < n {
		return cells.LatestTimestamp, nil
	}
	return got[n-1].Timestamp, nil
}

// reckon turns an increment's amounts, or an append's pieces, into the new
// values.
func (w *writer) reckon(row []byte, op *Op) error {
	if len(op.Cells) == 0 {
		return nil
	}
	old, err := w.t.read(w.schema, row, op.query(), math.MaxUint64, w.t.s.now())
	if err != nil {
		return err
	}
	deltas := slices.Clone(op.Cells)
	slices.SortStableFunc(deltas, func(a, b cells.Cell) int {
		if c := bytes.Compare(a.Family, b.Family); c != 0 {
			return c
		}
		return bytes.Compare(a.Qualifier, b.Qualifier)
	})
	at := 0
	for _, d := range deltas {
		// A column named twice starts from the stored value both times (J5).
		for at < len(old) && before(&old[at], &d) {
			at++
		}
		var have *cells.Cell
		if at < len(old) && cells.SameColumn(&old[at], &d) {
			have = &old[at]
		}
		c := cells.Cell{Row: row, Family: d.Family, Qualifier: d.Qualifier, Type: cells.Put, Timestamp: d.Timestamp, Tags: d.Tags}
		if op.Kind == Increment {
			c.Value, err = sum(have, &d)
		} else {
			c.Value = d.Value
			if have != nil {
				c.Value = slices.Concat(have.Value, d.Value)
			}
			if len(c.Value) > len(d.Value) {
				err = checkCellSize(w.schema, row, &c)
			}
		}
		if err != nil {
			return err
		}
		if have != nil {
			c.Timestamp = max(w.now, have.Timestamp+1)
			c.Tags = slices.Concat(d.Tags, have.Tags)
		} else if c.Timestamp == cells.LatestTimestamp {
			c.Timestamp = w.now
		}
		w.add(row, c, op.TTL)
		if !op.NoResult {
			w.answer = append(w.answer, w.cells[len(w.cells)-1])
		}
	}
	return nil
}

func before(a, b *cells.Cell) bool {
	if c := bytes.Compare(a.Family, b.Family); c != 0 {
		return c < 0
	}
	return bytes.Compare(a.Qualifier, b.Qualifier) < 0
}

func sum(have, delta *cells.Cell) ([]byte, error) {
	n, err := long(delta.Value)
	if err != nil {
		return nil, err
	}
	if have != nil {
		m, err := long(have.Value)
		if err != nil {
			return nil, err
		}
		n += m // wraps, as in HBase
	}
	return binary.BigEndian.AppendUint64(nil, uint64(n)), nil
}

func long(value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, cells.DoNotRetry("Field is not a long, it's " + strconv.Itoa(len(value)) + " bytes wide")
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}
