package rpcserver

import (
	"encoding/binary"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// maxToken bounds the SASL token a client sends before it learns that there is
// no security here.
const maxToken = 64 << 10

// handshake reads preamble and connection header. A *wire.RemoteError is to be
// answered before the connection ends.
func (c *Conn) handshake() error {
	s := c.server
	if err := c.greeting(); err != nil {
		return err
	}
	for {
		p, err := wire.ReadPreamble(c.r)
		if !s.gate(c) {
			return s.ctx.Err()
		}
		if err != nil {
			return err
		}
		// The gate may have held us, which is not the client's fault.
		if err := c.greeting(); err != nil {
			return err
		}
		switch p.Kind {
		case wire.PreambleRegistry:
			if s.cfg.ClusterID == nil {
				return wire.NewRemoteError(wire.ClassFatalConnection, "Expected HEADER=HBas but received HEADER=Regi")
			}
			id := s.cfg.ClusterID()
			frame, err := wire.AppendResponse(nil, wire.PreambleCallID, &pb.GetConnectionRegistryResponse{ClusterId: &id}, nil)
			if err != nil {
				return err
			}
			c.out.send(frame)
			c.linger()
			return io.EOF
		case wire.PreambleSecurity:
			x := wire.NewRemoteError(wire.ClassSecurityNotEnabled, "security is not enabled")
			c.out.send(wire.AppendException(nil, wire.PreambleCallID, x))
			continue
		}
		switch p.Auth {
		case wire.AuthSimple:
		case wire.AuthKerberos, wire.AuthDigest:
			if err := c.switchToSimple(); err != nil {
				return err
			}
		default:
			return wire.NewRemoteError(wire.ClassBadAuth, "unsupported: authentication "+p.Auth.String())
		}
		break
	}
	ch, err := wire.ReadConnectionHeader(c.r)
	if err != nil {
		return err
	}
	if !s.gate(c) {
		return s.ctx.Err()
	}
	if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := c.accept(ch); err != nil {
		return err
	}
	return c.grow()
}

// greeting gives the client its time to say who it is, from now on.
func (c *Conn) greeting() error {
	return c.nc.SetReadDeadline(time.Now().Add(c.server.cfg.HandshakeTimeout))
}

// switchToSimple tells a client that wants SASL that there is no security: i32
// 0 (success) and i32 -88, then the client's first token is swallowed.
func (c *Conn) switchToSimple() error {
	const switchToSimple int32 = -88
	minus := switchToSimple
	frame := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(minus))
	c.out.send(frame)
	n, err := wire.ReadTotal(c.r, maxToken)
	if err != nil {
		return err
	}
	_, err = c.r.Discard(n)
	return err
}

// accept checks the connection header.
func (c *Conn) accept(ch *pb.ConnectionHeader) error {
	name := ch.GetServiceName()
	if name == "" {
		return wire.NewRemoteError(wire.ClassEmptyServiceName, "")
	}
	svc := c.server.services[name]
	if svc == nil {
		return wire.NewRemoteError(wire.ClassUnknownService, name)
	}
	codec, err := wire.CodecByClass(ch.GetCellBlockCodecClass())
	if err != nil {
		return err
	}
	c.codec = codec
	if codec != wire.CodecNone {
		kind, err := wire.CompressionByClass(ch.GetCellBlockCompressorClass())
		if err != nil {
			return err
		}
		if kind != wire.NoCompression {
			if c.compressor, err = wire.NewCompressor(kind, 0); err != nil {
				return err
			}
		}
	}
	h := &header{service: svc, version: versionOf(ch.GetVersionInfo())}
	if u := ch.GetUserInfo(); u != nil {
		h.user, h.realUser = u.GetEffectiveUser(), u.GetRealUser()
	}
	c.header.Store(h)
	return nil
}

// versionOf reads the client's version: the numbers where they are told, else
// the text ("1.2.6") of clients before 1.3.
func versionOf(v *pb.VersionInfo) Version {
	if v == nil {
		return Version{}
	}
	if v.VersionMajor != nil {
		return Version{int(v.GetVersionMajor()), int(v.GetVersionMinor())}
	}
	major, rest, _ := strings.Cut(v.GetVersion(), ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.ParseUint(major, 10, 16)
	if err != nil {
		return Version{}
	}
	b, err := strconv.ParseUint(minor, 10, 16)
	if err != nil {
		return Version{Major: int(a)}
	}
	return Version{int(a), int(b)}
}
