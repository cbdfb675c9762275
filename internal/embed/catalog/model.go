package catalog

import (
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Table is one table. It is immutable: changes replace it.
type Table struct {
	Name meta.TableName
	// ID is the table's key space in the store; 0 for a rendered table. Ids are
	// never used twice.
	ID uint32
	// Schema is the descriptor as GetTableDescriptors answers it: defaults
	// filled in, unknown attributes kept. Nobody changes it.
	Schema *pb.TableSchema
	State  pb.TableState_State
	// StateTime is when the state was last written, in milliseconds.
	StateTime int64
	// Group is the region server group the table was moved to; empty means
	// that descriptor, namespace or default decide.
	Group string
	// Formula describes the regions and rows of a generated table; nil for any
	// other.
	Formula *Formula
}

// Virtual says whether the table's rows are rendered from the catalog.
func (t *Table) Virtual() bool { return t.ID == 0 }

// Attribute gives the descriptor's value of a table attribute.
func (t *Table) Attribute(name string) (string, bool) {
	return Attribute(t.Schema.GetAttributes(), name)
}

// Region is one region and its assignment. It is immutable: changes replace it.
type Region struct {
	Info    meta.Region
	Encoded string
	// Name is the full name, which is the row in hbase:meta.
	Name  []byte
	State pb.RegionState_State
	// Server is the server of the last opening, zero before the first. While
	// the region opens elsewhere or is closed it still names that server, as
	// info:server does in HBase.
	Server meta.ServerName
	// Target is the server that opens or holds the region (info:sn).
	Target meta.ServerName
	// OpenSeq is seqnumDuringOpen; NoSeqNum (-1) before the first opening.
	OpenSeq int64
	// InfoTime and StateTime are the timestamps, in milliseconds, of the
	// region info cell and of the cells about the assignment.
	InfoTime, StateTime int64
	// SplitA and SplitB are set on a parent that was split.
	SplitA, SplitB *meta.Region
	// Merged are the parents of a region that came from a merge.
	Merged []meta.Region
	// Replicas are the secondary replicas, beginning with the one with id 1.
	Replicas []Replica
}

// NewRegion makes the entry of a region that was never opened.
func NewRegion(info meta.Region, now int64) *Region {
	return &Region{
		Info: info, Encoded: info.EncodedName(), Name: info.Name(),
		State: pb.RegionState_OFFLINE, OpenSeq: meta.NoSeqNum, InfoTime: now, StateTime: now,
	}
}

// Parent says whether the region was split or merged away: nobody serves it
// any more.
func (r *Region) Parent() bool { return r.Info.Split || r.State == pb.RegionState_MERGED }

// InTransition says whether the region is on its way somewhere.
func (r *Region) InTransition() bool {
	switch r.State {
	case pb.RegionState_OPEN, pb.RegionState_CLOSED, pb.RegionState_SPLIT, pb.RegionState_MERGED, pb.RegionState_OFFLINE:
		return false
	}
	return true
}

// Namespace is one namespace; Config is never changed in place.
type Namespace struct {
	Name   string
	Config []*pb.NameStringPair
	// Time is when it was last written, in milliseconds.
	Time int64
}

// ToProto renders the descriptor.
func (n *Namespace) ToProto() *pb.NamespaceDescriptor {
	return &pb.NamespaceDescriptor{Name: []byte(n.Name), Configuration: n.Config}
}

// Setting gives a configuration value of the namespace.
func (n *Namespace) Setting(name string) string {
	for _, p := range n.Config {
		if p.GetName() == name {
			return p.GetValue()
		}
	}
	return ""
}

// DefaultGroup is the group that always exists and holds every server that no
// other group names.
const DefaultGroup = "default"

// GroupAttribute names the group of a table (in its descriptor) or of a
// namespace (in its configuration).
const GroupAttribute = "hbase.rsgroup.name"

// Group is one region server group other than "default".
type Group struct {
	Name string
	// Servers are "host:port" addresses, sorted.
	Servers []string
	Config  []*pb.NameStringPair
	Time    int64
}

// Snapshot is a copy of a table's data and boundaries.
type Snapshot struct {
	Description *pb.SnapshotDescription
	Schema      *pb.TableSchema
	// DataID is the key space that holds the copied cells.
	DataID uint32
	// Starts are the start keys of the regions, the first one empty.
	Starts [][]byte
}
