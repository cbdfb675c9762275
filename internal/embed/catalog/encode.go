package catalog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Keys begin with one letter for the kind of entry.
const (
	tablePrefix     = "t"
	regionPrefix    = "r"
	namespacePrefix = "n"
	groupPrefix     = "g"
	settingPrefix   = "s"
	snapshotPrefix  = "p"
	awayPrefix      = "a"
	writtenPrefix   = "w"
)

func tableKey(n meta.TableName) string { return tablePrefix + n.String() }
func regionKey(r *Region) string       { return regionPrefix + r.Encoded }

// Values are protobuf-like records (fields by number, unknown ones skipped on
// reading), so that a later version may add fields.
const (
	fieldID      protowire.Number = 1
	fieldSchema  protowire.Number = 2
	fieldState   protowire.Number = 3
	fieldTime    protowire.Number = 4
	fieldGroup   protowire.Number = 5
	fieldInfo    protowire.Number = 6
	fieldSplitA  protowire.Number = 7
	fieldSplitB  protowire.Number = 8
	fieldMerged  protowire.Number = 9
	fieldMessage protowire.Number = 10
	fieldStart   protowire.Number = 11
	fieldFormula protowire.Number = 12
)

// slotKey names what is kept about region i of a generated table. No table's
// name holds a zero byte.
func slotKey(prefix, table string, i int) string {
	return string(binary.BigEndian.AppendUint32(append([]byte(prefix+table), 0), uint32(i)))
}

func parseSlotKey(name string) (table string, i int, ok bool) {
	n := len(name) - 5
	if n < 1 || name[n] != 0 {
		return "", 0, false
	}
	return name[:n], int(binary.BigEndian.Uint32([]byte(name[n+1:]))), true
}

func appendBytes(b []byte, f protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, f, protowire.BytesType), v)
}

func appendUint(b []byte, f protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, f, protowire.VarintType), v)
}

type marshaler interface{ MarshalVT() ([]byte, error) }

// appendMessage writes a message whose required fields the catalog has set
// itself, so that marshalling cannot fail.
func appendMessage(b []byte, f protowire.Number, m marshaler) []byte {
	v, err := m.MarshalVT()
	if err != nil {
		return b
	}
	return appendBytes(b, f, v)
}

func encodeTable(t *Table) []byte {
	b := appendUint(nil, fieldID, uint64(t.ID))
	b = appendMessage(b, fieldSchema, t.Schema)
	b = appendUint(b, fieldState, uint64(t.State))
	b = appendUint(b, fieldTime, uint64(t.StateTime))
	if t.Group != "" {
		b = appendBytes(b, fieldGroup, []byte(t.Group))
	}
	if t.Formula != nil {
		b = appendBytes(b, fieldFormula, encodeFormula(t.Formula))
	}
	return b
}

func encodeFormula(f *Formula) []byte {
	b := appendUint(nil, 1, uint64(f.Regions))
	b = appendUint(b, 2, uint64(f.Rows))
	b = appendUint(b, 3, uint64(f.ValueSize))
	b = appendUint(b, 4, f.ID)
	b = appendUint(b, 5, uint64(f.CreatedAt))
	b = appendBytes(b, 6, []byte(f.Format.String()))
	for _, n := range f.Families {
		b = appendBytes(b, 7, []byte(n))
	}
	return b
}

func decodeFormula(b []byte) (*Formula, error) {
	f := &Formula{}
	err := fields(b, func(field protowire.Number, v []byte, n uint64) (err error) {
		switch field {
		case 1:
			f.Regions = int(min(n, math.MaxInt32))
		case 2:
			f.Rows = int(min(n, math.MaxInt32))
		case 3:
			f.ValueSize = int(min(n, math.MaxInt32))
		case 4:
			f.ID = n
		case 5:
			f.CreatedAt = int64(n)
		case 6:
			f.Format, err = ParseKeyFormat(string(v))
		case 7:
			f.Families = append(f.Families, string(v))
		}
		return err
	})
	if err == nil {
		err = f.Check()
	}
	return f, err
}

// durableState is the part of a region's state that outlives the process: only
// that it was split or merged away. Everything else is assigned again.
func durableState(r *Region) pb.RegionState_State {
	if r.Parent() {
		return r.State
	}
	return pb.RegionState_OFFLINE
}

func durablyDifferent(a, b *Region) bool {
	return durableState(a) != durableState(b) || a.Info.Offline != b.Info.Offline || a.Info.Split != b.Info.Split ||
		a.InfoTime != b.InfoTime || !sameRegion(a.SplitA, b.SplitA) || !sameRegion(a.SplitB, b.SplitB) ||
		!slices.EqualFunc(a.Merged, b.Merged, func(x, y meta.Region) bool { return sameRegion(&x, &y) })
}

func sameRegion(a, b *meta.Region) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && a.Table == b.Table && bytes.Equal(a.Start, b.Start) && bytes.Equal(a.End, b.End)
}

func encodeRegion(r *Region) []byte {
	b := appendBytes(make([]byte, 0, 160), fieldInfo, r.Info.Marshal())
	b = appendUint(b, fieldState, uint64(durableState(r)))
	b = appendUint(b, fieldTime, uint64(r.InfoTime))
	if r.SplitA != nil {
		b = appendBytes(b, fieldSplitA, r.SplitA.Marshal())
	}
	if r.SplitB != nil {
		b = appendBytes(b, fieldSplitB, r.SplitB.Marshal())
	}
	for i := range r.Merged {
		b = appendBytes(b, fieldMerged, r.Merged[i].Marshal())
	}
	return b
}

func encodeNamespace(n *Namespace) []byte {
	return appendUint(appendMessage(nil, fieldMessage, n.ToProto()), fieldTime, uint64(n.Time))
}

func encodeGroup(g *Group) []byte {
	return appendUint(appendMessage(nil, fieldMessage, g.ToProto(nil)), fieldTime, uint64(g.Time))
}

func encodeSnapshot(p *Snapshot) []byte {
	b := appendMessage(nil, fieldMessage, p.Description)
	b = appendMessage(b, fieldSchema, p.Schema)
	b = appendUint(b, fieldID, uint64(p.DataID))
	for _, s := range p.Starts {
		b = appendBytes(b, fieldStart, s)
	}
	return b
}

// ErrCorrupt is wrapped by the error of a catalog entry that cannot be read.
var ErrCorrupt = errors.New("catalog: corrupt entry")

// fields calls f for every field of a record; value is set for byte fields,
// number for varints.
func fields(b []byte, f func(field protowire.Number, value []byte, number uint64) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var v []byte
		var u uint64
		switch typ {
		case protowire.BytesType:
			v, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			u, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		if err := f(num, v, u); err != nil {
			return err
		}
	}
	return nil
}

func decodeTable(b []byte) (*Table, error) {
	t := &Table{}
	err := fields(b, func(f protowire.Number, v []byte, n uint64) error {
		switch f {
		case fieldID:
			t.ID = uint32(n)
		case fieldSchema:
			t.Schema = &pb.TableSchema{}
			return t.Schema.UnmarshalVT(v)
		case fieldState:
			t.State = pb.TableState_State(n)
		case fieldTime:
			t.StateTime = int64(n)
		case fieldGroup:
			t.Group = string(v)
		case fieldFormula:
			var err error
			t.Formula, err = decodeFormula(v)
			return err
		}
		return nil
	})
	if err == nil && t.Schema.GetTableName() == nil {
		err = errors.New("no table name")
	}
	if err == nil {
		t.Name = meta.TableFromProto(t.Schema.GetTableName())
	}
	return t, err
}

func decodeRegion(b []byte) (*Region, error) {
	r := &Region{OpenSeq: meta.NoSeqNum}
	region := func(v []byte) (*meta.Region, error) {
		i, err := meta.UnmarshalRegion(bytes.Clone(v))
		return &i, err
	}
	err := fields(b, func(f protowire.Number, v []byte, n uint64) (err error) {
		switch f {
		case fieldInfo:
			var i *meta.Region
			if i, err = region(v); err == nil {
				r.Info = *i
			}
		case fieldState:
			r.State = pb.RegionState_State(n)
		case fieldTime:
			r.InfoTime, r.StateTime = int64(n), int64(n)
		case fieldSplitA:
			r.SplitA, err = region(v)
		case fieldSplitB:
			r.SplitB, err = region(v)
		case fieldMerged:
			var i *meta.Region
			if i, err = region(v); err == nil {
				r.Merged = append(r.Merged, *i)
			}
		}
		return err
	})
	if err == nil && r.Info.Table.IsZero() {
		err = errors.New("no region info")
	}
	r.Name, r.Encoded = r.Info.Name(), r.Info.EncodedName()
	return r, err
}

func decodeNamespace(b []byte) (*Namespace, error) {
	n := &Namespace{}
	err := fields(b, func(f protowire.Number, v []byte, u uint64) error {
		switch f {
		case fieldMessage:
			var p pb.NamespaceDescriptor
			if err := p.UnmarshalVT(v); err != nil {
				return err
			}
			n.Name, n.Config = string(p.GetName()), p.GetConfiguration()
		case fieldTime:
			n.Time = int64(u)
		}
		return nil
	})
	return n, err
}

func decodeGroup(b []byte) (*Group, error) {
	g := &Group{}
	err := fields(b, func(f protowire.Number, v []byte, u uint64) error {
		switch f {
		case fieldMessage:
			var p pb.RSGroupInfo
			if err := p.UnmarshalVT(v); err != nil {
				return err
			}
			g.Name, g.Config = p.GetName(), p.GetConfiguration()
			for _, s := range p.GetServers() {
				sn := meta.ServerFromProto(s)
				g.Servers = append(g.Servers, sn.Address())
			}
		case fieldTime:
			g.Time = int64(u)
		}
		return nil
	})
	return g, err
}

func decodeSnapshot(b []byte) (*Snapshot, error) {
	p := &Snapshot{Description: &pb.SnapshotDescription{}, Schema: &pb.TableSchema{}}
	err := fields(b, func(f protowire.Number, v []byte, u uint64) error {
		switch f {
		case fieldMessage:
			return p.Description.UnmarshalVT(v)
		case fieldSchema:
			return p.Schema.UnmarshalVT(v)
		case fieldID:
			p.DataID = uint32(u)
		case fieldStart:
			p.Starts = append(p.Starts, bytes.Clone(v))
		}
		return nil
	})
	return p, err
}

// load reads every entry and builds the indexes in one go.
func load(kv KV) (*State, error) { return loadEach(kv, func(_ string, err error) error { return err }) }

// loadEach is load with a judge of entries that cannot be read: it gives the
// error that ends the loading, or nil to leave the entry out.
func loadEach(kv KV, broken func(key string, err error) error) (*State, error) {
	s := emptyState()
	var tables []*Table
	var regions []*Region
	var slots []string
	s.settings = map[string]string{}
	for e, err := range kv.Iterate() {
		if err != nil {
			return nil, err
		}
		if len(e.Key) == 0 {
			continue
		}
		kind, name := string(e.Key[:1]), string(e.Key[1:])
		switch kind {
		case tablePrefix:
			var t *Table
			if t, err = decodeTable(e.Value); err == nil {
				tables = append(tables, t)
			}
		case regionPrefix:
			var r *Region
			if r, err = decodeRegion(e.Value); err == nil {
				regions = append(regions, r)
			}
		case namespacePrefix:
			var n *Namespace
			if n, err = decodeNamespace(e.Value); err == nil {
				s.namespaces = s.namespaces.set(n)
			}
		case groupPrefix:
			var g *Group
			if g, err = decodeGroup(e.Value); err == nil {
				s.groups = s.groups.set(g)
			}
		case snapshotPrefix:
			var p *Snapshot
			if p, err = decodeSnapshot(e.Value); err == nil {
				s.snapshots = s.snapshots.set(p)
			}
		case awayPrefix, writtenPrefix:
			slots = append(slots, kind+name)
		case settingPrefix:
			s.settings[name] = string(e.Value)
		}
		if err != nil {
			if err = broken(kind+name, fmt.Errorf("%w: %q: %w", ErrCorrupt, strings.ToValidUTF8(kind+name, "?"), err)); err != nil {
				return nil, err
			}
		}
	}
	s.tables = buildTree(compareTables, tables)
	s.regions = buildTree(compareRegions, slices.Clone(regions))
	s.encoded = buildTree(compareEncoded, regions)
	generated := map[string]*generated{}
	for _, t := range tables {
		if t.Formula != nil {
			g := newGenerated(t)
			generated[g.text] = g
			s.generated = s.generated.set(g)
		}
	}
	for _, key := range slots {
		table, i, ok := parseSlotKey(key[1:])
		g := generated[table]
		if !ok || g == nil || i >= g.formula.Regions {
			err := fmt.Errorf("%w: %q: no region of a generated table", ErrCorrupt, strings.ToValidUTF8(key, "?"))
			if err = broken(key, err); err != nil {
				return nil, err
			}
			continue
		}
		if key[:1] == awayPrefix {
			g.away = g.away.set(int32(i))
		} else {
			g.written = g.written.set(int32(i))
		}
	}
	return s, nil
}
