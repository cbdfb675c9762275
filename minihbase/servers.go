package minihbase

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
)

// ServerInfo describes a region server, MasterInfo a master.
type (
	ServerInfo = cluster.ServerInfo
	MasterInfo = cluster.MasterInfo
)

// Servers describes the region servers by index.
func (m *Cluster) Servers() []ServerInfo { return m.c.Servers() }

// FindServer finds a region server's index by its host:port, its
// host,port,startcode, or "meta" for the one that holds hbase:meta.
func (m *Cluster) FindServer(name string) (int, error) { return m.c.FindServer(name) }

// KillRegionServer ends a region server as kill -9 does: its connections are
// reset, its port closed; its regions open elsewhere after the session timeout
// and the recovery delay of the Options. No write is lost that was answered,
// unless Options.LoseUnsynced is set.
func (m *Cluster) KillRegionServer(i int) error { return m.c.Kill(i) }

// KillAndLose kills a region server as KillRegionServer does, and with it the
// writes that HBase would lose:
//
//   - with durability ASYNC_WAL, those since the server's log was last synced:
//     by a SYNC_WAL or FSYNC_WAL write to any region of the server, or one
//     second of the cluster's clock after the first ASYNC_WAL write that waited
//     for it. While the clock is frozen, that second never ends;
//   - with SKIP_WAL, those since the last flush of their region.
//
// Until then readers see them. A flush, a move, a split or merge, a reopening
// by an alter, a snapshot, a major compaction and an orderly stop make a
// region's writes safe. So does their mass: beyond 8 MiB of keys per region or
// 32 MiB per server the region counts as flushed. A write without a durability
// has its table's.
func (m *Cluster) KillAndLose(i int) error { return m.c.KillAndLose(i) }

// StopRegionServer ends a region server in order: its regions move to the
// others first, then running calls are waited for until ctx ends.
func (m *Cluster) StopRegionServer(ctx context.Context, i int) error { return m.c.Stop(ctx, i) }

// StartRegionServer starts a region server that was killed or stopped, at the
// same port with a larger start code.
func (m *Cluster) StartRegionServer(i int) error { return m.c.StartServer(i) }

// AddRegionServer adds and starts a region server and gives its index. It holds
// no regions until some are moved or balanced.
func (m *Cluster) AddRegionServer() (int, error) { return m.c.AddServer() }

// PauseRegionServer makes a region server neither read nor write, as SIGSTOP
// does. With a session timeout, it is declared dead when that has run out, and
// ends when resumed.
func (m *Cluster) PauseRegionServer(i int) error { return m.c.Pause(i) }

// HangRegionServer makes a region server read but never answer; ZooKeeper still
// hears of it.
func (m *Cluster) HangRegionServer(i int) error { return m.c.Hang(i) }

// ResumeRegionServer undoes Pause and Hang.
func (m *Cluster) ResumeRegionServer(i int) error { return m.c.Resume(i) }

// SlowRegionServer delays every answer of a region server by d; 0 ends that.
func (m *Cluster) SlowRegionServer(i int, d time.Duration) error { return m.c.Slow(i, d) }

// ExpireSession ends a region server's ZooKeeper session. As a real one does,
// the server ends when it finds its session expired.
func (m *Cluster) ExpireSession(i int) error { return m.c.Expire(i) }

// ResetConnections resets every connection of a region server, which goes on.
func (m *Cluster) ResetConnections(i int) error { return m.c.ResetConnections(i) }

// Masters describes the masters by index.
func (m *Cluster) Masters() []MasterInfo { return m.c.MasterSlots() }

// StopMaster ends a master in order, KillMaster as kill -9 does; a backup, if
// there is one, takes over. Data is served without a master.
func (m *Cluster) StopMaster(i int) error { return m.c.StopMaster(i) }

// KillMaster ends a master as kill -9 does.
func (m *Cluster) KillMaster(i int) error { return m.c.KillMaster(i) }

// StartMaster starts a master that was stopped or killed, at the same port.
func (m *Cluster) StartMaster(i int) error { return m.c.StartMaster(i) }

// SetTransitionGap makes every region that moves, splits, merges or opens stay
// closed for d in between, visible in hbase:meta. 0, the default, makes
// transitions that no client can fall into.
func (m *Cluster) SetTransitionGap(d time.Duration) { m.c.Controls().SetTransitionGap(d) }

// SetReplicaLag lets secondary replicas of regions (REGION_REPLICATION) lag d
// behind: reads of them see what was there d ago, but nothing older than this
// call. 0, the default, ends it: they show what the region has.
func (m *Cluster) SetReplicaLag(d time.Duration) { m.c.SetReplicaLag(d) }

// SetProcedureDelay makes every procedure of the master take d longer.
func (m *Cluster) SetProcedureDelay(d time.Duration) { m.c.Controls().SetProcedureDelay(d) }

// SetMasterInitializing makes the master answer PleaseHoldException, as one
// does that is still starting.
func (m *Cluster) SetMasterInitializing(on bool) { m.c.Controls().SetInitializing(on) }
