package hbaseprom

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// Options of a Collector. The zero value is fine.
type Options struct {
	// Namespace is the metrics' prefix. Default "hbase_client".
	Namespace string
	// ConstLabels go onto every metric.
	ConstLabels prometheus.Labels
	// Tables makes the table a label of the operations' metrics. Default: the
	// label is empty. MaxTables bounds how many are told apart; the others count
	// as "other". Default 50.
	Tables    bool
	MaxTables int
	// MaxValues bounds the values of each other label that a server or a program
	// can invent: exception classes, names of operations. Default 100.
	MaxValues int
	// Buckets of the histograms, in seconds. Default: 0.25 ms to 60 s.
	Buckets []float64
}

// Collector is the hook and the collector. Safe for concurrent use.
type Collector struct {
	o      Options
	client atomic.Pointer[hbase.Client]
	all    []prometheus.Collector

	ops, opErrors, methods, errs, rules, tables labelSet

	operations, attempts, retries, failures            *prometheus.CounterVec
	waits, waitSeconds, lookups, metaReads             *prometheus.CounterVec
	routeChanges, hedges, scans, dials, serverChanges  *prometheus.CounterVec
	requestBytes, responseBytes, scanRows, scanReopens prometheus.Counter
	operationTime, attemptTime                         *prometheus.HistogramVec
	lookupTime, metaTime                               prometheus.Histogram
	inFlight, connections                              prometheus.Gauge

	fromClient []fromClient
	servers    *prometheus.Desc
}

// fromClient is a metric that is read from the client.
type fromClient struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	get  func(*hbase.Client) float64
}

// labelSet bounds the values of a label.
type labelSet struct {
	max   int
	known sync.Map
	n     atomic.Int64
}

// other is what a value counts as for which there is no room.
const other = "other"

func (s *labelSet) value(v string) string {
	if _, ok := s.known.Load(v); ok {
		return v
	}
	// Two at a time may go one beyond the bound, and no further.
	if s.n.Load() >= int64(s.max) {
		return other
	}
	if _, loaded := s.known.LoadOrStore(v, true); !loaded {
		s.n.Add(1)
	}
	return v
}

// New makes a Collector. Register it, and give it to hbase.WithHooks.
func New(o Options) *Collector {
	if o.Namespace == "" {
		o.Namespace = "hbase_client"
	}
	if o.MaxTables <= 0 {
		o.MaxTables = 50
	}
	if o.MaxValues <= 0 {
		o.MaxValues = 100
	}
	if len(o.Buckets) == 0 {
		o.Buckets = []float64{.00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	}
	c := &Collector{o: o}
	for _, s := range []*labelSet{&c.ops, &c.opErrors, &c.methods, &c.errs, &c.rules} {
		s.max = o.MaxValues
	}
	c.tables.max = o.MaxTables

	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: o.Namespace, Name: name, Help: help, ConstLabels: o.ConstLabels}, labels)
		c.all = append(c.all, v)
		return v
	}
	counter := func(name, help string) prometheus.Counter {
		v := prometheus.NewCounter(prometheus.CounterOpts{Namespace: o.Namespace, Name: name, Help: help, ConstLabels: o.ConstLabels})
		c.all = append(c.all, v)
		return v
	}
	histograms := func(name, help string, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: o.Namespace, Name: name, Help: help, ConstLabels: o.ConstLabels, Buckets: o.Buckets}, labels)
		c.all = append(c.all, v)
		return v
	}
	histogram := func(name, help string) prometheus.Histogram {
		v := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: o.Namespace, Name: name, Help: help, ConstLabels: o.ConstLabels, Buckets: o.Buckets})
		c.all = append(c.all, v)
		return v
	}
	gauge := func(name, help string) prometheus.Gauge {
		v := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: o.Namespace, Name: name, Help: help, ConstLabels: o.ConstLabels})
		c.all = append(c.all, v)
		return v
	}
	c.operations = counters("operations_total", "Finished operations; error is empty on success.", "op", "table", "error")
	c.operationTime = histograms("operation_duration_seconds", "Duration of operations, retries included.", "op", "table")
	c.inFlight = gauge("operations_in_flight", "Operations under way.")
	c.attempts = counters("attempts_total", "Requests; error is empty on success.", "method", "error")
	c.attemptTime = histograms("attempt_duration_seconds", "Duration of requests.", "method")
	c.requestBytes = counter("request_bytes_total", "Bytes of requests, before compression.")
	c.responseBytes = counter("response_bytes_total", "Bytes of answers.")
	c.retries = counters("retries_total", "Failures after which another attempt was to follow, by the class of the wait.", "class")
	c.failures = counters("failures_total", "Failures by the row of the table of errors.", "rule")
	c.waits = counters("waits_total", "Pauses between two attempts.", "class")
	c.waitSeconds = counters("wait_seconds_total", "Time spent in pauses between two attempts.", "class")
	c.lookups = counters("lookups_total", "Lookups for which an operation had to wait.", "result")
	c.lookupTime = histogram("lookup_duration_seconds", "Time operations waited for a route.")
	c.metaReads = counters("meta_reads_total", "Reads of hbase:meta and questions to the registry.", "kind", "result")
	c.metaTime = histogram("meta_read_duration_seconds", "Duration of reads of hbase:meta.")
	c.routeChanges = counters("route_changes_total", "Routes that changed because of failures.", "change")
	c.hedges = counters("hedges_total", "Reads that were asked in several places, by who answered.", "answer")
	c.scans = counters("scans_total", "Scans that ended.", "result")
	c.scanRows = counter("scan_rows_total", "Results that scans fetched.")
	c.scanReopens = counter("scan_reopened_total", "Scanners that were lost and opened again.")
	c.connections = gauge("connections", "Open connections to servers.")
	c.dials = counters("dials_total", "Attempts to connect.", "result")
	c.serverChanges = counters("server_changes_total", "Changes of servers' states, by the new state.", "state")

	read := func(name, help string, kind prometheus.ValueType, get func(*hbase.Client) float64) {
		c.fromClient = append(c.fromClient, fromClient{
			prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", name), help, nil, o.ConstLabels), kind, get,
		})
	}
	stat := func(get func(hbase.RouteStats) float64) func(*hbase.Client) float64 {
		return func(client *hbase.Client) float64 { return get(client.RouteStats()) }
	}
	const gaugeKind, counterKind = prometheus.GaugeValue, prometheus.CounterValue
	read("routes", "Routes known.", gaugeKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Routes) }))
	read("route_tables", "Tables with routes.", gaugeKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Tables) }))
	read("route_waiters", "Callers waiting for a route.", gaugeKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Waiters) }))
	read("route_gates", "Regions in transition that callers wait for.", gaugeKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Gates) }))
	read("route_misses_total", "Callers that had to wait for a route.", counterKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Misses) }))
	read("route_rejected_total", "Routes that their server disowned.", counterKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Rejected) }))
	read("route_hints_total", "Moves followed without a read of hbase:meta.", counterKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Hints) }))
	read("route_evicted_total", "Routes forgotten because unused.", counterKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Evicted) }))
	read("meta_reads_in_flight", "Reads of hbase:meta under way.", gaugeKind, stat(func(s hbase.RouteStats) float64 { return float64(s.Reads) }))
	read("meta_read_limit", "Reads of hbase:meta allowed at one time.", gaugeKind, stat(func(s hbase.RouteStats) float64 { return float64(s.ReadLimit) }))
	read("server_calls_in_flight", "Calls under way, over all servers.", gaugeKind, func(client *hbase.Client) float64 {
		n := 0
		for _, s := range client.Servers() {
			n += s.InFlight
		}
		return float64(n)
	})
	read("server_calls_waiting", "Calls in line for a server, over all servers.", gaugeKind, func(client *hbase.Client) float64 {
		n := 0
		for _, s := range client.Servers() {
			n += s.Waiting
		}
		return float64(n)
	})
	c.servers = prometheus.NewDesc(prometheus.BuildFQName(o.Namespace, "", "servers"), "Servers met, by state.", []string{"state"}, o.ConstLabels)
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.all {
		m.Describe(ch)
	}
	for _, m := range c.fromClient {
		ch <- m.desc
	}
	ch <- c.servers
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.all {
		m.Collect(ch)
	}
	client := c.client.Load()
	if client == nil {
		return
	}
	for _, m := range c.fromClient {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.get(client))
	}
	states := map[hbase.ServerState]int{
		hbase.ServerHealthy: 0, hbase.ServerSuspect: 0, hbase.ServerDown: 0, hbase.ServerProbing: 0,
	}
	for _, s := range client.Servers() {
		states[s.State]++
	}
	for state, n := range states {
		ch <- prometheus.MustNewConstMetric(c.servers, prometheus.GaugeValue, float64(n), state.String())
	}
}

// ClientOpened makes the client the one whose numbers are read.
func (c *Collector) ClientOpened(client *hbase.Client) { c.client.Store(client) }

// ClientClosed ends that.
func (c *Collector) ClientClosed(client *hbase.Client) { c.client.CompareAndSwap(client, nil) }

func (c *Collector) table(t hbase.TableName) string {
	if !c.o.Tables || t.IsZero() {
		return ""
	}
	return c.tables.value(t.String())
}

// errorOf names an error: the server's exception class without its package, or
// the kind that hbase.Explain gives.
func errorOf(set *labelSet, err error) string {
	if err == nil {
		return ""
	}
	if remote, ok := errors.AsType[*hbase.RemoteError](err); ok {
		return set.value(remote.Class[strings.LastIndexByte(remote.Class, '.')+1:])
	}
	return set.value(hbase.Explain(err).Kind)
}

func result(err error) string {
	if err != nil {
		return "error"
	}
	return "ok"
}

// OperationStart counts the operation in.
func (c *Collector) OperationStart(ctx context.Context, o hbase.Operation) context.Context {
	if !o.Internal {
		c.inFlight.Inc()
	}
	return ctx
}

// OperationEnd counts it out.
func (c *Collector) OperationEnd(_ context.Context, o hbase.Operation, r hbase.OperationResult) {
	if o.Internal {
		return
	}
	c.inFlight.Dec()
	op, table := c.ops.value(o.Name), c.table(o.Table)
	c.operations.WithLabelValues(op, table, errorOf(&c.opErrors, r.Err)).Inc()
	c.operationTime.WithLabelValues(op, table).Observe(r.Took.Seconds())
}

// AttemptStart does nothing.
func (c *Collector) AttemptStart(ctx context.Context, _ hbase.Attempt) context.Context { return ctx }

// AttemptEnd counts a request.
func (c *Collector) AttemptEnd(_ context.Context, a hbase.Attempt, r hbase.AttemptResult) {
	method := c.methods.value(a.Method)
	c.attempts.WithLabelValues(method, errorOf(&c.errs, r.Err)).Inc()
	c.attemptTime.WithLabelValues(method).Observe(r.Took.Seconds())
	c.requestBytes.Add(float64(a.RequestBytes))
	c.responseBytes.Add(float64(r.ResponseBytes))
	if r.Err != nil {
		c.failed(r.Decision)
	}
}

// Failure counts what failed before there was a request.
func (c *Collector) Failure(_ context.Context, f hbase.Failure) { c.failed(f.Decision) }

func (c *Collector) failed(d hbase.Decision) {
	c.failures.WithLabelValues(c.rules.value(d.Rule)).Inc()
	if d.Retriable {
		c.retries.WithLabelValues(d.Wait).Inc()
	}
}

// Waited counts a pause.
func (c *Collector) Waited(_ context.Context, w hbase.Wait) {
	c.waits.WithLabelValues(w.Class).Inc()
	c.waitSeconds.WithLabelValues(w.Class).Add(max(w.Took, 0).Seconds())
}

// LookedUp counts a lookup.
func (c *Collector) LookedUp(_ context.Context, l hbase.Lookup) {
	c.lookups.WithLabelValues(result(l.Err)).Inc()
	c.lookupTime.Observe(l.Took.Seconds())
}

// MetaRead counts a read of hbase:meta.
func (c *Collector) MetaRead(_ context.Context, m hbase.MetaRead) {
	c.metaReads.WithLabelValues(m.Kind, result(m.Err)).Inc()
	c.metaTime.Observe(m.Took.Seconds())
}

// RouteChanged counts a route's change.
func (c *Collector) RouteChanged(e hbase.RouteEvent) {
	c.routeChanges.WithLabelValues(e.Change.String()).Inc()
}

// ServerChanged counts a server's new state.
func (c *Collector) ServerChanged(e hbase.ServerEvent) {
	c.serverChanges.WithLabelValues(e.To.String()).Inc()
}

// Hedged counts a read that was asked in several places.
func (c *Collector) Hedged(_ context.Context, h hbase.Hedge) {
	answer := "primary"
	switch {
	case h.Err != nil:
		answer = "error"
	case h.Replica > 0:
		answer = "replica"
	}
	c.hedges.WithLabelValues(answer).Inc()
}

// ConnDialed counts a dial.
func (c *Collector) ConnDialed(d hbase.Conn) {
	c.dials.WithLabelValues(result(d.Err)).Inc()
	if d.Err == nil {
		c.connections.Inc()
	}
}

// ConnClosed counts a connection out.
func (c *Collector) ConnClosed(hbase.Conn) { c.connections.Dec() }

// ScanStart does nothing.
func (c *Collector) ScanStart(ctx context.Context, _ hbase.ScanInfo) context.Context { return ctx }

// ScanEvent counts lost scanners.
func (c *Collector) ScanEvent(_ context.Context, _ hbase.ScanInfo, e hbase.ScanEvent) {
	if e.Kind == hbase.ScanRegionLost {
		c.scanReopens.Inc()
	}
}

// ScanEnd counts a scan.
func (c *Collector) ScanEnd(_ context.Context, _ hbase.ScanInfo, r hbase.ScanResult) {
	c.scans.WithLabelValues(result(r.Err)).Inc()
	c.scanRows.Add(float64(r.Rows))
}

var (
	_ prometheus.Collector = (*Collector)(nil)
	_ hbase.ClientHook     = (*Collector)(nil)
	_ hbase.OperationHook  = (*Collector)(nil)
	_ hbase.AttemptHook    = (*Collector)(nil)
	_ hbase.FailureHook    = (*Collector)(nil)
	_ hbase.WaitHook       = (*Collector)(nil)
	_ hbase.LookupHook     = (*Collector)(nil)
	_ hbase.MetaHook       = (*Collector)(nil)
	_ hbase.ServerHook     = (*Collector)(nil)
	_ hbase.RouteHook      = (*Collector)(nil)
	_ hbase.HedgeHook      = (*Collector)(nil)
	_ hbase.ConnHook       = (*Collector)(nil)
	_ hbase.ScanHook       = (*Collector)(nil)
)
