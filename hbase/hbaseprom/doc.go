// Package hbaseprom counts a client's work for Prometheus. A [Collector] is a
// hook of package hbase and a prometheus.Collector; nothing is registered
// globally.
//
//	m := hbaseprom.New(hbaseprom.Options{})
//	registry.MustRegister(m)
//	client, err := hbase.Open(ctx, address, hbase.WithHooks(m))
//
// One Collector serves one client; for several clients in one process give each
// its own, with ConstLabels that tell them apart.
//
// The number of series is bounded: operations, methods, exception classes and
// wait classes come from small sets (what is unknown after [Options.MaxValues]
// values of a label counts as "other"), and tables are a label only with
// [Options.Tables], and then at most [Options.MaxTables].
//
// Metrics (namespace hbase_client unless said otherwise):
//
//	operations_total{op,table,error}      finished operations; error is "" on success
//	operation_duration_seconds{op,table}  histogram, retries included
//	operations_in_flight                  gauge
//	attempts_total{method,error}          requests
//	attempt_duration_seconds{method}      histogram
//	request_bytes_total, response_bytes_total
//	retries_total{class}                  failures after which another attempt was to follow
//	wait_seconds_total{class}, waits_total{class}
//	failures_total{rule}                  failures by the row of the table of errors
//	lookups_total{result}, lookup_duration_seconds
//	meta_reads_total{kind,result}, meta_read_duration_seconds
//	route_changes_total{change}
//	hedges_total{answer}
//	scans_total{result}, scan_rows_total, scan_reopened_total
//	connections, dials_total{result}
//	server_changes_total{state}
//
// and, read from the client when Prometheus asks:
//
//	routes, route_tables, route_waiters, route_gates, route_misses_total,
//	route_rejected_total, route_hints_total, route_evicted_total,
//	meta_reads_in_flight, meta_read_limit
//	servers{state}, server_calls_in_flight, server_calls_waiting
package hbaseprom
