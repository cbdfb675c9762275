package hbaseotel_test

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/hbaseotel"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fixture struct {
	cluster *minihbase.Cluster
	table   *hbase.Table
	client  *hbase.Client
	spans   *tracetest.SpanRecorder
	tracer  *sdktrace.TracerProvider
	reader  *sdkmetric.ManualReader
}

func start(t *testing.T, opts ...hbaseotel.Option) *fixture {
	t.Helper()
	f := &fixture{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	f.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(f.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(f.reader))
	hook, err := hbaseotel.New(append([]hbaseotel.Option{hbaseotel.WithTracerProvider(f.tracer), hbaseotel.WithMeterProvider(meters)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if f.cluster, err = minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.cluster.Close() })
	if err := f.cluster.CreateTable(t.Context(), "orders", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	if f.client, err = hbase.Open(t.Context(), f.cluster.Address(), hbase.WithHooks(hook)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.client.Close() })
	if f.table, err = f.client.Table("orders"); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) rule(t *testing.T, r minihbase.Rule) {
	t.Helper()
	if _, err := f.cluster.AddRule(r); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) named(name string) []sdktrace.ReadOnlySpan {
	var list []sdktrace.ReadOnlySpan
	for _, s := range f.spans.Ended() {
		if s.Name() == name {
			list = append(list, s)
		}
	}
	return list
}

func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

func TestSpans(t *testing.T) {
	f := start(t)
	f.rule(t, minihbase.Rule{Match: minihbase.Match{Method: "Get", Table: "orders"}, Action: minihbase.Fail, Times: 1, Exception: minihbase.Exception{Class: "RegionTooBusyException"}})
	ctx, parent := f.tracer.Tracer("test").Start(t.Context(), "request")
	if _, err := f.table.Get(ctx, hbase.NewGet("r")); err != nil {
		t.Fatal(err)
	}
	parent.End()
	ops, attempts := f.named("get orders"), f.named("Get orders")
	if len(ops) != 1 || len(attempts) != 2 {
		t.Fatalf("%d operations, %d attempts", len(ops), len(attempts))
	}
	op := ops[0]
	if op.Parent().SpanID() != parent.SpanContext().SpanID() || op.Status().Code == codes.Error {
		t.Errorf("parent %s, status %v", op.Parent().SpanID(), op.Status())
	}
	for key, want := range map[string]string{
		"db.system.name": "hbase", "db.operation.name": "get", "db.namespace": "default", "db.collection.name": "orders", "hbase.attempts": "2",
	} {
		if got := attr(op, key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	var events []string
	for _, e := range op.Events() {
		events = append(events, e.Name)
	}
	if len(events) != 2 || events[0] != "lookup" || events[1] != "wait" {
		t.Errorf("events %q", events)
	}
	bad, good := attempts[0], attempts[1]
	for _, a := range attempts {
		if a.Parent().SpanID() != op.SpanContext().SpanID() || attr(a, "server.address") != "127.0.0.1" || attr(a, "server.port") == "" || attr(a, "hbase.region") == "" {
			t.Errorf("attempt: parent %s, %v", a.Parent().SpanID(), a.Attributes())
		}
	}
	if attr(bad, "error.type") != "RegionTooBusyException" || bad.Status().Code != codes.Error || attr(bad, "hbase.decision") != "region busy: keep, wait region busy" {
		t.Errorf("%v, %v", bad.Status(), bad.Attributes())
	}
	if attr(good, "error.type") != "" || attr(good, "hbase.attempt") != "2" || attr(good, "hbase.response.size") == "0" {
		t.Errorf("%v", good.Attributes())
	}
	if n := len(f.named("read meta hbase:meta")); n != 0 {
		t.Errorf("%d spans of reads of hbase:meta", n)
	}
	// A failed operation.
	absent, err := f.client.Table("absent")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := absent.Get(ctx, hbase.NewGet("r")); err == nil {
		t.Fatal("no error")
	}
	if s := f.named("get absent"); len(s) != 1 || attr(s[0], "error.type") != "table_missing" {
		t.Errorf("%v", s)
	}
}

func TestScanAndBatchSpans(t *testing.T) {
	f := start(t, hbaseotel.WithMetaSpans())
	ops := []hbase.Op{hbase.NewPut("a").Set("f", "q", nil), hbase.NewPut("b").Set("f", "q", nil), hbase.NewPut("c").Set("nope", "q", nil)}
	if err := f.table.Batch(t.Context(), ops).Err(); err == nil {
		t.Fatal("no error")
	}
	if s := f.named("batch orders"); len(s) != 1 || attr(s[0], "db.operation.batch.size") != "3" || attr(s[0], "error.type") != "NoSuchColumnFamilyException" {
		t.Errorf("%v", s)
	}
	for _, err := range f.table.Scan(t.Context(), &hbase.Scan{}).Rows() {
		if err != nil {
			t.Fatal(err)
		}
	}
	scans := f.named("scan orders")
	if len(scans) != 1 || attr(scans[0], "hbase.scan.rows") != "2" {
		t.Fatalf("%v", scans)
	}
	for _, s := range f.named("scan open orders") {
		if s.Parent().SpanID() != scans[0].SpanContext().SpanID() {
			t.Error("the opening is not below the scan")
		}
	}
	if len(f.named("read meta hbase:meta")) == 0 {
		t.Error("no span of the reads of hbase:meta")
	}
}

func TestMetrics(t *testing.T) {
	f := start(t)
	f.rule(t, minihbase.Rule{Match: minihbase.Match{Method: "Get", Table: "orders"}, Action: minihbase.Fail, Times: 2, Exception: minihbase.Exception{Class: "RegionTooBusyException"}})
	for range 3 {
		if _, err := f.table.Get(t.Context(), hbase.NewGet("r")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var got metricdata.ResourceMetrics
	if err := f.reader.Collect(ctx, &got); err != nil {
		t.Fatal(err)
	}
	seen := map[string]metricdata.Aggregation{}
	for _, s := range got.ScopeMetrics {
		for _, m := range s.Metrics {
			seen[m.Name] = m.Data
		}
	}
	h, ok := seen["db.client.operation.duration"].(metricdata.Histogram[float64])
	if !ok || len(h.DataPoints) != 1 || h.DataPoints[0].Count != 3 {
		t.Fatalf("durations %+v", seen["db.client.operation.duration"])
	}
	set := h.DataPoints[0].Attributes
	if v, _ := set.Value(attribute.Key("db.operation.name")); v.AsString() != "get" {
		t.Errorf("attributes %v", set)
	}
	r, ok := seen["hbase.client.retries"].(metricdata.Sum[int64])
	if !ok || len(r.DataPoints) != 1 || r.DataPoints[0].Value != 2 {
		t.Errorf("retries %+v", seen["hbase.client.retries"])
	} else if v, _ := r.DataPoints[0].Attributes.Value(attribute.Key("hbase.wait.class")); v.AsString() != "region busy" {
		t.Errorf("class %v", v)
	}
	if w, ok := seen["hbase.client.wait.duration"].(metricdata.Histogram[float64]); !ok || w.DataPoints[0].Count != 2 || w.DataPoints[0].Sum <= 0 {
		t.Errorf("waits %+v", seen["hbase.client.wait.duration"])
	}
	if c, ok := seen["hbase.client.connections"].(metricdata.Sum[int64]); !ok || c.DataPoints[0].Value < 1 {
		t.Errorf("connections %+v", seen["hbase.client.connections"])
	}
	for _, name := range []string{"hbase.client.attempts", "hbase.client.meta.reads"} {
		if seen[name] == nil {
			t.Errorf("no %s", name)
		}
	}
}

// The trace goes along to the server.
func TestPropagation(t *testing.T) {
	hook, err := hbaseotel.New(hbaseotel.WithTracerProvider(sdktrace.NewTracerProvider()))
	if err != nil {
		t.Fatal(err)
	}
	a := hbase.Attempt{Op: "get", Method: "Get", Trace: map[string]string{}, Start: time.Now()}
	ctx := hook.AttemptStart(t.Context(), a)
	hook.AttemptEnd(ctx, a, hbase.AttemptResult{})
	if p := a.Trace["traceparent"]; len(p) != 55 {
		t.Errorf("traceparent %q", p)
	}
}
