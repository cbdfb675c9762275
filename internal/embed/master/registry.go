package master

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// registry adds ClientMetaService: what clients without ZooKeeper ask first.
// Unlike MasterService it answers while the master is starting.
func registry(c host.Cluster) *rpcserver.Service {
	s := rpcserver.NewService("ClientMetaService")
	ask(s, "GetClusterId", func(*pb.GetClusterIdRequest) *pb.GetClusterIdResponse {
		return &pb.GetClusterIdResponse{ClusterId: new(c.ClusterID())}
	})
	ask(s, "GetActiveMaster", func(*pb.GetActiveMasterRequest) *pb.GetActiveMasterResponse {
		r := &pb.GetActiveMasterResponse{}
		if n := c.ActiveMaster(); !n.IsZero() {
			r.ServerName = n.ToProto()
		}
		return r
	})
	ask(s, "GetMasters", func(*pb.GetMastersRequest) *pb.GetMastersResponse {
		r := &pb.GetMastersResponse{}
		for _, e := range c.Masters() {
			r.MasterServers = append(r.MasterServers, &pb.GetMastersResponseEntry{ServerName: e.Name.ToProto(), IsActive: new(e.Active)})
		}
		return r
	})
	ask(s, "GetMetaRegionLocations", func(*pb.GetMetaRegionLocationsRequest) *pb.GetMetaRegionLocationsResponse {
		r := &pb.GetMetaRegionLocationsResponse{}
		if n, seq := c.MetaLocation(); !n.IsZero() {
			info := meta.MetaRegion
			r.MetaLocations = append(r.MetaLocations, &pb.RegionLocation{RegionInfo: info.ToProto(), ServerName: n.ToProto(), SeqNum: new(seq)})
		}
		return r
	})
	ask(s, "GetNumLiveRS", func(*pb.GetNumLiveRSRequest) *pb.GetNumLiveRSResponse {
		return &pb.GetNumLiveRSResponse{NumRegionServers: new(int32(len(c.LiveServers())))}
	})
	ask(s, "GetBootstrapNodes", func(*pb.GetBootstrapNodesRequest) *pb.GetBootstrapNodesResponse {
		r := &pb.GetBootstrapNodesResponse{}
		for _, n := range c.LiveServers() {
			r.ServerName = append(r.ServerName, n.ToProto())
		}
		return r
	})
	return s
}

func ask[M any, P interface {
	*M
	wire.Unmarshaler
}, R wire.Marshaler](s *rpcserver.Service, name string, f func(P) R) {
	rpcserver.Handle(s, name, func(_ context.Context, _ *rpcserver.Call, q P) (R, error) { return f(q), nil })
}
