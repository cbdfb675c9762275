package admin

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// TableState is whether a table is open for business.
type TableState uint8

// HBase's table states.
const (
	Enabled TableState = iota
	Disabled
	Disabling
	Enabling
)

// String gives HBase's name.
func (s TableState) String() string {
	switch s {
	case Enabled:
		return "ENABLED"
	case Disabled:
		return "DISABLED"
	case Disabling:
		return "DISABLING"
	case Enabling:
		return "ENABLING"
	}
	return fmt.Sprintf("TableState(%d)", uint8(s))
}

// CreateTable makes a table, with one region, or with the regions that the
// split keys bound: n keys, n+1 regions, each key the start of a region. The
// keys need not be sorted. The table is enabled when it returns.
func (a *Admin) CreateTable(ctx context.Context, t *TableDescriptor, splitKeys ...[]byte) error {
	const op = "create table"
	if err := t.check(op); err != nil {
		return err
	}
	keys, err := sortKeys(op, splitKeys)
	if err != nil {
		return err
	}
	req := &pb.CreateTableRequest{TableSchema: t.toProto(), SplitKeys: keys}
	req.NonceGroup, req.Nonce = a.nonces()
	err = a.run(ctx, op, ofTable(t.Name), "CreateTable", req, &pb.CreateTableResponse{})
	// Whatever was believed about a table of that name is void.
	a.core.Routes().InvalidateTable(t.Name)
	return err
}

// sortKeys copies and sorts split keys and refuses empty ones and twins.
func sortKeys(op string, keys [][]byte) ([][]byte, error) {
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, bytes.Compare)
	for i, k := range sorted {
		switch {
		case len(k) == 0:
			return nil, invalid(op, "split key", "is empty")
		case len(k) > cells.MaxRowLength:
			return nil, invalid(op, fmt.Sprintf("split key %q", cells.QuoteShort(k, 64)), "is longer than a row may be")
		case i > 0 && bytes.Equal(k, sorted[i-1]):
			return nil, invalid(op, fmt.Sprintf("split key %q", cells.QuoteShort(k, 64)), "is given twice")
		}
	}
	return sorted, nil
}

// EnableTable opens the regions of a disabled table.
func (a *Admin) EnableTable(ctx context.Context, table string) error {
	return a.tableProc(ctx, "enable table", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.EnableTableRequest{TableName: t.ToProto()}
		req.NonceGroup, req.Nonce = a.nonces()
		return "EnableTable", req, &pb.EnableTableResponse{}
	})
}

// DisableTable closes the regions of an enabled table.
func (a *Admin) DisableTable(ctx context.Context, table string) error {
	return a.tableProc(ctx, "disable table", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.DisableTableRequest{TableName: t.ToProto()}
		req.NonceGroup, req.Nonce = a.nonces()
		return "DisableTable", req, &pb.DisableTableResponse{}
	})
}

// DeleteTable drops a disabled table with its data.
func (a *Admin) DeleteTable(ctx context.Context, table string) error {
	return a.tableProc(ctx, "delete table", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.DeleteTableRequest{TableName: t.ToProto()}
		req.NonceGroup, req.Nonce = a.nonces()
		return "DeleteTable", req, &pb.DeleteTableResponse{}
	})
}

// TruncateTable empties a disabled table and enables it. With preserve its
// region boundaries stay; otherwise it starts with one region.
func (a *Admin) TruncateTable(ctx context.Context, table string, preserve bool) error {
	return a.tableProc(ctx, "truncate table", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.TruncateTableRequest{TableName: t.ToProto(), PreserveSplits: &preserve}
		req.NonceGroup, req.Nonce = a.nonces()
		return "truncateTable", req, &pb.TruncateTableResponse{}
	})
}

// ModifyTable replaces a table's schema; its regions are opened anew, one
// after another. Start from [Admin.Describe]'s answer, so that nothing is lost.
func (a *Admin) ModifyTable(ctx context.Context, t *TableDescriptor) error {
	const op = "modify table"
	if err := t.check(op); err != nil {
		return err
	}
	req := &pb.ModifyTableRequest{TableName: t.Name.ToProto(), TableSchema: t.toProto()}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, ofTable(t.Name), "ModifyTable", req, &pb.ModifyTableResponse{})
}

// AddFamily adds a column family.
func (a *Admin) AddFamily(ctx context.Context, table string, f *FamilyDescriptor) error {
	if err := f.check("add family"); err != nil {
		return err
	}
	return a.tableProc(ctx, "add family", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.AddColumnRequest{TableName: t.ToProto(), ColumnFamilies: f.toProto()}
		req.NonceGroup, req.Nonce = a.nonces()
		return "AddColumn", req, &pb.AddColumnResponse{}
	})
}

// ModifyFamily replaces a column family's settings.
func (a *Admin) ModifyFamily(ctx context.Context, table string, f *FamilyDescriptor) error {
	if err := f.check("modify family"); err != nil {
		return err
	}
	return a.tableProc(ctx, "modify family", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.ModifyColumnRequest{TableName: t.ToProto(), ColumnFamilies: f.toProto()}
		req.NonceGroup, req.Nonce = a.nonces()
		return "ModifyColumn", req, &pb.ModifyColumnResponse{}
	})
}

// DeleteFamily drops a column family with its data.
func (a *Admin) DeleteFamily(ctx context.Context, table, family string) error {
	return a.tableProc(ctx, "delete family", table, func(t TableName) (string, wire.Marshaler, submitted) {
		req := &pb.DeleteColumnRequest{TableName: t.ToProto(), ColumnName: []byte(family)}
		req.NonceGroup, req.Nonce = a.nonces()
		return "DeleteColumn", req, &pb.DeleteColumnResponse{}
	})
}

// tableProc runs a procedure on a table and forgets its routes, which most of
// them make void.
func (a *Admin) tableProc(ctx context.Context, op, table string, build func(TableName) (string, wire.Marshaler, submitted)) error {
	t, err := parseTable(op, table)
	if err != nil {
		return err
	}
	method, req, res := build(t)
	err = a.run(ctx, op, ofTable(t), method, req, res)
	a.core.Routes().InvalidateTable(t)
	return err
}

// TableExists says whether there is such a table, in any state.
func (a *Admin) TableExists(ctx context.Context, table string) (bool, error) {
	_, ok, err := a.tableState(ctx, "table exists", table)
	return ok, err
}

// TableState gives the state of a table.
func (a *Admin) TableState(ctx context.Context, table string) (TableState, error) {
	s, ok, err := a.tableState(ctx, "table state", table)
	if err == nil && !ok {
		err = &fault.Error{Op: "table state", Object: fmt.Sprintf("table %q", table), Err: fault.ErrTableNotFound}
	}
	return s, err
}

// IsEnabled says whether a table is enabled.
func (a *Admin) IsEnabled(ctx context.Context, table string) (bool, error) {
	s, err := a.TableState(ctx, table)
	return err == nil && s == Enabled, err
}

// IsDisabled says whether a table is disabled.
func (a *Admin) IsDisabled(ctx context.Context, table string) (bool, error) {
	s, err := a.TableState(ctx, table)
	return err == nil && s == Disabled, err
}

// tableState reads the table's row of hbase:meta, as HBase's clients do: it
// needs no master.
func (a *Admin) tableState(ctx context.Context, op, table string) (TableState, bool, error) {
	t, err := parseTable(op, table)
	if err != nil {
		return 0, false, err
	}
	if t == meta.MetaTable {
		return Enabled, true, nil
	}
	row := []byte(t.String())
	req := &pb.GetRequest{Get: &pb.Get{
		Row:    row,
		Column: []*pb.Column{{Family: []byte(meta.FamilyTable), Qualifier: [][]byte{[]byte("state")}}},
	}}
	var resp pb.GetResponse
	ans, err := a.core.CallRegion(ctx, &session.RegionCall{
		Table: meta.MetaTable, Row: row, Method: "Get", Op: op, Result: &resp, Idempotency: session.Safe,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			req.Region = regionByName(region)
			return req, nil
		},
	})
	if err != nil {
		return 0, false, fault.Wrap(op, ofTable(t), err)
	}
	value, ok, err := firstValue(resp.Result, ans.Cells)
	if err != nil || !ok {
		return 0, false, fault.Wrap(op, ofTable(t), err)
	}
	var state pb.TableState
	if err := state.UnmarshalVT(value); err != nil {
		return 0, false, fault.Wrap(op, ofTable(t), fmt.Errorf("state in hbase:meta: %w", err))
	}
	return TableState(state.GetState()), true, nil
}

func regionByName(name []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: name}
}

func regionByEncoded(name string) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(name)}
}

// firstValue gives the value of the first cell of a Get's answer.
func firstValue(r *pb.Result, block []byte) (value []byte, ok bool, err error) {
	if len(r.GetCell()) > 0 {
		return r.Cell[0].GetValue(), true, nil
	}
	if r.GetAssociatedCellCount() == 0 {
		return nil, false, nil
	}
	var c cells.Cell
	reader := wire.KeyValueCodec.Reader(block)
	if !reader.More() {
		return nil, false, fmt.Errorf("the answer announces cells and brings none")
	}
	if err := reader.Next(&c); err != nil {
		return nil, false, err
	}
	return c.Value, true, nil
}

// ListTables gives the names of all tables, sorted by name; with a pattern
// only those that match the Java regular expression as a whole. System tables
// (namespace hbase) are listed only if asked for.
func (a *Admin) ListTables(ctx context.Context, pattern string, system bool) ([]TableName, error) {
	req := &pb.GetTableNamesRequest{IncludeSysTables: &system}
	if pattern != "" {
		req.Regex = &pattern
	}
	var resp pb.GetTableNamesResponse
	if err := a.master(ctx, "list tables", "GetTableNames", req, &resp, session.Safe); err != nil {
		return nil, fault.Wrap("list tables", "", err)
	}
	return tableNames(resp.TableNames), nil
}

// Describe gives the schema of a table.
func (a *Admin) Describe(ctx context.Context, table string) (*TableDescriptor, error) {
	const op = "describe table"
	t, err := parseTable(op, table)
	if err != nil {
		return nil, err
	}
	req := &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{t.ToProto()}, IncludeSysTables: new(true)}
	var resp pb.GetTableDescriptorsResponse
	if err := a.master(ctx, op, "GetTableDescriptors", req, &resp, session.Safe); err != nil {
		return nil, fault.Wrap(op, ofTable(t), err)
	}
	for _, s := range resp.TableSchema {
		if d := tableFromProto(s); d.Name == t {
			return d, nil
		}
	}
	// HBase answers an empty list for a table it does not know.
	return nil, &fault.Error{Op: op, Object: ofTable(t), Err: fault.ErrTableNotFound}
}

// DescribeAll gives the schemas of all tables, or of those whose names match
// the Java regular expression.
func (a *Admin) DescribeAll(ctx context.Context, pattern string, system bool) ([]*TableDescriptor, error) {
	req := &pb.GetTableDescriptorsRequest{IncludeSysTables: &system}
	if pattern != "" {
		req.Regex = &pattern
	}
	var resp pb.GetTableDescriptorsResponse
	if err := a.master(ctx, "describe tables", "GetTableDescriptors", req, &resp, session.Safe); err != nil {
		return nil, fault.Wrap("describe tables", "", err)
	}
	out := make([]*TableDescriptor, len(resp.TableSchema))
	for i, s := range resp.TableSchema {
		out[i] = tableFromProto(s)
	}
	return out, nil
}
