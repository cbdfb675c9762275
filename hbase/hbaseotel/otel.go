package hbaseotel

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// scope names the instrumentation.
const scope = "github.com/holdfast-hbase/holdfast/hbase/hbaseotel"

// The attributes, as the semantic conventions for databases name them; those
// that begin with hbase are our own.
const (
	keySystem     = attribute.Key("db.system.name")
	keyOperation  = attribute.Key("db.operation.name")
	keyBatchSize  = attribute.Key("db.operation.batch.size")
	keyNamespace  = attribute.Key("db.namespace")
	keyCollection = attribute.Key("db.collection.name")
	keyStatus     = attribute.Key("db.response.status_code")
	keyAddress    = attribute.Key("server.address")
	keyPort       = attribute.Key("server.port")
	keyError      = attribute.Key("error.type")
	keyRegion     = attribute.Key("hbase.region")
	keyReplica    = attribute.Key("hbase.replica")
	keyAttempt    = attribute.Key("hbase.attempt")
	keyAttempts   = attribute.Key("hbase.attempts")
	keyDecision   = attribute.Key("hbase.decision")
	keyClass      = attribute.Key("hbase.wait.class")
	keyRequest    = attribute.Key("hbase.request.size")
	keyResponse   = attribute.Key("hbase.response.size")
	keyRows       = attribute.Key("hbase.scan.rows")
	keyRegions    = attribute.Key("hbase.scan.regions")
	keyKind       = attribute.Key("hbase.kind")
	system        = "hbase"
)

type config struct {
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
	propagator propagation.TextMapPropagator
	meta       bool
	tables     bool
}

// Option changes how a Hook works.
type Option func(*config)

// WithTracerProvider says where spans go. Default: otel.GetTracerProvider().
func WithTracerProvider(p trace.TracerProvider) Option { return func(c *config) { c.tracers = p } }

// WithMeterProvider says where metrics go. Default: otel.GetMeterProvider().
func WithMeterProvider(p metric.MeterProvider) Option { return func(c *config) { c.meters = p } }

// WithPropagator says how the trace travels to the servers. Default: W3C trace
// context, which HBase reads; nil: it does not travel.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(c *config) { c.propagator = p }
}

// WithMetaSpans makes root spans of the client's own reads of hbase:meta.
func WithMetaSpans() Option { return func(c *config) { c.meta = true } }

// WithoutTableMetrics leaves the table out of the metrics, for programs with
// very many tables. Spans have it all the same.
func WithoutTableMetrics() Option { return func(c *config) { c.tables = false } }

// Hook implements the hooks of package hbase. One Hook may serve several
// clients. Safe for concurrent use.
type Hook struct {
	config
	tracer trace.Tracer

	duration, waits        metric.Float64Histogram
	attempts, retries      metric.Int64Counter
	metaReads, moves, dead metric.Int64Counter
	conns                  metric.Int64UpDownCounter
}

// New makes a Hook; an error if the meter provider refuses an instrument.
func New(opts ...Option) (*Hook, error) {
	h := &Hook{config: config{propagator: propagation.TraceContext{}, tables: true}}
	for _, o := range opts {
		o(&h.config)
	}
	if h.tracers == nil {
		h.tracers = otel.GetTracerProvider()
	}
	if h.meters == nil {
		h.meters = otel.GetMeterProvider()
	}
	h.tracer = h.tracers.Tracer(scope)
	m := h.meters.Meter(scope)
	var errs [8]error
	// The conventions' own boundaries, with finer ones below: a Get takes less
	// than a millisecond.
	bounds := metric.WithExplicitBucketBoundaries(0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
	h.duration, errs[0] = m.Float64Histogram("db.client.operation.duration", metric.WithUnit("s"), bounds, metric.WithDescription("Duration of operations, retries included"))
	h.waits, errs[1] = m.Float64Histogram("hbase.client.wait.duration", metric.WithUnit("s"), bounds, metric.WithDescription("Pauses between two attempts, by the reason to wait"))
	h.attempts, errs[2] = m.Int64Counter("hbase.client.attempts", metric.WithUnit("{request}"), metric.WithDescription("Requests sent"))
	h.retries, errs[3] = m.Int64Counter("hbase.client.retries", metric.WithUnit("{retry}"), metric.WithDescription("Failures after which another attempt was to follow, by the class of the wait"))
	h.metaReads, errs[4] = m.Int64Counter("hbase.client.meta.reads", metric.WithUnit("{read}"), metric.WithDescription("Reads of hbase:meta and questions to the registry"))
	h.moves, errs[5] = m.Int64Counter("hbase.client.route.changes", metric.WithUnit("{change}"), metric.WithDescription("Routes that changed because of failures"))
	h.dead, errs[6] = m.Int64Counter("hbase.client.server.changes", metric.WithUnit("{change}"), metric.WithDescription("Servers that changed their state, by the new state"))
	h.conns, errs[7] = m.Int64UpDownCounter("hbase.client.connections", metric.WithUnit("{connection}"), metric.WithDescription("Open connections"))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return h, nil
}

// kind of the error for error.type: the server's exception class without its
// package, or the kind that hbase.Explain gives.
func errorType(err error) string {
	if remote, ok := errors.AsType[*hbase.RemoteError](err); ok {
		return remote.Class[strings.LastIndexByte(remote.Class, '.')+1:]
	}
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	return strings.ReplaceAll(hbase.Explain(err).Kind, " ", "_")
}

func tableAttributes(t hbase.TableName) []attribute.KeyValue {
	if t.IsZero() {
		return nil
	}
	return []attribute.KeyValue{keyNamespace.String(t.Namespace), keyCollection.String(t.Qualifier)}
}

func spanName(op string, t hbase.TableName) string {
	if t.IsZero() {
		return op
	}
	return op + " " + t.String()
}

func (h *Hook) start(ctx context.Context, name string, kind trace.SpanKind, at time.Time, attrs []attribute.KeyValue) context.Context {
	ctx, _ = h.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithTimestamp(at), trace.WithAttributes(append(attrs, keySystem.String(system))...))
	return ctx
}

func fail(s trace.Span, err error) {
	if err == nil || !s.IsRecording() {
		return
	}
	kind := errorType(err)
	s.SetAttributes(keyError.String(kind))
	if remote, ok := errors.AsType[*hbase.RemoteError](err); ok {
		s.SetAttributes(keyStatus.String(remote.Class))
	}
	s.SetStatus(codes.Error, kind)
}

// OperationStart begins the operation's span.
func (h *Hook) OperationStart(ctx context.Context, o hbase.Operation) context.Context {
	if o.Internal && !h.meta {
		return ctx
	}
	attrs := append(tableAttributes(o.Table), keyOperation.String(o.Name))
	if o.Items > 1 {
		attrs = append(attrs, keyBatchSize.Int(o.Items))
	}
	ctx = h.start(ctx, spanName(o.Name, o.Table), trace.SpanKindClient, o.Start, attrs)
	return context.WithValue(ctx, operationKey{h}, trace.SpanFromContext(ctx))
}

// The spans of this Hook in a context: another hook may have put its own over
// them.
type (
	operationKey struct{ h *Hook }
	attemptKey   struct{ h *Hook }
	scanKey      struct{ h *Hook }
)

// OperationEnd ends it and counts the operation.
func (h *Hook) OperationEnd(ctx context.Context, o hbase.Operation, r hbase.OperationResult) {
	if !o.Internal {
		attrs := []attribute.KeyValue{keySystem.String(system), keyOperation.String(o.Name)}
		if h.tables {
			attrs = append(attrs, tableAttributes(o.Table)...)
		}
		if r.Err != nil {
			attrs = append(attrs, keyError.String(errorType(r.Err)))
		}
		h.duration.Record(ctx, r.Took.Seconds(), metric.WithAttributes(attrs...))
	}
	s, ok := ctx.Value(operationKey{h}).(trace.Span)
	if !ok || o.Internal && !h.meta {
		return
	}
	s.SetAttributes(keyAttempts.Int(r.Attempts))
	fail(s, r.Err)
	s.End(trace.WithTimestamp(o.Start.Add(r.Took)))
}

// AttemptStart begins the request's span and lets the server know of it.
func (h *Hook) AttemptStart(ctx context.Context, a hbase.Attempt) context.Context {
	if !h.spans(a) {
		return ctx
	}
	attrs := append(tableAttributes(a.Table), keyOperation.String(a.Method), keyAddress.String(a.Server.Host), keyPort.Int(int(a.Server.Port)),
		keyAttempt.Int(a.Number), keyRequest.Int(a.RequestBytes))
	if a.Region != "" {
		attrs = append(attrs, keyRegion.String(a.Region))
	}
	if a.Replica > 0 {
		attrs = append(attrs, keyReplica.Int(a.Replica))
	}
	if a.Items > 1 {
		attrs = append(attrs, keyBatchSize.Int(a.Items))
	}
	ctx = h.start(ctx, spanName(a.Method, a.Table), trace.SpanKindClient, a.Start, attrs)
	if h.propagator != nil {
		h.propagator.Inject(ctx, propagation.MapCarrier(a.Trace))
	}
	return context.WithValue(ctx, attemptKey{h}, trace.SpanFromContext(ctx))
}

// spans says whether the request gets a span: those of the client's own reads
// get one only below the read's.
func (h *Hook) spans(a hbase.Attempt) bool { return h.meta || a.Op != "read meta" }

// AttemptEnd ends it and counts the request.
func (h *Hook) AttemptEnd(ctx context.Context, a hbase.Attempt, r hbase.AttemptResult) {
	attrs := []attribute.KeyValue{keySystem.String(system), keyOperation.String(a.Method)}
	if r.Err != nil {
		attrs = append(attrs, keyError.String(errorType(r.Err)))
		h.retry(ctx, a.Op, r.Decision)
	}
	h.attempts.Add(ctx, 1, metric.WithAttributes(attrs...))
	s, ok := ctx.Value(attemptKey{h}).(trace.Span)
	if !ok {
		return
	}
	s.SetAttributes(keyResponse.Int(r.ResponseBytes))
	if r.Err != nil {
		s.SetAttributes(keyDecision.String(r.Decision.String()))
	}
	fail(s, r.Err)
	s.End(trace.WithTimestamp(a.Start.Add(r.Took)))
}

func (h *Hook) retry(ctx context.Context, op string, d hbase.Decision) {
	if d.Retriable {
		h.retries.Add(ctx, 1, metric.WithAttributes(keySystem.String(system), keyOperation.String(op), keyClass.String(d.Wait)))
	}
}

func event(ctx context.Context, name string, at time.Time, attrs ...attribute.KeyValue) {
	trace.SpanFromContext(ctx).AddEvent(name, trace.WithTimestamp(at), trace.WithAttributes(attrs...))
}

// Failure is an event of the operation's span.
func (h *Hook) Failure(ctx context.Context, f hbase.Failure) {
	h.retry(ctx, f.Op, f.Decision)
	if f.Op == "read meta" && !h.meta {
		return
	}
	event(ctx, "nothing sent", f.At, keyError.String(errorType(f.Err)), keyDecision.String(f.Decision.String()))
}

// Waited is an event of the operation's span.
func (h *Hook) Waited(ctx context.Context, w hbase.Wait) {
	h.waits.Record(ctx, w.Took.Seconds(), metric.WithAttributes(keySystem.String(system), keyClass.String(w.Class)))
	event(ctx, "wait", w.Start, keyClass.String(w.Class), attribute.Float64("hbase.wait.ms", ms(w.Took)))
}

// LookedUp is an event of the operation's span.
func (h *Hook) LookedUp(ctx context.Context, l hbase.Lookup) {
	attrs := []attribute.KeyValue{attribute.Float64("hbase.lookup.ms", ms(l.Took)), attribute.Int("hbase.lookup.rows", l.Rows)}
	if l.Err != nil {
		attrs = append(attrs, keyError.String(errorType(l.Err)))
	} else if l.Region != "" {
		attrs = append(attrs, keyRegion.String(l.Region), keyAddress.String(l.Server.Host), keyPort.Int(int(l.Server.Port)))
	}
	event(ctx, "lookup", l.Start, attrs...)
}

// Hedged is an event of the operation's span.
func (h *Hook) Hedged(ctx context.Context, e hbase.Hedge) {
	event(ctx, "hedge", time.Now(), keyReplica.Int(e.Replica), attribute.Float64("hbase.hedge.after.ms", ms(e.After)))
}

// MetaRead counts a read of hbase:meta.
func (h *Hook) MetaRead(ctx context.Context, m hbase.MetaRead) {
	attrs := []attribute.KeyValue{keyKind.String(m.Kind)}
	if m.Err != nil {
		attrs = append(attrs, keyError.String(errorType(m.Err)))
	}
	h.metaReads.Add(ctx, 1, metric.WithAttributes(attrs...))
}

// ServerChanged counts a server's new state.
func (h *Hook) ServerChanged(e hbase.ServerEvent) {
	h.dead.Add(background(), 1, metric.WithAttributes(attribute.String("hbase.server.state", e.To.String())))
}

// RouteChanged counts a route's change.
func (h *Hook) RouteChanged(e hbase.RouteEvent) {
	h.moves.Add(background(), 1, metric.WithAttributes(keyKind.String(e.Change.String())))
}

// ConnDialed counts an open connection.
func (h *Hook) ConnDialed(c hbase.Conn) {
	if c.Err == nil {
		h.conns.Add(background(), 1)
	}
}

// ConnClosed counts it out.
func (h *Hook) ConnClosed(hbase.Conn) { h.conns.Add(background(), -1) }

// ScanStart begins the scan's span.
func (h *Hook) ScanStart(ctx context.Context, s hbase.ScanInfo) context.Context {
	ctx = h.start(ctx, spanName("scan", s.Table), trace.SpanKindInternal, s.Start, append(tableAttributes(s.Table), keyOperation.String("scan")))
	return context.WithValue(ctx, scanKey{h}, trace.SpanFromContext(ctx))
}

// ScanEvent is an event of the scan's span.
func (h *Hook) ScanEvent(ctx context.Context, _ hbase.ScanInfo, e hbase.ScanEvent) {
	var attrs []attribute.KeyValue
	if e.Err != nil {
		attrs = append(attrs, keyError.String(errorType(e.Err)))
	}
	event(ctx, e.Kind.String(), e.At, attrs...)
}

// ScanEnd ends the scan's span.
func (h *Hook) ScanEnd(ctx context.Context, s hbase.ScanInfo, r hbase.ScanResult) {
	span, ok := ctx.Value(scanKey{h}).(trace.Span)
	if !ok {
		return
	}
	span.SetAttributes(keyRows.Int(r.Rows), keyRegions.Int(r.Stats.Regions), keyAttempts.Int(r.Stats.RPCs))
	fail(span, r.Err)
	span.End(trace.WithTimestamp(s.Start.Add(r.Took)))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// background is for what happens on nobody's behalf.
func background() context.Context {
	//holdfast:allow context changes of servers, routes and connections have no caller
	return context.Background()
}

var (
	_ hbase.OperationHook = (*Hook)(nil)
	_ hbase.AttemptHook   = (*Hook)(nil)
	_ hbase.FailureHook   = (*Hook)(nil)
	_ hbase.WaitHook      = (*Hook)(nil)
	_ hbase.LookupHook    = (*Hook)(nil)
	_ hbase.MetaHook      = (*Hook)(nil)
	_ hbase.ServerHook    = (*Hook)(nil)
	_ hbase.RouteHook     = (*Hook)(nil)
	_ hbase.HedgeHook     = (*Hook)(nil)
	_ hbase.ConnHook      = (*Hook)(nil)
	_ hbase.ScanHook      = (*Hook)(nil)
)
