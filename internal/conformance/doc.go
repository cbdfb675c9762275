// Package conformance is one suite of tests for every cluster the client is
// meant for: the embedded one, and real HBase. It says what a user of package
// hbase sees: reads, writes, scans, administration, errors, and what stays true
// while regions move, split and merge and servers die.
//
// Run is called from tests (hbase, interop); each run uses tables with a prefix
// of its own and drops them. The expectations are HBase's: where the embedded
// cluster and HBase 2.4 or 2.6 differ, the embedded cluster is wrong.
package conformance
