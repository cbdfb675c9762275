package catalog

import (
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// MaxReplication is the largest REGION_REPLICATION: what clients read of a row.
const MaxReplication = 16

// Replica is the assignment of a secondary replica of a region: see Region.
type Replica struct {
	State          pb.RegionState_State
	Server, Target meta.ServerName
	OpenSeq        int64
}

// Replication is the number of replicas of each of the table's regions, the
// primary counted.
func (t *Table) Replication() int {
	v, _ := t.Attribute("REGION_REPLICATION")
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return 1
	}
	return min(n, MaxReplication)
}

// Replica is the identity of the region's replica: 0 is the region itself.
func (r *Region) Replica(id int) meta.Region { return r.Info.WithReplica(int32(id)) }

// replicaName leads from a secondary replica's encoded name to its region.
type replicaName struct {
	encoded string
	primary string
	id      int
}

func compareReplicas(a, b replicaName) int { return strings.Compare(a.encoded, b.encoded) }

// RegionOfReplica gives the region and the id of a secondary replica by its
// encoded name; nil if there is none.
func (s *State) RegionOfReplica(encoded string) (*Region, int) {
	n, ok := s.replicas.find(func(n replicaName) int { return strings.Compare(n.encoded, encoded) })
	if !ok {
		return nil, 0
	}
	r := s.Region(n.primary)
	if r == nil || n.id > len(r.Replicas) {
		return nil, 0
	}
	return r, n.id
}

// nameReplicas keeps the names of a region's replicas; either may be nil.
func (tx *Tx) nameReplicas(old, r *Region) {
	var had, has int
	if old != nil {
		had = len(old.Replicas)
	}
	if r != nil {
		has = len(r.Replicas)
	}
	for id := had + 1; id <= has; id++ {
		i := r.Replica(id)
		tx.replicas = tx.replicas.set(replicaName{i.EncodedName(), r.Encoded, id})
	}
	for id := has + 1; id <= had; id++ {
		i := old.Replica(id)
		tx.replicas = tx.replicas.remove(replicaName{encoded: i.EncodedName()})
	}
}
