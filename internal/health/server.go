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
	name meta.ServerName
	addr string

	epoch atomic.Uint64
	state atomic.Uint32 // State; written under mu

	table *Table
	owner any

	mu        sync.Mutex
	since     time.Time // of the present state
	nextProbe time.Time
	cause     error
	up        chan struct{} // closed when the server leaves Down; nil while nobody waits
	probing   bool          // a prober goroutine exists
}

// Name gives the incarnation.
func (s *Server) Name() meta.ServerName { return s.name }

// Addr gives host:port.
func (s *Server) Addr() string { return s.addr }

// Epoch counts the hard evidence against the server. A route is valid only
// while the epoch it captured is the server's.
func (s *Server) Epoch() uint64 { return s.epoch.Load() }

// State tells the present state without a lock.
func (s *Server) State() State { return State(s.state.Load()) }
