//go:build interop

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// bulk writes rows of 100 bytes as fast as it can.
func bulk(t *hbase.Table, a args) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	rows, callers := a.int("rows", 200000), a.int("callers", 1)
	value := make([]byte, 100)
	before, begin := spent(), time.Now()
	switch a["mode"] {
	case "mutator":
		m, err := t.Mutator(hbase.MutatorOptions{})
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if err := m.Add(ctx, hbase.NewPut(rowName(i)).Set("f", "q", value)); err != nil {
				return nil, err
			}
		}
		if err := m.Close(ctx); err != nil {
			return nil, err
		}
	case "batch":
		const size = 1000
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				ops := make([]hbase.Op, 0, size)
				for at := c * size; at < rows && errs[c] == nil; at += callers * size {
					ops = ops[:0]
					for i := at; i < min(at+size, rows); i++ {
						ops = append(ops, hbase.NewPut(rowName(i)).Set("f", "q", value))
					}
					errs[c] = t.Batch(ctx, ops).Err()
				}
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("unknown mode %q", a["mode"])
	}
	return before.per(uint64(rows), answer{"rows": rows, "per_s": float64(rows) / time.Since(begin).Seconds()}), nil
}

// scan reads the whole table once.
func scan(t *hbase.Table, a args) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	s := hbase.NewScan()
	rows := func(yield func(*hbase.Result, error) bool) {}
	switch a["mode"] {
	case "plain":
		rows = t.Scan(ctx, s).Rows()
	case "reuse":
		s.ReuseResults = true
		rows = t.Scan(ctx, s).Rows()
	case "parallel-reuse":
		s.ReuseResults = true
		rows = t.ScanParallel(ctx, s, hbase.ParallelOptions{}).Rows()
	case "lockstep":
		s.Prefetch = hbase.PrefetchNever
		rows = t.Scan(ctx, s).Rows()
	case "parallel":
		rows = t.ScanParallel(ctx, s, hbase.ParallelOptions{}).Rows()
	case "ordered":
		rows = t.ScanParallel(ctx, s, hbase.ParallelOptions{Ordered: true}).Rows()
	default:
		return nil, fmt.Errorf("unknown mode %q", a["mode"])
	}
	before, begin := spent(), time.Now()
	n, bytes := 0, 0
	for r, err := range rows {
		if err != nil {
			return nil, err
		}
		n++
		bytes += len(r.Cells[0].Value)
	}
	took := time.Since(begin)
	return before.per(uint64(n), answer{"rows": n, "bytes": bytes, "per_s": float64(n) / took.Seconds()}), nil
}

// cold makes a new client and waits for its first row.
func (w *worker) cold(a args) (answer, error) {
	begin := time.Now()
	c, err := open(w.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	t, err := c.Table(a["table"])
	if err != nil {
		return nil, err
	}
	r, err := t.Get(context.Background(), hbase.NewGet(rowName(1)))
	if err == nil && r.Empty() {
		err = errors.New("the row is missing")
	}
	return answer{"ms": time.Since(begin).Seconds() * 1e3}, err
}

// herd lets callers of a client that knows nothing ask all at once: for one
// row, or each for another.
func (w *worker) herd(a args) (answer, error) {
	c, err := open(w.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	t, err := c.Table(a["table"])
	if err != nil {
		return nil, err
	}
	callers, rows := a.int("callers", 1000), a.int("rows", 1)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-start
			r, err := t.Get(context.Background(), hbase.NewGet(rowName(i%rows)))
			if err == nil && r.Empty() {
				err = fmt.Errorf("row %d is missing", i%rows)
			}
			errs[i] = err
		})
	}
	begin := time.Now()
	close(start)
	wg.Wait()
	took := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s := c.RouteStats()
	return answer{"ms": took.Seconds() * 1e3, "meta_reads": s.Scans + s.Gets}, nil
}

// routes touches every region and tells what remembering them takes.
func (w *worker) routes(a args) (answer, error) {
	c, err := open(w.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	t, err := c.Table(a["table"])
	if err != nil {
		return nil, err
	}
	other, err := c.Table(a["other"])
	if err != nil {
		return nil, err
	}
	touch := func(t *hbase.Table, n int) error {
		for i := range n {
			if _, err := t.Get(context.Background(), hbase.NewGet(rowName(i))); err != nil {
				return err
			}
		}
		return nil
	}
	// As many Gets of another table bring the connections, and whatever else a
	// client at work holds, before the heap is measured.
	if err := touch(other, a.int("rows", 1000)); err != nil {
		return nil, err
	}
	before, known := heap(), c.RouteStats().Routes
	if err := touch(t, a.int("rows", 1000)); err != nil {
		return nil, err
	}
	after, routes := heap(), c.RouteStats().Routes
	runtime.KeepAlive(c)
	if routes <= known {
		return nil, fmt.Errorf("%d routes known already", known)
	}
	return answer{"routes": routes, "bytes_per_route": float64(after-before) / float64(routes-known)}, nil
}

func heap() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
