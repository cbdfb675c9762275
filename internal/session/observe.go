package session

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
)

// This file is what the loop tells about itself. A hook is any value that
// implements some of the interfaces below; they are found by type assertion,
// once, when the Core is opened. Who has none pays a comparison with nil.
//
// Rules for all of them: methods are called on the goroutine that does the
// work, several at a time, so they must be safe for concurrent use and return
// at once; they must not call the client; what events point to (rows, errors)
// is not theirs to change, and rows are valid during the call only.

// OperationHook sees every operation as the caller made it, retries included.
type OperationHook interface {
	// OperationStart may replace the context: everything below the operation
	// runs with the one it returns, and so do the other hooks.
	OperationStart(ctx context.Context, o Operation) context.Context
	// OperationEnd gets the context that OperationStart returned.
	OperationEnd(ctx context.Context, o Operation, r OperationResult)
}

// Operation is one call of the client's API, or one step of a scanner.
type Operation struct {
	// Name is the verb: "get", "put", "batch", "scan open", "scan next",
	// "create table", ...
	Name string
	// Table is zero for operations that are not about one.
	Table meta.TableName
	// Row is the row asked for, nil for a batch.
	Row []byte
	// Items counts the entries of a batch; 1 otherwise.
	Items int
	// Internal marks the client's own work: reads of hbase:meta. It runs on
	// the client's context, not on a caller's, since many callers share it.
	Internal bool
	Start    time.Time
	// Timeout is the time the operation has; 0 if unbounded.
	Timeout time.Duration
}

// OperationResult is how an operation ended.
type OperationResult struct {
	Took time.Duration
	// Attempts counts the requests, at least 1 on success.
	Attempts int
	// Failed counts the entries of a batch that failed; Err is then the first
	// of their errors.
	Failed int
	Err    error
}

// AttemptHook sees every request that is handed to a connection.
type AttemptHook interface {
	// AttemptStart may give a context of its own for AttemptEnd.
	AttemptStart(ctx context.Context, a Attempt) context.Context
	AttemptEnd(ctx context.Context, a Attempt, r AttemptResult)
}

// Attempt is one request to one server.
type Attempt struct {
	Op              string // Operation.Name
	Service, Method string // as in the RPC: "ClientService", "Get"
	Table           meta.TableName
	// Region is the encoded name, empty if the request is for a server or for
	// several regions; Regions counts them.
	Region  string
	Regions int
	// Replica is the number of the region's replica, 0 for the primary.
	Replica int
	Server  meta.ServerName
	// Number counts from 1; of a batch, it is that of the first entry in the
	// request.
	Number int
	// Items counts the entries of a batch in this request; 1 otherwise.
	Items int
	// RequestBytes are the message and the cells, before compression and
	// without frame and header.
	RequestBytes int
	Start        time.Time
	// Timeout is what the attempt may take; 0 if only the operation bounds it.
	Timeout time.Duration
	// Trace, if an AttemptHook fills its map, travels to the server in the
	// request's header, where HBase 2.5 and later take up a trace by it (W3C:
	// "traceparent").
	Trace map[string]string
}

// AttemptResult is what became of an attempt.
type AttemptResult struct {
	Took time.Duration
	// Sent says that the server may have got the request.
	Sent bool
	// ResponseBytes are the message and the cells of the answer as they
	// travelled; 0 if none came.
	ResponseBytes int
	Err           error
	// Decision is what the error table made of Err; zero on success.
	Decision Decision
}

// Decision is the error table's verdict on a failure.
type Decision struct {
	// Rule names the row of the table: "region moved", "not serving", ...
	Rule string
	// Action is the verdict in words: "reject, wait relocate".
	Action string
	// Wait is the class of the pause that follows: "transit", "server busy",
	// ...; "none" if there is none.
	Wait string
	// Retriable: another attempt follows if time is left.
	Retriable bool
	// MaybeApplied: the request may have been executed.
	MaybeApplied bool
}

func decisionOf(d retry.Decision) Decision {
	return Decision{
		Rule: d.Rule, Action: d.Action(), Wait: d.Wait.String(),
		Retriable: d.Retriable, MaybeApplied: d.MaybeApplied,
	}
}

// String is "rule: action", empty for the zero Decision.
func (d Decision) String() string {
	if d.Rule == "" {
		return ""
	}
	return d.Rule + ": " + d.Action
}

// FailureHook sees what goes wrong in the loop before a request is handed to a
// connection: lookups and dials that fail, servers known to be down. The
// others end in AttemptEnd.
type FailureHook interface {
	Failure(ctx context.Context, f Failure)
}

// Failure is a turn of the loop without a request.
type Failure struct {
	Op       string
	Table    meta.TableName
	Region   string          // empty if none was found
	Server   meta.ServerName // zero if none was found
	Attempts int             // begun so far
	At       time.Time
	Err      error
	Decision Decision
}

// WaitHook sees every pause between two attempts, when it is over.
type WaitHook interface {
	Waited(ctx context.Context, w Wait)
}

// Wait is one pause.
type Wait struct {
	Op    string
	Table meta.TableName
	// Class is why: "transit", "server busy", "server down", ...
	Class string
	Start time.Time
	// Planned is what the schedule said; Took is less if what it waited for
	// came sooner, or the operation ended.
	Planned, Took time.Duration
	// Err is the failure that made the pause necessary.
	Err error
}

// LookupHook sees the lookups for which an operation had to wait. A route that
// is known is no lookup, and costs nothing.
type LookupHook interface {
	LookedUp(ctx context.Context, l Lookup)
}

// Lookup is the wait for the routes of an operation.
type Lookup struct {
	Op    string
	Table meta.TableName
	Row   []byte // the first of a batch
	Rows  int
	// Region and Server are what was found for Row.
	Region string
	Server meta.ServerName
	Start  time.Time
	Took   time.Duration
	Err    error
}

// MetaHook sees the client's reads of hbase:meta and its questions to the
// registry. Many operations may wait for one of them.
type MetaHook interface {
	MetaRead(ctx context.Context, m MetaRead)
}

// MetaRead is one read.
type MetaRead struct {
	// Kind is "scan" (a page of regions), "get" (exact rows), "table state",
	// or "registry" (where hbase:meta itself is).
	Kind string
	// Server is who was asked; zero for the registry.
	Server meta.ServerName
	// Asked and Found count rows.
	Asked, Found int
	Start        time.Time
	Took         time.Duration
	Err          error
}

// ServerHook sees servers change their state.
type ServerHook interface {
	ServerChanged(e ServerEvent)
}

// ServerState says how far a server is trusted.
type ServerState = health.State

// ServerEvent is one change.
type ServerEvent struct {
	Server   meta.ServerName
	From, To ServerState
	Cause    error
	At       time.Time
}

// RouteHook sees routes change because of failures.
type RouteHook interface {
	RouteChanged(e RouteEvent)
}

// RouteChange says what happened to routes.
type RouteChange uint8

const (
	// RouteMoved: the server named the region's new place, and the route now
	// leads there. No read of hbase:meta was needed.
	RouteMoved RouteChange = iota
	// RouteRejected: the server does not serve the region; its row of
	// hbase:meta is read again.
	RouteRejected
	// RouteRechecked: the route stays, and its row is read again in the
	// background.
	RouteRechecked
	// TableForgotten: all routes of the table are void.
	TableForgotten
	// ServerForgotten: all routes to the server are void; those in use are
	// read again in bulk.
	ServerForgotten
)

// String names the change.
func (c RouteChange) String() string {
	switch c {
	case RouteMoved:
		return "moved"
	case RouteRejected:
		return "rejected"
	case RouteRechecked:
		return "rechecked"
	case TableForgotten:
		return "table forgotten"
	case ServerForgotten:
		return "server forgotten"
	}
	return "invalid"
}

// RouteEvent is one change.
type RouteEvent struct {
	Change RouteChange
	Table  meta.TableName // zero for ServerForgotten
	Region string         // encoded name; empty for tables and servers
	// From is the server the route led to, To the new one of RouteMoved.
	From, To meta.ServerName
	Cause    error
	At       time.Time
}

// HedgeHook sees reads that were sent to a second replica because the first
// did not answer in time, when they are over.
type HedgeHook interface {
	Hedged(ctx context.Context, h Hedge)
}

// Hedge is one hedged read.
type Hedge struct {
	Op     string
	Table  meta.TableName
	Region string // encoded name of the primary
	// Replicas counts those asked, the first included.
	Replicas int
	// Server and Replica are whose answer was taken; Replica 0 is the primary.
	Server  meta.ServerName
	Replica int
	// After is how long the first had been asked when the second was.
	After, Took time.Duration
	Err         error
}

// ConnHook sees connections begin and end.
type ConnHook interface {
	ConnDialed(c Conn)
	ConnClosed(c Conn)
}

// Conn is a connection, or the attempt to make one.
type Conn struct {
	Server  meta.ServerName
	Addr    string // host:port that was dialed
	Service string
	Start   time.Time
	// Took is the time of the dial with its handshake; of ConnClosed, the
	// connection's life.
	Took time.Duration
	// Err is why the dial failed; of ConnClosed, why the connection ended.
	Err error
}

// Hooks are the hooks of one Core, sorted by what they want to see. nil has
// none.
type Hooks struct {
	operations []OperationHook
	attempts   []AttemptHook
	failures   []FailureHook
	waits      []WaitHook
	lookups    []LookupHook
	metas      []MetaHook
	servers    []ServerHook
	routes     []RouteHook
	hedges     []HedgeHook
	conns      []ConnHook
}

// NewHooks sorts hooks; nil if none of them wants to see anything here.
func NewHooks(list []any) *Hooks {
	var h Hooks
	n := 0
	for _, v := range list {
		n += pick(&h.operations, v) + pick(&h.attempts, v) + pick(&h.failures, v) + pick(&h.waits, v) +
			pick(&h.lookups, v) + pick(&h.metas, v) + pick(&h.servers, v) + pick(&h.routes, v) +
			pick(&h.hedges, v) + pick(&h.conns, v)
	}
	if n == 0 {
		return nil
	}
	return &h
}

func pick[H any](list *[]H, v any) int {
	h, ok := v.(H)
	if !ok {
		return 0
	}
	*list = append(*list, h)
	return 1
}

// begin tells the operation hooks of an operation; it gives the context it
// runs with. A hook that gives none leaves it as it is.
func (h *Hooks) begin(ctx context.Context, o Operation) context.Context {
	for _, k := range h.operations {
		if next := k.OperationStart(ctx, o); next != nil {
			ctx = next
		}
	}
	return ctx
}

func (h *Hooks) ended(ctx context.Context, o Operation, r OperationResult) {
	for i := len(h.operations) - 1; i >= 0; i-- {
		h.operations[i].OperationEnd(ctx, o, r)
	}
}

func (h *Hooks) attempt(ctx context.Context, a Attempt) context.Context {
	for _, k := range h.attempts {
		if next := k.AttemptStart(ctx, a); next != nil {
			ctx = next
		}
	}
	return ctx
}

func (h *Hooks) attempted(ctx context.Context, a Attempt, r AttemptResult) {
	for i := len(h.attempts) - 1; i >= 0; i-- {
		h.attempts[i].AttemptEnd(ctx, a, r)
	}
}

func (h *Hooks) failure(ctx context.Context, f Failure) {
	for _, k := range h.failures {
		k.Failure(ctx, f)
	}
}

// The methods below may be called on nil.

func (h *Hooks) waited(ctx context.Context, w Wait) {
	if h == nil {
		return
	}
	for _, k := range h.waits {
		k.Waited(ctx, w)
	}
}

func (h *Hooks) lookedUp(ctx context.Context, l Lookup) {
	if h == nil {
		return
	}
	for _, k := range h.lookups {
		k.LookedUp(ctx, l)
	}
}

func (h *Hooks) metaRead(ctx context.Context, m MetaRead) {
	if h == nil {
		return
	}
	for _, k := range h.metas {
		k.MetaRead(ctx, m)
	}
}

func (h *Hooks) serverChanged(e ServerEvent) {
	if h == nil {
		return
	}
	for _, k := range h.servers {
		k.ServerChanged(e)
	}
}

func (h *Hooks) routeChanged(e RouteEvent) {
	if h == nil || len(h.routes) == 0 {
		return
	}
	e.At = time.Now()
	for _, k := range h.routes {
		k.RouteChanged(e)
	}
}

func (h *Hooks) hedged(ctx context.Context, e Hedge) {
	if h == nil {
		return
	}
	for _, k := range h.hedges {
		k.Hedged(ctx, e)
	}
}

func (h *Hooks) dialed(c Conn) {
	if h == nil {
		return
	}
	for _, k := range h.conns {
		k.ConnDialed(c)
	}
}

func (h *Hooks) hungUp(c Conn) {
	if h == nil {
		return
	}
	for _, k := range h.conns {
		k.ConnClosed(c)
	}
}

// observing is an attempt that hooks see, between its start and its end.
type observing struct {
	Attempt
	ctx context.Context
}

// observe tells the hooks that an attempt begins; nil if none of them wants to
// know.
func (h *Hooks) observe(ctx context.Context, a Attempt, q *request) *observing {
	if len(h.attempts) == 0 {
		return nil
	}
	a.Service, a.Method = q.service, q.method
	a.RequestBytes = q.param.SizeVT() + len(q.cells)
	a.Trace = make(map[string]string)
	v := &observing{Attempt: a, ctx: h.attempt(ctx, a)}
	if len(a.Trace) > 0 {
		q.trace = &pb.RPCTInfo{Headers: a.Trace}
	} else {
		q.trace = nil
	}
	return v
}

// end tells the hooks how the attempt ended.
func (v *observing) end(h *Hooks, x *exchange, err error, at retry.Attempt) {
	r := AttemptResult{Took: x.took, Sent: x.sent, ResponseBytes: x.received, Err: err}
	if !x.tried {
		r.Took = time.Since(v.Start) // in the server's line, in vain
	}
	if err != nil {
		if at.Sent = x.sent; !x.sent {
			at.Idempotency = retry.Safe
		}
		d := retry.Classify(err, at)
		d.MaybeApplied = d.MaybeApplied && x.sent
		r.Decision = decisionOf(d)
	}
	h.attempted(v.ctx, v.Attempt, r)
}
