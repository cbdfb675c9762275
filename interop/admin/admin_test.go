package admin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// exception gives the simple class name of the server's exception in err.
func exception(err error) string {
	remote, ok := errors.AsType[*hbase.RemoteError](err)
	if !ok {
		return ""
	}
	return remote.Class[strings.LastIndexByte(remote.Class, '.')+1:]
}

// only26 checks a call that wants HBase 2.5 or 2.6: there it must not fail,
// elsewhere it must say that it is not supported.
func (c *cluster) only26(t *testing.T, what string, err error) bool {
	t.Helper()
	if c.v26() {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return err == nil
	}
	if !errors.Is(err, hbase.ErrUnsupported) || !strings.Contains(err.Error(), "needs HBase 2.") {
		t.Errorf("%s on %s: %v, want ErrUnsupported", what, c.version, err)
	}
	return false
}

// server is the cluster's region server.
func (c *cluster) server(t *testing.T) hbase.ServerName {
	t.Helper()
	servers, err := c.adm.RegionServers(c.context(t))
	if err != nil || len(servers) != 1 {
		t.Fatalf("%v, %v", servers, err)
	}
	return servers[0]
}

// TestSwitches: every switch says what it was, can be asked, and is set back.
func TestSwitches(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		for _, s := range []struct {
			name string
			set  func(bool) (bool, error)
			get  func() (bool, error)
		}{
			{"balancer", func(on bool) (bool, error) { return c.adm.SetBalancer(ctx, on) }, func() (bool, error) { return c.adm.BalancerEnabled(ctx) }},
			{"normalizer", func(on bool) (bool, error) { return c.adm.SetNormalizer(ctx, on) }, func() (bool, error) { return c.adm.NormalizerEnabled(ctx) }},
			{"catalog janitor", func(on bool) (bool, error) { return c.adm.SetCatalogJanitor(ctx, on) }, func() (bool, error) { return c.adm.CatalogJanitorEnabled(ctx) }},
			{"cleaner chore", func(on bool) (bool, error) { return c.adm.SetCleanerChore(ctx, on) }, func() (bool, error) { return c.adm.CleanerChoreEnabled(ctx) }},
			{"splits", func(on bool) (bool, error) { return c.adm.SetSplits(ctx, on) }, func() (bool, error) { return c.adm.SplitsEnabled(ctx) }},
			{"merges", func(on bool) (bool, error) { return c.adm.SetMerges(ctx, on) }, func() (bool, error) { return c.adm.MergesEnabled(ctx) }},
		} {
			for _, on := range []bool{false, true} {
				if was, err := s.set(on); err != nil || was == on {
					t.Errorf("%s to %v: was %v, %v", s.name, on, was, err)
				}
				if is, err := s.get(); err != nil || is != on {
					t.Errorf("%s set to %v: is %v, %v", s.name, on, is, err)
				}
			}
		}
		server := c.server(t)
		for _, on := range []bool{false, true} {
			if was, err := c.adm.SetCompactions(ctx, on); err != nil || len(was) != 1 || was[server] == on {
				t.Errorf("compactions to %v: were %v, %v", on, was, err)
			}
		}
		if was, err := c.adm.SetCompactions(ctx, true, server); err != nil || !was[server] {
			t.Errorf("compactions of %v: %v, %v", server, was, err)
		}
	})
}

func TestChores(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t)
		// It does not run while a region is in transition.
		c.eventually(t, "a run of the balancer", func() bool {
			ran, err := c.adm.Balance(ctx)
			return ran && err == nil
		})
		if r, err := c.adm.BalanceWith(ctx, admin.BalanceOptions{IgnoreTransitions: true}); !r.Ran || r.Planned != r.Done || err != nil {
			t.Errorf("balance: %+v, %v", r, err)
		}
		r, err := c.adm.BalanceWith(ctx, admin.BalanceOptions{DryRun: true})
		if c.only26(t, "dry run", err) && r.Done != 0 {
			t.Errorf("a dry run moved regions: %+v", r)
		}
		if _, err := c.adm.SetBalancer(ctx, false); err != nil {
			t.Error(err)
		}
		if ran, err := c.adm.Balance(ctx); ran || err != nil {
			t.Errorf("balance while switched off: %v, %v", ran, err)
		}
		if _, err := c.adm.SetBalancer(ctx, true); err != nil {
			t.Error(err)
		}
		if ran, err := c.adm.Normalize(ctx, admin.NormalizeFilter{}); !ran || err != nil {
			t.Errorf("normalize: %v, %v", ran, err)
		}
		if ran, err := c.adm.Normalize(ctx, admin.NormalizeFilter{Tables: []string{table}, Pattern: "t.*", Namespace: "default"}); !ran || err != nil {
			t.Errorf("normalize: %v, %v", ran, err)
		}
		if n, err := c.adm.RunCatalogJanitor(ctx); n < 0 || err != nil {
			t.Errorf("catalog janitor: %d, %v", n, err)
		}
		// Whether it ran depends on what else the cleaners are at.
		if _, err := c.adm.RunCleanerChore(ctx); err != nil {
			t.Error(err)
		}
		if on, err := c.adm.InMaintenanceMode(ctx); on || err != nil {
			t.Errorf("maintenance mode %v, %v", on, err)
		}
		if d, err := c.adm.BalancerDecisions(ctx, 5); len(d) > 5 || err != nil {
			t.Errorf("%v, %v", d, err)
		}
		if _, err := c.adm.BalancerRejections(ctx, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestProcedures(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t, "m")
		c.put(t, table, "1", "a")
		procs, err := c.adm.Procedures(ctx)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, p := range procs {
			if p.ID == 0 || p.Submitted.IsZero() {
				t.Errorf("%+v", p)
			}
			// Others may have tried to make a table that there was.
			if p.Name() == "CreateTableProcedure" && p.State == admin.ProcSuccess {
				found = true
				if p.Err != nil {
					t.Errorf("%+v", p)
				}
			}
		}
		if !found || !slices.IsSortedFunc(procs, func(a, b admin.Procedure) int { return int(a.ID) - int(b.ID) }) {
			t.Errorf("procedures %v", procs)
		}
		if locks, err := c.adm.Locks(ctx); len(locks) != 0 || err != nil {
			t.Errorf("locks %v, %v", locks, err)
		}
		// One that ended, and one that never was, cannot be aborted.
		for _, id := range []uint64{procs[0].ID, 1 << 40} {
			if ok, err := c.adm.AbortProcedure(ctx, id, true); ok || err != nil {
				t.Errorf("abort %d: %v, %v", id, ok, err)
			}
		}

		if err := c.adm.ExecProcedure(ctx, "flush-table-proc", table, nil); err != nil {
			t.Error(err)
		}
		if done, err := c.adm.IsProcedureDone(ctx, "flush-table-proc", table, nil); !done || err != nil {
			t.Errorf("flush done: %v, %v", done, err)
		}
		if err := c.adm.ExecProcedure(ctx, "no-such-proc", table, nil); exception(err) == "" {
			t.Errorf("an unknown procedure: %v", err)
		}
		if _, err := c.adm.ExecProcedureWithReturn(ctx, "no-such-proc", table, nil); exception(err) == "" {
			t.Errorf("an unknown procedure: %v", err)
		}

		// Submitted only, and awaited by its id.
		var id uint64
		adm := c.adm.Detached(func(n uint64) { id = n })
		d, err := c.adm.Describe(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		d = d.Clone()
		d.Family("f").Versions(7)
		if err := adm.ModifyTable(ctx, d); err != nil || id == 0 {
			t.Fatalf("submitted %d, %v", id, err)
		}
		if _, err := c.adm.Await(ctx, id); err != nil {
			t.Error(err)
		}
		if s, err := c.adm.AlterStatus(ctx, table); s != (admin.AlterStatus{Updated: 2, Total: 2}) || err != nil {
			t.Errorf("alter status %+v, %v", s, err)
		}
		if d, err := c.adm.Describe(ctx, table); err != nil || d.Family("f").Attribute("VERSIONS") != "7" {
			t.Errorf("%v, %v", d, err)
		}
		id = 0
		if err := adm.EnableTable(ctx, table); err == nil {
			_, err = c.adm.Await(ctx, id)
			if !errors.Is(err, hbase.ErrTableNotDisabled) {
				t.Errorf("enable of an enabled table: %v", err)
			}
		} else if !errors.Is(err, hbase.ErrTableNotDisabled) {
			t.Errorf("enable of an enabled table: %v", err)
		}
	})
}

func TestServers(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		server := c.server(t)
		table := c.table(t)
		c.put(t, table, "1", "a")

		if list, err := c.adm.DeadServers(ctx); len(list) != 0 || err != nil {
			t.Errorf("dead %v, %v", list, err)
		}
		list, err := c.adm.UnknownServers(ctx)
		c.only26(t, "unknown servers", err)
		if len(list) != 0 {
			t.Errorf("unknown %v", list)
		}
		if list, err := c.adm.ClearDeadServers(ctx); len(list) != 0 || err != nil {
			t.Errorf("not cleared %v, %v", list, err)
		}
		ghost := hbase.ServerName{Host: "localhost", Port: 1, StartCode: 1}
		if list, err := c.adm.ClearDeadServers(ctx, ghost); len(list) != 1 || list[0] != ghost || err != nil {
			t.Errorf("not cleared %v, %v", list, err)
		}

		if err := c.adm.DecommissionServers(ctx, []hbase.ServerName{server}, false); err != nil {
			t.Fatal(err)
		}
		if list, err := c.adm.DecommissionedServers(ctx); len(list) != 1 || list[0] != server || err != nil {
			t.Errorf("decommissioned %v, %v", list, err)
		}
		regions, err := c.adm.Regions(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		// HBase hears of the decommission from ZooKeeper, too, and if that is after
		// the recommission, the server is out again.
		c.eventually(t, "a server that is in again", func() bool {
			if err := c.adm.RecommissionServer(ctx, server, regions[0].Region.EncodedName()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if list, err := c.adm.DecommissionedServers(ctx); len(list) != 0 || err != nil {
					return false
				}
				time.Sleep(300 * time.Millisecond)
			}
			return true
		})
		// The list of unknown servers is not that of the decommissioned ones.
		if list, _ := c.adm.UnknownServers(ctx); len(list) != 0 {
			t.Errorf("unknown %v", list)
		}

		for name, err := range map[string]error{
			"roll wal":             c.adm.RollWAL(ctx, server),
			"roll all wals":        c.adm.RollAllWALs(ctx),
			"update configuration": c.adm.UpdateConfiguration(ctx, server),
			"update all":           c.adm.UpdateAllConfigurations(ctx),
			"clear queues":         c.adm.ClearCompactionQueues(ctx, server),
			"clear a queue":        c.adm.ClearCompactionQueues(ctx, server, "long"),
			"flush server":         c.adm.FlushServer(ctx, server),
			"compact server":       c.adm.CompactServer(ctx, server, false),
			"major compact server": c.adm.CompactServer(ctx, server, true),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := c.adm.ClearCompactionQueues(ctx, server, "wide"); !errors.Is(err, hbase.ErrInvalid) {
			t.Errorf("queue wide: %v", err)
		}
		if p, err := c.adm.ServerInfo(ctx, server); p.Server != server || err != nil {
			t.Errorf("%+v, %v", p, err)
		}
		_, err = c.adm.CachedFiles(ctx, server)
		c.only26(t, "cached files", err)
		c.only26(t, "flush master store", c.adm.FlushMasterStore(ctx))
		if err := c.adm.RollWAL(ctx, ghost); err == nil {
			t.Error("a server that is not there rolled its log")
		}
	})
}

func TestRegions(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		server := c.server(t)
		table := c.table(t, "m")
		c.put(t, table, "1", "a", "b", "c", "x")
		regions, err := c.adm.Regions(ctx, table)
		if err != nil || len(regions) != 2 {
			t.Fatalf("%v, %v", regions, err)
		}
		first := regions[0].Region.EncodedName()

		for name, err := range map[string]error{
			"flush":        c.adm.FlushRegion(ctx, first, ""),
			"flush family": c.adm.FlushFamily(ctx, table, "f"),
			"flush both":   c.adm.FlushRegion(ctx, first, "f"),
			"compact":      c.adm.CompactRegion(ctx, first, "", false),
			"major":        c.adm.CompactRegion(ctx, first, "f", true),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		// 2.4 does not look.
		if err := c.adm.FlushRegion(ctx, first, "nope"); c.v26() && err == nil {
			t.Error("a family that is not there was flushed")
		}
		if _, err := c.adm.RegionCompactionState(ctx, first); err != nil {
			t.Error(err)
		}
		info, err := c.adm.RegionInfo(ctx, first)
		if err != nil || info.Region.EncodedName() != first || !info.Splittable || !info.Mergeable {
			t.Errorf("%+v, %v", info, err)
		}
		if files, err := c.adm.StoreFiles(ctx, first); err != nil || c.name != "embedded" && len(files) == 0 {
			t.Errorf("files %v, %v", files, err)
		}
		loads, err := c.adm.RegionMetrics(ctx, server, table)
		if err != nil || len(loads) != 2 || loads[0].Stores != 1 || loads[0].WriteRequests == 0 {
			t.Errorf("%+v, %v", loads, err)
		}
		if all, err := c.adm.RegionMetrics(ctx, server, ""); len(all) <= 2 || err != nil {
			t.Errorf("%d regions, %v", len(all), err)
		}
		loads, err = c.adm.TableMetrics(ctx, table)
		if err != nil || len(loads) != 2 || string(loads[0].Name) != regions[0].Region.String() {
			t.Errorf("%+v, %v", loads, err)
		}
		if when, err := c.adm.LastMajorCompaction(ctx, table); err != nil || time.Until(when) > time.Minute {
			t.Errorf("%v, %v", when, err)
		}
		if when, err := c.adm.LastMajorCompactionOfRegion(ctx, first); err != nil || time.Until(when) > time.Minute {
			t.Errorf("%v, %v", when, err)
		}
		if e, err := c.adm.ClearBlockCache(ctx, table); err != nil || len(e.Failed) != 0 {
			t.Errorf("%v, %v", e, err)
		}
		if r, err := c.adm.ReplicaLocations(ctx, table); err != nil || len(r) != 2 || r[0].Server != server {
			t.Errorf("%v, %v", r, err)
		}
		if c.only26(t, "truncate region", c.adm.TruncateRegion(ctx, first)) {
			if rows := c.rows(t, table); !slices.Equal(rows, []string{"x"}) {
				t.Errorf("rows %v", rows)
			}
		}
	})
}

func TestTables(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		on, off := c.table(t, "k"), c.table(t)
		if err := c.adm.DisableTable(ctx, off); err != nil {
			t.Fatal(err)
		}
		has := func(list []admin.TableName, name string) bool {
			return slices.ContainsFunc(list, func(t admin.TableName) bool { return t.String() == name })
		}
		for _, enabled := range []bool{true, false} {
			list, err := c.adm.TablesByState(ctx, enabled)
			if c.only26(t, "tables by state", err) && (has(list, on) != enabled || has(list, off) == enabled) {
				t.Errorf("enabled %v: %v", enabled, list)
			}
			ds, err := c.adm.DescribeByState(ctx, enabled)
			if c.only26(t, "describe by state", err) && len(ds) != len(list) {
				t.Errorf("%d schemas of %d tables", len(ds), len(list))
			}
		}
		ds, err := c.adm.DescribeNamespaceTables(ctx, "default")
		if err != nil || !slices.ContainsFunc(ds, func(d *admin.TableDescriptor) bool { return d.Name.String() == off }) {
			t.Errorf("%v, %v", ds, err)
		}
		if _, err := c.adm.DescribeNamespaceTables(ctx, "nope"); !errors.Is(err, hbase.ErrNamespaceNotFound) {
			t.Errorf("tables of no namespace: %v", err)
		}
		if names, err := c.adm.NamespaceNames(ctx); err != nil || !slices.Equal(names[:2], []string{"default", "hbase"}) {
			t.Errorf("%v, %v", names, err)
		}

		clone, plain := c.fresh("c"), c.fresh("c")
		for _, name := range []string{clone, plain} {
			t.Cleanup(func() { c.drop(t, name) })
			if err := c.adm.CloneTableSchema(ctx, on, name, name == clone); err != nil {
				t.Error(err)
			}
		}
		if r, err := c.adm.Regions(ctx, clone); len(r) != 2 || err != nil {
			t.Errorf("%d regions, %v", len(r), err)
		}
		if r, err := c.adm.Regions(ctx, plain); len(r) != 1 || err != nil {
			t.Errorf("%d regions, %v", len(r), err)
		}
		if err := c.adm.CloneTableSchema(ctx, on, off, true); !errors.Is(err, hbase.ErrTableExists) {
			t.Errorf("clone onto a table: %v", err)
		}
		if err := c.adm.CloneTableSchema(ctx, "nope", c.fresh("c"), true); !errors.Is(err, hbase.ErrTableNotFound) {
			t.Errorf("clone of nothing: %v", err)
		}

		c.only26(t, "tracker of a table", c.adm.SetStoreFileTracker(ctx, on, "DEFAULT"))
		c.only26(t, "tracker of a family", c.adm.SetFamilyStoreFileTracker(ctx, on, "f", "DEFAULT"))
		d, err := c.adm.Describe(ctx, on)
		if err != nil {
			t.Fatal(err)
		}
		c.only26(t, "modify lazily", c.adm.ModifyTableLazily(ctx, d.Clone().Set("MAX_FILESIZE", "10737418240")))

		// Many regions at once.
		many := c.table(t, "b", "c", "d")
		regions, err := c.adm.Regions(ctx, many)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range regions {
			names = append(names, r.Region.EncodedName())
		}
		if err := c.adm.MergeRegions(ctx, names, false); err != nil {
			t.Fatal(err)
		}
		if r, err := c.adm.Regions(ctx, many); len(r) != 1 || err != nil {
			t.Errorf("%d regions, %v", len(r), err)
		}
	})
}

func TestClusterStatus(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		st, err := c.adm.ClusterStatus(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Live) != 1 || len(st.Dead) != 0 || st.Version == "" || st.Master.IsZero() {
			t.Errorf("status %+v", st)
		}
		if c.name != "embedded" && st.Version != c.name {
			t.Errorf("version %s", st.Version)
		}
		some, err := c.adm.ClusterStatusOf(ctx, admin.StatusVersion, admin.StatusMaster)
		if err != nil || some.Version != st.Version || some.Master != st.Master || len(some.Live) != 0 || some.ClusterID != "" {
			t.Errorf("status %+v, %v", some, err)
		}
	})
}

func TestSlowLog(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		for _, q := range []admin.SlowLogQuery{{}, {Large: true}, {Servers: []hbase.ServerName{c.server(t)}, Table: "t", User: "nobody", MatchAll: true, Limit: 3}} {
			calls, err := c.adm.SlowLog(ctx, q)
			if err != nil {
				t.Errorf("%+v: %v", q, err)
			}
			for _, call := range calls {
				if call.Method == "" || call.Start.IsZero() || q.Large != call.Large {
					t.Errorf("%+v: %+v", q, call)
				}
			}
			if q.User != "" && len(calls) != 0 {
				t.Errorf("%+v: %v", q, calls)
			}
		}
		cleared, err := c.adm.ClearSlowLog(ctx)
		// The embedded cluster keeps none, as HBase by default.
		if err != nil || cleared[c.server(t)] != (c.name != "embedded") {
			t.Errorf("cleared %v, %v", cleared, err)
		}
	})
}

func TestHbck(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		h := c.adm.Hbck()
		table := c.table(t, "m")
		c.put(t, table, "1", "a")
		if ran, err := h.RunChore(ctx); !ran || err != nil {
			t.Errorf("chore: %v, %v", ran, err)
		}
		if err := h.FixMeta(ctx); err != nil {
			t.Error(err)
		}
		regions, err := c.adm.Regions(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		first := regions[0].Region.EncodedName()
		ids, err := h.Unassign(ctx, []string{first}, false)
		if err != nil || len(ids) != 1 || ids[0] == 0 {
			t.Fatalf("%v, %v", ids, err)
		}
		if _, err := c.adm.Await(ctx, ids[0]); err != nil {
			t.Error(err)
		}
		for _, s := range []struct{ to, was admin.RegionState }{{"CLOSED", "CLOSED"}, {"FAILED_OPEN", "CLOSED"}, {"CLOSED", "FAILED_OPEN"}} {
			if was, err := h.SetRegionState(ctx, first, s.to); was != s.was || err != nil {
				t.Errorf("region to %s: was %v, %v; want %v", s.to, was, err, s.was)
			}
		}
		if was, err := h.SetRegionState(ctx, "0123456789abcdef0123456789abcdef", "CLOSED"); err == nil {
			t.Errorf("unknown region: %v", was)
		}
		ids, err = h.Assign(ctx, []string{first, "0123456789abcdef0123456789abcdef"}, false)
		if err != nil || len(ids) != 2 || ids[0] == 0 || ids[1] != 0 {
			t.Fatalf("%v, %v", ids, err)
		}
		if _, err := c.adm.Await(ctx, ids[0]); err != nil {
			t.Error(err)
		}
		if rows := c.rows(t, table); !slices.Equal(rows, []string{"a"}) {
			t.Errorf("rows %v", rows)
		}
		if was, err := h.SetTableState(ctx, table, admin.Enabled); was != admin.Enabled || err != nil {
			t.Errorf("table was %v, %v", was, err)
		}
		if ok, err := h.BypassProcedures(ctx, []uint64{1 << 40}, admin.BypassOptions{}); len(ok) != 1 || ok[0] || err != nil {
			t.Errorf("bypassed %v, %v", ok, err)
		}
		if ids, err := h.ScheduleCrashOfUnknownServers(ctx); len(ids) != 0 || err != nil {
			t.Errorf("crashes %v, %v", ids, err)
		}
	})
}
