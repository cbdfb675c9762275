package rpcserver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// ends checks that the server ends a connection; what it says before does not matter.
func ends(t *testing.T, nc net.Conn) {
	t.Helper()
	if err := nc.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var timeout net.Error
	if _, err := io.Copy(io.Discard, nc); errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the connection is still open after 30 s")
	}
}

func (h *harness) connect(b []byte) net.Conn {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { nc.Close() })
	if _, err := nc.Write(b); err != nil {
		h.t.Fatal(err)
	}
	return nc
}

// waitFor waits for a condition, for half a minute at most.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func greeting(t *testing.T) []byte {
	t.Helper()
	service := "ClientService"
	b, err := wire.AppendConnectionHeader(wire.AppendPreamble(nil, wire.AuthSimple), &pb.ConnectionHeader{ServiceName: &service})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSilentBeginnings: who does not say who it is is not waited for; who has may be silent.
func TestSilentBeginnings(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.HandshakeTimeout = 100 * time.Millisecond })
	good := h.dial(rpctest.Options{})
	echo(t, good, "a")
	hello := greeting(t)
	var open []net.Conn
	for _, begin := range [][]byte{nil, hello[:3], hello[:6], hello[:8], hello[:len(hello)-1], []byte("Securi"), append([]byte("HBas\x00\x51"), 0, 0, 1)} {
		open = append(open, h.connect(begin))
	}
	for _, nc := range open {
		ends(t, nc)
	}
	echo(t, good, "b")
}

// TestHalfFrames: a frame that was begun is not waited for without end, small or large.
func TestHalfFrames(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.FrameTimeout = 100 * time.Millisecond })
	good := h.dial(rpctest.Options{})
	echo(t, good, "a")
	for _, size := range []uint32{100, 300_000} {
		b := binary.BigEndian.AppendUint32(greeting(t), size)
		ends(t, h.connect(append(b, make([]byte, size/2)...)))
	}
	echo(t, good, "b")
}

// TestTwoGigabytes: a length costs nothing, and is answered.
func TestTwoGigabytes(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	echo(t, c, "a")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := c.Conn.Write(append([]byte{0x7f, 0xff, 0xff, 0xff}, make([]byte, 32<<10)...)); err != nil {
		t.Fatal(err)
	}
	resp, err := c.Receive()
	if err != nil || resp.Exception == nil || resp.Exception.Class != wire.ClassRequestTooBig {
		t.Fatalf("%+v, %v", resp, err)
	}
	ends(t, c.Conn)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated for it", n)
	}
}

// TestTooManyConnections: what is beyond the limit ends at once, and a place that becomes free can be taken.
func TestTooManyConnections(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxConns = 2 })
	a, b := h.dial(rpctest.Options{}), h.dial(rpctest.Options{})
	echo(t, a, "a")
	echo(t, b, "b")
	if nc, err := net.Dial("tcp", h.address); err == nil { // else it was reset even before that
		ends(t, nc)
		nc.Close()
	}
	echo(t, a, "a")
	a.Close()
	waitFor(t, "a place becomes free", func() bool { return len(h.Conns()) == 1 })
	echo(t, h.dial(rpctest.Options{}), "c")
}

// TestLargeFramesTogether: frames count as in flight while they arrive, by what has arrived.
func TestLargeFramesTogether(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxBytes = 1 << 20 })
	half := append(binary.BigEndian.AppendUint32(greeting(t), 3<<20), make([]byte, 900_000)...)
	first := h.connect(half)
	defer first.Close()
	// The second may overtake the first; one of them is refused, and the other one alone may be as large as it likes.
	second := h.connect(half)
	refused := make(chan net.Conn, 2)
	for _, nc := range []net.Conn{first, second} {
		go func() {
			_, _ = io.Copy(io.Discard, nc)
			refused <- nc
		}()
	}
	select {
	case <-refused:
	case <-time.After(30 * time.Second):
		t.Fatal("900 KB twice in 1 MiB, and nobody is refused")
	}
	echo(t, h.dial(rpctest.Options{}), "a")
	first.Close()
	second.Close()
	<-refused
}

// TestPackedBombs: what comes out of compressed blocks counts as in flight.
func TestPackedBombs(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxBytes = 1 << 20 })
	other := h.dial(rpctest.Options{})
	if _, err := other.Send(rpctest.Request{Method: "Get", Param: get("wait")}); err != nil {
		t.Fatal(err)
	}
	<-h.begun
	for _, class := range []string{"GzipCodec", "SnappyCodec", "Lz4Codec", "ZStandardCodec", "DefaultCodec"} {
		c := h.dial(rpctest.Options{Compressor: "org.apache.hadoop.io.compress." + class})
		defer c.Close()
		row := []byte("r")
		put := &pb.MutateRequest{Region: get("r").Region, Mutation: &pb.MutationProto{Row: row, AssociatedCellCount: new(int32(1))}}
		big := cells.Cell{Row: row, Family: []byte("f"), Type: cells.Put, Value: bytes.Repeat([]byte{7}, 2<<20)}
		_, err := c.Call("Mutate", put, &pb.MutateResponse{}, big)
		if x := rpctest.Remote(err); x == nil || x.Class != wire.ClassCallQueueTooBig {
			t.Errorf("%s: %v", class, err)
		}
	}
	close(h.release)
	waitFor(t, "the call that waited ends", func() bool { return h.running.Load() == 0 })
	c := h.dial(rpctest.Options{Compressor: "org.apache.hadoop.io.compress.GzipCodec"})
	small := cells.Cell{Row: []byte("r"), Family: []byte("f"), Type: cells.Put, Value: []byte("v")}
	put := &pb.MutateRequest{Region: get("r").Region, Mutation: &pb.MutationProto{Row: []byte("r"), AssociatedCellCount: new(int32(1))}}
	// A call's bytes are in flight until after its answer.
	waitFor(t, "nothing is in flight any more", func() bool {
		_, err := c.Call("Mutate", put, &pb.MutateResponse{}, small)
		return err == nil
	})
}

// TestManyThatDoNotRead: what waits for all clients is bounded, and one that reads is served meanwhile.
func TestManyThatDoNotRead(t *testing.T) {
	const most = 8 << 20
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxUnread, c.MaxUnreadAll = 1<<30, most })
	good := h.dial(rpctest.Options{})
	var sent atomic.Int64
	for range 2 {
		c := h.dial(rpctest.Options{})
		go func() { // until the server reads no more, and the connection's end ends the wait
			for range 5000 {
				if _, err := c.Send(rpctest.Request{Method: "Get", Param: get("medium" + strings.Repeat("x", 8<<10))}); err != nil {
					return
				}
				sent.Add(1)
			}
		}()
	}
	waitFor(t, "answers wait", func() bool { return h.Unread() >= most/2 })
	waitFor(t, "the server reads no more", func() bool {
		before := sent.Load()
		<-time.After(200 * time.Millisecond)
		return sent.Load() == before
	})
	// Each connection has some hundred calls that began before anything waited; without the limit 640 MiB would wait.
	if n := h.Unread(); n > 256<<20 {
		t.Errorf("%d MiB wait to be read, where calls beyond %d were to wait", n>>20, most>>20)
	}
	echo(t, good, "a")
	h.ResetConns()
	waitFor(t, "nothing waits any more", func() bool { return h.Unread() == 0 })
}

// TestSmallAnswersInSmallBuffers: answers that wait for a client that does not read take what they weigh, about.
func TestSmallAnswersInSmallBuffers(t *testing.T) {
	const limit = 1 << 20
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxUnread = limit })
	c := h.dial(rpctest.Options{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		c.Conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		if _, err := c.Send(rpctest.Request{Method: "Get", Param: get("row")}); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatal("the server reads on and on")
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > 64*limit { // a read buffer for each would be hundreds
		t.Errorf("%d MiB of heap for %d MiB of answers", n>>20, limit>>20)
	}
}

// TestFatallyBehind: answers of calls that had all begun before any waited end the connection when they are far too many.
func TestFatallyBehind(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxUnread = 256 << 10 })
	good, deaf := h.dial(rpctest.Options{}), h.dial(rpctest.Options{})
	const calls = 300
	go func() {
		for range calls {
			if _, err := deaf.Send(rpctest.Request{Method: "Get", Param: get("wait" + strings.Repeat("x", 100<<10))}); err != nil {
				return // the test ends early
			}
		}
	}()
	for range calls {
		<-h.begun
	}
	close(h.release) // 30 MB of answers, of which the kernel takes some
	waitFor(t, "the connection ends", func() bool { return len(h.Conns()) <= 1 })
	waitFor(t, "nothing waits any more", func() bool { return h.Unread() == 0 })
	echo(t, good, "a")
}
