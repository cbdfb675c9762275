package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// TablesByState lists the tables that are enabled, or those that are disabled,
// sorted by name. Tables between the two states are in neither list. HBase 2.6
// and later; before, ask [Admin.TableState] of each.
func (a *Admin) TablesByState(ctx context.Context, enabled bool) ([]TableName, error) {
	const op = "list tables by state"
	var resp pb.ListTableNamesByStateResponse
	err := a.master(ctx, op, "ListTableNamesByState", &pb.ListTableNamesByStateRequest{IsEnabled: &enabled}, &resp, session.Safe)
	return tableNames(resp.GetTableNames()), fault.Wrap(op, "", fault.Since(err, "ListTableNamesByState", "2.6 and later"))
}

// DescribeByState gives the schemas of the enabled or of the disabled tables,
// sorted by name. HBase 2.6 and later.
func (a *Admin) DescribeByState(ctx context.Context, enabled bool) ([]*TableDescriptor, error) {
	const op = "describe tables by state"
	var resp pb.ListTableDescriptorsByStateResponse
	err := a.master(ctx, op, "ListTableDescriptorsByState", &pb.ListTableDescriptorsByStateRequest{IsEnabled: &enabled}, &resp, session.Safe)
	return tablesFromProto(resp.GetTableSchema()), fault.Wrap(op, "", fault.Since(err, "ListTableDescriptorsByState", "2.6 and later"))
}

// DescribeNamespaceTables gives the schemas of a namespace's tables, sorted by
// name.
func (a *Admin) DescribeNamespaceTables(ctx context.Context, namespace string) ([]*TableDescriptor, error) {
	const op = "describe tables of namespace"
	if err := checkNamespace(op, namespace); err != nil {
		return nil, err
	}
	var resp pb.ListTableDescriptorsByNamespaceResponse
	err := a.master(ctx, op, "ListTableDescriptorsByNamespace", &pb.ListTableDescriptorsByNamespaceRequest{NamespaceName: &namespace}, &resp, session.Safe)
	return tablesFromProto(resp.GetTableSchema()), fault.Wrap(op, ofNamespace(namespace), err)
}

func tablesFromProto(ps []*pb.TableSchema) []*TableDescriptor {
	out := make([]*TableDescriptor, len(ps))
	for i, p := range ps {
		out[i] = tableFromProto(p)
	}
	slices.SortFunc(out, func(a, b *TableDescriptor) int { return a.Name.Compare(b.Name) })
	return out
}

// NamespaceNames lists the names of all namespaces, sorted. HBase 2.3 and
// later; [Admin.ListNamespaces] does it everywhere.
func (a *Admin) NamespaceNames(ctx context.Context) ([]string, error) {
	const op = "list namespace names"
	var resp pb.ListNamespacesResponse
	err := a.master(ctx, op, "ListNamespaces", &pb.ListNamespacesRequest{}, &resp, session.Safe)
	names := resp.GetNamespaceName()
	slices.Sort(names)
	return names, fault.Wrap(op, "", fault.Since(err, "ListNamespaces", "2.3 and later"))
}

// CloneTableSchema makes a table with another's schema, and with its region
// boundaries if preserveSplits is set. ErrTableExists if the new one exists.
func (a *Admin) CloneTableSchema(ctx context.Context, table, newTable string, preserveSplits bool) error {
	const op = "clone table schema"
	name, err := parseTable(op, newTable)
	if err != nil {
		return err
	}
	d, err := a.Describe(ctx, table)
	if err != nil {
		return fault.Wrap(op, table, err)
	}
	d = d.Clone()
	d.Name = name
	var keys [][]byte
	if preserveSplits {
		regions, err := a.Regions(ctx, table)
		if err != nil {
			return fault.Wrap(op, table, err)
		}
		for _, r := range regions {
			if len(r.Region.Start) > 0 {
				keys = append(keys, r.Region.Start)
			}
		}
	}
	return a.CreateTable(ctx, d, keys...)
}

// AlterStatus is how many regions of a table have its present schema.
type AlterStatus struct{ Updated, Total int }

// AlterStatus asks how far a change of a table's schema has got that nobody
// waited for ([Admin.Detached]).
func (a *Admin) AlterStatus(ctx context.Context, table string) (AlterStatus, error) {
	const op = "alter status"
	t, err := parseTable(op, table)
	if err != nil {
		return AlterStatus{}, err
	}
	var resp pb.GetSchemaAlterStatusResponse
	if err := a.master(ctx, op, "GetSchemaAlterStatus", &pb.GetSchemaAlterStatusRequest{TableName: t.ToProto()}, &resp, session.Safe); err != nil {
		return AlterStatus{}, fault.Wrap(op, ofTable(t), err)
	}
	total := int(resp.GetTotalRegions())
	return AlterStatus{Updated: total - min(total, int(resp.GetYetToUpdateRegions())), Total: total}, nil
}

// ModifyTableLazily replaces a table's schema without opening its regions anew:
// each takes it over when it is next opened. Changes that cannot wait so long
// (coprocessors, families, region replication, ...) are refused by the master.
// HBase 2.5 and later (HBASE-25549): older ones would open them anew.
func (a *Admin) ModifyTableLazily(ctx context.Context, t *TableDescriptor) error {
	const op = "modify table"
	if err := t.check(op); err != nil {
		return err
	}
	if err := a.needs(ctx, op, "a modification without reopening regions", 2, 5); err != nil {
		return err
	}
	req := &pb.ModifyTableRequest{TableName: t.Name.ToProto(), TableSchema: t.toProto(), ReopenRegions: new(false)}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, ofTable(t.Name), "ModifyTable", req, &pb.ModifyTableResponse{})
}

// SetStoreFileTracker makes a table keep track of its files in another way:
// DEFAULT, FILE or, on the way from one to the other, MIGRATION. HBase 2.5 and
// later.
func (a *Admin) SetStoreFileTracker(ctx context.Context, table, tracker string) error {
	const op = "modify store file tracker"
	if tracker == "" {
		return invalid(op, "table "+strconv.Quote(table), "wants a tracker: DEFAULT, FILE or MIGRATION")
	}
	err := a.tableProc(ctx, op, table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.ModifyTableStoreFileTrackerRequest{Table_Name: t.ToProto(), DstSft: &tracker}
		req.NonceGroup, req.Nonce = a.nonces()
		return "ModifyTableStoreFileTracker", req, &pb.ModifyTableStoreFileTrackerResponse{}
	})
	return fault.Wrap(op, table, fault.Since(err, "ModifyTableStoreFileTracker", "2.5 and later"))
}

// SetFamilyStoreFileTracker is SetStoreFileTracker for one family.
func (a *Admin) SetFamilyStoreFileTracker(ctx context.Context, table, family, tracker string) error {
	const op = "modify store file tracker"
	if tracker == "" || family == "" {
		return invalid(op, "table "+strconv.Quote(table), fmt.Sprintf("family %q wants a tracker: DEFAULT, FILE or MIGRATION", family))
	}
	err := a.tableProc(ctx, op, table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.ModifyColumnStoreFileTrackerRequest{Table_Name: t.ToProto(), Family: []byte(family), DstSft: &tracker}
		req.NonceGroup, req.Nonce = a.nonces()
		return "ModifyColumnStoreFileTracker", req, &pb.ModifyColumnStoreFileTrackerResponse{}
	})
	return fault.Wrap(op, table, fault.Since(err, "ModifyColumnStoreFileTracker", "2.5 and later"))
}
