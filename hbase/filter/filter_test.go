package filter

import (
	"encoding/hex"
	"testing"
)

// The bytes are written by hand from HBase's Filter.proto and Comparator.proto.
func TestMarshal(t *testing.T) {
	const pkg = "org.apache.hadoop.hbase.filter."
	cases := []struct {
		name  string
		f     Filter
		class string
		hex   string
		rows  bool
	}{
		{"first key only", FirstKeyOnly(), "FirstKeyOnlyFilter", "", false},
		{"key only", KeyOnly(), "KeyOnlyFilter", "0800", false},
		{"key and length", KeyAndLength(), "KeyOnlyFilter", "0801", false},
		{"prefix", Prefix("ab"), "PrefixFilter", "0a026162", false},
		{"page", Page(300), "PageFilter", "08ac02", true},
		{"inclusive stop", InclusiveStop([]byte{0xff}), "InclusiveStopFilter", "0a01ff", false},
		{"column prefix", ColumnPrefix("q"), "ColumnPrefixFilter", "0a0171", false},
		{"column pagination", ColumnPagination(2, 1), "ColumnPaginationFilter", "08021001", false},
		{"row", Row(Greater, Binary("m")), "RowFilter",
			// CompareFilter{5, Comparator{name, BinaryComparator{{"m"}}}}
			"0a3c" + "0805" + "1238" + "0a2f" + hex.EncodeToString([]byte(pkg+"BinaryComparator")) + "1205" + "0a030a016d", false},
		{"and", And(FirstKeyOnly(), KeyOnly()), "FilterList",
			"0801" +
				"1235" + "0a31" + hex.EncodeToString([]byte(pkg+"FirstKeyOnlyFilter")) + "1200" +
				"1232" + "0a2c" + hex.EncodeToString([]byte(pkg+"KeyOnlyFilter")) + "12020800", false},
		{"or with page", Or(Page(1)), "FilterList",
			"0802" + "122f" + "0a29" + hex.EncodeToString([]byte(pkg+"PageFilter")) + "12020801", true},
		{"skip", Skip(KeyOnly()), "SkipFilter",
			"0a32" + "0a2c" + hex.EncodeToString([]byte(pkg+"KeyOnlyFilter")) + "12020800", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.f.Name(); got != pkg+c.class {
				t.Errorf("name %s, want %s", got, pkg+c.class)
			}
			b, err := c.f.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if got := hex.EncodeToString(b); got != c.hex {
				t.Errorf("bytes %s\n want %s", got, c.hex)
			}
			if got := c.f.(interface{ FiltersRows() bool }).FiltersRows(); got != c.rows {
				t.Errorf("FiltersRows %v, want %v", got, c.rows)
			}
		})
	}
}

func TestSingleColumnValue(t *testing.T) {
	f := SingleColumnValue("f", "q", NotEqual, Null(), IfMissingDrop, AnyVersion)
	b, err := f.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	null := hex.EncodeToString([]byte("org.apache.hadoop.hbase.filter.NullComparator"))
	want := "0a0166" + "120171" + "1803" + "2231" + "0a2d" + null + "1200" + "2801" + "3000"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("bytes %s\n want %s", got, want)
	}
}

func TestNilInside(t *testing.T) {
	for name, f := range map[string]Filter{
		"list": And(nil), "skip": Skip(nil), "comparator": Row(Equal, nil), "deep": And(Or(Value(Less, nil))),
		"operator": Value(Op(9), Null()),
	} {
		if _, err := f.Marshal(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
