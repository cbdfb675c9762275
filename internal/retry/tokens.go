package retry

import (
	"sync/atomic"
	"time"
)

// Tokens notices when most retries fail and then makes them rarer. It is a
// bucket of ten: a failure that is the server's own (busy, silent, unknown)
// takes one, a success gives a tenth. While the bucket is at most half full,
// waits in the classes of such failures take their longest form at once, and
// retries have to be paid for (Pay).
//
// It stretches waits instead of refusing retries at once, because a refused
// retry would turn the 40 s in which HBase recovers a killed server into errors,
// and waiting costs the server as little as refusing.
//
// There is one per client, for all that its calls cost the cluster, and one per
// server, which notices that a single one is in trouble among many. A call to a
// server that is well does not pay for the others: the client's bucket counts
// where two calls have failed of late, be there ever so many servers with a few
// calls each. Safe for concurrent use; nil never runs out.
type Tokens struct {
	spent atomic.Int64 // tenths of a token missing from the bucket

	// used is how much of the allowance for retries is used up, in tenths of a
	// retry; since is when the seconds were last reckoned, in Unix nanoseconds.
	used  atomic.Int64
	since atomic.Int64
}

const (
	tokenScale = 10
	maxTokens  = 10 * tokenScale
	// wellBelow is two tokens: with one, the call that asks would be enough.
	wellBelow = 2 * tokenScale
	// While tokens are scarce, retries are at most a fifth of the calls that
	// begin, and one a second, so that whoever is alone still gets through. Ten
	// may be put aside.
	perBegun  = tokenScale / 5
	perSecond = tokenScale
	maxPut    = 10 * tokenScale
)

// NewTokens makes a full bucket.
func NewTokens() *Tokens { return &Tokens{} }

// Scarce says whether retries ought to be rare.
func (t *Tokens) Scarce() bool { return t != nil && t.spent.Load() >= maxTokens/2 }

// well says whether the server has had no more than a failure or so of late. Of
// those of whom nothing is known (nil) it says no.
func (t *Tokens) well() bool { return t != nil && t.spent.Load() < wellBelow }

// Left gives the tokens in the bucket, of ten.
func (t *Tokens) Left() float64 {
	if t == nil {
		return maxTokens / tokenScale
	}
	return float64(maxTokens-t.spent.Load()) / tokenScale
}

// Failed takes a token.
func (t *Tokens) Failed() {
	if t != nil {
		t.add(tokenScale)
	}
}

// Succeeded gives a tenth back.
func (t *Tokens) Succeeded() {
	if t != nil && t.spent.Load() > 0 { // the usual case writes nothing that others read
		t.add(-1)
	}
}

func (t *Tokens) add(n int64) {
	for {
		old := t.spent.Load()
		next := min(max(old+n, 0), maxTokens)
		if next == old || t.spent.CompareAndSwap(old, next) {
			return
		}
	}
}

// Begun tells that a call has been sent for the first time, which allows for a
// fifth of a retry.
func (t *Tokens) Begun() {
	if t.Scarce() {
		t.put(perBegun)
	}
}

// Pay says whether a retry may be sent now, and pays for it.
func (t *Tokens) Pay() bool {
	if !t.Scarce() {
		return true
	}
	now := time.Now().UnixNano()
	if last := t.since.Load(); t.since.CompareAndSwap(last, now) && last != 0 {
		t.put(min((now-last)*perSecond/int64(time.Second), maxPut))
		if rest := (now - last) * perSecond % int64(time.Second) / perSecond; rest > 0 && now-last < int64(time.Minute) {
			t.since.CompareAndSwap(now, now-rest) // what is less than a tenth counts next time
		}
	}
	for {
		old := t.used.Load()
		if old+tokenScale > maxPut {
			return false
		}
		if t.used.CompareAndSwap(old, old+tokenScale) {
			return true
		}
	}
}

func (t *Tokens) put(n int64) {
	for {
		old := t.used.Load()
		if old == 0 || t.used.CompareAndSwap(old, max(old-n, 0)) {
			return
		}
	}
}
