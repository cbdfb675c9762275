package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Cluster is a running embedded cluster. All methods are safe for concurrent
// use.
type Cluster struct {
	opts  Options
	log   *slog.Logger
	clock *Clock
	id    string // cluster id

	store      *store.Store
	catalog    *catalog.Catalog
	tables     *master.Tables
	opener     *master.Opener
	lag        lag
	procedures *master.Procedures
	controls   master.Controls
	rules      *chaos.Engine
	events     *eventlog.Log
	zk         *zkserver.Server
	zkPorts    []*reservation

	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	wg        sync.WaitGroup
	again     chan struct{}     // has mirror write its znodes again
	base      map[string][]byte // the znodes of baseZNodes
	done      chan struct{}     // closed when the cluster was told to shut down
	doneOnce  sync.Once
	closeOnce sync.Once
	closeErr  error

	electing sync.Mutex // serialises elections; taken before mu
	adding   sync.Mutex // serialises the making of slots; taken before mu

	mu      sync.Mutex // guards what follows, and the slots' fields
	closing bool
	slots   []*slot
	masters []*masterSlot
	live    []*process // registered in ZooKeeper, by index
	dead    []meta.ServerName
	changed chan struct{} // closed and replaced when the live list changes
}

// ErrClosed is given by calls on a closed cluster.
var ErrClosed = errors.New("minihbase: the cluster is closed")

// Start brings a cluster up. When it returns, every region is open.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o = o.withDefaults()
	c := &Cluster{opts: o, log: o.Logger, clock: o.Clock, rules: chaos.New(), done: make(chan struct{}), again: make(chan struct{}, 1), changed: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	o := &c.opts
	c.events = eventlog.New(eventlog.Options{Capacity: max(o.Events, 0), Off: o.Events < 0, Now: time.Now})
	if c.store, err = store.Open(store.Options{Dir: o.Dir, NoFsync: o.NoFsync, Now: c.clock.Millis, CacheBytes: o.CacheBytes, Logger: c.log}); err != nil {
		return err
	}
	if c.catalog, err = catalog.Open(catalogKV{c.store}, c.clock.Millis); err != nil {
		return err
	}
	if err = c.openCatalog(); err != nil {
		return err
	}
	c.catalog.SetLiar(c.lie)
	c.tables = master.NewTables(c.store)
	c.opener = master.NewOpener(c.catalog, c.tables, c.clock.Now)
	if c.procedures, err = c.newProcedures(); err != nil {
		return err
	}
	if err = c.startZooKeeper(); err != nil {
		return err
	}
	c.baseZNodes()
	for range o.Servers {
		if _, err = c.addSlot(); err != nil {
			return err
		}
	}
	if err = c.renameServers(); err != nil {
		return err
	}
	for i := range 1 + o.BackupMasters {
		if err = c.addMaster(i); err != nil {
			return err
		}
	}
	for _, s := range c.slots {
		if err = c.startServer(s); err != nil {
			return err
		}
	}
	m, err := c.elect()
	if err != nil {
		return err
	}
	c.background(c.mirror)
	c.clock.onJump(c.zk.CheckExpiry)
	return m.AssignUnassigned(ctx)
}

// background runs f as a part of the cluster; not once it is closing.
func (c *Cluster) background(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.wg.Go(f)
	}
}

const settingClusterID = "cluster.id"

// openCatalog makes a new catalog's first entries and reads the cluster's id.
func (c *Cluster) openCatalog() error {
	return c.catalog.Update(func(tx *catalog.Tx) error {
		catalog.Bootstrap(tx)
		c.id = tx.Setting(settingClusterID)
		if c.id == "" {
			c.id = newUUID()
			tx.SetSetting(settingClusterID, c.id)
		}
		return nil
	})
}

func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says its documentation
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// procedureBlock is how many procedure ids a start of the cluster takes at
// once; a number is durable per block, not per procedure.
const procedureBlock = 1_000_000

func (c *Cluster) newProcedures() (*master.Procedures, error) {
	block := func() (uint64, error) { return c.store.NextID("procedures") }
	n, err := block()
	if err != nil {
		return nil, err
	}
	// Procedures calls this under its own lock.
	next, last := (n-1)*procedureBlock, n*procedureBlock
	return master.NewProcedures(func() (uint64, error) {
		if next == last {
			n, err := block()
			if err != nil {
				return 0, err
			}
			next, last = (n-1)*procedureBlock, n*procedureBlock
		}
		next++
		return next, nil
	}, c.clock.Now), nil
}

// settingStartCode is the largest start code given so far.
const settingStartCode = "counter.startcode"

// nextStartCode gives a start code: the time, but larger than every one before.
func (c *Cluster) nextStartCode() (code uint64, err error) {
	err = c.catalog.Update(func(tx *catalog.Tx) error {
		code = max(uint64(time.Now().UnixMilli()), tx.Counter(settingStartCode)+1)
		tx.SetCounter(settingStartCode, code)
		return nil
	})
	return code, err
}

// settingServer is the address a region server's slot had at the last start.
func settingServer(i int) string { return "server." + strconv.Itoa(i) }

// renameServers lets groups and the list of decommissioned servers follow
// servers whose port is another one since the last start.
func (c *Cluster) renameServers() error {
	return c.catalog.Update(func(tx *catalog.Tx) error {
		now := map[string]string{}
		for _, s := range c.slots {
			if old := tx.Setting(settingServer(s.index)); old != "" {
				now[old] = s.address
			}
			tx.SetSetting(settingServer(s.index), s.address)
		}
		rename := func(list []string) ([]string, bool) {
			out, changed := slices.Clone(list), false
			for i, a := range out {
				if b, ok := now[a]; ok && a != b {
					out[i], changed = b, true
				}
			}
			slices.Sort(out)
			return out, changed
		}
		for _, g := range slices.Collect(tx.Groups()) {
			if servers, changed := rename(g.Servers); changed {
				h := *g
				h.Servers = servers
				tx.PutGroup(&h)
			}
		}
		master.RenameDraining(tx, rename)
		return nil
	})
}

// Close ends everything in order: servers first, the store last. Calling it
// again gives the first call's result.
func (c *Cluster) Close() error {
	c.closeOnce.Do(func() {
		c.mu.Lock()
		c.closing = true
		var slots []slot
		for _, s := range c.slots {
			slots = append(slots, *s)
			s.listener = nil
		}
		var masters []masterSlot
		for _, m := range c.masters {
			masters = append(masters, *m)
			m.m = nil
		}
		c.mu.Unlock()
		c.cancel()
		c.clock.onJump(nil)
		var errs []error
		for _, m := range masters {
			m.end(true)
			m.kept.release()
		}
		for i := range slots {
			slots[i].end()
		}
		c.wg.Wait()
		if c.zk != nil {
			errs = append(errs, c.zk.Close())
		}
		for _, r := range c.zkPorts {
			r.release()
		}
		if c.store != nil {
			errs = append(errs, c.store.Close())
		}
		c.shutdown()
		c.closeErr = errors.Join(errs...)
	})
	return c.closeErr
}

// shutdown tells whoever owns the cluster that it should end.
func (c *Cluster) shutdown() { c.doneOnce.Do(func() { close(c.done) }) }

// Done is closed when the cluster was told to shut down (the Master call
// Shutdown) or has been closed.
func (c *Cluster) Done() <-chan struct{} { return c.done }
