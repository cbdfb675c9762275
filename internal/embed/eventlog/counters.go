package eventlog

import (
	"cmp"
	"slices"
)

// CounterKey is what calls are counted by.
type CounterKey struct {
	Server  string `json:"server"`
	Service string `json:"service"`
	Method  string `json:"method"`
	Table   string `json:"table,omitempty"`
	Outcome string `json:"outcome"`
}

// Counter is the number of calls recorded under one key since the log was
// made; it never wraps and forgets nothing the ring has forgotten.
type Counter struct {
	CounterKey
	Calls uint64 `json:"calls"`
}

// otherTable stands for the tables that came after maxCounters keys.
const otherTable = "(other)"

// count is called with the lock held.
func (l *Log) count(e *Event) {
	k := CounterKey{e.Server, e.Service, e.Method, e.Table, e.Outcome}
	if _, ok := l.counters[k]; !ok && len(l.counters) >= maxCounters {
		k = CounterKey{Table: otherTable}
	}
	l.counters[k]++
}

// Count gives the number of calls recorded since the log was made that the
// filter chooses; of the filter, Server, Service, Method, Table, Outcome and
// Failed count.
func (l *Log) Count(f Filter) uint64 {
	var n uint64
	for _, c := range l.Counters() {
		e := Event{Kind: RPC, Server: c.Server, Service: c.Service, Method: c.Method, Table: c.Table, Outcome: c.Outcome}
		g := f
		g.Kind, g.Region, g.User, g.Rule = 0, "", "", 0
		if g.Match(&e) {
			n += c.Calls
		}
	}
	return n
}

// Counters gives all counters, sorted by key.
func (l *Log) Counters() []Counter {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	all := make([]Counter, 0, len(l.counters))
	for k, n := range l.counters {
		all = append(all, Counter{k, n})
	}
	l.mu.Unlock()
	slices.SortFunc(all, func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Method, b.Method), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Outcome, b.Outcome))
	})
	return all
}
