package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

type fakeLocate struct {
	final bool
	after time.Duration
	inner error
}

func (fakeLocate) Error() string                         { return "locate" }
func (e fakeLocate) LocateFailed() (bool, time.Duration) { return e.final, e.after }
func (e fakeLocate) Unwrap() error                       { return e.inner }
func dialFailed() error {
	return &rpc.DialError{Addr: "rs1:16020", Cause: errors.New("connection refused")}
}
func broken(sent bool) error    { return &rpc.ConnError{Addr: "rs1:16020", Cause: io.EOF, Sent: sent} }
func remote(class string) error { return wire.NewRemoteError(class, "text") }
func moved() error {
	return wire.NewRegionMoved(wire.MovedTo{Host: "rs2", Port: 16020, StartCode: 7, SeqNum: 12})
}
func throttled(d time.Duration) error { return wire.NewThrottling("number of requests exceeded", d) }
func flagged(class string, dnr, overloaded bool) error {
	return &wire.RemoteError{Class: class, DoNotRetry: dnr, Overloaded: overloaded}
}

// Row by row, as docs/design/routing.md has it.
func TestClassify(t *testing.T) {
	retriable := func(r RouteAction, s ServerAction, w Class) Decision {
		return Decision{Route: r, Server: s, Wait: w, Retriable: true}
	}
	final := Decision{}
	with := func(d Decision, f func(*Decision)) Decision { f(&d); return d }
	applied := func(d Decision) Decision { d.MaybeApplied = true; return d }
	unknown := Decision{MaybeApplied: true, UnknownOutcome: true}
	findMaster := func(d Decision) Decision { d.FindMaster = true; return d }

	rows := []struct {
		name string
		err  error
		at   Attempt
		want Decision
		rule string
	}{
		{"moved with hint", moved(), Attempt{}, retriable(Replace, Unconcerned, NoWait), ruleMoved},
		{"moved, third hint", moved(), Attempt{Hints: 2}, retriable(Replace, Unconcerned, NoWait), ruleMoved},
		{"moved, too many hints", moved(), Attempt{Hints: 3}, retriable(Reject, Unconcerned, Relocate), ruleMoved},
		{"moved without hint", remote(wire.ClassRegionMoved), Attempt{}, retriable(Reject, Unconcerned, Relocate), ruleMoved},
		{"not serving", remote(wire.ClassNotServingRegion), Attempt{}, retriable(Reject, Unconcerned, Relocate), ruleNotServing},
		{"not serving, unsafe request", remote(wire.ClassNotServingRegion), Attempt{Idempotency: Unsafe}, retriable(Reject, Unconcerned, Relocate), ruleNotServing},
		{"region offline", remote(wire.ClassRegionOffline), Attempt{}, retriable(Reject, Unconcerned, Relocate), ruleNotServing},
		{"opening", remote(wire.ClassRegionOpening), Attempt{}, retriable(Reject, Unconcerned, Relocate), "region opening"},
		{"wrong region", remote(wire.ClassWrongRegion), Attempt{}, retriable(Reject, Unconcerned, Relocate), "wrong region"},
		{"region busy", remote(wire.ClassRegionTooBusy), Attempt{}, retriable(Keep, Unconcerned, RegionBusy), "region busy"},
		{"call queue too big", remote(wire.ClassCallQueueTooBig), Attempt{}, with(retriable(Keep, Overloaded, ServerBusy), func(d *Decision) { d.Deferred = true }), ruleOverloaded},
		{"call dropped, third in a row", remote(wire.ClassCallDropped), Attempt{Busy: 2}, with(retriable(Recheck, Overloaded, ServerBusy), func(d *Decision) { d.Deferred = true }), ruleOverloaded},
		{"overloaded flag of an unknown class", flagged("x.Y", false, true), Attempt{}, with(retriable(Keep, Overloaded, ServerBusy), func(d *Decision) { d.Deferred = true }), ruleOverloaded},
		{"region busy with the overloaded flag stays region busy", flagged(wire.ClassRegionTooBusy, false, true), Attempt{}, retriable(Keep, Unconcerned, RegionBusy), "region busy"},
		{"throttled", throttled(3 * time.Second), Attempt{}, with(retriable(Keep, Unconcerned, Throttled), func(d *Decision) { d.Hint = 3 * time.Second }), ruleThrottled},
		{"throttled by 1.x, with a wait", &wire.RemoteError{Class: wire.ClassThrottling, DoNotRetry: true, ThrottleWait: time.Second}, Attempt{}, with(retriable(Keep, Unconcerned, Throttled), func(d *Decision) { d.Hint = time.Second }), ruleThrottled},
		{"throttled by 1.x, no wait", remote(wire.ClassThrottling), Attempt{}, final, ruleThrottled},
		{"quota exceeded", remote(wire.ClassQuotaExceeded), Attempt{}, final, ruleDoNotRetry},
		{"server stopped", remote(wire.ClassRegionServerStopped), Attempt{}, retriable(Keep, MarkDown, Reconnect), "server stopped"},
		{"server aborted", remote(wire.ClassRegionServerAborted), Attempt{}, retriable(Keep, MarkDown, Reconnect), "server stopped"},
		{"server not running yet", remote(wire.ClassServerNotRunningYet), Attempt{}, retriable(Keep, MarkDown, Reconnect), "server stopped"},
		{"master not running yet", remote(wire.ClassServerNotRunningYet), Attempt{Master: true}, findMaster(retriable(Keep, MarkDown, MasterUnavailable)), "server stopped"},
		{"please hold", remote(wire.ClassPleaseHold), Attempt{Master: true}, findMaster(retriable(Keep, Unconcerned, MasterUnavailable)), "master not there"},
		{"master not running", remote(wire.ClassMasterNotRunning), Attempt{Master: true}, findMaster(retriable(Keep, Unconcerned, MasterUnavailable)), "master not there"},
		{"master stopped, although do-not-retry", remote(wire.ClassMasterStopped), Attempt{Master: true}, findMaster(retriable(Keep, Unconcerned, MasterUnavailable)), "master not there"},
		{"dial refused", dialFailed(), Attempt{}, retriable(Keep, MarkDown, Reconnect), ruleDial},
		{"dial refused, unsafe", dialFailed(), Attempt{Idempotency: Unsafe}, retriable(Keep, MarkDown, Reconnect), ruleDial},
		{"dial refused by the master", dialFailed(), Attempt{Master: true}, findMaster(retriable(Keep, MarkDown, MasterUnavailable)), ruleDial},
		{"reset before sending", broken(false), Attempt{Idempotency: Unsafe}, retriable(Keep, Redial, Reconnect), ruleBroken},
		{"reset after sending, safe", broken(true), Attempt{}, applied(retriable(Keep, Redial, Reconnect)), ruleBroken},
		{"reset after sending, nonced", broken(true), Attempt{Idempotency: Nonced}, applied(retriable(Keep, Redial, Reconnect)), ruleBroken},
		{"reset after sending, unsafe", broken(true), Attempt{Idempotency: Unsafe}, with(unknown, func(d *Decision) { d.Server = Redial }), ruleBroken},
		{"bare EOF", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), Attempt{}, applied(retriable(Keep, Redial, Reconnect)), ruleBroken},
		{"bare reset", &net.OpError{Op: "read", Err: errors.New("reset")}, Attempt{}, applied(retriable(Keep, Redial, Reconnect)), ruleBroken},
		{"not HBase", &rpc.NotHBaseError{}, Attempt{}, retriable(Keep, MarkDown, Generic), ruleNotHBase},
		{"attempt timeout", fmt.Errorf("call: %w", context.DeadlineExceeded), Attempt{}, applied(retriable(Keep, Suspect, NoWait)), ruleTimeout},
		{"attempt timeout, unsafe", context.DeadlineExceeded, Attempt{Idempotency: Unsafe}, with(unknown, func(d *Decision) { d.Server = Suspect }), ruleTimeout},
		{"canceled", context.Canceled, Attempt{}, applied(final), ruleContext},
		{"canceled, unsafe", context.Canceled, Attempt{Idempotency: Unsafe}, unknown, ruleContext},
		{"server known to be down", &health.DownError{Server: meta.ServerName{Host: "rs1", Port: 1}}, Attempt{Idempotency: Unsafe}, retriable(Keep, Unconcerned, ServerDown), ruleServerDown},
		{"server turned out to be down, request sent", &health.DownError{}, Attempt{Idempotency: Nonced, Sent: true}, applied(retriable(Keep, Unconcerned, ServerDown)), ruleServerDown},
		{"server turned out to be down, unsafe request sent", &health.DownError{}, Attempt{Idempotency: Unsafe, Sent: true}, unknown, ruleServerDown},
		{"server turned out to be down by what it told another, request sent", &health.DownError{Cause: remote(wire.ClassRegionServerStopped)}, Attempt{Idempotency: Nonced, Sent: true}, applied(retriable(Keep, Unconcerned, ServerDown)), ruleServerDown},
		{"server known to be down by what it told another", &health.DownError{Cause: remote(wire.ClassDoNotRetryIO)}, Attempt{}, retriable(Keep, Unconcerned, ServerDown), ruleServerDown},
		{"connection ended by another's exception, request sent", &rpc.ConnError{Cause: remote(wire.ClassFatalConnection), Sent: true}, Attempt{Idempotency: Nonced}, applied(retriable(Keep, Redial, Reconnect)), ruleBroken},
		{"connection refused by an exception", &rpc.ConnError{Cause: remote(wire.ClassBadAuth)}, Attempt{}, final, ruleDoNotRetry},
		{"master known to be down", &health.DownError{}, Attempt{Master: true}, findMaster(retriable(Keep, Unconcerned, ServerDown)), ruleServerDown},
		{"own queue full", &health.BusyError{}, Attempt{Idempotency: Unsafe}, with(retriable(Keep, Unconcerned, ServerBusy), func(d *Decision) { d.Deferred = true }), ruleQueueFull},
		{"lookup failed", fakeLocate{after: time.Second}, Attempt{Idempotency: Unsafe}, with(retriable(Keep, Unconcerned, MetaUnavailable), func(d *Decision) { d.Hint = time.Second }), ruleLocate},
		{"lookup failed on a server's exception", fakeLocate{inner: remote(wire.ClassNotServingRegion)}, Attempt{}, retriable(Keep, Unconcerned, MetaUnavailable), ruleLocate},
		{"table not found by lookup", fakeLocate{final: true}, Attempt{}, final, ruleLocateFinal},
		{"scanner reset", remote(wire.ClassScannerReset), Attempt{}, with(retriable(Keep, Unconcerned, Reopen), func(d *Decision) { d.ReopenScanner = true }), ruleScanner},
		{"unknown scanner", remote(wire.ClassUnknownScanner), Attempt{}, with(retriable(Keep, Unconcerned, Reopen), func(d *Decision) { d.ReopenScanner = true }), ruleScanner},
		{"out of order", remote(wire.ClassOutOfOrderScannerNext), Attempt{}, with(retriable(Keep, Unconcerned, Reopen), func(d *Decision) { d.ReopenScanner = true }), ruleScanner},
		{"lease", remote(wire.ClassLease), Attempt{}, with(retriable(Keep, Unconcerned, Reopen), func(d *Decision) { d.ReopenScanner = true }), ruleScanner},
		{"retry immediately", remote(wire.ClassRetryImmediately), Attempt{}, with(retriable(Keep, Unconcerned, NoWait), func(d *Decision) { d.Free = true }), "retry at once"},
		{"result too large", remote(wire.ClassMultiActionResultTooLarge), Attempt{}, with(retriable(Keep, Unconcerned, NoWait), func(d *Decision) { d.Free = true }), "retry at once"},
		{"table not found", remote(wire.ClassTableNotFound), Attempt{}, Decision{Route: DropTable}, "no such table"},
		{"table not enabled", remote(wire.ClassTableNotEnabled), Attempt{}, final, ruleDoNotRetry},
		{"do not retry", remote(wire.ClassDoNotRetryIO), Attempt{Idempotency: Unsafe}, final, ruleDoNotRetry},
		{"access denied", remote(wire.ClassAccessDenied), Attempt{}, final, ruleDoNotRetry},
		{"no such family", remote(wire.ClassNoSuchColumnFamily), Attempt{}, final, ruleDoNotRetry},
		{"snapshot", remote(wire.ClassSnapshotExists), Attempt{Master: true}, final, ruleDoNotRetry},
		{"bad auth", remote(wire.ClassBadAuth), Attempt{}, final, ruleDoNotRetry},
		{"request too big", remote(wire.ClassRequestTooBig), Attempt{}, final, ruleDoNotRetry},
		{"illegal argument", remote("java.lang.IllegalArgumentException"), Attempt{}, final, ruleDoNotRetry},
		{"unknown class with the flag", flagged("org.example.Odd", true, false), Attempt{}, final, ruleDoNotRetry},
		{"unknown class", remote("org.example.Odd"), Attempt{}, applied(retriable(Keep, Unconcerned, Generic)), ruleUnknownClass},
		{"unknown class again", remote("org.example.Odd"), Attempt{Unknown: 1}, applied(retriable(Recheck, Unconcerned, Generic)), ruleUnknownClass},
		{"unknown class, unsafe", remote(wire.ClassIOException), Attempt{Idempotency: Unsafe}, unknown, ruleUnknownClass},
		{"log sync timeout, unsafe", remote("org.apache.hadoop.hbase.regionserver.wal.WALSyncTimeoutIOException"), Attempt{Idempotency: Unsafe}, unknown, "server timeout"},
		{"server timeout, nonced", remote(wire.ClassTimeoutIO), Attempt{Idempotency: Nonced}, applied(retriable(Keep, Unconcerned, Generic)), "server timeout"},
		{"wrapped", fmt.Errorf("get: %w", remote(wire.ClassRegionOpening)), Attempt{}, retriable(Reject, Unconcerned, Relocate), "region opening"},
		{"local", errors.New("row too long"), Attempt{Idempotency: Unsafe}, final, ruleLocal},
		{"too large for a frame", &wire.TooLargeError{What: "request"}, Attempt{}, final, ruleLocal},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			r.want.Rule = r.rule
			if diff := cmp.Diff(r.want, Classify(r.err, r.at)); diff != "" {
				t.Errorf("%v, %+v: -want +got\n%s", r.err, r.at, diff)
			}
		})
	}
	if got := Classify(nil, Attempt{}); got != (Decision{}) {
		t.Errorf("nil error: %+v", got)
	}
}

// The table itself: names and classes occur once, every wait has jitter.
func TestTableIsConsistent(t *testing.T) {
	names, classes := map[string]bool{}, map[string]string{}
	for _, r := range rules {
		if names[r.name] {
			t.Errorf("rule %q twice", r.name)
		}
		names[r.name] = true
		for _, c := range r.classes {
			if other := classes[c]; other != "" {
				t.Errorf("class %s in %q and %q", c, other, r.name)
			}
			classes[c] = r.name
		}
		if !r.d.Retriable && r.d.Wait != NoWait {
			t.Errorf("rule %q is final and waits", r.name)
		}
	}
	for c := range numClasses {
		s := c.Schedule()
		for n := range 20 {
			lo, hi := s.Wait(n, 0), s.Wait(n, 0.999999)
			if hi > s.Cap {
				t.Errorf("%s wait %d: %v beyond the cap %v", c, n, hi, s.Cap)
			}
			if hi > 0 && hi < lo*3/2 {
				t.Errorf("%s wait %d: between %v and %v, too little jitter", c, n, lo, hi)
			}
		}
		if c.String() == "" || c.String() == "invalid" {
			t.Errorf("class %d has no name", c)
		}
	}
}

func TestSchedules(t *testing.T) {
	ms := time.Millisecond
	rows := []struct {
		c    Class
		want []time.Duration // the longest waits
	}{
		{NoWait, []time.Duration{0, 0}},
		{Relocate, []time.Duration{0, 5 * ms, 10 * ms, 10 * ms}},
		{Reconnect, []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}},
		{Transit, []time.Duration{10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, time.Second, time.Second}},
		{RegionBusy, []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2 * time.Second}},
		{ServerBusy, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 5 * time.Second}},
		{Generic, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 2 * time.Second}},
	}
	for _, r := range rows {
		for n, want := range r.want {
			if got := r.c.Schedule().Wait(n, 1); got != want {
				t.Errorf("%s wait %d: %v, want %v", r.c, n, got, want)
			}
		}
	}
}

func TestQuestionsAboutErrors(t *testing.T) {
	rows := []struct {
		name            string
		err             error
		retriable, safe bool
	}{
		{"nil", nil, false, false},
		{"not serving", remote(wire.ClassNotServingRegion), true, true},
		{"sent, no answer", broken(true), true, false},
		{"not sent", broken(false), true, true},
		{"access denied", remote(wire.ClassAccessDenied), false, true},
		{"deadline", &Error{Reason: Deadline}, true, true},
		{"deadline, something was sent", &Error{Reason: Deadline, MaybeApplied: true}, true, false},
		{"canceled", &Error{Reason: Canceled}, false, true},
		{"unknown outcome", &Error{Reason: OutcomeUnknown, MaybeApplied: true}, false, false},
		{"final", &Error{Reason: Final, Causes: []Cause{{Err: remote(wire.ClassAccessDenied)}}}, false, true},
	}
	for _, r := range rows {
		if got := Retriable(r.err); got != r.retriable {
			t.Errorf("%s: Retriable %t, want %t", r.name, got, r.retriable)
		}
		if got := SafeToRetry(r.err); got != r.safe {
			t.Errorf("%s: SafeToRetry %t, want %t", r.name, got, r.safe)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, r := range rules {
		for _, c := range r.classes {
			spoil.Add(f, c, false, false, uint8(0))
		}
	}
	f.Fuzz(func(t *testing.T, class string, dnr, overloaded bool, idem uint8) {
		d := Classify(flagged(class, dnr, overloaded), Attempt{Idempotency: Idempotency(idem % 3)})
		if d.Rule == "" || d.Action() == "" {
			t.Errorf("%q: no rule", class)
		}
		if d.UnknownOutcome && d.Retriable {
			t.Errorf("%q: unknown outcome and retriable", class)
		}
	})
}
