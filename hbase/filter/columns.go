package filter

import (
	"bytes"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// KeyOnlyFilter empties all values, or replaces them by their lengths.
type KeyOnlyFilter struct {
	byCells
	// LengthAsValue puts the value's length in its place, 4 bytes big-endian.
	LengthAsValue bool
}

// KeyOnly empties all values.
func KeyOnly() *KeyOnlyFilter { return &KeyOnlyFilter{} }

// KeyAndLength replaces values by their lengths, as 4 bytes big-endian.
func KeyAndLength() *KeyOnlyFilter { return &KeyOnlyFilter{LengthAsValue: true} }

// Name is the full Java class name.
func (f *KeyOnlyFilter) Name() string { return javaPackage + "KeyOnlyFilter" }

// Marshal gives the protobuf bytes.
func (f *KeyOnlyFilter) Marshal() ([]byte, error) {
	return pack("KeyOnlyFilter", &pb.KeyOnlyFilter{LenAsVal: &f.LengthAsValue}, nil)
}

// String is the filter in the filter language; see [Format].
func (f *KeyOnlyFilter) String() string { return text(f) }

// FirstKeyOnlyFilter keeps the first cell of each row.
type FirstKeyOnlyFilter struct{ byCells }

// FirstKeyOnly keeps the first cell of each row: the cheap way to count rows.
func FirstKeyOnly() *FirstKeyOnlyFilter { return &FirstKeyOnlyFilter{} }

// Name is the full Java class name.
func (f *FirstKeyOnlyFilter) Name() string { return javaPackage + "FirstKeyOnlyFilter" }

// Marshal gives the protobuf bytes.
func (f *FirstKeyOnlyFilter) Marshal() ([]byte, error) {
	return pack("FirstKeyOnlyFilter", &pb.FirstKeyOnlyFilter{}, nil)
}

// String is the filter in the filter language; see [Format].
func (f *FirstKeyOnlyFilter) String() string { return text(f) }

// FirstKeyValueMatchingQualifiersFilter keeps the cells of a row up to and
// including the first with one of the qualifiers. HBase has it for old
// programs and calls it deprecated.
type FirstKeyValueMatchingQualifiersFilter struct {
	byCells
	Qualifiers [][]byte
}

// FirstMatchingQualifiers keeps the cells of a row up to the first with one of
// the qualifiers; see [FirstKeyValueMatchingQualifiersFilter].
func FirstMatchingQualifiers[B Bytes](qualifiers ...B) *FirstKeyValueMatchingQualifiersFilter {
	return &FirstKeyValueMatchingQualifiersFilter{Qualifiers: byteSlices(qualifiers)}
}

// Name is the full Java class name.
func (f *FirstKeyValueMatchingQualifiersFilter) Name() string {
	return javaPackage + "FirstKeyValueMatchingQualifiersFilter"
}

// Marshal gives the protobuf bytes: the qualifiers sorted, each once.
func (f *FirstKeyValueMatchingQualifiersFilter) Marshal() ([]byte, error) {
	m := &pb.FirstKeyValueMatchingQualifiersFilter{Qualifiers: sorted(f.Qualifiers)}
	m.Qualifiers = slices.CompactFunc(m.Qualifiers, bytes.Equal)
	return pack("FirstKeyValueMatchingQualifiersFilter", m, nil)
}

// String names the class and the qualifiers.
func (f *FirstKeyValueMatchingQualifiersFilter) String() string { return text(f) }

// ColumnCountGetFilter keeps the first Limit columns of a row, the newest
// version of each. Limit must not be negative.
type ColumnCountGetFilter struct {
	byCells
	Limit int32
}

// ColumnCountGet keeps the first limit columns of a row. It is meant for Get: a
// Scan ends at the first row with more columns.
func ColumnCountGet(limit int32) *ColumnCountGetFilter { return &ColumnCountGetFilter{Limit: limit} }

// Name is the full Java class name.
func (f *ColumnCountGetFilter) Name() string { return javaPackage + "ColumnCountGetFilter" }

// Marshal gives the protobuf bytes.
func (f *ColumnCountGetFilter) Marshal() ([]byte, error) {
	var err error
	if f.Limit < 0 {
		err = invalid("ColumnCountGetFilter", "limit be positive %d", f.Limit)
	}
	return pack("ColumnCountGetFilter", &pb.ColumnCountGetFilter{Limit: &f.Limit}, err)
}

// String is the filter in the filter language; see [Format].
func (f *ColumnCountGetFilter) String() string { return text(f) }

// ColumnPaginationFilter keeps Limit columns per row, the newest version of
// each, counted over all families of the row in order.
type ColumnPaginationFilter struct {
	byCells
	Limit int32
	// Offset is how many columns are skipped first.
	Offset int32
	// From, if not nil, takes the place of Offset: the qualifier of the first
	// column to keep. Families behind the one it is found in are kept from
	// their first column on.
	From []byte
}

// ColumnPagination keeps limit columns per row after skipping offset. Neither
// may be negative.
func ColumnPagination(limit, offset int32) *ColumnPaginationFilter {
	return &ColumnPaginationFilter{Limit: limit, Offset: offset}
}

// ColumnPaginationFrom keeps limit columns per row from a qualifier on.
func ColumnPaginationFrom[B Bytes](limit int32, qualifier B) *ColumnPaginationFilter {
	return &ColumnPaginationFilter{Limit: limit, From: set([]byte(qualifier))}
}

// Name is the full Java class name.
func (f *ColumnPaginationFilter) Name() string { return javaPackage + "ColumnPaginationFilter" }

// Marshal gives the protobuf bytes.
func (f *ColumnPaginationFilter) Marshal() ([]byte, error) {
	m := &pb.ColumnPaginationFilter{Limit: &f.Limit}
	if f.From != nil {
		m.ColumnOffset = f.From
	} else {
		m.Offset = &f.Offset
	}
	var err error
	switch {
	case f.Limit < 0:
		err = invalid("ColumnPaginationFilter", "limit must be positive %d", f.Limit)
	case f.From == nil && f.Offset < 0:
		err = invalid("ColumnPaginationFilter", "offset must be positive %d", f.Offset)
	}
	return pack("ColumnPaginationFilter", m, err)
}

// String is the filter in the filter language; see [Format].
func (f *ColumnPaginationFilter) String() string { return text(f) }

// ColumnPrefixFilter keeps columns whose qualifier begins with Prefix.
type ColumnPrefixFilter struct {
	byCells
	Prefix []byte
}

// ColumnPrefix keeps columns whose qualifier begins with prefix.
func ColumnPrefix[B Bytes](prefix B) *ColumnPrefixFilter {
	return &ColumnPrefixFilter{Prefix: []byte(prefix)}
}

// Name is the full Java class name.
func (f *ColumnPrefixFilter) Name() string { return javaPackage + "ColumnPrefixFilter" }

// Marshal gives the protobuf bytes.
func (f *ColumnPrefixFilter) Marshal() ([]byte, error) {
	return pack("ColumnPrefixFilter", &pb.ColumnPrefixFilter{Prefix: set(f.Prefix)}, nil)
}

// String is the filter in the filter language; see [Format].
func (f *ColumnPrefixFilter) String() string { return text(f) }

// MultipleColumnPrefixFilter keeps columns whose qualifier begins with any of
// the prefixes, all if there are none. No prefix may be given twice. When one
// begins another (b and b1), HBase loses columns that match only the shorter
// and come behind those of the longer (b2): use Or of [ColumnPrefix] then.
type MultipleColumnPrefixFilter struct {
	byCells
	Prefixes [][]byte
}

// MultipleColumnPrefix keeps columns whose qualifier begins with any of the
// prefixes, in any order.
func MultipleColumnPrefix[B Bytes](prefixes ...B) *MultipleColumnPrefixFilter {
	return &MultipleColumnPrefixFilter{Prefixes: byteSlices(prefixes)}
}

// Name is the full Java class name.
func (f *MultipleColumnPrefixFilter) Name() string {
	return javaPackage + "MultipleColumnPrefixFilter"
}

// Marshal gives the protobuf bytes: the prefixes sorted.
func (f *MultipleColumnPrefixFilter) Marshal() ([]byte, error) {
	m := &pb.MultipleColumnPrefixFilter{SortedPrefixes: sorted(f.Prefixes)}
	var err error
	for i := 1; i < len(m.SortedPrefixes); i++ {
		if bytes.Equal(m.SortedPrefixes[i-1], m.SortedPrefixes[i]) {
			err = invalid("MultipleColumnPrefixFilter", "prefixes must be distinct")
		}
	}
	return pack("MultipleColumnPrefixFilter", m, err)
}

// String is the filter in the filter language; see [Format].
func (f *MultipleColumnPrefixFilter) String() string { return text(f) }

// ColumnRangeFilter keeps columns whose qualifier lies between two bounds, in
// each family. A nil bound is open; an empty one that is not nil is a bound
// like any other, so that an empty Max keeps at most the empty qualifier.
type ColumnRangeFilter struct {
	byCells
	Min, Max                   []byte
	MinInclusive, MaxInclusive bool
}

// ColumnRange keeps columns whose qualifier lies between two bounds, each
// included or not. An empty bound is open.
func ColumnRange[B Bytes](min B, minInclusive bool, max B, maxInclusive bool) *ColumnRangeFilter {
	f := &ColumnRangeFilter{MinInclusive: minInclusive, MaxInclusive: maxInclusive}
	if len(min) > 0 {
		f.Min = []byte(min)
	}
	if len(max) > 0 {
		f.Max = []byte(max)
	}
	return f
}

// Name is the full Java class name.
func (f *ColumnRangeFilter) Name() string { return javaPackage + "ColumnRangeFilter" }

// Marshal gives the protobuf bytes.
func (f *ColumnRangeFilter) Marshal() ([]byte, error) {
	return pack("ColumnRangeFilter", &pb.ColumnRangeFilter{
		MinColumn: f.Min, MinColumnInclusive: &f.MinInclusive,
		MaxColumn: f.Max, MaxColumnInclusive: &f.MaxInclusive,
	}, nil)
}

// String is the filter in the filter language; see [Format].
func (f *ColumnRangeFilter) String() string { return text(f) }

// TimestampsFilter keeps cells with one of the timestamps, in ms, among the
// versions the family keeps. None keeps nothing; none may be negative.
type TimestampsFilter struct {
	byCells
	Timestamps []int64
	// CanHint lets the server jump to the next timestamp instead of reading up
	// to it. That pays if few of many versions are wanted; with it deletes
	// made later than those timestamps may be overlooked.
	CanHint bool
}

// Timestamps keeps cells with one of the timestamps, in ms.
func Timestamps(timestamps ...int64) *TimestampsFilter {
	return &TimestampsFilter{Timestamps: timestamps}
}

// Name is the full Java class name.
func (f *TimestampsFilter) Name() string { return javaPackage + "TimestampsFilter" }

// Marshal gives the protobuf bytes: the timestamps sorted, each once.
func (f *TimestampsFilter) Marshal() ([]byte, error) {
	ts := slices.Clone(f.Timestamps)
	slices.Sort(ts)
	ts = slices.Compact(ts)
	var err error
	if len(ts) > 0 && ts[0] < 0 {
		err = invalid("TimestampsFilter", "must be positive %d", ts[0])
	}
	return pack("TimestampsFilter", &pb.TimestampsFilter{Timestamps: ts, CanHint: &f.CanHint}, err)
}

// String is the filter in the filter language; see [Format].
func (f *TimestampsFilter) String() string { return text(f) }

func byteSlices[B Bytes](list []B) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = []byte(b)
	}
	return out
}

// sorted gives the byte slices in byte order, none of them nil.
func sorted(list [][]byte) [][]byte {
	out := make([][]byte, len(list))
	for i, b := range list {
		out[i] = set(b)
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}
