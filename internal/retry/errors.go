package retry

import (
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// ErrRetriesExhausted is matched by every *Error of an operation that could
// have gone on, had there been time, attempts or tokens left.
var ErrRetriesExhausted = errors.New("retries exhausted")

// ErrUnknownOutcome is matched by the *Error of a request that may or may not
// have been executed and must not be repeated blindly.
var ErrUnknownOutcome = errors.New("outcome unknown: the request may have been executed")

// Reason says why an operation ended.
type Reason uint8

const (
	// Final: the last cause cannot be cured by trying again.
	Final Reason = iota
	// Deadline: the time is used up, or the next wait would not fit.
	Deadline
	// TooManyAttempts: the attempt cap is reached.
	TooManyAttempts
	// RetryThrottled: too many retries fail already; this one would only add
	// load.
	RetryThrottled
	// Canceled: the caller gave up.
	Canceled
	// Unknown: see ErrUnknownOutcome.
	Unknown
)

// Error is how an operation ended, with its whole story.
type Error struct {
	Op      string
	Table   meta.TableName
	Row     []byte // cut to a readable length
	Region  string // encoded name of the last region tried
	Reason  Reason
	Elapsed time.Duration
	// Timeout is the time the operation had; 0 if unbounded.
	Timeout  time.Duration
	Attempts int
	Servers  []string // distinct, in the order first tried
	// Spent is where the time went.
	Spent []Spent
	// Causes are the last failures, oldest first, at most three.
	Causes []Cause

	ctxErr error
}

// Spent is one line of the ledger.
type Spent struct {
	Phase Phase
	Class Class // of Waiting
	Count int
	Time  time.Duration
}

// Cause is one failure of an operation.
type Cause struct {
	// After is the time from the start of the operation.
	After   time.Duration
	Attempt int
	Server  string
	Err     error
}

func (e *Error) Error() string { return "unfinished" }
