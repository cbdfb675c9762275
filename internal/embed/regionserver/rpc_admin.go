package regionserver

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// adminService is AdminService: what operators ask of a region server. Orders
// that HBase's master gives go another way here: see addOrders.
func (s *Server) adminService() *rpcserver.Service {
	svc := rpcserver.NewService("AdminService")
	type call = rpcserver.Call
	rpcserver.Handle(svc, "GetRegionInfo", s.getRegionInfo)
	rpcserver.Handle(svc, "GetStoreFile", s.getStoreFile)
	rpcserver.Handle(svc, "GetOnlineRegion", s.getOnlineRegion)
	rpcserver.Handle(svc, "GetServerInfo", func(context.Context, *call, *pb.GetServerInfoRequest) (*pb.GetServerInfoResponse, error) {
		if err := s.checkOpen(); err != nil {
			return nil, err
		}
		return &pb.GetServerInfoResponse{ServerInfo: &pb.ServerInfo{ServerName: s.cfg.Name.ToProto(), WebuiPort: new(uint32(0))}}, nil
	})
	rpcserver.Handle(svc, "FlushRegion", s.flushRegion)
	rpcserver.Handle(svc, "CompactRegion", s.compactRegion)
	rpcserver.Handle(svc, "CompactionSwitch", func(_ context.Context, _ *call, in *pb.CompactionSwitchRequest) (*pb.CompactionSwitchResponse, error) {
		return &pb.CompactionSwitchResponse{PrevState: new(s.compactOn.Swap(in.GetEnabled()))}, nil
	})
	rpcserver.Handle(svc, "GetRegionLoad", s.getRegionLoad)
	rpcserver.Handle(svc, "StopServer", func(_ context.Context, _ *call, in *pb.StopServerRequest) (*pb.StopServerResponse, error) {
		s.cfg.Cluster.StopServer(s.cfg.Name, in.GetReason())
		return &pb.StopServerResponse{}, nil
	})

	// What there is nothing to do for, or nothing to tell of.
	rpcserver.Handle(svc, "RollWALWriter", func(context.Context, *call, *pb.RollWALWriterRequest) (*pb.RollWALWriterResponse, error) {
		return &pb.RollWALWriterResponse{}, nil
	})
	rpcserver.Handle(svc, "UpdateConfiguration", func(context.Context, *call, *pb.UpdateConfigurationRequest) (*pb.UpdateConfigurationResponse, error) {
		return &pb.UpdateConfigurationResponse{}, nil
	})
	rpcserver.Handle(svc, "ClearCompactionQueues", s.clearCompactionQueues)
	s.addOrders(svc)
	rpcserver.Handle(svc, "ClearRegionBlockCache", s.clearBlockCache)
	rpcserver.Handle(svc, "GetLogEntries", func(_ context.Context, _ *call, in *pb.LogRequest) (*pb.LogEntry, error) {
		const protos = "org.apache.hadoop.hbase.shaded.protobuf.generated."
		switch class := in.GetLogClassName(); class {
		case protos + "AdminProtos$SlowLogResponseRequest":
			q := &pb.SlowLogResponseRequest{}
			if err := q.UnmarshalVT(in.GetLogMessage()); err != nil {
				return nil, wire.NewRemoteError(wire.ClassIOException, err.Error())
			}
			text, err := s.slow.answer(q, q.GetLogType() == pb.SlowLogResponseRequest_LARGE_LOG).MarshalVT()
			if err != nil {
				return nil, err
			}
			return &pb.LogEntry{LogClassName: new(protos + "AdminProtos$SlowLogResponses"), LogMessage: text}, nil
		case protos + "MasterProtos$BalancerDecisionsRequest", protos + "MasterProtos$BalancerRejectionsRequest":
			return nil, wire.NewRemoteError(wire.ClassIOException, "Invalid request params")
		default:
			return nil, wire.NewRemoteError(wire.ClassIOException, class) // Java's ClassNotFoundException
		}
	})
	rpcserver.Handle(svc, "GetSlowLogResponses", func(_ context.Context, _ *call, in *pb.SlowLogResponseRequest) (*pb.SlowLogResponses, error) {
		return s.slow.answer(in, false), nil
	})
	rpcserver.Handle(svc, "GetLargeLogResponses", func(_ context.Context, _ *call, in *pb.SlowLogResponseRequest) (*pb.SlowLogResponses, error) {
		return s.slow.answer(in, true), nil
	})
	rpcserver.Handle(svc, "ClearSlowLogsResponses", func(context.Context, *call, *pb.ClearSlowLogResponseRequest) (*pb.ClearSlowLogResponses, error) {
		return &pb.ClearSlowLogResponses{IsCleaned: new(s.slow.clear())}, nil
	})
	rpcserver.Handle(svc, "GetSpaceQuotaSnapshots", func(context.Context, *call, *pb.GetSpaceQuotaSnapshotsRequest) (*pb.GetSpaceQuotaSnapshotsResponse, error) {
		out := &pb.GetSpaceQuotaSnapshotsResponse{}
		if s.cfg.Quotas != nil {
			out.Snapshots = s.cfg.Quotas.Spaces()
		}
		return out, nil
	})
	rpcserver.Handle(svc, "GetCachedFilesList", func(context.Context, *call, *pb.GetCachedFilesListRequest) (*pb.GetCachedFilesListResponse, error) {
		return &pb.GetCachedFilesListResponse{}, nil
	})
	return svc
}

// enterAny begins an admin call on a region. As in HBase, only the full name is
// understood here, whatever the specifier's type says.
func (s *Server) enterAny(c *rpcserver.Call, spec *pb.RegionSpecifier) (*region, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	r, err := s.enter(spec)
	if err != nil {
		return nil, err
	}
	c.Target.Table, c.Target.Region = r.table, r.Encoded
	return r, nil
}

func (s *Server) getRegionInfo(_ context.Context, c *rpcserver.Call, in *pb.GetRegionInfoRequest) (*pb.GetRegionInfoResponse, error) {
	r, err := s.enterAny(c, in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	ordinary := r.Virtual == nil
	out := &pb.GetRegionInfoResponse{RegionInfo: r.Info.ToProto(), Splittable: new(ordinary), Mergeable: new(ordinary)}
	if in.GetCompactionState() {
		out.CompactionState = pb.GetRegionInfoResponse_CompactionState(r.compacting.Load()).Enum()
	}
	if in.GetBestSplitRow() && ordinary {
		row, err := r.Table.MidRow(r.Info.Start, r.Info.End)
		if err != nil {
			return nil, err
		}
		if row != nil && string(row) != string(r.Info.Start) {
			out.BestSplitRow = row
		}
	}
	return out, nil
}

// getStoreFile names no files: a region has none of its own here.
func (s *Server) getStoreFile(_ context.Context, c *rpcserver.Call, in *pb.GetStoreFileRequest) (*pb.GetStoreFileResponse, error) {
	r, err := s.enterAny(c, in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	for _, family := range in.GetFamily() {
		if r.schema().Family(family) == nil {
			return nil, wire.NewRemoteError(wire.ClassIllegalArgumentIO, "No column family : "+string(family)+" available")
		}
	}
	return &pb.GetStoreFileResponse{}, nil
}

func (s *Server) getOnlineRegion(context.Context, *rpcserver.Call, *pb.GetOnlineRegionRequest) (*pb.GetOnlineRegionResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	out := &pb.GetOnlineRegionResponse{}
	for _, r := range s.hosted() {
		if !r.lazy {
			out.RegionInfo = append(out.RegionInfo, r.Info.ToProto())
		}
	}
	if s.cfg.Lazy != nil {
		for _, r := range s.cfg.Lazy.Holding(s.cfg.Name) {
			out.RegionInfo = append(out.RegionInfo, r.ToProto())
		}
	}
	return out, nil
}

func (s *Server) flushRegion(ctx context.Context, c *rpcserver.Call, in *pb.FlushRegionRequest) (*pb.FlushRegionResponse, error) {
	r, err := s.enterAny(c, in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	if in.Family != nil && r.schema().Family(in.GetFamily()) == nil {
		return nil, wire.NewRemoteError(wire.ClassNoSuchColumnFamily, "Column family "+string(in.GetFamily())+" does not exist in region "+r.name+" in table '"+r.table+"'")
	}
	out := &pb.FlushRegionResponse{Flushed: new(false), WroteFlushWalMarker: new(false)}
	if older := in.IfOlderThanTs; older == nil || uint64(r.lastFlush.Load()) < *older {
		if r.Virtual == nil {
			var families [][]byte
			if in.Family != nil {
				families = [][]byte{in.GetFamily()}
			}
			if err := r.Table.Flush(ctx, r.Info.Start, r.Info.End, families); err != nil {
				return nil, err
			}
		}
		r.lastFlush.Store(s.now())
		out.Flushed = new(true)
	}
	out.LastFlushTime = new(uint64(r.lastFlush.Load()))
	return out, nil
}

// compactRegion starts a compaction. A minor one has nothing to do: the store
// merges its files by itself, and drops nothing.
func (s *Server) compactRegion(_ context.Context, c *rpcserver.Call, in *pb.CompactRegionRequest) (*pb.CompactRegionResponse, error) {
	r, err := s.enterAny(c, in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	var families [][]byte
	if len(in.GetFamily()) > 0 {
		if r.schema().Family(in.GetFamily()) == nil {
			return nil, wire.NewRemoteError(wire.ClassNoSuchColumnFamily, "column family "+string(in.GetFamily())+" does not exist in region "+r.name)
		}
		families = [][]byte{in.GetFamily()}
	}
	if in.GetMajor() && r.Virtual == nil && s.compactOn.Load() && !spaceForbidsCompaction(s.space(r)) {
		s.compact(r, families)
	}
	return &pb.CompactRegionResponse{}, nil
}

// compact runs a major compaction in the background. The region may close
// meanwhile: the rows are the table's, so nothing is harmed.
func (s *Server) compact(r *region, families [][]byte) {
	s.mu.Lock()
	if s.stopping.Load() {
		s.mu.Unlock()
		return
	}
	s.background.Add(1)
	s.mu.Unlock()
	r.compacting.Store(int32(pb.GetRegionInfoResponse_MAJOR))
	go func() {
		defer s.background.Done()
		begin := time.Now()
		err := r.Table.MajorCompact(s.ctx, r.Info.Start, r.Info.End, families)
		r.compacting.Store(int32(pb.GetRegionInfoResponse_NONE))
		e := eventlog.Event{Server: s.cfg.Name.Address(), Method: "major compaction", Table: r.table, Region: r.Encoded, Latency: time.Since(begin), Outcome: eventlog.OK}
		if err != nil {
			s.log.Warn("major compaction", "region", r.name, "err", err)
			e.Outcome, e.Detail = "failed", err.Error()
		} else {
			r.lastMajor.Store(s.now())
		}
		s.cfg.Events.Cluster(e)
	}()
}

func (s *Server) getRegionLoad(_ context.Context, _ *rpcserver.Call, in *pb.GetRegionLoadRequest) (*pb.GetRegionLoadResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	out := &pb.GetRegionLoadResponse{}
	table := ""
	if in.TableName != nil {
		table = meta.TableFromProto(in.GetTableName()).String()
	}
	for _, r := range s.hosted() {
		if table == "" || table == r.table {
			out.RegionLoads = append(out.RegionLoads, r.load())
		}
	}
	return out, nil
}

func (s *Server) clearBlockCache(_ context.Context, c *rpcserver.Call, in *pb.ClearRegionBlockCacheRequest) (*pb.ClearRegionBlockCacheResponse, error) {
	stats := &pb.CacheEvictionStats{EvictedBlocks: new(int64(0)), MaxCacheSize: new(int64(0))}
	for _, spec := range in.GetRegion() {
		if _, err := s.find(spec); err != nil {
			stats.Exception = append(stats.Exception, &pb.RegionExceptionMessage{Region: spec, Exception: rpcserver.ToRemote(err).Named()})
		}
	}
	return &pb.ClearRegionBlockCacheResponse{Stats: stats}, nil
}
