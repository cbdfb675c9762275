package zk

import (
	"fmt"
	"time"
)

// State is where a Conn stands.
type State int32

// States of a Conn. Expired, AuthFailed and Closed are terminal.
const (
	StateConnecting   State = iota // no session yet
	StateConnected                 // a server serves the session
	StateDisconnected              // no connection; the session may live, see Budget
	StateExpired                   // the server said the session is gone
	StateAuthFailed                // the server rejected an identity
	StateClosed                    // Close was called
)

// String names the state.
func (s State) String() string {
	switch s {
	case StateConnecting:
		return "connecting"
	case StateConnected:
		return "connected"
	case StateDisconnected:
		return "disconnected"
	case StateExpired:
		return "expired"
	case StateAuthFailed:
		return "authentication failed"
	case StateClosed:
		return "closed"
	}
	return fmt.Sprintf("state(%d)", int32(s))
}

// Terminal reports whether the Conn is of no further use.
func (s State) Terminal() bool { return s >= StateExpired }

// Verdict is what may be assumed about a session.
type Verdict int32

// Verdicts about a session.
const (
	NoSession    Verdict = iota // there has never been one, or it was closed
	Alive                       // its time has not run out
	PresumedLost                // its time has run out without an answer; only the server can confirm
	Expired                     // the server said so
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case NoSession:
		return "no session"
	case Alive:
		return "alive"
	case PresumedLost:
		return "presumed lost"
	case Expired:
		return "expired"
	}
	return fmt.Sprintf("verdict(%d)", int32(v))
}

// Budget is a session's account of time.
type Budget struct {
	Verdict    Verdict
	Requested  time.Duration // asked for
	Negotiated time.Duration // granted; 0 before the first session
	// LastAnswered is when the newest answered request was sent: the latest moment at which the server is known to have heard us.
	LastAnswered time.Time
	// Deadline is LastAnswered + Negotiated: before it the server cannot have expired the session.
	Deadline time.Time
	// Left is what remained until Deadline when the Budget was taken, never negative.
	Left time.Duration
}

// String gives the verdict and the numbers behind it.
func (b Budget) String() string {
	if b.Negotiated == 0 {
		return fmt.Sprintf("%v (asking for %v)", b.Verdict, b.Requested)
	}
	return fmt.Sprintf("%v, %v of %v left", b.Verdict, b.Left.Round(time.Millisecond), b.Negotiated)
}

// StateChange is one step in the life of a Conn.
type StateChange struct {
	State     State
	Verdict   Verdict
	SessionID int64
	Host      string // the server concerned, "" if none
	At        time.Time
	Err       error // why, for a loss or a terminal state
}

// view is the published part of the loop's state; immutable once stored.
type view struct {
	state      State
	sessionID  int64
	negotiated time.Duration
	host       string
	err        error // of a terminal state
}

// State returns where the Conn stands.
func (c *Conn) State() State { return c.view.Load().state }

// SessionID returns the session's id, 0 before the first session.
func (c *Conn) SessionID() int64 { return c.view.Load().sessionID }

// Server returns the server (as configured) that serves the session now, or "".
func (c *Conn) Server() string { return c.view.Load().host }

// Done is closed when the Conn has reached a terminal state; Err then says which.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil until Done is closed, then why the Conn ended: errors.Is finds ErrSessionExpired, ErrAuthFailed or ErrClosed.
func (c *Conn) Err() error { return c.view.Load().err }

// Budget returns the session's account as of now.
func (c *Conn) Budget() Budget {
	v := c.view.Load()
	b := Budget{Requested: c.cfg.SessionTimeout, Negotiated: v.negotiated}
	if v.sessionID == 0 || v.negotiated == 0 {
		return b
	}
	b.LastAnswered = c.base.Add(time.Duration(c.lastAnswered.Load()))
	b.Deadline = b.LastAnswered.Add(v.negotiated)
	b.Left = max(0, time.Until(b.Deadline))
	switch {
	case v.state == StateExpired:
		b.Verdict = Expired
	case v.state == StateClosed:
		b.Verdict = NoSession
	case b.Left == 0:
		b.Verdict = PresumedLost
	default:
		b.Verdict = Alive
	}
	return b
}
