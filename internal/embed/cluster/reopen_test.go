package cluster

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// What is on disk comes back: tables, data, boundaries, ids; what must not come
// back is larger: start codes, sequence numbers, procedure ids.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	c := start(t, Options{Dir: dir})
	create(t, c, "t", "m")
	create(t, c, "gone")
	l := find(t, c, table("t"), "a")
	if err := put(t, l, "a", "1"); err != nil {
		t.Fatal(err)
	}
	m := mustMaster(t, c)
	upper := find(t, c, table("t"), "z")
	if err := m.Split(t.Context(), upper.Region.EncodedName(), []byte("s")); err != nil {
		t.Fatal(err)
	}
	if err := m.DropTable(t.Context(), table("gone")); err != nil {
		t.Fatal(err)
	}
	k := masterClient(t, c)
	var r pb.CreateTableResponse
	if _, err := k.Call("CreateTable", &pb.CreateTableRequest{TableSchema: schema("off", "f")}, &r); err != nil {
		t.Fatal(err)
	}
	var d pb.DisableTableResponse
	if _, err := k.Call("DisableTable", &pb.DisableTableRequest{TableName: nameProto("off")}, &d); err != nil {
		t.Fatal(err)
	}
	finish(t, k, d.GetProcId())
	if err := m.AddGroup(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if err := m.MoveToGroup(t.Context(), "g", c.Addresses()[:1], nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.zk.Set("/", nil, -1); err != nil {
		t.Fatal(err)
	}
	if err := c.zk.Put("/mine/node", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	before := c.Regions(meta.TableName{}, 0)
	id, code, topSeq := c.ClusterID(), mustName(t, c, 0).StartCode, int64(0)
	for _, x := range before {
		topSeq = max(topSeq, x.OpenSeq)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}

	c = start(t, Options{Dir: dir})
	after := c.Regions(meta.TableName{}, 0)
	if len(after) != len(before) || c.ClusterID() != id {
		t.Fatalf("%d regions, cluster %s; before %d, %s", len(after), c.ClusterID(), len(before), id)
	}
	for i := range after {
		a, b := after[i], before[i]
		if a.Encoded != b.Encoded || a.Table != b.Table || a.Parent != b.Parent || !bytes.Equal(a.Start, b.Start) || !bytes.Equal(a.End, b.End) {
			t.Errorf("region %d: %+v, before %+v", i, a, b)
		}
		wantState := "OPEN"
		switch {
		case a.Parent:
			wantState = "SPLIT"
		case a.Table == "off":
			wantState = "CLOSED"
		}
		if a.State != wantState || wantState == "OPEN" && a.OpenSeq <= topSeq {
			t.Errorf("region %s is %s with sequence number %d (before at most %d)", a.Name, a.State, a.OpenSeq, topSeq)
		}
	}
	if n := mustName(t, c, 0); n.StartCode <= code {
		t.Errorf("start code %d after %d", n.StartCode, code)
	}
	if v, err := get(t, find(t, c, table("t"), "a"), "a"); err != nil || v != "1" {
		t.Errorf("get: %q, %v", v, err)
	}
	if s := c.Catalog().GroupOfServer(c.Addresses()[0]); s != "g" {
		t.Errorf("server 0 is in group %s", s)
	}
	if b, _, err := c.zk.Get("/mine/node"); err != nil || string(b) != "x" {
		t.Errorf("a client's znode: %q, %v", b, err)
	}
	k = masterClient(t, c)
	var old pb.GetProcedureResultResponse
	if _, err := k.Call("getProcedureResult", &pb.GetProcedureResultRequest{ProcId: d.ProcId}, &old); err != nil || old.GetState() != pb.GetProcedureResultResponse_NOT_FOUND {
		t.Errorf("old procedure: %v, %v", old.GetState(), err)
	}
	var fresh pb.CreateTableResponse
	if _, err := k.Call("CreateTable", &pb.CreateTableRequest{TableSchema: schema("new", "f")}, &fresh); err != nil || fresh.GetProcId() <= d.GetProcId() {
		t.Errorf("procedure id %d after %d (%v)", fresh.GetProcId(), d.GetProcId(), err)
	}
}

func TestReset(t *testing.T) {
	c := start(t, Options{Servers: 2})
	create(t, c, "t")
	m := mustMaster(t, c)
	if err := m.AddGroup(t.Context(), "g"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.rules.Add(holdPuts()); err != nil {
		t.Fatal(err)
	}
	c.clock.Freeze(time.Time{})
	if err := c.zk.Put("/foreign", nil, 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Pause(1); err != nil {
		t.Fatal(err)
	}
	if err := c.StopMaster(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() {
		if s.State != Running {
			t.Errorf("server %d is %s", s.Index, s.State)
		}
	}
	if len(c.Regions(table("t"), 0)) != 0 || c.Catalog().HasGroup("g") || len(c.rules.List()) != 0 || c.clock.Frozen() || c.zk.Exists("/foreign") {
		t.Error("something is left")
	}
	create(t, c, "t")
	l := find(t, c, table("t"), "a")
	if err := put(t, l, "a", "2"); err != nil {
		t.Fatal(err)
	}
	if v, err := get(t, l, "a"); err != nil || v != "2" {
		t.Errorf("get: %q, %v", v, err)
	}
}

// Moves, splits, merges and deaths under writers and readers: whoever follows
// hbase:meta always finds the region, and nothing acknowledged is lost.
func TestUnderLoad(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t", "g", "p")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var written atomic.Int64
	acked := make([]map[string]string, 4)
	for w := range acked {
		acked[w] = map[string]string{}
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				row, v := fmt.Sprintf("%c%d-%d", 'a'+i%26, w, i%100), fmt.Sprint(i)
				r, err := c.Locate(table("t"), []byte(row))
				if err != nil {
					t.Errorf("a hole at %q: %v", row, err)
					return
				}
				n, err := meta.ParseServerName(r.Server)
				if err != nil {
					continue
				}
				if writeRow(n, r.Name, row, v) == nil {
					acked[w][row] = v
					written.Add(1)
				}
			}
		})
	}
	m := mustMaster(t, c)
	for round := range 24 {
		n := written.Load()
		eventually(t, "writes go on", func() bool { return written.Load() >= n+20 })
		rs := c.Regions(table("t"), 0)
		r := rs[round%len(rs)]
		switch round % 4 {
		case 0, 1:
			_ = m.Move(ctx, r.Encoded, meta.ServerName{})
		case 2:
			_ = m.Split(ctx, r.Encoded, nil)
		case 3:
			i := round / 4 % 3
			if err := c.Kill(i); err != nil {
				t.Error(err)
			}
			if err := c.StartServer(i); err != nil {
				t.Error(err)
			}
		}
	}
	cancel()
	wg.Wait()
	eventually(t, "all regions open", func() bool {
		for _, r := range c.Regions(meta.TableName{}, 0) {
			i := r.Index
			if !r.Parent && (r.State != "OPEN" || i < 0 || c.Servers()[i].Name != r.Server) {
				return false
			}
		}
		return true
	})
	total := 0
	for w := range acked {
		for row, v := range acked[w] {
			total++
			if got, err := get(t, find(t, c, table("t"), row), row); err != nil || got < v && len(got) <= len(v) {
				t.Errorf("row %s: %q, acknowledged was %q (%v)", row, got, v, err)
			}
		}
	}
	if total == 0 {
		t.Error("nothing was written")
	}
}
