package minihbase_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// Clients of clusters with very many regions. The regions are generated; the
// clients do not know.

// rowOf is the first row of region i of a generated table.
func rowOf(i int) []byte { return fmt.Appendf(nil, "%08d", i) }

// probes counts the Gets that only ask whether a row is there: what clients
// that probe regions send.
func probes(c *minihbase.Cluster) (n int) {
	events, _ := c.Events().Query(minihbase.EventFilter{Method: "Get"}, 0, 0)
	for _, e := range events {
		if e.Detail == "exists" {
			n++
		}
	}
	return n
}

// A thousand callers of a client that knows nothing yet need a thousand regions
// of a cluster with 300,000: neighbours, as the keys of one hot range are.
func TestScaleColdStart(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{ControlPort: -1})
	tab := generated(t, c, client, minihbase.GeneratedTable{Name: "cold", Regions: 300_000})
	const callers = 1000
	for round, first := range []int{150_000, 299_000, 0} {
		// A process of its own each time: it has learned nothing about pages
		// yet. Its first reads of hbase:meta are held until everybody has come,
		// however slow the machine.
		client := open(t, c.Address(), hbase.WithGetsTogether(1))
		tab, err := client.Table("cold")
		if err != nil {
			t.Fatal(err)
		}
		before := count(c)
		began := time.Now()
		id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Table: "hbase:meta", Method: "Scan"}, Action: minihbase.Hold})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for client.RouteStats().Waiters < callers && time.Since(began) < 30*time.Second {
				time.Sleep(time.Millisecond)
			}
			if err := c.RemoveRule(id); err != nil {
				t.Error(err)
			}
		}()
		all(t, callers, func(ctx context.Context, i int) error {
			row := rowOf(first + i)
			r, err := tab.Get(ctx, hbase.NewGet(row))
			if err == nil && string(r.Value("f", "q")) != string(row) {
				err = fmt.Errorf("%s: %v", row, r)
			}
			return err
		})
		n := count(c).since(before)
		t.Logf("round %d: %d callers of as many cold neighbours: %d meta reads, %d calls, %d exceptions, %v", round, callers, n.meta, n.data, n.failed, time.Since(began).Round(time.Millisecond))
		if n.meta > 30 {
			t.Errorf("%d meta reads, want at most 30", n.meta)
		}
		// One or two more are calls of a machine so slow that they were sent again.
		if n.data < callers || n.data > callers+callers/100 || n.failed != 0 {
			t.Errorf("%d calls for %d callers, %d exceptions", n.data, callers, n.failed)
		}
	}
	// Regions that lie apart have to be looked up one by one.
	before := count(c)
	all(t, callers, func(ctx context.Context, i int) error {
		_, err := tab.Get(ctx, hbase.NewGet(rowOf(1001+i*148)))
		return err
	})
	n := count(c).since(before)
	t.Logf("%d callers of as many cold regions that lie apart: %d meta reads", callers, n.meta)
	if n.meta > callers || n.data < callers || n.data > callers+callers/100 {
		t.Errorf("%d meta reads and %d calls for %d callers", n.meta, n.data, callers)
	}
	if p := probes(c); p != 0 {
		t.Errorf("%d probing Gets", p)
	}
}

// latencies collects how long operations took.
type latencies struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *latencies) add(d time.Duration) {
	l.mu.Lock()
	l.all = append(l.all, d)
	l.mu.Unlock()
}

func (l *latencies) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.all) == 0 {
		return "no operations"
	}
	slices.Sort(l.all)
	return fmt.Sprintf("%d operations, p50 %v, p99 %v, p99.9 %v, longest %v", len(l.all), l.at(500), l.at(990), l.at(999), l.all[len(l.all)-1])
}

func (l *latencies) at(permille int) time.Duration {
	return l.all[min(len(l.all)*permille/1000, len(l.all)-1)].Round(10 * time.Microsecond)
}

// A table of 1,000 regions moves to another group of servers, region by region,
// each closed for a moment, while 64 workers use it with three seconds for each
// operation: none fails. A client that watches hbase:meta mostly knows before.
func TestScaleGroupMove(t *testing.T) {
	for _, watch := range []time.Duration{0, 250 * time.Millisecond} {
		t.Run(fmt.Sprintf("watch=%v", watch), func(t *testing.T) { groupMove(t, watch) })
	}
}

func groupMove(t *testing.T, watch time.Duration) {
	c, client := startCounted(t, minihbase.Options{Servers: 6, ControlPort: -1}, hbase.WithMetaWatch(watch))
	ctx := t.Context()
	const workers = 64
	regions, gap := 1000, 20*time.Millisecond
	if testing.Short() {
		regions = 300
	}
	if long() {
		gap = 200 * time.Millisecond
	}
	budget, bound := 3*time.Second, 2*time.Second
	switch {
	case slowly:
		budget, bound = 30*time.Second, 30*time.Second
	case long():
		bound = 500 * time.Millisecond // on a machine that does nothing else
	}
	tab := generated(t, c, client, minihbase.GeneratedTable{Name: "moving", Regions: regions, Rows: 2})
	if err := c.AddGroup(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if err := c.MoveToGroup(ctx, "g", c.RegionServers()[3:], nil); err != nil {
		t.Fatal(err)
	}
	generated(t, c, client, minihbase.GeneratedTable{Name: "around", Regions: 300_000})
	if err := tab.Warm(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	c.SetTransitionGap(gap)
	var (
		l      latencies
		stop   atomic.Bool
		failed atomic.Int64
		wg     sync.WaitGroup
	)
	for w := range workers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for !stop.Load() {
				row := rowOf(rnd.IntN(regions))
				ctx, cancel := context.WithTimeout(ctx, budget)
				began := time.Now()
				var err error
				if rnd.IntN(10) == 0 {
					err = tab.Put(ctx, hbase.NewPut(row).Set("f", "w", []byte("x")))
				} else {
					_, err = tab.Get(ctx, hbase.NewGet(row))
				}
				l.add(time.Since(began))
				cancel()
				if err != nil && failed.Add(1) < 5 {
					t.Errorf("%s: %v", row, err)
				}
				// Some 10,000 operations a second: a machine that is not full.
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	before, began := count(c), time.Now()
	err := c.MoveToGroup(ctx, "g", nil, []string{"moving"})
	took := time.Since(began)
	// A watch hears of the last of it.
	time.Sleep(max(100*time.Millisecond, 2*watch))
	stop.Store(true)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	n := count(c).since(before)
	t.Logf("%d regions moved in %v, each closed for %v: %d meta reads, %d of %d calls sent away", regions, took.Round(time.Millisecond), gap, n.meta, n.failed, n.data)
	t.Logf("%v; %d failed", &l, failed.Load())
	s := client.RouteStats()
	t.Logf("watch: %+v", s.Watch)
	if f := failed.Load(); f != 0 {
		t.Errorf("%d operations failed", f)
	}
	if d := l.at(999); d > bound {
		t.Errorf("p99.9 is %v", d)
	}
	if n.meta > uint64(regions) {
		t.Errorf("%d meta reads for %d regions", n.meta, regions)
	}
	on := 0
	for _, s := range c.Servers()[3:] {
		on += s.Regions
	}
	if on < regions {
		t.Errorf("%d regions are on the group's servers", on)
	}
}

// A server dies that held 3,000 regions in use: its regions are looked up in
// batches, and once.
func TestScaleServerDeath(t *testing.T) {
	c, client := startCounted(t, minihbase.Options{ControlPort: -1, RecoveryDelay: 200 * time.Millisecond})
	ctx := t.Context()
	const regions, used = 300_000, 9000
	tab := generated(t, c, client, minihbase.GeneratedTable{Name: "dead", Regions: regions})
	if err := tab.Warm(ctx, rowOf(0), rowOf(used)); err != nil {
		t.Fatal(err)
	}
	const workers = 64
	round := func() {
		all(t, workers, func(ctx context.Context, w int) error {
			for i := w; i < used; i += workers {
				if _, err := tab.Get(ctx, hbase.NewGet(rowOf(i))); err != nil {
					return fmt.Errorf("region %d: %w", i, err)
				}
			}
			return nil
		})
	}
	before := count(c)
	round()
	if n := count(c).since(before); n.meta != 0 || n.data < used || n.data > used+used/100 {
		t.Errorf("warm: %+v", n)
	}
	holder, err := c.FindServer("meta")
	if err != nil {
		t.Fatal(err)
	}
	victim := (holder + 1) % 3
	before = count(c)
	began := time.Now()
	if err := c.KillRegionServer(victim); err != nil {
		t.Fatal(err)
	}
	round()
	n := count(c).since(before)
	lost := used / 3
	t.Logf("a server with %d regions, %d of them in use, died: %d meta reads, %d exceptions, all read again after %v", regions/3, lost, n.meta, n.failed, time.Since(began).Round(time.Millisecond))
	// All of them are read ahead at once, and again, a batch at a time, as the
	// cluster opens them elsewhere; while nothing has been opened yet, so many
	// reads more as there are waits of 10 ms, doubled up to half a second.
	if most := uint64(4*((lost+199)/200) + 40); n.meta > most {
		t.Errorf("%d meta reads for %d lost regions, want at most %d", n.meta, lost, most)
	}
}

// All routes of a table of very many regions are learned at once and used.
func TestScaleWarm(t *testing.T) {
	regions := 100_000
	if long() {
		regions = 1_000_000
	}
	c, client := startCounted(t, minihbase.Options{ControlPort: -1})
	tab := generated(t, c, client, minihbase.GeneratedTable{Name: "warm", Regions: regions})
	heap := func() uint64 {
		// Twice: pools are emptied at the second.
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, had := count(c), heap()
	began := time.Now()
	if err := tab.Warm(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	n := count(c).since(before)
	per := float64(int64(heap())-int64(had)) / float64(regions)
	t.Logf("%d routes learned in %v with %d meta reads, %.0f bytes of heap each", regions, took.Round(time.Millisecond), n.meta, per)
	if most := uint64(regions/1000 + 5); n.meta > most {
		t.Errorf("%d meta reads, want at most %d", n.meta, most)
	}
	if per > 160 {
		t.Errorf("%.0f bytes of heap per route", per)
	}
	before = count(c)
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		row := rowOf(rnd.IntN(regions))
		if got := value(t, tab, string(row)); got != string(row) {
			t.Fatalf("%s: %q", row, got)
		}
	}
	if n := count(c).since(before); n.meta != 0 || n.data < 2000 || n.data > 2020 || n.failed != 0 {
		t.Errorf("2000 gets of random rows: %+v", n)
	}
}
