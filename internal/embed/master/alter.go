package master

import (
	"bytes"
	"context"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// alter runs a procedure that replaces a table's descriptor by what f makes of
// it. f runs under the table's lock and must not change its argument.
func (m *Master) alter(ctx context.Context, p *pb.TableName, class string, group, nonce uint64, reopen bool, f func(old *pb.TableSchema) (*pb.TableSchema, error)) (uint64, error) {
	name, err := catalog.CheckTableName(p)
	if err != nil {
		return 0, err
	}
	return m.submit(ctx, class, group, nonce, func(ctx context.Context, prepared func()) error {
		return m.locked(ctx, name, func(s *catalog.State, t *catalog.Table) error {
			schema, err := f(t.Schema)
			if err != nil {
				return err
			}
			if err := systemVirtual(t, "altering"); err != nil {
				return err
			}
			if t.Formula != nil && (&catalog.Table{Schema: schema}).Replication() > 1 {
				return generatedTable(t, "replicas")
			}
			if t.Formula != nil && !sameFamilies(t.Schema, schema) {
				return generatedTable(t, "changing the families")
			}
			if err := m.checkSchema(s, schema); err != nil {
				return err
			}
			prepared()
			return m.setSchema(ctx, t, schema, reopen)
		})
	})
}

// setSchema publishes a table's new descriptor and, if it is enabled and reopen
// is true, opens its regions again in place, with larger sequence numbers. The
// caller holds the table's lock exclusively.
func (m *Master) setSchema(ctx context.Context, t *catalog.Table, schema *pb.TableSchema, reopen bool) error {
	if catalog.SameSchema(t.Schema, schema) {
		return nil
	}
	stored, err := catalog.StoreSchema(schema)
	if err != nil {
		return err
	}
	// What an alter that failed has not dropped must not come back with this one.
	if err := m.dropFamilies(ctx, t); err != nil {
		return err
	}
	changed := *t
	changed.Schema = schema
	before, _ := t.Attribute(catalog.GroupAttribute)
	if after, _ := changed.Attribute(catalog.GroupAttribute); after != before {
		// The descriptor's word replaces where the table was moved to before.
		changed.Group = after
	}
	var dropped [][]byte
	for _, f := range t.Schema.GetColumnFamilies() {
		if catalog.FamilyOf(schema, f.GetName()) == nil {
			dropped = append(dropped, f.GetName())
		}
	}
	if reopen || t.State != pb.TableState_ENABLED {
		if err := m.flushAsWas(ctx, t, stored); err != nil {
			return err
		}
	}
	m.cfg.Tables.SetSchema(&changed, stored)
	if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		tx.PutTable(&changed)
		if len(dropped) > 0 && !t.Virtual() {
			tx.SetSetting(dropFamiliesSetting(t.ID), string(bytes.Join(dropped, []byte{0})))
		}
		return nil
	}); err != nil {
		return err
	}
	if err := m.dropFamilies(ctx, &changed); err != nil {
		return err
	}
	m.event(eventlog.Event{Method: "alter", Table: t.Name.String()})
	if !reopen || t.State != pb.TableState_ENABLED {
		return nil
	}
	if err := m.reopen(ctx, &changed); err != nil {
		return err
	}
	if changed.Group != t.Group {
		return m.settle(ctx, t.Name)
	}
	return nil
}

// flushAsWas flushes a table's regions if its new schema keeps other versions
// than the old one: HBase does when it closes them, and what goes then goes by
// the old word.
func (m *Master) flushAsWas(ctx context.Context, t *catalog.Table, schema *cells.Schema) error {
	if t.Virtual() {
		return nil
	}
	h, err := m.cfg.Tables.Handle(t)
	if err != nil {
		return err
	}
	for _, f := range h.Schema().Families {
		g := schema.Family(f.Name)
		if g == nil || f.MaxVersions == g.MaxVersions && f.MinVersions == g.MinVersions && f.TTL == g.TTL && f.KeepDeleted == g.KeepDeleted && f.NewVersionBehavior == g.NewVersionBehavior {
			continue
		}
		return h.Flush(ctx, nil, nil, nil)
	}
	return nil
}

// reopen opens a table's regions again where they are.
func (m *Master) reopen(ctx context.Context, t *catalog.Table) error {
	var ps []placement
	open := func() error {
		if len(ps) == 0 {
			return nil
		}
		err := m.open(ctx, t, ps, publishOpen)
		ps = nil
		return err
	}
	for r := range m.state().Select(t.Name, func(r *catalog.Region) bool { return r.State == pb.RegionState_OPEN }) {
		if rs := m.find(r.Server); rs != nil && rs.Alive() {
			ps = append(ps, placement{region: r, server: rs, seq: m.nextSeq()})
		}
		if t.Formula != nil && len(ps) == chunk {
			if err := open(); err != nil {
				return err
			}
		}
	}
	if err := open(); err != nil {
		return err
	}
	if t.Formula != nil {
		// What servers have opened of it is as it was before.
		for _, rs := range m.cfg.Servers.Live() {
			if err := rs.CloseTable(ctx, t.Name, true); err != nil {
				return err
			}
		}
	}
	return nil
}

func sameFamilies(a, b *pb.TableSchema) bool {
	for _, f := range a.GetColumnFamilies() {
		if catalog.FamilyOf(b, f.GetName()) == nil {
			return false
		}
	}
	return len(a.GetColumnFamilies()) == len(b.GetColumnFamilies())
}

func (m *Master) modifyTable(ctx context.Context, q *pb.ModifyTableRequest) (uint64, error) {
	// HBase goes by the name in the descriptor.
	if err := catalog.CheckShape(q.GetTableSchema()); err != nil {
		return 0, err
	}
	schema := catalog.NormalSchema(q.GetTableSchema())
	return m.alter(ctx, schema.GetTableName(), "ModifyTableProcedure", q.GetNonceGroup(), q.GetNonce(), q.GetReopenRegions(), func(*pb.TableSchema) (*pb.TableSchema, error) {
		return schema, nil
	})
}

func (m *Master) addColumn(ctx context.Context, q *pb.AddColumnRequest) (uint64, error) {
	f := q.GetColumnFamilies()
	if err := catalog.CheckFamilyName(f.GetName()); err != nil {
		return 0, err
	}
	return m.alter(ctx, q.GetTableName(), "ModifyTableProcedure", q.GetNonceGroup(), q.GetNonce(), true, func(old *pb.TableSchema) (*pb.TableSchema, error) {
		if catalog.FamilyOf(old, f.GetName()) != nil {
			return nil, refuse(wire.ClassInvalidFamilyOperation, "Column family '%s' in table '%s' already exists so cannot be added", f.GetName(), meta.TableFromProto(old.GetTableName()))
		}
		return catalog.WithFamily(old, catalog.NormalFamily(f)), nil
	})
}

func (m *Master) modifyColumn(ctx context.Context, q *pb.ModifyColumnRequest) (uint64, error) {
	f := q.GetColumnFamilies()
	if err := catalog.CheckFamilyName(f.GetName()); err != nil {
		return 0, err
	}
	return m.alter(ctx, q.GetTableName(), "ModifyTableProcedure", q.GetNonceGroup(), q.GetNonce(), true, func(old *pb.TableSchema) (*pb.TableSchema, error) {
		if catalog.FamilyOf(old, f.GetName()) == nil {
			return nil, refuse(wire.ClassInvalidFamilyOperation, "Family '%s' does not exist, so it cannot be modified", f.GetName())
		}
		return catalog.WithFamily(old, catalog.NormalFamily(f)), nil
	})
}

func (m *Master) deleteColumn(ctx context.Context, q *pb.DeleteColumnRequest) (uint64, error) {
	family := q.GetColumnName()
	if table := m.state().Table(meta.MetaTable); meta.TableFromProto(q.GetTableName()) == meta.MetaTable && catalog.FamilyOf(table.Schema, family) != nil {
		return 0, retriable(wire.ClassHBaseIO, "Delete of hbase:meta column family %s", family)
	}
	return m.alter(ctx, q.GetTableName(), "ModifyTableProcedure", q.GetNonceGroup(), q.GetNonce(), true, func(old *pb.TableSchema) (*pb.TableSchema, error) {
		switch {
		case catalog.FamilyOf(old, family) == nil:
			return nil, refuse(wire.ClassInvalidFamilyOperation, "Family '%s' does not exist, so it cannot be deleted", family)
		case len(old.GetColumnFamilies()) == 1:
			return nil, refuse(wire.ClassInvalidFamilyOperation, "Family '%s' is the only column family in the table, so it cannot be deleted", family)
		}
		return catalog.WithoutFamily(old, family), nil
	})
}

// modifyTableTracker and modifyColumnTracker keep the store file tracker's name
// as an attribute; storage here has no store files to track.
func (m *Master) modifyTableTracker(ctx context.Context, q *pb.ModifyTableStoreFileTrackerRequest) (uint64, error) {
	return m.alter(ctx, q.GetTable_Name(), "ModifyTableStoreFileTrackerProcedure", q.GetNonceGroup(), q.GetNonce(), true, func(old *pb.TableSchema) (*pb.TableSchema, error) {
		s := catalog.WithoutFamily(old, nil)
		s.Attributes = catalog.SetAttribute(s.Attributes, trackerKey, q.GetDstSft())
		return catalog.NormalSchema(s), nil
	})
}

func (m *Master) modifyColumnTracker(ctx context.Context, q *pb.ModifyColumnStoreFileTrackerRequest) (uint64, error) {
	return m.alter(ctx, q.GetTable_Name(), "ModifyColumnFamilyStoreFileTrackerProcedure", q.GetNonceGroup(), q.GetNonce(), true, func(old *pb.TableSchema) (*pb.TableSchema, error) {
		f := catalog.FamilyOf(old, q.GetFamily())
		if f == nil {
			return nil, refuse(wire.ClassInvalidFamilyOperation, "Family '%s' does not exist, so it cannot be modified", q.GetFamily())
		}
		g := &pb.ColumnFamilySchema{Name: bytes.Clone(f.GetName()), Attributes: f.GetAttributes()}
		g.Configuration = slices.DeleteFunc(slices.Clone(f.GetConfiguration()), func(p *pb.NameStringPair) bool { return p.GetName() == trackerKey })
		g.Configuration = append(g.Configuration, &pb.NameStringPair{Name: new(trackerKey), Value: new(q.GetDstSft())})
		return catalog.WithFamily(old, g), nil
	})
}

const trackerKey = "hbase.store.file-tracker.impl"
