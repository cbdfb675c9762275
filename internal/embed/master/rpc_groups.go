package master

import (
	"context"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// groupCall is one method of the group service with its messages closed over.
type groupCall func(ctx context.Context, request []byte) (wire.Marshaler, error)

// groupMethod makes a method known by both ways to call it: as a method of
// MasterService (3.x; not if native is false) and through ExecMasterService
// (up to 2.x).
func groupMethod[M any, P interface {
	*M
	wire.Unmarshaler
}, R wire.Marshaler](m *Master, s *rpcserver.Service, calls map[string]groupCall, name string, native bool, f func(context.Context, P) (R, error)) {
	if native {
		answer(m, s, name, f)
	}
	calls[name] = func(ctx context.Context, request []byte) (wire.Marshaler, error) {
		q := P(new(M))
		if err := q.UnmarshalVT(request); err != nil {
			return nil, refuse(wire.ClassDoNotRetryIO, "%s", err.Error())
		}
		return f(ctx, q)
	}
}

func (m *Master) addGroups(s *rpcserver.Service) {
	calls := map[string]groupCall{}
	info := func(name string) *pb.RSGroupInfo { return m.state().GroupInfo(name, m.liveAddresses()) }
	groupMethod(m, s, calls, "GetRSGroupInfo", true, func(_ context.Context, q *pb.GetRSGroupInfoRequest) (*pb.GetRSGroupInfoResponse, error) {
		return &pb.GetRSGroupInfoResponse{RSGroupInfo: info(q.GetRSGroupName())}, nil
	})
	groupMethod(m, s, calls, "GetRSGroupInfoOfTable", true, func(_ context.Context, q *pb.GetRSGroupInfoOfTableRequest) (*pb.GetRSGroupInfoOfTableResponse, error) {
		st := m.state()
		r := &pb.GetRSGroupInfoOfTableResponse{}
		if t := st.Table(meta.TableFromProto(q.GetTableName())); t != nil {
			r.RSGroupInfo = info(st.GroupOfTable(t))
		}
		return r, nil
	})
	groupMethod(m, s, calls, "GetRSGroupInfoOfServer", true, func(_ context.Context, q *pb.GetRSGroupInfoOfServerRequest) (*pb.GetRSGroupInfoOfServerResponse, error) {
		a := meta.ServerFromProto(q.GetServer()).Address()
		group := m.state().GroupOfServer(a)
		if group == catalog.DefaultGroup && !slices.Contains(m.liveAddresses(), a) {
			return &pb.GetRSGroupInfoOfServerResponse{}, nil
		}
		return &pb.GetRSGroupInfoOfServerResponse{RSGroupInfo: info(group)}, nil
	})
	groupMethod(m, s, calls, "ListRSGroupInfos", true, func(context.Context, *pb.ListRSGroupInfosRequest) (*pb.ListRSGroupInfosResponse, error) {
		r := &pb.ListRSGroupInfosResponse{RSGroupInfo: []*pb.RSGroupInfo{info(catalog.DefaultGroup)}}
		for g := range m.state().Groups() {
			r.RSGroupInfo = append(r.RSGroupInfo, info(g.Name))
		}
		return r, nil
	})
	groupMethod(m, s, calls, "AddRSGroup", true, func(ctx context.Context, q *pb.AddRSGroupRequest) (*pb.AddRSGroupResponse, error) {
		return &pb.AddRSGroupResponse{}, m.AddGroup(ctx, q.GetRSGroupName())
	})
	groupMethod(m, s, calls, "RemoveRSGroup", true, func(_ context.Context, q *pb.RemoveRSGroupRequest) (*pb.RemoveRSGroupResponse, error) {
		return &pb.RemoveRSGroupResponse{}, m.RemoveGroup(q.GetRSGroupName())
	})
	groupMethod(m, s, calls, "MoveServers", true, func(ctx context.Context, q *pb.MoveServersRequest) (*pb.MoveServersResponse, error) {
		if len(q.GetServers()) == 0 {
			return nil, constraint("The list of servers to move cannot be null or empty.")
		}
		return &pb.MoveServersResponse{}, m.MoveToGroup(ctx, q.GetTargetGroup(), addressesOf(q.GetServers()), nil)
	})
	groupMethod(m, s, calls, "MoveTables", false, func(ctx context.Context, q *pb.MoveTablesRequest) (*pb.MoveTablesResponse, error) {
		if len(q.GetTableName()) == 0 {
			return nil, constraint("The list of tables cannot be null or empty.")
		}
		return &pb.MoveTablesResponse{}, m.MoveToGroup(ctx, q.GetTargetGroup(), nil, tablesOf(q.GetTableName()))
	})
	groupMethod(m, s, calls, "MoveServersAndTables", false, func(ctx context.Context, q *pb.MoveServersAndTablesRequest) (*pb.MoveServersAndTablesResponse, error) {
		if len(q.GetServers()) == 0 || len(q.GetTableName()) == 0 {
			return nil, constraint("The list of servers or tables to move cannot be null or empty.")
		}
		return &pb.MoveServersAndTablesResponse{}, m.MoveToGroup(ctx, q.GetTargetGroup(), addressesOf(q.GetServers()), tablesOf(q.GetTableName()))
	})
	groupMethod(m, s, calls, "RemoveServers", true, func(_ context.Context, q *pb.RemoveServersRequest) (*pb.RemoveServersResponse, error) {
		return &pb.RemoveServersResponse{}, m.removeServers(addressesOf(q.GetServers()))
	})
	groupMethod(m, s, calls, "RenameRSGroup", true, func(_ context.Context, q *pb.RenameRSGroupRequest) (*pb.RenameRSGroupResponse, error) {
		return &pb.RenameRSGroupResponse{}, m.renameGroup(q.GetOldRsgroupName(), q.GetNewRsgroupName())
	})
	groupMethod(m, s, calls, "UpdateRSGroupConfig", true, func(_ context.Context, q *pb.UpdateRSGroupConfigRequest) (*pb.UpdateRSGroupConfigResponse, error) {
		return &pb.UpdateRSGroupConfigResponse{}, m.configureGroup(q.GetGroupName(), q.GetConfiguration())
	})
	groupMethod(m, s, calls, "BalanceRSGroup", true, func(ctx context.Context, q *pb.BalanceRSGroupRequest) (*pb.BalanceRSGroupResponse, error) {
		if !m.state().HasGroup(q.GetRSGroupName()) {
			return nil, constraint("RSGroup does not exist: %s", q.GetRSGroupName())
		}
		b, err := m.Balance(ctx, q.GetRSGroupName(), q.GetIgnoreRit(), q.GetDryRun())
		return &pb.BalanceRSGroupResponse{BalanceRan: new(b.Ran && b.Planned > 0), MovesCalculated: new(uint32(b.Planned)), MovesExecuted: new(uint32(b.Done))}, err
	})
	answer(m, s, "ListTablesInRSGroup", func(_ context.Context, q *pb.ListTablesInRSGroupRequest) (*pb.ListTablesInRSGroupResponse, error) {
		r := &pb.ListTablesInRSGroupResponse{}
		for _, n := range m.state().TablesOfGroup(q.GetGroupName()) {
			r.TableName = append(r.TableName, n.ToProto())
		}
		return r, nil
	})
	answer(m, s, "GetConfiguredNamespacesAndTablesInRSGroup", func(_ context.Context, q *pb.GetConfiguredNamespacesAndTablesInRSGroupRequest) (*pb.GetConfiguredNamespacesAndTablesInRSGroupResponse, error) {
		r, st := &pb.GetConfiguredNamespacesAndTablesInRSGroupResponse{}, m.state()
		for n := range st.Namespaces() {
			if n.Setting(catalog.GroupAttribute) == q.GetGroupName() {
				r.Namespace = append(r.Namespace, n.Name)
			}
		}
		for t := range st.Tables() {
			if v, _ := t.Attribute(catalog.GroupAttribute); v == q.GetGroupName() {
				r.TableName = append(r.TableName, t.Name.ToProto())
			}
		}
		return r, nil
	})
	answer(m, s, "ExecMasterService", func(ctx context.Context, q *pb.CoprocessorServiceRequest) (*pb.CoprocessorServiceResponse, error) {
		c := q.GetCall()
		if c.GetServiceName() != "RSGroupAdminService" {
			return nil, refuse(wire.ClassUnknownProtocol, "No registered Master Coprocessor Endpoint found for %s. Has it been enabled?", c.GetServiceName())
		}
		f := calls[c.GetMethodName()]
		if f == nil {
			return nil, refuse(wire.ClassUnknownProtocol, "Unknown method %s called on Master Coprocessor Endpoint %s", c.GetMethodName(), c.GetServiceName())
		}
		out, err := f(ctx, c.GetRequest())
		if err != nil {
			return nil, err
		}
		b := make([]byte, out.SizeVT())
		if _, err := out.MarshalToSizedBufferVT(b); err != nil {
			return nil, err
		}
		return &pb.CoprocessorServiceResponse{
			Region: q.GetRegion(),
			Value: &pb.NameBytesPair{
				Name:  new("org.apache.hadoop.hbase.protobuf.generated.RSGroupAdminProtos$" + c.GetMethodName() + "Response"),
				Value: b,
			},
		}, nil
	})
}
