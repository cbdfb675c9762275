package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/doctor/finding"
)

//go:embed page.gohtml
var pageText string

type pageFinding struct {
	finding.Finding
	Pictures []template.HTML
	Trees    []tree
	Open     bool
}

type tree struct {
	Title string
	HTML  template.HTML
}

type page struct {
	*finding.Report
	Title, Summary string
	Findings       []pageFinding
	TimelinePlot   template.HTML
}

// HTML prints one page that needs nothing else: no scripts, no fonts, nothing
// fetched. It follows the reader's light or dark preference.
func HTML(w io.Writer, r *finding.Report) error {
	t, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Report: r, Title: "Nothing found"}
	counts := map[finding.Severity]int{}
	for i := range r.Findings {
		f := pageFinding{Finding: r.Findings[i], Open: i == 0}
		counts[f.Severity]++
		for k := range f.Plots {
			switch pl := &f.Plots[k]; pl.Kind {
			case "locks":
				if pl.Tree != nil {
					var b strings.Builder
					writeTree(&b, pl.Tree, 0)
					f.Trees = append(f.Trees, tree{pl.Title, template.HTML(b.String())})
				}
				f.Pictures = append(f.Pictures, lockPlot(pl))
			default:
				f.Pictures = append(f.Pictures, timePlot(pl))
			}
		}
		p.Findings = append(p.Findings, f)
	}
	if len(r.Findings) > 0 {
		p.Title = r.Findings[0].ID + ": " + r.Findings[0].Subject
	}
	var parts []string
	for _, v := range []finding.Severity{finding.Critical, finding.Error, finding.Warning, finding.Info} {
		if counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	p.Summary = strings.Join(parts, ", ")
	if p.Summary == "" {
		p.Summary = "No check found anything in what was read."
	}
	p.TimelinePlot = eventPlot(r.Timeline)
	return t.Execute(w, &p)
}

func esc(s string) string { return template.HTMLEscapeString(s) }

func writeTree(b *strings.Builder, n *finding.Node, depth int) {
	if depth > 8 {
		return
	}
	fmt.Fprintf(b, "<li><b>%s</b> <span class=\"subject\">%s</span>", esc(n.Label), esc(n.Detail))
	if len(n.Children) > 0 || n.More > 0 {
		b.WriteString("<ul>")
		for _, c := range n.Children {
			writeTree(b, c, depth+1)
		}
		if n.More > 0 {
			fmt.Fprintf(b, "<li class=\"subject\">and %d more</li>", n.More)
		}
		b.WriteString("</ul>")
	}
	b.WriteString("</li>")
}

const (
	plotWidth = 1000
	plotLeft  = 12
	plotRight = 18
)

func scale(max int64) func(int64) float64 {
	return func(v int64) float64 {
		return plotLeft + float64(v)/float64(max)*(plotWidth-plotLeft-plotRight)
	}
}

// ticks are round instants between 0 and max.
func ticks(max int64) []int64 {
	step := int64(1)
	for _, m := range [...]int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 7200000, 6 * 3600000, 24 * 3600000} {
		step = m
		if max/m <= 8 {
			break
		}
	}
	for max/step > 12 {
		step *= 2
	}
	var out []int64
	for t := int64(0); t <= max; t += step {
		out = append(out, t)
	}
	return out
}

func short(ms int64) string {
	switch {
	case ms >= 3600000 && ms%3600000 == 0:
		return fmt.Sprintf("%d h", ms/3600000)
	case ms >= 120000 && ms%60000 == 0:
		return fmt.Sprintf("%d min", ms/60000)
	case ms >= 1000 && ms%1000 == 0:
		return fmt.Sprintf("%d s", ms/1000)
	case ms >= 1000:
		return fmt.Sprintf("%.1f s", float64(ms)/1000)
	}
	return fmt.Sprintf("%d ms", ms)
}

// timePlot draws a retry or session timeline.
func timePlot(p *finding.Plot) template.HTML {
	max := int64(1)
	for _, s := range p.Spans {
		if s.To > max {
			max = s.To
		}
	}
	for _, m := range p.Marks {
		if m.At > max {
			max = m.At
		}
	}
	max += max / 50
	x := scale(max)
	// Labels of marks get rows of their own so that none lies on another.
	type label struct {
		x, w, from float64
		row        int
		left       bool // the text stands left of its line
		text       string
		m          finding.Mark
	}
	var labels []label
	rowEnd := []float64{}
	for _, m := range p.Marks {
		text := m.Label + " " + short(m.At)
		if m.Class == "fail" && strings.HasPrefix(m.Label, "attempt") {
			text = ""
		}
		l := label{x: x(m.At), w: float64(len(text)) * 6.6, text: text, m: m}
		l.from = l.x + 4
		if l.x+l.w > plotWidth-4 {
			l.from, l.left = l.x-l.w-6, true
		}
		labels = append(labels, l)
	}
	slices.SortStableFunc(labels, func(a, b label) int { return cmp.Compare(a.from, b.from) })
	for i := range labels {
		l := &labels[i]
		if l.text == "" {
			continue
		}
		for l.row = 0; l.row < len(rowEnd) && rowEnd[l.row] > l.from; l.row++ {
		}
		if l.row == len(rowEnd) {
			rowEnd = append(rowEnd, 0)
		}
		rowEnd[l.row] = l.from + l.w + 10
	}
	top := 20 + 16*len(rowEnd)
	bar, bottom := top+6, top+44
	height := bottom + 24
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s"><text class="strong" x="%d" y="13">%s</text>`, plotWidth, height, esc(p.Title), plotLeft, esc(p.Title))
	for _, s := range p.Spans {
		w := x(s.To) - x(s.From)
		if w < 1.5 {
			w = 1.5
		}
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="26" rx="2"><title>%s %s</title></rect>`, esc(s.Class), x(s.From), bar, w, esc(s.Label), esc(short(s.To-s.From)))
		if room := float64(len(s.Label)) * 6.6; s.Label != "" && room < w-6 {
			fmt.Fprintf(&b, `<text class="strong" x="%.1f" y="%d">%s</text>`, x(s.From)+4, bar+17, esc(s.Label))
		}
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, plotLeft, plotWidth-plotRight, bottom, bottom)
	for _, t := range ticks(max) {
		fmt.Fprintf(&b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/><text x="%.1f" y="%d" text-anchor="%s">%s</text>`, x(t), x(t), bottom, bottom+4, x(t), bottom+17, anchor(x(t)), short(t))
	}
	for _, l := range labels {
		y := 20 + 16*l.row + 10
		from := bar - 4
		if l.text != "" {
			from = y + 3
		}
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, esc(l.m.Class), l.x, l.x, from, bottom)
		if l.text != "" {
			at, anc := l.x+4, "start"
			if l.left {
				at, anc = l.x-4, "end"
			}
			fmt.Fprintf(&b, `<text class="strong over" x="%.1f" y="%d" text-anchor="%s">%s</text>`, at, y, anc, esc(l.text))
		}
	}
	b.WriteString("</svg>")
	keys := map[string]string{"call": "call", "sleep": "pause", "gap": "pause that did not fit", "silent": "silence", "connect": "connect attempt"}
	used := map[string]bool{}
	for _, s := range p.Spans {
		used[s.Class] = true
	}
	for _, k := range [...]string{"call", "sleep", "gap", "silent", "connect"} {
		if used[k] {
			fmt.Fprintf(&b, `<span class="key"><i style="background:var(--%s)"></i>%s</span>`, k, keys[k])
		}
	}
	return template.HTML(b.String())
}

func anchor(x float64) string {
	if x < 40 {
		return "start"
	}
	if x > plotWidth-40 {
		return "end"
	}
	return "middle"
}

// lockPlot draws who waits for whom: the lock's holder on the left, waiters as
// dots behind it.
func lockPlot(p *finding.Plot) template.HTML {
	if p.Tree == nil || len(p.Tree.Children) == 0 || len(p.Tree.Children[0].Children) == 0 {
		return ""
	}
	h := p.Tree.Children[0]
	n := len(h.Children) + h.More
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d 96" role="img" aria-label="%s"><text class="strong" x="12" y="14">%s</text>`, plotWidth, esc(p.Title), esc(p.Title))
	fmt.Fprintf(&b, `<rect class="connect" x="12" y="34" width="220" height="40" rx="6"/><text class="strong" x="22" y="51">%s</text><text class="strong" x="22" y="66">%s</text>`, esc(cutText(h.Label, 30)), esc(cutText(h.Detail, 32)))
	shown := min(n, 60)
	step := float64(plotWidth-280) / float64(max(shown, 12))
	for i := range shown {
		x := 252 + float64(i)*step
		name := ""
		if i < len(h.Children) {
			name = h.Children[i].Label
		}
		fmt.Fprintf(&b, `<rect class="call" x="%.1f" y="40" width="%.1f" height="28" rx="3"><title>%s</title></rect>`, x, step*0.7, esc(name))
	}
	if n > shown {
		fmt.Fprintf(&b, `<text x="252" y="88">%d of %d waiting threads drawn</text>`, shown, n)
	} else {
		fmt.Fprintf(&b, `<text x="252" y="88">%d waiting threads, in no order</text>`, n)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func cutText(s string, n int) string {
	if len(s) > n {
		return s[:n-1] + "\u2026"
	}
	return s
}

// eventPlot draws all events, one row per kind.
func eventPlot(events []finding.Moment) template.HTML {
	if len(events) < 2 {
		return ""
	}
	lo, hi := events[0].Unix, events[len(events)-1].Unix
	if hi <= lo {
		hi = lo + 1
	}
	var kinds []string
	row := map[string]int{}
	for _, e := range events {
		if _, ok := row[e.Kind]; !ok {
			row[e.Kind] = len(kinds)
			kinds = append(kinds, e.Kind)
		}
	}
	const left = 150
	x := func(t int64) float64 { return left + float64(t-lo)/float64(hi-lo)*(plotWidth-left-plotRight) }
	height := 24*len(kinds) + 34
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="events by kind">`, plotWidth, height)
	for i, k := range kinds {
		y := 24*i + 18
		fmt.Fprintf(&b, `<text class="strong" x="4" y="%d">%s</text><line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, y, esc(k), left, plotWidth-plotRight, y-4, y-4)
	}
	for _, e := range events {
		fmt.Fprintf(&b, `<circle class="call" cx="%.1f" cy="%d" r="4"><title>%s %s:%d</title></circle>`, x(e.Unix), 24*row[e.Kind]+14, esc(e.Time), esc(filepath.Base(e.File)), e.Line)
	}
	for _, t := range ticks(hi - lo) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="%s">+%s</text>`, x(lo+t), height-6, anchor(x(lo+t)), short(t))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
