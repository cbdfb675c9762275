package master

import (
	"context"
	"regexp"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Replication peers are kept with their state, so that tools that manage them
// can be tested. Nothing is replicated, and no peer is contacted.
func (m *Master) addPeers(s *rpcserver.Service) {
	answer(m, s, "AddReplicationPeer", withID(m.addPeer, func(id *uint64) *pb.AddReplicationPeerResponse { return &pb.AddReplicationPeerResponse{ProcId: id} }))
	answer(m, s, "RemoveReplicationPeer", withID(m.removePeer, func(id *uint64) *pb.RemoveReplicationPeerResponse {
		return &pb.RemoveReplicationPeerResponse{ProcId: id}
	}))
	answer(m, s, "EnableReplicationPeer", withID(func(ctx context.Context, q *pb.EnableReplicationPeerRequest) (uint64, error) {
		return m.setPeerState(ctx, q.GetPeerId(), pb.ReplicationState_ENABLED)
	}, func(id *uint64) *pb.EnableReplicationPeerResponse {
		return &pb.EnableReplicationPeerResponse{ProcId: id}
	}))
	answer(m, s, "DisableReplicationPeer", withID(func(ctx context.Context, q *pb.DisableReplicationPeerRequest) (uint64, error) {
		return m.setPeerState(ctx, q.GetPeerId(), pb.ReplicationState_DISABLED)
	}, func(id *uint64) *pb.DisableReplicationPeerResponse {
		return &pb.DisableReplicationPeerResponse{ProcId: id}
	}))
	answer(m, s, "UpdateReplicationPeerConfig", withID(m.updatePeer, func(id *uint64) *pb.UpdateReplicationPeerConfigResponse {
		return &pb.UpdateReplicationPeerConfigResponse{ProcId: id}
	}))
	answer(m, s, "GetReplicationPeerConfig", func(_ context.Context, q *pb.GetReplicationPeerConfigRequest) (*pb.GetReplicationPeerConfigResponse, error) {
		p := m.state().Peer(q.GetPeerId())
		if p == nil {
			return nil, refuse("org.apache.hadoop.hbase.ReplicationPeerNotFoundException", "%s", q.GetPeerId())
		}
		return &pb.GetReplicationPeerConfigResponse{PeerId: q.PeerId, PeerConfig: p.GetConfig()}, nil
	})
	answer(m, s, "IsReplicationPeerEnabled", func(_ context.Context, q *pb.GetReplicationPeerStateRequest) (*pb.GetReplicationPeerStateResponse, error) {
		p := m.state().Peer(q.GetPeerId())
		if p == nil {
			return nil, retriable("org.apache.hadoop.hbase.replication.ReplicationException", "Replication Peer of %s does not exist.", q.GetPeerId())
		}
		return &pb.GetReplicationPeerStateResponse{IsEnabled: new(p.GetState().GetState() == pb.ReplicationState_ENABLED)}, nil
	})
	answer(m, s, "ListReplicationPeers", func(_ context.Context, q *pb.ListReplicationPeersRequest) (*pb.ListReplicationPeersResponse, error) {
		var re *regexp.Regexp
		if q.Regex != nil {
			var err error
			if re, err = regexp.Compile("^(?:" + q.GetRegex() + ")$"); err != nil {
				return nil, refuse(wire.ClassDoNotRetryIO, "pattern %q: %v", q.GetRegex(), err)
			}
		}
		r := &pb.ListReplicationPeersResponse{}
		for p := range m.state().Peers() {
			if re == nil || re.MatchString(p.GetId()) {
				r.PeerDesc = append(r.PeerDesc, p)
			}
		}
		return r, nil
	})
	answer(m, s, "GetReplicationPeerModificationProcedures", func(context.Context, *pb.GetReplicationPeerModificationProceduresRequest) (*pb.GetReplicationPeerModificationProceduresResponse, error) {
		return &pb.GetReplicationPeerModificationProceduresResponse{}, nil
	})
}

// changePeer runs a change of a peer as a procedure. In HBase its checks are
// part of the procedure, not of the call.
func (m *Master) changePeer(ctx context.Context, class, id string, change func(tx *catalog.Tx) error) (uint64, error) {
	if !m.isOn(settingPeerOff) {
		return 0, retriable(wire.ClassIOException, "Replication peer modification disabled")
	}
	return m.submit(ctx, class, 0, 0, func(_ context.Context, prepared func()) error {
		prepared()
		if err := m.cfg.Catalog.Update(change); err != nil {
			return err
		}
		m.event(eventlog.Event{Method: class, Detail: id})
		return nil
	})
}

func (m *Master) addPeer(ctx context.Context, q *pb.AddReplicationPeerRequest) (uint64, error) {
	id := q.GetPeerId()
	return m.changePeer(ctx, "AddPeerProcedure", id, func(tx *catalog.Tx) error {
		if id == "" || strings.Contains(id, "-") {
			return refuse(wire.ClassDoNotRetryIO, "Found invalid peer name: %s", id)
		}
		if err := checkPeerConfig(q.GetPeerConfig()); err != nil {
			return err
		}
		if tx.Peer(id) != nil {
			return refuse(wire.ClassDoNotRetryIO, "Replication peer %s already exists", id)
		}
		state := q.GetPeerState()
		if state == nil {
			state = &pb.ReplicationState{State: pb.ReplicationState_ENABLED.Enum()}
		}
		tx.PutPeer(&pb.ReplicationPeerDescription{Id: &id, State: state, Config: q.GetPeerConfig()})
		return nil
	})
}

// existingPeer gives a copy of a peer to be changed.
func existingPeer(tx *catalog.Tx, id string) (*pb.ReplicationPeerDescription, error) {
	p := tx.Peer(id)
	if p == nil {
		return nil, refuse(wire.ClassReplicationPeerNotFound, "%s", id)
	}
	return p, nil
}

func (m *Master) removePeer(ctx context.Context, q *pb.RemoveReplicationPeerRequest) (uint64, error) {
	return m.changePeer(ctx, "RemovePeerProcedure", q.GetPeerId(), func(tx *catalog.Tx) error {
		if _, err := existingPeer(tx, q.GetPeerId()); err != nil {
			return err
		}
		tx.DeletePeer(q.GetPeerId())
		return nil
	})
}

func (m *Master) setPeerState(ctx context.Context, id string, to pb.ReplicationState_State) (uint64, error) {
	class, word := "EnablePeerProcedure", "enabled"
	if to == pb.ReplicationState_DISABLED {
		class, word = "DisablePeerProcedure", "disabled"
	}
	return m.changePeer(ctx, class, id, func(tx *catalog.Tx) error {
		p, err := existingPeer(tx, id)
		if err != nil {
			return err
		}
		if p.GetState().GetState() == to {
			return refuse(wire.ClassDoNotRetryIO, "Replication peer %s has already been %s", id, word)
		}
		p.State = &pb.ReplicationState{State: to.Enum()}
		tx.PutPeer(p)
		return nil
	})
}

func (m *Master) updatePeer(ctx context.Context, q *pb.UpdateReplicationPeerConfigRequest) (uint64, error) {
	id, to := q.GetPeerId(), q.GetPeerConfig()
	return m.changePeer(ctx, "UpdatePeerConfigProcedure", id, func(tx *catalog.Tx) error {
		if err := checkPeerConfig(to); err != nil {
			return err
		}
		p, err := existingPeer(tx, id)
		if err != nil {
			return err
		}
		if old, now := p.GetConfig().GetClusterkey(), to.GetClusterkey(); old != now {
			return refuse(wire.ClassDoNotRetryIO, "Changing the cluster key on an existing peer is not allowed. Existing key '%s' for peer %s does not match new key '%s'", old, id, now)
		}
		if old, now := p.GetConfig().GetReplicationEndpointImpl(), to.GetReplicationEndpointImpl(); old != now {
			return refuse(wire.ClassDoNotRetryIO, "Changing the replication endpoint implementation class on an existing peer is not allowed. Existing class '%s' for peer %s does not match new class '%s'", old, id, now)
		}
		p.Config = to
		tx.PutPeer(p)
		return nil
	})
}

// checkPeerConfig refuses what HBase's ReplicationPeerManager refuses, but for
// what it asks the other cluster.
func checkPeerConfig(c *pb.ReplicationPeer) error {
	all := c.GetReplicateAll() || c.ReplicateAll == nil
	switch {
	case all && (len(c.GetNamespaces()) > 0 || len(c.GetTableCfs()) > 0):
		return refuse(wire.ClassDoNotRetryIO, "Need clean namespaces or table-cfs config firstly when you want replicate all cluster")
	case !all && (len(c.GetExcludeNamespaces()) > 0 || len(c.GetExcludeTableCfs()) > 0):
		return refuse(wire.ClassDoNotRetryIO, "Need clean exclude-namespaces or exclude-table-cfs config firstly when replicate_all flag is false")
	}
	for _, lists := range []struct {
		namespaces [][]byte
		tables     []*pb.TableCF
	}{{c.GetNamespaces(), c.GetTableCfs()}, {c.GetExcludeNamespaces(), c.GetExcludeTableCfs()}} {
		for _, t := range lists.tables {
			name := meta.TableFromProto(t.GetTableName())
			for _, ns := range lists.namespaces {
				if name.Namespace == string(ns) {
					return refuse(wire.ClassDoNotRetryIO, "Table-cfs %s is conflict with namespaces %s in peer config", name, ns)
				}
			}
		}
	}
	if key := c.GetClusterkey(); c.GetReplicationEndpointImpl() == "" && strings.Count(key, ":") < 2 {
		return refuse(wire.ClassDoNotRetryIO, "Invalid cluster key: %s", key)
	}
	return nil
}
