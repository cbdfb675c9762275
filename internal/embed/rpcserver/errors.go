package rpcserver

import (
	"context"
	"errors"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// ErrStopped is returned by Serve once the server was stopped or killed.
var ErrStopped = errors.New("rpc server is stopped")

// ToRemote gives an error the form in which the client gets it: a
// *wire.RemoteError or *cells.Exception as it stands, a context's end as
// TimeoutIOException, anything else as java.io.IOException, which clients
// retry.
func ToRemote(err error) *wire.RemoteError {
	var r *wire.RemoteError
	if errors.As(err, &r) {
		return r
	}
	var x *cells.Exception
	if errors.As(err, &x) {
		r := wire.NewRemoteError(x.Class, x.Message)
		r.DoNotRetry = x.DoNotRetry
		return r
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return wire.NewRemoteError(wire.ClassTimeoutIO, err.Error())
	}
	return wire.NewRemoteError(wire.ClassIOException, err.Error())
}
