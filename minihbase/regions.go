package minihbase

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Region describes a region.
type Region = cluster.RegionInfo

// Replica describes a secondary replica of a region. MoveRegion moves one, too,
// by its encoded name.
type Replica = cluster.ReplicaInfo

// BalanceResult is what a run of the balancer did.
type BalanceResult = master.BalanceResult

// CreateTable makes a table with families of default settings and one region
// per split key plus one, and waits until it is open. For other settings use a
// client's admin.
func (m *Cluster) CreateTable(ctx context.Context, table string, families []string, splits ...[]byte) error {
	n, err := meta.ParseTableName(table)
	if err != nil {
		return err
	}
	return m.c.CreateTable(ctx, n, families, 1, splits)
}

// CreateReplicatedTable is CreateTable with so many replicas of each region
// (REGION_REPLICATION, 1 to 16). They are on different servers, as far as there
// are enough, and show what the region has, or had: see SetReplicaLag.
func (m *Cluster) CreateReplicatedTable(ctx context.Context, table string, families []string, replicas int, splits ...[]byte) error {
	n, err := meta.ParseTableName(table)
	if err != nil {
		return err
	}
	return m.c.CreateTable(ctx, n, families, replicas, splits)
}

// DropTable disables and deletes a table; one that is not there is no error.
func (m *Cluster) DropTable(ctx context.Context, table string) error {
	n, err := meta.ParseTableName(table)
	if err != nil {
		return err
	}
	ms, err := m.c.Master()
	if err != nil {
		return err
	}
	return ms.DropTable(ctx, n)
}

// Regions describes a table's regions in key order, parents of splits included;
// "" means every table's.
func (m *Cluster) Regions(table string) ([]Region, error) { return m.firstRegions(table, 0) }

// firstRegions is Regions, but at most limit of them; 0 means all.
func (m *Cluster) firstRegions(table string, limit int) ([]Region, error) {
	if table == "" {
		return m.c.Regions(meta.TableName{}, limit), nil
	}
	n, err := meta.ParseTableName(table)
	if err != nil {
		return nil, err
	}
	if m.c.Catalog().Table(n) == nil {
		return nil, fmt.Errorf("there is no table %s", n)
	}
	return m.c.Regions(n, limit), nil
}

// Locate describes the region of a table that holds a row.
func (m *Cluster) Locate(table string, row []byte) (Region, error) {
	n, err := meta.ParseTableName(table)
	if err != nil {
		return Region{}, err
	}
	return m.c.Locate(n, row)
}

// MoveRegion moves a region, named by its encoded name, to a region server by
// index; -1 lets the master choose another one. It returns when the region is
// open there.
func (m *Cluster) MoveRegion(ctx context.Context, encoded string, to int) error {
	return m.c.Move(ctx, encoded, to)
}

// Split splits a region at a row, or in its middle if row is empty, and returns
// when the daughters are open.
func (m *Cluster) Split(ctx context.Context, encoded string, row []byte) error {
	ms, err := m.c.Master()
	if err != nil {
		return err
	}
	return ms.Split(ctx, encoded, row)
}

// Merge merges neighbouring regions, named in key order, and returns when the
// result is open.
func (m *Cluster) Merge(ctx context.Context, encoded ...string) error {
	ms, err := m.c.Master()
	if err != nil {
		return err
	}
	return ms.Merge(ctx, encoded)
}

// Balance evens out the number of regions per server.
func (m *Cluster) Balance(ctx context.Context) (BalanceResult, error) {
	ms, err := m.c.Master()
	if err != nil {
		return BalanceResult{}, err
	}
	return ms.Balance(ctx, "", true, false)
}

// AddGroup makes a region server group; MoveToGroup moves servers (host:port)
// and tables to one, and the regions follow; RemoveGroup removes an empty one.
func (m *Cluster) AddGroup(ctx context.Context, name string) error {
	ms, err := m.c.Master()
	if err != nil {
		return err
	}
	return ms.AddGroup(ctx, name)
}

// MoveToGroup moves servers and tables to a group.
func (m *Cluster) MoveToGroup(ctx context.Context, group string, servers, tables []string) error {
	ms, err := m.c.Master()
	if err != nil {
		return err
	}
	var names []meta.TableName
	for _, t := range tables {
		n, err := meta.ParseTableName(t)
		if err != nil {
			return err
		}
		names = append(names, n)
	}
	return ms.MoveToGroup(ctx, group, servers, names)
}

// RemoveGroup removes an empty group.
func (m *Cluster) RemoveGroup(name string) error {
	ms, err := m.c.Master()
	if err != nil {
		return err
	}
	return ms.RemoveGroup(name)
}

// GroupServers gives the servers (host:port) of a region server group.
func (m *Cluster) GroupServers(name string) ([]string, error) {
	g := m.c.Catalog().Group(name)
	if g == nil {
		return nil, fmt.Errorf("minihbase: no region server group %q", name)
	}
	return slices.Clone(g.Servers), nil
}
