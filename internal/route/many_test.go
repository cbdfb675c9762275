package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

func TestLocateMany(t *testing.T) {
	for _, r := range []struct {
		regions, rows int
		most          int64
	}{{1, 100, 1}, {10, 5, 5}, {100, 5000, 4}, {1000, 3000, 8}, {20000, 30, 40}} {
		t.Run(fmt.Sprint(r.rows, " rows in ", r.regions), func(t *testing.T) {
			c, f := newCache(t, Config{})
			f.fill(tbl, r.regions, 7)
			f.setDelay(time.Millisecond)
			rng := rand.New(rand.NewPCG(1, 2))
			rows := make([][]byte, r.rows)
			for i := range rows {
				rows[i] = append(key(rng.IntN(r.regions)), "/x"...)
			}
			slices.SortFunc(rows, bytes.Compare)
			check := func() {
				t.Helper()
				routes, errs := c.LocateMany(context.Background(), tbl, rows)
				for i := range rows {
					if errs[i] != nil || !routes[i].Contains(rows[i]) {
						t.Fatalf("row %q: %v, %v", rows[i], routes[i], errs[i])
					}
				}
			}
			check()
			n := f.reads()
			t.Logf("%d reads, %d rows", n, f.scanned.Load())
			if n > r.most {
				t.Errorf("%d reads, want at most %d", n, r.most)
			}
			check()
			if f.reads() != n {
				t.Errorf("%d more reads the second time", f.reads()-n)
			}
			// Unsorted works too.
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			check()
		})
	}
}

// The time is over before everything is located: what is known is given, and
// the rest has errors of its own.
func TestLocateManyOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 100, 7)
		mustLocate(t, c, key(3))
		mustLocate(t, c, key(50))
		f.setDelay(time.Hour)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		var rows [][]byte
		for i := range 100 {
			rows = append(rows, key(i))
		}
		began := time.Now()
		routes, errs := c.LocateMany(ctx, tbl, rows)
		if time.Since(began) != time.Second {
			t.Errorf("took %v", time.Since(began))
		}
		for i := range rows {
			if known := i == 3 || i == 50; known != (routes[i] != nil) || known == (errs[i] != nil) {
				t.Errorf("row %d: %v, %v", i, routes[i], errs[i])
			} else if !known && (!errors.Is(errs[i], context.DeadlineExceeded) || !bytes.Equal(locateError(t, errs[i]).Row, rows[i])) {
				t.Errorf("row %d: %v", i, errs[i])
			}
		}
		if s := c.Stats(); s.Waiters != 0 {
			t.Errorf("%d waiters left", s.Waiters)
		}
	})
}

func TestLocateManyOfNoTable(t *testing.T) {
	c, f := newCache(t, Config{})
	f.fill(meta.TableName{Namespace: "default", Qualifier: "u"}, 3, 1)
	_, errs := c.LocateMany(context.Background(), tbl, [][]byte{[]byte("a"), []byte("b"), []byte("c")})
	for _, err := range errs {
		if !errors.Is(err, ErrTableNotFound) {
			t.Error(err)
		}
	}
	if f.reads() != 1 {
		t.Errorf("%d reads", f.reads())
	}
}

func TestRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(meta.TableName{Namespace: "default", Qualifier: "s"}, 30, 2)
		f.fill(meta.TableName{Namespace: "default", Qualifier: "tt"}, 30, 2)
		f.fill(tbl, 2500, 7)
		ctx := context.Background()
		for _, r := range []struct {
			start, stop []byte
			from, to    int
			reads       int64
		}{
			{nil, nil, 0, 2500, 3},
			{key(10), key(20), 10, 20, 2},
			{append(key(10), 'x'), append(key(20), 'x'), 10, 21, 2},
			{nil, key(1), 0, 1, 1},
			{key(2499), nil, 2499, 2500, 1},
			{append(key(7), 'a'), append(key(7), 'b'), 7, 8, 1},
		} {
			before := f.reads()
			got, err := c.Regions(ctx, tbl, r.start, r.stop)
			if err != nil || len(got) != r.to-r.from {
				t.Errorf("[%q, %q): %d regions, %v; want %d", r.start, r.stop, len(got), err, r.to-r.from)
				continue
			}
			for i, x := range got {
				if !bytes.Equal(x.Start(), key(r.from+i)) || c.Lookup(tbl, x.Start()) != x {
					t.Fatalf("region %d is %v", i, x)
				}
			}
			if n := f.reads() - before; n != r.reads {
				t.Errorf("[%q, %q): %d reads, want %d", r.start, r.stop, n, r.reads)
			}
		}
		// It is fresh: a move is seen, a region in transition is listed.
		f.moveTo(5, 2500, 9, 11)
		f.put(meta.Location{Region: regionOf(tbl, 6, 2500), State: "OPENING"})
		got, err := c.Regions(ctx, tbl, key(5), key(7))
		if err != nil || len(got) != 2 || got[0].Server().Name() != server(9) {
			t.Errorf("%v, %v", got, err)
		}
		if _, err := c.Regions(ctx, meta.TableName{Namespace: "default", Qualifier: "none"}, nil, nil); !errors.Is(err, ErrTableNotFound) {
			t.Error(err)
		}
		// A hole is waited for, not reported as the end.
		f.delete(regionOf(tbl, 100, 2500))
		time.AfterFunc(300*time.Millisecond, func() { f.moveTo(100, 2500, 3, 12) })
		got, err = c.Regions(ctx, tbl, key(90), key(110))
		if err != nil || len(got) != 20 {
			t.Errorf("%d regions, %v", len(got), err)
		}
		f.delete(regionOf(tbl, 100, 2500))
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := c.Regions(ctx, tbl, nil, nil); !errors.Is(err, errHole) || !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// Warming goes on behind everybody else, and what it read before an error
// stays.
func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 20_000, 7)
		f.setDelay(5 * time.Millisecond)
		if err := c.Warm(context.Background(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		if s := c.Stats(); s.Routes != 20_000 || s.Scans != 20 || s.Reads != 0 {
			t.Errorf("%+v", s)
		}
		c.InvalidateTable(tbl)
		var n atomic.Int64
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		f.before = func(*MetaScan, [][]byte) error {
			if n.Add(1) > 5 {
				cancel()
				return errDown
			}
			return nil
		}
		if err := c.Warm(ctx, tbl, nil, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if s := c.Stats(); s.Routes != 5000 {
			t.Errorf("%d routes", s.Routes)
		}
	})
}

// Unused routes go, used ones stay; and far beyond the bound, the least used
// go early.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 3000, 7)
		if err := c.Warm(context.Background(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(time.Minute)
			for i := range 300 {
				if c.Lookup(tbl, key(i)) == nil {
					t.Fatalf("used route %d is gone", i)
				}
			}
		}
		if s := c.Stats(); s.Routes != 300 || s.Evicted != 2700 {
			t.Errorf("%d routes, %d evicted", s.Routes, s.Evicted)
		}
		time.Sleep(20 * time.Minute)
		if s := c.Stats(); s.Routes != 0 {
			t.Errorf("%d routes", s.Routes)
		}
		mustLocate(t, c, key(700))
	})
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{MaxRoutes: 1000})
		f.fill(tbl, 3000, 7)
		if err := c.Warm(context.Background(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if s := c.Stats(); s.Routes > 1500 {
			t.Errorf("%d routes, bound 1000", s.Routes)
		}
	})
}

// Names of tables that do not exist are not kept for ever.
func TestEmptyTablesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 3, 1)
		mustLocate(t, c, key(1))
		for i := range 3 * maxEmpty {
			name := meta.TableName{Namespace: "default", Qualifier: fmt.Sprint("no", i)}
			if _, err := c.Locate(context.Background(), name, nil); !errors.Is(err, ErrTableNotFound) {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if s := c.Stats(); s.Tables > 2 || c.Lookup(tbl, key(1)) == nil {
			t.Errorf("%d tables", s.Tables)
		}
	})
}

func TestExplain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 10, 3)
		if e := c.Explain(tbl, key(4)); e.Known || e.Routes != 0 {
			t.Errorf("%+v", e)
		}
		r := mustLocate(t, c, key(4))
		time.Sleep(5500 * time.Millisecond)
		e := c.Explain(tbl, key(4))
		if !e.Known || !e.Valid || e.Server != server(2) || e.OpenSeq != 10 || e.Origin != FromMeta || e.Age != 5*time.Second || e.Idle != 5*time.Second || e.Name != r.Encoded() {
			t.Errorf("%+v", e)
		}
		if e := c.Explain(tbl, key(6)); e.Known || !bytes.Equal(e.GapStart, key(5)) || len(e.GapEnd) != 0 {
			t.Errorf("%+v", e)
		}
		f.put(meta.Location{Region: regionOf(tbl, 4, 10), Server: server(2), SeqNum: 10, State: "CLOSING"})
		c.Rejected(r)
		ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
		defer cancel()
		go func() { _, _ = c.Locate(ctx, tbl, key(4)) }()
		time.Sleep(400 * time.Millisecond)
		e = c.Explain(tbl, key(4))
		if e.Valid || e.Why == "" || e.Gate == nil || e.Gate.Attempts < 4 || e.Gate.Waiters != 1 || e.Gate.Last == nil {
			t.Errorf("%+v, gate %+v", e, e.Gate)
		}
		if s := e.String(); len(s) == 0 {
			t.Error("no text")
		} else {
			t.Log("\n" + s)
		}
	})
}

func TestLookupAllocatesNothing(t *testing.T) {
	c, _ := loaded(t, 50_000, 1000)
	row := append(key(31_234), "/x"...)
	if n := testing.AllocsPerRun(1000, func() {
		if c.Lookup(tbl, row) == nil || c.LookupBefore(tbl, row) == nil {
			t.Fatal("miss")
		}
	}); n != 0 {
		t.Errorf("%v allocations a lookup", n)
	}
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := c.Locate(ctx, tbl, row); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a hit", n)
	}
}
