package route

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// inUse gives a cache with all routes of a table in use.
func inUse(t *testing.T, regions int) (*Cache, *fakeMeta) {
	t.Helper()
	c, f := newCache(t, Config{})
	f.fill(tbl, regions, 5)
	if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * second)
	useAll(t, c, regions)
	return c, f
}

func useAll(t *testing.T, c *Cache, regions int) {
	t.Helper()
	for i := range regions {
		if c.Lookup(tbl, key(i)) == nil {
			t.Fatalf("region %d is not known", i)
		}
	}
}

// place is where region i is said to be by meta.
func (f *fakeMeta) place(i int) meta.Location {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rows[i].loc
}

// meet is a call on a region: its old server, if the route still names it, gives
// a hint. It says whether the call met the old server.
func meet(c *Cache, f *fakeMeta, i int) bool {
	r := c.Lookup(tbl, key(i))
	l := f.place(i)
	if r == nil || r.Server().Name() == l.Server {
		return false
	}
	if c.Moved(r, l.Server, l.SeqNum) == nil {
		c.Rejected(r)
	}
	return true
}

func TestFewMovesCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 1000
		c, f := inUse(t, n)
		reads := f.reads()
		for round := range 20 {
			for k := range stormSize - 1 {
				x := (round*31 + k*7) % n
				f.move(9+round, func(i int) bool { return i == x })
				if !meet(c, f, x) {
					t.Fatalf("region %d was not met at its old place", x)
				}
			}
			time.Sleep(second)
		}
		// One region, over and over.
		for range 20 {
			r := c.Lookup(tbl, key(500))
			c.Moved(r, server(int(r.OpenSeq())+40), r.OpenSeq()+1)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(second)
		if got := f.reads() - reads; got != 0 {
			t.Errorf("%d reads of meta", got)
		}
	})
}

func TestMassMoveIsForeseen(t *testing.T) {
	for _, drained := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			const n = 1000
			c, f := inUse(t, n)
			moved := f.move(9, func(i int) bool { return !drained || i%5 == 0 })
			reads := f.reads()
			met := 0
			for i := range n {
				if i%5 == 0 && meet(c, f, i) {
					if met++; met == stormSize {
						break
					}
				}
			}
			time.Sleep(100 * time.Millisecond)
			for i := range n {
				if meet(c, f, i) {
					met++
				}
			}
			s := c.Stats().Storm
			if met != stormSize {
				t.Errorf("drained %t: %d calls met old servers, want %d", drained, met, stormSize)
			}
			if got, want := f.reads()-reads, int64((moved-stormSize)/repairBatch+2); got > want {
				t.Errorf("drained %t: %d reads of meta for %d moves (%+v)", drained, got, moved, s)
			}
		})
	}
}

// TestServerDrain: regions of many tables leave one server.
func TestServerDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		table := func(i int) meta.TableName {
			return meta.TableName{Namespace: "default", Qualifier: "t" + string(rune('a'+i))}
		}
		for i := range 26 {
			f.fill(table(i), 2, 2)
			if err := c.Warm(t.Context(), table(i), nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * second)
		f.change(func(l *meta.Location) bool {
			if l.Server == server(1) {
				l.Server, l.SeqNum = server(9), 20
			}
			return true
		})
		reads := f.reads()
		for i := range stormSize {
			c.Moved(c.Lookup(table(i), nil), server(9), 20)
		}
		time.Sleep(100 * time.Millisecond)
		for i := range 26 {
			if r := c.Lookup(table(i), nil); r == nil || r.Server().Name() != server(9) {
				t.Errorf("table %d: %v", i, r)
			}
		}
		if got := f.reads() - reads; got != 1 {
			t.Errorf("%d reads of meta, want 1", got)
		}
	})
}

// TestStormsAreWorthTheirReads: a table moves while it is in use, some regions a
// second, and whatever the pace the reads are fewer than what they have found.
func TestStormsAreWorthTheirReads(t *testing.T) {
	for _, tc := range []struct {
		name      string
		perSecond int
		saved     float64 // at least, of the calls to old servers
	}{
		{"balancer", 5, 0}, {"slow", 50, 0}, {"fast", 500, 0.3}, {"at once", 20_000, 0.9},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n, step = 2000, 100 * time.Millisecond
				c, f := inUse(t, n)
				moved, met, at := 0, 0, 0.0
				began := time.Now()
				for moved < n && time.Since(began) < time.Minute {
					at += float64(tc.perSecond) * step.Seconds()
					f.mu.Lock()
					for ; moved < min(int(at), n); moved++ {
						k := moved * 997 % n
						f.rows[k].loc.Server, f.rows[k].loc.SeqNum = server(50), 30
					}
					f.mu.Unlock()
					// A region is used every five seconds.
					for i := range n {
						if (i*31+int(time.Since(began)/step))%50 == 0 && meet(c, f, i) {
							met++
						}
					}
					time.Sleep(step)
				}
				for i := range n {
					if meet(c, f, i) {
						met++
					}
				}
				s := c.Stats()
				t.Logf("%d moved, %d calls met an old server, %+v", moved, met, s.Storm)
				if s.Storm.Reads > 10+s.Storm.Changed/10 {
					t.Errorf("%d reads found %d changes", s.Storm.Reads, s.Storm.Changed)
				}
				if saved := 1 - float64(met)/float64(moved); saved < tc.saved {
					t.Errorf("%.2f of the calls to old servers saved, want %.2f", saved, tc.saved)
				}
			})
		})
	}
}

func TestStormWhileMetaIsIll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := inUse(t, 100)
		f.before = func(*MetaScan, [][]byte) error { return errDown }
		reads := f.reads()
		for i := range 50 {
			c.Moved(c.Lookup(tbl, key(i)), server(9), 20)
		}
		time.Sleep(100 * time.Millisecond)
		if got := f.reads() - reads; got != 1 {
			t.Errorf("%d reads of a meta that is ill, want 1", got)
		}
	})
}

func TestNoStormWhileWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 100)
		time.Sleep(2 * second)
		useAll(t, c, 100)
		reads := f.reads()
		for i := range 50 {
			c.Moved(c.Lookup(tbl, key(i)), server(9), 20)
		}
		time.Sleep(100 * time.Millisecond)
		if got := f.reads() - reads; got != 0 {
			t.Errorf("%d reads of meta for what the watcher brings", got)
		}
	})
}
