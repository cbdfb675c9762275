// Package eventlog is the embedded cluster's memory of what happened: every
// RPC with its region, rows, latency and outcome, and every cluster event
// (moves, splits, kills), in one ring buffer with sequence numbers. Tests use
// it to assert numbers ("exactly one read of hbase:meta"), people to see why.
//
// Invariants: recording never blocks and never allocates once the ring is
// full (rows are cut and copied into the slot); the ring forgets its oldest
// events, the counters forget nothing; a slow subscriber loses events, counted,
// and delays nobody. All methods are safe for concurrent use, and all of them
// work on a nil *Log, which records nothing.
//
// rpcserver records calls; master, regionserver and the controls record
// cluster events; anybody may query.
package eventlog
