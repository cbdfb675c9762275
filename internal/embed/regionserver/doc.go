// Package regionserver is an HBase region server over the embedded store:
// ClientService, AdminService and ClientMetaService for the regions it hosts.
//
// A region is a window [start, end) on its table's key space in the shared
// store, plus the right to serve it; regions of system tables (hbase:meta,
// ...) are rendered from the catalog and read through the same scanner and
// filters. Opening and closing regions therefore moves no data, and a server
// that is killed loses nothing that was acknowledged.
//
// # Invariants
//
//   - a call on a region runs between region.enter and region.leave;
//     CloseRegion makes enter fail first and then waits for those inside, so
//     no write of a region happens after its closing was reported;
//   - every error has the Java class and the do_not_retry flag of HBase 2.6;
//   - scanners are bounded in number, have a lease, and let go of the engine
//     between calls;
//   - answers are bounded in size: scans by their limits, multis by
//     MultiActionResultTooLarge.
//
// # Files
//
// server.go and regions.go: life cycle and hosted regions. rpc_get.go,
// rpc_mutate.go, rpc_multi.go, rpc_scan.go, rpc_exec.go, rpc_admin.go,
// rpc_registry.go: one service call each. aggregate.go, interpret.go:
// AggregateService, which every region has, as it has MultiRowMutationService.
// scanners.go: leases. convert.go, mutation.go: messages to queries and
// mutations.
//
// The cluster makes one Server per region server and incarnation; the master
// drives it through host.RegionServer.
package regionserver
