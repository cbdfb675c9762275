package report

import (
	"encoding/json"
	"fmt"
	"io"
	"sort"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

type style struct{ on bool }

func (s style) wrap(code, t string) string {
	if !s.on || t == "" {
		return t
	}
	return "\x1b[" + code + "m" + t + "\x1b[0m"
}

func (s style) severity(v finding.Severity) string {
	code := map[finding.Severity]string{finding.Critical: "1;31", finding.Error: "31", finding.Warning: "33", finding.Info: "36"}[v]
	return s.wrap(code, strings.ToUpper(v.String()))
}

// Text prints for people. Colour is for terminals.
func Text(w io.Writer, r *finding.Report, colour bool) error {
	s := style{colour}
	p := &printer{w: w}
	if len(r.Findings) == 0 {
		p.f("nothing found")
	}
	for i := range r.Findings {
		finding1(p, s, &r.Findings[i])
	}
	p.f("")
	for _, in := range r.Inputs {
		if in.Error != "" {
			p.f("%s: %s", in.Name, s.wrap("31", "unreadable: "+in.Error))
		}
	}
	if len(r.Findings) > 0 || r.HBase != "" {
		p.f("HBase release: %s (%s)", r.HBase, r.HBaseWhy)
	}
	for _, n := range r.Notes {
		p.f("note: %s", n)
	}
	counts := map[finding.Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
	}
	var parts []string
	for i := len(finding.Severities()) - 1; i >= 0; i-- {
		v := finding.Severities()[i]
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	if len(parts) > 0 {
		var bytes, entries int64
		for _, in := range r.Inputs {
			bytes, entries = bytes+in.Bytes, entries+in.Entries
		}
		p.f("%s; %d inputs, %d entries of interest", strings.Join(parts, ", "), len(r.Inputs), entries)
	}
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

func finding1(p *printer, s style, f *finding.Finding) {
	times := ""
	if f.Count > 1 {
		times = fmt.Sprintf(", %d times", f.Count)
	}
	p.f("%s  %s  %s  (%s%s)", s.severity(f.Severity), s.wrap("1", f.ID), f.Subject, f.Confidence, times)
	p.f("  %s", f.Cause)
	if len(f.Numbers) > 0 {
		p.f("  %s", s.wrap("2", "numbers"))
		for _, n := range f.Numbers {
			unit := n.Unit
			if unit != "" {
				unit = " " + unit
			}
			line := fmt.Sprintf("    %-28s %v%s", n.Name, n.Value, unit)
			if n.Formula != "" {
				line += s.wrap("2", "   "+n.Formula)
			}
			p.f("%s", line)
		}
	}
	if len(f.Fields) > 0 {
		keys := make([]string, 0, len(f.Fields))
		for k, v := range f.Fields {
			if v != "" {
				keys = append(keys, k)
			}
		}
		sort.Strings(keys)
		var parts []string
		for _, k := range keys {
			parts = append(parts, k+"="+f.Fields[k])
		}
		if len(parts) > 0 {
			p.f("  %s %s", s.wrap("2", "fields"), strings.Join(parts, "  "))
		}
	}
	section := func(name string, lines []string) {
		if len(lines) == 0 {
			return
		}
		p.f("  %s", s.wrap("2", name))
		for _, l := range lines {
			p.f("    - %s", l)
		}
	}
	section("fix", f.Fix)
	section("not", f.Not)
	section("notes", f.Notes)
	var echoes []string
	for _, e := range f.Echoes {
		echoes = append(echoes, e.ID+": "+e.Text)
	}
	section("consequences", echoes)
	var rivals []string
	for _, v := range f.Rivals {
		rivals = append(rivals, fmt.Sprintf("%s: %s; what tells: %s", v.ID, v.Text, v.Separates))
	}
	section("other explanations", rivals)
	if len(f.Evidence) > 0 {
		p.f("  %s", s.wrap("2", "evidence"))
		for _, e := range f.Evidence {
			p.f("    %s:%d  %s", e.File, e.Line, e.Text)
		}
	}
	p.f("  %s", s.wrap("2", f.Explain))
	p.f("")
}

// JSON prints the report; docs/doctor.md and Schema describe it.
func JSON(w io.Writer, r *finding.Report) error {
	c := *r
	if c.Findings == nil {
		c.Findings = []finding.Finding{}
	}
	if c.Inputs == nil {
		c.Inputs = []finding.Input{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(&c)
}
