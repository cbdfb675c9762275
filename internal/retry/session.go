package retry

import "time"

// RuleUnknownClass is Decision.Rule of an exception the table does not know by
// name: whoever counts Attempt.Unknown looks for it.
const RuleUnknownClass = ruleUnknownClass

// RuleTimeout is Decision.Rule of an attempt that took as long as it might.
const RuleTimeout = ruleTimeout

// Timeout is the time the operation had when it began; 0 if unbounded.
func (b *Budget) Timeout() time.Duration { return b.timeout }

// OnRegion names the region of the last attempt (encoded name), for errors.
// Attempts that succeed need not pay for making that name.
func (b *Budget) OnRegion(encoded string) { b.region = encoded }
