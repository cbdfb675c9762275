package zk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver/memnet"
	"github.com/holdfast-hbase/holdfast/zk"
)

// Watches survive a reconnect: what changed meanwhile is told, what did not is armed again, a persistent watch says it may have missed something.
func TestWatchesSurviveReconnect(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		ctx := t.Context()
		for _, p := range []string{"/changed", "/same", "/gone"} {
			if _, err := w.c.Create(ctx, p, nil, zk.PersistentNode, nil); err != nil {
				t.Fatal(err)
			}
		}
		getW := func(p string) *zk.Watch {
			_, _, x, err := w.c.GetW(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		changed, same, gone := getW("/changed"), getW("/same"), getW("/gone")
		_, _, born, err := w.c.ExistsW(ctx, "/born")
		if err != nil {
			t.Fatal(err)
		}
		_, _, kids, err := w.c.ChildrenW(ctx, "/same")
		if err != nil {
			t.Fatal(err)
		}
		all, err := w.c.AddWatch(ctx, "/same", zk.Recursive)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			w.fault(i, zkserver.Fault{Mode: zkserver.Electing})
		}
		w.s.DropConnections()
		synctest.Wait()
		if _, err := w.s.Set("/changed", []byte("x"), -1); err != nil {
			t.Fatal(err)
		}
		if err := w.s.Delete("/gone", -1); err != nil {
			t.Fatal(err)
		}
		if _, err := w.s.Create("/born", nil, zkserver.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.s.Resume()
		wantEvent(t, changed, zk.EventDataChanged, "/changed")
		wantEvent(t, gone, zk.EventDeleted, "/gone")
		wantEvent(t, born, zk.EventCreated, "/born")
		wantEvent(t, all, zk.EventMissed, "/same")
		if len(same.C())+len(kids.C()) != 0 {
			t.Fatal("a watch on what did not change fired")
		}
		if _, err := w.s.Create("/same/kid", nil, zkserver.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		wantEvent(t, kids, zk.EventChildrenChanged, "/same")
		wantEvent(t, all, zk.EventCreated, "/same/kid")
		if _, err := w.s.Set("/same", nil, -1); err != nil {
			t.Fatal(err)
		}
		wantEvent(t, same, zk.EventDataChanged, "/same")
		wantEvent(t, all, zk.EventDataChanged, "/same")
		all.Cancel()
	})
}

// One-shot and persistent watches on one path do not disturb each other, on servers that can keep both and on those that cannot.
func TestWatchesOfBothKinds(t *testing.T) {
	for _, single := range []bool{false, true} {
		for _, mode := range []zk.AddMode{zk.Persistent, zk.Recursive} {
			t.Run(fmt.Sprintf("one per path %v, mode %d", single, mode), func(t *testing.T) {
				inWorld(t, 2, zkserver.Config{SeparateWatchModes: !single}, func(t *testing.T, w *world) {
					w.open(w.config(10 * time.Second))
					ctx := t.Context()
					must := func(err error) {
						t.Helper()
						if err != nil {
							t.Fatal(err)
						}
					}
					if _, err := w.s.Create("/a", nil, zkserver.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					oneShots := func() (data, kids *zk.Watch) {
						_, _, data, err := w.c.GetW(ctx, "/a")
						must(err)
						_, _, kids, err = w.c.ChildrenW(ctx, "/a")
						must(err)
						return data, kids
					}
					next := 0
					change := func(data, kids, both *zk.Watch) {
						t.Helper()
						kid := fmt.Sprintf("/a/k%d", next)
						next++
						_, err := w.s.Set("/a", nil, -1)
						must(err)
						_, err = w.s.Create(kid, nil, zkserver.CreateOptions{})
						must(err)
						wantEvent(t, data, zk.EventDataChanged, "/a")
						wantEvent(t, kids, zk.EventChildrenChanged, "/a")
						if both == nil {
							return
						}
						wantEvent(t, both, zk.EventDataChanged, "/a")
						if mode == zk.Recursive {
							wantEvent(t, both, zk.EventCreated, kid)
						} else {
							wantEvent(t, both, zk.EventChildrenChanged, "/a")
						}
					}
					data, kids := oneShots()
					both, err := w.c.AddWatch(ctx, "/a", mode)
					must(err)
					change(data, kids, both) // one-shots first
					data, kids = oneShots()
					change(data, kids, both) // one-shots after
					data, kids = oneShots()
					w.s.DropConnections()
					wantEvent(t, both, zk.EventMissed, "/a")
					must(w.c.Sync(ctx, "/"))
					change(data, kids, both) // armed again
					data, kids = oneShots()
					if _, err := w.c.AddWatch(ctx, "/a", 1-mode); err == nil {
						t.Fatal("two modes on one path")
					}
					both.Cancel()
					must(w.c.Sync(ctx, "/"))
					change(data, kids, nil) // left alone
					if _, open := <-both.C(); open {
						t.Fatal("an event after Cancel")
					}
				})
			})
		}
	}
}

// A slow reader of a persistent watch is told that it missed something, and hears everything after that.
func TestSlowWatcher(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		cfg := w.config(10 * time.Second)
		cfg.WatchBuffer = 4
		w.open(cfg)
		all, err := w.c.AddWatch(t.Context(), "/", zk.Recursive)
		if err != nil {
			t.Fatal(err)
		}
		create := func(n int) {
			for range n {
				if _, err := w.s.Create("/n-", nil, zkserver.CreateOptions{Sequential: true}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		create(50)
		for range 4 {
			if e := <-all.C(); e.Type != zk.EventCreated {
				t.Fatalf("%+v", e)
			}
		}
		if e := <-all.C(); e.Type != zk.EventMissed || len(all.C()) != 0 {
			t.Fatalf("%+v, %d more", e, len(all.C()))
		}
		create(1)
		wantEvent(t, all, zk.EventCreated, "/n-0000000050")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for range all.Events(ctx) {
			t.Fatal("an event out of nowhere")
		}
	})
}

// Calls wait while disconnected and end with their context, to the millisecond; a write that was sent says so.
func TestContextsAreKept(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(30 * time.Second))
		w.ephemeral()
		w.s.Freeze()
		ctx, cancel := context.WithTimeout(t.Context(), 777*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := w.c.Set(ctx, "/e", []byte("late"), -1)
		var oe *zk.OpError
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 777*time.Millisecond || !errors.As(err, &oe) || !oe.MaybeApplied || oe.Host != w.addrs[0] {
			t.Fatalf("%v: %v", time.Since(began), err)
		}
		time.Sleep(12 * time.Second) // the connection is given up by now
		if w.c.State() != zk.StateDisconnected {
			t.Fatal(w.c.State())
		}
		ctx2, cancel2 := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel2()
		_, err = w.c.Set(ctx2, "/e", []byte("never"), -1)
		if !errors.As(err, &oe) || oe.MaybeApplied || oe.State != zk.StateDisconnected {
			t.Fatalf("%v", err)
		}
		w.s.Resume()
		if _, err := w.get(5 * time.Second); err != nil {
			t.Fatal(err)
		}
		data, _, err := w.s.Get("/e")
		if err != nil || string(data) == "never" {
			t.Fatalf("a call whose caller had left before it was sent was applied: %q, %v", data, err)
		}
	})
}

// Writes in flight when the connection breaks fail as unknown; reads are asked again.
func TestConnectionLossInFlight(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		w.ephemeral()
		w.fault(0, zkserver.Fault{Mode: zkserver.BlackHole})
		errs := make(chan error, 2)
		go func() { _, err := w.c.Set(t.Context(), "/e", nil, -1); errs <- err }()
		go func() { _, _, err := w.c.Get(t.Context(), "/e"); errs <- fmt.Errorf("read: %w", err) }()
		synctest.Wait()
		w.s.Member(0).DropConnections()
		for range 2 {
			err := <-errs
			var oe *zk.OpError
			if strings.HasPrefix(err.Error(), "read: ") {
				if errors.Unwrap(err) != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, zk.ErrConnectionLoss) || !errors.As(err, &oe) || !oe.MaybeApplied {
				t.Fatal(err)
			}
		}
	})
}

// A server that takes the session and garbles every answer is not asked without end, nor in a storm.
func TestGarbledAnswers(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		w.ephemeral()
		w.fault(0, zkserver.Fault{Truncate: 18})
		took, err := w.get(20 * time.Second)
		var oe *zk.OpError
		if !errors.Is(err, zk.ErrConnectionLoss) || !strings.Contains(err.Error(), "jute: ") || !errors.As(err, &oe) || oe.MaybeApplied {
			t.Fatal(err)
		}
		within(t, "given up", took, 50*time.Millisecond, 5*time.Second)
		if n := w.net.Dials(w.addrs[0]); n > 6 {
			t.Fatalf("%d connections", n)
		}
		w.fault(0, zkserver.Fault{})
		if _, err := w.get(5 * time.Second); err != nil {
			t.Fatal(err)
		}
	})
}

// An identity the server rejects ends the Conn, at once and for good.
func TestAuthRejected(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		cfg := w.config(10 * time.Second)
		cfg.Auth = []zk.AuthInfo{{Scheme: "nonsense", Auth: []byte("x")}}
		w.open(cfg)
		<-w.c.Done()
		if !errors.Is(w.c.Err(), zk.ErrAuthFailed) || w.c.State() != zk.StateAuthFailed {
			t.Fatal(w.c.Err(), w.c.State())
		}
		if _, err := w.get(time.Second); !errors.Is(err, zk.ErrAuthFailed) {
			t.Fatal(err)
		}
	})
}

// Identities are offered again on every connection, before the calls that need them.
func TestAuthSurvivesReconnect(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		if err := w.c.AddAuth(t.Context(), "digest", []byte("u:p")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.c.Create(t.Context(), "/e", nil, zk.PersistentNode, zk.DigestACL(zk.PermAll, "u", "p")); err != nil {
			t.Fatal(err)
		}
		w.s.DropConnections()
		if _, err := w.get(time.Second); err != nil {
			t.Fatal(err)
		}
	})
}

// Something else behind the port is told apart, whatever it says.
func TestNotZooKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		ln, err := n.Listen("tcp", "10.0.0.1:80")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
				c.Close()
			}
		}()
		defer ln.Close()
		_, err = zk.Open(t.Context(), zk.Config{Servers: []string{"10.0.0.1:80"}, SessionTimeout: 2 * time.Second, Dial: n.DialContext})
		var oe *zk.OpError
		if !errors.As(err, &oe) || oe.Attempts[0].Outcome != zk.OutcomeNotZooKeeper || oe.Waited != 2*time.Second {
			t.Fatal(err)
		}
	})
}

// Close is quick in every state and leaves no goroutine (the bubble would not end).
func TestCloseInEveryState(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"connected":            func(w *world) { w.open(w.config(6 * time.Second)) },
		"connected and frozen": func(w *world) { w.open(w.config(6 * time.Second)); w.s.Freeze() },
		"disconnected": func(w *world) {
			w.open(w.config(6 * time.Second))
			w.s.Freeze()
			time.Sleep(4 * time.Second)
		},
		"dialing a black hole": func(w *world) {
			w.net.SetFault(w.addrs[0], memnet.BlackHole)
			c, err := zk.New(w.config(6 * time.Second))
			if err != nil {
				w.t.Fatal(err)
			}
			w.c = c
			time.Sleep(time.Second)
		},
		"between laps": func(w *world) {
			w.s.Refuse()
			c, err := zk.New(w.config(6 * time.Second))
			if err != nil {
				w.t.Fatal(err)
			}
			w.c = c
			time.Sleep(3 * time.Second)
		},
		"expired": func(w *world) {
			w.open(w.config(6 * time.Second))
			w.s.ExpireSession(w.c.SessionID())
			<-w.c.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
				prepare(w)
				began := time.Now()
				err := w.c.Close(t.Context())
				frozen := strings.Contains(name, "frozen") || name == "disconnected"
				if (err != nil) != frozen || time.Since(began) > 2*time.Second {
					t.Fatalf("%v after %v", err, time.Since(began))
				}
				if err := w.c.Close(t.Context()); err != nil {
					t.Fatalf("second close: %v", err)
				}
			})
		})
	}
}

// A thousand callers, more than may be in flight, over a connection that breaks again and again: every read is answered.
func TestManyCallers(t *testing.T) {
	inWorld(t, 3, zkserver.Config{}, func(t *testing.T, w *world) {
		cfg := w.config(10 * time.Second)
		cfg.MaxInFlight = 16
		w.open(cfg)
		w.ephemeral()
		id := w.c.SessionID()
		stop := make(chan struct{})
		var breaker, wg sync.WaitGroup
		breaker.Add(1)
		go func() {
			defer breaker.Done()
			for {
				select {
				case <-stop:
					return
				case <-time.After(7 * time.Millisecond):
					w.s.DropConnections()
				}
			}
		}()
		for range 1000 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if _, err := w.get(time.Minute); err != nil {
					t.Error(err)
				}
			}()
		}
		wg.Wait()
		close(stop)
		breaker.Wait()
		w.sameSession(id)
	})
}
