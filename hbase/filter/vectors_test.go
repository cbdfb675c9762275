package filter

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// The recorded cases say what a real HBase 2.6.4 client sends for each filter,
// and what its parser makes of each text; see testdata/vectors/README.md.

// wireJSON is expect.filterWire.
type wireJSON struct{ Name, Hex string }

func TestVectorsWire(t *testing.T) {
	total := 0
	eachStep(t, func(t *testing.T, file string, step map[string]any) {
		if s, ok := step["condition"].(map[string]any); ok {
			step = s
		}
		tree, ok := step["filter"].(map[string]any)
		if !ok {
			return
		}
		expect, _ := step["expect"].(map[string]any)
		f, err := build(tree)
		if err == nil {
			_, err = f.Marshal()
		}
		if err != nil {
			total++
			if expect["side"] != "client" {
				t.Errorf("%v: %v, which HBase's client sends", tree, err)
			} else if want, _ := expect["messageContains"].(string); !strings.Contains(err.Error(), want) && !strings.HasPrefix(want, "Fuzzy pair") {
				t.Errorf("%v: %v, want %s", tree, err, want)
			}
			return
		}
		class, _ := expect["error"].(string)
		if expect["side"] == "client" {
			total++
			if !strings.HasSuffix(class, "IncompatibleFilterException") {
				t.Errorf("%v: no error, want %s %v", tree, class, expect["messageContains"])
			} else if !filtersRows(f) {
				t.Errorf("%v: FiltersRows is false, but goes with no batch", tree)
			}
			return
		}
		if _, ok := step["batch"]; ok && class == "" && filtersRows(f) {
			t.Errorf("%v: FiltersRows is true, but goes with a batch", tree)
		}
		if want := wireOf(expect); want != nil {
			total++
			checkWire(t, f, *want)
		}
	})
	if total < 650 {
		t.Errorf("only %d cases found", total)
	}
	t.Logf("%d filters", total)
}

func TestVectorsParse(t *testing.T) {
	trees, refused := 0, 0
	eachStep(t, func(t *testing.T, file string, step map[string]any) {
		if s, ok := step["filterString"].(string); ok {
			f, err := Parse(s)
			if err != nil {
				t.Errorf("%q: %v", s, err)
				return
			}
			want, err := build(step["filter"].(map[string]any))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, f, equalFilters); diff != "" {
				t.Errorf("%q: -want +got\n%s", s, diff)
			}
		}
		if step["op"] != "parseFilter" {
			return
		}
		input, expect := step["input"].(string), step["expect"].(map[string]any)
		f, err := Parse(input)
		if want, ok := expect["messageContains"].(string); ok {
			refused++
			if err == nil {
				t.Errorf("%q: parsed, want %q", input, want)
				return
			}
			if bad := (*SyntaxError)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || bad.Offset > len(input) {
				t.Errorf("%q: %v, want %q", input, err, want)
			}
			return
		}
		trees++
		if err != nil {
			t.Errorf("%q: %v", input, err)
			return
		}
		want, err := build(expect["filter"].(map[string]any))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, f, equalFilters); diff != "" {
			t.Errorf("%q: -want +got\n%s", input, diff)
		}
		checkWire(t, f, *wireOf(expect))
		roundTrip(t, f)
	})
	if trees != 108 || refused != 91 {
		t.Errorf("%d texts parsed and %d refused; the vectors have 199", trees, refused)
	}
}

// equalFilters compares filters by their exported fields.
var equalFilters = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(PrefixFilter{}, InclusiveStopFilter{}, PageFilter{}, KeyOnlyFilter{}, FirstKeyOnlyFilter{}, ColumnCountGetFilter{},
		ColumnPaginationFilter{}, ColumnPrefixFilter{}, ColumnRangeFilter{}, TimestampsFilter{}, RowFilter{}, FamilyFilter{}, QualifierFilter{}, ValueFilter{},
		SingleColumnValueFilter{}, ColumnValueFilter{}, DependentColumnFilter{}, SkipFilter{}, WhileMatchFilter{}),
	// Order, where HBase sorts on the wire.
	cmp.Transformer("sorted", func(f *MultipleColumnPrefixFilter) [][]byte { return sorted(f.Prefixes) }),
	cmp.Comparer(func(a, b *TimestampsFilter) bool {
		x, _ := a.Marshal()
		y, _ := b.Marshal()
		return bytes.Equal(x, y)
	}),
	cmp.Comparer(func(a, b *RegexStringComparator) bool {
		return a.Pattern == b.Pattern && a.Flags == b.Flags && a.charset() == b.charset() && a.engine() == b.engine()
	}),
}

// checkWire compares with what Java sends, and decodes and encodes again.
func checkWire(t *testing.T, f Filter, want wireJSON) {
	t.Helper()
	b, err := f.Marshal()
	if err != nil {
		t.Errorf("%v: %v", f, err)
		return
	}
	if f.Name() != want.Name || hex.EncodeToString(b) != want.Hex {
		t.Errorf("%v: %s %x\n want %s %s", f, f.Name(), b, want.Name, want.Hex)
	}
	again, err := Unmarshal(f.Name(), b)
	if err != nil {
		t.Errorf("%v: decoding %x: %v", f, b, err)
		return
	}
	if c, err := again.Marshal(); err != nil || !bytes.Equal(b, c) {
		t.Errorf("%v: decoded and encoded again %x, want %x (%v)", f, c, b, err)
	}
	if fmt.Sprint(f) == "" {
		t.Errorf("%T prints nothing", f)
	}
}

// roundTrip prints and parses again; the bytes must be the same.
func roundTrip(t *testing.T, f Filter) {
	t.Helper()
	s, err := Format(f)
	if err != nil {
		t.Errorf("%v: %v", f, err)
		return
	}
	again, err := Parse(s)
	if err != nil {
		t.Errorf("%q, as printed: %v", s, err)
		return
	}
	b, err := f.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if c, err := again.Marshal(); err != nil || !bytes.Equal(b, c) || again.Name() != f.Name() {
		t.Errorf("%q, as printed, parses to %v (%v)", s, again, err)
	}
}

// eachStep calls f with every step of every case, those inside others too.
func eachStep(t *testing.T, f func(t *testing.T, file string, step map[string]any)) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/vectors/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no vectors", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Cases []struct {
				Name  string
				Steps []any
			}
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if err := d.Decode(&doc); err != nil {
			t.Fatal(file, err)
		}
		for _, c := range doc.Cases {
			t.Run(c.Name, func(t *testing.T) { walk(t, file, c.Steps, f) })
		}
	}
}

func walk(t *testing.T, file string, v any, f func(*testing.T, string, map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			walk(t, file, e, f)
		}
	case map[string]any:
		if _, ok := v["op"]; ok && v["expect"] != nil {
			f(t, file, v)
		}
		for _, e := range v {
			walk(t, file, e, f)
		}
	}
}

func wireOf(expect map[string]any) *wireJSON {
	w, ok := expect["filterWire"].(map[string]any)
	if !ok {
		return nil
	}
	return &wireJSON{w["name"].(string), w["hex"].(string)}
}

// build makes the filter of a vector's tree through this package's
// constructors.
func build(v map[string]any) (Filter, error) {
	n := node(v)
	switch v["type"] {
	case "PrefixFilter":
		return Prefix(n.bytes("prefix")), nil
	case "InclusiveStopFilter":
		return InclusiveStop(n.bytes("row")), nil
	case "PageFilter":
		return Page(n.int("size")), nil
	case "RandomRowFilter":
		chance, err := v["chance"].(json.Number).Float64()
		return RandomRow(float32(chance)), err
	case "FuzzyRowFilter":
		f := FuzzyRow()
		for _, pair := range n.list("pairs") {
			f.Patterns = append(f.Patterns, FuzzyPattern{Row: bytesOf(pair.([]any)[0]), Mask: bytesOf(pair.([]any)[1])})
		}
		return f, nil
	case "MultiRowRangeFilter":
		f := MultiRowRange()
		for _, r := range n.list("ranges") {
			r := node(r.(map[string]any))
			between := RowsBetween(r.bytes("start"), r.bytes("stop"))
			between.ExcludeStart, between.IncludeStop = !r.bool("startInclusive"), r.bool("stopInclusive")
			f.Ranges = append(f.Ranges, between)
		}
		for _, p := range n.list("prefixes") {
			f.Ranges = append(f.Ranges, RowsWithPrefix(bytesOf(p)))
		}
		return f, nil
	case "KeyOnlyFilter":
		if n.bool("lenAsVal") {
			return KeyAndLength(), nil
		}
		return KeyOnly(), nil
	case "FirstKeyOnlyFilter":
		return FirstKeyOnly(), nil
	case "FirstKeyValueMatchingQualifiersFilter":
		return FirstMatchingQualifiers(n.byteSlices("qualifiers")...), nil
	case "ColumnCountGetFilter":
		return ColumnCountGet(int32(n.int("limit"))), nil
	case "ColumnPaginationFilter":
		if from, ok := v["columnOffset"]; ok {
			return ColumnPaginationFrom(int32(n.int("limit")), bytesOf(from)), nil
		}
		return ColumnPagination(int32(n.int("limit")), int32(n.int("offset"))), nil
	case "ColumnPrefixFilter":
		return ColumnPrefix(n.bytes("prefix")), nil
	case "MultipleColumnPrefixFilter":
		return MultipleColumnPrefix(n.byteSlices("prefixes")...), nil
	case "ColumnRangeFilter":
		return &ColumnRangeFilter{Min: n.bytes("min"), MinInclusive: n.bool("minInclusive"), Max: n.bytes("max"), MaxInclusive: n.bool("maxInclusive")}, nil
	case "TimestampsFilter":
		f := Timestamps()
		for _, ts := range n.list("timestamps") {
			f.Timestamps = append(f.Timestamps, intOf(ts))
		}
		f.CanHint = n.bool("canHint")
		return f, nil
	case "FilterList":
		var in []Filter
		for _, e := range n.list("filters") {
			f, err := build(e.(map[string]any))
			if err != nil {
				return nil, err
			}
			in = append(in, f)
		}
		if v["operator"] == "OR" {
			return Or(in...), nil
		}
		return And(in...), nil
	case "SkipFilter":
		f, err := build(v["filter"].(map[string]any))
		return Skip(f), err
	case "WhileMatchFilter":
		f, err := build(v["filter"].(map[string]any))
		return WhileMatch(f), err
	}
	op, c, err := n.compare()
	if err != nil {
		return nil, err
	}
	family, qualifier := string(n.bytes("family")), string(n.bytes("qualifier"))
	var opts []SingleColumnOption
	if n.bool("filterIfMissing") {
		opts = append(opts, IfMissingDrop)
	}
	if latest, ok := v["latestVersionOnly"]; ok && latest == false {
		opts = append(opts, AnyVersion)
	}
	switch v["type"] {
	case "RowFilter":
		return Row(op, c), nil
	case "FamilyFilter":
		return Family(op, c), nil
	case "QualifierFilter":
		return Qualifier(op, c), nil
	case "ValueFilter":
		return Value(op, c), nil
	case "SingleColumnValueFilter":
		return SingleColumnValue(family, qualifier, op, c, opts...), nil
	case "SingleColumnValueExcludeFilter":
		return SingleColumnValueExclude(family, qualifier, op, c, opts...), nil
	case "ColumnValueFilter":
		return ColumnValue(family, qualifier, op, c), nil
	case "DependentColumnFilter":
		f := DependentColumn(family, qualifier, n.bool("drop"))
		if c != nil {
			f.Op, f.Comparator = op, c
		}
		return f, nil
	}
	return nil, fmt.Errorf("unknown filter %v", v["type"])
}

func (n node) compare() (Op, Comparator, error) {
	ops := map[any]Op{"LESS": Less, "LESS_OR_EQUAL": LessOrEqual, "EQUAL": Equal, "NOT_EQUAL": NotEqual, "GREATER_OR_EQUAL": GreaterOrEqual, "GREATER": Greater, "NO_OP": NoOp}
	op := ops[n["op"]]
	v, ok := n["comparator"].(map[string]any)
	if !ok {
		return op, nil, nil
	}
	c := node(v)
	switch v["type"] {
	case "binary":
		return op, Binary(c.bytes("value")), nil
	case "binaryPrefix":
		return op, BinaryPrefix(c.bytes("value")), nil
	case "binaryComponent":
		return op, BinaryComponent(uint32(c.int("offset")), c.bytes("value")), nil
	case "bit":
		return op, Bit(map[any]BitOp{"AND": BitAnd, "OR": BitOr, "XOR": BitXor}[v["bitOp"]], c.bytes("value")), nil
	case "null":
		return op, Null(), nil
	case "long":
		return op, Long(c.int("value")), nil
	case "substring":
		return op, Substring(string(c.bytes("value"))), nil
	case "bigDecimal":
		d, err := ParseBigDecimal(fmt.Sprint(v["value"]))
		return op, d, err
	case "regex":
		r := Regex(v["pattern"].(string)) // as it is, not in the notation of bytes
		if _, ok := v["flags"]; ok {
			r.Flags = RegexFlags(c.int("flags"))
		}
		r.Engine, _ = v["engine"].(string)
		return op, r, nil
	}
	return op, nil, fmt.Errorf("unknown comparator %v", v["type"])
}

// node reads members of a vector's object.
type node map[string]any

func (n node) bytes(key string) []byte { return bytesOf(n[key]) }
func (n node) int(key string) int64    { return intOf(n[key]) }
func (n node) bool(key string) bool    { b, _ := n[key].(bool); return b }
func (n node) list(key string) []any   { l, _ := n[key].([]any); return l }

func (n node) byteSlices(key string) [][]byte {
	var out [][]byte
	for _, e := range n.list(key) {
		out = append(out, bytesOf(e))
	}
	return out
}

func intOf(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
	case string:
		switch v {
		case "max":
			return 1<<63 - 1
		case "min":
			return -1 << 63
		}
	}
	panic(fmt.Sprintf("no number: %v", v))
}

// bytesOf reads bytes in the vectors' notation.
func bytesOf(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		out := []byte{}
		for i := 0; i < len(v); i++ {
			if i+3 < len(v) && v[i] == '\\' && v[i+1] == 'x' {
				if b, err := hex.DecodeString(v[i+2 : i+4]); err == nil {
					out = append(out, b...)
					i += 3
					continue
				}
			}
			out = append(out, v[i])
		}
		return out
	case []any:
		out := []byte{}
		for _, e := range v {
			out = append(out, bytesOf(e)...)
		}
		return out
	case map[string]any:
		return bytes.Repeat(bytesOf(v["repeat"]), int(intOf(v["times"])))
	}
	panic(fmt.Sprintf("no bytes: %v", v))
}
