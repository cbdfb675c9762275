package minihbase_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// replicaCall calls a server about a region's replica, as a client does that
// knows where it is.
func replicaCall(t *testing.T, c *minihbase.Cluster, table, row string, id int, method string, q func(*pb.RegionSpecifier) rpcMessage, a interface{ UnmarshalVT([]byte) error }) (string, error) {
	t.Helper()
	n, err := meta.ParseTableName(table)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Locate(table, []byte(row))
	if err != nil {
		t.Fatal(err)
	}
	region, err := meta.ParseServerName(r.Server)
	if err != nil {
		t.Fatal(err)
	}
	_ = region
	_, rest, _ := strings.Cut(r.Name, ",")
	start, rest, _ := strings.Cut(rest, ",")
	var regionID uint64
	for _, d := range rest {
		if d < '0' || d > '9' {
			break
		}
		regionID = regionID*10 + uint64(d-'0')
	}
	info := meta.Region{Table: n, ID: regionID, Start: []byte(start), Replica: int32(id)}
	if info.EncodedName() != r.Replicas[id-1].Encoded {
		t.Fatalf("replica %d is called %s, want %s", id, r.Replicas[id-1].Encoded, info.EncodedName())
	}
	k, err := rpctest.Dial(c.RegionServers()[r.Replicas[id-1].Index], rpctest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Conn.Close()
	_ = k.Conn.SetDeadline(time.Now().Add(time.Minute))
	cells, err := k.Call(method, q(&pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: info.Name()}), a)
	if err != nil || len(cells) == 0 {
		return "", err
	}
	return string(cells[0].Value), nil
}

type rpcMessage interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
}

// replicaGet reads a row from a replica and says whether it is called stale.
func replicaGet(t *testing.T, c *minihbase.Cluster, table, row string, id int) (string, bool) {
	t.Helper()
	var out pb.GetResponse
	v, err := replicaCall(t, c, table, row, id, "Get", func(r *pb.RegionSpecifier) rpcMessage {
		return &pb.GetRequest{Region: r, Get: &pb.Get{Row: []byte(row), Consistency: pb.Consistency_TIMELINE.Enum()}}
	}, &out)
	if err != nil {
		t.Fatal(err)
	}
	return v, out.GetResult().GetStale()
}

// apart checks that every region and its replicas are open on different
// servers, all of them alive.
func apart(t *testing.T, c *minihbase.Cluster, table string, replicas int) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		problem := apartOnce(t, c, table, replicas)
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(problem)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func apartOnce(t *testing.T, c *minihbase.Cluster, table string, replicas int) string {
	t.Helper()
	rs, err := c.Regions(table)
	if err != nil {
		t.Fatal(err)
	}
	alive := map[string]bool{}
	for _, s := range c.Servers() {
		alive[s.Name] = s.State == "running"
	}
	for _, r := range rs {
		if r.Parent {
			if len(r.Replicas) > 0 {
				return "a split region has replicas"
			}
			continue
		}
		on := map[string]bool{r.Server: true}
		for _, p := range r.Replicas {
			on[p.Server] = true
			if p.State != "OPEN" {
				return "a replica is " + p.State
			}
		}
		for s := range on {
			if !alive[s] {
				return s + " is not alive, and holds " + r.Name
			}
		}
		if len(on) != replicas || len(r.Replicas) != replicas-1 {
			return r.Name + ": not on as many servers as it has replicas"
		}
	}
	return ""
}

func TestReplicas(t *testing.T) {
	c := up(t, minihbase.Options{Servers: 4, ControlPort: -1})
	ctx := t.Context()
	if err := c.CreateReplicatedTable(ctx, "t", []string{"f"}, 3, []byte("g"), []byte("m"), []byte("t")); err != nil {
		t.Fatal(err)
	}
	apart(t, c, "t", 3)
	if err := put(t, c, "t", "a", "1"); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 2; id++ {
		if v, stale := replicaGet(t, c, "t", "a", id); v != "1" || !stale {
			t.Errorf("replica %d: %q, stale %v", id, v, stale)
		}
	}
	// hbase:meta tells.
	var scan pb.ScanResponse
	r, err := c.Locate("t", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	found := metaRow(t, c, "t", &scan)
	if len(found.Replicas) != 2 || found.Replicas[0].Server.String() != r.Replicas[0].Server || found.Replicas[1].SeqNum != r.Replicas[1].OpenSeq || found.Replicas[1].ID != 2 || found.Replicas[1].State != "OPEN" {
		t.Errorf("hbase:meta says %+v, the cluster %+v", found.Replicas, r.Replicas)
	}
	// Writes are refused, for good.
	_, err = replicaCall(t, c, "t", "a", 1, "Mutate", func(r *pb.RegionSpecifier) rpcMessage {
		return &pb.MutateRequest{Region: r, Mutation: &pb.MutationProto{Row: []byte("a"), MutateType: pb.MutationProto_PUT.Enum(),
			ColumnValue: []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte("q"), Value: []byte("x")}}}}}}
	}, &pb.MutateResponse{})
	x, _ := err.(*wire.RemoteError)
	if x == nil || x.Class != wire.ClassDoNotRetryIO || !x.DoNotRetry || !strings.Contains(x.Message, "read only") {
		t.Errorf("a write to a replica: %v", err)
	}
	// Replicas lag when told to.
	c.SetReplicaLag(time.Hour)
	if err := put(t, c, "t", "a", "2"); err != nil {
		t.Fatal(err)
	}
	if v, stale := replicaGet(t, c, "t", "a", 1); v != "1" || !stale {
		t.Errorf("a replica that lags shows %q, stale %v", v, stale)
	}
	if v := get(t, c, "t", "a"); v != "2" {
		t.Errorf("the region shows %q", v)
	}
	c.SetReplicaLag(50 * time.Millisecond)
	if v, _ := replicaGet(t, c, "t", "a", 1); v != "2" {
		t.Errorf("a lag begins with %q: what was there when it was set", v)
	}
	if err := put(t, c, "t", "a", "3"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if v, _ := replicaGet(t, c, "t", "a", 1); v == "3" {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("a replica that lags 50 ms shows %q", v)
		}
	}
	c.SetReplicaLag(0)

	// Moves of the region and of a replica.
	for _, to := range []int{r.Replicas[0].Index, r.Index, r.Replicas[1].Index} {
		if err := c.MoveRegion(ctx, r.Encoded, to); err != nil {
			t.Fatal(err)
		}
		apart(t, c, "t", 3)
	}
	r, err = c.Locate("t", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	free := 0 + 1 + 2 + 3 - r.Index - r.Replicas[0].Index - r.Replicas[1].Index
	if err := c.MoveRegion(ctx, r.Replicas[1].Encoded, free); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Locate("t", []byte("a")); err != nil || n.Replicas[1].Index != free || n.Replicas[1].OpenSeq <= r.Replicas[1].OpenSeq || n.OpenSeq != r.OpenSeq {
		t.Errorf("a replica was moved to %d: %+v, %v", free, n, err)
	}
	if err := c.MoveRegion(ctx, r.Replicas[1].Encoded, r.Index); err == nil {
		t.Error("a replica was moved to its region's server")
	}
	if v, stale := replicaGet(t, c, "t", "a", 2); v != "3" || !stale {
		t.Errorf("a moved replica: %q, stale %v", v, stale)
	}
	// Splits and merges.
	if err := c.Split(ctx, r.Encoded, []byte("c")); err != nil {
		t.Fatal(err)
	}
	apart(t, c, "t", 3)
	a, err := c.Locate("t", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Locate("t", []byte("d"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Merge(ctx, a.Encoded, b.Encoded); err != nil {
		t.Fatal(err)
	}
	apart(t, c, "t", 3)
	if v, stale := replicaGet(t, c, "t", "a", 1); v != "3" || !stale {
		t.Errorf("after split and merge: %q, stale %v", v, stale)
	}
	// Deaths, and an orderly stop: three servers are left for three replicas.
	for i := range 4 {
		if i%2 == 0 {
			err = c.KillRegionServer(i)
		} else {
			err = c.StopRegionServer(ctx, i)
		}
		if err != nil {
			t.Fatal(err)
		}
		apart(t, c, "t", 3)
		if err := c.StartRegionServer(i); err != nil {
			t.Fatal(err)
		}
	}
	// With two servers they have to share; with more they part again.
	for _, i := range []int{0, 1} {
		if err := c.KillRegionServer(i); err != nil {
			t.Fatal(err)
		}
	}
	apart2 := func() bool {
		rs, err := c.Regions("t")
		return err == nil && rs[0].Server != rs[0].Replicas[0].Server
	}
	for deadline := time.Now().Add(2 * time.Minute); !apart2(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no replica on the second server")
		}
	}
	if err := c.StartRegionServer(0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Balance(ctx); err != nil {
		t.Fatal(err)
	}
	apart(t, c, "t", 3)
	held := 0
	for _, s := range c.Servers() {
		held += s.Regions
	}
	if held != 4*3+2 {
		t.Errorf("%d regions and replicas on all servers", held)
	}
	if err := c.DropTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	held = 0
	for _, s := range c.Servers() {
		held += s.Regions
	}
	if held != 2 {
		t.Errorf("%d regions are left", held)
	}
}

// metaRow reads the first region's row of a table out of hbase:meta.
func metaRow(t *testing.T, c *minihbase.Cluster, table string, out *pb.ScanResponse) meta.Location {
	t.Helper()
	n, err := meta.ParseTableName(table)
	if err != nil {
		t.Fatal(err)
	}
	i, err := c.FindServer("meta")
	if err != nil {
		t.Fatal(err)
	}
	k, err := rpctest.Dial(c.RegionServers()[i], rpctest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Conn.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if d, ok := ctx.Deadline(); ok {
		_ = k.Conn.SetDeadline(d)
	}
	cells, err := k.Call("Scan", &pb.ScanRequest{
		Region:       &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(meta.MetaRegionName)},
		Scan:         &pb.Scan{StartRow: meta.FirstRow(n), StopRow: meta.StopRow(n), Column: []*pb.Column{{Family: []byte("info")}}, MaxVersions: new(uint32(1))},
		NumberOfRows: new(uint32(1)), CloseScanner: new(true), ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true),
	}, out)
	if err != nil {
		t.Fatal(err)
	}
	loc, ok, err := meta.ParseLocation(cells)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return loc
}
