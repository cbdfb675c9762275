package cells

import (
	"bytes"
	"math"
)

// Collector decides which stored cells of a family a major compaction may
// remove: those no reader can see, now or later, at any read point from
// ReadPoint on. It is fed like a Matcher, row by row; every cell judged is one
// it was shown in order. A flush has one, too, that is shown only what is
// flushed.
type Collector struct {
	family *Family
	now    int64
	oldest int64
	// readPoint: what was written later is kept, and hides nothing yet, since
	// a reader at this point must find everything as it was.
	readPoint   uint64
	earliestPut int64
	purge       int64
	keepMarkers bool

	marks  markers
	arrive *arrival

	column  []byte
	hasCol  bool
	count   int
	lastTS  int64
	lastTyp Type
	hasLast bool
}

// CollectorOptions are what a Collector needs to know besides the family.
type CollectorOptions struct {
	// Now in ms.
	Now int64
	// ReadPoint is the oldest in use.
	ReadPoint uint64
	// EarliestPut is the smallest timestamp of a put in what is compacted
	// (MaxInt64 without any); only families that keep deleted cells need it:
	// they drop markers that have nothing left to hide.
	EarliestPut int64
	// PurgeAfter is how long (ms) delete markers are kept at least.
	PurgeAfter int64
	// KeepMarkers: delete markers go only when they have expired, since what
	// they hide may lie elsewhere, as in a flush.
	KeepMarkers bool
}

// NewCollector makes the collector of one family.
func NewCollector(f *Family, o CollectorOptions) *Collector {
	c := &Collector{family: f, now: o.Now, oldest: expiryLine(f.TTL, o.Now), readPoint: o.ReadPoint, earliestPut: o.EarliestPut, purge: o.PurgeAfter, keepMarkers: o.KeepMarkers}
	if f.NewVersionBehavior {
		c.arrive = newArrival(f.MaxVersions)
	}
	return c
}

// NeedsEarliestPut says whether a family's collector looks at EarliestPut.
func (f *Family) NeedsEarliestPut() bool { return f.KeepDeleted != KeepFalse }

// NewRow forgets the row before.
func (g *Collector) NewRow() {
	g.marks.reset()
	if g.arrive != nil {
		g.arrive.reset()
	}
	g.hasCol, g.hasLast, g.count = false, false, 0
}

// Keep judges the next cell.
func (g *Collector) Keep(c *Cell) bool {
	young := c.Seq > g.readPoint
	if tagExpired(c, g.now) {
		return young
	}
	if c.Type.IsDelete() {
		return g.keepMarker(c, young)
	}
	if g.arrive != nil {
		// Only what was written later can hide a young cell, and that is young
		// itself.
		if young {
			return true
		}
		return !g.arrive.hides(c) && g.checkVersions(c)
	}
	// A young put hidden by an old marker goes with it, or it would come back.
	if !g.marks.empty() && g.marks.hides(c) != visible {
		return false
	}
	return young || g.checkVersions(c)
}

func (g *Collector) keepMarker(c *Cell, young bool) bool {
	if young {
		return true
	}
	expired := c.Timestamp < g.oldest
	if expired && g.family.MinVersions <= 0 && g.arrive == nil {
		return false // and all it could hide
	}
	if k := g.family.KeepDeleted; k == KeepFalse || k == KeepTTL && expired {
		if g.arrive != nil {
			g.arrive.add(c)
		} else {
			g.marks.add(c)
		}
	}
	if g.keepMarkers || g.purge > 0 && g.now-c.Timestamp <= g.purge {
		return true
	}
	k := g.family.KeepDeleted
	if k == KeepFalse || k == KeepTTL && expired {
		return false
	}
	// Kept while there is something older, and, but for markers of the whole
	// family, while within VERSIONS.
	keep := c.Timestamp >= g.earliestPut
	if keep && c.Type != DeleteFamily && c.Type != DeleteFamilyVersion {
		keep = g.checkVersions(c)
	}
	if !keep && g.arrive == nil {
		g.marks.add(c) // a young put below it must not come back
	}
	return keep
}

// checkVersions counts versions as a reader of everything would.
func (g *Collector) checkVersions(c *Cell) bool {
	if !g.hasCol || !bytes.Equal(g.column, c.Qualifier) {
		g.column = append(g.column[:0], c.Qualifier...)
		g.hasCol, g.hasLast, g.count = true, false, 0
	} else if g.hasLast && g.lastTS == c.Timestamp && g.lastTyp == c.Type {
		return false
	}
	if !c.Type.IsDelete() {
		g.count++
	}
	limit := g.family.MaxVersions
	if g.arrive != nil {
		limit = math.MaxInt // the arrival order has counted
	}
	if g.count > limit || g.count > g.family.MinVersions && c.Timestamp < g.oldest {
		return false
	}
	g.hasLast, g.lastTS, g.lastTyp = true, c.Timestamp, c.Type
	return true
}
