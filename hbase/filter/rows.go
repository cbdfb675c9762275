package filter

import (
	"bytes"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// PrefixFilter keeps rows that begin with Prefix, and ends the scan behind
// them. It does not move the start of the scan.
type PrefixFilter struct {
	byCells
	Prefix []byte
}

// Prefix keeps rows that begin with prefix. A scan should also start there
// (hbase.NewScanPrefix does it without a filter).
func Prefix[B Bytes](prefix B) *PrefixFilter { return &PrefixFilter{Prefix: []byte(prefix)} }

// Name is the full Java class name.
func (f *PrefixFilter) Name() string { return javaPackage + "PrefixFilter" }

// Marshal gives the protobuf bytes.
func (f *PrefixFilter) Marshal() ([]byte, error) {
	return pack("PrefixFilter", &pb.PrefixFilter{Prefix: set(f.Prefix)}, nil)
}

// String is the filter in the filter language; see [Format].
func (f *PrefixFilter) String() string { return text(f) }

// InclusiveStopFilter ends the scan behind Row, which is included; in a
// reversed scan likewise.
type InclusiveStopFilter struct {
	byCells
	Row []byte
}

// InclusiveStop ends the scan behind row. A scan with an inclusive stop row
// does the same without a filter.
func InclusiveStop[B Bytes](row B) *InclusiveStopFilter {
	return &InclusiveStopFilter{Row: []byte(row)}
}

// Name is the full Java class name.
func (f *InclusiveStopFilter) Name() string { return javaPackage + "InclusiveStopFilter" }

// Marshal gives the protobuf bytes.
func (f *InclusiveStopFilter) Marshal() ([]byte, error) {
	return pack("InclusiveStopFilter", &pb.InclusiveStopFilter{StopRowKey: set(f.Row)}, nil)
}

// String is the filter in the filter language; see [Format].
func (f *InclusiveStopFilter) String() string { return text(f) }

// PageFilter ends the scan of each region after Size rows that came through
// with at least one cell. Size must not be negative.
type PageFilter struct {
	byRows
	Size int64
}

// Page ends the scan of each region after n rows. Regions count for
// themselves, and so does a scan that resumes after a failure: use Scan.Limit
// for "n rows in all".
func Page(n int64) *PageFilter { return &PageFilter{Size: n} }

// Name is the full Java class name.
func (f *PageFilter) Name() string { return javaPackage + "PageFilter" }

// Marshal gives the protobuf bytes.
func (f *PageFilter) Marshal() ([]byte, error) {
	var err error
	if f.Size < 0 {
		err = invalid("PageFilter", "must be positive %d", f.Size)
	}
	return pack("PageFilter", &pb.PageFilter{PageSize: &f.Size}, err)
}

// String is the filter in the filter language; see [Format].
func (f *PageFilter) String() string { return text(f) }

// RandomRowFilter keeps each row with probability Chance: none for 0 or less,
// all for 1 or more.
type RandomRowFilter struct {
	byRows
	Chance float32
}

// RandomRow keeps each row with probability chance, 0 to 1.
func RandomRow(chance float32) *RandomRowFilter { return &RandomRowFilter{Chance: chance} }

// Name is the full Java class name.
func (f *RandomRowFilter) Name() string { return javaPackage + "RandomRowFilter" }

// Marshal gives the protobuf bytes.
func (f *RandomRowFilter) Marshal() ([]byte, error) {
	return pack("RandomRowFilter", &pb.RandomRowFilter{Chance: &f.Chance}, nil)
}

// String names the class and the chance.
func (f *RandomRowFilter) String() string { return text(f) }

// FuzzyPattern is a row of which only some bytes count.
type FuzzyPattern struct {
	// Row is the pattern; of a longer row only the first len(Row) bytes are
	// compared.
	Row []byte
	// Mask has a byte for each of Row: 0 where the row must have that byte, 1
	// where any will do. FF and 2, which stand for the same on the wire, are
	// taken too.
	Mask []byte
}

// Fuzzy is a pattern in which wildcard stands for any byte:
// Fuzzy("????_login", '?').
func Fuzzy[B Bytes](row B, wildcard byte) FuzzyPattern {
	p := FuzzyPattern{Row: []byte(row), Mask: make([]byte, len(row))}
	for i, c := range p.Row {
		if c == wildcard {
			p.Mask[i] = 1
		}
	}
	return p
}

// FuzzyRowFilter keeps rows that match any of the patterns, and jumps over
// what cannot. A row shorter than the pattern passes if it agrees as far as it
// goes, unless a jump went past it. HBase 2.6.4 hangs in reversed scans with
// this filter: scan forwards.
type FuzzyRowFilter struct {
	byCells
	Patterns []FuzzyPattern
}

// FuzzyRow keeps rows that match any of the patterns; see [Fuzzy].
func FuzzyRow(patterns ...FuzzyPattern) *FuzzyRowFilter { return &FuzzyRowFilter{Patterns: patterns} }

// Name is the full Java class name.
func (f *FuzzyRowFilter) Name() string { return javaPackage + "FuzzyRowFilter" }

// Bytes of masks on the wire. Servers also take masks as users write them, but
// those of 2.5 to 2.7 misread one that is all zeros.
const (
	maskFixed = 0xFF
	maskAny   = 2
)

// Marshal gives the protobuf bytes.
func (f *FuzzyRowFilter) Marshal() ([]byte, error) {
	m := &pb.FuzzyRowFilter{IsMaskV2: new(true)}
	if len(f.Patterns) == 0 {
		return nil, invalid("FuzzyRowFilter", "no patterns given")
	}
	for _, p := range f.Patterns {
		if len(p.Row) != len(p.Mask) {
			return nil, invalid("FuzzyRowFilter", "Fuzzy pair lengths do not match: the row has %d bytes, the mask %d", len(p.Row), len(p.Mask))
		}
		row, mask := slices.Clone(set(p.Row)), make([]byte, len(p.Mask))
		for i, c := range p.Mask {
			switch c {
			case 0, maskFixed:
				mask[i] = maskFixed
			case 1, maskAny:
				mask[i], row[i] = maskAny, 0
			default:
				return nil, invalid("FuzzyRowFilter", "byte %d of a mask is %d; 0 and 1 are known", i, c)
			}
		}
		m.FuzzyKeysData = append(m.FuzzyKeysData, &pb.BytesBytesPair{First: row, Second: mask})
	}
	return pack("FuzzyRowFilter", m, nil)
}

// String names the class and the number of patterns.
func (f *FuzzyRowFilter) String() string { return text(f) }

// RowRange is a range of rows, by default [Start, Stop). An empty bound is
// open.
type RowRange struct {
	Start, Stop  []byte
	ExcludeStart bool
	IncludeStop  bool
}

// RowsBetween is the range [start, stop); an empty bound is open.
func RowsBetween[B Bytes](start, stop B) RowRange {
	return RowRange{Start: []byte(start), Stop: []byte(stop)}
}

// RowsWithPrefix is the range of all rows that begin with prefix.
func RowsWithPrefix[B Bytes](prefix B) RowRange {
	r := RowRange{Start: []byte(prefix)}
	// The stop is the first row behind: the last byte that can grow, grown.
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xFF {
			r.Stop = append(slices.Clone(r.Start[:i]), prefix[i]+1)
			break
		}
	}
	return r
}

func (r *RowRange) valid() bool {
	if len(r.Start) == 0 || len(r.Stop) == 0 {
		return true
	}
	cmp := bytes.Compare(r.Start, r.Stop)
	return cmp < 0 || cmp == 0 && r.IncludeStop
}

// MultiRowRangeFilter keeps rows of any of the ranges, and jumps over the gaps
// between them. On the wire ranges are sorted and those that touch are merged;
// of ranges with the same start the first given says whether it is included.
// HBase's Java client, when several overlap, at times includes a last stop row
// that only a range ending earlier includes, or sends an open range twice; that
// is not copied.
type MultiRowRangeFilter struct {
	byCells
	Ranges []RowRange
}

// MultiRowRange keeps rows of any of the ranges; see [RowsBetween] and
// [RowsWithPrefix]. At least one is needed.
func MultiRowRange(ranges ...RowRange) *MultiRowRangeFilter {
	return &MultiRowRangeFilter{Ranges: ranges}
}

// Name is the full Java class name.
func (f *MultiRowRangeFilter) Name() string { return javaPackage + "MultiRowRangeFilter" }

// Marshal gives the protobuf bytes.
func (f *MultiRowRangeFilter) Marshal() ([]byte, error) {
	merged, err := mergeRanges(f.Ranges)
	if err != nil {
		return nil, err
	}
	m := &pb.MultiRowRangeFilter{RowRangeList: make([]*pb.RowRange, 0, len(merged))}
	for i := range merged {
		r := &merged[i]
		m.RowRangeList = append(m.RowRangeList, &pb.RowRange{
			StartRow: set(r.Start), StartRowInclusive: new(!r.ExcludeStart), StopRow: set(r.Stop), StopRowInclusive: &r.IncludeStop,
		})
	}
	return pack("MultiRowRangeFilter", m, nil)
}

// String names the class and the ranges.
func (f *MultiRowRangeFilter) String() string { return text(f) }

// mergeRanges sorts ranges and merges those that touch.
func mergeRanges(ranges []RowRange) ([]RowRange, error) {
	if len(ranges) == 0 {
		return nil, invalid("MultiRowRangeFilter", "No ranges found.")
	}
	wrong := 0
	for i := range ranges {
		if !ranges[i].valid() {
			wrong++
		}
	}
	if wrong > 0 {
		// HBase's own words, in which its users look the error up.
		return nil, invalid("MultiRowRangeFilter", "%d invaild ranges.", wrong)
	}
	ranges = slices.Clone(ranges)
	slices.SortStableFunc(ranges, func(a, b RowRange) int { return bytes.Compare(a.Start, b.Start) })
	merged := ranges[:1]
	for _, r := range ranges[1:] {
		last := &merged[len(merged)-1]
		if len(last.Stop) == 0 { // takes in all that follow
			break
		}
		cmp := bytes.Compare(last.Stop, r.Start)
		if cmp < 0 || cmp == 0 && !last.IncludeStop && r.ExcludeStart {
			merged = append(merged, r)
			continue
		}
		switch cmp := bytes.Compare(r.Stop, last.Stop); {
		case len(r.Stop) == 0 || cmp > 0:
			last.Stop, last.IncludeStop = r.Stop, r.IncludeStop
		case cmp == 0:
			last.IncludeStop = last.IncludeStop || r.IncludeStop
		}
	}
	return merged, nil
}
