package meta

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Region is the identity of a region: HBase's RegionInfo. It is a value;
// nobody changes its keys after making it.
type Region struct {
	Table TableName
	// ID is the creation time in milliseconds. Of two regions that overlap,
	// the one with the larger ID cuts the key space more recently.
	ID uint64
	// Start is inclusive, End exclusive; empty means unbounded.
	Start, End []byte
	Replica    int32
	// Offline and Split are both set on a parent that has been split.
	Offline, Split bool
}

// MetaRegion is the one region of hbase:meta.
var MetaRegion = Region{Table: MetaTable, ID: 1}

// MetaEncodedName is the encoded name of hbase:meta's region: a Jenkins hash
// of its name, from the days before md5 suffixes.
const MetaEncodedName = "1588230740"

// MetaRegionName is the full name of hbase:meta's region as requests carry it.
const MetaRegionName = "hbase:meta,,1"

// Name gives the full region name, which is also its row key in hbase:meta:
// table,start,id.encoded. (no suffix for hbase:meta itself).
func (r *Region) Name() []byte {
	if r.Table == MetaTable {
		return r.base(nil)
	}
	b := r.base(make([]byte, 0, 128))
	sum := md5.Sum(b)
	b = append(b, '.')
	b = hex.AppendEncode(b, sum[:])
	return append(b, '.')
}

// EncodedName gives the 32 hex digits that name the region in paths, logs and
// admin calls.
func (r *Region) EncodedName() string {
	if r.Table == MetaTable {
		if r.Replica == 0 {
			return MetaEncodedName
		}
		return jenkinsName(r.base(nil))
	}
	sum := md5.Sum(r.base(make([]byte, 0, 128)))
	return hex.EncodeToString(sum[:])
}

func (r *Region) base(b []byte) []byte {
	b = append(b, r.Table.String()...)
	b = append(b, ',')
	b = append(b, r.Start...)
	b = append(b, ',')
	b = strconv.AppendUint(b, r.ID, 10)
	if r.Replica > 0 {
		b = fmt.Appendf(b, "_%04X", r.Replica)
	}
	return b
}

// Contains says whether the row lies in [Start, End).
func (r *Region) Contains(row []byte) bool {
	return bytes.Compare(row, r.Start) >= 0 && (len(r.End) == 0 || bytes.Compare(row, r.End) < 0)
}

// String gives the region name with unprintable bytes quoted.
func (r *Region) String() string { return quoteName(r.Name()) }

// WithReplica gives the same region as seen by replica n.
func (r Region) WithReplica(n int32) Region { r.Replica = n; return r }

// EncodedNameOf takes the encoded name out of a full region name.
func EncodedNameOf(name []byte) (string, bool) {
	if n := len(name); n > 34 && name[n-1] == '.' && name[n-34] == '.' {
		return string(name[n-33 : n-1]), true
	}
	if bytes.HasPrefix(name, []byte("hbase:meta,")) {
		if string(name) == MetaRegionName {
			return MetaEncodedName, true
		}
		return jenkinsName(name), true
	}
	return "", false
}

// ParseRegionName takes a full region name apart. It does not tell the region's
// end, and the digest is not checked.
func ParseRegionName(name []byte) (Region, bool) {
	if bytes.HasPrefix(name, []byte("hbase:meta,")) {
		return MetaRegion, string(name) == MetaRegionName
	}
	n := len(name)
	if n < 34 || name[n-1] != '.' || name[n-34] != '.' {
		return Region{}, false
	}
	name = name[:n-34]
	i, j := bytes.IndexByte(name, ','), bytes.LastIndexByte(name, ',')
	if i < 0 || j == i {
		return Region{}, false
	}
	r := Region{Start: name[i+1 : j : j]}
	id := string(name[j+1:])
	if k := bytes.IndexByte(name[j+1:], '_'); k >= 0 {
		replica, err := strconv.ParseUint(id[k+1:], 16, 16)
		if err != nil || len(id)-k != 5 {
			return Region{}, false
		}
		r.Replica, id = int32(replica), id[:k]
	}
	var err error
	if r.Table, err = ParseTableName(string(name[:i])); err != nil {
		return Region{}, false
	}
	if r.ID, err = strconv.ParseUint(id, 10, 64); err != nil {
		return Region{}, false
	}
	return r, true
}

// ErrBadRegionInfo is wrapped by errors about region info bytes that cannot be
// read.
var ErrBadRegionInfo = errors.New("malformed region info")

var magic = []byte("PBUF")

// ProtoMagic is the four bytes HBase puts before protobufs in meta cells and
// znodes.
const ProtoMagic = "PBUF"

// ToProto renders the region as its protobuf.
func (r *Region) ToProto() *pb.RegionInfo {
	p := &pb.RegionInfo{
		RegionId:  new(r.ID),
		TableName: r.Table.ToProto(),
		StartKey:  nonNil(r.Start),
		EndKey:    nonNil(r.End),
		Offline:   new(r.Offline),
		Split:     new(r.Split),
	}
	p.ReplicaId = new(r.Replica)
	return p
}

// RegionFromProto reads a region from its protobuf.
func RegionFromProto(p *pb.RegionInfo) Region {
	return Region{
		Table:   TableFromProto(p.GetTableName()),
		ID:      p.GetRegionId(),
		Start:   p.GetStartKey(),
		End:     p.GetEndKey(),
		Replica: p.GetReplicaId(),
		Offline: p.GetOffline(),
		Split:   p.GetSplit(),
	}
}

// Marshal gives the bytes of an info:regioninfo cell: PBUF and the protobuf.
func (r *Region) Marshal() []byte {
	p := r.ToProto()
	b := make([]byte, len(magic)+p.SizeVT())
	copy(b, magic)
	if _, err := p.MarshalToSizedBufferVT(b[len(magic):]); err != nil {
		// All required fields are set above, so this is a programmer's error;
		// an empty value reads as "no region info".
		return nil
	}
	return b
}

// UnmarshalRegion reads the bytes of an info:regioninfo cell. The keys alias b.
func UnmarshalRegion(b []byte) (Region, error) {
	body, ok := bytes.CutPrefix(b, magic)
	if !ok {
		return Region{}, fmt.Errorf("%w: no PBUF magic in %d bytes", ErrBadRegionInfo, len(b))
	}
	var p pb.RegionInfo
	if err := p.UnmarshalVT(body); err != nil {
		return Region{}, fmt.Errorf("%w: %w", ErrBadRegionInfo, err)
	}
	if p.TableName == nil || p.RegionId == nil {
		return Region{}, fmt.Errorf("%w: table or id is missing", ErrBadRegionInfo)
	}
	return RegionFromProto(&p), nil
}

// ToProto renders the table name as its protobuf.
func (t TableName) ToProto() *pb.TableName {
	return &pb.TableName{Namespace: []byte(t.Namespace), Qualifier: []byte(t.Qualifier)}
}

// TableFromProto reads a table name from its protobuf.
func TableFromProto(p *pb.TableName) TableName {
	if p == nil {
		return TableName{}
	}
	t := TableName{string(p.Namespace), string(p.Qualifier)}
	if t.Namespace == "" {
		t.Namespace = DefaultNamespace
	}
	return t
}

// ToProto renders the server name as its protobuf.
func (s ServerName) ToProto() *pb.ServerName {
	return &pb.ServerName{HostName: new(s.Host), Port: new(uint32(s.Port)), StartCode: new(s.StartCode)}
}

// ServerFromProto reads a server name from its protobuf.
func ServerFromProto(p *pb.ServerName) ServerName {
	return ServerName{p.GetHostName(), int(p.GetPort()), p.GetStartCode()}
}

// Uint64 reads an 8-byte big-endian meta value (info:serverstartcode,
// info:seqnumDuringOpen).
func Uint64(b []byte) (uint64, bool) {
	if len(b) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(b), true
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
