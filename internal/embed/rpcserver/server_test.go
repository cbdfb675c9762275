package rpcserver_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a server with a service of its own: Get answers the row it was
// asked for, in the way the row says.
type harness struct {
	*rpcserver.Server
	t       testing.TB
	address string
	chaos   *chaos.Engine
	events  *eventlog.Log
	begun   chan string // rows of calls that wait
	release chan struct{}
	running atomic.Int64
}

func newHarness(t testing.TB, change func(*rpcserver.Config)) *harness {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, address: l.Addr().String(), chaos: chaos.New(), events: eventlog.New(eventlog.Options{}),
		begun: make(chan string, 4096), release: make(chan struct{})}
	svc := rpcserver.NewService("ClientService")
	rpcserver.Handle(svc, "Get", h.get, rpcserver.Brief[*pb.GetRequest](true),
		rpcserver.Describe(func(c *rpcserver.Call, in *pb.GetRequest) {
			c.Target.Table, c.Target.Region = "t", "r1"
			c.Target.Rows, c.Target.NumRows = [][]byte{in.GetGet().GetRow()}, 1
		}))
	rpcserver.Handle(svc, "Mutate", func(_ context.Context, c *rpcserver.Call, in *pb.MutateRequest) (*pb.MutateResponse, error) {
		r, err := c.Cells()
		if err != nil {
			return nil, err
		}
		list, err := r.Take(int(in.GetMutation().GetAssociatedCellCount()), nil)
		if err != nil {
			return nil, err
		}
		c.ReplyCells(list...)
		return &pb.MutateResponse{Processed: new(true)}, nil
	})
	addr := l.Addr().(*net.TCPAddr)
	cfg := rpcserver.Config{
		Name:     meta.ServerName{Host: "127.0.0.1", Port: addr.Port, StartCode: 1},
		Services: []*rpcserver.Service{svc}, ClusterID: func() string { return "cluster-7" },
		Chaos: h.chaos, Events: h.events,
	}
	if change != nil {
		change(&cfg)
	}
	h.Server = rpcserver.New(cfg)
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	t.Cleanup(func() {
		h.Kill()
		if err := <-done; !errors.Is(err, rpcserver.ErrStopped) {
			t.Errorf("Serve: %v", err)
		}
		h.Wait()
	})
	return h
}

func (h *harness) get(ctx context.Context, c *rpcserver.Call, in *pb.GetRequest) (*pb.GetResponse, error) {
	h.running.Add(1)
	defer h.running.Add(-1)
	row := string(in.GetGet().GetRow())
	switch {
	case strings.HasPrefix(row, "wait"):
		h.begun <- row
		select {
		case <-h.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case strings.HasPrefix(row, "big"):
		c.ReplyCells(cells.Cell{Row: []byte(row), Family: []byte("f"), Type: cells.Put, Value: make([]byte, 1<<20)})
		return &pb.GetResponse{}, nil
	case strings.HasPrefix(row, "medium"):
		c.ReplyCells(cells.Cell{Row: []byte(row), Family: []byte("f"), Type: cells.Put, Value: make([]byte, 64<<10)})
		return &pb.GetResponse{}, nil
	case row == "error":
		return nil, errors.New("plain error")
	case row == "exception":
		return nil, cells.NoSuchFamily([]byte("x"))
	case row == "moved":
		return nil, wire.NewRegionMoved(wire.MovedTo{Host: "h", Port: 1, StartCode: 2, SeqNum: 3})
	case row == "panic":
		panic("on demand")
	}
	return &pb.GetResponse{Result: &pb.Result{Cell: []*pb.Cell{{Row: in.GetGet().GetRow()}}}}, nil
}

func (h *harness) dial(o rpctest.Options) *rpctest.Client {
	h.t.Helper()
	c, err := rpctest.Dial(h.address, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

func get(row string) *pb.GetRequest {
	return &pb.GetRequest{
		Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte("t,,1")},
		Get:    &pb.Get{Row: []byte(row)},
	}
}

func echo(t testing.TB, c *rpctest.Client, row string) {
	t.Helper()
	var out pb.GetResponse
	if _, err := c.Call("Get", get(row), &out); err != nil {
		t.Fatalf("Get %s: %v", row, err)
	}
	if got := string(out.GetResult().GetCell()[0].GetRow()); got != row {
		t.Fatalf("Get %s answered %s", row, got)
	}
}

func TestCallsAndErrors(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	echo(t, c, "a")
	tests := []struct {
		method, row string
		class, text string
		dnr         bool
	}{
		{"Get", "error", wire.ClassIOException, "plain error", false},
		{"Get", "exception", wire.ClassNoSuchColumnFamily, "Column family x does not exist", true},
		{"Get", "moved", wire.ClassRegionMoved, "Region moved to: hostname=h port=1 startCode=2. As of locationSeqNum=3.", false},
		{"Get", "panic", wire.ClassIOException, "internal error in Get: on demand", false},
		{"Frobnicate", "a", wire.ClassDoNotRetryIO, "is unable to read call parameter from client 127.0.0.1; java.lang.UnsupportedOperationException: Frobnicate", true},
		{"get", "a", wire.ClassDoNotRetryIO, "is unable to read call parameter from client 127.0.0.1; java.lang.UnsupportedOperationException: get", true},
	}
	for _, tt := range tests {
		_, err := c.Call(tt.method, get(tt.row), nil)
		x := rpctest.Remote(err)
		if x == nil || x.Class != tt.class || !strings.HasSuffix(x.Message, tt.text) || x.DoNotRetry != tt.dnr {
			t.Errorf("%s %s: %#v, want %s %q", tt.method, tt.row, err, tt.class, tt.text)
		}
		echo(t, c, "after "+tt.row)
	}
	// A param that is no message.
	_, err := c.Call("Get", &pb.GetServerInfoRequest{}, nil)
	if x := rpctest.Remote(err); x == nil || x.Short() != "InvalidProtocolBufferException" || x.DoNotRetry {
		t.Errorf("empty param: %v", err)
	}
	echo(t, c, "still there")
}

func TestCellBlocksAndCompression(t *testing.T) {
	h := newHarness(t, nil)
	for _, compressor := range []string{"", "org.apache.hadoop.io.compress.GzipCodec", "org.apache.hadoop.io.compress.SnappyCodec",
		"org.apache.hadoop.io.compress.Lz4Codec", "org.apache.hadoop.io.compress.ZStandardCodec"} {
		c := h.dial(rpctest.Options{Compressor: compressor})
		in := &pb.MutateRequest{Region: get("").Region, Mutation: &pb.MutationProto{AssociatedCellCount: new(int32(2))}}
		want := []cells.Cell{
			{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("a"), Timestamp: 1, Type: cells.Put, Value: []byte(strings.Repeat("v", 3000))},
			{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("b"), Timestamp: 2, Type: cells.Delete},
		}
		got, err := c.Call("Mutate", in, nil, want...)
		if err != nil || len(got) != 2 || string(got[0].Value) != string(want[0].Value) || got[1].Type != cells.Delete {
			t.Errorf("%q: %v, %v", compressor, got, err)
		}
		// Fewer cells than announced.
		in.Mutation.AssociatedCellCount = new(int32(3))
		if _, err = c.Call("Mutate", in, nil, want...); rpctest.Remote(err) == nil {
			t.Errorf("%q: three cells announced, two sent: %v", compressor, err)
		}
	}
	c := h.dial(rpctest.Options{NoCodec: true})
	_, err := c.Call("Get", get("big"), nil)
	if rpctest.Remote(err) == nil {
		t.Errorf("cells on a connection without codec: %v", err)
	}
	echo(t, c, "a")
}

func TestHandshake(t *testing.T) {
	h := newHarness(t, nil)
	fatal := func(name string, o rpctest.Options, class string) {
		t.Helper()
		c := h.dial(o)
		_, err := c.Call("Get", get("a"), nil)
		if x := rpctest.Remote(err); x == nil || x.Class != class {
			t.Errorf("%s: %v, want %s", name, err, class)
		}
		if _, err := c.Receive(); err == nil {
			t.Errorf("%s: the connection goes on", name)
		}
	}
	fatal("unknown service", rpctest.Options{Service: "NoService"}, wire.ClassUnknownService)
	fatal("codec", rpctest.Options{Codec: "com.example.Codec"}, wire.ClassUnsupportedCellCodec)
	fatal("compressor", rpctest.Options{Compressor: "com.example.Zip"}, wire.ClassUnsupportedCompression)

	raw := func(name string, send []byte) (*wire.Response, net.Conn) {
		t.Helper()
		nc, err := net.Dial("tcp", h.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		if _, err := nc.Write(send); err != nil {
			t.Fatal(err)
		}
		nc.SetReadDeadline(time.Now().Add(time.Minute))
		total, err := wire.ReadTotal(nc, 0)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		frame, err := wire.ReadBody(nc, total, nil)
		if err != nil {
			t.Fatal(err)
		}
		var resp wire.Response
		if err := wire.DecodeResponse(frame, &resp); err != nil {
			t.Fatal(err)
		}
		if resp.CallID != wire.PreambleCallID {
			t.Errorf("%s: call id %d", name, resp.CallID)
		}
		return &resp, nc
	}
	resp, nc := raw("registry", []byte("Regist"))
	var id pb.GetConnectionRegistryResponse
	if err := id.UnmarshalVT(resp.Result); err != nil || id.GetClusterId() != "cluster-7" {
		t.Errorf("registry preamble: %v, %v", &id, err)
	}
	if _, err := nc.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the registry answer: %v, want EOF", err)
	}
	if resp, _ = raw("http", []byte("GET / HTTP/1.1\r\n\r\n")); resp.Exception == nil || !strings.HasPrefix(resp.Exception.Message, "Expected HEADER=HBas") {
		t.Errorf("http: %+v", resp.Exception)
	}
	if resp, _ = raw("version", []byte("HBas\x01\x50")); resp.Exception == nil || resp.Exception.Class != wire.ClassWrongVersion {
		t.Errorf("version: %+v", resp.Exception)
	}
	if resp, _ = raw("auth", []byte("HBas\x00\x01")); resp.Exception == nil || resp.Exception.Class != wire.ClassBadAuth {
		t.Errorf("auth: %+v", resp.Exception)
	}
	resp, nc = raw("security", []byte("Securi"))
	if resp.Exception == nil || resp.Exception.Class != wire.ClassSecurityNotEnabled {
		t.Errorf("security preamble: %+v", resp.Exception)
	}
	// The same connection goes on with an ordinary preamble.
	nc.SetReadDeadline(time.Time{})
	c, err := rpctest.New(nc, rpctest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	echo(t, c, "a")

	// A client that wants Kerberos is told to go on without.
	nc, err = net.Dial("tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Write(append(wire.AppendPreamble(nil, wire.AuthKerberos), 0, 0, 0, 3, 'a', 'b', 'c')); err != nil {
		t.Fatal(err)
	}
	var word [8]byte
	if _, err := io.ReadFull(nc, word[:]); err != nil {
		t.Fatal(err)
	}
	if s, v := int32(binary.BigEndian.Uint32(word[:])), int32(binary.BigEndian.Uint32(word[4:])); s != 0 || v != -88 {
		t.Errorf("fallback: status %d, value %d", s, v)
	}
	b, err := wire.AppendConnectionHeader(nil, &pb.ConnectionHeader{ServiceName: new("ClientService")})
	if err != nil {
		t.Fatal(err)
	}
	if b, err = wire.AppendRequest(b, &wire.Request{CallID: 9, Method: "Get", Param: get("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	if total, err := wire.ReadTotal(nc, 0); err != nil || total == 0 {
		t.Errorf("after the fallback: %v", err)
	}
}

// TestOutOfOrder: a call that waits holds up neither those behind it on its
// connection nor their answers, whether it began inline or not.
func TestOutOfOrder(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	for round := range 20 {
		slow, err := c.Send(rpctest.Request{Method: "Get", Param: get("wait")})
		if err != nil {
			t.Fatal(err)
		}
		<-h.begun // it runs inline: nothing came behind it
		for range 3 {
			fast, err := c.Send(rpctest.Request{Method: "Get", Param: get("fast")})
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := c.Receive(); err != nil || resp.CallID != fast {
				t.Fatalf("round %d: answer %+v, %v; want call %d", round, resp, err, fast)
			}
		}
		h.release <- struct{}{}
		if resp, err := c.Receive(); err != nil || resp.CallID != slow {
			t.Fatalf("round %d: answer %+v, %v; want call %d", round, resp, err, slow)
		}
	}
}

// TestPipelined: many calls in flight on one connection, each answered once
// with its own answer.
func TestPipelined(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	const n = 2000
	go func() {
		for i := range n {
			if _, err := c.Send(rpctest.Request{CallID: uint32(i + 1), Method: "Get", Param: get(fmt.Sprint("row", i+1))}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	seen := make(map[uint32]bool)
	for range n {
		resp, err := c.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if resp.Exception != nil && resp.Exception.Class == wire.ClassCallQueueTooBig {
			seen[resp.CallID] = true
			continue
		}
		var out pb.GetResponse
		if err := out.UnmarshalVT(resp.Result); err != nil {
			t.Fatal(err)
		}
		if got, want := string(out.GetResult().GetCell()[0].GetRow()), fmt.Sprint("row", resp.CallID); got != want || seen[resp.CallID] {
			t.Fatalf("call %d answered %s (seen before: %v)", resp.CallID, got, seen[resp.CallID])
		}
		seen[resp.CallID] = true
	}
	if len(seen) != n {
		t.Errorf("%d calls answered of %d", len(seen), n)
	}
}

func TestTooManyCalls(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxConnCalls, c.MaxCalls = 3, 4 })
	a, b := h.dial(rpctest.Options{}), h.dial(rpctest.Options{})
	for range 3 {
		a.Send(rpctest.Request{Method: "Get", Param: get("wait")})
		<-h.begun
	}
	_, err := b.Call("Get", get("x"), nil)
	if err != nil {
		t.Errorf("a fourth call of the server: %v", err)
	}
	b.Send(rpctest.Request{Method: "Get", Param: get("wait")})
	<-h.begun
	for name, c := range map[string]*rpctest.Client{"connection": a, "server": b} {
		id, _ := c.Send(rpctest.Request{Method: "Get", Param: get("x")})
		resp, err := c.Receive()
		if err != nil || resp.CallID != id || resp.Exception == nil || resp.Exception.Class != wire.ClassCallQueueTooBig || !resp.Exception.Overloaded {
			t.Errorf("one call too many on the %s: %+v, %v", name, resp, err)
		}
	}
	close(h.release)
	for range 3 {
		if resp, err := a.Receive(); err != nil || resp.Exception != nil {
			t.Fatal(resp, err)
		}
	}
	if resp, err := b.Receive(); err != nil || resp.Exception != nil {
		t.Fatal(resp, err)
	}
	echo(t, a, "free again")
}

func TestRequestTooBig(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxFrame = 1000 })
	for _, tt := range []struct {
		o     rpctest.Options
		class string
	}{{rpctest.Options{}, wire.ClassRequestTooBig}, {rpctest.Options{Major: 1, Minor: 2}, wire.ClassDoNotRetryIO}, {rpctest.Options{NoVersion: true}, wire.ClassDoNotRetryIO}} {
		c := h.dial(tt.o)
		id, err := c.Send(rpctest.Request{Method: "Get", Param: get(strings.Repeat("x", 100_000))})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Receive()
		if err != nil || resp.CallID != id || resp.Exception == nil || resp.Exception.Class != tt.class {
			t.Errorf("%+v: %+v, %v; want %s", tt.o, resp, err, tt.class)
		}
		if _, err := c.Receive(); err == nil {
			t.Error("the connection goes on after a request that was too big")
		}
	}
}

func TestLateCallsAreDropped(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	// Held by a rule past its deadline, it is neither run nor answered.
	id, err := h.chaos.Add(chaos.Rule{Action: chaos.Delay, Delay: time.Hour, Times: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(rpctest.Request{Method: "Get", Param: get("late"), Timeout: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	got, err := h.events.Wait(t.Context(), eventlog.Filter{Outcome: eventlog.Dropped}, 0, 1)
	if err != nil || got[0].Rule != id {
		t.Fatal(got, err)
	}
	if d := time.Since(begin); d < 15*time.Millisecond {
		t.Errorf("dropped after %v: timeouts below 20 ms count as 20 ms", d)
	}
	echo(t, c, "next")
}

func TestEvents(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{User: "ann"})
	echo(t, c, "a")
	c.Call("Get", get("exception"), nil)
	list, _ := h.events.Query(eventlog.Filter{}, 0, 0)
	if len(list) != 2 {
		t.Fatalf("%d events, want 2: an answer is in the log before the client has it", len(list))
	}
	e := list[0]
	if e.Method != "Get" || e.Service != "ClientService" || e.Table != "t" || e.Region != "r1" || string(e.Row) != "a" || e.Rows != 1 ||
		e.User != "ann" || e.Outcome != eventlog.OK || e.Server != h.address || e.Latency <= 0 || e.Client == "" {
		t.Errorf("event %+v", e)
	}
	if list[1].Outcome != "NoSuchColumnFamilyException" {
		t.Errorf("outcome %q", list[1].Outcome)
	}
	if n := h.events.Count(eventlog.Filter{Method: "Get", Table: "t"}); n != 2 {
		t.Errorf("count %d", n)
	}
}

func TestChaos(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	rule := func(r chaos.Rule) uint64 {
		t.Helper()
		h.chaos.Clear()
		id, err := h.chaos.Add(r)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	last := func() eventlog.Event {
		list, _ := h.events.Query(eventlog.Filter{}, 0, 0)
		return list[len(list)-1]
	}

	id := rule(chaos.Rule{Action: chaos.Fail, Times: 1, Exception: chaos.Exception{Class: "CallQueueTooBigException"}})
	_, err := c.Call("Get", get("a"), nil)
	if x := rpctest.Remote(err); x == nil || x.Class != wire.ClassCallQueueTooBig || !x.Overloaded {
		t.Errorf("fail: %v", err)
	}
	if e := last(); e.Rule != id || e.Outcome != "CallQueueTooBigException" {
		t.Errorf("fail: event %+v", e)
	}
	echo(t, c, "after fail")

	// The row range and table come from Describe.
	rule(chaos.Rule{Match: chaos.Match{Table: "t", StartRow: []byte("m"), StopRow: []byte("n")}, Action: chaos.Fail, Exception: chaos.Exception{Class: "PleaseHoldException"}})
	echo(t, c, "a")
	if _, err = c.Call("Get", get("m5"), nil); rpctest.Remote(err) == nil {
		t.Error("row rule missed")
	}

	// A dropped answer: the handler ran, the next call is answered.
	id = rule(chaos.Rule{Action: chaos.DropReply, Times: 1})
	c.Send(rpctest.Request{Method: "Get", Param: get("dropped")})
	if err := h.chaos.Wait(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	echo(t, c, "after drop")

	// A held call holds up nobody.
	id = rule(chaos.Rule{Match: chaos.Match{StartRow: []byte("held"), StopRow: []byte("held\x00")}, Action: chaos.Hold})
	held, _ := c.Send(rpctest.Request{Method: "Get", Param: get("held")})
	if err := h.chaos.Wait(t.Context(), id, 1); err != nil {
		t.Fatal(err)
	}
	echo(t, c, "while held")
	h.chaos.Clear()
	if resp, err := c.Receive(); err != nil || resp.CallID != held {
		t.Errorf("released call: %+v, %v", resp, err)
	}

	rule(chaos.Rule{Action: chaos.Truncate, Times: 1})
	if _, err = c.Call("Get", get("cut"), nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("truncate: %v", err)
	}

	c = h.dial(rpctest.Options{})
	for _, a := range []chaos.Action{chaos.Close, chaos.CloseAfter} {
		rule(chaos.Rule{Action: a, Times: 1})
		if _, err = c.Call("Get", get("x"), nil); err == nil || rpctest.Remote(err) != nil {
			t.Errorf("%s: %v, want a broken connection", a, err)
		}
		c = h.dial(rpctest.Options{})
		echo(t, c, "after "+string(a))
	}
}

func TestPauseHangResume(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	echo(t, c, "a")
	for name, stop := range map[string]func(){"pause": h.Pause, "hang": h.Hang} {
		stop()
		id, err := c.Send(rpctest.Request{Method: "Get", Param: get("b")})
		if err != nil {
			t.Fatal(err)
		}
		c.Conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if resp, err := c.Receive(); err == nil {
			t.Fatalf("%s: answered %+v", name, resp)
		}
		// A new connection is accepted by the kernel at least.
		d := h.dial(rpctest.Options{})
		if _, err := d.Send(rpctest.Request{Method: "Get", Param: get("c")}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.Resume()
		c.Conn.SetReadDeadline(time.Now().Add(time.Minute))
		if resp, err := c.Receive(); err != nil || resp.CallID != id {
			t.Fatalf("%s: after resume %+v, %v", name, resp, err)
		}
		if resp, err := d.Receive(); err != nil || resp.Exception != nil {
			t.Fatalf("%s: after resume %+v, %v", name, resp, err)
		}
		echo(t, c, "again")
	}
	h.Slow(30 * time.Millisecond)
	begin := time.Now()
	echo(t, c, "slow")
	if d := time.Since(begin); d < 30*time.Millisecond {
		t.Errorf("slow server answered after %v", d)
	}
	h.Slow(0)
	echo(t, c, "fast")
}

func TestKill(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	c.Send(rpctest.Request{Method: "Get", Param: get("wait")})
	<-h.begun
	h.Kill()
	h.Wait()
	if n := h.running.Load(); n != 0 {
		t.Errorf("%d handlers run after Wait", n)
	}
	if _, err := c.Receive(); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("killed: %v, want a reset", err)
	}
	if _, err := rpctest.Dial(h.address, rpctest.Options{}); err == nil {
		t.Error("a killed server accepts connections")
	}
}

func TestStop(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	id, _ := c.Send(rpctest.Request{Method: "Get", Param: get("wait")})
	<-h.begun
	stopped := make(chan error)
	go func() { stopped <- h.Stop(context.Background()) }()
	select {
	case err := <-stopped:
		t.Fatal("stopped under a running call", err)
	case <-time.After(30 * time.Millisecond):
	}
	close(h.release)
	if resp, err := c.Receive(); err != nil || resp.CallID != id || resp.Exception != nil {
		t.Errorf("the running call: %+v, %v", resp, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := c.Receive(); err == nil {
		t.Error("connection open after Stop")
	}
}

func TestStopGivesUp(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	c.Send(rpctest.Request{Method: "Get", Param: get("wait")})
	<-h.begun
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := h.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop: %v", err)
	}
	h.Wait() // the handler's context has ended
}

// TestUnreadAnswers: a client that does not read is not read from for ever, and
// others are not disturbed.
func TestUnreadAnswers(t *testing.T) {
	h := newHarness(t, func(c *rpcserver.Config) { c.MaxUnread, c.MaxConnCalls, c.MaxCalls = 8<<20, 1<<20, 1<<20 })
	lazy, other := h.dial(rpctest.Options{}), h.dial(rpctest.Options{})
	for range 10 { // the server learns what answers weigh
		if _, err := lazy.Call("Get", get("big"), nil); err != nil {
			t.Fatal(err)
		}
	}
	sent := 0
	for {
		lazy.Conn.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		// A request of 8 KiB brings an answer of 1 MiB.
		if _, err := lazy.Send(rpctest.Request{Method: "Get", Param: get("big" + strings.Repeat("x", 8<<10))}); err != nil {
			break
		}
		if sent++; sent > 20000 {
			t.Fatal("the server reads on and on")
		}
	}
	echo(t, other, "a")
	if c := h.Conns()[0].Calls; c > 20 {
		t.Errorf("%d calls in flight for a client that does not read", c)
	}
}

func TestConcurrentClients(t *testing.T) {
	h := newHarness(t, nil)
	var wg sync.WaitGroup
	for i := range 16 {
		c := h.dial(rpctest.Options{})
		wg.Go(func() {
			for j := range 200 {
				row := fmt.Sprint(i, "-", j)
				var out pb.GetResponse
				if _, err := c.Call("Get", get(row), &out); err != nil || string(out.GetResult().GetCell()[0].GetRow()) != row {
					t.Errorf("%s: %v %v", row, &out, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkLoneGet(b *testing.B) {
	for _, mode := range []string{"events", "silent"} {
		b.Run(mode, func(b *testing.B) {
			h := newHarness(b, nil)
			h.events.SetEnabled(mode == "events")
			c := h.dial(rpctest.Options{})
			req := get("row")
			var out pb.GetResponse
			b.ReportAllocs()
			for b.Loop() {
				out.Result = nil
				if _, err := c.Call("Get", req, &out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEcho is the floor: the same bytes back and forth through a goroutine
// that does nothing.
func BenchmarkEcho(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		buf := make([]byte, 64)
		for {
			if _, err := io.ReadFull(c, buf); err != nil {
				return
			}
			if _, err := c.Write(buf); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 64)
	for b.Loop() {
		if _, err := c.Write(buf); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPipelinedGets(b *testing.B) {
	h := newHarness(b, nil)
	c := h.dial(rpctest.Options{})
	req := get("row")
	window := make(chan struct{}, 64)
	go func() {
		for range b.N {
			window <- struct{}{}
			if _, err := c.Send(rpctest.Request{Method: "Get", Param: req}); err != nil {
				b.Error(err)
				return
			}
		}
	}()
	b.ReportAllocs()
	for range b.N {
		if _, err := c.Receive(); err != nil {
			b.Fatal(err)
		}
		<-window
	}
}
