package session

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// One busy answer to a request for many rows in many regions is one failure.
// Counted by row, it would use up what the client has for retries, and everybody
// who is told to wait would wait as long as can be.
func TestBusyAnswerToBatchCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		table := c.table("t", "1", "2", "3", "4", "5", "6", "7", "8", "9")
		core := c.open()
		busy := true
		c.hook(func(q *query) *reply {
			if q.method == "Multi" && c.tableOf(q) == "t" && busy {
				busy = false
				return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
			}
			return nil
		})
		var items []Item
		for i := range 100 {
			items = append(items, getItem(fmt.Sprintf("%02d", i)))
		}
		began := time.Now()
		for i, o := range core.Batch(t.Context(), table, items) {
			if o.Err != nil || o.Attempts != 2 {
				t.Fatalf("item %d: %+v", i, o)
			}
		}
		if d := time.Since(began); d > 150*time.Millisecond {
			t.Errorf("took %v, want one short pause", d)
		}
		if core.tokens.Scarce() {
			t.Error("one failure has used up the client's retries")
		}
	})
}
