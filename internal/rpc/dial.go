package rpc

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Dial connects, authenticates and sends the connection header. The server
// does not acknowledge it: a refusal (unknown service, access denied, ...)
// comes with the first call. Errors other than of the Config are *DialError.
func Dial(ctx context.Context, cfg Config) (*Conn, error) {
	s, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	timeout := cfg.ConnectTimeout
	if timeout <= 0 {
		timeout = DefaultConnectTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %v", ErrConnectTimeout, timeout))
	defer cancel()

	fail := func(phase Phase, err error) (*Conn, error) {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, &DialError{Addr: cfg.Addr, Phase: phase, Cause: err}
	}
	dial := cfg.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	nc, err := dial(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fail(PhaseConnect, err)
	}
	stream, phase, err := handshake(ctx, &cfg, &s, nc)
	if err != nil {
		_ = nc.Close() // the handshake's error says more
		return fail(phase, err)
	}
	return newConn(&cfg, s, nc, stream), nil
}

// handshake makes the stream ready for calls. It ends when ctx does.
func handshake(ctx context.Context, cfg *Config, s *settings, nc net.Conn) (net.Conn, Phase, error) {
	// A deadline in the past wakes whatever read or write is under way.
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	stream := nc
	if cfg.TLS != nil {
		tc := cfg.TLS.Clone()
		if tc.ServerName == "" {
			host, _, err := net.SplitHostPort(cfg.Addr)
			if err != nil {
				return nil, PhaseTLS, err
			}
			tc.ServerName = host
		}
		t := tls.Client(nc, tc)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, PhaseTLS, err
		}
		stream = t
	}

	code := wire.AuthSimple
	if cfg.Auth != nil {
		code = cfg.Auth.Code()
	}
	first := wire.AppendPreamble(make([]byte, 0, 512), code)
	user := &pb.UserInformation{EffectiveUser: &cfg.EffectiveUser}
	if cfg.RealUser != "" {
		user.RealUser = &cfg.RealUser
	}
	if cfg.Auth != nil {
		if _, err := stream.Write(first); err != nil {
			return nil, PhaseAuth, err
		}
		first = first[:0]
		var err error
		if stream, err = cfg.Auth.Authenticate(ctx, stream); err != nil {
			return nil, PhaseAuth, err
		}
		user = cfg.Auth.User(cfg.EffectiveUser, cfg.RealUser)
	}

	h := &pb.ConnectionHeader{UserInfo: user, ServiceName: &cfg.Service, VersionInfo: wire.Version(), Attribute: cfg.Attributes}
	if s.codec != wire.CodecNone {
		class := s.codec.ClassName()
		h.CellBlockCodecClass = &class
		if class := s.compress.Kind().ClassName(); class != "" {
			h.CellBlockCompressorClass = &class
		}
	}
	first, err := wire.AppendConnectionHeader(first, h)
	if err != nil {
		return nil, PhaseHeader, err
	}
	if _, err := stream.Write(first); err != nil {
		return nil, PhaseHeader, err
	}
	if !stop() {
		// The context ended and its deadline may just have been set.
		return nil, PhaseHeader, context.Cause(ctx)
	}
	return stream, PhaseHeader, nil
}

func newConn(cfg *Config, s settings, nc, stream net.Conn) *Conn {
	c := &Conn{
		addr:     cfg.Addr,
		settings: s,
		log:      cfg.Logger,
		nc:       nc,
		stream:   stream,
		start:    time.Now(),
		idle:     cfg.IdleTimeout,
		done:     make(chan struct{}),
	}
	c.reader = bufio.NewReaderSize(&hearing{stream, c}, readBuffer)
	c.token.wake = make(chan struct{}, 1)
	c.calls.ring = make([]*pending, minRing)
	if stream == nc {
		c.w.try, c.peek = nonblocking(nc)
	}
	if c.idle > 0 {
		// Set off only once idleTimer is set: closeIfIdle uses it.
		c.idleTimer = time.AfterFunc(math.MaxInt64, c.closeIfIdle)
		c.idleTimer.Reset(c.idle)
	}
	c.goroutines.Go(c.readLoop)
	return c
}
