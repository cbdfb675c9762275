package hbase_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

func text(res *hbase.Result) string {
	var out []string
	if res != nil {
		for _, c := range res.Cells {
			out = append(out, fmt.Sprintf("%s:%s@%d=%s", c.Family, c.Qualifier, c.Timestamp, c.Value))
		}
	}
	return strings.Join(out, " ")
}

// TestReadOptions: what each option of a Get, and of a Scan where it has the
// same, makes of one row.
func TestReadOptions(t *testing.T) {
	table := optionTable(t)
	put := hbase.NewPut("r")
	for _, q := range []string{"a", "b", "c"} {
		for ts := int64(1); ts <= 3; ts++ {
			put.SetAt("f", q, ts, []byte(q))
			put.SetAt("g", q, ts, []byte(q))
		}
	}
	if err := table.Put(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		get  hbase.Get
		want string
	}{
		{"columns", hbase.Get{Columns: []hbase.Column{{Family: []byte("f"), Qualifiers: [][]byte{[]byte("a")}}, {Family: []byte("g"), Qualifiers: [][]byte{[]byte("c")}}}}, "f:a@3=a g:c@3=c"},
		{"all versions", hbase.Get{Columns: []hbase.Column{{Family: []byte("f"), Qualifiers: [][]byte{[]byte("a")}}}, MaxVersions: hbase.AllVersions}, "f:a@3=a f:a@2=a f:a@1=a"},
		{"time range", hbase.Get{Columns: []hbase.Column{{Family: []byte("f")}}, TimeRange: hbase.TimeRange{From: 1, To: 3}}, "f:a@2=a f:b@2=b f:c@2=c"},
		{"one timestamp", hbase.Get{Columns: []hbase.Column{{Family: []byte("f"), Qualifiers: [][]byte{[]byte("b")}}}, TimeRange: hbase.At(1)}, "f:b@1=b"},
		{"family range", hbase.Get{FamilyTimeRange: map[string]hbase.TimeRange{"f": hbase.At(1), "g": hbase.At(2)}, MaxPerFamily: 1}, "f:a@1=a g:a@2=a"},
		{"max and offset", hbase.Get{MaxPerFamily: 1, OffsetPerFamily: 1}, "f:b@3=b g:b@3=b"},
		{"filter", hbase.Get{Filter: filter.ColumnPrefix([]byte("c"))}, "f:c@3=c g:c@3=c"},
		{"on demand, no cache, uncommitted, priority, id", hbase.Get{
			Columns: []hbase.Column{{Family: []byte("f"), Qualifiers: [][]byte{[]byte("a")}}}, LoadOnDemand: new(true), SkipBlockCache: true,
			Isolation: hbase.ReadUncommitted, Priority: 50, ID: "me", Attributes: map[string][]byte{"x": {1}},
			Authorizations: []string{"A"}, ACL: hbase.ACL{"u": admin.Read},
		}, "f:a@3=a"},
	} {
		g := tt.get
		g.Row = []byte("r")
		res, err := table.Get(t.Context(), &g)
		if err != nil || text(res) != tt.want {
			t.Errorf("get, %s: %q, %v; want %q", tt.name, text(res), err, tt.want)
		}
		s := &hbase.Scan{
			Columns: g.Columns, TimeRange: g.TimeRange, FamilyTimeRange: g.FamilyTimeRange, MaxVersions: g.MaxVersions, MaxPerFamily: g.MaxPerFamily,
			OffsetPerFamily: g.OffsetPerFamily, Filter: g.Filter, LoadOnDemand: g.LoadOnDemand, SkipBlockCache: g.SkipBlockCache, Isolation: g.Isolation,
			Priority: g.Priority, ID: g.ID, Attributes: g.Attributes, Authorizations: g.Authorizations, ACL: g.ACL,
		}
		var rows []string
		for res, err := range table.Scan(t.Context(), s).Rows() {
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, text(res))
		}
		if got := strings.Join(rows, "|"); got != tt.want {
			t.Errorf("scan, %s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestExistence(t *testing.T) {
	table := optionTable(t)
	if err := table.Put(t.Context(), hbase.NewPut("r").Set("f", "q", []byte("v"))); err != nil {
		t.Fatal(err)
	}
	gets := []*hbase.Get{hbase.NewGet("r"), hbase.NewGet("s"), hbase.NewGet("r").Column("f", "x"), hbase.NewGet("r").WithFilter(filter.ColumnPrefix([]byte("q")))}
	want := []bool{true, false, false, true}
	if got, err := table.MultiExists(t.Context(), gets); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for i, g := range gets {
		if g.ExistenceOnly {
			t.Error("the Get was changed")
		}
		g.ExistenceOnly = true
		if res, err := table.Get(t.Context(), g); err != nil || res.Exists != want[i] || len(res.Cells) != 0 {
			t.Errorf("%d: %+v, %v", i, res, err)
		}
		if got, err := table.Exists(t.Context(), g); err != nil || got != want[i] {
			t.Errorf("%d: %v, %v", i, got, err)
		}
	}
	if _, err := table.MultiExists(t.Context(), []*hbase.Get{nil}); !errors.Is(err, hbase.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
}

// TestMutationOptions: options of mutations that show in what is read
// afterwards, and those that the embedded cluster, like an HBase without the
// coprocessors for them, takes and does nothing about.
func TestMutationOptions(t *testing.T) {
	table := optionTable(t)
	ctx := t.Context()
	all := func(row string) string {
		t.Helper()
		res, err := table.Get(ctx, hbase.NewGet(row))
		if err != nil {
			t.Fatal(err)
		}
		return text(res)
	}
	secure := func(o *hbase.MutationOptions) {
		o.Visibility, o.ACL, o.Priority, o.ID = "(A|B)&!C", hbase.ACL{"bob": admin.Read | admin.Write}, 100, "me"
		o.ClusterIDs, o.Attributes = [][16]byte{{1}}, map[string][]byte{"x": {1}}
		o.Durability = hbase.SkipWAL
	}
	put := hbase.NewPut("p").SetAt("f", "q", 5, []byte("v"))
	secure(&put.MutationOptions)
	if err := table.Put(ctx, put); err != nil || all("p") != "f:q@5=v" {
		t.Errorf("put: %v, %s", err, all("p"))
	}
	short := hbase.NewPut("ttl").Set("f", "q", []byte("v"))
	short.TTL = time.Millisecond
	if err := table.Put(ctx, short); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(time.Minute); all("ttl") != "" && time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
	}
	if got := all("ttl"); got != "" {
		t.Errorf("a cell outlived its TTL: %s", got)
	}
	inc := hbase.NewIncrement("i").Add("f", "n", 3)
	secure(&inc.MutationOptions)
	if res, err := table.Increment(ctx, inc); err != nil || len(res.Cells) != 1 {
		t.Errorf("increment: %v, %v", res, err)
	}
	inc.NoResult, inc.TimeRange = true, hbase.TimeRange{From: 1, To: 2}
	if res, err := table.Increment(ctx, inc); err != nil || len(res.Cells) != 0 {
		t.Errorf("increment: %v, %v", res, err)
	}
	// Nothing lies in that time range, so the counter began anew.
	if res, err := table.Get(ctx, hbase.NewGet("i")); err != nil {
		t.Error(err)
	} else if n, _ := res.Int64("f", "n"); n != 3 {
		t.Errorf("the counter is %d", n)
	}
	app := hbase.NewAppend("a").Add("f", "q", []byte("x"))
	secure(&app.MutationOptions)
	for range 2 {
		if _, err := table.Append(ctx, app); err != nil {
			t.Error(err)
		}
	}
	if res, err := table.Get(ctx, hbase.NewGet("a")); err != nil || string(res.Value("f", "q")) != "xx" {
		t.Errorf("append: %v, %v", res, err)
	}
	del := hbase.NewDelete("p").ColumnUpTo("f", "q", 4)
	secure(&del.MutationOptions)
	if err := table.Delete(ctx, del); err != nil || all("p") != "f:q@5=v" {
		t.Errorf("delete of older cells: %v, %s", err, all("p"))
	}
	if err := table.Delete(ctx, hbase.NewDelete("p").UpTo(5)); err != nil || all("p") != "" {
		t.Errorf("delete: %v, %s", err, all("p"))
	}
	// Every kind of action under every kind of condition.
	for i, action := range []hbase.RowAction{
		hbase.NewPut("c").SetAt("f", "q", 1, []byte("v")), hbase.NewIncrement("c").Add("f", "n", 1), hbase.NewAppend("c").Add("f", "s", []byte("x")),
		hbase.NewRowMutations("c").Add(hbase.NewPut("c").SetAt("f", "z", 1, []byte("z"))), hbase.NewDelete("c").Column("f", "q"),
	} {
		for j, cm := range []*hbase.CheckAndMutate{
			hbase.NewCheckAndMutate("c").IfNotExists("g", "none"), hbase.NewCheckAndMutate("c").If("g", "none", hbase.Equal, nil),
			hbase.NewCheckAndMutate("c").IfEquals("g", "none", nil).In(hbase.TimeRange{From: 0, To: 9}),
		} {
			if res, err := table.CheckAndMutate(ctx, cm.Then(action)); err != nil || !res.Applied {
				t.Errorf("action %d, condition %d: %+v, %v", i, j, res, err)
			}
		}
		if res, err := table.CheckAndMutate(ctx, hbase.NewCheckAndMutate("c").IfFilter(filter.ColumnPrefix([]byte("none"))).Then(action)); err != nil || res.Applied {
			t.Errorf("action %d without its condition: %+v, %v", i, res, err)
		}
	}
	if res, err := table.Get(ctx, hbase.NewGet("c")); err != nil || res.Has("f", "q") || string(res.Value("f", "s")) != "xxx" || string(res.Value("f", "z")) != "z" {
		t.Errorf("%s, %v", text(res), err)
	}
}

func optionTable(t *testing.T) *hbase.Table {
	t.Helper()
	c := startCluster(t)
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.Admin().CreateTable(t.Context(), admin.NewTable("o", admin.NewFamily("f").Versions(5), admin.NewFamily("g").Versions(5))); err != nil {
		t.Fatal(err)
	}
	table, err := client.Table("o")
	if err != nil {
		t.Fatal(err)
	}
	return table
}
