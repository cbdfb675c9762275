package zk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Code is a ZooKeeper error code; non-zero codes are errors and can be compared with errors.Is.
type Code = jute.Code

// Errors a server answers with.
const (
	ErrNoNode                  = jute.ErrNoNode
	ErrNodeExists              = jute.ErrNodeExists
	ErrBadVersion              = jute.ErrBadVersion
	ErrNotEmpty                = jute.ErrNotEmpty
	ErrNoAuth                  = jute.ErrNoAuth
	ErrInvalidACL              = jute.ErrInvalidACL
	ErrNoChildrenForEphemerals = jute.ErrNoChildrenForEphemerals
	ErrUnimplemented           = jute.ErrUnimplemented
	ErrBadArguments            = jute.ErrBadArguments
	ErrNotReadOnly             = jute.ErrNotReadOnly
	ErrQuotaExceeded           = jute.ErrQuotaExceeded
	ErrThrottled               = jute.ErrThrottled
	// ErrSessionExpired: the server said the session is gone. Terminal for a Conn.
	ErrSessionExpired = jute.ErrSessionExpired
	// ErrAuthFailed: the server rejected an identity. Terminal for a Conn.
	ErrAuthFailed = jute.ErrAuthFailed
	// ErrConnectionLoss: the connection broke while a write was in flight; whether it was applied is not known.
	ErrConnectionLoss = jute.ErrConnectionLoss
)

// ErrClosed is the error of calls on a Conn after Close.
var ErrClosed = errors.New("zk: connection closed by its owner")

// OpError is the error of every call on a Conn.
type OpError struct {
	Op   string // "get", "create", ...
	Path string // as the caller gave it
	// Err is the cause: a Code if the server answered, ErrClosed, the context's error, or a *PathError for a path that is none.
	Err error
	// Answered is true if a server answered the call; the fields below then only tell where.
	Answered bool
	// MaybeApplied is true if the call writes, it was sent, and no answer came.
	MaybeApplied bool
	State        State
	Host         string // the server that answered, or to which the call was sent; "" if it was not sent
	Budget       Budget
	Waited       time.Duration // from the call to the error
	Attempts     []Attempt     // the newest attempts to connect, oldest first
}

// PathError says why a path is not a node's path.
type PathError = jute.PathError

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// Error tells the story: the operation and its cause, and if no server answered, the state of the session and the last attempts.
func (e *OpError) Error() string {
	var b strings.Builder
	b.WriteString("zk: " + e.Op)
	if e.Path != "" {
		fmt.Fprintf(&b, " %q", shorten(e.Path))
	}
	fmt.Fprintf(&b, ": %v", e.Err)
	var pe *PathError
	if e.Answered || errors.As(e.Err, &pe) {
		return b.String()
	}
	fmt.Fprintf(&b, " after %v; %v, ", e.Waited.Round(time.Millisecond), e.State)
	if e.Budget.Verdict != NoSession {
		b.WriteString("session ")
	}
	b.WriteString(e.Budget.String())
	if e.MaybeApplied {
		fmt.Fprintf(&b, "; it was sent to %s and may have been applied", e.Host)
	}
	if n := len(e.Attempts); n > 0 {
		from := max(0, n-errorAttempts)
		fmt.Fprintf(&b, "; last attempts:")
		for _, a := range e.Attempts[from:] {
			b.WriteString(" [" + a.String() + "]")
		}
		if advice := advise(e.Attempts[from:]); advice != "" {
			b.WriteString("; " + advice)
		}
	}
	return b.String()
}

// errorAttempts is how many attempts an error message shows; the field has them all.
const errorAttempts = 5

func shorten(path string) string {
	if len(path) > 128 {
		return path[:128] + "..."
	}
	return path
}

// MultiError says which operation of a Multi failed. errors.Is finds its Code.
type MultiError struct {
	Index int // of the operation that failed
	Op    string
	Path  string
	Code  Code
}

func (e *MultiError) Error() string {
	return fmt.Sprintf("operation %d, %s %q: %v; nothing was applied", e.Index, e.Op, shorten(e.Path), e.Code)
}

// Unwrap returns the failed operation's code.
func (e *MultiError) Unwrap() error { return e.Code }

// SizeError rejects a request that a server would answer by closing the connection.
type SizeError struct {
	Size, Max int // bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("request of %d bytes exceeds the limit of %d (jute.maxbuffer)", e.Size, e.Max)
}

// ctxError prefers the context's cause over its bare error.
func ctxError(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
