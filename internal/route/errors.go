package route

import (
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// What a lookup may end with; a *LocateError matches them with errors.Is.
var (
	// ErrTableNotFound: hbase:meta has no region of the table.
	ErrTableNotFound = errors.New("table not found")
	// ErrTableNotEnabled: the table is disabled, so its regions are closed.
	ErrTableNotEnabled = errors.New("table not enabled")
	// ErrRegionUnavailable: too many callers wait for this region already.
	ErrRegionUnavailable = errors.New("region in transition")
	// ErrClosed: the cache has been closed.
	ErrClosed = errors.New("route cache closed")
)

// LocateError says that a row's region could not be found (in time).
type LocateError struct {
	Table meta.TableName
	Row   []byte // cut to a readable length
	// Before says that the region before Row was asked for.
	Before bool
	// Since is how long the caller waited.
	Since time.Duration
	// Reads is the number of failed reads of hbase:meta behind this lookup.
	Reads int
	// RetryAfter is a hint for ErrRegionUnavailable; 0 otherwise.
	RetryAfter time.Duration
	// Err is the context's error, if the caller's time ended, or one of the
	// errors above.
	Err error
	// Last is the last trouble with hbase:meta or with the region; may be nil.
	Last error
}

func (e *LocateError) Error() string { return "unfinished" }

// Unwrap gives both.
func (e *LocateError) Unwrap() []error { return []error{e.Err, e.Last} }
