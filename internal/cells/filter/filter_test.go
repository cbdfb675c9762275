package filter

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

// What filters do to rows is tested against recorded answers of HBase by the
// store's vectors; here is what those don't reach.

type marshaler interface{ MarshalVT() ([]byte, error) }

func named(t testing.TB, name string, m marshaler) *pb.Filter {
	t.Helper()
	b, err := m.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return &pb.Filter{Name: new(javaPackage + name), SerializedFilter: b}
}

func binaryOf(t testing.TB, value string) *pb.Comparator {
	t.Helper()
	b, err := (&pb.BinaryComparator{Comparable: &pb.ByteArrayComparable{Value: []byte(value)}}).MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	return &pb.Comparator{Name: new(javaPackage + "BinaryComparator"), SerializedComparator: b}
}

// Rules M8, L18.
func TestParseRefuses(t *testing.T) {
	if f, err := Parse(nil); f != nil || err != nil {
		t.Error("no filter is no filter")
	}
	deep := &pb.Filter{Name: new(javaPackage + "FirstKeyOnlyFilter")}
	for range maxDepth + 5 {
		deep = named(t, "SkipFilter", &pb.SkipFilter{Filter: deep})
	}
	for what, c := range map[string]struct {
		f    *pb.Filter
		text string
	}{
		"unknown":       {&pb.Filter{Name: new("com.example.Mine")}, "java.lang.ClassNotFoundException: com.example.Mine"},
		"unknown, ours": {&pb.Filter{Name: new(javaPackage + "Mine")}, "Mine"},
		"no filter":     {&pb.Filter{Name: new("java.lang.String")}, "java.lang.String.parseFrom([B)"},
		"base":          {&pb.Filter{Name: new(javaPackage + "Filter")}, "parseFrom called on base Filter"},
		"missing field": {&pb.Filter{Name: new(javaPackage + "PageFilter")}, "Message missing required fields: page_size"},
		"cut off":       {&pb.Filter{Name: new(javaPackage + "PrefixFilter"), SerializedFilter: []byte{0xFF}}, "ended unexpectedly"},
		"negative":      {named(t, "PageFilter", &pb.PageFilter{PageSize: new(int64(-1))}), "-1"},
		"prefixes":      {named(t, "MultipleColumnPrefixFilter", &pb.MultipleColumnPrefixFilter{SortedPrefixes: [][]byte{{1}, {1}}}), "distinct"},
		"ranges":        {named(t, "MultiRowRangeFilter", &pb.MultiRowRangeFilter{}), "No ranges found."},
		"bad range": {named(t, "MultiRowRangeFilter", &pb.MultiRowRangeFilter{RowRangeList: []*pb.RowRange{
			{StartRow: []byte("b"), StopRow: []byte("a")}}}), "1 invaild ranges."},
		"fuzzy": {named(t, "FuzzyRowFilter", &pb.FuzzyRowFilter{FuzzyKeysData: []*pb.BytesBytesPair{
			{First: []byte("ab"), Second: []byte{0}}}}), "lengths do not match"},
		"timestamps": {named(t, "TimestampsFilter", &pb.TimestampsFilter{Timestamps: []int64{-5}}), "-5"},
		"too deep":   {deep, "deep"},
		"inside a list": {named(t, "FilterList", &pb.FilterList{Operator: new(pb.FilterList_MUST_PASS_ONE), Filters: []*pb.Filter{
			{Name: new("com.example.X")}}}), "com.example.X"},
	} {
		f, err := Parse(c.f)
		var e *cells.Exception
		if f != nil || !errors.As(err, &e) || e.Class != cells.ClassDoNotRetry || !e.DoNotRetry || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: %v, %v", what, f, err)
		}
	}
	_, err := ParseComparator(&pb.Comparator{Name: new("com.example.C")})
	var e *cells.Exception
	if !errors.As(err, &e) || e.Class != cells.ClassIOException || e.DoNotRetry {
		t.Errorf("comparator: %v", err)
	}
}

// Rule Q6: the merge tables.
func TestMergeCodes(t *testing.T) {
	const (
		in, inCol, inRow, sk, col, row, hint = cells.Include, cells.IncludeAndNextCol, cells.IncludeAndSeekNextRow, cells.Skip, cells.NextCol, cells.NextRow, cells.SeekNextUsingHint
	)
	all := []cells.ReturnCode{in, inCol, inRow, sk, col, row, hint}
	for i, wants := range [][]cells.ReturnCode{ // rows: so far; columns: in the order of all
		{in, inCol, inRow, sk, col, row, hint},
		{inCol, inCol, inRow, col, col, row, hint},
		{inRow, inRow, inRow, row, row, row, hint},
	} {
		for k, want := range wants {
			if got := mergeAnd(all[i], all[k]); got != want {
				t.Errorf("AND %v, %v: got %v, want %v", all[i], all[k], got, want)
			}
		}
	}
	for i, wants := range [][]cells.ReturnCode{
		{in, in, in, in, in, in, in},
		{in, inCol, inCol, in, inCol, inCol, in},
		{in, inCol, inRow, in, inCol, inRow, in},
		{in, in, in, sk, sk, sk, sk},
		{in, inCol, inCol, sk, col, col, sk},
		{in, inCol, inRow, sk, col, row, sk},
		{in, in, in, sk, sk, sk, hint},
	} {
		for k, want := range wants {
			if got := mergeOr(all[i], all[k]); got != want {
				t.Errorf("OR %v, %v: got %v, want %v", all[i], all[k], got, want)
			}
		}
	}
	for _, c := range all {
		if c.String() == "" {
			t.Errorf("%d has no name", c)
		}
	}
}

// Section P.
func TestComparators(t *testing.T) {
	decimalOf := func(unscaled string, scale int32) []byte {
		n, _ := new(big.Int).SetString(unscaled, 10)
		b := n.Bytes()
		if n.Sign() < 0 {
			b = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 128)).Bytes()
		} else if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return append([]byte{byte(scale >> 24), byte(scale >> 16), byte(scale >> 8), byte(scale)}, b...)
	}
	long := func(n byte, sign byte) []byte { return []byte{sign, sign, sign, sign, sign, sign, sign, n} }
	comparable := func(b []byte) *pb.ByteArrayComparable { return &pb.ByteArrayComparable{Value: b} }
	for _, c := range []struct {
		name   string
		m      marshaler
		stored []byte
		want   int // sign
	}{
		{"BinaryComparator", &pb.BinaryComparator{Comparable: comparable([]byte("b"))}, []byte("a"), 1},
		{"BinaryComparator", &pb.BinaryComparator{Comparable: comparable([]byte("a"))}, []byte("ab"), -1},
		{"BinaryPrefixComparator", &pb.BinaryPrefixComparator{Comparable: comparable([]byte("ab"))}, []byte("abc"), 0},
		{"BinaryPrefixComparator", &pb.BinaryPrefixComparator{Comparable: comparable([]byte("ab"))}, []byte("a"), 1},
		{"BinaryComponentComparator", &pb.BinaryComponentComparator{Value: []byte("b"), Offset: new(uint32(1))}, []byte("abc"), 0},
		{"BitComparator", &pb.BitComparator{Comparable: comparable([]byte{6}), BitwiseOp: new(pb.BitComparator_AND)}, []byte{2}, 0},
		{"BitComparator", &pb.BitComparator{Comparable: comparable([]byte{6}), BitwiseOp: new(pb.BitComparator_AND)}, []byte{1}, 1},
		{"BitComparator", &pb.BitComparator{Comparable: comparable([]byte{6}), BitwiseOp: new(pb.BitComparator_XOR)}, []byte{6}, 1},
		{"BitComparator", &pb.BitComparator{Comparable: comparable([]byte{0}), BitwiseOp: new(pb.BitComparator_OR)}, []byte{6}, 0},
		{"BitComparator", &pb.BitComparator{Comparable: comparable([]byte{0, 0}), BitwiseOp: new(pb.BitComparator_OR)}, []byte{6}, 1},
		{"NullComparator", &pb.NullComparator{}, []byte{}, 1},
		{"LongComparator", &pb.LongComparator{Comparable: comparable(long(5, 0))}, long(5, 0), 0},
		{"LongComparator", &pb.LongComparator{Comparable: comparable(long(0xFF, 0xFF))}, long(5, 0), -1},
		// What lies behind a short value counts: the next cell's lengths.
		{"LongComparator", &pb.LongComparator{Comparable: comparable(long(5, 0))}, []byte{1}, -1},
		{"LongComparator", &pb.LongComparator{Comparable: comparable(long(5, 0))}, nil, -1},
		{"LongComparator", &pb.LongComparator{Comparable: comparable(long(5, 0))}, []byte{0xFF}, 1},
		{"BigDecimalComparator", &pb.BigDecimalComparator{Comparable: comparable(decimalOf("10", 1))}, decimalOf("1", 0), 0},
		{"BigDecimalComparator", &pb.BigDecimalComparator{Comparable: comparable(decimalOf("-15", 1))}, decimalOf("-1", 0), -1},
		{"BigDecimalComparator", &pb.BigDecimalComparator{Comparable: comparable(decimalOf("0", 7))}, decimalOf("0", -7), 0},
		{"BigDecimalComparator", &pb.BigDecimalComparator{Comparable: comparable(decimalOf("1", -2_000_000_000))}, decimalOf("1", 2_000_000_000), 1},
		{"BigDecimalComparator", &pb.BigDecimalComparator{Comparable: comparable(decimalOf("-1", -2_000_000_000))}, decimalOf("-1", 2_000_000_000), -1},
		{"SubstringComparator", &pb.SubstringComparator{Substr: new("ÄR")}, []byte("ärger"), 0},
		{"SubstringComparator", &pb.SubstringComparator{Substr: new("")}, []byte{}, 0},
		{"SubstringComparator", &pb.SubstringComparator{Substr: new("x")}, []byte("abc"), 1},
	} {
		b, err := c.m.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		made, err := ParseComparator(&pb.Comparator{Name: new(javaPackage + c.name), SerializedComparator: b})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got, err := made.Compare(c.stored)
		if err != nil || got != c.want && (got < 0) != (c.want < 0) || (got == 0) != (c.want == 0) {
			t.Errorf("%s against %x: %d, %v; want %d", c.name, c.stored, got, err, c.want)
		}
	}
	short := &componentComparator{expected{[]byte("abc")}, 4_000_000_000}
	if _, err := short.Compare([]byte("abc")); err == nil {
		t.Error("a component behind the value")
	}
}

// Java patterns that Go's engine reads the same, after translation, and those
// it does not.
func TestJavaRegex(t *testing.T) {
	for _, c := range []struct {
		pattern string
		flags   int32
		text    string
		found   bool
	}{
		{"b", javaDotAll, "abc", true}, {"^b", javaDotAll, "abc", false},
		{"a.c", javaDotAll, "a\nc", true}, {"a.c", 0, "a\nc", false}, {"a.c", 0, "a\rc", false}, {"a.c", 0, "a\u0085c", false}, {"a.c", 0, "a\u2028c", false},
		{"a.c", javaUnixLines, "a\rc", true}, {"a.c", javaUnixLines, "a\nc", false}, {"a.c", 0, "axc", true},
		{"c$", 0, "abc\n", true}, {"c$", 0, "abc\r\n", true}, {"c$", 0, "abc\nd", false}, {"c$", javaMultiline, "abc\nd", true}, {`c\z`, 0, "abc\n", false}, {`c\Z`, 0, "abc\n", true},
		{"ABC", javaIgnoreCase, "xabcx", true}, {"[A-C]+$", javaIgnoreCase, "abc", true}, {"[^a]", javaIgnoreCase, "A", true}, {"ä", javaIgnoreCase, "Ä", false},
		{"ä", javaIgnoreCase | javaUnicodeCase, "Ä", true}, {"k", javaIgnoreCase, "\u212A", false}, // the Kelvin sign is no ASCII letter
		{"a.c", javaLiteral, "abc", false}, {"a.c", javaLiteral, "a.c", true}, {"a b # c", javaComments, "ab", true}, {`a\ b`, javaComments, "a b", true},
		{`a\sb`, 0, "a\x0Bb", true}, {`a\Sb`, 0, "a\x0Bb", false}, {`[\s]`, 0, "\x0B", true}, {`\v`, 0, "\r", true}, {`\h`, 0, "\u00A0", true}, {`\R`, 0, "\r\n", true},
		{`\u0041`, 0, "A", true}, {`\x41`, 0, "A", true}, {`\0101`, 0, "A", true}, {`\e`, 0, "\x1B", true}, {`\Qa.b\E.`, 0, "a.bc", true}, {`\Qa.b`, 0, "a.b", true},
		{`\d{2}\w`, 0, "12a", true}, {"a|b", 0, "b", true}, {"(?i)ABC", 0, "abc", true}, {"(?:a)(?<n>b)", 0, "ab", true}, {"[]a]", 0, "]", true}, {"[^]a]", 0, "]", false}, {`\ä`, 0, "ä", true},
		{"a+?b", 0, "aab", true}, {`a\++`, 0, "a+", true}, {"", 0, "", true},
	} {
		made, err := newRegex(c.pattern, c.flags, "UTF-8", "JAVA")
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if got, _ := made.Compare([]byte(c.text)); (got == 0) != c.found {
			t.Errorf("%q (flags %d) in %q: found %v", c.pattern, c.flags, c.text, got == 0)
		}
	}
	for _, p := range []string{"(?=a)", "(?!a)", "(?<=a)b", `(a)\1`, `\k<n>`, "a++", "a*+", "a?+", "a{2}+", "(?>a)", "[a&&b]", "[a[b]]", "[[:alpha:]]", `[\S]`, `\G`, `\X`, `\C`, "[a", "(a", `\`, "a{2000}"} {
		if _, err := newRegex(p, 0, "UTF-8", "JAVA"); err == nil {
			t.Errorf("%q accepted", p)
		}
	}
	for _, c := range []struct {
		flags           int32
		charset, engine string
	}{{javaCanonEq, "UTF-8", "JAVA"}, {javaUnicodeClass, "UTF-8", ""}, {0, "nope", "JAVA"}, {0, "UTF-8", "PERL"}} {
		if _, err := newRegex("a", c.flags, c.charset, c.engine); err == nil {
			t.Errorf("%+v accepted", c)
		}
	}
	latin, err := newRegex("ä", 0, "ISO-8859-1", "JAVA")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := latin.Compare([]byte{0xE4}); got != 0 {
		t.Error("Latin-1")
	}
}

func TestFuzzyAfter(t *testing.T) {
	pattern := func(key, mask string) *fuzzyPattern {
		p := &fuzzyPattern{key: []byte(key), fixed: make([]bool, len(mask))}
		for i := range mask {
			p.fixed[i] = mask[i] == '0'
		}
		return p
	}
	for _, c := range []struct{ row, key, mask, want string }{
		{"aa", "??b", "110", "aab"}, {"aab", "??b", "110", "abb"}, {"aac", "??b", "110", "abb"},
		{"\xff\xffc", "??b", "110", "-"}, {"a\xffc", "??b", "110", "b\x00b"}, {"aa", "aa", "00", "-"},
		{"ab", "aa", "00", "-"}, {"a", "ab", "00", "ab"}, {"", "?b", "10", "\x00b"},
	} {
		got := pattern(c.key, c.mask).after([]byte(c.row))
		text := "-"
		if got != nil {
			text = string(got)
		}
		if text != c.want {
			t.Errorf("after %q with %q/%s: %q, want %q", c.row, c.key, c.mask, text, c.want)
		}
		if got != nil && bytes.Compare(got, []byte(c.row)) <= 0 {
			t.Errorf("after %q: %q is not larger", c.row, got)
		}
	}
}

func TestRowRangesMerge(t *testing.T) {
	r := func(start, stop string, in, inc bool) rowRange {
		return rowRange{[]byte(start), []byte(stop), in, inc}
	}
	for _, c := range []struct {
		in   []rowRange
		want string
	}{
		{[]rowRange{r("c", "d", true, false), r("a", "b", true, false)}, "[a,b) [c,d)"},
		{[]rowRange{r("a", "c", true, false), r("b", "d", true, true)}, "[a,d]"},
		{[]rowRange{r("a", "b", true, false), r("b", "c", false, false)}, "[a,b) (b,c)"},
		{[]rowRange{r("a", "b", true, true), r("b", "c", false, false)}, "[a,c)"},
		{[]rowRange{r("a", "", true, false), r("b", "c", true, false)}, "[a,)"},
		{[]rowRange{r("a", "z", true, false), r("b", "c", true, true)}, "[a,z)"},
		{[]rowRange{r("a", "ab", false, false), r("a", "aa", true, false)}, "(a,ab)"},
	} {
		f, err := newRowRanges(c.in)
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, x := range f.ranges {
			open, end := "(", ")"
			if x.includeStart {
				open = "["
			}
			if x.inc {
				end = "]"
			}
			text += fmt.Sprintf(" %s%s,%s%s", open, x.start, x.stop, end)
		}
		if text[1:] != c.want {
			t.Errorf("got%s, want %s", text, c.want)
		}
	}
}

// FuzzParse feeds any bytes to every class, and drives what comes out.
func FuzzParse(f *testing.F) {
	classes := []string{"FilterList", "SkipFilter", "WhileMatchFilter", "FilterWrapper", "RowFilter", "FamilyFilter", "QualifierFilter", "ValueFilter", "DependentColumnFilter",
		"SingleColumnValueFilter", "SingleColumnValueExcludeFilter", "ColumnValueFilter", "PrefixFilter", "InclusiveStopFilter", "PageFilter", "RandomRowFilter",
		"FuzzyRowFilter", "MultiRowRangeFilter", "FilterAllFilter", "KeyOnlyFilter", "FirstKeyOnlyFilter", "FirstKeyValueMatchingQualifiersFilter", "ColumnCountGetFilter",
		"ColumnPaginationFilter", "ColumnPrefixFilter", "MultipleColumnPrefixFilter", "ColumnRangeFilter", "TimestampsFilter"}
	spoil.Add(f, uint8(0), named(f, "FilterList", &pb.FilterList{Operator: new(pb.FilterList_MUST_PASS_ONE), Filters: []*pb.Filter{
		named(f, "ColumnPrefixFilter", &pb.ColumnPrefixFilter{Prefix: []byte("b")}), named(f, "PageFilter", &pb.PageFilter{PageSize: new(int64(1))})}}).SerializedFilter)
	spoil.Add(f, uint8(7), named(f, "ValueFilter", &pb.ValueFilter{CompareFilter: &pb.CompareFilter{CompareOp: new(pb.CompareType_LESS), Comparator: binaryOf(f, "v")}}).SerializedFilter)
	spoil.Add(f, uint8(16), named(f, "FuzzyRowFilter", &pb.FuzzyRowFilter{FuzzyKeysData: []*pb.BytesBytesPair{{First: []byte("a?"), Second: []byte{0, 1}}}}).SerializedFilter)
	spoil.Add(f, uint8(26), named(f, "ColumnRangeFilter", &pb.ColumnRangeFilter{MinColumn: []byte("b"), MaxColumn: []byte("c")}).SerializedFilter)
	f.Fuzz(func(t *testing.T, class uint8, b []byte) {
		made, err := Parse(&pb.Filter{Name: new(javaPackage + classes[int(class)%len(classes)]), SerializedFilter: b})
		if err != nil {
			var e *cells.Exception
			if !errors.As(err, &e) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for _, row := range []string{"a", "ab", "b"} {
			first := cells.Cell{Row: []byte(row), Family: []byte("f"), Qualifier: []byte("a"), Timestamp: 5, Type: cells.Put, Value: []byte("v")}
			if made.FilterAllRemaining() {
				return
			}
			if _, err := made.FilterRowKey(&first); err != nil {
				return
			}
			var kept []cells.Cell
			for _, q := range []string{"a", "b", "c"} {
				c := first
				c.Qualifier = []byte(q)
				code, err := made.FilterCell(&c)
				if err != nil {
					return
				}
				if included(code) {
					if made.TransformCell(&c) == nil {
						kept = append(kept, c)
					}
				} else if code == cells.SeekNextUsingHint {
					if _, err := made.NextCellHint(&c); err != nil {
						return
					}
				}
			}
			if _, err := made.FilterRowCells(kept); err != nil {
				return
			}
			if _, err := made.FilterRow(); err != nil {
				return
			}
			if err := made.Reset(); err != nil {
				return
			}
		}
	})
}
