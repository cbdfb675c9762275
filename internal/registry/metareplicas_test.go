package registry

import (
	"slices"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestMetaReplicas(t *testing.T) {
	rs2, rs3 := rs1, rs1
	rs2.Host, rs3.Host = "rs2.example", "rs3.example"
	znode := func(s meta.ServerName, state pb.RegionState_State) []byte {
		return header(withMagic(&pb.MetaRegionServer{Server: s.ToProto(), State: state.Enum()}))
	}
	want := []meta.ReplicaLocation{{ID: 1, Server: rs2, SeqNum: meta.NoSeqNum}, {ID: 2, Server: rs3, SeqNum: meta.NoSeqNum}}

	nodes := hbaseTree("/hbase")
	if list, err := overTree(nodes).MetaReplicas(t.Context()); err != nil || list != nil {
		t.Errorf("without replicas: %v, %v", list, err)
	}
	nodes["/hbase/meta-region-server-2"] = znode(rs3, pb.RegionState_OPEN)
	nodes["/hbase/meta-region-server-1"] = znode(rs2, pb.RegionState_OPEN)
	nodes["/hbase/meta-region-server-3"] = znode(rs2, pb.RegionState_OPENING)
	nodes["/hbase/meta-region-server-4"] = nil
	nodes["/hbase/meta-region-server-5"] = []byte("nonsense")
	nodes["/hbase/meta-region-server-0"] = znode(rs2, pb.RegionState_OPEN)
	nodes["/hbase/meta-region-server-x"] = znode(rs2, pb.RegionState_OPEN)
	if list, err := overTree(nodes).MetaReplicas(t.Context()); err != nil || !slices.Equal(list, want) {
		t.Errorf("znodes: got %v, %v; want %v", list, err, want)
	}

	loc := func(id int32, s *pb.ServerName) *pb.RegionLocation {
		region := meta.MetaRegion.WithReplica(id)
		return &pb.RegionLocation{RegionInfo: region.ToProto(), ServerName: s}
	}
	got := metaReplicas([]*pb.RegionLocation{
		loc(2, rs3.ToProto()), loc(0, rs1.ToProto()), loc(1, rs2.ToProto()), loc(3, nil), loc(4, &pb.ServerName{}), loc(-1, rs1.ToProto()), {},
	})
	if !slices.Equal(got, want) {
		t.Errorf("answer: got %v, want %v", got, want)
	}
}
