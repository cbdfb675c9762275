// Package hbaseotel shows a client's work to OpenTelemetry: a span for each
// operation and each request, with the semantic conventions for databases, and
// metrics.
//
//	tel, err := hbaseotel.New(hbaseotel.WithTracerProvider(tp), hbaseotel.WithMeterProvider(mp))
//	client, err := hbase.Open(ctx, address, hbase.WithHooks(tel))
//
// Spans: one per operation ("get orders", kind client), child of the span in the
// caller's context; below it one per request ("Get orders"), with server and
// error; waits, lookups and failures before a request are events of the
// operation's span. A scan is a span of its own around its steps. The client's
// own reads of hbase:meta serve many operations and belong to none; they have
// spans with [WithMetaSpans] only.
//
// The trace travels to the region servers in the request header, where HBase 2.5
// and later take it up, so that a server's own spans become children of the
// request's.
//
// Metrics: db.client.operation.duration (histogram, s, by operation, table and
// error.type), hbase.client.attempts and hbase.client.retries (counters, the
// latter by wait class), hbase.client.wait.duration (histogram, s, by class),
// hbase.client.meta.reads, hbase.client.connections.
//
// Row keys and values are recorded nowhere.
package hbaseotel
