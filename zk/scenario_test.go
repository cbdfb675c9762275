package zk_test

import (
	"context"
	"errors"
	"fmt"
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

// One follower has lost its leader and has not noticed; the others serve. Reads go on, and a write that finds no answer costs part of the session,
// never the session.
func TestLeaderlessFollower(t *testing.T) {
	inWorld(t, 3, zkserver.Config{Leader: 1}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		w.fault(0, zkserver.Fault{Mode: zkserver.Leaderless})
		if took, err := w.get(time.Second); err != nil || took > 100*time.Millisecond {
			t.Fatal("a read, which needs no leader:", took, err)
		}
		began := time.Now()
		var err error
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err = w.c.Set(ctx, "/e", []byte("x"), zk.AnyVersion)
			cancel()
			if !errors.Is(err, zk.ErrConnectionLoss) {
				break
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		within(t, "a write", time.Since(began), 0, 4500*time.Millisecond)
		w.sameSession(id)
		if w.c.Server() == w.addrs[0] {
			t.Fatal("it is still on the follower without a leader")
		}
	})
}

// Resume ends what StallLeader began: nothing that was still to come happens.
func TestStallEnds(t *testing.T) {
	inWorld(t, 3, zkserver.Config{}, func(t *testing.T, w *world) {
		w.open(w.config(6 * time.Second))
		w.ephemeral()
		id := w.c.SessionID()
		w.s.StallLeader(2*time.Second, 2*time.Second)
		time.Sleep(time.Second)
		if err := w.s.Resume(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for i := range 3 {
			if f := w.s.Member(i).Fault(); f != (zkserver.Fault{}) {
				t.Errorf("member %d: %+v", i, f)
			}
		}
		if w.s.Leader() != 0 {
			t.Errorf("member %d leads", w.s.Leader())
		}
		w.sameSession(id)
	})
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
