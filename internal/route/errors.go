package route

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
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

	// errHole: meta's answer leaves out the row: it is stale, or being changed.
	errHole = errors.New("hbase:meta has no region for the row (split or merge under way?)")
)

// maxRow is how much of a row is kept in an error.
const maxRow = 64

// LocateError says that a row's region could not be found (in time).
type LocateError struct {
	Table meta.TableName
	// Row is cut to a readable length.
	Row []byte
	// Before says that the region before Row was asked for.
	Before bool
	// Waited is how long the caller waited.
	Waited time.Duration
	// Failures counts the reads of hbase:meta that failed, or did not help,
	// while the caller waited.
	Failures int
	// RetryAfter is a hint for ErrRegionUnavailable; 0 otherwise.
	RetryAfter time.Duration
	// Err is the context's error, if the caller's time ended, or one of the
	// errors above, or the final error of hbase:meta.
	Err error
	// Last is the last trouble with hbase:meta or with the region; may be nil.
	Last error
}

// Error names the table and the row, why the lookup ended, and the last
// trouble: locate "t" row "r": table not found.
func (e *LocateError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "locate %q", e.Table.String())
	switch {
	case e.Before && len(e.Row) == 0:
		b.WriteString(" last region")
	case e.Before:
		b.WriteString(" before row ")
		b.WriteString(cells.Quote(e.Row))
	case len(e.Row) > 0:
		b.WriteString(" row ")
		b.WriteString(cells.Quote(e.Row))
	}
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	if e.Waited >= time.Millisecond || e.Failures > 0 {
		fmt.Fprintf(&b, " after %s", e.Waited.Round(100*time.Microsecond))
		if e.Failures > 0 {
			s := "s"
			if e.Failures == 1 {
				s = ""
			}
			fmt.Fprintf(&b, " and %d fruitless read%s of hbase:meta", e.Failures, s)
		}
	}
	if e.Last != nil && !errors.Is(e.Err, e.Last) {
		b.WriteString(": ")
		b.WriteString(e.Last.Error())
	}
	return b.String()
}

// unansweredError says that a read of hbase:meta is under way.
type unansweredError struct{ since time.Duration }

func (e *unansweredError) Error() string {
	return fmt.Sprintf("hbase:meta has not answered for %s", e.since.Round(time.Millisecond))
}

// Unwrap gives Err and Last.
func (e *LocateError) Unwrap() []error {
	if e.Last == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Last}
}

// LocateFailed tells the error table (retry.Classify) whether another lookup
// may help, and when. A lookup that the caller's context ended may.
func (e *LocateError) LocateFailed() (final bool, retryAfter time.Duration) {
	switch {
	case errors.Is(e.Err, ErrTableNotFound), errors.Is(e.Err, ErrTableNotEnabled), errors.Is(e.Err, ErrClosed):
		return true, 0
	case errors.Is(e.Err, errFinal):
		return true, 0
	}
	return false, e.RetryAfter
}

// errFinal marks an error of hbase:meta that trying again does not cure.
var errFinal = errors.New("final")

// finalError is such an error.
type finalError struct{ err error }

func (e *finalError) Error() string        { return "read hbase:meta: " + e.err.Error() }
func (e *finalError) Unwrap() error        { return e.err }
func (e *finalError) Is(target error) bool { return target == errFinal }

// transitError says what meta tells about a region that nobody serves.
type transitError struct {
	region string
	state  string
	server string
	cause  error // why the server named is no use; may be nil
}

func (e *transitError) Error() string {
	s := "region " + e.region + " is in transition"
	if e.state != "" {
		s += " (" + e.state + ")"
	}
	if e.server != "" {
		s += ", last on " + e.server
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *transitError) Unwrap() error        { return e.cause }
func (e *transitError) Is(target error) bool { return target == ErrRegionUnavailable }
