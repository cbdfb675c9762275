package retry

import "sync/atomic"

// Tokens notices when most retries fail and then makes them rarer. It is a
// bucket of ten: a failure that is the server's own (busy, silent, unknown)
// takes one, a success gives a tenth. While the bucket is at most half full,
// waits in the classes of such failures take their longest form at once.
//
// It stretches waits instead of refusing retries, because a refused retry
// would turn the 40 s in which HBase recovers a killed server into errors,
// and waiting costs the server as little as refusing.
//
// There is one per client, for all that its calls cost the cluster, and one per
// server, which notices that a single one is in trouble among many. Safe for
// concurrent use; nil never runs out.
type Tokens struct {
	spent atomic.Int64 // tenths of a token missing from the bucket
}

const (
	tokenScale = 10
	maxTokens  = 10 * tokenScale
)

// NewTokens makes a full bucket.
func NewTokens() *Tokens { return &Tokens{} }

// Scarce says whether retries ought to be rare.
func (t *Tokens) Scarce() bool { return t != nil && t.spent.Load() >= maxTokens/2 }

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
