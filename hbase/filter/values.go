package filter

import "github.com/holdfast-hbase/holdfast/internal/pb"

// Op compares a part of a cell with a comparator, in that order: Row(Greater,
// Binary("m")) keeps rows greater than "m".
type Op uint8

// HBase's operators. NoOp excludes everything.
const (
	Less Op = iota
	LessOrEqual
	Equal
	NotEqual
	GreaterOrEqual
	Greater
	NoOp
)

// String gives HBase's name.
func (o Op) String() string { return pb.CompareType(o).String() }

// compare renders an operator and a comparator.
func compare(class string, op Op, c Comparator) (*pb.CompareFilter, error) {
	if op > NoOp {
		return nil, invalid(class, "operator %d is none of HBase's", op)
	}
	m := &pb.CompareFilter{CompareOp: pb.CompareType(op).Enum()}
	if c == nil {
		if op == NoOp {
			return m, nil
		}
		return nil, invalid(class, "comparator is nil")
	}
	b, err := c.Marshal()
	m.Comparator = &pb.Comparator{Name: new(c.Name()), SerializedComparator: set(b)}
	return m, err
}

// RowFilter keeps rows for which "row Op Comparator" holds.
type RowFilter struct {
	byCells
	Op         Op
	Comparator Comparator
}

// Row keeps rows for which "row op comparator" holds. It reads all rows of the
// scan: bounds of the scan are cheaper where they can say the same.
func Row(op Op, c Comparator) *RowFilter { return &RowFilter{Op: op, Comparator: c} }

// Name is the full Java class name.
func (f *RowFilter) Name() string { return javaPackage + "RowFilter" }

// Marshal gives the protobuf bytes.
func (f *RowFilter) Marshal() ([]byte, error) {
	m, err := compare("RowFilter", f.Op, f.Comparator)
	return pack("RowFilter", &pb.RowFilter{CompareFilter: m}, err)
}

// String is the filter in the filter language; see [Format].
func (f *RowFilter) String() string { return text(f) }

// FamilyFilter keeps cells of families for which "family Op Comparator" holds.
type FamilyFilter struct {
	byCells
	Op         Op
	Comparator Comparator
}

// Family keeps cells of families for which "family op comparator" holds.
func Family(op Op, c Comparator) *FamilyFilter { return &FamilyFilter{Op: op, Comparator: c} }

// Name is the full Java class name.
func (f *FamilyFilter) Name() string { return javaPackage + "FamilyFilter" }

// Marshal gives the protobuf bytes.
func (f *FamilyFilter) Marshal() ([]byte, error) {
	m, err := compare("FamilyFilter", f.Op, f.Comparator)
	return pack("FamilyFilter", &pb.FamilyFilter{CompareFilter: m}, err)
}

// String is the filter in the filter language; see [Format].
func (f *FamilyFilter) String() string { return text(f) }

// QualifierFilter keeps cells for which "qualifier Op Comparator" holds.
type QualifierFilter struct {
	byCells
	Op         Op
	Comparator Comparator
}

// Qualifier keeps cells for which "qualifier op comparator" holds.
func Qualifier(op Op, c Comparator) *QualifierFilter { return &QualifierFilter{Op: op, Comparator: c} }

// Name is the full Java class name.
func (f *QualifierFilter) Name() string { return javaPackage + "QualifierFilter" }

// Marshal gives the protobuf bytes.
func (f *QualifierFilter) Marshal() ([]byte, error) {
	m, err := compare("QualifierFilter", f.Op, f.Comparator)
	return pack("QualifierFilter", &pb.QualifierFilter{CompareFilter: m}, err)
}

// String is the filter in the filter language; see [Format].
func (f *QualifierFilter) String() string { return text(f) }

// ValueFilter keeps cells for which "value Op Comparator" holds. It is asked
// about all versions the family keeps, and the versions of the request are
// counted among what it keeps: a Get of one version may give an older one.
type ValueFilter struct {
	byCells
	Op         Op
	Comparator Comparator
}

// Value keeps cells for which "value op comparator" holds.
func Value(op Op, c Comparator) *ValueFilter { return &ValueFilter{Op: op, Comparator: c} }

// Name is the full Java class name.
func (f *ValueFilter) Name() string { return javaPackage + "ValueFilter" }

// Marshal gives the protobuf bytes.
func (f *ValueFilter) Marshal() ([]byte, error) {
	m, err := compare("ValueFilter", f.Op, f.Comparator)
	return pack("ValueFilter", &pb.ValueFilter{CompareFilter: m}, err)
}

// String is the filter in the filter language; see [Format].
func (f *ValueFilter) String() string { return text(f) }

// SingleColumnValueFilter keeps rows in which "value Op Comparator" holds for
// one column. The column must be among those read, else it counts as missing.
// NoOp is answered with an error by the server.
type SingleColumnValueFilter struct {
	byRows
	Family, Qualifier string
	Op                Op
	Comparator        Comparator
	// IfMissing drops rows that lack the column; they are kept without.
	IfMissing bool
	// AnyVersion tests all versions returned, not only the newest.
	AnyVersion bool
}

// SingleColumnOption changes what [SingleColumnValue] does.
type SingleColumnOption func(*SingleColumnValueFilter)

// IfMissingDrop drops rows that lack the column. Without it they are kept.
func IfMissingDrop(f *SingleColumnValueFilter) { f.IfMissing = true }

// AnyVersion tests all versions, not only the newest.
func AnyVersion(f *SingleColumnValueFilter) { f.AnyVersion = true }

// SingleColumnValue keeps rows in which "value op comparator" holds for one
// column, which must be among the columns read.
func SingleColumnValue(family, qualifier string, op Op, c Comparator, opts ...SingleColumnOption) *SingleColumnValueFilter {
	f := &SingleColumnValueFilter{Family: family, Qualifier: qualifier, Op: op, Comparator: c}
	for _, o := range opts {
		o(f)
	}
	return f
}

// Name is the full Java class name.
func (f *SingleColumnValueFilter) Name() string { return javaPackage + "SingleColumnValueFilter" }

// Marshal gives the protobuf bytes.
func (f *SingleColumnValueFilter) Marshal() ([]byte, error) {
	m, err := f.message("SingleColumnValueFilter")
	return pack("SingleColumnValueFilter", m, err)
}

func (f *SingleColumnValueFilter) message(class string) (*pb.SingleColumnValueFilter, error) {
	c, err := compare(class, f.Op, f.Comparator)
	if err != nil {
		return nil, err
	}
	if c.Comparator == nil {
		return nil, invalid(class, "comparator is nil")
	}
	return &pb.SingleColumnValueFilter{
		ColumnFamily: []byte(f.Family), ColumnQualifier: []byte(f.Qualifier),
		CompareOp: c.CompareOp, Comparator: c.Comparator,
		FilterIfMissing: &f.IfMissing, LatestVersionOnly: new(!f.AnyVersion),
	}, nil
}

// String is the filter in the filter language; see [Format].
func (f *SingleColumnValueFilter) String() string { return text(f) }

// SingleColumnValueExcludeFilter is a [SingleColumnValueFilter] that also
// leaves the column tested out of the result.
type SingleColumnValueExcludeFilter struct{ SingleColumnValueFilter }

// SingleColumnValueExclude keeps rows as [SingleColumnValue] does, without the
// column tested. A row with only that column gives nothing.
func SingleColumnValueExclude(family, qualifier string, op Op, c Comparator, opts ...SingleColumnOption) *SingleColumnValueExcludeFilter {
	return &SingleColumnValueExcludeFilter{*SingleColumnValue(family, qualifier, op, c, opts...)}
}

// Name is the full Java class name.
func (f *SingleColumnValueExcludeFilter) Name() string {
	return javaPackage + "SingleColumnValueExcludeFilter"
}

// Marshal gives the protobuf bytes.
func (f *SingleColumnValueExcludeFilter) Marshal() ([]byte, error) {
	m, err := f.message("SingleColumnValueExcludeFilter")
	return pack("SingleColumnValueExcludeFilter", &pb.SingleColumnValueExcludeFilter{SingleColumnValueFilter: m}, err)
}

// String is the filter in the filter language; see [Format].
func (f *SingleColumnValueExcludeFilter) String() string { return text(f) }

// ColumnValueFilter keeps only the cells of one column for which "value Op
// Comparator" holds; other columns never come through. HBase 2.0 and later.
type ColumnValueFilter struct {
	byCells
	Family, Qualifier string
	Op                Op
	Comparator        Comparator
}

// ColumnValue keeps only the cells of one column for which "value op
// comparator" holds.
func ColumnValue(family, qualifier string, op Op, c Comparator) *ColumnValueFilter {
	return &ColumnValueFilter{Family: family, Qualifier: qualifier, Op: op, Comparator: c}
}

// Name is the full Java class name.
func (f *ColumnValueFilter) Name() string { return javaPackage + "ColumnValueFilter" }

// Marshal gives the protobuf bytes.
func (f *ColumnValueFilter) Marshal() ([]byte, error) {
	c, err := compare("ColumnValueFilter", f.Op, f.Comparator)
	if err == nil && c.Comparator == nil {
		err = invalid("ColumnValueFilter", "comparator is nil")
	}
	return pack("ColumnValueFilter", &pb.ColumnValueFilter{
		Family: []byte(f.Family), Qualifier: []byte(f.Qualifier), CompareOp: c.GetCompareOp().Enum(), Comparator: c.GetComparator(),
	}, err)
}

// String is the filter in the filter language; see [Format].
func (f *ColumnValueFilter) String() string { return text(f) }

// DependentColumnFilter keeps the cells of a row whose timestamp a cell of one
// column has too.
type DependentColumnFilter struct {
	byRows
	Family, Qualifier string
	// Drop leaves that column itself out of the result.
	Drop bool
	// Op and Comparator say which cells of the column count: those for which
	// "value Op Comparator" holds. Without a comparator all do, whatever Op
	// is.
	Op         Op
	Comparator Comparator
}

// DependentColumn keeps the cells of a row whose timestamp a cell of one column
// has too; drop leaves that column itself out. Set Op and Comparator of the
// result to let only some of the column's cells count.
func DependentColumn(family, qualifier string, drop bool) *DependentColumnFilter {
	return &DependentColumnFilter{Family: family, Qualifier: qualifier, Drop: drop, Op: NoOp}
}

// Name is the full Java class name.
func (f *DependentColumnFilter) Name() string { return javaPackage + "DependentColumnFilter" }

// Marshal gives the protobuf bytes.
func (f *DependentColumnFilter) Marshal() ([]byte, error) {
	op := f.Op
	if f.Comparator == nil && op < NoOp {
		op = NoOp
	}
	c, err := compare("DependentColumnFilter", op, f.Comparator)
	return pack("DependentColumnFilter", &pb.DependentColumnFilter{
		CompareFilter: c, ColumnFamily: []byte(f.Family), ColumnQualifier: []byte(f.Qualifier), DropDependentColumn: &f.Drop,
	}, err)
}

// String is the filter in the filter language; see [Format].
func (f *DependentColumnFilter) String() string { return text(f) }
