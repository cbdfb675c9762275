package fault

import (
	"errors"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Unsupported is a call that the server does not know, because it is too old or
// too new for it. It matches ErrUnsupported.
type Unsupported struct {
	// What was asked for: an RPC method, an option.
	What string
	// Versions says which HBase has it: "2.6 and later".
	Versions string
	// Err is the server's answer; nil if it was not asked, because it would
	// have done something else.
	Err error
}

// Error is "not supported by the server: WHAT needs HBase VERSIONS".
func (e *Unsupported) Error() string {
	return ErrUnsupported.Error() + ": " + e.What + " needs HBase " + e.Versions
}

// Is matches ErrUnsupported.
func (e *Unsupported) Is(target error) bool { return target == ErrUnsupported }

// Unwrap gives the server's answer.
func (e *Unsupported) Unwrap() error { return e.Err }

// UnknownMethod says whether err is the answer of a server that does not know
// the service or the method called. For an unknown method HBase has no class of
// its own: the answer is a DoNotRetryIOException whose text is that of an
// UnsupportedOperationException.
func UnknownMethod(err error) bool {
	remote, ok := errors.AsType[*wire.RemoteError](err)
	if !ok {
		return false
	}
	switch remote.Class {
	case wire.ClassUnknownProtocol, wire.ClassUnsupportedOperation, wire.ClassUnknownService:
		return true
	}
	return strings.Contains(remote.Message, wire.ClassUnsupportedOperation)
}

// Since explains the answer of a server that does not know a method; any other
// error stays as it is.
func Since(err error, what, versions string) error {
	if !UnknownMethod(err) {
		return err
	}
	// The retry loop's story of one refused attempt adds nothing.
	remote, _ := errors.AsType[*wire.RemoteError](err)
	return &Unsupported{What: what, Versions: versions, Err: remote}
}
