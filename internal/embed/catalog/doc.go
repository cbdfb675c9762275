// Package catalog is what the embedded cluster knows about itself: tables with
// their descriptors and states, regions with their assignment, namespaces,
// region server groups, settings and counters.
//
// Readers take a State: an immutable picture that costs one atomic load, so a
// scan of hbase:meta never blocks a region move and never sees half of one.
// Writers go through Update, one at a time: a transaction's durable part is
// written to the store as one atomic batch before its picture is published.
//
// What is durable and what is not: tables, regions (identity, split and merge
// lineage), namespaces, groups, settings and counters are. Assignments (which
// server, which open sequence number) are not: every start of the cluster has
// new servers with new start codes, so all regions are assigned afresh, with
// sequence numbers from the store's counter, which never goes back.
//
// hbase:meta, hbase:namespace and hbase:rsgroup are rendered from a State at
// read time (virtual.go); rows of hbase:meta come in meta.CompareRows order,
// because the region index is kept in that order.
//
// Master and the cluster's wiring may import it.
package catalog
