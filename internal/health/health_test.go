package health

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rs1 = meta.ServerName{Host: "rs1", Port: 16020, StartCode: 100}

func TestTableKeepsOneServerPerIncarnation(t *testing.T) {
	tab := NewTable()
	defer tab.Close()
	a := tab.Get(rs1)
	if tab.Get(rs1) != a || tab.Lookup("rs1:16020") != a {
		t.Fatal("the same incarnation gave another Server")
	}
	anyone := rs1
	anyone.StartCode = 0
	if tab.Get(anyone) != a {
		t.Error("start code 0 did not give the known server")
	}
	newer := rs1
	newer.StartCode = 200
	epoch := a.Epoch()
	b := tab.Get(newer)
	if b == a || tab.Lookup("rs1:16020") != b {
		t.Fatal("a newer start code did not take the address over")
	}
	if a.State() != Dead || a.Epoch() != epoch+1 {
		t.Errorf("old incarnation: state %s, epoch %d -> %d", a.State(), epoch, a.Epoch())
	}
	var down *DownError
	if err := a.Err(); !errors.As(err, &down) || !down.Dead || !errors.Is(err, ErrReplaced) || !errors.Is(err, ErrServerDown) {
		t.Errorf("old incarnation: Err = %v", err)
	}
	if old := tab.Get(rs1); old.State() != Dead || old == b || tab.Lookup("rs1:16020") != b {
		t.Errorf("asking for the older incarnation: %v state %s", old.Name(), old.State())
	}
	if n := len(tab.All()); n != 1 {
		t.Errorf("All: %d servers, want 1", n)
	}
}

func TestHardEvidenceBumpsTheEpochOncePerSpell(t *testing.T) {
	tab := NewTable()
	defer tab.Close()
	s := tab.Get(rs1)
	refused := errors.New("refused")
	for range 3 {
		s.Refused(refused)
	}
	if s.Epoch() != 1 || s.State() != Down {
		t.Fatalf("after refusals: epoch %d state %s", s.Epoch(), s.State())
	}
	s.Answered()
	if s.State() != Down {
		t.Fatalf("a late answer of a stopped server made it %s", s.State())
	}
	s.recover(true)
	if s.State() != Healthy || s.Epoch() != 1 || s.Err() != nil {
		t.Fatalf("after an answer: epoch %d state %s err %v", s.Epoch(), s.State(), s.Err())
	}
	s.Silent(errors.New("silent"))
	if s.Epoch() != 1 || s.State() != Down {
		t.Fatalf("silence: epoch %d state %s; silence must not touch routes", s.Epoch(), s.State())
	}
	s.Refused(refused)
	if s.Epoch() != 2 {
		t.Errorf("hard evidence after silence: epoch %d, want 2", s.Epoch())
	}
	if err := s.Err(); !errors.Is(err, refused) {
		t.Errorf("cause: %v", err)
	}
}

func TestSuspectGivesExactlyOnePing(t *testing.T) {
	tab := NewTable()
	defer tab.Close()
	s := tab.Get(rs1)
	var pings atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if s.Suspect(errors.New("silent")) {
				pings.Add(1)
			}
		})
	}
	wg.Wait()
	if pings.Load() != 1 || s.State() != Suspect || s.Err() != nil {
		t.Fatalf("%d pings, state %s, err %v", pings.Load(), s.State(), s.Err())
	}
	s.Answered()
	if !s.Suspect(nil) {
		t.Error("a new suspicion gave no ping")
	}
}

func TestProberBringsTheServerBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var probes []time.Duration
		var mu sync.Mutex
		running := 0
		tab := New(Config{Probe: func(ctx context.Context, s *Server) error {
			mu.Lock()
			running++
			if running > 1 {
				t.Error("two probers at once")
			}
			probes = append(probes, time.Since(start))
			mu.Unlock()
			defer func() { mu.Lock(); running--; mu.Unlock() }()
			if time.Since(start) > 20*time.Second {
				return nil
			}
			return errors.New("refused")
		}})
		defer tab.Close()
		s := tab.Get(rs1)
		for range 10 {
			go s.Refused(errors.New("refused"))
		}
		synctest.Wait()
		up := s.Up()
		select {
		case <-up:
			t.Fatal("up at once")
		default:
		}
		t0 := time.Now()
		var down *DownError
		if err := s.Acquire(t.Context()); !errors.As(err, &down) || time.Since(t0) != 0 {
			t.Fatalf("Acquire on a down server: %v after %v", err, time.Since(t0))
		}
		if down.NextProbe.IsZero() || down.Since != start {
			t.Errorf("down error: since %v next %v", down.Since, down.NextProbe)
		}
		<-up
		took := time.Since(start)
		if took < 20*time.Second || took > 27*time.Second {
			t.Errorf("back after %v", took) // nobody asked meanwhile
		}
		if s.State() != Healthy || s.Err() != nil {
			t.Errorf("state %s", s.State())
		}
		if n := len(probes); n < 8 || n > 16 {
			t.Errorf("%d probes in 20 s: %v", n, probes)
		}
		if probes[0] < 30*time.Millisecond || probes[0] > 70*time.Millisecond {
			t.Errorf("first probe after %v", probes[0])
		}
		for i := 1; i < len(probes); i++ {
			if d := probes[i] - probes[i-1]; d > 6300*time.Millisecond {
				t.Errorf("%v between probes", d)
			}
		}
	})
}

func TestProberHurriesForThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n := 0
		tab := New(Config{Probe: func(ctx context.Context, s *Server) error {
			if n++; time.Since(start) >= 30*time.Second {
				return nil
			}
			return errors.New("refused")
		}})
		defer tab.Close()
		s := tab.Get(rs1)
		s.Refused(errors.New("refused"))
		for s.Err() != nil {
			select {
			case <-s.Up():
			case <-time.After(500 * time.Millisecond):
			}
		}
		if d := time.Since(start); d > 30900*time.Millisecond {
			t.Errorf("back after %v, it answered after 30s", d)
		}
		if n > 60 {
			t.Errorf("%d probes in 30 s", n)
		}
		// Somebody who comes in the middle of a long pause does not wait it out.
		start = time.Now().Add(-5 * time.Second) // answers in 25 s
		s.Refused(errors.New("refused"))
		time.Sleep(26 * time.Second)
		if s.State() == Healthy {
			return // it was just being probed
		}
		began := time.Now()
		<-s.Up()
		if d := time.Since(began); d > 900*time.Millisecond {
			t.Errorf("a newcomer waited %v", d)
		}
	})
}

func TestProberRestsWhenNobodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var probes atomic.Int32
		tab := New(Config{Probe: func(ctx context.Context, s *Server) error {
			probes.Add(1)
			return errors.New("refused")
		}})
		defer tab.Close()
		s := tab.Get(rs1)
		s.Refused(errors.New("refused"))
		time.Sleep(10 * time.Minute)
		n := probes.Load()
		if n > 25 {
			t.Errorf("%d probes in ten idle minutes", n)
		}
		time.Sleep(10 * time.Minute)
		if probes.Load() != n {
			t.Error("still probing")
		}
		if s.Err() == nil {
			t.Fatal("the server came back by itself")
		}
		time.Sleep(time.Second)
		if probes.Load() == n {
			t.Error("asking did not wake the prober")
		}
	})
}

func TestAnAnswerEndsTheSpellWithoutTheProber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := New(Config{Probe: func(ctx context.Context, s *Server) error { <-ctx.Done(); return ctx.Err() }})
		defer tab.Close()
		s := tab.Get(rs1)
		s.Silent(errors.New("silent"))
		time.Sleep(3 * time.Second)
		if s.State() != Probing {
			t.Fatalf("state %s", s.State())
		}
		up := s.Up()
		s.Answered()
		<-up
		if s.State() != Healthy {
			t.Errorf("state %s", s.State())
		}
	})
}

func TestReplacementWakesThoseWhoWait(t *testing.T) {
	tab := NewTable()
	defer tab.Close()
	s := tab.Get(rs1)
	s.Refused(errors.New("refused"))
	up := s.Up()
	newer := rs1
	newer.StartCode++
	tab.Get(newer)
	select {
	case <-up:
	case <-time.After(time.Second):
		t.Fatal("nobody told those who waited for the old incarnation")
	}
}

func TestLimiterBoundsAndQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := New(Config{MaxInFlight: 10, MaxQueue: 20})
		defer tab.Close()
		s := tab.Get(rs1)
		var inside, most, done, busy atomic.Int32
		for range 40 {
			go func() {
				err := s.Acquire(t.Context())
				if errors.Is(err, ErrBusy) {
					busy.Add(1)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				n := inside.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(time.Second)
				inside.Add(-1)
				s.Release(OK, time.Second)
				done.Add(1)
			}()
		}
		time.Sleep(time.Minute)
		if most.Load() != 10 || done.Load() != 30 || busy.Load() != 10 {
			t.Errorf("at most %d inside, %d done, %d turned away; want 10, 30, 10", most.Load(), done.Load(), busy.Load())
		}
		if in, limit, waiting := s.Load(); in != 0 || waiting != 0 || limit != 10 {
			t.Errorf("afterwards: %d in flight, limit %d, %d waiting", in, limit, waiting)
		}
		if l := s.Latency(); l != time.Second {
			t.Errorf("latency %v", l)
		}
	})
}

func TestLimiterGivesUpWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := New(Config{MaxInFlight: 1})
		defer tab.Close()
		s := tab.Get(rs1)
		if err := s.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		t0 := time.Now()
		if err := s.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(t0) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(t0))
		}
		got := make(chan error, 2)
		go func() { got <- s.Acquire(t.Context()) }()
		synctest.Wait()
		s.Release(OK, 0)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		go func() { got <- s.Acquire(t.Context()) }()
		synctest.Wait()
		s.Refused(errors.New("refused"))
		if err := <-got; !errors.Is(err, ErrServerDown) {
			t.Errorf("a waiter of a server that went down got %v", err)
		}
		s.Release(Lost, 0)
	})
}

func TestLimiterAdaptsToBusyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tab := New(Config{MaxInFlight: 1000})
		defer tab.Close()
		s := tab.Get(rs1)
		for range 100 {
			if err := s.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 {
			s.Release(Busy, 0)
		}
		_, limit, _ := s.Load()
		if limit < 65 || limit > 70 {
			t.Fatalf("one burst of busy answers at 100 in flight: limit %d, want about 70", limit)
		}
		time.Sleep(time.Second)
		s.Release(Busy, 0)
		_, lower, _ := s.Load()
		if lower >= limit {
			t.Errorf("a second burst left the limit at %d", lower)
		}
		for range 49 {
			s.Release(OK, time.Millisecond)
		}
		for range 20000 {
			if err := s.Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.Release(OK, time.Millisecond)
		}
		if _, grown, _ := s.Load(); grown <= lower+50 {
			t.Errorf("limit after 20000 successes: %d from %d", grown, lower)
		}
		for range 200 {
			time.Sleep(time.Second)
			s.Overloaded()
		}
		if _, floor, _ := s.Load(); floor != 4 {
			t.Errorf("floor %d, want 4", floor)
		}
	})
}

func TestLimiterLosesNoWakeup(t *testing.T) {
	tab := New(Config{MaxInFlight: 3})
	defer tab.Close()
	s := tab.Get(rs1)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 500 {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if i%7 == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Microsecond)
				}
				if s.Acquire(ctx) == nil {
					s.Release(OK, time.Microsecond)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if in, _, waiting := s.Load(); in != 0 || waiting != 0 {
		t.Errorf("%d in flight, %d waiting at the end", in, waiting)
	}
}

func TestCallAdmissionAllocatesNothing(t *testing.T) {
	tab := NewTable()
	defer tab.Close()
	s := tab.Get(rs1)
	if n := testing.AllocsPerRun(1000, func() {
		if s.Acquire(t.Context()) != nil {
			t.Fatal("refused")
		}
		s.Release(OK, time.Millisecond)
	}); n != 0 {
		t.Errorf("%v allocations per admitted call", n)
	}
}

func BenchmarkAdmission(b *testing.B) {
	tab := NewTable()
	defer tab.Close()
	s := tab.Get(rs1)
	ctx := b.Context()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if s.Acquire(ctx) == nil {
				s.Release(OK, time.Microsecond)
			}
		}
	})
}
