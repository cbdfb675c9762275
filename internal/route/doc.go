// Package route answers one question: which server holds the region of this
// row. A route is our belief, a location is what hbase:meta says; this package
// keeps the beliefs cheap to read, quick to correct, and hard to overload meta
// with.
//
// Who calls it: internal/session, for every operation (Lookup, Locate,
// LocateMany) and with every failure (Rejected, Moved, Recheck, ...); the
// admin and diagnostic commands (Regions, Explain, Stats). What it calls: the
// Source that reads hbase:meta, the MetaLocator, internal/health for the
// servers' epochs, internal/retry for what an error of meta means.
//
// What happens when a row is looked up:
//
//  1. Hit. The table's index is an immutable root behind an atomic pointer:
//     no lock, no allocation (index.go). A route is valid unless its server
//     has disowned the region (Rejected) or has been proved dead since the
//     route was learned (its epoch has moved on): both are single loads, and
//     one increment invalidates every route of a dead server.
//  2. Miss in a gap of the index. The caller becomes a waiter; a flight (one
//     read of meta, flight.go) is sent unless one is under way that is
//     expected to bring the region. Whatever an answer covers serves whoever
//     waits for it. Pages grow while misses keep coming.
//  3. Miss on a known region whose route has become invalid. Its row is read
//     again, together with everybody else's (repair.go), 200 to a batch. If
//     meta still says what has been disproved, or that nobody serves the
//     region, the repair becomes the region's gate: callers wait, meta is
//     asked every 10 ms to 500 ms, and about once a second callers are let
//     through to try, since meta may be right.
//
// Besides, there are ways to know before anybody asks: a walk over a dead
// server's routes (plan.go), a look at the others when several regions of a
// table or server have been disowned (storm.go), and, if asked for, the changes
// of hbase:meta (watch.go). And ways not to ask: a file of routes (snapshot.go),
// replicas of hbase:meta (metareplica.go). Secondary replicas of regions are
// kept beside the index (replicas.go).
//
// Answers, hints and repairs all go through publish, which applies the
// ordering rules: the larger region id is the newer cut of the key space, the
// larger open sequence number the newer place of a region; older answers win
// only against beliefs that have been disproved, or by insistence.
//
// Invariants, asserted under the build tag "invariants" where they can be:
//
//   - The routes of a published root are sorted and disjoint, and a published
//     root never changes.
//   - A caller's leaving concerns nobody else: flights run on the cache's
//     context, and publish what they bring.
//   - A waiter has exactly one owner (a table's wants, a repair, a wave) or is
//     done.
//   - An error concerns exactly the belief that was used. Rejecting a route
//     that has been replaced changes nothing.
//   - No lock is held across a read, a channel operation or a callback.
//   - At most 8 reads of meta per table and 32 in all, fewer while meta is
//     slow; demand before repairs (4 batches at most) before warming; while
//     meta does not answer at all, one probe now and then.
//   - Nothing polls for a region nobody waits for. The watcher polls for all,
//     at a cost that depends on what changes.
//   - What a replica of hbase:meta or a snapshot says fills gaps and moves
//     forward, never backward.
//   - After Close no goroutine of ours is left.
//
// Non-obvious:
//
//   - A read of one row backwards is not bounded by the gap it is for: a
//     merged region starts before it.
//   - An answer without any region of the table, read from the table's start,
//     is how a missing table shows. Holes further right are answers that are
//     stale; they are read again, never believed.
//   - A location whose server is down or whose state is not OPEN enters the
//     index as a rejected route: its range is known, its gate is set, nobody
//     uses it. It never replaces a belief about the same region.
//   - While the breaker is open waiters stay; their own deadlines end their
//     wait, and the error says why. Failing them at once would only turn one
//     wait into many attempts.
//   - For a few seconds after a route has turned out wrong, replicas of
//     hbase:meta are not asked about its table: the parent of a split would come
//     back into the gap it has left.
//   - A loaded route seems to be unused for a while, or a dead server would make
//     us read the rows of all that was loaded.
//   - Waiters of a gate go in waves when it opens; who finds the route invalid
//     again goes back to the gate.
//   - Finding hbase:meta itself goes through the same machinery, but past the
//     limits on reading meta, which would otherwise wait for itself.
package route
