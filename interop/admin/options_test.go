package admin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

// TestOperationOptions: options of reads and mutations mean the same to all
// clusters (docs/operations.md lists them).
func TestOperationOptions(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		name := c.fresh("o")
		if err := c.adm.CreateTable(ctx, admin.NewTable(name, admin.NewFamily("f").Versions(5), admin.NewFamily("g").Versions(5))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.drop(t, name) })
		table, err := c.client.Table(name)
		if err != nil {
			t.Fatal(err)
		}
		put := hbase.NewPut("r")
		for _, q := range []string{"a", "b"} {
			for ts := int64(1); ts <= 3; ts++ {
				put.SetAt("f", q, ts, []byte(q)).SetAt("g", q, ts, []byte(q))
			}
		}
		put.Priority, put.ID, put.ClusterIDs, put.Durability = 50, "me", [][16]byte{{15: 1}}, hbase.AsyncWAL
		if err := table.Put(ctx, put); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.Flush(ctx, name); err != nil {
			t.Fatal(err)
		}
		text := func(res *hbase.Result) string {
			var out []string
			for _, cell := range res.Cells {
				out = append(out, fmt.Sprintf("%s:%s@%d", cell.Family, cell.Qualifier, cell.Timestamp))
			}
			return strings.Join(out, " ")
		}
		for _, tt := range []struct {
			get  hbase.Get
			want string
		}{
			{hbase.Get{MaxPerFamily: 1, OffsetPerFamily: 1}, "f:b@3 g:b@3"},
			{hbase.Get{FamilyTimeRange: map[string]hbase.TimeRange{"f": hbase.At(1), "g": {From: 2, To: 4}}, MaxVersions: hbase.AllVersions}, "f:a@1 f:b@1 g:a@3 g:a@2 g:b@3 g:b@2"},
			{hbase.Get{TimeRange: hbase.TimeRange{From: 1, To: 3}, Filter: filter.ColumnPrefix([]byte("b")), LoadOnDemand: new(true)}, "f:b@2 g:b@2"},
			{hbase.Get{Columns: []hbase.Column{{Family: []byte("g")}}, SkipBlockCache: true, Isolation: hbase.ReadUncommitted, Priority: 10, ID: "me", Attributes: map[string][]byte{"x": {1}}}, "g:a@3 g:b@3"},
		} {
			g := tt.get
			g.Row, g.QueryMetrics = []byte("r"), true
			res, err := table.Get(ctx, &g)
			if err != nil || text(res) != tt.want {
				t.Errorf("get %+v: %q, %v; want %q", tt.get, text(res), err, tt.want)
			} else if known := c.name == "2.6.4"; known != (res.BlockBytesScanned > 0) {
				t.Errorf("%d bytes of blocks for %s", res.BlockBytesScanned, tt.want)
			}
			s := &hbase.Scan{Columns: g.Columns, TimeRange: g.TimeRange, FamilyTimeRange: g.FamilyTimeRange, MaxVersions: g.MaxVersions, MaxPerFamily: g.MaxPerFamily, OffsetPerFamily: g.OffsetPerFamily,
				Filter: g.Filter, LoadOnDemand: g.LoadOnDemand, SkipBlockCache: g.SkipBlockCache, Isolation: g.Isolation, Priority: g.Priority, ID: g.ID, Attributes: g.Attributes, QueryMetrics: true}
			var rows []string
			for res, err := range table.Scan(ctx, s).Rows() {
				if err != nil {
					t.Fatal(err)
				}
				if known := c.name == "2.6.4"; known != (res.BlockBytesScanned > 0) {
					t.Errorf("%d bytes of blocks for a scan of %s", res.BlockBytesScanned, tt.want)
				}
				rows = append(rows, text(res))
			}
			if got := strings.Join(rows, "|"); got != tt.want {
				t.Errorf("scan %+v: %q, want %q", tt.get, got, tt.want)
			}
		}
		gets := []*hbase.Get{hbase.NewGet("r"), hbase.NewGet("s"), hbase.NewGet("r").Column("f", "x"), hbase.NewGet("r").Column("f", "b")}
		want := []bool{true, false, false, true}
		if got, err := table.MultiExists(ctx, gets); err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
		for i, g := range gets {
			g.ExistenceOnly = true
			if res, err := table.Get(ctx, g); err != nil || res.Exists != want[i] || len(res.Cells) > 0 {
				t.Errorf("%d: %+v, %v", i, res, err)
			}
		}
		short := hbase.NewPut("ttl").Set("f", "q", []byte("v"))
		short.TTL = time.Millisecond
		if err := table.Put(ctx, short); err != nil {
			t.Error(err)
		}
		c.eventually(t, "the end of a cell", func() bool {
			found, err := table.Exists(ctx, hbase.NewGet("ttl"))
			return err == nil && !found
		})
		cm := hbase.NewCheckAndMutate("r").IfEquals("f", "a", []byte("a")).In(hbase.At(2)).Then(hbase.NewPut("r").SetAt("f", "z", 1, []byte("z")))
		cm.QueryMetrics = true
		// 2.6.4 answers with the metrics, and counts nothing in them.
		if res, err := table.CheckAndMutate(ctx, cm); err != nil || !res.Applied {
			t.Errorf("check and mutate: %+v, %v", res, err)
		}
	})
}
