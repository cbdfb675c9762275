package retry

// Classify decides what a failure means. It is a pure function of one table.
func Classify(err error, at Attempt) Decision { return Decision{} }
