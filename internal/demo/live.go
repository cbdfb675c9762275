package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/lipgloss"
)

// Live draws a run's progress. In a terminal it redraws one picture in place;
// otherwise it prints a line a second and one for each event.
type Live struct {
	w        io.Writer
	terminal bool
	width    int
	lines    int // drawn last time
	lastLine time.Duration
	events   int
	stage    string
	styles   []lipgloss.Style
}

// NewLive draws to w, as a picture of the given width (80 if 0) if w is a
// terminal.
func NewLive(w io.Writer, terminal bool, width int) *Live {
	if width <= 0 {
		width = 80
	}
	l := &Live{w: w, terminal: terminal, width: min(width, 120), lastLine: -time.Hour}
	r := lipgloss.NewRenderer(w)
	for _, c := range []string{"33", "208", "35", "135", "168", "142", "37", "137"} {
		l.styles = append(l.styles, r.NewStyle().Foreground(lipgloss.Color(c)))
	}
	return l
}

// Show draws one state.
func (l *Live) Show(p Progress) {
	if l.terminal {
		l.picture(p)
		return
	}
	l.plain(p)
}

func (l *Live) plain(p Progress) {
	if p.Stage != l.stage {
		l.stage = p.Stage
		fmt.Fprintf(l.w, "%s\n", p.Stage)
	}
	for ; l.events < len(p.View.Events); l.events++ {
		if e := p.View.Events[l.events]; e.Took == 0 {
			break // being done
		}
		e := p.View.Events[l.events]
		line := fmt.Sprintf("%6.1f s  %s (%.0f ms) %s", e.At.Seconds(), e.Text, ms(e.Took), e.Err)
		fmt.Fprintln(l.w, strings.TrimRight(line, " "))
	}
	if p.Stage == "load" && p.View.Elapsed >= l.lastLine+time.Second {
		l.lastLine = p.View.Elapsed
		rate, slowest := recent(p.View)
		fmt.Fprintf(l.w, "%6.1f s  %7.0f operations/s, slowest call %.0f ms, %d failed\n", p.View.Elapsed.Seconds(), rate, ms(slowest), p.View.Failed)
	}
}

// recent gives the rate and the slowest call of the last second.
func recent(v view) (rate float64, slowest time.Duration) {
	last := v.Buckets[max(0, len(v.Buckets)-int(time.Second/tick)):]
	for _, b := range last {
		for _, n := range b.Done {
			rate += float64(n)
		}
		slowest = max(slowest, b.Slowest)
	}
	if len(last) > 0 {
		rate /= (time.Duration(len(last)) * tick).Seconds()
	}
	return rate, slowest
}

func (l *Live) picture(p Progress) {
	var b strings.Builder
	if l.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", l.lines)
	}
	lines := l.render(p)
	for _, line := range lines {
		b.WriteString(line)
		b.WriteByte('\n')
	}
	l.lines = len(lines)
	io.WriteString(l.w, b.String())
}

func (l *Live) render(p Progress) []string {
	if p.Stage != "load" && p.Stage != "verifying" {
		return []string{p.Stage + " ..."}
	}
	rate, slowest := recent(p.View)
	done := 0
	for _, n := range p.View.Done {
		done += n
	}
	bar := l.width - 30
	filled := min(bar, int(float64(bar)*p.View.Elapsed.Seconds()/max(p.Length.Seconds(), 0.001)))
	out := []string{
		fmt.Sprintf("%s%s %4.1f of %.0f s  %s", strings.Repeat("━", filled), strings.Repeat("─", bar-filled), p.View.Elapsed.Seconds(), p.Length.Seconds(), p.Stage),
		fmt.Sprintf("%9d operations  %7.0f/s  slowest call of the last second %.0f ms  %d failed", done, rate, ms(slowest), p.View.Failed),
		l.spark(p.View),
		"",
	}
	if p.Stage == "load" {
		out = append(out, l.regions(p)...)
	}
	for _, e := range p.View.Events {
		took := fmt.Sprintf("took %.0f ms, longest call %.0f ms", ms(e.Took), ms(e.Slowest))
		if e.Took == 0 {
			took = "..."
		}
		out = append(out, fmt.Sprintf("%6.1f s  %s  %s %s", e.At.Seconds(), e.Text, took, e.Err))
	}
	return out
}

// spark draws throughput as a row of bars, oldest left.
func (l *Live) spark(v view) string {
	const bars = "▁▂▃▄▅▆▇█"
	per := max(1, (len(v.Buckets)+l.width-1)/l.width)
	var sums []int
	peak := 1
	for i := 0; i < len(v.Buckets); i += per {
		n := 0
		for _, b := range v.Buckets[i:min(i+per, len(v.Buckets))] {
			for _, d := range b.Done {
				n += d
			}
		}
		sums = append(sums, n)
		peak = max(peak, n)
	}
	levels := []rune(bars)
	var s strings.Builder
	for _, n := range sums {
		s.WriteRune(levels[n*(len(levels)-1)/peak])
	}
	return s.String()
}

// regions draws the table from its first key to its last, one block a region,
// each in the colour of its server.
func (l *Live) regions(p Progress) []string {
	servers := slices.Clone(p.Servers)
	for _, r := range p.Regions {
		if r.Server != "" && !slices.Contains(servers, r.Server) {
			servers = append(servers, r.Server)
		}
	}
	slices.Sort(servers)
	count := make([]int, len(servers))
	var row strings.Builder
	for _, r := range p.Regions {
		i := slices.Index(servers, r.Server)
		if i < 0 {
			row.WriteString("·")
			continue
		}
		count[i]++
		row.WriteString(l.styles[i%len(l.styles)].Render("█"))
	}
	out := []string{row.String()}
	for i, s := range servers {
		state := ""
		if !slices.Contains(p.Servers, s) {
			state = "  dead"
		}
		out = append(out, l.styles[i%len(l.styles)].Render("█")+fmt.Sprintf(" %s  %d regions%s", s, count[i], state))
	}
	return append(out, "")
}
