package session

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// errNoServer: the route was made from a meta row that names no server.
var errNoServer = errors.New("hbase:meta names no server for the region")

// ErrClosed ends every call of a Core that has been closed.
var ErrClosed = errors.New("client closed")

// AttemptError is the failure of a single attempt (CallRoute), together with
// what the error table makes of it. Routes and health know of it already.
type AttemptError struct {
	Decision retry.Decision
	Err      error
}

func (e *AttemptError) Error() string { return e.Err.Error() }

// Unwrap gives the failure.
func (e *AttemptError) Unwrap() error { return e.Err }

// SilentError is the evidence against a server that owes answers.
type SilentError struct {
	Server meta.ServerName
	// For is how long nothing has come from it.
	For time.Duration
	// Pinged says that it left a ping unanswered as well.
	Pinged bool
}

func (e *SilentError) Error() string {
	s := fmt.Sprintf("server %s has been silent for %s", e.Server, e.For.Round(time.Millisecond))
	if e.Pinged {
		s += " and did not answer a ping"
	}
	return s
}

// RegistryError says that the registry could not tell where something is.
type RegistryError struct {
	// What was asked for: "active master", "hbase:meta".
	What string
	// Registry is its address.
	Registry string
	Err      error
}

func (e *RegistryError) Error() string {
	return "find the " + e.What + " through " + e.Registry + ": " + e.Err.Error()
}

// Unwrap gives the registry's error.
func (e *RegistryError) Unwrap() error { return e.Err }

// LocateFailed tells retry.Classify that nothing was sent, and whether asking
// again can help.
func (e *RegistryError) LocateFailed() (final bool, retryAfter time.Duration) {
	return registry.Permanent(e.Err) || errors.Is(e.Err, registry.ErrClosed), 0
}
