package minihbase_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// TestWrongBytesInZooKeeper: as long as HBase's znodes hold rubbish, or are
// missing, a client that needs them says so; and it goes on when they are
// restored.
func TestWrongBytesInZooKeeper(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		spoil func(c *minihbase.Cluster) error
	}{
		{"rubbish", func(c *minihbase.Cluster) error {
			return c.SetZNode("/hbase/meta-region-server", []byte("\xff\x00\x00\x00\x05rubbish"))
		}},
		{"nothing in it", func(c *minihbase.Cluster) error { return c.SetZNode("/hbase/meta-region-server", nil) }},
		{"gone", func(c *minihbase.Cluster) error { return c.RemoveZNode("/hbase/meta-region-server") }},
		{"all gone", func(c *minihbase.Cluster) error { return c.RemoveZNode("/hbase") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := lying(t)
			if err := tc.spoil(c); err != nil {
				t.Fatal(err)
			}
			table := fresh(t, c)
			// A loaded machine may need longer until it has read them.
			for limit := 300 * time.Millisecond; ; limit *= 3 {
				short, cancel := context.WithTimeout(t.Context(), limit)
				err := readRow(short, table, "h")
				cancel()
				if err != nil && strings.Contains(err.Error(), "znode /hbase") {
					break
				}
				if err == nil || limit > 20*time.Second {
					t.Errorf("with %s: %v", tc.name, err)
					break
				}
			}
			c.RestoreZNodes()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			if err := readRow(ctx, table, "h"); err != nil {
				t.Errorf("once it is restored: %v", err)
			}
			if err := readRow(ctx, fresh(t, c), "h"); err != nil {
				t.Errorf("for another client: %v", err)
			}
		})
	}
}

// TestRestoreZNodes: everything is back, ephemerals with their owners, and what
// was right was not touched.
func TestRestoreZNodes(t *testing.T) {
	t.Parallel()
	c := up(t, minihbase.Options{BackupMasters: 1, ControlPort: -1})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	zk := c.ZooKeeperServer()
	// picture is every znode with its data and owner.
	picture := func() map[string]string {
		all := map[string]string{}
		var walk func(path string)
		walk = func(path string) {
			data, stat, err := zk.Get(path)
			if err != nil {
				return // it has gone meanwhile
			}
			all[path] = string(data)
			if stat.EphemeralOwner != 0 {
				all[path] += "!"
			}
			for _, n := range mustChildren(t, c, path) {
				walk(path + "/" + n)
			}
		}
		walk("/hbase")
		return all
	}
	// The znodes of tables follow the catalog a moment later.
	same := func(want map[string]string) bool {
		t.Helper()
		now := picture()
		if len(now) != len(want) {
			return false
		}
		for path, data := range want {
			if now[path] != data {
				return false
			}
		}
		return true
	}
	until := func(what string, f func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("after 20 s: %s: %v", what, picture())
			}
		}
	}
	until("no znode of the table", func() bool { return zk.Exists("/hbase/table/t") })
	want := picture()
	for _, path := range []string{"/hbase/master", "/hbase/meta-region-server", "/hbase/table/t", "/hbase/hbaseid"} {
		if _, ok := want[path]; !ok {
			t.Fatalf("no %s in %v", path, want)
		}
	}
	c.RestoreZNodes()
	before := zk.Zxid()
	if !same(want) || zk.Zxid() != before {
		t.Error("znodes were changed that were right")
	}
	for _, spoil := range []func() error{
		func() error { return c.RemoveZNode("/hbase") },
		func() error { return c.SetZNode("/hbase/master", []byte("x")) },
		func() error { return c.RemoveZNode("/hbase/rs") },
		func() error { return c.SetZNode("/hbase/table/t", []byte("x")) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		c.RestoreZNodes()
		until("not restored", func() bool { return same(want) })
	}
}

// TestFailNextProcedure: the next procedure of a class ends with an exception,
// and those after it do not.
func TestFailNextProcedure(t *testing.T) {
	t.Parallel()
	c := up(t, minihbase.Options{ControlPort: -1})
	if err := c.FailNextProcedure("", minihbase.Exception{}); err == nil {
		t.Error("an exception without a class was taken")
	}
	if err := c.FailNextProcedure("CreateTableProcedure", minihbase.Exception{Class: "java.io.IOException", Message: "disk full", DoNotRetry: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("create: %v", err)
	}
	if err := c.CreateTable(t.Context(), "u", []string{"f"}); err != nil {
		t.Error(err)
	}
}

// TestControlLies: over HTTP as by method.
func TestControlLies(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, k := controlled(t, minihbase.Options{})
	if err := k.CreateTable(ctx, control.CreateRequest{Table: "t", Families: []string{"f"}, Splits: []control.Bytes{control.Bytes("m")}}); err != nil {
		t.Fatal(err)
	}
	if err := put(t, c, "t", "z", "z"); err != nil {
		t.Fatal(err)
	}
	for _, r := range []control.Rule{
		{Action: "meta-hole", Table: "t", StartRow: control.Bytes("m")},
		{Action: "meta-no-server", Table: "t"},
		{Action: "meta-overlap", Table: "t", End: control.Bytes("x\x00")},
		{Action: "meta-stale", Table: "t", Location: "127.0.0.1,1,1"},
		{Action: "corrupt-cells", Table: "t"},
		{Action: "throttle", Table: "t", BytesPerSecond: 10},
		{Action: "oversize", Table: "t", Size: 1 << 30},
	} {
		id, err := k.AddRule(ctx, r)
		if err != nil {
			t.Errorf("%s: %v", r.Action, err)
			continue
		}
		rules, err := k.Rules(ctx)
		if err != nil || len(rules) != 1 || rules[0].Action != r.Action || string(rules[0].End) != string(r.End) || rules[0].Location != r.Location ||
			rules[0].BytesPerSecond != r.BytesPerSecond || rules[0].Size != r.Size {
			t.Errorf("%s came back as %+v, %v", r.Action, rules, err)
		}
		// A caller meets the rule, and is called off then.
		reading, callOff := context.WithCancel(ctx)
		read, reader := make(chan error, 1), fresh(t, c)
		go func() { read <- readRow(reading, reader, "z") }()
		wait, cancel := context.WithTimeout(ctx, 20*time.Second)
		if s, err := k.WaitRule(wait, id, 1); err != nil || s.Hits < 1 {
			t.Errorf("%s: %+v, %v", r.Action, s, err)
		}
		cancel()
		callOff()
		// Corrupt cells are asked for again, perhaps in time.
		if err := <-read; err == nil && r.Action != "corrupt-cells" {
			t.Errorf("%s: the row was read", r.Action)
		}
		if err := k.RemoveRule(ctx, id); err != nil {
			t.Error(err)
		}
		if err := readRow(ctx, fresh(t, c), "z"); err != nil {
			t.Errorf("after %s: %v", r.Action, err)
		}
	}
	if _, err := k.AddRule(ctx, control.Rule{Action: "meta-stale", Table: "t", Location: "nowhere:1"}); code(err) != http.StatusBadRequest {
		t.Errorf("a location that is nowhere: %v", err)
	}
	if err := k.SetZNode(ctx, control.ZNode{Path: "/hbase/meta-region-server", Data: []byte("rubbish")}); err != nil {
		t.Fatal(err)
	}
	if err := k.RestoreZNodes(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := k.ZNode(ctx, "/hbase/meta-region-server"); err != nil || !strings.Contains(string(n.Data), "PBUF") {
		t.Errorf("restored: %q, %v", n.Data, err)
	}
	for _, path := range []string{"/events?methd=Get", "/regions?tabel=t", "/rule/1/wait?hit=1"} {
		method := http.MethodGet
		if strings.HasPrefix(path, "/rule") {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(ctx, method, c.Control()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
