package rpc

import (
	"errors"
	"fmt"
)

// Causes of a *ConnError that are no fault of network or server.
var (
	// ErrClosed: the connection's owner closed it.
	ErrClosed = errors.New("connection closed")
	// ErrIdle: the connection closed itself after Config.IdleTimeout.
	ErrIdle = errors.New("connection closed after being idle")
	// ErrServerClosed: the server closed the connection.
	ErrServerClosed = errors.New("server closed the connection")
	// ErrConnectTimeout: Config.ConnectTimeout passed before the connection was
	// usable.
	ErrConnectTimeout = errors.New("connect timeout")
)

// Phase is how far a Dial got.
type Phase uint8

const (
	PhaseConnect Phase = iota // resolving the name, connecting
	PhaseTLS                  // TLS handshake
	PhaseAuth                 // preamble and authentication
	PhaseHeader               // sending the connection header
)

// String names the phase as errors show it.
func (p Phase) String() string {
	switch p {
	case PhaseConnect:
		return "connect"
	case PhaseTLS:
		return "tls handshake"
	case PhaseAuth:
		return "authenticate"
	case PhaseHeader:
		return "connection header"
	}
	return "invalid"
}

// DialError says that no connection came about. No request was sent.
type DialError struct {
	Addr  string
	Phase Phase
	Cause error
}

func (e *DialError) Error() string {
	return fmt.Sprintf("dial %s: %s: %v", e.Addr, e.Phase, e.Cause)
}

func (e *DialError) Unwrap() error { return e.Cause }

// ConnError ends a call because its connection failed, or had failed before.
type ConnError struct {
	Addr string
	// Cause is what happened to the connection: a network error, one of the
	// errors of this package, a *wire.RemoteError that was fatal, or a
	// *wire.FormatError or *wire.TooLargeError in what the server sent.
	Cause error
	// Sent says whether the server may have got the whole request, and so may
	// have executed it.
	Sent bool
}

func (e *ConnError) Error() string {
	if e.Sent {
		return fmt.Sprintf("connection to %s: %v (request was sent)", e.Addr, e.Cause)
	}
	return fmt.Sprintf("connection to %s: %v", e.Addr, e.Cause)
}

func (e *ConnError) Unwrap() error { return e.Cause }

// NotHBaseError says that something else than an HBase server answers at the
// address.
type NotHBaseError struct {
	Addr string
	// Saw names what it seems to be: "an HTTP server", ...
	Saw string
	// Bytes are the first it sent, at most 64.
	Bytes []byte
	// Cause, if set, is what was wrong with the bytes as an answer.
	Cause error
}

func (e *NotHBaseError) Unwrap() error { return e.Cause }

func (e *NotHBaseError) Error() string {
	return fmt.Sprintf("%s is not an HBase RPC port: saw %s (%q)", e.Addr, e.Saw, e.Bytes)
}
