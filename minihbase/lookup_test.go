//go:build unix

package minihbase_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// BenchmarkLookupGenerated looks up regions of a generated table of a million:
// each with one read of hbase:meta over the wire, of one row, or of a page of
// neighbours, as the client reads when it does not know the region. cpu-us/op is
// what both sides take of the processor, however crowded it is.
func BenchmarkLookupGenerated(b *testing.B) {
	const regions = 1_000_000
	c, client := start(b, minihbase.Options{ControlPort: -1})
	table := generated(b, c, client, minihbase.GeneratedTable{Name: "g", Regions: regions})
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	known := make([][]byte, 500)
	for i := range known {
		known[i] = rowOf(rnd.IntN(regions))
	}
	for _, way := range []struct {
		name string
		next func() []byte
		find func(context.Context, []byte) (hbase.RegionLocation, error)
	}{
		{"page", func() []byte { return rowOf(rnd.IntN(regions)) }, table.Locate},
		{"row", func() []byte { return known[rnd.IntN(len(known))] }, table.Relocate},
	} {
		b.Run(way.name, func(b *testing.B) {
			for _, row := range known {
				if _, err := table.Locate(b.Context(), row); err != nil {
					b.Fatal(err)
				}
			}
			before, cpu, n := count(c), spent(), 0
			for b.Loop() {
				row := way.next()
				if l, err := way.find(b.Context(), row); err != nil || l.Server.IsZero() || string(l.Region.Start) > string(row) {
					b.Fatal(fmt.Errorf("%s: %+v, %w", row, l, err))
				}
				n++
			}
			cpu = spent() - cpu
			b.ReportMetric(float64(cpu.Microseconds())/float64(n), "cpu-us/op")
			b.ReportMetric(float64(count(c).since(before).meta)/float64(n), "meta-reads/op")
		})
	}
}
