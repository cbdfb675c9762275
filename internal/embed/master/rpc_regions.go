package master

import (
	"context"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// regionOf finds the region a request names, by its full or encoded name.
func (m *Master) regionOf(p *pb.RegionSpecifier) (*catalog.Region, error) {
	s, value := m.state(), p.GetValue()
	var r *catalog.Region
	if p.GetType() == pb.RegionSpecifier_ENCODED_REGION_NAME {
		r = s.Region(string(value))
	} else {
		r = s.RegionNamed(value)
	}
	if r == nil {
		return nil, unknownRegion(cells.QuoteShort(value, 400))
	}
	return r, nil
}

// expected refuses to open or close a region in a state from which HBase does
// not.
func expected(r *catalog.Region, states []pb.RegionState_State) error {
	if slices.Contains(states, r.State) {
		return nil
	}
	server := r.Server.String()
	if r.Server.IsZero() {
		server = "null"
	}
	return refuse(wire.ClassDoNotRetryRegion, "Unexpected state for state=%s, location=%s, table=%s, region=%s", r.State, server, r.Info.Table, r.Encoded)
}

func (m *Master) addRegions(s *rpcserver.Service) {
	answer(m, s, "MoveRegion", func(ctx context.Context, q *pb.MoveRegionRequest) (*pb.MoveRegionResponse, error) {
		// As in HBase, only the encoded name is understood here, whatever the
		// specifier's type says.
		r := m.state().Region(string(q.GetRegion().GetValue()))
		if r == nil {
			return nil, unknownRegion(cells.QuoteShort(q.GetRegion().GetValue(), 400))
		}
		var to meta.ServerName
		if q.DestServerName != nil {
			// A server that is not there means any.
			if n := meta.ServerFromProto(q.DestServerName); m.find(n) != nil {
				to = n
			}
		}
		if err := m.Move(ctx, r.Encoded, to); err != nil {
			return nil, err
		}
		return &pb.MoveRegionResponse{}, nil
	})
	answer(m, s, "AssignRegion", func(ctx context.Context, q *pb.AssignRegionRequest) (*pb.AssignRegionResponse, error) {
		r, err := m.regionOf(q.GetRegion())
		if err == nil {
			err = expected(r, closedStates)
		}
		if err == nil {
			err = m.Assign(ctx, r.Encoded)
		}
		return &pb.AssignRegionResponse{}, err
	})
	answer(m, s, "UnassignRegion", func(ctx context.Context, q *pb.UnassignRegionRequest) (*pb.UnassignRegionResponse, error) {
		r, err := m.regionOf(q.GetRegion())
		if err == nil {
			err = expected(r, openStates)
		}
		if err == nil {
			err = m.Unassign(ctx, r.Encoded)
		}
		return &pb.UnassignRegionResponse{}, err
	})
	answer(m, s, "OfflineRegion", func(ctx context.Context, q *pb.OfflineRegionRequest) (*pb.OfflineRegionResponse, error) {
		r, err := m.regionOf(q.GetRegion())
		if err == nil {
			err = m.Unassign(ctx, r.Encoded)
		}
		return &pb.OfflineRegionResponse{}, err
	})
	answer(m, s, "SplitRegion", withID(m.splitRegion, func(id *uint64) *pb.SplitTableRegionResponse { return &pb.SplitTableRegionResponse{ProcId: id} }))
	answer(m, s, "MergeTableRegions", withID(m.mergeRegions, func(id *uint64) *pb.MergeTableRegionsResponse { return &pb.MergeTableRegionsResponse{ProcId: id} }))
	answer(m, s, "DispatchMergingRegions", func(ctx context.Context, q *pb.DispatchMergingRegionsRequest) (*pb.DispatchMergingRegionsResponse, error) {
		_, err := m.mergeRegions(ctx, &pb.MergeTableRegionsRequest{Region: []*pb.RegionSpecifier{q.GetRegionA(), q.GetRegionB()}, Forcible: q.Forcible})
		return &pb.DispatchMergingRegionsResponse{}, err
	})
	answer(m, s, "Balance", func(ctx context.Context, q *pb.BalanceRequest) (*pb.BalanceResponse, error) {
		b, err := m.Balance(ctx, "", q.GetIgnoreRit(), q.GetDryRun())
		if err != nil {
			return nil, err
		}
		return &pb.BalanceResponse{BalancerRan: new(b.Ran), MovesCalculated: new(uint32(b.Planned)), MovesExecuted: new(uint32(b.Done))}, nil
	})
	answer(m, s, "getLastMajorCompactionTimestamp", func(context.Context, *pb.MajorCompactionTimestampRequest) (*pb.MajorCompactionTimestampResponse, error) {
		return &pb.MajorCompactionTimestampResponse{CompactionTimestamp: new(int64(0))}, nil
	})
	answer(m, s, "getLastMajorCompactionTimestampForRegion", func(context.Context, *pb.MajorCompactionTimestampForRegionRequest) (*pb.MajorCompactionTimestampResponse, error) {
		return &pb.MajorCompactionTimestampResponse{CompactionTimestamp: new(int64(0))}, nil
	})
}
