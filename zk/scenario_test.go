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

// world is an ensemble and a client on virtual time.
type world struct {
	t     *testing.T
	net   *memnet.Network
	s     *zkserver.Server
	addrs []string
	c     *zk.Conn
	began time.Time

	mu      sync.Mutex
	changes []zk.StateChange
}

// inWorld runs f in a bubble with n servers; f opens the client.
func inWorld(t *testing.T, n int, cfg zkserver.Config, f func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: memnet.New(), began: time.Now()}
		for i := range n {
			w.addrs = append(w.addrs, fmt.Sprintf("10.0.0.%d:2181", i+1))
		}
		cfg.Addrs, cfg.Listen = w.addrs, w.net.Listen
		s, err := zkserver.Start(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w.s = s
		w.net.SetLatency(time.Millisecond / 2)
		defer s.Close()
		defer func() {
			if w.c != nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				w.c.Close(ctx)
			}
		}()
		f(t, w)
	})
}

func (w *world) config(timeout time.Duration) zk.Config {
	return zk.Config{
		Servers: w.addrs, SessionTimeout: timeout, KeepOrder: true, Dial: w.net.DialContext, LookupHost: w.net.LookupHost,
		Rand: func() float64 { return 0.5 },
		OnState: func(ch zk.StateChange) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changes = append(w.changes, ch)
		},
	}
}

func (w *world) open(cfg zk.Config) {
	w.t.Helper()
	c, err := zk.Open(w.t.Context(), cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.c = c
}

func (w *world) fault(i int, f zkserver.Fault) {
	w.t.Helper()
	if err := w.s.Member(i).SetFault(f); err != nil {
		w.t.Fatal(err)
	}
}

// ephemeral creates the node whose survival a scenario is about.
func (w *world) ephemeral() {
	w.t.Helper()
	if _, err := w.c.Create(w.t.Context(), "/e", nil, zk.EphemeralNode, nil); err != nil {
		w.t.Fatal(err)
	}
}

// get reads /e and returns how long that took.
func (w *world) get(limit time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), limit)
	defer cancel()
	began := time.Now()
	_, _, err := w.c.Get(ctx, "/e")
	return time.Since(began), err
}

func (w *world) sameSession(id int64) {
	w.t.Helper()
	if w.c.SessionID() != id || w.c.Err() != nil || !w.s.Exists("/e") {
		w.t.Fatalf("session %x (was %x), error %v, ephemeral %v\n%v", w.c.SessionID(), id, w.c.Err(), w.s.Exists("/e"), w.c.Attempts())
	}
}

func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	t.Logf("%s: %v", what, got)
	if got < least || got > most {
		t.Fatalf("%s took %v, want %v to %v", what, got, least, most)
	}
}

// G1: a standalone server stops for 6 s of a 10 s session. The session is kept and service resumes with the server.
func TestStandaloneFrozenShortly(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		w.s.Freeze()
		time.AfterFunc(6*time.Second, func() { w.s.Resume() })
		took, err := w.get(20 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "first answer", took, 6*time.Second, 6100*time.Millisecond)
		w.sameSession(id)
	})
}

// G2: a standalone server stops for twice the session timeout. The client presumes the loss at its deadline, does not call it a fact, and ends with
// the server's verdict as soon as the server is back; nothing opens a session behind the caller's back.
func TestStandaloneFrozenLong(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(10 * time.Second))
		w.ephemeral()
		stopped := time.Now()
		w.s.Freeze()
		time.Sleep(11 * time.Second)
		if b := w.c.Budget(); b.Verdict != zk.PresumedLost || w.c.State() != zk.StateDisconnected || w.c.Err() != nil {
			t.Fatalf("after 11 s: %v, %v", b, w.c.State())
		}
		time.AfterFunc(9*time.Second, func() { w.s.Resume() })
		<-w.c.Done()
		within(t, "verdict after the server is back", time.Since(stopped)-20*time.Second, 0, 1500*time.Millisecond)
		if !errors.Is(w.c.Err(), zk.ErrSessionExpired) || w.c.State() != zk.StateExpired || w.c.Budget().Verdict != zk.Expired {
			t.Fatal(w.c.Err(), w.c.State(), w.c.Budget())
		}
		if n := len(w.s.Sessions()); n != 0 {
			t.Fatalf("%d sessions at the server", n)
		}
		if _, err := w.get(time.Second); !errors.Is(err, zk.ErrSessionExpired) {
			t.Fatalf("call after expiry: %v", err)
		}
		var presumed bool
		for _, ch := range w.changes {
			presumed = presumed || ch.Verdict == zk.PresumedLost
		}
		if !presumed {
			t.Fatalf("OnState never heard of the presumed loss: %+v", w.changes)
		}
	})
}

// G3: the first of three hosts is frozen at the start. The others are at hand, so the first session waits for one patience only.
func TestFirstHostFrozenAtStart(t *testing.T) {
	inWorld(t, 3, zkserver.Config{Leader: 1}, func(t *testing.T, w *world) {
		w.fault(0, zkserver.Fault{Mode: zkserver.Frozen})
		w.open(w.config(6 * time.Second))
		within(t, "first session", time.Since(w.began), 0, 1100*time.Millisecond)
		if w.c.Server() != w.addrs[1] {
			t.Fatal(w.c.Server())
		}
	})
}

// G4: the follower a client is connected to freezes; the next host is healthy.
func TestFollowerFrozen(t *testing.T) {
	inWorld(t, 3, zkserver.Config{Leader: 1}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		w.fault(0, zkserver.Fault{Mode: zkserver.Frozen})
		took, err := w.get(10 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		within(t, "failover of a call", took, 0, 2100*time.Millisecond)
		w.sameSession(id)
		time.Sleep(time.Minute)
		w.sameSession(id)
	})
}

// G5 and G6: the leader freezes. Followers swallow handshakes for 9.5 s and elect for 1.7 s more, longer than the session timeout; the new leader
// restarts the clocks. The session must come back as itself, whichever server the client was on.
func TestLeaderFrozen(t *testing.T) {
	for first, name := range []string{"client on the leader", "client on a follower"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, zkserver.Config{Leader: 0}, func(t *testing.T, w *world) {
				cfg := w.config(6 * time.Second)
				cfg.Servers = append(append([]string(nil), w.addrs[first:]...), w.addrs[:first]...)
				w.open(cfg)
				w.ephemeral()
				id := w.c.SessionID()
				w.s.StallLeader(9500*time.Millisecond, 1700*time.Millisecond)
				began := time.Now()
				for { // a write, which a follower without a leader cannot answer
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
					_, err := w.c.Set(ctx, "/e", []byte("x"), zk.AnyVersion)
					cancel()
					if err == nil {
						break
					}
					if !errors.Is(err, zk.ErrConnectionLoss) {
						t.Fatal(err)
					}
				}
				within(t, "first write after the stall", time.Since(began), 11200*time.Millisecond, 13*time.Second)
				w.sameSession(id)
			})
		})
	}
}

// G7: the data directory was wiped. Nothing can resume the session; calls end with their context and say what it looks like.
func TestDataWiped(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		w.s.Close()
		s, err := zkserver.Start(zkserver.Config{Addrs: w.addrs, Listen: w.net.Listen})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		time.Sleep(20 * time.Second)
		took, err := w.get(5 * time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || took != 5*time.Second {
			t.Fatalf("%v after %v", err, took)
		}
		for _, part := range []string{"disconnected", "presumed lost", "handshake: hung up", "our zxid is ahead", "wiped"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("the error does not say %q: %v", part, err)
			}
		}
		if n := w.net.Dials(w.addrs[0]); n > 60 {
			t.Errorf("%d connection attempts within 25 s", n)
		}
	})
}

// G8: a frame of four bytes is a broken connection, not a broken process.
func TestShortFrame(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		w.fault(0, zkserver.Fault{Truncate: 4})
		if took, err := w.get(5 * time.Second); err != nil {
			t.Fatal(err)
		} else {
			within(t, "call over a connection that breaks frames", took, 0, 300*time.Millisecond)
		}
		w.sameSession(id)
	})
}

// G9: one name of two does not resolve.
func TestUnresolvableName(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.net.SetHost("zk-ok", "10.0.0.1")
		cfg := w.config(6 * time.Second)
		cfg.Servers = []string{"zk-gone", "zk-ok"}
		w.open(cfg)
		within(t, "first session", time.Since(w.began), 0, 10*time.Millisecond)
		if w.c.Server() != "zk-ok:2181" {
			t.Fatal(w.c.Server())
		}
	})
}

// G10: a chroot behind one address is refused, with a hint; behind a connect string it is parsed.
func TestChrootInAddress(t *testing.T) {
	_, err := zk.New(zk.Config{Servers: []string{"10.0.0.1:2181/chroot"}})
	var ae *zk.AddressError
	if !errors.As(err, &ae) || !strings.Contains(err.Error(), "ParseConnectString") {
		t.Fatal(err)
	}
}

// A half-sent answer to the handshake must not hang anybody.
func TestHalfHandshake(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.fault(0, zkserver.Fault{HalfHandshake: true})
		w.open(w.config(6 * time.Second))
		within(t, "first session", time.Since(w.began), 0, 1100*time.Millisecond)
	})
}

// Dead hosts of every kind before the only healthy one cost little, and each is told apart.
func TestEveryKindOfDeadHost(t *testing.T) {
	inWorld(t, 7, zkserver.Config{}, func(t *testing.T, w *world) {
		w.net.SetFault(w.addrs[0], memnet.BlackHole)
		w.net.SetFault(w.addrs[1], memnet.Unreachable)
		w.fault(2, zkserver.Fault{Mode: zkserver.Refuse})
		w.fault(3, zkserver.Fault{Mode: zkserver.Hangup})
		w.fault(4, zkserver.Fault{Mode: zkserver.Silent})
		for i := 5; i < 7; i++ {
			w.fault(i, zkserver.Fault{Mode: zkserver.Electing})
		}
		cfg := w.config(12 * time.Second)
		cfg.Servers = append(cfg.Servers, "nowhere:1")
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		_, err := zk.Open(ctx, cfg)
		var oe *zk.OpError
		if !errors.As(err, &oe) || !errors.Is(err, context.DeadlineExceeded) || time.Since(w.began) != 9*time.Second {
			t.Fatalf("after %v: %v", time.Since(w.began), err)
		}
		got := map[string]zk.Outcome{}
		for _, a := range oe.Attempts {
			got[a.Host] = a.Outcome
		}
		want := map[string]zk.Outcome{
			w.addrs[0]: zk.OutcomeBlackHole, w.addrs[1]: zk.OutcomeUnreachable, w.addrs[2]: zk.OutcomeRefused, w.addrs[3]: zk.OutcomeHungUp,
			w.addrs[4]: zk.OutcomeSilent, w.addrs[5]: zk.OutcomeHungUp, "nowhere:1": zk.OutcomeUnresolved,
		}
		for host, o := range want {
			if got[host] != o {
				t.Errorf("%s: outcome %v, want %v", host, got[host], o)
			}
		}
		w.fault(6, zkserver.Fault{})
		began := time.Now()
		w.open(cfg)
		within(t, "first session with six dead hosts before the healthy one", time.Since(began), 0, 2500*time.Millisecond)
	})
}

// A cut cable to the connected server: noticed within half of the timeout, same session elsewhere.
func TestCableCut(t *testing.T) {
	inWorld(t, 3, zkserver.Config{Leader: 2}, func(t *testing.T, w *world) {
		w.open(w.config(9 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		time.Sleep(700 * time.Millisecond)
		w.net.SetFault(w.addrs[0], memnet.BlackHole)
		began := time.Now()
		for w.c.State() == zk.StateConnected && w.c.Server() == w.addrs[0] {
			time.Sleep(10 * time.Millisecond)
		}
		within(t, "silence noticed", time.Since(began), 0, 4500*time.Millisecond)
		if took, err := w.get(5 * time.Second); err != nil || took > 200*time.Millisecond {
			t.Fatal(took, err)
		}
		w.sameSession(id)
	})
}

// The whole network is down for longer than the timeout and the server is not: the presumed loss is confirmed after the cut.
func TestPartitionOutlivesSession(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		watch, err := w.c.AddWatch(t.Context(), "/", zk.Recursive)
		if err != nil {
			t.Fatal(err)
		}
		w.net.SetFault(w.addrs[0], memnet.BlackHole)
		time.Sleep(30 * time.Second)
		if w.s.Exists("/e") {
			t.Fatal("the server kept the session")
		}
		w.net.SetFault(w.addrs[0], memnet.None)
		healed := time.Now()
		<-w.c.Done()
		within(t, "confirmed after healing", time.Since(healed), 0, 5*time.Second)
		var last zk.Event
		for e := range watch.C() {
			last = e
		}
		if last.Type != zk.EventEnded || !errors.Is(last.Err, zk.ErrSessionExpired) {
			t.Fatalf("%+v", last)
		}
	})
}

// An expiry while connected shows as EOF first; the verdict comes from asking again.
func TestExpiredWhileConnected(t *testing.T) {
	inWorld(t, 1, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.s.ExpireSession(w.c.SessionID())
		began := time.Now()
		<-w.c.Done()
		within(t, "verdict", time.Since(began), 0, 50*time.Millisecond)
		if !errors.Is(w.c.Err(), zk.ErrSessionExpired) {
			t.Fatal(w.c.Err())
		}
	})
}

// A session moved to another connection is taken back and the refused call is asked again, even a write.
func TestSessionMoved(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		w.s.MoveSession(id)
		if _, err := w.c.Set(t.Context(), "/e", []byte("x"), 0); err != nil {
			t.Fatal(err)
		}
		w.sameSession(id)
	})
}

// Idle sessions live, through many pings and changes of the server's limits.
func TestIdleSessionLivesOn(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(4 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		time.Sleep(10 * time.Minute)
		w.s.SetLimits(10*time.Second, 60*time.Second)
		w.s.DropConnections()
		time.Sleep(time.Second)
		if b := w.c.Budget(); b.Negotiated != 10*time.Second || b.Requested != 4*time.Second {
			t.Fatalf("%v", b)
		}
		time.Sleep(10 * time.Minute)
		w.sameSession(id)
	})
}

// Pings that are not answered end the connection, events or not.
func TestPingsStalled(t *testing.T) {
	inWorld(t, 2, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		watch, err := w.c.AddWatch(t.Context(), "/", zk.Recursive)
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Cancel()
		w.fault(0, zkserver.Fault{StallPings: true})
		for range 12 { // events every half second are a sign of life, but not of the session's
			time.Sleep(500 * time.Millisecond)
			if _, err := w.s.Create("/n-", nil, zkserver.CreateOptions{Sequential: true}); err != nil {
				t.Fatal(err)
			}
		}
		if w.c.Server() != w.addrs[1] {
			t.Fatalf("still on %q", w.c.Server())
		}
		w.sameSession(id)
	})
}

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
				inWorld(t, 2, zkserver.Config{OneWatchPerPath: single}, func(t *testing.T, w *world) {
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
