package cluster

import (
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
)

// Options of a cluster. The zero value is an in-memory cluster of three region
// servers on free loopback ports, whose deaths are noticed at once.
type Options struct {
	// Dir holds the data, made if missing; "" keeps everything in memory.
	Dir string
	// Servers is the number of region servers; 0 means 3.
	Servers int
	// BackupMasters wait to take over; 0 by default.
	BackupMasters int
	// ZooKeepers is the number of members of the virtual ensemble; 0 means 1.
	ZooKeepers int
	// Ports: 0 takes any free port. Region servers take consecutive ports from
	// RegionServerPort on, backup masters from MasterPort+1 on, members of the
	// ensemble from ZooKeeperPort on.
	ZooKeeperPort, MasterPort, RegionServerPort int
	// Advertise is the host name clients are told to connect to; "" means
	// 127.0.0.1.
	Advertise string
	// Listen is the address to bind; "" means 127.0.0.1, or all addresses if
	// Advertise names another host.
	Listen string
	// ZNodeParent is zookeeper.znode.parent; "" means /hbase.
	ZNodeParent string

	// NoFsync acknowledges writes before they are on disk.
	NoFsync bool
	// CacheBytes is the store's block cache; 0 leaves it to the store.
	CacheBytes int64

	// SessionTimeout is how long a region server that was killed or paused
	// stays in ZooKeeper; 0 means that a kill is noticed at once and a pause
	// never.
	SessionTimeout time.Duration
	// RecoveryDelay is how long a dead server's regions stay closed after its
	// death was noticed (a real master splits logs meanwhile); 0 by default.
	RecoveryDelay time.Duration
	// LoseUnsynced makes every death of a region server that is not an orderly
	// stop lose what it would lose of HBase: writes with durability ASYNC_WAL
	// that were not synced yet, with SKIP_WAL since their region's last flush.
	LoseUnsynced bool
	// ScannerLease is hbase.client.scanner.timeout.period; 0 means 60 s.
	ScannerLease time.Duration
	// JanitorPeriod is how often split parents are cleaned up; 0 means 5 min.
	JanitorPeriod time.Duration
	// ZooKeeperTick is ZooKeeper's tickTime, on which the session timeouts that
	// clients can get depend (2 to 20 ticks); 0 means 2 s.
	ZooKeeperTick time.Duration

	// Events is the number of events the log keeps; 0 means its default,
	// negative switches it off.
	Events int
	// HBaseVersion is what the cluster calls itself; "" means 2.6.4.
	HBaseVersion string
	// Quotas is hbase.quota.enabled: quotas are kept in hbase:quota and
	// enforced. Off, as in HBase, they are refused.
	Quotas bool
	// SpaceQuotaPeriod is how often the use of space quotas is reckoned; 0 means
	// 1 s.
	SpaceQuotaPeriod time.Duration
	// MaxCalls bounds the calls in flight of each region server; 0 means 32768.
	MaxCalls int
	// SlowLog keeps slow and large calls of region servers; nil keeps none.
	SlowLog *regionserver.SlowLog
	// BalancerLog keeps the balancer's decisions and rejections.
	BalancerLog bool
	// Logger; nil discards.
	Logger *slog.Logger
	// Clock, if set, replaces the cluster's own.
	Clock *Clock
}

func (o Options) withDefaults() Options {
	if o.Servers <= 0 {
		o.Servers = 3
	}
	if o.ZooKeepers <= 0 {
		o.ZooKeepers = 1
	}
	if o.Advertise == "" {
		o.Advertise = "127.0.0.1"
	}
	if o.Listen == "" {
		if ip := net.ParseIP(o.Advertise); ip != nil && ip.IsLoopback() || o.Advertise == "localhost" {
			o.Listen = "127.0.0.1"
		}
	}
	if o.ZNodeParent == "" {
		o.ZNodeParent = "/hbase"
	}
	if o.JanitorPeriod == 0 {
		o.JanitorPeriod = 5 * time.Minute
	}
	if o.SpaceQuotaPeriod == 0 {
		o.SpaceQuotaPeriod = time.Second
	}
	if o.HBaseVersion == "" {
		o.HBaseVersion = "2.6.4"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = &Clock{}
	}
	return o
}

// bind keeps a port (0: any free one) for a server and listens on it.
func (o *Options) bind(port int) (net.Listener, *reservation, error) {
	r := reserve(o.Listen, port)
	if r != nil {
		port = r.port
	}
	l, err := o.listen(port)
	if err != nil {
		r.release()
		return nil, nil, err
	}
	return l, r, nil
}

func (o *Options) listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(o.Listen, strconv.Itoa(port)))
}

func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}
