package session

import (
	"sync"
	"sync/atomic"
	"time"
)

// combinePace finds out how many Gets should go together. The zero value begins
// with none. Safe for concurrent use.
//
// What a Get costs the server is not to be seen from here: a busy server takes
// long for cheap ones, too. What can be seen is how long callers wait, and that
// is all they care for. So time is cut into short phases and the mean of each
// is taken. Now and then the next larger or smaller number is tried, in phases
// that alternate with phases of the present one, so that whatever else changes
// meanwhile changes for both. Most of five pairs decide; one hiccup of the
// server does not. Of two numbers that do equally well the smaller stays, and a
// trial that goes badly is broken off at once.
type combinePace struct {
	limit  int          // what number may be; set before use
	number atomic.Int32 // Gets that go together just now; 0: 1

	mu sync.Mutex
	// Of the phase: its beginning, and the Gets that began and ended in it.
	since time.Time
	gets  int
	total time.Duration

	level int           // index of the number that has proved best
	usual time.Duration // mean of its last phase

	trial     int // what is tried: 1 more, -1 fewer, 0 nothing
	trying    bool
	won, lost int           // pairs of the trial
	up        bool          // the next trial is of more, if there is a choice
	next      time.Time     // when that is
	pause     time.Duration // until the one after it, if it does not help
}

// combineNumbers are what is tried.
var combineNumbers = [...]int32{1, 4, 16, 64}

const (
	// A phase has at least combinePhase and combineSample.
	combinePhase  = 20 * time.Millisecond
	combineSample = 128
	// combineStale ends a phase that does not get that far: what it saw belongs
	// to different loads.
	combineStale = time.Second
	// combineMost pairs decide a trial.
	combineMost = 3
	// Between trials that do not help, the pause doubles from the one to the
	// other.
	combineRetry, combineRest = 125 * time.Millisecond, 4 * time.Second
)

func (p *combinePace) most() int {
	if n := combineAlways.Load(); n > 0 {
		return int(n)
	}
	return int(max(p.number.Load(), 1))
}

// depth is how many requests may be out before Gets queue.
func (p *combinePace) depth() int {
	if combineAlways.Load() > 0 {
		return 0
	}
	return combineDepth
}

var combineAlways atomic.Int32

// CombineAlways has every Get that may go with others queue until so many do or
// combineWait is over, for tests of what stands above; undo ends it. It is for
// the whole process.
func CombineAlways(number int) (undo func()) {
	combineAlways.Store(int32(number))
	return func() { combineAlways.Store(0) }
}

// mean is what a Get takes that goes with others.
func (p *combinePace) mean() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.usual
}

// took takes note of a Get that others went with, or would have if others did.
func (p *combinePace) took(began, ended time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		p.since, p.next, p.up, p.pause = began, began, true, combineRetry
	}
	if began.Before(p.since) {
		return // in the phase before
	}
	p.gets++
	p.total += ended.Sub(began)
	age, mean := ended.Sub(p.since), p.total/time.Duration(p.gets)
	switch {
	case p.trying && p.gets >= combineSample/4 && mean > p.usual*2:
		p.settle(false, ended)
	case age > combineStale && p.gets < combineSample:
		p.abandon()
	case age < combinePhase || p.gets < combineSample:
		return
	case p.trying:
		p.compare(mean, ended)
	default:
		p.usual = mean
		if p.trial == 0 && !ended.Before(p.next) {
			p.choose()
		}
		p.try(p.trial != 0)
	}
	p.since, p.gets, p.total = ended, 0, 0
}

// choose says what the next trial is about.
func (p *combinePace) choose() {
	p.trial, p.won, p.lost = -1, 0, 0
	more := p.level < len(combineNumbers)-1 && combineNumbers[p.level+1] <= int32(p.limit)
	switch {
	case more && (p.up || p.level == 0):
		p.trial = 1
	case p.level == 0:
		p.trial = 0 // there is no choice
	}
}

// try begins a phase, of what is tried or of what is usual.
func (p *combinePace) try(trying bool) {
	p.trying = trying
	at := p.level
	if trying {
		at += p.trial
	}
	p.number.Store(combineNumbers[at])
}

// compare takes note of a phase of the trial. More have to be better by what
// shows, fewer only not worse.
func (p *combinePace) compare(mean time.Duration, now time.Time) {
	bar := p.usual
	if p.trial > 0 {
		bar -= bar / 20
	}
	if mean <= bar {
		p.won++
	} else {
		p.lost++
	}
	if p.won == combineMost || p.lost == combineMost {
		p.settle(p.won == combineMost, now)
		return
	}
	p.try(false)
}

// settle ends a trial.
func (p *combinePace) settle(won bool, now time.Time) {
	p.up = p.trial > 0 == won // on in this direction, or the other next time
	if won {
		p.level += p.trial
		p.next, p.pause = now, combineRetry
	} else {
		p.next, p.pause = now.Add(p.pause), min(2*p.pause, combineRest)
	}
	p.abandon()
}

// abandon goes back to what is usual.
func (p *combinePace) abandon() {
	p.trial = 0
	p.try(false)
}
