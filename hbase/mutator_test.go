package hbase

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// batchCore performs batches by a function.
type batchCore struct {
	scriptedCore
	batch func(ctx context.Context, items []session.Item) []session.Outcome
}

func (c *batchCore) Batch(ctx context.Context, _ meta.TableName, items []session.Item) []session.Outcome {
	return c.batch(ctx, items)
}

// mutatorOn makes a Mutator over a function that performs batches.
func mutatorOn(t testing.TB, o MutatorOptions, batch func(ctx context.Context, items []session.Item) []session.Outcome) *Mutator {
	t.Helper()
	c := newClient(defaultConfig("x"), &batchCore{batch: batch})
	m, err := c.tableOf(meta.TableName{Namespace: "default", Qualifier: "t"}).Mutator(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// fine lets every item succeed.
func fine(_ context.Context, items []session.Item) []session.Outcome {
	return make([]session.Outcome, len(items))
}

func putN(row string, n int) *Put {
	return NewPut(row).Set("f", "q", binary.BigEndian.AppendUint32(nil, uint32(n)))
}

func numberOf(it *session.Item) int {
	return int(binary.BigEndian.Uint32(it.Cells[len(it.Cells)-4:]))
}

func TestMutatorSendsWhenFullOrLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		var at []time.Duration
		start := time.Now()
		m := mutatorOn(t, MutatorOptions{BufferBytes: 10_000, InFlight: 1, FlushInterval: 300 * time.Millisecond}, func(ctx context.Context, items []session.Item) []session.Outcome {
			sizes, at = append(sizes, len(items)), append(at, time.Since(start))
			return fine(ctx, items)
		})
		add := func(n int) {
			synctest.Wait()
			sent := len(sizes)
			for i := range n {
				if err := m.Add(t.Context(), putN(fmt.Sprintf("%d.%d", sent, i), i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		full := (10_000 + MutationSize(putN("0.0", 0)) - 1) / MutationSize(putN("0.0", 0))
		time.Sleep(50 * time.Millisecond)
		add(3)
		time.Sleep(time.Second) // at 350 ms it is late
		synctest.Wait()
		if fmt.Sprint(sizes, at) != "[3] [350ms]" {
			t.Errorf("late: %v at %v", sizes, at)
		}
		add(full)
		synctest.Wait()
		if len(sizes) != 2 || at[1] != 1050*time.Millisecond {
			t.Errorf("full: %v at %v, want %d at once", sizes, at, full)
		}
		add(2)
		if err := m.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		if len(sizes) < 3 || at[len(at)-1] != 1050*time.Millisecond || m.Stats().Acknowledged != uint64(5+full) {
			t.Errorf("flush: %v at %v, %+v", sizes, at, m.Stats())
		}
		time.Sleep(time.Hour) // nothing is due
		synctest.Wait()
		if n := len(sizes); n != 3 {
			t.Errorf("%d batches: %v", n, sizes)
		}
		add(1)
		if err := m.Close(t.Context()); err != nil || len(sizes) != 4 {
			t.Errorf("close: %v, %v", err, sizes)
		}
		if s := m.Stats(); s.Added != s.Acknowledged || s.Failed != 0 || s.Buffered != 0 || s.InFlight != 0 || s.Batches != 4 {
			t.Errorf("%+v", s)
		}
		for name, err := range map[string]error{"add": m.Add(t.Context(), putN("a", 1)), "flush": m.Flush(t.Context())} {
			if !errors.Is(err, ErrMutatorClosed) || !SafeToRetry(err) {
				t.Errorf("%s after close: %v", name, err)
			}
		}
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
	})
}

// TestMutatorHoldsBack: memory is bounded; whoever has no room waits no longer
// than its context.
func TestMutatorHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		size := MutationSize(putN("r00", 0))
		m := mutatorOn(t, MutatorOptions{BufferBytes: 10 * size, InFlight: 2}, func(ctx context.Context, items []session.Item) []session.Outcome {
			<-gate
			return fine(ctx, items)
		})
		for i := range 30 {
			if err := m.Add(t.Context(), putN(fmt.Sprintf("r%02d", i), i)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if s := m.Stats(); s.InFlight != 2 || s.Buffered != 10*size {
			t.Fatalf("%+v", s)
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
		defer cancel()
		err := m.Add(ctx, putN("late", 0))
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 70*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		// Those who wait are let in in their order, and one who leaves does not
		// take the others' place with him.
		var mu sync.Mutex
		var order []int
		var adders sync.WaitGroup
		leaving, leave := context.WithCancel(t.Context())
		for i := range 6 {
			synctest.Wait()
			adders.Go(func() {
				ctx := t.Context()
				if i == 0 || i == 3 {
					ctx = leaving
				}
				if err := m.Add(ctx, putN(fmt.Sprintf("w%d", i), i)); err == nil {
					mu.Lock()
					order = append(order, i)
					mu.Unlock()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if len(order) != 0 {
			t.Errorf("%v were let in without room", order)
		}
		leave()
		synctest.Wait()
		close(gate)
		adders.Wait()
		if len(order) != 4 {
			t.Errorf("let in: %v", order)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if s := m.Stats(); s.Acknowledged != 34 {
			t.Errorf("%+v", s)
		}
	})
}

// TestMutatorOrder: no row is in two flights or twice in one, and each row's
// mutations arrive in their order, whatever fails and however long it takes.
func TestMutatorOrder(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			rnd := rand.New(rand.NewPCG(seed, 1))
			flying := map[string]bool{}
			last := map[string]int{}
			broken, seen := 0, 0
			m := mutatorOn(t, MutatorOptions{
				BufferBytes: 1 << 10 << rnd.IntN(4), InFlight: 1 + rnd.IntN(4), FlushInterval: time.Duration(rnd.IntN(3)-1) * 10 * time.Millisecond,
				OnError: func(f FailedMutation) {
					if !strings.Contains(f.Err.Error(), "broken") {
						t.Error(f.Err)
					}
					mu.Lock()
					defer mu.Unlock()
					broken--
				},
			}, func(_ context.Context, items []session.Item) []session.Outcome {
				out := make([]session.Outcome, len(items))
				mu.Lock()
				for i := range items {
					row, n := string(items[i].Row), numberOf(&items[i])
					if flying[row] {
						t.Errorf("seed %d: row %s is sent twice at a time", seed, row)
					}
					flying[row] = true
					if n <= last[row] {
						t.Errorf("seed %d: row %s: %d after %d", seed, row, n, last[row])
					}
					last[row] = n
					seen++
					if rnd.IntN(10) == 0 {
						out[i].Err = errors.New("broken")
						broken++
					}
				}
				d := time.Duration(rnd.IntN(20)) * time.Millisecond
				mu.Unlock()
				time.Sleep(d)
				mu.Lock()
				defer mu.Unlock()
				for i := range items {
					delete(flying, string(items[i].Row))
				}
				return out
			})
			var adders sync.WaitGroup
			for p := range 3 {
				adders.Go(func() {
					rnd := rand.New(rand.NewPCG(seed, uint64(p)+10))
					for i := range 200 {
						// Few rows, so that they meet; one producer a row, so that
						// there is an order.
						if err := m.Add(t.Context(), putN(fmt.Sprintf("%d.%d", p, rnd.IntN(7)), i+1)); err != nil {
							t.Error(err)
						}
						switch rnd.IntN(40) {
						case 0:
							time.Sleep(time.Duration(rnd.IntN(15)) * time.Millisecond)
						case 1:
							if err := m.Flush(t.Context()); err != nil {
								if _, ok := errors.AsType[*MutatorError](err); !ok {
									t.Error(err)
								}
							}
						}
					}
				})
			}
			adders.Wait()
			_ = m.Close(t.Context())
			if seen != 600 || broken != 0 || len(m.rows) != 0 || m.bytes != 0 || m.count != 0 || m.urgent != 0 || m.open != 0 {
				t.Errorf("seed %d: %d seen, %d failures not reported, %d rows, %d bytes, %d %d %d left", seed, seen, broken, len(m.rows), m.bytes, m.count, m.urgent, m.open)
			}
			if s := m.Stats(); s.Acknowledged+s.Failed != 600 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestMutatorReports: failures come back once, to OnError or else from the next
// call.
func TestMutatorReports(t *testing.T) {
	mine := errors.New("mine")
	failing := func(_ context.Context, items []session.Item) []session.Outcome {
		out := make([]session.Outcome, len(items))
		for i := range items {
			if items[i].Row[0] == 'x' {
				out[i].Err = mine
			}
		}
		return out
	}
	add := func(m *Mutator, rows ...string) {
		t.Helper()
		for _, row := range rows {
			if err := m.Add(t.Context(), putN(row, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(what string, err error, rows ...string) {
		t.Helper()
		e, ok := errors.AsType[*MutatorError](err)
		if !ok || e.Count != len(rows) || !errors.Is(err, mine) || len(e.Failed) != len(rows) {
			t.Fatalf("%s: %v", what, err)
		}
		for i, row := range rows {
			if got := string(e.Failed[i].Mutation.RowKey()); got != row || !errors.Is(e.Failed[i].Err, mine) {
				t.Errorf("%s: %s, %v; want %s", what, got, e.Failed[i].Err, row)
			}
		}
	}
	m := mutatorOn(t, MutatorOptions{FlushInterval: -1}, failing)
	add(m, "a", "x1", "b", "x2")
	check("flush", m.Flush(t.Context()), "x1", "x2")
	if err := m.Flush(t.Context()); err != nil {
		t.Errorf("reported twice: %v", err)
	}
	add(m, "x3", "c")
	check("close", m.Close(t.Context()), "x3")

	synctest.Test(t, func(t *testing.T) {
		m := mutatorOn(t, MutatorOptions{FlushInterval: time.Millisecond}, failing)
		add(m, "x4")
		time.Sleep(2 * time.Millisecond)
		check("add", m.Add(t.Context(), putN("d", 1)), "x4")
		add(m, "e")
		if err := m.Close(t.Context()); err != nil || m.Stats().Added != 2 {
			t.Errorf("%v, %+v", err, m.Stats())
		}
	})

	var told []string
	m = mutatorOn(t, MutatorOptions{OnError: func(f FailedMutation) { told = append(told, string(f.Mutation.RowKey())) }}, failing)
	add(m, "x5", "f", "x6")
	err := m.Flush(t.Context())
	if e, ok := errors.AsType[*MutatorError](err); !ok || e.Count != 2 || e.Failed != nil || !errors.Is(err, mine) || fmt.Sprint(told) != "[x5 x6]" {
		t.Errorf("%v, told %v", err, told)
	}
	add(m, "g")
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMutatorCloseInTime: a Close that has no time left fails what is there,
// reports it, and leaves nothing behind.
func TestMutatorCloseInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		size := MutationSize(putN("r0", 0))
		reported := map[string]error{}
		var sent atomic.Int32
		m := mutatorOn(t, MutatorOptions{BufferBytes: 4 * size, InFlight: 1, OnError: func(f FailedMutation) {
			row := string(f.Mutation.RowKey())
			if reported[row] != nil {
				t.Errorf("%s is reported twice", row)
			}
			reported[row] = f.Err
		}}, func(ctx context.Context, items []session.Item) []session.Outcome {
			sent.Add(int32(len(items)))
			<-ctx.Done()
			out := make([]session.Outcome, len(items))
			for i := range out {
				out[i].Err = ctx.Err()
			}
			return out
		})
		for i := range 8 {
			if err := m.Add(t.Context(), putN(fmt.Sprintf("r%d", i), i)); err != nil {
				t.Fatal(err)
			}
		}
		waiting := make(chan error, 1)
		go func() { waiting <- m.Add(t.Context(), putN("w", 0)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := m.Close(ctx)
		if took := time.Since(start); took != time.Second {
			t.Errorf("close took %v", took)
		}
		e, ok := errors.AsType[*MutatorError](err)
		if !ok || e.Count != 8 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v", err)
		}
		if err := <-waiting; !errors.Is(err, ErrMutatorClosed) {
			t.Errorf("waiting: %v", err)
		}
		if len(reported) != 8 || sent.Load() != 4 {
			t.Errorf("%d reported, %d sent", len(reported), sent.Load())
		}
		for i := range 8 {
			want := context.Canceled
			if i >= 4 {
				want = ErrMutatorClosed
			}
			if err := reported[fmt.Sprintf("r%d", i)]; !errors.Is(err, want) {
				t.Errorf("r%d: %v, want %v", i, err, want)
			}
		}
	})
}

func TestMutatorFlushInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		m := mutatorOn(t, MutatorOptions{}, func(ctx context.Context, items []session.Item) []session.Outcome {
			<-gate
			return fine(ctx, items)
		})
		if err := m.Add(t.Context(), putN("a", 1)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %v", err)
		}
		close(gate)
		if err := m.Flush(t.Context()); err != nil || m.Stats().Acknowledged != 1 {
			t.Errorf("flush: %v, %+v", err, m.Stats())
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestMutatorRefuses(t *testing.T) {
	tab := newClient(defaultConfig("x"), &batchCore{}).tableOf(meta.TableName{Namespace: "default", Qualifier: "t"})
	for _, o := range []MutatorOptions{{BufferBytes: 1}, {BufferBytes: 2 << 30}, {InFlight: -1}, {InFlight: 65}, {FlushInterval: 1}, {FlushInterval: 2 * time.Hour}, {Timeout: -1}, {Timeout: 1}} {
		if _, err := tab.Mutator(o); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	m := mutatorOn(t, MutatorOptions{}, fine)
	for _, a := range []RowAction{nil, (*Put)(nil), NewPut("r"), NewPut("").Set("f", "q", nil), (*RowMutations)(nil), NewRowMutations("r")} {
		if err := m.Add(t.Context(), a); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	ok := []RowAction{
		NewDelete("r"), NewIncrement("r").Add("f", "q", 1), NewAppend("r").Add("f", "q", []byte("x")),
		NewRowMutations("r").Add(putN("r", 1), NewDelete("r").Column("f", "x")),
	}
	for _, a := range ok {
		if err := m.Add(t.Context(), a); err != nil || MutationSize(a) <= 200 {
			t.Errorf("%+v: %v, size %d", a, err, MutationSize(a))
		}
	}
	if err := m.Close(t.Context()); err != nil || m.Stats().Batches != 4 {
		t.Errorf("%v, %+v", err, m.Stats())
	}
}

// BenchmarkMutator is what the Mutator itself costs a mutation.
func BenchmarkMutator(b *testing.B) {
	m := mutatorOn(b, MutatorOptions{}, fine)
	puts := make([]*Put, 1<<16)
	for i := range puts {
		puts[i] = putN(fmt.Sprintf("row-%08d", i), i)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if err := m.Add(b.Context(), puts[i&(1<<16-1)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
	if err := m.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}
