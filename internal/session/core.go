package session

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// Core is one client's machinery. Safe for concurrent use.
type Core struct{}

// Open checks the configuration and makes a Core. It does not need the cluster
// to be reachable: the first call finds out.
func Open(ctx context.Context, cfg Config) (*Core, error) { return nil, errUnfinished }

// Close ends every call with ErrClosed, closes the connections, and returns
// when no goroutine of the Core is left.
func (c *Core) Close() error { return nil }

// CallRegion performs one operation on the region that holds the call's row.
func (c *Core) CallRegion(ctx context.Context, call *RegionCall) (Answer, error) {
	return Answer{}, errUnfinished
}

// CallRoute makes exactly one attempt on the region of r: no lookup, no retry.
// Routes and health learn of a failure as in CallRegion. The error is an
// *AttemptError, so that the caller (a scanner) can decide what to do next.
func (c *Core) CallRoute(ctx context.Context, r *route.Route, call *RegionCall) (Answer, error) {
	return Answer{}, errUnfinished
}

// Batch performs the items, grouped by server and region, and gives one
// outcome per item, in the order of the items.
func (c *Core) Batch(ctx context.Context, table meta.TableName, items []Item) []Outcome { return nil }

// CallMaster performs a call on the active master, finding it again whenever
// it has changed.
func (c *Core) CallMaster(ctx context.Context, call *ServerCall) (Answer, error) {
	return Answer{}, errUnfinished
}

// CallServer performs a call on one server, without looking for another.
func (c *Core) CallServer(ctx context.Context, server meta.ServerName, call *ServerCall) (Answer, error) {
	return Answer{}, errUnfinished
}

// Routes gives the cache of routes.
func (c *Core) Routes() *route.Cache { return nil }

// Servers gives the servers met so far.
func (c *Core) Servers() *health.Table { return nil }

// NonceGroup is this client's nonce group; NewNonce gives a fresh nonce (never
// 0) within it.
func (c *Core) NonceGroup() uint64 { return 0 }

// NewNonce gives a fresh nonce within NonceGroup, never 0.
func (c *Core) NewNonce() uint64 { return 0 }

var errUnfinished = ErrUnsupported
