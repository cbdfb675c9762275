package zkserver

import (
	"fmt"
	"time"
)

// Mode is the way a member is broken.
type Mode int

// Modes of a member.
const (
	// Healthy: serves.
	Healthy Mode = iota
	// Frozen: a stopped process. The kernel still accepts connections and takes bytes; nothing is read or written until the mode changes,
	// then everything goes on where it stood.
	Frozen
	// Refuse: nothing listens; connections are refused. Established ones go on.
	Refuse
	// BlackHole: whatever arrives is thrown away and nothing leaves, as behind a cut cable. Connections that lost bytes
	// are dropped when the mode changes. (Connecting still succeeds, since the kernel answers it; a dialer of the test's own can swallow that too.)
	BlackHole
	// Hangup: accepts and closes at once. Established connections go on.
	Hangup
	// Silent: accepts, reads the handshake and never answers it. Established sessions go on.
	Silent
	// Leaderless: a follower that has lost its leader and has not noticed: handshakes are swallowed, reads and pings are answered,
	// writes and sync wait.
	Leaderless
	// Electing: a member without a quorum: connections are closed at the handshake, the four-letter words say it is not serving.
	Electing
	// ReadOnly: serves only clients that said read-only is good enough, and refuses their writes with -119.
	ReadOnly
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Healthy:
		return "healthy"
	case Frozen:
		return "frozen"
	case Refuse:
		return "refuse"
	case BlackHole:
		return "black hole"
	case Hangup:
		return "hangup"
	case Silent:
		return "silent"
	case Leaderless:
		return "leaderless"
	case Electing:
		return "electing"
	case ReadOnly:
		return "read-only"
	}
	return fmt.Sprintf("mode(%d)", int(m))
}

// Fault is what is wrong with a member. The zero value is a healthy one.
type Fault struct {
	Mode Mode
	// Latency delays everything the member sends.
	Latency time.Duration
	// StallPings swallows pings: no answer, and the session is not touched by them.
	StallPings bool
	// HangAfter, if positive, lets a connection receive that many frames and then nothing more.
	HangAfter int
	// Truncate, if positive, cuts every frame after the handshake to that many bytes (4 leaves half a header).
	Truncate int
	// HalfHandshake answers a handshake with its four length bytes and nothing more.
	HalfHandshake bool
}

// Member is one member of the virtual ensemble.
type Member struct{ m *member }

// Addr returns the member's address, host:port.
func (m *Member) Addr() string { return m.m.Addr() }

// Fault returns what is wrong with the member now.
func (m *Member) Fault() Fault { f, _ := m.m.current(); return f }

// SetFault breaks or heals the member. It takes effect at once, for established connections too where the mode says so.
// The error is that of listening again after Refuse; the fault is then still Refuse.
//
// Freezing the leader stops session expiry; when it thaws, whatever is overdue expires before any client is heard.
func (m *Member) SetFault(f Fault) error { return m.m.setFault(f) }

// DropConnections closes the member's connections without a word. Sessions stay.
func (m *Member) DropConnections() {
	s := m.m.s
	s.mu.Lock()
	conns := s.connList()
	s.mu.Unlock()
	for _, c := range conns {
		if c.m == m.m {
			c.drop()
		}
	}
}

func (m *member) setFault(f Fault) error {
	s := m.s
	s.faultMu.Lock()
	defer s.faultMu.Unlock()
	m.mu.Lock()
	old := m.fault
	m.mu.Unlock()
	if f.Mode == Refuse {
		m.stopListening()
	} else if err := m.listenAgain(); err != nil {
		return err
	}
	if f.Mode != Frozen && old.Mode == Frozen {
		s.mu.Lock()
		if s.leader == m.index && s.expiryPaused {
			s.expiryPaused = false
			s.expireDue()
		}
		s.mu.Unlock()
		s.wakeExpiry()
	}
	m.mu.Lock()
	m.fault = f
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	if f.Mode == Frozen && old.Mode != Frozen {
		s.mu.Lock()
		if s.leader == m.index {
			s.expiryPaused = true
		}
		s.mu.Unlock()
	}
	if f.Mode == Frozen {
		return nil
	}
	s.mu.Lock()
	conns := s.connList()
	s.mu.Unlock()
	for _, c := range conns {
		if c.m == m && c.lostBytes.Load() && f.Mode != BlackHole {
			c.drop()
		}
	}
	return nil
}

// listenAgain reopens the listener that Refuse closed. Called with faultMu held.
func (m *member) listenAgain() error {
	m.mu.Lock()
	listening := m.ln != nil
	m.mu.Unlock()
	s := m.s
	s.mu.Lock()
	if listening || s.closed {
		s.mu.Unlock()
		return nil
	}
	s.wg.Add(1) // under mu, so that Close's Wait sees it
	s.mu.Unlock()
	ln, err := s.cfg.Listen("tcp", m.addr.String())
	if err != nil {
		s.wg.Done()
		return fmt.Errorf("zkserver: listen again on %s: %w", m.addr, err)
	}
	m.mu.Lock()
	m.ln = ln
	m.mu.Unlock()
	select {
	case <-s.done: // Close may have looked before there was a listener
		m.stopListening()
	default:
	}
	go m.acceptLoop(ln)
	return nil
}

func (s *Server) setAll(f Fault) error {
	for _, m := range s.members {
		if err := m.setFault(f); err != nil {
			return err
		}
	}
	return nil
}

// Freeze stops every member like SIGSTOP: see Frozen.
func (s *Server) Freeze() { s.setAll(Fault{Mode: Frozen}) }

// Resume makes every member healthy, and ends what StallLeader began: the leader is then the one that leads now.
func (s *Server) Resume() error {
	s.stallMu.Lock()
	defer s.stallMu.Unlock()
	s.stalled++
	return s.setAll(Fault{})
}

// Refuse makes every member refuse new connections; see DropConnections for the established ones.
func (s *Server) Refuse() { s.setAll(Fault{Mode: Refuse}) }

// DropConnections closes every connection without a word. Sessions stay and can be resumed.
func (s *Server) DropConnections() {
	for i := range s.members {
		s.Member(i).DropConnections()
	}
}

// StallLeader plays a leader that stops without dying: its member freezes; the others turn Leaderless, notice after notice (syncLimit ticks on a
// real ensemble) and drop their clients; elect later they have a new leader, serve again, and every session has its full timeout before it.
// The old leader stays frozen until its fault is changed; it then serves as a follower. It returns at once. Another call, or Resume, ends the
// steps of an earlier one that are still to come.
func (s *Server) StallLeader(notice, elect time.Duration) {
	s.stallMu.Lock()
	defer s.stallMu.Unlock()
	s.stalled++
	turn := s.stalled
	later := func(d time.Duration, f func()) {
		s.after(d, func() {
			s.stallMu.Lock()
			defer s.stallMu.Unlock()
			if s.stalled == turn {
				f()
			}
		})
	}
	s.mu.Lock()
	old := s.leader
	s.expiryPaused = true
	s.mu.Unlock()
	s.members[old].setFault(Fault{Mode: Frozen})
	others := func(f Fault) {
		for _, m := range s.members {
			if m.index != old {
				m.setFault(f)
			}
		}
	}
	others(Fault{Mode: Leaderless})
	later(notice, func() {
		others(Fault{Mode: Electing})
		for i := range s.members {
			if i != old {
				s.Member(i).DropConnections()
			}
		}
		later(elect, func() {
			s.mu.Lock()
			s.leader = (old + 1) % len(s.members)
			// A new leader begins a new epoch.
			s.zxid = (s.zxid>>32 + 1) << 32
			s.expiryPaused = false
			s.retrack()
			s.mu.Unlock()
			s.wakeExpiry()
			others(Fault{})
		})
	})
}

// after runs f once, unless the server is closed before.
func (s *Server) after(d time.Duration, f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.scripts = append(s.scripts, time.AfterFunc(d, func() {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		s.wg.Add(1)
		s.mu.Unlock()
		defer s.wg.Done()
		f()
	}))
}

// Leader returns the index of the member that leads.
func (s *Server) Leader() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leader
}

// SetLimits changes the clamp of session timeouts for connections from now on.
func (s *Server) SetLimits(min, max time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.minSession, s.maxSession = min, max
}

// ExpireSession ends a session as if its time had run out and reports whether there was one.
func (s *Server) ExpireSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil {
		return false
	}
	s.expire(sess, "expired on demand")
	return true
}

// MoveSession takes a session away from its connection, as if it had been resumed on another server: requests of that
// connection are answered with -118.
func (s *Server) MoveSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil || sess.conn == nil {
		return false
	}
	sess.conn = nil
	return true
}

// SessionInfo describes one session.
type SessionInfo struct {
	ID         int64
	Timeout    time.Duration // negotiated
	ExpiresIn  time.Duration // until its bucket is due if it is not heard again; 0 for an internal session
	Internal   bool
	Member     int    // where it is connected, -1 if it is not
	RemoteAddr string // "" if it is not connected
	Ephemerals int
}

// Sessions lists the sessions by id.
func (s *Server) Sessions() []SessionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.elapsed(s.cfg.Now())
	var out []SessionInfo
	for _, sess := range s.sessionList() {
		i := SessionInfo{ID: sess.id, Timeout: sess.timeout, Internal: sess.pinned, Member: -1, Ephemerals: len(sess.ephemerals)}
		if !sess.pinned {
			i.ExpiresIn = time.Duration(sess.bucket-now) * time.Millisecond
		}
		if sess.conn != nil {
			i.Member, i.RemoteAddr = sess.conn.m.index, sess.conn.remote
		}
		out = append(out, i)
	}
	return out
}
