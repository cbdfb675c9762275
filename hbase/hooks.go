package hbase

import (
	"context"
	"io"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// WithHooks tells hooks what the client does. A hook is any value that
// implements at least one of the ...Hook interfaces of this package
// ([OperationHook], [AttemptHook], [FailureHook], [WaitHook], [LookupHook],
// [MetaHook], [ServerHook], [RouteHook], [HedgeHook], [ConnHook], [ScanHook],
// [ClientHook]); implement what you need, and nothing that is added later will
// break you. The option may be given several times; hooks are called in their
// order, and for the end of something in the opposite order. A value that
// implements none of the interfaces is an error of [Open].
//
// Methods are called on the goroutine that does the work, several at a time:
// they must be safe for concurrent use, return at once, not panic, and not call
// the client. What the events point to must not be changed; rows are valid during
// the call only. A client without hooks pays nothing for them.
//
// Ready-made hooks: [Trace], package hbaseotel for OpenTelemetry, package
// hbaseprom for Prometheus.
func WithHooks(hooks ...any) Option {
	return func(c *Config) { c.hooks = append(c.hooks[:len(c.hooks):len(c.hooks)], hooks...) }
}

// Operations: what the caller asked for, retries included.
type (
	// OperationHook sees every operation begin and end, and may replace the
	// context of everything below it.
	OperationHook = session.OperationHook
	// Operation is one call of the API, or one step of a scanner.
	Operation = session.Operation
	// OperationResult is how it ended.
	OperationResult = session.OperationResult
)

// Attempts: the requests an operation was made of, and what came between them.
type (
	// AttemptHook sees every request begin and end.
	AttemptHook = session.AttemptHook
	// Attempt is one request to one server.
	Attempt = session.Attempt
	// AttemptResult is what became of it.
	AttemptResult = session.AttemptResult
	// Decision is what the table of errors made of a failure.
	Decision = session.Decision
	// FailureHook sees what fails before there is a request: lookups, dials,
	// servers known to be down.
	FailureHook = session.FailureHook
	// Failure is one such failure.
	Failure = session.Failure
	// WaitHook sees every pause between two attempts.
	WaitHook = session.WaitHook
	// Wait is one pause.
	Wait = session.Wait
	// HedgeHook sees reads that were sent to a second replica.
	HedgeHook = session.HedgeHook
	// Hedge is one such read.
	Hedge = session.Hedge
)

// Routes and servers: what the client knows of the cluster.
type (
	// LookupHook sees operations wait for a route.
	LookupHook = session.LookupHook
	// Lookup is one such wait.
	Lookup = session.Lookup
	// MetaHook sees the client read hbase:meta, on behalf of many.
	MetaHook = session.MetaHook
	// MetaRead is one read.
	MetaRead = session.MetaRead
	// RouteHook sees routes change because of failures.
	RouteHook = session.RouteHook
	// RouteEvent is one change.
	RouteEvent = session.RouteEvent
	// RouteChange says what changed.
	RouteChange = session.RouteChange
	// ServerHook sees servers change their state.
	ServerHook = session.ServerHook
	// ServerEvent is one change.
	ServerEvent = session.ServerEvent
	// ServerState says how far a server is trusted.
	ServerState = session.ServerState
	// ConnHook sees connections begin and end.
	ConnHook = session.ConnHook
	// Conn is a connection, or the attempt to make one.
	Conn = session.Conn
)

// The states of servers.
const (
	ServerHealthy = health.Healthy
	ServerSuspect = health.Suspect
	ServerDown    = health.Down
	ServerProbing = health.Probing
	ServerDead    = health.Dead
)

// The changes of routes.
const (
	RouteMoved      = session.RouteMoved
	RouteRejected   = session.RouteRejected
	RouteRechecked  = session.RouteRechecked
	TableForgotten  = session.TableForgotten
	ServerForgotten = session.ServerForgotten
)

// ClientHook sees the client itself, so that a hook can ask it for numbers
// later ([Client.RouteStats], [Client.Servers]).
type ClientHook interface {
	// ClientOpened is called before Open returns.
	ClientOpened(c *Client)
	// ClientClosed is called when nothing of the client runs any more.
	ClientClosed(c *Client)
}

// ScanHook sees scans as a whole. Their single steps ("scan open", "scan next")
// are operations of their own, with a context that comes from ScanStart's.
type ScanHook interface {
	// ScanStart may replace the context of everything below the scan.
	ScanStart(ctx context.Context, s ScanInfo) context.Context
	ScanEvent(ctx context.Context, s ScanInfo, e ScanEvent)
	// ScanEnd is called when the scanner is closed.
	ScanEnd(ctx context.Context, s ScanInfo, r ScanResult)
}

// ScanInfo is one scan.
type ScanInfo struct {
	Table TableName
	// Row is where it begins.
	Row      []byte
	Reversed bool
	Start    time.Time
}

// ScanEventKind says what happened to a scan.
type ScanEventKind uint8

const (
	// ScanRegionEntered: a scanner was opened on the next region, or again on
	// the same.
	ScanRegionEntered ScanEventKind = iota
	// ScanRegionLost: the scanner on the region was lost; the scan goes on with
	// another.
	ScanRegionLost
	// ScanHeartbeat: the server has found nothing yet and goes on.
	ScanHeartbeat
	// ScanRenewed: the lease was renewed while the caller took its time.
	ScanRenewed
)

// String names the kind.
func (k ScanEventKind) String() string {
	switch k {
	case ScanRegionEntered:
		return "region entered"
	case ScanRegionLost:
		return "region lost"
	case ScanHeartbeat:
		return "heartbeat"
	case ScanRenewed:
		return "lease renewed"
	}
	return "invalid"
}

// ScanEvent is one thing that happened to a scan.
type ScanEvent struct {
	Kind ScanEventKind
	// RegionStart and RegionEnd bound the region entered.
	RegionStart, RegionEnd []byte
	// Took is how long entering took.
	Took time.Duration
	Err  error // why the region's scanner was lost
	At   time.Time
}

// ScanResult is how a scan ended.
type ScanResult struct {
	Took  time.Duration
	Rows  int // results fetched; the caller may have taken fewer
	Stats ScanStats
	// Err is nil if the scan came to its end or was closed before it.
	Err error
}

// isHook says whether the value implements any of the interfaces.
func isHook(v any) bool {
	scans, clients := scanHooks([]any{v})
	return session.NewHooks([]any{v}) != nil || len(scans)+len(clients) > 0
}

func scanHooks(list []any) (scans []ScanHook, clients []ClientHook) {
	for _, v := range list {
		if h, ok := v.(ScanHook); ok {
			scans = append(scans, h)
		}
		if h, ok := v.(ClientHook); ok {
			clients = append(clients, h)
		}
	}
	return scans, clients
}

// scanSeen is a scan that hooks see.
type scanSeen struct {
	hooks []ScanHook
	ctx   context.Context
	info  ScanInfo
	rows  int // under Scanner.io
}

// observe tells the hooks that the scan begins.
func (sc *Scanner) observe(ctx context.Context) context.Context {
	if sc.c == nil || len(sc.c.scan) == 0 {
		return ctx
	}
	sc.seen = &scanSeen{hooks: sc.c.scan, info: ScanInfo{Row: sc.scan.Start, Reversed: sc.scan.Reversed, Start: time.Now()}}
	if t, ok := sc.t.(*rpcScan); ok {
		sc.seen.info.Table = t.t.name
	}
	for _, h := range sc.seen.hooks {
		if next := h.ScanStart(ctx, sc.seen.info); next != nil {
			ctx = next
		}
	}
	sc.seen.ctx = ctx
	return ctx
}

// clock is the time if somebody wants to know how long a step takes.
func (sc *Scanner) clock() time.Time {
	if sc.seen == nil {
		return time.Time{}
	}
	return time.Now()
}

func (sc *Scanner) tell(e ScanEvent) {
	if sc.seen == nil {
		return
	}
	e.At = time.Now()
	for _, h := range sc.seen.hooks {
		h.ScanEvent(sc.seen.ctx, sc.seen.info, e)
	}
}

func (sc *Scanner) rowsSeen(n int) {
	if sc.seen != nil {
		sc.seen.rows += n
	}
}

// observed tells the hooks that the scan is over. Under io.
func (sc *Scanner) observed() {
	if sc.seen == nil {
		return
	}
	r := ScanResult{Took: time.Since(sc.seen.info.Start), Rows: sc.seen.rows, Stats: sc.stats}
	if sc.err != io.EOF {
		r.Err = sc.err
	}
	for i := len(sc.seen.hooks) - 1; i >= 0; i-- {
		sc.seen.hooks[i].ScanEnd(sc.seen.ctx, sc.seen.info, r)
	}
}
