package route

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Config is what a Cache is made of. Source, Locator and Servers are required.
type Config struct {
	Source  Source
	Locator MetaLocator
	Servers *health.Table
	// Logger hears of tables that vanish, of meta not answering and the like;
	// nil for silence.
	Logger *slog.Logger
	// Rand gives numbers in [0,1) for jitter; nil means math/rand/v2. It must
	// be safe for concurrent use.
	Rand func() float64

	// Why, if set, tells what reads of hbase:meta are stuck in before they are
	// sent (a registry that does not answer); nil if they are not. It is asked
	// for the errors of callers whose time ends meanwhile, and must not block.
	Why func() error

	// Left, if set, hears that a route to a server that does not answer has been
	// replaced or removed: whoever waits for the server may go on elsewhere. It
	// is called under the cache's lock, and must neither block nor call back.
	Left func(s *health.Server)

	// ReadTimeout bounds one read of hbase:meta: default 3 s. It is begun again
	// while somebody waits.
	ReadTimeout time.Duration
	// TableFlights and Flights bound the reads of hbase:meta at one time, per
	// table and in all: defaults 8 and 32.
	TableFlights, Flights int
	// GateWaiters bounds the callers waiting for one region in transition:
	// default 4096. Beyond it they get ErrRegionUnavailable at once.
	GateWaiters int
	// MetaReplicas, if not nil, lets replicas of hbase:meta answer what need not
	// be the latest: the first try for a row, and warming. Wherever a route has
	// turned out wrong, the primary is asked for a few seconds (HBASE-25126).
	MetaReplicas MetaReplicas
	// WatchInterval, if positive and Source is a ChangeSource, is how often
	// hbase:meta is asked what has changed, so that routes are replaced before
	// callers meet a region's old server. Default: never. It is kept to while
	// meta is well, and while a poll takes less than a third of it.
	WatchInterval time.Duration
	// IdleTime is how long a route may stay unused: default 10 min.
	IdleTime time.Duration
	// MaxRoutes bounds the routes kept: default 4 million (about 480 MB).
	MaxRoutes int
}

func (c *Config) defaults() {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Rand == nil {
		c.Rand = rand.Float64
	}
	if c.ReadTimeout <= 0 {
		c.ReadTimeout = 3 * time.Second
	}
	if c.TableFlights <= 0 {
		c.TableFlights = 8
	}
	if c.Flights <= 0 {
		c.Flights = 32
	}
	if c.GateWaiters <= 0 {
		c.GateWaiters = 4096
	}
	if c.IdleTime <= 0 {
		c.IdleTime = 10 * time.Minute
	}
	if c.MaxRoutes <= 0 {
		c.MaxRoutes = 4 << 20
	}
}

// Cache holds the routes of one client. Safe for concurrent use.
//
// Hits read tables and a table's root, both immutable once published, and take
// no lock. Everything a miss needs (waiters, flights, repairs, the limiter,
// the timer) is under mu, which is held for moments and never across a read of
// meta, a channel operation or a callback. Roots are replaced under their
// table's pub. Order: mu and pub are never held together; a health.Server's
// lock may be taken under either.
type Cache struct {
	cfg    Config
	began  time.Time
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	tables atomic.Pointer[map[meta.TableName]*table] // replaced under mu
	now    atomic.Uint32                             // coarse clock: seconds since began
	routes atomic.Int64
	stats  counters
	storms storms

	watcher *watcher // nil unless asked for

	mu      sync.Mutex
	closed  bool
	pending map[*table]struct{} // tables with waiters
	limit   limiter
	tickets [numClasses][]*ticket // readers on their own account, waiting for the limiter

	ready     []*repair // repairs that are due; those dropped meanwhile are skipped
	nready    int       // those that are not
	readyMeta []*repair // the same for hbase:meta's own region
	delayed   repairHeap
	batched   time.Time // when the last batch of repairs began
	waves     []*wave
	left      map[*health.Server]*leftovers
	plans     map[*health.Server]uint64 // servers whose routes were re-read, and at which epoch
	planned   int                       // plans being made

	timer   *time.Timer
	timerAt time.Time // zero: not set
}

// table is the index of one table and those who wait for its regions.
type table struct {
	cache  *Cache
	name   meta.TableName
	text   string // name as in region names
	isMeta bool

	root    atomic.Pointer[root]
	doubted atomic.Int64 // when a route was last disproved, ns since the cache began; 0: never

	pub     sync.Mutex // writers of root
	rewinds map[[16]byte]rewind
	checks  tableChecks
	cursor  int      // of eviction: next chunk
	keys    keyArena // of routes learned alone; under pub

	// What is known of secondary replicas, by encoded region name: the routes
	// of tables that have none must not pay for it. replicated is set once
	// there is one. rep is taken under pub, and nothing under it.
	replicated atomic.Bool
	rep        sync.RWMutex
	replicas   map[[16]byte][]Replica

	// Under cache.mu:
	wants    []*waiter // in a gap of the index, sorted by position
	fresh    []*waiter // the same, not sorted yet
	expected int       // of fresh, so many will be served by running flights
	flights  []*flight
	repairs  map[*Route]*repair
	probed   map[*Route]probation
	users    int // who read the table on their own account
	ahead    readAhead
	failures int       // reads of meta that failed in a row
	after    time.Time // no flight before, because of them
	next     time.Time // when a waiter that has to wait is due; zero: none
	notFound time.Time // until then there is no such table
	disabled time.Time // until then it is known to be disabled
	asked    time.Time // last question whether it is disabled
	lastErr  error     // of reading meta for this table
}

// New makes an empty cache. Close it.
func New(cfg Config) *Cache {
	cfg.defaults()
	c := &Cache{
		cfg:     cfg,
		began:   time.Now(),
		pending: make(map[*table]struct{}),
		plans:   make(map[*health.Server]uint64),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.tables.Store(&map[meta.TableName]*table{})
	c.limit.init(cfg.Flights, c.began)
	c.now.Store(1)
	c.wg.Add(1)
	go c.janitor()
	if source, ok := cfg.Source.(ChangeSource); ok && cfg.WatchInterval > 0 {
		c.watcher = &watcher{cache: c, source: source, interval: cfg.WatchInterval}
		c.wg.Add(1)
		go c.watcher.watch()
	}
	return c
}

// Close ends every lookup with ErrClosed and returns when no goroutine of the
// cache is left. Routes that were handed out stay readable.
func (c *Cache) Close() {
	var done []*waiter
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.cancel()
		for t := range c.pending {
			t.sortWants()
			done = append(done, c.failAll(t.wants, ErrClosed)...)
			t.wants = nil
			for _, p := range t.repairs {
				done = append(done, c.failAll(p.waiters, ErrClosed)...)
				p.waiters = nil
			}
			t.repairs = nil
		}
		for _, w := range c.waves {
			done = append(done, c.failAll(w.waiters, ErrClosed)...)
		}
		c.waves, c.ready, c.delayed = nil, nil, nil
		if !c.timerAt.IsZero() && c.timer.Stop() {
			c.wg.Done()
		}
	}
	c.mu.Unlock()
	wake(done)
	c.wg.Wait()
}

// lookupTable gives the table if it is known.
func (c *Cache) lookupTable(name meta.TableName) *table { return (*c.tables.Load())[name] }

// tableFor gives the table, making it if needed. Under c.mu.
func (c *Cache) tableFor(name meta.TableName) *table {
	if t := c.lookupTable(name); t != nil {
		return t
	}
	t := &table{cache: c, name: name, text: name.String(), isMeta: name == meta.MetaTable}
	t.root.Store(emptyRoot)
	if len(*c.tables.Load()) >= 2*maxEmpty {
		// A caller goes through names that do not exist, faster than the
		// janitor runs.
		c.forgetEmpty()
	}
	old := *c.tables.Load()
	next := make(map[meta.TableName]*table, len(old)+1)
	for k, v := range old {
		next[k] = v
	}
	next[name] = t
	c.tables.Store(&next)
	return t
}

// Lookup gives the valid route of the row's region, or nil if there is none.
// It takes no lock and allocates nothing.
func (c *Cache) Lookup(table meta.TableName, row []byte) *Route {
	t := c.lookupTable(table)
	if t == nil {
		return nil
	}
	idx := t.root.Load()
	r := idx.guess(row)
	if r == nil {
		if r = idx.floor(row); r == nil || !r.endsAfter(row) {
			return nil
		}
	}
	if !r.Valid() {
		return nil
	}
	r.touch(c.now.Load())
	return r
}

// LookupBefore is Lookup for the region before row, see LocateBefore.
func (c *Cache) LookupBefore(table meta.TableName, row []byte) *Route {
	t := c.lookupTable(table)
	if t == nil {
		return nil
	}
	p := position{key: row, before: true}
	r := t.root.Load().find(p)
	if r == nil || !p.in(r) || !r.Valid() {
		return nil
	}
	r.touch(c.now.Load())
	return r
}

// Locate gives a valid route to the region of row, reading hbase:meta if
// necessary, and waiting while the region is in transition, as long as ctx
// allows. The error is a *LocateError.
func (c *Cache) Locate(ctx context.Context, table meta.TableName, row []byte) (*Route, error) {
	if r := c.Lookup(table, row); r != nil {
		return r, nil
	}
	return c.locate(ctx, table, position{key: row}, nil)
}

// LocateBefore is Locate for the region before row: the one whose start key is
// strictly smaller and which ends at or after row. An empty row means the
// table's last region. Reversed scans walk with it.
func (c *Cache) LocateBefore(ctx context.Context, table meta.TableName, row []byte) (*Route, error) {
	if r := c.LookupBefore(table, row); r != nil {
		return r, nil
	}
	return c.locate(ctx, table, position{key: row, before: true}, nil)
}

// LocateAhead is Locate for somebody who is going to walk on to stop (empty:
// to the table's end): the regions on the way are read along in larger pages.
func (c *Cache) LocateAhead(ctx context.Context, table meta.TableName, row, stop []byte) (*Route, error) {
	if r := c.Lookup(table, row); r != nil {
		return r, nil
	}
	return c.locate(ctx, table, position{key: row}, &ahead{stop: stop})
}

// Rejected tells that the route's server said that it does not serve this
// region. It concerns exactly the belief that was used: if the cache has
// learned better meanwhile, nothing happens. The next Locate re-reads the
// region's row and waits while the region is in transition.
func (c *Cache) Rejected(r *Route) {
	if !r.Rejected() && r.reject() {
		c.stats.rejected.Add(1)
		r.table.doubt()
		c.noticed(r)
	}
}
