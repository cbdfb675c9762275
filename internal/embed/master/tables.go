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

// maxRegions bounds the regions one call may create.
const maxRegions = 1_000_000

// createTable answers CreateTable.
func (m *Master) createTable(ctx context.Context, q *pb.CreateTableRequest) (uint64, error) {
	if err := catalog.CheckShape(q.GetTableSchema()); err != nil {
		return 0, err
	}
	starts, err := regionStarts(q.GetSplitKeys())
	if err != nil {
		return 0, err
	}
	schema := catalog.NormalSchema(q.GetTableSchema())
	name := meta.TableFromProto(schema.GetTableName())
	return m.submit(ctx, "CreateTableProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		unlock, err := m.lockTable(ctx, name.String(), true)
		if err != nil {
			return err
		}
		defer unlock()
		s := m.state()
		if s.Namespace(name.Namespace) == nil {
			return refuse(wire.ClassNamespaceNotFound, "%s", name.Namespace)
		}
		if s.Table(name) != nil {
			return refuse(wire.ClassTableExists, "%s", name.String())
		}
		if err := m.checkSchema(s, schema); err != nil {
			return err
		}
		// HBase looks at the namespace's quota when the call has been answered.
		prepared()
		if err := m.checkNamespaceQuota(s, name, len(starts)); err != nil {
			return err
		}
		return m.buildTable(ctx, &catalog.Table{Name: name, Schema: schema, State: pb.TableState_ENABLED}, starts, nil)
	})
}

// checkSchema refuses descriptors that make no sense here.
func (m *Master) checkSchema(s *catalog.State, schema *pb.TableSchema) error {
	if err := catalog.CheckSane(schema); err != nil {
		return err
	}
	if g, ok := catalog.Attribute(schema.GetAttributes(), catalog.GroupAttribute); ok && g != "" && !s.HasGroup(g) {
		return refuse(wire.ClassConstraint, "Region server group %s does not exist", g)
	}
	return nil
}

// regionStarts turns split keys into the start keys of the regions: sorted,
// the empty one first. Java clients send them sorted and without repetition;
// what a hand-made request has beyond that would make overlapping regions.
func regionStarts(splits [][]byte) ([][]byte, error) {
	starts := make([][]byte, 1, len(splits)+1)
	starts[0] = []byte{}
	for _, k := range splits {
		if len(k) == 0 {
			return nil, refuse(wire.ClassDoNotRetryIO, "Empty split key must not be passed in the split keys.")
		}
		if len(k) > cells.MaxRowLength {
			return nil, refuse(wire.ClassDoNotRetryIO, "Split key of %d bytes is longer than a row may be (%d)", len(k), cells.MaxRowLength)
		}
		starts = append(starts, bytes.Clone(k))
	}
	slices.SortFunc(starts, bytes.Compare)
	for i := range starts[1:] {
		if bytes.Equal(starts[i], starts[i+1]) {
			return nil, refuse(wire.ClassDoNotRetryIO, "All split keys must be unique, found duplicate: %s", cells.Quote(starts[i]))
		}
	}
	if len(starts) > maxRegions {
		return nil, refuse(wire.ClassDoNotRetryIO, "%d regions are more than the %d that one table may have here", len(starts), maxRegions)
	}
	return starts, nil
}

// replaced is what a rebuilt table had before: a key space, whose data is to be
// dropped, and regions.
type replaced struct {
	id      uint32
	regions []*catalog.Region
}

// buildTable gives a table new regions with the start keys, opens them if the
// table is enabled, and publishes all at once; what it replaces goes away with
// the same change. The caller holds the table's lock.
func (m *Master) buildTable(ctx context.Context, t *catalog.Table, starts [][]byte, old *replaced) error {
	// Numbers are taken in a change of their own: the regions must be opened
	// under their names before the catalog tells of them.
	var id uint64
	now := m.cfg.Now().UnixMilli()
	if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		if t.ID == 0 {
			t.ID = tx.NextTableID()
			// Until the table is published its data has no owner.
			tx.SetSetting(dropSetting(t.ID), "1")
		}
		id = tx.NextRegionID()
		t.StateTime = tx.Now()
		return nil
	}); err != nil {
		return err
	}
	regions := make([]*catalog.Region, len(starts))
	for i, start := range starts {
		end := []byte{}
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		regions[i] = catalog.NewRegion(meta.Region{Table: t.Name, ID: id, Start: start, End: end}, now)
	}
	publish := func(tx *catalog.Tx, ps []placement) error {
		if tx.Namespace(t.Name.Namespace) == nil {
			return refuse(wire.ClassNamespaceNotFound, "%s", t.Name.Namespace)
		}
		if old != nil {
			for _, r := range old.regions {
				tx.DeleteRegion(r)
			}
			tx.SetSetting(dropSetting(old.id), "1")
		}
		tx.PutTable(t)
		tx.SetSetting(dropSetting(t.ID), "")
		return publishOpen(tx, ps)
	}
	if t.State != pb.TableState_ENABLED {
		return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			for _, r := range regions {
				r.State = pb.RegionState_CLOSED
				tx.PutRegion(r)
			}
			return publish(tx, nil)
		})
	}
	if gap := m.cfg.Controls.transitionGap(); gap > 0 {
		if err := wait(ctx, gap); err != nil {
			return err
		}
	}
	ps, err := m.place(ctx, t, regions)
	if err != nil {
		return err
	}
	if err := m.open(ctx, t, ps, publish); err != nil {
		return err
	}
	m.event(eventlog.Event{Method: "create", Table: t.Name.String(), Rows: len(regions)})
	return nil
}

// locked runs f with a table that exists, under its lock.
func (m *Master) locked(ctx context.Context, name meta.TableName, f func(s *catalog.State, t *catalog.Table) error) error {
	unlock, err := m.lockTable(ctx, name.String(), true)
	if err != nil {
		return err
	}
	defer unlock()
	s := m.state()
	t := s.Table(name)
	if t == nil {
		return tableNotFound(name)
	}
	return f(s, t)
}

// catalogTable refuses changes of hbase:meta.
func catalogTable(name meta.TableName) error {
	if name == meta.MetaTable {
		return retriable(wire.ClassIOException, "Can't modify catalog tables")
	}
	return nil
}

// systemVirtual refuses what cannot be done to a rendered table.
func systemVirtual(t *catalog.Table, what string) error {
	if t.Virtual() {
		return unsupported(what + " of " + t.Name.String() + ": its rows are rendered from the catalog")
	}
	return nil
}

// deleteTable answers DeleteTable.
func (m *Master) deleteTable(ctx context.Context, q *pb.DeleteTableRequest) (uint64, error) {
	name, err := catalog.CheckTableName(q.GetTableName())
	if err != nil {
		return 0, err
	}
	return m.submit(ctx, "DeleteTableProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		if err := catalogTable(name); err != nil {
			return err
		}
		return m.locked(ctx, name, func(s *catalog.State, t *catalog.Table) error {
			if t.State != pb.TableState_DISABLED {
				return tableNotDisabled(name)
			}
			prepared()
			if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
				tx.DeleteRegionsOf(name)
				tx.DeleteTable(t)
				tx.DropTableQuotas(name)
				tx.SetSetting(dropSetting(t.ID), "1")
				return nil
			}); err != nil {
				return err
			}
			m.event(eventlog.Event{Method: "delete", Table: name.String()})
			return m.dropData(t.ID)
		})
	})
}

// truncateTable answers truncateTable: the table gets a fresh key space and
// fresh regions, and comes back enabled.
func (m *Master) truncateTable(ctx context.Context, q *pb.TruncateTableRequest) (uint64, error) {
	name, err := catalog.CheckTableName(q.GetTableName())
	if err != nil {
		return 0, err
	}
	return m.submit(ctx, "TruncateTableProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		if err := catalogTable(name); err != nil {
			return err
		}
		return m.locked(ctx, name, func(s *catalog.State, t *catalog.Table) error {
			if t.State != pb.TableState_DISABLED {
				return tableNotDisabled(name)
			}
			if err := generatedTable(t, "truncating"); err != nil {
				return err
			}
			prepared()
			old := slices.Collect(s.RegionsOf(name))
			starts := [][]byte{{}}
			if q.GetPreserveSplits() {
				starts = startsOf(old)
			}
			fresh := *t
			fresh.ID, fresh.State = 0, pb.TableState_ENABLED
			if err := m.buildTable(ctx, &fresh, starts, &replaced{t.ID, old}); err != nil {
				return err
			}
			m.event(eventlog.Event{Method: "truncate", Table: name.String()})
			return m.dropData(t.ID)
		})
	})
}

// startsOf gives the start keys of the regions that cover the key space now.
func startsOf(regions []*catalog.Region) [][]byte {
	var out [][]byte
	for _, r := range regions {
		if !r.Parent() {
			out = append(out, r.Info.Start)
		}
	}
	return out
}

// disableTable answers DisableTable.
func (m *Master) disableTable(ctx context.Context, q *pb.DisableTableRequest) (uint64, error) {
	name, err := catalog.CheckTableName(q.GetTableName())
	if err != nil {
		return 0, err
	}
	return m.submit(ctx, "DisableTableProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		if name == meta.MetaTable {
			return refuse(wire.ClassConstraint, "Cannot disable hbase:meta")
		}
		return m.locked(ctx, name, func(s *catalog.State, t *catalog.Table) error {
			if t.State != pb.TableState_ENABLED {
				return tableNotEnabled(name)
			}
			if err := systemVirtual(t, "disabling"); err != nil {
				return err
			}
			prepared()
			if err := m.setState(t, pb.TableState_DISABLING); err != nil {
				return err
			}
			m.closeAll(ctx, name)
			if gap := m.cfg.Controls.transitionGap(); gap > 0 {
				if err := wait(ctx, gap); err != nil {
					return err
				}
			}
			disabled := *t
			disabled.State = pb.TableState_DISABLED
			err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
				disabled.StateTime = tx.Now()
				tx.PutTable(&disabled)
				closeRegions(tx, name, func(r *catalog.Region) bool { return !r.Parent() })
				return nil
			})
			m.event(eventlog.Event{Method: "disable", Table: name.String()})
			return err
		})
	})
}

// closeRegions records those of a table's regions as closed that which chooses;
// of a generated table's, all.
func closeRegions(tx *catalog.Tx, name meta.TableName, which func(*catalog.Region) bool) {
	tx.Place(name, pb.RegionState_CLOSED, nil, meta.NoSeqNum)
	for _, r := range slices.Collect(tx.Select(name, func(r *catalog.Region) bool { return r.State != pb.RegionState_CLOSED && which(r) })) {
		c := *r
		c.State, c.StateTime = pb.RegionState_CLOSED, tx.Now()
		c.Replicas = slices.Clone(r.Replicas)
		for i := range c.Replicas {
			c.Replicas[i].State = pb.RegionState_CLOSED
		}
		tx.PutRegion(&c)
	}
}

func (m *Master) setState(t *catalog.Table, state pb.TableState_State) error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		c := *t
		c.State, c.StateTime = state, tx.Now()
		tx.PutTable(&c)
		return nil
	})
}

// enableTable answers EnableTable. As in HBase 2, its checks are part of the
// procedure: the call answers an id, and the refusal is the procedure's.
func (m *Master) enableTable(ctx context.Context, q *pb.EnableTableRequest) (uint64, error) {
	name, err := catalog.CheckTableName(q.GetTableName())
	if err != nil {
		return 0, err
	}
	if err := m.spaceForbidsEnabling(name); err != nil {
		return 0, err
	}
	return m.submit(ctx, "EnableTableProcedure", q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		prepared()
		return m.locked(ctx, name, func(s *catalog.State, t *catalog.Table) error {
			if t.State != pb.TableState_DISABLED {
				return refuse(wire.ClassTableNotDisabled, "tableName=%s, state=%s", name, t.State)
			}
			return m.enable(ctx, t)
		})
	})
}

// enable opens a disabled table's regions. The caller holds the table's lock.
func (m *Master) enable(ctx context.Context, t *catalog.Table) error {
	if err := m.setState(t, pb.TableState_ENABLING); err != nil {
		return err
	}
	if gap := m.cfg.Controls.transitionGap(); gap > 0 {
		if err := wait(ctx, gap); err != nil {
			return err
		}
	}
	servers, err := m.serversFor(ctx, t)
	if err != nil {
		return err
	}
	var regions []*catalog.Region
	for r := range m.state().Ordinary(t.Name) {
		if !r.Parent() {
			regions = append(regions, r)
		}
	}
	ps, err := m.place(ctx, t, regions)
	if err != nil {
		return err
	}
	err = m.open(ctx, t, ps, func(tx *catalog.Tx, ps []placement) error {
		c := *t
		c.State, c.StateTime = pb.TableState_ENABLED, tx.Now()
		tx.PutTable(&c)
		tx.Place(t.Name, pb.RegionState_OPEN, servers, m.nextSeq())
		return publishOpen(tx, ps)
	})
	if err == nil && t.Formula != nil {
		err = m.settlePlaced(ctx, t, servers)
	}
	m.event(eventlog.Event{Method: "enable", Table: t.Name.String()})
	return err
}

// recover finishes what an earlier process left half done: a table that was
// being disabled is disabled, one that was being enabled is enabled.
func (m *Master) recover() error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for _, t := range slices.Collect(tx.Tables()) {
			c := *t
			switch t.State {
			case pb.TableState_DISABLING:
				c.State = pb.TableState_DISABLED
			case pb.TableState_ENABLING:
				c.State = pb.TableState_ENABLED
			}
			if c.State != t.State {
				c.StateTime = tx.Now()
				tx.PutTable(&c)
			}
			if c.State != pb.TableState_DISABLED {
				continue
			}
			closeRegions(tx, t.Name, func(r *catalog.Region) bool { return r.State == pb.RegionState_OFFLINE })
		}
		return nil
	})
}
