package admin

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func (a *Admin) flushRegion(ctx context.Context, op string, r Region, family string) error {
	return a.regionAdmin(ctx, op, "FlushRegion", r, func(s *pb.RegionSpecifier) wire.Marshaler {
		req := &pb.FlushRegionRequest{Region: s}
		if family != "" {
			req.Family = []byte(family)
		}
		return req
	}, &pb.FlushRegionResponse{})
}

func (a *Admin) compactRegion(ctx context.Context, op string, r Region, family string, major bool) error {
	return a.regionAdmin(ctx, op, "CompactRegion", r, func(s *pb.RegionSpecifier) wire.Marshaler {
		req := &pb.CompactRegionRequest{Region: s, Major: &major}
		if family != "" {
			req.Family = []byte(family)
		}
		return req
	}, &pb.CompactRegionResponse{})
}

func (a *Admin) compactionState(ctx context.Context, r Region) (CompactionState, error) {
	var resp pb.GetRegionInfoResponse
	err := a.regionAdmin(ctx, "compaction state", "GetRegionInfo", r, func(s *pb.RegionSpecifier) wire.Marshaler {
		return &pb.GetRegionInfoRequest{Region: s, CompactionState: new(true)}
	}, &resp)
	return CompactionState(resp.GetCompactionState()), err
}

// FlushFamily writes one family's memory in all regions of a table to files.
// HBase 2.4 and later; older ones flush all families.
func (a *Admin) FlushFamily(ctx context.Context, table, family string) error {
	return a.eachRegion(ctx, "flush", table, func(ctx context.Context, r Region) error {
		return a.flushRegion(ctx, "flush", r, family)
	})
}

// FlushRegion writes the memory of one region (full or encoded name), or of one
// family of it, to files; family "" means all.
func (a *Admin) FlushRegion(ctx context.Context, region, family string) error {
	const op = "flush region"
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return fault.Wrap(op, region, err)
	}
	return a.flushRegion(ctx, op, loc.Region, family)
}

// CompactRegion asks one region (full or encoded name) to merge some files of a
// family, or, with major set, to rewrite all of them; family "" means all. It
// does not wait: see [Admin.RegionCompactionState].
func (a *Admin) CompactRegion(ctx context.Context, region, family string, major bool) error {
	const op = "compact region"
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return fault.Wrap(op, region, err)
	}
	return a.compactRegion(ctx, op, loc.Region, family, major)
}

// RegionCompactionState says what compactions run in a region (full or encoded
// name).
func (a *Admin) RegionCompactionState(ctx context.Context, region string) (CompactionState, error) {
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return 0, fault.Wrap("compaction state", region, err)
	}
	return a.compactionState(ctx, loc.Region)
}

// RegionInfo is what a region says of itself.
type RegionInfo struct {
	Region     Region
	Compaction CompactionState
	// Splittable: it is no catalog region and has no references to a parent's
	// files. Mergeable likewise. HBase 2.0 and later.
	Splittable, Mergeable bool
	// BestSplitRow is where it would be split if nobody says where; nil if it
	// cannot be or holds too little.
	BestSplitRow []byte
}

// RegionInfo asks a region (full or encoded name) about itself, where it is
// open.
func (a *Admin) RegionInfo(ctx context.Context, region string) (RegionInfo, error) {
	const op = "region info"
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return RegionInfo{}, fault.Wrap(op, region, err)
	}
	var resp pb.GetRegionInfoResponse
	err = a.regionAdmin(ctx, op, "GetRegionInfo", loc.Region, func(s *pb.RegionSpecifier) wire.Marshaler {
		return &pb.GetRegionInfoRequest{Region: s, CompactionState: new(true), BestSplitRow: new(true)}
	}, &resp)
	if err != nil {
		return RegionInfo{}, err
	}
	return RegionInfo{
		Region: meta.RegionFromProto(resp.GetRegionInfo()), Compaction: CompactionState(resp.GetCompactionState()),
		Splittable: resp.GetSplittable(), Mergeable: resp.GetMergeable(), BestSplitRow: resp.GetBestSplitRow(),
	}, nil
}

// StoreFiles names the files of a region (full or encoded name), or of some of
// its families, sorted.
func (a *Admin) StoreFiles(ctx context.Context, region string, families ...string) ([]string, error) {
	const op = "list store files"
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return nil, fault.Wrap(op, region, err)
	}
	if len(families) == 0 {
		// The server answers for the families named, and none means none.
		d, err := a.Describe(ctx, loc.Region.Table.String())
		if err != nil {
			return nil, fault.Wrap(op, region, err)
		}
		for _, f := range d.Families {
			families = append(families, f.Name)
		}
	}
	var resp pb.GetStoreFileResponse
	err = a.regionAdmin(ctx, op, "GetStoreFile", loc.Region, func(s *pb.RegionSpecifier) wire.Marshaler {
		req := &pb.GetStoreFileRequest{Region: s}
		for _, f := range families {
			req.Family = append(req.Family, []byte(f))
		}
		return req
	}, &resp)
	files := resp.GetStoreFile()
	slices.Sort(files)
	return files, err
}

// LastMajorCompaction says when the region of a table that was longest not
// rewritten as a whole last was, as far as its files tell: zero if one of them
// never was, or the master has not heard from the servers yet.
func (a *Admin) LastMajorCompaction(ctx context.Context, table string) (time.Time, error) {
	const op = "last major compaction"
	t, err := parseTable(op, table)
	if err != nil {
		return time.Time{}, err
	}
	var resp pb.MajorCompactionTimestampResponse
	err = a.master(ctx, op, "getLastMajorCompactionTimestamp", &pb.MajorCompactionTimestampRequest{TableName: t.ToProto()}, &resp, session.Safe)
	return stampOrZero(resp.GetCompactionTimestamp()), fault.Wrap(op, ofTable(t), err)
}

// LastMajorCompactionOfRegion is LastMajorCompaction for one region (full or
// encoded name).
func (a *Admin) LastMajorCompactionOfRegion(ctx context.Context, region string) (time.Time, error) {
	const op = "last major compaction"
	spec, err := a.regionForMaster(ctx, op, region)
	if err != nil {
		return time.Time{}, err
	}
	var resp pb.MajorCompactionTimestampResponse
	err = a.master(ctx, op, "getLastMajorCompactionTimestampForRegion", &pb.MajorCompactionTimestampForRegionRequest{Region: spec}, &resp, session.Safe)
	return stampOrZero(resp.GetCompactionTimestamp()), fault.Wrap(op, region, err)
}

// stampOrZero reads a timestamp in ms; HBase's "never" is 0, and Long.MIN_VALUE
// or another negative number in places.
func stampOrZero(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// RegionMetrics asks a region server for the load of its regions, or of those
// of one table (table "" means all), sorted by name. What the master gives in
// [Admin.ClusterStatus] is some seconds old; this is of now. HBase 2.0 and
// later.
func (a *Admin) RegionMetrics(ctx context.Context, server ServerName, table string) ([]RegionLoad, error) {
	const op = "region metrics"
	req := &pb.GetRegionLoadRequest{}
	if table != "" {
		t, err := parseTable(op, table)
		if err != nil {
			return nil, err
		}
		req.TableName = t.ToProto()
	}
	var resp pb.GetRegionLoadResponse
	if err := a.server(ctx, op, server, "GetRegionLoad", req, &resp, session.Safe); err != nil {
		return nil, fault.Wrap(op, server.String(), fault.Since(err, "GetRegionLoad", "2.0 and later"))
	}
	out := make([]RegionLoad, len(resp.GetRegionLoads()))
	for i, p := range resp.GetRegionLoads() {
		out[i] = regionLoad(p)
	}
	slices.SortFunc(out, func(a, b RegionLoad) int { return meta.CompareRows(a.Name, b.Name) })
	return out, nil
}

// TableMetrics gives the load of a table's regions from the servers that have
// them, sorted by name. Regions that are not open are missing.
func (a *Admin) TableMetrics(ctx context.Context, table string) ([]RegionLoad, error) {
	const op = "table metrics"
	servers, err := a.serversOf(ctx, op, table)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var out []RegionLoad
	err = inParallel(servers, func(s serverRegions) error {
		loads, err := a.RegionMetrics(ctx, s.server, table)
		mu.Lock()
		defer mu.Unlock()
		out = append(out, loads...)
		return err
	})
	slices.SortFunc(out, func(a, b RegionLoad) int { return meta.CompareRows(a.Name, b.Name) })
	return out, err
}

// serverRegions are a table's regions on one server.
type serverRegions struct {
	server  ServerName
	regions []Region
}

// serversOf groups the regions of a table by the servers hbase:meta names.
func (a *Admin) serversOf(ctx context.Context, op, table string) ([]serverRegions, error) {
	locations, err := a.Regions(ctx, table)
	if err != nil {
		return nil, fault.Wrap(op, table, err)
	}
	var out []serverRegions
	at := map[ServerName]int{}
	for _, l := range locations {
		if l.Server.IsZero() {
			continue
		}
		i, ok := at[l.Server]
		if !ok {
			i = len(out)
			at[l.Server] = i
			out = append(out, serverRegions{server: l.Server})
		}
		out[i].regions = append(out[i].regions, l.Region)
	}
	return out, nil
}

// CacheEviction is what was dropped from block caches.
type CacheEviction struct {
	Blocks, Bytes int64
	// MaxCacheBytes is the size the caches of the servers asked may have.
	MaxCacheBytes int64
	// Failed are regions that could not be done, with the reason.
	Failed map[string]error
}

// String is as HBase's shell prints it.
func (c CacheEviction) String() string {
	return fmt.Sprintf("CacheEvictionStats{evictedBlocks=%d, maxCacheSize=%d, failedRegionsSize=%d}", c.Blocks, c.MaxCacheBytes, len(c.Failed))
}

// ClearBlockCache drops the blocks of a table's files from the block caches of
// the servers that have its regions. HBase 2.0 and later.
func (a *Admin) ClearBlockCache(ctx context.Context, table string) (CacheEviction, error) {
	const op = "clear block cache"
	servers, err := a.serversOf(ctx, op, table)
	if err != nil {
		return CacheEviction{}, err
	}
	var mu sync.Mutex
	var sum CacheEviction
	err = inParallel(servers, func(s serverRegions) error {
		req := &pb.ClearRegionBlockCacheRequest{}
		for i := range s.regions {
			req.Region = append(req.Region, regionByName(s.regions[i].Name()))
		}
		var resp pb.ClearRegionBlockCacheResponse
		if err := a.server(ctx, op, s.server, "ClearRegionBlockCache", req, &resp, session.Safe); err != nil {
			return fault.Wrap(op, s.server.String(), fault.Since(err, "ClearRegionBlockCache", "2.0 and later"))
		}
		mu.Lock()
		defer mu.Unlock()
		sum.Blocks += resp.GetStats().GetEvictedBlocks()
		sum.Bytes += resp.GetStats().GetBytesEvicted()
		sum.MaxCacheBytes += resp.GetStats().GetMaxCacheSize()
		for _, f := range resp.GetStats().GetException() {
			if sum.Failed == nil {
				sum.Failed = map[string]error{}
			}
			text := string(f.GetException().GetValue())
			sum.Failed[string(f.GetRegion().GetValue())] = wire.NewRemoteError(f.GetException().GetName(), text)
		}
		return nil
	})
	return sum, err
}

// ReplicaLocations gives the places of all replicas of all regions of a table,
// in order of start key and replica: the primary ones as [Admin.Regions] does,
// each followed by its secondaries as hbase:meta names them.
func (a *Admin) ReplicaLocations(ctx context.Context, table string) ([]RegionLocation, error) {
	const op = "list replicas"
	t, err := parseTable(op, table)
	if err != nil {
		return nil, err
	}
	ctx, cancel := bound(ctx, a.cfg.OperationTimeout)
	defer cancel()
	routes, err := a.core.Routes().Regions(ctx, t, nil, nil)
	if err != nil {
		return nil, fault.Wrap(op, ofTable(t), err)
	}
	var out []RegionLocation
	for _, r := range routes {
		out = append(out, locationOf(r))
		for _, p := range a.core.Routes().Replicas(r) {
			out = append(out, replicaLocation(p))
		}
	}
	return out, nil
}

func replicaLocation(p route.Replica) RegionLocation {
	l := RegionLocation{Region: p.Region(), OpenSeq: -1}
	if p.Server != nil {
		l.Server = p.Server.Name()
	}
	return l
}

// OfflineRegion makes the master take a region (full or encoded name) for
// closed without closing it anywhere. It is for repairs: where the region is
// still open it goes on being served.
func (a *Admin) OfflineRegion(ctx context.Context, region string) error {
	const op = "offline region"
	spec, err := a.regionForMaster(ctx, op, region)
	if err != nil {
		return err
	}
	err = a.slowMaster(ctx, op, "OfflineRegion", &pb.OfflineRegionRequest{Region: spec}, &pb.OfflineRegionResponse{}, session.Safe)
	return fault.Wrap(op, region, err)
}

// TruncateRegion drops all rows of one region (full or encoded name) and opens
// it again, without disabling its table. HBase 2.6 and later.
func (a *Admin) TruncateRegion(ctx context.Context, region string) error {
	const op = "truncate region"
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return fault.Wrap(op, region, err)
	}
	req := &pb.TruncateRegionRequest{RegionInfo: loc.Region.ToProto()}
	req.NonceGroup, req.Nonce = a.nonces()
	err = a.run(ctx, op, loc.Region.String(), "TruncateRegion", req, &pb.TruncateRegionResponse{})
	return fault.Wrap(op, region, fault.Since(err, "TruncateRegion", "2.6 and later"))
}
