package regionserver

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Config describes a region server. Name, Store and Cluster are required.
type Config struct {
	// Name as advertised: clients reach the listener under it.
	Name  meta.ServerName
	Store *store.Store
	// Cluster answers what is not about a region.
	Cluster host.Cluster

	// ScannerLease is how long a scanner lives without a call
	// (hbase.client.scanner.timeout.period); 0 means 60 s.
	ScannerLease time.Duration
	// MaxScanners bounds the open scanners; 0 means 10,000.
	MaxScanners int
	// MaxResultBytes bounds the cells of one answer
	// (hbase.server.scanner.max.result.size); 0 means 100 MiB.
	MaxResultBytes int64
	// InlineWrites lets a lone Mutate run on its connection's goroutine: right
	// where commits do not wait for a disk.
	InlineWrites bool

	// Lazy finds regions that are opened when they are first asked for; nil if
	// there are none.
	Lazy host.Lazy
	// Quotas tells the throttles of calls; nil if there are none.
	Quotas host.Quotas
	// MaxCalls bounds the calls in flight; 0 means what rpcserver says.
	MaxCalls int
	// SlowLog keeps slow and large calls; nil if there is to be none.
	SlowLog *SlowLog
	// ReplicaReadPoint is the read point at which secondary replicas are read,
	// 0 meaning the present one; nil if they never lag.
	ReplicaReadPoint func() uint64

	Chaos  *chaos.Engine
	Events *eventlog.Log
	// Services are served on the same port besides the region server's own.
	Services []*rpcserver.Service
	// Logger; nil discards.
	Logger *slog.Logger
}

// movedFor is how long a closed region's new place is told (HBase's
// TIMEOUT_REGION_MOVED).
const movedFor = 2 * time.Minute

// Server is one incarnation of a region server.
type Server struct {
	cfg      Config
	log      *slog.Logger
	rpc      *rpcserver.Server
	scanners *scanners
	wal      *store.Log
	slow     *slowLog
	started  time.Time

	stopping atomic.Bool
	killed   atomic.Bool

	mu      sync.RWMutex
	regions map[string]*region // by encoded name
	names   map[string]*region // by full name
	opening map[string]bool
	moved   movedList
	lazy    int // of regions, those opened lazily

	requests  atomic.Uint64
	spent     throttles
	compactOn atomic.Bool

	// ctx ends with the server; background work runs on it.
	ctx        context.Context
	cancel     context.CancelFunc
	background sync.WaitGroup

	loadMu    sync.Mutex
	loadAt    time.Time
	loadTotal uint64
}

type movedRegion struct {
	host.Moved
	at time.Time
}

var _ host.RegionServer = (*Server)(nil)

// New makes a server; Serve starts it.
func New(cfg Config) *Server {
	cfg.ScannerLease = cmp.Or(cfg.ScannerLease, 60*time.Second)
	cfg.MaxScanners = cmp.Or(cfg.MaxScanners, 10_000)
	cfg.MaxResultBytes = cmp.Or(cfg.MaxResultBytes, 100<<20)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg: cfg, log: cfg.Logger,
		started: time.Now(),
		loadAt:  time.Now(),
		regions: make(map[string]*region),
		names:   make(map[string]*region),
		opening: make(map[string]bool),
	}
	//holdfast:allow context a server's life is not bounded by its maker's call
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.compactOn.Store(true)
	if cfg.Store != nil {
		s.wal = cfg.Store.NewLog()
	}
	s.scanners = newScanners(cfg.Name, cfg.ScannerLease, cfg.MaxScanners)
	s.slow = newSlowLog(cfg.SlowLog)
	s.rpc = rpcserver.New(rpcserver.Config{
		Name: cfg.Name,
		Services: append([]*rpcserver.Service{
			s.clientService(), s.adminService(), ClientMetaService(cfg.Cluster),
		}, cfg.Services...),
		ClusterID: cfg.Cluster.ClusterID,
		MaxCalls:  cfg.MaxCalls,
		Outliers:  s.slow.outliers(cfg.SlowLog),
		Chaos:     cfg.Chaos, Events: cfg.Events, Logger: cfg.Logger,
	})
	return s
}

// Serve accepts connections on l until the server ends; it returns
// rpcserver.ErrStopped then.
func (s *Server) Serve(l net.Listener) error { return s.rpc.Serve(l) }

// RPC is the server beneath, for controls on connections.
func (s *Server) RPC() *rpcserver.Server { return s.rpc }

// Name is host, port and start code as advertised.
func (s *Server) Name() meta.ServerName { return s.cfg.Name }

// Alive is false once Stop or Kill was called.
func (s *Server) Alive() bool { return !s.stopping.Load() }

// Stop ends the server in order: calls that come from now on are answered
// RegionServerStoppedException, running ones are waited for until ctx ends,
// then listener and connections are closed.
func (s *Server) Stop(ctx context.Context) error {
	s.setStopping()
	err := s.rpc.Stop(ctx)
	s.scanners.close()
	s.wal.Close()
	if err == nil {
		s.background.Wait()
	}
	return err
}

// Kill ends the server as kill -9 does.
func (s *Server) Kill() {
	s.killed.Store(true)
	s.setStopping()
	s.rpc.Kill()
	s.scanners.close()
	s.wal.Close()
}

// LoseUnsynced takes away what HBase loses when a server is killed now: the
// ASYNC_WAL writes its log was not yet synced with, and the SKIP_WAL writes
// since their region's last flush, of the regions it serves. It gives the
// number of cells. Every later write of the server fails; so it is called for
// one that was told to end, or that nobody can reach. A second call, or one
// after Stop or Kill, finds nothing.
func (s *Server) LoseUnsynced() (int, error) {
	// No region is closed meanwhile, and so opened elsewhere with the cells
	// still there.
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wal.Lose()
}

// KillAndLose is Kill and LoseUnsynced. What is lost is lost before a region
// can be opened elsewhere, and after the last client has been answered.
func (s *Server) KillAndLose() (int, error) {
	s.mu.Lock()
	s.killed.Store(true)
	s.stopping.Store(true)
	s.rpc.Kill()
	n, err := s.wal.Lose()
	s.mu.Unlock()
	s.Kill()
	return n, err
}

// setStopping lets no new calls and no background work begin.
func (s *Server) setStopping() {
	s.mu.Lock()
	s.stopping.Store(true)
	s.mu.Unlock()
	s.cancel()
}

// Wait returns when no goroutine of a server that was stopped or killed is
// left.
func (s *Server) Wait() {
	s.rpc.Wait()
	s.background.Wait()
}

// Pause stops reading from every connection, as SIGSTOP does.
func (s *Server) Pause() { s.rpc.Pause() }

// Hang goes on reading but answers nothing until Resume.
func (s *Server) Hang() { s.rpc.Hang() }

// Resume undoes Pause and Hang.
func (s *Server) Resume() { s.rpc.Resume() }

// Slow delays the answer of every call by d; 0 takes the delay away.
func (s *Server) Slow(d time.Duration) { s.rpc.Slow(d) }

// checkOpen refuses calls of a server that is ending.
func (s *Server) checkOpen() error {
	if !s.stopping.Load() {
		return nil
	}
	if s.killed.Load() {
		return wire.NewRemoteError(wire.ClassRegionServerAborted, "Server "+s.cfg.Name.String()+" aborting")
	}
	return wire.NewRemoteError(wire.ClassRegionServerStopped, "Server "+s.cfg.Name.String()+" stopping")
}

// now is the cluster's clock in ms.
func (s *Server) now() int64 {
	if s.cfg.Store != nil {
		return s.cfg.Store.Now()
	}
	return time.Now().UnixMilli()
}
