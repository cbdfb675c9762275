package fault

import (
	"context"
	"errors"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Sentinels for what a server, or the client on its behalf, says.
var (
	ErrTableNotFound     = route.ErrTableNotFound
	ErrTableExists       = errors.New("table exists")
	ErrTableNotEnabled   = route.ErrTableNotEnabled
	ErrTableNotDisabled  = errors.New("table is not disabled")
	ErrNamespaceNotFound = errors.New("namespace not found")
	ErrNamespaceExists   = errors.New("namespace exists")
	ErrNoSuchFamily      = errors.New("no such column family")
	ErrUnknownRegion     = errors.New("unknown region")
	ErrAccessDenied      = errors.New("access denied")
	ErrConstraint        = errors.New("constraint violated")
	ErrUnsupported       = errors.New("not supported by the server")
	ErrInvalid           = errors.New("invalid request")
	ErrRowTooLarge       = errors.New("row too large")
	ErrPeerNotFound      = errors.New("no such replication peer")
	ErrPeerExists        = errors.New("replication peer exists")
)

// sentinelOf maps a server exception to its sentinel.
func sentinelOf(class string) error {
	switch class {
	case wire.ClassTableNotFound:
		return ErrTableNotFound
	case wire.ClassTableExists:
		return ErrTableExists
	case wire.ClassTableNotEnabled:
		return ErrTableNotEnabled
	case wire.ClassTableNotDisabled:
		return ErrTableNotDisabled
	case wire.ClassNamespaceNotFound:
		return ErrNamespaceNotFound
	case wire.ClassNamespaceExist:
		return ErrNamespaceExists
	case wire.ClassNoSuchColumnFamily, wire.ClassInvalidFamilyOperation:
		return ErrNoSuchFamily
	case wire.ClassUnknownRegion:
		return ErrUnknownRegion
	case wire.ClassAccessDenied:
		return ErrAccessDenied
	case wire.ClassConstraint, wire.ClassMergeRegion:
		return ErrConstraint
	case wire.ClassUnknownProtocol, wire.ClassUnsupportedOperation:
		return ErrUnsupported
	case wire.ClassClientRowTooBig, wire.ClassRowTooBig:
		return ErrRowTooLarge
	}
	return nil
}

// Error says which operation on which object failed. errors.Is matches it with
// the sentinel of any server exception in its chain.
type Error struct {
	// Op is the verb: "get", "create table", ...
	Op string
	// Object is what it was done to: a table, a region, a namespace.
	Object string
	Err    error
}

// Wrap gives err its operation and object; nil stays nil. Errors that carry
// them already are left as they are.
func Wrap(op, object string, err error) error {
	if err == nil {
		return nil
	}
	var have *Error
	if errors.As(err, &have) {
		return err
	}
	return &Error{Op: op, Object: object, Err: err}
}

// Error is "op object: cause". The retry loop's own error names operation and
// table itself and is not prefixed again.
func (e *Error) Error() string {
	var r *retry.Error
	if errors.As(e.Err, &r) {
		return e.Err.Error()
	}
	return Phrase(e.Op, e.Object) + ": " + e.Err.Error()
}

// Phrase joins a verb and its object without saying the kind of object twice:
// "create table" and `table "t"` give `create table "t"`.
func Phrase(op, object string) string {
	if object == "" {
		return op
	}
	kind, _, _ := strings.Cut(object, " ")
	if strings.HasSuffix(op, " "+kind) {
		op = strings.TrimSuffix(op, " "+kind)
	}
	return op + " " + object
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches sentinels with the server exceptions they stand for.
func (e *Error) Is(target error) bool {
	if target == session.ErrClosed {
		// The parts of a client close one after another; whichever a call
		// meets first, to the caller the client is closed.
		return errors.Is(e.Err, route.ErrClosed)
	}
	var remote *wire.RemoteError
	return errors.As(e.Err, &remote) && sentinelOf(remote.Class) == target && target != nil
}

// Invalid is a request that was refused before anything was sent.
type Invalid struct {
	// Op is the kind of request: "put", "scan", "create table", ...
	Op string
	// Object names the part at fault: "row", "cell f:q", "family x", ...
	Object string
	// Reason says what is wrong with it, and what would be right.
	Reason string
}

// Error is "op: object: reason".
func (e *Invalid) Error() string { return e.Op + ": " + e.Object + ": " + e.Reason }

// Is matches ErrInvalid.
func (e *Invalid) Is(target error) bool { return target == ErrInvalid }

// Retriable says whether doing the same again later may succeed.
func Retriable(err error) bool {
	switch {
	case err == nil, errors.Is(err, ErrInvalid), errors.Is(err, context.Canceled):
		return false
	}
	return retry.Retriable(err)
}

// SafeToRetry says whether the failed operation certainly was not applied, so
// that doing it again cannot double it.
func SafeToRetry(err error) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, ErrInvalid):
		return true
	}
	if _, ok := errors.AsType[*Unreadable](err); ok {
		return false
	}
	return retry.SafeToRetry(err)
}

// Unreadable is an answer that came and makes no sense: the request was
// executed, what it gave is lost.
type Unreadable struct{ Err error }

func (e *Unreadable) Error() string { return "unreadable answer: " + e.Err.Error() }
func (e *Unreadable) Unwrap() error { return e.Err }
