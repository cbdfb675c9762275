package console

import (
	"context"
	"net/http"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

// Bounds of one answer.
const (
	defaultRows = 20
	maxRows     = 200
	maxRowCells = 200     // of one row
	maxBytes    = 1 << 20 // of a page of rows
	maxValue    = 512     // bytes shown of a value
	maxRegions  = 500
	maxEvents   = 500
	maxVersions = 100
	// readFor is how long a page of rows may take.
	readFor = 3 * time.Second
)

// Rows is the answer of GET /console/rows.
type Rows struct {
	Rows []Row `json:"rows"`
	// Next is the key to go on from; More says that there may be more.
	Next control.Bytes `json:"next"`
	More bool          `json:"more"`
}

// Row is one row; More says that it has further cells.
type Row struct {
	Key   control.Bytes `json:"key"`
	Cells []Cell        `json:"cells"`
	More  bool          `json:"more,omitempty"`
}

// Cell is one version of one column. Value is cut to 512 bytes; Length is its
// full length.
type Cell struct {
	Family    control.Bytes `json:"family"`
	Qualifier control.Bytes `json:"qualifier"`
	Timestamp int64         `json:"timestamp"`
	Type      string        `json:"type"`
	Value     control.Bytes `json:"value"`
	Length    int           `json:"length"`
}

func (k *Console) getRows(r *http.Request) (any, error) {
	name, err := meta.ParseTableName(r.FormValue("table"))
	if err != nil {
		return nil, bad("%v", err)
	}
	limit, err := number(r, "limit", defaultRows, maxRows)
	if err != nil {
		return nil, err
	}
	versions, err := number(r, "versions", 1, maxVersions)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), readFor)
	defer cancel()
	found, err := k.c.Browse(ctx, cluster.Browse{Table: name, From: key(r, "from"), Rows: max(int(limit), 1), Cells: maxRowCells, Bytes: maxBytes,
		Family: r.FormValue("family"), Versions: max(int(versions), 1), Raw: r.FormValue("raw") == "true"})
	if err != nil {
		return nil, err
	}
	out := Rows{Rows: make([]Row, len(found.Rows)), Next: found.Next, More: found.Next != nil}
	for i, x := range found.Rows {
		out.Rows[i] = Row{Key: x.Cells[0].Row, More: x.More, Cells: make([]Cell, len(x.Cells))}
		for j := range x.Cells {
			out.Rows[i].Cells[j] = cell(&x.Cells[j])
		}
	}
	return out, nil
}

func cell(c *cells.Cell) Cell {
	return Cell{Family: c.Family, Qualifier: c.Qualifier, Timestamp: c.Timestamp, Type: c.Type.String(),
		Value: c.Value[:min(len(c.Value), maxValue)], Length: len(c.Value)}
}

// Regions is the answer of GET /console/regions: regions of one table in key
// order, without parents of splits. More says that there are more, from Next on.
type Regions struct {
	Regions []MapRegion   `json:"regions"`
	Next    control.Bytes `json:"next"`
	More    bool          `json:"more"`
}

func (k *Console) getRegions(r *http.Request) (any, error) {
	name, err := meta.ParseTableName(r.FormValue("table"))
	if err != nil {
		return nil, bad("%v", err)
	}
	limit, err := number(r, "limit", 50, maxRegions)
	if err != nil {
		return nil, err
	}
	s := k.c.Catalog()
	if s.Table(name) == nil {
		return nil, bad("there is no table %s", name)
	}
	slots := map[string]int{}
	for _, x := range k.c.Servers() {
		slots[x.Address] = x.Index
	}
	serverOf := func(n meta.ServerName) int {
		if i, ok := slots[n.Address()]; ok {
			return i
		}
		return -1
	}
	out := Regions{Regions: []MapRegion{}}
	for at := key(r, "from"); len(out.Regions) < int(limit); {
		x := s.Holding(name, at)
		if x == nil { // a hole
			out.Next, out.More = nil, false
			return out, nil
		}
		out.Regions = append(out.Regions, mapRegion(x, 0, serverOf))
		at = x.Info.End
		if out.Next, out.More = at, len(at) > 0; !out.More {
			return out, nil
		}
	}
	return out, nil
}

// Events is the answer of GET /console/events: the newest ones, oldest first.
type Events struct {
	Events []control.Event `json:"events"`
	// Older is how many more after since are remembered that the filter
	// chooses; Last is the number of the newest event of all.
	Older   int    `json:"older"`
	Last    uint64 `json:"last"`
	Enabled bool   `json:"enabled"`
}

func (k *Console) getEvents(r *http.Request) (any, error) {
	v := r.FormValue
	f := eventlog.Filter{Server: v("server"), Service: v("service"), Method: v("method"), Table: v("table"), Region: v("region"),
		User: v("user"), Outcome: v("outcome"), Failed: v("failed") == "true"}
	switch v("kind") {
	case "":
	case "rpc":
		f.Kind = eventlog.RPC
	case "cluster":
		f.Kind = eventlog.Cluster
	default:
		return nil, bad("kind %q is neither rpc nor cluster", v("kind"))
	}
	since, err := number(r, "since", 0, 1<<62)
	if err != nil {
		return nil, err
	}
	limit, err := number(r, "limit", 100, maxEvents)
	if err != nil {
		return nil, err
	}
	log := k.c.Events()
	found, older, last := log.Newest(f, since, int(limit))
	out := Events{Events: make([]control.Event, len(found)), Older: older, Last: last, Enabled: log.Enabled()}
	for i := range found {
		e := &found[i]
		out.Events[i] = control.Event{Seq: e.Seq, Kind: e.Kind.String(), Time: e.Time, Server: e.Server, Service: e.Service, Method: e.Method,
			Table: e.Table, Region: e.Region, Row: e.Row, Rows: e.Rows, User: e.User, Client: e.Client,
			Latency: control.Duration(e.Latency), Outcome: e.Outcome, Rule: e.Rule, Detail: e.Detail}
	}
	return out, nil
}
