package minihbase_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// generated makes a generated table and gives the client's handle of it.
func generated(t testing.TB, c *minihbase.Cluster, client *hbase.Client, g minihbase.GeneratedTable) *hbase.Table {
	t.Helper()
	began := time.Now()
	if err := c.GenerateTable(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d regions made in %v", g.Regions, time.Since(began))
	tab, err := client.Table(g.Name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func value(t testing.TB, tab *hbase.Table, row string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	r, err := tab.Get(ctx, hbase.NewGet(row))
	if err != nil {
		t.Fatalf("get %s: %v", row, err)
	}
	v := r.Value("f", "q")
	return string(v)
}

// rows scans [start, stop) and gives row=value.
func rows(t testing.TB, tab *hbase.Table, start, stop string) (out []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for r, err := range tab.Scan(ctx, hbase.NewScanRange(start, stop)).Rows() {
		if err != nil {
			t.Fatal(err)
		}
		v := r.Value("f", "q")
		out = append(out, string(r.Row)+"="+string(v))
	}
	return out
}

// Generated rows are read, written, and what was written stays, through moves,
// deaths, splits and merges.
func TestGeneratedTable(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{})
	ctx := t.Context()
	g := minihbase.GeneratedTable{Name: "gen", Regions: 3000, KeyFormat: "u%05d", Rows: 3}
	tab := generated(t, c, client, g)
	if err := c.GenerateTable(ctx, g); err == nil || !strings.Contains(err.Error(), "TableExists") {
		t.Errorf("made twice: %v", err)
	}
	for _, bad := range []minihbase.GeneratedTable{
		{Name: "x"}, {Name: "x", Regions: 1_000_001}, {Name: "x", Regions: 11, KeyFormat: "%01d"}, {Name: "x", Regions: 1, KeyFormat: "y"},
		{Name: "x", Regions: 1, Rows: 10_001}, {Name: "x", Regions: 1, Rows: -2}, {Name: "hbase:x", Regions: 1}, {Name: "no:x", Regions: 1},
	} {
		if err := c.GenerateTable(ctx, bad); err == nil {
			t.Errorf("%+v was made", bad)
		}
	}
	if got := value(t, tab, "u00000"); got != "u00000" {
		t.Errorf("the first row: %q", got)
	}
	if got := value(t, tab, "u02999-00002"); got != "u02999-00002" {
		t.Errorf("the last row: %q", got)
	}
	if got := value(t, tab, "u02999-00003"); got != "" {
		t.Errorf("a row that is not there: %q", got)
	}
	want := []string{"u00099-00002=u00099-00002", "u00100=u00100", "u00100-00001=u00100-00001", "u00100-00002=u00100-00002", "u00101=u00101"}
	if got := rows(t, tab, "u00099-00002", "u00101-"); !slices.Equal(got, want) {
		t.Errorf("scan: %q", got)
	}
	status := func() (sum int) {
		for _, s := range c.Servers() {
			if s.State == "running" {
				sum += s.Regions
			}
		}
		return sum
	}
	if n := status(); n != 3000+2 {
		t.Errorf("%d regions on the servers", n)
	}
	if s, err := client.Admin().ClusterStatus(ctx); err != nil || s.Regions() != 3000+2 {
		t.Errorf("the status counts %d regions, %v", s.Regions(), err)
	}
	// A write makes the region's rows real.
	if err := tab.Put(ctx, hbase.NewPut("u00100").Set("f", "q", []byte("new"))); err != nil {
		t.Fatal(err)
	}
	if err := tab.Delete(ctx, hbase.NewDelete("u00100-00001")); err != nil {
		t.Fatal(err)
	}
	if n, err := tab.Increment(ctx, hbase.NewIncrement("u00100x").Add("f", "q", 5)); err != nil {
		t.Fatal(n, err)
	}
	written := []string{"u00100=new", "u00100-00002=u00100-00002", "u00100x=\x00\x00\x00\x00\x00\x00\x00\x05"}
	check := func(what string) {
		t.Helper()
		if got := rows(t, tab, "u00100", "u00101"); !slices.Equal(got, written) {
			t.Errorf("%s: %q", what, got)
		}
		if got := rows(t, tab, "u00200", "u00201"); len(got) != 3 {
			t.Errorf("%s: untouched rows %q", what, got)
		}
	}
	check("after writes")
	// Moves, with and without a time in which the region is closed.
	for _, gap := range []time.Duration{0, 30 * time.Millisecond} {
		c.SetTransitionGap(gap)
		for _, row := range []string{"u00100", "u00200"} {
			r, err := c.Locate("gen", []byte(row))
			if err != nil {
				t.Fatal(err)
			}
			to := (r.Index + 1) % 3
			before := count(c)
			if err := c.MoveRegion(ctx, r.Encoded, to); err != nil {
				t.Fatal(err)
			}
			now, err := c.Locate("gen", []byte(row))
			if err != nil || now.Index != to || now.OpenSeq <= r.OpenSeq {
				t.Errorf("moved to %+v, %v", now, err)
			}
			check("after a move")
			if n := count(c).since(before); n.meta != 0 {
				t.Errorf("%d reads of hbase:meta after a move whose old server tells", n.meta)
			}
		}
	}
	c.SetTransitionGap(0)
	// A death.
	victim, err := c.FindServer("meta")
	if err != nil {
		t.Fatal(err)
	}
	victim = (victim + 1) % 3
	lost := c.Servers()[victim].Regions
	began := time.Now()
	if err := c.KillRegionServer(victim); err != nil {
		t.Fatal(err)
	}
	for status() != 3000+2 {
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("%d regions are open", status())
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Logf("%d regions open again after %v", lost, time.Since(began))
	check("after a death")
	if err := c.StartRegionServer(victim); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Balance(ctx); err != nil || b.Done < 900 {
		t.Errorf("balance: %+v, %v", b, err)
	}
	if n := c.Servers()[victim].Regions; n < 990 {
		t.Errorf("%d regions on the new server after balancing", n)
	}
	check("after balancing")
	// Splits and merges.
	r, err := c.Locate("gen", []byte("u00100"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Split(ctx, r.Encoded, []byte("u00100-")); err != nil {
		t.Fatal(err)
	}
	r, err = c.Locate("gen", []byte("u00200"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Split(ctx, r.Encoded, nil); err != nil {
		t.Fatal(err)
	}
	check("after a split")
	a, err := c.Locate("gen", []byte("u00199"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Locate("gen", []byte("u00200"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Merge(ctx, a.Encoded, b.Encoded); err != nil {
		t.Fatal(err)
	}
	check("after a merge")
	if got := rows(t, tab, "u00198-00002", "u00202"); len(got) != 10 {
		t.Errorf("around the merged region: %q", got)
	}
	rs, err := c.Regions("gen")
	if err != nil || len(rs) != 3000+2+2-2 { // two splits, each of which keeps its parent; a merge that takes one parent along
		t.Errorf("%d regions, %v", len(rs), err)
	}
	// Disabled and enabled.
	admin := client.Admin()
	if err := admin.DisableTable(ctx, "gen"); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() {
		if s.Regions > 2 {
			t.Errorf("server %d has %d regions of a disabled table", s.Index, s.Regions)
		}
	}
	if err := admin.EnableTable(ctx, "gen"); err != nil {
		t.Fatal(err)
	}
	check("after enabling")
	if err := admin.DisableTable(ctx, "gen"); err != nil {
		t.Fatal(err)
	}
	if err := admin.TruncateTable(ctx, "gen", true); err == nil || !strings.Contains(err.Error(), "unsupported") {
		t.Errorf("truncated: %v", err)
	}
	if err := admin.EnableTable(ctx, "gen"); err != nil {
		t.Fatal(err)
	}
	if err := c.DropTable(ctx, "gen"); err != nil {
		t.Fatal(err)
	}
	if n := status(); n != 2 {
		t.Errorf("%d regions are left", n)
	}
}

// A generated table is there after a restart, with what was written to it.
func TestGeneratedTableReopened(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 {
		c, client := startCounted(t, minihbase.Options{Dir: dir, ControlPort: -1})
		if i == 0 {
			tab := generated(t, c, client, minihbase.GeneratedTable{Name: "gen", Regions: 1000, Rows: 2, ValueSize: 3})
			if err := tab.Put(t.Context(), hbase.NewPut("00000007").Set("f", "q", []byte("x"))); err != nil {
				t.Fatal(err)
			}
		}
		tab, err := client.Table("gen")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"00000006-00001=000", "00000007=x", "00000007-00001=000", "00000008=000"}
		if got := rows(t, tab, "00000006-", "00000008-"); !slices.Equal(got, want) {
			t.Errorf("start %d: %q", i, got)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// All servers of a group take over a table, region by region; a client that
// had found some of it follows.
func TestGeneratedTableGroup(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{Servers: 4, ControlPort: -1})
	ctx := t.Context()
	tab := generated(t, c, client, minihbase.GeneratedTable{Name: "gen", Regions: 20_000})
	for i := range 100 {
		value(t, tab, fmt.Sprintf("%08d", i*200))
	}
	if err := c.AddGroup(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if err := c.MoveToGroup(ctx, "g", c.RegionServers()[2:], nil); err != nil {
		t.Fatal(err)
	}
	if n := c.Servers()[2].Regions + c.Servers()[3].Regions; n != 0 {
		t.Errorf("%d regions are on servers of another group", n)
	}
	began := time.Now()
	if err := c.MoveToGroup(ctx, "g", nil, []string{"gen"}); err != nil {
		t.Fatal(err)
	}
	t.Logf("20,000 regions moved in %v", time.Since(began))
	s := c.Servers()
	if s[2].Regions != 10_000 || s[3].Regions != 10_000 {
		t.Errorf("%d and %d regions on the group's servers", s[2].Regions, s[3].Regions)
	}
	before := count(c)
	for i := range 100 {
		row := fmt.Sprintf("%08d", i*200)
		if got := value(t, tab, row); got != row {
			t.Errorf("%s: %q", row, got)
		}
	}
	n := count(c).since(before)
	if n.meta != 0 || n.failed > 100 {
		t.Errorf("100 gets after the move: %+v", n)
	}
	if err := c.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if rs, err := c.Regions(""); err != nil || len(rs) != 2 {
		t.Errorf("after a reset: %d regions, %v", len(rs), err)
	}
}
