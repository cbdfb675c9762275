package admin

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// QuotaTarget is whom a quota binds: exactly one of a user, a table, a
// namespace or the region servers; a user also together with a table or a
// namespace.
type QuotaTarget struct {
	User      string
	Table     string
	Namespace string
	// RegionServer is "all": HBase knows no quota of a single server.
	RegionServer string
}

// AllRegionServers is the only region server a quota can bind (HBase's
// QuotaTableUtil.QUOTA_REGION_SERVER_ROW_KEY).
const AllRegionServers = "all"

// String is the target as HBase's list_quotas prints it.
func (t QuotaTarget) String() string {
	var parts []string
	for _, p := range [][2]string{{"USER", t.User}, {"TABLE", t.Table}, {"NAMESPACE", t.Namespace}, {"REGIONSERVER", t.RegionServer}} {
		if p[1] != "" {
			parts = append(parts, p[0]+" => "+p[1])
		}
	}
	return strings.Join(parts, ", ")
}

// request checks the target and makes the call that concerns it.
func (t QuotaTarget) request() (*pb.SetQuotaRequest, error) {
	const op = "set quota"
	req := &pb.SetQuotaRequest{}
	if t.Table != "" {
		table, err := parseTable(op, t.Table)
		if err != nil {
			return nil, err
		}
		req.TableName = table.ToProto()
	}
	if t.Namespace != "" {
		if err := checkNamespace(op, t.Namespace); err != nil {
			return nil, err
		}
		req.Namespace = &t.Namespace
	}
	if t.User != "" {
		req.UserName = &t.User
	}
	switch {
	case t.Table != "" && t.Namespace != "":
		return nil, invalid(op, "target", "names a table and a namespace")
	case t.RegionServer != "" && t != QuotaTarget{RegionServer: t.RegionServer}:
		return nil, invalid(op, "target", "names the region servers and something else")
	case t.RegionServer != "" && t.RegionServer != AllRegionServers:
		return nil, invalid(op, "region server "+strconv.Quote(t.RegionServer), `is not "all": HBase knows no quota of one server`)
	case t.RegionServer != "":
		req.RegionServer = &t.RegionServer
	case t == QuotaTarget{}:
		return nil, invalid(op, "target", "is missing: a user, a table, a namespace or the region servers")
	}
	return req, nil
}

// SpacePolicy is what happens when a table or namespace takes more space than
// its quota allows.
type SpacePolicy int32

// HBase's policies, from the mildest to the hardest. Deletes are allowed but
// in the last, so that space can be made.
const (
	NoInserts           = SpacePolicy(pb.SpaceViolationPolicy_NO_INSERTS)            // no Put, Increment, Append
	NoWrites            = SpacePolicy(pb.SpaceViolationPolicy_NO_WRITES)             // nor Delete
	NoWritesCompactions = SpacePolicy(pb.SpaceViolationPolicy_NO_WRITES_COMPACTIONS) // nor requested compactions
	DisableTablePolicy  = SpacePolicy(pb.SpaceViolationPolicy_DISABLE)               // the table is disabled
)

// String gives HBase's name.
func (p SpacePolicy) String() string { return pb.SpaceViolationPolicy(p).String() }

// ParseSpacePolicy reads HBase's name of a policy.
func ParseSpacePolicy(name string) (SpacePolicy, error) {
	n, ok := pb.SpaceViolationPolicy_value[strings.ToUpper(name)]
	if !ok {
		return 0, invalid("set quota", "policy "+strconv.Quote(name), "is none of NO_INSERTS, NO_WRITES, NO_WRITES_COMPACTIONS, DISABLE")
	}
	return SpacePolicy(n), nil
}

// SpaceQuota limits the space of a table, or of all tables of a namespace
// together (HBase 2.0+).
type SpaceQuota struct {
	Limit  int64 // bytes in files, at least 1
	Policy SpacePolicy
}

func (a *Admin) setQuota(ctx context.Context, target QuotaTarget, fill func(*pb.SetQuotaRequest) error) error {
	const op = "set quota"
	req, err := target.request()
	if err == nil {
		err = fill(req)
	}
	if err != nil {
		return err
	}
	err = a.slowMaster(ctx, op, "SetQuota", req, &pb.SetQuotaResponse{}, session.Safe)
	return a.quotaError(op, target.String(), err)
}

// quotaError recognises a master that has quotas switched off: it answers with
// a bare UnsupportedOperationException.
func (a *Admin) quotaError(op, object string, err error) error {
	if err != nil && unknownService(err) {
		return errNotSupported(op, object, "quotas are not enabled (hbase.quota.enabled) or this version knows no such call", err)
	}
	return fault.Wrap(op, object, err)
}

// SetThrottle sets a throttle; others of the same target stay (Java:
// QuotaSettingsFactory.throttleUser and the like). A throttle of all region
// servers is per machine (HBase refuses ClusterScope).
func (a *Admin) SetThrottle(ctx context.Context, target QuotaTarget, t Throttle) error {
	if target.RegionServer != "" && t.Scope == ClusterScope {
		return invalid("set quota", "throttle", "of region servers must have the scope MACHINE")
	}
	return a.setQuota(ctx, target, func(req *pb.SetQuotaRequest) (err error) {
		req.Throttle, err = t.toProto()
		return err
	})
}

// RemoveThrottle takes throttles of the target away: those of the types, or
// all of them if none is named (one type at a time: HBase 2.2+).
func (a *Admin) RemoveThrottle(ctx context.Context, target QuotaTarget, types ...ThrottleType) error {
	if len(types) == 0 {
		return a.setQuota(ctx, target, func(req *pb.SetQuotaRequest) error {
			req.Throttle = &pb.ThrottleRequest{}
			return nil
		})
	}
	for _, t := range types {
		err := a.setQuota(ctx, target, func(req *pb.SetQuotaRequest) error {
			if _, ok := pb.ThrottleType_name[int32(t)]; !ok {
				return invalid("set quota", "throttle", fmt.Sprintf("has the type %d, which is none of HBase's", t))
			}
			req.Throttle = &pb.ThrottleRequest{Type: pb.ThrottleType(t).Enum()}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// SetSpaceQuota limits the space of a table or a namespace.
func (a *Admin) SetSpaceQuota(ctx context.Context, target QuotaTarget, q SpaceQuota) error {
	return a.spaceQuota(ctx, target, func() (*pb.SpaceQuota, error) {
		if _, ok := pb.SpaceViolationPolicy_name[int32(q.Policy)]; !ok {
			return nil, invalid("set quota", "policy", "is missing")
		}
		if q.Limit <= 0 {
			return nil, invalid("set quota", "limit", fmt.Sprintf("is %d; it must be greater than 0", q.Limit))
		}
		return &pb.SpaceQuota{SoftLimit: new(uint64(q.Limit)), ViolationPolicy: pb.SpaceViolationPolicy(q.Policy).Enum()}, nil
	})
}

// RemoveSpaceQuota takes the limit of the space away.
func (a *Admin) RemoveSpaceQuota(ctx context.Context, target QuotaTarget) error {
	return a.spaceQuota(ctx, target, func() (*pb.SpaceQuota, error) { return &pb.SpaceQuota{Remove: new(true)}, nil })
}

func (a *Admin) spaceQuota(ctx context.Context, target QuotaTarget, quota func() (*pb.SpaceQuota, error)) error {
	if target.User != "" || target.RegionServer != "" {
		return invalid("set quota", "target", "of a space quota is a table or a namespace")
	}
	return a.setQuota(ctx, target, func(req *pb.SetQuotaRequest) error {
		q, err := quota()
		req.SpaceLimit = &pb.SpaceLimitRequest{Quota: q}
		return err
	})
}

// SetGlobalBypass frees a user of the throttles of tables, namespaces and
// region servers, or binds it again; the user's own still count.
func (a *Admin) SetGlobalBypass(ctx context.Context, user string, bypass bool) error {
	return a.setQuota(ctx, QuotaTarget{User: user}, func(req *pb.SetQuotaRequest) error {
		req.BypassGlobals = &bypass
		return nil
	})
}

// RPCThrottleEnabled says whether servers heed throttles (HBase 2.2+).
func (a *Admin) RPCThrottleEnabled(ctx context.Context) (bool, error) {
	var resp pb.IsRpcThrottleEnabledResponse
	err := a.master(ctx, "rpc throttle enabled", "IsRpcThrottleEnabled", &pb.IsRpcThrottleEnabledRequest{}, &resp, session.Safe)
	return resp.GetRpcThrottleEnabled(), a.quotaError("rpc throttle enabled", "", err)
}

// SetRPCThrottle switches all throttles on or off and says what it was before
// (HBase 2.2+).
func (a *Admin) SetRPCThrottle(ctx context.Context, on bool) (was bool, err error) {
	var resp pb.SwitchRpcThrottleResponse
	err = a.slowMaster(ctx, "rpc throttle switch", "SwitchRpcThrottle", &pb.SwitchRpcThrottleRequest{RpcThrottleEnabled: &on}, &resp, session.Safe)
	return resp.GetPreviousRpcThrottleEnabled(), a.quotaError("rpc throttle switch", "", err)
}

// SetExceedThrottle lets throttled requests pass as long as a region server as
// a whole has something left, or not any more, and says what it was before
// (HBase 2.2+). HBase wants a throttle of REGIONSERVER all, in seconds, for it.
func (a *Admin) SetExceedThrottle(ctx context.Context, on bool) (was bool, err error) {
	var resp pb.SwitchExceedThrottleQuotaResponse
	err = a.slowMaster(ctx, "exceed throttle switch", "SwitchExceedThrottleQuota", &pb.SwitchExceedThrottleQuotaRequest{ExceedThrottleQuotaEnabled: &on}, &resp, session.Safe)
	return resp.GetPreviousExceedThrottleQuotaEnabled(), a.quotaError("exceed throttle switch", "", err)
}

// SpaceState is how much of its space a table or namespace has used.
type SpaceState struct {
	Usage, Limit int64 // bytes
	// InViolation says whether the quota is exceeded; Policy is then what is
	// done about it.
	InViolation bool
	Policy      SpacePolicy
}

func spaceState(p *pb.SpaceQuotaSnapshot) SpaceState {
	s := SpaceState{Usage: int64(p.GetQuotaUsage()), Limit: int64(p.GetQuotaLimit()), InViolation: p.GetQuotaStatus().GetInViolation()}
	if s.InViolation {
		s.Policy = SpacePolicy(p.GetQuotaStatus().GetViolationPolicy())
	}
	return s
}

// SpaceQuotaStates gives the state of all space quotas, as the master last
// reckoned it: by table and by namespace.
func (a *Admin) SpaceQuotaStates(ctx context.Context) (tables map[TableName]SpaceState, namespaces map[string]SpaceState, err error) {
	const op = "space quota states"
	var resp pb.GetQuotaStatesResponse
	if err := a.master(ctx, op, "GetQuotaStates", &pb.GetQuotaStatesRequest{}, &resp, session.Safe); err != nil {
		return nil, nil, a.quotaError(op, "", err)
	}
	tables, namespaces = map[TableName]SpaceState{}, map[string]SpaceState{}
	for _, s := range resp.TableSnapshots {
		tables[meta.TableFromProto(s.GetTableName())] = spaceState(s.GetSnapshot())
	}
	for _, s := range resp.NsSnapshots {
		namespaces[s.GetNamespace()] = spaceState(s.GetSnapshot())
	}
	return tables, namespaces, nil
}

// SpaceQuotaTableSizes gives the bytes of each table's regions as the region
// servers reported them to the master (Java: getSpaceQuotaTableSizes).
func (a *Admin) SpaceQuotaTableSizes(ctx context.Context) (map[TableName]int64, error) {
	const op = "space quota table sizes"
	var resp pb.GetSpaceQuotaRegionSizesResponse
	if err := a.master(ctx, op, "GetSpaceQuotaRegionSizes", &pb.GetSpaceQuotaRegionSizesRequest{}, &resp, session.Safe); err != nil {
		return nil, a.quotaError(op, "", err)
	}
	out := map[TableName]int64{}
	for _, s := range resp.Sizes {
		out[meta.TableFromProto(s.GetTableName())] = int64(s.GetSize())
	}
	return out, nil
}

// RegionServerSpaceQuotas gives the states one region server acts upon (Java:
// getRegionServerSpaceQuotaSnapshots).
func (a *Admin) RegionServerSpaceQuotas(ctx context.Context, server ServerName) (map[TableName]SpaceState, error) {
	const op = "space quotas of server"
	var resp pb.GetSpaceQuotaSnapshotsResponse
	_, err := a.core.CallServer(ctx, server, &session.ServerCall{
		Service: session.AdminService, Method: "GetSpaceQuotaSnapshots", Op: op,
		Param: &pb.GetSpaceQuotaSnapshotsRequest{}, Result: &resp, Idempotency: session.Safe,
	})
	if err != nil {
		return nil, a.quotaError(op, server.String(), err)
	}
	out := map[TableName]SpaceState{}
	for _, s := range resp.Snapshots {
		out[meta.TableFromProto(s.GetTableName())] = spaceState(s.GetSnapshot())
	}
	return out, nil
}

// isMissingTable says whether a read failed because the table is not there.
func isMissingTable(err error) bool {
	var remote *wire.RemoteError
	return errors.Is(err, fault.ErrTableNotFound) || errors.As(err, &remote) && remote.Class == wire.ClassTableNotFound
}
