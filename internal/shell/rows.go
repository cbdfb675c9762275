package shell

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// rowsAnswer is a table as HBase's shell prints it where there is no terminal:
// two columns stand apart by two spaces in the head and one in the rows, more
// columns by one each, and rows, with more columns the head too, are indented.
func rowsAnswer(data any, head []string, rows [][]string) *answer {
	ans := &answer{counted: len(rows), data: data}
	switch {
	case len(head) == 2:
		ans.lines = append(ans.lines, head[0]+"  "+head[1])
	case len(head) > 2:
		ans.lines = append(ans.lines, " "+strings.Join(head, " "))
	}
	for _, r := range rows {
		ans.lines = append(ans.lines, " "+strings.Join(r, " "))
	}
	return ans
}

// sortedBy gives the keys of a map in the order of their text.
func sortedBy[K comparable, V any](m map[K]V, text func(K) string) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return cmp.Compare(text(a), text(b)) })
}

// hash gives the value of a key as a hash; nil if there is none.
func (o *options) hash(key string) *Hash {
	v, ok := o.h.Get(key)
	if !ok || v == nil {
		return nil
	}
	h, ok := HashOf(v)
	if !ok {
		o.bad(key, "a hash such as {'a' => 'b'}")
		return nil
	}
	return h
}

// stringMap reads a hash of strings.
func (o *options) stringMap(key string) map[string]string {
	h := o.hash(key)
	if h == nil {
		return nil
	}
	out := make(map[string]string, len(h.Keys))
	inner := &options{a: o.a, h: h}
	for _, k := range h.Keys {
		out[k] = inner.text(k)
	}
	if o.err == nil {
		o.err = inner.err
	}
	return out
}

// listMap reads a hash of strings or arrays of them; nothing means all.
func (o *options) listMap(key string) map[string][]string {
	h := o.hash(key)
	if h == nil {
		return nil
	}
	out := make(map[string][]string, len(h.Keys))
	inner := &options{a: o.a, h: h}
	for i, k := range h.Keys {
		if list, ok := h.Values[i].([]Value); ok && len(list) == 0 {
			out[k] = nil
			continue
		}
		out[k] = inner.texts(k)
	}
	if o.err == nil {
		o.err = inner.err
	}
	return out
}

// none says whether an argument is there at all and not nil.
func (a args) none(i int) bool { return i >= len(a.list) || a.list[i] == nil }
