// Package admin administers a cluster: tables and their schemas, namespaces,
// regions (move, split, merge, assign, compact, flush), the balancer, region
// server groups, snapshots, quotas, replication peers, permissions and
// visibility labels, servers (decommissioning, logs, caches, log levels), the
// master's chores and procedures, repairs ([Admin.Hbck]), and the cluster's
// state. Get an Admin from a client:
//
//	adm := client.Admin()
//	err := adm.CreateTable(ctx, admin.NewTable("t", admin.NewFamily("f").Versions(3)))
//
// Calls that HBase does by procedure return when the procedure has ended; the
// context, or else the client's procedure timeout, bounds the wait. The
// procedure goes on at the master if the wait ends early. [Admin.OnProgress]
// tells how far it is; [Admin.Detached] does not wait at all.
//
// What the server is too old or too new for is hbase.ErrUnsupported, and the
// text says which release has it.
//
// Errors match the sentinels of package hbase (hbase.ErrTableExists, ...), and
// hold the master's exception as an *hbase.RemoteError.
//
// An Admin is stateless and safe for concurrent use. The package imports
// nothing of hbase but its errors; hbase imports it.
package admin
