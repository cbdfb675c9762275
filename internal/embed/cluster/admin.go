package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Rules are the chaos rules.
func (c *Cluster) Rules() *chaos.Engine { return c.rules }

// Events is the event log.
func (c *Cluster) Events() *eventlog.Log { return c.events }

// ZooKeeper is the ZooKeeper endpoint.
func (c *Cluster) ZooKeeper() *zkserver.Server { return c.zk }

// Controls disturb the master.
func (c *Cluster) Controls() *master.Controls { return &c.controls }

// Clock is the cluster's clock.
func (c *Cluster) Clock() *Clock { return c.clock }

// Catalog gives the present picture of tables and regions.
func (c *Cluster) Catalog() *catalog.State { return c.catalog.State() }

// ZNodeParent is the znode below which HBase's nodes are.
func (c *Cluster) ZNodeParent() string { return c.opts.ZNodeParent }

// RegionInfo describes one region.
type RegionInfo struct {
	Table   string `json:"table"`
	Encoded string `json:"encoded"`
	// Name is the full region name, bytes that are not printable ASCII as \xHH.
	Name       string `json:"name"`
	Start, End []byte `json:"-"`
	State      string `json:"state"`
	// Server is the host,port,startcode that info:server names, Index its slot,
	// -1 if that is not known.
	Server  string `json:"server"`
	Index   int    `json:"index"`
	OpenSeq int64  `json:"openSeq"`
	// Parent was split or merged away.
	Parent bool `json:"parent,omitempty"`
	// Replicas are the secondary replicas, beginning with the one with id 1.
	Replicas []ReplicaInfo `json:"replicas,omitempty"`
}

// ReplicaInfo describes a secondary replica of a region.
type ReplicaInfo struct {
	ID      int    `json:"id"`
	Encoded string `json:"encoded"`
	State   string `json:"state"`
	Server  string `json:"server"`
	Index   int    `json:"index"`
	OpenSeq int64  `json:"openSeq"`
}

// Regions describes a table's regions in key order, or every region if the
// table is the zero name; at most limit of them, if that is not 0.
func (c *Cluster) Regions(table meta.TableName, limit int) []RegionInfo {
	s := c.catalog.State()
	regions := s.AllRegions()
	if !table.IsZero() {
		regions = s.RegionsOf(table)
	}
	index := c.indexes()
	var out []RegionInfo
	for r := range regions {
		if out = append(out, regionInfo(r, index)); len(out) == limit {
			break
		}
	}
	return out
}

// Region describes the region of that encoded name.
func (c *Cluster) Region(encoded string) (RegionInfo, bool) {
	r := c.catalog.State().Region(encoded)
	if r == nil {
		return RegionInfo{}, false
	}
	return regionInfo(r, c.indexes()), true
}

func regionInfo(r *catalog.Region, index map[string]int) RegionInfo {
	i := RegionInfo{
		Table: r.Info.Table.String(), Encoded: r.Encoded, Name: r.Info.String(), Start: r.Info.Start, End: r.Info.End,
		State: r.State.String(), Index: -1, OpenSeq: r.OpenSeq, Parent: r.Parent(),
	}
	if !r.Server.IsZero() {
		i.Server = r.Server.String()
		if n, ok := index[r.Server.Address()]; ok {
			i.Index = n
		}
	}
	for k, p := range r.Replicas {
		id := r.Replica(k + 1)
		q := ReplicaInfo{ID: k + 1, Encoded: id.EncodedName(), State: p.State.String(), Server: p.Server.String(), Index: -1, OpenSeq: p.OpenSeq}
		if n, ok := index[p.Server.Address()]; ok {
			q.Index = n
		}
		i.Replicas = append(i.Replicas, q)
	}
	return i
}

func (c *Cluster) indexes() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := make(map[string]int, len(c.slots))
	for _, s := range c.slots {
		m[s.address] = s.index
	}
	return m
}

// Locate describes the region of a table that holds a row.
func (c *Cluster) Locate(table meta.TableName, row []byte) (RegionInfo, error) {
	s := c.catalog.State()
	if s.Table(table) == nil {
		return RegionInfo{}, fmt.Errorf("there is no table %s", table)
	}
	if r := s.Holding(table, row); r != nil {
		return regionInfo(r, c.indexes()), nil
	}
	return RegionInfo{}, fmt.Errorf("no region of table %s holds the row", table)
}

// ServerName gives the full name of the server in a slot.
func (c *Cluster) ServerName(i int) (meta.ServerName, error) {
	s, err := c.slotAt(i)
	if err != nil {
		return meta.ServerName{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.process == nil {
		return meta.ServerName{}, fmt.Errorf("region server %d was never started", i)
	}
	return s.process.Name(), nil
}

// FindServer finds a region server's index by what people call it: the index,
// host:port, host,port,startcode, or "meta" for the one that holds hbase:meta.
func (c *Cluster) FindServer(name string) (int, error) {
	if i, err := strconv.Atoi(name); err == nil {
		_, err := c.slotAt(i)
		return i, err
	}
	address := name
	if name == "meta" {
		n, _ := c.MetaLocation()
		address = n.Address()
	} else if n, err := meta.ParseServerName(name); err == nil {
		address = n.Address()
	}
	if i, ok := c.indexes()[address]; ok {
		return i, nil
	}
	return 0, fmt.Errorf("there is no region server %q", name)
}

// ReckonSpace counts what tables use of their space quotas now; see
// master.ReckonSpace.
func (c *Cluster) ReckonSpace(ctx context.Context) error {
	m, err := c.Master()
	if err != nil {
		return err
	}
	return m.ReckonSpace(ctx)
}

// Move moves a region to the server in a slot; -1 lets the master choose
// another one.
func (c *Cluster) Move(ctx context.Context, encoded string, to int) error {
	m, err := c.Master()
	if err != nil {
		return err
	}
	var dst meta.ServerName
	if to >= 0 {
		if dst, err = c.ServerName(to); err != nil {
			return err
		}
	}
	return m.Move(ctx, encoded, dst)
}

// CreateTable makes a table with default families and so many replicas of each
// region, and waits until it is open.
func (c *Cluster) CreateTable(ctx context.Context, table meta.TableName, families []string, replicas int, splits [][]byte) error {
	m, err := c.Master()
	if err != nil {
		return err
	}
	s := schemaOf(table, families)
	if replicas != 1 {
		s.Attributes = catalog.SetAttribute(s.Attributes, "REGION_REPLICATION", strconv.Itoa(replicas))
	}
	return m.CreateTable(ctx, s, splits)
}

func schemaOf(table meta.TableName, families []string) *pb.TableSchema {
	s := &pb.TableSchema{TableName: table.ToProto()}
	for _, f := range families {
		s.ColumnFamilies = append(s.ColumnFamilies, &pb.ColumnFamilySchema{Name: []byte(f)})
	}
	return s
}

// GenerateTable makes a table whose regions and rows follow a formula.
func (c *Cluster) GenerateTable(ctx context.Context, table meta.TableName, families []string, f *catalog.Formula) error {
	m, err := c.Master()
	if err != nil {
		return err
	}
	return m.Generate(ctx, schemaOf(table, families), f)
}

// Reset gives a running cluster the shape it had at first: every server alive,
// no rules, no disturbances, the clock the system's, and a catalog with nothing
// but the system tables. The event log goes on.
func (c *Cluster) Reset(ctx context.Context) error {
	c.rules.Clear()
	c.controls.Reset()
	c.SetReplicaLag(0)
	c.clock.Reset()
	errs := []error{c.zk.Resume()}
	for _, m := range c.MasterSlots() {
		if !m.Running {
			errs = append(errs, c.StartMaster(m.Index))
		}
	}
	for _, s := range c.Servers() {
		switch s.State {
		case Stopped, Dead:
			errs = append(errs, c.StartServer(s.Index))
		case Running, Paused, Hung:
			errs = append(errs, c.Resume(s.Index), c.Slow(s.Index, 0))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	children, err := c.zk.Children("/")
	if err != nil {
		return err
	}
	for _, n := range children {
		if p := "/" + n; p != "/zookeeper" && p != c.opts.ZNodeParent && !strings.HasPrefix(c.opts.ZNodeParent, p+"/") {
			c.remove(p)
		}
	}
	m, err := c.Master()
	if err != nil {
		return err
	}
	if err := m.Reset(ctx); err != nil {
		return err
	}
	// What a server held that has only just been found dead is opened in the
	// background: a reset cluster is one in which every region is open.
	if err := m.AssignUnassigned(ctx); err != nil {
		return err
	}
	c.RestoreZNodes()
	return nil
}

// Addresses gives the advertised addresses of the region servers by index.
func (c *Cluster) Addresses() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, len(c.slots))
	for i, s := range c.slots {
		out[i] = s.address
	}
	return out
}
