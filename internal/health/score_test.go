package health

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

func TestDigestBuckets(t *testing.T) {
	last := time.Duration(0)
	for i := range digestBuckets {
		if i == 1 || i == 2 || i == 3 || i == 5 || i == 7 {
			continue // quarters of 1 us, and of 2 us
		}
		end := bucketEnd(i)
		if end <= last {
			t.Errorf("bucket %d ends at %v, the one before at %v", i, end, last)
		}
		last = end
	}
	for _, d := range []time.Duration{
		time.Microsecond, 3 * time.Microsecond, 100 * time.Microsecond, 999 * time.Microsecond, 5 * time.Millisecond,
		time.Second, 17 * time.Second, time.Minute,
	} {
		if end := bucketEnd(bucketOf(d)); end <= d || end > d*5/4+time.Microsecond {
			t.Errorf("%v is counted as %v", d, end)
		}
	}
	if bucketOf(0) != 0 || bucketOf(-5) != 0 || bucketOf(time.Hour) != digestBuckets-1 {
		t.Error("the ends do not take what is beyond them")
	}
}

func TestQuantilesFollowTheRecentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := NewTable()
		defer tab.Close()
		s := tab.Get(rs1)
		for range digestMin - 1 {
			s.Release(OK, time.Millisecond)
		}
		tab.Observe()
		if p, _ := s.Quantiles(); p != 0 {
			t.Errorf("p95 %v of too few calls", p)
		}
		for i := range 1000 {
			d := 2 * time.Millisecond
			if i%100 == 0 {
				d = 50 * time.Millisecond
			}
			s.Release(OK, d)
		}
		tab.Observe() // within the second: nothing
		if p, _ := s.Quantiles(); p != 0 {
			t.Errorf("computed twice within a second")
		}
		time.Sleep(scoreEvery)
		tab.Observe()
		p95, p999 := s.Quantiles()
		if p95 < 2*time.Millisecond || p95 > 2500*time.Microsecond || p999 < 50*time.Millisecond || p999 > 63*time.Millisecond {
			t.Errorf("p95 %v, p99.9 %v of calls of 2 ms and, one in a hundred, 50 ms", p95, p999)
		}
		// It gets slower: ten seconds later nobody remembers.
		for range 10 {
			for range 600 {
				s.Release(OK, 40*time.Millisecond)
			}
			time.Sleep(scoreEvery)
			tab.Observe()
		}
		if p95, _ := s.Quantiles(); p95 < 40*time.Millisecond || p95 > 50*time.Millisecond {
			t.Errorf("p95 %v of calls of 40 ms", p95)
		}
	})
}

func TestSlowIsRelativeAndTakesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := NewTable()
		defer tab.Close()
		var all []*Server
		for i := range 4 {
			all = append(all, tab.Get(meta.ServerName{Host: string(rune('a' + i)), Port: 1, StartCode: 1}))
		}
		second := func(slow time.Duration) {
			for i, s := range all {
				d := 5 * time.Millisecond
				if i == 3 {
					d = slow
				}
				for range 10 {
					s.Release(OK, d)
				}
			}
			time.Sleep(time.Second)
			tab.Observe()
		}
		for range 15 {
			second(12 * time.Millisecond)
		}
		for _, s := range all {
			if s.Slow() {
				t.Fatalf("%v is slow at not three times the median", s.Name())
			}
		}
		for i := range 20 {
			second(100 * time.Millisecond)
			if all[3].Slow() != (i >= 10) {
				t.Errorf("after %d s: slow = %v", i, all[3].Slow())
			}
		}
		for i, s := range all[:3] {
			if s.Slow() {
				t.Errorf("server %d is slow", i)
			}
		}
		if n := all[3].Snapshot(); !n.Slow || n.Latency < 99*time.Millisecond || n.P95 < 100*time.Millisecond || n.State != Healthy || n.Limit != 4096 {
			t.Errorf("snapshot %+v", n)
		}
		for range 5 {
			second(5 * time.Millisecond)
		}
		if all[3].Slow() {
			t.Error("it is as fast as the others, and still slow")
		}
		// Verdicts about servers nobody calls do not last.
		for range 15 {
			second(100 * time.Millisecond)
		}
		if !all[3].Slow() {
			t.Fatal("not slow again")
		}
		time.Sleep(slowForgotten)
		tab.Observe()
		if all[3].Slow() {
			t.Error("slow after a minute without calls")
		}
	})
}

func TestOneServerAloneIsNeverSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := NewTable()
		defer tab.Close()
		s := tab.Get(rs1)
		for range 30 {
			for range 10 {
				s.Release(OK, 5*time.Second)
			}
			time.Sleep(time.Second)
			tab.Observe()
		}
		if s.Slow() {
			t.Error("slow, compared with itself")
		}
	})
}

func TestShedding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := NewTable()
		defer tab.Close()
		s := tab.Get(rs1)
		if s.Shedding() {
			t.Error("before any call")
		}
		s.Release(Busy, time.Millisecond)
		if !s.Shedding() {
			t.Error("not after a busy answer")
		}
		time.Sleep(time.Second)
		if s.Shedding() {
			t.Error("a second later still")
		}
	})
}
