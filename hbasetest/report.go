package hbasetest

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// reportLines is how many lines of events a failed test prints.
const reportLines = 40

// report says what a failed test wants to know of the cluster.
func (c *Cluster) report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "hbasetest: the cluster at the end of the test: %s", c.Address())
	if url := c.Control(); url != "" {
		fmt.Fprintf(&b, ", control %s", url)
	}
	b.WriteByte('\n')
	for _, m := range c.Masters() {
		if !m.Active {
			fmt.Fprintf(&b, "  master %d %s: running=%v, not active\n", m.Index, m.Address, m.Running)
		}
	}
	for _, s := range c.Servers() {
		fmt.Fprintf(&b, "  server %d %s: %s, %d regions\n", s.Index, s.Name, s.State, s.Regions)
	}
	for _, r := range c.Rules() {
		fmt.Fprintf(&b, "  rule %d %s %s: matched %d, applied %d\n", r.ID, r.Action, r.Name, r.Matched, r.Hits)
	}
	events, lost := c.Events().Query(minihbase.EventFilter{}, c.since, 0)
	lines, folded := fold(events)
	if lost > 0 || folded > 0 {
		fmt.Fprintf(&b, "  (%d events before these)\n", lost+uint64(folded))
	}
	for _, l := range lines {
		b.WriteString("  ")
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.String()
}

// fold prints the last events, at most reportLines lines of them: calls that
// differ in nothing but time, row and client are one line. before is how many
// events did not fit.
func fold(events []minihbase.Event) (lines []string, before int) {
	i := len(events)
	for i > 0 && len(lines) < reportLines {
		last := &events[i-1]
		n := 1
		for i-n > 0 && alike(&events[i-n-1], last) {
			n++
		}
		line := events[i-n].String()
		if n > 1 {
			line += fmt.Sprintf(" (and %d more like it)", n-1)
		}
		lines = append(lines, line)
		i -= n
	}
	for a, z := 0, len(lines)-1; a < z; a, z = a+1, z-1 {
		lines[a], lines[z] = lines[z], lines[a]
	}
	return lines, i
}

// alike says whether two events tell the same story.
func alike(a, b *minihbase.Event) bool {
	return a.Kind == b.Kind && a.Server == b.Server && a.Service == b.Service && a.Method == b.Method && a.Table == b.Table &&
		a.Region == b.Region && a.Outcome == b.Outcome && a.Rule == b.Rule && a.Detail == b.Detail
}
