package filter

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

const javaPackage = "org.apache.hadoop.hbase.filter."

// maxDepth bounds how deep filters may be nested: far more than anybody
// writes, and few enough that no stack overflows.
const maxDepth = 100

// Parse makes the filter a request carries; nil for nil. Errors are
// *cells.Exception with the class HBase answers, DoNotRetryIOException.
func Parse(f *pb.Filter) (cells.Filter, error) {
	if f == nil {
		return nil, nil
	}
	made, err := parse(f, 0)
	if err != nil {
		var e *cells.Exception
		if errors.As(err, &e) {
			return nil, cells.DoNotRetry(e.Message)
		}
		return nil, cells.DoNotRetry(err.Error())
	}
	return made, nil
}

type message interface{ UnmarshalVT([]byte) error }

// decode reads a message and words the failure as Java's protobuf does.
func decode(b []byte, m message) error {
	err := m.UnmarshalVT(b)
	if err == nil {
		return nil
	}
	text := err.Error()
	if field, ok := strings.CutPrefix(text, "proto: required field "); ok {
		if field, ok = strings.CutSuffix(field, " not set"); ok {
			return missing(field)
		}
	}
	return cells.IOException("com.google.protobuf.InvalidProtocolBufferException: While parsing a protocol message, the input ended unexpectedly in the middle of a field.  This could mean either that the input has been truncated or that an embedded message misreported its own length.")
}

func missing(field string) error {
	return cells.IOException("com.google.protobuf.InvalidProtocolBufferException: Message missing required fields: " + field)
}

func illegal(text string) error {
	return cells.IOException("java.lang.IllegalArgumentException: " + text)
}

func parse(f *pb.Filter, depth int) (cells.Filter, error) {
	if depth > maxDepth {
		return nil, cells.IOException("filters are nested more than " + strconv.Itoa(maxDepth) + " deep")
	}
	b := f.GetSerializedFilter()
	class, ours := strings.CutPrefix(f.GetName(), javaPackage)
	if !ours {
		return nil, unknownClass(f.GetName())
	}
	switch class {
	case "FilterList":
		return parseList(b, depth)
	case "SkipFilter":
		m := &pb.SkipFilter{}
		inner, err := parseInner(b, m, func() *pb.Filter { return m.Filter }, depth)
		return &skip{inner: inner}, err
	case "WhileMatchFilter":
		m := &pb.WhileMatchFilter{}
		inner, err := parseInner(b, m, func() *pb.Filter { return m.Filter }, depth)
		return &while{inner: inner}, err
	case "FilterWrapper":
		m := &pb.FilterWrapper{}
		return parseInner(b, m, func() *pb.Filter { return m.Filter }, depth)
	case "RowFilter", "FamilyFilter", "QualifierFilter", "ValueFilter", "DependentColumnFilter",
		"SingleColumnValueFilter", "SingleColumnValueExcludeFilter", "ColumnValueFilter":
		return parseComparing(class, b)
	case "PrefixFilter", "InclusiveStopFilter", "PageFilter", "RandomRowFilter", "FuzzyRowFilter", "MultiRowRangeFilter", "FilterAllFilter":
		return parseRows(class, b)
	}
	return parseColumns(class, b)
}

func unknownClass(name string) error {
	switch {
	case name == javaPackage+"Filter" || name == javaPackage+"FilterBase":
		return cells.IOException("org.apache.hadoop.hbase.exceptions.DeserializationException: parseFrom called on base Filter, but should be called on derived type")
	case name == javaPackage+"ByteArrayComparable":
		return cells.IOException("org.apache.hadoop.hbase.exceptions.DeserializationException: parseFrom called on base ByteArrayComparable, but should be called on derived type")
	case strings.HasPrefix(name, "java."):
		return cells.IOException("java.lang.NoSuchMethodException: " + name + ".parseFrom([B)")
	}
	return cells.IOException("java.lang.ClassNotFoundException: " + name)
}

func parseInner(b []byte, m message, get func() *pb.Filter, depth int) (cells.Filter, error) {
	if err := decode(b, m); err != nil {
		return nil, err
	}
	return parse(get(), depth+1)
}

func parseList(b []byte, depth int) (cells.Filter, error) {
	m := &pb.FilterList{}
	if err := decode(b, m); err != nil {
		return nil, err
	}
	filters := make([]cells.Filter, 0, len(m.Filters))
	for _, f := range m.Filters {
		inner, err := parse(f, depth+1)
		if err != nil {
			return nil, err
		}
		filters = append(filters, inner)
	}
	switch m.GetOperator() {
	case pb.FilterList_MUST_PASS_ALL:
		return &and{list: newList(filters)}, nil
	case pb.FilterList_MUST_PASS_ONE:
		return newOr(filters), nil
	}
	return nil, missing("operator") // an unknown number is no value to Java
}

func parseRows(class string, b []byte) (cells.Filter, error) {
	switch class {
	case "PrefixFilter":
		m := &pb.PrefixFilter{}
		err := decode(b, m)
		return &prefix{prefix: m.Prefix}, err
	case "InclusiveStopFilter":
		m := &pb.InclusiveStopFilter{}
		err := decode(b, m)
		return &inclusiveStop{stop: m.StopRowKey}, err
	case "PageFilter":
		m := &pb.PageFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		if m.GetPageSize() < 0 {
			return nil, illegal("must be positive " + strconv.FormatInt(m.GetPageSize(), 10))
		}
		return &page{size: m.GetPageSize()}, nil
	case "RandomRowFilter":
		m := &pb.RandomRowFilter{}
		err := decode(b, m)
		return &randomRow{chance: m.GetChance()}, err
	case "FilterAllFilter":
		return &all{}, decode(b, &pb.FilterAllFilter{})
	case "FuzzyRowFilter":
		return parseFuzzy(b)
	}
	m := &pb.MultiRowRangeFilter{}
	if err := decode(b, m); err != nil {
		return nil, err
	}
	ranges := make([]rowRange, 0, len(m.RowRangeList))
	for _, r := range m.RowRangeList {
		ranges = append(ranges, rowRange{start: r.StartRow, stop: r.StopRow, includeStart: r.GetStartRowInclusive(), inc: r.GetStopRowInclusive()})
	}
	made, err := newRowRanges(ranges)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// parseFuzzy reads the masks' several forms: 0 fixed and 1 any (as users write
// them), FF fixed and 2 any, FF fixed and 0 any (older, unless the message says
// that masks are of the newer form).
func parseFuzzy(b []byte) (cells.Filter, error) {
	m := &pb.FuzzyRowFilter{}
	if err := decode(b, m); err != nil {
		return nil, err
	}
	f := &fuzzyRow{}
	for _, pair := range m.FuzzyKeysData {
		key, mask := pair.GetFirst(), pair.GetSecond()
		if len(key) != len(mask) {
			return nil, illegal("Fuzzy pair lengths do not match: " + cells.Quote(key) + ":" + cells.Quote(mask))
		}
		any := byte(2)
		if !m.GetIsMaskV2() {
			any = 0
		}
		internal := true
		for _, c := range mask {
			internal = internal && (c == 0xFF || c == any || c == 2)
		}
		p := fuzzyPattern{key: key, fixed: make([]bool, len(mask))}
		for i, c := range mask {
			if internal {
				p.fixed[i] = c == 0xFF
			} else {
				p.fixed[i] = c == 0 || c == 0xFF
			}
		}
		f.patterns = append(f.patterns, p)
	}
	return f, nil
}

func parseColumns(class string, b []byte) (cells.Filter, error) {
	switch class {
	case "KeyOnlyFilter":
		m := &pb.KeyOnlyFilter{}
		err := decode(b, m)
		return &keyOnly{lengths: m.GetLenAsVal()}, err
	case "FirstKeyOnlyFilter":
		return &firstKeyOnly{}, decode(b, &pb.FirstKeyOnlyFilter{})
	case "FirstKeyValueMatchingQualifiersFilter":
		m := &pb.FirstKeyValueMatchingQualifiersFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		f := &firstMatching{qualifiers: make(map[string]struct{}, len(m.Qualifiers))}
		for _, q := range m.Qualifiers {
			f.qualifiers[string(q)] = struct{}{}
		}
		return f, nil
	case "ColumnCountGetFilter":
		m := &pb.ColumnCountGetFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		if m.GetLimit() < 0 {
			return nil, illegal("limit be positive " + strconv.Itoa(int(m.GetLimit())))
		}
		return &columnCount{limit: int(m.GetLimit())}, nil
	case "ColumnPaginationFilter":
		m := &pb.ColumnPaginationFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		if m.GetLimit() < 0 {
			return nil, illegal("limit must be positive " + strconv.Itoa(int(m.GetLimit())))
		}
		if m.ColumnOffset == nil && m.GetOffset() < 0 {
			return nil, illegal("offset must be positive " + strconv.Itoa(int(m.GetOffset())))
		}
		return &columnPage{limit: int64(m.GetLimit()), offset: int64(m.GetOffset()), from: m.ColumnOffset}, nil
	case "ColumnPrefixFilter":
		m := &pb.ColumnPrefixFilter{}
		err := decode(b, m)
		return &columnPrefix{prefix: m.Prefix}, err
	case "MultipleColumnPrefixFilter":
		m := &pb.MultipleColumnPrefixFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		sorted := slices.Clone(m.SortedPrefixes)
		slices.SortFunc(sorted, bytes.Compare)
		if len(slices.CompactFunc(slices.Clone(sorted), bytes.Equal)) != len(sorted) {
			return nil, illegal("prefixes must be distinct")
		}
		return &columnPrefixes{prefixes: sorted}, nil
	case "ColumnRangeFilter":
		m := &pb.ColumnRangeFilter{}
		err := decode(b, m)
		return &columnRange{min: m.MinColumn, minIncluded: m.GetMinColumnInclusive(), max: m.MaxColumn, maxIncluded: m.GetMaxColumnInclusive()}, err
	case "TimestampsFilter":
		m := &pb.TimestampsFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		sorted := slices.Clone(m.Timestamps)
		slices.Sort(sorted)
		if len(sorted) > 0 && sorted[0] < 0 {
			return nil, illegal("must be positive " + strconv.FormatInt(sorted[0], 10))
		}
		return &timestamps{wanted: slices.Compact(sorted), hints: m.GetCanHint()}, nil
	}
	return nil, unknownClass(javaPackage + class)
}

func parseComparing(class string, b []byte) (cells.Filter, error) {
	switch class {
	case "DependentColumnFilter":
		m := &pb.DependentColumnFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		c, err := parseCompare(m.CompareFilter)
		return &dependent{compare: c, family: m.ColumnFamily, qualifier: m.ColumnQualifier, drop: m.GetDropDependentColumn()}, err
	case "SingleColumnValueFilter":
		m := &pb.SingleColumnValueFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		f, err := parseSingle(m)
		return &f, err
	case "SingleColumnValueExcludeFilter":
		m := &pb.SingleColumnValueExcludeFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		f, err := parseSingle(m.SingleColumnValueFilter)
		return &singleColumnExclude{f}, err
	case "ColumnValueFilter":
		m := &pb.ColumnValueFilter{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		c, err := makeCompare(m.GetCompareOp(), m.Comparator, "compare_op")
		return &columnValue{compare: c, family: m.Family, qualifier: m.Qualifier}, err
	}
	var cf *pb.CompareFilter
	var err error
	switch class {
	case "RowFilter":
		m := &pb.RowFilter{}
		err, cf = decode(b, m), m.CompareFilter
	case "FamilyFilter":
		m := &pb.FamilyFilter{}
		err, cf = decode(b, m), m.CompareFilter
	case "QualifierFilter":
		m := &pb.QualifierFilter{}
		err, cf = decode(b, m), m.CompareFilter
	case "ValueFilter":
		m := &pb.ValueFilter{}
		err, cf = decode(b, m), m.CompareFilter
	}
	if err != nil {
		return nil, err
	}
	c, err := parseCompare(cf)
	if err != nil {
		return nil, err
	}
	if c.comparator == nil && c.op != pb.CompareType_NO_OP {
		return nil, cells.IOException("java.lang.NullPointerException: no comparator")
	}
	switch class {
	case "RowFilter":
		return &row{compare: c}, nil
	case "FamilyFilter":
		return &family{compare: c}, nil
	case "QualifierFilter":
		return &qualifier{compare: c}, nil
	}
	return &value{compare: c}, nil
}

func parseSingle(m *pb.SingleColumnValueFilter) (singleColumn, error) {
	c, err := makeCompare(m.GetCompareOp(), m.Comparator, "compare_op")
	return singleColumn{compare: c, family: m.ColumnFamily, qualifier: m.ColumnQualifier,
		ifMissing: m.GetFilterIfMissing(), latest: m.GetLatestVersionOnly()}, err
}

func parseCompare(m *pb.CompareFilter) (compare, error) {
	return makeCompare(m.GetCompareOp(), m.GetComparator(), "compare_filter.compare_op")
}

func makeCompare(op pb.CompareType, c *pb.Comparator, field string) (compare, error) {
	if _, ok := pb.CompareType_name[int32(op)]; !ok {
		return compare{}, missing(field)
	}
	made := compare{op: op}
	if c == nil {
		return made, nil
	}
	var err error
	made.comparator, err = ParseComparator(c)
	return made, err
}

// ParseComparator makes the comparator a request carries. Errors are
// *cells.Exception: a java.io.IOException, which is what a condition with a
// bad comparator is answered with.
func ParseComparator(c *pb.Comparator) (Comparator, error) {
	if c == nil {
		return nil, cells.IOException("java.lang.NullPointerException: no comparator")
	}
	b := c.GetSerializedComparator()
	class, ours := strings.CutPrefix(c.GetName(), javaPackage)
	if !ours {
		return nil, unknownClass(c.GetName())
	}
	switch class {
	case "BinaryComparator":
		m := &pb.BinaryComparator{}
		err := decode(b, m)
		return &binaryComparator{expected{m.GetComparable().GetValue()}}, err
	case "BinaryPrefixComparator":
		m := &pb.BinaryPrefixComparator{}
		err := decode(b, m)
		return &prefixComparator{expected{m.GetComparable().GetValue()}}, err
	case "BinaryComponentComparator":
		m := &pb.BinaryComponentComparator{}
		err := decode(b, m)
		return &componentComparator{expected{m.Value}, m.GetOffset()}, err
	case "BitComparator":
		m := &pb.BitComparator{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		bit := &bitComparator{expected: expected{m.GetComparable().GetValue()}}
		switch m.GetBitwiseOp() {
		case pb.BitComparator_AND:
			bit.combine = func(a, b byte) byte { return a & b }
		case pb.BitComparator_OR:
			bit.combine = func(a, b byte) byte { return a | b }
		case pb.BitComparator_XOR:
			bit.combine = func(a, b byte) byte { return a ^ b }
		default:
			return nil, missing("bitwise_op")
		}
		return bit, nil
	case "NullComparator":
		return &nullComparator{}, decode(b, &pb.NullComparator{})
	case "LongComparator":
		m := &pb.LongComparator{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		v := m.GetComparable().GetValue()
		if len(v) != 8 {
			return nil, illegal("Wrong length: " + strconv.Itoa(len(v)) + ", expected 8")
		}
		return &longComparator{expected{v}, int64(binary.BigEndian.Uint64(v))}, nil
	case "BigDecimalComparator":
		m := &pb.BigDecimalComparator{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		v := m.GetComparable().GetValue()
		n, ok := parseDecimal(v)
		if !ok {
			return nil, cells.IOException("java.lang.NumberFormatException: value is too short for a BigDecimal")
		}
		return &decimalComparator{expected{v}, n}, nil
	case "RegexStringComparator":
		m := &pb.RegexStringComparator{}
		if err := decode(b, m); err != nil {
			return nil, err
		}
		return newRegex(m.GetPattern(), m.GetPatternFlags(), m.GetCharset(), m.GetEngine())
	case "SubstringComparator":
		m := &pb.SubstringComparator{}
		err := decode(b, m)
		return &substringComparator{expected{[]byte(strings.ToLower(m.GetSubstr()))}}, err
	}
	return nil, unknownClass(c.GetName())
}
