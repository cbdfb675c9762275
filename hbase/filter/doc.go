// Package filter has the filters that region servers evaluate during Get, Scan
// and CheckAndMutate, the comparators some of them take, and HBase's filter
// language. It knows every filter and comparator of HBase 2.6.
//
//	scan.WithFilter(filter.And(filter.Prefix("user/"), filter.FirstKeyOnly()))
//
// # Values
//
// Each class is a struct of the name it has in Java, with a constructor of the
// short name: [Prefix] makes a [PrefixFilter]. The fields may be set directly.
// Filters and comparators are inert: they hold no state of a scan, and after
// they are made they may be shared by any number of goroutines. Bytes given to
// constructors are not copied.
//
// All that package hbase asks of a filter is a class name and protobuf bytes,
// so a class of one's own that is installed on the servers is a [CustomFilter].
// The bytes are those that HBase's Java client sends.
//
// # What a filter sees
//
// A filter is asked about cells after deletes, expiry, time range and the
// choice of columns, region by region: whatever it counts or remembers starts
// afresh in the next region. Its answer often means "to the next row" or "the
// rest is not wanted", which is what makes filters cheap; the order of the
// filters in a list matters for that reason.
//
// # The language
//
// [Parse] reads the text form that HBase's shell and its Thrift and REST
// gateways take, [Format] writes it, and [Unmarshal] makes the typed filter of
// bytes from the wire, for instance to print it:
//
//	f, err := filter.Parse("PrefixFilter('a') AND (PageFilter(3) OR ValueFilter(=, 'binary:x'))")
//
// The package imports only internal/pb.
package filter
