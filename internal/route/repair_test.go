package route

import (
	"bytes"
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
)

func mustLocate(t testing.TB, c *Cache, row []byte) *Route {
	t.Helper()
	r, err := c.Locate(context.Background(), tbl, row)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// locateServed gets the route of a region as callers do: while it leads where the
// region is not, they are turned away there and come back.
func locateServed(t testing.TB, c *Cache, row []byte, is func(*Route) bool) (r *Route, tries int) {
	t.Helper()
	for {
		if r = mustLocate(t, c, row); is(r) {
			return r, tries
		}
		tries++
		c.Rejected(r)
	}
}

// moveTo puts region i of n on a server, as of a sequence number.
func (f *fakeMeta) moveTo(i, n, srv int, seq int64) {
	f.put(meta.Location{Region: regionOf(tbl, i, n), Server: server(srv), SeqNum: seq, State: "OPEN"})
}

// A move with a hint costs meta nothing.
func TestHintCostsNoRead(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r := mustLocate(t, c, key(4))
	before := f.reads()

	n := c.Moved(r, server(7), 12)
	if n == nil || n.Server().Name() != server(7) || n.OpenSeq() != 12 || n.Origin() != FromHint || !n.Valid() {
		t.Fatalf("moved: %v", n)
	}
	if got := mustLocate(t, c, key(4)); got != n {
		t.Errorf("after the hint: %v", got)
	}
	// Latecomers with the same old route get the same answer.
	if got := c.Moved(r, server(7), 12); got != n {
		t.Errorf("second hint: %v", got)
	}
	if got := c.Moved(r, server(3), 5); got != n {
		t.Errorf("older hint: %v", got)
	}
	if f.reads() != before {
		t.Errorf("%d reads of meta for a move with a hint", f.reads()-before)
	}
	if s := c.Stats(); s.Hints != 1 {
		t.Errorf("%d hints", s.Hints)
	}
}

func TestUselessHints(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r := mustLocate(t, c, key(4))
	f.kill(c, server(8))
	for name, got := range map[string]*Route{
		"older":        c.Moved(r, server(7), 9),
		"itself":       c.Moved(r, r.Server().Name(), 12),
		"down":         c.Moved(r, server(8), 12),
		"nobody":       c.Moved(r, meta.ServerName{}, 12),
		"old incarnat": c.Moved(r, meta.ServerName{Host: "rs8", Port: 16020, StartCode: 5}, 12),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	// The region was disowned all the same: meta is asked.
	f.moveTo(4, 10, 6, 20)
	if got := mustLocate(t, c, key(4)); got.Server().Name() != server(6) {
		t.Errorf("after useless hints: %v", got)
	}
	if f.gets.Load() != 1 {
		t.Errorf("%d gets, want 1", f.gets.Load())
	}
}

// A hint that does not say the start code, and equal sequence numbers: it
// comes from the server that the route named, so it is believed.
func TestVagueHint(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r := mustLocate(t, c, key(4))
	other := mustLocate(t, c, key(5)).Server()
	to := other.Name()
	to.StartCode = 0
	if n := c.Moved(r, to, -1); n == nil || n.Server() != other || n.OpenSeq() != 10 {
		t.Errorf("%v", n)
	}
}

// A region that split while we were not looking: its row is gone or marked,
// and its daughters are found.
func TestSplit(t *testing.T) {
	for _, gone := range []bool{false, true} {
		t.Run(fmt.Sprint("parent gone ", gone), func(t *testing.T) {
			c, f := newCache(t, Config{})
			f.fill(tbl, 10, 3)
			r := mustLocate(t, c, key(4))
			parent := r.Region()
			mid := append(key(4), 'm')
			a, b := parent, parent
			a.ID, a.End = parent.ID+5, mid
			b.ID, b.Start = parent.ID+5, mid
			if gone {
				f.delete(parent)
			} else {
				p := parent
				p.Offline, p.Split = true, true
				f.put(meta.Location{Region: p, Server: server(2), SeqNum: 10, State: "SPLIT"})
			}
			f.put(meta.Location{Region: a, Server: server(5), SeqNum: 1, State: "OPEN"},
				meta.Location{Region: b, Server: server(6), SeqNum: 1, State: "OPEN"})
			before := f.reads()
			c.Rejected(r)
			if got := mustLocate(t, c, append(key(4), 'z')); got.Server().Name() != server(6) || !bytes.Equal(got.Start(), mid) {
				t.Errorf("row in the right daughter: %v", got)
			}
			if got := mustLocate(t, c, key(4)); got.Server().Name() != server(5) || !bytes.Equal(got.End(), mid) {
				t.Errorf("row in the left daughter: %v", got)
			}
			if n := f.reads() - before; n > 3 {
				t.Errorf("%d reads, want one of the parent and one per daughter at most", n)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r4, r5 := mustLocate(t, c, key(4)), mustLocate(t, c, key(5))
	m := r4.Region()
	m.ID, m.End = m.ID+9, r5.End()
	f.delete(r4.Region(), r5.Region())
	f.put(meta.Location{Region: m, Server: server(9), SeqNum: 1, State: "OPEN"})
	c.Rejected(r4)
	got := mustLocate(t, c, key(4))
	if got.Server().Name() != server(9) || c.Lookup(tbl, key(5)) != got {
		t.Errorf("after the merge: %v and %v", got, c.Lookup(tbl, key(5)))
	}
}

// Whoever walks on from where a region that was merged began finds the merged
// one, which begins before it: no page forwards from there has it.
func TestMergeMetAhead(t *testing.T) {
	for _, stop := range [][]byte{nil, key(6), key(8)} {
		t.Run(fmt.Sprintf("%q", stop), func(t *testing.T) {
			c, f := newCache(t, Config{})
			f.fill(tbl, 10, 3)
			r4, r5 := mustLocate(t, c, key(4)), mustLocate(t, c, key(5))
			m := r4.Region()
			m.ID, m.End = m.ID+9, r5.End()
			f.delete(r4.Region(), r5.Region())
			f.put(meta.Location{Region: m, Server: server(9), SeqNum: 1, State: "OPEN"})
			before := f.reads()
			c.Rejected(r5)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			got, err := c.LocateAhead(ctx, tbl, key(5), stop)
			if err != nil || got.Server().Name() != server(9) {
				t.Errorf("after the merge: %v, %v", got, err)
			}
			if n := f.reads() - before; n > 3 {
				t.Errorf("%d reads, want the row, the page and the region", n)
			}
		})
	}
}

// A dead server with 3,000 regions, all of them wanted at once: at most
// 3000/200 + 2 reads.
func TestDeadServer(t *testing.T) {
	c, f := newCache(t, Config{})
	const n = 3000
	f.fill(tbl, n, 1)
	f.fill(meta.TableName{Namespace: "default", Qualifier: "other"}, 500, 3)
	if err := c.Warm(context.Background(), tbl, nil, nil); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if c.Lookup(tbl, key(i)) == nil {
			t.Fatalf("region %d is not there", i)
		}
	}
	f.setDelay(2 * time.Millisecond)
	before := f.reads()
	f.change(func(l *meta.Location) bool {
		l.Server, l.SeqNum = server(2+int(l.Region.ID)%3), l.SeqNum+5
		return true
	})
	f.kill(c, server(1))
	herd(t, c, n, key)
	reads := f.reads() - before
	t.Logf("%d reads of meta for %d regions, %d at one time", reads, n, f.most.Load())
	if reads > n/repairBatch+2 {
		t.Errorf("%d reads of meta, want at most %d", reads, n/repairBatch+2)
	}
	if f.most.Load() > maxRepairs {
		t.Errorf("%d reads at one time", f.most.Load())
	}
}

// Only what was used in the last minute is read again unasked.
func TestPlannerLeavesTheUnusedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 1000, 1)
		if err := c.Warm(context.Background(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		for i := range 100 {
			mustLocate(t, c, key(i))
		}
		f.change(func(l *meta.Location) bool { l.Server, l.SeqNum = server(2), 20; return true })
		f.got.Store(0)
		f.kill(c, server(1))
		synctest.Wait()
		if n := f.got.Load(); n != 100 {
			t.Errorf("%d regions read again, want the 100 used", n)
		}
		for i := range 100 {
			if r := c.Lookup(tbl, key(i)); r == nil || r.Server().Name() != server(2) {
				t.Fatalf("region %d: %v", i, r)
			}
		}
		if c.Lookup(tbl, key(500)) != nil {
			t.Error("an unused route of the dead server is valid")
		}
	})
}

// While meta still names the server that has just disowned the region, callers
// wait; meta is asked soon, then every 60 ms, and each time one may try.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{Rand: func() float64 { return 1 }})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		c.Rejected(r)
		began := time.Now()
		var reads []time.Duration
		f.before = func(scan *MetaScan, rows [][]byte) error {
			reads = append(reads, time.Since(began))
			return nil
		}
		time.AfterFunc(500*time.Millisecond, func() { f.moveTo(4, 10, 8, 11) })
		_, tries := locateServed(t, c, key(4), func(r *Route) bool { return r.Server().Name() == server(8) })
		if tries != 12 {
			t.Errorf("let through to try %d times, want 12", tries)
		}
		us := time.Microsecond
		want := []time.Duration{0, 10000 * us, 20000 * us, 30000 * us, 45000 * us, 67500 * us, 101250 * us, 151875 * us}
		for at := 211875 * us; at < 560*time.Millisecond; at += gateStep {
			want = append(want, at)
		}
		if fmt.Sprint(reads) != fmt.Sprint(want) {
			t.Errorf("meta read at %v, want %v", reads, want)
		}
	})
}

// The region opens on its old server under a new sequence number.
func TestGateSameServerNewSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		c.Rejected(r)
		time.AfterFunc(100*time.Millisecond, func() { f.moveTo(4, 10, 2, 11) })
		got, _ := locateServed(t, c, key(4), func(r *Route) bool { return r.OpenSeq() == 11 })
		if got == r || got.Server() != r.Server() {
			t.Errorf("%v", got)
		}
	})
}

// States of regions that nobody serves, and a server that is down.
func TestGateUntilOpen(t *testing.T) {
	for _, state := range []string{"OPENING", "CLOSED", "FAILED_OPEN", "no server", "server down"} {
		t.Run(state, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newCache(t, Config{})
				f.fill(tbl, 10, 3)
				l := meta.Location{Region: regionOf(tbl, 4, 10), Server: server(9), SeqNum: 12, State: state}
				switch state {
				case "no server":
					l.Server, l.State = meta.ServerName{}, ""
				case "server down":
					l.State = "OPEN"
					f.kill(c, server(9))
				}
				f.put(l)
				time.AfterFunc(300*time.Millisecond, func() { f.moveTo(4, 10, 7, 15) })
				began := time.Now()
				r := mustLocate(t, c, key(4)) // cold: nothing is known yet
				if r.Server().Name() != server(7) || time.Since(began) < 300*time.Millisecond || time.Since(began) > 300*time.Millisecond+gateStep {
					t.Errorf("%v after %v", r, time.Since(began))
				}
				if n := f.reads(); n > 24 {
					t.Errorf("%d reads", n)
				}
			})
		})
	}
}

// A server that comes back lets its waiters go at once.
func TestServerUpOpensGates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 1)
		r := mustLocate(t, c, key(4))
		f.kill(c, server(1))
		time.AfterFunc(5*time.Second, func() { f.revive(server(1)) })
		began := time.Now()
		got := mustLocate(t, c, key(4))
		if got == r || got.Server() != r.Server() || !got.Valid() {
			t.Errorf("%v", got)
		}
		// The prober of the test asks every 5 s at most.
		if took := time.Since(began); took > 12*time.Second {
			t.Errorf("took %v", took)
		}
		up := got.Server().Up()
		select {
		case <-up:
		default:
			t.Error("the server is not up")
		}
	})
}

// Meta keeps to what was disproved: callers are let through to try, soon at
// first, later whenever the outage is a sixteenth longer.
func TestGateTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		began := time.Now()
		var at []time.Duration
		for time.Since(began) < 10*time.Second {
			c.Rejected(r)
			r = mustLocate(t, c, key(4))
			at = append(at, time.Since(began))
		}
		if at[0] < gateFirst/2 || at[0] > 2*gateFirst {
			t.Errorf("first tried after %v", at[0])
		}
		for i := 1; i < len(at); i++ {
			gap := at[i] - at[i-1]
			if late := min(max(gateStep, at[i-1]/gateShare), gateLast); gap > late || at[i] > time.Second && gap < late/2-time.Millisecond {
				t.Errorf("let through at %v and %v", at[i-1], at[i])
			}
		}
		// The gate goes on where it stopped instead of polling anew.
		if n := f.gets.Load(); n > 100 || int(n) > len(at)+1 {
			t.Errorf("%d reads in %v, let through %d times", n, time.Since(began), len(at))
		}
	})
}

// While a region opens, the server that opens it knows first when that is done:
// callers try there, though meta says OPENING still.
func TestTriesWhereItOpens(t *testing.T) {
	for _, c := range []struct{ name, state string }{{"opening", "OPENING"}, {"not opening", "CLOSED"}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cache, f := newCache(t, Config{})
				f.fill(tbl, 10, 3)
				r := mustLocate(t, cache, key(4))
				cache.Rejected(r)
				l := meta.Location{Region: regionOf(tbl, 4, 10), Server: r.Server().Name(), SeqNum: 10, State: c.state}
				if c.state == "OPENING" {
					l.Opener = server(8) // as meta.ParseLocation gives it
				}
				f.put(l)
				began := time.Now()
				time.AfterFunc(5*time.Second, func() { f.moveTo(4, 10, 8, 11) })
				got, tries := locateServed(t, cache, key(4), func(r *Route) bool {
					return r.Server().Name() == server(8) && time.Since(began) > 300*time.Millisecond
				})
				took := time.Since(began)
				if c.state != "OPENING" {
					if took < 5*time.Second || tries > 0 {
						t.Errorf("after %v and %d tries", took, tries)
					}
					return
				}
				if took > 300*time.Millisecond+gateStep || got.Origin() != FromHint || tries < 5 {
					t.Errorf("%v after %v and %d tries", got, took, tries)
				}
				// Once meta says that it is open there, that is what is known.
				time.Sleep(5 * time.Second)
				cache.Recheck(got)
				time.Sleep(gateLast)
				if n := cache.Lookup(tbl, key(4)); n == nil || n.OpenSeq() != 11 || n.Origin() != FromMeta {
					t.Errorf("after meta has heard of it: %v", n)
				}
			})
		})
	}
}

// One wrong answer of a server costs its callers little, and while it is being
// found out, one of them goes ahead.
func TestFalseAlarmIsSoonOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		c.Rejected(mustLocate(t, c, key(4)))
		began := time.Now()
		var mu sync.Mutex
		at := map[time.Duration]int{}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				mustLocate(t, c, fmt.Appendf(key(4), "%d", i))
				mu.Lock()
				defer mu.Unlock()
				at[time.Since(began).Round(time.Millisecond)]++
			})
		}
		wg.Wait()
		if d := time.Since(began); d > 25*time.Millisecond {
			t.Errorf("the last caller waited %v", d)
		}
		first := time.Hour
		for d := range at {
			first = min(first, d)
		}
		if at[first] != 1 {
			t.Errorf("let through %v, want one first", at)
		}
	})
}

// All waiters of a gate share one read, leave as they like, and wake in waves.
func TestGateWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{GateWaiters: 1000})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		f.put(meta.Location{Region: regionOf(tbl, 4, 10), Server: r.Server().Name(), SeqNum: 10, State: "CLOSING"})
		c.Rejected(r)
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		var mu sync.Mutex
		woken := map[time.Duration]int{}
		began := time.Now()
		var wg sync.WaitGroup
		var canceled, full atomic.Int64
		wait := func(ctx context.Context, i int) {
			_, err := c.Locate(ctx, tbl, fmt.Appendf(key(4), "%d", i))
			switch {
			case errors.Is(err, ErrRegionUnavailable) && !errors.Is(err, context.DeadlineExceeded):
				e := locateError(t, err)
				if final, after := e.LocateFailed(); final || after <= 0 || e.Last == nil {
					t.Errorf("%v: final %t, after %v", err, final, after)
				}
				full.Add(1)
			case errors.Is(err, context.DeadlineExceeded):
				canceled.Add(1)
				if !strings.Contains(err.Error(), "in transition") {
					t.Errorf("%v does not say why", err)
				}
			case err != nil:
				t.Error(err)
			default:
				mu.Lock()
				woken[time.Since(began).Round(time.Millisecond)]++
				mu.Unlock()
			}
		}
		wg.Go(func() { wait(context.Background(), 0) })
		synctest.Wait()
		for i := range 499 {
			wg.Go(func() { wait(context.Background(), i+1) })
		}
		for i := range 500 {
			wg.Go(func() { wait(ctx, i) })
		}
		synctest.Wait()
		for i := range 100 {
			wg.Go(func() { wait(context.Background(), i) })
		}
		synctest.Wait()
		if s := c.Stats(); s.Waiters != 1000 || s.Gates != 1 {
			t.Errorf("%d waiters at %d gates", s.Waiters, s.Gates)
		}
		time.Sleep(400 * time.Millisecond)
		if s := c.Stats(); s.Waiters != 500 {
			t.Errorf("%d waiters after the others left", s.Waiters)
		}
		f.moveTo(4, 10, 8, 11)
		wg.Wait()
		if canceled.Load() != 500 || full.Load() != 100 {
			t.Errorf("%d canceled, %d turned away", canceled.Load(), full.Load())
		}
		sizes := map[int]int{}
		for _, n := range woken {
			sizes[n]++
		}
		if len(woken) != 5 || sizes[32] != 1 || sizes[64] != 1 || sizes[128] != 1 || sizes[256] != 1 || sizes[20] != 1 {
			t.Errorf("woken %v, want waves of 32, 64, 128, 256 and the rest", woken)
		}
	})
}

// A region that disowns again while waves roll: those still waiting stay.
func TestWavesStopWhenRejectedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		c.Rejected(mustLocate(t, c, key(4)))
		var wg sync.WaitGroup
		var first, second atomic.Int64
		wait := func(i int) {
			r := mustLocate(t, c, fmt.Appendf(key(4), "%d", i))
			if r.OpenSeq() == 11 {
				first.Add(1)
				c.Rejected(r)
			} else {
				second.Add(1)
			}
		}
		wg.Go(func() { wait(0) })
		synctest.Wait()
		for i := range 999 {
			wg.Go(func() { wait(i + 1) })
		}
		synctest.Wait()
		f.moveTo(4, 10, 8, 11)
		time.AfterFunc(3*time.Second, func() { f.moveTo(4, 10, 9, 12) })
		wg.Wait()
		// A first wave went, and a few more when it was time to try.
		if first.Load() > 200 || first.Load()+second.Load() != 1000 {
			t.Errorf("%d met the region that disowned, %d the right one", first.Load(), second.Load())
		}
	})
}

func TestDisabledTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		f.mu.Lock()
		f.disabled[tbl] = true
		f.mu.Unlock()
		f.change(func(l *meta.Location) bool { l.State = "CLOSED"; return true })
		c.Rejected(r)
		began := time.Now()
		_, err := c.Locate(context.Background(), tbl, key(4))
		if !errors.Is(err, ErrTableNotEnabled) || time.Since(began) > 200*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		reads := f.reads()
		if _, err := c.Locate(context.Background(), tbl, key(4)); !errors.Is(err, ErrTableNotEnabled) || f.reads() != reads {
			t.Errorf("again: %v, %d reads", err, f.reads()-reads)
		}
		f.mu.Lock()
		f.disabled[tbl] = false
		f.mu.Unlock()
		f.change(func(l *meta.Location) bool { l.State, l.SeqNum = "OPEN", 20; return true })
		c.InvalidateTable(tbl)
		mustLocate(t, c, key(4))
	})
}

// Recheck reads once a second at most and leaves the route valid.
func TestRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		time.Sleep(3 * time.Second)
		for range 50 {
			c.Recheck(r)
			if !r.Valid() {
				t.Fatal("recheck makes the route invalid")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := f.gets.Load(); n < 4 || n > 6 {
			t.Errorf("%d reads in 5 s", n)
		}
		f.moveTo(4, 10, 9, 20)
		time.Sleep(2 * time.Second)
		c.Recheck(r)
		synctest.Wait()
		if got := c.Lookup(tbl, key(4)); got == nil || got.Server().Name() != server(9) {
			t.Errorf("after the recheck: %v", got)
		}
	})
}

func TestRefresh(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	ctx := context.Background()
	r := mustLocate(t, c, key(4))
	got, err := c.Refresh(ctx, r)
	if err != nil || got != r || f.gets.Load() != 1 {
		t.Errorf("unchanged: %v, %v, %d gets", got, err, f.gets.Load())
	}
	f.moveTo(4, 10, 9, 20)
	got, err = c.Refresh(ctx, r)
	if err != nil || got.Server().Name() != server(9) || f.gets.Load() != 2 {
		t.Errorf("moved: %v, %v, %d gets", got, err, f.gets.Load())
	}
	c.Rejected(got)
	f.moveTo(4, 10, 8, 21)
	if err := c.Transit(ctx, got); err != nil {
		t.Error(err)
	}
	if n := c.Lookup(tbl, key(4)); n == nil || n.Server().Name() != server(8) {
		t.Errorf("after transit: %v", n)
	}
}

// An error about an old belief does not touch a newer one.
func TestLateRejection(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r := mustLocate(t, c, key(4))
	n := c.Moved(r, server(7), 12)
	c.Rejected(r)
	if c.Lookup(tbl, key(4)) != n {
		t.Error("a late error removed the newer route")
	}
}

// The epoch makes all routes of a server invalid at once, and new ones are
// valid again.
func TestEpoch(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 2)
	for i := range 10 {
		mustLocate(t, c, key(i))
	}
	f.dead.Store(server(1), true)
	s := c.cfg.Servers.Get(server(1))
	s.Refused(errDown)
	for i := range 10 {
		r := c.Lookup(tbl, key(i))
		if i%2 == 0 && r != nil || i%2 == 1 && r == nil {
			t.Errorf("region %d: %v", i, r)
		}
	}
	// A new start code at the address is another server.
	next := server(1)
	next.StartCode++
	if c.cfg.Servers.Get(next); s.State() != health.Dead {
		t.Errorf("old incarnation is %v", s.State())
	}
	f.change(func(l *meta.Location) bool {
		if l.Server == server(1) {
			l.Server, l.SeqNum = next, 11
		}
		return true
	})
	for i := range 10 {
		mustLocate(t, c, key(i))
	}
}

// One answer of meta that is lost holds up nobody but those it was for.
func TestLostRepairBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		a, b := mustLocate(t, c, key(4)), mustLocate(t, c, key(6))
		f.moveTo(4, 10, 8, 11)
		f.moveTo(6, 10, 8, 11)
		f.setDelay(time.Hour)
		c.Rejected(a)
		c.Rejected(b)
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			mustLocate(t, c, key(4))
			if d := time.Since(began); d < 3*time.Second || d > 3100*time.Millisecond {
				t.Errorf("the one whose answer was lost: %v", d)
			}
		})
		synctest.Wait()
		f.setDelay(0)
		wg.Go(func() {
			mustLocate(t, c, key(6))
			if d := time.Since(began); d != batchPatience {
				t.Errorf("the other: %v", d)
			}
		})
		wg.Wait()
	})
}
