package zk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Phase is how far an attempt to connect got.
type Phase int

// Phases of an attempt.
const (
	PhaseResolve Phase = iota
	PhaseDial
	PhaseTLS
	PhaseHandshake
	PhaseServing // the connection was up and was lost
)

// String names the phase.
func (p Phase) String() string {
	switch p {
	case PhaseResolve:
		return "resolve"
	case PhaseDial:
		return "dial"
	case PhaseTLS:
		return "tls"
	case PhaseHandshake:
		return "handshake"
	case PhaseServing:
		return "serving"
	}
	return fmt.Sprintf("phase(%d)", int(p))
}

// Outcome is how an attempt ended.
type Outcome int

// Outcomes of an attempt. Each has its own advice.
const (
	OutcomeConnected    Outcome = iota
	OutcomeUnresolved           // the name has no address
	OutcomeRefused              // nothing listens on the port
	OutcomeUnreachable          // no route to the host
	OutcomeBlackHole            // no answer to the attempt to connect
	OutcomeSilent               // connected, and the handshake is not answered
	OutcomeHungUp               // connected, and closed at the handshake without an answer
	OutcomeTLS                  // no TLS with that peer
	OutcomeNotZooKeeper         // the answer is not ZooKeeper's
	OutcomeExpired              // the server says the session is gone
	OutcomeAuth                 // the server rejected an identity
	OutcomeUnanswered           // an established connection fell silent
	OutcomeLost                 // an established connection was closed or broke
	OutcomeOther
)

// String names the outcome.
func (o Outcome) String() string {
	switch o {
	case OutcomeConnected:
		return "connected"
	case OutcomeUnresolved:
		return "unresolved"
	case OutcomeRefused:
		return "refused"
	case OutcomeUnreachable:
		return "unreachable"
	case OutcomeBlackHole:
		return "black hole"
	case OutcomeSilent:
		return "accepted but silent"
	case OutcomeHungUp:
		return "hung up"
	case OutcomeTLS:
		return "no TLS"
	case OutcomeNotZooKeeper:
		return "not ZooKeeper"
	case OutcomeExpired:
		return "session expired"
	case OutcomeAuth:
		return "authentication failed"
	case OutcomeUnanswered:
		return "requests unanswered"
	case OutcomeLost:
		return "connection lost"
	case OutcomeOther:
		return "failed"
	}
	return fmt.Sprintf("outcome(%d)", int(o))
}

// Advice says what an outcome usually means and where to look; "" for a success.
func (o Outcome) Advice() string {
	switch o {
	case OutcomeUnresolved:
		return "the name has no address: check its spelling and the resolver"
	case OutcomeRefused:
		return "nothing listens on that port: the server is down, or the port is not its client port"
	case OutcomeUnreachable:
		return "there is no route to the host: it is off, or the network is partitioned"
	case OutcomeBlackHole:
		return "packets to the host vanish: it is off, or a firewall drops them"
	case OutcomeSilent:
		return "the kernel accepts and the server does not answer: the process is stopped or overloaded, or it is a follower that has lost its leader"
	case OutcomeHungUp:
		return "the server closes at the handshake: it has no quorum yet, or its data is older than what this session has seen (its log then says our zxid is ahead); " +
			"if every server does so for long, the data was rolled back or wiped and only a new session helps"
	case OutcomeTLS:
		return "the port does not speak TLS, or the certificate is not trusted: the TLS port differs from the plain one"
	case OutcomeNotZooKeeper:
		return "something else than ZooKeeper answers on that port"
	case OutcomeExpired:
		return "the server removed the session and its ephemeral nodes: open a new Conn, create them again, read everything again"
	case OutcomeAuth:
		return "the server rejected an identity: check scheme and credentials, and whether it requires SASL"
	case OutcomeUnanswered:
		return "the server or the way to it stalled"
	case OutcomeLost:
		return "the server closed the connection: it restarted, lost its quorum, or expired the session"
	}
	return ""
}

// Attempt is one entry of the ledger: an attempt to connect, or the end of a connection.
type Attempt struct {
	At      time.Time // when it began
	Took    time.Duration
	Host    string // as configured
	Addr    string // resolved, "" if that failed
	Phase   Phase
	Outcome Outcome
	Err     error
}

// String gives host, phase, outcome, duration and cause in one line.
func (a Attempt) String() string {
	s := a.Host
	if a.Addr != "" && a.Addr != a.Host {
		s += " (" + a.Addr + ")"
	}
	s += fmt.Sprintf(" %v: %v after %v", a.Phase, a.Outcome, a.Took.Round(time.Millisecond))
	if a.Err != nil && a.Outcome >= OutcomeTLS {
		s += ": " + a.Err.Error()
	}
	return s
}

// ledgerSize is how many attempts are remembered: some laps over a usual ensemble.
const ledgerSize = 32

// ledger remembers the newest attempts.
type ledger struct {
	mu   sync.Mutex
	ring [ledgerSize]Attempt
	n    int // ever added
}

func (l *ledger) add(a Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ring[l.n%ledgerSize] = a
	l.n++
}

func (l *ledger) list() []Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Attempt, 0, min(l.n, ledgerSize))
	for i := max(0, l.n-ledgerSize); i < l.n; i++ {
		out = append(out, l.ring[i%ledgerSize])
	}
	return out
}

// Attempts returns the newest entries of the ledger, oldest first.
func (c *Conn) Attempts() []Attempt { return c.ledger.list() }

// advise gives the advice of each kind of failure once.
func advise(attempts []Attempt) string {
	var out string
	var seen [OutcomeOther + 1]bool
	for _, a := range attempts {
		if text := a.Outcome.Advice(); text != "" && !seen[a.Outcome] {
			seen[a.Outcome] = true
			if out != "" {
				out += "; "
			}
			out += a.Outcome.String() + ": " + text
		}
	}
	return out
}

// outcomeOf classifies the error of a phase. It is the one place that does.
func outcomeOf(p Phase, err error) Outcome {
	timeout := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT)
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		timeout = true
	}
	switch {
	case err == nil:
		return OutcomeConnected
	case p == PhaseResolve:
		return OutcomeUnresolved
	case p == PhaseDial && errors.Is(err, syscall.ECONNREFUSED):
		return OutcomeRefused
	case p == PhaseDial && (errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTDOWN)):
		return OutcomeUnreachable
	case p == PhaseDial && timeout:
		return OutcomeBlackHole
	case p == PhaseTLS && timeout:
		return OutcomeSilent
	case p == PhaseTLS:
		return OutcomeTLS
	case p == PhaseHandshake && timeout:
		return OutcomeSilent
	case p == PhaseHandshake && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return OutcomeHungUp
	case p == PhaseHandshake:
		return OutcomeNotZooKeeper
	case p == PhaseServing && timeout:
		return OutcomeUnanswered
	case p == PhaseServing:
		return OutcomeLost
	}
	return OutcomeOther
}
