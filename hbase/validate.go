package hbase

import (
	"bytes"
	"fmt"
	"math"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Everything here runs before anything is sent, so that a bad request costs no
// round trip, and so that old servers, which answer some of these with a
// retriable exception, are not asked at all.

// errRow is how errors name rows: quoted, cut.
func errRow(row []byte) string { return `row "` + cells.QuoteShort(row, 64) + `"` }

func checkRow(op string, row []byte) error {
	switch {
	case len(row) == 0:
		return invalid(op, "row", "is empty")
	case len(row) > cells.MaxRowLength:
		return invalid(op, errRow(row), fmt.Sprintf("is longer than %d bytes", cells.MaxRowLength))
	}
	return nil
}

// checkFamily applies HBase's rules for names of families to a family that is
// used; an existing table can have no other.
func checkFamily(op string, family []byte) error {
	// Quoted only for an error: this is asked for every cell that is written.
	object := func() string { return `family "` + cells.QuoteShort(family, 64) + `"` }
	switch {
	case len(family) == 0:
		return invalid(op, "family", "is empty")
	case len(family) > cells.MaxFamilyLength:
		return invalid(op, object(), fmt.Sprintf("is longer than %d bytes", cells.MaxFamilyLength))
	case family[0] == '.':
		return invalid(op, object(), "starts with a dot")
	}
	for _, b := range family {
		if b < ' ' || b == 0x7F || b == ':' || b == '/' || b == '\\' {
			return invalid(op, object(), fmt.Sprintf("holds %q; control characters, : / and \\ are not allowed", rune(b)))
		}
	}
	return nil
}

func checkColumns(op string, cols []Column) error {
	for i := range cols {
		if err := checkFamily(op, cols[i].Family); err != nil {
			return err
		}
	}
	return nil
}

func checkTimeRange(op, what string, r TimeRange) error {
	switch {
	case r.From < 0 || r.To < 0:
		return invalid(op, what, fmt.Sprintf("%v has a negative bound", r))
	case r.To < r.From:
		return invalid(op, what, fmt.Sprintf("%v ends before it begins", r))
	}
	return nil
}

func checkTimeRanges(op string, r TimeRange, byFamily map[string]TimeRange) error {
	if err := checkTimeRange(op, "time range", r); err != nil {
		return err
	}
	for f, fr := range byFamily {
		if err := checkFamily(op, []byte(f)); err != nil {
			return err
		}
		if err := checkTimeRange(op, "time range of family "+f, fr); err != nil {
			return err
		}
	}
	return nil
}

func checkCount(op, what string, n int) error {
	if n < 0 || int64(n) > math.MaxInt32 {
		return invalid(op, what, fmt.Sprintf("%d is not between 0 and %d", n, math.MaxInt32))
	}
	return nil
}

func checkGet(op string, g *Get) error {
	if g == nil {
		return invalid(op, "get", "is nil")
	}
	if err := checkRow(op, g.Row); err != nil {
		return err
	}
	if err := checkColumns(op, g.Columns); err != nil {
		return err
	}
	if err := checkQuerySecurity(op, g.ACL, g.Authorizations); err != nil {
		return err
	}
	if err := checkTimeRanges(op, g.TimeRange, g.FamilyTimeRange); err != nil {
		return err
	}
	if err := checkCount(op, "max versions", g.MaxVersions); err != nil {
		return err
	}
	if err := checkCount(op, "max per family", g.MaxPerFamily); err != nil {
		return err
	}
	if err := checkReplica(op, g.Consistency, g.ReplicaID); err != nil {
		return err
	}
	return checkCount(op, "offset per family", g.OffsetPerFamily)
}

// checkReplica: HBase names replicas with four hex digits. A strong read of a
// chosen replica would not be what it says.
func checkReplica(op string, c Consistency, id int) error {
	switch {
	case id < 0 || id > 0xFFFF:
		return invalid(op, "replica id", fmt.Sprintf("%d is not between 0 and 65535", id))
	case id > 0 && c != Timeline:
		return invalid(op, "replica id", "needs Consistency Timeline")
	}
	return nil
}

func checkScan(s *Scan) error {
	const op = "scan"
	if len(s.Start) > cells.MaxRowLength+1 || len(s.Stop) > cells.MaxRowLength+1 {
		return invalid(op, "bounds", fmt.Sprintf("a row is at most %d bytes", cells.MaxRowLength))
	}
	if err := checkColumns(op, s.Columns); err != nil {
		return err
	}
	if err := checkTimeRanges(op, s.TimeRange, s.FamilyTimeRange); err != nil {
		return err
	}
	for _, n := range []struct {
		what string
		n    int
	}{
		{"max versions", s.MaxVersions}, {"max per family", s.MaxPerFamily}, {"offset per family", s.OffsetPerFamily},
		{"limit", s.Limit}, {"batch", s.Batch}, {"caching", s.Caching},
	} {
		if err := checkCount(op, n.what, n.n); err != nil {
			return err
		}
	}
	if err := checkReplica(op, s.Consistency, s.ReplicaID); err != nil {
		return err
	}
	if err := checkQuerySecurity(op, s.ACL, s.Authorizations); err != nil {
		return err
	}
	if s.Prefetch > PrefetchNever {
		return invalid(op, "prefetch", s.Prefetch.String()+" is unknown")
	}
	if s.MaxResultSize < 0 {
		return invalid(op, "max result size", fmt.Sprintf("%d is negative", s.MaxResultSize))
	}
	if s.Batch > 0 && s.AllowPartial {
		return invalid(op, "batch", "does not go with AllowPartial")
	}
	if s.Batch > 0 {
		if f, ok := s.Filter.(interface{ FiltersRows() bool }); ok && f.FiltersRows() {
			return invalid(op, "batch", "does not go with a filter that judges whole rows ("+s.Filter.Name()+")")
		}
	}
	return nil
}

// checkMutation checks one mutation on its own.
func (t *Table) checkMutation(op string, m Mutation) error {
	if isNilMutation(m) {
		return invalid(op, "mutation", "is nil")
	}
	mu := m.mutation()
	if err := checkRow(op, mu.row); err != nil {
		return err
	}
	_, isDelete := m.(*Delete)
	if len(mu.cells) == 0 && !isDelete {
		return invalid(op, errRow(mu.row), "has no cells")
	}
	if err := checkMutationSecurity(op, m.options()); err != nil {
		return err
	}
	if ttl := m.options().TTL; ttl < 0 {
		return invalid(op, errRow(mu.row), fmt.Sprintf("TTL %v is negative", ttl))
	} else if ttl > 0 && isDelete {
		return invalid(op, errRow(mu.row), "a Delete takes no TTL")
	}
	if mu.timestamp < 0 {
		return invalid(op, errRow(mu.row), fmt.Sprintf("timestamp %d is negative", mu.timestamp))
	}
	for i := range mu.cells {
		c := &mu.cells[i]
		if err := checkFamily(op, c.Family); err != nil {
			return err
		}
		if c.Timestamp < 0 {
			return invalid(op, cellName(c), fmt.Sprintf("timestamp %d is negative", c.Timestamp))
		}
		if isDelete != c.Type.IsDelete() {
			return invalid(op, cellName(c), "has type "+c.Type.String())
		}
		if limit := t.c.cfg.MaxCellSize; limit > 0 && c.HeapSize() > limit {
			return invalid(op, cellName(c), fmt.Sprintf("is %d bytes, the limit is %d", c.HeapSize(), limit))
		}
		if _, ok := m.(*Increment); ok && len(c.Value) != 8 {
			return invalid(op, cellName(c), fmt.Sprintf("amount is %d bytes wide, not 8", len(c.Value)))
		}
	}
	switch m := m.(type) {
	case *Increment:
		return checkTimeRange(op, "time range", m.TimeRange)
	case *Append:
		return checkTimeRange(op, "time range", m.TimeRange)
	}
	return nil
}

func cellName(c *Cell) string {
	return `cell "` + cells.QuoteShort(c.Row, 64) + "/" + cells.QuoteShort(c.Family, 64) + ":" + cells.QuoteShort(c.Qualifier, 64) + `"`
}

func isNilMutation(m Mutation) bool {
	switch m := m.(type) {
	case nil:
		return true
	case *Put:
		return m == nil
	case *Delete:
		return m == nil
	case *Increment:
		return m == nil
	case *Append:
		return m == nil
	}
	return false
}

func (t *Table) checkRowMutations(op string, r *RowMutations) error {
	if r == nil {
		return invalid(op, "row mutations", "are nil")
	}
	if err := checkRow(op, r.Row); err != nil {
		return err
	}
	if len(r.Mutations) == 0 {
		return invalid(op, errRow(r.Row), "has no mutations")
	}
	for i, m := range r.Mutations {
		if err := t.checkMutation(op, m); err != nil {
			return err
		}
		if !bytes.Equal(m.RowKey(), r.Row) {
			return invalid(op, fmt.Sprintf("mutation %d", i), fmt.Sprintf("is of %s, not of %s", errRow(m.RowKey()), errRow(r.Row)))
		}
	}
	return nil
}

func (t *Table) checkCheck(op string, c *CheckAndMutate) error {
	if c == nil {
		return invalid(op, "check", "is nil")
	}
	if err := checkRow(op, c.Row); err != nil {
		return err
	}
	if c.conditions > 1 || (c.Filter != nil && c.Family != nil) {
		return invalid(op, "condition", "is set more than once")
	}
	if c.Filter == nil {
		if c.Family == nil {
			return invalid(op, "condition", "is missing")
		}
		if err := checkFamily(op, c.Family); err != nil {
			return err
		}
		if c.Op > Greater {
			return invalid(op, "condition", "has operator "+c.Op.String())
		}
	}
	if err := checkTimeRange(op, "time range", c.TimeRange); err != nil {
		return err
	}
	switch a := c.Action.(type) {
	case nil:
		return invalid(op, "action", "is missing")
	case *RowMutations:
		if err := t.checkRowMutations(op, a); err != nil {
			return err
		}
	case Mutation:
		if err := t.checkMutation(op, a); err != nil {
			return err
		}
	}
	if row := c.Action.RowKey(); !bytes.Equal(row, c.Row) {
		return invalid(op, "action", fmt.Sprintf("is of %s, the condition of %s", errRow(row), errRow(c.Row)))
	}
	return nil
}

func invalid(op, object, reason string) error {
	return &InvalidError{Op: op, Object: object, Reason: reason}
}
