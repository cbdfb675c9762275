package eventlog

// Visit shows f the events after sequence number since, oldest first, at most
// limit of them (0 = all), without copying them; next is what to hand in as
// since the next time, lost how many events after since the ring has forgotten.
//
// f runs with the log's lock held, so every call that ends meanwhile waits: it
// must be quick, must not call the log, and must not keep e, whose Row is not
// set.
func (l *Log) Visit(since uint64, limit int, f func(e *Event)) (next, lost uint64) {
	if l == nil {
		return since, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first, lost := l.after(since)
	for seq := first; seq < l.next; seq++ {
		if limit > 0 && seq-first >= uint64(limit) {
			return seq - 1, lost
		}
		f(&l.ring[(seq-1)%uint64(cap(l.ring))].e)
	}
	return max(since, l.next-1), lost
}

// Newest gives the newest events after sequence number since that the filter
// chooses, oldest first, at most limit of them; older is how many more of those
// remembered it chooses, last the number of the newest event of all. Whoever
// watches a busy log calls it now and then: it costs the same however many
// events have passed.
func (l *Log) Newest(f Filter, since uint64, limit int) (events []Event, older int, last uint64) {
	if l == nil {
		return nil, 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first, _ := l.after(since)
	for seq := l.next - 1; seq >= first; seq-- {
		s := &l.ring[(seq-1)%uint64(cap(l.ring))]
		switch {
		case !f.Match(&s.e):
		case len(events) < limit:
			events = append(events, s.event())
		default:
			older++
		}
	}
	for i, j := 0, len(events)-1; i < j; i, j = i+1, j-1 {
		events[i], events[j] = events[j], events[i]
	}
	return events, older, l.next - 1
}

// after is the first number after since that the ring remembers, and how many
// before it are forgotten. Called with mu held.
func (l *Log) after(since uint64) (first, lost uint64) {
	first = 1
	if n := uint64(cap(l.ring)); l.next > n {
		first = l.next - n
	}
	if since+1 < first {
		return first, first - since - 1
	}
	return since + 1, 0
}
