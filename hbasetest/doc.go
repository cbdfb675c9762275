// Package hbasetest gives a Go test an HBase of its own: one line, ready in
// milliseconds, in memory, on free loopback ports, gone with the test.
//
//	func TestOrders(t *testing.T) {
//		c := hbasetest.Run(t)
//		orders := c.Table("orders", "f")
//		// ... the code under test, on orders or on c.Address() ...
//	}
//
// # A cluster per test, or one for all
//
// Run starts a cluster for one test: three region servers, about 5 ms. Tests
// that use it may run in parallel. For hundreds of small tests one cluster is
// cheaper: Start it (or let Main do it) in TestMain, and have each test Use it,
// which gives it the shape it had at first in well under 5 ms, whatever the test
// before it did to servers, tables and clock. Tests that Use one cluster run one
// after the other, also if they are parallel.
//
// # Break it
//
// A Cluster is a *minihbase.Cluster: servers are killed, paused and restarted,
// regions moved and split, calls slowed down, lost and failed, hbase:meta and
// ZooKeeper made to lie, the clock moved. What a test most often needs is here
// in one line, and ends the test if it does not work: Move, Kill, Rule with
// WaitHits, Load, Dump, Calls.
//
// # When a test fails
//
// The state of the servers, the rules and their hits, and the cluster's last
// events (at most 40 lines, the same calls in a row folded into one) are printed
// with the test's log, so that one sees which calls the servers got, and what
// became of them.
//
// Helpers that take no context have ten seconds, and call t.Fatal when they do
// not get through: they belong into the test's own goroutine. Everything else is
// safe for concurrent use. Nothing is left when the test has ended: no
// goroutine, no port, no file.
package hbasetest
