package master

import (
	"context"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Reset removes every table that is not a system table, every namespace but
// default and hbase, groups, snapshots and switches: the catalog of a fresh
// cluster, in which ids and sequence numbers go on.
func (m *Master) Reset(ctx context.Context) error {
	for t := range m.state().Tables() {
		if t.Virtual() {
			continue
		}
		unlock, err := m.lockTable(ctx, t.Name.String(), true)
		if err != nil {
			return err
		}
		m.closeAll(ctx, t.Name)
		err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			if t := tx.Table(t.Name); t != nil {
				tx.DeleteRegionsOf(t.Name)
				tx.DeleteTable(t)
				tx.SetSetting(dropSetting(t.ID), "1")
			}
			return nil
		})
		if t.Formula != nil {
			// Until now a call could have a region opened again.
			m.closeAll(ctx, t.Name)
		}
		unlock()
		if err != nil {
			return err
		}
	}
	var groupTable *catalog.Region
	err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for _, p := range slices.Collect(tx.Snapshots()) {
			tx.DeleteSnapshot(p)
			tx.SetSetting(dropSetting(p.DataID), "1")
		}
		for _, g := range slices.Collect(tx.Groups()) {
			tx.DeleteGroup(g.Name)
		}
		if t := tx.Table(meta.RSGroupTable); t != nil {
			for _, r := range slices.Collect(tx.RegionsOf(t.Name)) {
				groupTable = r
				tx.DeleteRegion(r)
			}
			tx.DeleteTable(t)
		}
		for _, n := range slices.Collect(tx.Namespaces()) {
			switch {
			case n.Name != meta.DefaultNamespace && n.Name != meta.SystemNamespace:
				tx.DeleteNamespace(n.Name)
			case len(n.Config) > 0:
				tx.PutNamespace(&catalog.Namespace{Name: n.Name, Time: tx.Now()})
			}
		}
		tx.ClearQuotas()
		tx.ClearPeers()
		var switches []string
		for name := range tx.Settings() {
			if strings.HasPrefix(name, "switch.") || name == settingDraining {
				switches = append(switches, name)
			}
		}
		for _, name := range switches {
			tx.SetSetting(name, "")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if groupTable != nil {
		m.closeOn(ctx, m.find(groupTable.Server), groupTable.Encoded, nil)
	}
	m.event(eventlog.Event{Method: "reset"})
	return m.dropLeftovers()
}

// CreateTable makes a table from a descriptor and split keys and waits until
// it is open.
func (m *Master) CreateTable(ctx context.Context, schema *pb.TableSchema, splits [][]byte) error {
	id, err := m.createTable(ctx, &pb.CreateTableRequest{TableSchema: schema, SplitKeys: splits})
	if err != nil {
		return err
	}
	return m.await(ctx, id)
}

// DropTable disables a table and deletes it. One that does not exist is no
// error.
func (m *Master) DropTable(ctx context.Context, name meta.TableName) error {
	t := m.state().Table(name)
	if t == nil {
		return nil
	}
	if t.State == pb.TableState_ENABLED {
		id, err := m.disableTable(ctx, &pb.DisableTableRequest{TableName: name.ToProto()})
		if err == nil {
			err = m.await(ctx, id)
		}
		if err != nil {
			return err
		}
	}
	id, err := m.deleteTable(ctx, &pb.DeleteTableRequest{TableName: name.ToProto()})
	if err != nil {
		return err
	}
	return m.await(ctx, id)
}
