package retry

import (
	"errors"

	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// rule is one row of the table: what one kind of failure means.
type rule struct {
	name string
	// classes are the exceptions of this kind.
	classes []string
	d       Decision
	// applied says that a server which answers like this may have executed
	// the request nevertheless.
	applied bool
}

// The kinds that are recognised by something else than a class name.
const (
	ruleContext      = "context ended"
	ruleTimeout      = "attempt timeout"
	ruleDial         = "cannot connect"
	ruleBroken       = "connection broke"
	ruleNotHBase     = "not HBase"
	ruleServerDown   = "server known to be down"
	ruleTurnedAway   = "too many wait for the server"
	ruleQueueFull    = "own queue full"
	ruleLocate       = "lookup failed"
	ruleLocateFinal  = "lookup is final"
	ruleDoNotRetry   = "do not retry"
	ruleOverloaded   = "overloaded"
	ruleUnknownClass = "unknown class"
	ruleLocal        = "local error"
	ruleMoved        = "region moved"
	ruleNotServing   = "not serving"
	ruleThrottled    = "throttled"
	ruleScanner      = "scanner lost"
)

// rules is the table: docs/design/routing.md shows it row by row. Evidence about routes
// and servers is applied by the caller before anything else.
var rules = []rule{
	{
		name:    ruleMoved,
		classes: []string{wire.ClassRegionMoved},
		d:       Decision{Route: Replace, Wait: NoWait, Retriable: true},
	},
	{
		// Also what RegionMoved becomes when its hint is missing or the
		// operation has followed too many.
		name:    ruleNotServing,
		classes: []string{wire.ClassNotServingRegion, wire.ClassRegionOffline},
		d:       Decision{Route: Reject, Wait: Relocate, Retriable: true},
	},
	{
		// The region is coming up there. The route is right, and yet it is no
		// use: the region's gate looks when it can be used, for all callers.
		name:    "region opening",
		classes: []string{wire.ClassRegionOpening, "org.apache.hadoop.hbase.exceptions.RegionInRecoveryException"},
		d:       Decision{Route: Reject, Wait: Relocate, Retriable: true},
	},
	{
		// The server serves the region, but the row is not in it: stale after
		// a split or a merge, or our index is wrong.
		name:    "wrong region",
		classes: []string{wire.ClassWrongRegion},
		d:       Decision{Route: Reject, Wait: Relocate, Retriable: true},
	},
	{
		name:    "region busy",
		classes: []string{wire.ClassRegionTooBusy},
		d:       Decision{Route: Keep, Wait: RegionBusy, Retriable: true},
	},
	{
		name:    ruleOverloaded,
		classes: []string{wire.ClassCallQueueTooBig, wire.ClassCallDropped, wire.ClassServerTooBusy},
		d:       Decision{Route: Keep, Server: Overloaded, Wait: ServerBusy, Deferred: true, Retriable: true},
	},
	{
		name:    ruleThrottled,
		classes: []string{wire.ClassRpcThrottling, wire.ClassThrottling},
		d:       Decision{Route: Keep, Wait: Throttled, Retriable: true},
	},
	{
		name: "server stopped",
		classes: []string{
			wire.ClassRegionServerStopped, wire.ClassRegionServerAborted,
			wire.ClassServerNotRunningYet,
		},
		d: Decision{Route: Keep, Server: MarkDown, Wait: Reconnect, Retriable: true},
	},
	{
		name: "master not there",
		classes: []string{
			wire.ClassPleaseHold, wire.ClassMasterNotRunning, wire.ClassMasterStopped,
		},
		d: Decision{Route: Keep, Wait: MasterUnavailable, Retriable: true, FindMaster: true},
	},
	{
		// DoNotRetry classes in HBase, because only a new scanner helps.
		name: ruleScanner,
		classes: []string{
			wire.ClassUnknownScanner, wire.ClassLease, wire.ClassScannerReset,
			wire.ClassOutOfOrderScannerNext,
		},
		d: Decision{Route: Keep, Wait: Reopen, Retriable: true, ReopenScanner: true},
	},
	{
		// The rest of a batch did not fit into the answer.
		name:    "retry at once",
		classes: []string{wire.ClassRetryImmediately, wire.ClassMultiActionResultTooLarge},
		d:       Decision{Route: Keep, Wait: NoWait, Retriable: true, Free: true},
	},
	{
		name:    "no such table",
		classes: []string{wire.ClassTableNotFound},
		d:       Decision{Route: DropTable},
	},
	{
		name: ruleDoNotRetry,
		// Also every class of wire's list of do-not-retry classes, and every
		// other that comes with the flag.
		classes: []string{
			wire.ClassDoNotRetryIO, wire.ClassTableNotEnabled, wire.ClassAccessDenied, wire.ClassNoSuchColumnFamily,
			wire.ClassTableInfoMissing, wire.ClassUnsupportedOperation,
			"java.lang.IllegalArgumentException", "java.lang.NullPointerException", "java.lang.ClassCastException",
		},
		d: Decision{Route: Keep},
	},
	{
		// Timeouts on the server's side: of a row lock's holder, of the log's
		// sync. The change may be in the log all the same.
		name: "server timeout",
		classes: []string{
			wire.ClassTimeoutIO, wire.ClassCallTimeout, "org.apache.hadoop.hbase.regionserver.wal.WALSyncTimeoutIOException",
			"java.net.SocketTimeoutException", "java.util.concurrent.TimeoutException", "java.io.InterruptedIOException",
		},
		d:       Decision{Route: Keep, Wait: Generic, Retriable: true},
		applied: true,
	},
	{
		// A class without a row of its own and without the do-not-retry flag.
		// From the second time on the region's row is looked at again, and the
		// route stays meanwhile: it may be this row or this request that fails,
		// and a rejected route keeps everybody else's calls to the region waiting.
		name:    ruleUnknownClass,
		d:       Decision{Route: Keep, Wait: Generic, Retriable: true},
		applied: true,
	},

	{name: ruleContext, d: Decision{Route: Keep}},
	{
		// Proves nothing about where the region is: never touches the route.
		name:    ruleTimeout,
		d:       Decision{Route: Keep, Server: Suspect, Wait: NoWait, Retriable: true},
		applied: true,
	},
	{name: ruleDial, d: Decision{Route: Keep, Server: MarkDown, Wait: Reconnect, Retriable: true}},
	{name: ruleBroken, d: Decision{Route: Keep, Server: Redial, Wait: Reconnect, Retriable: true}},
	{name: ruleNotHBase, d: Decision{Route: Keep, Server: MarkDown, Wait: Generic, Retriable: true}},
	{name: ruleServerDown, d: Decision{Route: Keep, Wait: ServerDown, Retriable: true}},
	{name: ruleTurnedAway, d: Decision{Route: Keep, Retriable: true, TurnedAway: true}},
	{name: ruleQueueFull, d: Decision{Route: Keep, Wait: ServerBusy, Deferred: true, Retriable: true}},
	{name: ruleLocate, d: Decision{Route: Keep, Wait: MetaUnavailable, Retriable: true}},
	{name: ruleLocateFinal, d: Decision{Route: Keep}},
	{name: ruleLocal, d: Decision{Route: Keep}},
}

var (
	ruleByClass = func() map[string]*rule {
		m := make(map[string]*rule)
		for i := range rules {
			for _, c := range rules[i].classes {
				m[c] = &rules[i]
			}
		}
		return m
	}()
	ruleByName = func() map[string]*rule {
		m := make(map[string]*rule)
		for i := range rules {
			m[rules[i].name] = &rules[i]
		}
		return m
	}()
)

// Rules names the rows of the table.
func Rules() []string {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].name
	}
	return names
}

// maxHints bounds the RegionMoved hints one operation follows: two servers
// that name each other must not keep it running in circles.
const maxHints = 3

// busyBeforeRecheck is how many busy answers in a row from one server for one
// region are a reason to look at the region's row again.
const busyBeforeRecheck = 3

// ScannerLost says whether err is a server's word that a scanner is gone or in
// doubt, so that only a new one can go on, whatever else the operation met.
func ScannerLost(err error) bool {
	remote, ok := errors.AsType[*wire.RemoteError](err)
	if !ok {
		return false
	}
	r := ruleByClass[remote.Class]
	return r != nil && r.d.ReopenScanner
}

// Classify decides what a failure means. It is pure: the same error and
// attempt give the same decision. A nil error gives the zero Decision.
func Classify(err error, at Attempt) Decision {
	if err == nil {
		return Decision{}
	}
	f := factsOf(err)
	r := ruleByName[f.rule]
	d := r.d
	d.Rule = r.name

	switch f.rule {
	case ruleMoved:
		if !f.hasHint || at.Hints >= maxHints {
			d = ruleByName[ruleNotServing].d
			d.Rule = ruleMoved
		}
	case ruleOverloaded:
		if at.Busy+1 >= busyBeforeRecheck {
			d.Route = Recheck
		}
	case ruleThrottled:
		d.Hint = f.hint
		if f.doNotRetry && f.hint == 0 {
			d.Retriable, d.Wait = false, NoWait
		}
	case ruleUnknownClass:
		if at.Unknown > 0 {
			d.Route = Recheck
		}
	case ruleLocate:
		d.Hint = f.hint
	}
	if at.Master && d.Retriable {
		// A master that stopped, refused or fell silent may have a successor.
		switch d.Server {
		case MarkDown, Redial, Suspect:
			d.FindMaster = true
			d.Wait = MasterUnavailable
		}
		switch f.rule {
		case ruleNotServing, ruleServerDown:
			d.FindMaster = f.rule == ruleServerDown
			d.Route = Keep
		}
	}

	d.MaybeApplied = r.applied
	if f.sentKnown {
		d.MaybeApplied = f.sent || at.Sent && (f.rule == ruleServerDown || f.rule == ruleTurnedAway)
	}
	if d.MaybeApplied && at.Idempotency == Unsafe {
		d.Retriable, d.UnknownOutcome, d.ReopenScanner = false, true, false
	}
	if !d.Retriable {
		d.Wait, d.Deferred, d.Free = NoWait, false, false
	}
	return d
}
