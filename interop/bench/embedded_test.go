//go:build interop

package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/interop/upproc"
)

// BenchmarkEmbeddedGet is the embedded half of BenchmarkLoneGet, which needs no
// Java. Besides the medians it gives this process's CPU time per Get,
// which does not depend on the server or on who else runs.
func BenchmarkEmbeddedGet(b *testing.B) {
	ctx := context.Background()
	up := upproc.Up(b, upproc.Build(b), "--in-memory")
	c, err := hbase.Open(ctx, up.Address)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	raw := newRaw(b, prepare(b, c))
	defer raw.close()
	t, err := c.Table(table)
	if err != nil {
		b.Fatal(err)
	}
	all := []*contender{
		{name: "raw", do: raw.do},
		{name: "client", do: func() error {
			res, err := t.Get(ctx, hbase.NewGet(row))
			if err == nil && len(res.Cells) != 1 {
				err = fmt.Errorf("%d cells", len(res.Cells))
			}
			return err
		}},
	}
	var cpu, switches [2][]float64
	for range b.N {
		for r := range rounds + 2 {
			for i, c := range all {
				before := usage(b)
				p50, err := c.round()
				if err != nil {
					b.Fatal(err)
				}
				after := usage(b)
				if r < 2 {
					continue
				}
				c.p50s = append(c.p50s, p50)
				cpu[i] = append(cpu[i], float64(after.cpu-before.cpu)/perRound/1000)
				switches[i] = append(switches[i], float64(after.switches-before.switches)/perRound)
			}
		}
	}
	for i, c := range all {
		b.Logf("%-8s p50 %6.2f us  (best quarter %6.2f)  CPU %5.2f us  switches %.2f", c.name,
			us(median(c.p50s)), us(quarter(c.p50s)), mid(cpu[i]), mid(switches[i]))
	}
	b.ReportMetric(us(median(all[0].p50s)), "raw-us")
	b.ReportMetric(us(median(all[1].p50s)), "client-us")
	b.ReportMetric(us(median(all[1].p50s))/us(median(all[0].p50s)), "client/raw")
	b.ReportMetric(us(quarter(all[1].p50s))/us(quarter(all[0].p50s)), "client/raw-quiet")
}

// BenchmarkCallers is throughput: Gets of so many callers over one client.
func BenchmarkCallers(b *testing.B) {
	ctx := context.Background()
	up := upproc.Up(b, upproc.Build(b), "--in-memory")
	c, err := hbase.Open(ctx, up.Address)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	prepare(b, c)
	t, err := c.Table(table)
	if err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(callers), func(b *testing.B) {
			rows := make([]string, 1000)
			for i := range rows {
				rows[i] = fmt.Sprintf("row-%06d", i)
			}
			var left atomic.Int64
			left.Store(int64(b.N))
			var failed atomic.Pointer[error]
			var wg sync.WaitGroup
			before := usage(b)
			b.ResetTimer()
			for i := range callers {
				wg.Go(func() {
					for n := i; left.Add(-1) >= 0; n++ {
						if _, err := t.Get(ctx, hbase.NewGet(rows[n%len(rows)])); err != nil {
							failed.Store(&err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			after := usage(b)
			if err := failed.Load(); err != nil {
				b.Fatal(*err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "gets/s")
			b.ReportMetric(float64(after.cpu-before.cpu)/1000/float64(b.N), "client-cpu-us/get")
		})
	}
}

// used is what this process has taken from the machine.
type used struct {
	cpu      time.Duration
	switches int64
}

func usage(b *testing.B) used {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return used{time.Duration(u.Utime.Nano() + u.Stime.Nano()), u.Nvcsw + u.Nivcsw}
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// quarter is the value that a quarter of the rounds are below.
func quarter(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/4]
}

func mid(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}
