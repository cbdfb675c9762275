package session

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// One answer of meta that is lost must not hold up those who wait for it.
func TestLostAnswerOfMetaCostsLittle(t *testing.T) {
	for _, method := range []string{"Scan", "Multi"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 3)
				table := c.table("t", "m")
				core := c.open()
				if method == "Multi" {
					if _, _, err := get(t.Context(), core, table, "a"); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					c.move(c.region(table, "a"), c.server(3), false)
				}
				var reads atomic.Int64
				c.hook(func(q *query) *reply {
					if q.method == method && c.tableOf(q) == "hbase:meta" && reads.Add(1) == 1 {
						return &reply{swallow: true}
					}
					return nil
				})
				began := time.Now()
				var wg sync.WaitGroup
				for i := range 100 {
					wg.Go(func() {
						if _, _, err := get(t.Context(), core, table, fmt.Sprint("a", i)); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if d := time.Since(began); d < metaAgainMin || d > time.Second {
					t.Errorf("took %v", d)
				}
				if n := reads.Load(); n > 3 {
					t.Errorf("%d reads", n)
				}
				if s := core.ReadStats(); s.Hedges != 1 || s.HedgeAnswers != 1 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// Meta that is slow for everybody, or sheds load, is not asked twice as much.
func TestSlowMetaIsNotAskedMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t")
		core := c.open()
		busy := false
		c.hook(func(q *query) *reply {
			if c.tableOf(q) != "hbase:meta" {
				return nil
			}
			if !busy {
				busy = true
				return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
			}
			return &reply{apply: true, delay: 900 * time.Millisecond}
		})
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		if n := c.metaReads(); n != 2 {
			t.Errorf("%d reads of meta", n)
		}
	})
}
