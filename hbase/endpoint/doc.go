// Package endpoint calls coprocessor services: code that runs inside region
// servers, beside the data.
//
// # Region by region
//
// [Run] calls one method in every region with rows in a range, several regions
// at a time, and merges what they answer. Regions may move, split and merge
// meanwhile: each row's share of the result is merged exactly once. The
// bookkeeping is by rows and not by regions. A part of the range is done when
// the region that answered held it; if a region has split, the answer covers
// the first daughter, and only the rest is asked for again.
//
//	err := endpoint.Run(ctx, table, &endpoint.Call{
//		Service: "my.pkg.Counter", Method: "count",
//		Request: func(p endpoint.Part) ([]byte, error) {
//			return proto.Marshal(&CountRequest{Start: p.Start, Stop: p.Stop})
//		},
//	}, func(p *endpoint.Partial) error {
//		var r CountResponse
//		err := proto.Unmarshal(p.Value, &r)
//		total += r.GetCount()
//		return err
//	})
//
// # Aggregates
//
// [RowCount] and [Aggregate] are the client of HBase's AggregateService: count,
// minimum, maximum, sum, average, standard deviation, median of a column, with
// the values read as HBase's LongColumnInterpreter and its like do ([Long],
// [Double], [BigDecimal]). The service must be loaded in the region servers
// (hbase.coprocessor.region.classes, or on the table); the embedded cluster has
// it everywhere.
//
// # Single calls
//
// A service of one region, of a region server or of the master is called with
// hbase.Table.CallService, hbase.Client.CallServerService and
// hbase.Client.CallMasterService; several rows of one region are changed
// together by hbase.Table.MutateRows.
//
// Everything here is safe for concurrent use, and no goroutine is left when a
// call has returned.
package endpoint
