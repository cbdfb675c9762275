package zkserver_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gozk "github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver/memnet"
	"github.com/holdfast-hbase/holdfast/internal/jute"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// start runs a server on loopback for the length of a test.
func start(t *testing.T, cfg zkserver.Config) *zkserver.Server {
	t.Helper()
	s, err := zkserver.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// quiet keeps go-zookeeper's log out of the test's output.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func connect(t *testing.T, s *zkserver.Server) (*gozk.Conn, <-chan gozk.Event) {
	t.Helper()
	c, events, err := gozk.Connect([]string{s.Addr()}, 6*time.Second, gozk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, events
}

func next(t *testing.T, ch <-chan gozk.Event) gozk.Event {
	t.Helper()
	select {
	case e := <-ch:
		return e
	case <-time.After(time.Minute):
		t.Fatal("no event within a minute")
		panic("unreachable")
	}
}

// TestGoZookeeper runs an unchanged client of somebody else's through the operations it has.
func TestGoZookeeper(t *testing.T) {
	s := start(t, zkserver.Config{})
	c, _ := connect(t, s)
	open := gozk.WorldACL(gozk.PermAll)

	if p, err := c.Create("/a", []byte("one"), 0, open); err != nil || p != "/a" {
		t.Fatalf("create: %q, %v", p, err)
	}
	if _, err := c.Create("/a", nil, 0, open); err != gozk.ErrNodeExists {
		t.Fatalf("create again: %v, want node exists", err)
	}
	if _, err := c.Create("/x/y", nil, 0, open); err != gozk.ErrNoNode {
		t.Fatalf("create without parent: %v, want no node", err)
	}
	for i := range 3 {
		p, err := c.Create("/a/s-", nil, gozk.FlagSequence|gozk.FlagEphemeral, open)
		if want := fmt.Sprintf("/a/s-%010d", i); err != nil || p != want {
			t.Fatalf("sequential create: %q, %v, want %q", p, err, want)
		}
	}
	if _, err := c.Create("/a/s-0000000000/b", nil, 0, open); err != gozk.ErrNoChildrenForEphemerals {
		t.Fatalf("child of an ephemeral: %v", err)
	}
	kids, stat, ch, err := c.ChildrenW("/a")
	slices.Sort(kids)
	if err != nil || len(kids) != 3 || kids[2] != "s-0000000002" || stat.NumChildren != 3 || stat.Cversion != 3 {
		t.Fatalf("children: %v %+v %v", kids, stat, err)
	}
	if err := c.Delete("/a", -1); err != gozk.ErrNotEmpty {
		t.Fatalf("delete with children: %v", err)
	}
	if err := c.Delete("/a/s-0000000001", 3); err != gozk.ErrBadVersion {
		t.Fatalf("delete with a wrong version: %v", err)
	}
	if err := c.Delete("/a/s-0000000001", 0); err != nil {
		t.Fatal(err)
	}
	if e := next(t, ch); e.Type != gozk.EventNodeChildrenChanged || e.Path != "/a" {
		t.Fatalf("child watch: %+v", e)
	}
	_, _, dataCh, err := c.GetW("/a")
	if err != nil {
		t.Fatal(err)
	}
	if st, err := c.Set("/a", []byte("two"), 0); err != nil || st.Version != 1 || st.DataLength != 3 {
		t.Fatalf("set: %+v, %v", st, err)
	}
	if e := next(t, dataCh); e.Type != gozk.EventNodeDataChanged || e.Path != "/a" {
		t.Fatalf("data watch: %+v", e)
	}
	if _, err := c.Set("/a", nil, 0); err != gozk.ErrBadVersion {
		t.Fatalf("set with a wrong version: %v", err)
	}
	ok, _, absentCh, err := c.ExistsW("/later")
	if ok || err != nil {
		t.Fatalf("exists: %v, %v", ok, err)
	}
	res, err := c.Multi(&gozk.CreateRequest{Path: "/later", Data: []byte("x"), Acl: open}, &gozk.SetDataRequest{Path: "/later", Data: []byte("yy"), Version: 0}, &gozk.CheckVersionRequest{Path: "/a", Version: 1})
	if err != nil || len(res) != 3 || res[0].String != "/later" || res[1].Stat.Version != 1 {
		t.Fatalf("multi: %+v, %v", res, err)
	}
	if e := next(t, absentCh); e.Type != gozk.EventNodeCreated || e.Path != "/later" {
		t.Fatalf("exist watch: %+v", e)
	}
	res, err = c.Multi(&gozk.DeleteRequest{Path: "/later", Version: -1}, &gozk.CheckVersionRequest{Path: "/a", Version: 77}, &gozk.DeleteRequest{Path: "/a", Version: -1})
	if err != gozk.ErrBadVersion || len(res) != 3 {
		t.Fatalf("failing multi: %+v, %v", res, err)
	}
	if data, st, err := c.Get("/later"); err != nil || string(data) != "yy" || st.Version != 1 {
		t.Fatalf("after the failed multi: %q %+v %v", data, st, err)
	}
	if p, err := c.Sync("/a"); err != nil || p != "/a" {
		t.Fatalf("sync: %q, %v", p, err)
	}
	if _, err := c.CreateContainer("/box", nil, gozk.FlagTTL, open); err == nil {
		t.Log("container created by go-zookeeper's odd flag")
	}
	if !s.Exists("/a/s-0000000002") {
		t.Fatal("the ephemeral is not there")
	}
	c.Close()
	waitFor(t, func() bool { return !s.Exists("/a/s-0000000002") && !s.Exists("/a/s-0000000000") })
	if kids, _ := s.Children("/"); !slices.Equal(kids, []string{"a", "later", "zookeeper"}) {
		t.Fatalf("children of /: %v", kids)
	}
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatal("condition not reached within 5 s")
}

func TestACL(t *testing.T) {
	s := start(t, zkserver.Config{})
	a, _ := connect(t, s)
	b, _ := connect(t, s)
	if err := a.AddAuth("digest", []byte("u:p")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Create("/mine", []byte("1"), 0, gozk.AuthACL(gozk.PermAll)); err != nil {
		t.Fatal(err)
	}
	acl, _, err := a.GetACL("/mine")
	if err != nil || len(acl) != 1 || acl[0].Scheme != "digest" || acl[0].ID != jute.DigestID("u:p") {
		t.Fatalf("acl: %+v, %v", acl, err)
	}
	if _, _, err := b.Get("/mine"); err != gozk.ErrNoAuth {
		t.Fatalf("get by a stranger: %v", err)
	}
	if _, err := b.Create("/mine/c", nil, 0, gozk.WorldACL(gozk.PermAll)); err != gozk.ErrNoAuth {
		t.Fatalf("create by a stranger: %v", err)
	}
	if _, err := b.Create("/his", nil, 0, gozk.AuthACL(gozk.PermAll)); err != gozk.ErrInvalidACL {
		t.Fatalf("auth ACL without an identity: %v", err)
	}
	if _, err := a.SetACL("/mine", gozk.WorldACL(gozk.PermRead), 0); err != nil {
		t.Fatal(err)
	}
	if d, _, err := b.Get("/mine"); err != nil || string(d) != "1" {
		t.Fatalf("get after setACL: %q, %v", d, err)
	}
	if _, err := a.Set("/mine", nil, -1); err != gozk.ErrNoAuth {
		t.Fatalf("set with read permission only: %v", err)
	}
	if err := b.AddAuth("nonsense", []byte("x")); err == nil {
		t.Fatal("an unknown scheme was accepted")
	}
}

func TestDirectAccess(t *testing.T) {
	s := start(t, zkserver.Config{})
	if _, err := s.Create("/hbase/rs/a,1,2", []byte("x"), zkserver.CreateOptions{}); !errors.Is(err, jute.ErrNoNode) {
		t.Fatalf("create without parents: %v", err)
	}
	rs := s.OpenSession(30 * time.Second)
	if _, err := s.Create("/hbase/rs/a,1,2", []byte("x"), zkserver.CreateOptions{Owner: rs, Parents: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("/hbase/master", []byte("m1"), rs); err != nil {
		t.Fatal(err)
	}
	if err := s.Put("/hbase/master", []byte("m2"), rs); err != nil {
		t.Fatal(err)
	}
	data, st, err := s.Get("/hbase/master")
	if err != nil || string(data) != "m2" || st.EphemeralOwner != rs || st.Version != 1 {
		t.Fatalf("get: %q %+v %v", data, st, err)
	}
	c, _ := connect(t, s)
	_, _, ch, err := c.ChildrenW("/hbase/rs")
	if err != nil {
		t.Fatal(err)
	}
	if !s.CloseSession(rs) || s.CloseSession(rs) {
		t.Fatal("CloseSession must succeed once")
	}
	if e := next(t, ch); e.Type != gozk.EventNodeChildrenChanged {
		t.Fatalf("event %+v", e)
	}
	if s.Exists("/hbase/master") || s.Exists("/hbase/rs/a,1,2") {
		t.Fatal("ephemerals outlived their session")
	}
	if err := s.DeleteTree("/hbase"); err != nil || s.Exists("/hbase") {
		t.Fatal(err)
	}
}

func TestAbandonedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		s, err := zkserver.Start(zkserver.Config{Listen: n.Listen, Addrs: []string{"10.0.0.1:2181"}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		began := time.Now()
		id := s.OpenSession(5 * time.Second)
		if err := s.Put("/e", nil, id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if !s.Exists("/e") {
			t.Fatal("an internal session expired by itself")
		}
		if !s.AbandonSession(id) {
			t.Fatal("not abandoned")
		}
		// Touched at 3600 s: (3600 + 5) lies in the bucket that ends at 3606 s.
		time.Sleep(5999 * time.Millisecond)
		if !s.Exists("/e") {
			t.Fatalf("expired early, after %v", time.Since(began))
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if s.Exists("/e") {
			t.Fatal("not expired at its boundary")
		}
	})
}

type recorder struct {
	changes []string
	fail    bool
}

func (r *recorder) Persist(_ int64, changes []zkserver.Change) error {
	if r.fail {
		return errors.New("disk full")
	}
	for _, c := range changes {
		if c.Node == nil {
			r.changes = append(r.changes, "-"+c.Path)
		} else {
			r.changes = append(r.changes, "+"+c.Path+"="+string(c.Node.Data))
		}
	}
	return nil
}

func TestPersisterAndRestore(t *testing.T) {
	rec := &recorder{}
	s := start(t, zkserver.Config{Persister: rec})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Create("/a/b-", []byte("1"), zkserver.CreateOptions{Parents: true, Sequential: true})
	must(err)
	must(s.Put("/e", []byte("gone"), s.OpenSession(time.Second)))
	_, err = s.Set("/a", []byte("2"), -1)
	must(err)
	rec.fail = true
	if _, err := s.Set("/a", []byte("3"), -1); !errors.Is(err, jute.ErrSystem) {
		t.Fatalf("set with a failing persister: %v", err)
	}
	rec.fail = false
	if d, st, _ := s.Get("/a"); string(d) != "2" || st.Version != 1 {
		t.Fatalf("the failed write left %q version %d", d, st.Version)
	}
	want := []string{"+/=", "+/a=", "+/a/b-0000000000=1", "+/a=2"}
	if !slices.Equal(rec.changes, want) {
		t.Fatalf("persisted %q, want %q", rec.changes, want)
	}
	s2 := start(t, zkserver.Config{Restore: s.Snapshot(), Epoch: 7})
	if d, st, err := s2.Get("/a"); err != nil || string(d) != "2" || st.Version != 1 {
		t.Fatalf("restored: %q %+v %v", d, st, err)
	}
	if p, err := s2.Create("/a/b-", nil, zkserver.CreateOptions{Sequential: true}); err != nil || p != "/a/b-0000000001" {
		t.Fatalf("sequence after restore: %q, %v", p, err)
	}
	if s2.Exists("/e") || s2.Zxid()>>32 != 7 {
		t.Fatalf("ephemeral %v, zxid %x", s2.Exists("/e"), s2.Zxid())
	}
}

func word(t *testing.T, addr, w string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, w); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatalf("%s: %v", w, err)
	}
	return string(b)
}

func TestFourLetterWords(t *testing.T) {
	s := start(t, zkserver.Config{Addrs: []string{"127.0.0.1:0", "127.0.0.1:0"}})
	c, _ := connect(t, s)
	if _, err := c.Create("/e", nil, gozk.FlagEphemeral, gozk.WorldACL(31)); err != nil {
		t.Fatal(err)
	}
	for w, want := range map[string]string{
		"ruok": "imok", "isro": "rw", "srvr": "\nMode: leader\n", "stat": "\nClients:\n /127.0.0.1:", "cons": "lop=CREA,", "mntr": "zk_ephemerals_count\t1\n",
		"conf": "maxSessionTimeout=40000\n", "envi": "zookeeper.version=", "dump": "\t/e\n", "wchs": "0 connections watching 0 paths", "dirs": "datadir_size",
	} {
		if got := word(t, s.Addr(), w); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not contain %q", w, got, want)
		}
	}
	if got := word(t, s.Addrs()[1], "srvr"); !strings.Contains(got, "Mode: follower") {
		t.Errorf("second member: %q", got)
	}
	if err := s.Member(0).SetFault(zkserver.Fault{Mode: zkserver.Electing}); err != nil {
		t.Fatal(err)
	}
	if got := word(t, s.Addr(), "srvr"); !strings.Contains(got, "not currently serving") {
		t.Errorf("electing: %q", got)
	}
}
