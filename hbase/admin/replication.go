package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
)

// replicationScope is the family attribute: 0 stays here, 1 goes to the peers,
// 2 (HBase 1.4 and 2.0 only) goes serially.
const replicationScope = "REPLICATION_SCOPE"

// ReplicatedTable is a table of which families are replicated.
type ReplicatedTable struct {
	Table TableName
	// Families are those with a scope other than 0, sorted.
	Families []ReplicatedFamily
}

// ReplicatedFamily is a family and its REPLICATION_SCOPE.
type ReplicatedFamily struct {
	Name  string
	Scope int
}

// ListReplicatedTables lists the tables of which families are replicated,
// whether there is a peer or not (Java: listReplicatedTableCFs), sorted by
// name. Pattern is a regular expression for whole names; "" lets all pass.
func (a *Admin) ListReplicatedTables(ctx context.Context, pattern string) ([]ReplicatedTable, error) {
	tables, err := a.DescribeAll(ctx, pattern, false)
	if err != nil {
		return nil, err
	}
	var out []ReplicatedTable
	for _, d := range tables {
		t := ReplicatedTable{Table: d.Name}
		for _, f := range d.Families {
			if scope, err := strconv.Atoi(f.Attribute(replicationScope)); err == nil && scope != 0 {
				t.Families = append(t.Families, ReplicatedFamily{Name: f.Name, Scope: scope})
			}
		}
		if len(t.Families) > 0 {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b ReplicatedTable) int { return a.Table.Compare(b.Table) })
	return out, nil
}

// EnableTableReplication gives all families of a table the scope 1, so that
// their edits go to the peers. There must be a peer.
//
// Java's call of that name also connects to every peer, creates the table
// there if it is missing, and refuses if it is there and looks different. This
// one does not talk to other clusters: see to the table there yourself.
func (a *Admin) EnableTableReplication(ctx context.Context, table string) error {
	const op = "enable table replication"
	peers, err := a.ListPeers(ctx, "")
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		return fault.Wrap(op, "table "+strconv.Quote(table), errors.New("there is no peer to replicate to"))
	}
	return a.setScope(ctx, op, table, 1)
}

// DisableTableReplication gives all families of a table the scope 0. It fails
// if none of them has another.
func (a *Admin) DisableTableReplication(ctx context.Context, table string) error {
	return a.setScope(ctx, "disable table replication", table, 0)
}

func (a *Admin) setScope(ctx context.Context, op, table string, scope int) error {
	d, err := a.Describe(ctx, table)
	if err != nil {
		return err
	}
	d = d.Clone()
	changed := false
	for _, f := range d.Families {
		if cmp.Or(f.Attribute(replicationScope), "0") != strconv.Itoa(scope) {
			f.Set(replicationScope, strconv.Itoa(scope))
			changed = true
		}
	}
	if !changed {
		if scope == 0 {
			return fault.Wrap(op, ofTable(d.Name), errors.New("no family of it is replicated"))
		}
		return nil
	}
	return a.ModifyTable(ctx, d)
}
