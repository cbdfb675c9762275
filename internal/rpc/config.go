package rpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Defaults of Config, those of HBase's Java client where it has one.
const (
	DefaultConnectTimeout = 10 * time.Second
	DefaultIdleTimeout    = 120 * time.Second

	// maxQueued is how many bytes wait to be written before calls wait instead.
	// Half of it would make large puts wait for each other on a fast network;
	// much more only hides a slow server from its callers.
	maxQueued = 4 << 20
	// readBuffer holds some hundred answers to Gets, so that a burst of them is
	// one system call. Larger bodies are read past it.
	readBuffer = 32 << 10
)

// Config describes a connection. It is not changed by Dial.
type Config struct {
	// Addr is host:port of the server. Required.
	Addr string
	// Service is the service's simple name, such as ClientService. Required.
	Service string
	// EffectiveUser is who the calls run as; RealUser, if set, is who is
	// authenticated and acts for them.
	EffectiveUser string
	RealUser      string
	// Codec names how cells travel: KeyValueCodec (the default when empty),
	// KeyValueCodecWithTags, or none for cells within messages.
	Codec string
	// Compression of cell blocks: none (the default when empty), gzip, snappy,
	// lz4, zstd, deflate. The server must have it too.
	Compression string
	// Dial opens the stream; nil = TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Auth authenticates; nil = SIMPLE, where the server believes the header.
	Auth Authenticator
	// TLS, if set, wraps the stream. ServerName defaults to Addr's host.
	TLS *tls.Config
	// ConnectTimeout bounds everything up to the connection header, as does
	// Dial's context. 0 = DefaultConnectTimeout.
	ConnectTimeout time.Duration
	// IdleTimeout closes a connection without calls; 0 = never. Java clients
	// use DefaultIdleTimeout.
	IdleTimeout time.Duration
	// MaxFrame bounds one answer in bytes, and a decompressed cell block.
	// 0 = wire.DefaultMaxFrame.
	MaxFrame int
	// Attributes of the connection; servers since 2.6 log them.
	Attributes []*pb.NameBytesPair
	// Logger gets what no call can be told, at debug level; nil = nothing.
	Logger *slog.Logger
}

// Authenticator proves who we are. Implementations are immutable: one serves
// many connections at once.
type Authenticator interface {
	// Code goes into the preamble.
	Code() wire.AuthCode
	// Authenticate runs the exchange after the preamble and returns the stream
	// to go on with: conn itself, or a wrapper that signs or encrypts. It ends
	// when ctx does; conn's deadlines are set accordingly by the caller.
	Authenticate(ctx context.Context, conn net.Conn) (net.Conn, error)
	// User is what the connection header says about the user; nil = nothing.
	User(effective, real string) *pb.UserInformation
}

// settings are a Config's names resolved.
type settings struct {
	codec    wire.Codec
	compress *wire.Compressor
	maxFrame int
}

func (cfg *Config) resolve() (settings, error) {
	var s settings
	if cfg.Addr == "" || cfg.Service == "" {
		return s, fmt.Errorf("rpc: a connection needs an address and a service, got %q and %q", cfg.Addr, cfg.Service)
	}
	codec, err := wire.CodecByName(cfg.Codec)
	if err != nil {
		return s, fmt.Errorf("rpc: %w", err)
	}
	kind, err := wire.CompressionByName(cfg.Compression)
	if err != nil {
		return s, fmt.Errorf("rpc: %w", err)
	}
	if codec == wire.CodecNone && kind != wire.NoCompression {
		return s, fmt.Errorf("rpc: compression %v needs a cell codec", kind)
	}
	s.codec = codec
	s.maxFrame = cfg.MaxFrame
	if s.maxFrame <= 0 {
		s.maxFrame = wire.DefaultMaxFrame
	}
	s.compress, err = wire.NewCompressor(kind, s.maxFrame)
	return s, err
}
