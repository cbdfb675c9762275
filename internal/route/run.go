package route

import (
	"context"
	"time"
)

// run does what can be done for one table, and sets the timer. Under c.mu; the
// caller wakes what it returns.
func (c *Cache) run(t *table) []*waiter {
	now := time.Now()
	c.dispatch(t, now)
	c.runRepairs(now)
	c.arm(now)
	return nil
}

// runAll does what can be done for everybody: demand first, then repairs, then
// those who read on their own account. Under c.mu.
func (c *Cache) runAll(now time.Time) []*waiter {
	done := c.rollWaves(now)
	for t := range c.pending {
		if t.idle() {
			delete(c.pending, t)
			continue
		}
		c.dispatch(t, now)
	}
	c.runRepairs(now)
	c.admitTickets(now)
	c.arm(now)
	return done
}

// arm sets the timer for the next thing that is due. Under c.mu.
func (c *Cache) arm(now time.Time) {
	if c.closed {
		return
	}
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if len(c.delayed) > 0 {
		sooner(c.delayed[0].due)
	}
	if n := c.limit.of[repairing]; n > 0 && n < maxRepairs && c.nready > 0 {
		if at := c.batched.Add(batchPatience); now.Before(at) {
			sooner(at)
		}
	}
	for _, v := range c.waves {
		sooner(v.due)
	}
	for t := range c.pending {
		sooner(t.next)
	}
	if b := &c.limit.breaker; b.state == Open && now.Before(b.until) {
		// Once it is past, whoever is due next finds it half open.
		sooner(b.until)
	}
	if len(c.tickets[background]) > 0 {
		sooner(now.Add(time.Second / bgRate))
	}
	if at.IsZero() {
		return
	}
	if !c.timerAt.IsZero() {
		if !at.Before(c.timerAt) {
			return
		}
		if !c.timer.Stop() {
			return // it is about to run, and arms itself
		}
		c.wg.Done()
	}
	c.timerAt = at
	c.wg.Add(1)
	// Not before the time it is set for, or everything would be one tick early
	// and wait for another.
	c.timer = time.AfterFunc(max(at.Sub(now), 0), c.tick)
}

// tick is the timer's goroutine.
func (c *Cache) tick() {
	defer c.wg.Done()
	c.mu.Lock()
	var done []*waiter
	if !c.closed {
		c.timerAt = time.Time{}
		done = c.runAll(time.Now())
	}
	c.mu.Unlock()
	wake(done)
}

// ticket is a reader on its own account (Regions, Warm) that waits for the
// limiter.
type ticket struct {
	ready   chan struct{}
	granted bool
}

// acquire waits for permission to read meta; release gives it back.
func (c *Cache) acquire(ctx context.Context, k class) error {
	now := time.Now()
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return ErrClosed
	}
	if len(c.tickets[k]) == 0 && c.limit.admit(k, now) {
		c.mu.Unlock()
		return nil
	}
	t := &ticket{ready: make(chan struct{})}
	c.tickets[k] = append(c.tickets[k], t)
	c.arm(now)
	c.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.granted {
		return nil // the caller finds out about its context by itself
	}
	for i, x := range c.tickets[k] {
		if x == t {
			c.tickets[k] = append(c.tickets[k][:i:i], c.tickets[k][i+1:]...)
			break
		}
	}
	if c.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// release ends a read begun with acquire.
func (c *Cache) release(k class, began time.Time, err error) {
	now := time.Now()
	c.mu.Lock()
	c.limit.done(k, now, now.Sub(began), false, c.unavailable(err))
	var done []*waiter
	if !c.closed {
		done = c.runAll(now)
	}
	c.mu.Unlock()
	wake(done)
}

// admitTickets lets readers in, as far as the limiter allows. Under c.mu.
func (c *Cache) admitTickets(now time.Time) {
	for k := range c.tickets {
		for len(c.tickets[k]) > 0 && c.limit.admit(class(k), now) {
			t := c.tickets[k][0]
			c.tickets[k] = c.tickets[k][1:]
			t.granted = true
			close(t.ready)
		}
	}
}
