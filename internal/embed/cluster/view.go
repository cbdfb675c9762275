package cluster

import (
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Cluster answers the region servers (host.Cluster) and, through liveServers,
// the master (master.Servers).
var (
	_ host.Cluster   = (*Cluster)(nil)
	_ master.Servers = liveServers{}
)

// ClusterID is the cluster's id, a UUID that stays with its data.
func (c *Cluster) ClusterID() string { return c.id }

// MetaLocation names the server of hbase:meta, while it is open.
func (c *Cluster) MetaLocation() (meta.ServerName, int64) {
	r := c.catalog.State().MetaRegion()
	if r.State != pb.RegionState_OPEN {
		return meta.ServerName{}, meta.NoSeqNum
	}
	return r.Server, r.OpenSeq
}

// LiveServers gives the region servers registered in ZooKeeper.
func (c *Cluster) LiveServers() []meta.ServerName {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]meta.ServerName, len(c.live))
	for i, p := range c.live {
		out[i] = p.Name()
	}
	return out
}

// StopServer stops a region server in the background.
func (c *Cluster) StopServer(name meta.ServerName, reason string) {
	c.mu.Lock()
	i := slices.IndexFunc(c.slots, func(s *slot) bool { return s.process != nil && s.process.Name() == name })
	c.mu.Unlock()
	if i < 0 {
		return
	}
	c.background(func() {
		if err := c.Stop(c.ctx, i); err != nil {
			c.log.Warn("stop of a region server", "server", name.String(), "reason", reason, "err", err)
		}
	})
}

// liveServers is the master's view of the region servers.
type liveServers struct{ c *Cluster }

func (l liveServers) Live() []host.RegionServer {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	out := make([]host.RegionServer, len(l.c.live))
	for i, p := range l.c.live {
		out[i] = p
	}
	return out
}

func (l liveServers) Dead() []meta.ServerName {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return slices.Clone(l.c.dead)
}

func (l liveServers) ForgetDead(names []meta.ServerName) {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.dead = slices.DeleteFunc(slices.Clone(l.c.dead), func(n meta.ServerName) bool {
		return len(names) == 0 || slices.Contains(names, n)
	})
}

func (l liveServers) Changed() <-chan struct{} {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	return l.c.changed
}
