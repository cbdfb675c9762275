package admin

import (
	"context"
	"errors"
	"slices"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// rsgroupSetting is the attribute of tables (HBase 3) and of namespaces that
// names the group of tables.
const rsgroupSetting = "hbase.rsgroup.name"

// MoveServersAndTablesToRSGroup moves servers (host:port) and tables into a
// group together: the tables' regions go straight to the servers that come
// along. HBase 3 has no such call; there the servers go first.
func (a *Admin) MoveServersAndTablesToRSGroup(ctx context.Context, group string, servers, tables []string) error {
	const op = "move servers and tables to rsgroup"
	list, err := addresses(op, servers)
	if err != nil {
		return err
	}
	if len(tables) == 0 {
		return invalid(op, "tables", "are missing")
	}
	req := &pb.MoveServersAndTablesRequest{TargetGroup: &group, Servers: list}
	for _, name := range tables {
		t, err := parseTable(op, name)
		if err != nil {
			return err
		}
		req.TableName = append(req.TableName, t.ToProto())
	}
	err = a.rsgroup(ctx, op, ofGroup(group), "MoveServersAndTables", req, &pb.MoveServersAndTablesResponse{}, session.Unsafe)
	if !errors.Is(err, fault.ErrUnsupported) {
		return err
	}
	if err := a.MoveServersToRSGroup(ctx, group, servers...); err != nil {
		return err
	}
	return a.MoveTablesToRSGroup(ctx, group, tables...)
}

// SetRSGroupConfig replaces a group's configuration (HBase 2.4+).
func (a *Admin) SetRSGroupConfig(ctx context.Context, group string, configuration map[string]string) error {
	return a.rsgroup(ctx, "update rsgroup config", ofGroup(group), "UpdateRSGroupConfig", &pb.UpdateRSGroupConfigRequest{
		GroupName: &group, Configuration: configurationToProto(configuration),
	}, &pb.UpdateRSGroupConfigResponse{}, session.Safe)
}

// RSGroupTables lists the tables of a group, sorted. HBase 3, which keeps the
// group with each table, has a call for it; before, the group lists them. A
// table that was put into no group is of DefaultRSGroup, whose list only the
// master knows.
func (a *Admin) RSGroupTables(ctx context.Context, group string) ([]TableName, error) {
	var resp pb.ListTablesInRSGroupResponse
	err := a.rsgroup(ctx, "list tables of rsgroup", ofGroup(group), "ListTablesInRSGroup", &pb.ListTablesInRSGroupRequest{GroupName: &group}, &resp, session.Safe)
	if err == nil {
		return sortedTables(tableNames(resp.TableName)), nil
	}
	if !errors.Is(err, fault.ErrUnsupported) {
		return nil, err
	}
	g, err := a.existingRSGroup(ctx, group)
	return sortedTables(g.Tables), err
}

// RSGroupConfigured lists the namespaces and tables that name the group in
// their own settings; what follows from a namespace is not listed. Before
// HBase 3, tables are put into groups by the group's own list.
func (a *Admin) RSGroupConfigured(ctx context.Context, group string) (namespaces []string, tables []TableName, err error) {
	var resp pb.GetConfiguredNamespacesAndTablesInRSGroupResponse
	err = a.rsgroup(ctx, "configured for rsgroup", ofGroup(group), "GetConfiguredNamespacesAndTablesInRSGroup",
		&pb.GetConfiguredNamespacesAndTablesInRSGroupRequest{GroupName: &group}, &resp, session.Safe)
	if err == nil {
		namespaces = slices.Clone(resp.Namespace)
		slices.Sort(namespaces)
		return namespaces, sortedTables(tableNames(resp.TableName)), nil
	}
	if !errors.Is(err, fault.ErrUnsupported) {
		return nil, nil, err
	}
	g, err := a.existingRSGroup(ctx, group)
	if err != nil {
		return nil, nil, err
	}
	all, err := a.ListNamespaces(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range all {
		if n.Configuration[rsgroupSetting] == group {
			namespaces = append(namespaces, n.Name)
		}
	}
	slices.Sort(namespaces)
	return namespaces, sortedTables(g.Tables), nil
}

func (a *Admin) existingRSGroup(ctx context.Context, name string) (RSGroup, error) {
	g, ok, err := a.RSGroup(ctx, name)
	if err == nil && !ok {
		err = fault.Wrap("get rsgroup", ofGroup(name), errors.New("there is no such group"))
	}
	return g, err
}

func sortedTables(ts []TableName) []TableName {
	out := slices.Clone(ts)
	slices.SortFunc(out, TableName.Compare)
	return out
}
