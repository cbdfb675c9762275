package route

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// storms notices mass moves: a table moved to another group of servers, a
// server drained. When several regions of one table, or of one server, have
// been disowned within a second, the others will mostly follow, and each would
// cost its next caller a round trip to the old server. So the used routes of
// the table (or server) are read again, 200 to a read, behind everybody else.
//
// It must not cost meta more than it saves. The first read is a sample, spread
// over all candidates; only while a tenth of a read's regions have really
// changed does the next follow. If not, the suspicion was wrong, and the next
// one is looked into later and later. A few moves cost nothing at all.
type storms struct {
	// quiet: until then (ns since the cache began) nothing is looked into; also
	// what makes an event cost next to nothing meanwhile.
	quiet atomic.Int64

	mu     sync.Mutex
	events []disowned // within the last stormWindow, oldest first
	pause  time.Duration
}

// disowned is a route that its server has disowned.
type disowned struct {
	route *Route
	at    time.Time
}

const (
	stormWindow = time.Second
	// stormSize: so many regions disowned within the window are suspicious. Two
	// or three are a balancer at work.
	stormSize = 4
	// stormLeast: with fewer routes that might have moved it is not worth a
	// read.
	stormLeast = 16
	// stormYield: a read goes on to the next if one in so many of its regions
	// had changed.
	stormYield = 10
	// stormReads bounds the reads of one sweep.
	stormReads = 100
	// After a sweep there is a pause, doubled as long as sweeps find nothing.
	stormPauseMin = 250 * time.Millisecond
	stormPauseMax = time.Minute
	// stormEvents bounds what is remembered.
	stormEvents = 64
)

// StormStats tells what was done about mass moves.
type StormStats struct {
	// Sweeps counts the suspicions that were looked into, Reads the reads of
	// hbase:meta for them, Routes the routes read again, Changed those that had
	// become wrong.
	Sweeps, Reads, Routes, Changed int64
}

type stormCounters struct{ sweeps, reads, routes, changed atomic.Int64 }

func (n *stormCounters) stats() StormStats {
	return StormStats{Sweeps: n.sweeps.Load(), Reads: n.reads.Load(), Routes: n.routes.Load(), Changed: n.changed.Load()}
}

// noticed takes note of a route that has just been disowned.
func (c *Cache) noticed(r *Route) {
	if r.table.isMeta || r.server == nil {
		return
	}
	now := time.Now()
	if int64(now.Sub(c.began)) < c.storms.quiet.Load() {
		return
	}
	watched := c.watcher.well(now)
	su := c.storms.add(r, now)
	if su == nil {
		return
	}
	if watched {
		// It may not have polled yet. If it has nothing to tell then, it is not
		// as well as it seems.
		c.watcher.suspect.Store(true)
		c.storms.quiet.Store(int64(now.Add(stormWindow).Sub(c.began)))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Add(1)
		go c.sweepStorm(su)
	}
}

// suspicion is that a table or a server, or both, are losing their regions.
type suspicion struct {
	table  *table         // nil: not suspected
	server *health.Server // nil: not suspected
	from   []*health.Server
}

// add counts the event, and gives what is suspected if that is due. Then it is
// quiet until the sweep has ended.
func (s *storms) add(r *Route, now time.Time) *suspicion {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := 0
	for old < len(s.events) && now.Sub(s.events[old].at) >= stormWindow {
		old++
	}
	s.events = s.events[old:]
	ofTable, ofServer := 1, 1
	su := &suspicion{from: []*health.Server{r.server}}
	for i := range s.events {
		x := s.events[i].route
		if x.sameRegion(r) {
			return nil
		}
		if x.table == r.table {
			ofTable++
		}
		if x.server == r.server {
			ofServer++
		}
		if !slices.Contains(su.from, x.server) {
			su.from = append(su.from, x.server)
		}
	}
	if ofTable >= stormSize {
		su.table = r.table
	}
	if ofServer >= stormSize {
		su.server = r.server
	}
	if su.table == nil && su.server == nil {
		if len(s.events) == stormEvents {
			s.events = s.events[1:]
		}
		s.events = append(s.events, disowned{r, now})
		return nil
	}
	s.events = nil
	s.quiet.Store(1<<63 - 1)
	return su
}

// sweepStorm reads the routes again that may be wrong.
func (c *Cache) sweepStorm(su *suspicion) {
	defer c.wg.Done()
	groups := c.suspects(su)
	found := false
	if len(groups) > 0 {
		c.stats.storms.sweeps.Add(1)
	}
	for n := 0; len(groups) > 0 && n < stormReads; n++ {
		var batch []*Route
		var from []int // which group each is of
		for g := range groups {
			share := (repairBatch - len(batch)) / (len(groups) - g)
			take := min(share, len(groups[g]))
			for _, r := range groups[g][:take] {
				if r.Valid() && r.current() {
					batch, from = append(batch, r), append(from, g)
				}
			}
			groups[g] = groups[g][take:]
		}
		changed := make([]int, len(groups))
		asked := make([]int, len(groups))
		if len(batch) > 0 {
			if c.reread(c.ctx, batch) != nil {
				break
			}
			for i, r := range batch {
				asked[from[i]]++
				if !r.Valid() || !r.current() {
					changed[from[i]]++
					c.stats.storms.changed.Add(1)
				}
			}
		}
		kept := groups[:0]
		for g, list := range groups {
			good := asked[g] > 0 && changed[g]*stormYield >= asked[g]
			found = found || good
			if len(list) > 0 && (good || asked[g] == 0) {
				kept = append(kept, list)
			}
		}
		groups = kept
	}
	st := &c.storms
	st.mu.Lock()
	defer st.mu.Unlock()
	st.pause = min(max(2*st.pause, stormPauseMin), stormPauseMax)
	if found {
		st.pause = stormPauseMin
	}
	st.quiet.Store(int64(time.Since(c.began) + st.pause))
}

// suspects gives the valid routes that may be wrong, used lately and not learned
// just now. They are in groups that are more or less probable each: the table's
// on servers that have disowned some, the table's others, and those of other
// tables on the server. Each is shuffled, so that whatever is read first is a
// fair sample of it.
func (c *Cache) suspects(su *suspicion) (groups [][]*Route) {
	var list [3][]*Route
	now := c.now.Load()
	for _, t := range *c.tables.Load() {
		if t.isMeta || su.server == nil && t != su.table {
			continue
		}
		for _, ch := range t.root.Load().chunks {
			for _, r := range ch.routes {
				g := 0
				switch {
				case t != su.table && r.server != su.server:
					continue
				case t != su.table:
					g = 2
				case !slices.Contains(su.from, r.server):
					g = 1
				}
				if r.Valid() && r.idle(now) <= plannedUse && now-r.learned.Load() > 1 {
					list[g] = append(list[g], r)
				}
			}
		}
	}
	for _, l := range list {
		if len(l) < stormLeast {
			continue
		}
		for i := len(l) - 1; i > 0; i-- {
			k := int(c.cfg.Rand() * float64(i+1))
			l[i], l[k] = l[k], l[i]
		}
		groups = append(groups, l)
	}
	return groups
}

// current says whether the index has this very route.
func (r *Route) current() bool { return r.table.root.Load().floor(r.startKey()) == r }

// reread reads the rows of routes again, behind everybody else.
func (c *Cache) reread(ctx context.Context, routes []*Route) error {
	if err := c.acquire(ctx, background); err != nil {
		return err
	}
	began := time.Now()
	// Like repairs, but nobody waits for them, and no gate comes of them.
	batch := make([]*repair, len(routes))
	rows := make([][]byte, len(routes))
	for i, r := range routes {
		batch[i] = &repair{table: r.table, route: r, since: began, paced: began}
		rows[i] = r.Name()
	}
	rctx, cancel := context.WithTimeout(ctx, c.cfg.ReadTimeout)
	stop := context.AfterFunc(c.ctx, cancel)
	c.stats.gets.Add(1)
	locs, err := c.cfg.Source.GetMeta(rctx, rows)
	stop()
	cancel()
	if err == nil && len(locs) != len(rows) {
		err = errHole
	}
	c.release(background, began, err)
	n := &c.stats.storms
	n.reads.Add(1)
	if err != nil {
		c.stats.readErrors.Add(1)
		return err
	}
	wake(c.repaired(batch, locs, nil))
	n.routes.Add(int64(len(routes)))
	return nil
}
