package minihbase_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// What the client sends is counted by the cluster's event log, not by the
// client.

// counts are the calls of ClientService so far: those on hbase:meta, those on
// tables, and of these the ones that were answered with an exception.
type counts struct{ meta, data, failed uint64 }

func count(c *minihbase.Cluster) counts {
	var n counts
	for _, k := range c.Events().Counters() {
		switch {
		case k.Service != "ClientService":
		case k.Table == "hbase:meta":
			n.meta += k.Calls
		default:
			n.data += k.Calls
			if k.Outcome != "ok" {
				n.failed += k.Calls
			}
		}
	}
	return n
}

func (n counts) since(old counts) counts {
	return counts{n.meta - old.meta, n.data - old.data, n.failed - old.failed}
}

// table makes a table of one family "f" and gives the client's handle of it.
func table(t *testing.T, c *minihbase.Cluster, client *hbase.Client, name string, splits ...[]byte) *hbase.Table {
	t.Helper()
	if err := c.CreateTable(t.Context(), name, []string{"f"}, splits...); err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// all runs f for 0 to n-1 in as many goroutines and gives the first error.
func all(t *testing.T, n int, f func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	var once sync.Once
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			if err := f(ctx, i); err != nil {
				once.Do(func() { t.Errorf("caller %d: %v", i, err) })
			}
		})
	}
	close(start)
	wg.Wait()
}

// Ten thousand callers of a client that knows nothing yet need one region: one
// reads hbase:meta for all.
func TestCountColdHerd(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{ControlPort: -1})
	tab := table(t, c, client, "herd")
	before := count(c)
	const callers = 10_000
	all(t, callers, func(ctx context.Context, i int) error {
		_, err := tab.Get(ctx, hbase.NewGet(fmt.Appendf(nil, "row%d", i)))
		return err
	})
	n := count(c).since(before)
	t.Logf("%d callers: %d meta reads, %d calls, %d exceptions", callers, n.meta, n.data, n.failed)
	if n.meta < 1 || n.meta > 2 {
		t.Errorf("%d meta reads, want 1 (2 at most)", n.meta)
	}
	if n.data != callers+n.failed {
		t.Errorf("%d calls for %d callers, %d exceptions", n.data, callers, n.failed)
	}
}

// A region moves and its old server tells where to: one call more, no read of
// hbase:meta.
func TestCountMove(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{ControlPort: -1})
	tab := table(t, c, client, "moves")
	get := func() {
		t.Helper()
		if _, err := tab.Get(t.Context(), hbase.NewGet("row")); err != nil {
			t.Fatal(err)
		}
	}
	get()
	for range 5 {
		r, err := c.Locate("moves", []byte("row"))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.MoveRegion(t.Context(), r.Encoded, (r.Index+1)%3); err != nil {
			t.Fatal(err)
		}
		before := count(c)
		get()
		get()
		if n, want := count(c).since(before), (counts{meta: 0, data: 3, failed: 1}); n != want {
			t.Errorf("two gets after a move: %+v, want %+v", n, want)
		}
	}
}

// A region splits: who asks for either half is sent away once, and looks it up.
func TestCountSplit(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{ControlPort: -1})
	tab := table(t, c, client, "splits")
	get := func(row string) {
		t.Helper()
		if _, err := tab.Get(t.Context(), hbase.NewGet(row)); err != nil {
			t.Fatal(err)
		}
	}
	get("a")
	r, err := c.Locate("splits", []byte("m"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Split(t.Context(), r.Encoded, []byte("m")); err != nil {
		t.Fatal(err)
	}
	before := count(c)
	get("a")
	get("z")
	n := count(c).since(before)
	t.Logf("a split, a get of each half: %+v", n)
	// The parent's row is read again and found to be gone, then each half is
	// looked up; one call is sent away.
	if n.meta > 3 || n.data != 3 || n.failed != 1 {
		t.Errorf("%+v, want at most 3 meta reads and one call more", n)
	}
}

// A server dies with hundreds of regions in use: they are looked up in batches.
func TestCountDeadServer(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{ControlPort: -1})
	const regions = 1000
	var splits [][]byte
	for i := 1; i < regions; i++ {
		splits = append(splits, fmt.Appendf(nil, "%04d", i))
	}
	tab := table(t, c, client, "dead", splits...)
	get := func(ctx context.Context, i int) error {
		_, err := tab.Get(ctx, hbase.NewGet(fmt.Appendf(nil, "%04d", i)))
		return err
	}
	before := count(c)
	all(t, regions, get)
	n := count(c).since(before)
	t.Logf("%d cold regions: %d meta reads", regions, n.meta)
	if n.meta > 20 {
		t.Errorf("%d meta reads for %d regions, want a few pages", n.meta, regions)
	}

	holder, err := c.FindServer("meta")
	if err != nil {
		t.Fatal(err)
	}
	victim := (holder + 1) % 3
	lost := c.Servers()[victim].Regions
	if lost < 300 {
		t.Fatalf("the victim has only %d regions", lost)
	}
	before = count(c)
	began := time.Now()
	if err := c.KillRegionServer(victim); err != nil {
		t.Fatal(err)
	}
	all(t, regions, get)
	n = count(c).since(before)
	t.Logf("a server with %d regions died: %d meta reads, all %d regions read again after %v", lost, n.meta, regions, time.Since(began).Round(time.Millisecond))
	if most := uint64((lost+199)/200 + 2); n.meta > most {
		t.Errorf("%d meta reads for %d lost regions, want at most %d", n.meta, lost, most)
	}
}
