// Package retry decides what a failure means and whether there is time to try
// again. It holds the one table from failures to decisions (Classify), the
// waits between attempts (Class), the Budget of one operation with its ledger
// of where the time went, and the arithmetic of HBase's own retry schedules.
//
// It knows nothing of connections, routes or servers: callers apply the
// Decision. Its users are internal/session (every operation), internal/route
// (reads of hbase:meta) and the diagnostic commands (schedules only).
//
// Invariants:
//   - One table. Nobody else looks at an exception's class name.
//   - No wait without jitter, and no wait that would outlive the deadline: if
//     it does not fit, the operation ends now and says so.
//   - What was sent without an answer is repeated only if a repetition is
//     harmless; otherwise the outcome is reported as unknown.
//   - An error tells the whole story: attempts, servers, time by class, the
//     last causes; as fields and in its text.
//   - A cancelled context is reported as the context's error.
package retry
