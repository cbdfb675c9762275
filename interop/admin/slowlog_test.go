package admin

import (
	"context"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// slowLogFile is what HBase 2.6.4 answered to playSlowLog.
var slowLogFile = filepath.Join("testdata", "slowlog-2.6.4.txt")

// TestSlowLogEntries: what is kept of calls, and which filters choose which.
func TestSlowLogEntries(t *testing.T) {
	compare(t, slowLogFile, playSlowLog(t, embedded(t, minihbase.Options{InMemory: true, Servers: 1, ControlPort: -1, SlowLog: true, SlowLogTime: -1, SlowLogBytes: 1})))
}

// playSlowLog makes calls on a cluster whose one region server keeps every
// answer of more than a byte, and asks for them.
func playSlowLog(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client, err := hbase.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	sp := &spacePlayer{player: &player{t: t, ctx: ctx, client: client, adm: client.Admin(), user: u.Username, conns: map[string]*rpc.Conn{}}}
	p := sp.player
	defer p.close()
	p.until("a region server", func() bool { p.rs, err = p.adm.RegionServers(ctx); return err == nil && len(p.rs) == 1 })
	at := p.rs[0].Address()
	const name = "slowed"
	if err := p.adm.CreateTable(ctx, admin.NewTable(name, admin.NewFamily("f"))); err != nil {
		t.Fatal(err)
	}
	region := sp.on(name)
	// Questions come over a connection of another user than the calls.
	if err := p.call(at, "AdminService", "GetServerInfo", &pb.GetServerInfoRequest{}, &pb.GetServerInfoResponse{}); err != nil {
		t.Fatal(err)
	}
	p.user = "slowpoke"
	for _, call := range []struct {
		method        string
		param, result message
	}{
		{"Mutate", &pb.MutateRequest{Region: region, Mutation: spaceMutation(spacePut)}, &pb.MutateResponse{}},
		{"Get", &pb.GetRequest{Region: region, Get: &pb.Get{Row: []byte("ot\x00her\\"), Column: []*pb.Column{{Family: []byte("f")}}}}, &pb.GetResponse{}},
		{"Get", &pb.GetRequest{Region: region, Get: &pb.Get{Row: []byte("other")}}, &pb.GetResponse{}},
		{"Scan", &pb.ScanRequest{Region: region, Scan: &pb.Scan{StartRow: []byte("a\x01'\"\\\xff"), Caching: new(uint32(3)), Attribute: []*pb.NameBytesPair{{Name: new("x"), Value: []byte("\t")}},
			Filter: &pb.Filter{Name: new("org.apache.hadoop.hbase.filter.KeyOnlyFilter"), SerializedFilter: []byte{8, 0}}}, NumberOfRows: new(uint32(3)), CloseScanner: new(true)}, &pb.ScanResponse{}},
		{"Multi", &pb.MultiRequest{RegionAction: []*pb.RegionAction{{Region: region, Action: []*pb.Action{
			{Index: new(uint32(0)), Mutation: spaceMutation(spacePut)}, {Index: new(uint32(1)), Get: &pb.Get{Row: []byte("other")}}, {Index: new(uint32(2)), Mutation: spaceMutation(spaceDelete)}}}}}, &pb.MultiResponse{}},
		{"Get", &pb.GetRequest{Region: region, Get: &pb.Get{Row: []byte("other"), Column: []*pb.Column{{Family: []byte("none")}}}}, &pb.GetResponse{}},
	} {
		err := p.call(at, "ClientService", call.method, call.param, call.result)
		fmt.Fprintf(&p.out, "%s refused: %v\n", call.method, err != nil)
	}
	ask := func(q *pb.SlowLogResponseRequest) []*pb.SlowLogPayload {
		text, err := q.MarshalVT()
		if err != nil {
			t.Fatal(err)
		}
		entry, out := &pb.LogEntry{}, &pb.SlowLogResponses{}
		if err := p.call(at, "AdminService", "GetLogEntries", &pb.LogRequest{LogClassName: new("org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponseRequest"), LogMessage: text}, entry); err != nil {
			t.Fatal(err)
		}
		if err := out.UnmarshalVT(entry.GetLogMessage()); err != nil {
			t.Fatal(err)
		}
		return out.GetSlowLogPayloads()
	}
	large := pb.SlowLogResponseRequest_LARGE_LOG.Enum()
	all := &pb.SlowLogResponseRequest{UserName: new("slowpoke"), Limit: new(uint32(100)), LogType: large}
	// HBase keeps them on a thread of its own.
	p.until("the last answered call is kept", func() bool {
		list := ask(all)
		return len(list) > 0 && list[0].GetMethodName() == "Multi"
	})
	for _, x := range ask(all) {
		if x.GetResponseSize() < 2 { // how many they are is the server's own business
			t.Errorf("%s answered %d bytes", x.GetMethodName(), x.GetResponseSize())
		}
		fmt.Fprintln(&p.out, scrub(fmt.Sprintf("%s %s, %s, %s on %q by %s, gets %d, mutations %d, services %d\n  %s", x.GetType(), x.GetMethodName(), x.GetCallDetails(), x.GetServerClass(),
			x.GetRegionName(), x.GetUserName(), x.GetMultiGets(), x.GetMultiMutations(), x.GetMultiServiceCalls(), x.GetParam())))
	}
	one := ask(all)[0]
	host := one.GetClientAddress()[:strings.LastIndexByte(one.GetClientAddress(), ':')]
	and, or := pb.SlowLogResponseRequest_AND.Enum(), pb.SlowLogResponseRequest_OR.Enum()
	full := one.GetRegionName()
	for _, f := range []struct {
		what string
		q    *pb.SlowLogResponseRequest
	}{
		{"of nobody", &pb.SlowLogResponseRequest{UserName: new("nobody")}},
		{"two at most", &pb.SlowLogResponseRequest{UserName: new("slowpoke"), Limit: new(uint32(2))}},
		{"of the region", &pb.SlowLogResponseRequest{RegionName: &full}},
		{"of half a region's name", &pb.SlowLogResponseRequest{RegionName: new(full[:len(full)-5])}},
		{"of the table", &pb.SlowLogResponseRequest{TableName: new(name)}},
		{"of the beginning of its name", &pb.SlowLogResponseRequest{TableName: new(name[:3]), UserName: new("slowpoke"), FilterByOperator: and}},
		{"of another table", &pb.SlowLogResponseRequest{TableName: new("other"), UserName: new("slowpoke"), FilterByOperator: and}},
		{"of another table, or of the user", &pb.SlowLogResponseRequest{TableName: new("other"), UserName: new("slowpoke"), FilterByOperator: or}},
		{"of the client", &pb.SlowLogResponseRequest{ClientAddress: new(one.GetClientAddress()), UserName: new("slowpoke"), FilterByOperator: and}},
		{"of the client's host", &pb.SlowLogResponseRequest{ClientAddress: &host, UserName: new("slowpoke"), FilterByOperator: and}},
		{"of another client", &pb.SlowLogResponseRequest{ClientAddress: new("10.1.2.3"), UserName: new("slowpoke"), FilterByOperator: and}},
	} {
		f.q.LogType = large
		if f.q.Limit == nil {
			f.q.Limit = new(uint32(100))
		}
		n := 0
		for _, x := range ask(f.q) {
			if x.GetUserName() == "slowpoke" {
				n++
			}
		}
		fmt.Fprintf(&p.out, "%s: %d\n", f.what, n)
	}
	fmt.Fprintf(&p.out, "slow ones: %d\n", len(ask(&pb.SlowLogResponseRequest{UserName: new("slowpoke"), Limit: new(uint32(100)), LogType: pb.SlowLogResponseRequest_SLOW_LOG.Enum()})))
	cleared := &pb.ClearSlowLogResponses{}
	err = p.call(at, "AdminService", "ClearSlowLogsResponses", &pb.ClearSlowLogResponseRequest{}, cleared)
	fmt.Fprintf(&p.out, "cleared: %v, %v; left: %d\n", cleared.GetIsCleaned(), err, len(ask(all)))
	return p.out.String()
}
