package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// TableName, ServerName and Region are those of package hbase.
type (
	TableName  = meta.TableName
	ServerName = meta.ServerName
	Region     = meta.Region
)

// Core is what an Admin needs of a session.
type Core interface {
	CallRegion(context.Context, *session.RegionCall) (session.Answer, error)
	CallMaster(context.Context, *session.ServerCall) (session.Answer, error)
	CallServer(context.Context, meta.ServerName, *session.ServerCall) (session.Answer, error)
	Routes() *route.Cache
	NonceGroup() uint64
	NewNonce() uint64
}

// Config is what an Admin is told by the client that makes it.
type Config struct {
	// ProcedureTimeout bounds calls that wait for the master, if the context
	// ends later or never.
	ProcedureTimeout time.Duration
	// OperationTimeout bounds the others.
	OperationTimeout time.Duration
	// Rows reads system tables that have no call of their own (hbase:quota).
	Rows RowReader
}

// Admin administers a cluster. Stateless, safe for concurrent use.
type Admin struct {
	core     Core
	cfg      Config
	progress func(Progress)
	// detached, if set, is told of submitted procedures instead of waiting.
	detached func(procID uint64)
}

// New is for package hbase; use its Client.Admin.
func New(core Core, cfg Config) *Admin { return &Admin{core: core, cfg: cfg} }

// Progress is how far a procedure has got, as far as the master tells.
type Progress struct {
	Op     string // "create table", ...
	Object string // what it is done to
	ProcID uint64
	// Polls counts the questions asked so far; Elapsed the time since the
	// procedure was submitted.
	Polls   int
	Elapsed time.Duration
	Done    bool
}

// String is `create table "t": procedure 7 running for 1.2s`.
func (p Progress) String() string {
	state := "running for"
	if p.Done {
		state = "done after"
	}
	return fmt.Sprintf("%s: procedure %d %s %v", fault.Phrase(p.Op, p.Object), p.ProcID, state, p.Elapsed.Round(time.Millisecond))
}

// OnProgress gives an Admin that tells f after each question about a running
// procedure. f runs on the caller's goroutine and should return at once.
func (a *Admin) OnProgress(f func(Progress)) *Admin {
	b := *a
	b.progress = f
	return &b
}

// Detached gives an Admin whose procedures are only submitted: a call returns
// as soon as the master has taken it, after submitted was told the procedure's
// id, and its outcome is learned with [Admin.Await] (this is what the methods
// of Java's Admin do that end in Async). submitted runs on the caller's
// goroutine. Calls that HBase does otherwise (snapshots up to 2.5, moves) are
// not touched by it, or return at once without an id.
func (a *Admin) Detached(submitted func(procID uint64)) *Admin {
	b := *a
	b.detached = submitted
	return &b
}

// Await waits for a procedure and gives its result, if it has one. One the
// master does not know is taken for one that ended long ago.
func (a *Admin) Await(ctx context.Context, procID uint64) ([]byte, error) {
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	b := *a
	b.detached = nil
	return b.wait(ctx, "await", "procedure "+strconv.FormatUint(procID, 10), procID)
}

// bound gives a context that ends in d, or with ctx.
func bound(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// master performs a quick call on the active master.
func (a *Admin) master(ctx context.Context, op, method string, param wire.Marshaler, result wire.Unmarshaler, idem session.Idempotency) error {
	_, err := a.core.CallMaster(ctx, &session.ServerCall{
		Service: session.MasterService, Method: method, Op: op,
		Param: param, Result: result, Idempotency: idem,
	})
	return err
}

// slowMaster performs a call that the master answers only when it is done
// with it, which may take longer than an attempt usually may.
func (a *Admin) slowMaster(ctx context.Context, op, method string, param wire.Marshaler, result wire.Unmarshaler, idem session.Idempotency) error {
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	_, err := a.core.CallMaster(ctx, &session.ServerCall{
		Service: session.MasterService, Method: method, Op: op,
		Param: param, Result: result, Idempotency: idem, Timeout: a.cfg.ProcedureTimeout,
	})
	return err
}

// nonces for a call that the master is to recognise when it is repeated.
func (a *Admin) nonces() (group, nonce *uint64) {
	return new(a.core.NonceGroup()), new(a.core.NewNonce())
}

func ofTable(t TableName) string     { return "table " + strconv.Quote(t.String()) }
func ofNamespace(name string) string { return "namespace " + strconv.Quote(name) }

func invalid(op, object, reason string) error {
	return &fault.Invalid{Op: op, Object: object, Reason: reason}
}

// parseTable checks a table name.
func parseTable(op, name string) (TableName, error) {
	t, err := meta.ParseTableName(name)
	if err != nil {
		return t, invalid(op, "table "+strconv.Quote(name), err.Error())
	}
	return t, nil
}
