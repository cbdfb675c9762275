package vectors

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// bad notes that a step is malformed, which fails its case.
func (r *runner) bad(format string, args ...any) {
	if r.malformed == nil {
		r.malformed = fmt.Errorf("malformed step: "+format, args...)
	}
}

// data reads bytes in the vectors' notation; what is none is empty, and will
// not be answered as recorded.
func data(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		out := []byte{}
		for i := 0; i < len(v); {
			if i+3 < len(v) && v[i] == '\\' && v[i+1] == 'x' {
				if b, err := hex.DecodeString(v[i+2 : i+4]); err == nil {
					out = append(out, b...)
					i += 4
					continue
				}
			}
			out = append(out, v[i])
			i++
		}
		return out
	case []any:
		out := []byte{}
		for _, p := range v {
			out = append(out, data(p)...)
		}
		return out
	case object:
		return []byte(strings.Repeat(string(data(v["repeat"])), int(integer(v["times"]))))
	}
	return nil
}

// quote writes bytes in the vectors' notation. A backslash is written as
// itself, unless that would read as an escape.
func quote(b []byte) string {
	var s strings.Builder
	for i, c := range b {
		if c < ' ' || c > '~' || c == '\\' && i+1 < len(b) && b[i+1] == 'x' {
			fmt.Fprintf(&s, `\x%02X`, c)
		} else {
			s.WriteByte(c)
		}
	}
	return s.String()
}

// integer reads a number; what is none is 0.
func integer(v any) int64 {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil {
			return int64(f)
		}
	case string:
		switch v {
		case "max":
			return math.MaxInt64
		case "min":
			return math.MinInt64
		}
	}
	return 0
}

func text(o object, key string) string { s, _ := o[key].(string); return s }

func flag(o object, key string) bool { b, _ := o[key].(bool); return b }

func list(o object, key string) []any { l, _ := o[key].([]any); return l }

// sorted gives an object's keys in order, so that every run sends the same.
func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }

// stamp reads a timestamp.
func (r *runner) stamp(v any) int64 {
	if o, ok := v.(object); ok {
		return r.t0 + integer(o["now"])
	}
	return integer(v)
}

// short is JSON cut for a report.
func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 1500 {
		return string(b[:1500]) + "..."
	}
	return string(b)
}

func without(o object, keys ...string) object {
	c := maps.Clone(o)
	for _, k := range keys {
		delete(c, k)
	}
	return c
}
