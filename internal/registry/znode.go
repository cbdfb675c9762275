package registry

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// ErrZNode is matched by every error about a znode that is missing, empty or
// not HBase's.
var ErrZNode = errors.New("znode is not as HBase leaves it")

// ZNodeError says that a znode does not hold what HBase writes there.
type ZNodeError struct {
	// Path of the znode, and the ensemble it was read from.
	Path, Ensemble string
	// Problem in words.
	Problem string
	// Missing and Empty tell the two common problems apart from bad content.
	Missing, Empty bool
	// Suggestions are znodes of the ensemble's root that look like an HBase's
	// parent; set when the parent is missing.
	Suggestions []string
}

func (e *ZNodeError) Error() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "znode %s in ZooKeeper %s: %s", e.Path, e.Ensemble, e.Problem)
	for i, s := range e.Suggestions {
		if i == 0 {
			b.WriteString("; did you mean ")
		} else {
			b.WriteString(" or ")
		}
		b.WriteString(s)
	}
	if len(e.Suggestions) > 0 {
		b.WriteByte('?')
	}
	return b.String()
}

// Is matches ErrZNode.
func (e *ZNodeError) Is(target error) bool { return target == ErrZNode }

// Permanent is true: somebody has to change the address, or what is at it.
func (e *ZNodeError) Permanent() bool { return true }

// stripHeader takes HBase's header off a znode's content: FF, i32 length of
// the writer's id, the id. Content without it is returned whole, as HBase
// does.
func stripHeader(data []byte) ([]byte, error) {
	if len(data) == 0 || data[0] != 0xFF {
		return data, nil
	}
	if len(data) < 5 {
		return nil, fmt.Errorf("header cut off after %d bytes", len(data))
	}
	n := binary.BigEndian.Uint32(data[1:])
	if uint64(n) > uint64(len(data)-5) {
		return nil, fmt.Errorf("writer id of %d bytes in %d bytes of content", n, len(data))
	}
	return data[5+n:], nil
}

// payload gives the protobuf of a znode.
func payload(data []byte) ([]byte, error) {
	data, err := stripHeader(data)
	if err != nil {
		return nil, fmt.Errorf("not HBase data: %w", err)
	}
	body, ok := bytes.CutPrefix(data, []byte(meta.ProtoMagic))
	if !ok {
		return nil, fmt.Errorf("not HBase data: %q does not begin with PBUF", cells.QuoteShort(data, 16))
	}
	return body, nil
}

// decodeMetaServer reads meta-region-server.
func decodeMetaServer(data []byte) (server meta.ServerName, state pb.RegionState_State, err error) {
	body, err := payload(data)
	if err != nil {
		return server, 0, err
	}
	var m pb.MetaRegionServer
	if err := m.UnmarshalVT(body); err != nil {
		return server, 0, fmt.Errorf("not HBase data: %w", err)
	}
	server, err = checkServer(m.Server)
	if m.State == nil {
		return server, pb.RegionState_OPEN, err // written by HBase before it had states
	}
	return server, *m.State, err
}

// decodeMaster reads master.
func decodeMaster(data []byte) (meta.ServerName, error) {
	body, err := payload(data)
	if err != nil {
		return meta.ServerName{}, err
	}
	var m pb.Master
	if err := m.UnmarshalVT(body); err != nil {
		return meta.ServerName{}, fmt.Errorf("not HBase data: %w", err)
	}
	return checkServer(m.Master)
}

// decodeClusterID reads hbaseid; very old ones are bare text.
func decodeClusterID(data []byte) (string, error) {
	data, err := stripHeader(data)
	if err != nil {
		return "", fmt.Errorf("not HBase data: %w", err)
	}
	body, ok := bytes.CutPrefix(data, []byte(meta.ProtoMagic))
	if !ok {
		if len(data) > 0 && len(data) <= 64 && bytes.IndexFunc(data, func(r rune) bool { return r <= ' ' || r > '~' }) < 0 {
			return string(data), nil
		}
		return "", fmt.Errorf("not HBase data: %q does not begin with PBUF", cells.QuoteShort(data, 16))
	}
	var m pb.ClusterId
	if err := m.UnmarshalVT(body); err != nil {
		return "", fmt.Errorf("not HBase data: %w", err)
	}
	return m.GetClusterId(), nil
}

func checkServer(p *pb.ServerName) (meta.ServerName, error) {
	s := meta.ServerFromProto(p)
	if s.Host == "" || s.Port < 1 || s.Port > 65535 {
		return meta.ServerName{}, fmt.Errorf("not HBase data: server %q", s)
	}
	return s, nil
}
