package filter

import (
	"errors"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Filter is what package hbase takes; see hbase.Filter.
type Filter interface {
	// Name is the full Java class name.
	Name() string
	// Marshal gives the protobuf bytes of that class.
	Marshal() ([]byte, error)
}

// Bytes is text or bytes. Bytes are not copied.
type Bytes interface{ ~string | ~[]byte }

const javaPackage = "org.apache.hadoop.hbase.filter."

type message interface{ MarshalVT() ([]byte, error) }

// basic is a filter whose message is complete when it is made.
type basic struct {
	class string
	msg   message
	// rows says that the filter may judge whole rows, which does not go with
	// Scan.Batch.
	rows bool
	err  error
}

// Name is the full Java class name.
func (b *basic) Name() string { return javaPackage + b.class }

// Marshal gives the protobuf bytes.
func (b *basic) Marshal() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.msg.MarshalVT()
}

// FiltersRows says whether the filter judges whole rows (HBase's
// hasFilterRow).
func (b *basic) FiltersRows() bool { return b.rows }

// String is the class name.
func (b *basic) String() string { return b.class }

// FirstKeyOnly keeps the first cell of each row: the cheap way to count rows.
func FirstKeyOnly() Filter { return &basic{class: "FirstKeyOnlyFilter", msg: &pb.FirstKeyOnlyFilter{}} }

// KeyOnly empties all values.
func KeyOnly() Filter {
	return &basic{class: "KeyOnlyFilter", msg: &pb.KeyOnlyFilter{LenAsVal: new(false)}}
}

// KeyAndLength replaces values by their lengths, as 4 bytes big-endian.
func KeyAndLength() Filter {
	return &basic{class: "KeyOnlyFilter", msg: &pb.KeyOnlyFilter{LenAsVal: new(true)}}
}

// Prefix keeps rows that begin with prefix. A scan should also start there
// (hbase.NewScanPrefix does it without a filter).
func Prefix[B Bytes](prefix B) Filter {
	return &basic{class: "PrefixFilter", msg: &pb.PrefixFilter{Prefix: []byte(prefix)}}
}

// Page ends the scan of each region after n rows. Regions count for
// themselves, and so does a scan that resumes after a failure: use Scan.Limit
// for "n rows in all".
func Page(n int64) Filter {
	return &basic{class: "PageFilter", msg: &pb.PageFilter{PageSize: &n}, rows: true}
}

// InclusiveStop ends the scan behind row.
func InclusiveStop[B Bytes](row B) Filter {
	return &basic{class: "InclusiveStopFilter", msg: &pb.InclusiveStopFilter{StopRowKey: []byte(row)}}
}

// ColumnPrefix keeps columns whose qualifier begins with prefix.
func ColumnPrefix[B Bytes](prefix B) Filter {
	return &basic{class: "ColumnPrefixFilter", msg: &pb.ColumnPrefixFilter{Prefix: []byte(prefix)}}
}

// ColumnPagination keeps limit columns per row after skipping offset.
func ColumnPagination(limit, offset int32) Filter {
	return &basic{class: "ColumnPaginationFilter", msg: &pb.ColumnPaginationFilter{Limit: &limit, Offset: &offset}}
}

// Row keeps rows for which "row op comparator" holds.
func Row(op Op, c Comparator) Filter {
	m, err := compare(op, c)
	return &basic{class: "RowFilter", msg: &pb.RowFilter{CompareFilter: m}, err: err}
}

// Family keeps cells of families for which "family op comparator" holds.
func Family(op Op, c Comparator) Filter {
	m, err := compare(op, c)
	return &basic{class: "FamilyFilter", msg: &pb.FamilyFilter{CompareFilter: m}, err: err}
}

// Qualifier keeps cells for which "qualifier op comparator" holds.
func Qualifier(op Op, c Comparator) Filter {
	m, err := compare(op, c)
	return &basic{class: "QualifierFilter", msg: &pb.QualifierFilter{CompareFilter: m}, err: err}
}

// Value keeps cells for which "value op comparator" holds.
func Value(op Op, c Comparator) Filter {
	m, err := compare(op, c)
	return &basic{class: "ValueFilter", msg: &pb.ValueFilter{CompareFilter: m}, err: err}
}

// SingleColumnOption changes what [SingleColumnValue] does.
type SingleColumnOption func(*pb.SingleColumnValueFilter)

// IfMissingDrop drops rows that lack the column. Without it they are kept.
func IfMissingDrop(f *pb.SingleColumnValueFilter) { f.FilterIfMissing = new(true) }

// AnyVersion tests all versions, not only the newest.
func AnyVersion(f *pb.SingleColumnValueFilter) { f.LatestVersionOnly = new(false) }

// SingleColumnValue keeps rows in which "value op comparator" holds for one
// column, which must be among the columns read.
func SingleColumnValue(family, qualifier string, op Op, c Comparator, opts ...SingleColumnOption) Filter {
	cmp, err := compare(op, c)
	m := &pb.SingleColumnValueFilter{
		ColumnFamily: []byte(family), ColumnQualifier: []byte(qualifier),
		CompareOp: pb.CompareType(op).Enum(), Comparator: cmp.GetComparator(),
		FilterIfMissing: new(false), LatestVersionOnly: new(true),
	}
	for _, o := range opts {
		o(m)
	}
	return &basic{class: "SingleColumnValueFilter", msg: m, rows: true, err: err}
}

// And keeps what all filters keep. It is evaluated in order and stops at the
// first that says no.
func And(filters ...Filter) Filter { return list(pb.FilterList_MUST_PASS_ALL, filters) }

// Or keeps what any of the filters keeps.
func Or(filters ...Filter) Filter { return list(pb.FilterList_MUST_PASS_ONE, filters) }

func list(op pb.FilterList_Operator, filters []Filter) Filter {
	l := &basic{class: "FilterList"}
	m := &pb.FilterList{Operator: &op}
	for _, f := range filters {
		p := l.inner(f)
		m.Filters = append(m.Filters, p)
	}
	l.msg = m
	return l
}

// Skip drops a row as soon as the filter drops any cell of it.
func Skip(f Filter) Filter {
	s := &basic{class: "SkipFilter", rows: true}
	s.msg = &pb.SkipFilter{Filter: s.inner(f)}
	s.rows = true
	return s
}

// WhileMatch ends the scan at the first row or cell the filter drops.
func WhileMatch(f Filter) Filter {
	w := &basic{class: "WhileMatchFilter", rows: true}
	w.msg = &pb.WhileMatchFilter{Filter: w.inner(f)}
	return w
}

// inner renders a filter inside another and inherits what concerns the whole.
func (b *basic) inner(f Filter) *pb.Filter {
	if f == nil {
		b.err = errors.Join(b.err, fmt.Errorf("%s: a filter inside is nil", b.class))
		return &pb.Filter{Name: new("")}
	}
	bytes, err := f.Marshal()
	if err != nil {
		b.err = errors.Join(b.err, fmt.Errorf("%s: %w", b.class, err))
	}
	if r, ok := f.(interface{ FiltersRows() bool }); ok && r.FiltersRows() {
		b.rows = true
	}
	return &pb.Filter{Name: new(f.Name()), SerializedFilter: bytes}
}
