//go:build interop

package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

// metaWatch follows the changes of a real hbase:meta: moves and a split are
// known before a call meets the old server, idle polls bring nothing, secondary
// replicas are seen, and replicas of hbase:meta answer.
func metaWatch(t *testing.T, c *peers.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	open := func(opts ...hbase.Option) *hbase.Client {
		t.Helper()
		client, err := hbase.Open(ctx, c.Address(), opts...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		return client
	}
	until := func(what string, ok func() bool) time.Duration {
		t.Helper()
		began := time.Now()
		for !ok() {
			if time.Since(began) > time.Minute {
				t.Fatalf("waited in vain for %s", what)
			}
			time.Sleep(20 * time.Millisecond)
		}
		return time.Since(began)
	}
	adm := open().Admin()
	if _, err := adm.SetBalancer(ctx, false); err != nil {
		t.Fatal(err)
	}
	const table, regions = "watched", 40
	var splits [][]byte
	for i := 1; i < regions; i++ {
		splits = append(splits, fmt.Appendf(nil, "r%03d", i*10))
	}
	if err := adm.CreateTable(ctx, admin.NewTable(table, admin.NewFamily("f")).Set("REGION_REPLICATION", "2"), splits...); err != nil {
		t.Fatal(err)
	}

	client := open(hbase.WithMetaWatch(500 * time.Millisecond))
	tab, err := client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	row := func(i int) []byte { return fmt.Appendf(nil, "r%03d", i) }
	for i := range 10 * regions {
		if err := tab.Put(ctx, hbase.NewPut(row(i)).Set("f", "q", []byte("v"))); err != nil {
			t.Fatal(err)
		}
	}
	until("the watch to begin", func() bool { return client.RouteStats().Watch.Mark > 0 })
	begun := client.RouteStats().Watch
	t.Logf("a mark was found with %d reads, %d rows, %d bytes", begun.Reads, begun.Rows, begun.Bytes)

	at, err := tab.Locate(ctx, row(5))
	if err != nil || len(at.Replicas) != 1 || at.Replicas[0].ID != 1 || at.Replicas[0].Server == at.Server {
		t.Errorf("%+v, %v; want one replica on another server", at, err)
	}

	servers, err := adm.RegionServers(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := adm.Regions(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for _, l := range list[:20] {
		for _, s := range servers {
			if s != l.Server {
				if err := adm.MoveRegion(ctx, l.Region.EncodedName(), s); err != nil {
					t.Fatal(err)
				}
				moved++
				break
			}
		}
	}
	if err := adm.SplitRegion(ctx, list[30].Region.EncodedName(), row(305)); err != nil {
		t.Fatal(err)
	}
	took := until("the news", func() bool { return client.RouteStats().Watch.Published >= int64(moved+2) })
	s := client.RouteStats().Watch
	t.Logf("%d moves and a split: %d polls, %d rows, %d bytes (%.0f a row), %d published, %d disowned, known %v after the last",
		moved, s.Polls-begun.Polls, s.Rows-begun.Rows, s.Bytes-begun.Bytes, float64(s.Bytes-begun.Bytes)/float64(max(s.Rows-begun.Rows, 1)), s.Published, s.Disowned, took)
	before := client.RouteStats()
	for i := range 10 * regions {
		res, err := tab.Get(ctx, hbase.NewGet(row(i)))
		if err != nil || res.Empty() {
			t.Fatalf("row %d: %v, %v", i, res, err)
		}
	}
	after := client.RouteStats()
	if after.Hints != before.Hints || after.Rejected != before.Rejected || after.Misses != before.Misses {
		t.Errorf("calls met old servers: before %+v, after %+v", before, after)
	}
	time.Sleep(4 * time.Second)
	idle := client.RouteStats().Watch
	until("more polls", func() bool { return client.RouteStats().Watch.Polls >= idle.Polls+6 })
	if now := client.RouteStats().Watch; now.Rows != idle.Rows {
		t.Errorf("idle polls brought %d rows", now.Rows-idle.Rows)
	}

	// A replica of hbase:meta answers first questions.
	desc, err := adm.Describe(ctx, "hbase:meta")
	if err != nil {
		t.Fatal(err)
	}
	if err := adm.ModifyTable(ctx, desc.Clone().Set("REGION_REPLICATION", "2")); err != nil {
		t.Fatal(err)
	}
	replicated := open(hbase.WithMetaReplicas(true))
	rep, err := replicated.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	reads := until("a replica of hbase:meta to answer", func() bool {
		replicated.Table("hbase:meta")
		rep.ForgetRoutes()
		for i := 0; i < 10*regions; i += 37 {
			if _, err := rep.Get(ctx, hbase.NewGet(row(i))); err != nil {
				t.Fatal(err)
			}
		}
		if replicated.RouteStats().ReplicaReads > 0 {
			return true
		}
		replicated.Close()
		replicated = open(hbase.WithMetaReplicas(true))
		if rep, err = replicated.Table(table); err != nil {
			t.Fatal(err)
		}
		return false
	})
	rs := replicated.RouteStats()
	t.Logf("%d of %d reads of hbase:meta were a replica's, after %v", rs.ReplicaReads, rs.Scans+rs.Gets, reads)
}
