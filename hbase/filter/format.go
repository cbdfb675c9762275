package filter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrNotInLanguage is what [Format] answers for filters the filter language
// has no words for.
var ErrNotInLanguage = errors.New("the filter language has no words for it")

// Format writes a filter in HBase's filter language: [Parse] of the text makes
// a filter with the same bytes on the wire, and so does HBase. Bytes come out
// as they are, also those that do not print.
//
// The language has no words for FuzzyRowFilter, MultiRowRangeFilter,
// RandomRowFilter, FirstKeyValueMatchingQualifiersFilter and custom filters,
// for most comparators, for lists of fewer than two filters, and for some
// fields; the error is then ErrNotInLanguage, and what it is about.
func Format(f Filter) (string, error) {
	w := writer{}
	w.filter(f, 0)
	if w.err != nil {
		return "", w.err
	}
	return w.String(), nil
}

// text is what String gives: the language where it has words, and a likeness
// of it elsewhere, with bytes that do not print as \xHH.
func text(f Filter) string {
	w := writer{lenient: true}
	w.filter(f, 0)
	return w.String()
}

// writer prints filters. Strictly, the first thing the language lacks is
// remembered; leniently it is printed somehow.
type writer struct {
	strings.Builder
	lenient bool
	err     error
}

// lacks says that the language does not have something.
func (w *writer) lacks(what string, v ...any) {
	if !w.lenient && w.err == nil {
		w.err = fmt.Errorf("%s: %w", fmt.Sprintf(what, v...), ErrNotInLanguage)
	}
}

// filter prints one filter that stands depth levels deep. Inside parentheses
// every group gets its own, since HBase's parser is wrong about mixed operators
// there; at the top OR of AND needs none.
func (w *writer) filter(f Filter, depth int) {
	if depth > maxDepth {
		w.lacks("filters nested more than %d deep", maxDepth)
		w.WriteString("...")
		return
	}
	switch f := f.(type) {
	case *SkipFilter:
		w.WriteString("SKIP ")
		w.group(f.Filter, depth)
	case *WhileMatchFilter:
		w.WriteString("WHILE ")
		w.group(f.Filter, depth)
	case *FilterList:
		w.list(f, depth)
	default:
		w.simple(f)
	}
}

// group prints a filter with parentheses around, unless it is a simple one.
func (w *writer) group(f Filter, depth int) {
	if _, ok := f.(container); !ok {
		w.filter(f, depth+1)
		return
	}
	w.WriteByte('(')
	w.filter(f, depth+1)
	w.WriteByte(')')
}

func (w *writer) list(f *FilterList, depth int) {
	between := " AND "
	if f.Operator == MustPassOne {
		between = " OR "
	} else if f.Operator != MustPassAll {
		w.lacks("FilterList with operator %d", f.Operator)
	}
	if len(f.Filters) < 2 {
		w.lacks("FilterList of %d filters", len(f.Filters))
		w.WriteString("FilterList(" + f.Operator.String())
		for _, in := range f.Filters {
			w.WriteString(", ")
			w.filter(in, depth+1)
		}
		w.WriteByte(')')
		return
	}
	for i, in := range f.Filters {
		if i > 0 {
			w.WriteString(between)
		}
		bare := false
		switch in := in.(type) {
		case *SkipFilter, *WhileMatchFilter:
			bare = depth == 0
		case *FilterList:
			bare = depth == 0 && f.Operator == MustPassOne && in.Operator == MustPassAll && len(in.Filters) > 1
		}
		if bare {
			// Its own operands stand in parentheses, as at depth 1.
			w.filter(in, depth+1)
		} else {
			w.group(in, depth)
		}
	}
}

// simple prints a filter that holds no other.
func (w *writer) simple(f Filter) {
	if f == nil {
		w.lacks("a filter that is nil")
		w.WriteString("nil")
		return
	}
	c := w.call(strings.TrimPrefix(f.Name(), javaPackage))
	switch f := f.(type) {
	case *PrefixFilter:
		c.bytes(f.Prefix)
	case *InclusiveStopFilter:
		c.bytes(f.Row)
	case *PageFilter:
		c.number(f.Size)
	case *KeyOnlyFilter:
		if f.LengthAsValue {
			c.bool(true)
		}
	case *FirstKeyOnlyFilter:
	case *ColumnCountGetFilter:
		c.number(int64(f.Limit))
	case *ColumnPaginationFilter:
		c.number(int64(f.Limit))
		if f.From == nil {
			c.number(int64(f.Offset))
		} else {
			w.lacks("ColumnPaginationFilter from a qualifier")
			c.bytes(f.From)
		}
	case *ColumnPrefixFilter:
		c.bytes(f.Prefix)
	case *MultipleColumnPrefixFilter:
		for _, p := range sorted(f.Prefixes) {
			c.bytes(p)
		}
	case *ColumnRangeFilter:
		if f.Min != nil && len(f.Min) == 0 || f.Max != nil && len(f.Max) == 0 {
			w.lacks("ColumnRangeFilter with an empty bound that is not open")
		}
		c.bytes(f.Min)
		c.bool(f.MinInclusive)
		c.bytes(f.Max)
		c.bool(f.MaxInclusive)
	case *TimestampsFilter:
		if f.CanHint {
			w.lacks("TimestampsFilter with hints")
		}
		for _, t := range f.Timestamps {
			c.number(t)
		}
	case *RowFilter:
		c.compare(f.Op, f.Comparator, true)
	case *FamilyFilter:
		c.compare(f.Op, f.Comparator, true)
	case *QualifierFilter:
		c.compare(f.Op, f.Comparator, true)
	case *ValueFilter:
		c.compare(f.Op, f.Comparator, true)
	case *SingleColumnValueFilter:
		c.single(f)
	case *SingleColumnValueExcludeFilter:
		c.single(&f.SingleColumnValueFilter)
	case *ColumnValueFilter:
		c.bytes([]byte(f.Family))
		c.bytes([]byte(f.Qualifier))
		c.compare(f.Op, f.Comparator, true)
	case *DependentColumnFilter:
		c.bytes([]byte(f.Family))
		c.bytes([]byte(f.Qualifier))
		if f.Drop || f.Comparator != nil {
			c.bool(f.Drop)
		}
		if f.Comparator != nil {
			c.compare(f.Op, f.Comparator, false)
		}
	default:
		w.lacks("%s", f.Name())
		c.other(f)
	}
	w.WriteByte(')')
}

// call prints arguments with commas between them.
type call struct {
	w     *writer
	comma bool
}

func (w *writer) call(name string) *call {
	w.WriteString(name)
	w.WriteByte('(')
	return &call{w: w}
}

func (c *call) raw(s string) {
	if c.comma {
		c.w.WriteString(", ")
	}
	c.comma = true
	c.w.WriteString(s)
}

func (c *call) number(n int64) { c.raw(strconv.FormatInt(n, 10)) }
func (c *call) bool(b bool)    { c.raw(strconv.FormatBool(b)) }

func (c *call) bytes(b []byte) {
	c.raw("'")
	c.w.quoted(b)
	c.w.WriteByte('\'')
}

// quoted prints bytes as they stand between quotes.
func (w *writer) quoted(b []byte) {
	for _, ch := range b {
		switch {
		case ch == '\'':
			w.WriteString("''")
		case w.lenient && (ch < ' ' || ch >= 0x7F):
			fmt.Fprintf(w, `\x%02X`, ch)
		default:
			w.WriteByte(ch)
		}
	}
}

func (c *call) single(f *SingleColumnValueFilter) {
	c.bytes([]byte(f.Family))
	c.bytes([]byte(f.Qualifier))
	c.compare(f.Op, f.Comparator, true)
	if f.IfMissing || f.AnyVersion {
		c.bool(f.IfMissing)
		c.bool(!f.AnyVersion)
	}
}

// compare prints an operator and a comparator. With strict set, comparators
// that know only "equal" are none the language has with other operators.
func (c *call) compare(op Op, cmp Comparator, strict bool) {
	w := c.w
	if int(op) < len(symbols) {
		c.raw(symbols[op])
	} else {
		w.lacks("operator %v", op)
		c.raw(op.String())
	}
	if cmp == nil {
		w.lacks("a comparator that is nil")
		c.raw("nil")
		return
	}
	kind, ordered := "", false
	var value []byte
	switch cmp := cmp.(type) {
	case *BinaryComparator:
		kind, value, ordered = "binary", cmp.Value, true
	case *BinaryPrefixComparator:
		kind, value, ordered = "binaryprefix", cmp.Value, true
	case *SubstringComparator:
		kind, value = "substring", []byte(javaLower(cmp.Substring))
	case *RegexStringComparator:
		if cmp.charset() == "UTF-8" && cmp.engine() == EngineJava {
			switch value = []byte(cmp.Pattern); cmp.wireFlags() {
			case Regex(cmp.Pattern).wireFlags():
				kind = "regexstring"
			case RegexNoCase(cmp.Pattern).wireFlags():
				kind = "regexstringnocase"
			}
		}
	}
	if kind == "" {
		w.lacks("%s", strings.TrimPrefix(cmp.Name(), javaPackage))
		c.comparator(cmp)
		return
	}
	if strict && !ordered && op != Equal && op != NotEqual {
		w.lacks("operator %v with %s", op, kind)
	}
	c.raw("'" + kind + ":")
	w.quoted(value)
	w.WriteByte('\'')
}

// comparator prints a comparator the language does not have.
func (c *call) comparator(cmp Comparator) {
	c.raw(strings.TrimPrefix(cmp.Name(), javaPackage))
	in := &call{w: c.w}
	c.w.WriteByte('(')
	switch cmp := cmp.(type) {
	case *BinaryComponentComparator:
		in.number(int64(cmp.Offset))
		in.bytes(cmp.Value)
	case *BitComparator:
		in.raw(cmp.Op.String())
		in.bytes(cmp.Value)
	case *LongComparator:
		in.number(cmp.Value)
	case *BigDecimalComparator:
		unscaled := "0"
		if cmp.Unscaled != nil {
			unscaled = cmp.Unscaled.String()
		}
		in.raw(unscaled + "e" + strconv.FormatInt(-int64(cmp.Scale), 10))
	case *RegexStringComparator:
		in.bytes([]byte(cmp.Pattern))
		in.raw("flags " + strconv.Itoa(int(cmp.Flags)))
		in.raw(cmp.charset())
		in.raw(cmp.engine())
	case *CustomComparator:
		in.raw(strconv.Itoa(len(cmp.Data)) + " bytes")
	}
	c.w.WriteByte(')')
}

// other prints a filter the language does not have.
func (c *call) other(f Filter) {
	switch f := f.(type) {
	case *RandomRowFilter:
		c.raw(strconv.FormatFloat(float64(f.Chance), 'g', -1, 32))
	case *FirstKeyValueMatchingQualifiersFilter:
		for _, q := range f.Qualifiers {
			c.bytes(q)
		}
	case *FuzzyRowFilter:
		for _, p := range f.Patterns {
			c.raw("'")
			for i, ch := range p.Row {
				if i < len(p.Mask) && p.Mask[i] != 0 {
					c.w.WriteByte('?')
				} else {
					c.w.quoted([]byte{ch})
				}
			}
			c.w.WriteByte('\'')
		}
	case *MultiRowRangeFilter:
		for _, r := range f.Ranges {
			open, end := "[", ")"
			if r.ExcludeStart {
				open = "("
			}
			if r.IncludeStop {
				end = "]"
			}
			c.raw(open + "'")
			c.w.quoted(r.Start)
			c.w.WriteString("', '")
			c.w.quoted(r.Stop)
			c.w.WriteString("'" + end)
		}
	case *CustomFilter:
		c.raw(strconv.Itoa(len(f.Data)) + " bytes")
	}
}
