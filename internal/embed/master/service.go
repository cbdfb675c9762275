package master

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Services gives what the master's port serves: MasterService, HbckService,
// LockService, and the little of AdminService and RegionServerStatusService that
// clients ask a master for. Methods that are missing here
// are refused by the RPC server, naming them.
func (m *Master) Services() []*rpcserver.Service {
	s := rpcserver.NewService("MasterService")
	m.addTables(s)
	m.addRegions(s)
	m.addNamespaces(s)
	m.addProcedures(s)
	m.addSnapshots(s)
	m.addGroups(s)
	m.addSwitches(s)
	m.addQuotas(s)
	m.addPeers(s)
	m.addSecurity(s)
	m.addRest(s)
	a := rpcserver.NewService("AdminService")
	answer(m, a, "UpdateConfiguration", func(context.Context, *pb.UpdateConfigurationRequest) (*pb.UpdateConfigurationResponse, error) {
		return &pb.UpdateConfigurationResponse{}, nil
	})
	answer(m, a, "GetServerInfo", func(context.Context, *pb.GetServerInfoRequest) (*pb.GetServerInfoResponse, error) {
		return &pb.GetServerInfoResponse{ServerInfo: &pb.ServerInfo{ServerName: m.cfg.Name.ToProto()}}, nil
	})
	return []*rpcserver.Service{s, a, m.hbckService(), m.lockService(), m.regionServerStatusService()}
}

// answer adds a method to a service. While the master is told to look as if it
// were starting, it is refused.
func answer[M any, P interface {
	*M
	wire.Unmarshaler
}, R wire.Marshaler](m *Master, s *rpcserver.Service, name string, f func(context.Context, P) (R, error)) {
	rpcserver.Handle(s, name, func(ctx context.Context, c *rpcserver.Call, q P) (R, error) {
		if err := m.ready(); err != nil {
			var none R
			return none, err
		}
		return f(context.WithValue(ctx, userKey{}, c.Conn.User()), q)
	})
}

// userKey finds the user on whose behalf a call is worked on.
type userKey struct{}

// userOf gives the name of that user; what the cluster does by itself has that
// of the cluster.
func userOf(ctx context.Context) string {
	if u, ok := ctx.Value(userKey{}).(string); ok && u != "" {
		return u
	}
	return "holdfast"
}

// withID turns a function that submits a procedure into a method.
func withID[Q any, R any](f func(context.Context, Q) (uint64, error), wrap func(*uint64) R) func(context.Context, Q) (R, error) {
	return func(ctx context.Context, q Q) (R, error) {
		id, err := f(ctx, q)
		if err != nil {
			var none R
			return none, err
		}
		return wrap(&id), nil
	}
}

func (m *Master) addTables(s *rpcserver.Service) {
	answer(m, s, "CreateTable", withID(m.createTable, func(id *uint64) *pb.CreateTableResponse { return &pb.CreateTableResponse{ProcId: id} }))
	answer(m, s, "DeleteTable", withID(m.deleteTable, func(id *uint64) *pb.DeleteTableResponse { return &pb.DeleteTableResponse{ProcId: id} }))
	answer(m, s, "truncateTable", withID(m.truncateTable, func(id *uint64) *pb.TruncateTableResponse { return &pb.TruncateTableResponse{ProcId: id} }))
	answer(m, s, "EnableTable", withID(m.enableTable, func(id *uint64) *pb.EnableTableResponse { return &pb.EnableTableResponse{ProcId: id} }))
	answer(m, s, "DisableTable", withID(m.disableTable, func(id *uint64) *pb.DisableTableResponse { return &pb.DisableTableResponse{ProcId: id} }))
	answer(m, s, "ModifyTable", withID(m.modifyTable, func(id *uint64) *pb.ModifyTableResponse { return &pb.ModifyTableResponse{ProcId: id} }))
	answer(m, s, "AddColumn", withID(m.addColumn, func(id *uint64) *pb.AddColumnResponse { return &pb.AddColumnResponse{ProcId: id} }))
	answer(m, s, "ModifyColumn", withID(m.modifyColumn, func(id *uint64) *pb.ModifyColumnResponse { return &pb.ModifyColumnResponse{ProcId: id} }))
	answer(m, s, "DeleteColumn", withID(m.deleteColumn, func(id *uint64) *pb.DeleteColumnResponse { return &pb.DeleteColumnResponse{ProcId: id} }))
	answer(m, s, "ModifyTableStoreFileTracker", withID(m.modifyTableTracker, func(id *uint64) *pb.ModifyTableStoreFileTrackerResponse {
		return &pb.ModifyTableStoreFileTrackerResponse{ProcId: id}
	}))
	answer(m, s, "ModifyColumnStoreFileTracker", withID(m.modifyColumnTracker, func(id *uint64) *pb.ModifyColumnStoreFileTrackerResponse {
		return &pb.ModifyColumnStoreFileTrackerResponse{ProcId: id}
	}))
	answer(m, s, "TruncateRegion", withID(m.truncateRegion, func(id *uint64) *pb.TruncateRegionResponse { return &pb.TruncateRegionResponse{ProcId: id} }))
	answer(m, s, "FlushTable", withID(m.flushTable, func(id *uint64) *pb.FlushTableResponse { return &pb.FlushTableResponse{ProcId: id} }))
	answer(m, s, "GetTableDescriptors", m.getTableDescriptors)
	answer(m, s, "GetTableNames", m.getTableNames)
	answer(m, s, "GetTableState", m.getTableState)
	answer(m, s, "ListTableDescriptorsByState", m.listDescriptorsByState)
	answer(m, s, "ListTableNamesByState", m.listNamesByState)
	answer(m, s, "ListTableDescriptorsByNamespace", m.listDescriptorsByNamespace)
	answer(m, s, "ListTableNamesByNamespace", m.listNamesByNamespace)
	answer(m, s, "GetSchemaAlterStatus", m.getSchemaAlterStatus)
}

func (m *Master) addNamespaces(s *rpcserver.Service) {
	answer(m, s, "CreateNamespace", withID(m.createNamespace, func(id *uint64) *pb.CreateNamespaceResponse { return &pb.CreateNamespaceResponse{ProcId: id} }))
	answer(m, s, "ModifyNamespace", withID(m.modifyNamespace, func(id *uint64) *pb.ModifyNamespaceResponse { return &pb.ModifyNamespaceResponse{ProcId: id} }))
	answer(m, s, "DeleteNamespace", withID(m.deleteNamespace, func(id *uint64) *pb.DeleteNamespaceResponse { return &pb.DeleteNamespaceResponse{ProcId: id} }))
	answer(m, s, "GetNamespaceDescriptor", m.getNamespace)
	answer(m, s, "ListNamespaces", m.listNamespaces)
	answer(m, s, "ListNamespaceDescriptors", m.listNamespaceDescriptors)
}
