// Package meta knows HBase's names and the layout of hbase:meta: tables,
// servers, regions, their encoded names, the order of meta's rows (which is
// not byte order), and how a region row is read and written.
//
// It is pure and shared by the client, which reads meta, and the embedded
// cluster, which renders it. Facts: HBase's TableName, ServerName,
// RegionInfo, CatalogFamilyFormat and MetaCellComparator.
package meta
