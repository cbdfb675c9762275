// Package filter has filters that region servers evaluate during Get and Scan,
// and the comparators some of them take. Values are inert and may be shared.
//
//	scan.WithFilter(filter.And(filter.Prefix("user/"), filter.FirstKeyOnly()))
//
// A filter states its Java class name and that class's protobuf bytes, which is
// all that package hbase asks of one. The package imports only internal/pb.
package filter
