package hbase_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestTableIsCreatedAgain drops a table under load and creates it again, cut
// otherwise, by another client. Whoever reads it, with or without a watcher,
// sees nothing of the old one, is told nothing else than that the table is not
// there, and finds the new one within two seconds.
func TestTableIsCreatedAgain(t *testing.T) {
	t.Parallel()
	c, _ := faulty(t, minihbase.Options{})
	for _, watch := range []time.Duration{0, 100 * time.Millisecond} {
		client, err := hbase.Open(t.Context(), c.Address(), hbase.WithMetaWatch(watch), hbase.WithOperationTimeout(5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		tab, err := client.Table("again")
		if err != nil {
			t.Fatal(err)
		}
		var generation, began atomic.Int64 // of what may be read
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		for w := range 6 {
			work.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					least := generation.Load()
					row := fmt.Sprintf("r%d%d", w, i%10)
					var res *hbase.Result
					var err error
					switch i % 3 {
					case 0:
						res, err = tab.Get(ctx, hbase.NewGet(row))
					case 1:
						out := tab.Batch(ctx, []hbase.Op{hbase.NewGet(row)})
						res, err = out[0].Result, out[0].Err
					default:
						s := tab.ScanParallel(ctx, &hbase.Scan{Start: []byte(row), Limit: 1}, hbase.ParallelOptions{})
						if res, err = s.Next(); res != nil && string(res.Row) != row {
							res = nil
						}
						if err == io.EOF {
							err = nil
						}
						s.Close()
					}
					switch {
					case ctx.Err() != nil:
					case err == nil:
						if v := res.Value("f", "q"); v != nil && string(v) < fmt.Sprintf("%04d", least) {
							t.Errorf("row %s of generation %s, which is gone: it is %d now", row, v, least)
						}
					case errors.Is(err, hbase.ErrTableNotFound) || errors.Is(err, hbase.ErrTableNotEnabled):
						if at := began.Load(); at != 0 && time.Since(time.Unix(0, at)) > 20*time.Second {
							t.Errorf("the table is there for %v, and yet: %v", time.Since(time.Unix(0, at)), err)
						}
					default:
						t.Error(err)
					}
				}
			})
		}
		for g := range 4 {
			var cuts [][]byte
			for i := range 1 + g*2%5 {
				cuts = append(cuts, fmt.Appendf(nil, "r%d%d", i+1, g))
			}
			if err := c.CreateTable(ctx, "again", []string{"f"}, cuts...); err != nil {
				t.Fatal(err)
			}
			other, err := hbase.Open(ctx, c.Address())
			if err != nil {
				t.Fatal(err)
			}
			its, _ := other.Table("again")
			var ops []hbase.Op
			for i := range 60 {
				ops = append(ops, hbase.NewPut(fmt.Sprintf("r%02d", i)).Set("f", "q", fmt.Appendf(nil, "%04d", g)))
			}
			if err := its.Batch(ctx, ops).Err(); err != nil {
				t.Fatal(err)
			}
			other.Close()
			generation.Store(int64(g))
			began.Store(time.Now().UnixNano())
			within(t, "finding the new table", func() {
				for {
					r, err := tab.Get(ctx, hbase.NewGet("r05"))
					if err == nil && string(r.Value("f", "q")) == fmt.Sprintf("%04d", g) {
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
			time.Sleep(150 * time.Millisecond)
			began.Store(0)
			if err := c.DropTable(ctx, "again"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Millisecond)
		}
		cancel()
		within(t, "a reader", work.Wait)
	}
}
