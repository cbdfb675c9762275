package regionserver

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// ClientMetaService is the registry without ZooKeeper; region servers and
// masters serve it alike.
func ClientMetaService(cluster host.Cluster) *rpcserver.Service {
	svc := rpcserver.NewService("ClientMetaService")
	rpcserver.Handle(svc, "GetClusterId", func(context.Context, *rpcserver.Call, *pb.GetClusterIdRequest) (*pb.GetClusterIdResponse, error) {
		return &pb.GetClusterIdResponse{ClusterId: new(cluster.ClusterID())}, nil
	})
	rpcserver.Handle(svc, "GetActiveMaster", func(context.Context, *rpcserver.Call, *pb.GetActiveMasterRequest) (*pb.GetActiveMasterResponse, error) {
		out := &pb.GetActiveMasterResponse{}
		if m := cluster.ActiveMaster(); !m.IsZero() {
			out.ServerName = m.ToProto()
		}
		return out, nil
	})
	rpcserver.Handle(svc, "GetMasters", func(context.Context, *rpcserver.Call, *pb.GetMastersRequest) (*pb.GetMastersResponse, error) {
		out := &pb.GetMastersResponse{}
		for _, m := range cluster.Masters() {
			out.MasterServers = append(out.MasterServers, &pb.GetMastersResponseEntry{ServerName: m.Name.ToProto(), IsActive: new(m.Active)})
		}
		return out, nil
	})
	rpcserver.Handle(svc, "GetMetaRegionLocations", func(context.Context, *rpcserver.Call, *pb.GetMetaRegionLocationsRequest) (*pb.GetMetaRegionLocationsResponse, error) {
		out := &pb.GetMetaRegionLocationsResponse{}
		region := meta.MetaRegion
		loc := &pb.RegionLocation{RegionInfo: region.ToProto()}
		server, seq := cluster.MetaLocation()
		loc.SeqNum = new(seq)
		if !server.IsZero() {
			loc.ServerName = server.ToProto()
		}
		out.MetaLocations = append(out.MetaLocations, loc)
		return out, nil
	})
	rpcserver.Handle(svc, "GetBootstrapNodes", func(context.Context, *rpcserver.Call, *pb.GetBootstrapNodesRequest) (*pb.GetBootstrapNodesResponse, error) {
		out := &pb.GetBootstrapNodesResponse{}
		for _, n := range cluster.LiveServers() {
			out.ServerName = append(out.ServerName, n.ToProto())
		}
		return out, nil
	})
	rpcserver.Handle(svc, "GetNumLiveRS", func(context.Context, *rpcserver.Call, *pb.GetNumLiveRSRequest) (*pb.GetNumLiveRSResponse, error) {
		return &pb.GetNumLiveRSResponse{NumRegionServers: new(int32(len(cluster.LiveServers())))}, nil
	})
	return svc
}
