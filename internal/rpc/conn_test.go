package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestRoundTrip(t *testing.T) {
	var seen atomic.Pointer[pb.ConnectionHeader]
	addr := onTCP(t, func(s *session) error {
		seen.Store(s.header)
		return echo(s)
	})
	cfg := config(addr)
	cfg.RealUser = "proxy"
	c := dial(t, cfg)
	for _, row := range []string{"r1", "r2", strings.Repeat("r", 30000)} {
		if v, err := get(within(t, 5*time.Second), c, row); v != row || err != nil {
			t.Fatalf("get %.10q: %.10q, %v", row, v, err)
		}
	}
	h := seen.Load()
	if h.GetServiceName() != "ClientService" || h.GetUserInfo().GetEffectiveUser() != "alice" || h.GetUserInfo().GetRealUser() != "proxy" ||
		h.GetCellBlockCodecClass() != wire.KeyValueCodec.ClassName() || h.CellBlockCompressorClass != nil || h.GetVersionInfo().GetVersionMajor() < 2 {
		t.Errorf("connection header %v", h)
	}
	if c.InFlight() != 0 || c.Err() != nil || c.LastReply().IsZero() || time.Since(c.LastReply()) > time.Minute {
		t.Errorf("in flight %d, err %v, last reply %v", c.InFlight(), c.Err(), c.LastReply())
	}
}

// Answers in any order find their calls; cancelled calls lose only theirs.
func TestManyCallsOutOfOrder(t *testing.T) {
	addr := onTCP(t, func(s *session) error {
		type waiting struct {
			id  uint32
			row []byte
		}
		in := make(chan waiting, 1000)
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(in)
		for range 8 {
			wg.Go(func() {
				for w := range in {
					if rand.IntN(4) == 0 {
						time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
					}
					result := &pb.GetResponse{Result: &pb.Result{Cell: []*pb.Cell{{Value: w.row}}}}
					if s.answer(w.id, result, nil) != nil {
						return
					}
				}
			})
		}
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			var g pb.GetRequest
			if err := g.UnmarshalVT(r.Param); err != nil {
				return err
			}
			in <- waiting{r.CallID, g.Get.Row}
		}
	})
	c := dial(t, config(addr))
	var wg sync.WaitGroup
	var answered, cancelled atomic.Int64
	for w := range 64 {
		wg.Go(func() {
			for i := range 100 {
				row := fmt.Sprintf("%d-%d", w, i)
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
				if w%4 == 0 {
					ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rand.IntN(2000))*time.Microsecond)
				}
				var result pb.GetResponse
				err := c.Do(ctx, &Call{Method: "Get", Param: getRequest(row), Result: &result})
				switch {
				case err == nil && len(result.GetResult().GetCell()) == 1 && string(result.Result.Cell[0].Value) == row:
					answered.Add(1)
				case w%4 == 0 && errors.Is(err, context.DeadlineExceeded):
					cancelled.Add(1)
				default:
					t.Errorf("%s: %v, %v", row, &result, err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if answered.Load()+cancelled.Load() != 6400 || answered.Load() < 4800 {
		t.Errorf("%d answered, %d cancelled", answered.Load(), cancelled.Load())
	}
	if c.InFlight() != 0 || c.Err() != nil {
		t.Errorf("in flight %d, err %v", c.InFlight(), c.Err())
	}
}

func TestExceptions(t *testing.T) {
	addr := onTCP(t, func(s *session) error {
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			e := wire.NewRemoteError(wire.ClassNotServingRegion, "t is not online on h")
			switch string(r.Method) {
			case "Moved":
				e = wire.NewRegionMoved(wire.MovedTo{Host: "h2", Port: 16020, StartCode: 1, SeqNum: 2})
			case "Long": // longer than the reader's buffer
				e = wire.NewRemoteError(wire.ClassIOException, strings.Repeat("x", 3*readBuffer))
			}
			if err := s.throw(r.CallID, e); err != nil {
				return err
			}
		}
	})
	c := dial(t, config(addr))
	for method, class := range map[string]string{"Get": wire.ClassNotServingRegion, "Moved": wire.ClassRegionMoved, "Long": wire.ClassIOException} {
		call := &Call{Method: method, Param: getRequest("r")}
		err := c.Do(within(t, 5*time.Second), call)
		var re *wire.RemoteError
		if !errors.As(err, &re) || re.Class != class || !call.Sent {
			t.Errorf("%s: %v, sent %v", method, err, call.Sent)
		}
		if method == "Moved" && (re.Moved == nil || re.Moved.Host != "h2") {
			t.Errorf("moved to %v", re.Moved)
		}
	}
	if c.Err() != nil {
		t.Errorf("the connection ended: %v", c.Err())
	}
}

func TestFatalException(t *testing.T) {
	for _, id := range []uint32{wire.PreambleCallID, 1} {
		addr := onTCP(t, func(s *session) error {
			var r wire.ReceivedRequest
			if err := s.next(&r); err != nil {
				return err
			}
			return s.throw(id, wire.NewRemoteError(wire.ClassUnknownService, "Nonsense"))
		})
		c := dial(t, config(addr))
		call := &Call{Method: "Get", Param: getRequest("r")}
		err := c.Do(within(t, 5*time.Second), call)
		var re *wire.RemoteError
		var ce *ConnError
		if !errors.As(err, &re) || re.Class != wire.ClassUnknownService {
			t.Errorf("id %d: %v", int32(id), err)
		}
		if id == wire.PreambleCallID && (!errors.As(err, &ce) || ce.Sent || call.Sent) {
			t.Errorf("the header was refused, yet the request counts as sent: %v", err)
		}
		<-c.Done()
		err = c.Do(within(t, 5*time.Second), call)
		if !errors.As(err, &re) || !errors.As(err, &ce) || ce.Sent || call.Sent {
			t.Errorf("id %d, second call: %v", int32(id), err)
		}
		if !errors.As(c.Err(), &re) {
			t.Errorf("id %d: Err %v", int32(id), c.Err())
		}
	}
}

// Answers nobody waits for, of any size, are skipped.
func TestUnknownIDs(t *testing.T) {
	addr := onTCP(t, func(s *session) error {
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			for _, block := range [][]byte{nil, []byte("x"), make([]byte, 3<<20)} {
				if err := s.answer(r.CallID+1000, nil, block); err != nil {
					return err
				}
			}
			if err := s.answer(wire.PreambleCallID, nil, nil); err != nil {
				return err
			}
			if err := s.throw(r.CallID+1000, wire.NewRemoteError(wire.ClassIOException, "late")); err != nil {
				return err
			}
			if err := s.answer(r.CallID, nil, nil); err != nil {
				return err
			}
		}
	})
	c := dial(t, config(addr))
	for range 3 {
		if err := c.Do(within(t, 5*time.Second), &Call{Method: "Get", Param: getRequest("r"), Result: &pb.GetResponse{}}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBigFramesAndCompression(t *testing.T) {
	for _, compression := range []string{"none", "gzip", "snappy", "lz4", "zstd", "deflate"} {
		t.Run(compression, func(t *testing.T) {
			addr := onTCP(t, func(s *session) error { // sends the request's cells back
				var r wire.ReceivedRequest
				for {
					if err := s.next(&r); err != nil {
						return err
					}
					block, err := s.comp.Decompress(nil, r.Cells)
					if err != nil {
						return err
					}
					if err := s.answer(r.CallID, &pb.MultiResponse{Processed: proto.Bool(true)}, block); err != nil {
						return err
					}
				}
			})
			cfg := config(addr)
			cfg.Compression = compression
			c := dial(t, cfg)
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					block := bytes.Repeat([]byte{byte(i), 1, 2, 3}, 1<<20)
					var result pb.MultiResponse
					call := Call{Method: "Multi", Param: &pb.MultiRequest{}, Cells: block, Result: &result}
					if err := c.Do(within(t, 20*time.Second), &call); err != nil || !result.GetProcessed() || !bytes.Equal(call.ResultCells, block) {
						t.Errorf("%d bytes back, %v", len(call.ResultCells), err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestDeathWithinAnAnswer(t *testing.T) {
	whole, err := wire.AppendResponse(nil, 1, nil, make([]byte, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{0, 1, 4, 5, 8, 12, 1000, len(whole) - 1} {
		addr := onTCP(t, func(s *session) error {
			var r wire.ReceivedRequest
			for range 2 {
				if err := s.next(&r); err != nil {
					return err
				}
			}
			_, err := s.conn.Write(whole[:cut])
			return err
		})
		c := dial(t, config(addr))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				call := &Call{Method: "Get", Param: getRequest("r")}
				err := c.Do(within(t, 10*time.Second), call)
				var ce *ConnError
				if !errors.As(err, &ce) || !ce.Sent || !call.Sent || !errors.Is(err, ErrServerClosed) {
					t.Errorf("cut at %d: %v", cut, err)
				}
			})
		}
		wg.Wait()
		select {
		case <-c.Done():
		case <-time.After(time.Minute):
			t.Errorf("cut at %d: the connection lives", cut)
		}
	}
}

func TestNonsenseEndsTheConnection(t *testing.T) {
	tests := []struct {
		name string
		in   string
		want error
	}{
		{"header longer than frame", "\x00\x00\x00\x05\x20\x08\x07\x00\x00", &wire.FormatError{}},
		{"no end to the header's length", "\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xff", &wire.FormatError{}},
		{"header no protobuf", "\x00\x00\x00\x03\x02\xff\xff", &wire.FormatError{}},
		{"empty frame", "\x00\x00\x00\x00", &wire.FormatError{}},
		{"no result", "\x00\x00\x00\x03\x02\x08\x02", &wire.FormatError{}},
		{"negative length", "\xff\xff\xff\xff", &wire.FormatError{}},
		{"too large", "\x02\x00\x00\x00", &wire.TooLargeError{}},
	}
	for _, tt := range tests {
		addr := onTCP(t, func(s *session) error {
			var r wire.ReceivedRequest
			if err := s.next(&r); err != nil {
				return err
			}
			if err := s.answer(r.CallID, nil, nil); err != nil { // so that it is HBase
				return err
			}
			if err := s.next(&r); err != nil {
				return err
			}
			if _, err := s.conn.Write([]byte(tt.in)); err != nil {
				return err
			}
			return s.next(&r)
		})
		cfg := config(addr)
		cfg.MaxFrame = 16 << 20
		c := dial(t, cfg)
		if err := c.Do(within(t, 5*time.Second), &Call{Method: "Get", Param: getRequest("r")}); err != nil {
			t.Fatal(err)
		}
		err := c.Do(within(t, 5*time.Second), &Call{Method: "Get", Param: getRequest("r")})
		var ok bool
		switch tt.want.(type) {
		case *wire.FormatError:
			var fe *wire.FormatError
			ok = errors.As(err, &fe)
		case *wire.TooLargeError:
			var tl *wire.TooLargeError
			ok = errors.As(err, &tl)
		}
		var ce *ConnError
		if !ok || !errors.As(err, &ce) {
			t.Errorf("%s: %v", tt.name, err)
		}
		<-c.Done()
	}
}

// An answer whose message cannot be read fails its call alone.
func TestUnreadableResult(t *testing.T) {
	addr := onTCP(t, func(s *session) error {
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			if string(r.Method) == "Bad" {
				if err := s.answer(r.CallID, &pb.NameBytesPair{Name: proto.String("\xff\xff")}, nil); err != nil {
					return err
				}
				continue
			}
			if err := s.answer(r.CallID, nil, nil); err != nil {
				return err
			}
		}
	})
	c := dial(t, config(addr))
	var fe *wire.FormatError
	if err := c.Do(within(t, 5*time.Second), &Call{Method: "Bad", Param: getRequest("r"), Result: &pb.GetResponse{}}); !errors.As(err, &fe) {
		t.Errorf("bad result: %v", err)
	}
	if err := c.Do(within(t, 5*time.Second), &Call{Method: "Good", Param: getRequest("r"), Result: &pb.GetResponse{}}); err != nil {
		t.Errorf("after it: %v", err)
	}
}

func TestNotHBase(t *testing.T) {
	tests := []struct{ in, want string }{
		{"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP server"},
		{"SSH-2.0-OpenSSH_9.6\r\n", "SSH"},
		{"\x15\x03\x01\x00\x02\x02\x46", "TLS"},
		{"-ERR unknown command", "Redis"},
		{"220 mail.example ESMTP", "mail"},
		{"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00", "HTTP/2"},
		{"J\x00\x00\x00\n8.0.36\x00", "MySQL"},
		{"<html>", "HTML"},
		{"what do you want?", "text"},
		{"\x80\x01\x02\x03\x04\x05", "no answer"},
		{"\x00\x00\x00\x03\x02\xff\xff", "no answer"},
	}
	for _, tt := range tests {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte(tt.in))
			_, _ = conn.Read(make([]byte, 1000))
			_, _ = conn.Read(make([]byte, 1000))
		})
		c := dial(t, config(l.Addr().String()))
		err = c.Do(within(t, 5*time.Second), &Call{Method: "Get", Param: getRequest("r")})
		var nh *NotHBaseError
		if !errors.As(err, &nh) || !strings.Contains(nh.Saw, tt.want) || nh.Addr != c.Addr() || len(nh.Bytes) == 0 {
			t.Errorf("%q: %v", tt.in, err)
		}
		c.Close()
		l.Close()
		wg.Wait()
	}
}

func TestCallIDsWrap(t *testing.T) {
	addr := onTCP(t, echo)
	c := dial(t, config(addr))
	c.calls.mu.Lock()
	c.calls.lastID = math.MaxInt32 - 2
	*c.calls.place(1) = &pending{done: make(chan struct{}, 1), id: 1} // still on its way after 2^31 calls
	c.calls.mu.Unlock()
	var ids []uint32
	for range 4 {
		if v, err := get(within(t, 5*time.Second), c, "r"); v != "r" || err != nil {
			t.Fatal(v, err)
		}
		c.calls.mu.Lock()
		ids = append(ids, c.calls.lastID)
		c.calls.mu.Unlock()
	}
	if want := []uint32{math.MaxInt32 - 1, math.MaxInt32, 2, 3}; fmt.Sprint(ids) != fmt.Sprint(want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
}

func TestBadRequestsDoNoHarm(t *testing.T) {
	c := dial(t, config(onTCP(t, echo)))
	if err := c.Do(within(t, time.Second), &Call{Method: "Get", Param: &pb.GetRequest{}}); err == nil || !strings.Contains(err.Error(), "required") {
		t.Errorf("missing field: %v", err)
	}
	if err := c.Do(within(t, time.Second), &Call{Method: "Get", Param: panicking{}}); err == nil {
		t.Error("a panic in the encoder: no error")
	}
	if err := c.Do(within(t, time.Second), &Call{Method: "Get"}); err == nil {
		t.Error("no param: no error")
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("why")
	cancel(why)
	if err := c.Do(ctx, &Call{Method: "Get", Param: getRequest("r")}); err != why {
		t.Errorf("ended context: %v", err)
	}
	if v, err := get(within(t, 5*time.Second), c, "r"); v != "r" || err != nil {
		t.Errorf("afterwards: %q, %v", v, err)
	}
	if n := c.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
}

type panicking struct{}

func (panicking) SizeVT() int                                { return 10 }
func (panicking) MarshalToSizedBufferVT([]byte) (int, error) { panic("changed") }

func TestCloseEndsCalls(t *testing.T) {
	var came atomic.Int64
	addr := onTCP(t, func(s *session) error {
		var r wire.ReceivedRequest
		for {
			if err := s.next(&r); err != nil {
				return err
			}
			came.Add(1)
		}
	})
	c := dial(t, config(addr))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			err := c.Do(context.Background(), &Call{Method: "Get", Param: getRequest("r")})
			var ce *ConnError
			if !errors.Is(err, ErrClosed) || !errors.As(err, &ce) || !ce.Sent {
				t.Errorf("call: %v", err)
			}
		})
	}
	for came.Load() < 10 {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	call := &Call{Method: "Get", Param: getRequest("r")}
	var ce *ConnError
	if err := c.Do(context.Background(), call); !errors.Is(err, ErrClosed) || !errors.As(err, &ce) || ce.Sent || call.Sent {
		t.Errorf("after Close: %v", err)
	}
}

func TestConfigErrors(t *testing.T) {
	for _, cfg := range []Config{{}, {Addr: "h:1"}, {Addr: "h:1", Service: "s", Codec: "x"}, {Addr: "h:1", Service: "s", Compression: "x"}, {Addr: "h:1", Service: "s", Codec: "none", Compression: "gzip"}} {
		_, err := Dial(context.Background(), cfg)
		var de *DialError
		if err == nil || errors.As(err, &de) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestCellsNeedACodec(t *testing.T) {
	cfg := config(onTCP(t, echo))
	cfg.Codec = "none"
	c := dial(t, cfg)
	if err := c.Do(within(t, time.Second), &Call{Method: "Multi", Param: getRequest("r"), Cells: []byte("x")}); err == nil {
		t.Error("no error")
	}
}
