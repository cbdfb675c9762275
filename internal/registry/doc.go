// Package registry finds the two servers from which everything else is found:
// the one that holds hbase:meta, and the active master. It also reads the
// addresses people write down for a cluster: a URL with options, or an
// hbase-site.xml.
//
// There are two implementations: ZooKeeper (HBase's znodes, one shared
// session) and RPC (ClientMetaService of masters and, since HBase 2.5, region
// servers).
//
// Invariants:
//   - Nothing is cached here: every call asks. Who calls (route for meta,
//     session for the master) keeps the answer and shares the asking.
//   - Every call ends with its context.
//   - An error names what was asked, where, and what to do about it; those
//     that trying again cannot cure say so (Permanent).
package registry
