package regionserver_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// javaFilters and javaComparators are the packages of the recorded classes.
const javaFilters = "org.apache.hadoop.hbase.filter."

// rawFilter is a filter given by class and bytes.
func rawFilter(v map[string]any) *pb.Filter {
	b, err := hex.DecodeString(v["hex"].(string))
	if err != nil {
		panic(err)
	}
	return &pb.Filter{Name: new(v["name"].(string)), SerializedFilter: b}
}

func packed(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// filterOf builds a filter of the few types that the vectors give without
// their bytes.
func filterOf(v map[string]any) *pb.Filter {
	name := v["type"].(string)
	var body proto.Message
	op := func() *pb.CompareType {
		s, ok := v["op"].(string)
		if !ok {
			return nil
		}
		return pb.CompareType(pb.CompareType_value[s]).Enum()
	}
	compare := func() *pb.CompareFilter {
		return &pb.CompareFilter{CompareOp: op(), Comparator: comparatorOf(v["comparator"].(map[string]any))}
	}
	single := func() *pb.SingleColumnValueFilter {
		missing, _ := v["filterIfMissing"].(bool)
		latest, ok := v["latestVersionOnly"].(bool)
		if !ok {
			latest = true
		}
		return &pb.SingleColumnValueFilter{ColumnFamily: data(v["family"]), ColumnQualifier: data(v["qualifier"]), CompareOp: op(),
			Comparator: comparatorOf(v["comparator"].(map[string]any)), FilterIfMissing: &missing, LatestVersionOnly: &latest}
	}
	switch name {
	case "FirstKeyOnlyFilter":
		body = &pb.FirstKeyOnlyFilter{}
	case "KeyOnlyFilter":
		body = &pb.KeyOnlyFilter{LenAsVal: new(false)}
	case "PageFilter":
		body = &pb.PageFilter{PageSize: new(integer(v["size"]))}
	case "PrefixFilter":
		body = &pb.PrefixFilter{Prefix: data(v["prefix"])}
	case "WhileMatchFilter":
		body = &pb.FilterWrapper{Filter: filterOf(v["filter"].(map[string]any))}
	case "SkipFilter":
		body = &pb.FilterWrapper{Filter: filterOf(v["filter"].(map[string]any))}
	case "RowFilter":
		body = &pb.RowFilter{CompareFilter: compare()}
	case "ValueFilter":
		body = &pb.ValueFilter{CompareFilter: compare()}
	case "RandomRowFilter":
		body = &pb.RandomRowFilter{Chance: new(float32(integer(v["chance"])))}
	case "ColumnPrefixFilter":
		body = &pb.ColumnPrefixFilter{Prefix: data(v["prefix"])}
	case "ColumnValueFilter":
		body = &pb.ColumnValueFilter{Family: data(v["family"]), Qualifier: data(v["qualifier"]), CompareOp: op(), Comparator: comparatorOf(v["comparator"].(map[string]any))}
	case "SingleColumnValueFilter":
		body = single()
	case "SingleColumnValueExcludeFilter":
		body = &pb.SingleColumnValueExcludeFilter{SingleColumnValueFilter: single()}
	case "FilterList":
		list := &pb.FilterList{Operator: pb.FilterList_MUST_PASS_ALL.Enum()}
		if v["operator"] == "OR" {
			list.Operator = pb.FilterList_MUST_PASS_ONE.Enum()
		}
		for _, f := range v["filters"].([]any) {
			list.Filters = append(list.Filters, filterOf(f.(map[string]any)))
		}
		body = list
	default:
		panic("filter " + name)
	}
	b := packed(body)
	if name == "SkipFilter" || name == "WhileMatchFilter" {
		b = packed(&pb.SkipFilter{Filter: filterOf(v["filter"].(map[string]any))})
	}
	return &pb.Filter{Name: new(javaFilters + name), SerializedFilter: b}
}

func comparatorOf(v map[string]any) *pb.Comparator {
	value := func() *pb.ByteArrayComparable { return &pb.ByteArrayComparable{Value: data(v["value"])} }
	var name string
	var body proto.Message
	switch t := v["type"].(string); t {
	case "binary":
		name, body = "BinaryComparator", &pb.BinaryComparator{Comparable: value()}
	case "binaryPrefix":
		name, body = "BinaryPrefixComparator", &pb.BinaryPrefixComparator{Comparable: value()}
	case "binaryComponent":
		name, body = "BinaryComponentComparator", &pb.BinaryComponentComparator{Value: data(v["value"]), Offset: new(uint32(integer(v["offset"])))}
	case "bit":
		name, body = "BitComparator", &pb.BitComparator{Comparable: value(), BitwiseOp: pb.BitComparator_BitwiseOp(pb.BitComparator_BitwiseOp_value[v["bitOp"].(string)]).Enum()}
	case "null":
		name, body = "NullComparator", &pb.NullComparator{}
	case "long":
		name, body = "LongComparator", &pb.LongComparator{Comparable: &pb.ByteArrayComparable{Value: binary.BigEndian.AppendUint64(nil, uint64(integer(v["value"])))}}
	case "substring":
		name, body = "SubstringComparator", &pb.SubstringComparator{Substr: new(string(data(v["value"])))}
	case "regex":
		flags := int32(32)
		if f, ok := v["flags"]; ok {
			flags = int32(integer(f))
		}
		name, body = "RegexStringComparator", &pb.RegexStringComparator{Pattern: new(v["pattern"].(string)), PatternFlags: &flags, Charset: new("UTF-8"), Engine: new("JAVA")}
	case "bigDecimal":
		text := fmt.Sprint(v["value"])
		whole, frac, _ := strings.Cut(text, ".")
		n, _ := new(big.Int).SetString(whole+frac, 10)
		name, body = "BigDecimalComparator", &pb.BigDecimalComparator{Comparable: &pb.ByteArrayComparable{Value: append(binary.BigEndian.AppendUint32(nil, uint32(len(frac))), n.Bytes()...)}}
	default:
		panic("comparator " + t)
	}
	return &pb.Comparator{Name: new(javaFilters + name), SerializedComparator: packed(body)}
}

// data reads bytes in the vectors' notation.
func data(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		out := []byte{}
		for i := 0; i < len(v); {
			if i+3 < len(v) && v[i] == '\\' && v[i+1] == 'x' {
				if b, err := hex.DecodeString(v[i+2 : i+4]); err == nil {
					out = append(out, b...)
					i += 4
					continue
				}
			}
			out = append(out, v[i])
			i++
		}
		return out
	case []any:
		out := []byte{}
		for _, p := range v {
			out = append(out, data(p)...)
		}
		return out
	case map[string]any:
		one := data(v["repeat"])
		return []byte(strings.Repeat(string(one), int(integer(v["times"]))))
	}
	panic(fmt.Sprintf("bytes %T %v", v, v))
}

func integer(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			f, ferr := v.Float64()
			if ferr != nil {
				panic(err)
			}
			return int64(f)
		}
		return n
	case nil:
		return 0
	}
	panic(fmt.Sprintf("number %T %v", v, v))
}
