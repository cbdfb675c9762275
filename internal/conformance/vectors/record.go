package vectors

import (
	"encoding/json"
	"io"
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
			// The rules' cases write small timestamps only.
			if ts, ok := g[3].(int64); ok && ts >= r.t0-60_000 {
				c[3] = "now"
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

// shown is an answer in the files' form, for a report.
func shown(got any) any {
	r := &runner{t0: 1 << 62}
	return r.recorded(got)
}

// stable is the first line of a message, up to what may differ next time.
func stable(message string) string {
	line, _, _ := strings.Cut(message, "\n")
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
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	o := object{"theme": t.Name, "cases": t.Cases}
	if t.Note != "" {
		o["note"] = t.Note
	}
	if len(t.Fixtures) > 0 {
		o["fixtures"] = t.Fixtures
	}
	return e.Encode(o)
}
