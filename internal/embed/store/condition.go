package store

import (
	"bytes"
	"math"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

func (c *Condition) validate(schema *cells.Schema) error {
	if c.Row != nil {
		if err := validRow(c.Row); err != nil {
			return err
		}
	}
	if c.Filter != nil && len(c.Family) == 0 {
		return nil
	}
	if schema.Family(c.Family) == nil {
		return cells.NoSuchFamily(c.Family)
	}
	return nil
}

// holds reads what the condition is about and judges it. ts is the timestamp
// of the cell that decided, MinInt64 if there was none. The row is locked.
func (t *Table) holds(schema *cells.Schema, row []byte, c *Condition) (holds bool, ts int64, err error) {
	q := cells.NewQuery()
	q.Filter = c.Filter
	if c.Range != (cells.TimeRange{}) {
		q.Range = c.Range
	}
	if len(c.Family) > 0 {
		q.AddColumn(c.Family, c.Qualifier)
	}
	got, err := t.read(schema, row, q, math.MaxUint64, t.s.now())
	if err != nil {
		return false, 0, err
	}
	ts = math.MinInt64
	if len(got) > 0 {
		ts = got[0].Timestamp
	}
	if c.Filter != nil {
		return len(got) > 0, ts, nil
	}
	switch {
	case len(c.Value) == 0 && len(got) == 0:
		return c.Op != NotEqual, ts, nil
	case len(c.Value) == 0:
		// Of the operators only "not equal" is looked at (L6).
		return (len(got[0].Value) == 0) == (c.Op != NotEqual), ts, nil
	case len(got) == 0:
		return false, ts, nil
	}
	holds, err = c.Op.matches(bytes.Compare(c.Value, got[0].Value))
	return holds, ts, err
}

// matches tests the outcome of comparing expected with stored.
func (op CompareOp) matches(cmp int) (bool, error) {
	switch op {
	case Less:
		return cmp < 0, nil
	case LessOrEqual:
		return cmp <= 0, nil
	case Equal:
		return cmp == 0, nil
	case NotEqual:
		return cmp != 0, nil
	case GreaterOrEqual:
		return cmp >= 0, nil
	case Greater:
		return cmp > 0, nil
	}
	return false, cells.IOException("Unknown Compare op NO_OP")
}
