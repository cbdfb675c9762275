package route

import (
	"testing"
	"time"
)

func TestLimiterAdapts(t *testing.T) {
	now := time.Now()
	var l limiter
	l.init(32, now)
	read := func(took time.Duration, failed bool) {
		if !l.admit(demand, now) {
			t.Fatalf("not admitted: %d under way, limit %.1f", l.inflight, l.limit)
		}
		now = now.Add(took)
		l.done(demand, now, took, true, failed)
	}
	for range 50 {
		read(2*time.Millisecond, false)
	}
	if l.limit != 32 {
		t.Errorf("limit %.1f while meta is quick", l.limit)
	}
	for range 6 {
		read(300*time.Millisecond, false)
	}
	slow := l.limit
	if slow > 8 || slow < 2 {
		t.Errorf("limit %.1f after slow answers", slow)
	}
	for range 2000 {
		read(2*time.Millisecond, false)
	}
	if l.limit < 31 {
		t.Errorf("limit %.1f after quick answers", l.limit)
	}
	// One burst of failures is one cut.
	for range 20 {
		if !l.admit(demand, now) {
			t.Fatal("not admitted")
		}
	}
	for range 8 {
		l.done(demand, now, time.Millisecond, true, true)
	}
	if l.limit < 15 {
		t.Errorf("limit %.1f after one burst of failures", l.limit)
	}
}

func TestLimiterClasses(t *testing.T) {
	now := time.Now()
	var l limiter
	l.init(8, now)
	admitted := func(k class) (n int) {
		for l.admit(k, now) {
			n++
		}
		return n
	}
	if n := admitted(background); n != 1 {
		t.Errorf("%d background reads at one time", n)
	}
	if n := admitted(repairing); n != maxRepairs {
		t.Errorf("%d batches of repairs", n)
	}
	if n := admitted(demand); n != 8-1-maxRepairs {
		t.Errorf("%d demand reads beside them", n)
	}
	l.done(background, now, time.Millisecond, false, false)
	if l.admit(background, now) {
		t.Error("background while the others fill more than half")
	}
	// Background has a rate of its own.
	l = limiter{}
	l.init(8, now)
	n := 0
	for range 1000 {
		if l.admit(background, now) {
			n++
			l.done(background, now, time.Millisecond, false, false)
		}
		now = now.Add(time.Millisecond)
	}
	if n < bgBurst || n > bgBurst+bgRate+1 {
		t.Errorf("%d background reads in a second", n)
	}
}

func TestBreaker(t *testing.T) {
	now := time.Now()
	b := breaker{started: now}
	for range breakerMin - 1 {
		b.record(now, true)
	}
	if b.state != Closed || !b.allow(now) {
		t.Fatalf("%v after %d failures", b.state, breakerMin-1)
	}
	b.record(now, true)
	if b.state != Open || b.allow(now) {
		t.Fatalf("%v after %d failures", b.state, breakerMin)
	}
	b.record(now, true) // was under way
	now = now.Add(breakerPauseMin)
	if !b.allow(now) || b.allow(now) || b.state != Probing {
		t.Fatalf("%v: one probe after the pause", b.state)
	}
	b.record(now, true)
	if b.state != Open || b.until.Sub(now) != 2*breakerPauseMin {
		t.Fatalf("%v for %v after the probe failed", b.state, b.until.Sub(now))
	}
	for range 5 {
		now = b.until
		b.allow(now)
		b.record(now, true)
	}
	if b.until.Sub(now) != breakerPauseMax {
		t.Errorf("pause %v", b.until.Sub(now))
	}
	now = b.until
	b.allow(now)
	b.record(now, false)
	if b.state != Closed || !b.allow(now) {
		t.Errorf("%v after a success", b.state)
	}
	// Old failures are forgotten; mostly good answers keep it closed.
	for i := range 200 {
		b.record(now, i%3 == 0)
		now = now.Add(100 * time.Millisecond)
	}
	if b.state != Closed {
		t.Errorf("%v with a third failing", b.state)
	}
	for range 5 {
		b.record(now, true)
	}
	now = now.Add(2 * breakerWindow)
	for range breakerMin - 1 {
		b.record(now, true)
	}
	if b.state != Closed {
		t.Errorf("%v: failures of a window long past count", b.state)
	}
	for s := Closed; s <= Probing; s++ {
		if s.String() == "invalid" {
			t.Errorf("state %d has no name", s)
		}
	}
}
