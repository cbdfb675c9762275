package health

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// State says how far a server is trusted.
type State uint32

// The states, and what leads into them.
const (
	// Healthy: answers, or has not been tried yet.
	Healthy State = iota
	// Suspect: owes an answer for longer than it should; one ping is out.
	Suspect
	// Down: refused, stopped, or left the ping unanswered. Calls fail fast.
	Down
	// Probing: down, and the prober is asking right now.
	Probing
	// Dead: this incarnation is over; another may live at the address.
	Dead
)

// String names the state as it appears in errors and traces.
func (s State) String() string {
	switch s {
	case Healthy:
		return "healthy"
	case Suspect:
		return "suspect"
	case Down:
		return "down"
	case Probing:
		return "probing"
	case Dead:
		return "dead"
	}
	return "unknown"
}

// Server is one incarnation of a region server or master. All methods may be
// called from any goroutine.
type Server struct {
	name  meta.ServerName
	addr  string
	table *Table
	owner any

	epoch atomic.Uint64
	state atomic.Uint32 // State; written under mu

	limit   limiter
	latency ewma
	digest  digest
	slow    atomic.Bool
	score   score

	mu        sync.Mutex
	entered   time.Time // the present state
	since     time.Time // of being down
	lastProbe time.Time // or since, before the first
	nextProbe time.Time
	poke      chan struct{} // capacity 1: somebody needs the server now
	cause     error
	hard      bool          // the epoch was bumped in this spell of being down
	up        chan struct{} // made when somebody waits; closed on leaving Down
	prober    bool          // a prober goroutine exists
	wanted    time.Time     // last time somebody was refused or waited
}

// Name gives the incarnation.
func (s *Server) Name() meta.ServerName { return s.name }

// Addr gives host:port.
func (s *Server) Addr() string { return s.addr }

// Owner gives what Config.Attach returned for this server.
func (s *Server) Owner() any { return s.owner }

// Epoch counts the hard evidence against the server. A route is valid only
// while the epoch it captured is the server's.
func (s *Server) Epoch() uint64 { return s.epoch.Load() }

// Distrust bumps the epoch without evidence against the server: somebody has
// said that its regions are elsewhere. Its state stays.
func (s *Server) Distrust() { s.epoch.Add(1) }

// State tells the present state without a lock.
func (s *Server) State() State { return State(s.state.Load()) }

// Usable says whether calls may be sent: healthy or suspect.
func (s *Server) Usable() bool { return s.State() <= Suspect }

// Err gives nil while the server is usable and otherwise a *DownError, without
// touching the network. Asking keeps the prober of a down server going.
func (s *Server) Err() error {
	if s.Usable() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Usable() {
		return nil
	}
	s.want()
	return s.downError()
}

// Answered tells that the server has just answered: it is no longer suspect,
// nor down for being silent. A server that is down on hard evidence stays so
// until its prober is content, since answers to earlier calls may still come
// in from a process that is stopping.
func (s *Server) Answered() {
	if s.State() != Healthy {
		s.recover(false)
	}
}

// Suspect moves a healthy server to Suspect and says whether this call did it;
// the caller that gets true sends the one ping.
func (s *Server) Suspect(cause error) bool {
	s.mu.Lock()
	if s.State() != Healthy {
		s.mu.Unlock()
		return false
	}
	s.cause = cause
	s.enter(Suspect)
	s.mu.Unlock()
	s.table.changed(s, Healthy, Suspect, cause)
	return true
}

// Refused records hard evidence: nobody listens, or the server said that it is
// stopping. The server is down, every route to it is invalid, a prober runs.
func (s *Server) Refused(cause error) { s.down(cause, true) }

// Silent records that the server left a ping unanswered. It is down for
// callers, but its routes stay: a frozen process still owns its regions.
func (s *Server) Silent(cause error) { s.down(cause, false) }

func (s *Server) down(cause error, hard bool) {
	s.mu.Lock()
	from := s.State()
	if from == Dead {
		s.mu.Unlock()
		return
	}
	if hard && !s.hard {
		s.hard = true
		s.epoch.Add(1)
	}
	if from == Down || from == Probing {
		if hard {
			s.cause = cause
		}
		s.mu.Unlock()
		return
	}
	s.cause = cause
	s.enter(Down)
	s.since = s.entered
	s.lastProbe, s.nextProbe = s.since, s.since
	s.want()
	err := s.downError()
	s.mu.Unlock()
	s.limit.fail(err)
	s.table.changed(s, from, Down, cause)
}

func (s *Server) recover(probed bool) {
	s.mu.Lock()
	from := s.State()
	if from == Dead || from == Healthy || s.hard && !probed {
		s.mu.Unlock()
		return
	}
	s.enter(Healthy)
	s.cause, s.hard = nil, false
	s.since, s.nextProbe = time.Time{}, time.Time{}
	up := s.up
	s.up = nil
	s.mu.Unlock()
	if up != nil {
		close(up)
	}
	s.table.changed(s, from, Healthy, nil)
}

// enter changes the state. Under mu.
func (s *Server) enter(to State) {
	s.entered = time.Now()
	s.state.Store(uint32(to))
}

// die ends the incarnation.
func (s *Server) die(cause error) {
	s.mu.Lock()
	from := s.State()
	if from == Dead {
		s.mu.Unlock()
		return
	}
	s.enter(Dead)
	s.epoch.Add(1)
	s.cause = cause
	if s.since.IsZero() {
		s.since = time.Now()
	}
	s.nextProbe = time.Time{}
	up := s.up
	s.up = nil
	err := s.downError()
	s.mu.Unlock()
	if up != nil {
		close(up)
	}
	s.limit.fail(err)
	s.table.changed(s, from, Dead, cause)
}

// Up gives a channel that is closed when the server stops being down: because
// it answered, or because the incarnation is over. It is closed already if
// the server is not down.
func (s *Server) Up() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.State() {
	case Down, Probing:
	default:
		return closedChan
	}
	s.want()
	if s.up == nil {
		s.up = make(chan struct{})
	}
	return s.up
}

// TurnAway makes the error of a caller who is one too many: waiting callers wait
// for the server already.
func (s *Server) TurnAway(waiting int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.downError()
	e.Waiting = waiting
	if e.Since.IsZero() {
		e.Since = s.entered
	}
	return e
}

func (s *Server) downError() *DownError {
	return &DownError{Server: s.name, Since: s.since, NextProbe: s.nextProbe, Cause: s.cause, Dead: s.State() == Dead}
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
