package master

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Servers is the master's view of the region servers, which the cluster's
// wiring keeps. All methods are safe for concurrent use.
type Servers interface {
	// Live gives the servers that ZooKeeper believes alive, in a fixed order.
	// One that was just killed may still be among them.
	Live() []host.RegionServer
	// Dead gives the servers that have died and not been forgotten.
	Dead() []meta.ServerName
	// ForgetDead drops names from Dead (all of them, if none is given).
	ForgetDead([]meta.ServerName)
	// Changed gives a channel that is closed at the next change of Live.
	Changed() <-chan struct{}
}

// Config is what a master works with. All fields are needed unless said
// otherwise.
type Config struct {
	Name       meta.ServerName
	Catalog    *catalog.Catalog
	Store      *store.Store
	Tables     *Tables
	Procedures *Procedures
	Controls   *Controls
	Opener     *Opener
	Servers    Servers
	Cluster    host.Cluster
	// Events may be nil.
	Events *eventlog.Log
	Logger *slog.Logger
	Now    func() time.Time
	// Version is what GetClusterStatus says ("2.6.4").
	Version string
	// Quotas is hbase.quota.enabled: quotas are kept (see addQuotas).
	Quotas bool
	// BalancerLog keeps the balancer's decisions and rejections.
	BalancerLog bool
	// SpacePeriod is how often the use of space quotas is reckoned, if there are
	// Quotas; 0 means on changes of quotas only.
	SpacePeriod time.Duration
	// JanitorPeriod is how often split parents and merge marks are cleaned up.
	JanitorPeriod time.Duration

	// MetaMoved is called after hbase:meta opened on another server.
	MetaMoved func(meta.ServerName)
	// Expire puts a region server out, as ZooKeeper does with one whose session
	// has ended; one that is not alive is no error.
	Expire func(meta.ServerName)
	// StopMaster ends this master, Shutdown the whole cluster; both return at
	// once.
	StopMaster, Shutdown func()
}

// Master is one incarnation of a master, active or backup.
type Master struct {
	cfg   Config
	log   *slog.Logger
	locks locks
	// remote are the locks that clients have or wait for.
	remote remoteLocks
	space  space
	// balanced are the balancer's decisions and rejections.
	balanced balancerLog

	active atomic.Bool

	ctx    context.Context // ends when the master stops
	cancel context.CancelFunc
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// New makes a backup master, which refuses every call until Activate. Close
// ends it.
func New(cfg Config) *Master {
	m := &Master{cfg: cfg, log: cfg.Logger.With("master", cfg.Name.String())}
	m.space.wake, m.space.sizes = make(chan struct{}, 1), map[uint32]tableSize{}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Activate makes this the active master: it finishes what an earlier one left
// half done. Only one master is active at a time.
func (m *Master) Activate() error {
	if m.cfg.Quotas && m.state().Table(catalog.QuotaTable) == nil {
		// Before the recovery, which opens its region.
		if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error { catalog.AddQuotaTable(tx); return nil }); err != nil {
			return err
		}
	}
	if err := m.recover(); err != nil {
		return err
	}
	if err := m.dropLeftovers(); err != nil {
		return err
	}
	m.active.Store(true)
	if m.cfg.JanitorPeriod > 0 {
		m.goRun(m.janitor)
	}
	if m.cfg.Quotas {
		m.goRun(m.spaceChore)
	}
	return nil
}

// Active says whether Activate was called.
func (m *Master) Active() bool { return m.active.Load() }

// Name is the master's name.
func (m *Master) Name() meta.ServerName { return m.cfg.Name }

// Close stops what the master is doing and waits for it. Procedures that are
// running end with an error.
func (m *Master) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.wg.Wait()
}

// goRun runs f on the master's own time. It answers false once the master is
// closed.
func (m *Master) goRun(f func(context.Context)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.wg.Go(func() { f(m.ctx) })
	return true
}

func (m *Master) stopped() error {
	return retriable(wire.ClassMasterStopped, "%s", "Master "+m.cfg.Name.String()+" is stopped")
}

// ready refuses calls while the master is a backup, or told to look as if it
// were starting.
func (m *Master) ready() error {
	if m.ctx.Err() != nil {
		return m.stopped()
	}
	if !m.active.Load() {
		return retriable(wire.ClassServerNotRunningYet, "Server is not running yet")
	}
	if m.cfg.Controls.isInitializing() {
		return retriable(wire.ClassPleaseHold, "Master is initializing")
	}
	return nil
}

func (m *Master) state() *catalog.State { return m.cfg.Catalog.State() }

func (m *Master) event(e eventlog.Event) { m.cfg.Events.Cluster(e) }

// Tables holds the one handle of each table's data that everybody shares. It
// outlives a master. Safe for concurrent use.
type Tables struct {
	store *store.Store

	mu      sync.Mutex
	handles map[uint32]*store.Table
}

// NewTables makes an empty set of handles.
func NewTables(s *store.Store) *Tables { return &Tables{store: s, handles: map[uint32]*store.Table{}} }

// Handle gives the table's handle, made with its descriptor if it is new.
func (ts *Tables) Handle(t *catalog.Table) (*store.Table, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if h := ts.handles[t.ID]; h != nil {
		return h, nil
	}
	schema, err := catalog.StoreSchema(t.Schema)
	if err != nil {
		return nil, err
	}
	h := ts.store.Table(t.ID, schema)
	ts.handles[t.ID] = h
	return h, nil
}

// SetSchema gives a table's handle its changed schema.
func (ts *Tables) SetSchema(t *catalog.Table, schema *cells.Schema) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if h := ts.handles[t.ID]; h != nil {
		h.SetSchema(schema)
	}
}

// Forget drops a table's handle.
func (ts *Tables) Forget(id uint32) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.handles, id)
}

// DropPrefix names the settings that mark data to be dropped: written with the
// change that orphans the data, taken away after it is gone, so that a crash
// in between is made good at the next start.
const DropPrefix = "drop."

func dropSetting(id uint32) string { return DropPrefix + strconv.FormatUint(uint64(id), 10) }

// dropData removes the data of tables that the catalog no longer has.
func (m *Master) dropData(ids ...uint32) error {
	for _, id := range ids {
		m.cfg.Tables.Forget(id)
		if err := m.cfg.Store.DropData(id); err != nil {
			return err
		}
	}
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for _, id := range ids {
			tx.SetSetting(dropSetting(id), "")
		}
		return nil
	})
}

// DropFamiliesPrefix names the settings that mark families of a table to be
// dropped, separated by zero bytes: written with the descriptor that is without
// them, so that a crash leaves no cells that a family of the same name would
// show later.
const DropFamiliesPrefix = "dropfamilies."

func dropFamiliesSetting(id uint32) string {
	return DropFamiliesPrefix + strconv.FormatUint(uint64(id), 10)
}

// dropFamilies removes the data of families that a table no longer has.
func (m *Master) dropFamilies(ctx context.Context, t *catalog.Table) error {
	names := m.state().Setting(dropFamiliesSetting(t.ID))
	if names == "" {
		return nil
	}
	h, err := m.cfg.Tables.Handle(t)
	if err != nil {
		return err
	}
	var families [][]byte
	for name := range strings.SplitSeq(names, "\x00") {
		if catalog.FamilyOf(t.Schema, []byte(name)) == nil {
			families = append(families, []byte(name))
		}
	}
	if err := h.DropFamilies(ctx, families); err != nil {
		return err
	}
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		tx.SetSetting(dropFamiliesSetting(t.ID), "")
		return nil
	})
}

// dropLeftFamilies does what dropFamilies has not done in an earlier process.
func (m *Master) dropLeftFamilies() error {
	s, marked := m.state(), map[string]bool{}
	for name := range s.Settings() {
		if strings.HasPrefix(name, DropFamiliesPrefix) {
			marked[name] = true
		}
	}
	if len(marked) == 0 {
		return nil
	}
	for t := range s.Tables() {
		if name := dropFamiliesSetting(t.ID); marked[name] {
			if err := m.dropFamilies(m.ctx, t); err != nil {
				return err
			}
			delete(marked, name)
		}
	}
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		for name := range marked { // of tables that are gone
			tx.SetSetting(name, "")
		}
		return nil
	})
}

// dropLeftovers removes data whose removal an earlier process did not finish.
func (m *Master) dropLeftovers() error {
	s, used := m.state(), map[uint64]bool{}
	for t := range s.Tables() {
		used[uint64(t.ID)] = true
	}
	for p := range s.Snapshots() {
		used[uint64(p.DataID)] = true
	}
	if err := m.dropLeftFamilies(); err != nil {
		return err
	}
	var ids []uint32
	for name := range s.Settings() {
		if text, ok := strings.CutPrefix(name, DropPrefix); ok {
			if id, err := strconv.ParseUint(text, 10, 32); err == nil && !used[id] {
				ids = append(ids, uint32(id))
			}
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return m.dropData(ids...)
}
