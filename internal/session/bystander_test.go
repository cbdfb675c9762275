package session

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// While all calls to one server fail, a call to another that is refused now and
// then, as happens to the best, is repeated as soon as if nothing were: its
// waits are for its own server's sake.
func TestBystandersDoNotWaitLonger(t *testing.T) {
	for _, class := range []string{wire.ClassCallQueueTooBig, wire.ClassRegionTooBusy, "com.example.Strange"} {
		t.Run(class, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 2)
				table := c.table("t", "5") // sick is [,5), well the rest
				core := c.open()
				n := 0
				c.hook(func(q *query) *reply {
					if c.tableOf(q) != "t" || q.method != "Get" && q.method != "Multi" {
						return nil
					}
					if q.srv == c.server(1) {
						return &reply{err: wire.NewRemoteError(class, "sick")}
					}
					if n++; n%25 == 0 {
						return &reply{err: wire.NewRemoteError(class, "now and then")}
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var sick sync.WaitGroup
				for i := range 50 {
					sick.Go(func() { _, _, _ = get(ctx, core, table, fmt.Sprint("1", i)) })
				}
				time.Sleep(5 * time.Second)
				if !core.tokens.Scarce() {
					t.Fatal("not much fails")
				}
				var took []time.Duration
				for i := range 1000 {
					began := time.Now()
					if i%10 == 0 {
						for _, o := range core.Batch(ctx, table, []Item{getItem("6"), getItem("7")}) {
							if o.Err != nil {
								t.Fatal(o.Err)
							}
						}
					} else if _, _, err := get(ctx, core, table, fmt.Sprint("8", i)); err != nil {
						t.Fatal(err)
					}
					took = append(took, time.Since(began))
					time.Sleep(time.Millisecond)
				}
				if worst := slices.Max(took); worst > 300*time.Millisecond {
					t.Errorf("a call that was refused once took %v", worst)
				}
				cancel()
				sick.Wait()
			})
		})
	}
}
