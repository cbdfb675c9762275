package regionserver

import (
	"runtime/metrics"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// load renders the region's metrics.
func (r *region) load() *pb.RegionLoad {
	l := &pb.RegionLoad{
		RegionSpecifier:           &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: r.Name},
		Stores:                    new(uint32(len(r.schema().Families))),
		Storefiles:                new(uint32(0)),
		MemStoreSize_MB:           new(uint32(0)),
		ReadRequestsCount:         new(r.reads.Load()),
		WriteRequestsCount:        new(r.writes.Load()),
		FilteredReadRequestsCount: new(r.filtered.Load()),
		CompleteSequenceId:        new(uint64(r.OpenSeq)),
		DataLocality:              new(float32(1)),
		LastMajorCompactionTs:     new(uint64(r.lastMajor.Load())),
		CompactionState:           pb.RegionLoad_CompactionState(r.compacting.Load()).Enum(),
	}
	if r.Virtual == nil {
		mb := uint32(r.Table.SizeBytes(r.Info.Start, r.Info.End) >> 20)
		l.StorefileSize_MB, l.StoreUncompressedSize_MB, l.RegionSize_MB = new(mb), new(mb), new(mb)
	}
	return l
}

// Load renders the server's metrics for ClusterStatus. Requests per second
// are those since the last Load, or since the start.
func (s *Server) Load(detail host.RegionDetail) *pb.ServerLoad {
	now := time.Now()
	total := s.requests.Load()
	s.loadMu.Lock()
	rate := uint64(0)
	if d := now.Sub(s.loadAt); d > 0 {
		rate = uint64(float64(total-s.loadTotal) / d.Seconds())
	}
	if now.Sub(s.loadAt) >= time.Second {
		s.loadAt, s.loadTotal = now, total
	}
	s.loadMu.Unlock()
	used, limit := heap()
	l := &pb.ServerLoad{
		NumberOfRequests:      new(rate),
		TotalNumberOfRequests: new(total),
		UsedHeap_MB:           new(used),
		MaxHeap_MB:            new(limit),
		ReportStartTime:       new(uint64(s.started.UnixMilli())),
		ReportEndTime:         new(uint64(now.UnixMilli())),
		InfoServerPort:        new(uint32(0)),
	}
	// Nothing is replicated, and nothing waits to be.
	l.ReplLoadSink = &pb.ReplicationLoadSink{
		AgeOfLastAppliedOp: new(uint64(0)), TimeStampsOfLastAppliedOp: new(uint64(s.started.UnixMilli())),
		TimestampStarted: new(uint64(s.started.UnixMilli())), TotalOpsProcessed: new(uint64(0)),
	}
	var writes uint64
	for _, r := range s.hosted() {
		writes += r.writes.Load()
		switch detail {
		case host.RegionLoads:
			l.RegionLoads = append(l.RegionLoads, r.load())
		case host.RegionNames:
			if !r.lazy {
				l.RegionLoads = append(l.RegionLoads, nameLoad(r.Name))
			}
		}
	}
	if s.cfg.Lazy != nil && detail != host.NoRegions {
		for _, r := range s.cfg.Lazy.Holding(s.cfg.Name) {
			name := r.Name()
			if detail == host.RegionNames || !s.holds(name) {
				l.RegionLoads = append(l.RegionLoads, nameLoad(name))
			}
		}
	}
	l.WriteRequestsCount = new(writes)
	return l
}

// nameLoad is the load of a region of which nothing else is told.
func nameLoad(name []byte) *pb.RegionLoad {
	return &pb.RegionLoad{RegionSpecifier: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: name}}
}

func (s *Server) holds(name []byte) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.names[string(name)] != nil
}

// heap is the process's heap and what it has of the system, in MB.
func heap() (used, limit uint32) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"}}
	metrics.Read(samples)
	mb := func(s metrics.Sample) uint32 {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0
		}
		return uint32(s.Value.Uint64() >> 20)
	}
	return mb(samples[0]), mb(samples[1])
}
