package regionserver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func oneFamily() *cells.Schema { return cells.NewSchema(cells.DefaultFamily([]byte("f"))) }

func getOf(r *host.Region, row string) *pb.GetRequest {
	return &pb.GetRequest{Region: specifier(r), Get: &pb.Get{Row: []byte(row)}}
}

func putOf(r *host.Region, row, value string) *pb.MutateRequest {
	return &pb.MutateRequest{Region: specifier(r), Mutation: &pb.MutationProto{Row: []byte(row), MutateType: pb.MutationProto_PUT.Enum(),
		ColumnValue: []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{
			{Qualifier: []byte("q"), Value: []byte(value)}}}}}}
}

// class gives the exception's class without package, "" for no error.
func class(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	x := rpctest.Remote(err)
	if x == nil {
		t.Fatalf("connection: %v", err)
	}
	return x.Short()
}

func TestRegionStates(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	tab := h.create("t", oneFamily(), nil, "m")
	r := tab.regions[0]
	if _, err := c.Call("Mutate", putOf(r, "a", "1"), nil); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	try := func() *wire.RemoteError {
		t.Helper()
		_, err := c.Call("Get", getOf(r, "a"), nil)
		return rpctest.Remote(err)
	}
	if x := try(); x != nil {
		t.Fatal(x)
	}

	if err := h.CloseRegion(ctx, r.Encoded, nil); err != nil {
		t.Fatal(err)
	}
	if x := try(); x == nil || x.Class != wire.ClassNotServingRegion || x.DoNotRetry || x.Message != cells.Quote(r.Name)+" is not online on "+h.Name().String() {
		t.Errorf("closed: %+v", x)
	}
	h.SetOpening(r.Encoded, true)
	if x := try(); x == nil || x.Class != wire.ClassRegionOpening {
		t.Errorf("opening: %+v", x)
	}
	h.reopen(r)
	if x := try(); x != nil {
		t.Errorf("opened: %+v", x)
	}
	to := meta.ServerName{Host: "127.0.0.1", Port: 4711, StartCode: 99}
	if err := h.CloseRegion(ctx, r.Encoded, &host.Moved{To: to, OpenSeq: 42}); err != nil {
		t.Fatal(err)
	}
	if x := try(); x == nil || x.Class != wire.ClassRegionMoved || x.Moved == nil || *x.Moved != (wire.MovedTo{Host: "127.0.0.1", Port: 4711, StartCode: 99, SeqNum: 42}) ||
		x.Message != "Region moved to: hostname=127.0.0.1 port=4711 startCode=99. As of locationSeqNum=42." {
		t.Errorf("moved: %+v", x)
	}
	h.reopen(r)
	if x := try(); x != nil {
		t.Errorf("moved back: %+v", x)
	}
	// An older opening that comes late changes nothing.
	old := *r
	old.OpenSeq = 0
	h.OpenRegion(&old)
	if got := h.Regions(); len(got) != 2 || slices.ContainsFunc(got, func(r *host.Region) bool { return r.OpenSeq == 0 }) {
		t.Errorf("regions %v", got)
	}
	if err := h.CloseRegion(ctx, "no such region", nil); err != nil {
		t.Error(err)
	}
}

// TestCloseWaits: once CloseRegion has returned, no write of the region
// happens any more.
func TestCloseWaits(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil)
	r := tab.regions[0]
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var mu sync.Mutex
	acked := 0
	for i := range 4 {
		c := h.dial(rpctest.Options{})
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				_, err := c.Call("Mutate", putOf(r, fmt.Sprintf("r%d-%d", i, n), "v"), nil)
				if err == nil {
					mu.Lock()
					acked++
					mu.Unlock()
				} else if x := rpctest.Remote(err); x == nil || x.Class != wire.ClassNotServingRegion {
					t.Errorf("write while closing: %v", err)
					return
				}
			}
		})
	}
	for range 20 {
		time.Sleep(2 * time.Millisecond)
		if err := h.CloseRegion(context.Background(), r.Encoded, nil); err != nil {
			t.Fatal(err)
		}
		before := h.store.ReadPoint()
		time.Sleep(time.Millisecond)
		if after := h.store.ReadPoint(); after != before {
			t.Fatalf("the store moved from %d to %d after the region was closed", before, after)
		}
		h.reopen(r)
	}
	close(stop)
	wg.Wait()
	q := cells.NewQuery()
	sc, err := tab.data.NewScan(&cells.ScanSpec{IncludeStart: true, Query: q}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sc.Close()
	rows := 0
	for {
		cs, state, err := sc.Next(nil, &cells.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if len(cs) > 0 {
			rows++
		}
		if state == cells.NoMoreRows {
			break
		}
	}
	if rows != acked {
		t.Errorf("%d rows stored, %d acknowledged", rows, acked)
	}
}

func TestStopping(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{})
	tab := h.create("t", oneFamily(), nil)
	if _, err := c.Call("Get", getOf(tab.regions[0], "a"), nil); err != nil {
		t.Fatal(err)
	}
	if err := h.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if h.Alive() {
		t.Error("alive after Stop")
	}
	if _, err := c.Call("Get", getOf(tab.regions[0], "a"), nil); err == nil {
		t.Error("answered after Stop")
	}
}

// TestGetVersions: cells go into the block only for clients from 1.3 on.
func TestGetVersions(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil)
	r := tab.regions[0]
	if _, err := h.dial(rpctest.Options{}).Call("Mutate", putOf(r, "a", "1"), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		o      rpctest.Options
		inline bool
	}{
		{rpctest.Options{}, false}, {rpctest.Options{Major: 1, Minor: 3}, false}, {rpctest.Options{Major: 1, Minor: 2}, true},
		{rpctest.Options{NoVersion: true}, true}, {rpctest.Options{NoCodec: true}, true},
	} {
		var out pb.GetResponse
		got, err := h.dial(tt.o).Call("Get", getOf(r, "a"), &out)
		if err != nil {
			t.Fatal(err)
		}
		if inline := len(out.GetResult().GetCell()) == 1 && len(got) == 0; inline != tt.inline {
			t.Errorf("%+v: inline %v, want %v", tt.o, inline, tt.inline)
		}
		if !tt.inline && (len(got) != 1 || out.GetResult().GetAssociatedCellCount() != 1) {
			t.Errorf("%+v: %v %v", tt.o, got, &out)
		}
	}
	// A scan without a codec has its results inside the message.
	var out pb.ScanResponse
	_, err := h.dial(rpctest.Options{NoCodec: true}).Call("Scan", &pb.ScanRequest{Region: specifier(r), Scan: &pb.Scan{}, NumberOfRows: new(uint32(5)), CloseScanner: new(true)}, &out)
	if err != nil || len(out.Results) != 1 || string(out.Results[0].Cell[0].Value) != "1" || len(out.CellsPerResult) != 0 {
		t.Errorf("scan without codec: %v, %v", &out, err)
	}
}

func TestMultiResultTooLarge(t *testing.T) {
	h := newHarness(t, func(c *regionserver.Config) { c.MaxResultBytes = 2500 })
	tab := h.create("t", oneFamily(), nil, "m")
	c := h.dial(rpctest.Options{})
	for _, row := range []string{"a", "b", "c", "d", "n"} {
		r := tab.regionOf([]byte(row))
		if _, err := c.Call("Mutate", putOf(r, row, strings.Repeat("v", 1000)), nil); err != nil {
			t.Fatal(err)
		}
	}
	in := &pb.MultiRequest{}
	for i, rows := range [][]string{{"a", "b", "c", "d"}, {"n"}} {
		ra := &pb.RegionAction{Region: specifier(tab.regions[i])}
		for k, row := range rows {
			ra.Action = append(ra.Action, &pb.Action{Index: new(uint32(k)), Get: &pb.Get{Row: []byte(row)}})
		}
		in.RegionAction = append(in.RegionAction, ra)
	}
	var out pb.MultiResponse
	got, err := c.Call("Multi", in, &out)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 {
		t.Errorf("%d cells, want those of three rows", len(got))
	}
	for i, want := range []string{"", "", "", "MultiActionResultTooLarge"} {
		x := out.RegionActionResult[0].ResultOrException[i].Exception
		if (x == nil) != (want == "") || x != nil && wire.ParseNamed(x).Short() != want {
			t.Errorf("action %d: %v, want %q", i, x, want)
		}
	}
	if x := out.RegionActionResult[1].ResultOrException[0].Exception; x == nil {
		t.Error("the second region's action passed the limit")
	}
	// A client that does not know the exception gets everything.
	got, err = h.dial(rpctest.Options{Major: 1, Minor: 1}).Call("Multi", in, &out)
	if err != nil || len(got) != 5 {
		t.Errorf("old client: %d cells, %v", len(got), err)
	}
}

// TestMultiCellOrder: the cells of a region action that fails as a whole are
// passed over, so that the next one gets its own.
func TestMultiCellOrder(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil, "m")
	c := h.dial(rpctest.Options{})
	action := func(spec *pb.RegionSpecifier, atomic bool, rows ...string) *pb.RegionAction {
		ra := &pb.RegionAction{Region: spec, Atomic: &atomic}
		for i, row := range rows {
			ra.Action = append(ra.Action, &pb.Action{Index: new(uint32(i)), Mutation: &pb.MutationProto{Row: []byte(row), MutateType: pb.MutationProto_PUT.Enum(), AssociatedCellCount: new(int32(1))}})
		}
		return ra
	}
	cell := func(row string) cells.Cell {
		return cells.Cell{Row: []byte(row), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 5, Type: cells.Put, Value: []byte("of " + row)}
	}
	in := &pb.MultiRequest{RegionAction: []*pb.RegionAction{
		action(named([]byte("t,,1.00000000000000000000000000000000.")), false, "x1", "x2"),
		action(specifier(tab.regions[0]), true, "z9"), // wrong region
		action(specifier(tab.regions[0]), false, "a"),
		action(specifier(tab.regions[1]), true, "n", "n"),
	}}
	var out pb.MultiResponse
	if _, err := c.Call("Multi", in, &out, cell("x1"), cell("x2"), cell("z9"), cell("a"), cell("n"), cell("n")); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"NotServingRegionException", "WrongRegionException", "", ""} {
		got := ""
		if x := out.RegionActionResult[i].Exception; x != nil {
			got = wire.ParseNamed(x).Short()
		}
		if got != want {
			t.Errorf("region action %d: %q, want %q", i, got, want)
		}
	}
	for row, r := range map[string]*host.Region{"a": tab.regions[0], "n": tab.regions[1]} {
		got, err := c.Call("Get", getOf(r, row), nil)
		if err != nil || len(got) != 1 || string(got[0].Value) != "of "+row {
			t.Errorf("row %s: %v, %v", row, got, err)
		}
	}
}

func TestExecRefused(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil)
	c := h.dial(rpctest.Options{})
	exec := func(service, method string, body []byte) *pb.CoprocessorServiceRequest {
		return &pb.CoprocessorServiceRequest{Region: specifier(tab.regions[0]), Call: &pb.CoprocessorServiceCall{Row: []byte("a"), ServiceName: &service, MethodName: &method, Request: body}}
	}
	for _, tt := range []struct {
		method string
		in     wire.Marshaler
		class  string
		dnr    bool
	}{
		{"ExecService", exec("AccessControlService", "Grant", []byte{}), "UnknownProtocolException", true},
		{"ExecService", exec("AggregateService", "Nothing", []byte{}), "UnknownProtocolException", true},
		{"ExecService", exec("MultiRowMutationService", "Nothing", []byte{}), "UnknownProtocolException", true},
		{"ExecService", exec("MultiRowMutationService", "MutateRows", []byte{0xff}), "IOException", false},
		{"ExecRegionServerService", exec("X", "Y", []byte{}), "UnknownProtocolException", true},
	} {
		_, err := c.Call(tt.method, tt.in, nil)
		if x := rpctest.Remote(err); x == nil || x.Short() != tt.class || x.DoNotRetry != tt.dnr {
			t.Errorf("%s %v: %v, want %s", tt.method, tt.in, err, tt.class)
		}
	}
}

func TestAdmin(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("ns:t", oneFamily(), nil, "m")
	other := h.create("u", oneFamily(), nil)
	c := h.dial(rpctest.Options{Service: "AdminService"})
	data := h.dial(rpctest.Options{})
	r := tab.regions[0]
	for i := range 50 {
		if _, err := data.Call("Mutate", putOf(r, fmt.Sprintf("a%02d", i), "v"), nil); err != nil {
			t.Fatal(err)
		}
	}
	call := func(method string, in wire.Marshaler, out wire.Unmarshaler) {
		t.Helper()
		if _, err := c.Call(method, in, out); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	encoded := &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(r.Encoded)}

	var info pb.GetRegionInfoResponse
	// HBase takes an encoded name for a full one here, too.
	if _, err := c.Call("GetRegionInfo", &pb.GetRegionInfoRequest{Region: encoded}, &info); rpctest.Remote(err).Short() != "NotServingRegionException" {
		t.Errorf("GetRegionInfo by encoded name: %v", err)
	}
	call("GetRegionInfo", &pb.GetRegionInfoRequest{Region: specifier(r), CompactionState: new(true), BestSplitRow: new(true)}, &info)
	if got := meta.RegionFromProto(info.GetRegionInfo()); got.EncodedName() != r.Encoded || !info.GetSplittable() || info.GetCompactionState() != pb.GetRegionInfoResponse_NONE {
		t.Errorf("GetRegionInfo: %v", &info)
	}
	if row := string(info.GetBestSplitRow()); row <= "a00" || row > "a49" {
		t.Errorf("best split row %q", row)
	}
	var online pb.GetOnlineRegionResponse
	call("GetOnlineRegion", &pb.GetOnlineRegionRequest{}, &online)
	if len(online.RegionInfo) != 3 {
		t.Errorf("online: %v", &online)
	}
	var server pb.GetServerInfoResponse
	call("GetServerInfo", &pb.GetServerInfoRequest{}, &server)
	if meta.ServerFromProto(server.GetServerInfo().GetServerName()) != h.Name() {
		t.Errorf("server: %v", &server)
	}
	var flush pb.FlushRegionResponse
	call("FlushRegion", &pb.FlushRegionRequest{Region: specifier(r)}, &flush)
	if !flush.GetFlushed() || flush.GetLastFlushTime() == 0 {
		t.Errorf("flush: %v", &flush)
	}
	call("FlushRegion", &pb.FlushRegionRequest{Region: specifier(r), IfOlderThanTs: new(uint64(1))}, &flush)
	if flush.GetFlushed() {
		t.Error("flushed though younger than asked")
	}
	since := h.events.LastSeq()
	call("CompactRegion", &pb.CompactRegionRequest{Region: specifier(r), Major: new(true)}, nil)
	if _, err := h.events.Wait(t.Context(), eventlog.Filter{Kind: eventlog.Cluster, Method: "major compaction", Region: r.Encoded, Outcome: eventlog.OK}, since, 1); err != nil {
		t.Error(err)
	}
	var sw pb.CompactionSwitchResponse
	call("CompactionSwitch", &pb.CompactionSwitchRequest{Enabled: new(false)}, &sw)
	if !sw.GetPrevState() {
		t.Error("compactions were on")
	}
	call("CompactionSwitch", &pb.CompactionSwitchRequest{Enabled: new(true)}, &sw)
	if sw.GetPrevState() {
		t.Error("compactions were off")
	}
	var load pb.GetRegionLoadResponse
	call("GetRegionLoad", &pb.GetRegionLoadRequest{TableName: tab.name.ToProto()}, &load)
	if len(load.RegionLoads) != 2 {
		t.Errorf("load: %v", &load)
	}
	var writes uint64
	for _, l := range load.RegionLoads {
		writes += l.GetWriteRequestsCount()
	}
	if writes != 50 {
		t.Errorf("%d writes counted, want 50", writes)
	}
	call("GetRegionLoad", &pb.GetRegionLoadRequest{}, &load)
	call("StopServer", &pb.StopServerRequest{Reason: new("because")}, nil)
	if got := h.cluster.stopped; len(got) != 1 || got[0] != "because" {
		t.Errorf("stop: %v", got)
	}
	for method, in := range map[string]wire.Marshaler{
		"RollWALWriter": &pb.RollWALWriterRequest{}, "UpdateConfiguration": &pb.UpdateConfigurationRequest{},
		"ClearCompactionQueues": &pb.ClearCompactionQueuesRequest{}, "ClearRegionBlockCache": &pb.ClearRegionBlockCacheRequest{Region: []*pb.RegionSpecifier{specifier(r)}},
		"GetLogEntries": &pb.LogRequest{LogClassName: new("org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$SlowLogResponseRequest"), LogMessage: []byte{}}, "GetStoreFile": &pb.GetStoreFileRequest{Region: specifier(r)},
		"GetSlowLogResponses": &pb.SlowLogResponseRequest{}, "ClearSlowLogsResponses": &pb.ClearSlowLogResponseRequest{},
		"GetSpaceQuotaSnapshots": &pb.GetSpaceQuotaSnapshotsRequest{}, "GetCachedFilesList": &pb.GetCachedFilesListRequest{},
	} {
		call(method, in, nil)
	}
	for method, in := range map[string]wire.Marshaler{
		"GetRegionInfo": &pb.GetRegionInfoRequest{Region: named([]byte("x,,1.00000000000000000000000000000000."))},
		"FlushRegion":   &pb.FlushRegionRequest{Region: named([]byte("x"))},
	} {
		if _, err := c.Call(method, in, nil); class(t, err) != "NotServingRegionException" {
			t.Errorf("%s of an unknown region: %v", method, err)
		}
	}
	if _, err := c.Call("MergeRegions", &pb.GetServerInfoRequest{}, nil); class(t, err) != "DoNotRetryIOException" {
		t.Errorf("MergeRegions: %v", err)
	}
	l := h.Load(host.RegionLoads)
	if len(l.RegionLoads) != 3 || l.GetTotalNumberOfRequests() < 50 || l.GetReportEndTime() == 0 {
		t.Errorf("server load: %v", l)
	}
	_ = other
}

func TestRegistry(t *testing.T) {
	h := newHarness(t, nil)
	c := h.dial(rpctest.Options{Service: "ClientMetaService"})
	var id pb.GetClusterIdResponse
	var masters pb.GetMastersResponse
	var active pb.GetActiveMasterResponse
	var loc pb.GetMetaRegionLocationsResponse
	var nodes pb.GetBootstrapNodesResponse
	for _, x := range []struct {
		method string
		in     wire.Marshaler
		out    wire.Unmarshaler
	}{
		{"GetClusterId", &pb.GetClusterIdRequest{}, &id}, {"GetMasters", &pb.GetMastersRequest{}, &masters},
		{"GetActiveMaster", &pb.GetActiveMasterRequest{}, &active}, {"GetMetaRegionLocations", &pb.GetMetaRegionLocationsRequest{}, &loc},
		{"GetBootstrapNodes", &pb.GetBootstrapNodesRequest{}, &nodes},
	} {
		if _, err := c.Call(x.method, x.in, x.out); err != nil {
			t.Fatalf("%s: %v", x.method, err)
		}
	}
	if id.GetClusterId() != "test-cluster" || len(masters.MasterServers) != 2 || !masters.MasterServers[0].GetIsActive() || masters.MasterServers[1].GetIsActive() {
		t.Errorf("%v %v", &id, &masters)
	}
	if active.GetServerName().GetStartCode() != 5 || meta.ServerFromProto(nodes.ServerName[0]) != h.Name() {
		t.Errorf("%v %v", &active, &nodes)
	}
	if l := loc.MetaLocations; len(l) != 1 || meta.ServerFromProto(l[0].ServerName) != h.Name() || l[0].GetSeqNum() != 9 {
		t.Errorf("%v", &loc)
	} else if region := meta.RegionFromProto(l[0].RegionInfo); region.EncodedName() != meta.MetaEncodedName {
		t.Errorf("meta is %s", region.EncodedName())
	}
}

func TestEventsOfRegionCalls(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil)
	r := tab.regions[0]
	c := h.dial(rpctest.Options{User: "ann"})
	c.Call("Mutate", putOf(r, "a", "1"), nil)
	c.Call("Get", getOf(r, "a"), nil)
	c.Call("Get", &pb.GetRequest{Region: named([]byte("gone,,1.00000000000000000000000000000000.")), Get: &pb.Get{Row: []byte("a")}}, nil)
	var out pb.ScanResponse
	c.Call("Scan", &pb.ScanRequest{Region: specifier(r), Scan: &pb.Scan{}, NumberOfRows: new(uint32(0))}, &out)
	c.Call("Scan", &pb.ScanRequest{ScannerId: out.ScannerId, CloseScanner: new(true)}, nil)
	list, _ := h.events.Query(eventlog.Filter{Kind: eventlog.RPC}, 0, 0)
	want := []string{"Mutate t a put ok", "Get t a  ok", "Get gone a  NotServingRegionException", "Scan t  open ok", "Scan t  close ok"}
	if len(list) != len(want) {
		t.Fatalf("%d events", len(list))
	}
	for i, e := range list {
		if got := strings.Join([]string{e.Method, e.Table, string(e.Row), e.Detail, e.Outcome}, " "); got != want[i] {
			t.Errorf("event %d: %q, want %q", i, got, want[i])
		}
		if e.Table == "t" && e.Region != r.Encoded || e.User != "ann" {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	if n := h.events.Count(eventlog.Filter{Method: "Scan", Table: "t"}); n != 2 {
		t.Errorf("%d scans counted", n)
	}
}

func TestKillWithScanners(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil)
	c := h.dial(rpctest.Options{})
	for i := range 5 {
		c.Call("Mutate", putOf(tab.regions[0], fmt.Sprint(i), "v"), nil)
	}
	var out pb.ScanResponse
	if _, err := c.Call("Scan", &pb.ScanRequest{Region: specifier(tab.regions[0]), Scan: &pb.Scan{}, NumberOfRows: new(uint32(2))}, &out); err != nil {
		t.Fatal(err)
	}
	h.Kill()
	h.Wait()
	if _, err := c.Call("Get", getOf(tab.regions[0], "1"), nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("killed: %v", err)
	}
}
