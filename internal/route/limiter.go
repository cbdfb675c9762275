package route

import (
	"time"
)

// class is who reads hbase:meta, in the order of precedence.
type class uint8

const (
	demand     class = iota // somebody waits for a row
	repairing               // known regions are read again
	background              // warming

	numClasses
)

const (
	// maxRepairs bounds the batches of repairs read at one time: four batches
	// of 200 are enough to keep meta busy, and leave room for demand.
	maxRepairs = 4
	// Background reads at most bgRate pages a second, bgBurst at once.
	bgRate  = 50
	bgBurst = 50
)

// limiter bounds the reads of hbase:meta of one client: their number at one
// time, which adapts to how meta answers, and, while meta does not answer at
// all, to one probe now and then (breaker). Everything is under cache.mu.
type limiter struct {
	max      int
	limit    float64
	inflight int
	of       [numClasses]int

	usual   time.Duration // how long a small read takes, smoothed
	lastCut time.Time

	tokens   float64 // of background
	refilled time.Time

	breaker breaker
}

func (l *limiter) init(max int, now time.Time) {
	l.max, l.limit = max, float64(max)
	l.tokens, l.refilled = bgBurst, now
	l.breaker.started = now
}

// admit says whether a read of the class may begin now, and counts it if so.
func (l *limiter) admit(c class, now time.Time) bool {
	if l.inflight >= l.max || float64(l.inflight+1) > l.limit && l.inflight > 0 {
		return false
	}
	switch c {
	case repairing:
		if l.of[repairing] >= maxRepairs {
			return false
		}
	case background:
		if l.of[background] > 0 || float64(l.inflight) > l.limit/2 || !l.token(now) {
			return false
		}
	}
	if !l.breaker.allow(now) {
		return false
	}
	if c == background {
		l.tokens--
	}
	l.inflight++
	l.of[c]++
	return true
}

func (l *limiter) token(now time.Time) bool {
	l.tokens = min(bgBurst, l.tokens+bgRate*now.Sub(l.refilled).Seconds())
	l.refilled = now
	return l.tokens >= 1
}

// done ends a read. small reads (a few rows) are compared with one another:
// when they take much longer than usual, meta is asked less at a time.
func (l *limiter) done(c class, now time.Time, took time.Duration, small bool, failed bool) {
	l.inflight--
	l.of[c]--
	l.breaker.record(now, failed)
	switch {
	case failed:
		l.cut(now, 0.5)
	case small:
		if l.usual == 0 {
			l.usual = took
		}
		if took > 4*l.usual+50*time.Millisecond {
			l.cut(now, 0.7)
		} else {
			l.limit = min(l.limit+1/l.limit, float64(l.max))
		}
		l.usual += (took - l.usual) / 16
	default:
		l.limit = min(l.limit+1/l.limit, float64(l.max))
	}
}

// cut lowers the limit, at most once per 100 ms: the reads that were under way
// at the time of a cut say nothing new.
func (l *limiter) cut(now time.Time, factor float64) {
	if now.Sub(l.lastCut) < 100*time.Millisecond {
		return
	}
	l.lastCut = now
	l.limit = max(l.limit*factor, 2)
}

// BreakerState says whether meta is being asked.
type BreakerState uint8

const (
	// Closed: reads go through.
	Closed BreakerState = iota
	// Open: meta has not been answering; nobody asks for a moment.
	Open
	// Probing: one read is out to see.
	Probing
)

// String names the state.
func (s BreakerState) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case Probing:
		return "probing"
	}
	return "invalid"
}

const (
	breakerWindow  = 30 * time.Second
	breakerBuckets = 6
	breakerMin     = 10 // reads in the window before it may open
	// While open, one probe per pause, which doubles up to the maximum. The
	// maximum is what a recovered meta waits for its clients to notice.
	breakerPauseMin = 250 * time.Millisecond
	breakerPauseMax = 500 * time.Millisecond
)

// breaker stops the reads of meta while most of them fail. Waiters stay where
// they are: their own deadlines end their wait, with the breaker's reason in
// the error. Failing them at once would only make every caller's retry loop
// poll, and use up attempts on something that is not the caller's fault.
type breaker struct {
	started time.Time
	state   BreakerState
	until   time.Time // of Open
	pause   time.Duration
	buckets [breakerBuckets]struct{ epoch, ok, failed int64 }
}

func (b *breaker) bucket(now time.Time) int64 {
	return int64(now.Sub(b.started) / (breakerWindow / breakerBuckets))
}

func (b *breaker) allow(now time.Time) bool {
	switch b.state {
	case Open:
		if now.Before(b.until) {
			return false
		}
		b.state = Probing
		return true
	case Probing:
		return false
	}
	return true
}

func (b *breaker) record(now time.Time, failed bool) {
	e := b.bucket(now)
	k := &b.buckets[e%breakerBuckets]
	if k.epoch != e {
		*k = struct{ epoch, ok, failed int64 }{epoch: e}
	}
	if !failed {
		k.ok++
		if b.state != Closed {
			// One success closes it; what failed before is history.
			*b = breaker{started: b.started}
		}
		return
	}
	k.failed++
	if b.state == Closed {
		var ok, bad int64
		for i := range b.buckets {
			if e-b.buckets[i].epoch < breakerBuckets {
				ok += b.buckets[i].ok
				bad += b.buckets[i].failed
			}
		}
		if ok+bad < breakerMin || bad < ok {
			return
		}
		b.pause = breakerPauseMin
	} else if b.state == Probing {
		b.pause = min(2*b.pause, breakerPauseMax)
	} else {
		return // reads that were under way when it opened
	}
	b.state, b.until = Open, now.Add(b.pause)
}
