//go:build interop

package guests

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// inOrder tries hosts in the order given, so that a test says which is first.
type inOrder struct {
	mu    sync.Mutex
	hosts []string
	at    int
}

func (h *inOrder) Init([]string) error { return nil } // which come shuffled
func (h *inOrder) Len() int            { return len(h.hosts) }
func (h *inOrder) Connected()          {}
func (h *inOrder) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	host := h.hosts[h.at%len(h.hosts)]
	h.at++
	return host, h.at > 1 && h.at%len(h.hosts) == 1
}

// quiet keeps go-zookeeper's log out of the test's output.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// session connects go-zookeeper to hosts in their order and waits for its session.
func session(t *testing.T, hosts []string, timeout time.Duration) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect(hosts, timeout, zk.WithLogger(quiet{}), zk.WithHostProvider(&inOrder{hosts: hosts}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	limit := time.After(60 * time.Second)
	for c.State() != zk.StateHasSession {
		select {
		case <-events:
		case <-limit:
			t.Fatal("no session within a minute")
		}
	}
	return c
}

// TestZooKeeperOnDisk: what a stock client stores beside HBase's znodes is there after a restart, to the last field, and what was ephemeral is not.
func TestZooKeeperOnDisk(t *testing.T) {
	dir := t.TempDir()
	up := func() *minihbase.Cluster {
		t.Helper()
		c, err := minihbase.Start(context.Background(), minihbase.Options{Dir: dir, Servers: 1})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	type state struct {
		Data     string
		Stat     zk.Stat
		ACL      []zk.ACL
		Children int
	}
	picture := func(c *zk.Conn) map[string]state {
		t.Helper()
		must(c.AddAuth("digest", []byte("user:secret")))
		out := map[string]state{}
		for _, path := range []string{"/app", "/app/config", "/app/box", "/app/mine", "/app/s-0000000003"} {
			data, stat, err := c.Get(path)
			must(err)
			acl, _, err := c.GetACL(path)
			must(err)
			out[path] = state{string(data), *stat, acl, int(stat.NumChildren)}
		}
		return out
	}
	cluster := up()
	c := session(t, []string{cluster.ZooKeeper()}, 10*time.Second)
	open := zk.WorldACL(zk.PermAll)
	_, err := c.Create("/app", []byte("root"), 0, open)
	must(err)
	_, err = c.Create("/app/config", []byte("one"), 0, open)
	must(err)
	_, err = c.Set("/app/config", []byte("two"), 0)
	must(err)
	_, err = c.CreateContainer("/app/box", nil, zk.FlagTTL-1, open)
	must(err)
	_, err = c.Create("/app/mine", []byte("m"), 0, zk.DigestACL(zk.PermAll, "user", "secret"))
	must(err)
	_, err = c.Create("/app/s-", nil, zk.FlagSequence, open)
	must(err)
	before := picture(c)
	_, err = c.Create("/app/config/e", nil, zk.FlagEphemeral, open)
	must(err)
	must(cluster.Close())
	c.Close()

	cluster = up()
	defer cluster.Close()
	c = session(t, []string{cluster.ZooKeeper()}, 10*time.Second)
	after := picture(c)
	// The ephemeral child came and went: its parent's counters tell, as they do in ZooKeeper.
	for path, b := range before {
		a := after[path]
		if path == "/app/config" {
			a.Stat.Cversion, a.Stat.Pzxid, b.Stat.Cversion, b.Stat.Pzxid = 0, 0, 0, 0
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s is %+v after the restart, %+v before", path, a, b)
		}
	}
	if ok, _, err := c.Exists("/app/config/e"); ok || err != nil {
		t.Errorf("the ephemeral node: %v %v", ok, err)
	}
	if p, err := c.Create("/app/s-", nil, zk.FlagSequence, open); err != nil || p != "/app/s-0000000004" {
		t.Errorf("the next sequential node: %q %v", p, err)
	}
}

// TestVirtualEnsemble: a stock client on three members, of which the one it is on breaks in each way, goes on with its session on another, as it does on
// a real ensemble.
func TestVirtualEnsemble(t *testing.T) {
	for _, mode := range []zkserver.Mode{zkserver.Frozen, zkserver.BlackHole, zkserver.Refuse, zkserver.Hangup, zkserver.Electing} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s, err := zkserver.Start(zkserver.Config{Addrs: []string{"127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"}, Leader: 2})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			c := session(t, s.Addrs(), 4*time.Second)
			id := c.SessionID()
			if on := s.Sessions()[0].Member; on != 0 {
				t.Fatalf("the client began on member %d", on)
			}
			if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := s.Member(0).SetFault(zkserver.Fault{Mode: mode}); err != nil {
				t.Fatal(err)
			}
			if mode != zkserver.Frozen && mode != zkserver.BlackHole {
				s.Member(0).DropConnections()
			}
			var stat *zk.Stat
			for deadline := time.Now().Add(60 * time.Second); ; {
				var ok bool
				ok, stat, err = c.Exists("/e")
				if err == nil && ok {
					break
				}
				if err == nil || time.Now().After(deadline) || !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer) {
					t.Fatalf("after %v: %v, %v", time.Since(began), ok, err)
				}
			}
			if c.SessionID() != id || stat.EphemeralOwner != id {
				t.Errorf("session %x became %x, the ephemeral node is %x's", id, c.SessionID(), stat.EphemeralOwner)
			}
			if on := s.Sessions()[0].Member; on == 0 {
				t.Error("the client is still on the broken member")
			}
			t.Log(fmt.Sprintf("%v: served again after %v", mode, time.Since(began).Round(time.Millisecond)))
		})
	}
}
