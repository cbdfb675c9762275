package registry

import (
	"context"
	"errors"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Registry answers where things are. Implementations are safe for concurrent
// use.
type Registry interface {
	// MetaLocation gives the server that holds hbase:meta. While meta is
	// between servers the error is a *NotYetError.
	MetaLocation(ctx context.Context) (meta.ServerName, error)
	// ActiveMaster gives the active master; a *NotYetError if there is none.
	ActiveMaster(ctx context.Context) (meta.ServerName, error)
	// ClusterID gives the cluster's identity, a UUID in text form.
	ClusterID(ctx context.Context) (string, error)
	// String gives the registry's address for error texts.
	String() string
	// Close ends the registry's connections and goroutines.
	Close() error
}

// Troubled is implemented by registries that can tell, while a question waits
// for its answer, what they are struggling with.
type Troubled interface {
	// Trouble gives nil if there is nothing to tell. It does not block.
	Trouble() error
}

// ErrClosed is returned by every call on a closed registry.
var ErrClosed = errors.New("registry closed")

// NotYetError says that the cluster is there but does not know the answer at
// the moment: no active master, hbase:meta between two servers. Asking again
// is the cure.
type NotYetError struct {
	// What was asked for: "active master", "hbase:meta".
	What string
	// Where it was looked for: a znode or a list of endpoints.
	Where string
	// State is what was found instead, in words.
	State string
}

func (e *NotYetError) Error() string { return e.What + " at " + e.Where + ": " + e.State }

// Permanent says whether err is one of this package's errors that asking again
// cannot cure: a wrong znode parent, a znode that is not HBase's, an address
// that cannot be meant.
func Permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}
