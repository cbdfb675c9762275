package rpc

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The clock of these tests stands still unless everybody waits, so durations
// are exact.

// mute reads nothing but preamble and header, and keeps the stream open.
func mute(until <-chan struct{}) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = wire.ReadPreamble(conn)
		_, _ = wire.ReadConnectionHeader(conn)
		<-until
	}
}

func dialPipe(t *testing.T, cfg Config, script func(net.Conn)) *Conn {
	t.Helper()
	cfg.Dial = onPipe(t, script)
	c, err := Dial(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDoEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		c := dialPipe(t, config("rs:1"), mute(until))
		defer c.Close()
		defer close(until)

		// The first request blocks the stream for good; the flusher has it.
		var wg sync.WaitGroup
		defer wg.Wait()
		start := time.Now()
		first := Call{Method: "Get", Param: getRequest("first")}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := c.Do(ctx, &first); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute || !first.Sent {
				t.Errorf("first: %v after %v, sent %v", err, time.Since(start), first.Sent)
			}
		})
		synctest.Wait()

		// The others wait in the buffer and are withdrawn when they give up.
		for _, d := range []time.Duration{1, time.Millisecond, 10 * time.Second} {
			at := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), d)
			call := Call{Method: "Get", Param: getRequest("later")}
			if err := c.Do(ctx, &call); !errors.Is(err, context.DeadlineExceeded) || time.Since(at) != d || call.Sent {
				t.Errorf("within %v: %v after %v, sent %v", d, err, time.Since(at), call.Sent)
			}
			cancel()
			c.w.mu.Lock()
			if c.w.queued() > int(first.Param.(*pb.GetRequest).SizeVT())+100 || len(c.w.queue) != 0 {
				t.Errorf("%d bytes and %d calls still queued", c.w.queued(), len(c.w.queue))
			}
			c.w.mu.Unlock()
		}
		// A cause of the caller's own comes back as it is.
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := c.Do(ctx, &Call{Method: "Get", Param: getRequest("r")}); err != why {
			t.Errorf("cancelled: %v", err)
		}
		if c.InFlight() != 1 || c.Err() != nil {
			t.Errorf("in flight %d, err %v", c.InFlight(), c.Err())
		}
	})
}

// Withdrawing from the middle leaves the neighbours' frames whole.
func TestWithdrawFromTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := dialPipe(t, config("rs:1"), func(conn net.Conn) {
			s, err := hello(t, conn)
			if err != nil {
				t.Error(err)
				return
			}
			<-release
			_ = echo(s)
		})
		defer c.Close()
		var wg sync.WaitGroup
		rows := []string{"a", "bb", "ccc", "dddd", "eeeee", "ffffff"}
		for i, row := range rows {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				if i == 2 || i == 3 {
					ctx, cancel = context.WithTimeout(context.Background(), time.Duration(i)*time.Second)
				}
				defer cancel()
				v, err := get(ctx, c, row)
				if i == 2 || i == 3 {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s: %v", row, err)
					}
				} else if v != row || err != nil {
					t.Errorf("%s: %q, %v", row, v, err)
				}
			})
			synctest.Wait() // queued in this order
		}
		time.Sleep(10 * time.Second)
		close(release)
		wg.Wait()
		if v, err := get(context.Background(), c, "again"); v != "again" || err != nil {
			t.Errorf("afterwards: %q, %v", v, err)
		}
	})
}

func TestFullBufferMakesCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until, release := make(chan struct{}), make(chan struct{})
		c := dialPipe(t, config("rs:1"), func(conn net.Conn) {
			s, err := hello(t, conn)
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case <-release:
				var r wire.ReceivedRequest
				for s.next(&r) == nil {
					if s.answer(r.CallID, nil, nil) != nil {
						return
					}
				}
			case <-until:
			}
		})
		defer c.Close()
		defer close(until)
		var wg sync.WaitGroup
		block := make([]byte, 1<<20)
		for range 20 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if err := c.Do(ctx, &Call{Method: "Multi", Param: &pb.MultiRequest{}, Cells: block}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		c.w.mu.Lock()
		queued := c.w.queued()
		c.w.mu.Unlock()
		if queued < maxQueued || queued > maxQueued+2<<20 || c.InFlight() > 7 {
			t.Errorf("%d bytes of %d calls queued", queued, c.InFlight())
		}
		// Who waits for room is honest about time too, and sent nothing.
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		at := time.Now()
		call := Call{Method: "Get", Param: getRequest("r")}
		if err := c.Do(ctx, &call); !errors.Is(err, context.DeadlineExceeded) || time.Since(at) != time.Second || call.Sent {
			t.Errorf("%v after %v, sent %v", err, time.Since(at), call.Sent)
		}
		cancel()
		close(release)
		wg.Wait()
		synctest.Wait()
		c.w.mu.Lock()
		if cap(c.w.buf) > keepBuffer || c.w.active {
			t.Errorf("buffer of %d kept, active %v", cap(c.w.buf), c.w.active)
		}
		c.w.mu.Unlock()
	})
}

// What the stream had not been given is not reported as sent.
func TestSentWhenTheConnectionDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		die := make(chan struct{})
		c := dialPipe(t, config("rs:1"), mute(die))
		defer c.Close()
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				call := Call{Method: "Get", Param: getRequest("r")}
				err := c.Do(context.Background(), &call)
				var ce *ConnError
				// The first is being written when the stream ends, so it may be
				// either; the others were never given to the stream.
				if !errors.As(err, &ce) || ce.Sent != call.Sent || call.Sent && i > 0 {
					t.Errorf("call %d: %v, sent %v", i, err, call.Sent)
				}
			})
			synctest.Wait()
		}
		close(die)
		wg.Wait()
	})
	synctest.Test(t, func(t *testing.T) {
		c := dialPipe(t, config("rs:1"), func(conn net.Conn) {
			s, err := hello(t, conn)
			if err != nil {
				t.Error(err)
				return
			}
			var r wire.ReceivedRequest
			_ = s.next(&r)
		})
		defer c.Close()
		call := Call{Method: "Get", Param: getRequest("r")}
		if err := c.Do(context.Background(), &call); !errors.Is(err, ErrServerClosed) || !call.Sent {
			t.Errorf("request read, then closed: %v, sent %v", err, call.Sent)
		}
	})
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := config("rs:1")
		cfg.IdleTimeout = DefaultIdleTimeout
		delay := time.Duration(0)
		c := dialPipe(t, cfg, func(conn net.Conn) {
			s, err := hello(t, conn)
			if err != nil {
				t.Error(err)
				return
			}
			var r wire.ReceivedRequest
			for s.next(&r) == nil {
				time.Sleep(delay)
				if s.answer(r.CallID, nil, nil) != nil {
					return
				}
			}
		})
		defer c.Close()
		do := func() {
			t.Helper()
			if err := c.Do(context.Background(), &Call{Method: "Get", Param: getRequest("r")}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(100 * time.Second)
		do()
		if c.LastReply() != time.Now() {
			t.Errorf("last reply %v, now %v", c.LastReply(), time.Now())
		}
		time.Sleep(119 * time.Second)
		delay = 10 * time.Minute // a slow answer is no idleness
		do()
		time.Sleep(119 * time.Second)
		if c.Err() != nil {
			t.Fatalf("ended early: %v", c.Err())
		}
		at := c.LastReply()
		<-c.Done()
		if idle := time.Since(at); idle < cfg.IdleTimeout || idle > cfg.IdleTimeout+time.Second || !errors.Is(c.Err(), ErrIdle) {
			t.Errorf("%v after %v", c.Err(), idle)
		}
		call := Call{Method: "Get", Param: getRequest("r")}
		if err := c.Do(context.Background(), &call); !errors.Is(err, ErrIdle) || call.Sent {
			t.Errorf("afterwards: %v, sent %v", err, call.Sent)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		until := make(chan struct{})
		c := dialPipe(t, config("rs:1"), mute(until)) // 0 = never
		time.Sleep(1000 * time.Hour)
		if c.Err() != nil {
			t.Error(c.Err())
		}
		close(until)
		c.Close()
	})
}

func TestDialIsBounded(t *testing.T) {
	tests := []struct {
		name  string
		cfg   func(*Config, <-chan struct{})
		phase Phase
	}{
		{"connect", func(cfg *Config, _ <-chan struct{}) {
			cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, errors.New("i/o timeout")
			}
		}, PhaseConnect},
		{"header", func(cfg *Config, until <-chan struct{}) {
			cfg.Dial = onPipe(t, func(net.Conn) { <-until })
		}, PhaseHeader},
		{"tls", func(cfg *Config, until <-chan struct{}) {
			cfg.Dial = onPipe(t, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<16)); <-until })
			cfg.TLS = testTLS(t).client
		}, PhaseTLS},
		{"auth", func(cfg *Config, until <-chan struct{}) {
			cfg.Dial = onPipe(t, func(c net.Conn) { _, _ = wire.ReadPreamble(c); <-until })
			cfg.Auth = waitingAuth{}
		}, PhaseAuth},
	}
	for _, tt := range tests {
		for _, own := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				until := make(chan struct{})
				defer close(until)
				cfg := config("rs:1")
				tt.cfg(&cfg, until)
				ctx := context.Background()
				want := 10 * time.Second
				wantErr := error(ErrConnectTimeout)
				if !own {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 3*time.Second)
					defer cancel()
					want, wantErr = 3*time.Second, context.DeadlineExceeded
				}
				at := time.Now()
				_, err := Dial(ctx, cfg)
				var de *DialError
				if !errors.As(err, &de) || de.Phase != tt.phase || !errors.Is(err, wantErr) || time.Since(at) != want || de.Addr != "rs:1" {
					t.Errorf("%s: %v after %v", tt.name, err, time.Since(at))
				}
			})
		}
	}
}

// waitingAuth waits for a byte that never comes.
type waitingAuth struct{}

func (waitingAuth) Code() wire.AuthCode { return wire.AuthKerberos }
func (waitingAuth) Authenticate(_ context.Context, conn net.Conn) (net.Conn, error) {
	_, err := conn.Read(make([]byte, 1))
	return conn, err
}
func (waitingAuth) User(effective, _ string) *pb.UserInformation {
	return &pb.UserInformation{EffectiveUser: &effective}
}

// A real socket whose peer reads nothing: the kernel's buffers fill, then ours.
func TestStuckPeerOnTCP(t *testing.T) {
	until := make(chan struct{})
	addr := onTCP(t, func(*session) error { <-until; return nil })
	defer close(until)
	c := dial(t, config(addr))
	block := make([]byte, 1<<20)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			at := time.Now()
			err := c.Do(ctx, &Call{Method: "Multi", Param: &pb.MultiRequest{}, Cells: block})
			if took := time.Since(at); !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
				t.Errorf("%v after %v", err, took)
			}
		})
	}
	wg.Wait()
	before := runtime.NumGoroutine()
	c.Close()
	if after := runtime.NumGoroutine(); after >= before {
		t.Errorf("%d goroutines before Close, %d after", before, after)
	}
}

func TestErrorTexts(t *testing.T) {
	cause := errors.New("broken pipe")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&ConnError{Addr: "rs7:16020", Cause: cause}, "connection to rs7:16020: broken pipe"},
		{&ConnError{Addr: "rs7:16020", Cause: cause, Sent: true}, "connection to rs7:16020: broken pipe (request was sent)"},
		{&DialError{Addr: "rs7:16020", Phase: PhaseTLS, Cause: cause}, "dial rs7:16020: tls handshake: broken pipe"},
		{&NotHBaseError{Addr: "rs7:80", Saw: "an HTTP server", Bytes: []byte("HTTP/1.1")}, `rs7:80 is not an HBase RPC port: saw an HTTP server ("HTTP/1.1")`},
	} {
		if tt.err.Error() != tt.want {
			t.Errorf("%q, want %q", tt.err, tt.want)
		}
	}
	if !strings.Contains(Phase(9).String(), "invalid") {
		t.Error("Phase 9")
	}
}
