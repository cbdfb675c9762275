package torture

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Failure is a call that ended with an error.
type Failure struct {
	Kind Kind
	What string
	// During is the event it ended in, At when that was, from the start.
	During   string
	At, Took time.Duration
	// Late is how long after its deadline the call returned, if positive.
	Late time.Duration
	Err  error
}

// EventReport is what one event did to the load.
type EventReport struct {
	Event Event
	Text  string
	// At is when it began, from the start of the load; Took how long the
	// cluster needed for it.
	At, Took time.Duration
	// Calls that ended during the event or before the next one.
	Calls int64
	// Longest call of each kind, and of all.
	Longest [kinds]time.Duration
	Slowest time.Duration
	// Gap is the longest time in which no call at all ended.
	Gap time.Duration
	// MetaReads are the calls on hbase:meta, if they are Counted.
	MetaReads uint64
	Counted   bool

	metaBefore uint64
}

// String is one line.
func (e *EventReport) String() string {
	return fmt.Sprintf("%s of %s at %v", e.Event, e.Text, e.At.Round(time.Millisecond))
}

// Latency of one kind of call over the whole run.
type Latency struct {
	Calls         int64
	P50, P99, Max time.Duration
}

// Report is the outcome of a run.
type Report struct {
	Cluster string
	Seed    uint64
	Length  time.Duration
	Workers int
	Events  []EventReport
	Kinds   [kinds]Latency
	// Sums over all counters.
	Acknowledged, Started, Stored int64
	// Failures are calls that ended with an error, Violations answers that
	// cannot be right; at most 50 of both are kept, More counts the others.
	Failures   []Failure
	Violations []string
	More       int
}

// Err is nil if nothing went wrong.
func (r *Report) Err() error {
	var errs []error
	for _, v := range r.Violations {
		errs = append(errs, errors.New(v))
	}
	for _, f := range r.Failures {
		errs = append(errs, fmt.Errorf("%s %s during %s failed at %v after %v: %w", f.Kind, f.What, f.During, f.At.Round(time.Millisecond), f.Took.Round(time.Millisecond), f.Err))
	}
	if r.More > 0 {
		errs = append(errs, fmt.Errorf("and %d more", r.More))
	}
	if r.Stored < r.Acknowledged {
		errs = append(errs, fmt.Errorf("%d increments acknowledged, %d stored", r.Acknowledged, r.Stored))
	}
	return errors.Join(errs...)
}

// Slowest is the longest call during events of a kind.
func (r *Report) Slowest(kind Event) time.Duration {
	var d time.Duration
	for _, e := range r.Events {
		if e.Event == kind {
			d = max(d, e.Slowest)
		}
	}
	return d
}

// Meta is the number of meta reads during events of a kind.
func (r *Report) Meta(kind Event) (n uint64) {
	for _, e := range r.Events {
		if e.Event == kind {
			n += e.MetaReads
		}
	}
	return n
}

// String is the report for people.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d workers for %v, seed %d\n", r.Cluster, r.Workers, r.Length.Round(time.Millisecond), r.Seed)
	fmt.Fprintf(&b, "increments acknowledged %d, stored %d; failures %d, wrong answers %d, more %d\n", r.Acknowledged, r.Stored, len(r.Failures), len(r.Violations), r.More)
	for k, l := range r.Kinds {
		fmt.Fprintf(&b, "%-10s %7d calls, p50 %v, p99 %v, longest %v\n", Kind(k), l.Calls, round(l.P50), round(l.P99), round(l.Max))
	}
	fmt.Fprintf(&b, "%8s %-8s %9s %9s %9s %9s %9s %5s  %s\n", "at", "event", "took", "increment", "get", "scan", "gap", "meta", "")
	for _, e := range r.Events {
		meta := "-"
		if e.Counted {
			meta = fmt.Sprint(e.MetaReads)
		}
		fmt.Fprintf(&b, "%8v %-8s %9v %9v %9v %9v %9v %5s  %s\n", round(e.At), e.Event, round(e.Took),
			round(e.Longest[Increment]), round(e.Longest[Get]), round(e.Longest[Scan]), round(e.Gap), meta, e.Text)
	}
	return b.String()
}

func round(d time.Duration) time.Duration {
	switch {
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d > 10*time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// report sums the lanes up, when all workers have ended.
func (r *run) report() *Report {
	rec := r.rec
	rep := &Report{Cluster: r.cfg.Cluster.String(), Seed: r.cfg.Seed, Length: time.Since(r.began), Workers: r.cfg.Workers,
		Failures: rec.failed, Violations: rec.wrong, More: rec.more}
	var hists [kinds]histogram
	for i, e := range rec.events {
		for w := range rec.lanes {
			t := &rec.lanes[w].events[i]
			e.Gap = max(e.Gap, t.gap)
			for k := range kinds {
				e.Calls += t.calls[k]
				e.Longest[k] = max(e.Longest[k], t.longest[k])
				e.Slowest = max(e.Slowest, t.longest[k])
				rep.Kinds[k].Calls += t.calls[k]
				for j, n := range t.hist[k] {
					hists[k][j] += n
				}
			}
		}
		rep.Events = append(rep.Events, *e)
	}
	for k := range kinds {
		l := &rep.Kinds[k]
		l.P50, l.P99 = hists[k].quantile(0.5), hists[k].quantile(0.99)
		for _, e := range rep.Events {
			l.Max = max(l.Max, e.Longest[k])
		}
	}
	return rep
}
