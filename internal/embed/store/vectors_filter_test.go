package store

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// The filter trees of the vectors, turned into what a client sends.

type marshaler interface{ MarshalVT() ([]byte, error) }

func wire(name string, m marshaler) (*pb.Filter, error) {
	b, err := m.MarshalVT()
	if err != nil {
		return nil, err
	}
	return &pb.Filter{Name: new("org.apache.hadoop.hbase.filter." + name), SerializedFilter: b}, nil
}

type tree map[string]json.RawMessage

func (t tree) text(key string) string {
	var s string
	_ = json.Unmarshal(t[key], &s)
	return s
}

func (t tree) bytes(key string) []byte {
	b, err := parseBytes(t[key])
	if err != nil {
		panic(err)
	}
	return b
}

func (t tree) flag(key string, absent bool) bool {
	if t[key] == nil {
		return absent
	}
	var b bool
	_ = json.Unmarshal(t[key], &b)
	return b
}

func (t tree) number(key string) int64 {
	var n int64
	_ = json.Unmarshal(t[key], &n)
	return n
}

func (t tree) op() *pb.CompareType {
	return new(pb.CompareType(pb.CompareType_value[t.text("op")]))
}

func (t tree) comparator() (*pb.Comparator, error) {
	if t["comparator"] == nil {
		return nil, nil
	}
	var c tree
	if err := json.Unmarshal(t["comparator"], &c); err != nil {
		return nil, err
	}
	value := &pb.ByteArrayComparable{}
	if c.text("type") != "regex" && c.text("type") != "substring" && c["value"] != nil {
		value.Value = c.bytes("value")
	}
	var m marshaler
	var name string
	switch kind := c.text("type"); kind {
	case "binary":
		name, m = "BinaryComparator", &pb.BinaryComparator{Comparable: value}
	case "binaryPrefix":
		name, m = "BinaryPrefixComparator", &pb.BinaryPrefixComparator{Comparable: value}
	case "binaryComponent":
		name, m = "BinaryComponentComparator", &pb.BinaryComponentComparator{Value: value.Value, Offset: new(uint32(c.number("offset")))}
	case "bit":
		name, m = "BitComparator", &pb.BitComparator{Comparable: value, BitwiseOp: new(pb.BitComparator_BitwiseOp(pb.BitComparator_BitwiseOp_value[c.text("bitOp")]))}
	case "bigDecimal":
		n, ok := new(big.Int).SetString(c.text("value"), 10)
		if !ok {
			return nil, fmt.Errorf("decimal %s", c["value"])
		}
		name, m = "BigDecimalComparator", &pb.BigDecimalComparator{Comparable: &pb.ByteArrayComparable{Value: append([]byte{0, 0, 0, 0}, n.Bytes()...)}}
	case "null":
		name, m = "NullComparator", &pb.NullComparator{}
	case "substring":
		name, m = "SubstringComparator", &pb.SubstringComparator{Substr: new(c.text("value"))}
	case "regex":
		name, m = "RegexStringComparator", &pb.RegexStringComparator{Pattern: new(c.text("pattern")), PatternFlags: new(int32(32)), Charset: new("UTF-8"), Engine: new("JAVA")}
	default:
		return nil, fmt.Errorf("comparator %q", kind)
	}
	b, err := m.MarshalVT()
	return &pb.Comparator{Name: new("org.apache.hadoop.hbase.filter." + name), SerializedComparator: b}, err
}

// parseFilterTree handles the trees that stand without their wire form.
func parseFilterTree(raw json.RawMessage) (*pb.Filter, error) {
	var t tree
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	c, err := t.comparator()
	if err != nil {
		return nil, err
	}
	compare := &pb.CompareFilter{CompareOp: t.op(), Comparator: c}
	switch kind := t.text("type"); kind {
	case "ValueFilter":
		return wire(kind, &pb.ValueFilter{CompareFilter: compare})
	case "RowFilter":
		return wire(kind, &pb.RowFilter{CompareFilter: compare})
	case "QualifierFilter":
		return wire(kind, &pb.QualifierFilter{CompareFilter: compare})
	case "SingleColumnValueFilter":
		return wire(kind, &pb.SingleColumnValueFilter{ColumnFamily: t.bytes("family"), ColumnQualifier: t.bytes("qualifier"), CompareOp: t.op(), Comparator: c,
			FilterIfMissing: new(t.flag("filterIfMissing", false)), LatestVersionOnly: new(t.flag("latestVersionOnly", true))})
	case "ColumnValueFilter":
		return wire(kind, &pb.ColumnValueFilter{Family: t.bytes("family"), Qualifier: t.bytes("qualifier"), CompareOp: t.op(), Comparator: c})
	case "ColumnPrefixFilter":
		return wire(kind, &pb.ColumnPrefixFilter{Prefix: t.bytes("prefix")})
	case "PrefixFilter":
		return wire(kind, &pb.PrefixFilter{Prefix: t.bytes("prefix")})
	case "PageFilter":
		return wire(kind, &pb.PageFilter{PageSize: new(t.number("size"))})
	case "FirstKeyOnlyFilter":
		return wire(kind, &pb.FirstKeyOnlyFilter{})
	case "KeyOnlyFilter":
		return wire(kind, &pb.KeyOnlyFilter{LenAsVal: new(t.flag("lenAsVal", false))})
	case "ColumnCountGetFilter":
		return wire(kind, &pb.ColumnCountGetFilter{Limit: new(int32(t.number("limit")))})
	case "ColumnPaginationFilter":
		return wire(kind, &pb.ColumnPaginationFilter{Limit: new(int32(t.number("limit"))), Offset: new(int32(t.number("offset")))})
	case "FilterList":
		op := pb.FilterList_MUST_PASS_ALL
		if t.text("operator") == "OR" {
			op = pb.FilterList_MUST_PASS_ONE
		}
		m := &pb.FilterList{Operator: &op}
		var inner []json.RawMessage
		if err := json.Unmarshal(t["filters"], &inner); err != nil {
			return nil, err
		}
		for _, raw := range inner {
			f, err := parseFilterTree(raw)
			if err != nil {
				return nil, err
			}
			m.Filters = append(m.Filters, f)
		}
		return wire(kind, m)
	case "SkipFilter", "WhileMatchFilter":
		f, err := parseFilterTree(t["filter"])
		if err != nil {
			return nil, err
		}
		if kind == "SkipFilter" {
			return wire(kind, &pb.SkipFilter{Filter: f})
		}
		return wire(kind, &pb.WhileMatchFilter{Filter: f})
	default:
		return nil, fmt.Errorf("filter %q", kind)
	}
}

// wireOf takes the recorded wire form.
func wireOf(raw json.RawMessage) (*pb.Filter, error) {
	var w struct{ Name, Hex string }
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, err
	}
	b, err := hex.DecodeString(w.Hex)
	return &pb.Filter{Name: &w.Name, SerializedFilter: b}, err
}
