// Package zk is a ZooKeeper client built around one idea: what kills sessions is not ZooKeeper's timeout but the client's schedule of attempts.
//
// A session lives on the server for its negotiated timeout after the last request the server saw. Everything here is derived from that budget: a
// monotonic deadline counted from the moment the last answered request was sent, limits per attempt recomputed from what is left, parallel dialing
// with a small stagger so that one dead host costs little, one handshake at a time so that the session is not fought over.
//
// # Use
//
//	c, err := zk.Open(ctx, zk.Config{Servers: []string{"zk1:2181", "zk2:2181"}})
//	data, stat, err := c.Get(ctx, "/hbase/hbaseid")
//	w, err := c.AddWatch(ctx, "/hbase/rs", zk.Recursive)
//	for ev := range w.Events(ctx) { ... }
//	c.Close(ctx)
//
// [Open] waits for the first session; [New] returns at once and lets the calls wait. Every call takes a context and returns within a moment of its
// end, whatever the network does. While there is no connection calls wait in order; reads that were in flight when a connection broke are asked
// again; writes that were in flight fail with [ErrConnectionLoss] and say in [OpError.MaybeApplied] that nobody knows.
//
// # The three verdicts
//
// [Conn.Budget] says what may be assumed about the session: it is alive; it is presumed lost (its time has run out without an answer: stop
// acting as the owner of ephemeral nodes, but only the server can confirm, and a new leader grants a full timeout again); or it has expired,
// because the server said so. Expiry is terminal for a Conn. Making the next one is the caller's decision and never happens silently.
//
// # Errors
//
// errors.Is recognises the protocol's codes ([ErrNoNode], [ErrBadVersion], ...), [ErrClosed], and the context's error. [OpError]
// carries the state, the budget and the ledger of attempts: host, phase, verdict, duration, with a sentence of advice for each kind of verdict.
//
// # Not here
//
// SASL, read-only servers, TTL nodes and reconfiguration. A server that requires SASL ends the Conn with [ErrAuthFailed].
//
// # Inside
//
// One goroutine (loop) owns the state, the queues and the watches; frames are handled in wire order. A transport has a reading and a writing goroutine;
// while disconnected, one connector goroutine runs laps over the addresses. Nothing the loop does blocks. All goroutines have ended when Close returns.
package zk
