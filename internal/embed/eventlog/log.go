package eventlog

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// DefaultCapacity is the number of events a Log keeps unless told otherwise:
// about 3 MB, some seconds of full load.
const DefaultCapacity = 8192

// maxCounters bounds the counters; tables made and dropped for ever would fill
// memory otherwise. Beyond it, calls are counted under table "(other)".
const maxCounters = 1 << 14

// Options configure a Log.
type Options struct {
	// Capacity is the number of events kept; 0 means DefaultCapacity.
	Capacity int
	// Off starts the log switched off.
	Off bool
	// Now is the clock of cluster events; nil means time.Now.
	Now func() time.Time
}

// Log is the ring buffer. Make one with New; a nil *Log records nothing.
type Log struct {
	on  atomic.Bool
	now func() time.Time

	mu       sync.Mutex
	ring     []slot
	next     uint64 // sequence number of the next event
	counters map[CounterKey]uint64
	subs     map[*Subscription]struct{}
	// changed is closed and replaced when an event arrives and somebody waits.
	changed chan struct{}
	waiters int
}

type slot struct {
	e   Event // Row is kept in row
	row [MaxRow]byte
	n   uint8
}

// New makes a log.
func New(o Options) *Log {
	if o.Capacity <= 0 {
		o.Capacity = DefaultCapacity
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Log{
		now:      o.Now,
		ring:     make([]slot, 0, min(o.Capacity, 256)),
		next:     1,
		counters: make(map[CounterKey]uint64),
		subs:     make(map[*Subscription]struct{}),
		changed:  make(chan struct{}),
	}
	l.capacity(o.Capacity)
	l.on.Store(!o.Off)
	return l
}

// capacity fixes the ring's size; the slots are made as they fill, so that an
// idle cluster pays nothing for them.
func (l *Log) capacity(n int) { l.ring = append(make([]slot, 0, n), l.ring...) }

// SetEnabled switches recording on or off; what is recorded stays.
func (l *Log) SetEnabled(on bool) {
	if l != nil {
		l.on.Store(on)
	}
}

// Enabled says whether events are recorded: callers that need effort to make
// an event ask first.
func (l *Log) Enabled() bool { return l != nil && l.on.Load() }

// Record stores a copy of e with the next sequence number.
func (l *Log) Record(e *Event) {
	if !l.Enabled() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var s *slot
	if i := int((l.next - 1) % uint64(cap(l.ring))); i < len(l.ring) {
		s = &l.ring[i]
	} else {
		l.ring = l.ring[:i+1]
		s = &l.ring[i]
	}
	s.e = *e
	s.n = uint8(copy(s.row[:], e.Row))
	s.e.Row = nil
	s.e.Seq = l.next
	l.next++
	if e.Kind == RPC {
		l.count(e)
	}
	if len(l.subs) > 0 {
		for sub := range l.subs {
			sub.offer(s)
		}
	}
	if l.waiters > 0 {
		close(l.changed)
		l.changed = make(chan struct{})
		l.waiters = 0
	}
}

// Cluster records a cluster event at the log's clock. Fields of e besides Kind
// and Time are kept.
func (l *Log) Cluster(e Event) {
	if !l.Enabled() {
		return
	}
	e.Kind = Cluster
	e.Time = l.now()
	l.Record(&e)
}

// event copies the slot's event out.
func (s *slot) event() Event {
	e := s.e
	if s.n > 0 {
		e.Row = append([]byte(nil), s.row[:s.n]...)
	}
	return e
}

// LastSeq is the sequence number of the newest event, 0 if there is none.
func (l *Log) LastSeq() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next - 1
}

// Query gives the events after sequence number since that the filter chooses,
// oldest first, at most limit of them (0 = all). lost is the number of events
// after since that the ring has forgotten, whatever the filter says of them.
func (l *Log) Query(f Filter, since uint64, limit int) (events []Event, lost uint64) {
	if l == nil {
		return nil, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := uint64(1)
	if n := uint64(cap(l.ring)); l.next > n {
		first = l.next - n
	}
	if since+1 < first {
		lost = first - since - 1
	} else {
		first = since + 1
	}
	for seq := first; seq < l.next; seq++ {
		s := &l.ring[(seq-1)%uint64(cap(l.ring))]
		if !f.Match(&s.e) {
			continue
		}
		events = append(events, s.event())
		if limit > 0 && len(events) == limit {
			break
		}
	}
	return events, lost
}

// Wait returns once at least n events after since match the filter, with those
// events, or with the context's error and what there is.
func (l *Log) Wait(ctx context.Context, f Filter, since uint64, n int) ([]Event, error) {
	for {
		var changed <-chan struct{}
		if l != nil {
			l.mu.Lock()
			changed = l.changed
			l.waiters++
			l.mu.Unlock()
		}
		events, _ := l.Query(f, since, 0)
		if len(events) >= n {
			return events, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return events, ctx.Err()
		}
	}
}
