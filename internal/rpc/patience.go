package rpc

import (
	"context"
	"net"
	"time"
)

// Interrupt ends the calls in flight that have Yield set, with err, and leaves
// the others and the connection alone. Their late answers are dropped. Without
// an error there is no reason to: a call without one would count as answered.
func (c *Conn) Interrupt(err error) {
	if err == nil {
		return
	}
	for _, p := range c.calls.takeYielding() {
		p.err, p.sent = err, !c.w.withdraw(p)
		p.done <- struct{}{}
	}
}

// LastHeard is when the last bytes came from the server, or the time of the
// connection. Unlike LastReply it moves while a long answer is on its way.
func (c *Conn) LastHeard() time.Time { return c.start.Add(time.Duration(c.lastHeard.Load())) }

// hearing is the stream as the reader sees it; it notes when bytes come.
type hearing struct {
	net.Conn
	c *Conn
}

func (h *hearing) Read(b []byte) (int, error) {
	n, err := h.Conn.Read(b)
	if n > 0 {
		h.c.lastHeard.Store(int64(time.Since(h.c.start)))
	}
	return n, err
}

// lastWords is how long a peer that hung up before it ever answered is listened
// to: what it said before tells what it is.
const lastWords = 50 * time.Millisecond

// writeFailed ends the connection after a failed write; if the server has not
// answered anything yet, the reader has the first word about why.
func (c *Conn) writeFailed(err error) {
	if c.lastReply.Load() != 0 {
		c.fail(err, false)
		return
	}
	// With the lock and not closed the reader still runs, so Close still waits.
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.closed {
		return
	}
	c.goroutines.Go(func() {
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
			c.fail(err, false)
		}
	})
}

// expired starts the clock of what is left of a call's Timeout; nil if it has
// none.
func (p *pending) expired() <-chan time.Time {
	if p.timeout <= 0 {
		return nil
	}
	d := p.timeout - time.Since(p.began)
	if p.timer == nil {
		p.timer = time.NewTimer(d)
	} else {
		p.timer.Reset(d)
	}
	p.armed = true
	return p.timer.C
}

// givenUp is the error of a call that was given up.
func givenUp(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return context.DeadlineExceeded
}
