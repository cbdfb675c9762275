package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
)

// Config is everything a Core can be told. The zero value of a field means its
// default.
type Config struct {
	// Address says which cluster, in one of the forms of registry.Parse:
	// hbase://zk1:2181,zk2:2181/hbase, hbase+rpc://m1:16000,m2:16000, or the
	// path of an hbase-site.xml or of the directory that holds one. Its
	// options fill the fields below that are zero.
	Address string
	// Registry replaces Address. The Core does not close it.
	Registry registry.Registry

	// User is the effective user of every call; default $HADOOP_USER_NAME or
	// the operating system's user. RealUser is the proxying user, if any.
	User, RealUser string

	// OperationTimeout bounds an operation whose context has no deadline:
	// default 60 s (HBase's Java client: 20 min).
	OperationTimeout time.Duration
	// RPCTimeout bounds one attempt: default 10 s (HBase: 60 s). It is a
	// fraction of the operation's time, so that several attempts fit. A
	// request that must not be repeated has no bound but the operation's.
	RPCTimeout time.Duration
	// ScannerTimeout bounds one open, next or renewal of a scanner including
	// its retries: default 60 s.
	ScannerTimeout time.Duration
	// PingAfter: a server that owes answers and has been silent for so long is
	// suspected and pinged, and given as long again to answer before it counts
	// as down: default 2 s.
	PingAfter time.Duration
	// ReplicaAfter is how long a read that may be answered by any replica waits
	// for the primary before others are asked: default 10 ms (HBase:
	// hbase.client.primaryCallTimeout.get, 10 ms).
	ReplicaAfter time.Duration
	// ConnectTimeout bounds one dial including the handshake: default 5 s.
	ConnectTimeout time.Duration
	// IdleTimeout closes a connection that has had no call for so long:
	// default 2 min (HBase: 120 s).
	IdleTimeout time.Duration
	// SessionTimeout of the ZooKeeper session: default 30 s.
	SessionTimeout time.Duration
	// MaxAttempts bounds the requests sent for one operation: default 0, no
	// bound but the deadline.
	MaxAttempts int
	// MaxInFlight bounds the calls in flight to one server: default 4096. More
	// wait in line; busy answers lower the bound for a while.
	MaxInFlight int

	// MetaWatch is how often hbase:meta is asked what has changed, so that moves
	// are known ahead of traffic: default 0, never. See route.Config.
	MetaWatch time.Duration
	// MetaReplicas lets replicas of hbase:meta answer what need not be the
	// latest, if there are any: default false. See route.Config.
	MetaReplicas bool

	// MaxWaitingPerServer bounds the callers who wait for one server that does
	// not answer: more are turned away at once with a *health.DownError, so that
	// callers who go on to other rows keep the other servers busy. Default 0: no
	// bound, everybody waits as long as they have time.
	MaxWaitingPerServer int

	// GetsTogether bounds the Gets that travel in one request: default 64; 1 means
	// that each goes alone. See combiner.
	GetsTogether int

	// BatchBytes and BatchActions bound one Multi request: defaults 4 MiB and
	// 2048. A larger single item goes alone.
	BatchBytes   int
	BatchActions int

	// Compressor of cell blocks: "none" (default), "gzip", "snappy", "lz4",
	// "zstd".
	Compressor string

	// Dial opens TCP connections; default net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger receives state changes, not calls; default: none.
	Logger *slog.Logger
	// Hooks are told what happens: each is any value that implements some of
	// the ...Hook interfaces. Default: none.
	Hooks []any
	// Rand gives numbers in [0,1) for jitter; default math/rand/v2.
	Rand func() float64

	fanout int
	// maxQueue and gateWaiters are smaller in tests of what is full.
	maxQueue, gateWaiters int

	settings []registry.Setting
}

// DefaultReplicaAfter is Config.ReplicaAfter if it is zero.
const DefaultReplicaAfter = 10 * time.Millisecond

// ErrUnsupported is wrapped by errors about settings that are understood but
// not done yet.
var ErrUnsupported = errors.New("unsupported")

// complete reads the address, fills the defaults and reports every problem.
func (c *Config) complete() (*registry.Address, error) {
	var addr *registry.Address
	var opt registry.Options
	if c.Registry == nil {
		var err error
		if addr, err = registry.Parse(c.Address); err != nil {
			return nil, err
		}
		opt = addr.Options
		c.settings = addr.Effective()
	} else {
		c.settings = (&registry.Address{}).Effective()
	}
	if opt.Authentication == "kerberos" {
		return nil, fmt.Errorf("%w: authentication with Kerberos", ErrUnsupported)
	}
	c.fill("user", &c.User, opt.User, "")
	if c.User == "" {
		c.User = systemUser()
		c.note("user", c.User, "system")
	}
	def := func(name string, field *time.Duration, option, def time.Duration) {
		switch {
		case *field > 0:
			c.note(name, field.String(), "program")
		case option > 0:
			*field = option
		default:
			*field = def
		}
	}
	def("operation-timeout", &c.OperationTimeout, opt.OperationTimeout, registry.DefaultOperationTimeout)
	def("rpc-timeout", &c.RPCTimeout, opt.RPCTimeout, registry.DefaultRPCTimeout)
	def("scanner-timeout", &c.ScannerTimeout, opt.ScannerTimeout, registry.DefaultScannerTimeout)
	def("connect-timeout", &c.ConnectTimeout, opt.ConnectTimeout, registry.DefaultConnectTimeout)
	def("idle-timeout", &c.IdleTimeout, opt.IdleTimeout, registry.DefaultIdleTimeout)
	def("ping-after", &c.PingAfter, opt.PingAfter, registry.DefaultPingAfter)
	def("session-timeout", &c.SessionTimeout, opt.SessionTimeout, registry.DefaultSessionTimeout)
	num := func(name string, field *int, option, def int) {
		switch {
		case *field > 0:
			c.note(name, strconv.Itoa(*field), "program")
		case option > 0:
			*field = option
		default:
			*field = def
		}
	}
	num("max-attempts", &c.MaxAttempts, opt.MaxAttempts, 0)
	num("max-in-flight", &c.MaxInFlight, opt.MaxInFlight, registry.DefaultMaxInFlight)
	num("max-waiting-per-server", &c.MaxWaitingPerServer, opt.MaxWaitingPerServer, 0)
	num("batch-bytes", &c.BatchBytes, opt.BatchBytes, registry.DefaultBatchBytes)
	num("batch-actions", &c.BatchActions, opt.BatchActions, registry.DefaultBatchActions)
	num("gets-together", &c.GetsTogether, opt.GetsTogether, registry.DefaultGetsTogether)
	num("fanout", &c.fanout, opt.Fanout, registry.DefaultFanout)
	c.fill("compressor", &c.Compressor, opt.Compressor, "none")

	if c.ReplicaAfter <= 0 {
		c.ReplicaAfter = DefaultReplicaAfter
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	return addr, nil
}

func (c *Config) fill(name string, field *string, option, def string) {
	switch {
	case *field != "":
		c.note(name, *field, "program")
	case option != "":
		*field = option
	default:
		*field = def
	}
}

// note records where an effective value comes from.
func (c *Config) note(name, value, source string) {
	for i := range c.settings {
		if c.settings[i].Name == name {
			c.settings[i].Value, c.settings[i].Source = value, source
		}
	}
}

func systemUser() string {
	if name := os.Getenv("HADOOP_USER_NAME"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "holdfast"
}

// Effective lists every option of an opened Core's configuration with its
// value and source.
func (c *Config) Effective() []registry.Setting {
	return append([]registry.Setting(nil), c.settings...)
}

// String prints the effective options, one a line.
func (c *Config) String() string {
	var b strings.Builder
	for _, s := range c.settings {
		fmt.Fprintf(&b, "%-18s %-12s (%s)\n", s.Name, s.Value, s.Source)
	}
	return b.String()
}
