package hbase

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// replicaCore answers every region call from replica 2.
type replicaCore struct {
	scriptedCore
	closed chan struct{}
	last   *route.Replica
	route  *route.Route
}

var rs1 = meta.ServerName{Host: "rs1", Port: 16020, StartCode: 1}

// oneRegion is the hbase:meta of a table of one region.
type oneRegion struct{}

func (oneRegion) ScanMeta(context.Context, route.MetaScan) ([]meta.Location, error) {
	r := meta.Region{Table: meta.TableName{Namespace: "default", Qualifier: "t"}, ID: 1}
	return []meta.Location{{Region: r, Server: rs1, SeqNum: 1, State: "OPEN"}}, nil
}

func (oneRegion) GetMeta(context.Context, [][]byte) ([]*meta.Location, error) { return nil, nil }

func (c *replicaCore) CallRegion(ctx context.Context, call *session.RegionCall) (session.Answer, error) {
	a, err := c.scriptedCore.CallRegion(ctx, call)
	a.Replica, a.Route = &route.Replica{ID: 2}, c.route
	return a, err
}

func (c *replicaCore) CallReplica(_ context.Context, _ *route.Route, p *route.Replica, call *session.RegionCall) (session.Answer, error) {
	m, _ := call.Param(nil, 1)
	var req pb.ScanRequest
	if err := req.UnmarshalVT(marshal(m)); err != nil {
		return session.Answer{}, err
	}
	c.last = p
	if req.GetCloseScanner() && req.GetScannerId() == 77 {
		close(c.closed)
	}
	return session.Answer{Replica: p}, nil
}

func replicaTable(t *testing.T) (*replicaCore, *Table) {
	row := []cells.Cell{{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1, Type: cells.Put, Value: []byte("v")}}
	c := &replicaCore{closed: make(chan struct{})}
	c.answer = &pb.GetResponse{Result: &pb.Result{AssociatedCellCount: new(int32(1))}}
	block, err := wire.KeyValueCodec.AppendCells(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	c.cells = block
	servers := health.NewTable()
	routes := route.New(route.Config{Source: oneRegion{}, Servers: servers, Locator: func(context.Context) (meta.ServerName, error) { return rs1, nil }})
	t.Cleanup(func() { routes.Close(); servers.Close() })
	if c.route, err = routes.Locate(t.Context(), meta.TableName{Namespace: "default", Qualifier: "t"}, nil); err != nil {
		t.Fatal(err)
	}
	client := newClient(defaultConfig("test"), c)
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return c, tab
}

func TestTimelineOptionsReachTheSession(t *testing.T) {
	c, tab := replicaTable(t)
	res, err := tab.Get(t.Context(), &Get{Row: []byte("r"), Consistency: Timeline, ReplicaID: 2, Hedge: true})
	if err != nil || !res.Stale || len(res.Cells) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	if !c.call.Timeline || !c.call.Hedge || c.call.Replica != 2 {
		t.Errorf("call %+v", c.call)
	}
	// The call is used again: nothing stays behind.
	if _, err := tab.Get(t.Context(), NewGet("r")); err != nil {
		t.Fatal(err)
	}
	if c.call.Timeline || c.call.Hedge || c.call.Replica != 0 {
		t.Errorf("strong call %+v", c.call)
	}
	if _, err := tab.Exists(t.Context(), &Get{Row: []byte("r"), Consistency: Timeline}); err != nil || !c.call.Timeline {
		t.Errorf("exists: timeline %v, %v", c.call.Timeline, err)
	}
	tab.c.cfg.HedgedReads = true
	if _, err := tab.Get(t.Context(), NewGet("r")); err != nil || !c.call.Hedge {
		t.Errorf("HedgedReads: hedge %v, %v", c.call.Hedge, err)
	}
}

func TestTimelineInBatches(t *testing.T) {
	c, tab := replicaTable(t)
	gets := []*Get{NewGet("a"), {Row: []byte("b"), Consistency: Timeline}, {Row: []byte("r"), Consistency: Timeline, ReplicaID: 2}}
	c.out = make([]session.Outcome, 2)
	for i := range c.out {
		c.out[i].Results = []session.ActionResult{{Stale: i == 1}}
	}
	res, err := tab.MultiGet(t.Context(), gets)
	if err != nil || res[0].Stale || !res[1].Stale || !res[2].Stale || len(res[2].Cells) != 1 {
		t.Fatalf("%v %v", res, err)
	}
	if len(c.items) != 2 || c.items[0].Timeline || !c.items[1].Timeline {
		t.Errorf("items %+v", c.items)
	}
}

func TestTimelineScanStaysWithItsReplica(t *testing.T) {
	c, tab := replicaTable(t)
	tr := &rpcScan{t: tab, scan: &Scan{Consistency: Timeline}}
	c.answer = &pb.ScanResponse{ScannerId: new(uint64(5)), CellsPerResult: []uint32{1}, MoreResults: new(true)}
	reg, reply, err := tr.open(t.Context(), scanOpening{inclusive: true})
	if err != nil || len(reply.plain.counts) != 1 || !reply.plain.stale {
		t.Fatalf("%+v, %v", reply, err)
	}
	if !c.call.Timeline || c.call.ReplicaAfter != time.Second || c.call.Abandoned == nil {
		t.Errorf("call %+v", c.call)
	}
	if _, err := reg.next(t.Context(), 0, 0); err != nil || c.last == nil || c.last.ID != 2 {
		t.Errorf("next went to replica %v, %v", c.last, err)
	}
	// A scanner that was opened beside it is closed; one the server has closed
	// is not.
	late := func(resp *pb.ScanResponse) {
		c.call.Abandoned(session.Answer{Route: c.route}, marshal(resp))
	}
	late(&pb.ScanResponse{ScannerId: new(uint64(77)), MoreResults: new(false)})
	select {
	case <-c.closed:
		t.Fatal("closed a scanner that was not open")
	default:
	}
	late(&pb.ScanResponse{ScannerId: new(uint64(77)), MoreResults: new(true)})
	select {
	case <-c.closed:
	default:
		t.Error("the scanner opened in vain stays open")
	}
}
