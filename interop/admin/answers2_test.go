package admin

import (
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// repairs are the calls of HbckService, the client's where it has them.
func (p *player) repairs() {
	const service = "HbckService"
	h := p.adm.Hbck()
	state := func(name string, s pb.TableState_State) {
		p.note(p.master, service, "SetTableStateInMeta", &pb.SetTableStateInMetaRequest{
			TableName: meta.TableName{Namespace: "default", Qualifier: name}.ToProto(), TableState: &pb.TableState{State: &s}}, &pb.GetTableStateResponse{})
	}
	state("nosuchtable", pb.TableState_DISABLED)
	state(table, pb.TableState_DISABLED)
	st, err := p.adm.TableState(p.ctx, table)
	p.write("table state", fmt.Sprint(st), err)
	before, err := h.SetTableState(p.ctx, table, admin.Enabled)
	p.write("client set table state", fmt.Sprint(before), err)

	region := func(spec *pb.RegionSpecifier, s pb.RegionState_State) {
		p.note(p.master, service, "SetRegionStateInMeta", &pb.SetRegionStateInMetaRequest{States: []*pb.RegionSpecifierAndState{{RegionSpecifier: spec, State: &s}}}, &pb.SetRegionStateInMetaResponse{})
	}
	p.locate()
	region(encoded(nowhere), pb.RegionState_CLOSED)
	region(p.encoded(0), pb.RegionState_OPEN)
	ids := func(what string, list []uint64, err error) {
		text := fmt.Sprintf("%d:", len(list))
		for _, id := range list {
			switch {
			case int64(id) == -1:
				text += " none"
			case id == 0:
				text += " 0"
			default:
				text += " a procedure"
				if err := p.await(id); err != nil {
					text += " that failed: " + err.Error()
				}
			}
		}
		p.write(what, text, err)
	}
	// HBase never ends an overriding Assigns of a region that is open.
	assigns := func(what string, override bool, specs ...*pb.RegionSpecifier) {
		var r pb.AssignsResponse
		err := p.call(p.master, service, "Assigns", &pb.AssignsRequest{Region: specs, Override: &override}, &r)
		ids("Assigns "+what, r.Pid, err)
	}
	unassigns := func(what string, override bool, specs ...*pb.RegionSpecifier) {
		var r pb.UnassignsResponse
		err := p.call(p.master, service, "Unassigns", &pb.UnassignsRequest{Region: specs, Override: &override}, &r)
		ids("Unassigns "+what, r.Pid, err)
	}
	regionState := func() { p.write("region state", p.regionState(0), nil) }
	assigns("an open region", false, p.encoded(0))
	assigns("no region", false, encoded(nowhere), p.region(1))
	unassigns("an open region", false, p.encoded(0))
	regionState()
	unassigns("a closed region", false, p.encoded(0))
	assigns("a closed region", false, p.encoded(0), p.encoded(1))
	regionState()
	region(p.encoded(0), pb.RegionState_CLOSED)
	regionState()
	was, err := h.SetRegionState(p.ctx, p.regions[0].Region.EncodedName(), "CLOSED")
	p.write("client set region state again", string(was), err)
	was, err = h.SetRegionState(p.ctx, p.regions[0].Region.EncodedName(), "OPEN")
	p.write("client set region state back", string(was), err)
	list, err := h.Assign(p.ctx, []string{p.regions[0].Region.EncodedName(), nowhere}, false)
	ids("client assign", list, err)

	bypass := func(what string, wait int64, id uint64) {
		var r pb.BypassProcedureResponse
		err := p.call(p.master, service, "BypassProcedure", &pb.BypassProcedureRequest{ProcId: []uint64{id}, WaitTime: new(uint64(wait)), Override: new(false), Recursive: new(false)}, &r)
		p.write("BypassProcedure "+what, show(&r), err)
	}
	bypass("that is none", 1, 1<<40)
	bypass("without a wait", 0, 1<<40)
	p.bypassWaiting(bypass)

	ran, err := h.RunChore(p.ctx)
	p.write("client run chore", fmt.Sprint(ran), err)
	p.write("client fix meta", "done", h.FixMeta(p.ctx))
	crashes, err := h.ScheduleCrashOfUnknownServers(p.ctx)
	ids("client unknown servers", crashes, err)
	crashes, err = h.ScheduleCrashes(p.ctx, hbase.ServerName{Host: "localhost", Port: 1, StartCode: 1})
	ids("client crash of no server", crashes, err)
	p.locate()
	p.note(p.master, "RegionServerStatusService", "GetLiveRegionServers", &pb.GetLiveRegionServersRequest{Count: new(uint32(1))}, &pb.GetLiveRegionServersResponse{})
	p.note(p.master, "RegionServerStatusService", "GetLastFlushedSequenceId", &pb.GetLastFlushedSequenceIdRequest{RegionName: []byte(nowhere)}, &pb.GetLastFlushedSequenceIdResponse{})
}

// regionState reads a region's state in hbase:meta.
func (p *player) regionState(i int) string {
	meta, err := p.client.Table("hbase:meta")
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := meta.Get(p.ctx, hbase.NewGet(p.regions[i].Region.String()).Column("info", "state"))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(r.Value("info", "state"))
}

func (p *player) await(id uint64) error {
	_, err := p.adm.Await(p.ctx, id)
	return err
}

// bypassWaiting bypasses a procedure that waits for a client's lock.
func (p *player) bypassWaiting(bypass func(string, int64, uint64)) {
	var l pb.LockResponse
	if err := p.call(p.master, "LockService", "RequestLock", &pb.LockRequest{LockType: pb.LockType_EXCLUSIVE.Enum(), TableName: tableName(), Description: new("for a bypass")}, &l); err != nil {
		p.t.Fatal(err)
	}
	beat := func(keep bool) bool {
		var r pb.LockHeartbeatResponse
		err := p.call(p.master, "LockService", "LockHeartbeat", &pb.LockHeartbeatRequest{ProcId: l.ProcId, KeepAlive: &keep}, &r)
		return err == nil && r.GetLockStatus() == pb.LockHeartbeatResponse_LOCKED
	}
	p.until("the table is locked", func() bool { return beat(true) })
	var r pb.UnassignsResponse
	if err := p.call(p.master, "HbckService", "Unassigns", &pb.UnassignsRequest{Region: []*pb.RegionSpecifier{p.encoded(1)}}, &r); err != nil || len(r.Pid) != 1 {
		p.t.Fatalf("%v, %v", r.Pid, err)
	}
	p.write("GetProcedures of a region's procedure that waits", p.procedure("TransitRegionStateProcedure"), nil)
	bypass("that waits for a lock", 10, r.Pid[0])
	beat(false)
	if err := p.await(r.Pid[0]); err != nil {
		p.write("the bypassed procedure", "", err)
	}
	bypass("that has ended", 10, r.Pid[0])
	p.write("GetProcedures of the bypassed one", p.procedure("TransitRegionStateProcedure"), nil)
	p.locate()
	p.write("the region of a bypassed procedure", p.regionState(1), nil)
}

// orders are what the master, or an old tool, tells a region server.
func (p *player) orders() {
	const service = "AdminService"
	p.locate()
	at := p.address(0)
	p.note(at, service, "CompactRegion", &pb.CompactRegionRequest{Region: p.encoded(0), Family: []byte("nope")}, &pb.CompactRegionResponse{})
	p.note(at, service, "GetStoreFile", &pb.GetStoreFileRequest{Region: p.encoded(0), Family: [][]byte{[]byte("nope")}}, &pb.GetStoreFileResponse{})
	p.note(at, service, "GetRegionInfo", &pb.GetRegionInfoRequest{Region: encoded(nowhere)}, &pb.GetRegionInfoResponse{})
	p.note(at, service, "CloseRegion", &pb.CloseRegionRequest{Region: encoded(nowhere)}, &pb.CloseRegionResponse{})
	p.note(at, service, "CloseRegion", &pb.CloseRegionRequest{Region: p.encoded(0), ServerStartCode: new(uint64(1))}, &pb.CloseRegionResponse{})
	p.note(at, service, "OpenRegion", &pb.OpenRegionRequest{OpenInfo: []*pb.OpenRegionRequest_RegionOpenInfo{{Region: p.info(0)}}}, &pb.OpenRegionResponse{})
	p.note(at, service, "OpenRegion", &pb.OpenRegionRequest{OpenInfo: []*pb.OpenRegionRequest_RegionOpenInfo{{Region: p.info(0)}}, ServerStartCode: new(uint64(1))}, &pb.OpenRegionResponse{})
	p.note(at, service, "WarmupRegion", &pb.WarmupRegionRequest{RegionInfo: p.info(0)}, &pb.WarmupRegionResponse{})
	p.note(at, service, "UpdateFavoredNodes", &pb.UpdateFavoredNodesRequest{UpdateInfo: []*pb.UpdateFavoredNodesRequest_RegionUpdateInfo{{Region: p.info(0)}}}, &pb.UpdateFavoredNodesResponse{})
	p.note(at, service, "ExecuteProcedures", &pb.ExecuteProceduresRequest{}, &pb.ExecuteProceduresResponse{})
	p.note(at, service, "ReplicateWALEntry", &pb.ReplicateWALEntryRequest{}, &pb.ReplicateWALEntryResponse{})
	p.note(at, service, "Replay", &pb.ReplicateWALEntryRequest{}, &pb.ReplicateWALEntryResponse{})
	p.note(at, service, "FlushRegion", &pb.FlushRegionRequest{Region: encoded(nowhere)}, &pb.FlushRegionResponse{})
	p.note(at, service, "ClearCompactionQueues", &pb.ClearCompactionQueuesRequest{QueueName: []string{"nope"}}, &pb.ClearCompactionQueuesResponse{})
	p.note(at, service, "UpdateConfiguration", &pb.UpdateConfigurationRequest{}, &pb.UpdateConfigurationResponse{})
	p.note(p.master, service, "UpdateConfiguration", &pb.UpdateConfigurationRequest{}, &pb.UpdateConfigurationResponse{})
	p.note(p.master, service, "GetServerInfo", &pb.GetServerInfoRequest{}, &pb.GetServerInfoResponse{})
	p.note(at, service, "GetSpaceQuotaSnapshots", &pb.GetSpaceQuotaSnapshotsRequest{}, &pb.GetSpaceQuotaSnapshotsResponse{})
}

func (p *player) logs() {
	at := p.address(0)
	slow := &pb.SlowLogResponseRequest{Limit: new(uint32(5))}
	p.note(at, "AdminService", "GetSlowLogResponses", slow, &pb.SlowLogResponses{})
	p.note(at, "AdminService", "GetLargeLogResponses", slow, &pb.SlowLogResponses{})
	p.note(at, "AdminService", "ClearSlowLogsResponses", &pb.ClearSlowLogResponseRequest{}, &pb.ClearSlowLogResponses{})
	message, err := slow.MarshalVT()
	if err != nil {
		p.t.Fatal(err)
	}
	const admins, masters = "org.apache.hadoop.hbase.shaded.protobuf.generated.AdminProtos$", "org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$"
	for _, class := range []string{admins + "SlowLogResponseRequest", admins + "NoSuchRequest", "NoSuchClass", masters + "BalancerDecisionsRequest"} {
		p.note(at, "AdminService", "GetLogEntries", &pb.LogRequest{LogClassName: &class, LogMessage: message}, &pb.LogEntry{})
	}
	for _, class := range []string{masters + "BalancerDecisionsRequest", masters + "BalancerRejectionsRequest", masters + "NoSuchRequest", "NoSuchClass"} {
		p.note(p.master, "MasterService", "GetLogEntries", &pb.LogRequest{LogClassName: &class, LogMessage: []byte{}}, &pb.LogEntry{})
	}
}

// decommission takes a server out of service, with what it holds, and back.
func (p *player) decommission() {
	p.locate()
	server := p.regions[0].Server
	here := func(n hbase.ServerName) bool {
		list, err := p.adm.Regions(p.ctx, table)
		if err != nil {
			return true
		}
		for _, r := range list {
			if r.Server == n {
				return true
			}
		}
		return false
	}
	p.write("decommission", "done", p.adm.DecommissionServers(p.ctx, []hbase.ServerName{server}, true))
	p.until("its regions are elsewhere", func() bool { return !here(server) })
	list, err := p.adm.DecommissionedServers(p.ctx)
	p.write("decommissioned", fmt.Sprint(len(list), len(list) == 1 && list[0] == server), err)
	p.locate()
	p.write("move to a decommissioned server", "done", p.adm.MoveRegion(p.ctx, p.regions[0].Region.EncodedName(), server))
	p.write("decommission again", "done", p.adm.DecommissionServers(p.ctx, []hbase.ServerName{server}, false))
	nobody := hbase.ServerName{Host: "localhost", Port: 1, StartCode: 1}
	p.write("decommission of nobody", "done", p.adm.DecommissionServers(p.ctx, []hbase.ServerName{nobody}, true))
	p.write("recommission of nobody", "done", p.adm.RecommissionServer(p.ctx, nobody))
	p.write("recommission", "done", p.adm.RecommissionServer(p.ctx, server, p.regions[0].Region.EncodedName()))
	p.until("its region is back", func() bool { return here(server) })
	list, err = p.adm.DecommissionedServers(p.ctx)
	p.write("decommissioned", fmt.Sprint(len(list)), err)
	p.write("recommission with no region", "done", p.adm.RecommissionServer(p.ctx, server, nowhere))
}
