package retry

import "time"

// Idempotency says what may be done about a request that was sent and got no
// answer.
type Idempotency uint8

const (
	// Safe requests may be repeated: reads, and puts and deletes, which leave
	// the same visible state when applied twice in a row.
	Safe Idempotency = iota
	// Nonced requests carry a nonce by which the server recognises a
	// repetition: increments and appends.
	Nonced
	// Unsafe requests are never repeated once they may have reached the
	// server: check-and-mutate, and everything whose second application shows.
	Unsafe
)

// String names the idempotency.
func (i Idempotency) String() string {
	switch i {
	case Safe:
		return "safe"
	case Nonced:
		return "nonced"
	case Unsafe:
		return "unsafe"
	}
	return "invalid"
}

// RouteAction is what a failure proves about the route that was used.
type RouteAction uint8

const (
	// Keep: the failure says nothing about where the region is.
	Keep RouteAction = iota
	// Reject: the server does not serve this region (route.Cache.Rejected);
	// the next lookup re-reads exactly this region.
	Reject
	// Replace: the answer names the region's new place (route.Cache.Moved).
	Replace
	// Recheck: the route is probably right, but the server has been busy, or
	// has failed without a reason known, often enough to look again once
	// (route.Cache.Recheck).
	Recheck
	// DropTable: the server says there is no such table; the table's routes
	// go, and a lookup confirms it (route.Cache.InvalidateTable).
	DropTable
)

// String names the action.
func (a RouteAction) String() string {
	switch a {
	case Keep:
		return "keep"
	case Reject:
		return "reject"
	case Replace:
		return "replace"
	case Recheck:
		return "recheck"
	case DropTable:
		return "drop table"
	}
	return "invalid"
}

// ServerAction is what a failure proves about the server.
type ServerAction uint8

const (
	// Unconcerned: nothing.
	Unconcerned ServerAction = iota
	// MarkDown: hard evidence, the server is down now (health.Server.Refused).
	MarkDown
	// Redial: the connection broke; the server is down only if a new
	// connection is refused.
	Redial
	// Overloaded: cut the server's limit of calls in flight.
	Overloaded
	// Suspect: no answer in time; ping unless the connection answered others
	// meanwhile.
	Suspect
)

// String names the action.
func (a ServerAction) String() string {
	switch a {
	case Unconcerned:
		return "none"
	case MarkDown:
		return "mark down"
	case Redial:
		return "redial"
	case Overloaded:
		return "overloaded"
	case Suspect:
		return "suspect"
	}
	return "invalid"
}

// Attempt is what Classify needs to know about the attempt that failed.
type Attempt struct {
	// Idempotency of the request.
	Idempotency Idempotency
	// Sent says that the server may have got the request. It is asked for only
	// where the error cannot tell: when a request under way is given up because
	// its server turned out to be down, and its caller perhaps not let wait.
	Sent bool
	// Hints counts the RegionMoved hints this operation has followed already.
	Hints int
	// Busy counts the consecutive busy answers of this server for this region
	// before this one.
	Busy int
	// Unknown counts the answers with an unknown class before this one in this
	// operation.
	Unknown int
	// Master says that the request went to the master.
	Master bool
}

// Decision is what to do about a failure. The zero value is "final".
type Decision struct {
	// Rule names the row of the table that matched, for traces and tests.
	Rule string
	// Route and Server are evidence, to be applied before anything else.
	Route  RouteAction
	Server ServerAction
	// Wait is the class of the pause before the next attempt; a class may mean
	// no pause the first time (see Class).
	Wait Class
	// Hint is the wait the server asked for; 0 if none.
	Hint time.Duration
	// Retriable says that another attempt may succeed and does no harm. If
	// not, the error is final.
	Retriable bool
	// Free attempts are not counted against the attempt cap.
	Free bool
	// Deferred waits are owed to this server only: they are paid when the next
	// attempt goes to the same server.
	Deferred bool
	// MaybeApplied says that the request may have been executed although no
	// answer came.
	MaybeApplied bool
	// UnknownOutcome says that the request may have been executed and must not
	// be repeated: report ErrUnknownOutcome.
	UnknownOutcome bool
	// ReopenScanner says that a scanner has to be opened anew after the last
	// row delivered.
	ReopenScanner bool
	// TurnedAway says that the operation is to end now, although trying again
	// later may help.
	TurnedAway bool
	// FindMaster says that the active master has to be looked up again.
	FindMaster bool
}

// Action gives the decision in a few words: "reject, transit".
func (d Decision) Action() string {
	s := d.Route.String()
	if d.Server != Unconcerned {
		s += ", " + d.Server.String()
	}
	switch {
	case d.UnknownOutcome:
		return s + ", outcome unknown"
	case d.TurnedAway:
		return s + ", turned away"
	case !d.Retriable:
		return s + ", final"
	}
	return s + ", wait " + d.Wait.String()
}
