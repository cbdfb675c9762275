package hbase

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/registry"
	"github.com/holdfast-hbase/holdfast/internal/route"
)

// RouteSnapshot describes a snapshot of routes that was written or read.
type RouteSnapshot = route.Snapshot

// RouteSnapshotError says why a snapshot of routes is not used: with
// [errors.Is], one of the errors below.
type RouteSnapshotError = route.SnapshotError

// Why a snapshot of routes is not used.
var (
	// ErrSnapshotDamaged: it is not a snapshot, or not a whole one.
	ErrSnapshotDamaged = route.ErrSnapshotDamaged
	// ErrSnapshotVersion: a later version wrote it.
	ErrSnapshotVersion = route.ErrSnapshotVersion
	// ErrSnapshotForeign: it belongs to another cluster.
	ErrSnapshotForeign = route.ErrSnapshotForeign
	// ErrSnapshotSize: it holds more than a client may.
	ErrSnapshotSize = route.ErrSnapshotSize
)

// identity of the cluster, as far as the core tells.
type identity interface {
	ClusterID(context.Context) (string, error)
	Registry() registry.Registry
}

// idTime is how long the cluster may take to say who it is.
const idTime = 2 * time.Second

// clusterAddress tells whose routes the client has, without asking.
func (c *Client) clusterAddress() route.Cluster {
	if who, ok := c.core.(identity); ok {
		return route.Cluster{Address: who.Registry().String()}
	}
	return route.Cluster{Address: c.cfg.Address}
}

// cluster asks the cluster for its id too. Without an answer, what it said last
// has to do, or else the address.
func (c *Client) cluster(ctx context.Context) route.Cluster {
	of := c.clusterAddress()
	c.askID(ctx)
	if id := c.snapshots.id.Load(); id != nil {
		of.ID = *id
	}
	return of
}

// askID asks the cluster for its id; empty if it does not say.
func (c *Client) askID(ctx context.Context) string {
	who, ok := c.core.(identity)
	if !ok {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, idTime)
	defer cancel()
	id, err := who.ClusterID(ctx)
	if err != nil || id == "" {
		return ""
	}
	c.snapshots.id.Store(&id)
	return id
}

// SaveRoutes writes what the client knows of regions, for [Client.LoadRoutes]:
// some 10 to 30 bytes a region. See [Config.RouteSnapshot] for a file that is
// kept by itself. It takes a second for a million regions, and up to two more
// if the cluster does not answer.
func (c *Client) SaveRoutes(ctx context.Context, w io.Writer) (RouteSnapshot, error) {
	s, err := c.core.Routes().Save(w, c.cluster(ctx))
	return s, wrap("save routes", c.cfg.Address, err)
}

// LoadRoutes takes in what SaveRoutes has written, as beliefs that anything else
// the client learns outweighs. hbase:meta is not read. An error of the snapshot
// is a [*RouteSnapshotError], and leaves the client as it was.
func (c *Client) LoadRoutes(ctx context.Context, r io.Reader) (RouteSnapshot, error) {
	s, err := c.core.Routes().Load(r, c.cluster(ctx))
	return s, wrap("load routes", c.cfg.Address, err)
}

// snapshots keeps Config.RouteSnapshot.
type snapshots struct {
	ctx context.Context // ends with the client; nil without a file
	end context.CancelFunc
	// writing makes the last of two who write be the one who began last.
	writing sync.Mutex
	id      atomic.Pointer[string] // of the cluster, as it has said, or else the file
}

// openSnapshot reads the file and goes on to write it. Whatever is wrong with
// it, the client starts. ctx lends its values.
func (c *Client) openSnapshot(ctx context.Context) {
	if c.cfg.RouteSnapshot == "" {
		return
	}
	began := time.Now()
	s, err := c.readSnapshot()
	switch {
	case err == nil:
		if s.Cluster.ID != "" {
			c.snapshots.id.Store(&s.Cluster.ID) // until the cluster says otherwise
		}
		c.log().Info("routes loaded", "file", c.cfg.RouteSnapshot, "routes", s.Routes, "of", s.Created, "took", time.Since(began))
	case !errors.Is(err, fs.ErrNotExist):
		c.log().Warn("routes not loaded", "file", c.cfg.RouteSnapshot, "err", err)
	}
	c.snapshots.ctx, c.snapshots.end = context.WithCancel(context.WithoutCancel(ctx))
	c.background(func() { c.keepSnapshot(s) })
}

// readSnapshot reads the file. The cluster is not asked who it is: that would
// be the first thing a process waits for.
func (c *Client) readSnapshot() (RouteSnapshot, error) {
	f, err := os.Open(c.cfg.RouteSnapshot)
	if err != nil {
		return RouteSnapshot{}, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return RouteSnapshot{}, errors.New("not a file")
	}
	return c.core.Routes().Load(bufio.NewReaderSize(f, 1<<16), c.clusterAddress())
}

// keepSnapshot writes the file now and then. At first it makes sure that what
// was loaded is this cluster's: another may have been set up at its address.
func (c *Client) keepSnapshot(loaded RouteSnapshot) {
	ctx := c.snapshots.ctx
	checked := loaded.Cluster.ID == ""
	tick := time.NewTicker(c.cfg.RouteSnapshotEvery)
	defer tick.Stop()
	for {
		if !checked {
			checked = c.checkSnapshot(ctx, loaded)
		}
		var soon <-chan time.Time
		if !checked {
			t := time.NewTimer(idTime)
			defer t.Stop()
			soon = t.C
		}
		select {
		case <-ctx.Done():
			return
		case <-soon:
		case <-tick.C:
			c.writeSnapshot(ctx)
		}
	}
}

// checkSnapshot compares the cluster's id with that of the snapshot; false if
// the cluster does not answer.
func (c *Client) checkSnapshot(ctx context.Context, loaded RouteSnapshot) bool {
	id := c.askID(ctx)
	if id == "" {
		return false
	}
	if id != loaded.Cluster.ID {
		c.core.Routes().ForgetSnapshot()
		c.log().Warn("routes of another cluster dropped", "file", c.cfg.RouteSnapshot, "of", loaded.Cluster.ID, "this", id)
	}
	return true
}

// writeSnapshot writes the file beside its place, and then puts it there.
func (c *Client) writeSnapshot(ctx context.Context) {
	c.snapshots.writing.Lock()
	defer c.snapshots.writing.Unlock()
	if ctx.Err() != nil {
		return
	}
	if err := c.tryWriteSnapshot(ctx); err != nil {
		c.log().Warn("routes not saved", "file", c.cfg.RouteSnapshot, "err", err)
	}
}

func (c *Client) tryWriteSnapshot(ctx context.Context) (err error) {
	if c.core.Routes().Stats().Routes == 0 {
		return nil // whatever is there knows more
	}
	f, err := os.CreateTemp(filepath.Dir(c.cfg.RouteSnapshot), "."+filepath.Base(c.cfg.RouteSnapshot)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	s, err := c.core.Routes().Save(f, c.cluster(ctx))
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if s.Routes == 0 {
		return os.Remove(f.Name())
	}
	return os.Rename(f.Name(), c.cfg.RouteSnapshot)
}

// closeSnapshot writes the file for the last time, before the routes go.
func (c *Client) closeSnapshot() {
	if c.snapshots.ctx == nil {
		return
	}
	c.snapshots.end()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.snapshots.ctx), idTime)
	defer cancel()
	c.writeSnapshot(ctx)
}

func (c *Client) log() *slog.Logger {
	if c.cfg.logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.cfg.logger
}
