package route

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// counters are the events of a cache's life. Hits are not among them: counting
// would make every reader write.
type counters struct {
	misses, scans, gets, registry     atomic.Int64
	readErrors, holes, notFound       atomic.Int64
	rejected, hints, planned, evicted atomic.Int64
	replicaReads                      atomic.Int64
	watch                             watchCounters
	storms                            stormCounters
}

// Stats is what a cache has done, and what it holds.
type Stats struct {
	Tables, Routes int
	// Misses counts callers that had to wait for a route.
	Misses int64
	// Scans and Gets count the reads of hbase:meta, Registry those of its own
	// location; ReadErrors those that failed.
	Scans, Gets, Registry, ReadErrors int64
	// Holes counts answers of meta that left out the row asked for, NotFound
	// the tables that turned out not to exist.
	Holes, NotFound int64
	// Rejected counts routes that their server disowned, Hints the moves that
	// were followed without asking meta.
	Rejected, Hints int64
	// Planned counts routes re-read because their server went down, Evicted
	// those forgotten.
	Planned, Evicted int64
	// Waiters wait for a route now, Gates of the regions are in transition.
	Waiters, Gates int
	// Reads of hbase:meta under way, and how many are allowed at present.
	Reads, ReadLimit int
	Breaker          BreakerState
	// ReplicaReads counts the reads of replicas of hbase:meta, among Scans.
	ReplicaReads int64
	// Watch is about following the changes of hbase:meta.
	Watch WatchStats
	// Storm is about mass moves, noticed by what callers met.
	Storm StormStats
}

// Stats gives a snapshot.
func (c *Cache) Stats() Stats {
	s := Stats{
		Routes: int(c.routes.Load()), Misses: c.stats.misses.Load(),
		Scans: c.stats.scans.Load(), Gets: c.stats.gets.Load(), Registry: c.stats.registry.Load(),
		ReadErrors: c.stats.readErrors.Load(), Holes: c.stats.holes.Load(), NotFound: c.stats.notFound.Load(),
		Rejected: c.stats.rejected.Load(), Hints: c.stats.hints.Load(),
		Planned: c.stats.planned.Load(), Evicted: c.stats.evicted.Load(),
		ReplicaReads: c.stats.replicaReads.Load(),
		Watch:        c.watchStats(), Storm: c.stats.storms.stats(),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Tables = len(*c.tables.Load())
	for t := range c.pending {
		for _, ws := range [2][]*waiter{t.wants, t.fresh} {
			for _, w := range ws {
				if !w.gone {
					s.Waiters++
				}
			}
		}
		for _, q := range t.repairs {
			s.Waiters += q.present()
			if q.gated() {
				s.Gates++
			}
		}
	}
	for _, v := range c.waves {
		s.Waiters += len(v.waiters)
	}
	s.Reads, s.ReadLimit, s.Breaker = c.limit.inflight, int(c.limit.limit), c.limit.breaker.state
	return s
}

// Explanation is what the cache believes about a row, and why. It asks nobody.
type Explanation struct {
	Table meta.TableName
	Row   []byte
	// Known says that a route covers the row; the fields up to Gate describe
	// it.
	Known  bool
	Region meta.Region
	Name   string // encoded
	// Server is zero if meta names none.
	Server      meta.ServerName
	ServerState health.State
	OpenSeq     int64
	Origin      Origin
	Age         time.Duration // since confirmed
	Idle        time.Duration // since used
	Valid       bool
	// Why says why the route is not valid: "rejected", "server went down".
	Why string
	// Gate is set while the region is being re-read.
	Gate *GateInfo
	// Gap is the hole in the index around the row, if no route covers it.
	GapStart, GapEnd []byte
	// Routes and Chunks of the table; Waiters and Flights for it.
	Routes, Chunks, Waiters, Flights int
	// NotFound says that the table is known not to exist.
	NotFound bool
	Breaker  BreakerState
	LastErr  error // of reading meta for this table
}

// GateInfo describes the wait for a region in transition.
type GateInfo struct {
	Since    time.Duration // how long ago it began
	Attempts int           // answers of meta that did not help
	Waiters  int
	NextRead time.Duration // until meta is asked again
	Last     error
}

// Explain tells what the cache would do for a row.
func (c *Cache) Explain(table meta.TableName, row []byte) Explanation {
	e := Explanation{Table: table, Row: row}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Breaker = c.limit.breaker.state
	t := c.lookupTable(table)
	if t == nil {
		return e
	}
	now := time.Now()
	root := t.root.Load()
	e.Routes, e.Chunks = root.n, len(root.chunks)
	e.Waiters, e.Flights = len(t.wants)+len(t.fresh), len(t.flights)
	e.NotFound, e.LastErr = now.Before(t.notFound), t.lastErr
	p := position{key: row}
	r := root.find(p)
	if r == nil || !p.in(r) {
		e.GapStart, e.GapEnd = root.gap(p)
		return e
	}
	e.Known, e.Region, e.Name = true, r.Region(), r.Encoded()
	if r.server != nil {
		e.Server, e.ServerState = r.server.Name(), r.server.State()
	}
	e.OpenSeq, e.Origin, e.Age = r.openSeq, r.Origin(), r.Age()
	e.Idle = time.Duration(r.idle(c.now.Load())) * time.Second
	e.Valid = r.Valid()
	switch {
	case e.Valid:
	case r.server == nil:
		e.Why = "meta names no server"
	case r.Rejected():
		e.Why = "its server does not serve it"
	default:
		e.Why = "its server went down after this was learned"
	}
	if q := t.repairs[r]; q != nil {
		e.Gate = &GateInfo{Since: now.Sub(q.since), Attempts: q.attempts, Waiters: q.present(), Last: q.last}
		if q.place == isDelayed {
			e.Gate.NextRead = max(q.due.Sub(now), 0)
		}
	}
	return e
}

// String is the explanation for people, in a few lines.
func (e Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s row %s\n", e.Table, cells.Quote(e.Row))
	switch {
	case e.Known:
		fmt.Fprintf(&b, "  region   %s [%s, %s)\n", e.Name, cells.Quote(e.Region.Start), cells.Quote(e.Region.End))
		if e.Server.IsZero() {
			b.WriteString("  server   none\n")
		} else {
			fmt.Fprintf(&b, "  server   %s (%s)\n", e.Server, e.ServerState)
		}
		fmt.Fprintf(&b, "  learned  from %s, confirmed %s ago, open sequence %d, used %s ago\n", e.Origin, e.Age, e.OpenSeq, e.Idle)
		if e.Valid {
			b.WriteString("  verdict  valid: used without asking anybody\n")
		} else {
			fmt.Fprintf(&b, "  verdict  invalid (%s): its row in hbase:meta is read before the next use\n", e.Why)
		}
	case e.NotFound:
		b.WriteString("  verdict  hbase:meta has no such table\n")
	default:
		fmt.Fprintf(&b, "  verdict  no route yet: hbase:meta is asked; nothing is known of [%s, %s)\n", cells.Quote(e.GapStart), cells.Quote(e.GapEnd))
	}
	if g := e.Gate; g != nil {
		fmt.Fprintf(&b, "  gate     for %s, %d reads did not help, %d wait, next read in %s", g.Since.Round(time.Millisecond), g.Attempts, g.Waiters, g.NextRead.Round(time.Millisecond))
		if g.Last != nil {
			fmt.Fprintf(&b, ": %v", g.Last)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "  index    %d routes in %d chunks; %d waiters, %d flights; breaker %s\n", e.Routes, e.Chunks, e.Waiters, e.Flights, e.Breaker)
	if e.LastErr != nil {
		fmt.Fprintf(&b, "  meta     last error: %v\n", e.LastErr)
	}
	return b.String()
}
