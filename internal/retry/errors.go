package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// ErrRetriesExhausted is matched by every *Error of an operation that could
// have gone on, had there been time or attempts left.
var ErrRetriesExhausted = errors.New("retries exhausted")

// ErrUnknownOutcome is matched by every *Error of a request that may or may
// not have been executed and must not be repeated blindly.
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
	// Canceled: the caller gave up.
	Canceled
	// OutcomeUnknown: a request was sent, its answer was lost, and repeating it
	// could do harm.
	OutcomeUnknown
)

// String describes the reason in the words of Error's text.
func (r Reason) String() string {
	switch r {
	case Final:
		return "failed"
	case Deadline:
		return "deadline exceeded"
	case TooManyAttempts:
		return "attempts used up"
	case Canceled:
		return "canceled"
	case OutcomeUnknown:
		return "outcome unknown"
	}
	return "invalid"
}

// Error is how an operation ended, with its whole story. Match it with
// errors.As; the questions what happened (errors.Is against the causes), may I
// retry (Retriable), and could it have been applied (SafeToRetry) have
// functions.
type Error struct {
	Op    string
	Table meta.TableName
	// Row is cut to a readable length.
	Row []byte
	// Region is the encoded name of the last region tried.
	Region  string
	Reason  Reason
	Elapsed time.Duration
	// Timeout is the time the operation had; 0 if unbounded.
	Timeout  time.Duration
	Attempts int
	// Servers are the first distinct servers tried, in order; MoreServers
	// counts those left out.
	Servers     []string
	MoreServers int
	// Spent is where the time went.
	Spent []Spent
	// Failures counts all failures; Causes are the last of them, oldest first,
	// at most three.
	Failures int
	Causes   []Cause
	// NextWait is the wait a server asked for and that did not fit; 0 if none.
	NextWait time.Duration
	// MaybeApplied says that some attempt may have been executed.
	MaybeApplied bool
	Idempotency  Idempotency

	ctxErr error
}

// Spent is one line of the ledger.
type Spent struct {
	Phase Phase
	Class Class // of Waiting
	Count int   // waits of that class
	Time  time.Duration
}

// Cause is one failure of an operation.
type Cause struct {
	// After is the time from the start of the operation.
	After   time.Duration
	Attempt int    // 0: before the first
	Server  string // empty if none was involved
	Err     error
}

// Error tells the story in one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if !e.Table.IsZero() {
		fmt.Fprintf(&b, " %q", e.Table.String())
	}
	if len(e.Row) > 0 {
		b.WriteString(" row ")
		b.WriteString(cells.Quote(e.Row))
	}
	if e.Region != "" {
		b.WriteString(" region ")
		b.WriteString(e.Region)
	}
	b.WriteString(": ")
	b.WriteString(e.Reason.String())
	fmt.Fprintf(&b, " after %s", round(e.Elapsed))
	if e.Timeout > 0 && e.Reason == Deadline {
		fmt.Fprintf(&b, " of %s", round(e.Timeout))
	}
	switch e.Attempts {
	case 0:
		b.WriteString(", no attempt")
	case 1:
		b.WriteString(", 1 attempt")
	default:
		fmt.Fprintf(&b, ", %d attempts", e.Attempts)
	}
	for i, s := range e.Servers {
		if i == 0 {
			b.WriteString(" on ")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(s)
	}
	if e.MoreServers > 0 {
		fmt.Fprintf(&b, " and %d more", e.MoreServers)
	}
	if e.MaybeApplied && e.Reason != OutcomeUnknown && e.Idempotency != Safe {
		b.WriteString(", may have been executed")
	}
	if e.NextWait > 0 {
		fmt.Fprintf(&b, ", the server asks to wait %s", round(e.NextWait))
	}
	if last := len(e.Causes) - 1; last >= 0 {
		b.WriteString(": ")
		b.WriteString(errText(e.Causes[last].Err))
	}
	if e.Attempts > 1 || e.Failures > 1 || e.Reason == Deadline {
		e.details(&b)
	}
	return b.String()
}

// details adds what only the story of several attempts needs.
func (e *Error) details(b *strings.Builder) {
	open := false
	sep := func(s string) {
		if !open {
			b.WriteString(" [")
			open = true
		} else {
			b.WriteString("; ")
		}
		b.WriteString(s)
	}
	for i, s := range e.Spent {
		text := s.Phase.String() + " " + round(s.Time)
		if s.Phase == Waiting {
			text = fmt.Sprintf("waiting %s (%s, %d times)", round(s.Time), s.Class, s.Count)
		}
		if i == 0 {
			sep("time: " + text)
		} else {
			b.WriteString(", " + text)
		}
	}
	for i := 0; i < len(e.Causes)-1; i++ {
		c := &e.Causes[i]
		text := fmt.Sprintf("+%s", round(c.After))
		if c.Attempt > 0 {
			text += fmt.Sprintf(" attempt %d", c.Attempt)
		}
		if c.Server != "" {
			text += " on " + c.Server
		}
		if i == 0 {
			text = "before: " + text
		}
		sep(text + ": " + errText(c.Err))
	}
	if n := e.Failures - len(e.Causes); n > 0 {
		sep(fmt.Sprintf("%d earlier failures", n))
	}
	if open {
		b.WriteByte(']')
	}
}

// maxErrText keeps a server's stack trace out of our one line.
const maxErrText = 300

func errText(err error) string {
	s := err.Error()
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	if len(s) > maxErrText {
		s = strings.ToValidUTF8(s[:maxErrText], "") + "..."
	}
	return s
}

func round(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(100 * time.Millisecond)
	case d >= 10*time.Millisecond:
		d = d.Round(time.Millisecond)
	default:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}

// Is matches ErrRetriesExhausted, ErrUnknownOutcome, and the context errors
// that say the same as Reason.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrRetriesExhausted:
		return e.Reason == Deadline || e.Reason == TooManyAttempts
	case ErrUnknownOutcome:
		return e.Reason == OutcomeUnknown || e.Reason != Final && e.MaybeApplied && e.Idempotency != Safe
	case context.DeadlineExceeded:
		return e.Reason == Deadline
	case context.Canceled:
		return e.Reason == Canceled
	}
	return false
}

// Unwrap gives the context's error, if it ended the operation, and the causes,
// the last one first.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.ctxErr != nil {
		errs = append(errs, e.ctxErr)
	}
	for i := len(e.Causes) - 1; i >= 0; i-- {
		if e.Causes[i].Err != nil {
			errs = append(errs, e.Causes[i].Err)
		}
	}
	return errs
}

// Retriable says whether the same operation, begun anew, may succeed without
// anything else being changed.
func Retriable(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Reason {
		case Deadline, TooManyAttempts:
			return true
		case Canceled, OutcomeUnknown:
			return false
		}
		if len(e.Causes) == 0 {
			return false
		}
		err = e.Causes[len(e.Causes)-1].Err
	}
	return err != nil && Classify(err, Attempt{}).Retriable
}

// SafeToRetry says whether it is certain that nothing of the operation has
// been executed.
func SafeToRetry(err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return !e.MaybeApplied
	}
	return !Classify(err, Attempt{}).MaybeApplied
}
