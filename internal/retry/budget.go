package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Config describes the operation a Budget is for.
type Config struct {
	Op    string // "get", "scan next", ...
	Table meta.TableName
	// Row is kept until the operation ends and copied, shortened, into errors.
	Row         []byte
	Idempotency Idempotency
	// Timeout bounds the operation if the context has no earlier deadline; 0
	// means no bound of its own.
	Timeout time.Duration
	// MaxAttempts bounds the attempts; 0 means no bound but the deadline.
	MaxAttempts int
	// ServiceTime is what a request usually takes: a wait that would leave
	// less than this before the deadline is not begun. 0 means 1 ms.
	ServiceTime time.Duration
	// Tokens, if set, makes retries rarer while most of them fail. They are the
	// client's; see On for the server's.
	Tokens *Tokens
	// Rand gives numbers in [0,1); nil means math/rand/v2.
	Rand func() float64
}

// Phase is what an operation is doing, in the ledger.
type Phase uint8

const (
	// Working: everything not named below.
	Working Phase = iota
	// Locating: waiting for a route.
	Locating
	// Calling: connecting, queueing, and waiting for the server.
	Calling
	// Waiting: between attempts; the ledger has it by class.
	Waiting

	numPhases
)

// String names the phase as errors and traces show it.
func (p Phase) String() string {
	switch p {
	case Working:
		return "working"
	case Locating:
		return "locating"
	case Calling:
		return "calling"
	case Waiting:
		return "waiting"
	}
	return "invalid"
}

const (
	maxServers = 4 // kept by name; the rest is counted
	maxCauses  = 3
)

// Budget is the time and the attempts of one operation, and the ledger of
// where they went: wall time, not only sleeps. Make it with Start; it may live
// in a larger struct, and a success allocates nothing. It is used by one
// goroutine at a time.
type Budget struct {
	cfg      Config
	start    time.Time
	deadline time.Time // zero: none
	timeout  time.Duration

	phase Phase
	since time.Time // of phase

	attempts int // sent
	counted  int // against MaxAttempts
	free     bool

	spent   [numPhases]time.Duration // Waiting: the sum of waits
	waits   [numClasses]time.Duration
	counts  [numClasses]int
	servers [maxServers]string
	nserver int
	server  string // of the last attempt
	region  string

	causes  [maxCauses]Cause
	ncauses int     // ever
	target  *Tokens // of the last attempt's server

	maybeApplied bool
	reason       Reason // why Next said no
	lastClass    Class
	lastHint     time.Duration
}

// Start begins the operation now. The deadline is the earlier of ctx's and
// Config.Timeout's.
func (b *Budget) Start(ctx context.Context, cfg Config) {
	now := time.Now()
	if !b.start.IsZero() { // used before: not the common case, and it is large
		*b = Budget{}
	}
	b.cfg, b.start, b.since = cfg, now, now
	if b.cfg.ServiceTime <= 0 {
		b.cfg.ServiceTime = time.Millisecond
	}
	if cfg.Timeout > 0 {
		b.deadline = now.Add(cfg.Timeout)
	}
	if d, ok := ctx.Deadline(); ok && (b.deadline.IsZero() || d.Before(b.deadline)) {
		b.deadline = d
	}
	if !b.deadline.IsZero() {
		b.timeout = b.deadline.Sub(now)
	}
}

// Deadline gives the end of the operation; ok is false if there is none.
func (b *Budget) Deadline() (t time.Time, ok bool) { return b.deadline, !b.deadline.IsZero() }

// Remaining gives the time left, never negative; without a deadline, a
// century.
func (b *Budget) Remaining() time.Duration { return b.remaining(time.Now()) }

func (b *Budget) remaining(now time.Time) time.Duration {
	if b.deadline.IsZero() {
		return 100 * 365 * 24 * time.Hour
	}
	return max(b.deadline.Sub(now), 0)
}

// AttemptTimeout gives the time for one attempt: rpc (0: no bound of its own)
// or what is left of the operation, whichever is less.
func (b *Budget) AttemptTimeout(rpc time.Duration) time.Duration {
	return b.AttemptTimeoutFrom(time.Now(), rpc)
}

// AttemptTimeoutFrom is AttemptTimeout for callers who know the time.
func (b *Budget) AttemptTimeoutFrom(now time.Time, rpc time.Duration) time.Duration {
	left := b.remaining(now)
	if rpc <= 0 || left < rpc {
		return left
	}
	return rpc
}

// Enter says what the operation does from now on; the time since the last
// Enter belongs to the phase before.
func (b *Budget) Enter(p Phase) {
	now := time.Now()
	b.spent[b.phase] += now.Sub(b.since)
	b.phase, b.since = p, now
}

// Attempt counts an attempt on a server (host:port or host,port,startcode) and
// a region (encoded name, or empty), and enters Calling. It fails with the
// whole story if the attempts or the time are used up.
func (b *Budget) Attempt(server, region string) error {
	if b.cfg.MaxAttempts > 0 && b.counted >= b.cfg.MaxAttempts && !b.free {
		b.reason = TooManyAttempts
		return b.Exhausted()
	}
	if !b.deadline.IsZero() && !time.Now().Before(b.deadline) {
		b.reason = Deadline
		return b.Exhausted()
	}
	b.begin(server, region)
	b.Enter(Calling)
	return nil
}

// FirstAttempt is Attempt for an operation that has not waited for anything
// since Start, such as one that found its route in the cache: Start's look at
// the clock serves it too. The attempt's own began is the time to be used with
// AttemptTimeout.
func (b *Budget) FirstAttempt(server, region string) (began time.Time, err error) {
	if !b.deadline.IsZero() && b.timeout <= 0 {
		b.reason = Deadline
		return b.start, b.Exhausted()
	}
	b.begin(server, region)
	b.phase = Calling
	return b.start, nil
}

// begin counts an attempt.
func (b *Budget) begin(server, region string) {
	b.attempts++
	if !b.free {
		b.counted++
	}
	b.free = false
	b.server, b.region = server, region
	known := false
	for _, s := range b.servers[:min(b.nserver, maxServers)] {
		known = known || s == server
	}
	if !known {
		if b.nserver < maxServers {
			b.servers[b.nserver] = server
		}
		b.nserver++
	}
}

// Failed notes the failure of the last attempt, or of a lookup, and leaves the
// phase.
func (b *Budget) Failed(err error, d Decision) {
	b.Enter(Working)
	server := b.server
	if d.Rule == ruleLocate || d.Rule == ruleLocateFinal {
		server = ""
	}
	b.causes[b.ncauses%maxCauses] = Cause{After: b.since.Sub(b.start), Attempt: b.attempts, Server: server, Err: err}
	b.ncauses++
	b.maybeApplied = b.maybeApplied || d.MaybeApplied
	b.free = d.Free
	if d.Costly() {
		b.cfg.Tokens.Failed()
		if d.Rule != ruleLocate {
			b.target.Failed()
		}
	}
}

// On says whose tokens the next attempt is charged to besides the client's.
func (b *Budget) On(server *Tokens) { b.target = server }

// LastCause gives the last failure noted, nil if there was none.
func (b *Budget) LastCause() error {
	if b.ncauses == 0 {
		return nil
	}
	return b.causes[(b.ncauses-1)%maxCauses].Err
}

// Costly says whether a failure is the kind that retries make worse.
func (d Decision) Costly() bool {
	switch d.Server {
	case Overloaded, Suspect:
		return true
	}
	return stretched(d.Wait)
}

// stretched classes wait longer while tokens are scarce.
func stretched(c Class) bool {
	switch c {
	case ServerBusy, RegionBusy, Throttled, Generic:
		return true
	}
	return false
}

// Succeeded pays into the token bucket and leaves the phase.
func (b *Budget) Succeeded() {
	b.cfg.Tokens.Succeeded()
	b.target.Succeeded()
}

// Next gives the wait before the next attempt in class c: at least hint, and
// jittered, and as long as it can be while most retries fail (Tokens). It takes
// the wait as decided upon: the next one of the class is longer. ok is false if the wait and a request do not fit into the time left,
// or the attempts are used up: the operation is to end now with Exhausted.
func (b *Budget) Next(c Class, hint time.Duration) (wait time.Duration, ok bool) {
	s := c.Schedule()
	n, random := b.counts[c], b.random()
	stretch := stretched(c) && (b.target.Scarce() || b.cfg.Tokens.Scarce() && !b.target.well())
	if stretch {
		wait = s.Wait(max(n, 16), random) // beyond every cap
	} else {
		wait = s.Wait(n, random)
	}
	if hint > 0 {
		// Others got the same hint at the same time; do not come back together.
		wait = max(wait, hint+time.Duration(b.random()*float64(min(hint/4, 250*time.Millisecond))))
	}
	b.lastClass, b.lastHint = c, hint
	left := b.Remaining() - b.cfg.ServiceTime
	if stretch && !b.deadline.IsZero() && left < wait {
		// Others' failures have made the wait longer than its own would be. They
		// must not take away an attempt that the time left allows, or calls with
		// short deadlines would fail at their first failure whenever something
		// else is broken. It comes late, in the last fifth.
		if own := max(s.Wait(n, random), hint); own <= left {
			wait = max(own, left-left/10-time.Duration(random*float64(left/10)))
		}
	}
	switch {
	case b.cfg.MaxAttempts > 0 && b.counted >= b.cfg.MaxAttempts && !b.free:
		b.reason = TooManyAttempts
		return 0, false
	case !b.deadline.IsZero() && left < wait:
		b.reason = Deadline
		return 0, false
	}
	b.counts[c]++
	return wait, true
}

func (b *Budget) random() float64 {
	if b.cfg.Rand != nil {
		return b.cfg.Rand()
	}
	return rand.Float64()
}

// Wait is Next and the pause itself. The error, if any, is an *Error with the
// whole story: the wait did not fit, or ctx ended meanwhile.
func (b *Budget) Wait(ctx context.Context, c Class, hint time.Duration) error {
	d, ok := b.Next(c, hint)
	if !ok {
		return b.Exhausted()
	}
	return b.Sleep(ctx, c, d)
}

// Sleep pauses for d on account of class c, without asking whether it fits.
// The error, if any, is an *Error: ctx ended.
func (b *Budget) Sleep(ctx context.Context, c Class, d time.Duration) error {
	return b.WaitFor(ctx, c, d, nil)
}

// WaitFor pauses on account of class c until ready is closed (or delivers),
// but not longer than d.
func (b *Budget) WaitFor(ctx context.Context, c Class, d time.Duration, ready <-chan struct{}) error {
	if d <= 0 && ready == nil {
		if ctx.Err() != nil {
			return b.Canceled(ctx)
		}
		return nil
	}
	b.Enter(Waiting)
	timer := time.NewTimer(d)
	defer timer.Stop()
	var err error
	select {
	case <-timer.C:
	case <-ready:
	case <-ctx.Done():
		err = ctx.Err()
	}
	began := b.since
	b.Enter(Working)
	b.waits[c] += b.since.Sub(began)
	if err != nil {
		return b.Canceled(ctx)
	}
	return nil
}

// Attempts counts the attempts so far.
func (b *Budget) Attempts() int { return b.attempts }

// Elapsed is the time since Start.
func (b *Budget) Elapsed() time.Duration { return time.Since(b.start) }

// Exhausted makes the error of an operation that could have gone on, had there
// been attempts or time left. It matches ErrRetriesExhausted, and
// context.DeadlineExceeded if it was the time.
func (b *Budget) Exhausted() error {
	if b.reason == Final {
		b.reason = Deadline
	}
	return b.story(b.reason, nil)
}

// Canceled makes the error of an operation whose context ended.
func (b *Budget) Canceled(ctx context.Context) error {
	err := ctx.Err()
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		return b.story(Deadline, context.Cause(ctx))
	}
	return b.story(Canceled, context.Cause(ctx))
}

// Fail makes the error of an operation that d calls final. The failure must
// have been noted with Failed. An operation whose ctx has ended is reported as
// the context's error, whatever the symptom was.
func (b *Budget) Fail(ctx context.Context, d Decision) error {
	switch {
	case ctx.Err() != nil:
		return b.Canceled(ctx)
	case !b.deadline.IsZero() && !time.Now().Before(b.deadline):
		b.reason = Deadline
		return b.Exhausted()
	case d.UnknownOutcome:
		return b.story(OutcomeUnknown, nil)
	}
	return b.story(Final, nil)
}

// story takes the ledger's present state into an Error.
func (b *Budget) story(reason Reason, ctxErr error) *Error {
	b.Enter(Working)
	e := &Error{
		Op: b.cfg.Op, Table: b.cfg.Table, Row: shorten(b.cfg.Row), Region: b.region,
		Reason: reason, Elapsed: b.since.Sub(b.start), Timeout: b.timeout,
		Attempts: b.attempts, MaybeApplied: b.maybeApplied, Idempotency: b.cfg.Idempotency,
		ctxErr: ctxErr,
	}
	e.Servers = append(e.Servers, b.servers[:min(b.nserver, maxServers)]...)
	e.MoreServers = max(b.nserver-maxServers, 0)
	for p := range numPhases {
		if p == Waiting {
			continue
		}
		if b.spent[p] > 0 {
			e.Spent = append(e.Spent, Spent{Phase: p, Time: b.spent[p]})
		}
	}
	for c := range numClasses {
		if b.waits[c] > 0 {
			e.Spent = append(e.Spent, Spent{Phase: Waiting, Class: c, Count: b.counts[c], Time: b.waits[c]})
		}
	}
	for i := max(0, b.ncauses-maxCauses); i < b.ncauses; i++ {
		e.Causes = append(e.Causes, b.causes[i%maxCauses])
	}
	e.Failures = b.ncauses
	if reason == Deadline || reason == TooManyAttempts {
		e.NextWait = b.lastHint
	}
	return e
}

const maxRow = 64 // bytes of a row kept in errors

func shorten(row []byte) []byte {
	if row == nil {
		return nil
	}
	return append([]byte(nil), row[:min(len(row), maxRow)]...)
}
