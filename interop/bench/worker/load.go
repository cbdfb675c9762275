//go:build interop

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// callTime is what a call of a load is given: longer than HBase needs to
// recover a killed server.
const callTime = 2 * time.Minute

func open(address string) (*hbase.Client, error) {
	return hbase.Open(context.Background(), address, hbase.WithOperationTimeout(callTime), hbase.WithScannerTimeout(callTime))
}

// rowName is the key of row n of the tables of the benchmarks: 20 bytes, spread
// over all regions.
func rowName(n int) string { return fmt.Sprintf("%04d-%015d", n%10000, n) }

// load is callers that work in a closed loop until they are stopped.
type load struct {
	ctx     context.Context
	cancel  context.CancelFunc
	done    atomic.Bool
	wg      sync.WaitGroup
	begin   time.Time
	before  cost
	callers []caller
	// last is when anybody last finished a call, gap the longest time between
	// two such moments, both in ns since begin.
	last, gap atomic.Int64
}

// caller is one goroutine's account.
type caller struct {
	took   []time.Duration
	acked  atomic.Int64
	rows   int
	errors []string
}

// startLoad lets callers begin. With regions, each keeps to the rows of one of
// them.
func startLoad(t *hbase.Table, kind string, callers, rows, regions int) *load {
	l := &load{begin: time.Now(), before: spent(), callers: make([]caller, callers)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	for i := range callers {
		first, n := 0, rows
		if regions > 0 {
			n = rows / regions
			first = i % regions * n
		}
		l.wg.Go(func() { l.run(t, kind, first, n, &l.callers[i]) })
	}
	return l
}

func (l *load) run(t *hbase.Table, kind string, first, rows int, c *caller) {
	value := make([]byte, 100)
	for !l.done.Load() {
		row := rowName(first + rand.IntN(rows))
		begin := time.Now()
		var err error
		switch kind {
		case "get":
			var r *hbase.Result
			if r, err = t.Get(l.ctx, hbase.NewGet(row)); err == nil && r.Empty() {
				err = fmt.Errorf("row %s is missing", row)
			}
		case "put":
			err = t.Put(l.ctx, hbase.NewPut(row).Set("f", "q", value))
		case "increment":
			_, err = t.IncrementColumn(l.ctx, []byte(row), "f", "n", 1)
		case "scan":
			n := 0
			for _, e := range t.Scan(l.ctx, nil).Rows() {
				if err = e; e == nil {
					n++
				}
			}
			if c.rows += n; err == nil && n != rows {
				err = fmt.Errorf("%d rows instead of %d", n, rows)
			}
		default:
			err = fmt.Errorf("unknown kind %q", kind)
		}
		c.took = append(c.took, time.Since(begin))
		if err != nil {
			c.errors = append(c.errors, err.Error())
			continue
		}
		c.acked.Add(1)
		l.finished()
	}
}

// finished notes that a call has ended well.
func (l *load) finished() {
	now := int64(time.Since(l.begin))
	gap := now - l.last.Swap(now)
	for {
		old := l.gap.Load()
		if gap <= old || l.gap.CompareAndSwap(old, gap) {
			return
		}
	}
}

// acked counts the calls that have ended well so far.
func (l *load) acked() int {
	n := 0
	for i := range l.callers {
		n += int(l.callers[i].acked.Load())
	}
	return n
}

// stop lets the calls that are out end, and sums up.
func (l *load) stop() answer {
	l.done.Store(true)
	took := time.Since(l.begin)
	l.wg.Wait()
	l.cancel()
	l.finished()
	var all []time.Duration
	acked, rows := l.acked(), 0
	var errs []string
	for i := range l.callers {
		c := &l.callers[i]
		all = append(all, c.took...)
		rows, errs = rows+c.rows, append(errs, c.errors...)
	}
	slices.Sort(all)
	a := answer{
		"ops": len(all), "acked": acked, "rows": rows, "errors": len(errs), "per_s": float64(acked) / took.Seconds(),
		"gap_ms": float64(l.gap.Load()) / 1e6,
	}
	for name, q := range map[string]float64{"p50_us": 0.5, "p99_us": 0.99, "p999_us": 0.999, "max_us": 1} {
		if len(all) > 0 {
			a[name] = float64(all[min(len(all)-1, int(q*float64(len(all))))]) / 1e3
		}
	}
	if len(errs) > 0 {
		a["first_error"] = errs[0]
	}
	n := acked
	if rows > 0 {
		n = rows
	}
	return l.before.per(uint64(n), a)
}
