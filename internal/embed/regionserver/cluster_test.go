package regionserver_test

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeCluster is the master's side as far as a region server sees it.
type fakeCluster struct {
	mu      sync.Mutex
	rs      meta.ServerName
	stopped []string
}

func (c *fakeCluster) ClusterID() string { return "test-cluster" }
func (c *fakeCluster) ActiveMaster() meta.ServerName {
	return meta.ServerName{Host: "127.0.0.1", Port: 1, StartCode: 5}
}
func (c *fakeCluster) Masters() []host.MasterEntry {
	return []host.MasterEntry{{Name: c.ActiveMaster(), Active: true}, {Name: meta.ServerName{Host: "127.0.0.1", Port: 2, StartCode: 6}}}
}
func (c *fakeCluster) MetaLocation() (meta.ServerName, int64) { return c.rs, 9 }
func (c *fakeCluster) LiveServers() []meta.ServerName         { return []meta.ServerName{c.rs} }
func (c *fakeCluster) StopServer(n meta.ServerName, w string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = append(c.stopped, w)
}

// harness is one region server over a store in memory.
type harness struct {
	*regionserver.Server
	t       testing.TB
	store   *store.Store
	cluster *fakeCluster
	events  *eventlog.Log
	chaos   *chaos.Engine
	address string
	id      uint32
	seq     int64
	nextID  uint64
}

func newHarness(t testing.TB, change func(*regionserver.Config)) *harness {
	t.Helper()
	st, err := store.Open(store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	h := &harness{t: t, store: st, events: eventlog.New(eventlog.Options{}), chaos: chaos.New(), address: addr.String(), nextID: uint64(time.Now().UnixMilli())}
	name := meta.ServerName{Host: "127.0.0.1", Port: addr.Port, StartCode: 77}
	h.cluster = &fakeCluster{rs: name}
	cfg := regionserver.Config{Name: name, Store: st, Cluster: h.cluster, Events: h.events, Chaos: h.chaos, InlineWrites: true}
	if change != nil {
		change(&cfg)
	}
	h.Server = regionserver.New(cfg)
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	t.Cleanup(func() {
		h.Kill()
		if err := <-done; !errors.Is(err, rpcserver.ErrStopped) {
			t.Errorf("Serve: %v", err)
		}
		h.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *harness) dial(o rpctest.Options) *rpctest.Client {
	h.t.Helper()
	c, err := rpctest.Dial(h.address, o)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// table is a table with its regions, in order.
type table struct {
	name    meta.TableName
	data    *store.Table
	attrs   map[string]string
	regions []*host.Region
}

// create makes and opens a table with a region for each gap between splits.
func (h *harness) create(name string, schema *cells.Schema, attrs map[string]string, splits ...string) *table {
	h.t.Helper()
	tn, err := meta.ParseTableName(name)
	if err != nil {
		h.t.Fatal(err)
	}
	h.id++
	schema.ReadOnly = attrs["READONLY"] == "true"
	if v, ok := attrs["hbase.server.keyvalue.maxsize"]; ok {
		if schema.MaxCellSize, err = strconv.Atoi(v); err != nil {
			h.t.Fatal(err)
		}
	}
	t := &table{name: tn, data: h.store.Table(h.id, schema), attrs: attrs}
	bounds := append([]string{""}, append(splits, "")...)
	for i := range len(bounds) - 1 {
		h.nextID++
		r := &host.Region{Info: meta.Region{Table: tn, ID: h.nextID, Start: []byte(bounds[i]), End: []byte(bounds[i+1])}, Table: t.data, Attributes: attrs}
		r.Encoded, r.Name = r.Info.EncodedName(), r.Info.Name()
		h.reopen(r)
		t.regions = append(t.regions, r)
	}
	return t
}

// reopen opens a region with a new sequence number.
func (h *harness) reopen(r *host.Region) {
	h.seq++
	n := *r
	n.OpenSeq = h.seq
	h.OpenRegion(&n)
}

// regionOf finds the region that holds row.
func (t *table) regionOf(row []byte) *host.Region {
	for _, r := range t.regions {
		if r.Info.Contains(row) {
			return r
		}
	}
	return nil
}

func specifier(r *host.Region) *pb.RegionSpecifier { return named(r.Name) }

func named(name []byte) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: name}
}
