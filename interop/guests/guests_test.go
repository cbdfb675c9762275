//go:build interop

package guests

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func start(t *testing.T) *minihbase.Cluster {
	t.Helper()
	c, err := minihbase.Start(context.Background(), minihbase.Options{InMemory: true, Servers: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// TestJavaClient runs the blocking and the asynchronous client of both releases.
func TestJavaClient(t *testing.T) {
	c := start(t)
	source, err := filepath.Abs("JavaGuest.java")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []string{peers.HBase26, peers.HBase24} {
		t.Run(set, func(t *testing.T) {
			out, err := peers.Java(t, set, source, c.ZooKeeper())
			if err != nil || !strings.Contains(out, "checks passed") {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Log(out[strings.LastIndex(out, "guest:"):])
		})
	}
}

// TestGoZooKeeper uses the znodes as a monitoring tool would.
func TestGoZooKeeper(t *testing.T) {
	c := start(t)
	conn, events, err := zk.Connect([]string{c.ZooKeeper()}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	for _, path := range []string{"/hbase/hbaseid", "/hbase/master", "/hbase/meta-region-server", "/hbase/running"} {
		data, _, err := conn.Get(path)
		if err != nil || len(data) < 5 || data[0] != 0xff {
			t.Errorf("%s: %d bytes, %v; want HBase's header", path, len(data), err)
		}
	}
	children, _, changes, err := conn.ChildrenW("/hbase/rs")
	if err != nil || len(children) != 3 {
		t.Fatalf("/hbase/rs: %v, %v; want three servers", children, err)
	}
	if err := c.KillRegionServer(0); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-changes:
		if e.Type != zk.EventNodeChildrenChanged {
			t.Errorf("event %v", e)
		}
	case <-time.After(20 * time.Second):
		t.Error("no watch event after a server died")
	}
	path, err := conn.Create("/guest-", []byte("x"), zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatal(err)
	}
	if ok, stat, err := conn.Exists(path); err != nil || !ok || stat.EphemeralOwner != conn.SessionID() {
		t.Errorf("%s: %v %+v %v", path, ok, stat, err)
	}
}
