// Package store keeps the embedded cluster's tables and catalog in one Pebble
// store, on disk or in memory, and gives HBase's guarantees over it: atomic
// rows, read points, sequence numbers, nonces, durability by mutation.
//
// # Layout
//
// Keys sort as HBase's cells do (see key.go):
//
//	[space][table id][row][family][qualifier][^timestamp][^type][^seq]
//
// A table's key space knows no regions: a region is a window on it that master
// and region servers agree about, so that moves, splits and merges touch no
// data. Visibility (versions, markers, TTL) is decided when reading, by
// internal/cells; stored cells change only by writes, MajorCompact,
// DropFamilies and DropData.
//
// # Invariants
//
//   - A sequence number is given out once in the life of a store directory.
//   - A cell with seq <= read point belongs to a write that is complete, and
//     durable if its durability asked for that. Readers skip larger numbers.
//   - A write is acknowledged only once the read point has passed it.
//   - Whoever reads to write (increment, append, conditions, delete of the
//     newest version) holds the row's lock from the read until the write is in
//     the memtable. The lock is not held while waiting for the disk.
//
// # Who may call it
//
// The embedded region server (data), master (catalog, tables) and their
// wiring. Everything exported is safe for concurrent use except Scanner and
// the queries handed in.
package store
