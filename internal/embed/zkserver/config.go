package zkserver

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Config configures Start. The zero value serves a standalone server on a free loopback port.
type Config struct {
	// Listeners are listeners already open, one per member of the virtual ensemble. The server closes them.
	// A member started from a listener can refuse connections and serve again only if Listen can reopen its address.
	Listeners []net.Listener
	// Addrs are addresses to listen on, one per member, used if Listeners is empty. Default: "127.0.0.1:0".
	Addrs []string
	// Listen opens an address of Addrs, and reopens a member's address after it refused connections. Default: net.Listen.
	Listen func(network, addr string) (net.Listener, error)

	// TickTime is the width of an expiry bucket. Default 2 s, at least 1 ms.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout clamp what a client asks for. Defaults 2 and 20 ticks.
	MinSessionTimeout time.Duration
	MaxSessionTimeout time.Duration
	// WallClockBuckets puts bucket boundaries at multiples of the tick since 1970, as ZooKeeper up to 3.4 does.
	// Otherwise they count from Start, as since 3.5.
	WallClockBuckets bool
	// Leader is the member (from 0) whose clients touch their session at once; touches through the others arrive at the
	// next multiple of half a tick, as in an ensemble. It is ignored when there is one member.
	Leader int

	// Now is the clock for node times and session expiry. Default time.Now. Whoever substitutes a clock that jumps calls
	// CheckExpiry after a jump; timers themselves are the runtime's (and virtual inside a synctest bubble).
	Now func() time.Time

	// Epoch is the upper half of the first zxid. A client that saw a later zxid is refused, as by a server whose data was wiped;
	// an embedder whose clients outlive a restart passes a number that grows, for instance seconds since 1970. Default 0.
	Epoch int32
	// Restore is the persistent part of the tree to begin with, parents before children (as Snapshot returns it).
	Restore []Node
	// Persister, if set, is told of every change of a persistent node before the change is visible.
	Persister Persister

	// SeparateWatchModes keeps one-shot, persistent and recursive watches of one client on one path apart, as ZooKeeper 3.9 does. Before that, the
	// default here, the one set last replaces the others, for data and for children each.
	SeparateWatchModes bool

	// MaxFrame is the largest request body accepted (jute.maxbuffer). Default 1 048 575, at least 1024.
	MaxFrame int
	// MaxQueued bounds the replies and events waiting for one connection. A connection whose replies do not drain is not read;
	// one that overflows with events is closed. Default 4096 packets; bytes are bounded by 16 times MaxFrame.
	MaxQueued int
	// MaxConns bounds open connections over all members; more are closed at once. Default 16384. An idle one costs some 12 KiB.
	MaxConns int
	// MaxSessions bounds sessions; a handshake that would make one more is closed without an answer. Default 65536.
	MaxSessions int
	// MaxWatches bounds one connection's watches; a client that sets more is dropped. Default 100,000. All connections together may have ten times as
	// many.
	MaxWatches int
	// MaxTree bounds the tree in bytes, about 400 for each node counted in; a client's write that would outgrow it is refused as over its quota (-125).
	// Default 512 MiB.
	MaxTree int64
	// MaxIncoming bounds the bytes of requests larger than 16 KiB that are being received or wait to be served, over all connections; others wait.
	// Default 64 MiB, at least MaxFrame.
	MaxIncoming int
	// MaxOutgoing bounds the bytes that wait to be written, over all connections. Beyond it, connections with more than 64 KiB before them are not
	// read, and are dropped if events take them further. Default 256 MiB.
	MaxOutgoing int64
	// HandshakeTimeout is how long a connection may live without a session. Default 10 s.
	HandshakeTimeout time.Duration
	// FrameTimeout is how long a request may take from its first four bytes to its last. Default 30 s.
	FrameTimeout time.Duration

	// Logger receives what a server's log would say. Default: nothing is logged.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.TickTime, 2*time.Second)
	def(&c.MinSessionTimeout, 2*c.TickTime)
	def(&c.MaxSessionTimeout, 20*c.TickTime)
	def(&c.HandshakeTimeout, 10*time.Second)
	def(&c.FrameTimeout, 30*time.Second)
	if c.MaxFrame == 0 {
		c.MaxFrame = jute.DefaultMaxFrame
	}
	if c.MaxQueued == 0 {
		c.MaxQueued = 4096
	}
	if c.MaxConns == 0 {
		c.MaxConns = 16384
	}
	c.MaxSessions = cmp.Or(c.MaxSessions, 65536)
	c.MaxWatches = cmp.Or(c.MaxWatches, 100_000)
	c.MaxTree = cmp.Or(c.MaxTree, 512<<20)
	c.MaxIncoming = cmp.Or(c.MaxIncoming, max(64<<20, c.MaxFrame+jute.FrameSlack))
	c.MaxOutgoing = cmp.Or(c.MaxOutgoing, 256<<20)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Listen == nil {
		c.Listen = net.Listen
	}
	if len(c.Listeners) == 0 && len(c.Addrs) == 0 {
		c.Addrs = []string{"127.0.0.1:0"}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	bad := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(c.TickTime >= time.Millisecond, "TickTime %v is below 1 ms", c.TickTime)
	bad(c.MinSessionTimeout > 0 && c.MinSessionTimeout <= c.MaxSessionTimeout, "MinSessionTimeout %v and MaxSessionTimeout %v are not 0 < min <= max", c.MinSessionTimeout, c.MaxSessionTimeout)
	bad(c.MaxSessionTimeout.Milliseconds() <= jute.MaxLen, "MaxSessionTimeout %v does not fit in 31 bits of milliseconds", c.MaxSessionTimeout)
	bad(c.MaxFrame >= 1024, "MaxFrame %d is below 1024", c.MaxFrame)
	bad(c.MaxQueued > 0 && c.MaxConns > 0, "MaxQueued %d and MaxConns %d must be positive", c.MaxQueued, c.MaxConns)
	bad(c.MaxSessions > 0 && c.MaxWatches > 0 && c.MaxTree > 0 && c.MaxOutgoing > 0, "MaxSessions %d, MaxWatches %d, MaxTree %d and MaxOutgoing %d must be positive",
		c.MaxSessions, c.MaxWatches, c.MaxTree, c.MaxOutgoing)
	bad(c.MaxIncoming >= c.MaxFrame+jute.FrameSlack, "MaxIncoming %d is less than one request of %d", c.MaxIncoming, c.MaxFrame+jute.FrameSlack)
	bad(c.HandshakeTimeout > 0 && c.FrameTimeout > 0, "HandshakeTimeout %v and FrameTimeout %v must be positive", c.HandshakeTimeout, c.FrameTimeout)
	bad(c.Epoch >= 0, "Epoch %d is negative", c.Epoch)
	n := max(len(c.Listeners), len(c.Addrs))
	if len(c.Listeners) > 0 {
		n = len(c.Listeners)
	}
	bad(c.Leader >= 0 && c.Leader < n, "Leader %d is not one of %d members", c.Leader, n)
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("zkserver: %w", err)
	}
	return c, nil
}
