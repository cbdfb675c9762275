package health

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Result says how a call ended, as far as the server's load is concerned.
type Result uint8

const (
	// OK: the server answered in earnest, with a result or with an error about
	// the request.
	OK Result = iota
	// Busy: the server turned the call away because it has too much to do.
	Busy
	// Lost: no answer, or the call was not sent; says nothing about load.
	Lost
)

// Acquire admits a call to the server. It gives a *DownError at once if the
// server is down, waits in the server's queue if too many calls are in flight,
// gives a *BusyError if the queue is full, and the context's error if that
// ends first. After nil, Release must be called exactly once.
func (s *Server) Acquire(ctx context.Context) error {
	if !s.Usable() {
		if err := s.Err(); err != nil {
			return err
		}
	}
	if s.limit.try() {
		return nil
	}
	return s.limit.wait(ctx, func() error {
		return &BusyError{Server: s.name, InFlight: int(s.limit.inflight.Load()), Queue: int(s.limit.waiting.Load())}
	})
}

// TryAcquire is Acquire without waiting: false if the server is down or has
// its fill.
func (s *Server) TryAcquire() bool { return s.Usable() && s.limit.try() }

// Release ends what Acquire began. took is the time the call took on the wire,
// used only for OK.
func (s *Server) Release(r Result, took time.Duration) {
	s.limit.done()
	switch r {
	case OK:
		s.limit.grow()
		s.latency.add(took)
		s.digest.add(took)
		s.Answered()
	case Busy:
		s.Overloaded()
		s.Answered()
	}
}

// Overloaded lowers the limit: some answer said that the server is too busy.
func (s *Server) Overloaded() {
	now := time.Now()
	s.limit.shed.Store(now.UnixNano())
	s.limit.cut(now)
}

// Latency gives the moving average of answered calls, 0 before the first.
func (s *Server) Latency() time.Duration { return s.latency.get() }

// Load tells the calls in flight, the present limit, and the calls waiting.
func (s *Server) Load() (inFlight, limit, waiting int) {
	return int(s.limit.inflight.Load()), int(s.limit.limit.Load()), int(s.limit.waiting.Load())
}

// ewma is an exponentially weighted moving average over about 16 samples. A
// sample that collides with another is dropped: an average can spare it.
type ewma struct{ bits atomic.Uint64 }

func (e *ewma) add(d time.Duration) {
	old := e.bits.Load()
	v := math.Float64frombits(old)
	if old == 0 {
		v = float64(d)
	} else {
		v += (float64(d) - v) / 16
	}
	e.bits.CompareAndSwap(old, math.Float64bits(v))
}

func (e *ewma) get() time.Duration { return time.Duration(math.Float64frombits(e.bits.Load())) }
