package session

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
)

// How silence is noticed. A server that owes answers and from which nothing at
// all arrives, on a connection, for longer than it has ever taken is pinged; if
// it leaves that unanswered as well, it is down. Config.PingAfter bounds both
// times, and is what servers get that take long anyway.
const (
	// silenceMin: no server is suspected sooner, however fast it usually is.
	// Half of it would suspect servers in ordinary pauses of their garbage
	// collectors, over and over.
	silenceMin = 500 * time.Millisecond
	// silenceFactor times what 999 of 1000 calls take is unusual.
	silenceFactor = 4
	// patienceMin is the least time that a ping has to be answered. A server
	// that is down for its callers is sent again what they had in flight, so a
	// pause that many servers have now and then must not be enough.
	patienceMin = time.Second
	// idleLooks without calls make the watcher look less often.
	idleLooks = 8
)

// silence is how long the server may be silent before it is suspected.
func (c *conn) silence() time.Duration {
	limit := c.peer.core.cfg.PingAfter
	c.peer.core.servers.Observe()
	_, p999 := c.peer.srv.Quantiles()
	if p999 == 0 {
		return limit
	}
	return min(max(silenceFactor*p999, silenceMin), limit)
}

// patience is how long the ping of a suspicion is waited for.
func (c *conn) patience(silence time.Duration) time.Duration {
	return min(max(2*silence, patienceMin), c.peer.core.cfg.PingAfter)
}

// look tells the watcher that a call sent at began was given up without an
// answer.
func (c *conn) look(began time.Time) {
	c.owed.CompareAndSwap(0, max(int64(began.Sub(c.since)), 1))
	select {
	case c.poke <- struct{}{}:
	default:
	}
}

// owing is what the watcher remembers from one look to the next: since when the
// server has owed an answer.
type owing struct {
	since time.Time
	heard time.Time
	idle  int // looks without anything owed or heard
	// spared counts the pings answered since then: it is a slow call, not a
	// silent server.
	spared int
}

// look gives how long the server has been silent while it owed an answer. It
// samples instead of being told, so that calls pay nothing for it.
func (o *owing) look(c *conn, now time.Time) (quiet time.Duration) {
	heard := c.LastHeard()
	if o.idle++; !heard.Equal(o.heard) {
		o.heard, o.idle = heard, 0
	}
	given := time.Time{}
	if at := c.owed.Load(); at != 0 {
		if given = c.since.Add(time.Duration(at)); heard.After(given) {
			c.owed.CompareAndSwap(at, 0)
			given = time.Time{}
		}
	}
	switch {
	case !given.IsZero() && (o.since.IsZero() || given.Before(o.since)):
		o.since = given
	case given.IsZero() && c.InFlight() == 0:
		o.since, o.spared = time.Time{}, 0
		return 0
	case o.since.IsZero():
		o.since = now
	}
	o.idle = 0
	if heard.After(o.since) {
		return now.Sub(heard)
	}
	return now.Sub(o.since)
}

// watch looks after a connection until it ends: it clears its slot then, and
// pings when the server owes answers and is silent.
func (c *conn) watch() {
	defer func() {
		c.slot.conn.CompareAndSwap(c, nil)
		c.peer.mu.Lock()
		delete(c.peer.all, c)
		c.peer.mu.Unlock()
		if h := c.peer.core.hooks; h != nil {
			h.hungUp(Conn{
				Server: c.peer.srv.Name(), Addr: c.Addr(), Service: c.service, Start: c.since, Took: time.Since(c.since), Err: c.Err(),
			})
		}
	}()
	slow := max(c.peer.core.cfg.PingAfter/2, time.Millisecond)
	fast := min(slow, silenceMin/2)
	timer := time.NewTimer(fast)
	defer timer.Stop()
	var o owing
	for {
		select {
		case <-c.Done():
			return
		case <-c.peer.core.ctx.Done():
			c.Close()
			return
		case <-c.poke:
		case <-timer.C:
		}
		silence := c.silence()
		if quiet := o.look(c, time.Now()); quiet >= min(silence<<min(o.spared, 4), c.peer.core.cfg.PingAfter) {
			if c.suspect(quiet, silence) {
				o.spared++
			}
			c.owed.Store(0)
			o.since = time.Time{}
		}
		if o.idle > idleLooks {
			timer.Reset(slow)
		} else {
			timer.Reset(fast)
		}
	}
}

// suspect sends the one ping of a suspicion and waits for its answer, which
// clears the server.
func (c *conn) suspect(quiet, silence time.Duration) (cleared bool) {
	s := c.peer.srv
	silent := &SilentError{Server: s.Name(), For: quiet}
	if !s.Suspect(silent) {
		return false // another connection's watcher is at it, or the server is down
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.peer.core.ctx, c.patience(silence))
	err := c.ping(ctx)
	cancel()
	switch {
	case alive(err):
		s.Answered()
		return true
	case errors.Is(err, context.DeadlineExceeded):
		silent = &SilentError{Server: s.Name(), For: quiet + time.Since(began), Pinged: true}
		if s.State() == health.Suspect {
			s.Silent(silent)
			return false
		}
		// It has answered over another connection meanwhile, so it is this one
		// that leads nowhere. Nobody else is to use it, and who may goes elsewhere.
		c.slot.conn.CompareAndSwap(c, nil)
		c.Interrupt(&rpc.ConnError{Addr: c.Addr(), Cause: silent, Sent: true})
	default:
		// The connection broke. Those who were in it find out by dialing anew
		// whether the server is gone.
		s.Answered()
	}
	return false
}
