package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// read is get with the options of a spread read. The caller's row is changed
// once the call has returned, as callers may.
func read(ctx context.Context, core *Core, table meta.TableName, row string, edit func(*RegionCall)) (string, Answer, error) {
	var resp pb.GetResponse
	key := []byte(row)
	req := &pb.GetRequest{Get: &pb.Get{Row: key}}
	call := RegionCall{
		Table: table, Row: key, Method: "Get", Op: "get", Result: &resp,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			req.Region = specifier(region)
			return req, nil
		},
	}
	edit(&call)
	a, err := core.CallRegion(ctx, &call)
	clear(key)
	if err != nil {
		return "", a, err
	}
	list, err := wire.KeyValueCodec.DecodeCells(a.Cells, nil)
	if err != nil || len(list) != 1 || string(list[0].Row) != row || resp.Result == nil {
		return "", a, fmt.Errorf("%d cells, %w", len(list), err)
	}
	return string(list[0].Value), a, nil
}

func timeline(c *RegionCall) { c.Timeline = true }
func hedged(c *RegionCall)   { c.Hedge = true }

// replicated makes a table of one region on rs1 with replicas on rs2 and rs3;
// meta is on rs4.
func replicated(t *testing.T, edit ...func(*Config)) (*fakeCluster, *Core, meta.TableName) {
	c := newFake(t, 4)
	table := c.table("t")
	c.mu.Lock()
	c.meta = c.servers["rs4:16020"]
	c.mu.Unlock()
	r := c.region(table, "a")
	c.replicate(r, 1, c.server(2))
	c.replicate(r, 2, c.server(3))
	core := c.open(edit...)
	if _, _, err := get(t.Context(), core, table, "a"); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	c.forgetLog()
	return c, core, table
}

func TestTimelineGoesToThePrimaryFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		for range 10 {
			v, a, err := read(t.Context(), core, table, "a", timeline)
			if err != nil || v != "rs1:0" || a.Replica != nil {
				t.Fatalf("%q, replica %v, %v", v, a.Replica, err)
			}
		}
		if n := c.calls("Get", "t"); n != 10 {
			t.Errorf("%d Gets for 10 reads", n)
		}
	})
}

func TestTimelineAsksReplicasInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		// The primary takes 100 ms, the first replica 50, the second 5.
		slow := func(delays map[string]time.Duration) {
			c.hook(func(q *query) *reply {
				if q.method == "Get" {
					return &reply{apply: true, delay: delays[q.srv.name.Host]}
				}
				return nil
			})
		}
		slow(map[string]time.Duration{"rs1": 100 * time.Millisecond})
		began := time.Now()
		v, a, err := read(t.Context(), core, table, "a", timeline)
		if err != nil || a.Replica == nil || !strings.HasPrefix(v, "rs") || v == "rs1:0" {
			t.Fatalf("%q, %v", v, err)
		}
		if d := time.Since(began); d != 10*time.Millisecond {
			t.Errorf("answered after %v", d)
		}
		if n := c.calls("Get", "t"); n != 2 {
			t.Errorf("%d Gets", n)
		}
		// Both replicas slow: the second is asked another 10 ms later.
		slow(map[string]time.Duration{"rs1": 100 * time.Millisecond, "rs2": 50 * time.Millisecond, "rs3": 50 * time.Millisecond})
		c.forgetLog()
		began = time.Now()
		if _, a, err = read(t.Context(), core, table, "a", timeline); err != nil || a.Replica == nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 60*time.Millisecond {
			t.Errorf("answered after %v", d)
		}
		if n := c.calls("Get", "t"); n != 3 {
			t.Errorf("%d Gets", n)
		}
		// A strong read waits for the primary, whatever it takes.
		if v, a, err := get(t.Context(), core, table, "a"); err != nil || v != "rs1:0" || a.Replica != nil {
			t.Errorf("strong: %q, %v", v, err)
		}
	})
}

func TestTimelineWhilePrimaryIsOut(t *testing.T) {
	for _, tc := range []struct {
		name  string
		out   func(c *fakeCluster, table meta.TableName)
		first time.Duration // the first read may take
		later time.Duration
	}{
		{"dead", func(c *fakeCluster, _ meta.TableName) { c.server(1).kill() }, 0, 0},
		{"frozen", func(c *fakeCluster, _ meta.TableName) { c.server(1).freeze() }, 10 * time.Millisecond, 10 * time.Millisecond},
		{"in transition", func(c *fakeCluster, table meta.TableName) { c.region(table, "a").unassigned = true }, 10 * time.Millisecond, 0},
		{"busy", func(c *fakeCluster, _ meta.TableName) {
			c.hook(func(q *query) *reply {
				if q.srv.name.Host == "rs1" && q.method == "Get" {
					return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
				}
				return nil
			})
		}, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, core, table := replicated(t)
				tc.out(c, table)
				for i := range 20 {
					began := time.Now()
					v, a, err := read(t.Context(), core, table, "a", timeline)
					if err != nil || a.Replica == nil || v == "rs1:0" {
						t.Fatalf("read %d: %q, %v", i, v, err)
					}
					limit := tc.later
					if i == 0 {
						limit = tc.first
					}
					if d := time.Since(began); d > limit {
						t.Errorf("read %d took %v, want at most %v", i, d, limit)
					}
					time.Sleep(300 * time.Millisecond)
				}
				if tc.name == "frozen" {
					// Reads that give up soon owe nothing to see the silence by.
					if s := core.Servers().Lookup("rs1:16020"); s.Usable() {
						t.Errorf("the frozen server is %s", s.State())
					}
				}
				c.server(1).thaw()
				c.hook(nil)
			})
		})
	}
}

func TestTimelineFindsReplicasThatMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		c.server(1).freeze()
		r := c.region(table, "a")
		c.replicate(r, 1, c.server(4))
		c.replicate(r, 2, c.server(4))
		began := time.Now()
		v, _, err := read(t.Context(), core, table, "a", timeline)
		if err != nil || v != "rs4:0" {
			t.Fatalf("%q, %v", v, err)
		}
		if d := time.Since(began); d > 1100*time.Millisecond {
			t.Errorf("found after %v", d)
		}
		c.server(1).thaw()
	})
}

func TestTimelineErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		say := func(primary, others string) {
			c.hook(func(q *query) *reply {
				class := others
				if q.srv.name.Host == "rs1" {
					class = primary
				}
				switch {
				case q.method != "Get":
					return nil
				case class != "":
					return &reply{err: wire.NewRemoteError(class, "")}
				}
				return &reply{apply: true, delay: 100 * time.Millisecond}
			})
		}
		say("", wire.ClassNoSuchColumnFamily)
		// A final error of a replica is final.
		if _, _, err := read(t.Context(), core, table, "a", timeline); !errors.Is(err, &wire.RemoteError{Class: wire.ClassNoSuchColumnFamily}) {
			t.Errorf("got %v", err)
		}
		// Others leave it to the primary.
		say("", "java.io.IOException")
		if v, a, err := read(t.Context(), core, table, "a", timeline); err != nil || v != "rs1:0" || a.Replica != nil {
			t.Errorf("%q, %v", v, err)
		}
		// Nobody answers: the primary's story, when its time is up.
		say(wire.ClassCallQueueTooBig, "java.io.IOException")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, _, err := read(ctx, core, table, "a", timeline)
		var story *retry.Error
		if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &story) || d > time.Second+5*time.Millisecond {
			t.Errorf("%v after %v", err, d)
		}
		if n := c.calls("Get", "t"); n > 60 {
			t.Errorf("%d Gets", n)
		}
	})
}

func TestTimelineWithoutReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		if v, _, err := read(t.Context(), core, table, "a", timeline); err != nil || v != "rs1:0" {
			t.Fatalf("%q, %v", v, err)
		}
		c.hook(func(q *query) *reply {
			if q.method == "Get" {
				return &reply{apply: true, delay: time.Second}
			}
			return nil
		})
		synctest.Wait()
		c.forgetLog()
		if v, _, err := read(t.Context(), core, table, "a", timeline); err != nil || v != "rs1:0" {
			t.Fatalf("%q, %v", v, err)
		}
		if n := c.calls("Get", "t"); n != 1 {
			t.Errorf("%d Gets", n)
		}
		if n := c.metaReads(); n != 0 {
			t.Errorf("%d reads of meta", n)
		}
	})
}

func TestPinnedReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		pin := func(id int) func(*RegionCall) { return func(c *RegionCall) { c.Replica = id } }
		v, a, err := read(t.Context(), core, table, "a", pin(2))
		if err != nil || v != "rs3:0" || a.Replica == nil || a.Replica.ID != 2 {
			t.Fatalf("%q, %v", v, err)
		}
		// It moves, without anybody being told; its old server goes on.
		c.replicate(c.region(table, "a"), 2, c.server(4))
		began := time.Now()
		if v, _, err = read(t.Context(), core, table, "a", pin(2)); err != nil || v != "rs4:0" {
			t.Fatalf("%q, %v", v, err)
		}
		if d := time.Since(began); d > 1500*time.Millisecond {
			t.Errorf("found after %v", d)
		}
		// Its server dies, and another takes it over three seconds later.
		c.replicate(c.region(table, "a"), 2, c.server(3))
		if v, _, err = read(t.Context(), core, table, "a", pin(2)); err != nil || v != "rs3:0" {
			t.Fatalf("%q, %v", v, err)
		}
		c.server(3).kill()
		time.AfterFunc(3*time.Second, func() { c.replicate(c.region(table, "a"), 2, c.server(2)) })
		began = time.Now()
		if v, _, err = read(t.Context(), core, table, "a", pin(2)); err != nil || v != "rs2:0" {
			t.Fatalf("%q, %v", v, err)
		}
		if d := time.Since(began); d > 4500*time.Millisecond {
			t.Errorf("found after %v", d)
		}
		// One that does not exist.
		var none *NoReplicaError
		if _, _, err = read(t.Context(), core, table, "a", pin(7)); !errors.As(err, &none) || none.Replica != 7 || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("replica 7: %v", err)
		}
	})
}

func TestHedgeToASecondConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		for range 100 {
			if _, _, err := get(t.Context(), core, table, "a"); err != nil {
				t.Fatal(err)
			}
		}
		core.servers.Observe()
		time.Sleep(time.Second)
		synctest.Wait()
		// The first request's answer is lost.
		var gets atomic.Int64
		c.hook(func(q *query) *reply {
			if q.method == "Get" && gets.Add(1) == 1 {
				return &reply{swallow: true}
			}
			return nil
		})
		c.forgetLog()
		began := time.Now()
		v, _, err := read(t.Context(), core, table, "a", hedged)
		if err != nil || v != "rs1:0" {
			t.Fatalf("%q, %v", v, err)
		}
		if d := time.Since(began); d != hedgeMin {
			t.Errorf("answered after %v, want %v", d, hedgeMin)
		}
		if n := c.calls("Get", "t"); n != 2 {
			t.Errorf("%d Gets", n)
		}
		c.mu.Lock()
		n := c.dials["rs1:16020"]
		c.mu.Unlock()
		if n != 2 {
			t.Errorf("%d connections", n)
		}
		if s := core.ReadStats(); s.Hedges != 1 || s.HedgeAnswers != 1 {
			t.Errorf("%+v", s)
		}
		// Without the option it takes the whole attempt.
		gets.Store(0)
		began = time.Now()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil || time.Since(began) < 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestHedgeBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		// Everything takes a second: hedging would double the load.
		c.hook(func(q *query) *reply {
			if q.method == "Get" {
				return &reply{apply: true, delay: 1200 * time.Millisecond}
			}
			return nil
		})
		synctest.Wait()
		c.forgetLog()
		const reads = 400
		for range reads / 20 {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, _, err := read(t.Context(), core, table, "a", hedged); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		// Ten to begin with, then one in twenty.
		if n := c.calls("Get", "t") - reads; n < 10 || n > 10+reads/20+1 {
			t.Errorf("%d hedges for %d reads", n, reads)
		}
		if s := core.ReadStats(); s.HedgesRefused == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestNoHedgeToABusyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		var n atomic.Int64
		c.hook(func(q *query) *reply {
			if q.method != "Get" {
				return nil
			}
			if n.Add(1) == 1 {
				return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
			}
			return &reply{apply: true, delay: 500 * time.Millisecond}
		})
		if _, _, err := read(t.Context(), core, table, "a", hedged); err != nil {
			t.Fatal(err)
		}
		if n := n.Load(); n != 2 {
			t.Errorf("%d Gets, want the busy answer and one more", n)
		}
	})
}

func TestTimelineHedgeIsEarlier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		for range 100 {
			if _, _, err := get(t.Context(), core, table, "a"); err != nil {
				t.Fatal(err)
			}
		}
		core.servers.Observe()
		time.Sleep(time.Second)
		core.servers.Observe()
		synctest.Wait() // another's look at the same moment counts, too, but may not be over
		c.hook(func(q *query) *reply {
			if q.method == "Get" && q.srv.name.Host == "rs1" {
				return &reply{apply: true, delay: time.Second}
			}
			return nil
		})
		began := time.Now()
		_, a, err := read(t.Context(), core, table, "a", func(c *RegionCall) { c.Timeline, c.Hedge = true, true })
		if err != nil || a.Replica == nil || time.Since(began) != hedgeMin {
			t.Errorf("replica %v after %v, %v", a.Replica, time.Since(began), err)
		}
	})
}

// Losers that left something behind are heard of.
func TestAbandonedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		c.hook(func(q *query) *reply {
			if q.method == "Get" && q.srv.name.Host == "rs1" {
				return &reply{apply: true, delay: 3 * time.Second}
			}
			return nil
		})
		var mu sync.Mutex
		var late []Answer
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		_, a, err := read(ctx, core, table, "a", func(c *RegionCall) {
			c.Timeline = true
			c.Abandoned = func(a Answer, result []byte) {
				mu.Lock()
				defer mu.Unlock()
				late = append(late, a)
			}
		})
		cancel()
		if err != nil || a.Replica == nil || time.Since(began) > 20*time.Millisecond {
			t.Errorf("replica %v after %v, %v", a.Replica, time.Since(began), err)
		}
		time.Sleep(4 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(late) != 1 || late[0].Replica != nil || late[0].Route == nil {
			t.Errorf("late answers: %v", late)
		}
	})
}

func TestSpreadReadsOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicated(t)
		var n atomic.Int64
		c.hook(func(q *query) *reply {
			if q.method != "Get" {
				return nil
			}
			return &reply{apply: true, delay: time.Duration(n.Add(7919)%23) * time.Millisecond}
		})
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				for k := range 5 {
					if _, _, err := read(t.Context(), core, table, fmt.Sprintf("row%d-%d", i, k), func(c *RegionCall) { c.Timeline, c.Hedge = true, i%2 == 0 }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	})
}

// timelineItems are gets of n rows, with a lone increment among them.
func timelineItems(n int) []Item {
	items := make([]Item, 0, n+1)
	for i := range n {
		it := getItem(fmt.Sprintf("%03d", i))
		it.Timeline = true
		items = append(items, it)
	}
	return append(items, putItem("900", Safe))
}

// replicatedTable has regions dealt to rs1 to rs3 with a replica each on the
// next server; meta is on rs4.
func replicatedTable(t *testing.T) (*fakeCluster, *Core, meta.TableName) {
	c := newFake(t, 4)
	var cuts []string
	for i := 1; i < 9; i++ {
		cuts = append(cuts, fmt.Sprintf("%03d", 100*i))
	}
	table := c.table("t", cuts...)
	c.mu.Lock()
	c.meta = c.servers["rs4:16020"]
	regions := c.regions
	for i, r := range regions {
		r.on = c.servers[fmt.Sprintf("rs%d:16020", 1+i%3)]
	}
	c.mu.Unlock()
	for i, r := range regions {
		c.replicate(r, 1, c.server(1+(i+1)%3))
	}
	core := c.open()
	for i, o := range core.Batch(t.Context(), table, timelineItems(900)) {
		if o.Err != nil {
			t.Fatalf("item %d: %v", i, o.Err)
		}
	}
	synctest.Wait()
	c.forgetLog()
	return c, core, table
}

func TestTimelineBatch(t *testing.T) {
	for _, tc := range []struct {
		name string
		out  func(c *fakeCluster)
		took time.Duration
	}{
		{"frozen", func(c *fakeCluster) { c.server(1).freeze() }, 10 * time.Millisecond},
		{"slow", func(c *fakeCluster) {
			c.hook(func(q *query) *reply {
				if q.method == "Multi" && q.srv.name.Host == "rs1" && len(q.param) > 0 {
					return &reply{apply: true, delay: time.Second}
				}
				return nil
			})
		}, 10 * time.Millisecond},
		{"dead", func(c *fakeCluster) { c.server(1).kill() }, time.Millisecond},
		{"busy", func(c *fakeCluster) {
			c.hook(func(q *query) *reply {
				if q.method == "Multi" && q.srv.name.Host == "rs1" {
					return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
				}
				return nil
			})
		}, time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, core, table := replicatedTable(t)
				tc.out(c)
				items := timelineItems(900)[:900]
				began := time.Now()
				stale := 0
				for i, o := range core.Batch(t.Context(), table, items) {
					if o.Err != nil || len(o.Results) != 1 || len(o.Results[0].Cells) != 1 || string(o.Results[0].Cells[0].Row) != string(items[i].Row) {
						t.Fatalf("item %d: %+v", i, o)
					}
					home := 1 + i/100%3
					v := string(o.Results[0].Cells[0].Value)
					if o.Results[0].Stale {
						stale++
						home = 1 + (i/100+1)%3
					}
					if v != fmt.Sprintf("rs%d:0", home) {
						t.Fatalf("item %d, stale %v: %s", i, o.Results[0].Stale, v)
					}
				}
				if d := time.Since(began); d > tc.took {
					t.Errorf("took %v, want %v", d, tc.took)
				}
				// Those of rs1, from their replicas on rs2; not the others.
				if stale != 300 {
					t.Errorf("%d stale results, want 300", stale)
				}
				c.server(1).thaw()
				c.hook(nil)
			})
		})
	}
}

// Only what may be stale comes from replicas.
func TestTimelineBatchWithOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicatedTable(t)
		c.server(1).freeze()
		time.AfterFunc(time.Second, c.server(1).thaw)
		items := []Item{getItem("001"), getItem("002"), putItem("003", Safe), getItem("101")}
		items[0].Timeline = true
		began := time.Now()
		out := core.Batch(t.Context(), table, items)
		if d := time.Since(began); d < time.Second || d > 1100*time.Millisecond {
			t.Errorf("took %v", d)
		}
		for i, o := range out {
			if o.Err != nil || (i != 2) && o.Results[0].Stale != (i == 0) {
				t.Errorf("item %d: %+v", i, o)
			}
		}
		if n := c.region(table, "003").count["003"]; n != 1 {
			t.Errorf("put applied %d times", n)
		}
	})
}

func TestTimelineBatchDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, core, table := replicatedTable(t)
		for i := 1; i <= 3; i++ {
			c.server(i).freeze()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		began := time.Now()
		for i, o := range core.Batch(ctx, table, timelineItems(300)) {
			if !errors.Is(o.Err, context.DeadlineExceeded) {
				t.Fatalf("item %d: %v", i, o.Err)
			}
		}
		if d := time.Since(began); d > 305*time.Millisecond {
			t.Errorf("returned after %v", d)
		}
		for i := 1; i <= 3; i++ {
			c.server(i).thaw()
		}
	})
}
