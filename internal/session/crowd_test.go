package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// crowd is 64 workers that read random rows of nine regions on three servers,
// over and over; each call takes 50 ms.
type crowd struct {
	c     *fakeCluster
	core  *Core
	table meta.TableName
	ok    [4]atomic.Int64 // by server
	away  atomic.Int64
	stop  chan struct{}
	wg    sync.WaitGroup
}

func newCrowd(t *testing.T, call func(cr *crowd, row string) error, edit ...func(*Config)) *crowd {
	c := newFake(t, 4)
	var cuts []string
	for i := 1; i < 9; i++ {
		cuts = append(cuts, fmt.Sprint(i))
	}
	cr := &crowd{c: c, table: c.table("t", cuts...), stop: make(chan struct{})}
	c.mu.Lock()
	c.meta = c.servers["rs4:16020"]
	for i, r := range c.regions {
		r.on = c.servers[fmt.Sprintf("rs%d:16020", 1+i%3)]
	}
	c.mu.Unlock()
	cr.core = c.open(edit...)
	c.hook(func(q *query) *reply {
		if (q.method == "Get" || q.method == "Multi") && c.tableOf(q) == "t" {
			return &reply{apply: true, delay: 50 * time.Millisecond}
		}
		return nil
	})
	for w := range 64 {
		cr.wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 1))
			for {
				select {
				case <-cr.stop:
					return
				default:
				}
				n := rnd.IntN(9)
				err := call(cr, fmt.Sprint(n, "x"))
				switch {
				case err == nil:
					cr.ok[1+n%3].Add(1)
				case errors.Is(err, health.ErrServerDown):
					cr.away.Add(1)
					if !retry.Retriable(err) {
						t.Errorf("turned away with an error that does not say so: %v", err)
					}
					// What callers do who are turned away: they look for other work.
					time.Sleep(10 * time.Millisecond)
				default:
					t.Error(err)
				}
			}
		})
	}
	return cr
}

// during counts what the servers answer within d.
func (cr *crowd) during(d time.Duration) (n [4]int64) {
	for i := range n {
		n[i] = -cr.ok[i].Load()
	}
	time.Sleep(d)
	for i := range n {
		n[i] += cr.ok[i].Load()
	}
	return n
}

func (cr *crowd) end() {
	close(cr.stop)
	cr.wg.Wait()
}

func getOne(cr *crowd, row string) error {
	_, _, err := get(context.Background(), cr.core, cr.table, row)
	return err
}

func batchOne(cr *crowd, row string) error {
	return cr.core.Batch(context.Background(), cr.table, []Item{getItem(row), getItem(row + "y")})[0].Err
}

func bounded(cfg *Config) { cfg.MaxWaitingPerServer = 8 }

// One of three servers is silent for 20 s, or dies and is replaced after 20 s:
// callers of the others keep on working, if the waiting are bounded.
func TestOthersKeepTheirThroughput(t *testing.T) {
	for _, tc := range []struct {
		name string
		call func(cr *crowd, row string) error
		out  func(cr *crowd)
		back func(cr *crowd)
	}{
		{"frozen", getOne, func(cr *crowd) { cr.c.server(2).freeze() }, func(cr *crowd) { cr.c.server(2).thaw() }},
		{"frozen, batches", batchOne, func(cr *crowd) { cr.c.server(2).freeze() }, func(cr *crowd) { cr.c.server(2).thaw() }},
		{"dead", getOne, func(cr *crowd) { cr.c.server(2).kill() }, func(cr *crowd) {
			for i, r := range cr.c.regions {
				if i%3 == 1 {
					cr.c.move(r, cr.c.server(3), false)
				}
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cr := newCrowd(t, tc.call, bounded)
				defer cr.end()
				time.Sleep(2 * time.Second)
				before := cr.during(4 * time.Second)
				tc.out(cr)
				while := cr.during(20 * time.Second)
				tc.back(cr)
				time.Sleep(2 * time.Second)
				after := cr.during(4 * time.Second)
				for _, i := range []int{1, 3} {
					if while[i]*10 < 5*before[i]*6 {
						t.Errorf("server %d answered %d calls in 4 s before, %d in 20 s while the other was out", i, before[i], while[i])
					}
				}
				if after[1]+after[2]+after[3] < (before[1]+before[2]+before[3])*9/10 {
					t.Errorf("afterwards %v in 4 s, before %v", after, before)
				}
				t.Logf("the others answered %.0f %% of what they did before", 100*float64(while[1]+while[3])/float64(5*(before[1]+before[3])))
				if cr.away.Load() == 0 {
					t.Error("nobody was turned away")
				}
				if n := peerOf(cr.core.servers.Lookup("rs2:16020")).waiting.Load(); n > 8 {
					t.Errorf("%d wait, 8 may", n)
				}
			})
		})
	}
}

// Without the bound nobody sees an error.
func TestWithoutABoundNobodyIsTurnedAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cr := newCrowd(t, getOne)
		time.Sleep(time.Second)
		cr.c.server(2).freeze()
		time.Sleep(20 * time.Second)
		cr.c.server(2).thaw()
		cr.end()
		if n := cr.away.Load(); n != 0 {
			t.Errorf("%d were turned away", n)
		}
	})
}

func TestTurnedAwayError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open(func(cfg *Config) { cfg.MaxWaitingPerServer = 1 })
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		c.server(1).freeze()
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, _, err := get(t.Context(), core, table, "a")
				var down *health.DownError
				if err != nil && (!errors.As(err, &down) || down.Waiting != 1) {
					t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		_, _, err := get(t.Context(), core, table, "a")
		var down *health.DownError
		var story *retry.Error
		if !errors.As(err, &down) || down.Waiting != 1 || down.Since.IsZero() || down.NextProbe.IsZero() || down.Cause == nil ||
			!errors.As(err, &story) || story.Reason != retry.Final || time.Since(began) > 0 {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		if s := err.Error(); !strings.Contains(s, "not answering, and 1 callers wait for it") || !strings.Contains(s, "silent for") {
			t.Errorf("text: %s", s)
		}
		c.server(1).thaw()
		wg.Wait()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Error(err)
		}
		if n := peerOf(core.servers.Lookup("rs1:16020")).waiting.Load(); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// TestTurnedAwayAfterSending: whose request was under way when its server fell
// silent may have been heard, also if he is then not let wait.
func TestTurnedAwayAfterSending(t *testing.T) {
	for name, put := range map[string]func(core *Core, table meta.TableName, row string) error{
		"put": func(core *Core, table meta.TableName, row string) error {
			_, err := mutate(context.Background(), core, table, row, Safe, 0)
			return err
		},
		"increment": func(core *Core, table meta.TableName, row string) error {
			_, err := mutate(context.Background(), core, table, row, Nonced, uint64(len(row)))
			return err
		},
		"batch": func(core *Core, table meta.TableName, row string) error {
			return core.Batch(context.Background(), table, []Item{putItem(row, Safe)})[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 2)
				table := c.table("t")
				core := c.open(func(cfg *Config) { cfg.MaxWaitingPerServer = 1 })
				if _, _, err := get(t.Context(), core, table, "warm"); err != nil {
					t.Fatal(err)
				}
				// It hears all three, and cannot answer any more.
				var heard atomic.Int32
				c.hook(func(q *query) *reply {
					if c.tableOf(q) != "t" {
						return nil
					}
					if heard.Add(1) == 3 {
						c.server(1).freeze()
					}
					return &reply{apply: true, delay: time.Millisecond}
				})
				var wg sync.WaitGroup
				var turned atomic.Int32
				for i := range 3 {
					row := strings.Repeat("r", i+1)
					wg.Go(func() {
						err := put(core, table, row)
						if err == nil {
							return
						}
						turned.Add(1)
						r := c.region(table, row)
						c.mu.Lock()
						n := r.count[row]
						c.mu.Unlock()
						if n == 1 && retry.SafeToRetry(err) {
							t.Errorf("applied %d times, and called safe to retry: %v", n, err)
						}
					})
				}
				time.Sleep(8 * time.Second)
				c.hook(nil)
				c.server(1).thaw()
				wg.Wait()
				if n := turned.Load(); n != 2 {
					t.Errorf("%d of 3 were turned away, want 2", n)
				}
			})
		})
	}
}
