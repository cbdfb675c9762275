package rpcserver_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Half an answer is the end of the connection: the answers of other calls,
// ready at the same time, must not follow it, or a client would read them as
// the other half.
func TestNothingFollowsHalfAnAnswer(t *testing.T) {
	h := newHarness(t, nil)
	if _, err := h.chaos.Add(chaos.Rule{Action: chaos.Truncate, Probability: 0.02, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		c := h.dial(rpctest.Options{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range 200 {
				if _, err := c.Send(rpctest.Request{CallID: uint32(i + 1), Method: "Get", Param: get(fmt.Sprint("row", i+1))}); err != nil {
					return // the connection is over
				}
			}
		}()
		for range 200 {
			resp, err := c.Receive()
			if err != nil {
				break
			}
			var out pb.GetResponse
			if resp.Exception != nil {
				t.Fatalf("call %d: %v", resp.CallID, resp.Exception)
			}
			if err := out.UnmarshalVT(resp.Result); err != nil {
				t.Fatalf("call %d: %v", resp.CallID, err)
			}
			if got, want := string(out.GetResult().GetCell()[0].GetRow()), fmt.Sprint("row", resp.CallID); got != want {
				t.Fatalf("call %d answered %q", resp.CallID, got)
			}
		}
		c.Close()
		<-done
	}
}
