package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// RSGroup is a region server group.
type RSGroup struct {
	Name string
	// Servers are host:port; a group outlives the incarnations of its servers.
	Servers []string
	// Tables are those put into the group; HBase 3 keeps them in the tables'
	// descriptors and leaves this empty.
	Tables        []TableName
	Configuration map[string]string
}

// DefaultRSGroup is the group of all servers and tables that were put into no
// other.
const DefaultRSGroup = "default"

// rsgroup calls a method of the group service: up to HBase 2 a coprocessor of
// the master, from 3 on a part of MasterService. HBase 2 answers with
// UnknownProtocolException if the coprocessor is not loaded; then the other way
// is tried, and if that is unknown too the cluster has no groups.
func (a *Admin) rsgroup(ctx context.Context, op, object, method string, param interface {
	wire.Marshaler
	MarshalVT() ([]byte, error)
}, result wire.Unmarshaler, idem session.Idempotency) error {
	body, err := param.MarshalVT()
	if err != nil {
		return invalid(op, object, err.Error())
	}
	var resp pb.CoprocessorServiceResponse
	err = a.slowMaster(ctx, op, "ExecMasterService", &pb.CoprocessorServiceRequest{
		Region: regionByName([]byte{}),
		Call: &pb.CoprocessorServiceCall{
			Row: []byte{}, ServiceName: new("RSGroupAdminService"), MethodName: &method, Request: body,
		},
	}, &resp, idem)
	if err == nil {
		if err = result.UnmarshalVT(resp.GetValue().GetValue()); err != nil {
			err = fmt.Errorf("answer to %s: %w", method, err)
		}
		return fault.Wrap(op, object, err)
	}
	if !unknownService(err) {
		return fault.Wrap(op, object, err)
	}
	if err = a.slowMaster(ctx, op, method, param, result, idem); err != nil && unknownService(err) {
		err = fmt.Errorf("%w: region server groups are not enabled: %w", fault.ErrUnsupported, err)
	}
	return fault.Wrap(op, object, err)
}

// unknownService says whether the server knows no such service or method. For
// an unknown method HBase 2 has no class of its own: it fails to read the
// parameter, and only the text holds the UnsupportedOperationException.
func unknownService(err error) bool {
	var remote *wire.RemoteError
	if !errors.As(err, &remote) {
		return false
	}
	switch remote.Class {
	case wire.ClassUnknownProtocol, wire.ClassUnsupportedOperation:
		return true
	}
	return strings.Contains(remote.Message, wire.ClassUnsupportedOperation) ||
		strings.Contains(remote.Message, "No registered master coprocessor service found")
}

func groupFromProto(p *pb.RSGroupInfo) RSGroup {
	g := RSGroup{Name: p.GetName(), Tables: tableNames(p.GetTables()), Configuration: configurationFromProto(p.GetConfiguration())}
	for _, s := range p.GetServers() {
		g.Servers = append(g.Servers, net.JoinHostPort(s.GetHostName(), strconv.Itoa(int(s.GetPort()))))
	}
	slices.Sort(g.Servers)
	return g
}

func ofGroup(name string) string { return "rsgroup " + strconv.Quote(name) }

// addresses reads host:port texts.
func addresses(op string, servers []string) ([]*pb.ServerName, error) {
	var out []*pb.ServerName
	for _, s := range servers {
		host, port, err := meta.ParseAddress(s)
		if err != nil {
			return nil, invalid(op, "server "+strconv.Quote(s), err.Error())
		}
		out = append(out, &pb.ServerName{HostName: new(host), Port: new(uint32(port))})
	}
	if len(out) == 0 {
		return nil, invalid(op, "servers", "are missing")
	}
	return out, nil
}

// ListRSGroups lists the groups, sorted by name.
func (a *Admin) ListRSGroups(ctx context.Context) ([]RSGroup, error) {
	var resp pb.ListRSGroupInfosResponse
	if err := a.rsgroup(ctx, "list rsgroups", "", "ListRSGroupInfos", &pb.ListRSGroupInfosRequest{}, &resp, session.Safe); err != nil {
		return nil, err
	}
	var out []RSGroup
	for _, p := range resp.RSGroupInfo {
		out = append(out, groupFromProto(p))
	}
	slices.SortFunc(out, func(a, b RSGroup) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// RSGroup gives a group; ok is false if there is none of that name.
func (a *Admin) RSGroup(ctx context.Context, name string) (g RSGroup, ok bool, err error) {
	var resp pb.GetRSGroupInfoResponse
	err = a.rsgroup(ctx, "get rsgroup", ofGroup(name), "GetRSGroupInfo", &pb.GetRSGroupInfoRequest{RSGroupName: &name}, &resp, session.Safe)
	if err != nil || resp.RSGroupInfo == nil {
		return RSGroup{}, false, err
	}
	return groupFromProto(resp.RSGroupInfo), true, nil
}

// RSGroupOfTable gives the group of a table.
func (a *Admin) RSGroupOfTable(ctx context.Context, table string) (RSGroup, error) {
	const op = "get rsgroup of table"
	t, err := parseTable(op, table)
	if err != nil {
		return RSGroup{}, err
	}
	var resp pb.GetRSGroupInfoOfTableResponse
	err = a.rsgroup(ctx, op, ofTable(t), "GetRSGroupInfoOfTable", &pb.GetRSGroupInfoOfTableRequest{TableName: t.ToProto()}, &resp, session.Safe)
	if err != nil {
		return RSGroup{}, err
	}
	if resp.RSGroupInfo == nil {
		return RSGroup{}, &fault.Error{Op: op, Object: ofTable(t), Err: fault.ErrTableNotFound}
	}
	return groupFromProto(resp.RSGroupInfo), nil
}

// RSGroupOfServer gives the group of a server (host:port); ok is false if the
// server is in none.
func (a *Admin) RSGroupOfServer(ctx context.Context, server string) (g RSGroup, ok bool, err error) {
	const op = "get rsgroup of server"
	list, err := addresses(op, []string{server})
	if err != nil {
		return RSGroup{}, false, err
	}
	var resp pb.GetRSGroupInfoOfServerResponse
	err = a.rsgroup(ctx, op, server, "GetRSGroupInfoOfServer", &pb.GetRSGroupInfoOfServerRequest{Server: list[0]}, &resp, session.Safe)
	if err != nil || resp.RSGroupInfo == nil {
		return RSGroup{}, false, err
	}
	return groupFromProto(resp.RSGroupInfo), true, nil
}

// AddRSGroup makes an empty group.
func (a *Admin) AddRSGroup(ctx context.Context, name string) error {
	return a.rsgroup(ctx, "add rsgroup", ofGroup(name), "AddRSGroup", &pb.AddRSGroupRequest{RSGroupName: &name}, &pb.AddRSGroupResponse{}, session.Unsafe)
}

// RemoveRSGroup removes an empty group.
func (a *Admin) RemoveRSGroup(ctx context.Context, name string) error {
	return a.rsgroup(ctx, "remove rsgroup", ofGroup(name), "RemoveRSGroup", &pb.RemoveRSGroupRequest{RSGroupName: &name}, &pb.RemoveRSGroupResponse{}, session.Unsafe)
}

// MoveServersToRSGroup moves servers (host:port) into a group. Regions of
// tables that are not of the group leave them.
func (a *Admin) MoveServersToRSGroup(ctx context.Context, group string, servers ...string) error {
	const op = "move servers to rsgroup"
	list, err := addresses(op, servers)
	if err != nil {
		return err
	}
	return a.rsgroup(ctx, op, ofGroup(group), "MoveServers", &pb.MoveServersRequest{TargetGroup: &group, Servers: list}, &pb.MoveServersResponse{}, session.Unsafe)
}

// MoveTablesToRSGroup moves tables into a group; their regions follow.
func (a *Admin) MoveTablesToRSGroup(ctx context.Context, group string, tables ...string) error {
	const op = "move tables to rsgroup"
	req := &pb.MoveTablesRequest{TargetGroup: &group}
	for _, name := range tables {
		t, err := parseTable(op, name)
		if err != nil {
			return err
		}
		req.TableName = append(req.TableName, t.ToProto())
	}
	if len(req.TableName) == 0 {
		return invalid(op, "tables", "are missing")
	}
	err := a.rsgroup(ctx, op, ofGroup(group), "MoveTables", req, &pb.MoveTablesResponse{}, session.Unsafe)
	if err == nil || !unknownService(err) {
		return err
	}
	// HBase 3 has no such call: the group is an attribute of the table.
	for _, name := range tables {
		d, err := a.Describe(ctx, name)
		if err != nil {
			return err
		}
		if err := a.ModifyTable(ctx, d.Set("hbase.rsgroup.name", group)); err != nil {
			return err
		}
	}
	return nil
}

// RemoveServersFromRSGroup takes servers (host:port) that are dead or
// decommissioned out of the groups.
func (a *Admin) RemoveServersFromRSGroup(ctx context.Context, servers ...string) error {
	const op = "remove servers from rsgroup"
	list, err := addresses(op, servers)
	if err != nil {
		return err
	}
	return a.rsgroup(ctx, op, strings.Join(servers, ","), "RemoveServers", &pb.RemoveServersRequest{Servers: list}, &pb.RemoveServersResponse{}, session.Unsafe)
}

// RenameRSGroup renames a group (HBase 2.2+).
func (a *Admin) RenameRSGroup(ctx context.Context, from, to string) error {
	return a.rsgroup(ctx, "rename rsgroup", ofGroup(from), "RenameRSGroup",
		&pb.RenameRSGroupRequest{OldRsgroupName: &from, NewRsgroupName: &to}, &pb.RenameRSGroupResponse{}, session.Unsafe)
}

// BalanceRSGroup runs the balancer within a group and says whether it ran.
func (a *Admin) BalanceRSGroup(ctx context.Context, name string) (bool, error) {
	var resp pb.BalanceRSGroupResponse
	err := a.rsgroup(ctx, "balance rsgroup", ofGroup(name), "BalanceRSGroup", &pb.BalanceRSGroupRequest{RSGroupName: &name}, &resp, session.Safe)
	return resp.GetBalanceRan(), err
}
