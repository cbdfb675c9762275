package hbase

import (
	"errors"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// What happened: ask with errors.Is. The server's own exception, if there was
// one, is a [*RemoteError] in the same chain.
var (
	// ErrClosed: the client was closed.
	ErrClosed = session.ErrClosed
	// ErrRetriesExhausted: attempts or time ran out; the chain holds the last
	// causes and a ledger of where the time went.
	ErrRetriesExhausted = retry.ErrRetriesExhausted
	// ErrUnknownOutcome: the request was sent and no answer came, and repeating
	// it might have applied it twice. Read before you decide.
	ErrUnknownOutcome = retry.ErrUnknownOutcome

	ErrTableNotFound     = fault.ErrTableNotFound
	ErrTableExists       = fault.ErrTableExists
	ErrTableNotEnabled   = fault.ErrTableNotEnabled
	ErrTableNotDisabled  = fault.ErrTableNotDisabled
	ErrNamespaceNotFound = fault.ErrNamespaceNotFound
	ErrNamespaceExists   = fault.ErrNamespaceExists
	ErrNoSuchFamily      = fault.ErrNoSuchFamily
	ErrUnknownRegion     = fault.ErrUnknownRegion
	ErrAccessDenied      = fault.ErrAccessDenied
	ErrConstraint        = fault.ErrConstraint
	ErrUnsupported       = fault.ErrUnsupported
	ErrPeerNotFound      = fault.ErrPeerNotFound
	ErrPeerExists        = fault.ErrPeerExists
	// ErrInvalid: refused before anything was sent; see [*InvalidError].
	ErrInvalid = fault.ErrInvalid
	// ErrRowTooLarge: a row did not fit; read it with AllowPartial or Batch.
	ErrRowTooLarge = fault.ErrRowTooLarge

	// ErrServerDown: the server is known to be down, or does not answer and
	// enough callers wait for it; see [*ServerDownError]. Only with
	// [Config.MaxWaitingPerServer] does it end an operation by itself.
	ErrServerDown = health.ErrServerDown

	// ErrScannerClosed: Next was called after Close.
	ErrScannerClosed = errors.New("scanner is closed")
)

// RemoteError is a server's exception: its Java class, message, and what the
// client read out of it.
type RemoteError = wire.RemoteError

// RetryError is what an operation ends with when attempts or time ran out:
// operation, table, row, region, attempts, servers tried, time per class of
// wait, last causes.
type RetryError = retry.Error

// ServerDownError says which server is down, since when, why, and when it is
// asked next.
type ServerDownError = health.DownError

// NoReplicaError says that hbase:meta names no server for the replica asked for.
type NoReplicaError = session.NoReplicaError

// InvalidError is a request that was refused before anything was sent.
type InvalidError = fault.Invalid

// OpError names the operation and the object of a failure.
type OpError = fault.Error

// Retriable says whether doing the same again later may succeed: the failure
// was one of place or time, not of the request.
func Retriable(err error) bool { return fault.Retriable(err) }

// SafeToRetry says whether the failed operation certainly was not applied:
// nothing was sent, or the server refused it. It says nothing about whether
// trying again is worth while; that is [Retriable].
func SafeToRetry(err error) bool {
	return errors.Is(err, ErrMutatorClosed) || fault.SafeToRetry(err)
}
