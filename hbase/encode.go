package hbase

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// Attributes with a meaning to the server.
const (
	attrRaw       = "_raw_"
	attrIsolation = "_isolationlevel_"
	attrTTL       = "_ttl"
	attrReturn    = "_rr_"
	attrID        = "_operation.attributes.id"
)

func pbColumns(cols []Column) []*pb.Column {
	if len(cols) == 0 {
		return nil
	}
	// One allocation for all columns, one for the pointers to them.
	all := make([]pb.Column, len(cols))
	out := make([]*pb.Column, len(cols))
	for i := range cols {
		all[i].Family, all[i].Qualifier = cols[i].Family, cols[i].Qualifiers
		out[i] = &all[i]
	}
	return out
}

func pbTimeRange(r TimeRange) *pb.TimeRange {
	if r.IsZero() {
		return nil
	}
	return &pb.TimeRange{From: new(uint64(r.From)), To: new(uint64(r.To))}
}

func pbFamilyTimeRanges(byFamily map[string]TimeRange) []*pb.ColumnFamilyTimeRange {
	if len(byFamily) == 0 {
		return nil
	}
	out := make([]*pb.ColumnFamilyTimeRange, 0, len(byFamily))
	for _, f := range slices.Sorted(maps.Keys(byFamily)) {
		r := byFamily[f]
		out = append(out, &pb.ColumnFamilyTimeRange{
			ColumnFamily: []byte(f),
			TimeRange:    &pb.TimeRange{From: new(uint64(r.From)), To: new(uint64(r.To))},
		})
	}
	return out
}

func pbFilter(f Filter) (*pb.Filter, error) {
	if f == nil {
		return nil, nil
	}
	b, err := f.Marshal()
	if err != nil {
		return nil, &InvalidError{Op: "filter", Object: f.Name(), Reason: err.Error()}
	}
	return &pb.Filter{Name: new(f.Name()), SerializedFilter: b}, nil
}

// attributes collects name/bytes pairs in a stable order.
type attributes []*pb.NameBytesPair

func (a *attributes) add(name string, value []byte) {
	*a = append(*a, &pb.NameBytesPair{Name: &name, Value: value})
}

func (a *attributes) common(id string, more map[string][]byte) {
	if id != "" {
		a.add(attrID, []byte(id))
	}
	if len(more) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		a.add(name, more[name])
	}
}

// fillGet renders g into p, which is zero.
func fillGet(p *pb.Get, g *Get, existence bool) error {
	var err error
	p.Row = g.Row
	p.Column = pbColumns(g.Columns)
	p.TimeRange = pbTimeRange(g.TimeRange)
	p.CfTimeRange = pbFamilyTimeRanges(g.FamilyTimeRange)
	if g.MaxVersions > 1 {
		p.MaxVersions = new(uint32(g.MaxVersions))
	}
	if g.MaxPerFamily > 0 {
		p.StoreLimit = new(uint32(g.MaxPerFamily))
	}
	if g.OffsetPerFamily > 0 {
		p.StoreOffset = new(uint32(g.OffsetPerFamily))
	}
	if p.Filter, err = pbFilter(g.Filter); err != nil {
		return err
	}
	if g.SkipBlockCache {
		p.CacheBlocks = new(false)
	}
	if g.Consistency == Timeline {
		p.Consistency = pb.Consistency_TIMELINE.Enum()
	}
	p.LoadColumnFamiliesOnDemand = g.LoadOnDemand
	if g.QueryMetrics {
		p.QueryMetricsEnabled = new(true)
	}
	if existence || g.ExistenceOnly {
		p.ExistenceOnly = new(true)
	}
	var a attributes
	if g.Isolation == ReadUncommitted {
		a.add(attrIsolation, []byte{1})
	}
	if g.ACL != nil || g.Authorizations != nil {
		if err := a.query(g.ACL, g.Authorizations); err != nil {
			return err
		}
	}
	a.common(g.ID, g.Attributes)
	p.Attribute = a
	return nil
}

// pbScan renders everything of s that stays the same over the life of the
// scanner; the position is set by the scanner at each opening.
func pbScan(s *Scan, maxResultSize int64) (*pb.Scan, error) {
	f, err := pbFilter(s.Filter)
	if err != nil {
		return nil, err
	}
	p := &pb.Scan{
		Column:                     pbColumns(s.Columns),
		Filter:                     f,
		TimeRange:                  pbTimeRange(s.TimeRange),
		CfTimeRange:                pbFamilyTimeRanges(s.FamilyTimeRange),
		MaxResultSize:              new(uint64(maxResultSize)),
		LoadColumnFamiliesOnDemand: s.LoadOnDemand,
	}
	if s.MaxVersions > 1 {
		p.MaxVersions = new(uint32(s.MaxVersions))
	}
	if s.SkipBlockCache {
		p.CacheBlocks = new(false)
	}
	if s.Batch > 0 {
		p.BatchSize = new(uint32(s.Batch))
	}
	if s.MaxPerFamily > 0 {
		p.StoreLimit = new(uint32(s.MaxPerFamily))
	}
	if s.OffsetPerFamily > 0 {
		p.StoreOffset = new(uint32(s.OffsetPerFamily))
	}
	if s.Reversed {
		p.Reversed = new(true)
	}
	if s.Consistency == Timeline {
		p.Consistency = pb.Consistency_TIMELINE.Enum()
	}
	if s.Caching > 0 {
		p.Caching = new(uint32(s.Caching))
	}
	if s.AllowPartial {
		p.AllowPartialResults = new(true)
	}
	switch s.ReadType {
	case ReadStream:
		p.ReadType = pb.Scan_STREAM.Enum()
	case ReadPositional:
		p.ReadType = pb.Scan_PREAD.Enum()
	}
	if s.QueryMetrics {
		p.QueryMetricsEnabled = new(true)
	}
	if s.NeedCursor {
		p.NeedCursorResult = new(true)
	}
	var a attributes
	if s.Raw {
		a.add(attrRaw, []byte{0xFF})
	}
	if s.Isolation == ReadUncommitted {
		a.add(attrIsolation, []byte{1})
	}
	if err := a.query(s.ACL, s.Authorizations); err != nil {
		return nil, err
	}
	a.common(s.ID, s.Attributes)
	p.Attribute = a
	return p, nil
}

// mutationRoom is a rendered mutation with what its pointers point at, and
// with what a batch needs around it, so that a thousand of them are one object.
type mutationRoom struct {
	proto   pb.MutationProto
	kind    pb.MutationProto_MutationType
	cells   int32
	action  pb.Action
	actions [1]*pb.Action
}

// fillMutation renders m into room, which is zero, and appends its cells to
// block. Cells travel in the cell block; only the whole-row delete, which has
// none, is complete without.
func fillMutation(room *mutationRoom, m Mutation, nonce uint64, block []byte) ([]byte, error) {
	p := &room.proto
	p.MutateType = &room.kind
	mu := m.mutation()
	o := m.options()
	var a attributes
	p.Row = mu.row
	switch m := m.(type) {
	case *Put:
		room.kind = pb.MutationProto_PUT
	case *Delete:
		room.kind = pb.MutationProto_DELETE
		if mu.timestamp != LatestTimestamp {
			p.Timestamp = new(uint64(mu.timestamp))
		}
	case *Increment:
		room.kind = pb.MutationProto_INCREMENT
		p.TimeRange = pbTimeRange(m.TimeRange)
		p.Nonce = new(nonce)
		if m.NoResult {
			a.add(attrReturn, []byte{0})
		}
	case *Append:
		room.kind = pb.MutationProto_APPEND
		p.TimeRange = pbTimeRange(m.TimeRange)
		p.Nonce = new(nonce)
		if m.NoResult {
			a.add(attrReturn, []byte{0})
		}
	default:
		return block, invalid("mutation", fmt.Sprintf("%T", m), "is none of Put, Delete, Increment, Append")
	}
	switch o.Durability {
	case SkipWAL:
		p.Durability = pb.MutationProto_SKIP_WAL.Enum()
	case AsyncWAL:
		p.Durability = pb.MutationProto_ASYNC_WAL.Enum()
	case SyncWAL:
		p.Durability = pb.MutationProto_SYNC_WAL.Enum()
	case FsyncWAL:
		p.Durability = pb.MutationProto_FSYNC_WAL.Enum()
	}
	if o.TTL > 0 {
		ms := max(o.TTL.Milliseconds(), int64(1))
		a.add(attrTTL, binary.BigEndian.AppendUint64(nil, uint64(ms)))
	}
	if o.ACL != nil || o.Visibility != "" || o.ClusterIDs != nil {
		if err := a.security(o); err != nil {
			return block, err
		}
	}
	a.common(o.ID, o.Attributes)
	p.Attribute = a
	if len(mu.cells) > 0 {
		room.cells = int32(len(mu.cells))
		p.AssociatedCellCount = &room.cells
		var err error
		if block, err = codec.AppendCells(block, mu.cells); err != nil {
			return block, invalid("mutation", errRow(mu.row), err.Error())
		}
	}
	return block, nil
}

func pbCondition(c *CheckAndMutate) (*pb.Condition, error) {
	p := &pb.Condition{Row: c.Row, TimeRange: pbTimeRange(c.TimeRange)}
	if c.QueryMetrics {
		p.QueryMetricsEnabled = new(true)
	}
	if c.Filter != nil {
		f, err := pbFilter(c.Filter)
		if err != nil {
			return nil, err
		}
		p.Filter = f
		return p, nil
	}
	comparable := &pb.ByteArrayComparable{Value: nonNil(c.Value)}
	b, err := (&pb.BinaryComparator{Comparable: comparable}).MarshalVT()
	if err != nil {
		return nil, invalid("condition", "value", err.Error())
	}
	p.Family, p.Qualifier = c.Family, nonNil(c.Qualifier)
	p.CompareType = pb.CompareType(c.Op).Enum()
	p.Comparator = &pb.Comparator{Name: new("org.apache.hadoop.hbase.filter.BinaryComparator"), SerializedComparator: b}
	return p, nil
}

// repeatable says what happens if the mutation is applied twice: a delete of
// "the newest version" removes another one the second time.
func repeatable(m Mutation) session.Idempotency {
	switch m := m.(type) {
	case *Increment, *Append:
		return session.Nonced
	case *Put:
		if m.Unrepeatable {
			return session.Unsafe
		}
	case *Delete:
		if m.Unrepeatable {
			return session.Unsafe
		}
		for i := range m.m.cells {
			if c := &m.m.cells[i]; c.Type == cells.Delete && c.Timestamp == LatestTimestamp {
				return session.Unsafe
			}
		}
	}
	return session.Safe
}

func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
