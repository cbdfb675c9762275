package zk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Config configures a Conn. Only Servers is required.
type Config struct {
	// Servers are the ensemble's client addresses, host or host:port (2181 if missing). See ParseConnectString for the usual notation.
	Servers []string
	// Chroot is put before every path and taken off every answer. "" or "/a/b"; the node must exist.
	Chroot string
	// SessionTimeout is asked for on every connection; the server clamps it (by default to 4..40 s). Default 30 s, range 1 ms to 24 days.
	SessionTimeout time.Duration
	// Auth identities are offered on every connection, before anything else.
	Auth []AuthInfo

	// Dial opens a TCP connection. It must return when ctx ends. Default: net.Dialer.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// LookupHost resolves a host name, once per lap over the servers. Default: net.DefaultResolver.LookupHost.
	LookupHost func(ctx context.Context, host string) ([]string, error)
	// TLS, if set, is spoken from the first byte, with ServerName set to the host unless it says otherwise.
	TLS *tls.Config
	// DialStagger is the head start each address has over the next. Default 150 ms, sensible range 50..500 ms: below, every connect costs a
	// socket on every server; above, a black hole costs that much.
	DialStagger time.Duration
	// MaxAddrsPerHost caps how many addresses of one name are tried per lap. Default 8.
	MaxAddrsPerHost int
	// KeepOrder tries the servers in the order given. Otherwise they are shuffled once, so that clients spread.
	KeepOrder bool

	// MaxFrame is the largest request body and answer (jute.maxbuffer). Default 1 048 575.
	MaxFrame int
	// MaxInFlight bounds calls accepted and not answered; more wait in their callers. Default 1000.
	MaxInFlight int
	// WatchBuffer is how many events a persistent watch holds for a slow reader before it says EventMissed instead. Default 256.
	WatchBuffer int

	// OnState, if set, hears of every change of state or verdict, in order, on the client's own goroutine: it must not block and must not call the Conn.
	OnState func(StateChange)
	// Logger receives state changes and failed attempts. Default: nothing is logged.
	Logger *slog.Logger
	// Rand yields numbers in [0, 1) for the shuffle and for jitter; it is called by one goroutine at a time. Default: math/rand/v2.
	Rand func() float64
}

// AuthInfo is one identity, for instance {"digest", []byte("user:password")}.
type AuthInfo struct {
	Scheme string
	Auth   []byte
}

// Answers may exceed MaxFrame by a header, a path and a Stat, or, for a list of children, by much more: the server limits what it
// receives, not what it sends. This factor bounds what we accept.
const answerFactor = 16

const maxInFlightBytes = 32 << 20

func (c Config) withDefaults() (Config, error) {
	var errs []error
	c.Servers = append([]string(nil), c.Servers...)
	if len(c.Servers) == 0 {
		errs = append(errs, errors.New("no Servers"))
	}
	for i, s := range c.Servers {
		addr, reason := hostPort(strings.TrimSpace(s))
		if reason != "" {
			errs = append(errs, &AddressError{s, s, reason})
		}
		c.Servers[i] = addr
	}
	if c.Chroot = strings.TrimRight(c.Chroot, "/"); c.Chroot != "" {
		if err := jute.ValidatePath(c.Chroot, false); err != nil {
			errs = append(errs, fmt.Errorf("option Chroot: %w", err))
		}
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = 30 * time.Second
	}
	if c.SessionTimeout < time.Millisecond || c.SessionTimeout.Milliseconds() > jute.MaxLen {
		errs = append(errs, fmt.Errorf("option SessionTimeout: %v is outside 1 ms to 24 days", c.SessionTimeout))
	}
	positive := func(name string, v *int, def int) {
		if *v == 0 {
			*v = def
		}
		if *v < 0 {
			errs = append(errs, fmt.Errorf("option %s: %d is negative", name, *v))
		}
	}
	positive("MaxAddrsPerHost", &c.MaxAddrsPerHost, 8)
	positive("MaxFrame", &c.MaxFrame, jute.DefaultMaxFrame)
	positive("MaxInFlight", &c.MaxInFlight, 1000)
	positive("WatchBuffer", &c.WatchBuffer, 256)
	if c.DialStagger == 0 {
		c.DialStagger = 150 * time.Millisecond
	}
	if c.DialStagger < 0 {
		errs = append(errs, fmt.Errorf("option DialStagger: %v is negative", c.DialStagger))
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	if c.LookupHost == nil {
		c.LookupHost = net.DefaultResolver.LookupHost
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if err := errors.Join(errs...); err != nil {
		return c, fmt.Errorf("zk: configuration: %w", err)
	}
	if !c.KeepOrder {
		for i := len(c.Servers) - 1; i > 0; i-- {
			j := int(c.Rand() * float64(i+1))
			c.Servers[i], c.Servers[j] = c.Servers[j], c.Servers[i]
		}
	}
	return c, nil
}
