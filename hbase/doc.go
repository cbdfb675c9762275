// Package hbase is a client for Apache HBase 2.4 and later, and for Holdfast's
// embedded cluster: one address changes, nothing else.
//
// # Connect
//
// [Open] takes an address: hbase://zk1:2181/hbase (a ZooKeeper quorum),
// hbase+rpc://m1:16000 (the RPC registry), or a folder with an hbase-site.xml.
// It does not wait for the cluster; [Client.Ping] does. A [Client] is made once
// and shared; [Client.Table] and [Client.Admin] give cheap handles.
//
// # Read
//
// [Table.Get] reads one row, [Table.MultiGet] many at once, [Table.Exists] asks
// without reading. What they find is a [Result]: cells in HBase's order, with
// helpers for the common questions. A missing row is an empty Result, not an
// error.
//
// # Write
//
// [Table.Put], [Table.Delete], [Table.Increment], [Table.Append] change one
// row; [Table.MutateRow] several columns of a row in several ways, all or
// nothing; [Table.CheckAndMutate] only if a condition on the row holds.
//
// Rows and values are not copied: leave them alone until the call has returned.
//
// # Scan
//
// [Table.Scan] walks rows, forwards or backwards:
//
//	for row, err := range t.Scan(ctx, hbase.NewScanPrefix("user/")).Rows() {
//		...
//	}
//
// A scan resumes after any failure, also when regions move, split or merge
// under it, without losing or repeating a row or a cell. It is consistent row
// by row, not as a whole: each region is read as it was when the scan came to
// it (and, after a failure between two rows, as it is then).
// With [Scan.ReuseResults] rows are valid only until the next one, and cost no
// memory.
//
// # Batch
//
// [Table.Batch] takes any mixture of operations and gives one [Outcome] each:
// partial failure is data. [Outcomes.Err] joins the errors for those who want
// one.
//
// [Table.Mutator] makes a buffered writer over it for long streams of writes:
// bounded memory, each row's writes in their order, failures told one by one.
//
// # Time
//
// Every call takes a context and ends with it. Without a deadline a call has
// [Config.OperationTimeout] (a scan: [Config.ScannerTimeout] from answer to
// answer). Within that time failures of place and moment (a region that moves,
// a server that dies or is overloaded) are waited out and not seen.
//
// # Retries and what they may do
//
// A request is repeated if it certainly was not applied, or if repeating does
// no harm: reads; Increments and Appends, which carry a nonce by which the
// server recognises them; Puts and Deletes. A Put without timestamps that is
// repeated after a lost answer may be applied twice, as two versions with the
// same value, and may then hide a value that another client wrote in between;
// so may a Delete. Where that matters, give timestamps, or set Unrepeatable:
// rows whose Puts and Deletes are Unrepeatable are linearizable. CheckAndMutate,
// a Delete of the latest version and what is Unrepeatable are not repeated once
// they may have reached the server; they return [ErrUnknownOutcome].
//
// # Errors
//
// Three questions, three answers: what happened ([errors.Is] with the Err
// values, [errors.As] with [*RemoteError], [*RetryError], [*InvalidError]); may
// it succeed if I try again ([Retriable]); may it have been applied
// ([SafeToRetry], [ErrUnknownOutcome]). Errors say where the time went.
//
// # Regions
//
// The client finds regions by itself and corrects what it knows by every
// failure. [Table.Regions], [Table.Locate] and [Table.StartEndKeys] show what
// there is; [Table.Warm] and [Table.RefreshRoutes] read ahead. A process that
// lives long may follow hbase:meta ([WithMetaWatch]), so that it meets no old
// server after a move, and keep what it knows in a file ([WithRouteSnapshot]),
// so that its successor need not ask.
//
// # Observe
//
// [WithHooks] takes values that implement what they want to see of operations,
// attempts, waits, lookups, routes, servers, connections and scans; packages
// hbaseotel and hbaseprom are such hooks for OpenTelemetry and Prometheus. A
// client without hooks pays nothing for them. [WithLogger] hears of changes of
// state, [Client.Servers] and [Client.RouteStats] tell what the client knows,
// [Scanner.Stats] and [Scanner.Metrics] what a scan cost, and [Config.Effective]
// which settings are in force and where each comes from.
//
// # Call coprocessors
//
// Package hbase/endpoint calls services of all regions of a range and has the
// aggregations; [Table.CallService] calls one region, [Table.MutateRows]
// changes several rows of one region together.
//
// # Administer
//
// See package hbase/admin, by way of [Client.Admin]; filters are in
// hbase/filter.
package hbase
