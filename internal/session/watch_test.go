package session

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
)

// downAfter freezes a server under steady load and tells when it is suspected
// and when it is down.
func downAfter(t *testing.T, delay time.Duration, edit ...func(*Config)) (suspect, down time.Duration) {
	c := newFake(t, 2)
	table := c.table("t")
	core := c.open(edit...)
	c.hook(func(q *query) *reply {
		if q.method == "Get" {
			return &reply{apply: true, delay: delay}
		}
		return nil
	})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, _, err := get(t.Context(), core, table, fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	time.Sleep(10 * time.Second)
	c.server(1).freeze()
	began := time.Now()
	s := core.Servers().Lookup("rs1:16020")
	for s.Usable() && time.Since(began) < time.Minute {
		if suspect == 0 && s.State() == health.Suspect {
			suspect = time.Since(began)
		}
		time.Sleep(time.Millisecond)
	}
	down = time.Since(began)
	close(stop)
	c.server(1).thaw()
	wg.Wait()
	return suspect, down
}

func TestSilenceIsNoticedEarly(t *testing.T) {
	for _, tc := range []struct {
		name            string
		delay           time.Duration
		ping            time.Duration // Config.PingAfter
		suspect0, down0 time.Duration // at least; the last answer may be one call old
		suspect1, down1 time.Duration // at most
	}{
		{"fast server", time.Millisecond, 0, 500 * time.Millisecond, 1500 * time.Millisecond, 800 * time.Millisecond, 1800 * time.Millisecond},
		{"server that takes 200 ms", 200 * time.Millisecond, 0, 600 * time.Millisecond, 2200 * time.Millisecond, 1500 * time.Millisecond, 3300 * time.Millisecond},
		{"server that takes a second", time.Second, 0, time.Second, 3 * time.Second, 3300 * time.Millisecond, 5300 * time.Millisecond},
		{"PingAfter 100 ms", time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 160 * time.Millisecond, 260 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				suspect, down := downAfter(t, tc.delay, func(cfg *Config) { cfg.PingAfter = tc.ping })
				if suspect < tc.suspect0 || suspect > tc.suspect1 || down < tc.down0 || down > tc.down1 {
					t.Errorf("suspected after %v (%v to %v), down after %v (%v to %v)", suspect, tc.suspect0, tc.suspect1, down, tc.down0, tc.down1)
				}
			})
		})
	}
}

// A pause as garbage collectors make them is no reason to give calls up.
func TestShortPausesAreNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newFake(t, 2)
		table := c.table("t")
		core := c.open()
		for range 100 {
			if _, _, err := get(t.Context(), core, table, "a"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		time.Sleep(3 * time.Second)
		c.forgetLog()
		var wg sync.WaitGroup
		c.server(1).freeze()
		for i := range 10 {
			wg.Go(func() {
				if _, a, err := get(t.Context(), core, table, fmt.Sprint(i)); err != nil || a.Attempts != 1 {
					t.Errorf("%d attempts, %v", a.Attempts, err)
				}
			})
		}
		time.Sleep(1400 * time.Millisecond)
		c.server(1).thaw()
		wg.Wait()
		if n := c.calls("Get", "t"); n != 10 {
			t.Errorf("%d Gets for 10 calls", n)
		}
	})
}
