package hbase_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
)

func TestRegionLocator(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ctx := t.Context()
	var splits [][]byte
	for i := 1; i < 30; i++ {
		splits = append(splits, fmt.Appendf(nil, "r%02d", i))
	}
	if err := c.CreateTable(ctx, "t", []string{"f"}, splits...); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(ctx, c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	var next []byte
	n := 0
	for r, err := range tab.Regions(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Region.Start, next) || r.InTransition || r.Server.IsZero() || r.From != "meta" || r.OpenSeq < 0 {
			t.Errorf("region %d: %+v", n, r)
		}
		next = r.Region.End
		n++
	}
	if n != 30 || len(next) != 0 {
		t.Errorf("%d regions up to %q", n, next)
	}
	n = 0
	for r, err := range tab.RegionsBetween(ctx, []byte("r055"), []byte("r08")) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; string(r.Region.Start) < "r05" || string(r.Region.Start) >= "r08" {
			t.Errorf("%v does not meet the range", r.Region)
		}
	}
	if n != 3 {
		t.Errorf("%d regions in the range, want 3", n)
	}
	for range tab.Regions(ctx) {
		break
	}
	starts, ends, err := tab.StartEndKeys(ctx)
	if err != nil || len(starts) != 30 || len(ends) != 30 || string(starts[1]) != "r01" || string(ends[0]) != "r01" {
		t.Errorf("%q, %q, %v", starts, ends, err)
	}
	none, err := client.Table("none")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := none.StartEndKeys(ctx); !errors.Is(err, hbase.ErrTableNotFound) {
		t.Errorf("a table that is not there: %v", err)
	}

	// A region moves behind the client's back.
	at, err := tab.Locate(ctx, []byte("r10x"))
	if err != nil || string(at.Region.Start) != "r10" {
		t.Fatalf("%+v, %v", at, err)
	}
	region, err := c.Locate("t", []byte("r10x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.MoveRegion(ctx, region.Encoded, (region.Index+1)%len(c.Servers())); err != nil {
		t.Fatal(err)
	}
	if old, err := tab.Locate(ctx, []byte("r10x")); err != nil || old.Server != at.Server {
		t.Errorf("%+v, %v; want what is known", old, err)
	}
	now, err := tab.Relocate(ctx, []byte("r10x"))
	if err != nil || now.Server == at.Server || now.OpenSeq <= at.OpenSeq {
		t.Errorf("%+v, %v; want another server than %v", now, err, at.Server)
	}
	for _, row := range []string{"r20x", "r21x"} {
		region, err := c.Locate("t", []byte(row))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.MoveRegion(ctx, region.Encoded, (region.Index+1)%len(c.Servers())); err != nil {
			t.Fatal(err)
		}
	}
	if wrong, err := tab.RefreshRoutes(ctx); err != nil || wrong != 2 {
		t.Errorf("%d routes were wrong, %v; want 2", wrong, err)
	}
	if wrong, err := tab.RefreshRoutes(ctx); err != nil || wrong != 0 {
		t.Errorf("%d routes were wrong again, %v", wrong, err)
	}
	before := client.RouteStats()
	gone := client.ForgetServer(now.Server)
	if gone == 0 || client.ForgetServer(now.Server) != 0 {
		t.Errorf("%d routes forgotten", gone)
	}
	if again, err := tab.Locate(ctx, []byte("r10x")); err != nil || again.Server != now.Server {
		t.Errorf("%+v, %v", again, err)
	}
	if after := client.RouteStats(); after.Gets != before.Gets+1 {
		t.Errorf("%d reads of hbase:meta for one region, want 1", after.Gets-before.Gets)
	}
}
