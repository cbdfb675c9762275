package rpcserver_test

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
)

// burst is a connection whose writes wait for end, so that many calls arrive at
// once.
type burst struct {
	net.Conn
	begun bool
	held  []byte
}

func (b *burst) Write(p []byte) (int, error) {
	if !b.begun {
		return b.Conn.Write(p)
	}
	b.held = append(b.held, p...)
	return len(p), nil
}

func (b *burst) end() error {
	_, err := b.Conn.Write(b.held)
	b.begun, b.held = false, nil
	return err
}

// TestBurst: of calls that arrive together each is answered once, also those
// whose answers wait for others, and those behind a call that turns out slow.
func TestBurst(t *testing.T) {
	h := newHarness(t, nil)
	nc, err := net.Dial("tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	b := &burst{Conn: nc}
	c, err := rpctest.New(b, rpctest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := nc.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	id := uint32(0)
	for round := range 100 {
		calls := 2 + round%30
		slow := -1
		if round%5 == 0 {
			slow = round / 5 % calls
		}
		b.begun = true
		want := map[uint32]bool{}
		var last uint32
		for i := range calls {
			id++
			row := fmt.Sprint("row", i)
			if i == slow {
				row, last = "wait", id
			} else {
				want[id] = true
			}
			if _, err := c.Send(rpctest.Request{CallID: id, Method: "Get", Param: get(row)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.end(); err != nil {
			t.Fatal(err)
		}
		for len(want) > 0 {
			resp, err := c.Receive()
			if err != nil {
				t.Fatalf("round %d: %d answers are missing: %v", round, len(want), err)
			}
			if !want[resp.CallID] {
				t.Fatalf("round %d: answer to call %d", round, resp.CallID)
			}
			delete(want, resp.CallID)
		}
		if slow < 0 {
			continue
		}
		<-h.begun
		h.release <- struct{}{}
		if resp, err := c.Receive(); err != nil || resp.CallID != last {
			t.Fatalf("round %d: %+v, %v instead of the answer to call %d", round, resp, err, last)
		}
	}
}
