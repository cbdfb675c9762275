package filter

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// WireError is bytes that are not what their class writes.
type WireError struct {
	Class  string // full Java name
	Reason string
}

func (e *WireError) Error() string { return e.Class + ": " + e.Reason }

// Unmarshal makes the filter of a class name and the class's protobuf bytes, as
// a request carries them. A class this package does not know becomes a
// [CustomFilter]. What is equal on the wire comes out equal: ranges merged,
// masks as users write them. Errors are *WireError and *InvalidError.
func Unmarshal(name string, data []byte) (Filter, error) {
	f, err := unmarshal(name, data, 0)
	if err != nil {
		return nil, err
	}
	// Marshal knows what HBase refuses.
	if _, err := f.Marshal(); err != nil {
		return nil, err
	}
	return f, nil
}

// UnmarshalComparator is [Unmarshal] for comparators.
func UnmarshalComparator(name string, data []byte) (Comparator, error) {
	c, err := unmarshalComparator(name, data)
	if err != nil {
		return nil, err
	}
	if _, err := c.Marshal(); err != nil {
		return nil, err
	}
	return c, nil
}

type decoder interface{ UnmarshalVT([]byte) error }

// decode reads a message of the named class.
func decode(name string, data []byte, m decoder) error {
	if err := m.UnmarshalVT(data); err != nil {
		return &WireError{Class: name, Reason: err.Error()}
	}
	return nil
}

// read decodes a message and makes the value of it.
func read[M decoder, T any](name string, data []byte, m M, make func(M) T) (T, error) {
	if err := decode(name, data, m); err != nil {
		var none T
		return none, err
	}
	return make(m), nil
}

func unmarshal(name string, data []byte, depth int) (Filter, error) {
	class, known := strings.CutPrefix(name, javaPackage)
	if !known {
		return Custom(name, bytes.Clone(data)), nil
	}
	switch class {
	case "FilterList":
		return unmarshalList(name, data, depth)
	case "SkipFilter":
		m := &pb.SkipFilter{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		in, err := unmarshalInner(name, m.Filter, depth)
		return Skip(in), err
	case "WhileMatchFilter":
		m := &pb.WhileMatchFilter{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		in, err := unmarshalInner(name, m.Filter, depth)
		return WhileMatch(in), err
	case "RowFilter", "FamilyFilter", "QualifierFilter", "ValueFilter":
		return unmarshalCompare(name, class, data)
	case "SingleColumnValueFilter", "SingleColumnValueExcludeFilter", "ColumnValueFilter", "DependentColumnFilter":
		return unmarshalColumnValue(name, class, data)
	case "PrefixFilter", "InclusiveStopFilter", "PageFilter", "RandomRowFilter", "FuzzyRowFilter", "MultiRowRangeFilter":
		return unmarshalRows(name, class, data)
	}
	return unmarshalColumns(name, class, data)
}

func unmarshalInner(outer string, p *pb.Filter, depth int) (Filter, error) {
	if depth >= maxDepth {
		return nil, &WireError{Class: outer, Reason: fmt.Sprintf("filters are nested more than %d deep", maxDepth)}
	}
	return unmarshal(p.GetName(), p.GetSerializedFilter(), depth+1)
}

func unmarshalList(name string, data []byte, depth int) (Filter, error) {
	m := &pb.FilterList{}
	if err := decode(name, data, m); err != nil {
		return nil, err
	}
	op := m.GetOperator()
	if op != pb.FilterList_MUST_PASS_ALL && op != pb.FilterList_MUST_PASS_ONE {
		return nil, &WireError{Class: name, Reason: fmt.Sprintf("operator %d is none of HBase's", op)}
	}
	l := &FilterList{Operator: ListOperator(op), Filters: make([]Filter, 0, len(m.Filters))}
	for _, p := range m.Filters {
		f, err := unmarshalInner(name, p, depth)
		if err != nil {
			return nil, err
		}
		l.Filters = append(l.Filters, f)
	}
	return l, nil
}

func unmarshalRows(name, class string, data []byte) (Filter, error) {
	switch class {
	case "PrefixFilter":
		return read(name, data, &pb.PrefixFilter{}, func(m *pb.PrefixFilter) Filter { return Prefix(m.Prefix) })
	case "InclusiveStopFilter":
		return read(name, data, &pb.InclusiveStopFilter{}, func(m *pb.InclusiveStopFilter) Filter { return InclusiveStop(m.StopRowKey) })
	case "PageFilter":
		return read(name, data, &pb.PageFilter{}, func(m *pb.PageFilter) Filter { return Page(m.GetPageSize()) })
	case "RandomRowFilter":
		return read(name, data, &pb.RandomRowFilter{}, func(m *pb.RandomRowFilter) Filter { return RandomRow(m.GetChance()) })
	case "FuzzyRowFilter":
		return unmarshalFuzzy(name, data)
	}
	m := &pb.MultiRowRangeFilter{}
	if err := decode(name, data, m); err != nil {
		return nil, err
	}
	ranges := make([]RowRange, 0, len(m.RowRangeList))
	for _, r := range m.RowRangeList {
		ranges = append(ranges, RowRange{Start: set(r.StartRow), Stop: set(r.StopRow), ExcludeStart: !r.GetStartRowInclusive(), IncludeStop: r.GetStopRowInclusive()})
	}
	merged, err := mergeRanges(ranges)
	return MultiRowRange(merged...), err
}

// unmarshalFuzzy reads masks in all the forms servers take: 0 fixed and 1 any,
// as users write them; FF fixed and 2 any; FF fixed and 0 any, which is older,
// unless the message says that masks are of the newer form.
func unmarshalFuzzy(name string, data []byte) (Filter, error) {
	m := &pb.FuzzyRowFilter{}
	if err := decode(name, data, m); err != nil {
		return nil, err
	}
	f := &FuzzyRowFilter{Patterns: make([]FuzzyPattern, 0, len(m.FuzzyKeysData))}
	for _, pair := range m.FuzzyKeysData {
		p := FuzzyPattern{Row: pair.GetFirst(), Mask: pair.GetSecond()}
		free := byte(0)
		if m.GetIsMaskV2() {
			free = maskAny
		}
		processed := true
		for _, c := range p.Mask {
			processed = processed && (c == maskFixed || c == maskAny || c == free)
		}
		for i, c := range p.Mask {
			if c == maskFixed || c == 0 && !processed {
				p.Mask[i] = 0
				continue
			}
			p.Mask[i] = 1
			if i < len(p.Row) {
				p.Row[i] = 0
			}
		}
		f.Patterns = append(f.Patterns, p)
	}
	return f, nil
}

func unmarshalColumns(name, class string, data []byte) (Filter, error) {
	switch class {
	case "KeyOnlyFilter":
		return read(name, data, &pb.KeyOnlyFilter{}, func(m *pb.KeyOnlyFilter) Filter { return &KeyOnlyFilter{LengthAsValue: m.GetLenAsVal()} })
	case "FirstKeyOnlyFilter":
		return read(name, data, &pb.FirstKeyOnlyFilter{}, func(*pb.FirstKeyOnlyFilter) Filter { return FirstKeyOnly() })
	case "FirstKeyValueMatchingQualifiersFilter":
		return read(name, data, &pb.FirstKeyValueMatchingQualifiersFilter{}, func(m *pb.FirstKeyValueMatchingQualifiersFilter) Filter {
			return FirstMatchingQualifiers(m.Qualifiers...)
		})
	case "ColumnCountGetFilter":
		return read(name, data, &pb.ColumnCountGetFilter{}, func(m *pb.ColumnCountGetFilter) Filter { return ColumnCountGet(m.GetLimit()) })
	case "ColumnPaginationFilter":
		return read(name, data, &pb.ColumnPaginationFilter{}, func(m *pb.ColumnPaginationFilter) Filter {
			if m.ColumnOffset != nil {
				return ColumnPaginationFrom(m.GetLimit(), m.ColumnOffset)
			}
			return ColumnPagination(m.GetLimit(), m.GetOffset())
		})
	case "ColumnPrefixFilter":
		return read(name, data, &pb.ColumnPrefixFilter{}, func(m *pb.ColumnPrefixFilter) Filter { return ColumnPrefix(m.Prefix) })
	case "MultipleColumnPrefixFilter":
		return read(name, data, &pb.MultipleColumnPrefixFilter{}, func(m *pb.MultipleColumnPrefixFilter) Filter { return MultipleColumnPrefix(m.SortedPrefixes...) })
	case "ColumnRangeFilter":
		return read(name, data, &pb.ColumnRangeFilter{}, func(m *pb.ColumnRangeFilter) Filter {
			return &ColumnRangeFilter{Min: m.MinColumn, MinInclusive: m.GetMinColumnInclusive(), Max: m.MaxColumn, MaxInclusive: m.GetMaxColumnInclusive()}
		})
	case "TimestampsFilter":
		return read(name, data, &pb.TimestampsFilter{}, func(m *pb.TimestampsFilter) Filter {
			return &TimestampsFilter{Timestamps: m.Timestamps, CanHint: m.GetCanHint()}
		})
	}
	return Custom(name, bytes.Clone(data)), nil
}

func unmarshalCompare(name, class string, data []byte) (Filter, error) {
	// The four messages are one field each, a CompareFilter in field 1.
	m := &pb.RowFilter{}
	if err := decode(name, data, m); err != nil {
		return nil, err
	}
	op, c, err := unmarshalOp(name, m.CompareFilter.GetCompareOp(), m.CompareFilter.GetComparator())
	if err != nil {
		return nil, err
	}
	switch class {
	case "RowFilter":
		return Row(op, c), nil
	case "FamilyFilter":
		return Family(op, c), nil
	case "QualifierFilter":
		return Qualifier(op, c), nil
	}
	return Value(op, c), nil
}

func unmarshalColumnValue(name, class string, data []byte) (Filter, error) {
	switch class {
	case "ColumnValueFilter":
		m := &pb.ColumnValueFilter{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		op, c, err := unmarshalOp(name, m.GetCompareOp(), m.Comparator)
		return ColumnValue(string(m.Family), string(m.Qualifier), op, c), err
	case "DependentColumnFilter":
		m := &pb.DependentColumnFilter{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		op, c, err := unmarshalOp(name, m.CompareFilter.GetCompareOp(), m.CompareFilter.GetComparator())
		f := DependentColumn(string(m.ColumnFamily), string(m.ColumnQualifier), m.GetDropDependentColumn())
		if c != nil {
			f.Op, f.Comparator = op, c
		}
		return f, err
	case "SingleColumnValueExcludeFilter":
		m := &pb.SingleColumnValueExcludeFilter{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		f, err := unmarshalSingle(name, m.SingleColumnValueFilter)
		return &SingleColumnValueExcludeFilter{f}, err
	}
	m := &pb.SingleColumnValueFilter{}
	if err := decode(name, data, m); err != nil {
		return nil, err
	}
	f, err := unmarshalSingle(name, m)
	return &f, err
}

func unmarshalSingle(name string, m *pb.SingleColumnValueFilter) (SingleColumnValueFilter, error) {
	op, c, err := unmarshalOp(name, m.GetCompareOp(), m.GetComparator())
	return SingleColumnValueFilter{
		Family: string(m.GetColumnFamily()), Qualifier: string(m.GetColumnQualifier()), Op: op, Comparator: c,
		IfMissing: m.GetFilterIfMissing(), AnyVersion: !m.GetLatestVersionOnly(),
	}, err
}

func unmarshalOp(name string, op pb.CompareType, p *pb.Comparator) (Op, Comparator, error) {
	if op < 0 || op > pb.CompareType_NO_OP {
		return 0, nil, &WireError{Class: name, Reason: fmt.Sprintf("operator %d is none of HBase's", op)}
	}
	if p == nil {
		return Op(op), nil, nil
	}
	c, err := unmarshalComparator(p.GetName(), p.GetSerializedComparator())
	return Op(op), c, err
}

func unmarshalComparator(name string, data []byte) (Comparator, error) {
	class, _ := strings.CutPrefix(name, javaPackage)
	switch class {
	case "BinaryComparator":
		return read(name, data, &pb.BinaryComparator{}, func(m *pb.BinaryComparator) Comparator { return Binary(m.GetComparable().GetValue()) })
	case "BinaryPrefixComparator":
		return read(name, data, &pb.BinaryPrefixComparator{}, func(m *pb.BinaryPrefixComparator) Comparator {
			return BinaryPrefix(m.GetComparable().GetValue())
		})
	case "BinaryComponentComparator":
		return read(name, data, &pb.BinaryComponentComparator{}, func(m *pb.BinaryComponentComparator) Comparator {
			return BinaryComponent(m.GetOffset(), m.Value)
		})
	case "BitComparator":
		m := &pb.BitComparator{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		if op := m.GetBitwiseOp(); op < pb.BitComparator_AND || op > pb.BitComparator_XOR {
			return nil, &WireError{Class: name, Reason: fmt.Sprintf("operator %d is none of HBase's", op)}
		}
		return Bit(BitOp(m.GetBitwiseOp()), m.GetComparable().GetValue()), nil
	case "NullComparator":
		return read(name, data, &pb.NullComparator{}, func(*pb.NullComparator) Comparator { return Null() })
	case "LongComparator":
		m := &pb.LongComparator{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		v := m.GetComparable().GetValue()
		if len(v) != 8 {
			return nil, &WireError{Class: name, Reason: fmt.Sprintf("%d bytes, where a number has 8", len(v))}
		}
		return Long(int64(binary.BigEndian.Uint64(v))), nil
	case "BigDecimalComparator":
		m := &pb.BigDecimalComparator{}
		if err := decode(name, data, m); err != nil {
			return nil, err
		}
		v := m.GetComparable().GetValue()
		if len(v) < 5 {
			return nil, &WireError{Class: name, Reason: fmt.Sprintf("%d bytes, where a BigDecimal has at least 5", len(v))}
		}
		return BigDecimal(twosComplement(v[4:]), int32(binary.BigEndian.Uint32(v))), nil
	case "RegexStringComparator":
		return read(name, data, &pb.RegexStringComparator{}, func(m *pb.RegexStringComparator) Comparator {
			return &RegexStringComparator{Pattern: m.GetPattern(), Flags: RegexFlags(m.GetPatternFlags()), Charset: m.GetCharset(), Engine: strings.ToUpper(m.GetEngine())}
		})
	case "SubstringComparator":
		return read(name, data, &pb.SubstringComparator{}, func(m *pb.SubstringComparator) Comparator { return Substring(m.GetSubstr()) })
	}
	return &CustomComparator{Class: name, Data: bytes.Clone(data)}, nil
}
