package filter_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

func ExampleParse() {
	f, err := filter.Parse("PrefixFilter('user/') AND (PageFilter(10) OR KeyOnlyFilter())")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range f.(*filter.FilterList).Filters {
		fmt.Println(in)
	}

	_, err = filter.Parse("PrefixFilter('user/') AND PageFilter(ten)")
	var bad *filter.SyntaxError
	fmt.Println(errors.As(err, &bad), bad.Offset, err)
	// Output:
	// PrefixFilter('user/')
	// PageFilter(10) OR KeyOnlyFilter()
	// true 37 filter at byte 37: Incorrect filter string PageFilter(ten): argument 1 must be a whole number without quotes
}

func ExampleFormat() {
	f := filter.Or(
		filter.SingleColumnValue("f", "state", filter.Equal, filter.Binary("it's on"), filter.IfMissingDrop),
		filter.Skip(filter.Value(filter.NotEqual, filter.RegexNoCase("^off"))),
	)
	s, err := filter.Format(f)
	fmt.Println(s, err)

	_, err = filter.Format(filter.RandomRow(0.5))
	fmt.Println(errors.Is(err, filter.ErrNotInLanguage))
	// Output:
	// SingleColumnValueFilter('f', 'state', =, 'binary:it''s on', true, true) OR SKIP ValueFilter(!=, 'regexstringnocase:^off') <nil>
	// true
}

func ExampleUnmarshal() {
	sent := filter.FuzzyRow(filter.Fuzzy("????-login", '?'))
	b, err := sent.Marshal()
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := filter.Unmarshal(sent.Name(), b)
	fmt.Println(f, err)
	// Output: FuzzyRowFilter('????-login') <nil>
}
