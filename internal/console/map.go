package console

import (
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/internal/embed/zkserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// Bounds of a picture of the cluster.
const (
	defaultCells = 1200 // regions listed one by one
	maxCells     = 5000
	maxTables    = 500 // listed; counts of further ones are left out
	maxPictures  = 4   // kept, one for each number of cells asked for
)

// Map is the answer of GET /console/map. Regions of small tables are listed one
// by one as long as all of them together are within the bound, smallest tables
// first; of the others Blocks says how many are where.
type Map struct {
	// Version names the picture; whoever has it gets only what follows up to
	// Same.
	Version string `json:"version"`
	// Clock and LastEvent are no part of the picture: they change all the time.
	Clock     control.Clock `json:"clock"`
	LastEvent uint64        `json:"lastEvent"`
	Rules     int           `json:"rules"`
	// Same says that the picture is the one the page has.
	Same bool `json:"same,omitempty"`

	*Picture
}

// Picture is what a version names.
type Picture struct {
	Address   string      `json:"address"`
	ZooKeeper string      `json:"zookeeper"`
	ZNode     string      `json:"znode"`
	ClusterID string      `json:"clusterId"`
	ZKFault   string      `json:"zkFault"`
	Groups    []MapGroup  `json:"groups"`
	Servers   []MapServer `json:"servers"`
	Masters   []MapMaster `json:"masters"`
	Tables    []MapTable  `json:"tables"`
	// MoreTables is how many there are beyond the listed ones.
	MoreTables int         `json:"moreTables"`
	Regions    []MapRegion `json:"regions"`
	Blocks     []MapBlock  `json:"blocks"`
	// Total counts regions; Open of them are open, InTransition on their way,
	// Parents split or merged away.
	Total        int `json:"total"`
	Open         int `json:"open"`
	InTransition int `json:"inTransition"`
	Parents      int `json:"parents"`
	// CostMs is how long the picture took to make: who asks often asks less
	// often if it is much.
	CostMs int64 `json:"costMs"`

	version string
}

// MapGroup is a region server group with the indexes of its servers.
type MapGroup struct {
	Name    string `json:"name"`
	Servers []int  `json:"servers"`
}

// MapServer is a region server's place.
type MapServer struct {
	control.Server
	// Meta says that it holds hbase:meta.
	Meta bool `json:"meta"`
}

// MapMaster is a master's place.
type MapMaster = control.Master

// MapTable is a table. Regions are what its regions are doing, by state.
type MapTable struct {
	Name      string         `json:"name"`
	State     string         `json:"state"`
	Group     string         `json:"group"`
	Families  []string       `json:"families"`
	System    bool           `json:"system,omitempty"`
	Virtual   bool           `json:"virtual,omitempty"`
	Generated bool           `json:"generated,omitempty"`
	Replicas  int            `json:"replicas"`
	Total     int            `json:"total"`
	Regions   map[string]int `json:"regions"`
	// Listed says that its regions are in the map one by one.
	Listed bool `json:"listed"`
}

// MapRegion is one region, or one of its secondary replicas.
type MapRegion struct {
	Table  int `json:"t"` // index into Tables
	Server int `json:"s"` // index, -1 for none
	// To is the server that a region on its way opens on, if that is another.
	To      *int          `json:"to,omitempty"`
	State   string        `json:"state"`
	Encoded string        `json:"id"`
	Start   control.Bytes `json:"start"`
	End     control.Bytes `json:"end"`
	OpenSeq int64         `json:"seq"`
	Parent  bool          `json:"parent,omitempty"`
	Replica int           `json:"replica,omitempty"`
	// Name is the full name; absent for replicas.
	Name string `json:"name,omitempty"`
}

// MapBlock counts regions of a table that are on one server in one state.
type MapBlock struct {
	Table  int    `json:"t"`
	Server int    `json:"s"`
	State  string `json:"state"`
	Count  int    `json:"n"`
}

func (k *Console) getMap(r *http.Request) (any, error) {
	cells, err := number(r, "cells", defaultCells, maxCells)
	if err != nil {
		return nil, err
	}
	p := k.picture(int(cells))
	clock := k.c.Clock()
	m := Map{Version: p.version, Clock: control.Clock{Now: clock.Now(), Frozen: clock.Frozen()},
		LastEvent: k.c.Events().LastSeq(), Rules: len(k.c.Rules().List())}
	if r.FormValue("have") == p.version {
		m.Same = true
		return m, nil
	}
	m.Picture = p
	return m, nil
}

// zooKeeperFault says in a word what is wrong with ZooKeeper, or with which of
// its members.
func zooKeeperFault(zk *zkserver.Server) string {
	var broken []string
	same := true
	first := zk.Member(0).Fault().Mode
	for i := range zk.Members() {
		mode := zk.Member(i).Fault().Mode
		if same = same && mode == first; mode != zkserver.Healthy {
			broken = append(broken, fmt.Sprintf("%d %s", i, mode))
		}
	}
	if same {
		return first.String()
	}
	return strings.Join(broken, ", ")
}

// picture gives the present picture, drawn afresh only if something changed.
// Whoever asks meanwhile waits for it, so that ten pages cost what one costs.
func (k *Console) picture(cells int) *Picture {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.c.Catalog()
	if s != k.state {
		k.state = s
		k.number++
	}
	servers, masters := k.c.Servers(), k.c.MasterSlots()
	fault := zooKeeperFault(k.c.ZooKeeper())
	h := fnv.New32a()
	fmt.Fprint(h, servers, masters, fault)
	// The start of the process is in the version: another process on the same
	// port counts from 1 again.
	version := fmt.Sprintf("%s-%d-%08x-%d", k.c.ClusterID()[:min(8, len(k.c.ClusterID()))], k.number, h.Sum32(), cells)
	if p := k.drawn[cells]; p != nil && p.version == version {
		return p
	}
	if len(k.drawn) >= maxPictures {
		clear(k.drawn)
	}
	began := time.Now()
	p := &Picture{version: version, Address: "hbase://" + k.c.ZooKeeperAddress() + k.c.ZNodeParent(), ZooKeeper: k.c.ZooKeeperAddress(),
		ZNode: k.c.ZNodeParent(), ClusterID: k.c.ClusterID(), ZKFault: fault}
	p.drawServers(s, servers, masters)
	p.drawTables(s, cells)
	p.CostMs = time.Since(began).Milliseconds()
	k.drawn[cells] = p
	return p
}

func (p *Picture) drawServers(s *catalog.State, servers []cluster.ServerInfo, masters []cluster.MasterInfo) {
	at := map[string]int{}
	p.Groups = []MapGroup{{Name: catalog.DefaultGroup, Servers: []int{}}}
	for g := range s.Groups() {
		at[g.Name] = len(p.Groups)
		p.Groups = append(p.Groups, MapGroup{Name: g.Name, Servers: []int{}})
	}
	m := s.MetaRegion()
	for _, x := range servers {
		p.Servers = append(p.Servers, MapServer{
			Server: control.Server{Index: x.Index, Address: x.Address, Name: x.Name, State: string(x.State), Regions: x.Regions},
			Meta:   m.State == pb.RegionState_OPEN && m.Server.Address() == x.Address,
		})
		g := &p.Groups[at[s.GroupOfServer(x.Address)]]
		g.Servers = append(g.Servers, x.Index)
	}
	for _, x := range masters {
		p.Masters = append(p.Masters, control.Master(x))
	}
}

// place is what regions are counted by.
type place struct {
	server int
	state  pb.RegionState_State
}

func (p *Picture) drawTables(s *catalog.State, cells int) {
	index := map[int32]int{} // by port: all servers have one host
	for _, x := range p.Servers {
		if n, err := meta.ParseServerName(x.Name); err == nil {
			index[int32(n.Port)] = x.Index
		}
	}
	serverOf := func(n meta.ServerName) int {
		if i, ok := index[int32(n.Port)]; ok && !n.IsZero() {
			return i
		}
		return -1
	}
	p.Tables, p.Regions, p.Blocks = []MapTable{}, []MapRegion{}, []MapBlock{}
	var names []meta.TableName
	var counts []map[place]int
	for t := range s.Tables() {
		if len(p.Tables) == maxTables {
			p.MoreTables++
			continue
		}
		x := MapTable{Name: t.Name.String(), State: t.State.String(), Group: s.GroupOfTable(t), System: t.Name.IsSystem(), Virtual: t.Virtual(),
			Generated: t.Formula != nil, Replicas: t.Replication(), Families: []string{}, Regions: map[string]int{}}
		for _, f := range t.Schema.GetColumnFamilies() {
			x.Families = append(x.Families, string(f.GetName()))
		}
		by := map[place]int{}
		for range s.Select(t.Name, func(r *catalog.Region) bool {
			by[place{serverOf(r.Server), r.State}]++
			switch {
			case r.Parent():
				p.Parents++
			case r.State == pb.RegionState_OPEN:
				p.Open++
			case r.InTransition():
				p.InTransition++
			}
			return false
		}) {
		}
		for at, n := range by {
			x.Total += n
			x.Regions[at.state.String()] += n
		}
		p.Total += x.Total
		p.Tables, names, counts = append(p.Tables, x), append(names, t.Name), append(counts, by)
	}
	// The small ones first, so that one large table does not hide all others.
	order := make([]int, len(p.Tables))
	for i := range order {
		order[i] = i
	}
	size := func(i int) int { return p.Tables[i].Total * p.Tables[i].Replicas }
	slices.SortStableFunc(order, func(a, b int) int { return size(a) - size(b) })
	for _, i := range order {
		if size(i) > cells {
			break
		}
		cells -= size(i)
		p.Tables[i].Listed = true
	}
	for i, name := range names {
		if p.Tables[i].Listed {
			p.drawRegions(s, i, name, serverOf)
			continue
		}
		blocks := make([]MapBlock, 0, len(counts[i]))
		for at, n := range counts[i] {
			blocks = append(blocks, MapBlock{Table: i, Server: at.server, State: at.state.String(), Count: n})
		}
		slices.SortFunc(blocks, func(a, b MapBlock) int {
			if a.Server != b.Server {
				return a.Server - b.Server
			}
			return b.Count - a.Count
		})
		p.Blocks = append(p.Blocks, blocks...)
	}
}

func (p *Picture) drawRegions(s *catalog.State, i int, name meta.TableName, serverOf func(meta.ServerName) int) {
	for r := range s.RegionsOf(name) {
		p.Regions = append(p.Regions, mapRegion(r, i, serverOf))
		for j, q := range r.Replicas {
			id := r.Replica(j + 1)
			p.Regions = append(p.Regions, MapRegion{Table: i, Server: serverOf(q.Server), State: q.State.String(), Encoded: id.EncodedName(),
				Start: r.Info.Start, End: r.Info.End, OpenSeq: q.OpenSeq, Parent: r.Parent(), Replica: j + 1})
		}
	}
}

func mapRegion(r *catalog.Region, table int, serverOf func(meta.ServerName) int) MapRegion {
	x := MapRegion{Table: table, Server: serverOf(r.Server), State: r.State.String(), Encoded: r.Encoded, Name: r.Info.String(),
		Start: r.Info.Start, End: r.Info.End, OpenSeq: r.OpenSeq, Parent: r.Parent()}
	if to := serverOf(r.Target); r.InTransition() && to >= 0 && to != x.Server {
		x.To = &to
	}
	return x
}
