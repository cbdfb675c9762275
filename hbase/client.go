package hbase

import (
	"context"
	"sync"

	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// Client is a connection to one cluster: routes, connections, retries. Make
// one per cluster and process; it is safe for concurrent use, and so is
// everything made from it except Scanners.
type Client struct {
	cfg  Config
	core core
	gets sync.Pool // *getCall
	scan []ScanHook
	life []ClientHook

	// bg counts the goroutines that outlive a call: the closing and renewing
	// of scanners. Close waits for them, so none is started once closed is set.
	mu     sync.Mutex
	closed bool
	bg     sync.WaitGroup

	// over ends with Close, for work that waits for its caller and not for the
	// cluster.
	over context.Context
	end  context.CancelCauseFunc

	snapshots snapshots
}

// core is what the client needs of a session; tests script it.
type core interface {
	CallRegion(context.Context, *session.RegionCall) (session.Answer, error)
	CallReplica(context.Context, *route.Route, *route.Replica, *session.RegionCall) (session.Answer, error)
	Batch(context.Context, meta.TableName, []session.Item) []session.Outcome
	CallMaster(context.Context, *session.ServerCall) (session.Answer, error)
	CallServer(context.Context, meta.ServerName, *session.ServerCall) (session.Answer, error)
	Routes() *route.Cache
	NonceGroup() uint64
	NewNonce() uint64
	Close() error
}

var _ core = (*session.Core)(nil)

// Open makes a client for the cluster at address:
//
//	hbase://zk1:2181,zk2:2181/hbase    a ZooKeeper quorum and its parent znode
//	hbase+rpc://m1:16000,m2:16000      the RPC registry of HBase 2.5 and later
//	/etc/hbase/conf                    an hbase-site.xml, or a folder that has one
//	""                                 $HOLDFAST_ADDRESS, or $HBASE_CONF_DIR
//
// It checks address and options, and reports all their problems at once. It
// does not wait for the cluster, and calls find it when they need it; use
// [Client.Ping] to know now.
func Open(ctx context.Context, address string, opts ...Option) (*Client, error) {
	cfg, err := configOf(address)
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	c, err := session.Open(ctx, cfg.session())
	if err != nil {
		return nil, err
	}
	client := newClient(cfg, c)
	client.openSnapshot(ctx)
	for _, h := range client.life {
		h.ClientOpened(client)
	}
	return client, nil
}

func newClient(cfg Config, c core) *Client {
	client := &Client{cfg: cfg, core: c}
	//holdfast:allow context the client lives as long as it is not closed
	client.over, client.end = context.WithCancelCause(context.Background())
	client.scan, client.life = scanHooks(cfg.hooks)
	return client
}

// Close ends running calls with [ErrClosed], closes the connections, and
// returns when no goroutine of the client is left. A second Close does
// nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.closeSnapshot()
	c.end(ErrClosed)
	err := c.core.Close()
	c.bg.Wait()
	for _, h := range c.life {
		h.ClientClosed(c)
	}
	return err
}

// background runs f on a goroutine that Close waits for; false once closed.
func (c *Client) background(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.bg.Go(f)
	return true
}

// Config gives a copy of the effective configuration.
func (c *Client) Config() Config { return c.cfg }

// Ping finds the region server of hbase:meta and reads one row of it: it
// succeeds if the client can reach the cluster and the cluster can serve.
func (c *Client) Ping(ctx context.Context) error {
	t := c.tableOf(meta.MetaTable)
	sc := t.Scan(ctx, &Scan{Limit: 1})
	defer sc.Close()
	for _, err := range sc.Rows() {
		return wrap("ping", c.cfg.Address, err)
	}
	return nil
}

// Table gives a handle on a table, "name" or "namespace:name". It checks the
// name only; whether there is such a table shows with the first call.
func (c *Client) Table(name string) (*Table, error) {
	n, err := meta.ParseTableName(name)
	if err != nil {
		return nil, &InvalidError{Op: "table", Object: name, Reason: err.Error()}
	}
	return c.tableOf(n), nil
}

// TableOf is [Client.Table] for a parsed name.
func (c *Client) TableOf(name TableName) *Table { return c.tableOf(name) }

func (c *Client) tableOf(name meta.TableName) *Table { return &Table{c: c, name: name} }

// Admin gives the cluster's administration.
func (c *Client) Admin() *admin.Admin {
	return admin.New(c.core, admin.Config{
		ProcedureTimeout: c.cfg.ProcedureTimeout,
		OperationTimeout: c.cfg.OperationTimeout,
		Rows:             c.systemRows,
	})
}

// RouteStats counts what the client knows of regions and what learning it has
// cost: routes held, reads of hbase:meta, hints followed, and so on.
type RouteStats = route.Stats

// RouteStats gives the counts since the client was made.
func (c *Client) RouteStats() RouteStats { return c.core.Routes().Stats() }

// Warm learns where the regions of the table are that hold rows from start
// (inclusive) to stop (exclusive; both may be empty), so that the first calls
// need not ask. It reads hbase:meta in pages of up to 1000 regions.
func (t *Table) Warm(ctx context.Context, start, stop []byte) error {
	return t.wrap("warm", t.c.core.Routes().Warm(ctx, t.name, start, stop))
}

// ForgetRoutes drops what is known of the table's regions. The client corrects
// wrong routes by itself; this is for operators who want to see it ask again.
func (t *Table) ForgetRoutes() { t.c.core.Routes().InvalidateTable(t.name) }
