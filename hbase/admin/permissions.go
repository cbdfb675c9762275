package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Actions are what a permission allows, a set of bits.
type Actions uint8

// HBase's actions (Permission.Action).
const (
	Read   Actions = 1 << iota // R
	Write                      // W
	Exec                       // X: coprocessor endpoints
	Create                     // C: tables, families, flush, split
	Manage                     // A: HBase's ADMIN
)

const actionLetters = "RWXCA"

// ParseActions reads letters as HBase's shell writes them: "RW", "RWXCA".
func ParseActions(letters string) (Actions, error) {
	var a Actions
	for _, r := range strings.ToUpper(letters) {
		i := strings.IndexRune(actionLetters, r)
		if i < 0 {
			return 0, invalid("permission", "actions "+strconv.Quote(letters), "are letters out of RWXCA")
		}
		a |= 1 << i
	}
	return a, nil
}

// Letters gives the set as HBase's shell takes it, such as "RW".
func (a Actions) Letters() string {
	var b strings.Builder
	for i, l := range actionLetters {
		if a&(1<<i) != 0 {
			b.WriteRune(l)
		}
	}
	return b.String()
}

// String is the set as HBase prints it, "READ,WRITE".
func (a Actions) String() string {
	var names []string
	for _, p := range a.toProto() {
		names = append(names, p.String())
	}
	return strings.Join(names, ",")
}

func (a Actions) toProto() []pb.Permission_Action {
	var out []pb.Permission_Action
	for i := range actionLetters {
		if a&(1<<i) != 0 {
			out = append(out, pb.Permission_Action(i))
		}
	}
	return out
}

func actionsFromProto(ps []pb.Permission_Action) Actions {
	var a Actions
	for _, p := range ps {
		if p >= 0 && int(p) < len(actionLetters) {
			a |= 1 << p
		}
	}
	return a
}

// Scope is what a permission is about: everything (the zero Scope), a
// namespace, a table, a family of it, or one column.
type Scope struct {
	Namespace                string
	Table, Family, Qualifier string
}

// String is the scope for errors and logs.
func (s Scope) String() string {
	switch {
	case s.Namespace != "":
		return ofNamespace(s.Namespace)
	case s.Table == "":
		return "everything"
	}
	out := "table " + strconv.Quote(s.Table)
	if s.Family != "" {
		out += ", " + s.Family
		if s.Qualifier != "" {
			out += ":" + s.Qualifier
		}
	}
	return out
}

func (s Scope) toProto(op string, a Actions) (*pb.Permission, error) {
	switch {
	case s.Namespace != "" && s.Table != "":
		return nil, invalid(op, "scope", "names a namespace and a table")
	case s.Table == "" && (s.Family != "" || s.Qualifier != ""):
		return nil, invalid(op, "scope", "names a column without a table")
	case s.Family == "" && s.Qualifier != "":
		return nil, invalid(op, "scope", "names a qualifier without a family")
	case s.Namespace != "":
		if err := checkNamespace(op, s.Namespace); err != nil {
			return nil, err
		}
		return &pb.Permission{
			Type:                pb.Permission_Namespace.Enum(),
			NamespacePermission: &pb.NamespacePermission{NamespaceName: []byte(s.Namespace), Action: a.toProto()},
		}, nil
	case s.Table == "":
		return &pb.Permission{Type: pb.Permission_Global.Enum(), GlobalPermission: &pb.GlobalPermission{Action: a.toProto()}}, nil
	}
	t, err := parseTable(op, s.Table)
	if err != nil {
		return nil, err
	}
	p := &pb.TablePermission{TableName: t.ToProto(), Action: a.toProto()}
	if s.Family != "" {
		p.Family = []byte(s.Family)
	}
	if s.Qualifier != "" {
		p.Qualifier = []byte(s.Qualifier)
	}
	return &pb.Permission{Type: pb.Permission_Table.Enum(), TablePermission: p}, nil
}

// Permission is what a user, or with a leading @ a group, may do to what.
type Permission struct {
	User  string
	Scope Scope
	Actions
}

func permissionFromProto(p *pb.UserPermission) Permission {
	out := Permission{User: string(p.GetUser())}
	switch q := p.GetPermission(); q.GetType() {
	case pb.Permission_Namespace:
		out.Scope.Namespace = string(q.GetNamespacePermission().GetNamespaceName())
		out.Actions = actionsFromProto(q.GetNamespacePermission().GetAction())
	case pb.Permission_Table:
		t := q.GetTablePermission()
		out.Scope = Scope{Table: meta.TableFromProto(t.GetTableName()).String(), Family: string(t.GetFamily()), Qualifier: string(t.GetQualifier())}
		out.Actions = actionsFromProto(t.GetAction())
	default:
		out.Actions = actionsFromProto(q.GetGlobalPermission().GetAction())
	}
	return out
}

// accessTable holds the permissions; its region has the old service.
func accessTable() TableName { return TableName{Namespace: meta.SystemNamespace, Qualifier: "acl"} }

// access calls a method that MasterService has since HBase 2.2 and the
// coprocessor AccessControlService on hbase:acl had before.
func (a *Admin) access(ctx context.Context, op, object, method string, param interface {
	wire.Marshaler
	MarshalVT() ([]byte, error)
}, result wire.Unmarshaler) error {
	err := a.slowMaster(ctx, op, method, param, result, session.Safe)
	if err != nil && unknownService(err) {
		err = a.endpoint(ctx, op, accessTable(), "AccessControlService", method, param, result)
	}
	return accessError(op, object, err)
}

// accessError recognises a cluster without the AccessController: it has no
// table hbase:acl, or no such service, or refuses the call by its own text.
func accessError(op, object string, err error) error {
	var remote *wire.RemoteError
	switch {
	case err == nil:
		return nil
	case isMissingTable(err), unknownService(err),
		errors.As(err, &remote) && strings.Contains(remote.Message, "hbase.security.authorization"):
		return errNotSupported(op, object, "access control is not enabled (hbase.security.authorization, AccessController)", err)
	}
	return fault.Wrap(op, object, err)
}

// endpoint calls a coprocessor's service on the first region of a table.
func (a *Admin) endpoint(ctx context.Context, op string, table TableName, service, method string, param interface{ MarshalVT() ([]byte, error) }, result wire.Unmarshaler) error {
	body, err := param.MarshalVT()
	if err != nil {
		return invalid(op, method, err.Error())
	}
	ctx, cancel := bound(ctx, a.cfg.OperationTimeout)
	defer cancel()
	req := &pb.CoprocessorServiceRequest{Call: &pb.CoprocessorServiceCall{
		Row: []byte{}, ServiceName: &service, MethodName: &method, Request: append([]byte{}, body...),
	}}
	var resp pb.CoprocessorServiceResponse
	_, err = a.core.CallRegion(ctx, &session.RegionCall{
		Table: table, Row: nil, Method: "ExecService", Op: op, Result: &resp, Idempotency: session.Safe,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			req.Region = regionByName(region)
			return req, nil
		},
	})
	if err != nil {
		return err
	}
	if err := result.UnmarshalVT(resp.GetValue().GetValue()); err != nil {
		return fmt.Errorf("answer to %s: %w", method, err)
	}
	return nil
}

// Grant lets a user (or @group) do something. The actions replace those it had
// for that scope, or join them if merge is set (HBase 1.4+).
func (a *Admin) Grant(ctx context.Context, p Permission, merge bool) error {
	const op = "grant"
	if p.Actions == 0 {
		return invalid(op, "permission", "allows no action")
	}
	up, err := userPermission(op, p)
	if err != nil {
		return err
	}
	req := &pb.GrantRequest{UserPermission: up, MergeExistingPermissions: &merge}
	return a.access(ctx, op, p.Scope.String(), "Grant", req, &pb.GrantResponse{})
}

// Revoke takes away what a user (or @group) may do to exactly this scope: the
// actions named, or all of them if none is. Permissions for larger and smaller
// scopes stay.
func (a *Admin) Revoke(ctx context.Context, p Permission) error {
	const op = "revoke"
	up, err := userPermission(op, p)
	if err != nil {
		return err
	}
	return a.access(ctx, op, p.Scope.String(), "Revoke", &pb.RevokeRequest{UserPermission: up}, &pb.RevokeResponse{})
}

func userPermission(op string, p Permission) (*pb.UserPermission, error) {
	if p.User == "" || p.User == "@" {
		return nil, invalid(op, "user", "is missing")
	}
	q, err := p.Scope.toProto(op, p.Actions)
	if err != nil {
		return nil, err
	}
	return &pb.UserPermission{User: []byte(p.User), Permission: q}, nil
}

// Permissions lists the permissions of a scope: for everything (the zero
// Scope) only those granted on everything; for a table those on it, its
// families and columns. User, if not empty, keeps only that user's (HBase
// 2.2+). Listing needs ADMIN.
func (a *Admin) Permissions(ctx context.Context, scope Scope, user string) ([]Permission, error) {
	const op = "user permissions"
	q, err := scope.toProto(op, 0)
	if err != nil {
		return nil, err
	}
	req := &pb.GetUserPermissionsRequest{Type: q.Type}
	if t := q.GetTablePermission(); t != nil {
		req.TableName, req.ColumnFamily, req.ColumnQualifier = t.TableName, t.Family, t.Qualifier
	}
	if n := q.GetNamespacePermission(); n != nil {
		req.NamespaceName = n.NamespaceName
	}
	if user != "" {
		req.UserName = []byte(user)
	}
	var resp pb.GetUserPermissionsResponse
	if err := a.access(ctx, op, scope.String(), "GetUserPermissions", req, &resp); err != nil {
		return nil, err
	}
	out := make([]Permission, 0, len(resp.UserPermission))
	for _, p := range resp.UserPermission {
		out = append(out, permissionFromProto(p))
	}
	return out, nil
}

// HasPermissions says for each permission whether the user has it, by whatever
// grant; User in them is not looked at. An empty user means the caller. HBase
// 2.2+.
func (a *Admin) HasPermissions(ctx context.Context, user string, ps ...Permission) ([]bool, error) {
	const op = "has permissions"
	req := &pb.HasUserPermissionsRequest{}
	if user != "" {
		req.UserName = []byte(user)
	}
	for _, p := range ps {
		q, err := p.Scope.toProto(op, p.Actions)
		if err != nil {
			return nil, err
		}
		req.Permission = append(req.Permission, q)
	}
	if len(ps) == 0 {
		return nil, nil
	}
	var resp pb.HasUserPermissionsResponse
	if err := a.master(ctx, op, "HasUserPermissions", req, &resp, session.Safe); err != nil {
		return nil, accessError(op, "", err)
	}
	if len(resp.HasUserPermission) != len(ps) {
		return nil, fault.Wrap(op, "", &fault.Unreadable{Err: fmt.Errorf("%d answers to %d questions", len(resp.HasUserPermission), len(ps))})
	}
	return slices.Clone(resp.HasUserPermission), nil
}

// CheckPermissions fails with ErrAccessDenied unless the caller has all the
// permissions; it asks the coprocessor on hbase:acl (for tables: on the table),
// as Java's AccessControlUtil does, and so needs no rights of its own.
func (a *Admin) CheckPermissions(ctx context.Context, ps ...Permission) error {
	const op = "check permissions"
	byTable := map[TableName]*pb.CheckPermissionsRequest{}
	for _, p := range ps {
		q, err := p.Scope.toProto(op, p.Actions)
		if err != nil {
			return err
		}
		t := accessTable()
		if p.Scope.Table != "" {
			t = meta.TableFromProto(q.GetTablePermission().GetTableName())
		}
		if byTable[t] == nil {
			byTable[t] = &pb.CheckPermissionsRequest{}
		}
		byTable[t].Permission = append(byTable[t].Permission, q)
	}
	for t, req := range byTable {
		err := a.endpoint(ctx, op, t, "AccessControlService", "CheckPermissions", req, &pb.CheckPermissionsResponse{})
		switch {
		case err == nil:
		case t != accessTable() && isMissingTable(err):
			return fault.Wrap(op, ofTable(t), err)
		default:
			return accessError(op, ofTable(t), err)
		}
	}
	return nil
}

// Capability is a security feature a cluster has switched on.
type Capability int32

// HBase's capabilities.
const (
	SimpleAuthentication = Capability(pb.SecurityCapabilitiesResponse_SIMPLE_AUTHENTICATION)
	SecureAuthentication = Capability(pb.SecurityCapabilitiesResponse_SECURE_AUTHENTICATION)
	Authorization        = Capability(pb.SecurityCapabilitiesResponse_AUTHORIZATION)
	CellAuthorization    = Capability(pb.SecurityCapabilitiesResponse_CELL_AUTHORIZATION)
	CellVisibility       = Capability(pb.SecurityCapabilitiesResponse_CELL_VISIBILITY)
)

// String gives HBase's name.
func (c Capability) String() string { return pb.SecurityCapabilitiesResponse_Capability(c).String() }

// SecurityCapabilities lists what the cluster has switched on, in the order of
// HBase's enumeration.
func (a *Admin) SecurityCapabilities(ctx context.Context) ([]Capability, error) {
	const op = "security capabilities"
	var resp pb.SecurityCapabilitiesResponse
	if err := a.master(ctx, op, "getSecurityCapabilities", &pb.SecurityCapabilitiesRequest{}, &resp, session.Safe); err != nil {
		return nil, switchError(op, err)
	}
	var out []Capability
	for _, c := range resp.Capabilities {
		out = append(out, Capability(c))
	}
	slices.Sort(out)
	return out, nil
}
