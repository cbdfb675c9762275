package session

import "time"

// attemptLimit is how long an attempt may take that may be repeated; timeouts
// counts those of the operation that took as long as they were allowed to.
//
// A bound for attempts that is not smaller than the operation's whole time
// bounds nothing: one lost answer would use up the operation, as it does in
// Java's client (hbase.rpc.timeout 60 s, hbase.client.operation.timeout 3 s).
// Then the first two attempts get a quarter of the time each and the third the
// rest, so that a lost answer or two leave time for another, and a request that
// really takes half of the time still succeeds. A third instead of a quarter
// would leave slow requests no more than a third; an eighth would ask a server
// three times in a pause of its garbage collector.
func attemptLimit(rpc, whole time.Duration, timeouts int) time.Duration {
	if whole <= 0 || rpc < whole || timeouts >= 2 {
		return rpc
	}
	return max(whole/4, leastLimit)
}

// leastLimit is the shortest bound: an operation that has less time than it has
// one attempt, since a server may well take so long.
const leastLimit = 200 * time.Millisecond

// stepLimit is attemptLimit for a step of a scanner, whose operation is a
// single attempt: half, so that there is time to open a scanner anew.
func stepLimit(rpc, whole time.Duration) time.Duration {
	if whole <= 0 || rpc < whole {
		return rpc
	}
	return max(whole/2, leastLimit)
}

// limit gives the bound for the operation's next attempt.
func (o *op) limit() time.Duration {
	rpc := o.core.cfg.RPCTimeout
	switch {
	case o.internal:
		return rpc // its context is one attempt's already
	case o.single:
		return stepLimit(rpc, o.budget.Timeout())
	}
	return attemptLimit(rpc, o.budget.Timeout(), o.timeouts)
}
