package master

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// maxLoads bounds the region loads one GetClusterStatus carries: beyond that
// many regions in the cluster, they say nothing but the regions' names, and
// beyond maxNames, loads come without their regions. HBase sends them all; the
// names of 300,000 are some 30 MB per call.
const (
	maxLoads = 20_000
	maxNames = 400_000
)

// regionDetail is what a status says of regions.
func regionDetail(s *catalog.State) host.RegionDetail {
	switch n := s.RegionCount(); {
	case n <= maxLoads:
		return host.RegionLoads
	case n <= maxNames:
		return host.RegionNames
	}
	return host.NoRegions
}

func serversIn(list []*pb.ServerName) (out []meta.ServerName) {
	for _, p := range list {
		out = append(out, meta.ServerFromProto(p))
	}
	return out
}

func hasSuffix(class, suffix string) bool { return strings.HasSuffix(class, suffix) }

func parseTable(text string) (meta.TableName, error) {
	ns, q, ok := strings.Cut(text, ":")
	if !ok {
		ns, q = meta.DefaultNamespace, text
	}
	return catalog.CheckTableName(&pb.TableName{Namespace: []byte(ns), Qualifier: []byte(q)})
}

// decommissioned gives the live servers that are marked, with their full
// names, and the marked addresses that are not alive without a start code.
func (m *Master) decommissioned() (out []*pb.ServerName) {
	live := m.cfg.Servers.Live()
	for _, a := range m.draining(m.state()) {
		host, port, err := meta.ParseAddress(a)
		if err != nil {
			continue
		}
		n := meta.ServerName{Host: host, Port: port}
		for _, rs := range live {
			if rs.Name().Address() == a {
				n = rs.Name()
			}
		}
		out = append(out, n.ToProto())
	}
	return out
}

// countStates counts one table's regions by state.
func countStates(s *catalog.State, n meta.TableName) *pb.RegionStatesCount {
	open, split, closed, transition := s.CountStates(n)
	return &pb.RegionStatesCount{
		OpenRegions: new(uint32(open)), SplitRegions: new(uint32(split)), ClosedRegions: new(uint32(closed)),
		RegionsInTransition: new(uint32(transition)), TotalRegions: new(uint32(open + split + closed + transition)),
	}
}

// getClusterStatus answers the parts asked for; none asked for means all.
func (m *Master) getClusterStatus(_ context.Context, q *pb.GetClusterStatusRequest) (*pb.GetClusterStatusResponse, error) {
	asked := func(o pb.Option) bool { return len(q.GetOptions()) == 0 || slices.Contains(q.GetOptions(), o) }
	s, c := m.state(), &pb.ClusterStatus{}
	live := m.cfg.Servers.Live()
	if asked(pb.Option_HBASE_VERSION) {
		c.HbaseVersion = &pb.HBaseVersionFileContent{Version: new(m.cfg.Version)}
	}
	if asked(pb.Option_CLUSTER_ID) {
		c.ClusterId = &pb.ClusterId{ClusterId: new(m.cfg.Cluster.ClusterID())}
	}
	if asked(pb.Option_LIVE_SERVERS) {
		for _, rs := range live {
			c.LiveServers = append(c.LiveServers, &pb.LiveServerInfo{Server: rs.Name().ToProto(), ServerLoad: rs.Load(regionDetail(s))})
		}
	}
	if asked(pb.Option_SERVERS_NAME) {
		for _, rs := range live {
			c.ServersName = append(c.ServersName, rs.Name().ToProto())
		}
	}
	if asked(pb.Option_DEAD_SERVERS) {
		for _, n := range m.cfg.Servers.Dead() {
			c.DeadServers = append(c.DeadServers, n.ToProto())
		}
	}
	if asked(pb.Option_MASTER) {
		c.Master = m.cfg.Name.ToProto()
	}
	if asked(pb.Option_BACKUP_MASTERS) {
		for _, e := range m.cfg.Cluster.Masters() {
			if !e.Active {
				c.BackupMasters = append(c.BackupMasters, e.Name.ToProto())
			}
		}
	}
	if asked(pb.Option_REGIONS_IN_TRANSITION) {
		for r := range s.Select(meta.TableName{}, (*catalog.Region).InTransition) {
			c.RegionsInTransition = append(c.RegionsInTransition, &pb.RegionInTransition{
				Spec:        &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(r.Encoded)},
				RegionState: &pb.RegionState{RegionInfo: r.Info.ToProto(), State: r.State.Enum(), Stamp: new(uint64(r.StateTime))},
			})
		}
	}
	if asked(pb.Option_MASTER_COPROCESSORS) && m.cfg.Quotas {
		c.MasterCoprocessors = []*pb.Coprocessor{{Name: new("MasterQuotasObserver")}}
	}
	if asked(pb.Option_BALANCER_ON) {
		c.BalancerOn = new(m.isOn(settingBalancerOff))
	}
	if asked(pb.Option_MASTER_INFO_PORT) {
		c.MasterInfoPort = new(int32(-1))
	}
	if asked(pb.Option_TABLE_TO_REGIONS_COUNT) {
		for t := range s.Tables() {
			c.TableRegionStatesCount = append(c.TableRegionStatesCount, &pb.TableRegionStatesCount{
				TableName: t.Name.ToProto(), RegionStatesCount: countStates(s, t.Name),
			})
		}
	}
	if asked(pb.Option_DECOMMISSIONED_SERVERS) && strings.HasPrefix(m.cfg.Version, "3.") {
		// Up to 2.7 option and field are those of unknown servers, which there
		// are none of here.
		c.DecommissionedServers = m.decommissioned()
	}
	return &pb.GetClusterStatusResponse{ClusterStatus: c}, nil
}
