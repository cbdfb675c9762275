package master

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ls locks
		get := func(write bool) func() {
			t.Helper()
			r, err := ls.acquire(t.Context(), "x", write)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		a, b := get(false), get(false)
		// A writer waits for both readers; a reader that comes after it waits
		// for the writer.
		var order []string
		var mu sync.Mutex
		var wg sync.WaitGroup
		waiting := func(name string, write bool) {
			wg.Go(func() {
				r, err := ls.acquire(t.Context(), "x", write)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, name)
				mu.Unlock()
				r()
			})
			synctest.Wait()
		}
		waiting("writer", true)
		waiting("reader", false)
		if len(order) != 0 {
			t.Errorf("%v did not wait", order)
		}
		a()
		b()
		wg.Wait()
		if len(order) != 2 || order[0] != "writer" {
			t.Errorf("order %v", order)
		}
		// A writer that gives up lets the readers behind it through.
		a = get(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failed := make(chan error, 1)
		go func() { _, err := ls.acquire(ctx, "x", true); failed <- err }()
		synctest.Wait()
		waiting("late", false)
		if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gave up with %v", err)
		}
		wg.Wait()
		a()
		if len(ls.m) != 0 {
			t.Errorf("%d locks are left", len(ls.m))
		}
	})
}

// Many goroutines, one name: writers are alone, nobody is forgotten.
func TestLocksUnderLoad(t *testing.T) {
	var ls locks
	var readers, writers atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if j%7 == 0 {
					time.AfterFunc(time.Duration(j)*time.Microsecond, cancel)
				}
				write := (i+j)%3 == 0
				r, err := ls.acquire(ctx, "x", write)
				if err == nil {
					if write {
						if writers.Add(1) != 1 || readers.Load() != 0 {
							t.Error("a writer is not alone")
						}
						writers.Add(-1)
					} else {
						readers.Add(1)
						if writers.Load() != 0 {
							t.Error("a reader beside a writer")
						}
						readers.Add(-1)
					}
					r()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	if len(ls.m) != 0 {
		t.Errorf("%d locks are left", len(ls.m))
	}
}
