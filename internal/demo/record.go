package demo

import (
	"slices"
	"sync"
	"time"
)

// Kind is what an operation was.
type Kind int

// The kinds of load.
const (
	KindPut Kind = iota
	KindIncrement
	KindGet
	KindScan
	kinds
)

func (k Kind) String() string {
	return [...]string{"put", "increment", "get", "scan"}[k]
}

// tick is the width of one column of the timeline.
const tick = 100 * time.Millisecond

// Bucket is what completed within one tick.
type Bucket struct {
	Done    [kinds]int
	Failed  int
	Slowest time.Duration // of the operations but scans that ended here
}

// Event is something that was done to the cluster.
type Event struct {
	At    time.Duration // since the load began
	Kind  string        // move, split, group, kill, start
	Text  string
	Took  time.Duration // how long the cluster took to do it
	Calls int64         // RPCs the client sent beyond one an operation, until the next event
	Meta  int64         // reads of hbase:meta until the next event
	// Slowest is the longest operation that was running between this event and
	// the next; Gap the longest time in which nothing at all completed.
	Slowest time.Duration
	Gap     time.Duration
	Err     string
}

// recorder gathers completions. One lock: at the demo's rates (tens of
// thousands a second) it is never the bottleneck, and it keeps the arithmetic
// easy to trust.
type recorder struct {
	start time.Time

	mu        sync.Mutex
	buckets   []Bucket
	latencies [kinds]*histogram
	done      [kinds]int
	failed    int
	errors    []string // the first few, with their time
	events    []Event
	lastDone  time.Time
	slowest   time.Duration // since the last event
	gap       time.Duration // since the last event
	worst     time.Duration // ever
}

func newRecorder(start time.Time) *recorder {
	r := &recorder{start: start, lastDone: start}
	for k := range r.latencies {
		r.latencies[k] = new(histogram)
	}
	return r
}

// done records one operation that began at begin and has just ended.
func (r *recorder) record(k Kind, begin, now time.Time, err error) {
	took := now.Sub(begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bucket(now)
	// A scan of the whole table is long by nature; stalls are judged by the
	// calls that should be short.
	if k != KindScan {
		b.Slowest = max(b.Slowest, took)
		r.slowest = max(r.slowest, took)
		r.worst = max(r.worst, took)
		r.gap = max(r.gap, now.Sub(r.lastDone))
		r.lastDone = now
	}
	if err != nil {
		b.Failed++
		r.failed++
		if len(r.errors) < 20 {
			r.errors = append(r.errors, now.Sub(r.start).Round(time.Millisecond).String()+" "+k.String()+": "+err.Error())
		}
		return
	}
	b.Done[k]++
	r.done[k]++
	r.latencies[k].add(took)
}

func (r *recorder) bucket(now time.Time) *Bucket {
	i := int(max(0, now.Sub(r.start)) / tick)
	for len(r.buckets) <= i {
		r.buckets = append(r.buckets, Bucket{})
	}
	return &r.buckets[i]
}

// event closes the account of the event before and opens the next.
func (r *recorder) event(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settle()
	r.events = append(r.events, e)
}

// settle writes what has been seen since the last event into it.
func (r *recorder) settle() {
	if n := len(r.events); n > 0 {
		e := &r.events[n-1]
		e.Slowest, e.Gap = max(e.Slowest, r.slowest), max(e.Gap, r.gap)
	}
	r.slowest, r.gap = 0, 0
}

// amend changes the latest event once the cluster has answered.
func (r *recorder) amend(change func(*Event)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.events); n > 0 {
		change(&r.events[n-1])
	}
}

// view is a consistent copy for the live picture and the report.
type view struct {
	Elapsed   time.Duration
	Buckets   []Bucket
	Done      [kinds]int
	Failed    int
	Errors    []string
	Events    []Event
	Worst     time.Duration
	Latencies [kinds]histogram
}

func (r *recorder) view(now time.Time) view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{
		Elapsed: now.Sub(r.start),
		Buckets: slices.Clone(r.buckets),
		Done:    r.done,
		Failed:  r.failed,
		Errors:  slices.Clone(r.errors),
		Events:  slices.Clone(r.events),
		Worst:   r.worst,
	}
	for k, h := range r.latencies {
		v.Latencies[k] = *h
	}
	return v
}

// histogram counts durations in buckets that grow by about 4 %, from 1 us to
// beyond an hour: enough for percentiles of a demo, and small enough to copy.
type histogram struct {
	count   [560]uint32
	total   int
	longest time.Duration
}

func (h *histogram) add(d time.Duration) {
	h.count[h.index(d)]++
	h.total++
	h.longest = max(h.longest, d)
}

// index is 16 sub-buckets per power of two of microseconds.
func (h *histogram) index(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 16 {
		return int(us)
	}
	exp := 0
	for v := us; v >= 32; v >>= 1 {
		exp++
	}
	return min(16+exp*16+int(us>>exp)-16, len(h.count)-1)
}

// value is the lower bound of bucket i.
func (h *histogram) value(i int) time.Duration {
	if i < 16 {
		return time.Duration(i) * time.Microsecond
	}
	exp := (i - 16) / 16
	return time.Duration(uint64(i-16-exp*16+16)<<exp) * time.Microsecond
}

// quantile gives the latency below which a share q of the operations stayed.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	left := int(q * float64(h.total))
	for i, n := range h.count {
		if left -= int(n); left < 0 {
			return h.value(i)
		}
	}
	return h.longest
}
