package catalog

import (
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// peerPrefix begins the names of the settings that hold replication peers, as
// ReplicationPeerDescription messages.
const peerPrefix = "peer."

// Peer gives a replication peer, nil if there is none of that id.
func (s *State) Peer(id string) *pb.ReplicationPeerDescription {
	return peerOf(s.Setting(peerPrefix + id))
}

// peerOf reads a stored peer; what the catalog wrote can be read.
func peerOf(v string) *pb.ReplicationPeerDescription {
	if v == "" {
		return nil
	}
	p := &pb.ReplicationPeerDescription{}
	if err := p.UnmarshalVT([]byte(v)); err != nil {
		return nil
	}
	return p
}

// Peers gives all replication peers by id.
func (s *State) Peers() iter.Seq[*pb.ReplicationPeerDescription] {
	var names []string
	for name := range s.Settings() {
		if strings.HasPrefix(name, peerPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return func(yield func(*pb.ReplicationPeerDescription) bool) {
		for _, name := range names {
			if p := peerOf(s.Setting(name)); p != nil && !yield(p) {
				return
			}
		}
	}
}

// PutPeer adds or replaces a replication peer.
func (tx *Tx) PutPeer(p *pb.ReplicationPeerDescription) {
	tx.SetSetting(peerPrefix+p.GetId(), string(protoBytes(p)))
}

// DeletePeer takes a replication peer away.
func (tx *Tx) DeletePeer(id string) { tx.SetSetting(peerPrefix+id, "") }

// ClearPeers takes all replication peers away.
func (tx *Tx) ClearPeers() { tx.clearSettings(peerPrefix) }
