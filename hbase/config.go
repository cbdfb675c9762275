package hbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// Config is a client's effective configuration; [Client.Config] gives a copy.
type Config struct {
	// Address is the cluster's address as given to Open.
	Address string
	// User is the effective user of every call. Default: $HADOOP_USER_NAME, or
	// the operating system's user. RealUser is the proxying user, if any.
	User, RealUser string
	// OperationTimeout bounds an operation whose context ends later or never,
	// with all its retries. Default 60 s, 1 ms to 24 h. (HBase's Java client:
	// 20 min.)
	OperationTimeout time.Duration
	// RPCTimeout bounds one attempt. Default 10 s, 1 ms to 24 h.
	RPCTimeout time.Duration
	// ScannerTimeout bounds one step of a scanner, retries and reopening
	// included; every answer, also a heartbeat, starts it afresh. Default
	// 60 s, 1 ms to 24 h.
	ScannerTimeout time.Duration
	// ConnectTimeout bounds one dial with its handshake. Default 5 s, 1 ms to
	// 1 h.
	ConnectTimeout time.Duration
	// IdleTimeout closes connections unused for so long. Default 2 min, 1 s to
	// 24 h.
	IdleTimeout time.Duration
	// PingAfter is the silence of a server that owes answers after which it is
	// pinged. Default 2 s, 10 ms to 1 h.
	PingAfter time.Duration
	// MaxWaitingPerServer bounds the callers who wait for one server that does
	// not answer: from the moment it is suspected, more are turned away at once
	// with an error that matches [ErrServerDown] and is [Retriable]. For gateways,
	// whose workers come by every server sooner or later and would all wait for
	// the one that is frozen: who goes on to other rows keeps the other servers
	// busy. A batch counts as one caller. Default 0: no bound, callers wait as
	// long as their operation may take. Up to 2^20.
	MaxWaitingPerServer int
	// ReplicaAfter is how long a [Timeline] read waits for the region's primary
	// before its other replicas are asked. Default 10 ms (Java:
	// hbase.client.primaryCallTimeout.get), 1 us to 1 h. ScanReplicaAfter is the
	// same for opening a scanner. Default 1 s (Java:
	// hbase.client.replicaCallTimeout.scan).
	ReplicaAfter, ScanReplicaAfter time.Duration
	// HedgedReads sets Hedge in every [Get] and [Scan].
	HedgedReads bool
	// ProcedureTimeout bounds the wait for a master's procedure (create,
	// disable, ...), if the context ends later or never. Default 10 min.
	ProcedureTimeout time.Duration
	// MaxAttempts bounds the requests of one operation. Default 0: only time
	// bounds it.
	MaxAttempts int
	// ScannerMaxResultSize is the most bytes one scan answer should hold.
	// Default 2 MiB, 1 B to 1 GiB.
	ScannerMaxResultSize int64
	// MaxCellSize refuses larger cells before they are sent. Default 10 MiB
	// (HBase's own limit); 0 does not check.
	MaxCellSize int
	// MaxRowSize is the most bytes of a row that a scan joins from partial
	// results. Default 1 GiB.
	MaxRowSize int64
	// GetsTogether is how many concurrent Gets of one server may travel in one
	// request. They do if, and as many as, their callers wait less for it, which
	// the client keeps trying out; each keeps its own deadline, answer and error,
	// and a Get that finds fewer than two others out goes at once. Default 64; 1
	// sends each by itself.
	GetsTogether int
	// BatchBytes and BatchActions bound one Multi request. Defaults 4 MiB and
	// 2048.
	BatchBytes, BatchActions int
	// MaxInFlight bounds the calls in flight to one server; more wait in line.
	// Default 4096, 1 to 1 Mi.
	MaxInFlight int
	// WriteBuffer is [MutatorOptions.BufferBytes] if that is 0. Default 2 MiB,
	// 1 KiB to 1 GiB.
	WriteBuffer int
	// ScannerCaching is [Scan.Caching] if that is 0. Default 0: the size of an
	// answer alone bounds it.
	ScannerCaching int
	// SessionTimeout is what the ZooKeeper session asks for. Default 30 s, 1 s
	// to 1 h.
	SessionTimeout time.Duration
	// MetaWatch is how often the client asks hbase:meta which regions have
	// changed, so that it learns of moves, splits and restarts before calls meet
	// the old servers: default 0, never; 100 ms to 1 h. Meant for processes that
	// live long and use many regions, such as gateways, at about a second. While
	// nothing changes, each time costs one round trip of no rows; what changed
	// comes as rows of about 700 bytes, two or three times each.
	MetaWatch time.Duration
	// MetaReplicas lets secondary replicas of hbase:meta, if the cluster has any,
	// answer the first question for a row and the reading ahead: default false.
	// Where a region turned out not to be where a replica had it, the primary is
	// asked for three seconds. For clusters with so many clients that one server
	// cannot answer them all (Java: hbase.locator.meta.replicas.mode LoadBalance).
	MetaReplicas bool
	// RouteSnapshot is a file in which the client keeps what it knows of regions,
	// so that a process that starts anew need not ask hbase:meta: default none.
	// Open reads it, Close and every RouteSnapshotEvery (default 10 min, 1 s to
	// 24 h) write it anew, at once or not at all. A file that is damaged, of a
	// later version or of another cluster is ignored, with a word in the log. A
	// route that has become wrong costs one failed call, and none with
	// MetaWatch. Two processes may share a file; the last to write it wins.
	RouteSnapshot      string
	RouteSnapshotEvery time.Duration
	// Compressor of cell blocks: none (default), gzip, snappy, lz4 or zstd.
	Compressor string

	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	logger *slog.Logger
	hooks  []any

	origin origin
}

// Option changes a client's configuration.
type Option func(*Config)

// WithUser sets the effective user of every call.
func WithUser(name string) Option { return func(c *Config) { c.User = name } }

// WithProxyUser acts as user on behalf of whom real authenticates.
func WithProxyUser(user, real string) Option {
	return func(c *Config) { c.User, c.RealUser = user, real }
}

// WithOperationTimeout sets [Config.OperationTimeout].
func WithOperationTimeout(d time.Duration) Option {
	return func(c *Config) { c.OperationTimeout = d }
}

// WithRPCTimeout sets [Config.RPCTimeout].
func WithRPCTimeout(d time.Duration) Option { return func(c *Config) { c.RPCTimeout = d } }

// WithScannerTimeout sets [Config.ScannerTimeout].
func WithScannerTimeout(d time.Duration) Option { return func(c *Config) { c.ScannerTimeout = d } }

// WithConnectTimeout sets [Config.ConnectTimeout].
func WithConnectTimeout(d time.Duration) Option { return func(c *Config) { c.ConnectTimeout = d } }

// WithIdleTimeout sets [Config.IdleTimeout].
func WithIdleTimeout(d time.Duration) Option { return func(c *Config) { c.IdleTimeout = d } }

// WithPingAfter sets [Config.PingAfter].
func WithPingAfter(d time.Duration) Option { return func(c *Config) { c.PingAfter = d } }

// WithMaxWaitingPerServer sets [Config.MaxWaitingPerServer].
func WithMaxWaitingPerServer(callers int) Option {
	return func(c *Config) { c.MaxWaitingPerServer = callers }
}

// WithReplicaAfter sets [Config.ReplicaAfter] and [Config.ScanReplicaAfter].
func WithReplicaAfter(get, scan time.Duration) Option {
	return func(c *Config) { c.ReplicaAfter, c.ScanReplicaAfter = get, scan }
}

// WithHedgedReads sets [Config.HedgedReads].
func WithHedgedReads() Option { return func(c *Config) { c.HedgedReads = true } }

// WithProcedureTimeout sets [Config.ProcedureTimeout].
func WithProcedureTimeout(d time.Duration) Option {
	return func(c *Config) { c.ProcedureTimeout = d }
}

// WithMaxAttempts sets [Config.MaxAttempts].
func WithMaxAttempts(n int) Option { return func(c *Config) { c.MaxAttempts = n } }

// WithScannerMaxResultSize sets [Config.ScannerMaxResultSize].
func WithScannerMaxResultSize(bytes int64) Option {
	return func(c *Config) { c.ScannerMaxResultSize = bytes }
}

// WithMaxCellSize sets [Config.MaxCellSize].
func WithMaxCellSize(bytes int) Option { return func(c *Config) { c.MaxCellSize = bytes } }

// WithBatchLimits sets [Config.BatchBytes] and [Config.BatchActions].
func WithBatchLimits(bytes, actions int) Option {
	return func(c *Config) { c.BatchBytes, c.BatchActions = bytes, actions }
}

// WithGetsTogether sets [Config.GetsTogether].
func WithGetsTogether(n int) Option { return func(c *Config) { c.GetsTogether = n } }

// WithMaxInFlight sets [Config.MaxInFlight].
func WithMaxInFlight(n int) Option { return func(c *Config) { c.MaxInFlight = n } }

// WithWriteBuffer sets [Config.WriteBuffer].
func WithWriteBuffer(bytes int) Option { return func(c *Config) { c.WriteBuffer = bytes } }

// WithScannerCaching sets [Config.ScannerCaching].
func WithScannerCaching(rows int) Option { return func(c *Config) { c.ScannerCaching = rows } }

// WithSessionTimeout sets [Config.SessionTimeout].
func WithSessionTimeout(d time.Duration) Option { return func(c *Config) { c.SessionTimeout = d } }

// WithMetaWatch sets [Config.MetaWatch].
func WithMetaWatch(interval time.Duration) Option {
	return func(c *Config) { c.MetaWatch = interval }
}

// WithMetaReplicas sets [Config.MetaReplicas].
func WithMetaReplicas(on bool) Option { return func(c *Config) { c.MetaReplicas = on } }

// WithRouteSnapshot sets [Config.RouteSnapshot].
func WithRouteSnapshot(path string) Option { return func(c *Config) { c.RouteSnapshot = path } }

// WithRouteSnapshotEvery sets [Config.RouteSnapshotEvery].
func WithRouteSnapshotEvery(d time.Duration) Option {
	return func(c *Config) { c.RouteSnapshotEvery = d }
}

// WithCompressor sets [Config.Compressor].
func WithCompressor(name string) Option { return func(c *Config) { c.Compressor = name } }

// WithDialer replaces how TCP connections to region servers and masters are
// made.
func WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Option {
	return func(c *Config) { c.dial = dial }
}

// WithLogger receives changes of state (servers down and up, masters found),
// never single calls. Default: nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(c *Config) { c.logger = l } }

func defaultConfig(address string) Config {
	return Config{
		Address:              address,
		OperationTimeout:     60 * time.Second,
		RPCTimeout:           10 * time.Second,
		ScannerTimeout:       60 * time.Second,
		ConnectTimeout:       5 * time.Second,
		IdleTimeout:          2 * time.Minute,
		PingAfter:            2 * time.Second,
		ReplicaAfter:         session.DefaultReplicaAfter,
		ScanReplicaAfter:     time.Second,
		ProcedureTimeout:     10 * time.Minute,
		RouteSnapshotEvery:   10 * time.Minute,
		ScannerMaxResultSize: 2 << 20,
		MaxCellSize:          10 << 20,
		MaxRowSize:           1 << 30,
		BatchBytes:           4 << 20,
		BatchActions:         2048,
		GetsTogether:         registry.DefaultGetsTogether,
		MaxInFlight:          registry.DefaultMaxInFlight,
		WriteBuffer:          registry.DefaultWriteBuffer,
		SessionTimeout:       registry.DefaultSessionTimeout,
		Compressor:           "none",
	}
}

// configOf gives the defaults, overridden by what the address or its
// hbase-site.xml says. Without an address the environment names one.
func configOf(address string) (Config, error) {
	env := ""
	for _, name := range []string{"HOLDFAST_ADDRESS", "HBASE_CONF_DIR"} {
		if address == "" {
			if address = os.Getenv(name); address != "" {
				env = name
			}
		}
	}
	a, err := registry.Parse(address)
	if err != nil {
		return Config{}, err
	}
	cfg := defaultConfig(address)
	cfg.origin = origin{address: a, env: env}
	o := a.Options
	set(&cfg.User, o.User)
	set(&cfg.OperationTimeout, o.OperationTimeout)
	set(&cfg.RPCTimeout, o.RPCTimeout)
	set(&cfg.ScannerTimeout, o.ScannerTimeout)
	set(&cfg.ConnectTimeout, o.ConnectTimeout)
	set(&cfg.IdleTimeout, o.IdleTimeout)
	set(&cfg.PingAfter, o.PingAfter)
	set(&cfg.SessionTimeout, o.SessionTimeout)
	set(&cfg.ReplicaAfter, o.ReplicaAfter)
	set(&cfg.ScanReplicaAfter, o.ScanReplicaAfter)
	set(&cfg.MetaWatch, o.MetaWatch)
	set(&cfg.HedgedReads, o.HedgedReads)
	set(&cfg.MetaReplicas, o.MetaReplicas)
	set(&cfg.MaxAttempts, o.MaxAttempts)
	set(&cfg.MaxInFlight, o.MaxInFlight)
	set(&cfg.MaxWaitingPerServer, o.MaxWaitingPerServer)
	set(&cfg.BatchBytes, o.BatchBytes)
	set(&cfg.BatchActions, o.BatchActions)
	set(&cfg.GetsTogether, o.GetsTogether)
	set(&cfg.MaxCellSize, o.MaxCellSize)
	set(&cfg.WriteBuffer, o.WriteBuffer)
	set(&cfg.ScannerCaching, o.ScannerCaching)
	set(&cfg.ScannerMaxResultSize, int64(o.ScannerMaxResultSize))
	set(&cfg.Compressor, o.Compressor)
	cfg.origin.before = cfg.values()
	return cfg, nil
}

// set overrides a default by an option that was given.
func set[T comparable](field *T, option T) {
	var zero T
	if option != zero {
		*field = option
	}
}

// Validate checks every field and reports every problem at once.
func (c *Config) Validate() error {
	var errs []error
	bad := func(name, reason string) {
		errs = append(errs, &InvalidError{Op: "configuration", Object: name, Reason: reason})
	}
	durations := []struct {
		name   string
		d      time.Duration
		lo, hi time.Duration
	}{
		{"OperationTimeout", c.OperationTimeout, time.Millisecond, 24 * time.Hour},
		{"RPCTimeout", c.RPCTimeout, time.Millisecond, 24 * time.Hour},
		{"ScannerTimeout", c.ScannerTimeout, time.Millisecond, 24 * time.Hour},
		{"ConnectTimeout", c.ConnectTimeout, time.Millisecond, time.Hour},
		{"IdleTimeout", c.IdleTimeout, time.Second, 24 * time.Hour},
		{"PingAfter", c.PingAfter, 10 * time.Millisecond, time.Hour},
		{"ReplicaAfter", c.ReplicaAfter, time.Microsecond, time.Hour},
		{"ScanReplicaAfter", c.ScanReplicaAfter, time.Microsecond, time.Hour},
		{"ProcedureTimeout", c.ProcedureTimeout, time.Millisecond, 24 * time.Hour},
		{"RouteSnapshotEvery", c.RouteSnapshotEvery, time.Second, 24 * time.Hour},
		{"SessionTimeout", c.SessionTimeout, time.Second, time.Hour},
	}
	for _, d := range durations {
		if d.d < d.lo || d.d > d.hi {
			bad(d.name, fmt.Sprintf("%v is not between %v and %v", d.d, d.lo, d.hi))
		}
	}
	if c.MetaWatch != 0 && (c.MetaWatch < 100*time.Millisecond || c.MetaWatch > time.Hour) {
		bad("MetaWatch", fmt.Sprintf("%v is neither 0 nor between 100ms and 1h", c.MetaWatch))
	}
	numbers := []struct {
		name      string
		n, lo, hi int64
	}{
		{"MaxAttempts", int64(c.MaxAttempts), 0, 1 << 20},
		{"MaxWaitingPerServer", int64(c.MaxWaitingPerServer), 0, 1 << 20},
		{"ScannerMaxResultSize", c.ScannerMaxResultSize, 1, 1 << 30},
		{"MaxCellSize", int64(c.MaxCellSize), 0, 1 << 30},
		{"MaxRowSize", c.MaxRowSize, 1, 1 << 40},
		{"BatchBytes", int64(c.BatchBytes), 1, 1 << 30},
		{"BatchActions", int64(c.BatchActions), 1, 1 << 20},
		{"GetsTogether", int64(c.GetsTogether), 1, registry.DefaultGetsTogether},
		{"MaxInFlight", int64(c.MaxInFlight), 1, 1 << 20},
		{"WriteBuffer", int64(c.WriteBuffer), 1 << 10, 1 << 30},
		{"ScannerCaching", int64(c.ScannerCaching), 0, 1<<31 - 1},
	}
	for _, n := range numbers {
		if n.n < n.lo || n.n > n.hi {
			bad(n.name, fmt.Sprintf("%d is not between %d and %d", n.n, n.lo, n.hi))
		}
	}
	for i, h := range c.hooks {
		if !isHook(h) {
			bad("Hooks", fmt.Sprintf("number %d, a %T, implements none of the ...Hook interfaces", i+1, h))
		}
	}
	switch c.Compressor {
	case "none", "gzip", "snappy", "lz4", "zstd":
	default:
		bad("Compressor", strconv.Quote(c.Compressor)+" is none of none, gzip, snappy, lz4, zstd")
	}
	return errors.Join(errs...)
}

func (c *Config) session() session.Config {
	return session.Config{
		Address: c.Address, User: c.User, RealUser: c.RealUser,
		OperationTimeout: c.OperationTimeout, RPCTimeout: c.RPCTimeout,
		ScannerTimeout: c.ScannerTimeout, PingAfter: c.PingAfter,
		ConnectTimeout: c.ConnectTimeout, IdleTimeout: c.IdleTimeout, ReplicaAfter: c.ReplicaAfter,
		MaxWaitingPerServer: c.MaxWaitingPerServer,
		MaxAttempts:         c.MaxAttempts, BatchBytes: c.BatchBytes, BatchActions: c.BatchActions,
		GetsTogether: c.GetsTogether, MaxInFlight: c.MaxInFlight, SessionTimeout: c.SessionTimeout,
		MetaWatch: c.MetaWatch, MetaReplicas: c.MetaReplicas,
		Compressor: c.Compressor, Dial: c.dial, Logger: c.logger, Hooks: c.hooks,
	}
}
