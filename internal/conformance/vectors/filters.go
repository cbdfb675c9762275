package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// buildFilter makes a filter of a vector's tree through package filter.
func buildFilter(v object) (filter.Filter, error) {
	num := func(key string) int64 { return integer(v[key]) }
	val := func(key string) []byte { return data(v[key]) }
	many := func(key string) (out [][]byte) {
		for _, e := range list(v, key) {
			out = append(out, data(e))
		}
		return out
	}
	switch text(v, "type") {
	case "PrefixFilter":
		return filter.Prefix(val("prefix")), nil
	case "InclusiveStopFilter":
		return filter.InclusiveStop(val("row")), nil
	case "PageFilter":
		return filter.Page(num("size")), nil
	case "RandomRowFilter":
		n, _ := v["chance"].(json.Number)
		chance, err := n.Float64()
		return filter.RandomRow(float32(chance)), err
	case "FuzzyRowFilter":
		f := filter.FuzzyRow()
		for _, p := range list(v, "pairs") {
			pair, ok := p.([]any)
			if !ok || len(pair) != 2 {
				return nil, fmt.Errorf("malformed pair %v", p)
			}
			f.Patterns = append(f.Patterns, filter.FuzzyPattern{Row: data(pair[0]), Mask: data(pair[1])})
		}
		return f, nil
	case "MultiRowRangeFilter":
		f := filter.MultiRowRange()
		for _, e := range list(v, "ranges") {
			o, _ := e.(object)
			r := filter.RowsBetween(data(o["start"]), data(o["stop"]))
			r.ExcludeStart, r.IncludeStop = !flag(o, "startInclusive"), flag(o, "stopInclusive")
			f.Ranges = append(f.Ranges, r)
		}
		for _, p := range many("prefixes") {
			f.Ranges = append(f.Ranges, filter.RowsWithPrefix(p))
		}
		return f, nil
	case "KeyOnlyFilter":
		if flag(v, "lenAsVal") {
			return filter.KeyAndLength(), nil
		}
		return filter.KeyOnly(), nil
	case "FirstKeyOnlyFilter":
		return filter.FirstKeyOnly(), nil
	case "FirstKeyValueMatchingQualifiersFilter":
		return filter.FirstMatchingQualifiers(many("qualifiers")...), nil
	case "ColumnCountGetFilter":
		return filter.ColumnCountGet(int32(num("limit"))), nil
	case "ColumnPaginationFilter":
		if from, ok := v["columnOffset"]; ok {
			return filter.ColumnPaginationFrom(int32(num("limit")), data(from)), nil
		}
		return filter.ColumnPagination(int32(num("limit")), int32(num("offset"))), nil
	case "ColumnPrefixFilter":
		return filter.ColumnPrefix(val("prefix")), nil
	case "MultipleColumnPrefixFilter":
		return filter.MultipleColumnPrefix(many("prefixes")...), nil
	case "ColumnRangeFilter":
		return &filter.ColumnRangeFilter{Min: val("min"), MinInclusive: flag(v, "minInclusive"), Max: val("max"), MaxInclusive: flag(v, "maxInclusive")}, nil
	case "TimestampsFilter":
		f := filter.Timestamps()
		for _, ts := range list(v, "timestamps") {
			f.Timestamps = append(f.Timestamps, integer(ts))
		}
		f.CanHint = flag(v, "canHint")
		return f, nil
	case "FilterList":
		var in []filter.Filter
		for _, e := range list(v, "filters") {
			o, _ := e.(object)
			f, err := buildFilter(o)
			if err != nil {
				return nil, err
			}
			in = append(in, f)
		}
		if v["operator"] == "OR" {
			return filter.Or(in...), nil
		}
		return filter.And(in...), nil
	case "SkipFilter", "WhileMatchFilter":
		o, _ := v["filter"].(object)
		f, err := buildFilter(o)
		if err != nil {
			return nil, err
		}
		if v["type"] == "SkipFilter" {
			return filter.Skip(f), nil
		}
		return filter.WhileMatch(f), nil
	}
	return buildComparing(v)
}

// buildComparing makes the filters that have an operator and a comparator.
func buildComparing(v object) (filter.Filter, error) {
	op, ok := compareOps[text(v, "op")]
	if _, has := v["op"]; has && !ok {
		return nil, fmt.Errorf("malformed operator %v", v["op"])
	}
	var c filter.Comparator
	if o, ok := v["comparator"].(object); ok {
		var err error
		if c, err = buildComparator(o); err != nil {
			return nil, err
		}
	}
	family, qualifier := string(data(v["family"])), string(data(v["qualifier"]))
	var opts []filter.SingleColumnOption
	if flag(v, "filterIfMissing") {
		opts = append(opts, filter.IfMissingDrop)
	}
	if latest, ok := v["latestVersionOnly"]; ok && latest == false {
		opts = append(opts, filter.AnyVersion)
	}
	switch text(v, "type") {
	case "RowFilter":
		return filter.Row(op, c), nil
	case "FamilyFilter":
		return filter.Family(op, c), nil
	case "QualifierFilter":
		return filter.Qualifier(op, c), nil
	case "ValueFilter":
		return filter.Value(op, c), nil
	case "SingleColumnValueFilter":
		return filter.SingleColumnValue(family, qualifier, op, c, opts...), nil
	case "SingleColumnValueExcludeFilter":
		return filter.SingleColumnValueExclude(family, qualifier, op, c, opts...), nil
	case "ColumnValueFilter":
		return filter.ColumnValue(family, qualifier, op, c), nil
	case "DependentColumnFilter":
		f := filter.DependentColumn(family, qualifier, flag(v, "drop"))
		if c != nil {
			f.Op, f.Comparator = op, c
		}
		return f, nil
	}
	return nil, fmt.Errorf("no filter: %v", v["type"])
}

var compareOps = map[string]filter.Op{
	"LESS": filter.Less, "LESS_OR_EQUAL": filter.LessOrEqual, "EQUAL": filter.Equal, "NOT_EQUAL": filter.NotEqual,
	"GREATER_OR_EQUAL": filter.GreaterOrEqual, "GREATER": filter.Greater, "NO_OP": filter.NoOp,
}

func buildComparator(v object) (filter.Comparator, error) {
	value := data
	switch text(v, "type") {
	case "binary":
		return filter.Binary(value(v["value"])), nil
	case "binaryPrefix":
		return filter.BinaryPrefix(value(v["value"])), nil
	case "binaryComponent":
		return filter.BinaryComponent(uint32(integer(v["offset"])), value(v["value"])), nil
	case "bit":
		return filter.Bit(map[string]filter.BitOp{"AND": filter.BitAnd, "OR": filter.BitOr, "XOR": filter.BitXor}[text(v, "bitOp")], value(v["value"])), nil
	case "null":
		return filter.Null(), nil
	case "long":
		return filter.Long(integer(v["value"])), nil
	case "substring":
		return filter.Substring(string(value(v["value"]))), nil
	case "bigDecimal":
		return filter.ParseBigDecimal(fmt.Sprint(v["value"]))
	case "regex":
		r := filter.Regex(text(v, "pattern")) // as it is, not in the notation of bytes
		if _, ok := v["flags"]; ok {
			r.Flags = filter.RegexFlags(integer(v["flags"]))
		}
		r.Engine = text(v, "engine")
		return r, nil
	}
	return nil, fmt.Errorf("no comparator: %v", v["type"])
}

// unguarded hides from the client that a filter judges whole rows, so that it
// goes with a batch, as Java's does if the batch is set first.
type unguarded struct{ hbase.Filter }

// protoFilter is a filter for a raw call: as built, or given by its bytes.
func (r *runner) protoFilter(s object) *pb.Filter {
	if o, ok := s["rawFilter"].(object); ok {
		return &pb.Filter{Name: new(text(o, "name")), SerializedFilter: r.unhex(o)}
	}
	o, ok := s["filter"].(object)
	if !ok {
		return nil
	}
	f, err := buildFilter(o)
	if err != nil {
		r.bad("filter: %v", err)
		return nil
	}
	b, err := f.Marshal()
	if err != nil {
		r.bad("filter: %v", err)
	}
	return &pb.Filter{Name: new(f.Name()), SerializedFilter: b}
}

func (r *runner) protoComparator(o object) *pb.Comparator {
	c, err := buildComparator(o)
	if err != nil {
		r.bad("comparator: %v", err)
		return nil
	}
	b, err := c.Marshal()
	if err != nil {
		r.bad("comparator: %v", err)
	}
	return &pb.Comparator{Name: new(c.Name()), SerializedComparator: b}
}

func (r *runner) unhex(o object) []byte {
	b, err := hex.DecodeString(text(o, "hex"))
	if err != nil {
		r.bad("hex: %v", err)
	}
	return b
}

// checkFilterWire compares the bytes of a filter with what Java sends.
func checkFilterWire(f filter.Filter, want object) error {
	b, err := f.Marshal()
	if err != nil {
		return err
	}
	if f.Name() != text(want, "name") || hex.EncodeToString(b) != text(want, "hex") {
		return fmt.Errorf("filter %v goes out as %s %x, HBase's client sends %s %s", f, f.Name(), b, text(want, "name"), text(want, "hex"))
	}
	return nil
}
