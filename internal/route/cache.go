package route

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Config is what a Cache is made of. Source, Locator and Servers are required.
type Config struct {
	Source  Source
	Locator MetaLocator
	Servers *health.Table
	// Logger hears of tables dropped, meta unavailable and the like; nil for
	// silence.
	Logger *slog.Logger
	// Rand gives numbers in [0,1) for jitter; nil means math/rand/v2.
	Rand func() float64

	// FlightTimeout bounds one lookup shared by its waiters, retries included:
	// default 5 s.
	FlightTimeout time.Duration
	// TableFlights and Flights bound the reads of hbase:meta at one time, per
	// table and in all: defaults 8 and 32.
	TableFlights, Flights int
	// GateWaiters bounds the callers waiting for one region in transition:
	// default 4096. Beyond it they get ErrRegionUnavailable at once.
	GateWaiters int
	// IdleTime is how long a route may stay unused: default 10 min.
	IdleTime time.Duration
	// MaxRoutes bounds the routes kept: default 4 million (about 480 MB).
	MaxRoutes int
}

// Cache holds the routes of one client. Safe for concurrent use.
type Cache struct {
	cfg Config
}

type table struct{}

// New makes an empty cache.
func New(cfg Config) *Cache { return &Cache{cfg: cfg} }

// Close ends every lookup with ErrClosed and returns when no goroutine of the
// cache is left.
func (c *Cache) Close() {}

// Lookup gives the valid route of the row's region, or nil if there is none.
// It takes no lock and allocates nothing.
func (c *Cache) Lookup(table meta.TableName, row []byte) *Route { return nil }

// LookupBefore is Lookup for the region before row, see LocateBefore.
func (c *Cache) LookupBefore(table meta.TableName, row []byte) *Route { return nil }

// Locate gives a valid route to the region of row, reading hbase:meta if
// necessary, and waiting while the region is in transition, as long as ctx
// allows. The error is a *LocateError.
func (c *Cache) Locate(ctx context.Context, table meta.TableName, row []byte) (*Route, error) {
	return nil, ErrClosed
}

// LocateBefore is Locate for the region before row: the one whose start key is
// strictly smaller and which ends at or after row. An empty row means the
// table's last region. Reversed scans walk with it.
func (c *Cache) LocateBefore(ctx context.Context, table meta.TableName, row []byte) (*Route, error) {
	return nil, ErrClosed
}

// LocateAhead is Locate for somebody who is going to walk on to stop (empty:
// to the table's end): what follows is read along in larger pages.
func (c *Cache) LocateAhead(ctx context.Context, table meta.TableName, row, stop []byte) (*Route, error) {
	return nil, ErrClosed
}

// LocateMany locates rows that are sorted ascending (repetitions allowed) in
// one walk over the index and as few reads of meta as it takes. Entry i has
// either a route or an error.
func (c *Cache) LocateMany(ctx context.Context, table meta.TableName, rows [][]byte) ([]*Route, []error) {
	return make([]*Route, len(rows)), make([]error, len(rows))
}

// Regions reads the regions of the table that meet [start, stop) afresh from
// hbase:meta, in order and without holes (empty stop: to the end). Routes to
// regions in transition are included; they are not Valid.
func (c *Cache) Regions(ctx context.Context, table meta.TableName, start, stop []byte) ([]*Route, error) {
	return nil, ErrClosed
}

// Warm reads the routes of [start, stop) in large pages, behind everybody
// else. What was read before an error stays.
func (c *Cache) Warm(ctx context.Context, table meta.TableName, start, stop []byte) error {
	return ErrClosed
}

// Rejected tells that the route's server said that it does not serve this
// region. It concerns exactly the belief that was used: if the cache has
// learned better meanwhile, nothing happens. The next Locate re-reads the
// region's row and waits while the region is in transition.
func (c *Cache) Rejected(r *Route) {}

// Moved tells that the route's server named the region's new place (a
// RegionMovedException), as of sequence number seq. It gives the route to use
// now, or nil if the hint is older than what is known; then call Rejected.
func (c *Cache) Moved(r *Route, to meta.ServerName, seq int64) *Route { return nil }

// Recheck asks for one re-reading of the region's row in the background, at
// most once a second per region. The route stays valid.
func (c *Cache) Recheck(r *Route) {}

// Refresh re-reads the region's row and gives the route for its start key.
func (c *Cache) Refresh(ctx context.Context, r *Route) (*Route, error) { return nil, ErrClosed }

// Transit waits until the region of a rejected route may be served again: by
// another server, by the same one under a new sequence number, or because it
// is time to try. Locate does the same; Transit is for those who have no row.
func (c *Cache) Transit(ctx context.Context, r *Route) error { return ErrClosed }

// ServerDown tells that the server's epoch has been bumped: the recently used
// routes to it are re-read in large batches before callers ask for them. Wire
// it to health.Config.Changed. It does not block.
func (c *Cache) ServerDown(s *health.Server) {}

// ServerUp tells that the server answers again: those who wait for its regions
// try at once. Wire it to health.Config.Changed. It does not block.
func (c *Cache) ServerUp(s *health.Server) {}

// InvalidateTable forgets everything about the table, negative answers
// included.
func (c *Cache) InvalidateTable(table meta.TableName) {}

// InvalidateServer makes every route to the server invalid.
func (c *Cache) InvalidateServer(s *health.Server) {}
