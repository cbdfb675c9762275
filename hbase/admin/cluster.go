package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// ClusterStatus is the state of a cluster as its master tells it.
type ClusterStatus struct {
	Version   string // HBase's
	ClusterID string
	Master    ServerName
	Backups   []ServerName
	Live      []ServerStatus // sorted by name
	Dead      []ServerName
	// BalancerOn is nil if the master does not tell.
	BalancerOn *bool
	// MasterInfoPort is the master's web port; -1 if unknown.
	MasterInfoPort int
	// InTransition are the regions on their way.
	InTransition []RegionTransition
	// Tables counts the regions of each table by state (HBase 2.2+), sorted by
	// name.
	Tables []TableRegions
	// Coprocessors are the master's.
	Coprocessors []string
	// Tasks are what the master is at, HBase 2.5 and later.
	Tasks []ServerTask
}

// StatusPart is a part of the cluster's state that can be asked for.
type StatusPart uint8

// The parts. StatusLive is the large one.
const (
	StatusVersion      = StatusPart(pb.Option_HBASE_VERSION)
	StatusClusterID    = StatusPart(pb.Option_CLUSTER_ID)
	StatusLive         = StatusPart(pb.Option_LIVE_SERVERS)
	StatusDead         = StatusPart(pb.Option_DEAD_SERVERS)
	StatusMaster       = StatusPart(pb.Option_MASTER)
	StatusBackups      = StatusPart(pb.Option_BACKUP_MASTERS)
	StatusCoprocessors = StatusPart(pb.Option_MASTER_COPROCESSORS)
	StatusInTransition = StatusPart(pb.Option_REGIONS_IN_TRANSITION)
	StatusBalancer     = StatusPart(pb.Option_BALANCER_ON)
	StatusInfoPort     = StatusPart(pb.Option_MASTER_INFO_PORT)
	StatusTables       = StatusPart(pb.Option_TABLE_TO_REGIONS_COUNT)
	StatusTasks        = StatusPart(pb.Option_TASKS)
)

// ServerStatus is a live region server and its load.
type ServerStatus struct {
	Server ServerName
	// Requests counts since the last report, TotalRequests since the start.
	Requests, TotalRequests uint64
	UsedHeapMB, MaxHeapMB   uint32
	InfoPort                uint32
	Reported                time.Time
	Regions                 []RegionLoad
	Coprocessors            []string
	// Tasks are what its task monitor shows, HBase 2.5 and later.
	Tasks []ServerTask
	// ReplicationSources ship its logs to peers; ReplicationSink, nil if it has
	// none, applies what peers send.
	ReplicationSources []ReplicationSource
	ReplicationSink    *ReplicationSink
	// Users counts requests by user and client, HBase 2.3 and later.
	Users []UserLoad
}

// ServerTask is something a server is at, or was at lately.
type ServerTask struct {
	Description, Status string
	// State is RUNNING, WAITING, COMPLETE or ABORTED.
	State string
	// Ended is zero while it runs.
	Started, Ended time.Time
}

// ReplicationSource is a queue of logs to be shipped to a peer cluster.
type ReplicationSource struct {
	Peer, Queue           string
	QueuedLogs            uint32
	Recovered, Running    bool
	Lag, AgeOfLastShipped time.Duration
	LastShipped, Next     time.Time
	EditsRead, OpsShipped uint64
}

// ReplicationSink is what a server applies for peer clusters.
type ReplicationSink struct {
	AgeOfLastApplied     time.Duration
	LastApplied, Started time.Time
	OpsApplied           uint64
}

// UserLoad counts one user's requests to a server.
type UserLoad struct {
	User    string
	Clients []ClientLoad
}

// ClientLoad counts the requests of one user from one host.
type ClientLoad struct {
	Host                         string
	Reads, Writes, FilteredReads uint64
}

// RegionLoad is what a server says of one region.
type RegionLoad struct {
	// Name is the full region name.
	Name                     []byte
	Stores, StoreFiles       uint32
	StoreFileMB, MemStoreMB  uint32
	ReadRequests             uint64
	WriteRequests            uint64
	CompactingKVs, Compacted uint64
	Locality                 float32

	// UncompressedMB is what the files would be without compression.
	UncompressedMB uint32
	// IndexKB counts the files' root indexes in memory; RootIndexKB, StaticIndexKB
	// and BloomKB their indexes and Bloom filters as a whole.
	IndexKB                        uint64
	RootIndexKB, StaticIndexKB     uint32
	BloomKB                        uint32
	FilteredReads, CoprocessorRuns uint64
	// References counts readers of the region's files, HBase 2.3 and later.
	References int32
	// LastMajorCompaction is zero if there was none.
	LastMajorCompaction time.Time
	Compaction          CompactionState
	// SizeMB and CachedRatio are there in HBase 2.6 and later.
	SizeMB      uint32
	CachedRatio float32
	// FlushedSeq is the highest sequence number that is in files, for the whole
	// region and by family.
	FlushedSeq uint64
	StoreSeqs  map[string]uint64
}

// RegionTransition is a region between two states.
type RegionTransition struct {
	Region Region
	State  string
	Since  time.Time
}

// TableRegions counts a table's regions by state.
type TableRegions struct {
	Table                                    TableName
	Open, Split, Closed, InTransition, Total uint32
}

// Regions counts the regions of all live servers.
func (s *ClusterStatus) Regions() int {
	n := 0
	for i := range s.Live {
		n += len(s.Live[i].Regions)
	}
	return n
}

// AverageLoad is the mean number of regions a live server has.
func (s *ClusterStatus) AverageLoad() float64 {
	if len(s.Live) == 0 {
		return 0
	}
	return float64(s.Regions()) / float64(len(s.Live))
}

// ClusterStatus asks the master for everything it knows. With many regions the
// answer is large (some hundred bytes a region); [Admin.RegionServers] is
// small.
func (a *Admin) ClusterStatus(ctx context.Context) (*ClusterStatus, error) {
	return a.status(ctx, "cluster status", nil)
}

// ClusterStatusOf asks for some parts only; the other fields stay zero. HBase
// before 2.0 sends everything whatever is asked for.
func (a *Admin) ClusterStatusOf(ctx context.Context, parts ...StatusPart) (*ClusterStatus, error) {
	options := make([]pb.Option, len(parts))
	for i, p := range parts {
		options[i] = pb.Option(p)
	}
	return a.status(ctx, "cluster status", options)
}

// RegionServers lists the live region servers, sorted by name.
func (a *Admin) RegionServers(ctx context.Context) ([]ServerName, error) {
	req := &pb.GetClusterStatusRequest{Options: []pb.Option{pb.Option_SERVERS_NAME}}
	var resp pb.GetClusterStatusResponse
	if err := a.master(ctx, "list region servers", "GetClusterStatus", req, &resp, session.Safe); err != nil {
		return nil, fault.Wrap("list region servers", "", err)
	}
	if names := resp.GetClusterStatus().GetServersName(); len(names) > 0 {
		return serverNames(names), nil
	}
	// Before 2.2 that option is unknown and the names come with the loads.
	s, err := a.status(ctx, "list region servers", []pb.Option{pb.Option_LIVE_SERVERS})
	if err != nil {
		return nil, err
	}
	out := make([]ServerName, len(s.Live))
	for i := range s.Live {
		out[i] = s.Live[i].Server
	}
	return out, nil
}

func (a *Admin) status(ctx context.Context, op string, options []pb.Option) (*ClusterStatus, error) {
	var resp pb.GetClusterStatusResponse
	req := &pb.GetClusterStatusRequest{Options: options}
	if err := a.master(ctx, op, "GetClusterStatus", req, &resp, session.Safe); err != nil {
		return nil, fault.Wrap(op, "", err)
	}
	return statusFromProto(resp.ClusterStatus), nil
}

func statusFromProto(p *pb.ClusterStatus) *ClusterStatus {
	s := &ClusterStatus{
		Version:        p.GetHbaseVersion().GetVersion(),
		ClusterID:      p.GetClusterId().GetClusterId(),
		Backups:        serverNames(p.GetBackupMasters()),
		Dead:           serverNames(p.GetDeadServers()),
		BalancerOn:     p.BalancerOn,
		MasterInfoPort: int(p.GetMasterInfoPort()),
		Tasks:          tasks(p.GetMasterTasks()),
	}
	for _, c := range p.GetMasterCoprocessors() {
		s.Coprocessors = append(s.Coprocessors, c.GetName())
	}
	if p.GetMaster() != nil {
		s.Master = meta.ServerFromProto(p.GetMaster())
	}
	for _, l := range p.GetLiveServers() {
		s.Live = append(s.Live, serverStatus(l))
	}
	slices.SortFunc(s.Live, func(a, b ServerStatus) int { return cmp.Compare(a.Server.String(), b.Server.String()) })
	for _, t := range p.GetRegionsInTransition() {
		st := t.GetRegionState()
		s.InTransition = append(s.InTransition, RegionTransition{
			Region: meta.RegionFromProto(st.GetRegionInfo()),
			State:  st.GetState().String(),
			Since:  time.UnixMilli(int64(st.GetStamp())),
		})
	}
	for _, t := range p.GetTableRegionStatesCount() {
		c := t.GetRegionStatesCount()
		s.Tables = append(s.Tables, TableRegions{
			Table: meta.TableFromProto(t.GetTableName()), Open: c.GetOpenRegions(), Split: c.GetSplitRegions(),
			Closed: c.GetClosedRegions(), InTransition: c.GetRegionsInTransition(), Total: c.GetTotalRegions(),
		})
	}
	slices.SortFunc(s.Tables, func(a, b TableRegions) int { return a.Table.Compare(b.Table) })
	return s
}

func serverStatus(p *pb.LiveServerInfo) ServerStatus {
	l := p.GetServerLoad()
	s := ServerStatus{
		Server:        meta.ServerFromProto(p.GetServer()),
		Requests:      l.GetNumberOfRequests(),
		TotalRequests: l.GetTotalNumberOfRequests(),
		UsedHeapMB:    l.GetUsedHeap_MB(), MaxHeapMB: l.GetMaxHeap_MB(),
		InfoPort: l.GetInfoServerPort(),
		Reported: time.UnixMilli(int64(l.GetReportEndTime())),
	}
	for _, r := range l.GetRegionLoads() {
		s.Regions = append(s.Regions, regionLoad(r))
	}
	for _, c := range l.GetCoprocessors() {
		s.Coprocessors = append(s.Coprocessors, c.GetName())
	}
	s.Tasks = tasks(l.GetTasks())
	for _, r := range l.GetReplLoadSource() {
		s.ReplicationSources = append(s.ReplicationSources, ReplicationSource{
			Peer: r.GetPeerID(), Queue: r.GetQueueId(), QueuedLogs: r.GetSizeOfLogQueue(), Recovered: r.GetRecovered(), Running: r.GetRunning(),
			Lag: millis(r.GetReplicationLag()), AgeOfLastShipped: millis(r.GetAgeOfLastShippedOp()), LastShipped: stampOrZero(int64(r.GetTimeStampOfLastShippedOp())),
			Next: stampOrZero(int64(r.GetTimeStampOfNextToReplicate())), EditsRead: r.GetEditsRead(), OpsShipped: r.GetOPsShipped(),
		})
	}
	if p := l.GetReplLoadSink(); p != nil {
		s.ReplicationSink = &ReplicationSink{
			AgeOfLastApplied: millis(p.GetAgeOfLastAppliedOp()), LastApplied: stampOrZero(int64(p.GetTimeStampsOfLastAppliedOp())),
			Started: stampOrZero(int64(p.GetTimestampStarted())), OpsApplied: p.GetTotalOpsProcessed(),
		}
	}
	for _, u := range l.GetUserLoads() {
		out := UserLoad{User: u.GetUserName()}
		for _, c := range u.GetClientMetrics() {
			out.Clients = append(out.Clients, ClientLoad{Host: c.GetHostName(), Reads: c.GetReadRequestsCount(), Writes: c.GetWriteRequestsCount(), FilteredReads: c.GetFilteredRequestsCount()})
		}
		s.Users = append(s.Users, out)
	}
	return s
}

func millis(n uint64) time.Duration { return time.Duration(min(n, 1<<52)) * time.Millisecond }

func tasks(ps []*pb.ServerTask) []ServerTask {
	var out []ServerTask
	for _, p := range ps {
		out = append(out, ServerTask{Description: p.GetDescription(), Status: p.GetStatus(), State: p.GetState().String(),
			Started: stampOrZero(int64(p.GetStartTime())), Ended: stampOrZero(int64(p.GetCompletionTime()))})
	}
	return out
}

func regionLoad(r *pb.RegionLoad) RegionLoad {
	l := RegionLoad{
		Name:   r.GetRegionSpecifier().GetValue(),
		Stores: r.GetStores(), StoreFiles: r.GetStorefiles(),
		StoreFileMB: r.GetStorefileSize_MB(), MemStoreMB: r.GetMemStoreSize_MB(), UncompressedMB: r.GetStoreUncompressedSize_MB(),
		ReadRequests: r.GetReadRequestsCount(), WriteRequests: r.GetWriteRequestsCount(),
		FilteredReads: r.GetFilteredReadRequestsCount(), CoprocessorRuns: r.GetCpRequestsCount(),
		CompactingKVs: r.GetTotalCompacting_KVs(), Compacted: r.GetCurrentCompacted_KVs(),
		Locality: r.GetDataLocality(),
		IndexKB:  r.GetStorefileIndexSize_KB(), RootIndexKB: r.GetRootIndexSize_KB(),
		StaticIndexKB: r.GetTotalStaticIndexSize_KB(), BloomKB: r.GetTotalStaticBloomSize_KB(),
		References: r.GetStoreRefCount(), LastMajorCompaction: stampOrZero(int64(r.GetLastMajorCompactionTs())),
		Compaction: CompactionState(r.GetCompactionState()), SizeMB: r.GetRegionSize_MB(), CachedRatio: r.GetCurrentRegionCachedRatio(),
		FlushedSeq: r.GetCompleteSequenceId(),
	}
	for _, c := range r.GetStoreCompleteSequenceId() {
		if l.StoreSeqs == nil {
			l.StoreSeqs = map[string]uint64{}
		}
		l.StoreSeqs[string(c.GetFamilyName())] = c.GetSequenceId()
	}
	return l
}

func serverNames(ps []*pb.ServerName) []ServerName {
	var out []ServerName
	for _, p := range ps {
		out = append(out, meta.ServerFromProto(p))
	}
	slices.SortFunc(out, func(a, b ServerName) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// SetBalancer switches the balancer and says what it was before.
func (a *Admin) SetBalancer(ctx context.Context, on bool) (was bool, err error) {
	var resp pb.SetBalancerRunningResponse
	err = a.slowMaster(ctx, "balancer switch", "SetBalancerRunning", &pb.SetBalancerRunningRequest{On: &on, Synchronous: new(true)}, &resp, session.Safe)
	return resp.GetPrevBalanceValue(), fault.Wrap("balancer switch", "", err)
}

// BalancerEnabled says whether the balancer is switched on.
func (a *Admin) BalancerEnabled(ctx context.Context) (bool, error) {
	var resp pb.IsBalancerEnabledResponse
	err := a.master(ctx, "balancer enabled", "IsBalancerEnabled", &pb.IsBalancerEnabledRequest{}, &resp, session.Safe)
	return resp.GetEnabled(), fault.Wrap("balancer enabled", "", err)
}

// SetSplits switches automatic and requested splits and says what it was
// before.
func (a *Admin) SetSplits(ctx context.Context, on bool) (was bool, err error) {
	return a.setSwitch(ctx, "split switch", pb.MasterSwitchType_SPLIT, on)
}

// SetMerges switches merges and says what it was before.
func (a *Admin) SetMerges(ctx context.Context, on bool) (was bool, err error) {
	return a.setSwitch(ctx, "merge switch", pb.MasterSwitchType_MERGE, on)
}

func (a *Admin) setSwitch(ctx context.Context, op string, which pb.MasterSwitchType, on bool) (bool, error) {
	var resp pb.SetSplitOrMergeEnabledResponse
	err := a.master(ctx, op, "SetSplitOrMergeEnabled", &pb.SetSplitOrMergeEnabledRequest{
		Enabled: &on, Synchronous: new(true), SwitchTypes: []pb.MasterSwitchType{which},
	}, &resp, session.Safe)
	return len(resp.PrevValue) > 0 && resp.PrevValue[0], fault.Wrap(op, "", err)
}
