package session

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// batchReplicas is the part of a batch whose gets replicas may answer: those
// that have no answer after a while are asked of replicas as well, in requests
// of their own, while the primary's part goes on as if nothing were. An item is
// done by whoever answers it first. When all are, the requests still out are
// canceled.
type batchReplicas struct {
	cancel context.CancelFunc
	timer  *time.Timer
	began  time.Time
	next   time.Time // when replicas are asked again
	round  int
	asked  []int // replicas asked, by item
	lists  map[*route.Route][]route.Replica
}

func newBatchReplicas(b *batch) *batchReplicas {
	r := &batchReplicas{
		timer: time.NewTimer(time.Hour), began: time.Now(), asked: make([]int, len(b.items)), lists: make(map[*route.Route][]route.Replica),
	}
	b.ctx, r.cancel = context.WithCancel(b.ctx)
	r.next = r.began.Add(b.core.cfg.ReplicaAfter)
	for i := range b.items {
		if b.items[i].Timeline && b.inTrouble(i) {
			r.next = r.began
			break
		}
	}
	return r
}

func (r *batchReplicas) stop() {
	r.cancel()
	r.timer.Stop()
}

// inTrouble says whether the primary of an item's region cannot answer just now.
func (b *batch) inTrouble(i int) bool {
	r := b.core.routes.Known(b.tableName, b.items[i].Row, false)
	return r != nil && (!r.Valid() || r.Server().State() != health.Healthy)
}

// replicasDue is when replicas are asked next; nil if they never are.
func (b *batch) replicasDue() <-chan time.Time {
	if b.replicas == nil {
		return nil
	}
	return b.replicas.timer.C
}

// askReplicas asks one more replica of each region that has items without an
// answer, if it is time.
func (b *batch) askReplicas() {
	r := b.replicas
	now := time.Now()
	if wait := r.next.Sub(now); wait > 0 {
		r.timer.Reset(wait)
		return
	}
	early := now.Sub(r.began) < b.core.cfg.ReplicaAfter
	chunks := make(map[*health.Server]*chunk)
	for i := range b.items {
		s := &b.state[i]
		if s.done || !b.items[i].Timeline || early && s.err == nil && !b.inTrouble(i) {
			continue
		}
		known := b.core.routes.Known(b.tableName, b.items[i].Row, false)
		if known == nil {
			continue
		}
		list, ok := r.lists[known]
		if !ok || r.asked[i] > 0 && r.asked[i]%max(len(list), 1) == 0 {
			list = b.core.order(b.core.routes.Replicas(known))
			r.lists[known] = list
		}
		if len(list) == 0 {
			continue
		}
		to := &list[r.asked[i]%len(list)]
		r.asked[i]++
		if !to.Server.Usable() {
			continue
		}
		c := chunks[to.Server]
		if c == nil || c.count >= b.core.cfg.BatchActions {
			if c != nil {
				b.askChunk(c)
			}
			c = &chunk{srv: to.Server, replicas: true}
			chunks[to.Server] = c
		}
		if n := len(c.parts) - 1; n >= 0 && c.parts[n].route == known {
			c.parts[n].items = append(c.parts[n].items, i)
		} else {
			c.parts = append(c.parts, part{route: known, replica: to, items: []int{i}})
		}
		c.count++
	}
	for _, c := range chunks {
		b.askChunk(c)
	}
	switch {
	case early:
		r.next = r.began.Add(b.core.cfg.ReplicaAfter)
	default:
		r.next = now.Add(max(b.core.cfg.ReplicaAfter, retry.Transit.Schedule().Wait(max(r.round-1, 0), b.core.cfg.Rand())))
		r.round++
	}
	r.timer.Reset(r.next.Sub(now))
}

func (b *batch) askChunk(c *chunk) {
	b.op.waiting()
	b.core.replicaReads.Add(1)
	b.spawn(func() event { return b.exchange(c) })
}

// hurryReplicas sees to it that replicas are asked soon: an item has failed.
func (b *batch) hurryReplicas(i int) {
	if r := b.replicas; r != nil && b.items[i].Timeline && r.asked[i] == 0 {
		r.next = time.Time{}
	}
}

// replicaAnswered takes in what replicas have answered. Their failures are
// evidence and nothing more: the items are still in the primary's hands.
func (b *batch) replicaAnswered(c *chunk) {
	err := c.err
	if err == nil {
		used := false
		err = c.answers(b.items, func(p *part, i int, a answer) {
			s := &b.state[i]
			if a.err != nil {
				b.replicaFailed(p, retry.Classify(a.err, retry.Attempt{}))
				return
			}
			if s.done {
				return
			}
			for k := range a.results {
				a.results[k].Stale = true
			}
			b.out[i] = Outcome{Results: a.results, Processed: a.processed, Attempts: s.attempts + 1}
			s.done, used = true, true
			b.open--
		})
		if used {
			b.core.replicaAnswers.Add(1)
		}
	}
	if err == nil {
		peerOf(c.srv).tokens.Succeeded()
		return
	}
	if b.open == 0 {
		return // canceled
	}
	d := retry.Classify(err, retry.Attempt{})
	b.core.feedServer(c.srv, c.x.conn, c.x.sent, c.x.began, err, d)
	for k := range c.parts {
		b.replicaFailed(&c.parts[k], d)
	}
}

func (b *batch) replicaFailed(p *part, d retry.Decision) {
	if p.replica != nil && goneElsewhere(d) {
		b.core.routes.ReplicaRejected(*p.replica)
		p.replica = nil // once
	}
}

// goneElsewhere says whether a failure means that a replica may have another
// server by now. Nothing but meta's row tells.
func goneElsewhere(d retry.Decision) bool {
	return d.Route == retry.Reject || d.Route == retry.Replace || d.Server == retry.MarkDown || d.Wait == retry.ServerDown
}
