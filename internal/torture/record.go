package torture

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// recorder books every call under the event during which it ended. Events begin
// only when no worker is inside a call that began before the last one's end, so
// that a stall is booked under what caused it.
type recorder struct {
	began time.Time
	lanes []lane
	// current is the index of the running event.
	current atomic.Int32
	// last is when any call last ended, in nanoseconds from began.
	last atomic.Int64

	mu     sync.Mutex
	events []*EventReport
	failed []Failure
	wrong  []string
	more   int // failures and violations beyond what is kept
}

// maxKept bounds the failures a report tells in full.
const maxKept = 50

// lane is one worker's account. Only the worker writes; others read after the
// load has ended, finished at any time.
type lane struct {
	// finished is when the last call that is through began.
	finished atomic.Int64
	events   []tally
	_        [64]byte // lanes are written side by side
}

type tally struct {
	calls   [kinds]int64
	longest [kinds]time.Duration
	what    [kinds]string
	gap     time.Duration
	hist    [kinds]histogram
}

func newRecorder(began time.Time, workers, steps int) *recorder {
	rec := &recorder{began: began, lanes: make([]lane, workers)}
	// A kill or a pause may be followed by a restart.
	for w := range rec.lanes {
		rec.lanes[w].events = make([]tally, 2*steps+1)
	}
	rec.events = append(rec.events, &EventReport{Event: "start", Text: "before the first event"})
	return rec
}

func (rec *recorder) begin(kind Event, text string, meta uint64, counted bool) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.events = append(rec.events, &EventReport{Event: kind, Text: text, At: time.Since(rec.began), metaBefore: meta, Counted: counted})
	rec.current.Store(int32(len(rec.events) - 1))
}

// amend changes the running event.
func (rec *recorder) amend(f func(*EventReport)) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	f(rec.events[len(rec.events)-1])
}

// done books a call.
func (rec *recorder) done(l *lane, kind Kind, what string, begin time.Time, budget time.Duration, err error) {
	now := time.Since(rec.began)
	took := now - begin.Sub(rec.began)
	event := int(rec.current.Load())
	t := &l.events[event]
	t.calls[kind]++
	t.hist[kind].add(took)
	if took > t.longest[kind] {
		t.longest[kind], t.what[kind] = took, what
	}
	if gap := now - time.Duration(rec.last.Swap(int64(now))); gap > t.gap {
		t.gap = gap
	}
	l.finished.Store(int64(begin.Sub(rec.began)))
	if err == nil {
		return
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	if len(rec.failed)+len(rec.wrong) >= maxKept {
		rec.more++
		return
	}
	if isViolation(err) {
		rec.wrong = append(rec.wrong, fmt.Sprintf("at %v during %s: %v", now.Round(time.Millisecond), rec.events[event].Event, err))
		return
	}
	rec.failed = append(rec.failed, Failure{Kind: kind, What: what, During: rec.events[event].String(), At: now, Took: took, Late: took - budget, Err: err})
}

// histogram counts durations in steps of a quarter octave from 16 µs on.
type histogram [96]int64

func (h *histogram) add(d time.Duration) {
	h[bucket(d)]++
}

func bucket(d time.Duration) int {
	v := uint64(d / (4 * time.Microsecond))
	shift := 0
	for v >= 8 {
		v >>= 1
		shift++
	}
	return min(shift*4+int(v), len(histogram{})-1)
}

// top is the upper end of a bucket.
func top(i int) time.Duration {
	if i < 8 {
		return time.Duration(i+1) * 4 * time.Microsecond
	}
	shift := (i - 4) / 4
	return time.Duration(uint64(i-shift*4+1)<<shift) * 4 * time.Microsecond
}

// quantile gives an upper bound of the q-quantile, 0 if there were no calls.
func (h *histogram) quantile(q float64) time.Duration {
	var total, seen int64
	for _, n := range h {
		total += n
	}
	for i, n := range h {
		seen += n
		if total > 0 && float64(seen) >= q*float64(total) {
			return top(i)
		}
	}
	return 0
}
