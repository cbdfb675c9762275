// Package health knows the servers of a cluster: one Server per incarnation
// (host, port, start code), its state, its load limit and its speed.
//
// Invariants:
//   - One Server object per incarnation. A new start code at an address makes
//     a new Server, and the old one is dead in the same step.
//   - Epoch only grows. It is bumped by hard evidence (connection refused,
//     stopped, replaced), so that every route which captured an older epoch is
//     invalid at once, however many there are. Silence (a frozen process)
//     makes a server down too, but proves nothing about where its regions are,
//     and therefore leaves the epoch alone.
//   - Whoever marks a server down owns its prober: MarkDown starts it, and at
//     most one runs per server. It ends when the server answers, is replaced,
//     or the table is closed.
//   - No lock is held across a probe, a callback or a channel operation.
//
// route reads Name and Epoch; session owns everything else. The package knows
// nothing of connections: the table's owner hands in how to probe, and may
// attach its own value to each server.
package health
