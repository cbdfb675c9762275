package zk_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/zk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startServer(t *testing.T, cfg zkserver.Config) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func open(t *testing.T, cfg zk.Config) *zk.Conn {
	t.Helper()
	c, err := zk.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeConn(t, c) })
	return c
}

func closeConn(t *testing.T, c *zk.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
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

// TestOperations runs every operation under a chroot on loopback.
func TestOperations(t *testing.T) {
	s := startServer(t, zkserver.Config{})
	if _, err := s.Create("/root/box", nil, zkserver.CreateOptions{Parents: true}); err != nil {
		t.Fatal(err)
	}
	c := open(t, zk.Config{Servers: []string{s.Addr()}, Chroot: "/root/box/"})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	is := func(err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Fatalf("error %v, want %v", err, want)
		}
	}
	p, err := c.Create(ctx, "/a", []byte("1"), zk.PersistentNode, nil)
	must(err)
	if p != "/a" || !s.Exists("/root/box/a") {
		t.Fatalf("created %q", p)
	}
	p, err = c.Create(ctx, "/a/s-", nil, zk.EphemeralSequentialNode, nil)
	must(err)
	if p != "/a/s-0000000000" {
		t.Fatalf("sequential: %q", p)
	}
	_, err = c.Create(ctx, "/a", nil, zk.PersistentNode, nil)
	is(err, zk.ErrNodeExists)
	_, _, err = c.Get(ctx, "/nope")
	is(err, zk.ErrNoNode)
	var oe *zk.OpError
	if !errors.As(err, &oe) || !oe.Answered || oe.MaybeApplied || oe.Host != s.Addr() || oe.Op != "get" || oe.Path != "/nope" {
		t.Fatalf("%+v", oe)
	}
	ok, _, absent, err := c.ExistsW(ctx, "/later")
	must(err)
	data, stat, dw, err := c.GetW(ctx, "/a")
	must(err)
	names, _, cw, err := c.ChildrenW(ctx, "/a")
	must(err)
	if ok || string(data) != "1" || stat.Version != 0 || !slices.Equal(names, []string{"s-0000000000"}) {
		t.Fatal(ok, data, stat, names)
	}
	rec, err := c.AddWatch(ctx, "/", zk.Recursive)
	must(err)
	per, err := c.AddWatch(ctx, "/a", zk.Persistent)
	must(err)
	st, err := c.Set(ctx, "/a", []byte("22"), 0)
	must(err)
	if st.Version != 1 || st.DataLength != 2 {
		t.Fatalf("%+v", st)
	}
	wantEvent(t, dw, zk.EventDataChanged, "/a")
	if _, open := <-dw.C(); open {
		t.Fatal("a one-shot watch stays open after its event")
	}
	_, err = c.Set(ctx, "/a", nil, 0)
	is(err, zk.ErrBadVersion)
	must(c.Delete(ctx, "/a/s-0000000000", zk.AnyVersion))
	wantEvent(t, cw, zk.EventChildrenChanged, "/a")
	res, err := c.Multi(ctx, zk.CreateOp("/later", nil, zk.PersistentNode, nil), zk.SetOp("/later", []byte("x"), 0), zk.CheckOp("/a", 1), zk.CreateOp("/later/q-", nil, zk.SequentialNode, nil))
	must(err)
	if res[0].Path != "/later" || res[1].Stat.Version != 1 || res[3].Path != "/later/q-0000000000" {
		t.Fatalf("%+v", res)
	}
	wantEvent(t, absent, zk.EventCreated, "/later")
	_, err = c.Multi(ctx, zk.DeleteOp("/later/q-0000000000", -1), zk.CheckOp("/a", 9), zk.DeleteOp("/a", -1))
	is(err, zk.ErrBadVersion)
	var me *zk.MultiError
	if !errors.As(err, &me) || me.Index != 1 || me.Path != "/a" {
		t.Fatalf("%+v", me)
	}
	for _, want := range []zk.Event{
		{Type: zk.EventDataChanged, Path: "/a"}, {Type: zk.EventDeleted, Path: "/a/s-0000000000"}, {Type: zk.EventCreated, Path: "/later"},
		{Type: zk.EventDataChanged, Path: "/later"}, {Type: zk.EventCreated, Path: "/later/q-0000000000"},
	} {
		wantEvent(t, rec, want.Type, want.Path)
	}
	wantEvent(t, per, zk.EventDataChanged, "/a")
	wantEvent(t, per, zk.EventChildrenChanged, "/a")
	rec.Cancel()
	per.Cancel()
	must(c.Sync(ctx, "/"))
	must(c.AddAuth(ctx, "digest", []byte("u:p")))
	_, err = c.Create(ctx, "/mine", nil, zk.EphemeralNode, zk.DigestACL(zk.PermAll, "u", "p"))
	must(err)
	acl, _, err := c.GetACL(ctx, "/mine")
	must(err)
	if !slices.Equal(acl, zk.DigestACL(zk.PermAll, "u", "p")) {
		t.Fatalf("%+v", acl)
	}
	_, err = c.SetACL(ctx, "/mine", zk.OpenACL(), 0)
	must(err)
	_, err = c.Create(ctx, "/crate", nil, zk.ContainerNode, nil)
	must(err)
	kids, _, err := c.Children(ctx, "/")
	must(err)
	if len(kids) != 4 {
		t.Fatalf("%v", kids)
	}
	_, err = c.Set(ctx, "/a", make([]byte, 2<<20), -1)
	var se *zk.SizeError
	if !errors.As(err, &se) {
		t.Fatalf("2 MiB: %v", err)
	}
	_, _, err = c.Get(ctx, "a")
	var pe *zk.PathError
	if !errors.As(err, &pe) {
		t.Fatalf("bad path: %v", err)
	}
	if b := c.Budget(); b.Verdict != zk.Alive || b.Negotiated != 30*time.Second || b.Left < 29*time.Second {
		t.Fatalf("budget %v", b)
	}
	if c.State() != zk.StateConnected || c.SessionID() == 0 || c.Server() != s.Addr() {
		t.Fatal(c.State(), c.SessionID(), c.Server())
	}
	closeConn(t, c)
	if s.Exists("/root/box/mine") || len(s.Sessions()) != 0 {
		t.Fatal("the session outlived Close")
	}
	_, _, err = c.Get(ctx, "/a")
	is(err, zk.ErrClosed)
	if !errors.Is(c.Err(), zk.ErrClosed) || c.State() != zk.StateClosed {
		t.Fatal(c.Err(), c.State())
	}
}
