package hbase_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// TestMetaWatch: a client that follows hbase:meta knows of moves and splits
// before it meets the old servers.
func TestMetaWatch(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ctx := t.Context()
	var splits [][]byte
	for i := 1; i < 20; i++ {
		splits = append(splits, fmt.Appendf(nil, "r%03d", i*10))
	}
	if err := c.CreateTable(ctx, "t", []string{"f"}, splits...); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(ctx, c.Address(), hbase.WithMetaWatch(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	row := func(i int) []byte { return fmt.Appendf(nil, "r%03d", i) }
	for i := range 200 {
		if err := tab.Put(ctx, hbase.NewPut(row(i)).Set("f", "q", []byte("v"))); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the watch to begin", func() bool { return client.RouteStats().Watch.Mark > 0 })

	regions, err := c.Regions("t")
	if err != nil {
		t.Fatal(err)
	}
	servers := c.Servers()
	for i, r := range regions[:10] {
		to := i % len(servers)
		if servers[to].Name == r.Server {
			to = (to + 1) % len(servers)
		}
		if err := c.MoveRegion(ctx, r.Encoded, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Split(ctx, regions[15].Encoded, row(155)); err != nil {
		t.Fatal(err)
	}
	await(t, "the news", func() bool { return client.RouteStats().Watch.Published >= 12 })
	before := client.RouteStats()
	for i := range 200 {
		res, err := tab.Get(ctx, hbase.NewGet(row(i)))
		if err != nil || res.Empty() {
			t.Fatalf("row %d: %v, %v", i, res, err)
		}
	}
	after := client.RouteStats()
	if after.Hints != before.Hints || after.Rejected != before.Rejected || after.Misses != before.Misses {
		t.Errorf("calls met old servers: before %+v, after %+v", before, after)
	}
	// Nothing happens: polls read nothing.
	time.Sleep(2500 * time.Millisecond)
	before = client.RouteStats()
	await(t, "more polls", func() bool { return client.RouteStats().Watch.Polls >= before.Watch.Polls+5 })
	if after = client.RouteStats(); after.Watch.Rows != before.Watch.Rows {
		t.Errorf("idle polls read %d rows", after.Watch.Rows-before.Watch.Rows)
	}
}

// await waits for something that is going to happen.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
