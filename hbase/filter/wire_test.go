package filter

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/big"
	"strings"
	"testing"

	server "github.com/holdfast-hbase/holdfast/internal/cells/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestInvalid(t *testing.T) {
	cases := map[string]interface{ Marshal() ([]byte, error) }{
		"PageFilter: must be positive -1":                         Page(-1),
		"ColumnCountGetFilter: limit be positive -1":              ColumnCountGet(-1),
		"ColumnPaginationFilter: offset must be positive -2":      ColumnPagination(1, -2),
		"TimestampsFilter: must be positive -3":                   Timestamps(1, -3),
		"MultipleColumnPrefixFilter: prefixes must be distinct":   MultipleColumnPrefix("a", "b", "a"),
		"MultiRowRangeFilter: No ranges found.":                   MultiRowRange(),
		"MultiRowRangeFilter: 1 invaild ranges.":                  MultiRowRange(RowsBetween("b", "a"), RowsBetween("c", "d")),
		"FuzzyRowFilter: no patterns given":                       FuzzyRow(),
		"FuzzyRowFilter: byte 1 of a mask is 7":                   FuzzyRow(FuzzyPattern{[]byte("ab"), []byte{0, 7}}),
		"FuzzyRowFilter: Fuzzy pair lengths do not match":         FuzzyRow(FuzzyPattern{[]byte("ab"), []byte{0}}),
		"SingleColumnValueFilter: comparator is nil":              SingleColumnValue("f", "q", NoOp, nil),
		"ColumnValueFilter: comparator is nil":                    ColumnValue("f", "q", NoOp, nil),
		"SingleColumnValueExcludeFilter: comparator is nil":       SingleColumnValueExclude("f", "q", Equal, nil),
		"RegexStringComparator: the pattern is no valid UTF-8":    Row(Equal, Regex("\xff")),
		"SubstringComparator: the text is no valid UTF-8":         Row(Equal, Substring("\xff")),
		"RegexStringComparator: engine \"PCRE\" is none":          &RegexStringComparator{Engine: "PCRE"},
		"BitComparator: operator 0 is none":                       &BitComparator{},
		"BinaryComponentComparator: offset 4294967295 is above":   BinaryComponent(1<<32-1, "a"),
		"FilterList: operator 0 is none":                          &FilterList{},
		"CustomFilter: the class name is empty":                   And(Custom("", nil)),
		"CustomComparator: the class name is empty":               &CustomComparator{},
		"SkipFilter: a filter inside is nil":                      And(Page(1), Skip(nil)),
		"DependentColumnFilter: operator 9 is none":               &DependentColumnFilter{Op: 9},
		"WhileMatchFilter: filters are nested more than 100 deep": deep(101),
	}
	for want, f := range cases {
		b, err := f.Marshal()
		if bad := (*InvalidError)(nil); !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), want) || b != nil {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := deep(100).Marshal(); err != nil {
		t.Error("100 deep:", err)
	}
}

func deep(n int) Filter {
	f := Filter(Page(1))
	for range n {
		f = WhileMatch(f)
	}
	return f
}

func TestUnmarshalRefuses(t *testing.T) {
	for _, c := range []struct{ class, hex, want string }{
		{"PrefixFilter", "0aff", "EOF"},
		{"PageFilter", "", "page_size"},
		{"PageFilter", "08ffffffffffffffffff01", "must be positive"},
		{"FilterList", "0807", "operator"},
		{"RowFilter", "0a020809", "operator 9"},
		{"RowFilter", "0a020802", "comparator is nil"},
		{"SingleColumnValueFilter", "", "compare_op"},
		{"MultiRowRangeFilter", "", "No ranges"},
		{"TimestampsFilter", "0a0affffffffffffffffff01", "positive"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Unmarshal(javaPackage+c.class, b)
		if err == nil || !strings.Contains(err.Error(), c.want) || f != nil {
			t.Errorf("%s %s: %v, %v; want %s", c.class, c.hex, f, err, c.want)
		}
	}
	for _, c := range []struct{ class, hex, want string }{
		{"LongComparator", "0a030a0101", "1 bytes"},
		{"BigDecimalComparator", "0a060a0400000000", "4 bytes"},
		{"BitComparator", "0a001009", "operator 9"},
		{"RegexStringComparator", "", "pattern"},
	} {
		b, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		got, err := UnmarshalComparator(javaPackage+c.class, b)
		if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
			t.Errorf("%s %s: %v, %v; want %s", c.class, c.hex, got, err, c.want)
		}
	}
}

// Servers and old clients write masks in three ways; all come out as users
// write them.
func TestUnmarshalFuzzyMasks(t *testing.T) {
	for name, c := range map[string]struct {
		mask string
		v2   *bool
	}{
		"user":  {"\x00\x01\x00", nil},
		"newer": {"\xff\x02\xff", new(true)},
		"older": {"\xff\x00\xff", nil},
	} {
		b, err := (&pb.FuzzyRowFilter{FuzzyKeysData: []*pb.BytesBytesPair{{First: []byte("abc"), Second: []byte(c.mask)}}, IsMaskV2: c.v2}).MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		f, err := Unmarshal(javaPackage+"FuzzyRowFilter", b)
		if err != nil {
			t.Fatal(name, err)
		}
		if p := f.(*FuzzyRowFilter).Patterns[0]; string(p.Mask) != "\x00\x01\x00" || string(p.Row) != "a\x00c" {
			t.Errorf("%s: row %q mask %x", name, p.Row, p.Mask)
		}
	}
}

func TestUnmarshalUnknown(t *testing.T) {
	data := []byte{1, 2, 3}
	f, err := Unmarshal("com.example.MyFilter", data)
	if err != nil {
		t.Fatal(err)
	}
	data[0] = 9 // it has its own bytes
	if c := f.(*CustomFilter); c.Name() != "com.example.MyFilter" || !bytes.Equal(c.Data, []byte{1, 2, 3}) {
		t.Errorf("%+v", c)
	}
}

// Bytes of HBase 2.6.4's client.
func TestMergeRanges(t *testing.T) {
	r := func(start, stop string, exclude, include bool) RowRange {
		return RowRange{Start: []byte(start), Stop: []byte(stop), ExcludeStart: exclude, IncludeStop: include}
	}
	for _, c := range []struct {
		ranges []RowRange
		want   string
	}{
		{[]RowRange{r("a", "a", true, true)}, "0a0a0a016110001a01612001"},
		{[]RowRange{r("a", "a", false, false)}, ""},
		{[]RowRange{r("a", "a", true, false)}, ""},
		{[]RowRange{r("aa", "c", true, false), r("a", "a", true, true)}, "0a0a0a016110001a016120010a0b0a02616110001a01632000"},
		{[]RowRange{r("a", "d", false, true), r("a", "a", true, true)}, "0a0a0a016110011a01642001"},
		{[]RowRange{r("", "b", true, true), r("c", "", true, true), r("a", "", false, false)}, "0a080a0010001a002000"},
	} {
		b, err := MultiRowRange(c.ranges...).Marshal()
		if got := hex.EncodeToString(b); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%v: %s (%v), want %s", MultiRowRange(c.ranges...), got, err, c.want)
		}
	}
}

func TestRowsWithPrefix(t *testing.T) {
	for prefix, stop := range map[string]string{"a": "b", "a\xff": "b", "\xff\xff": "", "": "", "a\xfe": "a\xff"} {
		if r := RowsWithPrefix(prefix); string(r.Start) != prefix || string(r.Stop) != stop {
			t.Errorf("%q: [%q, %q), want stop %q", prefix, r.Start, r.Stop, stop)
		}
	}
}

func TestBigDecimal(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0000000000", "1": "0000000001", "-1": "00000000ff", "127": "000000007f", "128": "000000000080", "-128": "0000000080", "-129": "00000000ff7f",
		"1.50": "000000020096", "-1e3": "fffffffdff", "+2.5E-1": "0000000219", "255": "0000000000ff", "-256": "00000000ff00", ".5": "0000000105",
	} {
		d, err := ParseBigDecimal(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		b, err := d.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(b[4:]); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		again, err := UnmarshalComparator(d.Name(), b)
		if err != nil {
			t.Fatal(err)
		}
		if e := again.(*BigDecimalComparator); e.Unscaled.Cmp(d.Unscaled) != 0 || e.Scale != d.Scale {
			t.Errorf("%s: back as %v", text, e)
		}
	}
	for _, text := range []string{"", "-", ".", "1_000", "0x1", "1e", "1e99999999999", "1.2.3", "--1", strings.Repeat("1", 1001), "1e2147483647", "NaN"} {
		if d, err := ParseBigDecimal(text); err == nil && text != "1e2147483647" {
			t.Errorf("%.40q: %v", text, d)
		}
	}
	if b, err := BigDecimal(nil, 0).Marshal(); err != nil || hex.EncodeToString(b) != "0a070a050000000000" {
		t.Errorf("nil: %x, %v", b, err)
	}
	if n := twosComplement([]byte{0xff, 0x7f}); n.Cmp(big.NewInt(-129)) != 0 {
		t.Error(n)
	}
}

func TestJavaLower(t *testing.T) {
	for in, want := range map[string]string{
		"AbC": "abc", "ÄR": "är", "İ": "i\u0307", "ΟΔΟΣ": "οδος", "ΣΑΣ.": "σας.", "Σ": "σ", "ΑΣΑ": "ασα", "ΑΣ'Α": "ασ'α", "A\u0301Σ": "a\u0301ς",
	} {
		if got := javaLower(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	seed := []Filter{
		And(Prefix("a"), Skip(Row(Less, Binary("x")))), FuzzyRow(Fuzzy("a?", '?')), MultiRowRange(RowsBetween("a", "b"), RowsWithPrefix("b")), Timestamps(3, 1),
		SingleColumnValueExclude("f", "q", Equal, RegexNoCase("a")), &DependentColumnFilter{Family: "f", Op: Equal, Comparator: Long(4)}, ColumnPaginationFrom(1, "q"),
		Value(Equal, BigDecimal(big.NewInt(-300), 2)), Value(NotEqual, Bit(BitAnd, "x")), Value(Equal, BinaryComponent(2, "x")), Value(Equal, Substring("X")), MultipleColumnPrefix("a", "b"),
	}
	for _, s := range seed {
		b, err := s.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(strings.TrimPrefix(s.Name(), javaPackage), b)
	}
	f.Fuzz(func(t *testing.T, class string, data []byte) {
		made, err := Unmarshal(javaPackage+class, data)
		if err != nil {
			return
		}
		b, err := made.Marshal()
		if err != nil {
			t.Fatalf("%v decodes, but does not encode: %v", made, err)
		}
		again, err := Unmarshal(made.Name(), b)
		if err != nil {
			t.Fatalf("%v: its own bytes %x: %v", made, b, err)
		}
		if c, err := again.Marshal(); err != nil || !bytes.Equal(b, c) {
			t.Fatalf("%v: %x, and decoded and encoded again %x (%v)", made, b, c, err)
		}
		if s, err := Format(made); err == nil {
			roundTrip(t, made)
		} else if !errors.Is(err, ErrNotInLanguage) {
			t.Fatalf("%s: %v", s, err)
		}
	})
}

// The embedded server takes every filter that this package sends, except for
// regular expressions that Go cannot run, and classes it does not have.
func TestServerTakesThem(t *testing.T) {
	eachStep(t, func(t *testing.T, _ string, step map[string]any) {
		want := wireOf(step["expect"].(map[string]any))
		if want == nil {
			return
		}
		data, err := hex.DecodeString(want.Hex)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Unmarshal(want.Name, data)
		if err != nil {
			t.Fatal(err)
		}
		b, err := f.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := server.Parse(&pb.Filter{Name: new(f.Name()), SerializedFilter: b}); err != nil && !strings.Contains(err.Error(), "unsupported:") && !strings.Contains(err.Error(), "PatternSyntax") {
			t.Errorf("%v: %v", f, err)
		}
	})
}
