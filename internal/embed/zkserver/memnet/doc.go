// Package memnet is a network in memory for tests that run on virtual time: listeners, connections with socket buffers, latency, and the ways a
// network fails that loopback TCP cannot show (swallowed SYNs, unreachable hosts, cut cables, names that do not resolve).
//
// It uses only channels, mutexes held for moments and timers, so that everything that waits is durably blocked inside a testing/synctest bubble.
// Tests anywhere in this module may use it; nothing else does. A test that ends closes its listeners and connections; the network itself owns no goroutine.
package memnet
