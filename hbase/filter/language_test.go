package filter

import (
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
)

func TestLanguageIsKnown(t *testing.T) {
	names := []string{}
	for _, e := range Language() {
		names = append(names, e.Name)
		if e.About == "" {
			t.Errorf("%s says nothing about itself", e.Name)
		}
		// The name is that of the class it makes.
		if f, err := Unmarshal(javaPackage+e.Name, nil); err == nil {
			if _, custom := f.(*CustomFilter); custom {
				t.Errorf("%s is a class this package does not know", e.Name)
			}
		}
	}
	if !slices.IsSorted(names) || len(names) != 19 {
		t.Errorf("%d names, sorted %v; HBase has 19", len(names), slices.IsSorted(names))
	}
}

func TestParseErrors(t *testing.T) {
	cases := []struct {
		text   string
		offset int
		want   string
	}{
		{"PrefixFilter('a') AND PageFilter(x)", 33, "Incorrect filter string PageFilter(x): argument 1 must be a whole number"},
		{"PrefixFilter('a') AND Page(3)", 22, "Filter Name Page not supported"},
		{"PrefixFilter('a') AND PageFilter(-3)", 22, "Incorrect filter string PageFilter(-3): PageFilter: must be positive -3"},
		{"RowFilter(=, 'binar:x')", 13, "must be a comparator"},
		{"RowFilter(=, 'binary')", 13, "must be a comparator such as"},
		{"RowFilter(<, 'substring:x')", 10, "must be = or != with substring"},
		{"RowFilter(=, 'regexstring:\xff')", 13, "must be valid UTF-8"},
		{"PrefixFilter('a", 0, "a quote is open at the end"},
		{"PageFilter(1) PageFilter(2)", 14, "no operator between"},
		{"PageFilter(1) AND  AND PageFilter(2)", 14, "an AND needs two filters"},
		{"PageFilter(1))", 13, "Mismatched parenthesis"},
		{"(PageFilter(1) OR PageFilter(2) AND PageFilter(3))", 15, "inside parentheses an operator"},
		{"((SKIP SKIP PageFilter(1))", 2, "inside parentheses an operator"},
		{"KeyOnlyFilter(1, 2)", 0, "2 arguments given, 0 or 1 wanted"},
		{"DependentColumnFilter('f')", 0, "1 arguments given, 2 or 3 or 5 wanted"},
		{"ColumnCountGetFilter(2147483648)", 21, "a number up to 2147483647"},
		{"PageFilter(18446744073709551617)", 11, "a number up to 9223372036854775807"},
		{"(", 0, "Incorrect Filter String"},
		{"X y)", 0, "Incorrect argument list"},
		{strings.Repeat("SKIP ", 101) + "PageFilter(1)", 0, "nested more than 100 deep"},
		{"PrefixFilter(" + strings.Repeat("1", 1000) + ")", 13, strings.Repeat("1", 180) + "...: argument"},
	}
	for _, c := range cases {
		f, err := Parse(c.text)
		bad := (*SyntaxError)(nil)
		if !errors.As(err, &bad) {
			t.Errorf("%.60q: %v, %v", c.text, f, err)
			continue
		}
		if bad.Offset != c.offset || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: byte %d, %v\n want byte %d, %s", c.text, bad.Offset, err, c.offset, c.want)
		}
	}
}

func TestFormat(t *testing.T) {
	a, b, c := Prefix("a"), Page(1), KeyAndLength()
	cases := []struct {
		f    Filter
		want string
	}{
		{Or(And(a, b), c), "PrefixFilter('a') AND PageFilter(1) OR KeyOnlyFilter(true)"},
		{And(Or(a, b), c), "(PrefixFilter('a') OR PageFilter(1)) AND KeyOnlyFilter(true)"},
		{And(And(a, b), c), "(PrefixFilter('a') AND PageFilter(1)) AND KeyOnlyFilter(true)"},
		{Skip(Or(a, And(b, c))), "SKIP (PrefixFilter('a') OR (PageFilter(1) AND KeyOnlyFilter(true)))"},
		{Or(And(Skip(a), b), Skip(Skip(c))), "(SKIP PrefixFilter('a')) AND PageFilter(1) OR SKIP (SKIP KeyOnlyFilter(true))"},
		{And(a, WhileMatch(b)), "PrefixFilter('a') AND WHILE PageFilter(1)"},
		{Prefix("it's\x00\xff"), "PrefixFilter('it''s\x00\xff')"},
		{ColumnRange("", true, "z", false), "ColumnRangeFilter('', true, 'z', false)"},
		{Timestamps(3, 1), "TimestampsFilter(3, 1)"},
		{MultipleColumnPrefix("b", "a"), "MultipleColumnPrefixFilter('a', 'b')"},
		{DependentColumn("f", "q", false), "DependentColumnFilter('f', 'q')"},
		{&DependentColumnFilter{Family: "f", Qualifier: "q", Op: Less, Comparator: Regex("a")}, "DependentColumnFilter('f', 'q', false, <, 'regexstring:a')"},
		{SingleColumnValue("f", "q", Equal, Substring("AbC")), "SingleColumnValueFilter('f', 'q', =, 'substring:abc')"},
		{SingleColumnValueExclude("f", "q", Equal, Binary("x"), AnyVersion), "SingleColumnValueExcludeFilter('f', 'q', =, 'binary:x', false, false)"},
		{Row(NotEqual, Regex("(?i)a")), "RowFilter(!=, 'regexstring:(?i)a')"},
		{Row(NotEqual, RegexNoCase("a")), "RowFilter(!=, 'regexstringnocase:a')"},
	}
	for _, c := range cases {
		got, err := Format(c.f)
		if err != nil || got != c.want {
			t.Errorf("%s (%v)\n want %s", got, err, c.want)
		}
		roundTrip(t, c.f)
	}
}

func TestNotInLanguage(t *testing.T) {
	regex := Regex("a")
	regex.Flags = 0
	cases := []struct {
		f     Filter
		shown string
	}{
		{FuzzyRow(Fuzzy("ab??'", '?')), "FuzzyRowFilter('ab??''')"},
		{MultiRowRange(RowsBetween("a", "b"), RowRange{Start: []byte("c"), Stop: []byte("d"), ExcludeStart: true, IncludeStop: true}), "MultiRowRangeFilter(['a', 'b'), ('c', 'd'])"},
		{RandomRow(0.25), "RandomRowFilter(0.25)"},
		{FirstMatchingQualifiers("a", "b"), "FirstKeyValueMatchingQualifiersFilter('a', 'b')"},
		{Custom("com.example.F", []byte{1, 2}), "com.example.F(2 bytes)"},
		{And(), "FilterList(MUST_PASS_ALL)"},
		{Or(Page(1)), "FilterList(MUST_PASS_ONE, PageFilter(1))"},
		{Skip(And(Page(1))), "SKIP (FilterList(MUST_PASS_ALL, PageFilter(1)))"},
		{ColumnPaginationFrom(3, "q"), "ColumnPaginationFilter(3, 'q')"},
		{&ColumnRangeFilter{Min: []byte{}}, "ColumnRangeFilter('', false, '', false)"},
		{&TimestampsFilter{CanHint: true}, "TimestampsFilter()"},
		{Row(NoOp, nil), "RowFilter(NO_OP, nil)"},
		{Value(Less, Substring("a")), "ValueFilter(<, 'substring:a')"},
		{Value(Equal, Long(-5)), "ValueFilter(=, LongComparator(-5))"},
		{Value(Equal, Null()), "ValueFilter(=, NullComparator())"},
		{Value(Equal, Bit(BitXor, "\x01")), `ValueFilter(=, BitComparator(XOR, '\x01'))`},
		{Value(Equal, BinaryComponent(4, "x")), "ValueFilter(=, BinaryComponentComparator(4, 'x'))"},
		{Value(Equal, BigDecimal(big.NewInt(-150), 2)), "ValueFilter(=, BigDecimalComparator(-150e-2))"},
		{Value(Equal, regex), "ValueFilter(=, RegexStringComparator('a', flags 0, UTF-8, JAVA))"},
		{Value(Equal, &CustomComparator{Class: "com.example.C", Data: []byte{1}}), "ValueFilter(=, com.example.C(1 bytes))"},
	}
	for _, c := range cases {
		if s, err := Format(c.f); !errors.Is(err, ErrNotInLanguage) || s != "" {
			t.Errorf("%v: %q, %v", c.f, s, err)
		}
		if got := text(c.f); got != c.shown {
			t.Errorf("shown as %s, want %s", got, c.shown)
		}
	}
	if got := Prefix("a\x00\xff").String(); got != `PrefixFilter('a\x00\xFF')` {
		t.Error(got)
	}
}

// A filter inside itself must not end the process.
func TestCycle(t *testing.T) {
	l := And(Page(1))
	l.Filters = append(l.Filters, Skip(l))
	if _, err := l.Marshal(); err == nil {
		t.Error("a filter inside itself was marshalled")
	}
	if _, err := Format(l); !errors.Is(err, ErrNotInLanguage) {
		t.Error(err)
	}
	if len(l.String()) == 0 {
		t.Error("nothing printed")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "(", "PrefixFilter('a') AND PageFilter(2) OR KeyOnlyFilter()", "SKIP (WHILE SKIP PageFilter(1))", "F(,1,,'2''',)", "X y)", "() F()",
		"DependentColumnFilter('f','q',true,<,'substring:İΣ')", "ColumnRangeFilter('', TRUE, '', false)", "SingleColumnValueFilter('f','q',!=,'regexstringnocase:(?i-s)x',true,false)",
		"(A OR B AND C)", "MultipleColumnPrefixFilter('a','b')OR TimestampsFilter(-)", "PageFilter(1) SKIP AND PageFilter(2)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		made, err := Parse(s)
		if err != nil {
			if bad := (*SyntaxError)(nil); !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(s) || len(err.Error()) > 1000 {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		roundTrip(t, made)
	})
}
