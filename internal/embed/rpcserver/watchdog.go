package rpcserver

import "time"

// tick is how often the watchdog looks: a call that turns out slow holds up
// those behind it on its connection for two ticks at most. It is longer than
// the tick of common kernels, 4 ms: a timer due before that has the kernel set
// the clock's hardware each time the process waits for a request, which costs
// a lone Get a quarter of its time on this side.
const tick = 5 * time.Millisecond

// waryCalls is how many calls of a connection are not run inline after one that
// was slow: more of its kind may follow, and each would hold up others.
const waryCalls = 64

// idleTicks is how long the watchdog stays without inline calls.
const idleTicks = 40

// watch is called by a reader about to run a call inline, and sees to it that
// the watchdog runs.
func (s *Server) watch() {
	s.inlines.Add(1)
	if !s.watching.Load() && s.watching.CompareAndSwap(false, true) {
		s.wg.Add(1)
		go s.watchdog()
	}
}

// watchdog takes the role of reader away from goroutines that have been running
// one inline call since its last look. It ends after a while without inline
// calls; the next one starts it again.
//
// The role changes hands by a compare-and-swap on Conn.inline, which holds the
// number of the running inline call: the reader swaps it to 0 when done and
// goes on reading, the watchdog swaps it to 0 and starts another reader.
// Exactly one of them succeeds.
func (s *Server) watchdog() {
	defer s.wg.Done()
	t := time.NewTicker(tick)
	defer t.Stop()
	last, idle := s.inlines.Load(), 0
	seen := make(map[*Conn]uint64)
	for {
		select {
		case <-t.C:
		case <-s.ctx.Done():
			s.watching.Store(false)
			return
		}
		s.mu.Lock()
		for c := range s.conns {
			call := c.inline.Load()
			if call == 0 {
				delete(seen, c)
				continue
			}
			if seen[c] != call {
				seen[c] = call
				continue
			}
			delete(seen, c)
			if c.inline.CompareAndSwap(call, 0) {
				s.wg.Add(1)
				go func() {
					defer s.wg.Done()
					c.takeOver()
				}()
			}
		}
		s.mu.Unlock()
		if n := s.inlines.Load(); n != last || len(seen) > 0 {
			last, idle = n, 0
			continue
		}
		clear(seen)
		if idle++; idle >= idleTicks {
			s.watching.Store(false)
			// A reader may have counted its call and seen the watchdog on just
			// before; then this one goes on.
			if s.inlines.Load() == last || !s.watching.CompareAndSwap(false, true) {
				return
			}
			idle = 0
		}
	}
}
