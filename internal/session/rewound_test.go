package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// A region server whose clock has gone back is started again with a smaller
// start code than its predecessor's at the same address. It is nevertheless the
// one that serves.
func TestServerComesBackWithASmallerStartCode(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newFake(t, 3)
			table := c.table("t", "3", "6")
			core := c.open()
			rows := []string{"1", "4", "7"}
			for _, row := range rows {
				if _, _, err := get(t.Context(), core, table, row); err != nil {
					t.Fatal(err)
				}
			}
			old := c.server(2)
			r := c.region(table, "4")
			if r.on != old {
				t.Fatalf("row 4 is on %s", r.on.name)
			}
			old.kill()
			if known { // it is noticed that the old one is gone
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, _, _ = get(ctx, core, table, "4")
				cancel()
			}
			next := c.start(meta.ServerName{Host: "rs2", Port: 16020, StartCode: 50})
			c.move(r, next, false)
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				began := time.Now()
				if _, _, err := get(ctx, core, table, "4"); err != nil {
					t.Fatalf("known %v, after %v: %v", known, time.Since(began), err)
				}
				cancel()
				time.Sleep(time.Second)
			}
			for i, o := range core.Batch(t.Context(), table, []Item{getItem("1"), getItem("5"), getItem("8")}) {
				if o.Err != nil {
					t.Errorf("item %d: %v", i, o.Err)
				}
			}
		})
	}
}
