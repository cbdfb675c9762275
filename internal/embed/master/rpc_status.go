package master

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// regionServerStatusService is what of RegionServerStatusService others than
// region servers ask a master for; region servers of this cluster and their
// master talk another way.
func (m *Master) regionServerStatusService() *rpcserver.Service {
	s := rpcserver.NewService("RegionServerStatusService")
	answer(m, s, "GetLiveRegionServers", func(_ context.Context, q *pb.GetLiveRegionServersRequest) (*pb.GetLiveRegionServersResponse, error) {
		r := &pb.GetLiveRegionServersResponse{Total: new(uint32(0))}
		for _, rs := range m.cfg.Servers.Live() {
			*r.Total++
			if uint32(len(r.Server)) < q.GetCount() {
				r.Server = append(r.Server, rs.Name().ToProto())
			}
		}
		return r, nil
	})
	answer(m, s, "GetLastFlushedSequenceId", func(_ context.Context, q *pb.GetLastFlushedSequenceIdRequest) (*pb.GetLastFlushedSequenceIdResponse, error) {
		r := m.state().Region(string(q.GetRegionName()))
		if r == nil {
			r = m.state().RegionNamed(q.GetRegionName())
		}
		// As in HBase, of a region the master has not heard of it is -1.
		last := int64(meta.NoSeqNum)
		if r != nil {
			last = r.OpenSeq
		}
		return &pb.GetLastFlushedSequenceIdResponse{LastFlushedSequenceId: new(uint64(last))}, nil
	})
	return s
}
