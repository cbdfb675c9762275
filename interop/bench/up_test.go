//go:build interop

package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/interop/upproc"
)

// BenchmarkUp starts `holdfast up --in-memory` again and again: time from exec
// to ready, and resident memory once it idles.
func BenchmarkUp(b *testing.B) {
	bin := upproc.Build(b)
	var starts []time.Duration
	var rss []int64
	for b.Loop() {
		for range 10 {
			p := upproc.Up(b, bin, "--in-memory")
			starts = append(starts, p.Start)
			time.Sleep(300 * time.Millisecond)
			rss = append(rss, p.RSS())
			p.Kill()
		}
	}
	slices.Sort(starts)
	slices.Sort(rss)
	b.ReportMetric(float64(starts[len(starts)/2].Microseconds())/1000, "ready-ms")
	b.ReportMetric(float64(starts[len(starts)-1].Microseconds())/1000, "ready-worst-ms")
	b.ReportMetric(float64(rss[len(rss)/2])/(1<<20), "rss-MB")
}
