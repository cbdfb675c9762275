package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAttemptLimit(t *testing.T) {
	for _, test := range []struct {
		rpc, whole time.Duration
		timeouts   int
		want       time.Duration
	}{
		{10 * time.Second, time.Minute, 0, 10 * time.Second},
		{time.Second, 3 * time.Second, 0, time.Second},
		{time.Minute, 3 * time.Second, 0, 750 * time.Millisecond},
		{time.Minute, 3 * time.Second, 1, 750 * time.Millisecond},
		{time.Minute, 3 * time.Second, 2, time.Minute}, // what is left
		{3 * time.Second, 3 * time.Second, 0, 750 * time.Millisecond},
		{time.Minute, 0, 0, time.Minute},
		{time.Minute, 500 * time.Millisecond, 0, 200 * time.Millisecond},
		{time.Minute, 30 * time.Millisecond, 0, 200 * time.Millisecond}, // that is, all of it
	} {
		if got := attemptLimit(test.rpc, test.whole, test.timeouts); got != test.want {
			t.Errorf("attemptLimit(%s, %s, %d) = %s, want %s", test.rpc, test.whole, test.timeouts, got, test.want)
		}
	}
	if got := stepLimit(time.Minute, 4*time.Second); got != 2*time.Second {
		t.Errorf("stepLimit = %s", got)
	}
}

// The incident: hbase.rpc.timeout 60 s with hbase.client.operation.timeout 3 s.
// Java's client waits 3 s for the answer that was lost and gives up without a
// second attempt.
func TestALostAnswerIsRetriedThoughTheRPCTimeoutIsLonger(t *testing.T) {
	for _, test := range []struct {
		name string
		lost int           // answers
		slow time.Duration // of the answer that comes
		ctx  time.Duration // instead of the operation timeout
		took time.Duration // at most
	}{
		{"first lost", 1, 0, 0, 800 * time.Millisecond},
		{"two lost", 2, 0, 0, 1600 * time.Millisecond},
		{"two lost, the third slow", 2, 1400 * time.Millisecond, 0, 3 * time.Second},
		{"slow, but answered in time", 0, 700 * time.Millisecond, 0, 750 * time.Millisecond},
		{"deadline of the context", 1, 0, time.Second, 300 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 1)
				table := c.table("t")
				core := c.open(func(cfg *Config) {
					cfg.RPCTimeout, cfg.OperationTimeout = time.Minute, 3*time.Second
					cfg.PingAfter = time.Hour // the server is well, only answers are lost
				})
				if _, _, err := get(t.Context(), core, table, "r"); err != nil {
					t.Fatal(err)
				}
				lost := 0
				c.hook(func(q *query) *reply {
					if c.tableOf(q) != "t" {
						return nil
					}
					if lost < test.lost {
						lost++
						return &reply{swallow: true}
					}
					return &reply{apply: true, delay: test.slow}
				})
				ctx := t.Context()
				if test.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.ctx)
					defer cancel()
				}
				began := time.Now()
				_, a, err := get(ctx, core, table, "r")
				if took := time.Since(began); err != nil || took > test.took || a.Attempts != test.lost+1 {
					t.Errorf("%d attempts in %s, want %d in %s: %v", a.Attempts, took, test.lost+1, test.took, err)
				}
				if test.ctx > 0 {
					return
				}
				lost, began = 0, time.Now()
				out := core.Batch(ctx, table, []Item{putItem("r", Safe)})
				if took := time.Since(began); out[0].Err != nil || took > test.took || out[0].Attempts != test.lost+1 {
					t.Errorf("in a batch: %d attempts in %s: %v", out[0].Attempts, took, out[0].Err)
				}
			})
		})
	}
}
