package eventlog

import (
	"sync"
	"sync/atomic"
)

// DefaultBuffer is the number of events a subscription holds for its reader
// unless told otherwise.
const DefaultBuffer = 256

// Subscription delivers events as they are recorded.
type Subscription struct {
	// C carries the events. It is closed by Close.
	C <-chan Event

	c       chan Event
	filter  Filter
	log     *Log
	dropped atomic.Uint64
	once    sync.Once
}

// Subscribe delivers the events recorded from now on that the filter chooses.
// A reader that falls behind by more than buffer events (0 = DefaultBuffer)
// loses the newer ones; see Dropped. Close it when done.
func (l *Log) Subscribe(f Filter, buffer int) *Subscription {
	if buffer <= 0 {
		buffer = DefaultBuffer
	}
	c := make(chan Event, buffer)
	s := &Subscription{C: c, c: c, filter: f, log: l}
	if l != nil {
		l.mu.Lock()
		l.subs[s] = struct{}{}
		l.mu.Unlock()
	}
	return s
}

// offer is called with the log's lock held, so it never runs after Close.
func (s *Subscription) offer(sl *slot) {
	if !s.filter.Match(&sl.e) {
		return
	}
	select {
	case s.c <- sl.event():
	default:
		s.dropped.Add(1)
	}
}

// Dropped is the number of events the reader lost by being slow.
func (s *Subscription) Dropped() uint64 { return s.dropped.Load() }

// Close ends the subscription and closes C. Calling it twice is harmless.
func (s *Subscription) Close() {
	s.once.Do(func() {
		if l := s.log; l != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			delete(l.subs, s)
		}
		close(s.c)
	})
}
