package retry

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Config describes the operation a Budget is for.
type Config struct {
	Op    string // "get", "scan next", ...
	Table meta.TableName
	Row   []byte
	// Timeout bounds the operation if the context has no earlier deadline; 0
	// means no bound of its own.
	Timeout time.Duration
	// MaxAttempts bounds the requests sent; 0 means no bound but the deadline.
	MaxAttempts int
	// Tokens, if set, is asked before each retry.
	Tokens *Tokens
	// Rand gives numbers in [0,1); nil means math/rand/v2.
	Rand func() float64
}

// Budget is the time and the attempts of one operation, and the ledger of
// where they went. Make it with Start (it may live in a larger struct). It is
// used by one goroutine at a time.
type Budget struct {
	cfg Config
}

// Start begins the operation now, under ctx.
func (b *Budget) Start(ctx context.Context, cfg Config) { b.cfg = cfg }

// Deadline gives the end of the operation; ok is false if there is none.
func (b *Budget) Deadline() (t time.Time, ok bool) { return }

// Remaining gives the time left, or a very long time if there is no deadline.
func (b *Budget) Remaining() time.Duration { return 0 }

// AttemptTimeout gives the time for one attempt: rpc, or what is left.
func (b *Budget) AttemptTimeout(rpc time.Duration) time.Duration { return rpc }

// Enter says what the operation does from now on; the time since the last
// Enter belongs to the phase before.
func (b *Budget) Enter(p Phase) {}

// Attempt counts an attempt on a server (host,port,startcode or host:port) and
// enters PhaseRPC. It fails, with the story, if the attempt cap is reached or
// the deadline has passed.
func (b *Budget) Attempt(server, region string) error { return nil }

// Failed notes the failure of the last attempt (or of a lookup).
func (b *Budget) Failed(err error, d Decision) {}

// Succeeded pays into the token bucket.
func (b *Budget) Succeeded() {}

// Next gives the wait before the next attempt. ok is false if it does not fit
// into the time left, or the attempts or tokens are used up: the operation is
// then to end now with Exhausted.
func (b *Budget) Next(c Class, hint time.Duration) (wait time.Duration, ok bool) { return 0, true }

// Wait is Next and the pause itself. The error, if any, is an *Error.
func (b *Budget) Wait(ctx context.Context, c Class, hint time.Duration) error { return nil }

// Sleep pauses for d in the given class; the error, if any, is an *Error.
func (b *Budget) Sleep(ctx context.Context, c Class, d time.Duration) error { return nil }

// Exhausted makes the error of an operation that ran out of attempts, tokens
// or time.
func (b *Budget) Exhausted() error { return nil }

// Fail makes the error of an operation that ended for good with cause. A
// cancelled or expired ctx is reported as the context's error.
func (b *Budget) Fail(ctx context.Context, cause error, d Decision) error { return cause }

// Attempts counts the attempts so far.
func (b *Budget) Attempts() int { return 0 }

// Elapsed is the time since Start.
func (b *Budget) Elapsed() time.Duration { return 0 }

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
