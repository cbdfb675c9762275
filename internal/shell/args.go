package shell

import (
	"fmt"
	"math"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

// ArgumentError is a command whose arguments make no sense; it carries the
// command's examples.
type ArgumentError struct {
	Command string
	Reason  string
	Usage   string
}

func (e *ArgumentError) Error() string { return e.Command + ": " + e.Reason }

// args are a command's arguments with typed access.
type args struct {
	command *command
	list    []Value
}

func (a args) fail(format string, v ...any) error {
	return &ArgumentError{Command: a.command.name, Reason: fmt.Sprintf(format, v...), Usage: a.command.usage}
}

// count checks how many arguments there are.
func (a args) count(lo, hi int) error {
	switch {
	case len(a.list) < lo:
		return a.fail("%d arguments given, at least %d needed", len(a.list), lo)
	case len(a.list) > hi:
		return a.fail("%d arguments given, at most %d taken", len(a.list), hi)
	}
	return nil
}

func (a args) len() int { return len(a.list) }

// text gives argument i as a string; what names it in errors.
func (a args) text(i int, what string) (string, error) {
	if i >= len(a.list) {
		return "", a.fail("the %s is missing", what)
	}
	switch v := a.list[i].(type) {
	case String:
		return string(v), nil
	case Symbol:
		return string(v), nil
	case int64:
		return fmt.Sprint(v), nil
	}
	return "", a.fail("the %s must be a string", what)
}

// texts gives argument i, a string or an array of them.
func (a args) texts(i int, what string) ([]string, error) {
	o := &options{a: a, h: &Hash{}}
	o.h.add(what, a.list[i])
	out := o.texts(what)
	return out, o.err
}

func (a args) integer(i int, what string) (int64, error) {
	if i >= len(a.list) {
		return 0, a.fail("the %s is missing", what)
	}
	n, ok := a.list[i].(int64)
	if !ok {
		return 0, a.fail("the %s must be a whole number", what)
	}
	return n, nil
}

// options gives the hash at position i, or an empty one if there is none. It
// must be the last argument, and every key must be known.
func (a args) options(i int, known ...string) (*options, error) {
	o := &options{a: a, h: &Hash{}}
	if i >= len(a.list) {
		return o, nil
	}
	h, ok := HashOf(a.list[i])
	if !ok || i != len(a.list)-1 {
		return nil, a.fail("argument %d must be options such as {%s => ...}", i+1, known[0])
	}
	for _, k := range h.Keys {
		if !contains(known, k) {
			return nil, a.fail("unknown option %s; known are %s", k, strings.Join(known, ", "))
		}
	}
	o.h = h
	return o, nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// options reads a hash and remembers the first thing wrong with it.
type options struct {
	a   args
	h   *Hash
	err error
}

func (o *options) bad(key, want string) {
	if o.err == nil {
		o.err = o.a.fail("%s must be %s", key, want)
	}
}

func (o *options) has(key string) bool { _, ok := o.h.Get(key); return ok }

func (o *options) text(key string) string {
	v, ok := o.h.Get(key)
	if !ok || v == nil {
		return ""
	}
	switch v := v.(type) {
	case String:
		return string(v)
	case Symbol:
		return string(v)
	case int64, float64, bool:
		return fmt.Sprint(v)
	}
	o.bad(key, "a string")
	return ""
}

func (o *options) integer(key string, lo, hi int64) int64 {
	v, ok := o.h.Get(key)
	if !ok || v == nil {
		return 0
	}
	n, ok := v.(int64)
	if !ok || n < lo || n > hi {
		o.bad(key, fmt.Sprintf("a whole number from %d to %d", lo, hi))
		return 0
	}
	return n
}

func (o *options) count(key string) int { return int(o.integer(key, 0, math.MaxInt32)) }

// fraction reads a number from 0 to 1.
func (o *options) fraction(key string) float64 {
	v, _ := o.h.Get(key)
	f, ok := v.(float64)
	if n, whole := v.(int64); whole {
		f, ok = float64(n), true
	}
	if !ok || f < 0 || f > 1 {
		o.bad(key, "a number from 0 to 1")
		return 0
	}
	return f
}

func (o *options) flag(key string) bool {
	v, ok := o.h.Get(key)
	if !ok || v == nil {
		return false
	}
	b, ok := v.(bool)
	if !ok {
		o.bad(key, "true or false")
	}
	return b
}

// texts reads a string or an array of strings.
func (o *options) texts(key string) []string {
	v, ok := o.h.Get(key)
	if !ok || v == nil {
		return nil
	}
	list, ok := v.([]Value)
	if !ok {
		return []string{o.text(key)}
	}
	var out []string
	for _, e := range list {
		s, ok := e.(String)
		if !ok {
			o.bad(key, "a string or an array of strings")
			return nil
		}
		out = append(out, string(s))
	}
	return out
}

// timeRange reads TIMERANGE => [from, to) or TIMESTAMP => t.
func (o *options) timeRange() hbase.TimeRange {
	if ts := o.integer("TIMESTAMP", 0, math.MaxInt64-1); o.has("TIMESTAMP") {
		return hbase.TimeRange{From: ts, To: ts + 1}
	}
	v, ok := o.h.Get("TIMERANGE")
	if !ok {
		return hbase.TimeRange{}
	}
	list, _ := v.([]Value)
	if len(list) == 2 {
		from, ok1 := list[0].(int64)
		to, ok2 := list[1].(int64)
		if ok1 && ok2 && from >= 0 && to > from {
			return hbase.TimeRange{From: from, To: to}
		}
	}
	o.bad("TIMERANGE", "two whole numbers [from, to), from less than to")
	return hbase.TimeRange{}
}

// filter reads FILTER => "PrefixFilter('x')"; nil if there is none.
func (o *options) filter() hbase.Filter {
	if !o.has("FILTER") {
		return nil
	}
	f, err := filter.Parse(o.text("FILTER"))
	if err != nil {
		if o.err == nil {
			o.err = o.a.fail("FILTER: %v", err)
		}
		return nil
	}
	return f
}

// columns reads COLUMN or COLUMNS: 'family' or 'family:qualifier', one or an
// array.
func (o *options) columns() []hbase.Column {
	names := append(o.texts("COLUMN"), o.texts("COLUMNS")...)
	var cols []hbase.Column
	for _, name := range names {
		family, qualifier, whole := splitColumn(name)
		if whole {
			cols = append(cols, hbase.Column{Family: []byte(family)})
			continue
		}
		found := false
		for i := range cols {
			if string(cols[i].Family) == family && len(cols[i].Qualifiers) > 0 {
				cols[i].Qualifiers = append(cols[i].Qualifiers, []byte(qualifier))
				found = true
			}
		}
		if !found {
			cols = append(cols, hbase.Column{Family: []byte(family), Qualifiers: [][]byte{[]byte(qualifier)}})
		}
	}
	return cols
}

// splitColumn takes 'family:qualifier' apart; whole is true for a bare family.
func splitColumn(name string) (family, qualifier string, whole bool) {
	family, qualifier, ok := strings.Cut(name, ":")
	return family, qualifier, !ok
}
