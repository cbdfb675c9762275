package session

import (
	"time"

	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// ready takes the items whose pause is over from those that wait. They stay in
// row order.
func (b *batch) ready() []int {
	now := time.Now()
	is := func(i int) bool {
		s := &b.state[i]
		return s.done || !now.Before(s.notBefore) || s.class == retry.ServerDown && s.srv != nil && s.srv.Usable() || b.elsewhere(i)
	}
	n := 0
	for _, i := range b.queue {
		if is(i) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	ready, rest := make([]int, 0, n), make([]int, 0, len(b.queue)-n)
	for _, i := range b.queue {
		if b.state[i].done {
			continue
		}
		if is(i) {
			ready = append(ready, i)
		} else {
			rest = append(rest, i)
		}
	}
	b.queue = rest
	return ready
}

// elsewhere says whether an item that waits for a server need not: its region has
// turned out to be with another, or with none.
func (b *batch) elsewhere(i int) bool {
	s := &b.state[i]
	if s.done || s.class != retry.ServerDown || s.route == nil {
		return false
	}
	r := b.core.routes.Known(b.tableName, b.items[i].Row, false)
	return r != s.route || !r.Valid()
}

// rest blocks until the first of those who wait may go on, or something comes
// back.
func (b *batch) rest() {
	first := &b.state[b.queue[0]]
	for _, i := range b.queue[1:] {
		if s := &b.state[i]; s.notBefore.Before(first.notBefore) {
			first = s
		}
	}
	var up <-chan struct{}
	if first.class == retry.ServerDown && first.srv != nil {
		up = peerOf(first.srv).news()
		for _, i := range b.queue {
			if b.elsewhere(i) {
				return // the news came before it was listened to
			}
		}
	}
	began := time.Now()
	d := first.notBefore.Sub(began)
	if b.flights == 0 && b.replicas == nil {
		// Only this pause is between us and the next attempt. Its error is
		// found again by spent.
		_ = b.budget.WaitFor(b.op.waiting(), first.class, d, up)
		b.paused(first, began, d)
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case e := <-b.events:
		b.handle(e)
	case <-up:
	case <-b.replicasDue():
	case <-timer.C:
		b.paused(first, began, d)
	case <-b.op.waiting().Done():
	}
}

func (b *batch) paused(s *itemState, began time.Time, planned time.Duration) {
	if b.core.hooks != nil && planned > 0 {
		b.core.hooks.waited(b.ctx, Wait{Op: b.name, Table: b.tableName, Class: s.class.String(), Start: began, Planned: planned, Took: time.Since(began), Err: s.err})
	}
}

// pay pays for the requests of a lane if they repeat what has failed at a server
// most of whose calls fail. If it cannot, their items wait, and end when there is
// no time for that.
func (b *batch) pay(c *chunk) bool {
	tokens := peerOf(c.srv).tokens
	dear := false
	for x := c; x != nil; x = x.next {
		for _, p := range x.parts {
			for _, i := range p.items {
				dear = dear || b.state[i].dear && b.state[i].srv == c.srv
			}
		}
	}
	if !dear {
		tokens.Begun()
		return true
	}
	if tokens.Pay() {
		return true
	}
	b.budget.On(tokens)
	wait, ok := b.budget.Next(retry.ServerBusy, 0)
	until := time.Now().Add(wait)
	for x := c; x != nil; x = x.next {
		for _, p := range x.parts {
			for _, i := range p.items {
				s := &b.state[i]
				if !ok {
					b.finish(i, b.budget.Exhausted(), s.err)
					continue
				}
				s.class, s.notBefore = retry.ServerBusy, until
				b.queue = append(b.queue, i)
			}
		}
	}
	b.sort()
	return false
}
