package session

import (
	"math/rand/v2"
	"testing"
	"time"
)

// paced lets the pace see Gets for a while of callers in a closed loop, each
// Get taking what the model says for the number that goes together, and gives
// the number it has come to.
func paced(p *combinePace, now *time.Time, d time.Duration, model func(together int) time.Duration) int {
	const callers = 64
	for end := now.Add(d); now.Before(end); {
		took := model(p.most())
		*now = now.Add(took / callers)
		p.took(now.Add(-took), *now)
	}
	return int(combineNumbers[p.level])
}

func TestCombinePace(t *testing.T) {
	// A server in whose memory everything is: what counts are requests.
	cheap := func(n int) time.Duration { return 200*time.Microsecond + 2*time.Millisecond/time.Duration(n) }
	// One that has to look at a disk, with handlers for many at one time.
	dear := func(n int) time.Duration { return 5 * time.Millisecond * time.Duration(n) }
	// One that does best with a few.
	middling := func(n int) time.Duration {
		return 2*time.Millisecond/time.Duration(n) + 50*time.Microsecond*time.Duration(n)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	noisy := func(model func(int) time.Duration) func(int) time.Duration {
		return func(n int) time.Duration {
			d := model(n)
			if rnd.IntN(2000) == 0 {
				return d + 20*time.Millisecond // a hiccup
			}
			return d/2 + time.Duration(rnd.Int64N(int64(d)))
		}
	}
	for _, test := range []struct {
		name  string
		limit int
		model func(int) time.Duration
		want  int
	}{
		{"requests cost", 64, cheap, 64},
		{"requests cost, bounded", 16, cheap, 16},
		{"requests cost, off", 1, cheap, 1},
		{"rows cost", 64, dear, 1},
		{"both", 64, middling, 4},
		{"requests cost, noise", 64, noisy(cheap), 64},
		{"rows cost, noise", 64, noisy(dear), 1},
		{"no difference", 64, func(int) time.Duration { return time.Millisecond }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := combinePace{limit: test.limit}
			now := time.Unix(1_700_000_000, 0)
			if got := paced(&p, &now, 10*time.Second, test.model); got != test.want {
				t.Errorf("%d go together after ten seconds, want %d", got, test.want)
			}
		})
	}
}

// TestCombinePaceFollows: a server that changes is found out, both ways, and
// what is tried on a server whose rows cost is a small part of the time.
func TestCombinePaceFollows(t *testing.T) {
	p := combinePace{limit: 64}
	now := time.Unix(1_700_000_000, 0)
	cheap := func(n int) time.Duration { return 200*time.Microsecond + 2*time.Millisecond/time.Duration(n) }
	dear := func(n int) time.Duration { return 5 * time.Millisecond * time.Duration(n) }
	if got := paced(&p, &now, time.Second, cheap); got != 64 {
		t.Errorf("%d go together after a second, want 64", got)
	}
	if got := paced(&p, &now, 20*time.Second, dear); got != 1 {
		t.Errorf("%d go together after the rows began to cost, want 1", got)
	}
	tried, all := 0, 0
	paced(&p, &now, time.Minute, func(n int) time.Duration {
		if all++; n > 1 {
			tried++
		}
		return dear(n)
	})
	if tried == 0 || tried*50 > all {
		t.Errorf("%d of %d Gets went along with a trial, want some and at most a fiftieth", tried, all)
	}
	if got := paced(&p, &now, 10*time.Second, cheap); got != 64 {
		t.Errorf("%d go together after the rows became cheap again, want 64", got)
	}
}

// TestCombinePaceQuiet: a few Gets now and then decide nothing.
func TestCombinePaceQuiet(t *testing.T) {
	p := combinePace{limit: 64}
	now := time.Unix(1_700_000_000, 0)
	for range 5000 {
		p.took(now, now.Add(time.Millisecond))
		now = now.Add(50 * time.Millisecond)
	}
	if p.level != 0 || p.most() != 1 || p.trial != 0 {
		t.Errorf("level %d, %d together, trial %d", p.level, p.most(), p.trial)
	}
}
