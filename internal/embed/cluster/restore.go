package cluster

import "bytes"

// RestoreZNodes makes HBase's own znodes what they should be, whatever was
// written to them or removed: those that are right already are not touched, so
// that nobody's watch goes off for nothing. The znodes of tables, namespaces and
// groups follow a moment later.
func (c *Cluster) RestoreZNodes() {
	for path, data := range c.base {
		c.restore(path, data, 0)
	}
	type node struct {
		path    string
		data    []byte
		session int64
	}
	var own []node
	c.mu.Lock()
	for _, p := range c.live {
		own = append(own, node{c.path("rs", p.Name().String()), c.serverInfo(), p.session})
	}
	for _, s := range c.masters {
		if s.m == nil {
			continue
		}
		path := c.path("backup-masters", s.name.String())
		if s.m.Active() {
			path = c.path("master")
		}
		own = append(own, node{path, c.masterPayload(s.name), s.session})
	}
	c.mu.Unlock()
	for _, n := range own {
		c.restore(n.path, n.data, n.session)
	}
	if n, _ := c.MetaLocation(); !n.IsZero() {
		c.restore(c.path("meta-region-server"), c.metaPayload(n), 0)
	}
	select {
	case c.again <- struct{}{}:
	default: // it is asked to already
	}
}

// restore writes a znode unless it is as it should be.
func (c *Cluster) restore(path string, data []byte, owner int64) {
	if now, stat, err := c.zk.Get(path); err == nil && bytes.Equal(now, data) && stat.EphemeralOwner == owner {
		return
	}
	c.put(path, data, owner)
}
