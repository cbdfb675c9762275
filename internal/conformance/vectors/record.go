package vectors

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"google.golang.org/protobuf/proto"
)

// recorded turns an answer into an expect.
func (r *runner) recorded(got any) any {
	switch g := got.(type) {
	case object:
		if g["error"] != nil {
			o := object{"error": g["error"], "side": g["side"]}
			if g["side"] == "server" {
				o["doNotRetry"], o["messageContains"] = g["doNotRetry"], stable(text(g, "message"))
			}
			return o
		}
		o := make(object, len(g))
		for k, v := range g {
			o[k] = r.recorded(v)
		}
		return o
	case []any:
		if isCell(g) {
			c := []any{r.recorded(g[0]), r.recorded(g[1]), r.recorded(g[2]), g[3], g[4], r.recorded(g[5])}
			if ts, ok := g[3].(int64); ok {
				c[3] = r.stampOf(ts)
			}
			return c
		}
		l := make([]any, len(g))
		for i := range g {
			l[i] = r.recorded(g[i])
		}
		return l
	case raw:
		return quote([]byte(g))
	case proto.Message:
		return oneLine(g)
	}
	return got
}

// stampOf writes a timestamp: as a case gave it, or as one of the present.
func (r *runner) stampOf(ts int64) any {
	if d := ts - r.t0; r.offsets[d] {
		return object{"now": d}
	} else if d >= 0 && ts <= r.o.now() {
		return "now"
	}
	return ts
}

// noteOffsets remembers the distances from the start of the case that its
// steps name.
func (r *runner) noteOffsets(v any) {
	switch v := v.(type) {
	case object:
		if d, ok := v["now"]; ok && len(v) == 1 {
			r.offsets[integer(d)] = true
		}
		for _, e := range v {
			r.noteOffsets(e)
		}
	case []any:
		for _, e := range v {
			r.noteOffsets(e)
		}
	}
}

// shown is an answer in the files' form, for a report.
func shown(got any) any {
	r := &runner{o: &Options{}, t0: 1 << 62}
	return r.recorded(got)
}

// stable is the first line of a message, up to what may differ next time.
func stable(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	line, _, _ = strings.Cut(line, ";")
	digits := 0
	for i, c := range line {
		if unicode.IsDigit(c) {
			if digits++; digits > 8 {
				line = line[:i-8]
				break
			}
			continue
		}
		digits = 0
	}
	if i := strings.Index(line, "region"); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSpace(line[:min(len(line), 90)])
}

// Write writes a theme as a file, one step a line.
func Write(w io.Writer, t *Theme) error {
	b := bufio.NewWriter(w)
	line := func(indent, prefix string, v any, end string) error {
		var buf bytes.Buffer
		e := json.NewEncoder(&buf)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return err
		}
		_, err := fmt.Fprintf(b, "%s%s%s%s\n", indent, prefix, bytes.TrimSpace(buf.Bytes()), end)
		return err
	}
	comma := func(i, n int) string {
		if i+1 < n {
			return ","
		}
		return ""
	}
	steps := func(indent string, list []object) error {
		for i, s := range list {
			if err := line(indent, "", s, comma(i, len(list))); err != nil {
				return err
			}
		}
		return nil
	}
	errs := []error{line("", "{\"theme\": ", t.Name, ","), line("", "\"note\": ", t.Note, ",")}
	fmt.Fprint(b, "\"fixtures\": {")
	names := slices.Sorted(maps.Keys(t.Fixtures))
	for i, name := range names {
		f := t.Fixtures[name]
		errs = append(errs, line("\n ", fmt.Sprintf("%q: {\"table\": ", name), f.Table, ", \"steps\": ["), steps("  ", f.Steps))
		fmt.Fprint(b, "  ]}", comma(i, len(names)))
	}
	fmt.Fprint(b, "},\n\"cases\": [\n")
	for i, c := range t.Cases {
		head := *c
		head.Steps = nil
		h, err := json.Marshal(head)
		errs = append(errs, err)
		h = bytes.TrimSuffix(h, []byte("\"steps\":null}"))
		fmt.Fprintf(b, " %s\"steps\": [\n", h)
		errs = append(errs, steps("  ", c.Steps))
		fmt.Fprint(b, "  ]}", comma(i, len(t.Cases)), "\n")
	}
	fmt.Fprint(b, "]}\n")
	return errors.Join(append(errs, b.Flush())...)
}
