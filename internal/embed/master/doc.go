// Package master is the active master of the embedded cluster: MasterService
// (and the other services a master answers) over the catalog, with procedures,
// assignment, splits and merges, region server groups, and the answers to a
// server's death.
//
// A region is a window on its table's key space plus an owner, so that moving,
// splitting and merging change the catalog only. Unless a transition gap is
// asked for (Controls), the new owner opens a region before the old one closes
// it: both would write to the same rows under the same locks, so nothing can
// go wrong, and a client that follows hbase:meta or a RegionMoved hint finds
// the region served at every moment.
//
// Invariants:
//   - Every change of a table or region happens under its lock (locks.go):
//     tables exclusively for what changes the table or its boundaries, tables
//     shared and regions exclusively for moves.
//   - A region is opened on the server before the catalog says so; after saying
//     so, the opener looks once more whether the server still lives. A dying
//     server is taken out of the live list before its regions are looked up.
//     So one of the two always sees the other.
//   - Open sequence numbers come from the store's counter and only grow.
//
// The cluster's wiring makes one Master per incarnation of the master process;
// catalog, store, procedure results and table handles outlive it. Nobody else
// imports it.
package master
