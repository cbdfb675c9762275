// Package live looks at a running cluster the way a careful operator would:
// names, ports, what ZooKeeper serves, what hbase:meta says, and whether the
// servers agree. It only reads. Every step has a time limit, all share the
// caller's context, and nothing it starts outlives Check.
package live
