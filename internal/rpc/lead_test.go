package rpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// scripted answers by method: Get at once, Slow after 300 ms, Never, Big with
// more than the reader's buffer, Die by closing.
func scripted(s *session) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	var r wire.ReceivedRequest
	for {
		if err := s.next(&r); err != nil {
			return err
		}
		id := r.CallID
		switch string(r.Method) {
		case "Slow":
			wg.Go(func() {
				time.Sleep(300 * time.Millisecond)
				_ = s.answer(id, nil, []byte("slow"))
			})
		case "Held":
			wg.Go(func() {
				<-released
				_ = s.answer(id, nil, []byte("held"))
			})
		case "Release":
			release()
			if err := s.answer(id, nil, nil); err != nil {
				return err
			}
		case "Never":
		case "Big":
			if err := s.answer(id, nil, make([]byte, 10*readBuffer)); err != nil {
				return err
			}
		case "Die":
			return nil
		default:
			if err := s.answer(id, nil, []byte("quick")); err != nil {
				return err
			}
		}
	}
}

// leading gives a connection whose next lone call leads.
func leading(t *testing.T) *Conn {
	t.Helper()
	c := dial(t, config(onTCP(t, scripted)))
	for range loneCalls + 5 {
		if err := c.Do(within(t, time.Minute), &Call{Method: "Get", Param: getRequest("r")}); err != nil {
			t.Fatal(err)
		}
	}
	if !c.token.is(heldByNobody) {
		time.Sleep(10 * standbyTick)
		if err := c.Do(within(t, time.Minute), &Call{Method: "Get", Param: getRequest("r")}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func quick(t *testing.T, c *Conn) {
	t.Helper()
	call := &Call{Method: "Get", Param: getRequest("r")}
	if err := c.Do(within(t, time.Minute), call); err != nil || string(call.ResultCells) != "quick" {
		t.Errorf("%q, %v", call.ResultCells, err)
	}
}

func TestLeaderReads(t *testing.T) {
	// On a machine that stops for a standbyTick in each call the standby takes
	// over, as it should; it does not stop that often in every try.
	var led uint64
	for range 20 {
		c := leading(t)
		before := c.token.leads()
		for range 20 {
			quick(t, c)
		}
		if led = c.token.leads() - before; led >= 10 {
			return
		}
	}
	t.Errorf("of 20 lone calls only %d led", led)
}

// Leaders notice the end of their context, and what they leave works on.
func TestLeaderEnds(t *testing.T) {
	// A leader that does not notice waits for ever.
	const slack = 20 * time.Second
	// soon does something while a call is under way.
	soon := func(c *Conn, do func()) {
		go func() {
			for c.InFlight() == 0 {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(20 * time.Millisecond)
			do()
		}()
	}
	tests := []struct {
		name string
		do   func(c *Conn, call *Call) (time.Duration, error)
		want error
		// sent: the end comes when the call has been sent, however slow the
		// machine.
		sent bool
	}{
		{"deadline", func(c *Conn, call *Call) (time.Duration, error) {
			return 50 * time.Millisecond, c.Do(within(t, 50*time.Millisecond), call)
		}, context.DeadlineExceeded, false},
		{"near deadline", func(c *Conn, call *Call) (time.Duration, error) {
			return leadMargin, c.Do(within(t, leadMargin-time.Millisecond/2), call)
		}, context.DeadlineExceeded, false},
		{"timeout", func(c *Conn, call *Call) (time.Duration, error) {
			call.Timeout = 50 * time.Millisecond
			return call.Timeout, c.Do(context.Background(), call)
		}, context.DeadlineExceeded, false},
		{"cancel", func(c *Conn, call *Call) (time.Duration, error) {
			ctx, cancel := context.WithCancel(context.Background())
			soon(c, cancel)
			return 20 * time.Millisecond, c.Do(ctx, call)
		}, context.Canceled, true},
		{"early cancel", func(c *Conn, call *Call) (time.Duration, error) {
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(100*time.Microsecond, cancel)
			return time.Millisecond, c.Do(ctx, call)
		}, context.Canceled, false},
		{"interrupt", func(c *Conn, call *Call) (time.Duration, error) {
			call.Yield = true
			soon(c, func() { c.Interrupt(ErrIdle) })
			return 20 * time.Millisecond, c.Do(context.Background(), call)
		}, ErrIdle, true},
		{"close", func(c *Conn, call *Call) (time.Duration, error) {
			soon(c, func() { c.Close() })
			return 20 * time.Millisecond, c.Do(context.Background(), call)
		}, ErrClosed, true},
		{"early close", func(c *Conn, call *Call) (time.Duration, error) {
			time.AfterFunc(100*time.Microsecond, func() { c.Close() })
			return time.Millisecond, c.Do(context.Background(), call)
		}, ErrClosed, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := leading(t)
			for range 3 {
				at := time.Now()
				call := &Call{Method: "Never", Param: getRequest("r")}
				want, err := tt.do(c, call)
				took := time.Since(at)
				if !errors.Is(err, tt.want) || took > want+slack || tt.sent && !call.Sent {
					t.Errorf("%v after %v, sent %v", err, took, call.Sent)
				}
				if c.Err() != nil {
					return
				}
				quick(t, c)
				quick(t, c)
			}
		})
	}
}

func TestLeaderMeetsOtherAnswers(t *testing.T) {
	c := leading(t)
	call := &Call{Method: "Big", Param: getRequest("r")}
	if err := c.Do(within(t, time.Minute), call); err != nil || len(call.ResultCells) != 10*readBuffer {
		t.Errorf("big: %d bytes, %v", len(call.ResultCells), err)
	}
	quick(t, c)
	slow := &Call{Method: "Slow", Param: getRequest("r")}
	if err := c.Do(within(t, time.Minute), slow); err != nil || string(slow.ResultCells) != "slow" {
		t.Errorf("slow: %q, %v", slow.ResultCells, err)
	}
	quick(t, c)
	err := c.Do(within(t, time.Minute), &Call{Method: "Die", Param: getRequest("r")})
	if !errors.Is(err, ErrServerClosed) {
		t.Errorf("die: %v", err)
	}
	<-c.Done()
}

// The end of a quiet stream is noticed though nobody calls.
func TestQuietStreamIsWatched(t *testing.T) {
	c := dial(t, config(onTCP(t, func(s *session) error {
		var r wire.ReceivedRequest
		for range loneCalls + 10 {
			if err := s.next(&r); err != nil {
				return err
			}
			if err := s.answer(r.CallID, nil, nil); err != nil {
				return err
			}
		}
		time.Sleep(20 * time.Millisecond)
		return nil
	})))
	for range loneCalls + 10 {
		if err := c.Do(within(t, time.Minute), &Call{Method: "Get", Param: getRequest("r")}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("the server closed the connection, nobody noticed")
	}
	if !errors.Is(c.Err(), ErrServerClosed) {
		t.Error(c.Err())
	}
}

// A call that comes after a pause, in which the server has closed the stream
// while nobody was reading, is not sent into it.
func TestClosedInAPause(t *testing.T) {
	closed := make(chan struct{})
	c := dial(t, config(onTCP(t, func(s *session) error {
		defer s.conn.Close()
		var r wire.ReceivedRequest
		for range loneCalls + 10 {
			if err := s.next(&r); err != nil {
				return err
			}
			if err := s.answer(r.CallID, nil, nil); err != nil {
				return err
			}
		}
		s.conn.Close()
		close(closed)
		return nil
	})))
	for range loneCalls + 10 {
		if err := c.Do(within(t, time.Minute), &Call{Method: "Get", Param: getRequest("r"), Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	<-closed
	time.Sleep(2 * quietFor)
	call := &Call{Method: "Mutate", Param: getRequest("r"), Timeout: time.Minute}
	var lost *ConnError
	if err := c.Do(context.Background(), call); !errors.Is(err, ErrServerClosed) || !errors.As(err, &lost) || lost.Sent || call.Sent {
		t.Errorf("%v, sent %v", err, call.Sent)
	}
}

// A look at a quiet stream leaves it as it is, whatever lies in it.
func TestLookingHarmsNothing(t *testing.T) {
	c := leading(t)
	for i := range 20 {
		time.Sleep(2 * quietFor)
		if i%3 == 0 { // its answer comes when nobody waits for it any more
			ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if err := c.Do(ctx, &Call{Method: "Slow", Param: getRequest("r")}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			cancel()
		}
		call := &Call{Method: "Get", Param: getRequest("r"), Timeout: time.Minute}
		if err := c.Do(context.Background(), call); err != nil || string(call.ResultCells) != "quick" {
			t.Fatalf("%d: %q, %v", i, call.ResultCells, err)
		}
	}
	time.Sleep(350 * time.Millisecond) // the slow answers
	quick(t, c)
}

// Callers who come and go, so that the token changes hands all the time.
func TestTokenChangesHands(t *testing.T) {
	c := leading(t)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 150 {
				time.Sleep(time.Duration(rand.IntN(3)) * time.Duration(rand.IntN(1000)) * time.Microsecond)
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				method, want := "Get", "quick"
				switch rand.IntN(50) {
				case 0:
					method, want = "Big", ""
				case 1:
					method = "Never"
					ctx, cancel = context.WithTimeout(context.Background(), time.Duration(rand.IntN(8000))*time.Microsecond)
				}
				call := &Call{Method: method, Param: getRequest("r")}
				err := c.Do(ctx, call)
				cancel()
				if method == "Never" {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%d/%d never: %v", w, i, err)
					}
				} else if err != nil || want != "" && string(call.ResultCells) != want {
					t.Errorf("%d/%d %s: %v", w, i, method, err)
				}
			}
		})
	}
	wg.Wait()
	if c.Err() != nil || c.InFlight() != 0 {
		t.Error(c.Err(), c.InFlight())
	}
	for range loneCalls + 5 {
		quick(t, c)
	}
}

func TestInterruptSparesTheOthers(t *testing.T) {
	c := dial(t, config(onTCP(t, scripted)))
	why := fmt.Errorf("suspect")
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			call := &Call{Method: "Held", Param: &pb.ScanRequest{}, Yield: i%2 == 0}
			err := c.Do(within(t, time.Minute), call)
			if call.Yield && err != why || !call.Yield && err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		})
	}
	for c.InFlight() < 6 {
		time.Sleep(time.Millisecond)
	}
	c.Interrupt(nil) // no reason, no interrupt
	if n := c.InFlight(); n != 6 {
		t.Errorf("%d in flight after nothing", n)
	}
	c.Interrupt(why)
	if n := c.InFlight(); n != 3 {
		t.Errorf("%d in flight after the interrupt", n)
	}
	if err := c.Do(within(t, time.Minute), &Call{Method: "Release", Param: getRequest("r")}); err != nil {
		t.Error(err)
	}
	wg.Wait()
	quick(t, c)
}
