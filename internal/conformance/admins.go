package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

func (s *suite) tables(t *testing.T) {
	tab := s.table(t, plain("f"), split("c", "a", "b")...)
	name := tab.Name().String()
	ctx, cancel := s.step(t)
	defer cancel()
	if rs := s.locations(t, tab); len(rs) != 4 || string(rs[1].Region.Start) != "a" || rs[1].Server.IsZero() {
		t.Errorf("regions: %v", rs)
	}
	if err := s.adm.CreateTable(ctx, admin.NewTable(name, plain("f")...)); !errors.Is(err, hbase.ErrTableExists) {
		t.Errorf("create again: %v, want ErrTableExists", err)
	}
	list := func(pattern string, system bool) []string {
		t.Helper()
		names, err := s.adm.ListTables(ctx, pattern, system)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, n := range names {
			out = append(out, n.String())
		}
		return out
	}
	if names := list("", false); !slices.Contains(names, name) || slices.Contains(names, "hbase:meta") {
		t.Errorf("list: %v", names)
	}
	if names := list(s.o.Prefix+"_.*", false); !slices.Contains(names, name) {
		t.Errorf("list by pattern: %v", names)
	}
	if names := list("nosuch.*", false); len(names) != 0 {
		t.Errorf("list by a pattern that matches nothing: %v", names)
	}
	if names := list("", true); !slices.Contains(names, "hbase:meta") {
		t.Errorf("list with system tables: %v", names)
	}
	state := func(want admin.TableState) {
		t.Helper()
		got, err := s.adm.TableState(ctx, name)
		if err != nil || got != want {
			t.Errorf("state %v, %v; want %v", got, err, want)
		}
	}
	state(admin.Enabled)
	put(t, tab, hbase.NewPut("a1").Set("f", "q", []byte("v")))
	if err := s.adm.EnableTable(ctx, name); !errors.Is(err, hbase.ErrTableNotDisabled) {
		t.Errorf("enable an enabled table: %v, want ErrTableNotDisabled", err)
	}
	if err := s.adm.DeleteTable(ctx, name); !errors.Is(err, hbase.ErrTableNotDisabled) {
		t.Errorf("delete an enabled table: %v, want ErrTableNotDisabled", err)
	}
	if err := s.adm.DisableTable(ctx, name); err != nil {
		t.Fatalf("disable: %v", err)
	}
	state(admin.Disabled)
	if err := s.adm.DisableTable(ctx, name); !errors.Is(err, hbase.ErrTableNotEnabled) {
		t.Errorf("disable a disabled table: %v, want ErrTableNotEnabled", err)
	}
	if err := s.adm.EnableTable(ctx, name); err != nil {
		t.Fatalf("enable: %v", err)
	}
	state(admin.Enabled)
	expect(t, "after disable and enable", get(t, tab, hbase.NewGet("a1")), "f:q=v")
	truncate := func(preserve bool, regions int) {
		t.Helper()
		put(t, tab, hbase.NewPut("a1").Set("f", "q", []byte("v")))
		if err := s.adm.DisableTable(ctx, name); err != nil {
			t.Fatalf("disable: %v", err)
		}
		if err := s.adm.TruncateTable(ctx, name, preserve); err != nil {
			t.Fatalf("truncate: %v", err)
		}
		state(admin.Enabled)
		if rs := collect(t, tab, nil); len(rs) != 0 {
			t.Errorf("%d rows after truncate", len(rs))
		}
		if rs := s.locations(t, tab); len(rs) != regions {
			t.Errorf("%d regions after truncate (preserve %v), want %d", len(rs), preserve, regions)
		}
	}
	truncate(true, 4)
	truncate(false, 1)
	seen := 0
	watch := s.adm.OnProgress(func(p admin.Progress) { seen++ })
	if err := watch.DisableTable(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := watch.DeleteTable(ctx, name); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.adm.TableExists(ctx, name); ok || err != nil {
		t.Errorf("exists after delete: %v, %v", ok, err)
	}
	if _, err := s.adm.TableState(ctx, name); !errors.Is(err, hbase.ErrTableNotFound) {
		t.Errorf("state of a deleted table: %v, want ErrTableNotFound", err)
	}
	// The name is free again, and nothing of the old data or routes remains.
	if err := s.adm.CreateTable(ctx, admin.NewTable(name, plain("f")...)); err != nil {
		t.Fatalf("create again: %v", err)
	}
	expect(t, "a new table of an old name", get(t, tab, hbase.NewGet("a1")), "")
	put(t, tab, hbase.NewPut("a1").Set("f", "q", []byte("again")))
}

func (s *suite) schema(t *testing.T) {
	tab := s.table(t, []*admin.FamilyDescriptor{admin.NewFamily("f").Versions(3).Bloom("ROWCOL").Set("MIN_VERSIONS", "1"), admin.NewFamily("g")})
	name := tab.Name().String()
	ctx, cancel := s.step(t)
	defer cancel()
	describe := func() *admin.TableDescriptor {
		t.Helper()
		d, err := s.adm.Describe(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := describe()
	if d.Name != tab.Name() || len(d.Families) != 2 {
		t.Fatalf("described: %v", d)
	}
	for attr, want := range map[string]string{"VERSIONS": "3", "BLOOMFILTER": "ROWCOL", "MIN_VERSIONS": "1", "TTL": "2147483647", "COMPRESSION": "NONE", "BLOCKSIZE": "65536"} {
		if got := d.Family("f").Attribute(attr); got != want {
			t.Errorf("%s is %q, want %q", attr, got, want)
		}
	}
	if text := d.String(); !strings.Contains(text, "{NAME => 'f', VERSIONS => '3', KEEP_DELETED_CELLS => 'FALSE'") || !strings.Contains(text, "TTL => 'FOREVER'") {
		t.Errorf("printed: %s", text)
	}
	put(t, tab, hbase.NewPut("r").Set("f", "q", []byte("v")).Set("g", "q", []byte("w")))
	if err := s.adm.AddFamily(ctx, name, admin.NewFamily("h").Versions(2)); err != nil {
		t.Fatalf("add family: %v", err)
	}
	put(t, tab, hbase.NewPut("r").Set("h", "q", []byte("x")))
	expect(t, "three families", get(t, tab, hbase.NewGet("r")), "f:q=v g:q=w h:q=x")
	if err := s.adm.AddFamily(ctx, name, admin.NewFamily("h")); err == nil || hbase.Retriable(err) {
		t.Errorf("add it again: %v, want a final error", err)
	}
	if err := s.adm.DeleteFamily(ctx, name, "g"); err != nil {
		t.Fatalf("delete family: %v", err)
	}
	expect(t, "two families", get(t, tab, hbase.NewGet("r")), "f:q=v h:q=x")
	if err := tab.Put(ctx, hbase.NewPut("r").Set("g", "q", nil)); !errors.Is(err, hbase.ErrNoSuchFamily) {
		t.Errorf("put into a deleted family: %v, want ErrNoSuchFamily", err)
	}
	if err := s.adm.ModifyFamily(ctx, name, admin.NewFamily("h").Versions(7)); err != nil {
		t.Fatalf("modify family: %v", err)
	}
	if got := describe().Family("h").Attribute("VERSIONS"); got != "7" {
		t.Errorf("VERSIONS of h is %s, want 7", got)
	}
	d = describe().Clone()
	d.Set("MAX_FILESIZE", "1073741824").Family("f").Versions(9)
	if err := s.adm.ModifyTable(ctx, d); err != nil {
		t.Fatalf("modify table: %v", err)
	}
	d = describe()
	if d.Attributes["MAX_FILESIZE"] != "1073741824" || d.Family("f").Attribute("VERSIONS") != "9" || d.Family("h") == nil {
		t.Errorf("after modify: %v", d)
	}
	all, err := s.adm.DescribeAll(ctx, name, false)
	if err != nil || len(all) != 1 || all[0].Name != tab.Name() {
		t.Errorf("describe all: %v, %v", all, err)
	}
	if _, err := s.adm.Describe(ctx, s.o.Prefix+"_nosuch"); !errors.Is(err, hbase.ErrTableNotFound) {
		t.Errorf("describe nothing: %v, want ErrTableNotFound", err)
	}
}

func (s *suite) namespaces(t *testing.T) {
	ctx, cancel := s.step(t)
	defer cancel()
	ns := s.o.Prefix + "_ns"
	table := ns + ":t"
	s.drop(t, table)
	if err := s.adm.DeleteNamespace(ctx, ns); err != nil && !errors.Is(err, hbase.ErrNamespaceNotFound) {
		t.Fatalf("left over: %v", err)
	}
	if err := s.adm.CreateTable(ctx, admin.NewTable(table, plain("f")...)); !errors.Is(err, hbase.ErrNamespaceNotFound) {
		t.Errorf("table in no namespace: %v, want ErrNamespaceNotFound", err)
	}
	if err := s.adm.CreateNamespace(ctx, admin.Namespace{Name: ns, Configuration: map[string]string{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	if err := s.adm.CreateNamespace(ctx, admin.Namespace{Name: ns}); !errors.Is(err, hbase.ErrNamespaceExists) {
		t.Errorf("create again: %v, want ErrNamespaceExists", err)
	}
	if n, err := s.adm.DescribeNamespace(ctx, ns); err != nil || n.Name != ns || n.Configuration["k"] != "v" {
		t.Errorf("described: %+v, %v", n, err)
	}
	all, err := s.adm.ListNamespaces(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range all {
		names = append(names, n.Name)
	}
	for _, want := range []string{"default", "hbase", ns} {
		if !slices.Contains(names, want) {
			t.Errorf("namespace %s is missing in %v", want, names)
		}
	}
	if err := s.adm.CreateTable(ctx, admin.NewTable(table, plain("f")...)); err != nil {
		t.Fatal(err)
	}
	tab, err := s.client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	put(t, tab, hbase.NewPut("r").Set("f", "q", []byte("v")))
	expect(t, "in the namespace", get(t, tab, hbase.NewGet("r")), "f:q=v")
	if ts, err := s.adm.NamespaceTables(ctx, ns); err != nil || len(ts) != 1 || ts[0].String() != table {
		t.Errorf("tables: %v, %v", ts, err)
	}
	if err := s.adm.DeleteNamespace(ctx, ns); !errors.Is(err, hbase.ErrConstraint) {
		t.Errorf("delete with a table in it: %v, want ErrConstraint", err)
	}
	if err := s.adm.ModifyNamespace(ctx, admin.Namespace{Name: ns, Configuration: map[string]string{"k": "w"}}); err != nil {
		t.Errorf("modify: %v", err)
	}
	if n, err := s.adm.DescribeNamespace(ctx, ns); err != nil || n.Configuration["k"] != "w" {
		t.Errorf("after modify: %+v, %v", n, err)
	}
	s.drop(t, table)
	if err := s.adm.DeleteNamespace(ctx, ns); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := s.adm.DescribeNamespace(ctx, ns); !errors.Is(err, hbase.ErrNamespaceNotFound) {
		t.Errorf("describe a deleted one: %v, want ErrNamespaceNotFound", err)
	}
}

func (s *suite) regions(t *testing.T) {
	tab := s.table(t, plain("f"), split("m")...)
	name := tab.Name().String()
	for i := range 26 {
		put(t, tab, hbase.NewPut(fmt.Sprintf("%c", 'a'+i)).Set("f", "q", fmt.Append(nil, i)))
	}
	ctx, cancel := s.step(t)
	defer cancel()
	count := func(what string) {
		t.Helper()
		if n := len(collect(t, tab, nil)); n != 26 {
			t.Errorf("%s: %d rows, want 26", what, n)
		}
	}
	loc, err := s.adm.Locate(ctx, name, []byte("p"))
	if err != nil || string(loc.Region.Start) != "m" || loc.Server.IsZero() {
		t.Fatalf("locate: %+v, %v", loc, err)
	}
	for _, id := range []string{loc.Region.EncodedName(), string(loc.Region.Name())} {
		found, err := s.adm.FindRegion(ctx, id)
		if err != nil || found.Region.EncodedName() != loc.Region.EncodedName() || found.Server != loc.Server {
			t.Errorf("find %s: %+v, %v", id, found, err)
		}
	}
	dest := s.otherServer(t, loc.Server)
	if err := s.adm.MoveRegion(ctx, loc.Region.EncodedName(), dest); err != nil {
		t.Fatalf("move: %v", err)
	}
	if now := s.locations(t, tab)[1]; now.Server != dest || now.OpenSeq <= loc.OpenSeq {
		t.Errorf("after the move: %+v, want %v", now, dest)
	}
	count("after the move")
	// Without a destination the master chooses.
	if err := s.adm.MoveRegion(ctx, string(loc.Region.Name()), hbase.ServerName{}); err != nil {
		t.Errorf("move anywhere: %v", err)
	}
	count("after the second move")
	if err := s.adm.MoveRegion(ctx, "0123456789abcdef0123456789abcdef", hbase.ServerName{}); !errors.Is(err, hbase.ErrUnknownRegion) {
		t.Errorf("move nothing: %v, want ErrUnknownRegion", err)
	}

	if err := s.adm.SplitRegion(ctx, loc.Region.EncodedName(), []byte("t")); err != nil {
		t.Fatalf("split: %v", err)
	}
	rs := s.locations(t, tab)
	if len(rs) != 3 || string(rs[2].Region.Start) != "t" {
		t.Errorf("after the split: %v", rs)
	}
	count("after the split")
	put(t, tab, hbase.NewPut("t").Set("f", "q", []byte("split")))
	if err := s.adm.SplitTable(ctx, name, []byte("t")); !errors.Is(err, hbase.ErrInvalid) {
		t.Errorf("split where a region starts: %v, want ErrInvalid", err)
	}
	// Regions that were never split can be merged at once: the first two came
	// from the table's creation... the second is a daughter, which HBase
	// refuses to merge while it refers to its parent's files, so merge those of
	// a table of their own.
	two := s.table(t, plain("f"), split("g", "n")...)
	for i := range 26 {
		put(t, two, hbase.NewPut(fmt.Sprintf("%c", 'a'+i)).Set("f", "q", fmt.Append(nil, i)))
	}
	old := s.locations(t, two)
	if err := s.adm.MergeRegions(ctx, []string{old[0].Region.EncodedName(), old[2].Region.EncodedName()}, false); !errors.Is(err, hbase.ErrConstraint) {
		t.Errorf("merge regions that are not neighbours: %v, want ErrConstraint", err)
	}
	if err := s.adm.MergeRegions(ctx, []string{old[0].Region.EncodedName(), old[1].Region.EncodedName()}, false); err != nil {
		t.Fatalf("merge: %v", err)
	}
	if rs := s.locations(t, two); len(rs) != 2 || string(rs[1].Region.Start) != "n" {
		t.Errorf("after the merge: %v", rs)
	}
	if n := len(collect(t, two, nil)); n != 26 {
		t.Errorf("after the merge: %d rows, want 26", n)
	}
	if n := len(collect(t, two, &hbase.Scan{Reversed: true})); n != 26 {
		t.Errorf("after the merge, reversed: %d rows, want 26", n)
	}

	for what, f := range map[string]func() error{
		"flush":         func() error { return s.adm.Flush(ctx, name) },
		"compact":       func() error { return s.adm.Compact(ctx, name, "f") },
		"major compact": func() error { return s.adm.MajorCompact(ctx, name, "") },
	} {
		if err := f(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	s.until(t, "compactions end", func(ctx context.Context) (bool, error) {
		st, err := s.adm.CompactionState(ctx, name)
		return st == admin.NotCompacting, err
	})
	count("after flush and compaction")

	// Close a region and open it again.
	first := s.locations(t, tab)[0]
	if err := s.adm.UnassignRegion(ctx, first.Region.EncodedName()); err != nil {
		t.Fatalf("unassign: %v", err)
	}
	if err := s.adm.AssignRegion(ctx, first.Region.EncodedName()); err != nil {
		t.Fatalf("assign: %v", err)
	}
	count("after unassign and assign")
}

func (s *suite) cluster(t *testing.T) {
	tab := s.table(t, plain("f"), split("m")...)
	ctx, cancel := s.step(t)
	defer cancel()
	servers, err := s.adm.RegionServers(ctx)
	if err != nil || len(servers) < 2 {
		t.Fatalf("region servers: %v, %v", servers, err)
	}
	st, err := s.adm.ClusterStatus(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if st.Version == "" || st.ClusterID == "" || st.Master.IsZero() || len(st.Live) != len(servers) || st.BalancerOn == nil {
		t.Errorf("status: %+v", st)
	}
	for i, l := range st.Live {
		if l.Server != servers[i] {
			t.Errorf("live server %d is %v, want %v", i, l.Server, servers[i])
		}
	}
	if !slices.ContainsFunc(st.Tables, func(r admin.TableRegions) bool { return r.Table == tab.Name() && r.Open == 2 }) {
		t.Errorf("the table's regions are not counted: %v", st.Tables)
	}
	loc := s.locations(t, tab)[0]
	rs, err := s.adm.ServerRegions(ctx, loc.Server)
	if err != nil || !slices.ContainsFunc(rs, func(r hbase.Region) bool { return r.EncodedName() == loc.Region.EncodedName() }) {
		t.Errorf("regions of %v: %v, %v", loc.Server, rs, err)
	}
	was, err := s.adm.SetBalancer(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	if on, err := s.adm.BalancerEnabled(ctx); err != nil || on {
		t.Errorf("balancer after switching it off: %v, %v", on, err)
	}
	if ran, err := s.adm.Balance(ctx); err != nil || ran {
		t.Errorf("balance while off: %v, %v", ran, err)
	}
	if prev, err := s.adm.SetBalancer(ctx, true); err != nil || prev {
		t.Errorf("switching on: was %v, %v", prev, err)
	}
	if _, err := s.adm.Balance(ctx); err != nil {
		t.Errorf("balance: %v", err)
	}
	if _, err := s.adm.SetBalancer(ctx, was); err != nil {
		t.Error(err)
	}
	for what, f := range map[string]func(context.Context, bool) (bool, error){"splits": s.adm.SetSplits, "merges": s.adm.SetMerges} {
		if prev, err := f(ctx, false); err != nil || !prev {
			t.Errorf("%s off: was %v, %v", what, prev, err)
		}
		if prev, err := f(ctx, true); err != nil || prev {
			t.Errorf("%s on: was %v, %v", what, prev, err)
		}
	}
}

// rsgroups needs a cluster with groups; one without says so.
func (s *suite) rsgroups(t *testing.T) {
	ctx, cancel := s.step(t)
	defer cancel()
	groups, err := s.adm.ListRSGroups(ctx)
	if errors.Is(err, hbase.ErrUnsupported) {
		t.Log("the cluster has no region server groups")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(groups, func(g admin.RSGroup) bool { return g.Name == admin.DefaultRSGroup }); i < 0 || len(groups[i].Servers) < 2 {
		t.Fatalf("groups: %+v", groups)
	}
	name := s.o.Prefix + "_group"
	tab := s.table(t, plain("f"), split("m")...)
	put(t, tab, hbase.NewPut("a").Set("f", "q", []byte("v")))
	table := tab.Name().String()
	cleanup := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), s.o.Patience)
		defer cancel()
		g, ok, err := s.adm.RSGroup(ctx, name)
		if err != nil || !ok {
			return
		}
		for _, m := range g.Tables {
			if err := s.adm.MoveTablesToRSGroup(ctx, admin.DefaultRSGroup, m.String()); err != nil {
				t.Error(err)
			}
		}
		if len(g.Servers) > 0 {
			if err := s.adm.MoveServersToRSGroup(ctx, admin.DefaultRSGroup, g.Servers...); err != nil {
				t.Error(err)
			}
		}
		if err := s.adm.RemoveRSGroup(ctx, name); err != nil {
			t.Error(err)
		}
	}
	cleanup()
	t.Cleanup(cleanup)
	if err := s.adm.AddRSGroup(ctx, name); err != nil {
		t.Fatalf("add: %v", err)
	}
	if err := s.adm.AddRSGroup(ctx, name); err == nil {
		t.Error("added twice")
	}
	if _, ok, err := s.adm.RSGroup(ctx, name+"x"); ok || err != nil {
		t.Errorf("a group that does not exist: %v, %v", ok, err)
	}
	// A server that does not carry hbase:meta, so that little moves.
	metaAt, err := s.adm.Locate(ctx, "hbase:meta", nil)
	if err != nil {
		t.Fatal(err)
	}
	server := s.otherServer(t, metaAt.Server).Address()
	if err := s.adm.MoveServersToRSGroup(ctx, name, server); err != nil {
		t.Fatalf("move a server: %v", err)
	}
	if g, ok, err := s.adm.RSGroupOfServer(ctx, server); err != nil || !ok || g.Name != name {
		t.Errorf("group of the server: %+v, %v, %v", g, ok, err)
	}
	if err := s.adm.RemoveRSGroup(ctx, name); err == nil {
		t.Error("a group with a server was removed")
	}
	if err := s.adm.MoveTablesToRSGroup(ctx, name, table); err != nil {
		t.Fatalf("move a table: %v", err)
	}
	if g, err := s.adm.RSGroupOfTable(ctx, table); err != nil || g.Name != name {
		t.Errorf("group of the table: %+v, %v", g, err)
	}
	s.until(t, "the regions follow", func(ctx context.Context) (bool, error) {
		rs, err := s.adm.Regions(ctx, table)
		for _, r := range rs {
			if r.Server.Address() != server {
				return false, err
			}
		}
		return true, err
	})
	expect(t, "in the group", get(t, tab, hbase.NewGet("a")), "f:q=v")
	if _, err := s.adm.BalanceRSGroup(ctx, name); err != nil {
		t.Errorf("balance: %v", err)
	}
	put(t, tab, hbase.NewPut("z").Set("f", "q", []byte("w")))
	if err := s.adm.MoveTablesToRSGroup(ctx, admin.DefaultRSGroup, table); err != nil {
		t.Fatalf("move the table back: %v", err)
	}
	s.until(t, "the regions go back", func(ctx context.Context) (bool, error) {
		rs, err := s.adm.Regions(ctx, table)
		for _, r := range rs {
			if r.Server.Address() == server {
				return false, err
			}
		}
		return true, err
	})
	expect(t, "back in default", get(t, tab, hbase.NewGet("z")), "f:q=w")
}

func (s *suite) errors(t *testing.T) {
	ctx, cancel := s.step(t)
	defer cancel()
	tab, err := s.client.Table(s.o.Prefix + "_nosuch")
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func() error{
		"get":       func() error { _, err := tab.Get(ctx, hbase.NewGet("r")); return err },
		"put":       func() error { return tab.Put(ctx, hbase.NewPut("r").Set("f", "q", nil)) },
		"increment": func() error { _, err := tab.IncrementColumn(ctx, []byte("r"), "f", "q", 1); return err },
		"batch":     func() error { return tab.Batch(ctx, []hbase.Op{hbase.NewGet("r")}).Err() },
		"scan":      func() error { _, err := tab.Scan(ctx, nil).Next(); return err },
		"disable":   func() error { return s.adm.DisableTable(ctx, tab.Name().String()) },
		"delete":    func() error { return s.adm.DeleteTable(ctx, tab.Name().String()) },
		"regions":   func() error { _, err := s.adm.Regions(ctx, tab.Name().String()); return err },
	} {
		err := f()
		if !errors.Is(err, hbase.ErrTableNotFound) {
			t.Errorf("%s of no table: %v, want ErrTableNotFound", what, err)
			continue
		}
		if !strings.Contains(err.Error(), tab.Name().String()) {
			t.Errorf("%s: the error does not name the table: %v", what, err)
		}
		if hbase.Retriable(err) || !hbase.SafeToRetry(err) {
			t.Errorf("%s: retriable %v, safe %v; want false, true", what, hbase.Retriable(err), hbase.SafeToRetry(err))
		}
	}

	here := s.table(t, plain("f"))
	for what, f := range map[string]func() error{
		"get":    func() error { _, err := here.Get(ctx, hbase.NewGet("r").Family("x")); return err },
		"put":    func() error { return here.Put(ctx, hbase.NewPut("r").Set("x", "q", nil)) },
		"delete": func() error { return here.Delete(ctx, hbase.NewDelete("r").Family("x")) },
		"check": func() error {
			_, err := here.CheckAndMutate(ctx, hbase.NewCheckAndMutate("r").IfNotExists("x", "q").Then(hbase.NewPut("r").Set("f", "q", nil)))
			return err
		},
	} {
		err := f()
		var remote *hbase.RemoteError
		if !errors.Is(err, hbase.ErrNoSuchFamily) || !errors.As(err, &remote) || hbase.Retriable(err) {
			t.Errorf("%s of an unknown family: %v, want ErrNoSuchFamily", what, err)
		}
	}
	if err := s.adm.DisableTable(ctx, here.Name().String()); err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]func() error{
		"get":  func() error { _, err := here.Get(ctx, hbase.NewGet("r")); return err },
		"scan": func() error { _, err := here.Scan(ctx, nil).Next(); return err },
	} {
		if err := f(); !errors.Is(err, hbase.ErrTableNotEnabled) {
			t.Errorf("%s of a disabled table: %v, want ErrTableNotEnabled", what, err)
		}
	}

	c, err := hbase.Open(ctx, s.addr)
	if err != nil {
		t.Fatal(err)
	}
	other, err := c.Table(here.Name().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := other.Get(ctx, hbase.NewGet("r")); !errors.Is(err, hbase.ErrClosed) {
		t.Errorf("get on a closed client: %v, want ErrClosed", err)
	}
	if _, err := other.Scan(ctx, nil).Next(); !errors.Is(err, hbase.ErrClosed) {
		t.Errorf("scan on a closed client: %v, want ErrClosed", err)
	}
	if err := c.Admin().Flush(ctx, "t"); !errors.Is(err, hbase.ErrClosed) {
		t.Errorf("admin on a closed client: %v, want ErrClosed", err)
	}
}
