package minihbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Options of a cluster. The zero value is an in-memory cluster of three region
// servers on free loopback ports.
type Options struct {
	// Dir holds the data and is made if missing. Empty, or with InMemory set,
	// everything is in memory.
	Dir      string
	InMemory bool
	// Servers is the number of region servers, 3 by default.
	Servers int
	// BackupMasters wait to take over from the master; none by default.
	BackupMasters int

	// ZooKeepers is the number of members of the ZooKeeper ensemble, 1 by default,
	// at most 15. They share one tree and have no quorum between them; what
	// clients can see of an ensemble whose members fail is played on request
	// (BreakZooKeeper, StallZooKeeperLeader).
	ZooKeepers int

	// Ports. 0 takes any free port; region servers take consecutive ports from
	// RegionServerPort on, backup masters from MasterPort+1 on, members of the
	// ensemble from ZooKeeperPort on. ControlPort -1 switches the control port
	// off.
	ZooKeeperPort, MasterPort, RegionServerPort, ControlPort int
	// Advertise is the host name under which clients reach the servers;
	// 127.0.0.1 by default. With another one, servers listen on all addresses;
	// the control port always listens on loopback.
	Advertise string
	// ZNodeParent is HBase's zookeeper.znode.parent; /hbase by default.
	ZNodeParent string

	// NoFsync acknowledges writes before they are on disk: what was
	// acknowledged survives the process, not the machine.
	NoFsync bool
	// CacheBytes is the size of the block cache; 0 chooses 8 MiB in memory and
	// 64 MiB on disk.
	CacheBytes int64

	// SessionTimeout is how long a region server that was killed or paused
	// stays in ZooKeeper. 0, the default, means that a kill is noticed at once
	// and a pause never.
	SessionTimeout time.Duration
	// RecoveryDelay is how long a dead server's regions stay closed after its
	// death was noticed; 0 by default. A real cluster splits logs meanwhile.
	RecoveryDelay time.Duration
	// LoseUnsynced makes every death of a region server that is not an orderly
	// stop (a kill, an expired session) lose what
	// KillAndLose says. Off by default: no write that was answered is lost.
	LoseUnsynced bool
	// ScannerLease is how long a scanner lives without a call; 60 s by default.
	ScannerLease time.Duration
	// JanitorPeriod is how long split parents stay in hbase:meta at most; 5 min
	// by default.
	JanitorPeriod time.Duration
	// ZooKeeperTick is ZooKeeper's tickTime; clients get session timeouts of 2
	// to 20 ticks. 2 s by default.
	ZooKeeperTick time.Duration

	// Events is how many events the log remembers; 0 chooses 8192, negative
	// switches the log off.
	Events int
	// HBaseVersion is what the cluster says it is; 2.6.4 by default.
	HBaseVersion string
	// Quotas is hbase.quota.enabled, off by default as in HBase: quotas can be
	// set, are listed in hbase:quota, and are enforced.
	Quotas bool
	// SpaceQuotaPeriod is how often it is reckoned, with Quotas, what tables use
	// of their space quotas, 1 s by default (HBase's servers take some minutes
	// all in all); see ReckonSpace.
	SpaceQuotaPeriod time.Duration
	// MaxCalls is how many calls a region server works on or keeps waiting at one
	// time, over all connections; those beyond are answered with
	// CallQueueTooBigException. 0 means 32,768. A real server with HBase's
	// defaults (30 handlers and hbase.ipc.server.max.callqueue.length) has 330.
	MaxCalls int
	// SlowLog is hbase.regionserver.slowlog.buffer.enabled, off by default as in
	// HBase: each region server keeps its last 256 calls that took longer than
	// SlowLogTime or answered more than SlowLogBytes, for getSlowLogResponses and
	// the like. A chaos rule's delay counts.
	SlowLog bool
	// SlowLogTime is hbase.ipc.warn.response.time, 10 s by default, SlowLogBytes
	// hbase.ipc.warn.response.size, 100 MiB by default; negative for none.
	SlowLogTime  time.Duration
	SlowLogBytes int64
	// BalancerLog is hbase.master.balancer.decision.buffer.enabled and
	// hbase.master.balancer.rejection.buffer.enabled, off by default: the master
	// keeps the last 250 of each.
	BalancerLog bool
	// Logger receives what a server's log would say; nil discards.
	Logger *slog.Logger
	// Clock, if set, is used and controlled by the caller; it must not be
	// shared between clusters.
	Clock *Clock
}

// Clock is the cluster's clock for timestamps, TTLs and ZooKeeper sessions: the
// system's, until it is frozen or moved.
type Clock = cluster.Clock

// Cluster is a running cluster.
type Cluster struct {
	c       *cluster.Cluster
	control *controlServer // nil if off
}

// ErrClosed is given by calls on a closed cluster, ErrNoMaster by what needs a
// master while none is active.
var (
	ErrClosed   = cluster.ErrClosed
	ErrNoMaster = cluster.ErrNoMaster
)

func (o *Options) check() error {
	var errs []error
	for name, p := range map[string]int{"ZooKeeperPort": o.ZooKeeperPort, "MasterPort": o.MasterPort, "RegionServerPort": o.RegionServerPort} {
		if p < 0 || p > 65535 {
			errs = append(errs, fmt.Errorf("%s %d is no port: 0 (any) to 65535", name, p))
		}
	}
	if o.ControlPort < -1 || o.ControlPort > 65535 {
		errs = append(errs, fmt.Errorf("ControlPort %d is no port: -1 (off), 0 (any) to 65535", o.ControlPort))
	}
	if o.InMemory && o.Dir != "" {
		errs = append(errs, errors.New("options Dir and InMemory exclude one another"))
	}
	if o.Servers < 0 || o.Servers > 1000 {
		errs = append(errs, fmt.Errorf("%d Servers: 0 (for 3) to 1000 are possible", o.Servers))
	}
	if o.BackupMasters < 0 || o.BackupMasters > 10 {
		errs = append(errs, fmt.Errorf("%d BackupMasters: 0 to 10 are possible", o.BackupMasters))
	}
	if o.MaxCalls < 0 {
		errs = append(errs, fmt.Errorf("%d MaxCalls: 0 (for 32768) or more are possible", o.MaxCalls))
	}
	if o.ZooKeepers < 0 || o.ZooKeepers > 15 {
		errs = append(errs, fmt.Errorf("%d ZooKeepers: 0 (for 1) to 15 are possible", o.ZooKeepers))
	}
	if o.ZNodeParent != "" && (!strings.HasPrefix(o.ZNodeParent, "/") || strings.HasSuffix(o.ZNodeParent, "/")) {
		errs = append(errs, fmt.Errorf("ZNodeParent %q is not like /hbase", o.ZNodeParent))
	}
	for name, d := range map[string]time.Duration{"SessionTimeout": o.SessionTimeout, "RecoveryDelay": o.RecoveryDelay, "ScannerLease": o.ScannerLease, "JanitorPeriod": o.JanitorPeriod, "ZooKeeperTick": o.ZooKeeperTick, "SpaceQuotaPeriod": o.SpaceQuotaPeriod} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s %v is negative", name, d))
		}
	}
	return errors.Join(errs...)
}

// Start brings a cluster up; when it returns, clients can connect and every
// region is open. Close ends it. If ctx ends first, nothing is left behind.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("minihbase: %w", err)
	}
	var slow *regionserver.SlowLog
	if o.SlowLog {
		slow = &regionserver.SlowLog{Slow: o.SlowLogTime, Large: o.SlowLogBytes}
	}
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: o.Dir, Servers: o.Servers, BackupMasters: o.BackupMasters,
		ZooKeepers: o.ZooKeepers, ZooKeeperPort: o.ZooKeeperPort, MasterPort: o.MasterPort, RegionServerPort: o.RegionServerPort,
		Advertise: o.Advertise, ZNodeParent: o.ZNodeParent, NoFsync: o.NoFsync, CacheBytes: o.CacheBytes,
		SessionTimeout: o.SessionTimeout, RecoveryDelay: o.RecoveryDelay, LoseUnsynced: o.LoseUnsynced, ScannerLease: o.ScannerLease,
		JanitorPeriod: o.JanitorPeriod, ZooKeeperTick: o.ZooKeeperTick,
		Events: o.Events, HBaseVersion: o.HBaseVersion, Quotas: o.Quotas, SpaceQuotaPeriod: o.SpaceQuotaPeriod, MaxCalls: o.MaxCalls, SlowLog: slow, BalancerLog: o.BalancerLog, Logger: o.Logger, Clock: o.Clock,
	})
	if err != nil {
		return nil, fmt.Errorf("minihbase: %w", err)
	}
	m := &Cluster{c: c}
	if o.ControlPort >= 0 {
		if m.control, err = startControl(m, o.ControlPort); err != nil {
			return nil, errors.Join(fmt.Errorf("minihbase: control port: %w", err), c.Close())
		}
	}
	return m, nil
}

// Close ends the cluster: connections are reset, data on disk is complete.
// Calling it again is harmless.
func (m *Cluster) Close() error {
	if m.control != nil {
		m.control.close()
	}
	return m.c.Close()
}

// Done is closed when a client told the cluster to shut down (the shell's
// "shutdown"), or after Close.
func (m *Cluster) Done() <-chan struct{} { return m.c.Done() }

// Address is what clients connect to: hbase://host:port/parent, with every
// member of the ensemble: hbase://host:port,host:port/parent.
func (m *Cluster) Address() string {
	return "hbase://" + m.ZooKeeper() + m.c.ZNodeParent()
}

// ZooKeeper is ZooKeeper's host:port; of an ensemble, the members' with commas
// between them, as ZooKeeper's clients take them.
func (m *Cluster) ZooKeeper() string { return m.c.ZooKeeperAddress() }

// ZooKeepers are the host:port of the ensemble's members by index.
func (m *Cluster) ZooKeepers() []string { return m.c.ZooKeeperAddresses() }

// Master is the active master's host:port; while there is none, the first
// master's.
func (m *Cluster) Master() string {
	if n := m.c.ActiveMaster(); !n.IsZero() {
		return n.Address()
	}
	return m.c.MasterSlots()[0].Address
}

// RegionServers are the region servers' host:port by index, whether they run or
// not.
func (m *Cluster) RegionServers() []string { return m.c.Addresses() }

// Control is the control port's URL, "" if it is off.
func (m *Cluster) Control() string {
	if m.control == nil {
		return ""
	}
	return m.control.url
}

// SiteXML is an hbase-site.xml for Java clients.
func (m *Cluster) SiteXML() string {
	quorum := m.ZooKeeper()
	// A lone server's port goes where the oldest clients look for it; with the
	// servers of an ensemble each has its own, which wins over clientPort.
	host, port, _ := meta.ParseAddress(m.ZooKeepers()[0])
	if len(m.ZooKeepers()) == 1 {
		quorum = host
	}
	return fmt.Sprintf(`<?xml version="1.0"?>
<configuration>
  <property><name>hbase.zookeeper.quorum</name><value>%s</value></property>
  <property><name>hbase.zookeeper.property.clientPort</name><value>%d</value></property>
  <property><name>zookeeper.znode.parent</name><value>%s</value></property>
</configuration>
`, quorum, port, m.c.ZNodeParent())
}

// Clock is the cluster's clock.
func (m *Cluster) Clock() *Clock { return m.c.Clock() }

// Reset gives the cluster the shape it had at first: every server alive, no
// rules and no disturbances, the clock the system's, no tables, namespaces,
// groups and snapshots but HBase's own. Addresses stay; the event log goes on.
func (m *Cluster) Reset(ctx context.Context) error { return m.c.Reset(ctx) }
