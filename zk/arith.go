package zk

import "time"

// This file is the arithmetic of sessions: pure functions, shared by the client and by whoever explains a lost session.

// Negotiate returns the session timeout a server grants: what was asked for, clamped to the server's limits.
// A server's defaults are 2 and 20 ticks.
func Negotiate(requested, min, max time.Duration) time.Duration {
	if requested < min {
		return min
	}
	if requested > max {
		return max
	}
	return requested
}

// ExpiryBucket returns the boundary at which a tracker with the given tick acts on something due at t: the first multiple
// of the tick strictly after t. Both count from the tracker's zero (1970 for servers up to 3.4, the server's start since 3.5).
func ExpiryBucket(t, tick time.Duration) time.Duration {
	if tick <= 0 {
		return t
	}
	return (t/tick + 1) * tick
}

// ExpiresAt returns when a session expires that was last touched at touch: up to one tick after its timeout has run out.
func ExpiresAt(touch, timeout, tick time.Duration) time.Duration {
	return ExpiryBucket(touch+timeout, tick)
}

// SafetyMargin is what is kept back from a session's deadline for the round trip and for scheduling: a fiftieth of the timeout, at least 250 ms.
func SafetyMargin(timeout time.Duration) time.Duration {
	return max(250*time.Millisecond, timeout/50)
}

// AttemptLimit divides what is left of a budget over the hosts not tried yet, within floor and ceiling.
func AttemptLimit(remaining time.Duration, untried int, floor, ceiling time.Duration) time.Duration {
	if untried < 1 {
		untried = 1
	}
	return min(max(remaining/time.Duration(untried), floor), ceiling)
}

// PingInterval is how long this client lets a session go without a request: a sixth of the timeout, at most 10 s. Twice
// as often as the stock clients, because what matters after a failure is what is left of the budget.
func PingInterval(timeout time.Duration) time.Duration {
	return min(timeout/6, 10*time.Second)
}

// AnswerLimit is how long this client waits for the answer to a request while nothing else arrives, before it takes the
// connection for dead: a third of the timeout. Together with PingInterval at least half of the budget is left then.
func AnswerLimit(timeout time.Duration) time.Duration { return timeout / 3 }

// Stock describes the timers of ZooKeeper's own Java client, for comparison.
type Stock struct {
	Read     time.Duration // silence after which a connection is dropped: 2/3 of the timeout
	Connect  time.Duration // limit for connecting to one of n hosts: timeout / n
	Ping     time.Duration // 1/3 of the timeout
	Attempts int           // whole attempts at black-holed hosts that end before the session does: n / 3
}

// StockTimers returns the Java client's timers for a negotiated timeout and n addresses.
func StockTimers(timeout time.Duration, n int) Stock {
	n = max(n, 1)
	return Stock{Read: timeout * 2 / 3, Connect: timeout / time.Duration(n), Ping: timeout / 3, Attempts: n / 3}
}
