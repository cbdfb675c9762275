package health

import (
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// A server is slow if its average has been more than slowFactor times the
// median server's for slowAfter, over at least slowCalls calls. Relative,
// because what is slow depends on what is asked of all of them; and used for
// nothing but the order of choices, because a slow server is still the only one
// that has the region.
const (
	slowFactor = 3
	slowAfter  = 10 * time.Second
	slowCalls  = 20
	// slowFloor: below it nobody is slow, however fast the others are.
	slowFloor = 2 * time.Millisecond
	// slowForgotten: without calls for so long the verdict is void.
	slowForgotten = time.Minute
	// scoreEvery bounds how often quantiles and verdicts are computed.
	scoreEvery = time.Second
)

// score is what the verdict about a server needs; under Table.scoring.
type score struct {
	since  time.Time // the average has been too large
	calls  uint64    // as of then
	last   uint64    // as of the last look
	lastAt time.Time // of the last call seen
}

// Observe computes quantiles and verdicts anew, at most once a second: who
// needs them calls it before.
func (t *Table) Observe() {
	now := time.Now()
	last := t.scored.Load()
	if at := now.UnixNano(); at-last < int64(scoreEvery) && last != 0 || !t.scored.CompareAndSwap(last, at) {
		return
	}
	t.scoring.Lock()
	defer t.scoring.Unlock()
	all := t.All()
	calls := make([]uint64, len(all))
	averages := make([]time.Duration, 0, len(all))
	p95s := make([]int64, 0, len(all))
	for i, s := range all {
		if calls[i] = s.digest.refresh(); calls[i] >= digestMin {
			averages = append(averages, s.Latency())
			p95s = append(p95s, s.digest.p95.Load())
		}
	}
	slices.Sort(averages)
	slices.Sort(p95s)
	if n := len(p95s); n > 0 {
		t.usual.Store(int64(p95s[(n-1)/2]))
	}
	for i, s := range all {
		s.judge(now, calls[i], averages)
	}
}

// judge decides whether the server is slow. averages are those of all servers,
// in order.
func (s *Server) judge(now time.Time, calls uint64, averages []time.Duration) {
	c := &s.score
	if calls != c.last {
		c.last, c.lastAt = calls, now
	}
	over := false
	if n := len(averages); n > 1 && calls >= digestMin && now.Sub(c.lastAt) < slowForgotten {
		median := averages[(n-1)/2]
		over = s.Latency() > max(slowFactor*median, slowFloor)
	}
	switch {
	case !over:
		c.since = time.Time{}
		s.slow.Store(false)
	case c.since.IsZero():
		c.since, c.calls = now, calls
	case now.Sub(c.since) >= slowAfter && calls-c.calls >= slowCalls:
		s.slow.Store(true)
	}
}

// Slow says whether the server has been much slower than the others for a
// while; as of the last Observe. It orders choices and proves nothing.
func (s *Server) Slow() bool { return s.slow.Load() }

// Quantiles gives the time within which 95 % and 99.9 % of the recent calls
// were answered, at most a quarter too long; as of the last Observe, and 0
// before there were twenty.
func (s *Server) Quantiles() (p95, p999 time.Duration) {
	return time.Duration(s.digest.p95.Load()), time.Duration(s.digest.p999.Load())
}

// UsualP95 is the median server's, as of the last Observe; 0 if nothing is known.
func (t *Table) UsualP95() time.Duration { return time.Duration(t.usual.Load()) }

// Shedding says whether the server has turned calls away in the last second.
func (s *Server) Shedding() bool {
	at := s.limit.shed.Load()
	return at != 0 && time.Now().UnixNano()-at < int64(time.Second)
}

// Snapshot is a server's state at one moment.
type Snapshot struct {
	Name  meta.ServerName
	State State
	// Since is when it came into the state, Cause why, if there is a reason.
	Since time.Time
	Cause error
	// Latency is the moving average over about 16 answered calls; P95 and P999
	// as Quantiles.
	Latency, P95, P999 time.Duration
	// InFlight calls are under way of Limit allowed; Waiting stand in line.
	InFlight, Limit, Waiting int
	Slow                     bool
}

// Snapshot gives the server's present state.
func (s *Server) Snapshot() Snapshot {
	s.table.Observe()
	n := Snapshot{Name: s.name, Latency: s.Latency(), Slow: s.Slow()}
	n.P95, n.P999 = s.Quantiles()
	n.InFlight, n.Limit, n.Waiting = s.Load()
	s.mu.Lock()
	defer s.mu.Unlock()
	n.State, n.Since, n.Cause = s.State(), s.entered, s.cause
	return n
}
