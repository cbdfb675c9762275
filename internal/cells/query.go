package cells

import (
	"bytes"
	"math"
	"slices"
	"strconv"
)

// TimeRange is [Min, Max) in milliseconds, neither negative.
type TimeRange struct{ Min, Max int64 }

// AllTime holds every timestamp.
var AllTime = TimeRange{0, math.MaxInt64}

// NewTimeRange checks the bounds as HBase does.
func NewTimeRange(minimum, maximum int64) (TimeRange, error) {
	if minimum < 0 || maximum < 0 {
		return TimeRange{}, IOException("Timestamp cannot be negative. minStamp:" + strconv.FormatInt(minimum, 10) + ", maxStamp:" + strconv.FormatInt(maximum, 10))
	}
	if maximum < minimum {
		return TimeRange{}, IOException("maxStamp is smaller than minStamp")
	}
	return TimeRange{minimum, maximum}, nil
}

// All says whether the range excludes nothing.
func (r TimeRange) All() bool { return r.Min <= 0 && r.Max == math.MaxInt64 }

// compare says whether ts lies before (-1), in (0) or after (1) the range.
func (r TimeRange) compare(ts int64) int {
	switch {
	case r.All():
		return 0
	case ts < r.Min:
		return -1
	case ts >= r.Max:
		return 1
	}
	return 0
}

// Columns asks for a family, whole or in part.
type Columns struct {
	Family []byte
	// Qualifiers wanted; nil means all. An empty qualifier is a qualifier.
	Qualifiers [][]byte
}

// Query says which cells of a row are wanted. The zero value plus
// MaxVersions=1, Range=AllTime, StoreLimit=NoLimit is HBase's plain Get:
// see NewQuery.
//
// A query belongs to one read at a time, since its filter has state.
type Query struct {
	// Columns in any order; none means every family. AddFamily and AddColumn
	// keep them in order and free of repetition.
	Columns []Columns
	// MaxVersions per column. The family's own setting caps it except in a raw
	// read; 0 or less finds nothing.
	MaxVersions int
	// Range of timestamps; FamilyRanges override it for the families named.
	Range        TimeRange
	FamilyRanges map[string]TimeRange
	// StoreLimit and StoreOffset count cells per row and family; a limit below
	// 0 (NoLimit) is none, and 0 acts like 1, as in HBase.
	StoreLimit  int
	StoreOffset int
	// Raw returns delete markers and what they hide.
	Raw bool
	// Uncommitted also sees writes that are not finished (isolation level
	// READ_UNCOMMITTED).
	Uncommitted bool
	// Filter or nil.
	Filter Filter
}

// NoLimit is the StoreLimit of a query without one.
const NoLimit = -1

// NewQuery is a query for the newest version of everything.
func NewQuery() *Query {
	return &Query{MaxVersions: 1, Range: AllTime, StoreLimit: NoLimit}
}

// AddFamily asks for every column of a family.
func (q *Query) AddFamily(family []byte) *Query {
	at, found := q.find(family)
	if !found {
		q.Columns = slices.Insert(q.Columns, at, Columns{Family: family})
	} else {
		q.Columns[at].Qualifiers = nil
	}
	return q
}

// AddColumn asks for one column (beside others asked for in its family).
func (q *Query) AddColumn(family, qualifier []byte) *Query {
	if qualifier == nil {
		qualifier = []byte{}
	}
	at, found := q.find(family)
	if !found {
		q.Columns = slices.Insert(q.Columns, at, Columns{Family: family, Qualifiers: [][]byte{qualifier}})
		return q
	}
	c := &q.Columns[at]
	if i, found := slices.BinarySearchFunc(c.Qualifiers, qualifier, bytes.Compare); !found {
		c.Qualifiers = slices.Insert(c.Qualifiers, i, qualifier)
	}
	return q
}

func (q *Query) find(family []byte) (int, bool) {
	return slices.BinarySearchFunc(q.Columns, family, func(c Columns, f []byte) int { return bytes.Compare(c.Family, f) })
}

// SetFamilyRange overrides the time range of one family.
func (q *Query) SetFamilyRange(family []byte, r TimeRange) *Query {
	if q.FamilyRanges == nil {
		q.FamilyRanges = make(map[string]TimeRange)
	}
	q.FamilyRanges[string(family)] = r
	return q
}

// Validate refuses what HBase refuses: a family the table does not have, and
// columns in a raw read.
func (q *Query) Validate(s *Schema) error {
	for i := range q.Columns {
		c := &q.Columns[i]
		if s.Family(c.Family) == nil {
			return NoSuchFamily(c.Family)
		}
		if q.Raw && len(c.Qualifiers) > 0 {
			return DoNotRetry("Cannot specify any column for a raw scan")
		}
	}
	return nil
}

// ScanSpec is a query over a range of rows.
type ScanSpec struct {
	// Start and Stop in scan direction; empty means open. Reversed scans run
	// from the larger Start down to Stop.
	Start, Stop               []byte
	IncludeStart, IncludeStop bool
	Reversed                  bool
	// Lower (inclusive) and Upper (exclusive) clip the scan to a region; empty
	// means open.
	Lower, Upper []byte
	// LoadAll is load_column_families_on_demand=false: families the filter does
	// not need are read all the same. Results do not depend on it, but without
	// it HBase (and so we) refuse reversed scans that would have to.
	LoadAll bool
	*Query
}

// RowSpec is the scan of exactly one row.
func RowSpec(row []byte, q *Query) *ScanSpec {
	return &ScanSpec{Start: row, Stop: row, IncludeStart: true, IncludeStop: true, Query: q}
}
