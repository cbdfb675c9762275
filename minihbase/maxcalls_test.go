package minihbase_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestMaxCalls: calls beyond Options.MaxCalls are refused at once, as by a server
// whose queue is full; and those that wait are answered.
func TestMaxCalls(t *testing.T) {
	t.Parallel()
	const most = 4
	c := up(t, minihbase.Options{ControlPort: -1, Servers: 1, MaxCalls: most})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	spec := region(t, c, "t", "a")
	get := func() (string, error) {
		return call(t, c, "t", "a", "Get", &pb.GetRequest{Region: spec, Get: &pb.Get{Row: []byte("a")}}, &pb.GetResponse{})
	}
	id := addRule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Get"}, Action: minihbase.Hold})
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() {
			if _, err := get(); err != nil {
				t.Errorf("a call that waited: %v", err)
			}
		})
	}
	if err := c.WaitRule(t.Context(), id, most); err != nil {
		t.Fatal(err)
	}
	if _, err := get(); err == nil || !strings.Contains(err.Error(), wire.ClassCallQueueTooBig[strings.LastIndexByte(wire.ClassCallQueueTooBig, '.')+1:]) {
		t.Errorf("one more than there is room for: %v", err)
	}
	if err := c.RemoveRule(id); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if _, err := get(); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}
