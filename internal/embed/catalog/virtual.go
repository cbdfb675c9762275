package catalog

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Virtual gives the rendered rows of a system table, nil for a table that is
// not rendered. The value implements host.VirtualTable.
func (c *Catalog) Virtual(name meta.TableName) *View {
	switch name {
	case meta.MetaTable:
		return newView(c, MetaSchema(), meta.CompareRows, c.metaRows)
	case meta.NamespaceTable:
		return newView(c, NamespaceSchema(), bytes.Compare, namespaceRows)
	case meta.RSGroupTable:
		return newView(c, RSGroupSchema(), bytes.Compare, groupRows)
	case QuotaTable:
		return newView(c, QuotaSchema(), bytes.Compare, quotaRows)
	}
	return nil
}

// View is a table rendered from the catalog. Safe for concurrent use.
type View struct {
	c       *Catalog
	schema  *cells.Schema
	compare func(a, b []byte) int
	rows    func(s *State, start []byte, reversed bool, since int64) iter.Seq[[]cells.Cell]
}

func newView(c *Catalog, s *pb.TableSchema, compare func(a, b []byte) int, rows func(*State, []byte, bool, int64) iter.Seq[[]cells.Cell]) *View {
	schema, err := StoreSchema(s)
	if err != nil {
		// The schemas of system tables are constants of this package.
		schema = cells.NewSchema()
	}
	return &View{c: c, schema: schema, compare: compare, rows: rows}
}

// Schema names the families and their versions.
func (v *View) Schema() *cells.Schema { return v.schema }

// Compare orders rows.
func (v *View) Compare(a, b []byte) int { return v.compare(a, b) }

// Rows renders whole rows from start on, or backwards from start; see
// host.VirtualTable.
func (v *View) Rows(start []byte, reversed bool, since int64) iter.Seq[[]cells.Cell] {
	return v.rows(v.c.State(), start, reversed, since)
}

// metaRows merges the rows of table states with those of regions; both come in
// hbase:meta's order.
func (c *Catalog) metaRows(s *State, start []byte, reversed bool, since int64) iter.Seq[[]cells.Cell] {
	tableAt := func(t *Table) int { return meta.CompareRows([]byte(t.Name.String()), start) }
	if start == nil {
		tableAt = func(*Table) int { return 0 }
	}
	tables, regions, sign := s.tables.from(tableAt), c.shown(s, start, reversed, since), 1
	if reversed {
		tables, sign = s.tables.downFrom(tableAt), -1
	}
	return func(yield func([]cells.Cell) bool) {
		nextTable, stop := iter.Pull(tables)
		defer stop()
		t, more := nextTable()
		for r := range regions {
			for more && meta.CompareRows([]byte(t.Name.String()), r.Name)*sign < 0 {
				if !yield(tableRow(t)) {
					return
				}
				t, more = nextTable()
			}
			if !yield(regionRow(r)) {
				return
			}
		}
		for more {
			if !yield(tableRow(t)) {
				return
			}
			t, more = nextTable()
		}
	}
}

func tableRow(t *Table) []cells.Cell {
	// The state is field 1 of TableState, with no magic before it.
	return []cells.Cell{{
		Row: []byte(t.Name.String()), Family: []byte(meta.FamilyTable), Qualifier: []byte("state"),
		Timestamp: t.StateTime, Type: cells.Put, Value: []byte{0x08, byte(t.State)},
	}}
}

func regionRow(r *Region) []cells.Cell {
	row := make([]cells.Cell, 0, 8)
	put := func(ts int64, qualifier string, value []byte) {
		row = append(row, cells.Cell{Row: r.Name, Family: []byte(meta.FamilyInfo), Qualifier: []byte(qualifier), Timestamp: ts, Type: cells.Put, Value: value})
	}
	for i := range r.Merged {
		put(r.InfoTime, fmt.Sprintf("%s%04d", meta.QualifierMerge, i), r.Merged[i].Marshal())
	}
	put(r.InfoTime, meta.QualifierRegionInfo, r.Info.Marshal())
	if r.OpenSeq != meta.NoSeqNum {
		put(r.StateTime, meta.QualifierSeqNum, binary.BigEndian.AppendUint64(nil, uint64(r.OpenSeq)))
	}
	if !r.Server.IsZero() {
		put(r.StateTime, meta.QualifierServer, []byte(r.Server.Address()))
		put(r.StateTime, meta.QualifierStartCode, binary.BigEndian.AppendUint64(nil, r.Server.StartCode))
	}
	if !r.Target.IsZero() {
		put(r.StateTime, meta.QualifierServerName, []byte(r.Target.String()))
	}
	if r.SplitA != nil {
		put(r.InfoTime, meta.QualifierSplitA, r.SplitA.Marshal())
	}
	if r.SplitB != nil {
		put(r.InfoTime, meta.QualifierSplitB, r.SplitB.Marshal())
	}
	put(r.StateTime, meta.QualifierState, []byte(r.State.String()))
	if len(r.Replicas) == 0 {
		return row
	}
	for i := range r.Replicas {
		p, suffix := &r.Replicas[i], fmt.Sprintf("_%04X", i+1)
		// The columns of a replica that was never open are there, and empty.
		var seq, server, code []byte
		if !p.Server.IsZero() {
			seq = binary.BigEndian.AppendUint64(nil, uint64(p.OpenSeq))
			server = []byte(p.Server.Address())
			code = binary.BigEndian.AppendUint64(nil, p.Server.StartCode)
		}
		put(r.StateTime, meta.QualifierSeqNum+suffix, seq)
		put(r.StateTime, meta.QualifierServer+suffix, server)
		put(r.StateTime, meta.QualifierStartCode+suffix, code)
		if !p.Target.IsZero() {
			put(r.StateTime, meta.QualifierServerName+suffix, []byte(p.Target.String()))
			put(r.StateTime, meta.QualifierState+suffix, []byte(p.State.String()))
		}
	}
	slices.SortFunc(row, func(a, b cells.Cell) int { return bytes.Compare(a.Qualifier, b.Qualifier) })
	return row
}

// keyed renders one-cell rows of a name-ordered tree.
func keyed[V any](t tree[V], name func(V) string, start []byte, reversed bool, cell func(V) (family, qualifier string, value []byte, ts int64)) iter.Seq[[]cells.Cell] {
	at := func(v V) int { return strings.Compare(name(v), string(start)) }
	if start == nil {
		at = func(V) int { return 0 }
	}
	items := t.from(at)
	if reversed {
		items = t.downFrom(at)
	}
	return func(yield func([]cells.Cell) bool) {
		for v := range items {
			f, q, value, ts := cell(v)
			if !yield([]cells.Cell{{Row: []byte(name(v)), Family: []byte(f), Qualifier: []byte(q), Timestamp: ts, Type: cells.Put, Value: value}}) {
				return
			}
		}
	}
}

func namespaceRows(s *State, start []byte, reversed bool, _ int64) iter.Seq[[]cells.Cell] {
	return keyed(s.namespaces, func(n *Namespace) string { return n.Name }, start, reversed, func(n *Namespace) (string, string, []byte, int64) {
		return meta.FamilyInfo, "d", protoBytes(n.ToProto()), n.Time
	})
}

func groupRows(s *State, start []byte, reversed bool, _ int64) iter.Seq[[]cells.Cell] {
	return keyed(s.groups, func(g *Group) string { return g.Name }, start, reversed, func(g *Group) (string, string, []byte, int64) {
		return "m", "i", protoBytes(g.ToProto(s.TablesOfGroup(g.Name))), g.Time
	})
}

// protoBytes marshals a message of ours, whose required fields are set.
func protoBytes(m marshaler) []byte {
	b, err := m.MarshalVT()
	if err != nil {
		return nil
	}
	return b
}
