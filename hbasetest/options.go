package hbasetest

import (
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// Option changes how a cluster starts. The default is minihbase's: in memory,
// three region servers, one master, free ports, deaths noticed at once.
type Option func(*config)

type config struct {
	cluster minihbase.Options
	client  []hbase.Option
}

// WithOptions starts from these options instead of the zero ones; options after
// it change them.
func WithOptions(o minihbase.Options) Option { return func(c *config) { c.cluster = o } }

// WithServers sets the number of region servers, 1 to 1000.
func WithServers(n int) Option { return func(c *config) { c.cluster.Servers = n } }

// WithBackupMasters has so many masters wait to take over, 0 to 10.
func WithBackupMasters(n int) Option { return func(c *config) { c.cluster.BackupMasters = n } }

// WithZooKeepers has so many members in the ZooKeeper ensemble, 1 to 15, for
// BreakZooKeeper and StallZooKeeperLeader.
func WithZooKeepers(n int) Option { return func(c *config) { c.cluster.ZooKeepers = n } }

// WithDir keeps the data on disk, for tests that close a cluster and open it
// again: t.TempDir() is the usual folder.
func WithDir(dir string) Option { return func(c *config) { c.cluster.Dir = dir } }

// WithRealPace makes deaths take time, as on a real cluster: a killed server
// stays in ZooKeeper for session, and its regions stay closed for recovery after
// that.
func WithRealPace(session, recovery time.Duration) Option {
	return func(c *config) { c.cluster.SessionTimeout, c.cluster.RecoveryDelay = session, recovery }
}

// WithClient gives options to the client of Cluster.Client and Cluster.Table.
func WithClient(o ...hbase.Option) Option {
	return func(c *config) { c.client = append(c.client, o...) }
}
