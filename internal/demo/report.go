package demo

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

//go:embed report.gohtml
var reportPage string

// page is what the template shows.
type page struct {
	Verdict  *Verdict
	Kinds    []kindRow
	Events   []eventRow
	Timeline template.HTML
	Map      template.HTML
	Servers  []serverKey
	When     string
}

type kindRow struct {
	Name string
	Sum
}

type eventRow struct {
	Number    int
	AtSeconds float64
	EventVerdict
}

type serverKey struct {
	Name  string
	Class string
}

// palette is the number of server colours the page defines; more servers wrap
// around.
const palette = 8

// WriteHTML writes one self-contained page: the verdict, the timeline of
// throughput and latency with the events on it, and the map of which server
// held which part of the table when.
func (r *Run) WriteHTML(w io.Writer) error {
	t, err := template.New("report").Parse(reportPage)
	if err != nil {
		return fmt.Errorf("demo report: %w", err)
	}
	p := page{Verdict: &r.Verdict, Timeline: r.timeline(), When: r.started.Format("2 January 2006, 15:04")}
	for k := range kinds {
		p.Kinds = append(p.Kinds, kindRow{k.String(), r.Verdict.ByKind[k.String()]})
	}
	for i, e := range r.Verdict.Events {
		p.Events = append(p.Events, eventRow{i + 1, e.AtMs / 1000, e})
	}
	p.Map, p.Servers = r.regionMap()
	return t.Execute(w, p)
}

// Geometry of both charts, in SVG units; the pictures scale with the page.
const (
	chartWidth  = 1000.0
	chartLeft   = 56.0
	chartRight  = 16.0
	plotWidth   = chartWidth - chartLeft - chartRight
	rateHeight  = 170.0
	delayHeight = 120.0
	mapHeight   = 300.0
)

func (r *Run) x(at, total time.Duration) float64 {
	if total <= 0 {
		return chartLeft
	}
	return chartLeft + plotWidth*min(1, at.Seconds()/total.Seconds())
}

// timeline draws operations a second above and the slowest call of each tick
// below, on a logarithmic scale, since stalls are judged in orders of ten.
func (r *Run) timeline() template.HTML {
	s := r.final
	total := max(s.Elapsed, tick)
	var b strings.Builder
	height := 24 + rateHeight + 30 + delayHeight + 30
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="operations a second and slowest call over time">`, chartWidth, height)
	peak := 1.0
	rates := make([]float64, len(s.Buckets))
	for i, bucket := range s.Buckets {
		for _, n := range bucket.Done {
			rates[i] += float64(n)
		}
		rates[i] /= tick.Seconds()
		peak = max(peak, rates[i])
	}
	top := 24.0
	scale := niceCeil(peak)
	for _, f := range []float64{0, 0.5, 1} {
		y := top + rateHeight*(1-f)
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft, chartWidth-chartRight, y, y, chartLeft-6, y+4, short(scale*f))
	}
	fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="14">operations a second</text>`, chartLeft)
	var path strings.Builder
	fmt.Fprintf(&path, "M%.1f %.1f", chartLeft, top+rateHeight)
	for i, v := range rates {
		x := r.x(time.Duration(i)*tick+tick/2, total)
		fmt.Fprintf(&path, " L%.1f %.1f", x, top+rateHeight*(1-v/scale))
	}
	fmt.Fprintf(&path, " L%.1f %.1f Z", r.x(time.Duration(len(rates))*tick, total), top+rateHeight)
	fmt.Fprintf(&b, `<path class="rate" d="%s"/>`, path.String())

	top2 := top + rateHeight + 30
	fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%.1f">slowest call</text>`, chartLeft, top2-8)
	for _, g := range []struct {
		d    time.Duration
		text string
	}{{time.Millisecond, "1 ms"}, {10 * time.Millisecond, "10 ms"}, {100 * time.Millisecond, "100 ms"}, {time.Second, "1 s"}, {10 * time.Second, "10 s"}} {
		y := top2 + delayHeight*(1-logScale(g.d))
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`,
			chartLeft, chartWidth-chartRight, y, y, chartLeft-6, y+4, g.text)
	}
	width := max(0.8, plotWidth*tick.Seconds()/total.Seconds()-0.6)
	for i, bucket := range s.Buckets {
		if bucket.Slowest == 0 {
			continue
		}
		class := "slow"
		if bucket.Failed > 0 {
			class = "bad"
		}
		h := delayHeight * logScale(bucket.Slowest)
		fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%.1f s: slowest call %.1f ms</title></rect>`,
			class, r.x(time.Duration(i)*tick, total), top2+delayHeight-h, width, h, (time.Duration(i) * tick).Seconds(), ms(bucket.Slowest))
	}
	bottom := top2 + delayHeight
	for i, e := range s.Events {
		x := r.x(e.At, total)
		fmt.Fprintf(&b, `<line class="event" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><circle class="event" cx="%.1f" cy="%.1f" r="9"/><text class="mark" x="%.1f" y="%.1f" text-anchor="middle">%d</text><title>%s</title>`,
			x, x, top, bottom, x, top, x, top+4, i+1, template.HTMLEscapeString(e.Text))
	}
	r.seconds(&b, total, bottom+18)
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func (r *Run) seconds(b *strings.Builder, total time.Duration, y float64) {
	step := max(1, int(total.Seconds()/10+0.5))
	for sec := 0; sec <= int(total.Seconds()); sec += step {
		fmt.Fprintf(b, `<text class="axis" x="%.1f" y="%.1f" text-anchor="middle">%d s</text>`, r.x(time.Duration(sec)*time.Second, total), y, sec)
	}
}

// regionMap draws the table's key space from top to bottom against time, each
// stretch in the colour of the server that held it: a move is a change of
// colour, a split a new line, a killed server a colour that ends.
func (r *Run) regionMap() (template.HTML, []serverKey) {
	total := max(r.final.Elapsed, tick)
	var servers []string
	class := func(name string) string {
		i := slices.Index(servers, name)
		if i < 0 {
			i = len(servers)
			servers = append(servers, name)
		}
		return fmt.Sprintf("s%d", i%palette)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="which server held which keys over time">`, chartWidth, 24+mapHeight+30)
	top := 20.0
	for i, sample := range r.samples {
		x0 := r.x(sample.At, total)
		x1 := chartLeft + plotWidth
		if i+1 < len(r.samples) {
			x1 = r.x(r.samples[i+1].At, total)
		}
		for _, region := range sample.Regions {
			y0 := top + mapHeight*keyFraction(region.Start, 0)
			y1 := top + mapHeight*keyFraction(region.End, 1)
			fill := "none"
			if region.Server != "" {
				fill = class(region.Server)
			}
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"><title>%s: [%s, %s) on %s</title></rect>`,
				fill, x0, y0, x1-x0+0.3, max(0.5, y1-y0-0.8), sample.At.Round(tick), template.HTMLEscapeString(string(region.Start)), template.HTMLEscapeString(string(region.End)), template.HTMLEscapeString(region.Server))
		}
	}
	for i, e := range r.final.Events {
		x := r.x(e.At, total)
		fmt.Fprintf(&b, `<line class="event" x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f"/><text class="axis" x="%.1f" y="12" text-anchor="middle">%d</text>`, x, x, top, top+mapHeight, x, i+1)
	}
	for _, k := range []string{"00", "40", "80", "c0"} {
		y := top + mapHeight*keyFraction([]byte(k), 0)
		fmt.Fprintf(&b, `<text class="axis" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, chartLeft-6, y+10, k)
	}
	r.seconds(&b, total, top+mapHeight+18)
	b.WriteString("</svg>")
	var keys []serverKey
	for _, s := range servers {
		keys = append(keys, serverKey{s, class(s)})
	}
	return template.HTML(b.String()), keys
}

// keyFraction places a key of the demo (hexadecimal digits first) in [0, 1].
func keyFraction(key []byte, open float64) float64 {
	if len(key) == 0 {
		return open
	}
	f, unit := 0.0, 1.0/16
	for _, c := range key[:min(len(key), 4)] {
		d := strings.IndexByte("0123456789abcdef", c)
		if d < 0 {
			break
		}
		f += float64(d) * unit
		unit /= 16
	}
	return f
}

// logScale maps 0.1 ms to 0 and 10 s to 1.
func logScale(d time.Duration) float64 {
	v := math.Log10(max(ms(d), 0.1)/0.1) / 5
	return min(1, max(0, v))
}

func niceCeil(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if v <= m*unit {
			return m * unit
		}
	}
	return 10 * unit
}

func short(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%gk", math.Round(v/100)/10)
	}
	return fmt.Sprintf("%g", v)
}
