package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// masterSlot is a master's place; guarded by Cluster.mu.
type masterSlot struct {
	index int
	port  int
	kept  *reservation
	name  meta.ServerName
	m     *master.Master // nil while stopped
	rpc   *rpcserver.Server
	// listener is closed by end too; see process.Kill.
	listener net.Listener
	session  int64
}

// ErrNoMaster is given by what needs an active master while there is none.
var ErrNoMaster = errors.New("minihbase: there is no active master")

// addMaster makes the i-th master's slot and starts it as a backup.
func (c *Cluster) addMaster(i int) error {
	port := c.opts.MasterPort
	if port != 0 {
		port += i
	}
	l, kept, err := c.opts.bind(port)
	if err != nil {
		return fmt.Errorf("master %d: %w", i, err)
	}
	s := &masterSlot{index: i, port: portOf(l), kept: kept}
	c.mu.Lock()
	c.masters = append(c.masters, s)
	c.mu.Unlock()
	return c.startMaster(s, l)
}

// startMaster starts a new incarnation of a master as a backup.
func (c *Cluster) startMaster(s *masterSlot, l net.Listener) error {
	code, err := c.nextStartCode()
	if err != nil {
		l.Close()
		return err
	}
	name := meta.ServerName{Host: c.opts.Advertise, Port: s.port, StartCode: code}
	m := master.New(master.Config{
		Name: name, Catalog: c.catalog, Store: c.store, Tables: c.tables, Opener: c.opener, Procedures: c.procedures,
		Controls: &c.controls, Servers: liveServers{c}, Cluster: c, Events: c.events, Logger: c.log,
		Now: c.clock.Now, Version: c.opts.HBaseVersion, Quotas: c.opts.Quotas, BalancerLog: c.opts.BalancerLog, SpacePeriod: c.opts.SpaceQuotaPeriod, JanitorPeriod: c.opts.JanitorPeriod,
		MetaMoved: c.metaZNode, Expire: c.expireNamed,
		StopMaster: func() {
			c.background(func() { _ = c.StopMaster(s.index) })
		},
		Shutdown: c.shutdown,
	})
	rpc := rpcserver.New(rpcserver.Config{
		Name: name, Services: append(m.Services(), regionserver.ClientMetaService(c)), ClusterID: c.ClusterID,
		Chaos: c.rules, Events: c.events, Logger: c.log,
	})
	session := c.zk.OpenSession(c.sessionTimeout())
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		l.Close()
		m.Close()
		return ErrClosed
	}
	s.name, s.m, s.rpc, s.listener, s.session = name, m, rpc, l, session
	c.wg.Go(func() { _ = rpc.Serve(l); rpc.Wait() })
	c.mu.Unlock()
	c.put(c.path("backup-masters", name.String()), c.masterPayload(name), session)
	c.events.Cluster(eventlog.Event{Method: "start-master", Server: name.Address(), Detail: name.String()})
	return nil
}

// end stops what runs in the slot; with kill the connections are reset. It
// gives the ZooKeeper session that is to end, 0 if nothing ran.
func (s *masterSlot) end(kill bool) int64 {
	if s.m == nil {
		return 0
	}
	if kill {
		s.rpc.Kill()
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		_ = s.rpc.Stop(ctx)
		s.rpc.Kill()
	}
	s.listener.Close()
	s.m.Close()
	s.m = nil
	return s.session
}

// active gives the active master, nil while there is none.
func (c *Cluster) active() *master.Master {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.masters {
		if s.m != nil && s.m.Active() {
			return s.m
		}
	}
	return nil
}

// Master gives the active master or ErrNoMaster.
func (c *Cluster) Master() (*master.Master, error) {
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if m := c.active(); m != nil {
		return m, nil
	}
	return nil, ErrNoMaster
}

// elect makes the first master that runs the active one, if there is none, and
// gives the active one.
func (c *Cluster) elect() (*master.Master, error) {
	c.electing.Lock()
	defer c.electing.Unlock()
	if m := c.active(); m != nil {
		return m, nil
	}
	c.mu.Lock()
	i := slices.IndexFunc(c.masters, func(s *masterSlot) bool { return s.m != nil })
	if i < 0 {
		c.mu.Unlock()
		return nil, ErrNoMaster
	}
	m, name, session := c.masters[i].m, c.masters[i].name, c.masters[i].session
	c.mu.Unlock()
	if err := m.Activate(); err != nil {
		return nil, err
	}
	c.remove(c.path("backup-masters", name.String()))
	c.put(c.path("master"), c.masterPayload(name), session)
	c.events.Cluster(eventlog.Event{Method: "active-master", Server: name.Address(), Detail: name.String()})
	return m, nil
}

// takeOver elects a master and lets it open regions that have no server.
func (c *Cluster) takeOver() {
	m, err := c.elect()
	if err == nil {
		err = m.AssignUnassigned(c.ctx)
	}
	if err != nil && c.ctx.Err() == nil && !errors.Is(err, ErrNoMaster) {
		c.log.Warn("master takes over", "err", err)
	}
}

func (c *Cluster) masterAt(i int) (*masterSlot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, ErrClosed
	}
	if i < 0 || i >= len(c.masters) {
		return nil, fmt.Errorf("there is no master %d: there are %d, counted from 0", i, len(c.masters))
	}
	return c.masters[i], nil
}

// endMaster stops a master; a backup takes over if it was the active one.
func (c *Cluster) endMaster(i int, kill bool) error {
	s, err := c.masterAt(i)
	if err != nil {
		return err
	}
	c.electing.Lock()
	c.mu.Lock()
	run := masterSlot{m: s.m, rpc: s.rpc, listener: s.listener, session: s.session}
	name := s.name
	s.m = nil
	c.mu.Unlock()
	c.electing.Unlock()
	if run.m == nil {
		return fmt.Errorf("master %d is stopped already", i)
	}
	session := run.end(kill)
	c.zk.CloseSession(session)
	c.events.Cluster(eventlog.Event{Method: "stop-master", Server: name.Address(), Detail: name.String()})
	c.background(c.takeOver)
	return nil
}

// StopMaster stops a master in order, KillMaster as kill -9 does.
func (c *Cluster) StopMaster(i int) error { return c.endMaster(i, false) }

// KillMaster ends a master as kill -9 does.
func (c *Cluster) KillMaster(i int) error { return c.endMaster(i, true) }

// StartMaster starts a master that was stopped or killed, at the same port. It
// becomes the active one if there is none.
func (c *Cluster) StartMaster(i int) error {
	s, err := c.masterAt(i)
	if err != nil {
		return err
	}
	c.mu.Lock()
	running := s.m != nil
	c.mu.Unlock()
	if running {
		return fmt.Errorf("master %d is running", i)
	}
	l, err := c.opts.listen(s.port)
	if err != nil {
		return fmt.Errorf("master %d: %w", i, err)
	}
	if err := c.startMaster(s, l); err != nil {
		return err
	}
	m, err := c.elect()
	if err != nil {
		return err
	}
	c.background(func() { _ = m.AssignUnassigned(c.ctx) })
	return nil
}

// ActiveMaster names the active master, the zero name if there is none.
func (c *Cluster) ActiveMaster() meta.ServerName {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.masters {
		if s.m != nil && s.m.Active() {
			return s.name
		}
	}
	return meta.ServerName{}
}

// Masters gives the masters that run, the active one first.
func (c *Cluster) Masters() []host.MasterEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []host.MasterEntry
	for _, s := range c.masters {
		if s.m != nil {
			out = append(out, host.MasterEntry{Name: s.name, Active: s.m.Active()})
		}
	}
	slices.SortStableFunc(out, func(a, b host.MasterEntry) int {
		switch {
		case a.Active == b.Active:
			return 0
		case a.Active:
			return -1
		}
		return 1
	})
	return out
}

// MasterInfo describes a master's slot.
type MasterInfo struct {
	Index   int    `json:"index"`
	Address string `json:"address"`
	Name    string `json:"name"`
	Running bool   `json:"running"`
	Active  bool   `json:"active"`
}

// MasterSlots describes all masters by index.
func (c *Cluster) MasterSlots() []MasterInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]MasterInfo, len(c.masters))
	for i, s := range c.masters {
		out[i] = MasterInfo{Index: i, Address: s.name.Address(), Name: s.name.String(), Running: s.m != nil, Active: s.m != nil && s.m.Active()}
	}
	return out
}
