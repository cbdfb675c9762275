package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// Clock is the cluster's clock for timestamps, TTLs and ZooKeeper sessions: the
// system's, until it is frozen or moved. Timers (scanner leases, delays) run on
// real time all the same. The zero value runs. Safe for concurrent use; a clock
// belongs to one cluster at a time.
type Clock struct {
	reading atomic.Pointer[reading] // nil: the system's
	mu      sync.Mutex              // held while changing
	jumped  func()                  // called after a change; guarded by mu
}

type reading struct {
	frozen bool
	at     time.Time     // while frozen
	offset time.Duration // while running
}

func (r *reading) now() time.Time {
	switch {
	case r == nil:
		return time.Now()
	case r.frozen:
		return r.at
	}
	return time.Now().Add(r.offset)
}

// Now is the clock's time.
func (c *Clock) Now() time.Time { return c.reading.Load().now() }

// Millis is the clock's time in milliseconds since 1970.
func (c *Clock) Millis() int64 { return c.Now().UnixMilli() }

// Freeze stops the clock where it is, or at t if that is not zero.
func (c *Clock) Freeze(t time.Time) {
	c.change(func(r reading) *reading {
		if t.IsZero() {
			t = r.now()
		}
		return &reading{frozen: true, at: t}
	})
}

// Advance moves the clock forward (or back) by d, frozen or not.
func (c *Clock) Advance(d time.Duration) {
	c.change(func(r reading) *reading {
		r.at, r.offset = r.at.Add(d), r.offset+d
		return &r
	})
}

// Resume lets a frozen clock run on from where it stands.
func (c *Clock) Resume() {
	c.change(func(r reading) *reading {
		if !r.frozen {
			return &r
		}
		return &reading{offset: time.Until(r.at)}
	})
}

// Reset makes the clock the system's again.
func (c *Clock) Reset() { c.change(func(reading) *reading { return nil }) }

// Frozen says whether the clock stands.
func (c *Clock) Frozen() bool {
	r := c.reading.Load()
	return r != nil && r.frozen
}

func (c *Clock) change(f func(reading) *reading) {
	c.mu.Lock()
	var old reading
	if r := c.reading.Load(); r != nil {
		old = *r
	}
	c.reading.Store(f(old))
	jumped := c.jumped
	c.mu.Unlock()
	if jumped != nil {
		jumped()
	}
}

// onJump sets what is called after every change; nil for nothing.
func (c *Clock) onJump(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jumped = f
}
