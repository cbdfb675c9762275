// Package session is the loop between a typed operation and the wire: find the
// region, take a connection, send, judge the answer, feed the judgement back
// to the routes and the servers' health, wait if needed, and go again, until
// the answer, the deadline or a final error.
//
// Who calls it: the public package hbase (and its admin half). What it calls:
// internal/route for locations, internal/rpc for connections, internal/retry
// for the judgement, internal/health for the state of servers,
// internal/registry for hbase:meta's server and the active master.
//
// Invariants:
//   - One loop. CallRegion, Batch, CallMaster and the reading of hbase:meta
//     step through the same states with the same judgement.
//   - Routes and health learn of an error at the moment it happens, before
//     anybody decides whether to retry.
//   - No call outlives its context's deadline, whatever is stuck: every wait
//     (dial, queue, lookup, gate, answer, pause) selects on the context.
//   - A request that may have been applied is repeated only if repeating is
//     harmless (Safe) or the server recognises it (Nonced). Otherwise the
//     caller is told: retry.ErrUnknownOutcome.
//   - Connections belong to a server incarnation and die with it.
//   - After Close no goroutine of ours is left.
package session
