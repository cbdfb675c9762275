package hbase_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestCanceledCallsLeaveNothing cancels calls of every kind at random moments,
// while regions move, answers get lost and a server is silent now and then.
// Afterwards nobody is in a line, in flight or held, the table works, and the
// client can be closed in the middle of more such calls.
func TestCanceledCallsLeaveNothing(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1, Servers: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.CreateReplicatedTable(t.Context(), "t", []string{"f"}, 2, []byte("r3"), []byte("r6")); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithRPCTimeout(300*time.Millisecond), hbase.WithOperationTimeout(5*time.Second),
		hbase.WithMaxInFlight(8), hbase.WithMaxWaitingPerServer(4), hbase.WithMetaWatch(100*time.Millisecond), hbase.WithReplicaAfter(time.Millisecond, time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	var rows []hbase.Op
	for i := range 100 {
		rows = append(rows, hbase.NewPut([]byte{'r', byte('0' + i/10), byte('0' + i%10)}).Set("f", "q", make([]byte, 1000)))
	}
	if err := tab.Batch(t.Context(), rows).Err(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []minihbase.Rule{
		{Match: minihbase.Match{Method: "Get,Multi,Scan,Mutate"}, Every: 13, Action: minihbase.DropReply},
		{Match: minihbase.Match{Method: "Get,Multi,Scan,Mutate"}, Every: 17, Action: minihbase.CloseAfter},
		{Match: minihbase.Match{Method: "Get,Multi,Scan,Mutate"}, Every: 3, Action: minihbase.DelayReply, Delay: 2 * time.Millisecond},
		{Match: minihbase.Match{Method: "Get,Multi,Scan,Mutate"}, Every: 19, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "CallQueueTooBigException"}},
	} {
		rule(t, c, r)
	}
	var all []func(context.Context) error
	for _, call := range calls(tab) {
		all = append(all, call)
	}
	all = append(all, func(ctx context.Context) error { return tab.Batch(ctx, rows).Err() }, func(ctx context.Context) error {
		for _, err := range tab.Scan(ctx, &hbase.Scan{Caching: 3}).Rows() {
			if err != nil {
				return err
			}
		}
		return nil
	})
	load := func(ctx context.Context) *sync.WaitGroup {
		var work sync.WaitGroup
		for w := range 24 {
			rnd := rand.New(rand.NewPCG(uint64(w), 7))
			work.Go(func() {
				for ctx.Err() == nil {
					call := all[rnd.IntN(len(all))]
					one, cancel := context.WithCancel(ctx)
					after := time.Minute
					if rnd.IntN(4) > 0 {
						after = time.Duration(rnd.IntN(8000)) * time.Microsecond
					}
					leave := time.AfterFunc(after, cancel)
					_ = call(one)
					leave.Stop()
					cancel()
				}
			})
		}
		return &work
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	work := load(ctx)
	for i := 0; ctx.Err() == nil; i++ {
		if r, err := c.Locate("t", []byte{'r', byte('0' + i*3%10)}); err == nil {
			_ = c.MoveRegion(ctx, r.Encoded, i%4)
		}
		if i%8 == 4 {
			n := rand.IntN(4)
			if c.PauseRegionServer(n) == nil {
				time.Sleep(50 * time.Millisecond)
				_ = c.ResumeRegionServer(n)
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	within(t, "a canceled call", work.Wait)
	cancel()
	c.ClearRules()
	for _, call := range all {
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		left := 0
		for _, s := range client.Servers() {
			left += s.InFlight + s.Waiting + s.Held
		}
		if left == 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatalf("left behind: %+v", client.Servers())
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	work = load(ctx)
	time.Sleep(100 * time.Millisecond)
	within(t, "Client.Close", func() { client.Close() })
	cancel()
	within(t, "a call of a closed client", work.Wait)
}
