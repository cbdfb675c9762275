package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func quotaCommands() []command {
	return []command{
		{"set_quota", "quotas", "set_quota TYPE => THROTTLE, USER => 'u1', LIMIT => '10req/sec'\nset_quota TYPE => THROTTLE, THROTTLE_TYPE => WRITE, USER => 'u1', TABLE => 't', LIMIT => '10M/min', SCOPE => CLUSTER\nset_quota TYPE => THROTTLE, NAMESPACE => 'ns', LIMIT => NONE\nset_quota TYPE => THROTTLE, REGIONSERVER => 'all', LIMIT => '30000req/sec'\nset_quota USER => 'u1', GLOBAL_BYPASS => true\nset_quota TYPE => SPACE, TABLE => 't', LIMIT => '1G', POLICY => NO_INSERTS\nset_quota TYPE => SPACE, NAMESPACE => 'ns', LIMIT => NONE",
			"Throttle a user, a table, a namespace or the region servers, or limit the space of a table or namespace. Throttles are in req, CU (capacity units) or B, K, M, G, T, P, per sec, min, hour or day.", runSetQuota},
		{"list_quotas", "quotas", "list_quotas\nlist_quotas USER => 'bob.*'\nlist_quotas USER => 'bob', TABLE => 't'\nlist_quotas NAMESPACE => 'ns.*', LIMIT => 10",
			"List quotas. USER, TABLE and NAMESPACE are regular expressions for whole names.", runListQuotas},
		{"list_quota_table_sizes", "quotas", "list_quota_table_sizes", "List the bytes of each table, as region servers have reported them to the master.", runQuotaSizes},
		{"list_quota_snapshots", "quotas", "list_quota_snapshots\nlist_quota_snapshots TABLE => 't'\nlist_quota_snapshots NAMESPACE => 'ns'\nlist_quota_snapshots REGIONSERVER => 'host,port,startcode'",
			"List how much tables under a space quota use, from hbase:quota or as one region server knows it.", runQuotaSnapshots},
		{"list_snapshot_sizes", "quotas", "list_snapshot_sizes", "List the bytes that only snapshots keep, for tables under a space quota.", runSnapshotSizes},
		{"enable_rpc_throttle", "quotas", "enable_rpc_throttle", "Have region servers heed throttles; prints what it was before.", throttleSwitch("Previous rpc throttle state : ", (*admin.Admin).SetRPCThrottle, true)},
		{"disable_rpc_throttle", "quotas", "disable_rpc_throttle", "Have region servers ignore throttles; prints what it was before.", throttleSwitch("Previous rpc throttle state : ", (*admin.Admin).SetRPCThrottle, false)},
		{"enable_exceed_throttle_quota", "quotas", "enable_exceed_throttle_quota", "Let throttled requests use what a region server has left. It wants throttles of REGIONSERVER 'all', all per second.", throttleSwitch("Previous exceed throttle quota enabled : ", (*admin.Admin).SetExceedThrottle, true)},
		{"disable_exceed_throttle_quota", "quotas", "disable_exceed_throttle_quota", "Undo enable_exceed_throttle_quota.", throttleSwitch("Previous exceed throttle quota enabled : ", (*admin.Admin).SetExceedThrottle, false)},
	}
}

func throttleSwitch(text string, call func(*admin.Admin, context.Context, bool) (bool, error), on bool) func(context.Context, *Shell, args) (*answer, error) {
	return func(ctx context.Context, s *Shell, a args) (*answer, error) {
		if err := a.count(0, 0); err != nil {
			return nil, err
		}
		was, err := call(s.Client.Admin(), ctx, on)
		if err != nil {
			return nil, err
		}
		ans := boolAnswer(was)
		ans.lines = []string{text + strconv.FormatBool(was)}
		return ans, nil
	}
}

func runSetQuota(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(1, 1); err != nil {
		return nil, err
	}
	o, err := a.options(0, "TYPE", "THROTTLE_TYPE", "USER", "TABLE", "NAMESPACE", "REGIONSERVER", "LIMIT", "SCOPE", "POLICY", "GLOBAL_BYPASS")
	if err != nil {
		return nil, err
	}
	target := admin.QuotaTarget{User: o.text("USER"), Table: o.text("TABLE"), Namespace: o.text("NAMESPACE")}
	if o.has("REGIONSERVER") {
		// Whatever is written there, HBase knows only all of them.
		target.RegionServer = admin.AllRegionServers
	}
	limit, none := o.text("LIMIT"), false
	if v, _ := o.h.Get("LIMIT"); v == Symbol("NONE") {
		none = true
	}
	bypass := o.flag("GLOBAL_BYPASS")
	kind, of := o.text("TYPE"), o.text("THROTTLE_TYPE")
	scope, policy := strings.ToUpper(o.text("SCOPE")), o.text("POLICY")
	if o.err != nil {
		return nil, o.err
	}
	adm := s.Client.Admin()
	switch {
	case kind == "" && o.has("GLOBAL_BYPASS"):
		if target != (admin.QuotaTarget{User: target.User}) || target.User == "" {
			return nil, a.fail("GLOBAL_BYPASS goes with a USER and nothing else")
		}
		return say(nil), adm.SetGlobalBypass(ctx, target.User, bypass)
	case kind == "THROTTLE" && none:
		if of == "" {
			return say(nil), adm.RemoveThrottle(ctx, target)
		}
		t, err := admin.ParseThrottleType(of)
		if err != nil {
			return nil, err
		}
		return say(nil), adm.RemoveThrottle(ctx, target, t)
	case kind == "THROTTLE":
		t, err := admin.ParseThrottle(of, limit)
		if err != nil {
			return nil, err
		}
		switch scope {
		case "", "MACHINE":
		case "CLUSTER":
			t.Scope = admin.ClusterScope
		default:
			return nil, a.fail("the SCOPE is CLUSTER or MACHINE")
		}
		return say(nil), adm.SetThrottle(ctx, target, t)
	case kind == "SPACE" && none:
		return say(nil), adm.RemoveSpaceQuota(ctx, target)
	case kind == "SPACE":
		if limit == "" || policy == "" {
			return nil, a.fail("a SPACE quota needs a LIMIT and a POLICY")
		}
		var q admin.SpaceQuota
		if q.Limit, err = admin.ParseSize(limit); err == nil {
			q.Policy, err = admin.ParseSpacePolicy(policy)
		}
		if err != nil {
			return nil, err
		}
		return say(nil), adm.SetSpaceQuota(ctx, target, q)
	}
	return nil, a.fail("the TYPE is THROTTLE or SPACE")
}

func runListQuotas(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	o, err := a.options(0, "USER", "TABLE", "NAMESPACE", "LIMIT")
	if err != nil {
		return nil, err
	}
	f := admin.QuotaFilter{User: o.text("USER"), Table: o.text("TABLE"), Namespace: o.text("NAMESPACE")}
	limit := o.count("LIMIT")
	if o.err != nil {
		return nil, o.err
	}
	quotas, err := s.Client.Admin().ListQuotas(ctx, f)
	if err != nil {
		return nil, err
	}
	if limit > 0 && limit < len(quotas) {
		quotas = quotas[:limit]
	}
	type quotaJSON struct {
		Owner string `json:"owner"`
		Quota string `json:"quota"`
	}
	data, rows := []quotaJSON{}, [][]string{}
	for _, q := range quotas {
		owner, text := q.QuotaTarget.String(), q.String()
		data, rows = append(data, quotaJSON{owner, text}), append(rows, []string{owner, text})
	}
	return rowsAnswer(data, []string{"OWNER", "QUOTAS"}, rows), nil
}

func runQuotaSizes(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	sizes, err := s.Client.Admin().SpaceQuotaTableSizes(ctx)
	if err != nil {
		return nil, err
	}
	data, rows := map[string]int64{}, [][]string{}
	for _, t := range sortedBy(sizes, hbase.TableName.String) {
		data[t.String()] = sizes[t]
		rows = append(rows, []string{t.String(), strconv.FormatInt(sizes[t], 10)})
	}
	return rowsAnswer(data, []string{"TABLE", "SIZE"}, rows), nil
}

func runQuotaSnapshots(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 1); err != nil {
		return nil, err
	}
	o, err := a.options(0, "TABLE", "NAMESPACE", "REGIONSERVER")
	if err != nil {
		return nil, err
	}
	table, namespace, server := o.text("TABLE"), o.text("NAMESPACE"), o.text("REGIONSERVER")
	if o.err != nil {
		return nil, o.err
	}
	var states map[hbase.TableName]admin.SpaceState
	if server != "" {
		name, err := s.server(ctx, server)
		if err != nil {
			return nil, err
		}
		states, err = s.Client.Admin().RegionServerSpaceQuotas(ctx, name)
		if err != nil {
			return nil, err
		}
	} else if states, err = s.Client.Admin().SpaceQuotaTables(ctx); err != nil {
		return nil, err
	}
	type stateJSON struct {
		Table       string `json:"table"`
		Usage       int64  `json:"usage"`
		Limit       int64  `json:"limit"`
		InViolation bool   `json:"inViolation"`
		Policy      string `json:"policy"`
	}
	data, rows := []stateJSON{}, [][]string{}
	for _, t := range sortedBy(states, hbase.TableName.String) {
		// HBase's shell compares with the name without its namespace.
		if table != "" && table != t.Qualifier && table != t.String() || namespace != "" && namespace != t.Namespace {
			continue
		}
		st, policy := states[t], "None"
		if st.InViolation {
			policy = st.Policy.String()
		}
		data = append(data, stateJSON{t.String(), st.Usage, st.Limit, st.InViolation, policy})
		rows = append(rows, []string{t.String(), fmt.Sprint(st.Usage), fmt.Sprint(st.Limit), fmt.Sprint(st.InViolation), policy})
	}
	return rowsAnswer(data, []string{"TABLE", "USAGE", "LIMIT", "IN_VIOLATION", "POLICY"}, rows), nil
}

func runSnapshotSizes(ctx context.Context, s *Shell, a args) (*answer, error) {
	if err := a.count(0, 0); err != nil {
		return nil, err
	}
	sizes, err := s.Client.Admin().SnapshotSizes(ctx)
	if err != nil {
		return nil, err
	}
	var rows [][]string
	for _, name := range sortedBy(sizes, func(n string) string { return n }) {
		rows = append(rows, []string{name, strconv.FormatInt(sizes[name], 10)})
	}
	return rowsAnswer(sizes, []string{"SNAPSHOT", "SIZE"}, rows), nil
}
