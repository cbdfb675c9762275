package master

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// execTimeout is the expected_timeout of ExecProcedure and Snapshot in
// milliseconds: clients divide it by their number of retries to find how long
// to sleep between two polls.
const execTimeout = 60_000

func (m *Master) addProcedures(s *rpcserver.Service) {
	answer(m, s, "getProcedureResult", func(_ context.Context, q *pb.GetProcedureResultRequest) (*pb.GetProcedureResultResponse, error) {
		return m.cfg.Procedures.result(q.GetProcId()), nil
	})
	answer(m, s, "GetProcedures", func(context.Context, *pb.GetProceduresRequest) (*pb.GetProceduresResponse, error) {
		return &pb.GetProceduresResponse{Procedure: m.cfg.Procedures.list()}, nil
	})
	answer(m, s, "ListProcedures", func(context.Context, *pb.ListProceduresRequest) (*pb.ListProceduresResponse, error) {
		return &pb.ListProceduresResponse{Procedure: m.cfg.Procedures.list()}, nil
	})
	answer(m, s, "GetLocks", m.getLocks)
	answer(m, s, "AbortProcedure", func(context.Context, *pb.AbortProcedureRequest) (*pb.AbortProcedureResponse, error) {
		// HBase's own procedures refuse an abort just the same.
		return &pb.AbortProcedureResponse{IsProcedureAborted: new(false)}, nil
	})
	exec := func(ctx context.Context, q *pb.ExecProcedureRequest) (*pb.ExecProcedureResponse, error) {
		p := q.GetProcedure()
		switch p.GetSignature() {
		case "flush-table-proc":
			n, err := parseTable(p.GetInstance())
			if err != nil {
				return nil, err
			}
			families := flushed(p.GetConfiguration())
			if err := m.flushable(n, families); err != nil {
				return nil, err
			}
			if err := m.flush(ctx, n, families); err != nil {
				return nil, err
			}
		case "rolllog-proc":
			// There is one log, and it rolls by itself.
		default:
			return nil, refuse(wire.ClassDoNotRetryIO, "The procedure is not registered: %s", p.GetSignature())
		}
		return &pb.ExecProcedureResponse{ExpectedTimeout: new(int64(execTimeout))}, nil
	}
	answer(m, s, "ExecProcedure", exec)
	answer(m, s, "ExecProcedureWithRet", exec)
	answer(m, s, "IsProcedureDone", func(_ context.Context, q *pb.IsProcedureDoneRequest) (*pb.IsProcedureDoneResponse, error) {
		// ExecProcedure answers when the work is done.
		return &pb.IsProcedureDoneResponse{Done: new(true), Snapshot: q.GetProcedure()}, nil
	})
}

func (m *Master) addRest(s *rpcserver.Service) {
	answer(m, s, "IsMasterRunning", func(context.Context, *pb.IsMasterRunningRequest) (*pb.IsMasterRunningResponse, error) {
		return &pb.IsMasterRunningResponse{IsMasterRunning: new(true)}, nil
	})
	answer(m, s, "GetClusterStatus", m.getClusterStatus)
	answer(m, s, "IsMasterInMaintenanceMode", func(context.Context, *pb.IsInMaintenanceModeRequest) (*pb.IsInMaintenanceModeResponse, error) {
		return &pb.IsInMaintenanceModeResponse{InMaintenanceMode: new(false)}, nil
	})
	answer(m, s, "getSecurityCapabilities", func(context.Context, *pb.SecurityCapabilitiesRequest) (*pb.SecurityCapabilitiesResponse, error) {
		return &pb.SecurityCapabilitiesResponse{Capabilities: []pb.SecurityCapabilitiesResponse_Capability{pb.SecurityCapabilitiesResponse_SIMPLE_AUTHENTICATION}}, nil
	})
	answer(m, s, "StopMaster", func(context.Context, *pb.StopMasterRequest) (*pb.StopMasterResponse, error) {
		m.cfg.StopMaster()
		return &pb.StopMasterResponse{}, nil
	})
	answer(m, s, "Shutdown", func(context.Context, *pb.ShutdownRequest) (*pb.ShutdownResponse, error) {
		m.cfg.Shutdown()
		return &pb.ShutdownResponse{}, nil
	})
	answer(m, s, "ClearDeadServers", func(_ context.Context, q *pb.ClearDeadServersRequest) (*pb.ClearDeadServersResponse, error) {
		dead, asked := m.cfg.Servers.Dead(), serversIn(q.GetServerName())
		m.cfg.Servers.ForgetDead(asked)
		// HBase gives back what it did not forget.
		r := &pb.ClearDeadServersResponse{}
		for _, n := range asked {
			if !slices.Contains(dead, n) {
				r.ServerName = append(r.ServerName, n.ToProto())
			}
		}
		return r, nil
	})
	answer(m, s, "ListDecommissionedRegionServers", func(context.Context, *pb.ListDecommissionedRegionServersRequest) (*pb.ListDecommissionedRegionServersResponse, error) {
		return &pb.ListDecommissionedRegionServersResponse{ServerName: m.decommissioned()}, nil
	})
	answer(m, s, "DecommissionRegionServers", func(ctx context.Context, q *pb.DecommissionRegionServersRequest) (*pb.DecommissionRegionServersResponse, error) {
		return &pb.DecommissionRegionServersResponse{}, m.decommission(ctx, addressesOf(q.GetServerName()), q.GetOffload())
	})
	answer(m, s, "RecommissionRegionServer", func(ctx context.Context, q *pb.RecommissionRegionServerRequest) (*pb.RecommissionRegionServerResponse, error) {
		return &pb.RecommissionRegionServerResponse{}, m.recommissionAndMove(ctx, q)
	})
	answer(m, s, "FlushMasterStore", func(ctx context.Context, _ *pb.FlushMasterStoreRequest) (*pb.FlushMasterStoreResponse, error) {
		return &pb.FlushMasterStoreResponse{}, m.cfg.Store.Flush(ctx)
	})
	answer(m, s, "GetLogEntries", m.getLogEntries)
}

// flushable checks the families that a flush is asked for by the old call.
func (m *Master) flushable(n meta.TableName, families [][]byte) error {
	t := m.state().Table(n)
	if t == nil {
		return nil
	}
	var unknown []string
	for _, f := range families {
		if catalog.FamilyOf(t.Schema, f) == nil {
			unknown = append(unknown, string(f))
		}
	}
	if len(unknown) > 0 {
		return refuse(wire.ClassNoSuchColumnFamily, "Column families [%s] don't exist in table %s", strings.Join(unknown, ", "), n)
	}
	return nil
}

// flushed are the families that a flush procedure names; nil means all.
func flushed(options []*pb.NameStringPair) (families [][]byte) {
	for _, o := range options {
		if o.GetName() != "family" {
			continue
		}
		for f := range strings.SplitSeq(o.GetValue(), ",") {
			if f != "" {
				families = append(families, []byte(f))
			}
		}
	}
	return families
}

// recommissionAndMove makes a server eligible again and moves the regions named
// to it.
func (m *Master) recommissionAndMove(ctx context.Context, q *pb.RecommissionRegionServerRequest) error {
	names := serversIn([]*pb.ServerName{q.GetServerName()})
	if err := m.recommission(names[0].Address()); err != nil {
		return err
	}
	for _, p := range q.GetRegion() {
		r, err := m.regionOf(p)
		if err != nil {
			m.log.Warn("unknown region", "region", cells.QuoteShort(p.GetValue(), 400))
			continue
		}
		if err := m.Move(ctx, r.Encoded, names[0]); err != nil {
			return err
		}
	}
	return nil
}

// getLogEntries answers what the balancer decided and rejected.
func (m *Master) getLogEntries(_ context.Context, q *pb.LogRequest) (*pb.LogEntry, error) {
	class := q.GetLogClassName()
	entry := func(name string, m wire.Marshaler) (*pb.LogEntry, error) {
		b := make([]byte, m.SizeVT())
		_, err := m.MarshalToSizedBufferVT(b)
		return &pb.LogEntry{LogClassName: new("org.apache.hadoop.hbase.shaded.protobuf.generated.MasterProtos$" + name), LogMessage: b}, err
	}
	switch {
	case hasSuffix(class, "BalancerDecisionsRequest"):
		in := &pb.BalancerDecisionsRequest{}
		if err := in.UnmarshalVT(q.GetLogMessage()); err != nil {
			return nil, retriable(wire.ClassIOException, "%s", err)
		}
		return entry("BalancerDecisionsResponse", m.balancerDecisions(in))
	case hasSuffix(class, "BalancerRejectionsRequest"):
		in := &pb.BalancerRejectionsRequest{}
		if err := in.UnmarshalVT(q.GetLogMessage()); err != nil {
			return nil, retriable(wire.ClassIOException, "%s", err)
		}
		return entry("BalancerRejectionsResponse", m.balancerRejections(in))
	}
	return nil, retriable(wire.ClassIOException, "%s", class) // Java's ClassNotFoundException
}
