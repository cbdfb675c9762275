package session

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// A hedge is a second request for the same read, sent because the first takes
// longer than nearly all others. HBase cannot take a request back, so the loser
// costs the server in full; that is what the bounds here are for.
const (
	hedgeMin = 5 * time.Millisecond
	hedgeMax = time.Second
	// hedgeUnknown is the wait for servers of whose speed nothing is known yet.
	hedgeUnknown = 100 * time.Millisecond
	// Tokens, in twentieths: a success gives one, a hedge takes twenty.
	hedgeCost = 20
	hedgeCap  = 10 * hedgeCost
)

// hedges is the client's budget for hedges: a bucket of ten, of which each
// success refills a twentieth. So hedges are at most a twentieth of the calls
// that succeed, apart from the first ten.
type hedges struct {
	spent atomic.Int64
	sent  atomic.Int64
	won   atomic.Int64
	// refused counts those that the budget or the server's state did not allow.
	refused atomic.Int64
}

func (h *hedges) succeeded() {
	for {
		n := h.spent.Load()
		if n == 0 || h.spent.CompareAndSwap(n, n-1) {
			return
		}
	}
}

// take pays for one hedge.
func (h *hedges) take() bool {
	for {
		n := h.spent.Load()
		if n+hedgeCost > hedgeCap {
			return false
		}
		if h.spent.CompareAndSwap(n, n+hedgeCost) {
			return true
		}
	}
}

// hedgeDelay is how long the first request has before a second one is sent:
// what 95 of 100 calls to the server take. A server that is slow compared with
// the others gets what the others take.
func (c *Core) hedgeDelay(s *health.Server) time.Duration {
	c.servers.Observe()
	p95, _ := s.Quantiles()
	if usual := c.servers.UsualP95(); p95 == 0 || s.Slow() && usual > 0 {
		p95 = usual
	}
	if p95 == 0 {
		p95 = hedgeUnknown
	}
	return min(max(p95, hedgeMin), hedgeMax)
}

// mayHedge decides whether a hedge may be sent to a server, and pays for it. A
// server that turns calls away, and a client most of whose retries fail, need no
// more requests.
func (c *Core) mayHedge(s *health.Server) bool {
	ok := s.Usable() && !s.Shedding() && !c.tokens.Scarce() && !peerOf(s).tokens.Scarce() && c.hedges.take()
	if ok {
		c.hedges.sent.Add(1)
	} else {
		c.hedges.refused.Add(1)
	}
	return ok
}

// ReadStats counts the reads that were asked in more than one place.
type ReadStats struct {
	// ReplicaReads counts the requests to secondary replicas, ReplicaAnswers
	// the reads that one of them answered first.
	ReplicaReads, ReplicaAnswers int64
	// Hedges counts second requests to the same server or, within a read that
	// allows it, to a replica before its time; HedgeAnswers those that came
	// first; HedgesRefused those that were due but not allowed.
	Hedges, HedgeAnswers, HedgesRefused int64
}

// ReadStats gives the counts since the Core was opened.
func (c *Core) ReadStats() ReadStats {
	return ReadStats{
		ReplicaReads: c.replicaReads.Load(), ReplicaAnswers: c.replicaAnswers.Load(),
		Hedges: c.hedges.sent.Load(), HedgeAnswers: c.hedges.won.Load(), HedgesRefused: c.hedges.refused.Load(),
	}
}

// ServerStats is what the Core knows of one server.
type ServerStats struct {
	health.Snapshot
	// RetryTokens are left of ten; below five retries are rare.
	RetryTokens float64
	// Held callers wait for the server to answer again; counted only with
	// Config.MaxWaitingPerServer.
	Held int
}

// ServerStats lists the servers met so far that may be alive, in no particular
// order.
func (c *Core) ServerStats() []ServerStats {
	all := c.servers.All()
	stats := make([]ServerStats, 0, len(all))
	for _, s := range all {
		p := peerOf(s)
		stats = append(stats, ServerStats{Snapshot: s.Snapshot(), RetryTokens: p.tokens.Left(), Held: int(p.waiting.Load())})
	}
	return stats
}
