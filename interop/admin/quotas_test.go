package admin

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func listed(qs []admin.Quota) string {
	var out []string
	for _, q := range qs {
		out = append(out, q.QuotaTarget.String()+": "+q.String())
	}
	return strings.Join(out, "\n")
}

func TestQuotas(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t)
		limit := func(of, text string) admin.Throttle {
			th, err := admin.ParseThrottle(of, text)
			if err != nil {
				t.Fatal(err)
			}
			return th
		}
		cluster := limit("READ", "1CU/hour")
		cluster.Scope = admin.ClusterScope
		for _, set := range []struct {
			target admin.QuotaTarget
			t      admin.Throttle
		}{
			{admin.QuotaTarget{User: "q1"}, limit("", "10req/sec")},
			{admin.QuotaTarget{User: "q1"}, limit("WRITE", "10M/min")},
			{admin.QuotaTarget{User: "q1", Table: table}, cluster},
			{admin.QuotaTarget{User: "q1", Namespace: "default"}, limit("", "5K/day")},
			{admin.QuotaTarget{Table: table}, limit("", "7000req/sec")},
			{admin.QuotaTarget{Namespace: "qns"}, limit("", "900B/sec")},
			{admin.QuotaTarget{RegionServer: "all"}, limit("", "30000req/sec")},
		} {
			if err := c.adm.SetThrottle(ctx, set.target, set.t); err != nil {
				t.Fatalf("%v: %v", set.target, err)
			}
		}
		if err := c.adm.SetGlobalBypass(ctx, "q1", true); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.SetSpaceQuota(ctx, admin.QuotaTarget{Table: table}, admin.SpaceQuota{Limit: 1 << 30, Policy: admin.NoInserts}); err != nil {
			t.Fatal(err)
		}
		list := func(f admin.QuotaFilter, want ...string) {
			t.Helper()
			qs, err := c.adm.ListQuotas(ctx, f)
			if got := listed(qs); err != nil || got != strings.Join(want, "\n") {
				t.Errorf("%+v: %v\n got %s\nwant %s", f, err, got, strings.Join(want, "\n"))
			}
		}
		throttle := "TYPE => THROTTLE, THROTTLE_TYPE => "
		list(admin.QuotaFilter{},
			"NAMESPACE => qns: "+throttle+"REQUEST_SIZE, LIMIT => 900.00B/sec, SCOPE => MACHINE",
			"REGIONSERVER => all: "+throttle+"REQUEST_NUMBER, LIMIT => 30000req/sec, SCOPE => MACHINE",
			"TABLE => "+table+": "+throttle+"REQUEST_NUMBER, LIMIT => 7000req/sec, SCOPE => MACHINE",
			"TABLE => "+table+": TYPE => SPACE, TABLE => "+table+", LIMIT => 1.00G, VIOLATION_POLICY => NO_INSERTS",
			"USER => q1: "+throttle+"REQUEST_NUMBER, LIMIT => 10req/sec, SCOPE => MACHINE",
			"USER => q1: "+throttle+"WRITE_SIZE, LIMIT => 10.00M/min, SCOPE => MACHINE",
			"USER => q1: GLOBAL_BYPASS => true",
			"USER => q1, NAMESPACE => default: "+throttle+"REQUEST_SIZE, LIMIT => 5.00K/day, SCOPE => MACHINE",
			"USER => q1, TABLE => "+table+": "+throttle+"READ_CAPACITY_UNIT, LIMIT => 1CU/hour, SCOPE => CLUSTER")
		list(admin.QuotaFilter{User: "q.*", Table: ".*"}, "USER => q1, TABLE => "+table+": "+throttle+"READ_CAPACITY_UNIT, LIMIT => 1CU/hour, SCOPE => CLUSTER")
		list(admin.QuotaFilter{RegionServer: "a.."}, "REGIONSERVER => all: "+throttle+"REQUEST_NUMBER, LIMIT => 30000req/sec, SCOPE => MACHINE")
		list(admin.QuotaFilter{Namespace: "q"})

		// The switches. Before HBase 2.2 there was none.
		if on, err := c.adm.RPCThrottleEnabled(ctx); !on || err != nil {
			t.Errorf("throttles: %v, %v", on, err)
		}
		for _, on := range []bool{false, true} {
			if was, err := c.adm.SetRPCThrottle(ctx, on); was == on || err != nil {
				t.Errorf("throttles to %v: were %v, %v", on, was, err)
			}
			if was, err := c.adm.SetExceedThrottle(ctx, !on); was == !on || err != nil {
				t.Errorf("exceeding to %v: was %v, %v", !on, was, err)
			}
		}

		for _, target := range []admin.QuotaTarget{{User: "q1"}, {User: "q1", Table: table}, {User: "q1", Namespace: "default"}, {Namespace: "qns"}, {RegionServer: "all"}} {
			if err := c.adm.RemoveThrottle(ctx, target); err != nil {
				t.Errorf("%v: %v", target, err)
			}
		}
		if err := c.adm.RemoveThrottle(ctx, admin.QuotaTarget{Table: table}, admin.RequestNumber); err != nil {
			t.Error(err)
		}
		if _, err := c.adm.SetExceedThrottle(ctx, true); err == nil || !strings.Contains(err.Error(), "Please set region server quota") {
			t.Errorf("exceeding without a quota of region servers: %v", err)
		}
		list(admin.QuotaFilter{}, "TABLE => "+table+": TYPE => SPACE, TABLE => "+table+", LIMIT => 1.00G, VIOLATION_POLICY => NO_INSERTS", "USER => q1: GLOBAL_BYPASS => true")
		// Region servers report sizes, and the master reckons with them.
		c.eventually(t, "the table's space", func() bool {
			states, err := c.adm.SpaceQuotaTables(ctx)
			for of, st := range states {
				if of.String() == table && st.Limit == 1<<30 && !st.InViolation {
					return true
				}
			}
			return err != nil
		})
		tables, _, err := c.adm.SpaceQuotaStates(ctx)
		if len(tables) == 0 || err != nil {
			t.Errorf("states %v, %v", tables, err)
		}
		sizes, err := c.adm.SpaceQuotaTableSizes(ctx)
		if len(sizes) == 0 || err != nil {
			t.Errorf("sizes %v, %v", sizes, err)
		}
		if _, err := c.adm.RegionServerSpaceQuotas(ctx, c.server(t)); err != nil {
			t.Error(err)
		}
		if _, err := c.adm.SnapshotSizes(ctx); err != nil {
			t.Error(err)
		}
		if err := c.adm.SetGlobalBypass(ctx, "q1", false); err != nil {
			t.Error(err)
		}
		if err := c.adm.RemoveSpaceQuota(ctx, admin.QuotaTarget{Table: table}); err != nil {
			t.Error(err)
		}
		list(admin.QuotaFilter{})
		for _, bad := range []admin.QuotaTarget{{}, {Table: "a b"}, {Table: "t", Namespace: "n"}, {RegionServer: "host:1"}, {RegionServer: "all", User: "u"}} {
			if err := c.adm.SetThrottle(ctx, bad, limit("", "1req/sec")); !errors.Is(err, hbase.ErrInvalid) {
				t.Errorf("%+v: %v, want ErrInvalid", bad, err)
			}
		}
	})
}

// eventually waits for what servers do in their own time.
func (c *cluster) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Errorf("%s did not come to be", what)
}

func TestReplicationPeers(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t)
		// The other cluster's ZooKeeper must answer, no more.
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		peer := admin.NewPeer(u.Host + ":/elsewhere")
		if err := c.adm.AddPeer(ctx, "p1", peer, false); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.adm.RemovePeer(context.WithoutCancel(ctx), "p1") })
		if err := c.adm.AddPeer(ctx, "p1", peer, false); !errors.Is(err, hbase.ErrPeerExists) {
			t.Errorf("twice: %v", err)
		}
		some := admin.NewPeer(u.Host + ":/other")
		some.ReplicateAll, some.Serial, some.Bandwidth = false, true, 1000
		some.TableCFs = admin.TableCFs{table: {"f"}, "qns:u": nil}
		some.Namespaces = []string{"zns", "ans"}
		some.Configuration, some.Data = map[string]string{"k": "v"}, map[string][]byte{"d": {0, 1}}
		if err := c.adm.AddPeer(ctx, "p2", some, false); err != nil {
			t.Fatal(err)
		}
		list, err := c.adm.ListPeers(ctx, "p[12]")
		if err != nil || len(list) != 2 || list[0].ID != "p1" || list[0].Enabled || !list[0].Config.ReplicateAll {
			t.Fatalf("%+v, %v", list, err)
		}
		got := list[1].Config
		if got.TableCFs.String() != "default."+table+":f;qns.u" || !slices.Equal(got.Namespaces, []string{"ans", "zns"}) || got.ReplicateAll ||
			!got.Serial || got.Bandwidth != 1000 || got.Configuration["k"] != "v" || string(got.Data["d"]) != "\x00\x01" || got.ClusterKey != some.ClusterKey {
			t.Errorf("%+v", got)
		}
		if list, err := c.adm.ListPeers(ctx, "p"); len(list) != 0 || err != nil {
			t.Errorf("%v, %v", list, err)
		}
		if err := c.adm.UpdatePeer(ctx, "p2", func(p *admin.PeerConfig) error {
			p.Bandwidth = 0
			p.Namespaces = []string{"ans"}
			return p.TableCFs.Append(admin.TableCFs{table: {"g"}})
		}); err != nil {
			t.Error(err)
		}
		if p, err := c.adm.Peer(ctx, "p2"); err != nil || p.Bandwidth != 0 || p.TableCFs.String() != "default."+table+":f,g;qns.u" {
			t.Errorf("%+v, %v", p, err)
		}
		if err := c.adm.UpdatePeer(ctx, "p2", func(p *admin.PeerConfig) error { p.ReplicateAll = true; return nil }); err == nil || !strings.Contains(err.Error(), "Need clean namespaces") {
			t.Errorf("all and some: %v", err)
		}
		if err := c.adm.UpdatePeer(ctx, "p1", func(p *admin.PeerConfig) error { p.ClusterKey = u.Host + ":/changed"; return nil }); err == nil || !strings.Contains(err.Error(), "Changing the cluster key") {
			t.Errorf("another cluster: %v", err)
		}
		if err := c.adm.EnablePeer(ctx, "p1"); err != nil {
			t.Error(err)
		}
		if on, err := c.adm.PeerEnabled(ctx, "p1"); !on || err != nil {
			t.Errorf("enabled: %v, %v", on, err)
		}
		if err := c.adm.DisablePeer(ctx, "p1"); err != nil {
			t.Error(err)
		}
		if on, err := c.adm.PeerEnabled(ctx, "p1"); on || err != nil {
			t.Errorf("disabled: %v, %v", on, err)
		}
		for what, err := range map[string]error{
			"enable": c.adm.EnablePeer(ctx, "p9"), "remove": c.adm.RemovePeer(ctx, "p9"), "set": c.adm.SetPeer(ctx, "p9", peer),
			"get": second(c.adm.Peer(ctx, "p9")), "enabled": second(c.adm.PeerEnabled(ctx, "p9")),
		} {
			if !errors.Is(err, hbase.ErrPeerNotFound) {
				t.Errorf("%s of no peer: %v", what, err)
			}
		}
		if err := c.adm.RemovePeer(ctx, "p2"); err != nil {
			t.Error(err)
		}

		// Tables.
		if err := c.adm.EnableTableReplication(ctx, table); err != nil {
			t.Error(err)
		}
		if ts, err := c.adm.ListReplicatedTables(ctx, table); err != nil || len(ts) != 1 || len(ts[0].Families) != 1 || ts[0].Families[0] != (admin.ReplicatedFamily{Name: "f", Scope: 1}) {
			t.Errorf("%+v, %v", ts, err)
		}
		if err := c.adm.DisableTableReplication(ctx, table); err != nil {
			t.Error(err)
		}
		if ts, err := c.adm.ListReplicatedTables(ctx, ""); len(ts) != 0 || err != nil {
			t.Errorf("%+v, %v", ts, err)
		}

		// The switch came with 2.6.
		was, err := c.adm.SetPeerModification(ctx, false, true)
		if !c.v26() {
			if !errors.Is(err, hbase.ErrUnsupported) {
				t.Errorf("switch: %v, want ErrUnsupported", err)
			}
		} else {
			if !was || err != nil {
				t.Errorf("switch: was %v, %v", was, err)
			}
			if on, err := c.adm.PeerModificationEnabled(ctx); on || err != nil {
				t.Errorf("switched off: %v, %v", on, err)
			}
			if err := c.adm.EnablePeer(ctx, "p1"); err == nil || !strings.Contains(err.Error(), "eplication peer modification disabled") {
				t.Errorf("a change while switched off: %v", err)
			}
			if was, err := c.adm.SetPeerModification(ctx, true, false); was || err != nil {
				t.Errorf("switch: was %v, %v", was, err)
			}
		}
		if err := c.adm.TransitPeerSyncState(ctx, "p1", admin.SyncStandby); !errors.Is(err, hbase.ErrUnsupported) {
			t.Errorf("synchronous replication: %v, want ErrUnsupported", err)
		}
	})
}

// second drops the first of two results.
func second[T any](_ T, err error) error { return err }
