package filter

import (
	"fmt"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Filter is what package hbase takes; see hbase.Filter.
type Filter interface {
	// Name is the full Java class name.
	Name() string
	// Marshal gives the protobuf bytes of that class. Errors are
	// *InvalidError.
	Marshal() ([]byte, error)
}

// Bytes is text or bytes. Bytes are not copied.
type Bytes interface{ ~string | ~[]byte }

const javaPackage = "org.apache.hadoop.hbase.filter."

// maxDepth bounds how deep filters may be nested in one another, on all ways in
// and out: far more than anybody writes, and few enough that no stack
// overflows, here or in a server.
const maxDepth = 100

// InvalidError is a filter or comparator that HBase would refuse.
type InvalidError struct {
	Class  string // short Java name
	Reason string
}

func (e *InvalidError) Error() string { return e.Class + ": " + e.Reason }

func invalid(class, format string, v ...any) error {
	return &InvalidError{Class: class, Reason: fmt.Sprintf(format, v...)}
}

type message interface{ MarshalVT() ([]byte, error) }

// pack is Marshal's end: the error of making the message, or its bytes.
func pack(class string, m message, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	b, err := m.MarshalVT()
	if err != nil {
		return nil, invalid(class, "%v", err)
	}
	return b, nil
}

// set makes bytes present on the wire, where nil is absent.
func set(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// byCells is embedded in filters that judge cell by cell and so go with
// Scan.Batch.
type byCells struct{}

// FiltersRows says whether the filter judges whole rows (HBase's
// hasFilterRow); such a filter does not go with Scan.Batch.
func (byCells) FiltersRows() bool { return false }

// byRows is embedded in filters that have a say at the end of a row.
type byRows struct{}

// FiltersRows says whether the filter judges whole rows (HBase's
// hasFilterRow); such a filter does not go with Scan.Batch.
func (byRows) FiltersRows() bool { return true }

// CustomFilter is a class this package does not know, as opaque bytes.
type CustomFilter struct {
	// Class is the full Java class name; it must be on the servers' class path.
	Class string
	// Data is what the class's parseFrom takes.
	Data []byte
	// Rows says that the class's hasFilterRow is true.
	Rows bool
}

// Custom is a filter class of one's own, with the bytes its parseFrom takes.
func Custom(class string, data []byte) *CustomFilter { return &CustomFilter{Class: class, Data: data} }

// Name is the class name.
func (f *CustomFilter) Name() string { return f.Class }

// Marshal gives the bytes as they are.
func (f *CustomFilter) Marshal() ([]byte, error) {
	if f.Class == "" {
		return nil, invalid("CustomFilter", "the class name is empty")
	}
	return set(f.Data), nil
}

// FiltersRows is the field Rows.
func (f *CustomFilter) FiltersRows() bool { return f.Rows }

// String names the class and the number of bytes.
func (f *CustomFilter) String() string { return text(f) }

// ListOperator says how the filters of a list go together.
type ListOperator uint8

// HBase's operators of lists.
const (
	MustPassAll ListOperator = iota + 1
	MustPassOne
)

// String gives HBase's name.
func (o ListOperator) String() string { return pb.FilterList_Operator(o).String() }

// FilterList puts filters together. Lists of none pass everything.
//
// With MustPassAll the filters are asked about a cell in order up to the first
// that rejects it: filters behind see, and count, only what is left, so
// And(ColumnPrefix("x"), ColumnPagination(2, 0)) gives two columns beginning
// with x and the other order does not. With MustPassOne all are asked.
type FilterList struct {
	Operator ListOperator
	Filters  []Filter
}

// And keeps what all filters keep. It is evaluated in order and stops at the
// first that says no.
func And(filters ...Filter) *FilterList { return &FilterList{MustPassAll, filters} }

// Or keeps what any of the filters keeps.
func Or(filters ...Filter) *FilterList { return &FilterList{MustPassOne, filters} }

// Name is the full Java class name.
func (f *FilterList) Name() string { return javaPackage + "FilterList" }

// Marshal gives the protobuf bytes.
func (f *FilterList) Marshal() ([]byte, error) { return f.marshal(0) }

func (f *FilterList) marshal(depth int) ([]byte, error) {
	if f.Operator != MustPassAll && f.Operator != MustPassOne {
		return nil, invalid("FilterList", "operator %d is none of HBase's", f.Operator)
	}
	m := &pb.FilterList{Operator: pb.FilterList_Operator(f.Operator).Enum(), Filters: make([]*pb.Filter, 0, len(f.Filters))}
	for _, in := range f.Filters {
		p, err := inner("FilterList", in, depth)
		if err != nil {
			return nil, err
		}
		m.Filters = append(m.Filters, p)
	}
	return pack("FilterList", m, nil)
}

// FiltersRows says whether a filter inside judges whole rows.
func (f *FilterList) FiltersRows() bool { return slices.ContainsFunc(f.Filters, filtersRows) }

// String is the list in the filter language; see [Format].
func (f *FilterList) String() string { return text(f) }

// SkipFilter drops a row as soon as the filter inside drops any cell of it.
//
// Only cells are shown to the filter inside, neither row keys nor row ends:
// Skip(Row(...)) drops nothing. Any answer but a plain "include" drops the row,
// that of [ColumnPagination] or [ColumnCountGet] included.
type SkipFilter struct {
	byRows
	Filter Filter
}

// Skip drops a row as soon as the filter drops any cell of it.
func Skip(f Filter) *SkipFilter { return &SkipFilter{Filter: f} }

// Name is the full Java class name.
func (f *SkipFilter) Name() string { return javaPackage + "SkipFilter" }

// Marshal gives the protobuf bytes.
func (f *SkipFilter) Marshal() ([]byte, error) { return f.marshal(0) }

func (f *SkipFilter) marshal(depth int) ([]byte, error) {
	p, err := inner("SkipFilter", f.Filter, depth)
	return pack("SkipFilter", &pb.SkipFilter{Filter: p}, err)
}

// String is the filter in the filter language; see [Format].
func (f *SkipFilter) String() string { return text(f) }

// WhileMatchFilter ends the scan of a region at the first row or cell the
// filter inside drops. Cells of that row that came before are returned. The
// next region starts afresh if the answer in which the scan ended carried
// rows, so the number of rows depends on the caching of a scan over several
// regions.
type WhileMatchFilter struct {
	byRows
	Filter Filter
}

// WhileMatch ends the scan at the first row or cell the filter drops.
func WhileMatch(f Filter) *WhileMatchFilter { return &WhileMatchFilter{Filter: f} }

// Name is the full Java class name.
func (f *WhileMatchFilter) Name() string { return javaPackage + "WhileMatchFilter" }

// Marshal gives the protobuf bytes.
func (f *WhileMatchFilter) Marshal() ([]byte, error) { return f.marshal(0) }

func (f *WhileMatchFilter) marshal(depth int) ([]byte, error) {
	p, err := inner("WhileMatchFilter", f.Filter, depth)
	return pack("WhileMatchFilter", &pb.WhileMatchFilter{Filter: p}, err)
}

// String is the filter in the filter language; see [Format].
func (f *WhileMatchFilter) String() string { return text(f) }

// container is a filter that holds others.
type container interface {
	marshal(depth int) ([]byte, error)
}

// inner renders a filter inside another that is depth levels deep itself.
func inner(class string, f Filter, depth int) (*pb.Filter, error) {
	if f == nil {
		return nil, invalid(class, "a filter inside is nil")
	}
	if depth >= maxDepth {
		return nil, invalid(class, "filters are nested more than %d deep", maxDepth)
	}
	var b []byte
	var err error
	if c, ok := f.(container); ok {
		b, err = c.marshal(depth + 1)
	} else {
		b, err = f.Marshal()
	}
	if err != nil {
		return nil, err
	}
	return &pb.Filter{Name: new(f.Name()), SerializedFilter: set(b)}, nil
}

func filtersRows(f Filter) bool {
	r, ok := f.(interface{ FiltersRows() bool })
	return ok && r.FiltersRows()
}
