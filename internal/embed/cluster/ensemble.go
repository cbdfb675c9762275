package cluster

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// startZooKeeper starts the ZooKeeper endpoint: one tree, behind a listener for
// each member of the virtual ensemble.
func (c *Cluster) startZooKeeper() error {
	z := &znodes{s: c.store, parent: c.opts.ZNodeParent}
	nodes, err := z.restore()
	if err != nil {
		return fmt.Errorf("znodes: %w", err)
	}
	var listeners []net.Listener
	for i := range c.opts.ZooKeepers {
		port := c.opts.ZooKeeperPort
		if port != 0 {
			port += i
		}
		l, kept, err := c.opts.bind(port)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return fmt.Errorf("zookeeper: %w", err)
		}
		c.zkPorts = append(c.zkPorts, kept)
		listeners = append(listeners, l)
	}
	c.zk, err = zkserver.Start(zkserver.Config{
		Listeners: listeners, Now: c.clock.Now, TickTime: c.opts.ZooKeeperTick,
		// Clients that saw a later transaction than the server knows are
		// refused: time goes on, whatever is kept.
		Epoch: int32(time.Now().Unix()), Restore: nodes, Persister: z, Logger: c.log,
	})
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
	}
	return err
}

// ZooKeeperAddresses are the addresses of the ensemble's members as advertised.
func (c *Cluster) ZooKeeperAddresses() []string {
	list := c.zk.Addrs()
	for i, a := range list {
		if _, port, err := meta.ParseAddress(a); err == nil {
			list[i] = (meta.ServerName{Host: c.opts.Advertise, Port: port}).Address()
		}
	}
	return list
}

// ZooKeeperAddress is what clients are given: the members' addresses, with
// commas between them.
func (c *Cluster) ZooKeeperAddress() string { return strings.Join(c.ZooKeeperAddresses(), ",") }
