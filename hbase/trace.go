package hbase

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Trace is a hook that remembers what the client did, as a timeline: make it
// with [NewTrace], give it to [WithHooks], make the call, print it.
//
//	trace := hbase.NewTrace(0)
//	client, err := hbase.Open(ctx, address, hbase.WithHooks(trace))
//	...
//	_, err = table.Get(ctx, get)
//	fmt.Print(trace)
//
// It holds a bounded number of entries, the first ones, and counts the rest.
// Safe for concurrent use. In a busy client, [Trace.Mark] picks the calls that
// are to be remembered.
type Trace struct {
	limit int

	mu      sync.Mutex
	began   time.Time // of the first entry
	calls   int
	marked  bool
	running int // marked operations under way
	entries []TraceEntry
	dropped int
	totals  TraceTotals
}

// TraceEntry is one line of a Trace.
type TraceEntry struct {
	// Kind is "call", "lookup", "attempt", "failure", "wait", "hedge", "scan",
	// "meta read", "dial", "hang up", "server" or "route".
	Kind string
	// Call numbers the operation from 1, in the order in which they began; 0 is
	// the client's own work, which it does for all of them.
	Call int
	// At is the time since the first entry, Took how long it lasted.
	At, Took time.Duration
	What     string
	Server   string
	// Err is what went wrong, Decision what the table of errors made of it.
	Err, Decision string

	when time.Time
}

// TraceTotals sums a Trace up.
type TraceTotals struct {
	Calls, Attempts, FailedAttempts, Failures, Waits, Lookups, MetaReads, Dials, Hedges int
	// Calling, Waiting, LookingUp and Dialing are sums over all calls; those of
	// calls that ran at one time overlap.
	Calling, Waiting, LookingUp, Dialing time.Duration
	RequestBytes, ResponseBytes          int
}

// DefaultTraceEntries is the bound of a Trace if none is given.
const DefaultTraceEntries = 1000

// NewTrace makes a Trace of at most that many entries; 0 means
// [DefaultTraceEntries].
func NewTrace(entries int) *Trace {
	if entries <= 0 {
		entries = DefaultTraceEntries
	}
	return &Trace{limit: entries}
}

type traceMark struct{ t *Trace }
type traceCall struct{ t *Trace }

// callInfo is what a context knows of its operation.
type callInfo struct{ n int }

// Mark gives a context whose calls are remembered. Once it has been used, other
// calls are not, and the client's own work (dials, reads of hbase:meta) only
// while a marked call is under way.
func (t *Trace) Mark(ctx context.Context) context.Context {
	t.mu.Lock()
	t.marked = true
	t.mu.Unlock()
	return context.WithValue(ctx, traceMark{t}, true)
}

// Reset forgets everything but the marks.
func (t *Trace) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.began, t.entries, t.dropped, t.calls, t.totals = time.Time{}, nil, 0, 0, TraceTotals{}
}

// add remembers an entry that began at when; count adds it to the totals.
func (t *Trace) add(ctx context.Context, when time.Time, e TraceEntry, count func(*TraceTotals)) {
	if c, ok := ctx.Value(traceCall{t}).(callInfo); ok {
		e.Call = c.n
	}
	t.note(when, e, count)
}

// note is add for what happens on behalf of no call in particular.
func (t *Trace) note(when time.Time, e TraceEntry, count func(*TraceTotals)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.marked && e.Call == 0 && t.running == 0 {
		return
	}
	if t.began.IsZero() || when.Before(t.began) {
		t.began = when
	}
	if count != nil {
		count(&t.totals)
	}
	if len(t.entries) >= t.limit {
		t.dropped++
		return
	}
	e.when = when
	t.entries = append(t.entries, e)
}

// OperationStart numbers the call.
func (t *Trace) OperationStart(ctx context.Context, o Operation) context.Context {
	if o.Internal {
		return ctx
	}
	t.mu.Lock()
	if t.marked && ctx.Value(traceMark{t}) == nil {
		t.mu.Unlock()
		// What it does is not to be taken for the client's own work.
		return context.WithValue(ctx, traceCall{t}, callInfo{-1})
	}
	t.calls++
	t.running++
	n := t.calls
	t.mu.Unlock()
	ctx = context.WithValue(ctx, traceCall{t}, callInfo{n})
	what := o.Name + " begins"
	if o.Timeout > 0 {
		what += ", " + shortly(o.Timeout) + " allowed"
	}
	t.add(ctx, o.Start, TraceEntry{Kind: "call", What: describeCall(o, what)}, func(s *TraceTotals) { s.Calls++ })
	return ctx
}

func describeCall(o Operation, what string) string {
	if !o.Table.IsZero() {
		what += ": table " + o.Table.String()
	}
	if len(o.Row) > 0 {
		what += `, row "` + cells.QuoteShort(o.Row, 64) + `"`
	}
	if o.Items > 1 {
		what += fmt.Sprintf(", %d items", o.Items)
	}
	return what
}

// skip says whether the context belongs to a call that is not remembered.
func (t *Trace) skip(ctx context.Context) bool {
	c, ok := ctx.Value(traceCall{t}).(callInfo)
	return ok && c.n < 0
}

// OperationEnd ends the call.
func (t *Trace) OperationEnd(ctx context.Context, o Operation, r OperationResult) {
	if o.Internal || t.skip(ctx) {
		return
	}
	what := fmt.Sprintf("%s ends after %d attempts", o.Name, r.Attempts)
	if r.Attempts == 1 {
		what = o.Name + " ends after 1 attempt"
	}
	if r.Failed > 0 {
		what += fmt.Sprintf(", %d of %d items failed", r.Failed, o.Items)
	}
	e := TraceEntry{Kind: "call", What: what}
	if r.Err != nil {
		e.Err = firstLine(r.Err)
	}
	t.add(ctx, o.Start.Add(r.Took), e, nil)
	t.mu.Lock()
	t.running--
	t.mu.Unlock()
}

// AttemptStart does nothing.
func (t *Trace) AttemptStart(ctx context.Context, _ Attempt) context.Context { return ctx }

// AttemptEnd remembers a request.
func (t *Trace) AttemptEnd(ctx context.Context, a Attempt, r AttemptResult) {
	if t.skip(ctx) {
		return
	}
	what := fmt.Sprintf("attempt %d: %s", a.Number, a.Method)
	switch {
	case a.Region != "":
		what += " region " + a.Region
	case a.Regions > 1:
		what += fmt.Sprintf(" on %d regions", a.Regions)
	}
	if a.Replica > 0 {
		what += fmt.Sprintf(" replica %d", a.Replica)
	}
	if a.Items > 1 {
		what += fmt.Sprintf(", %d items", a.Items)
	}
	if a.Timeout > 0 {
		what += ", within " + shortly(a.Timeout)
	}
	what += fmt.Sprintf(", %d B", a.RequestBytes)
	e := TraceEntry{Kind: "attempt", Took: r.Took, Server: a.Server.String(), Decision: r.Decision.String()}
	if r.Err != nil {
		e.Err = firstLine(r.Err)
		if !r.Sent {
			what += ", not sent"
		}
	} else {
		what += fmt.Sprintf(" for %d B", r.ResponseBytes)
	}
	e.What = what
	t.add(ctx, a.Start, e, func(s *TraceTotals) {
		s.Attempts++
		if r.Err != nil {
			s.FailedAttempts++
		}
		s.Calling += r.Took
		s.RequestBytes += a.RequestBytes
		s.ResponseBytes += r.ResponseBytes
	})
}

// Failure remembers what failed before there was a request.
func (t *Trace) Failure(ctx context.Context, f Failure) {
	if t.skip(ctx) {
		return
	}
	e := TraceEntry{Kind: "failure", What: "nothing sent", Err: firstLine(f.Err), Decision: f.Decision.String()}
	if !f.Server.IsZero() {
		e.Server = f.Server.String()
	}
	t.add(ctx, f.At, e, func(s *TraceTotals) { s.Failures++ })
}

// Waited remembers a pause.
func (t *Trace) Waited(ctx context.Context, w Wait) {
	if t.skip(ctx) {
		return
	}
	what := "wait: " + w.Class
	if w.Planned-w.Took > time.Millisecond {
		what += " (of " + shortly(w.Planned) + ")"
	}
	t.add(ctx, w.Start, TraceEntry{Kind: "wait", Took: w.Took, What: what}, func(s *TraceTotals) { s.Waits++; s.Waiting += w.Took })
}

// LookedUp remembers the wait for a route.
func (t *Trace) LookedUp(ctx context.Context, l Lookup) {
	if t.skip(ctx) {
		return
	}
	e := TraceEntry{Kind: "lookup", Took: l.Took, What: "lookup"}
	switch {
	case l.Err != nil:
		e.Err = firstLine(l.Err)
	case l.Rows > 1:
		e.What = fmt.Sprintf("lookup of %d rows", l.Rows)
	default:
		e.What = "lookup: region " + l.Region
		e.Server = l.Server.String()
	}
	t.add(ctx, l.Start, e, func(s *TraceTotals) { s.Lookups++; s.LookingUp += l.Took })
}

// Hedged remembers a read that was asked in several places.
func (t *Trace) Hedged(ctx context.Context, h Hedge) {
	if t.skip(ctx) {
		return
	}
	e := TraceEntry{Kind: "hedge", What: fmt.Sprintf("%d places asked, the second after %s", h.Replicas, shortly(h.After))}
	if h.Err != nil {
		e.Err = firstLine(h.Err)
	} else {
		e.What += fmt.Sprintf("; replica %d answered", h.Replica)
		e.Server = h.Server.String()
	}
	t.add(ctx, time.Now(), e, func(s *TraceTotals) { s.Hedges++ })
}

// MetaRead remembers a read of hbase:meta.
func (t *Trace) MetaRead(_ context.Context, m MetaRead) {
	e := TraceEntry{Kind: "meta read", Took: m.Took, What: fmt.Sprintf("hbase:meta, %s: %d rows found", m.Kind, m.Found)}
	if m.Kind == "registry" {
		e.What = "ask the registry where hbase:meta is"
	}
	if !m.Server.IsZero() {
		e.Server = m.Server.String()
	}
	if m.Err != nil {
		e.Err = firstLine(m.Err)
	}
	t.note(m.Start, e, func(s *TraceTotals) { s.MetaReads++ })
}

// ServerChanged remembers a server's new state.
func (t *Trace) ServerChanged(s ServerEvent) {
	e := TraceEntry{Kind: "server", Server: s.Server.String(), What: "server " + s.From.String() + " -> " + s.To.String()}
	if s.Cause != nil {
		e.Err = firstLine(s.Cause)
	}
	t.note(s.At, e, nil)
}

// RouteChanged remembers a route's change.
func (t *Trace) RouteChanged(r RouteEvent) {
	e := TraceEntry{Kind: "route", What: "route " + r.Change.String()}
	if r.Region != "" {
		e.What += ": region " + r.Region
	} else if !r.Table.IsZero() {
		e.What += ": " + r.Table.String()
	}
	if !r.From.IsZero() {
		e.What += ", from " + r.From.String()
	}
	if !r.To.IsZero() {
		e.Server = r.To.String()
	}
	t.note(r.At, e, nil)
}

// ConnDialed remembers a dial.
func (t *Trace) ConnDialed(c Conn) {
	e := TraceEntry{Kind: "dial", Took: c.Took, What: "dial " + c.Addr + " for " + c.Service}
	if c.Err != nil {
		e.Err = firstLine(c.Err)
	}
	t.note(c.Start, e, func(s *TraceTotals) { s.Dials++; s.Dialing += c.Took })
}

// ConnClosed remembers the end of a connection.
func (t *Trace) ConnClosed(c Conn) {
	e := TraceEntry{Kind: "hang up", What: "connection to " + c.Addr + " for " + c.Service + " ends"}
	if c.Err != nil {
		e.Err = firstLine(c.Err)
	}
	t.note(c.Start.Add(c.Took), e, nil)
}

// ScanStart does nothing: the steps of a scan are calls of their own.
func (t *Trace) ScanStart(ctx context.Context, _ ScanInfo) context.Context { return ctx }

// ScanEvent remembers what happened to a scan between its calls.
func (t *Trace) ScanEvent(ctx context.Context, _ ScanInfo, s ScanEvent) {
	t.mu.Lock()
	out := t.marked && ctx.Value(traceMark{t}) == nil
	t.mu.Unlock()
	if out {
		return
	}
	e := TraceEntry{Kind: "scan", Took: s.Took, What: "scan: " + s.Kind.String()}
	if s.Kind == ScanRegionEntered {
		e.What += fmt.Sprintf(` from "%s" to "%s"`, cells.QuoteShort(s.RegionStart, 32), cells.QuoteShort(s.RegionEnd, 32))
	}
	if s.Err != nil {
		e.Err = firstLine(s.Err)
	}
	t.add(ctx, s.At.Add(-s.Took), e, nil)
}

// ScanEnd remembers the end of a scan.
func (t *Trace) ScanEnd(ctx context.Context, s ScanInfo, r ScanResult) {
	t.mu.Lock()
	out := t.marked && ctx.Value(traceMark{t}) == nil
	t.mu.Unlock()
	if out {
		return
	}
	e := TraceEntry{Kind: "scan", What: fmt.Sprintf("scan ends: %d results in %d requests, %d regions, reopened %d times", r.Rows, r.Stats.RPCs, r.Stats.Regions, r.Stats.Reopened)}
	if r.Err != nil {
		e.Err = firstLine(r.Err)
	}
	t.add(ctx, s.Start.Add(r.Took), e, nil)
}

// Entries gives what is remembered, in the order in which it began, and how
// many entries did not find room.
func (t *Trace) Entries() (entries []TraceEntry, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.entries)
	for i := range list {
		list[i].At = list[i].when.Sub(t.began)
	}
	slices.SortStableFunc(list, func(a, b TraceEntry) int { return cmp.Compare(a.At, b.At) })
	return list, t.dropped
}

// Totals sums up, entries included that found no room.
func (t *Trace) Totals() TraceTotals {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.totals
}

// String prints the timeline: when something began, how long it took, both in
// milliseconds, and the totals.
func (t *Trace) String() string {
	entries, dropped := t.Entries()
	totals := t.Totals()
	several := totals.Calls > 1
	var b strings.Builder
	for _, e := range entries {
		took := ""
		if e.Took > 0 {
			took = fmt.Sprintf("+%.2f", millis(e.Took))
		}
		fmt.Fprintf(&b, "%10.2f  %9s  ", millis(e.At), took)
		if several {
			who := "-"
			if e.Call > 0 {
				who = fmt.Sprintf("#%d", e.Call)
			}
			fmt.Fprintf(&b, "%-4s ", who)
		}
		if e.Call == 0 {
			b.WriteString("  ")
		}
		b.WriteString(e.What)
		if e.Server != "" {
			b.WriteString(" at " + e.Server)
		}
		b.WriteByte('\n')
		indent := strings.Repeat(" ", 25)
		if several {
			indent += strings.Repeat(" ", 5)
		}
		if e.Err != "" {
			b.WriteString(indent + "error: " + e.Err + "\n")
		}
		if e.Decision != "" {
			b.WriteString(indent + "so: " + e.Decision + "\n")
		}
	}
	if dropped > 0 {
		fmt.Fprintf(&b, "%d more entries found no room\n", dropped)
	}
	fmt.Fprintf(&b, "\n%d calls, %d attempts (%d failed), %d failures before a request, %d waits, %d lookups, %d reads of hbase:meta and the registry, %d dials\n",
		totals.Calls, totals.Attempts, totals.FailedAttempts, totals.Failures, totals.Waits, totals.Lookups, totals.MetaReads, totals.Dials)
	fmt.Fprintf(&b, "calling %.2f ms, waiting %.2f ms, looking up %.2f ms, dialing %.2f ms; %d B sent, %d B received\n",
		millis(totals.Calling), millis(totals.Waiting), millis(totals.LookingUp), millis(totals.Dialing), totals.RequestBytes, totals.ResponseBytes)
	return b.String()
}

// MarshalJSON gives {"entries": [...], "dropped": n, "totals": {...}}, times in
// milliseconds.
func (t *Trace) MarshalJSON() ([]byte, error) {
	type entry struct {
		Kind     string  `json:"kind"`
		Call     int     `json:"call"`
		AtMs     float64 `json:"atMs"`
		TookMs   float64 `json:"tookMs"`
		What     string  `json:"what"`
		Server   string  `json:"server,omitempty"`
		Error    string  `json:"error,omitempty"`
		Decision string  `json:"decision,omitempty"`
	}
	list, dropped := t.Entries()
	s := t.Totals()
	doc := struct {
		Entries []entry        `json:"entries"`
		Dropped int            `json:"dropped"`
		Totals  map[string]any `json:"totals"`
	}{Entries: make([]entry, 0, len(list)), Dropped: dropped, Totals: map[string]any{
		"calls": s.Calls, "attempts": s.Attempts, "failedAttempts": s.FailedAttempts, "failures": s.Failures, "waits": s.Waits,
		"lookups": s.Lookups, "metaReads": s.MetaReads, "dials": s.Dials, "hedges": s.Hedges,
		"callingMs": millis(s.Calling), "waitingMs": millis(s.Waiting), "lookingUpMs": millis(s.LookingUp), "dialingMs": millis(s.Dialing),
		"requestBytes": s.RequestBytes, "responseBytes": s.ResponseBytes,
	}}
	for _, e := range list {
		doc.Entries = append(doc.Entries, entry{e.Kind, e.Call, millis(e.At), millis(e.Took), e.What, e.Server, e.Err, e.Decision})
	}
	return json.Marshal(doc)
}
