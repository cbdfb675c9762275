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

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Cancelling any caller fails nobody else, not even the one it started the
// flight for; a caller that leaves is back within the tick.
func TestCancelledWaiterHarmsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		f.setDelay(time.Second)
		var wg sync.WaitGroup
		began := time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		wg.Go(func() { // the first: the flight is sent for it
			_, err := c.Locate(ctx, tbl, key(4))
			if !errors.Is(err, context.Canceled) || time.Since(began) != 300*time.Millisecond {
				t.Errorf("canceled caller: %v after %v", err, time.Since(began))
			}
		})
		synctest.Wait()
		for i := range 20 {
			wg.Go(func() {
				ctx := context.Background()
				if i%2 == 1 {
					var stop func()
					ctx, stop = context.WithTimeout(ctx, 500*time.Millisecond)
					defer stop()
				}
				_, err := c.Locate(ctx, tbl, key(4))
				if i%2 == 0 && (err != nil || time.Since(began) != time.Second) {
					t.Errorf("caller %d: %v after %v", i, err, time.Since(began))
				}
				if i%2 == 1 && (!errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 500*time.Millisecond) {
					t.Errorf("caller %d: %v after %v", i, err, time.Since(began))
				}
			})
		}
		time.AfterFunc(300*time.Millisecond, cancel)
		wg.Wait()
		if f.reads() != 1 {
			t.Errorf("%d reads", f.reads())
		}
	})
}

// A flight whose callers have all left publishes what it brings.
func TestFlightWithoutWaitersPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		f.setDelay(time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		_, err := c.Locate(ctx, tbl, key(4))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if c.Lookup(tbl, key(4)) == nil || f.reads() != 1 {
			t.Errorf("not published; %d reads", f.reads())
		}
		// A context that has ended asks nothing.
		if _, err := c.Locate(ctx, tbl, key(7)); !errors.Is(err, context.DeadlineExceeded) || f.reads() != 1 {
			t.Errorf("%v, %d reads", err, f.reads())
		}
	})
}

// Meta does not answer for a while: callers wait, meta is asked at growing
// intervals, and the error of those whose time ends says what is wrong.
func TestMetaUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		var ill atomic.Bool
		ill.Store(true)
		f.before = func(*MetaScan, [][]byte) error {
			if ill.Load() {
				return fmt.Errorf("scan on rs0: %w", errDown)
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		began := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Locate(ctx, tbl, []byte("r\x02"))
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errDown) || time.Since(began) != 2*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			e := locateError(t, err)
			if final, _ := e.LocateFailed(); final || e.Failures < 5 || e.Waited != 2*time.Second {
				t.Errorf("%+v", e)
			}
			for _, part := range []string{`locate "t" row r\x02: context deadline exceeded after 2s and `, "fruitless reads of hbase:meta: scan on rs0: IOException: meta is ill"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		})
		wg.Go(func() {
			mustLocate(t, c, key(4))
			if took := time.Since(began); took < 10*time.Second || took > 11100*time.Millisecond {
				t.Errorf("served after %v, meta was back after 10s", took)
			}
		})
		time.AfterFunc(10*time.Second, func() { ill.Store(false) })
		wg.Wait()
		if n := f.reads(); n > 30 {
			t.Errorf("%d reads in 10 s of meta being ill", n)
		}
		if c.Stats().Breaker != Closed {
			t.Error("breaker still open")
		}
	})
}

// A frozen meta: reads end after ReadTimeout, others are tried.
func TestMetaFrozen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		f.setDelay(time.Hour)
		began := time.Now()
		time.AfterFunc(time.Second, func() { f.setDelay(0) })
		mustLocate(t, c, key(4))
		if took := time.Since(began); took > 3100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// An error that trying again does not cure goes to everybody at once.
func TestMetaRefuses(t *testing.T) { synctest.Test(t, testMetaRefuses) }

func testMetaRefuses(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r := mustLocate(t, c, key(8))
	denied := wire.NewRemoteError(wire.ClassAccessDenied, "no")
	f.before = func(*MetaScan, [][]byte) error { return denied }
	c.Rejected(r)
	for _, row := range [][]byte{key(4), key(8)} {
		_, err := c.Locate(context.Background(), tbl, row)
		if !errors.Is(err, denied) {
			t.Fatalf("row %q: %v", row, err)
		}
		if final, _ := locateError(t, err).LocateFailed(); !final {
			t.Errorf("%v is not final", err)
		}
	}
	f.before = nil
	mustLocate(t, c, key(4))
	mustLocate(t, c, key(8))
}

// The first answer leaves the row out: it is read again, at once and then at
// growing intervals, until the hole is closed.
func TestHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		hole := regionOf(tbl, 4, 10)
		f.delete(hole)
		time.AfterFunc(200*time.Millisecond, func() { f.moveTo(4, 10, 5, 11) })
		began := time.Now()
		r := mustLocate(t, c, key(4))
		if r.Server().Name() != server(5) || time.Since(began) > 700*time.Millisecond {
			t.Errorf("%v after %v", r, time.Since(began))
		}
		if s := c.Stats(); s.Holes < 3 || s.Holes > 9 {
			t.Errorf("%d holes", s.Holes)
		}
		// Its neighbour, which the answers held, is known.
		if c.Lookup(tbl, key(3)) == nil {
			t.Error("the region before the hole is not known")
		}
		f.delete(regionOf(tbl, 7, 10))
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.Locate(ctx, tbl, key(7))
		if !errors.Is(err, errHole) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a hole that stays: %v", err)
		}
	})
}

// Split parents in an answer are stepped over, alone or within a page.
func TestSplitParentsInAnswers(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	for i := 2; i < 8; i += 2 {
		p := regionOf(tbl, i, 10)
		a, b := p, p
		p.Offline, p.Split = true, true
		a.ID, a.End = p.ID+5, append(key(i), 'm')
		b.ID, b.Start = p.ID+5, a.End
		f.put(meta.Location{Region: p, Server: server(1), SeqNum: 10, State: "SPLIT"},
			meta.Location{Region: a, Server: server(5), SeqNum: 1, State: "OPEN"}, meta.Location{Region: b, Server: server(6), SeqNum: 1, State: "OPEN"})
	}
	if r := mustLocate(t, c, key(4)); r.Server().Name() != server(5) {
		t.Errorf("%v", r)
	}
	all, err := c.Regions(context.Background(), tbl, nil, nil)
	if err != nil || len(all) != 13 {
		t.Fatalf("%d regions, %v", len(all), err)
	}
	for i, r := range all {
		if i > 0 && !bytes.Equal(all[i-1].End(), r.Start()) {
			t.Errorf("hole or overlap between %v and %v", all[i-1], r)
		}
	}
	// A parent whose daughters are not there (yet): a hole.
	p := regionOf(tbl, 9, 10)
	p.Offline, p.Split = true, true
	f.put(meta.Location{Region: p, Server: server(1), SeqNum: 10, State: "SPLIT"})
	c.InvalidateTable(tbl)
	var once sync.Once
	f.after = func(_ MetaScan, locs []meta.Location) []meta.Location {
		once.Do(func() {
			p := regionOf(tbl, 9, 10)
			p.ID += 5
			f.rows = append(f.rows, metaRow{p.Name(), meta.Location{Region: p, Server: server(7), SeqNum: 1, State: "OPEN"}, 0})
		})
		return locs
	}
	if r := mustLocate(t, c, key(9)); r.Server().Name() != server(7) {
		t.Errorf("%v", r)
	}
}

// A table that was dropped and is asked for at a known and at an unknown row.
func TestDroppedTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		r := mustLocate(t, c, key(4))
		mustLocate(t, c, key(6))
		f.change(func(*meta.Location) bool { return true })
		f.mu.Lock()
		f.rows = nil
		f.mu.Unlock()
		c.Rejected(r)
		if _, err := c.Locate(context.Background(), tbl, key(4)); !errors.Is(err, ErrTableNotFound) {
			t.Errorf("known row: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := c.Locate(context.Background(), tbl, key(8)); !errors.Is(err, ErrTableNotFound) {
			t.Errorf("unknown row: %v", err)
		}
		// What was left of it is not believed any more.
		if _, err := c.Locate(context.Background(), tbl, key(6)); !errors.Is(err, ErrTableNotFound) {
			t.Errorf("row of a route that was valid: %v", err)
		}
	})
}

// Reads at one time: 8 per table, 32 per client.
func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.setDelay(10 * time.Millisecond)
		var wg sync.WaitGroup
		for i := range 40 {
			name := meta.TableName{Namespace: "default", Qualifier: fmt.Sprintf("t%02d", i)}
			f.fill(name, 200, 3)
			// Routes here and there make many gaps.
			for j := range 20 {
				wg.Go(func() {
					if _, err := c.Locate(context.Background(), name, key(10*j)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		if n := f.most.Load(); n > 32 {
			t.Errorf("%d reads at one time", n)
		}
		f.most.Store(0)
		f.fill(tbl, 1000, 3)
		for i := 0; i < 1000; i += 10 {
			r := regionOf(tbl, i, 1000)
			c.mu.Lock()
			tab := c.tableFor(tbl)
			c.mu.Unlock()
			tab.publish(tab.makeRoutes([]meta.Location{{Region: r, Server: server(1), SeqNum: 10, State: "OPEN"}}, FromMeta))
		}
		for i := range 8 {
			wg.Go(func() { mustLocate(t, c, key(100*i+5)) })
		}
		wg.Wait()
		if n := f.most.Load(); n < 2 || n > 8 {
			t.Errorf("%d reads of one table at one time", n)
		}
	})
}

// A scanner that walks reads ahead in growing pages.
func TestReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 3000, 3)
		var limits []string
		f.before = func(scan *MetaScan, _ [][]byte) error {
			limits = append(limits, fmt.Sprintf("%d %t", scan.Limit, scan.Reversed))
			return nil
		}
		for row := []byte(nil); ; {
			r := mustLocate(t, c, row)
			if row = r.End(); len(row) == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if want := "[1 true 16 false 128 false 1000 false 1000 false 1000 false]"; fmt.Sprint(limits) != want {
			t.Errorf("walk: pages %v, want %v", limits, want)
		}

		// Somebody who says so begins with a large page, but not beyond its end.
		limits = nil
		c.InvalidateTable(tbl)
		time.Sleep(3 * time.Second)
		f.scanned.Store(0)
		for i := 100; i < 140; i++ {
			if _, err := c.LocateAhead(context.Background(), tbl, key(i), key(140)); err != nil {
				t.Fatal(err)
			}
		}
		if want := "[1 true 128 false]"; fmt.Sprint(limits) != want || f.scanned.Load() != 40 {
			t.Errorf("told ahead: pages %v, want %v; %d rows", limits, want, f.scanned.Load())
		}

		// A reversed walk.
		limits = nil
		c.InvalidateTable(tbl)
		time.Sleep(3 * time.Second)
		for row := []byte(nil); ; {
			r, err := c.LocateBefore(context.Background(), tbl, row)
			if err != nil {
				t.Fatal(err)
			}
			if row = r.Start(); len(row) == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if len(limits) > 20 {
			t.Errorf("reversed walk: %d pages %v", len(limits), limits)
		}
	})
}

func TestMetaRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		ctx := context.Background()
		var wg sync.WaitGroup
		var where atomic.Int64
		var fail atomic.Bool
		f.locator = func() (meta.ServerName, error) {
			time.Sleep(10 * time.Millisecond)
			if fail.Load() {
				return meta.ServerName{}, errors.New("zookeeper is away")
			}
			return server(int(where.Load())), nil
		}
		for range 1000 {
			wg.Go(func() {
				r, err := c.Locate(ctx, meta.MetaTable, []byte("t,x,99"))
				if err != nil || string(r.Name()) != meta.MetaRegionName || r.Encoded() != meta.MetaEncodedName || r.Server().Name() != server(0) {
					t.Errorf("%v, %v", r, err)
				}
			})
		}
		wg.Wait()
		if n := f.located.Load(); n != 1 {
			t.Errorf("registry asked %d times", n)
		}
		// It moves: the old server disowns it, the registry lags a little.
		r := c.Lookup(meta.MetaTable, nil)
		c.Rejected(r)
		time.AfterFunc(100*time.Millisecond, func() { where.Store(3) })
		got, err := c.Locate(ctx, meta.MetaTable, nil)
		for err == nil && got.Server().Name() == server(0) { // let through to try
			c.Rejected(got)
			got, err = c.Locate(ctx, meta.MetaTable, nil)
		}
		if err != nil || got.Server().Name() != server(3) {
			t.Errorf("%v, %v", got, err)
		}
		// Its server goes down.
		f.kill(c, server(3))
		where.Store(4)
		got, err = c.Locate(ctx, meta.MetaTable, nil)
		if err != nil || got.Server().Name() != server(4) {
			t.Errorf("%v, %v", got, err)
		}
		if f.reads() != 0 || c.Stats().Registry != f.located.Load() {
			t.Errorf("%d reads of meta, %d of the registry", f.reads(), c.Stats().Registry)
		}
		// The registry does not answer with anything of use: an error that the
		// table does not know is final.
		fail.Store(true)
		c.Rejected(got)
		if _, err := c.Locate(ctx, meta.MetaTable, nil); err == nil || !strings.Contains(err.Error(), "zookeeper is away") {
			t.Errorf("%v", err)
		}
		all, err := c.Regions(ctx, meta.MetaTable, nil, nil)
		fail.Store(false)
		if err == nil {
			t.Errorf("%v", all)
		}
		if all, err = c.Regions(ctx, meta.MetaTable, nil, nil); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	})
}

func TestClose(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(tbl, 10, 3)
	r := mustLocate(t, c, key(1))
	c.Rejected(r) // stays in transition: meta says the same
	f.setDelay(20 * time.Millisecond)
	var wg sync.WaitGroup
	started := make(chan struct{}, 300)
	call := func(f func() error) {
		wg.Go(func() {
			started <- struct{}{}
			if err := f(); !errors.Is(err, ErrClosed) {
				t.Errorf("%v, want ErrClosed", err)
			}
		})
	}
	ctx := context.Background()
	for range 50 {
		call(func() error { _, err := c.Locate(ctx, tbl, key(1)); return err })
	}
	for range 50 {
		<-started
	}
	time.Sleep(30 * time.Millisecond)
	f.setDelay(time.Hour)
	for i := range 50 {
		call(func() error { _, err := c.Locate(ctx, tbl, key(2+i%7)); return err })
	}
	call(func() error { _, err := c.Regions(ctx, tbl, nil, nil); return err })
	call(func() error { return c.Warm(ctx, tbl, nil, nil) })
	for range 52 {
		<-started
	}
	time.Sleep(10 * time.Millisecond)
	c.Close()
	wg.Wait()
	c.Close()
	if _, err := c.Locate(ctx, tbl, key(9)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if _, err := c.Regions(ctx, tbl, nil, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	_, errs := c.LocateMany(ctx, tbl, [][]byte{key(1), key(2)})
	if !errors.Is(errs[0], ErrClosed) || !errors.Is(errs[1], ErrClosed) {
		t.Error(errs)
	}
	c.ServerDown(r.Server())
	c.ServerUp(r.Server())
	c.Recheck(r)
	c.InvalidateTable(tbl)
}
