package route

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Replica is a secondary replica of a region, as hbase:meta knew it. It is a
// hint: its server says whether it serves the replica still.
type Replica struct {
	// ID is at least 1; the primary, which the Route is for, has 0.
	ID int
	// Server is believed to hold the replica; never nil. Whether it is usable
	// is the caller's to ask.
	Server *health.Server

	// of is a route of the region, of whatever age: it lends the name.
	of *Route
}

// Name gives the replica's full region name, which requests to it carry:
// table,start,id_0001.encoded. (hbase:meta,,1_0001 for hbase:meta).
func (p Replica) Name() []byte {
	return p.AppendName(make([]byte, 0, len(p.of.table.text)+int(p.of.startLen)+56))
}

// AppendName appends the replica's full region name.
func (p Replica) AppendName(b []byte) []byte {
	at := len(b)
	b = appendBase(b, p.of.table.text, p.of.startKey(), p.of.id)
	b = fmt.Appendf(b, "_%04X", p.ID)
	if p.of.table.isMeta {
		return b
	}
	sum := md5.Sum(b[at:])
	b = append(b, '.')
	b = hex.AppendEncode(b, sum[:])
	return append(b, '.')
}

// Encoded gives the replica's encoded region name, which differs from the
// primary's.
func (p Replica) Encoded() string {
	region := p.Region()
	return region.EncodedName()
}

// Region gives the replica's identity.
func (p Replica) Region() meta.Region { return p.of.Region().WithReplica(int32(p.ID)) }

// Replicas gives the secondary replicas known of the route's region, by
// ascending id: nil if it has none, or if hbase:meta's row has not been read
// yet (a route from a snapshot file). It reads nothing. The slice must not be
// changed.
func (c *Cache) Replicas(r *Route) []Replica {
	t := r.table
	if !t.replicated.Load() {
		return nil
	}
	t.rep.RLock()
	defer t.rep.RUnlock()
	return t.replicas[r.encoded]
}

// LocateReplicas is Replicas, but reads the region's row in hbase:meta if that
// has not been done, or if one of the servers known is gone for good. The error
// is a *LocateError.
func (c *Cache) LocateReplicas(ctx context.Context, r *Route) ([]Replica, error) {
	list := c.Replicas(r)
	fresh := r.state.Load()&stateRowSeen != 0
	for _, p := range list {
		if p.Server.State() == health.Dead {
			fresh = false
		}
	}
	if fresh {
		return list, nil
	}
	n, err := c.Refresh(ctx, r)
	if err != nil {
		return nil, err
	}
	return c.Replicas(n), nil
}

// ReplicaRejected tells that a replica's server said that it does not serve it:
// it is forgotten, and the region's row is read again within a second, in the
// background and once for all who say so meanwhile.
func (c *Cache) ReplicaRejected(p Replica) {
	t := p.of.table
	t.rep.Lock()
	old := t.replicas[p.of.encoded]
	kept := make([]Replica, 0, len(old))
	for _, x := range old {
		if x.ID != p.ID || x.Server != p.Server {
			kept = append(kept, x)
		}
	}
	if len(kept) < len(old) {
		t.replicas[p.of.encoded] = kept
	}
	t.rep.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := t.root.Load().floor(p.of.startKey())
	if c.closed || r == nil || !r.sameRegion(p.of) || t.repairs[r] != nil {
		return
	}
	// Later, not now: meta hears of a replica's new place after its old server
	// has given it up.
	now := time.Now()
	wait := time.Duration((1 + c.cfg.Rand()) / 2 * float64(time.Second))
	c.delayUntil(t.newRepair(r, now), now.Add(wait))
	c.arm(now)
}

// noteReplicas keeps what an answer says of replicas, for the regions that the
// index has. Tables without replicas pay a comparison per region.
func (t *table) noteReplicas(locs []meta.Location) {
	any := t.replicated.Load()
	for i := range locs {
		any = any || len(locs[i].Replicas) > 0
	}
	if !any {
		return
	}
	// Under pub, so that no region leaves the index meanwhile.
	t.pub.Lock()
	defer t.pub.Unlock()
	for i := range locs {
		l := &locs[i]
		r := t.root.Load().floor(l.Region.Start)
		if r == nil || r.id != l.Region.ID || string(r.startKey()) != string(l.Region.Start) {
			continue // lost against something newer
		}
		var list []Replica
		for _, p := range l.Replicas {
			if p.Server.IsZero() || !isOpen(p.State) {
				continue
			}
			if s := t.cache.cfg.Servers.Get(p.Server); s != nil {
				list = append(list, Replica{ID: int(p.ID), Server: s, of: r})
			}
		}
		t.rep.Lock()
		if len(list) == 0 {
			delete(t.replicas, r.encoded)
		} else {
			if t.replicas == nil {
				t.replicas = make(map[[16]byte][]Replica)
			}
			t.replicas[r.encoded] = list
			t.replicated.Store(true)
		}
		t.rep.Unlock()
	}
}

// forgetReplicas drops what is known of regions that have left the index.
func (t *table) forgetReplicas(removed []*Route) {
	if !t.replicated.Load() {
		return
	}
	for _, r := range removed {
		if x := t.root.Load().floor(r.startKey()); x != nil && x.sameRegion(r) {
			continue // the same region at another place
		}
		t.rep.Lock()
		delete(t.replicas, r.encoded)
		t.rep.Unlock()
	}
}
