package checks

import (
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// The schedule arithmetic rests on the tables of package retry, which this
// project's client shares: the doctor and the client cannot disagree.

// schedule is a series of pauses in milliseconds.
type schedule struct {
	pause int64
	start int // index of the first multiplier: the convention
	table []int
}

func scheduleOf(v retry.Version, pause int64, start int) schedule {
	return schedule{pause, start, retry.Multipliers(v)}
}

// sleep is the pause after attempt n (from 1), without jitter.
func (s schedule) sleep(n int) int64 {
	return s.pause * int64(s.table[min(max(s.start+n-1, 0), len(s.table)-1)])
}

// sum is that of the first n pauses.
func (s schedule) sum(n int) int64 {
	var t int64
	for i := 1; i <= n; i++ {
		t += s.sleep(i)
	}
	return t
}

func (s schedule) String() string { return fmt.Sprintf("start-%d", s.start) }

// jitter is the most that a client adds to a sum of pauses.
func jitter(ms int64) int64 { return ms / 100 }

// Fit explains a give-up value by a schedule.
type Fit struct {
	Convention string
	Attempts   int   // made
	Slept      int64 // pauses before the last attempt
	Next       int64 // the pause that did not fit any more
	RPC        int64 // time inside calls at most (no jitter)
	Elapsed    int64 // real time until giving up
}

// fitsOfTimeout lists, per convention, the most attempts that explain that a
// client with this limit gave up with this duration = elapsed + next pause.
func fitsOfTimeout(v retry.Version, pause, limit, duration int64, most int, starts ...int) []Fit {
	var fits []Fit
	for _, st := range starts {
		s := scheduleOf(v, pause, st)
		best := Fit{}
		for n := 1; n <= most; n++ {
			total := s.sum(n)
			// The attempt before went on, so its pause still fitted.
			if total > duration || n > 1 && s.sum(n-1) > limit {
				break
			}
			best = Fit{Convention: s.String(), Attempts: n, Slept: s.sum(n - 1), Next: s.sleep(n), RPC: duration - total, Elapsed: duration - s.sleep(n)}
		}
		if best.Attempts > 0 {
			fits = append(fits, best)
		}
	}
	return fits
}

// fast says whether the calls of a fit took next to no time: what is left over
// is jitter and a few hundred milliseconds an attempt at most.
func (f Fit) fast() bool {
	return f.RPC <= jitter(f.Slept+f.Next)+fastCalls
}

// fastCalls is how much time all calls together may take and still count as
// immediate failures: resolvers and refused connections need up to a second.
const fastCalls = 1500

// fitOfStart explains "tries=k, started=ms ago": k pauses are over.
func fitOfStart(v retry.Version, pause, tries, started int64, starts ...int) []Fit {
	var fits []Fit
	for _, st := range starts {
		s := scheduleOf(v, pause, st)
		slept := s.sum(int(min(tries, 1000)))
		if slept <= started+5 {
			fits = append(fits, Fit{Convention: s.String(), Attempts: int(tries) + 1, Slept: slept, Next: s.sleep(int(tries) + 1), RPC: started - slept, Elapsed: started})
		}
	}
	return fits
}

// best is the fit with the least time inside calls.
func best(fits []Fit) (Fit, bool) {
	if len(fits) == 0 {
		return Fit{}, false
	}
	b := fits[0]
	for _, f := range fits[1:] {
		if f.RPC < b.RPC {
			b = f
		}
	}
	return b, true
}

// Release turns "0.98", "1.x", "2.4.17" into a version; minor and patch of a
// bare line are chosen as its late releases.
func Release(s string) (retry.Version, error) {
	var v retry.Version
	n, _ := fmt.Sscanf(s, "%d.%d.%d", &v.Major, &v.Minor, &v.Patch)
	switch {
	case n == 0:
		return v, fmt.Errorf("release %q: want 0.94, 0.98, 1.x, 2.x, 3.x or a full number such as 1.4.8", s)
	case n == 1:
		switch v.Major {
		case 1:
			v.Minor, v.Patch = 4, 14
		case 2:
			v.Minor, v.Patch = 4, 17
		case 3:
		default:
			return v, fmt.Errorf("release %q: which minor line, 0.94 or 0.98?", s)
		}
	case n == 2:
		v.Patch = 99
		switch {
		case v.Major == 0 && v.Minor == 98:
			v.Patch = 24
		case v.Major == 0 && v.Minor == 94:
			v.Patch = 27
		}
	}
	return v, nil
}

func ms(d time.Duration) int64 { return d.Milliseconds() }

// Seconds prints milliseconds for people.
func Seconds(v int64) string {
	switch {
	case v < 1000:
		return fmt.Sprintf("%d ms", v)
	case v%1000 == 0:
		return fmt.Sprintf("%d s", v/1000)
	case v%100 == 0:
		return fmt.Sprintf("%.1f s", float64(v)/1000)
	}
	return fmt.Sprintf("%.3f s", float64(v)/1000)
}
