package route

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// This file is how often what is in transition is looked at again. What counts
// is not how many looks were in vain but how long the region has been away: a
// look comes late by a share of that time, whatever the length of the outage.
// Doubling waits come late by up to the whole of it, which turns a move of half
// a second into one of a second.

const (
	// gateFirst is the first look, gateLast the rarest: half a second is what
	// everybody notices after a long outage.
	gateFirst = 10 * time.Millisecond
	gateLast  = 500 * time.Millisecond
	// A move takes about a second. Up to then a look comes gateStep late at most,
	// and from there on by a gateShare-th of the outage. Each look may let a caller
	// through to try (rollWaves), which costs one call if it is in vain.
	gateStep  = 60 * time.Millisecond
	gateShare = 16
	// gateCrowd is how many gates may be looked at in a second. They share reads:
	// 3,000 regions of a dead server, at half a second each, cost meta 30 reads a second.
	gateCrowd = 3000
)

// holeWaits is how often a row is looked up that no region in meta holds: the
// moment of a split or a merge, or a damaged table.
var holeWaits = retry.Schedule{Base: 10 * time.Millisecond, Cap: 500 * time.Millisecond, Factor: 2}

// gatePace is how long a gated repair waits until its row is read again, at
// most. Under c.mu.
func (c *Cache) gatePace(q *repair, now time.Time) time.Duration {
	age := now.Sub(q.paced)
	one := min(max(age/2, gateFirst), max(age/gateShare, gateStep))
	crowd := time.Duration(len(c.delayed)) * (time.Second / gateCrowd)
	return min(max(one, crowd), gateLast)
}

// jittered is a time between the half of d and d, for a random number in [0, 1).
func jittered(d time.Duration, random float64) time.Duration {
	return d/2 + time.Duration(float64(d/2)*random)
}
