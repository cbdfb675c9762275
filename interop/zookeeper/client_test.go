//go:build interop

package zookeeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/zk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, cfg zk.Config) *zk.Conn {
	t.Helper()
	cfg.KeepOrder = true
	c, err := zk.Open(ctx(t, 30*time.Second), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		c.Close(ctx)
	})
	return c
}

func ephemeral(t *testing.T, c *zk.Conn) int64 {
	t.Helper()
	if _, err := c.Create(ctx(t, 10*time.Second), "/e", nil, zk.EphemeralNode, nil); err != nil {
		t.Fatal(err)
	}
	return c.SessionID()
}

// writeConfirmed sets /e again and again, starting over after a lost connection, and returns how long it took until one was confirmed.
func writeConfirmed(t *testing.T, c *zk.Conn, limit time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for {
		_, err := c.Set(ctx(t, limit), "/e", []byte("x"), zk.AnyVersion)
		if err == nil {
			return time.Since(began)
		}
		if !errors.Is(err, zk.ErrConnectionLoss) {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
	}
}

func sameSession(t *testing.T, c *zk.Conn, id int64) {
	t.Helper()
	ok, stat, err := c.Exists(ctx(t, 10*time.Second), "/e")
	if err != nil || !ok || stat.EphemeralOwner != id || c.SessionID() != id {
		t.Fatalf("ephemeral %v, owner %x, session %x, was %x: %v\n%v", ok, stat.EphemeralOwner, c.SessionID(), id, err, c.Attempts())
	}
}

func wantEvent(t *testing.T, w *zk.Watch, typ zk.EventType, path string) {
	t.Helper()
	select {
	case e := <-w.C():
		if e.Type != typ || e.Path != path {
			t.Fatalf("event %v on %q (%v), want %v on %q", e.Type, e.Path, e.Err, typ, path)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no event within 10 s, want %v on %q", typ, path)
	}
}

// TestOneServer runs operations and watches, then kills the server, freezes it for less and for more than the session timeout, and wipes its data.
func TestOneServer(t *testing.T) {
	e := startEnsemble(t, 1)
	c := open(t, zk.Config{Servers: e.addrs(), SessionTimeout: 6 * time.Second})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	x := ctx(t, time.Minute)
	_, err := c.Create(x, "/a", []byte("1"), zk.PersistentNode, nil)
	must(err)
	_, _, dw, err := c.GetW(x, "/a")
	must(err)
	_, _, cw, err := c.ChildrenW(x, "/a")
	must(err)
	rec, err := c.AddWatch(x, "/a", zk.Recursive)
	must(err)
	res, err := c.Multi(x, zk.SetOp("/a", []byte("2"), 0), zk.CreateOp("/a/s-", nil, zk.EphemeralSequentialNode, nil), zk.CheckOp("/a", 1))
	must(err)
	if res[1].Path != "/a/s-0000000000" || res[0].Stat.Version != 1 {
		t.Fatalf("%+v", res)
	}
	wantEvent(t, dw, zk.EventDataChanged, "/a")
	wantEvent(t, cw, zk.EventChildrenChanged, "/a")
	wantEvent(t, rec, zk.EventDataChanged, "/a")
	wantEvent(t, rec, zk.EventCreated, "/a/s-0000000000")
	var me *zk.MultiError
	if _, err = c.Multi(x, zk.DeleteOp("/a/s-0000000000", -1), zk.CheckOp("/a", 7)); !errors.As(err, &me) || me.Index != 1 || !errors.Is(err, zk.ErrBadVersion) {
		t.Fatal(err)
	}
	must(c.AddAuth(x, "digest", []byte("u:p")))
	_, err = c.Create(x, "/mine", []byte("m"), zk.PersistentNode, zk.DigestACL(zk.PermAll, "u", "p"))
	must(err)
	must(c.Sync(x, "/"))
	_, err = c.Create(x, "/box", nil, zk.ContainerNode, nil)
	must(err)
	names, _, err := c.Children(x, "/")
	slices.Sort(names)
	if err != nil || strings.Join(names, " ") != "a box mine zookeeper" {
		t.Fatal(names, err)
	}
	id := ephemeral(t, c)

	t.Run("killed and restarted", func(t *testing.T) {
		_, _, dw, err := c.GetW(x, "/a")
		must(err)
		e.kill(0)
		began := time.Now()
		e.start(0)
		took := writeConfirmed(t, c, 30*time.Second)
		t.Logf("first write %v after kill -9 and restart (connected %v, JVM start included)", took, time.Since(began))
		sameSession(t, c, id)
		if d, _, err := c.Get(x, "/mine"); err != nil || string(d) != "m" { // the identity was offered again
			t.Fatal(err)
		}
		wantEvent(t, rec, zk.EventMissed, "/a")
		_, err = c.Set(x, "/a", nil, -1)
		must(err)
		wantEvent(t, dw, zk.EventDataChanged, "/a")
		wantEvent(t, rec, zk.EventDataChanged, "/a")
		rec.Cancel()
	})
	t.Run("frozen for less than the timeout", func(t *testing.T) {
		e.freeze(0)
		thawed := make(chan struct{})
		time.AfterFunc(4*time.Second, func() { e.thaw(0); close(thawed) })
		t.Logf("frozen 4 s of 6 s: first write after %v", writeConfirmed(t, c, 30*time.Second))
		<-thawed
		sameSession(t, c, id)
	})
	t.Run("frozen for longer", func(t *testing.T) {
		e.freeze(0)
		time.Sleep(7 * time.Second)
		if b := c.Budget(); b.Verdict != zk.PresumedLost || c.Err() != nil {
			t.Fatal(b, c.Err())
		}
		time.Sleep(6 * time.Second)
		e.thaw(0)
		thawed := time.Now()
		<-c.Done()
		t.Logf("expiry confirmed %v after SIGCONT", time.Since(thawed))
		if !errors.Is(c.Err(), zk.ErrSessionExpired) {
			t.Fatal(c.Err())
		}
	})
	t.Run("data wiped", func(t *testing.T) {
		c := open(t, zk.Config{Servers: e.addrs(), SessionTimeout: 6 * time.Second})
		ephemeral(t, c)
		e.kill(0)
		must(os.RemoveAll(filepath.Join(e.dirs[0], "version-2")))
		e.start(0)
		e.wait(0)
		_, _, err := c.Get(ctx(t, 8*time.Second), "/e")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "our zxid is ahead") {
			t.Fatal(err)
		}
		t.Log(err)
	})
}

// TestFirstHostFrozen: G3 with real servers. The frozen one comes first in the list.
func TestFirstHostFrozen(t *testing.T) {
	e := startEnsemble(t, 3)
	frozen := e.role("follower", -1)
	servers := append([]string{e.addr(frozen)}, slices.DeleteFunc(e.addrs(), func(a string) bool { return a == e.addr(frozen) })...)
	e.freeze(frozen)
	began := time.Now()
	c := open(t, zk.Config{Servers: servers, SessionTimeout: 6 * time.Second})
	took := time.Since(began)
	t.Logf("first session with a frozen first host: %v", took)
	if took > 2*time.Second || c.Server() == servers[0] {
		t.Fatal(took, c.Server())
	}
}

// TestFollowerFrozen: G4 with real servers.
func TestFollowerFrozen(t *testing.T) {
	e := startEnsemble(t, 3)
	mine := e.role("follower", -1)
	other := e.role("follower", mine)
	c := open(t, zk.Config{Servers: []string{e.addr(mine), e.addr(other), e.addr(e.role("leader", -1))}, SessionTimeout: 6 * time.Second})
	id := ephemeral(t, c)
	e.freeze(mine)
	began := time.Now()
	_, _, err := c.Get(ctx(t, 20*time.Second), "/e")
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("failover of a read: %v", took)
	sameSession(t, c, id)
	if took > 3*time.Second {
		t.Fatal("too slow")
	}
}

// TestLeaderFrozen: G5 and G6 with real servers, the client on a follower and on the leader: longer than the session timeout without a quorum, and the
// same session after it.
func TestLeaderFrozen(t *testing.T) {
	for _, on := range []string{"follower", "leader"} {
		t.Run("client on a "+on, func(t *testing.T) {
			e := startEnsemble(t, 3)
			leader := e.role("leader", -1)
			first := leader
			if on == "follower" {
				first = e.role("follower", -1)
			}
			// The frozen leader comes second, or first: the worst places.
			servers := []string{e.addr(first)}
			if first != leader {
				servers = append(servers, e.addr(leader))
			}
			for _, a := range e.addrs() {
				if !slices.Contains(servers, a) {
					servers = append(servers, a)
				}
			}
			c := open(t, zk.Config{Servers: servers, SessionTimeout: 6 * time.Second})
			id := ephemeral(t, c)
			time.Sleep(2500 * time.Millisecond) // the leader knows the session's touches by now
			e.freeze(leader)
			took := writeConfirmed(t, c, time.Minute)
			t.Logf("first write %v after the leader was stopped", took)
			sameSession(t, c, id)
			for _, a := range c.Attempts() {
				t.Log(a)
			}
			e.thaw(leader)
			time.Sleep(2 * time.Second)
			sameSession(t, c, id)
		})
	}
}
