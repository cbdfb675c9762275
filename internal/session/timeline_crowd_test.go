package session

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The bound on those who wait for a server is no reason to fail for reads that
// replicas on other servers may answer.
func TestTimelineIsNotTurnedAwayWhereReplicasAnswer(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprintf("batch %v", batch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, core, table := replicated(t, func(cfg *Config) { cfg.MaxWaitingPerServer = 2 })
				c.server(1).freeze()
				defer c.server(1).thaw()
				var work sync.WaitGroup
				var failed atomic.Int64
				for i := range 30 {
					work.Go(func() {
						for range 20 {
							ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
							row := fmt.Sprint("a", i)
							var err error
							if batch {
								item := getItem(row)
								item.Timeline = true
								err = core.Batch(ctx, table, []Item{item})[0].Err
							} else {
								_, _, err = read(ctx, core, table, row, timeline)
							}
							cancel()
							if err != nil && failed.Add(1) == 1 {
								t.Error(err)
							}
							time.Sleep(200 * time.Millisecond)
						}
					})
				}
				work.Wait()
				if n := failed.Load(); n > 0 {
					t.Errorf("%d of 600 reads failed", n)
				}
				for _, s := range core.ServerStats() {
					if s.Held != 0 || s.InFlight != 0 && !strings.HasPrefix(s.Name.Host, "rs1") {
						t.Errorf("left behind: %+v", s)
					}
				}
			})
		})
	}
}
