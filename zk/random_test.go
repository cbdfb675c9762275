package zk_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver/memnet"
	"github.com/holdfast-hbase/holdfast/zk"
)

// TestRandomFaults runs an ensemble through minutes of random faults on virtual time, no one of them as long as the session's budget allows, and checks:
// the session is never lost; acknowledged writes are there, exactly once; calls that say they were not sent were not; every watch
// leads to the newest value. The seed of a failing run is in its name.
func TestRandomFaults(t *testing.T) {
	runs := 6
	if testing.Short() {
		runs = 3
	}
	for seed := range uint64(runs) {
		t.Run("seed "+strconv.FormatUint(seed, 10), func(t *testing.T) {
			inWorld(t, 3, zkserver.Config{SeparateWatchModes: seed%2 == 1}, func(t *testing.T, w *world) { randomRun(t, w, seed) })
		})
	}
}

func randomRun(t *testing.T, w *world, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 42))
	cfg := w.config(12 * time.Second)
	cfg.Rand = rand.New(rand.NewPCG(seed, 43)).Float64 // only the loop and one connector at a time use it
	cfg.KeepOrder = false
	w.open(cfg)
	w.ephemeral()
	id := w.c.SessionID()
	if _, err := w.c.Create(t.Context(), "/c", []byte("0"), zk.PersistentNode, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context()) // of the watchers
	defer cancel()
	writing, stopWriting := context.WithCancel(t.Context())
	defer stopWriting()
	var wg, writers sync.WaitGroup

	// Four writers add one by compare and set.
	var mu sync.Mutex
	acked, unknown := 0, 0
	for range 4 {
		limits := rand.New(rand.NewPCG(seed, rng.Uint64()))
		writers.Go(func() {
			for writing.Err() == nil {
				call, stop := context.WithTimeout(writing, time.Duration(1+limits.IntN(8000))*time.Millisecond)
				data, stat, err := w.c.Get(call, "/c")
				if err == nil {
					n, _ := strconv.Atoi(string(data))
					_, err = w.c.Set(call, "/c", []byte(strconv.Itoa(n+1)), stat.Version)
				}
				stop()
				var oe *zk.OpError
				mu.Lock()
				switch {
				case err == nil:
					acked++
				case errors.As(err, &oe) && oe.MaybeApplied:
					unknown++
				case errors.Is(err, zk.ErrBadVersion), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
				default:
					t.Error(err)
				}
				mu.Unlock()
				select {
				case <-time.After(time.Duration(limits.IntN(200)) * time.Millisecond):
				case <-writing.Done():
				}
			}
		})
	}
	// One follower by one-shot watches, one by a persistent watch.
	seen := make([]string, 2)
	wg.Go(func() {
		for ctx.Err() == nil {
			data, _, watch, err := w.c.GetW(ctx, "/c")
			if err != nil {
				continue
			}
			mu.Lock()
			seen[0] = string(data)
			mu.Unlock()
			select {
			case <-watch.C():
			case <-ctx.Done():
				watch.Cancel()
			}
		}
	})
	persistent, err := w.c.AddWatch(ctx, "/c", zk.Persistent)
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		for range persistent.Events(ctx) {
			data, _, err := w.c.Get(ctx, "/c")
			mu.Lock()
			if err == nil {
				seen[1] = string(data)
			}
			mu.Unlock()
		}
	})

	for range 60 {
		heal := func() {}
		i := rng.IntN(3)
		length := time.Duration(rng.IntN(3500)) * time.Millisecond
		switch rng.IntN(9) {
		case 0, 1:
			f := zkserver.Fault{Mode: zkserver.Mode(1 + rng.IntN(7))}
			w.fault(i, f)
			heal = func() { w.fault(i, zkserver.Fault{}) }
		case 2:
			w.fault(i, zkserver.Fault{Truncate: 1 + rng.IntN(30)})
			heal = func() { w.fault(i, zkserver.Fault{}) }
		case 3:
			w.fault(i, zkserver.Fault{HangAfter: 1 + rng.IntN(5)})
			heal = func() { w.fault(i, zkserver.Fault{}) }
		case 4:
			w.fault(i, zkserver.Fault{Latency: time.Duration(rng.IntN(1500)) * time.Millisecond, StallPings: rng.IntN(2) == 0})
			heal = func() { w.fault(i, zkserver.Fault{}) }
		case 5:
			w.net.SetFault(w.addrs[i], memnet.Fault(1+rng.IntN(2)))
			heal = func() { w.net.SetFault(w.addrs[i], memnet.None) }
		case 6:
			w.s.DropConnections()
		case 7:
			w.s.MoveSession(id)
		case 8: // all at once
			for j := range 3 {
				w.fault(j, zkserver.Fault{Mode: zkserver.Mode(1 + rng.IntN(7))})
			}
			heal = func() { w.s.Resume() }
		}
		time.Sleep(length)
		heal()
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond)
	}
	time.Sleep(5 * time.Second)
	stopWriting()
	writers.Wait()
	time.Sleep(10 * time.Second)
	cancel()
	wg.Wait()
	w.sameSession(id)
	data, _, err := w.c.Get(t.Context(), "/c")
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(string(data))
	if n < acked || n > acked+unknown {
		t.Errorf("the counter is %d; %d increments were acknowledged and %d are unknown", n, acked, unknown)
	}
	if seen[0] != string(data) || seen[1] != string(data) {
		t.Errorf("the counter is %s; the one-shot watches led to %s, the persistent watch to %s", data, seen[0], seen[1])
	}
	if acked < 100 {
		t.Errorf("only %d increments in the whole run", acked)
	}
	t.Logf("%d acknowledged, %d unknown, %d attempts to connect", acked, unknown, w.net.Dials(w.addrs[0])+w.net.Dials(w.addrs[1])+w.net.Dials(w.addrs[2]))
}
