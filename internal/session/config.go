package session

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
)

var errUnfinished = errors.New("unfinished")

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
	// RPCTimeout bounds one attempt: default 10 s.
	RPCTimeout time.Duration
	// ScannerTimeout bounds one open, next or renewal of a scanner including
	// its retries: default 60 s.
	ScannerTimeout time.Duration
	// PingAfter: a server that owes answers and has been silent for so long is
	// suspected and pinged, and given as long again to answer: default 2 s.
	PingAfter time.Duration
	// ConnectTimeout bounds one dial including the handshake: default 5 s.
	ConnectTimeout time.Duration
	// IdleTimeout closes a connection that has had no call for so long:
	// default 2 min (HBase: 120 s).
	IdleTimeout time.Duration
	// MaxAttempts bounds the requests sent for one operation: default 0, no
	// bound but the deadline.
	MaxAttempts int

	// BatchBytes and BatchActions bound one Multi request: defaults 4 MiB and
	// 2048.
	BatchBytes   int
	BatchActions int

	// Compressor of cell blocks: "none" (default), "gzip", "snappy", "lz4",
	// "zstd".
	Compressor string

	// Dial opens TCP connections; default net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger receives state changes, not calls; default: none.
	Logger *slog.Logger
	// Observer sees every attempt and every wait; default: none.
	Observer Observer
}
