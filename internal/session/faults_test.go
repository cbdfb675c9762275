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

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestMoveWithHintCostsOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t")
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		c.move(c.region(table, "a"), c.server(2), true)
		c.forgetLog()
		began := time.Now()
		v, a, err := get(t.Context(), core, table, "a")
		if err != nil || v != "rs2:0" || a.Attempts != 2 {
			t.Errorf("%q after %d attempts, %v", v, a.Attempts, err)
		}
		if n := c.metaReads(); n != 0 {
			t.Errorf("%d meta reads for a move with a hint", n)
		}
		if n := c.calls("Get", "t"); n != 2 {
			t.Errorf("%d Gets, want 2", n)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("it waited %v", d)
		}
		c.forgetLog()
		if _, a, err = get(t.Context(), core, table, "a"); err != nil || a.Attempts != 1 {
			t.Errorf("afterwards: %d attempts, %v", a.Attempts, err)
		}
	})
}

func TestMoveWithoutHintCostsOneLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t")
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		c.move(c.region(table, "a"), c.server(3), false)
		c.forgetLog()
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				v, _, err := get(t.Context(), core, table, fmt.Sprint("row", i))
				if err != nil || v != "rs3:0" {
					t.Errorf("%q, %v", v, err)
				}
			})
		}
		wg.Wait()
		if n := c.metaReads(); n != 1 {
			t.Errorf("%d meta reads for 100 callers of a moved region", n)
		}
	})
}

// TestMetaMovedUnderARepair: that hbase:meta is not where it was may show first
// in the answer to a Multi, which then holds an exception for its region.
func TestMetaMovedUnderARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "m")
		core := c.open()
		for _, row := range []string{"a", "z"} {
			if _, _, err := get(t.Context(), core, table, row); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		meta3 := c.server(3)
		c.mu.Lock()
		c.meta = meta3
		c.mu.Unlock()
		c.move(c.region(table, "z"), c.server(3), false)
		began := time.Now()
		v, _, err := get(t.Context(), core, table, "z")
		if err != nil || !strings.HasPrefix(v, "rs3") || time.Since(began) > time.Second {
			t.Errorf("%q, %v after %v", v, err, time.Since(began))
		}
	})
}

func TestColdHerdReadsMetaOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t")
		core := c.open()
		var wg sync.WaitGroup
		var failed atomic.Int32
		for i := range 10_000 {
			wg.Go(func() {
				if _, _, err := get(t.Context(), core, table, fmt.Sprint("row", i)); err != nil {
					failed.Add(1)
				}
			})
		}
		wg.Wait()
		if failed.Load() != 0 {
			t.Errorf("%d of 10,000 failed", failed.Load())
		}
		if n := c.metaReads(); n != 1 {
			t.Errorf("%d meta reads for 10,000 cold callers of one region", n)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for addr, n := range c.dials {
			if n > 1 {
				t.Errorf("%d dials of %s", n, addr)
			}
		}
	})
}

func TestDeadServerRegionsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		cuts := make([]string, 0, 50)
		for i := 1; i < 50; i++ {
			cuts = append(cuts, fmt.Sprintf("%02d", i))
		}
		table := c.table("t", cuts...)
		core := c.open()
		all := func() {
			var wg sync.WaitGroup
			for i := range 50 {
				wg.Go(func() {
					if _, _, err := get(t.Context(), core, table, fmt.Sprintf("%02d", i)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		all()
		synctest.Wait() // reads of meta that ran on ahead
		dead := c.server(2)
		dead.kill()
		c.forgetLog()
		go func() {
			// The master notices after three seconds.
			time.Sleep(3 * time.Second)
			n := 0
			for _, r := range c.regions {
				if r.on == dead {
					c.move(r, c.server(1+2*(n%2)), false)
					n++
				}
			}
		}()
		began := time.Now()
		all()
		took := time.Since(began)
		if took < 3*time.Second || took > 4100*time.Millisecond {
			t.Errorf("served again after %v, the regions were there after 3s", took)
		}
		// 17 regions in a few groups, each read 30 to 190 ms apart for 3 s.
		if n := c.metaReads(); n > 120 {
			t.Errorf("%d meta reads: %d scans, %d multi-gets, %d table states", n, c.calls("Scan", "hbase:meta"), c.calls("Multi", "hbase:meta"), c.calls("Get", "hbase:meta"))
		}
	})
}

func TestRestartedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		c.mu.Lock()
		c.meta = c.servers["rs2:16020"]
		c.mu.Unlock()
		if _, _, err := get(t.Context(), core, table, "a"); err != nil {
			t.Fatal(err)
		}
		old := c.server(1)
		old.kill()
		next := c.start(meta.ServerName{Host: "rs1", Port: 16020, StartCode: 200})
		r := c.region(table, "a")
		r.unassigned = true
		go func() {
			time.Sleep(2 * time.Second)
			c.move(r, next, false)
			c.mu.Lock()
			r.unassigned = false
			c.mu.Unlock()
		}()
		began := time.Now()
		v, _, err := get(t.Context(), core, table, "a")
		if err != nil || v != "rs1:0" {
			t.Errorf("%q, %v", v, err)
		}
		if d := time.Since(began); d > 3100*time.Millisecond {
			t.Errorf("took %v", d)
		}
		if s := core.Servers().Lookup("rs1:16020"); s.Name().StartCode != 200 || s.State() != health.Healthy {
			t.Errorf("the address is known as %v, %s", s.Name(), s.State())
		}
	})
}

func TestFrozenServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "g", "p")
		core := c.open(func(cfg *Config) { cfg.OperationTimeout = time.Minute })
		rows := map[string]string{"a": "rs1", "h": "rs2", "q": "rs3"}
		for row := range rows {
			if _, _, err := get(t.Context(), core, table, row); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // reads of meta that ran on ahead
		frozen := c.server(2)
		frozen.freeze()
		c.forgetLog()
		stop := time.Now().Add(20 * time.Second)
		var wg sync.WaitGroup
		// Callers of the frozen server: reads, writes, and one that must not
		// be repeated.
		for i := range 20 {
			wg.Go(func() {
				began := time.Now()
				if i%2 == 0 {
					if v, _, err := get(t.Context(), core, table, "h"); err != nil || !strings.HasPrefix(v, "rs2") {
						t.Errorf("read: %q, %v", v, err)
					}
				} else if _, err := mutate(t.Context(), core, table, fmt.Sprint("h", i), Nonced, uint64(i)); err != nil {
					t.Errorf("write: %v", err)
				}
				if d := time.Since(began); d < 20*time.Second || d > 20*time.Second+100*time.Millisecond {
					t.Errorf("served after %v, the server was back after 20s", d)
				}
			})
		}
		wg.Go(func() {
			if _, err := mutate(t.Context(), core, table, "h-unsafe", Unsafe, 0); err != nil {
				t.Errorf("unsafe write: %v", err)
			}
		})
		// Callers of the others notice nothing.
		for _, row := range []string{"a", "q"} {
			wg.Go(func() {
				for time.Now().Before(stop) {
					began := time.Now()
					if _, _, err := get(t.Context(), core, table, row); err != nil {
						t.Error(err)
					}
					if d := time.Since(began); d > 0 {
						t.Errorf("a caller of another server waited %v", d)
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		time.Sleep(10 * time.Second)
		if s := core.Servers().Lookup("rs2:16020"); s.Usable() || s.Epoch() != 0 {
			t.Errorf("after 10 s of silence: %s, epoch %d", s.State(), s.Epoch())
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, _, err := get(ctx, core, table, "h")
		cancel()
		var silent *SilentError
		if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &silent) || d > time.Second+5*time.Millisecond {
			t.Errorf("with a second to spare: %v after %v", err, d)
		}
		time.Sleep(time.Until(stop))
		frozen.thaw()
		wg.Wait()
		if n := c.region(table, "h").count["h-unsafe"]; n != 1 {
			t.Errorf("the unsafe write was applied %d times", n)
		}
		for i := 1; i < 20; i += 2 {
			if n := c.region(table, "h").count[fmt.Sprint("h", i)]; n != 1 {
				t.Errorf("write %d was applied %d times", i, n)
			}
		}
		if n := c.metaReads(); n > 45 {
			t.Errorf("%d meta reads in 20 s", n)
		}
		if n := c.pings(); n > 12 {
			t.Errorf("%d pings reached the server", n)
		}
	})
}

func TestFrozenServerWhoseRegionsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 3)
		table := c.table("t", "g", "p")
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "h"); err != nil {
			t.Fatal(err)
		}
		c.server(2).freeze()
		go func() {
			time.Sleep(8 * time.Second)
			c.move(c.region(table, "h"), c.server(3), false)
		}()
		began := time.Now()
		v, _, err := get(t.Context(), core, table, "h")
		if d := time.Since(began); err != nil || !strings.HasPrefix(v, "rs3") || d < 8*time.Second || d > 9300*time.Millisecond {
			t.Errorf("%q, %v after %v; the region was elsewhere after 8s", v, err, d)
		}
		c.server(2).thaw()
	})
}

// tableRow is one row of the error table, end to end: the server's exception
// once or several times, then the usual answers.
func TestErrorTable(t *testing.T) {
	class := func(name string) func(*fakeCluster, *query) *reply {
		return func(*fakeCluster, *query) *reply { return &reply{err: wire.NewRemoteError(name, "because")} }
	}
	for _, tc := range []struct {
		name  string
		times int // how often the server answers so
		reply func(*fakeCluster, *query) *reply
		// expected
		attempts int
		meta     int // reads
		min, max time.Duration
		final    error
		applied  int // of a Mutate
	}{
		{name: "NotServingRegion", times: 1, reply: class(wire.ClassNotServingRegion), attempts: 2, meta: 12, min: 0, max: 3 * time.Second},
		{name: "WrongRegion", times: 1, reply: class(wire.ClassWrongRegion), attempts: 2, meta: 12, min: 0, max: 3 * time.Second},
		{name: "RegionOpening", times: 3, reply: class(wire.ClassRegionOpening), attempts: 4, meta: 5, min: 20 * time.Millisecond, max: 80 * time.Millisecond},
		{name: "RegionTooBusy", times: 2, reply: class(wire.ClassRegionTooBusy), attempts: 3, min: 70 * time.Millisecond, max: 160 * time.Millisecond},
		{name: "CallQueueTooBig", times: 2, reply: class(wire.ClassCallQueueTooBig), attempts: 3, min: 140 * time.Millisecond, max: 310 * time.Millisecond},
		{name: "Throttling", times: 1, reply: func(*fakeCluster, *query) *reply {
			return &reply{err: wire.NewThrottling("number of requests exceeded", 2*time.Second)}
		}, attempts: 2, min: 2 * time.Second, max: 2300 * time.Millisecond},
		{name: "RegionServerStopped", times: 1, reply: class(wire.ClassRegionServerStopped), attempts: 2, meta: 16, min: 30 * time.Millisecond, max: time.Second},
		{name: "unknown class", times: 1, reply: class("com.example.Strange"), attempts: 2, min: 50 * time.Millisecond, max: 100 * time.Millisecond},
		{name: "connection closed", times: 1, reply: func(*fakeCluster, *query) *reply { return &reply{kill: true} }, attempts: 2, max: 10 * time.Millisecond},
		{name: "attempt timeout", times: 1, reply: func(*fakeCluster, *query) *reply { return &reply{swallow: true} }, attempts: 2, min: 10 * time.Second, max: 10 * time.Second},
		{name: "DoNotRetry", times: 1, reply: class(wire.ClassDoNotRetryIO), attempts: 1, final: &wire.RemoteError{Class: wire.ClassDoNotRetryIO}},
		{name: "AccessDenied", times: 1, reply: class(wire.ClassAccessDenied), attempts: 1, final: &wire.RemoteError{Class: wire.ClassAccessDenied}},
		{name: "NoSuchColumnFamily", times: 1, reply: class(wire.ClassNoSuchColumnFamily), attempts: 1, final: &wire.RemoteError{Class: wire.ClassNoSuchColumnFamily}},
		{name: "TableNotFound", times: 1, reply: class(wire.ClassTableNotFound), attempts: 1, final: &wire.RemoteError{Class: wire.ClassTableNotFound}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 2)
				table := c.table("t")
				c.mu.Lock()
				c.meta = c.servers["rs2:16020"]
				c.mu.Unlock()
				core := c.open()
				if _, err := mutate(t.Context(), core, table, "warm", Safe, 0); err != nil {
					t.Fatal(err)
				}
				left := tc.times
				c.hook(func(q *query) *reply {
					if q.method != "Mutate" {
						return nil
					}
					if left--; left < 0 {
						return nil
					}
					return tc.reply(c, q)
				})
				c.forgetLog()
				began := time.Now()
				a, err := mutate(t.Context(), core, table, "r", Safe, 0)
				took := time.Since(began)
				if tc.final != nil {
					var story *retry.Error
					if !errors.Is(err, tc.final) || !errors.As(err, &story) || story.Reason != retry.Final || string(story.Row) != "r" || story.Region == "" || len(story.Servers) != 1 {
						t.Errorf("error %v", err)
					}
					if errors.Is(err, retry.ErrRetriesExhausted) {
						t.Error("a final error claims that retries were exhausted")
					}
				} else if err != nil {
					t.Error(err)
				} else if n := c.region(table, "r").count["r"]; n != 1 {
					t.Errorf("applied %d times", n)
				}
				if a.Attempts != tc.attempts {
					t.Errorf("%d attempts, want %d", a.Attempts, tc.attempts)
				}
				if took < tc.min || took > max(tc.max, tc.min) {
					t.Errorf("took %v, want %v to %v", took, tc.min, tc.max)
				}
				if n := c.metaReads(); n > tc.meta {
					t.Errorf("%d meta reads, want at most %d", n, tc.meta)
				}
				// After every error the client still works.
				c.hook(nil)
				if _, err := mutate(t.Context(), core, table, "after", Safe, 0); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

func TestUnsafeIsNotRepeated(t *testing.T) {
	for _, tc := range []struct {
		name  string
		idem  Idempotency
		nonce uint64
		reply reply
		apply int
		err   error
	}{
		{"unsafe, connection lost after it was applied", Unsafe, 0, reply{kill: true, apply: true}, 1, retry.ErrUnknownOutcome},
		{"unsafe, connection lost before", Unsafe, 0, reply{kill: true}, 0, retry.ErrUnknownOutcome},
		{"nonced, connection lost after it was applied", Nonced, 7, reply{kill: true, apply: true}, 1, nil},
		{"nonced, connection lost before", Nonced, 7, reply{kill: true}, 1, nil},
		{"safe, connection lost after it was applied", Safe, 0, reply{kill: true, apply: true}, 2, nil},
		{"unsafe, refused", Unsafe, 0, reply{err: wire.NewRemoteError(wire.ClassRegionTooBusy, "")}, 1, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newFake(t, 1)
				table := c.table("t")
				core := c.open()
				if _, _, err := get(t.Context(), core, table, "r"); err != nil {
					t.Fatal(err)
				}
				first := true
				c.hook(func(q *query) *reply {
					if q.method != "Mutate" || !first {
						return nil
					}
					first = false
					r := tc.reply
					return &r
				})
				_, err := mutate(t.Context(), core, table, "r", tc.idem, tc.nonce)
				if !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
					t.Errorf("error %v, want %v", err, tc.err)
				}
				if err != nil && retry.SafeToRetry(err) {
					t.Errorf("%v claims to be safe to retry", err)
				}
				if n := c.region(table, "r").count["r"]; n != tc.apply {
					t.Errorf("applied %d times, want %d", n, tc.apply)
				}
			})
		})
	}
}

// stuck is everything that can hold a call up.
func TestDeadlinesHold(t *testing.T) {
	for _, tc := range []struct {
		name  string
		stick func(c *fakeCluster, table meta.TableName)
		warm  bool
	}{
		{"dial", func(c *fakeCluster, _ meta.TableName) { c.blocks["rs1:16020"] = true }, false},
		{"server never answers", func(c *fakeCluster, _ meta.TableName) {
			c.hook(func(q *query) *reply {
				if q.method == "Get" {
					return &reply{swallow: true}
				}
				return nil
			})
		}, true},
		{"server frozen", func(c *fakeCluster, _ meta.TableName) { c.server(1).freeze() }, true},
		{"meta never answers", func(c *fakeCluster, _ meta.TableName) {
			c.hook(func(q *query) *reply {
				if q.method == "Scan" {
					return &reply{swallow: true}
				}
				return nil
			})
		}, false},
		{"meta frozen", func(c *fakeCluster, _ meta.TableName) { c.server(2).freeze() }, false},
		{"region in transition", func(c *fakeCluster, table meta.TableName) { c.region(table, "r").unassigned = true }, true},
		{"server dead", func(c *fakeCluster, _ meta.TableName) { c.server(1).kill() }, true},
		{"busy for ever", func(c *fakeCluster, _ meta.TableName) {
			c.hook(func(q *query) *reply {
				if q.method == "Get" {
					return &reply{err: wire.NewRemoteError(wire.ClassCallQueueTooBig, "")}
				}
				return nil
			})
		}, true},
	} {
		for _, limit := range []time.Duration{3 * time.Millisecond, 700 * time.Millisecond, 7 * time.Second} {
			t.Run(fmt.Sprintf("%s/%v", tc.name, limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := newFake(t, 2)
					table := c.table("t")
					c.mu.Lock()
					c.meta = c.servers["rs2:16020"]
					c.mu.Unlock()
					core := c.open()
					if tc.warm {
						if _, _, err := get(t.Context(), core, table, "r"); err != nil {
							t.Fatal(err)
						}
					}
					tc.stick(c, table)
					ctx, cancel := context.WithTimeout(t.Context(), limit)
					defer cancel()
					began := time.Now()
					_, _, err := get(ctx, core, table, "r")
					took := time.Since(began)
					if took > limit+5*time.Millisecond {
						t.Errorf("returned %v after its deadline", took-limit)
					}
					var story *retry.Error
					if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &story) || !errors.Is(err, retry.ErrRetriesExhausted) {
						t.Errorf("error %v", err)
					} else if len(story.Spent) == 0 && story.Elapsed > 0 || story.Op != "get" || story.Table != table {
						t.Errorf("the story lacks something: %+v", story)
					}
					// Cancelling ends it as quickly.
					ctx2, cancel2 := context.WithCancel(t.Context())
					time.AfterFunc(limit, cancel2)
					began = time.Now()
					_, _, err = get(ctx2, core, table, "r")
					if took := time.Since(began); !errors.Is(err, context.Canceled) || took > limit {
						t.Errorf("cancelled: %v after %v", err, took)
					}
					for _, s := range []int{1, 2} {
						c.server(s).thaw()
					}
				})
			})
		}
	}
}

func TestOneCallersLeavingHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		table := c.table("t")
		core := c.open()
		c.hook(func(q *query) *reply { return &reply{delay: time.Second, apply: true} })
		var wg sync.WaitGroup
		for i := range 100 {
			ctx := t.Context()
			if i%2 == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(i+1)*30*time.Millisecond)
				defer cancel()
			}
			wg.Go(func() {
				_, _, err := get(ctx, core, table, "r")
				if i%2 == 1 && err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		// One, and its repetition after half a second.
		if n := c.metaReads(); n > 2 {
			t.Errorf("%d meta reads", n)
		}
	})
}

func TestCloseEndsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "r"); err != nil {
			t.Fatal(err)
		}
		c.hook(func(q *query) *reply { return &reply{swallow: true} })
		errs := make(chan error, 3)
		go func() { _, _, err := get(t.Context(), core, table, "r"); errs <- err }()
		go func() { _, _, err := get(t.Context(), core, c.table("other"), "r"); errs <- err }()
		go func() {
			out := core.Batch(t.Context(), table, []Item{{Row: []byte("r"), Actions: []*pb.Action{{Get: &pb.Get{Row: []byte("r")}}}}})
			errs <- out[0].Err
		}()
		time.Sleep(time.Second)
		began := time.Now()
		core.Close()
		for range 3 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Errorf("a call during Close: %v", err)
			}
		}
		if d := time.Since(began); d > 5*time.Millisecond {
			t.Errorf("Close took %v", d)
		}
		if _, _, err := get(t.Context(), core, table, "r"); !errors.Is(err, ErrClosed) {
			t.Errorf("a call after Close: %v", err)
		}
		if _, err := core.CallMaster(t.Context(), &ServerCall{Method: "IsMasterRunning", Param: &pb.IsMasterRunningRequest{}}); !errors.Is(err, ErrClosed) {
			t.Errorf("a master call after Close: %v", err)
		}
	})
}

func TestErrorsNameWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()

		began := time.Now()
		missing, _ := meta.ParseTableName("missing")
		_, _, err := get(ctx, core, missing, "r")
		if !errors.Is(err, route.ErrTableNotFound) || !strings.Contains(err.Error(), `"missing"`) || time.Since(began) != 0 {
			t.Errorf("no such table: %v", err)
		}

		// Somebody else's port where meta says a region server is.
		c.region(table, "r").on = &fakeServer{c: c, name: meta.ServerName{Host: "nowhere", Port: 1, StartCode: 1}}
		_, _, err = get(ctx, core, table, "r")
		var dial *rpc.DialError
		if !errors.As(err, &dial) || !strings.Contains(err.Error(), "nowhere:1") || !strings.Contains(err.Error(), "no such host") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("unknown host: %v", err)
		}
	})
}

func TestIdleConnectionsCloseAndStayClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		table := c.table("t")
		core := c.open(func(cfg *Config) { cfg.IdleTimeout = 10 * time.Second })
		dials := func() int {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.dials["rs1:16020"]
		}
		if _, _, err := get(t.Context(), core, table, "r"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if n := dials(); n != 1 {
			t.Errorf("%d dials in an idle hour", n)
		}
		if s := core.Servers().Lookup("rs1:16020"); s.State() != health.Healthy || s.Epoch() != 0 {
			t.Errorf("after an idle hour the server is %s, epoch %d", s.State(), s.Epoch())
		}
		for range 3 {
			if _, a, err := get(t.Context(), core, table, "r"); err != nil || a.Attempts != 1 {
				t.Errorf("%d attempts, %v", a.Attempts, err)
			}
		}
		if n := dials(); n != 2 {
			t.Errorf("%d dials", n)
		}
		if n := c.pings(); n != 0 {
			t.Errorf("%d pings to a server that owed nothing", n)
		}
	})
}

func TestSlowCallsAreNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 1)
		table := c.table("t")
		core := c.open()
		c.hook(func(q *query) *reply {
			if q.method == "Get" {
				return &reply{delay: 9 * time.Second, apply: true}
			}
			return nil
		})
		if _, a, err := get(t.Context(), core, table, "r"); err != nil || a.Attempts != 1 {
			t.Errorf("%d attempts, %v", a.Attempts, err)
		}
		if s := core.Servers().Lookup("rs1:16020"); s.State() != health.Healthy {
			t.Errorf("a server that answers pings is %s", s.State())
		}
		if n := c.pings(); n < 1 || n > 4 {
			t.Errorf("%d pings in 9 s", n)
		}
	})
}

// TestStoppingServerComesAndGoes: a server that says it is stopping is down,
// whatever else it answers, until it says otherwise or is replaced.
func TestStoppingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		c.mu.Lock()
		c.meta = c.servers["rs2:16020"]
		c.mu.Unlock()
		core := c.open()
		if _, _, err := get(t.Context(), core, table, "r"); err != nil {
			t.Fatal(err)
		}
		c.hook(func(q *query) *reply {
			if q.srv == c.server(1) {
				return &reply{err: wire.NewRemoteError(wire.ClassRegionServerStopped, "stopping")}
			}
			return nil
		})
		time.AfterFunc(3*time.Second, func() { c.move(c.region(table, "r"), c.server(2), false) })
		began := time.Now()
		v, a, err := get(t.Context(), core, table, "r")
		if d := time.Since(began); err != nil || !strings.HasPrefix(v, "rs2") || d > 4100*time.Millisecond || a.Attempts > 3 {
			t.Errorf("%q, %v after %v and %d attempts", v, err, d, a.Attempts)
		}
		if s := core.Servers().Lookup("rs1:16020"); s.Usable() {
			t.Errorf("the stopping server is %s", s.State())
		}
	})
}

func TestDeadServerWithManyRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const regions = 3000
		c := newFake(t, 3)
		var cuts []string
		for i := 1; i < regions; i++ {
			cuts = append(cuts, fmt.Sprintf("%04d", i))
		}
		table := c.table("t", cuts...)
		for _, r := range c.regions {
			r.on = c.server(2)
		}
		core := c.open()
		all := func() {
			var wg sync.WaitGroup
			for i := range regions {
				wg.Go(func() {
					if _, _, err := get(t.Context(), core, table, fmt.Sprintf("%04d", i)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		all()
		synctest.Wait() // reads of meta that ran on ahead
		c.server(2).kill()
		for _, r := range c.regions {
			c.move(r, c.server(3), false)
		}
		c.forgetLog()
		all()
		if n := c.metaReads(); n > 17 {
			t.Errorf("%d meta reads for %d regions of a dead server: %d scans, %d multi-gets", n, regions, c.calls("Scan", "hbase:meta"), c.calls("Multi", "hbase:meta"))
		}
	})
}
