package regionserver

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// execService is ClientService.ExecService: a coprocessor endpoint of a
// region.
func (s *Server) execService(ctx context.Context, c *rpcserver.Call, in *pb.CoprocessorServiceRequest) (*pb.CoprocessorServiceResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	r, err := s.enter(in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	value, err := s.callService(ctx, r, in.GetCall())
	if err != nil {
		return nil, err
	}
	return &pb.CoprocessorServiceResponse{
		Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: r.Name},
		Value:  value,
	}, nil
}

// execServerService is ClientService.ExecRegionServerService; there are no
// endpoints of region servers here.
func (s *Server) execServerService(ctx context.Context, c *rpcserver.Call, in *pb.CoprocessorServiceRequest) (*pb.CoprocessorServiceResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	return nil, wire.NewRemoteError(wire.ClassUnknownProtocol, "No registered coprocessor executorService found for "+in.GetCall().GetServiceName())
}

// callService runs an endpoint on a region the caller is in.
func (s *Server) callService(ctx context.Context, r *region, call *pb.CoprocessorServiceCall) (*pb.NameBytesPair, error) {
	service := call.GetServiceName()
	if service == aggregateService {
		out, err := s.aggregate(ctx, r, call.GetMethodName(), call.GetRequest())
		return pair(aggregateAnswer, out, err)
	}
	if service != "MultiRowMutationService" {
		return nil, wire.NewRemoteError(wire.ClassUnknownProtocol, "No registered coprocessor service found for "+service+" in region "+r.name)
	}
	if m := call.GetMethodName(); m != "MutateRows" {
		return nil, wire.NewRemoteError(wire.ClassUnknownProtocol, "Unknown method "+m+" called on service hbase.pb."+service)
	}
	var in pb.MutateRowsRequest
	if err := in.UnmarshalVT(call.GetRequest()); err != nil {
		return nil, wire.NewRemoteError(wire.ClassIOException, "MutateRowsRequest: "+err.Error())
	}
	processed, err := s.mutateRows(ctx, r, &in)
	return pair("org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos$MutateRowsResponse",
		&pb.MutateRowsResponse{Processed: &processed}, err)
}

// pair is an endpoint's answer: the message and its Java class.
func pair(class string, m interface{ MarshalVT() ([]byte, error) }, err error) (*pb.NameBytesPair, error) {
	if err != nil {
		return nil, err
	}
	b, err := m.MarshalVT()
	if err != nil {
		return nil, err
	}
	return &pb.NameBytesPair{Name: &class, Value: b}, nil
}

// mutateRows is MultiRowMutationEndpoint: mutations of several rows of one
// region, all or nothing, under conditions.
func (s *Server) mutateRows(ctx context.Context, r *region, in *pb.MutateRowsRequest) (bool, error) {
	m := &multiCall{s: s, ctx: ctx, group: in.GetNonceGroup()}
	var actions []*pb.Action
	for _, p := range in.GetMutationRequest() {
		actions = append(actions, &pb.Action{Mutation: p})
		if err := checkKind(p); err != nil {
			return false, err
		}
		if p.GetAssociatedCellCount() > 0 {
			return false, wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("Cell count of %d but no cellScanner", p.GetAssociatedCellCount()))
		}
	}
	rows, err := m.rows(r, actions, make([][]cells.Cell, len(actions)))
	if err != nil {
		return false, err
	}
	for i, rm := range rows {
		if r.contains(rm.Row) {
			continue
		}
		text := "Requested row out of range '" + cells.QuoteShort(rm.Row, 512) + "'"
		if i == 0 {
			// The region may have moved: let the client look again.
			return false, wire.NewRemoteError(wire.ClassWrongRegion, text)
		}
		return false, wire.NewRemoteError(wire.ClassDoNotRetryIO, text)
	}
	conditions := make([]*store.Condition, 0, len(in.GetCondition()))
	for _, p := range in.GetCondition() {
		c, err := condition(p)
		if err != nil {
			return false, err
		}
		if err := r.checkRange(c.Row, "row lock"); err != nil {
			return false, err
		}
		conditions = append(conditions, c)
	}
	if err := r.writable(ctx); err != nil {
		return false, err
	}
	r.writes.Add(1)
	processed, err := r.Table.MutateRows(ctx, rows, conditions)
	return processed, r.explain(err)
}
