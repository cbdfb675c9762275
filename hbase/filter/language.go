package filter

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Entry describes one filter of the language.
type Entry struct {
	// Name is the filter's name in the language.
	Name string
	// Arguments shows what it takes, optional arguments in brackets.
	Arguments string
	// About says what it does.
	About string
}

// Language lists the filters [Parse] knows, by name.
func Language() []Entry {
	out := make([]Entry, len(language))
	for i := range language {
		out[i] = language[i].Entry
	}
	return out
}

type entry struct {
	Entry
	make func(*arguments) (Filter, error)
}

func entryOf(name string) *entry {
	for i := range language {
		if language[i].Name == name {
			return &language[i]
		}
	}
	return nil
}

const opArguments = "OPERATOR, 'COMPARATOR'"

// language is never written to.
var language = [...]entry{
	{Entry{"ColumnCountGetFilter", "limit", "The first limit columns of a row"}, func(a *arguments) (Filter, error) {
		a.count(1)
		return ColumnCountGet(a.int32(0)), a.err
	}},
	{Entry{"ColumnPaginationFilter", "limit, offset", "limit columns of a row behind the first offset"}, func(a *arguments) (Filter, error) {
		a.count(2)
		return ColumnPagination(a.int32(0), a.int32(1)), a.err
	}},
	{Entry{"ColumnPrefixFilter", "'prefix'", "Columns whose qualifier begins so"}, func(a *arguments) (Filter, error) {
		a.count(1)
		return ColumnPrefix(a.bytes(0)), a.err
	}},
	{Entry{"ColumnRangeFilter", "'min', minInclusive, 'max', maxInclusive", "Columns whose qualifier lies between two bounds; '' is open"}, func(a *arguments) (Filter, error) {
		a.count(4)
		return ColumnRange(a.bytes(0), a.bool(1), a.bytes(2), a.bool(3)), a.err
	}},
	{Entry{"ColumnValueFilter", "'family', 'qualifier', " + opArguments, "Only the cells of one column whose value passes"}, func(a *arguments) (Filter, error) {
		a.count(4)
		op, c := a.compare(2, true)
		return ColumnValue(string(a.bytes(0)), string(a.bytes(1)), op, c), a.err
	}},
	{Entry{"DependentColumnFilter", "'family', 'qualifier'[, drop[, " + opArguments + "]]", "Cells with the timestamp of a cell of one column"}, func(a *arguments) (Filter, error) {
		a.count(2, 3, 5)
		f := DependentColumn(string(a.bytes(0)), string(a.bytes(1)), len(a.list) > 2 && a.bool(2))
		if len(a.list) > 3 {
			// HBase takes any operator with any comparator here, and only here.
			f.Op, f.Comparator = a.compare(3, false)
		}
		return f, a.err
	}},
	{Entry{"FamilyFilter", opArguments, "Cells of families whose name passes"}, func(a *arguments) (Filter, error) {
		a.count(2)
		return Family(a.compare(0, true)), a.err
	}},
	{Entry{"FirstKeyOnlyFilter", "", "The first cell of each row"}, func(a *arguments) (Filter, error) {
		a.count(0)
		return FirstKeyOnly(), a.err
	}},
	{Entry{"InclusiveStopFilter", "'row'", "Rows up to and including this one"}, func(a *arguments) (Filter, error) {
		a.count(1)
		return InclusiveStop(a.bytes(0)), a.err
	}},
	{Entry{"KeyOnlyFilter", "[lengthAsValue]", "Cells without their values, or with their lengths as values"}, func(a *arguments) (Filter, error) {
		a.count(0, 1)
		return &KeyOnlyFilter{LengthAsValue: len(a.list) > 0 && a.bool(0)}, a.err
	}},
	{Entry{"MultipleColumnPrefixFilter", "'prefix', ...", "Columns whose qualifier begins with any of these"}, func(a *arguments) (Filter, error) {
		prefixes := make([][]byte, len(a.list))
		for i := range a.list {
			prefixes[i] = a.bytes(i)
		}
		return MultipleColumnPrefix(prefixes...), a.err
	}},
	{Entry{"PageFilter", "size", "The first size rows of each region"}, func(a *arguments) (Filter, error) {
		a.count(1)
		return Page(a.int64(0)), a.err
	}},
	{Entry{"PrefixFilter", "'prefix'", "Rows that begin so"}, func(a *arguments) (Filter, error) {
		a.count(1)
		return Prefix(a.bytes(0)), a.err
	}},
	{Entry{"QualifierFilter", opArguments, "Cells whose qualifier passes"}, func(a *arguments) (Filter, error) {
		a.count(2)
		return Qualifier(a.compare(0, true)), a.err
	}},
	{Entry{"RowFilter", opArguments, "Rows whose key passes"}, func(a *arguments) (Filter, error) {
		a.count(2)
		return Row(a.compare(0, true)), a.err
	}},
	{Entry{"SingleColumnValueExcludeFilter", "'family', 'qualifier', " + opArguments + "[, ifMissing, latestVersionOnly]", "As SingleColumnValueFilter, without the column tested"}, func(a *arguments) (Filter, error) {
		f, err := a.single()
		return &SingleColumnValueExcludeFilter{f}, err
	}},
	{Entry{"SingleColumnValueFilter", "'family', 'qualifier', " + opArguments + "[, ifMissing, latestVersionOnly]", "Rows in which the value of one column passes"}, func(a *arguments) (Filter, error) {
		f, err := a.single()
		return &f, err
	}},
	{Entry{"TimestampsFilter", "timestamp, ...", "Cells with one of these timestamps"}, func(a *arguments) (Filter, error) {
		ts := make([]int64, len(a.list))
		for i := range a.list {
			ts[i] = a.int64(i)
		}
		return Timestamps(ts...), a.err
	}},
	{Entry{"ValueFilter", opArguments, "Cells whose value passes"}, func(a *arguments) (Filter, error) {
		a.count(2)
		return Value(a.compare(0, true)), a.err
	}},
}

// argument is one argument as written.
type argument struct {
	text   []byte
	quoted bool
	at     int // in the whole text
}

// argumentError is an argument that does not fit.
type argumentError struct {
	at     int
	reason string
}

func (e *argumentError) Error() string { return e.reason }

// arguments reads typed arguments and remembers the first thing wrong. After
// that, and of arguments that are not there, zeros come out.
type arguments struct {
	list []argument
	err  error
}

func (a *arguments) bad(i int, want string) {
	if a.err == nil {
		a.err = &argumentError{a.list[i].at, fmt.Sprintf("argument %d must be %s", i+1, want)}
	}
}

// count says how many arguments are right.
func (a *arguments) count(right ...int) {
	for _, n := range right {
		if len(a.list) == n {
			return
		}
	}
	want := strings.TrimSuffix(strings.ReplaceAll(strings.Trim(fmt.Sprint(right), "[]"), " ", " or "), ",")
	a.err = &argumentError{0, fmt.Sprintf("%d arguments given, %s wanted", len(a.list), want)}
}

func (a *arguments) usable(i int) bool { return a.err == nil && i < len(a.list) }

func (a *arguments) bytes(i int) []byte {
	if !a.usable(i) {
		return nil
	}
	if !a.list[i].quoted {
		a.bad(i, "in single quotes")
	}
	return a.list[i].text
}

func (a *arguments) bool(i int) bool {
	if !a.usable(i) {
		return false
	}
	if s := a.list[i]; !s.quoted {
		switch {
		case len(s.text) == 4 && bytes.EqualFold(s.text, []byte("true")):
			return true
		case len(s.text) == 5 && bytes.EqualFold(s.text, []byte("false")):
			return false
		}
	}
	a.bad(i, "true or false")
	return false
}

// int64 reads an optional minus and digits; no digit at all is 0, as with
// HBase.
func (a *arguments) int64(i int) int64 { return a.number(i, math.MaxInt64) }

func (a *arguments) int32(i int) int32 { return int32(a.number(i, math.MaxInt32)) }

func (a *arguments) number(i int, most int64) int64 {
	if !a.usable(i) {
		return 0
	}
	s := a.list[i]
	digits, negative := bytes.CutPrefix(s.text, []byte("-"))
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' || s.quoted {
			a.bad(i, "a whole number without quotes")
			return 0
		}
		d := int64(c - '0')
		if n > (most-d)/10 {
			a.bad(i, fmt.Sprintf("a number up to %d", most))
			return 0
		}
		n = n*10 + d
	}
	if s.quoted {
		a.bad(i, "a whole number without quotes")
	}
	if negative {
		return -n
	}
	return n
}

// compare reads an operator and a comparator. With strict set, comparators that
// know only "equal" and "not equal" are refused with other operators.
func (a *arguments) compare(i int, strict bool) (Op, Comparator) {
	if !a.usable(i + 1) {
		return 0, nil
	}
	op, ok := Op(0), false
	if s := a.list[i]; !s.quoted {
		op, ok = opOf(string(s.text))
	}
	if !ok {
		a.bad(i, "one of < <= = != >= > without quotes")
		return 0, nil
	}
	kind, value, found := bytes.Cut(a.bytes(i+1), []byte(":"))
	if a.err == nil && !found {
		a.bad(i+1, "a comparator such as 'binary:value'")
	}
	if a.err != nil {
		return 0, nil
	}
	ordered := false
	var c Comparator
	switch string(kind) {
	case "binary":
		c, ordered = Binary(value), true
	case "binaryprefix":
		c, ordered = BinaryPrefix(value), true
	case "regexstring":
		c = Regex(string(value))
	case "regexstringnocase":
		c = RegexNoCase(string(value))
	case "substring":
		c = Substring(string(value))
	default:
		a.bad(i+1, "a comparator: binary, binaryprefix, regexstring, regexstringnocase or substring, a colon and the value")
		return 0, nil
	}
	if !ordered {
		if !utf8.Valid(value) {
			a.bad(i+1, "valid UTF-8")
		}
		if strict && op != Equal && op != NotEqual {
			a.bad(i, "= or != with "+string(kind))
		}
	}
	return op, c
}

// symbols are the operators as the language writes them, by Op.
var symbols = [...]string{Less: "<", LessOrEqual: "<=", Equal: "=", NotEqual: "!=", GreaterOrEqual: ">=", Greater: ">"}

func opOf(symbol string) (Op, bool) {
	for op, s := range symbols {
		if s == symbol {
			return Op(op), true
		}
	}
	return 0, false
}

func (a *arguments) single() (SingleColumnValueFilter, error) {
	a.count(4, 6)
	op, c := a.compare(2, true)
	f := SingleColumnValueFilter{Family: string(a.bytes(0)), Qualifier: string(a.bytes(1)), Op: op, Comparator: c}
	if len(a.list) == 6 {
		f.IfMissing, f.AnyVersion = a.bool(4), !a.bool(5)
	}
	return f, a.err
}
