package master

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// bare makes a master that has nothing but procedures.
func bare(t testing.TB) *Master {
	var id uint64
	ps := NewProcedures(func() (uint64, error) { id++; return id, nil }, time.Now)
	m := New(Config{Procedures: ps, Controls: &Controls{}, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(m.Close)
	return m
}

func TestProcedureResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bare(t)
		defer m.Close()
		ps := m.cfg.Procedures
		state := func(id uint64) pb.GetProcedureResultResponse_State { return ps.result(id).GetState() }
		const (
			running  = pb.GetProcedureResultResponse_RUNNING
			finished = pb.GetProcedureResultResponse_FINISHED
			unknown  = pb.GetProcedureResultResponse_NOT_FOUND
		)
		boom := refuse(wire.ClassTableExists, "t")
		ok := func(_ context.Context, prepared func()) error { prepared(); return nil }

		// A fast one is over when the call answers.
		id, err := m.submit(t.Context(), "A", 0, 0, ok)
		if err != nil || state(id) != finished {
			t.Errorf("fast: %v, %v", err, state(id))
		}
		// What its checks refuse is the call's error.
		if _, err := m.submit(t.Context(), "A", 0, 0, func(context.Context, func()) error { return boom }); !errors.Is(err, boom) {
			t.Errorf("refused: %v", err)
		}
		// What goes wrong later is the procedure's.
		late, err := m.submit(t.Context(), "A", 0, 0, func(_ context.Context, prepared func()) error { prepared(); return boom })
		if err != nil {
			t.Fatal(err)
		}
		if g := ps.result(late).GetException().GetGenericException(); g.GetClassName() != wire.ClassTableExists || g.GetMessage() != "t" {
			t.Errorf("failed late: %v", g)
		}
		// A slow one answers with its id after a moment.
		at := time.Now()
		slow, err := m.submit(t.Context(), "Slow", 0, 0, func(ctx context.Context, prepared func()) error { prepared(); return wait(ctx, time.Minute) })
		if err != nil || state(slow) != running || time.Since(at) != answerWait {
			t.Errorf("slow: %v, %v after %v", err, state(slow), time.Since(at))
		}
		l := ps.list()
		if last := l[len(l)-1]; last.GetProcId() != slow || last.GetState() != pb.ProcedureState_RUNNABLE {
			t.Errorf("running: %v", l)
		}
		for _, p := range l[:len(l)-1] {
			if s := p.GetState(); s != pb.ProcedureState_SUCCESS && s != pb.ProcedureState_ROLLEDBACK || (s == pb.ProcedureState_ROLLEDBACK) != (p.Exception != nil) {
				t.Errorf("ended: %v", p)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if state(slow) != finished {
			t.Errorf("slow one is %v", state(slow))
		}

		// Results live 15 minutes, or 5 once read.
		unread, _ := m.submit(t.Context(), "A", 0, 0, ok)
		read, _ := m.submit(t.Context(), "A", 0, 0, ok)
		_ = state(read)
		time.Sleep(keepReadResult + time.Second)
		if state(read) != unknown {
			t.Error("a result that was read is kept too long")
		}
		time.Sleep(keepResult - keepReadResult - 10*time.Second)
		if state(unread) != finished {
			t.Error("a result is gone before anybody read it")
		}
		if state(1<<60) != unknown {
			t.Error("a procedure nobody submitted")
		}
	})
}

func TestNonces(t *testing.T) {
	m := bare(t)
	runs := 0
	body := func(_ context.Context, prepared func()) error { runs++; prepared(); return nil }
	a, err := m.submit(t.Context(), "A", 7, 9, body)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := m.submit(t.Context(), "A", 7, 9, body); err != nil || b != a || runs != 1 {
		t.Errorf("the same nonce: id %d after %d, %d runs, %v", b, a, runs, err)
	}
	if b, _ := m.submit(t.Context(), "A", 7, 10, body); b == a || runs != 2 {
		t.Errorf("another nonce: id %d, %d runs", b, runs)
	}
	if b, _ := m.submit(t.Context(), "A", 7, 0, body); b == a || runs != 3 {
		t.Errorf("no nonce: id %d, %d runs", b, runs)
	}
}

func TestControls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bare(t)
		defer m.Close()
		c := m.cfg.Controls
		ok := func(_ context.Context, prepared func()) error { prepared(); return nil }
		c.SetProcedureDelay(time.Second)
		id, err := m.submit(t.Context(), "A", 0, 0, ok)
		if err != nil || m.cfg.Procedures.result(id).GetState() != pb.GetProcedureResultResponse_RUNNING {
			t.Errorf("delayed: %v", err)
		}
		if err := m.await(t.Context(), id); err != nil {
			t.Error(err)
		}
		c.SetProcedureDelay(0)
		c.FailNextProcedure("B", &cells.Exception{Class: "x.Y", Message: "z"})
		if id, _ = m.submit(t.Context(), "A", 0, 0, ok); m.await(t.Context(), id) != nil {
			t.Error("the wrong class failed")
		}
		id, _ = m.submit(t.Context(), "B", 0, 0, ok)
		if e := m.await(t.Context(), id); e == nil || asException(e).Class != "x.Y" {
			t.Errorf("told to fail: %v", e)
		}
		if id, _ = m.submit(t.Context(), "B", 0, 0, ok); m.await(t.Context(), id) != nil {
			t.Error("failed twice")
		}
		// A master that ends takes its procedures with it.
		c.SetProcedureDelay(time.Hour)
		id, _ = m.submit(t.Context(), "A", 0, 0, ok)
		m.Close()
		if e := m.await(t.Context(), id); !errors.Is(e, context.Canceled) {
			t.Errorf("cut off: %v", e)
		}
		if _, err := m.submit(t.Context(), "A", 0, 0, ok); err == nil {
			t.Error("a closed master takes procedures")
		}
	})
}

func TestTooManyResults(t *testing.T) {
	var id uint64
	ps := NewProcedures(func() (uint64, error) { id++; return id, nil }, time.Now)
	for i := range uint64(maxResults + 100) {
		p, _, err := ps.begin("A", "u", 1, i+1)
		if err != nil {
			t.Fatal(err)
		}
		ps.finish(p, nil)
	}
	if len(ps.byID) > maxResults || len(ps.nonces) != len(ps.byID) {
		t.Errorf("%d results and %d nonces are kept", len(ps.byID), len(ps.nonces))
	}
	if ps.result(id).GetState() != pb.GetProcedureResultResponse_FINISHED {
		t.Error("the newest result is gone")
	}
}

// TestManyUnfinished: procedures that run are kept however many they are, and looking for results to drop is not repeated for each of them.
func TestManyUnfinished(t *testing.T) {
	var id uint64
	ps := NewProcedures(func() (uint64, error) { id++; return id, nil }, time.Now)
	var all []*procedure
	looked := 0
	for crowded := ps.crowded; len(all) < 2*maxResults; {
		p, _, err := ps.begin("A", "u", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
		if ps.crowded != crowded {
			looked, crowded = looked+1, ps.crowded
		}
	}
	if len(ps.byID) != len(all) || looked > 20 {
		t.Errorf("%d of %d are kept; looked %d times for what to drop", len(ps.byID), len(all), looked)
	}
	if !ps.running("A") || ps.running("B") {
		t.Error("A runs, and B does not")
	}
	for _, p := range all {
		ps.finish(p, nil)
	}
	if ps.running("A") || len(ps.unfinished) != 0 {
		t.Error("nothing runs any more")
	}
}
