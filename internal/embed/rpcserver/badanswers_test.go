package rpcserver_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func echoed(c *rpctest.Client, values ...string) ([]cells.Cell, error) {
	var list []cells.Cell
	for _, v := range values {
		list = append(list, cells.Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Type: cells.Put, Value: []byte(v)})
	}
	n := int32(len(list))
	return c.Call("Mutate", &pb.MutateRequest{
		Region:   &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte("r1")},
		Mutation: &pb.MutationProto{Row: []byte("r"), AssociatedCellCount: &n, MutateType: pb.MutationProto_PUT.Enum()},
	}, &pb.MutateResponse{}, list...)
}

// TestCorruptCells: the cell block is spoiled, each time in another way, with
// and without compression; the connection goes on.
func TestCorruptCells(t *testing.T) {
	h := newHarness(t, nil)
	if _, err := h.chaos.Add(chaos.Rule{Action: chaos.CorruptCells, Times: 6}); err != nil {
		t.Fatal(err)
	}
	c := h.dial(rpctest.Options{})
	seen := map[string]bool{}
	for i := range 6 {
		list, err := echoed(c, "one", "two")
		if err == nil && len(list) == 2 {
			t.Errorf("way %d: read as if nothing was wrong: %v", i+1, list)
		}
		if err != nil {
			seen[err.Error()] = true
		}
	}
	if len(seen) < 4 {
		t.Errorf("the damage is always the same: %v", seen)
	}
	if list, err := echoed(c, "one"); err != nil || len(list) != 1 || string(list[0].Value) != "one" {
		t.Errorf("after the rule: %v, %v", list, err)
	}
}

// TestThrottle: a throttled answer takes size/rate, those behind it wait, and
// what is left leaves at once when the rule goes.
func TestThrottle(t *testing.T) {
	h := newHarness(t, nil)
	id, err := h.chaos.Add(chaos.Rule{Action: chaos.Throttle, BytesPerSecond: 100_000, Match: chaos.Match{Method: "Mutate"}})
	if err != nil {
		t.Fatal(err)
	}
	c := h.dial(rpctest.Options{})
	begin := time.Now()
	value := strings.Repeat("v", 20_000)
	list, err := echoed(c, value)
	if err != nil || len(list) != 1 || string(list[0].Value) != value {
		t.Fatalf("%d cells, %v", len(list), err)
	}
	if d := time.Since(begin); d < 190*time.Millisecond {
		t.Errorf("20 kB at 100 kB/s took %v", d)
	}
	// At this pace the next one would take minutes.
	slow, err := h.chaos.Add(chaos.Rule{Action: chaos.Throttle, BytesPerSecond: 100, Match: chaos.Match{Method: "Mutate"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.chaos.Remove(id); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := echoed(c, value); done <- err }()
	if err := h.chaos.Wait(t.Context(), slow, 1); err != nil {
		t.Fatal(err)
	}
	if err := h.chaos.Remove(slow); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestThrottledConnectionEnds: a server that is killed does not wait for an
// answer that trickles.
func TestThrottledConnectionEnds(t *testing.T) {
	h := newHarness(t, nil)
	id, err := h.chaos.Add(chaos.Rule{Action: chaos.Throttle, BytesPerSecond: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := h.dial(rpctest.Options{})
	done := make(chan error, 1)
	go func() { _, err := echoed(c, "v"); done <- err }()
	if err := h.chaos.Wait(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	h.Kill()
	if err := <-done; err == nil {
		t.Error("the answer arrived")
	}
}

// TestOversize: the frame claims a size, brings what there is, and nothing
// follows it.
func TestOversize(t *testing.T) {
	h := newHarness(t, nil)
	for _, size := range []int64{0, 300 << 20} {
		if _, err := h.chaos.Add(chaos.Rule{Action: chaos.Oversize, Size: size, Times: 1}); err != nil {
			t.Fatal(err)
		}
		before := h.events.LastSeq()
		c := h.dial(rpctest.Options{})
		send := func(id uint32) {
			if _, err := c.Send(rpctest.Request{CallID: id, Method: "Get", Param: get("row")}); err != nil {
				t.Fatal(err)
			}
		}
		send(1)
		// The first answer whole; then, once both calls have ended, nothing more.
		if err := c.Conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		var got []byte
		buf := make([]byte, 4096)
		for !bytes.Contains(got, []byte("row")) {
			n, err := c.Conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, buf[:n]...)
		}
		send(2)
		if _, err := h.events.Wait(t.Context(), eventlog.Filter{Method: "Get"}, before, 2); err != nil {
			t.Fatal(err)
		}
		if err := c.Conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		more, err := io.ReadAll(c.Conn)
		if ne, ok := err.(net.Error); !ok || !ne.Timeout() {
			t.Errorf("the connection ended: %v", err)
		}
		got = append(got, more...)
		want := uint32(size)
		if size == 0 {
			want = 1<<31 - 1
		}
		if len(got) < 4 || binary.BigEndian.Uint32(got) != want {
			t.Fatalf("size %d: the frame begins with %x", size, got[:min(4, len(got))])
		}
		if n := bytes.Count(got, []byte("row")); n != 1 {
			t.Errorf("%d answers in %d bytes", n, len(got))
		}
	}
}
