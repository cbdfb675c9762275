package route

import (
	"bytes"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

const second = time.Second

// watching gives a warm cache that follows meta.
func watching(t *testing.T, regions int) (*Cache, *fakeMeta) {
	t.Helper()
	c, f := newCache(t, Config{WatchInterval: second})
	watch(t, c, f, regions)
	return c, f
}

// watch fills meta, and brings cache and watcher up to date.
func watch(t *testing.T, c *Cache, f *fakeMeta, regions int) {
	t.Helper()
	f.fill(tbl, regions, 3)
	time.Sleep(time.Hour) // what there is has not just been written
	if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * second) // the mark is found, and there has been a poll from it
	synctest.Wait()
	if m := c.Stats().Watch.Mark; m == 0 {
		t.Fatal("no mark was found")
	}
}

// move gives the regions pick says yes to a new place.
func (f *fakeMeta) move(to int, pick func(i int) bool) (moved int) {
	i := 0
	f.change(func(l *meta.Location) bool {
		if pick(i) {
			l.Server, l.State = server(to), "OPEN"
			l.SeqNum += 5
			moved++
		}
		i++
		return true
	})
	return moved
}

func TestWatchIsAheadOfTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2500
		c, f := watching(t, n)
		reads := f.reads()
		moved := f.move(50, func(i int) bool { return i%2 == 0 })
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		for i := range n {
			r := c.Lookup(tbl, key(i))
			if r == nil {
				t.Fatalf("region %d is not known any more", i)
			}
			if got, want := r.Server().Name() == server(50), i%2 == 0; got != want {
				t.Fatalf("region %d is on %s", i, r.Server().Name())
			}
		}
		s := c.Stats()
		if got := f.reads() - reads; got != 0 {
			t.Errorf("%d ordinary reads of meta", got)
		}
		if s.Watch.Published != int64(moved) || s.Watch.Rows < int64(moved) || s.Watch.Bytes < 500*int64(moved) {
			t.Errorf("moved %d, stats %+v", moved, s.Watch)
		}
		// Nothing happens any more: nothing is sent any more.
		time.Sleep(5 * second)
		before := c.Stats().Watch
		time.Sleep(20 * second)
		after := c.Stats().Watch
		if after.Rows != before.Rows || after.Polls-before.Polls < 14 || after.Reads-before.Reads != after.Polls-before.Polls {
			t.Errorf("idle: %d rows in %d polls of %d reads", after.Rows-before.Rows, after.Polls-before.Polls, after.Reads-before.Reads)
		}
	})
}

func TestWatchWithWrongClocks(t *testing.T) {
	for _, skew := range []time.Duration{-24 * time.Hour, -time.Minute, time.Minute, 24 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newCache(t, Config{WatchInterval: second})
				f.skew.Store(skew.Milliseconds())
				f.fill(tbl, 10, 1)
				time.Sleep(time.Hour)
				if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * second)
				f.move(9, func(i int) bool { return i == 3 })
				time.Sleep(1500 * time.Millisecond)
				synctest.Wait()
				if r := c.Lookup(tbl, key(3)); r == nil || r.Server().Name() != server(9) {
					t.Errorf("the move was not seen: %v", r)
				}
			})
		})
	}
}

func TestWatchSeesWhatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 10)
		f.move(8, func(i int) bool { return i == 1 })
		time.Sleep(1300 * time.Millisecond)
		// Stamped before that, and visible only now.
		f.move(9, func(i int) bool { return i == 2 })
		f.mu.Lock()
		f.rows[2].ts = f.rows[1].ts - 10
		f.mu.Unlock()
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		if r := c.Lookup(tbl, key(2)); r == nil || r.Server().Name() != server(9) {
			t.Errorf("the late one was not seen: %v", r)
		}
	})
}

func TestWatchGetsOnWhenAnswersEndEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 1000)
		f.early.Store(70)
		f.move(9, func(i int) bool { return i == 3 || i == 990 })
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		for _, i := range []int{3, 990} {
			if r := c.Lookup(tbl, key(i)); r == nil || r.Server().Name() != server(9) {
				t.Errorf("the move of %d was not seen: %v", i, r)
			}
		}
	})
}

func TestWatchClosedRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 10)
		state := func(i int, s string) {
			k := 0
			f.change(func(l *meta.Location) bool {
				if k == i {
					l.State = s
				}
				k++
				return true
			})
			time.Sleep(1300 * time.Millisecond)
			synctest.Wait()
		}
		state(4, "CLOSING")
		if c.Lookup(tbl, key(4)) == nil {
			t.Error("a region that is closing is served still")
		}
		state(4, "CLOSED")
		if r := c.Lookup(tbl, key(4)); r != nil {
			t.Errorf("callers would meet the old server: %v", r)
		}
		if n := c.Stats().Watch.Disowned; n != 1 {
			t.Errorf("%d regions disowned, want 1", n)
		}
		reads := f.reads()
		f.move(9, func(i int) bool { return i == 4 })
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		if r := c.Lookup(tbl, key(4)); r == nil || r.Server().Name() != server(9) {
			t.Errorf("opened again, and not known: %v", r)
		}
		// A hint knows of a place that meta has not heard of.
		state(5, "CLOSING")
		if c.Moved(c.Lookup(tbl, key(5)), server(8), 20) == nil {
			t.Fatal("hint refused")
		}
		state(5, "OPENING")
		if r := c.Lookup(tbl, key(5)); r == nil || r.Server().Name() != server(8) {
			t.Errorf("a hint was given up for an older answer: %v", r)
		}
		if n := f.reads() - reads; n != 0 {
			t.Errorf("%d reads of meta", n)
		}
	})
}

func TestWatchSplitAndMerge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 6)
		parent := regionOf(tbl, 2, 6)
		a, b := parent, parent
		a.ID, b.ID = parent.ID+1, parent.ID+1
		a.End, b.Start = []byte("user-00000002-m"), []byte("user-00000002-m")
		parent.Split, parent.Offline = true, true
		f.put(meta.Location{Region: parent, Server: server(1), SeqNum: 10, State: "SPLIT"},
			meta.Location{Region: a, Server: server(1), SeqNum: 1, State: "OPEN"},
			meta.Location{Region: b, Server: server(2), SeqNum: 1, State: "OPEN"})
		x, y := regionOf(tbl, 4, 6), regionOf(tbl, 5, 6)
		both := x
		both.ID, both.End = x.ID+7, y.End
		f.delete(x, y)
		f.put(meta.Location{Region: both, Server: server(3), SeqNum: 1, State: "OPEN"})
		reads := f.reads()
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		for _, tc := range []struct {
			row  []byte
			want meta.Region
		}{{key(2), a}, {[]byte("user-00000002-n"), b}, {key(4), both}, {key(5), both}, {key(1), regionOf(tbl, 1, 6)}} {
			if r := c.Lookup(tbl, tc.row); r == nil || r.RegionID() != tc.want.ID || !bytes.Equal(r.Start(), tc.want.Start) {
				t.Errorf("row %q: %v, want %s", tc.row, r, tc.want.String())
			}
		}
		if n := f.reads() - reads; n != 0 {
			t.Errorf("%d reads of meta", n)
		}
	})
}

func TestWatchKeepsToWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{WatchInterval: second})
		before, after := meta.TableName{Namespace: "a", Qualifier: "a"}, meta.TableName{Namespace: "default", Qualifier: "zzz"}
		f.fill(before, 100, 1)
		f.fill(after, 100, 1)
		f.fill(tbl, 100, 1)
		time.Sleep(10 * second)
		if n := f.changes.Load(); n != 0 {
			t.Errorf("%d polls without a route that could be wrong", n)
		}
		for i := 10; i < 13; i++ {
			if _, err := c.Locate(t.Context(), tbl, key(i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Locate(t.Context(), before, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * second)
		held := c.Stats().Routes
		rows := c.Stats().Watch.Rows
		f.move(9, func(int) bool { return true })
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		s := c.Stats()
		if s.Routes != held || s.Watch.Published != int64(held) {
			t.Errorf("%d routes, held %d; %d published", s.Routes, held, s.Watch.Published)
		}
		if n := s.Watch.Rows - rows; n > 2*200 {
			t.Errorf("%d rows read: more than those of the tables held", n)
		}
		if c.lookupTable(after) != nil {
			t.Error("a table nobody asked for is known")
		}
	})
}

func TestWatchedRoutesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 20)
		for range 16 {
			time.Sleep(time.Minute)
			f.move(9, func(int) bool { return true })
			c.Lookup(tbl, key(3)) // in use
		}
		synctest.Wait()
		if n := c.Stats().Routes; n != 1 {
			t.Errorf("%d routes, want the one that is used", n)
		}
	})
}

func TestWatchNameOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := watching(t, 5)
		known := regionOf(tbl, 2, 5)
		named := meta.Region{Table: tbl, ID: known.ID, Start: known.Start} // no end
		other := named
		other.ID++
		c.apply([]Change{
			{Location: meta.Location{Region: named, Server: server(9), SeqNum: 20, State: ""}, NameOnly: true},
			{Location: meta.Location{Region: other, Server: server(9), SeqNum: 20, State: ""}, NameOnly: true},
		}, 1)
		r := c.Lookup(tbl, key(2))
		if r == nil || r.Server().Name() != server(9) || !bytes.Equal(r.End(), known.End) {
			t.Errorf("got %v, want the known region on %s", r, server(9))
		}
	})
}

func TestWatchWhileMetaIsIll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ill atomic.Bool
		c, f := newCache(t, Config{WatchInterval: second})
		f.before = func(*MetaScan, [][]byte) error {
			if ill.Load() {
				return errDown
			}
			return nil
		}
		watch(t, c, f, 10)
		ill.Store(true)
		before := f.changes.Load()
		time.Sleep(2 * time.Minute)
		if n := f.changes.Load() - before; n > 12 {
			t.Errorf("%d polls in two minutes in which meta did not answer", n)
		}
		f.move(9, func(i int) bool { return i == 3 })
		time.Sleep(time.Minute)
		ill.Store(false)
		time.Sleep(watchPause * 3 / 2)
		synctest.Wait()
		if r := c.Lookup(tbl, key(3)); r == nil || r.Server().Name() != server(9) {
			t.Errorf("what happened meanwhile was not seen: %v", r)
		}
		if s := c.Stats().Watch; s.Failed == 0 {
			t.Errorf("no failure counted: %+v", s)
		}
	})
}

// TestWatchBegins: finding out where to begin is cheap, whatever happened when.
func TestWatchBegins(t *testing.T) {
	const n = 30_000
	day := 24 * time.Hour.Milliseconds()
	for _, tc := range []struct {
		name  string
		stamp func(i int) int64 // ms ago
		rows  int64             // at most read before it is idle
	}{
		{"restarted a week ago, in order", func(i int) int64 { return 7*day - int64(i) }, 2000},
		{"restarted a week ago, at random", func(i int) int64 { return 7*day - int64(i*7919%n)*20 }, 2000},
		{"just restarted, in order", func(i int) int64 { return int64(n-i) * 10 }, 2500},
		{"one move a minute", func(i int) int64 { return int64(i*7919%n) * 60_000 }, 1500},
		{"all at one time", func(int) int64 { return 30 * day }, 1500},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, f := newCache(t, Config{WatchInterval: second})
				f.fill(tbl, n, 3)
				now := time.Now().UnixMilli()
				for i := range f.rows {
					f.rows[i].ts = now - tc.stamp(i)
				}
				if _, err := c.Locate(t.Context(), tbl, key(5)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * second)
				s := c.Stats().Watch
				time.Sleep(10 * second)
				if again := c.Stats().Watch; again.Rows != s.Rows {
					t.Errorf("%d rows a second", (again.Rows-s.Rows)/10)
				}
				if s.Rows > tc.rows {
					t.Errorf("%d rows read to begin with, want at most %d (%+v)", s.Rows, tc.rows, s)
				}
				newest := now - tc.stamp(0)
				for i := range f.rows {
					newest = max(newest, f.rows[i].ts)
				}
				if s.Mark != newest+1 {
					t.Errorf("mark is %d, the newest cell %d", s.Mark, newest)
				}
				t.Logf("%d rows in %d reads", s.Rows, s.Reads)
			})
		})
	}
}

func TestWatchGivesUpWhatIsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{WatchInterval: second})
		f.fill(tbl, 3*watchLeast, 3)
		if _, err := c.Locate(t.Context(), tbl, key(5)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * second)
		f.move(9, func(int) bool { return true })
		before := c.Stats().Watch.Rows
		time.Sleep(20 * second)
		s := c.Stats().Watch
		if s.Lost == 0 || s.Rows-before > 2*watchLeast {
			t.Errorf("read %d rows for one route: %+v", s.Rows-before, s)
		}
	})
}

// TestWatchCosts measures what following meta costs it: nothing that depends on
// the number of regions, but on how many of them change.
func TestWatchCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 20_000
		c, f := newCache(t, Config{WatchInterval: second, MaxRoutes: 1 << 20})
		f.fill(tbl, n, 300)
		time.Sleep(time.Hour)
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * second)
		report := func(what string, a, b WatchStats) {
			polls := max(b.Polls-a.Polls, 1)
			t.Logf("%s: %d polls, %d reads, per poll %.1f rows, %.0f bytes", what, b.Polls-a.Polls, b.Reads-a.Reads,
				float64(b.Rows-a.Rows)/float64(polls), float64(b.Bytes-a.Bytes)/float64(polls))
		}
		s0 := c.Stats().Watch
		time.Sleep(30 * second)
		s1 := c.Stats().Watch
		report("idle", s0, s1)
		if s1.Rows != s0.Rows {
			t.Errorf("idle polls read %d rows", s1.Rows-s0.Rows)
		}
		// A thousand regions a second are moved for ten seconds.
		order := make([]int, 0, 10_000)
		for i := range 10_000 {
			order = append(order, i*(n/10_000))
		}
		for batch := range slices.Chunk(order, 100) {
			f.mu.Lock()
			for _, i := range batch {
				l := &f.rows[i].loc
				l.Server, l.SeqNum = server(500), l.SeqNum+5
				f.rows[i].ts = f.stamp()
			}
			f.mu.Unlock()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(5 * second)
		synctest.Wait()
		s2 := c.Stats().Watch
		report("1000 moves a second", s1, s2)
		if s2.Published-s1.Published != 10_000 {
			t.Errorf("%d published, want all 10000", s2.Published-s1.Published)
		}
		if rows := s2.Rows - s1.Rows; rows > 5*10_000 {
			t.Errorf("%d rows read for 10000 moves", rows)
		}
		for _, i := range order {
			if r := c.Lookup(tbl, key(i)); r == nil || r.Server().Name() != server(500) {
				t.Fatalf("region %d: %v", i, r)
			}
		}
	})
}

// BenchmarkWatchApply is what a page of a thousand moves costs the client.
func BenchmarkWatchApply(b *testing.B) {
	const n = 300_000
	c, _ := loaded(b, n, 1000)
	changes := make([]Change, watchPage)
	seq := int64(10)
	b.ReportAllocs()
	for b.Loop() {
		seq++
		for i := range changes {
			changes[i] = Change{Location: meta.Location{
				Region: regionOf(tbl, i*(n/watchPage), n), Server: server(int(seq % 100)), SeqNum: seq, State: "OPEN",
			}}
		}
		c.apply(changes, 1)
	}
	if got := c.Stats().Watch.Published; got != int64(b.N)*watchPage {
		b.Errorf("%d published in %d pages", got, b.N)
	}
}

// TestWatchCorrectsLoadedRoutes: routes that come from a file were learned
// before the cache's clock began; they are disowned like any other.
func TestWatchCorrectsLoadedRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := watching(t, 10)
		var file bytes.Buffer
		if _, err := c.Save(&file, Cluster{Address: "x"}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		f.change(func(l *meta.Location) bool {
			if bytes.Equal(l.Region.Start, key(4)) {
				l.State = "CLOSED"
			}
			return true
		})
		time.Sleep(time.Hour)
		d, g := newCache(t, Config{WatchInterval: second})
		g.rows = f.rows
		if n, err := d.Load(&file, Cluster{Address: "x"}); err != nil || n.Routes != 10 {
			t.Fatalf("loaded %v, %v", n, err)
		}
		time.Sleep(1300 * time.Millisecond)
		synctest.Wait()
		if r := d.Lookup(tbl, key(4)); r != nil {
			t.Errorf("callers would meet a server that has closed the region: %v", r)
		}
		if r := d.Lookup(tbl, key(5)); r == nil {
			t.Error("its neighbour is not known any more")
		}
	})
}

// TestWatchWhenTheClockGoesBack: a new master's clock is behind what the mark
// has seen, or one cell is far ahead of all others. The watcher is blind then,
// says so, and mass moves are noticed as without one.
func TestWatchWhenTheClockGoesBack(t *testing.T) {
	for name, back := range map[string]func(f *fakeMeta){
		"a master that is an hour behind": func(f *fakeMeta) { f.skew.Store(-time.Hour.Milliseconds()) },
		"a cell of next year": func(f *fakeMeta) {
			f.skew.Store(365 * 24 * time.Hour.Milliseconds())
			f.move(8, func(i int) bool { return i == 7 })
			f.skew.Store(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const n = 1000
				c, f := watching(t, n)
				f.move(8, func(i int) bool { return i == 3 })
				time.Sleep(5 * second)
				back(f)
				time.Sleep(5 * second)
				met := 0
				for round := range 6 {
					useAll(t, c, n)
					f.move(20+round, func(i int) bool { return i%2 == 1 && i != 7 })
					time.Sleep(1500 * time.Millisecond)
					for k := range n {
						if meet(c, f, k) {
							if met++; met%5 == 0 {
								time.Sleep(10 * time.Millisecond)
							}
						}
					}
					time.Sleep(20 * second)
				}
				s := c.Stats()
				// Much of the first round is met, since nothing is known to be wrong;
				// what follows is foreseen.
				if met > n/2+10*stormSize {
					t.Errorf("%d calls met old servers (%+v, %+v)", met, s.Watch, s.Storm)
				}
				if s.Watch.Blind == 0 {
					t.Errorf("it has not been noticed: %+v", s.Watch)
				}
				if reads := s.Watch.Reads - s.Watch.Polls; reads > 120 {
					t.Errorf("%d reads to find a mark", reads)
				}
				t.Logf("met %d; %+v, %+v", met, s.Watch, s.Storm)
			})
		})
	}
}
