package regionserver

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// addOrders adds what of AdminService HBase's master, old tools and other
// clusters' servers call. Here the master opens and closes regions another way;
// what would take a region from under it is answered as HBase answers where
// there is nothing to do, and refused else.
func (s *Server) addOrders(svc *rpcserver.Service) {
	type call = rpcserver.Call
	rpcserver.Handle(svc, "OpenRegion", func(_ context.Context, _ *call, in *pb.OpenRegionRequest) (*pb.OpenRegionResponse, error) {
		if err := s.meantFor(in.ServerStartCode); err != nil {
			return nil, err
		}
		out := &pb.OpenRegionResponse{}
		for _, open := range in.GetOpenInfo() {
			r := meta.RegionFromProto(open.GetRegion())
			state := pb.OpenRegionResponse_FAILED_OPENING
			if s.byName(r.Name()) != nil {
				state = pb.OpenRegionResponse_OPENED
			}
			out.OpeningState = append(out.OpeningState, state)
		}
		return out, nil
	})
	rpcserver.Handle(svc, "CloseRegion", func(ctx context.Context, _ *call, in *pb.CloseRegionRequest) (*pb.CloseRegionResponse, error) {
		if err := s.meantFor(in.ServerStartCode); err != nil {
			return nil, err
		}
		r, err := s.findAny(in.GetRegion())
		if err != nil {
			encoded := string(in.GetRegion().GetValue())
			if in.GetRegion().GetType() == pb.RegionSpecifier_REGION_NAME {
				encoded, _ = meta.EncodedNameOf(in.GetRegion().GetValue())
			}
			return nil, wire.NewRemoteError(wire.ClassNotServingRegion, "The region "+encoded+" is not online, and is not opening.")
		}
		if err := s.CloseRegion(ctx, r.Encoded, nil); err != nil {
			return nil, err
		}
		return &pb.CloseRegionResponse{Closed: new(true)}, nil
	})
	rpcserver.Handle(svc, "WarmupRegion", func(context.Context, *call, *pb.WarmupRegionRequest) (*pb.WarmupRegionResponse, error) {
		return &pb.WarmupRegionResponse{}, s.checkOpen()
	})
	rpcserver.Handle(svc, "UpdateFavoredNodes", func(_ context.Context, _ *call, in *pb.UpdateFavoredNodesRequest) (*pb.UpdateFavoredNodesResponse, error) {
		return &pb.UpdateFavoredNodesResponse{Response: new(uint32(len(in.GetUpdateInfo())))}, s.checkOpen()
	})
	rpcserver.Handle(svc, "ExecuteProcedures", func(_ context.Context, _ *call, in *pb.ExecuteProceduresRequest) (*pb.ExecuteProceduresResponse, error) {
		if len(in.GetOpenRegion())+len(in.GetCloseRegion())+len(in.GetProc()) > 0 {
			return nil, rpcserver.Unsupported("unsupported: procedures of another master")
		}
		return &pb.ExecuteProceduresResponse{}, s.checkOpen()
	})
	edits := func(_ context.Context, _ *call, in *pb.ReplicateWALEntryRequest) (*pb.ReplicateWALEntryResponse, error) {
		if len(in.GetEntry()) > 0 {
			return nil, rpcserver.Unsupported("unsupported: edits replicated from another cluster")
		}
		return &pb.ReplicateWALEntryResponse{}, s.checkOpen()
	}
	rpcserver.Handle(svc, "ReplicateWALEntry", edits)
	rpcserver.Handle(svc, "Replay", edits)
}

// meantFor refuses a call for an earlier or a later server at this address.
func (s *Server) meantFor(startCode *uint64) error {
	if err := s.checkOpen(); err != nil {
		return err
	}
	if startCode != nil && *startCode != s.cfg.Name.StartCode {
		return wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("This RPC was intended for a different server with startCode: %d, this server is: %s", *startCode, s.cfg.Name))
	}
	return nil
}

// clearCompactionQueues knows the queues HBase has; there is nothing in them.
func (s *Server) clearCompactionQueues(_ context.Context, _ *rpcserver.Call, in *pb.ClearCompactionQueuesRequest) (*pb.ClearCompactionQueuesResponse, error) {
	for _, q := range in.GetQueueName() {
		if q != "long" && q != "short" {
			return nil, wire.NewRemoteError(wire.ClassIOException, "Unknown queue name "+q)
		}
	}
	return &pb.ClearCompactionQueuesResponse{}, s.checkOpen()
}
