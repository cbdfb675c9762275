package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestSlowLogIsMerged(t *testing.T) {
	var first ServerName
	payload := func(start int64) *pb.SlowLogPayload {
		return &pb.SlowLogPayload{
			StartTime: &start, ProcessingTime: new(int32(7)), QueueTime: new(int32(2)), ResponseSize: new(int64(99)), ClientAddress: new("c:1"), ServerClass: new("HRegionServer"),
			MethodName: new("Scan"), CallDetails: new("Scan(x)"), Param: new("p"), UserName: new("u"), RegionName: new("r"), Type: pb.SlowLogPayload_LARGE_LOG.Enum(),
			MultiGets: new(int32(1)), BlockBytesScanned: new(int64(5)), RequestAttribute: []*pb.NameBytesPair{{Name: new("a"), Value: []byte("b")}},
		}
	}
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		switch call.Method {
		case "GetClusterStatus":
			return &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{ServersName: []*pb.ServerName{{HostName: new("h1"), Port: new(uint32(1))}, {HostName: new("h2"), Port: new(uint32(1))}}}}, nil
		case "GetLogEntries":
			q := call.Param.(*pb.LogRequest)
			var req pb.SlowLogResponseRequest
			if err := req.UnmarshalVT(q.GetLogMessage()); err != nil || !strings.HasSuffix(q.GetLogClassName(), "AdminProtos$SlowLogResponseRequest") {
				t.Errorf("%v, %v", q, err)
			}
			if req.GetTableName() != "t" || req.GetUserName() != "" || req.RegionName != nil || req.GetLimit() != 10 || req.GetFilterByOperator() != pb.SlowLogResponseRequest_AND ||
				req.GetLogType() != pb.SlowLogResponseRequest_LARGE_LOG {
				t.Errorf("asked for %v", &req)
			}
			body, err := (&pb.SlowLogResponses{SlowLogPayloads: []*pb.SlowLogPayload{payload(1000), payload(3000)}}).MarshalVT()
			return &pb.LogEntry{LogClassName: new("x"), LogMessage: body}, err
		}
		return nil, errors.New(call.Method)
	})
	core.regions = true
	calls, err := a.SlowLog(t.Context(), SlowLogQuery{Large: true, Table: "t", MatchAll: true})
	if err != nil || len(calls) != 4 || calls[0].Start.UnixMilli() != 3000 || calls[1].Start.UnixMilli() != 3000 || calls[3].Start.UnixMilli() != 1000 {
		t.Fatalf("%+v, %v", calls, err)
	}
	if c := calls[0]; c.Processing != 7*time.Millisecond || c.Queued != 2*time.Millisecond || c.ResponseBytes != 99 || c.Method != "Scan" || !c.Large || c.Gets != 1 ||
		c.BlockBytesRead != 5 || len(c.RequestAttributes) != 1 || string(c.RequestAttributes[0].Value) != "b" || c.Server == first {
		t.Errorf("%+v", c)
	}
	if _, err := a.SlowLog(t.Context(), SlowLogQuery{Limit: -1}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%v", err)
	}
	// What is no answer is an error, not an empty list.
	b, core := scripted(t, func(*session.ServerCall) (wire.Marshaler, error) {
		return &pb.LogEntry{LogClassName: new("x"), LogMessage: []byte{0xff}}, nil
	})
	core.regions = true
	if calls, err := b.SlowLog(t.Context(), SlowLogQuery{Servers: []ServerName{{Host: "h", Port: 1}}}); err == nil {
		t.Errorf("%v", calls)
	}
}

// TestServersFailOneByOne: what fails on one server does not keep the others
// from it.
func TestServersFailOneByOne(t *testing.T) {
	servers := []ServerName{{Host: "a", Port: 1}, {Host: "b", Port: 1}, {Host: "c", Port: 1}}
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		return &pb.CompactionSwitchResponse{PrevState: new(true)}, nil
	})
	core.regions = true
	core.refuse = "b"
	was, err := a.SetCompactions(t.Context(), false, servers...)
	if err == nil || !strings.Contains(err.Error(), "compaction switch b,1,0: ") || len(was) != 2 || !was[servers[0]] || !was[servers[2]] {
		t.Errorf("%v, %v", was, err)
	}
}

func TestHbckAsksForOneRegionAtATime(t *testing.T) {
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		if call.Service != "HbckService" || call.Idempotency != session.Unsafe {
			t.Errorf("%+v", call)
		}
		switch q := call.Param.(type) {
		case *pb.AssignsRequest:
			if len(q.GetRegion()) != 1 || !q.GetOverride() {
				t.Errorf("%v", q)
			}
			return map[string]*pb.AssignsResponse{"known": {Pid: []uint64{5}}, "unknown": {}, "busy": {Pid: []uint64{noProcedure}}}[string(q.GetRegion()[0].GetValue())], nil
		case *pb.BypassProcedureRequest:
			if q.GetWaitTime() != 1 {
				t.Errorf("waits %d ms", q.GetWaitTime())
			}
			return &pb.BypassProcedureResponse{Bypassed: []bool{true}}, nil
		}
		return nil, errors.New(call.Method)
	})
	ids, err := a.Hbck().Assign(t.Context(), []string{"unknown", "known", "busy"}, true)
	if err != nil || !slices.Equal(ids, []uint64{0, 5, 0}) {
		t.Errorf("%v, %v", ids, err)
	}
	if ok, err := a.Hbck().BypassProcedures(t.Context(), []uint64{1}, BypassOptions{}); err != nil || !slices.Equal(ok, []bool{true}) {
		t.Errorf("%v, %v", ok, err)
	}
	core.calls = nil
	second := func(_ any, err error) error { return err }
	for what, err := range map[string]error{
		"assign":  second(a.Hbck().Assign(t.Context(), nil, false)),
		"bypass":  second(a.Hbck().BypassProcedures(t.Context(), nil, BypassOptions{})),
		"wait":    second(a.Hbck().BypassProcedures(t.Context(), []uint64{1}, BypassOptions{Wait: -1})),
		"crashes": second(a.Hbck().ScheduleCrashes(t.Context())),
		"region":  second(a.Hbck().SetRegionState(t.Context(), "r", "SLEEPING")),
		"table":   second(a.Hbck().SetTableState(t.Context(), "t", 9)),
	} {
		if !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(core.calls) != 0 {
		t.Errorf("calls %v", core.calls)
	}
}

func TestLoadsAreRead(t *testing.T) {
	a, _ := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		return &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{
			MasterCoprocessors: []*pb.Coprocessor{{Name: new("C")}},
			MasterTasks:        []*pb.ServerTask{{Description: new("d"), Status: new("s"), State: pb.ServerTask_WAITING.Enum(), StartTime: new(uint64(5))}},
			LiveServers: []*pb.LiveServerInfo{{Server: &pb.ServerName{HostName: new("h")}, ServerLoad: &pb.ServerLoad{
				Coprocessors:   []*pb.Coprocessor{{Name: new("R")}},
				ReplLoadSource: []*pb.ReplicationLoadSource{{PeerID: new("1"), AgeOfLastShippedOp: new(uint64(4)), SizeOfLogQueue: new(uint32(3)), TimeStampOfLastShippedOp: new(uint64(0)), ReplicationLag: new(uint64(9))}},
				ReplLoadSink:   &pb.ReplicationLoadSink{AgeOfLastAppliedOp: new(uint64(2)), TimeStampsOfLastAppliedOp: new(uint64(1000))},
				UserLoads:      []*pb.UserLoad{{UserName: new("u"), ClientMetrics: []*pb.ClientMetrics{{HostName: new("c"), ReadRequestsCount: new(uint64(8))}}}},
				RegionLoads: []*pb.RegionLoad{{RegionSpecifier: regionByName([]byte("t,,1.x.")), LastMajorCompactionTs: new(uint64(1000)), CompactionState: pb.RegionLoad_MAJOR.Enum(),
					StoreCompleteSequenceId: []*pb.StoreSequenceId{{FamilyName: []byte("f"), SequenceId: new(uint64(6))}}}},
			}}},
		}}, nil
	})
	st, err := a.ClusterStatus(t.Context())
	if err != nil || !slices.Equal(st.Coprocessors, []string{"C"}) || len(st.Tasks) != 1 || st.Tasks[0].State != "WAITING" || !st.Tasks[0].Ended.IsZero() || st.Tasks[0].Started.UnixMilli() != 5 {
		t.Fatalf("%+v, %v", st, err)
	}
	s := st.Live[0]
	if s.Coprocessors[0] != "R" || s.ReplicationSources[0].Lag != 9*time.Millisecond || !s.ReplicationSources[0].LastShipped.IsZero() || s.ReplicationSink.LastApplied.UnixMilli() != 1000 ||
		s.Users[0].User != "u" || s.Users[0].Clients[0].Reads != 8 {
		t.Errorf("%+v", s)
	}
	if r := s.Regions[0]; r.LastMajorCompaction.UnixMilli() != 1000 || r.Compaction != MajorCompacting || r.StoreSeqs["f"] != 6 {
		t.Errorf("%+v", r)
	}
}
