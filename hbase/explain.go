package hbase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// Explanation is an error in plain words: what happened, where the time went,
// whether it may have been applied, whether trying again may help, and what to
// do next. It is made for people; programs ask errors.Is, [Retriable] and
// [SafeToRetry].
type Explanation struct {
	// Kind is the class of the cause: "region in transition", "server down",
	// "ZooKeeper unreachable", "table missing", ... The set may grow.
	Kind string `json:"kind"`
	// Happened is one sentence.
	Happened string `json:"happened"`
	// Operation, Table, Row and Region are what it was about, as far as known.
	// Row is printable and cut.
	Operation string `json:"operation,omitempty"`
	Table     string `json:"table,omitempty"`
	Row       string `json:"row,omitempty"`
	Region    string `json:"region,omitempty"`
	// Attempts, Servers, Took and Allowed tell how hard the client tried.
	// Allowed is the time there was; 0 if unbounded or unknown.
	Attempts int           `json:"attempts"`
	Servers  []string      `json:"servers,omitempty"`
	Took     time.Duration `json:"-"`
	Allowed  time.Duration `json:"-"`
	// Time is where it went, the largest part first.
	Time []TimeSpent `json:"time,omitempty"`
	// Causes are the last failures, oldest first, Failures counts all.
	Causes   []ExplainedCause `json:"causes,omitempty"`
	Failures int              `json:"failures"`
	// Applied is "no", "maybe" or "yes" (and the answer was lost or unreadable).
	Applied string `json:"applied"`
	// Retriable says that the same call may succeed later.
	Retriable bool `json:"retriable"`
	// Advice says what trying again means here.
	Advice string `json:"advice"`
	// Next is what to look at or do, the likeliest first.
	Next []string `json:"next,omitempty"`
	// Text is the error's own text.
	Text string `json:"text"`
}

// TimeSpent is one part of an operation's time.
type TimeSpent struct {
	// What: "locating", "calling", "working", or "waiting: CLASS".
	What string `json:"what"`
	// Count of the waits of that class; 0 for the others.
	Count int           `json:"count,omitempty"`
	Took  time.Duration `json:"-"`
	// Share of the whole, 0 to 1.
	Share float64 `json:"share"`
}

// ExplainedCause is one failure on the way.
type ExplainedCause struct {
	After   time.Duration `json:"-"`
	Attempt int           `json:"attempt"`
	Server  string        `json:"server,omitempty"`
	Kind    string        `json:"kind"`
	Text    string        `json:"text"`
}

// Explain explains any error of this client; nil for nil. An error that is not
// the client's gets the kind "other".
func Explain(err error) *Explanation {
	if err == nil {
		return nil
	}
	e := &Explanation{Text: firstLine(err), Retriable: Retriable(err), Failures: 1}
	if op, ok := errors.AsType[*OpError](err); ok {
		e.Operation = op.Op
	}
	cause := err
	story, told := errors.AsType[*RetryError](err)
	if told {
		e.tell(story)
		cause = nil
		if n := len(story.Causes); n > 0 {
			cause = story.Causes[n-1].Err
		}
	}
	k := kindOf(err, cause)
	e.Kind, e.Next = k.name, k.next
	e.Happened = k.happened
	if told {
		switch story.Reason {
		case retry.Deadline:
			e.Happened += fmt.Sprintf("; the time was up after %s", shortly(story.Elapsed))
			if story.Timeout > 0 {
				e.Happened += " of " + shortly(story.Timeout)
			}
		case retry.TooManyAttempts:
			e.Happened += fmt.Sprintf("; max-attempts was reached after %s", shortly(story.Elapsed))
		case retry.Canceled:
			e.Happened += "; the caller canceled the call after " + shortly(story.Elapsed)
		}
		if story.NextWait > 0 {
			e.Next = append(e.Next, "the server asks to wait "+shortly(story.NextWait)+" before the next attempt: give the call more time than that")
		}
	}
	e.applied(err, story)
	e.advise(err, story)
	return e
}

// tell takes over the ledger.
func (e *Explanation) tell(s *RetryError) {
	e.Operation, e.Attempts, e.Servers, e.Took, e.Allowed = s.Op, s.Attempts, s.Servers, s.Elapsed, s.Timeout
	if !s.Table.IsZero() {
		e.Table = s.Table.String()
	}
	if len(s.Row) > 0 {
		e.Row = cells.QuoteShort(s.Row, 64)
	}
	e.Region, e.Failures = s.Region, s.Failures
	for _, spent := range s.Spent {
		t := TimeSpent{What: spent.Phase.String(), Count: spent.Count, Took: spent.Time}
		if spent.Phase == retry.Waiting {
			t.What += ": " + spent.Class.String()
		}
		if s.Elapsed > 0 {
			t.Share = float64(t.Took) / float64(s.Elapsed)
		}
		at := len(e.Time)
		for at > 0 && e.Time[at-1].Took < t.Took {
			at--
		}
		e.Time = append(e.Time[:at], append([]TimeSpent{t}, e.Time[at:]...)...)
	}
	for _, c := range s.Causes {
		if c.Err != nil {
			e.Causes = append(e.Causes, ExplainedCause{
				After: c.After, Attempt: c.Attempt, Server: c.Server, Kind: kindOf(c.Err, c.Err).name, Text: firstLine(c.Err),
			})
		}
	}
}

func (e *Explanation) applied(err error, story *RetryError) {
	switch {
	case isUnreadable(err):
		e.Applied = "yes"
	case story != nil && story.Idempotency == retry.Safe && story.MaybeApplied && isRead(story.Op):
		e.Applied = "no" // there was nothing to apply
	case SafeToRetry(err) || errors.Is(err, ErrInvalid):
		e.Applied = "no"
	default:
		e.Applied = "maybe"
	}
}

// isRead says whether the operation changes nothing.
func isRead(op string) bool {
	switch op {
	case "get", "exists", "scan", "scan open", "scan next", "scan renew", "scan close", "read meta":
		return true
	}
	return false
}

func (e *Explanation) advise(err error, story *RetryError) {
	switch {
	case e.Applied == "yes":
		e.Advice = "it was applied and its answer is lost: read before you do it again"
	case errors.Is(err, ErrUnknownOutcome):
		e.Advice = "it may have been applied, and doing it again could apply it twice: read the row first"
	case e.Kind == "client closed":
		e.Advice = "not with this client: open another"
	case story != nil && story.Reason == retry.Canceled:
		e.Advice = "the caller gave it up; nothing says that it would fail again"
	case !e.Retriable:
		e.Advice = "doing the same again will fail the same way"
	case e.Applied == "maybe":
		e.Advice = "it may succeed later; it may have been applied already, and applying it twice is harmless or recognised by the server"
	default:
		e.Advice = "it may succeed later, and nothing has been applied"
	}
}

// String is the explanation in about ten lines.
func (e *Explanation) String() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("what", "%s: %s", e.Kind, e.Happened)
	if e.Operation != "" {
		about := e.Operation
		if e.Table != "" {
			about += " on table " + e.Table
		}
		if e.Row != "" {
			about += `, row "` + e.Row + `"`
		}
		if e.Region != "" {
			about += ", region " + e.Region
		}
		line("call", "%s", about)
	}
	if e.Took > 0 || e.Attempts > 0 {
		tried := fmt.Sprintf("%d attempts", e.Attempts)
		if e.Attempts == 1 {
			tried = "1 attempt"
		}
		if len(e.Servers) > 0 {
			tried += " on " + strings.Join(e.Servers, ", ")
		}
		tried += " in " + shortly(e.Took)
		if e.Allowed > 0 {
			tried += " of " + shortly(e.Allowed)
		}
		line("tried", "%s", tried)
	}
	if len(e.Time) > 0 {
		parts := make([]string, 0, len(e.Time))
		for _, t := range e.Time {
			p := fmt.Sprintf("%s %s (%.0f %%)", t.What, shortly(t.Took), 100*t.Share)
			if t.Count > 1 {
				p = fmt.Sprintf("%s %s (%.0f %%, %d times)", t.What, shortly(t.Took), 100*t.Share, t.Count)
			}
			parts = append(parts, p)
		}
		line("time", "%s", strings.Join(parts, ", "))
	}
	for i, c := range e.Causes {
		label := ""
		if i == 0 {
			label = "failures"
			if hidden := e.Failures - len(e.Causes); hidden > 0 {
				line(label, "%d, the last of them:", e.Failures)
				label = ""
			}
		}
		text := "+" + shortly(c.After)
		if c.Attempt > 0 {
			text += fmt.Sprintf(" attempt %d", c.Attempt)
		}
		if c.Server != "" {
			text += " on " + c.Server
		}
		line(label, "%s: %s", text, c.Text)
	}
	if len(e.Causes) == 0 {
		line("error", "%s", e.Text)
	}
	line("applied", "%s", e.Applied)
	line("again?", "%s", e.Advice)
	for i, n := range e.Next {
		label := ""
		if i == 0 {
			label = "next"
		}
		line(label, "%s", n)
	}
	return b.String()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// MarshalJSON gives the fields, with times in milliseconds: tookMs, allowedMs.
func (e *Explanation) MarshalJSON() ([]byte, error) {
	type plain Explanation
	return json.Marshal(struct {
		*plain
		TookMs    float64 `json:"tookMs"`
		AllowedMs float64 `json:"allowedMs,omitempty"`
	}{(*plain)(e), millis(e.Took), millis(e.Allowed)})
}

// MarshalJSON gives the fields, with the time in milliseconds: tookMs.
func (t TimeSpent) MarshalJSON() ([]byte, error) {
	type plain TimeSpent
	return json.Marshal(struct {
		plain
		TookMs float64 `json:"tookMs"`
	}{plain(t), millis(t.Took)})
}

// MarshalJSON gives the fields, with the time in milliseconds: afterMs.
func (c ExplainedCause) MarshalJSON() ([]byte, error) {
	type plain ExplainedCause
	return json.Marshal(struct {
		plain
		AfterMs float64 `json:"afterMs"`
	}{plain(c), millis(c.After)})
}

const maxExplainedText = 400

func firstLine(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	if len(s) > maxExplainedText {
		s = strings.ToValidUTF8(s[:maxExplainedText], "") + "..."
	}
	return s
}

func shortly(d time.Duration) string {
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

// timeIsUp says whether the error is that of a context or a timeout.
func timeIsUp(err error) bool {
	return errors.Is(err, context.DeadlineExceeded)
}
