// Package cluster wires the embedded cluster: one store, one catalog, a
// ZooKeeper endpoint, masters, and region servers on loopback ports, with their
// lives and deaths. minihbase is its public face.
//
// A region server's life is a slot: an index and, once bound, a port that stays
// the same through restarts. Each start makes a new server object with a larger
// start code. What a death looks like from outside is decided here: the
// connections are reset at once; the ephemeral node goes at once, or when the
// session timeout has run out; the regions are opened elsewhere after the
// recovery delay.
//
// Invariants:
//   - A server leaves the live list before its regions are reassigned (see
//     package master for the other half of this).
//   - Everything that runs in the background belongs to Cluster.wg and ends
//     with Cluster.ctx: after Close no goroutine is left.
//   - The znodes follow the catalog and the live list; nothing is read back
//     from ZooKeeper.
//
// Locks: Cluster.mu guards the slots, the masters and the list of dead servers;
// it is never held while waiting or while calling the master or ZooKeeper.
package cluster
