package master

import (
	"context"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// settleReplicas brings the secondary replicas of regions of one table to where
// they belong: on servers that may host the table, each on another one than the
// region and its other replicas, as far as there are so many. Replicas that are
// well placed stay. The caller holds the lock that covers the regions.
func (m *Master) settleReplicas(ctx context.Context, t *catalog.Table, regions []string) error {
	if t.Virtual() || t.Formula != nil {
		return nil
	}
	// A server may die while replicas are being opened on it.
	for range 100 {
		dead, err := m.settleReplicasOnce(ctx, t, regions)
		if err != nil || !dead {
			return err
		}
	}
	return nil
}

func (m *Master) settleReplicasOnce(ctx context.Context, t *catalog.Table, regions []string) (dead bool, err error) {
	s := m.state()
	servers := m.eligible(s, t)
	type plan struct {
		old  *catalog.Region
		list []catalog.Replica
		new  []host.RegionServer // where a replica opens; nil where it stays
	}
	var plans []plan
	for _, encoded := range regions {
		r := s.Region(encoded)
		if r == nil || r.Parent() {
			continue
		}
		p := plan{old: r, list: make([]catalog.Replica, t.Replication()-1)}
		if len(servers) == 0 {
			p.list = nil
		}
		p.new = make([]host.RegionServer, len(p.list))
		changed := len(p.list) != len(r.Replicas)
		used := []meta.ServerName{r.Target}
		for i := range p.list {
			if i < len(r.Replicas) {
				p.list[i] = r.Replicas[i]
			}
			if q := &p.list[i]; q.State == pb.RegionState_OPEN && !slices.Contains(used, q.Target) && hasServer(servers, q.Target) {
				used = append(used, q.Target)
				continue
			}
			rs := placeReplica(servers, r.Target, used, i+1)
			if q := &p.list[i]; q.State == pb.RegionState_OPEN && q.Target == rs.Name() {
				used = append(used, q.Target) // there is no better place
				continue
			}
			used = append(used, rs.Name())
			p.new[i], changed = rs, true
			p.list[i] = catalog.Replica{State: pb.RegionState_OPEN, Server: rs.Name(), Target: rs.Name(), OpenSeq: m.nextSeq()}
		}
		if changed {
			plans = append(plans, p)
		}
	}
	if len(plans) == 0 {
		return false, nil
	}
	for _, p := range plans {
		for i, rs := range p.new {
			if rs == nil {
				continue
			}
			h, err := m.hosted(t, p.old, p.list[i].OpenSeq)
			if err != nil {
				return false, err
			}
			rs.OpenRegion(replicaOf(h, i+1))
		}
	}
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for _, p := range plans {
			if now := tx.Region(p.old.Encoded); now != nil {
				c := *now
				c.Replicas, c.StateTime = p.list, tx.Now()
				tx.PutRegion(&c)
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, p := range plans {
		for i := range p.old.Replicas {
			q := &p.old.Replicas[i]
			switch {
			case i >= len(p.list):
				m.closeReplica(ctx, p.old, i+1, nil)
			case p.list[i].Target != q.Target:
				m.closeReplica(ctx, p.old, i+1, &host.Moved{To: p.list[i].Target, OpenSeq: p.list[i].OpenSeq})
			}
		}
		for _, rs := range p.new {
			dead = dead || rs != nil && !rs.Alive()
		}
	}
	return dead, nil
}

func hasServer(servers []host.RegionServer, n meta.ServerName) bool {
	return slices.ContainsFunc(servers, func(rs host.RegionServer) bool { return rs.Name() == n })
}

// placeReplica chooses a server for a replica: the first that is not used,
// counted from id places behind the region's own, so that replicas of many
// regions spread out; if all are used, one that is not the region's.
func placeReplica(servers []host.RegionServer, primary meta.ServerName, used []meta.ServerName, id int) host.RegionServer {
	at := max(slices.IndexFunc(servers, func(rs host.RegionServer) bool { return rs.Name() == primary }), 0)
	var second host.RegionServer
	for k := range servers {
		rs := servers[(at+id+k)%len(servers)]
		if !slices.Contains(used, rs.Name()) {
			return rs
		}
		if second == nil && rs.Name() != primary {
			second = rs
		}
	}
	if second == nil {
		second = servers[0]
	}
	return second
}

// replicaOf makes the form in which servers get a replica out of the region's.
func replicaOf(h *host.Region, id int) *host.Region {
	c := *h
	c.Info = h.Info.WithReplica(int32(id))
	c.Name, c.Encoded = c.Info.Name(), c.Info.EncodedName()
	return &c
}

// closeReplica closes a replica where it is.
func (m *Master) closeReplica(ctx context.Context, r *catalog.Region, id int, moved *host.Moved) {
	i := r.Replica(id)
	m.closeOn(ctx, m.find(r.Replicas[id-1].Target), i.EncodedName(), moved)
}

// closeReplicas closes all replicas of a region that goes away.
func (m *Master) closeReplicas(ctx context.Context, r *catalog.Region) {
	for i := range r.Replicas {
		m.closeReplica(ctx, r, i+1, nil)
	}
}

// settleTableReplicas settles the replicas of all of a table's regions.
func (m *Master) settleTableReplicas(ctx context.Context, name meta.TableName) error {
	if t := m.state().Table(name); t == nil || t.Replication() == 1 || t.Formula != nil {
		return nil
	}
	unlock, err := m.lockTable(ctx, name.String(), true)
	if err != nil {
		return err
	}
	defer unlock()
	s := m.state()
	t := s.Table(name)
	if t == nil || t.State != pb.TableState_ENABLED {
		return nil
	}
	var regions []string
	for r := range s.Ordinary(name) {
		if r.State == pb.RegionState_OPEN {
			regions = append(regions, r.Encoded)
		}
	}
	return m.settleReplicas(ctx, t, regions)
}

// settleAllReplicas does so for every table.
func (m *Master) settleAllReplicas(ctx context.Context) error {
	for _, name := range replicatedTables(m.state()) {
		if err := m.settleTableReplicas(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func replicatedTables(s *catalog.State) (out []meta.TableName) {
	for t := range s.Tables() {
		if t.Replication() > 1 && t.Formula == nil {
			out = append(out, t.Name)
		}
	}
	return out
}

// moveReplica opens a secondary replica on another server: the one named, or,
// with the zero name, one that holds nothing else of the region.
func (m *Master) moveReplica(ctx context.Context, encoded string, to meta.ServerName) error {
	r, id := m.state().RegionOfReplica(encoded)
	if r == nil {
		return unknownRegion(encoded)
	}
	unlock, err := m.lockRegion(ctx, r.Info.Table.String(), r.Encoded)
	if err != nil {
		return err
	}
	defer unlock()
	s := m.state()
	r, t := s.Region(r.Encoded), s.Table(r.Info.Table)
	if r == nil || t == nil || id > len(r.Replicas) {
		return unknownRegion(encoded)
	}
	was := r.Replicas[id-1]
	var dst host.RegionServer
	if to.IsZero() {
		used := []meta.ServerName{r.Target}
		for i := range r.Replicas {
			used = append(used, r.Replicas[i].Target)
		}
		servers := m.eligible(s, t)
		if i := slices.IndexFunc(servers, func(rs host.RegionServer) bool { return !slices.Contains(used, rs.Name()) }); i >= 0 {
			dst = servers[i]
		}
	} else if dst, err = m.destination(s, t, &catalog.Region{Encoded: encoded, Server: was.Server}, to); err != nil {
		return err
	}
	if dst == nil {
		return nil
	}
	if dst.Name() == r.Target {
		return refuse(wire.ClassDoNotRetryIO, "Cannot move %s to %s: the region's primary replica is there", encoded, dst.Name())
	}
	seq := m.nextSeq()
	h, err := m.hosted(t, r, seq)
	if err != nil {
		return err
	}
	dst.OpenRegion(replicaOf(h, id))
	if err := m.change(r.Encoded, func(c *catalog.Region) {
		c.Replicas = slices.Clone(c.Replicas)
		c.Replicas[id-1] = catalog.Replica{State: pb.RegionState_OPEN, Server: dst.Name(), Target: dst.Name(), OpenSeq: seq}
	}); err != nil {
		return err
	}
	m.closeReplica(ctx, r, id, &host.Moved{To: dst.Name(), OpenSeq: seq})
	m.event(eventlog.Event{Method: "move", Server: dst.Name().Address(), Table: t.Name.String(), Region: encoded,
		Detail: was.Server.String() + " -> " + dst.Name().String()})
	return nil
}
