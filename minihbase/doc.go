// Package minihbase runs an HBase-compatible cluster inside the process: a
// ZooKeeper endpoint, a master and region servers on loopback ports, over one
// embedded store, in memory or on disk. Unchanged clients of HBase 2.x and 3.x
// connect to it; it is ready in milliseconds.
//
// # Start
//
//	c, err := minihbase.Start(ctx, minihbase.Options{})
//	...
//	defer c.Close()
//	client, err := hbase.Open(ctx, c.Address())
//
// The zero Options are an in-memory cluster of three region servers on free
// ports. With Dir the data is on disk, and a later Start with the same Dir
// finds it.
//
// # Break
//
// Servers are killed, stopped, paused and restarted by index; regions are
// moved, split and merged; Rules make chosen calls slow, lost or failing; the
// clock can be frozen and moved; Events tells every call that was made. The
// same controls are served over HTTP on the control port: see docs/control-api.md
// and package minihbase/control; in a browser, the port is a console. For Go
// tests, package hbasetest saves the lines around all of this.
//
// # Between tests
//
// Reset drops all tables and undoes all disturbances, which is faster than
// starting afresh.
//
// All methods are safe for concurrent use. After Close no goroutine is left.
package minihbase
