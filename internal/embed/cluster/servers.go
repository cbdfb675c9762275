package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// State is what a region server's slot is doing.
type State string

// The states. A dead server was killed, one that is stopped ended in order.
const (
	Running State = "running"
	Paused  State = "paused"
	Hung    State = "hung"
	Stopped State = "stopped"
	Dead    State = "dead"
)

// slot is a region server's place: its fields are guarded by Cluster.mu.
type slot struct {
	index   int
	port    int
	address string // as advertised
	// listener is bound before the first start, so that the port is known.
	listener net.Listener
	kept     *reservation
	process  *process // nil before the first start
	state    State
}

// process is one incarnation of a region server.
type process struct {
	*regionserver.Server
	slot     *slot
	listener net.Listener
	session  int64 // ZooKeeper session that owns the znode
	// leaving is set when an orderly stop begins: no region is opened here any
	// more, while those that are here move away.
	leaving atomic.Bool
	gone    bool // declared dead; guarded by Cluster.mu
}

// Alive is false once the server is ending.
func (p *process) Alive() bool { return !p.leaving.Load() && p.Server.Alive() }

// Kill ends the server as kill -9 does. The listener is closed here as well:
// the server closes only what its accepting goroutine has been given, and a
// restart right behind a start must find the port free.
func (p *process) Kill() {
	p.Server.Kill()
	p.listener.Close()
}

var _ host.RegionServer = (*process)(nil)

// end kills what runs in the slot; for Close.
func (s *slot) end() {
	if s.process != nil {
		s.process.Kill()
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.kept.release()
}

// addSlot makes the next slot and binds its port.
func (c *Cluster) addSlot() (*slot, error) {
	c.adding.Lock()
	defer c.adding.Unlock()
	c.mu.Lock()
	i := len(c.slots)
	c.mu.Unlock()
	port := c.opts.RegionServerPort
	if port != 0 {
		port += i
	}
	l, kept, err := c.opts.bind(port)
	if err != nil {
		return nil, fmt.Errorf("region server %d: %w", i, err)
	}
	s := &slot{index: i, port: portOf(l), listener: l, kept: kept, state: Stopped}
	s.address = (meta.ServerName{Host: c.opts.Advertise, Port: s.port}).Address()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		l.Close()
		kept.release()
		return nil, ErrClosed
	}
	c.slots = append(c.slots, s)
	return s, nil
}

// startServer starts a new incarnation in a slot.
func (c *Cluster) startServer(s *slot) error {
	c.mu.Lock()
	old, l := s.process, s.listener
	s.listener = nil
	running := s.state != Stopped && s.state != Dead
	c.mu.Unlock()
	if running {
		return fmt.Errorf("region server %d is %s already", s.index, s.state)
	}
	if old != nil {
		// The master takes a new incarnation at an address as the proof of
		// the old one's death.
		c.declareDead(old, 0)
	}
	if l == nil {
		var err error
		if l, err = c.opts.listen(s.port); err != nil {
			return fmt.Errorf("region server %d: %w", s.index, err)
		}
	}
	code, err := c.nextStartCode()
	if err != nil {
		l.Close()
		return err
	}
	name := meta.ServerName{Host: c.opts.Advertise, Port: s.port, StartCode: code}
	p := &process{slot: s, listener: l, Server: regionserver.New(regionserver.Config{
		Name: name, Store: c.store, Cluster: c, Lazy: c.opener, ReplicaReadPoint: c.replicaReadPoint, ScannerLease: c.opts.ScannerLease,
		InlineWrites: c.opts.Dir == "" || c.opts.NoFsync, Quotas: c.quotas(), MaxCalls: c.opts.MaxCalls, SlowLog: c.opts.SlowLog,
		Chaos: c.rules, Events: c.events, Logger: c.log.With("server", name.String()),
	})}
	p.session = c.zk.OpenSession(c.sessionTimeout())
	c.put(c.path("rs", name.String()), c.serverInfo(), p.session)
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		l.Close()
		return ErrClosed
	}
	s.process, s.state = p, Running
	c.live = append(c.live, p)
	slices.SortFunc(c.live, func(a, b *process) int { return a.slot.index - b.slot.index })
	c.wg.Go(func() { _ = p.Serve(l); p.Wait() })
	c.signal()
	c.mu.Unlock()
	c.events.Cluster(eventlog.Event{Method: "start", Server: s.address, Detail: name.String()})
	return nil
}

// quotas tells a server the throttles of its calls; nil without quotas.
func (c *Cluster) quotas() host.Quotas {
	if !c.opts.Quotas {
		return nil
	}
	return catalog.NewThrottles(c.catalog)
}

// sessionTimeout is what a server's ZooKeeper session would have; HBase's own
// default if deaths are noticed at once.
func (c *Cluster) sessionTimeout() time.Duration {
	if c.opts.SessionTimeout > 0 {
		return c.opts.SessionTimeout
	}
	return 90 * time.Second
}

// signal tells waiters that the live list has changed. Called with mu held.
func (c *Cluster) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// declareDead takes a server out of ZooKeeper and of the live list, and has its
// regions opened elsewhere after the delay. Only the first call counts.
func (c *Cluster) declareDead(p *process, delay time.Duration) {
	c.mu.Lock()
	if p.gone {
		c.mu.Unlock()
		return
	}
	p.gone = true
	lose := c.opts.LoseUnsynced && !c.closing
	c.live = slices.DeleteFunc(slices.Clone(c.live), func(q *process) bool { return q == p })
	c.dead = append(c.dead, p.Name())
	// A cluster that kills servers for days needs not remember them all.
	if len(c.dead) > 1000 {
		c.dead = slices.Clone(c.dead[len(c.dead)-1000:])
	}
	c.signal()
	c.mu.Unlock()
	if lose {
		// Of a server that was killed or stopped, nothing is left to lose.
		n, err := p.LoseUnsynced()
		if err != nil {
			c.log.Warn("losing what was not synced", "server", p.Name().String(), "err", err)
		}
		c.lost(p, n)
	}
	c.zk.CloseSession(p.session)
	c.events.Cluster(eventlog.Event{Method: "dead", Server: p.Name().Address(), Detail: p.Name().String()})
	c.background(func() {
		if c.wait(delay) != nil {
			return
		}
		if m := c.active(); m != nil {
			if err := m.ServerDied(c.ctx, p.Name()); err != nil && c.ctx.Err() == nil {
				// The master was stopped meanwhile; the next one looks for
				// regions without a server when it starts.
				c.log.Warn("recovery of a dead server", "server", p.Name().String(), "err", err)
			}
		}
	})
}

// wait waits for d or the cluster's end.
func (c *Cluster) wait(d time.Duration) error {
	if d <= 0 {
		return c.ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// slotAt finds a region server by index.
func (c *Cluster) slotAt(i int) (*slot, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, ErrClosed
	}
	if i < 0 || i >= len(c.slots) {
		return nil, fmt.Errorf("there is no region server %d: there are %d, counted from 0", i, len(c.slots))
	}
	return c.slots[i], nil
}

// running gives the process of a slot that has not ended, and moves the slot to
// another state; an empty state leaves it.
func (c *Cluster) running(i int, next State) (*process, error) {
	s, err := c.slotAt(i)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.state == Stopped || s.state == Dead {
		return nil, fmt.Errorf("region server %d (%s) is %s", i, s.address, s.state)
	}
	if next != "" {
		s.state = next
	}
	return s.process, nil
}

// Kill ends a region server as kill -9 does.
func (c *Cluster) Kill(i int) error { return c.kill(i, c.opts.LoseUnsynced) }

// KillAndLose is a Kill that loses what it would lose of HBase: see
// Options.LoseUnsynced.
func (c *Cluster) KillAndLose(i int) error { return c.kill(i, true) }

func (c *Cluster) kill(i int, lose bool) error {
	p, err := c.running(i, Dead)
	if err != nil {
		return err
	}
	if lose {
		var n int
		n, err = p.KillAndLose()
		c.lost(p, n)
	}
	p.Kill()
	c.events.Cluster(eventlog.Event{Method: "kill", Server: p.Name().Address(), Detail: p.Name().String()})
	c.noticeDeath(p)
	return err
}

// lost tells that a server has taken writes with it.
func (c *Cluster) lost(p *process, n int) {
	if n > 0 {
		c.events.Cluster(eventlog.Event{Method: "lose", Server: p.Name().Address(), Detail: fmt.Sprintf("%d cells not yet synced", n)})
	}
}

// noticeDeath declares a server dead that ended without a word: when its
// session runs out, or at once if that is how the cluster is set up.
func (c *Cluster) noticeDeath(p *process) {
	if c.opts.SessionTimeout <= 0 {
		c.declareDead(p, c.opts.RecoveryDelay)
		return
	}
	c.background(func() {
		if c.wait(c.opts.SessionTimeout) == nil {
			c.declareDead(p, c.opts.RecoveryDelay)
		}
	})
}

// stopTimeout bounds how long an orderly stop waits for running calls.
const stopTimeout = 30 * time.Second

// Stop ends a region server in order: its regions move away first, as far as
// there is a place for them; then it refuses calls and ends.
func (c *Cluster) Stop(ctx context.Context, i int) error {
	p, err := c.running(i, Stopped)
	if err != nil {
		return err
	}
	c.events.Cluster(eventlog.Event{Method: "stop", Server: p.Name().Address(), Detail: p.Name().String()})
	p.Resume()
	p.leaving.Store(true)
	if m := c.active(); m != nil {
		m.Drain(ctx, p)
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	err = p.Server.Stop(ctx)
	p.Kill()
	c.declareDead(p, 0)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// StartServer starts a region server that was stopped or killed, at the same
// port with a larger start code.
func (c *Cluster) StartServer(i int) error {
	s, err := c.slotAt(i)
	if err != nil {
		return err
	}
	return c.startServer(s)
}

// AddServer adds and starts a region server and gives its index.
func (c *Cluster) AddServer() (int, error) {
	s, err := c.addSlot()
	if err != nil {
		return 0, err
	}
	if err := c.catalog.Update(func(tx *catalog.Tx) error { tx.SetSetting(settingServer(s.index), s.address); return nil }); err != nil {
		return 0, err
	}
	return s.index, c.startServer(s)
}

// Pause makes a region server neither read nor write, as SIGSTOP does. If there
// is a session timeout and it runs out, the server is declared dead, and ends
// when it is resumed.
func (c *Cluster) Pause(i int) error {
	p, err := c.running(i, Paused)
	if err != nil {
		return err
	}
	p.Pause()
	c.events.Cluster(eventlog.Event{Method: "pause", Server: p.Name().Address()})
	if d := c.opts.SessionTimeout; d > 0 {
		c.background(func() {
			if c.wait(d) != nil {
				return
			}
			c.mu.Lock()
			paused := p.slot.process == p && p.slot.state == Paused
			c.mu.Unlock()
			if paused {
				c.declareDead(p, c.opts.RecoveryDelay)
			}
		})
	}
	return nil
}

// Hang makes a region server read but never answer, until it is resumed. Its
// heartbeats go on.
func (c *Cluster) Hang(i int) error {
	p, err := c.running(i, Hung)
	if err != nil {
		return err
	}
	p.Hang()
	c.events.Cluster(eventlog.Event{Method: "hang", Server: p.Name().Address()})
	return nil
}

// Resume undoes Pause and Hang. A server that was declared dead meanwhile ends,
// as one does that finds its session expired.
func (c *Cluster) Resume(i int) error {
	p, err := c.running(i, "")
	if err != nil {
		return err
	}
	c.mu.Lock()
	gone := p.gone
	if gone {
		p.slot.state = Dead
	} else {
		p.slot.state = Running
	}
	c.mu.Unlock()
	c.events.Cluster(eventlog.Event{Method: "resume", Server: p.Name().Address()})
	if gone {
		p.Kill()
		return nil
	}
	p.Resume()
	return nil
}

// Slow delays every answer of a region server by d; 0 ends that.
func (c *Cluster) Slow(i int, d time.Duration) error {
	p, err := c.running(i, "")
	if err != nil {
		return err
	}
	p.Slow(d)
	c.events.Cluster(eventlog.Event{Method: "slow", Server: p.Name().Address(), Detail: d.String()})
	return nil
}

// Expire ends a region server's ZooKeeper session. The server, finding it
// expired, ends itself.
func (c *Cluster) Expire(i int) error {
	p, err := c.running(i, Dead)
	if err != nil {
		return err
	}
	c.events.Cluster(eventlog.Event{Method: "expire", Server: p.Name().Address(), Detail: p.Name().String()})
	p.leaving.Store(true)
	c.declareDead(p, c.opts.RecoveryDelay)
	p.Kill()
	return nil
}

// expireNamed is Expire for the server of that name, if it runs.
func (c *Cluster) expireNamed(name meta.ServerName) {
	c.mu.Lock()
	i := slices.IndexFunc(c.slots, func(s *slot) bool { return s.process != nil && s.process.Name() == name })
	c.mu.Unlock()
	if i >= 0 {
		_ = c.Expire(i) // it ends by itself at this moment
	}
}

// ResetConnections resets every connection of a region server.
func (c *Cluster) ResetConnections(i int) error {
	p, err := c.running(i, "")
	if err != nil {
		return err
	}
	p.RPC().ResetConns()
	return nil
}

// ServerInfo describes a region server's slot.
type ServerInfo struct {
	Index   int    `json:"index"`
	Address string `json:"address"`
	// Name is the last incarnation's host,port,startcode.
	Name    string `json:"name"`
	State   State  `json:"state"`
	Regions int    `json:"regions"`
}

// Servers describes all region servers by index.
func (c *Cluster) Servers() []ServerInfo {
	c.mu.Lock()
	slots := slices.Clone(c.slots)
	infos := make([]ServerInfo, len(slots))
	procs := make([]*process, len(slots))
	for i, s := range slots {
		infos[i] = ServerInfo{Index: s.index, Address: s.address, State: s.state}
		procs[i] = s.process
	}
	c.mu.Unlock()
	for i, p := range procs {
		if p == nil {
			continue
		}
		infos[i].Name = p.Name().String()
		if p.Server.Alive() {
			infos[i].Regions = p.RegionCount() + c.catalog.State().GeneratedOn(p.Name())
		}
	}
	return infos
}
