//go:build interop

package cluster

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// timelineReads reads from the replicas of real regions while the primary's
// process is stopped: a Get, many Gets, a scan, and one from a chosen replica.
func timelineReads(t *testing.T, c *peers.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client, err := hbase.Open(ctx, c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := client.Admin()
	if _, err := adm.SetBalancer(ctx, false); err != nil {
		t.Fatal(err)
	}
	const table, rows = "replicated", 60
	if err := adm.CreateTable(ctx, admin.NewTable(table, admin.NewFamily("f")).Set("REGION_REPLICATION", "3"), []byte("r020"), []byte("r040")); err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	var ops []hbase.Op
	var gets []*hbase.Get
	for i := range rows {
		row := fmt.Sprintf("r%03d", i)
		ops = append(ops, hbase.NewPut(row).Set("f", "q", []byte(row)))
		gets = append(gets, &hbase.Get{Row: []byte(row), Consistency: hbase.Timeline})
	}
	if err := tab.Batch(ctx, ops).Err(); err != nil {
		t.Fatal(err)
	}
	// Replicas that are opened after the flush have the files: nothing is
	// replicated to them otherwise.
	if err := adm.Flush(ctx, table); err != nil {
		t.Fatal(err)
	}
	if err := adm.DisableTable(ctx, table); err != nil {
		t.Fatal(err)
	}
	if err := adm.EnableTable(ctx, table); err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= 2; id++ {
		r, err := tab.Get(ctx, &hbase.Get{Row: []byte("r025"), Consistency: hbase.Timeline, ReplicaID: id})
		if err != nil || !r.Stale || string(r.Value("f", "q")) != "r025" {
			t.Fatalf("replica %d: %v, %v", id, r, err)
		}
	}
	// Stop a server that holds a primary, but not hbase:meta.
	list, err := adm.Regions(ctx, "hbase:meta")
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	meta := list[0].Server.Address()
	if list, err = adm.Regions(ctx, table); err != nil {
		t.Fatal(err)
	}
	victim := ""
	for _, r := range list {
		if r.Region.Replica == 0 && r.Server.Address() != meta {
			victim = r.Server.Address()
		}
	}
	if victim == "" { // all primaries are beside hbase:meta
		servers, err := adm.RegionServers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		to := servers[slices.IndexFunc(servers, func(s hbase.ServerName) bool { return s.Address() != meta })]
		first := list[slices.IndexFunc(list, func(r admin.RegionLocation) bool { return r.Region.Replica == 0 })]
		if err := adm.MoveRegion(ctx, first.Region.EncodedName(), to); err != nil {
			t.Fatal(err)
		}
		victim = to.Address()
	}
	c.Pause(c.ServerNumber(victim))
	defer c.Resume(c.ServerNumber(victim))
	stale := 0
	for _, g := range gets {
		began := time.Now()
		r, err := tab.Get(ctx, g)
		if err != nil || string(r.Value("f", "q")) != string(g.Row) {
			t.Fatalf("%s: %v, %v", g.Row, r, err)
		}
		if r.Stale {
			stale++
		}
		if d := time.Since(began); d > 20*time.Second { // a frozen server answers nobody for as long as it is frozen
			t.Errorf("%s took %v", g.Row, d)
		}
	}
	if stale == 0 {
		t.Error("no replica has answered")
	}
	t.Logf("%d of %d Gets answered by replicas, %+v", stale, rows, client.ReadStats())
	began := time.Now()
	many, err := tab.MultiGet(ctx, gets)
	if err != nil {
		t.Fatal(err)
	}
	stale = 0
	for i, r := range many {
		if string(r.Value("f", "q")) != string(gets[i].Row) {
			t.Errorf("row %d: %v", i, r)
		}
		if r.Stale {
			stale++
		}
	}
	t.Logf("MultiGet: %d stale, %v", stale, time.Since(began))
	n, stale := 0, 0
	began = time.Now()
	for r, err := range tab.Scan(ctx, &hbase.Scan{Consistency: hbase.Timeline, Caching: 7}).Rows() {
		if err != nil {
			t.Fatal(err)
		}
		if string(r.Row) != fmt.Sprintf("r%03d", n) {
			t.Fatalf("row %d: %s", n, r.Row)
		}
		if r.Stale {
			stale++
		}
		n++
	}
	if n != rows || stale == 0 {
		t.Errorf("scan: %d rows, %d stale", n, stale)
	}
	t.Logf("scan: %d stale, %v", stale, time.Since(began))
}
