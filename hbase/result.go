package hbase

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Result is what a read found of one row. The bytes belong to the caller; all
// results of one answer share a buffer, so keep a [Result.Clone] if you keep
// few of many. With [Scan.ReuseResults] they are valid only until the next
// result is asked for.
type Result struct {
	// Row is the row key; nil if nothing was found.
	Row []byte
	// Cells in HBase's order: family, qualifier, newest first.
	Cells []Cell
	// Partial says that more cells of the row may follow in the next result
	// (scans with AllowPartial or Batch only).
	Partial bool
	// Stale says that a replica answered.
	Stale bool
	// Cursor marks a result that only tells how far a scan has got: Row is
	// set, Cells are not (scans with NeedCursor only).
	Cursor bool
	// Exists says whether there are cells (Gets with ExistenceOnly only, whose
	// results hold none).
	Exists bool
	// BlockBytesScanned is how many bytes of blocks the server went through for
	// it, if it was asked to say (QueryMetrics); 0 otherwise.
	BlockBytesScanned uint64
}

// Empty says whether nothing was found.
func (r *Result) Empty() bool { return r == nil || len(r.Cells) == 0 }

// Cell gives the newest cell of a column.
func (r *Result) Cell(family, qualifier string) (Cell, bool) {
	if r != nil {
		for i := range r.Cells {
			if c := &r.Cells[i]; string(c.Qualifier) == qualifier && string(c.Family) == family {
				return *c, true
			}
		}
	}
	return Cell{}, false
}

// Value gives the newest value of a column, nil if there is none. An empty
// value is not nil.
func (r *Result) Value(family, qualifier string) []byte {
	c, ok := r.Cell(family, qualifier)
	if !ok {
		return nil
	}
	if c.Value == nil {
		return []byte{}
	}
	return c.Value
}

// Has says whether the column was found.
func (r *Result) Has(family, qualifier string) bool {
	_, ok := r.Cell(family, qualifier)
	return ok
}

// Int64 reads the newest value of a column as a counter; ok is false if the
// column is missing or not 8 bytes wide.
func (r *Result) Int64(family, qualifier string) (n int64, ok bool) {
	c, ok := r.Cell(family, qualifier)
	if !ok || len(c.Value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(c.Value)), true
}

// Versions gives all cells of a column, newest first.
func (r *Result) Versions(family, qualifier string) []Cell {
	if r == nil {
		return nil
	}
	var out []Cell
	for _, c := range r.Cells {
		if string(c.Qualifier) == qualifier && string(c.Family) == family {
			out = append(out, c)
		}
	}
	return out
}

// Family gives the newest values of one family by qualifier.
func (r *Result) Family(family string) map[string][]byte {
	out := map[string][]byte{}
	if r == nil {
		return out
	}
	for _, c := range r.Cells {
		if string(c.Family) != family {
			continue
		}
		if _, seen := out[string(c.Qualifier)]; !seen {
			out[string(c.Qualifier)] = c.Value
		}
	}
	return out
}

// Map gives the newest values by family and qualifier.
func (r *Result) Map() map[string]map[string][]byte {
	out := map[string]map[string][]byte{}
	if r == nil {
		return out
	}
	for _, c := range r.Cells {
		f := out[string(c.Family)]
		if f == nil {
			f = map[string][]byte{}
			out[string(c.Family)] = f
		}
		if _, seen := f[string(c.Qualifier)]; !seen {
			f[string(c.Qualifier)] = c.Value
		}
	}
	return out
}

// Size is the number of bytes the cells count for in HBase's size limits.
func (r *Result) Size() int {
	n := 0
	if r != nil {
		for i := range r.Cells {
			n += r.Cells[i].HeapSize()
		}
	}
	return n
}

// Clone copies the result out of the buffer it shares with its neighbours.
func (r *Result) Clone() *Result {
	if r == nil {
		return nil
	}
	d := *r
	d.Row = append([]byte(nil), r.Row...)
	d.Cells = make([]Cell, len(r.Cells))
	for i := range r.Cells {
		d.Cells[i] = r.Cells[i].Clone()
	}
	return &d
}

// String prints row and coordinates, not values.
func (r *Result) String() string {
	if r == nil || (r.Row == nil && len(r.Cells) == 0) {
		return "keyvalues=NONE"
	}
	var b strings.Builder
	b.WriteString("keyvalues={")
	for i := range r.Cells {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.Cells[i].String())
	}
	b.WriteString("}")
	return b.String()
}

// Outcome is what became of one operation of a batch.
type Outcome struct {
	// Result holds what a Get found or an Increment or Append made; empty for
	// Puts and Deletes; nil if Err is set.
	Result *Result
	// Applied is false only for a CheckAndMutate whose condition did not hold,
	// and when Err is set.
	Applied bool
	// Err is nil if the operation succeeded.
	Err error
}

// Outcomes has one entry per operation of a batch, in the batch's order.
type Outcomes []Outcome

// Err joins the errors, each with its position; nil if all succeeded.
func (o Outcomes) Err() error {
	var errs []error
	for i := range o {
		if o[i].Err != nil {
			errs = append(errs, &ItemError{Index: i, Err: o[i].Err})
		}
	}
	return errors.Join(errs...)
}

// Failed gives the positions of the operations that failed.
func (o Outcomes) Failed() []int {
	var at []int
	for i := range o {
		if o[i].Err != nil {
			at = append(at, i)
		}
	}
	return at
}

// ItemError is the error of one operation of a batch.
type ItemError struct {
	Index int
	Err   error
}

// Error names the position.
func (e *ItemError) Error() string { return fmt.Sprintf("item %d: %v", e.Index, e.Err) }

// Unwrap gives the cause.
func (e *ItemError) Unwrap() error { return e.Err }
