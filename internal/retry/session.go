package retry

// RuleUnknownClass is Decision.Rule of an exception the table does not know by
// name: whoever counts Attempt.Unknown looks for it.
const RuleUnknownClass = ruleUnknownClass

// OnRegion names the region of the last attempt (encoded name), for errors.
// Attempts that succeed need not pay for making that name.
func (b *Budget) OnRegion(encoded string) { b.region = encoded }
