package host

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// RegionServer is one incarnation of a region server as the master and the
// controls use it: a restarted server is a new value with a larger start code.
// All methods are safe for concurrent use.
type RegionServer interface {
	// Name is host, port and start code as advertised.
	Name() meta.ServerName
	// OpenRegion makes the region served; of two calls for one encoded name
	// the one with the larger OpenSeq wins. It clears "opening" and any memory
	// of the region having moved away.
	OpenRegion(*Region)
	// SetOpening marks a region that is not served yet as being opened (calls
	// get RegionOpeningException) or takes the mark away.
	SetOpening(encoded string, opening bool)
	// CloseRegion stops serving the region: new calls are refused at once,
	// running writes are waited for (until ctx ends), its scanners are closed.
	// With moved set, later calls get RegionMovedException for two minutes,
	// else NotServingRegionException. Closing a region that is not open is no
	// error.
	CloseRegion(ctx context.Context, encoded string, moved *Moved) error
	// CloseTable closes every region of a table that is open, as CloseRegion
	// does without moved; with lazily set, only those that were opened because
	// a call asked for them, and may be so again.
	CloseTable(ctx context.Context, table meta.TableName, lazily bool) error
	// Regions gives the regions being served, in no particular order; of those
	// that are opened lazily, those that are open.
	Regions() []*Region
	// Alive is false once Stop or Kill was called.
	Alive() bool

	// Stop ends the server in order: it answers RegionServerStoppedException,
	// lets running calls finish (until ctx ends) and closes its listener and
	// connections. No goroutine of the server is left when it returns.
	Stop(ctx context.Context) error
	// Kill ends the server as kill -9 does: listener closed, every connection
	// reset, nothing answered any more.
	Kill()
	// Pause stops reading from every connection, as SIGSTOP does; the kernel
	// still accepts. Resume undoes Pause and Hang.
	Pause()
	// Hang goes on reading but answers nothing until Resume; the answers held
	// back are then sent.
	Hang()
	Resume()
	// Slow delays the answer of every call by d; 0 takes the delay away.
	Slow(d time.Duration)

	// Load renders the server's metrics for ClusterStatus; regions are left out
	// unless asked for.
	Load(RegionDetail) *pb.ServerLoad
}

// RegionDetail is what a server's metrics say of its regions.
type RegionDetail uint8

// The details. Names are what clients count regions by; a region's metrics cost
// a look into the store.
const (
	NoRegions RegionDetail = iota
	RegionNames
	RegionLoads
)

// Cluster is what a region server may ask about the cluster it belongs to:
// the answers of ClientMetaService, and orders that end it. All methods are
// safe for concurrent use and return at once.
type Cluster interface {
	ClusterID() string
	// ActiveMaster is the zero name while there is none.
	ActiveMaster() meta.ServerName
	// Masters gives all masters, the active one first.
	Masters() []MasterEntry
	// MetaLocation names the server of hbase:meta and its open sequence
	// number; the zero name while meta is in transition.
	MetaLocation() (meta.ServerName, int64)
	// LiveServers gives the region servers believed alive.
	LiveServers() []meta.ServerName
	// StopServer asks for an orderly stop of a region server (the Admin call
	// StopServer); it happens in the background.
	StopServer(name meta.ServerName, reason string)
}

// MasterEntry is one master of the cluster.
type MasterEntry struct {
	Name   meta.ServerName
	Active bool
}
