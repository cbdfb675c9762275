package master

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// hintFor is how long a server tells where a lazily opened region went
// (HBase's TIMEOUT_REGION_MOVED).
const hintFor = 2 * time.Minute

// Opener tells region servers which regions of generated tables are theirs, and
// stores rows of such regions before the first write. It outlives a master.
// Safe for concurrent use.
type Opener struct {
	catalog *catalog.Catalog
	tables  *Tables
	now     func() time.Time

	storing sync.Mutex // held while the rows of a region are stored

	mu         sync.Mutex
	attributes map[uint32]attributes // by table id
}

// attributes are a descriptor's values, made once for all regions of a table.
type attributes struct {
	schema *pb.TableSchema
	values map[string]string
}

// NewOpener makes an opener.
func NewOpener(c *catalog.Catalog, t *Tables, now func() time.Time) *Opener {
	return &Opener{catalog: c, tables: t, now: now, attributes: map[uint32]attributes{}}
}

var _ host.Lazy = (*Opener)(nil)

func (o *Opener) attributesOf(t *catalog.Table) map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.attributes[t.ID]
	if a.schema != t.Schema {
		if len(o.attributes) > 100 {
			clear(o.attributes)
		}
		a = attributes{t.Schema, catalog.AttributeMap(t.Schema)}
		o.attributes[t.ID] = a
	}
	return a.values
}

// Resolve implements host.Lazy.
func (o *Opener) Resolve(self meta.ServerName, name []byte) (res host.Resolution) {
	s := o.catalog.State()
	r, slot := s.Generated(name)
	if r == nil {
		return res
	}
	t := s.Table(r.Info.Table)
	if t == nil || t.State != pb.TableState_ENABLED && t.State != pb.TableState_ENABLING {
		return res
	}
	recent := o.now().UnixMilli()-r.StateTime <= hintFor.Milliseconds()
	switch {
	case r.State == pb.RegionState_OPEN && r.Server == self:
		data, err := o.tables.Handle(t)
		if err != nil {
			return res
		}
		res.Region = &host.Region{
			Info: r.Info, Encoded: r.Encoded, Name: r.Name, Table: data, OpenSeq: r.OpenSeq, Attributes: o.attributesOf(t),
			Generated: &generatedRegion{o, data, t.Name, slot.Formula, slot.Index},
		}
	case r.State == pb.RegionState_OPEN && slot.From == self && recent:
		res.Moved = &host.Moved{To: r.Server, OpenSeq: r.OpenSeq}
	case r.State == pb.RegionState_OPENING && r.Target == self:
		res.Opening = true
	case r.State == pb.RegionState_OPENING && r.Server == self:
		// Larger than what clients know of it, smaller than what they will.
		res.Moved = &host.Moved{To: r.Target, OpenSeq: r.OpenSeq + 1}
	}
	return res
}

// Holding implements host.Lazy.
func (o *Opener) Holding(self meta.ServerName) (out []meta.Region) {
	s := o.catalog.State()
	for t := range s.Tables() {
		if t.Formula == nil {
			continue
		}
		for r := range s.SelectGenerated(t.Name, func(r *catalog.Region) bool { return r.State == pb.RegionState_OPEN && r.Server == self }) {
			out = append(out, r.Info)
		}
	}
	return out
}

// generatedRegion implements host.Generator.
type generatedRegion struct {
	o       *Opener
	data    *store.Table
	table   meta.TableName
	formula *catalog.Formula
	index   int
}

func (g *generatedRegion) Stored() bool {
	return g.o.catalog.State().GeneratedWritten(g.table, g.index)
}

func (g *generatedRegion) Rows(start []byte, reversed bool) iter.Seq[[]cells.Cell] {
	return g.formula.RegionRows(g.index, start, reversed)
}

func (g *generatedRegion) Store(ctx context.Context) error {
	g.o.storing.Lock()
	defer g.o.storing.Unlock()
	if g.Stored() {
		return nil
	}
	const batch = 256
	rows := make([]*store.RowMutation, 0, batch)
	put := func() error {
		_, errs := g.data.MutateBatch(ctx, rows)
		rows = rows[:0]
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for row := range g.formula.RegionRows(g.index, nil, false) {
		// Families that the table no longer has are left out.
		row = slices.DeleteFunc(row, func(c cells.Cell) bool { return g.data.Schema().Family(c.Family) == nil })
		if len(row) == 0 {
			continue
		}
		rows = append(rows, &store.RowMutation{Row: row[0].Row, Ops: []store.Op{{Kind: store.Put, Cells: row}}})
		if len(rows) == batch {
			if err := put(); err != nil {
				return err
			}
		}
	}
	if len(rows) > 0 {
		if err := put(); err != nil {
			return err
		}
	}
	// A crash before this is known stores the same cells once more: that
	// changes nothing.
	return g.o.catalog.Update(func(tx *catalog.Tx) error {
		tx.SetWritten(g.table, g.index)
		return nil
	})
}

// storeRows has the rows of a generated region stored, which is about to be
// split or merged; of another region it does nothing.
func (m *Master) storeRows(ctx context.Context, t *catalog.Table, r *catalog.Region) error {
	if t.Formula == nil {
		return nil
	}
	_, slot := m.state().Generated(r.Name)
	if slot.Formula == nil || slot.Written {
		return nil
	}
	data, err := m.cfg.Tables.Handle(t)
	if err != nil {
		return err
	}
	return (&generatedRegion{m.cfg.Opener, data, t.Name, slot.Formula, slot.Index}).Store(ctx)
}

// lazy says whether servers open the region by themselves when they are asked
// for it.
func (m *Master) lazy(r *catalog.Region) bool { return m.state().IsGenerated(&r.Info) }

// Generate makes a generated table, open on the servers that may host it. The
// formula's ID, CreatedAt and Families are set here.
func (m *Master) Generate(ctx context.Context, schema *pb.TableSchema, f *catalog.Formula) error {
	if err := f.Check(); err != nil {
		return refuse(wire.ClassDoNotRetryIO, "%v", err)
	}
	if err := catalog.CheckShape(schema); err != nil {
		return err
	}
	schema = catalog.NormalSchema(schema)
	name := meta.TableFromProto(schema.GetTableName())
	if name.IsSystem() {
		return refuse(wire.ClassDoNotRetryIO, "a system table cannot be generated")
	}
	unlock, err := m.lockTable(ctx, name.String(), true)
	if err != nil {
		return err
	}
	defer unlock()
	if (&catalog.Table{Schema: schema}).Replication() > 1 {
		return unsupported("region replicas of a generated table")
	}
	s := m.state()
	if s.Namespace(name.Namespace) == nil {
		return namespaceNotFound(name.Namespace)
	}
	if s.Table(name) != nil {
		return refuse(wire.ClassTableExists, "%s", name.String())
	}
	if err := m.checkSchema(s, schema); err != nil {
		return err
	}
	if err := m.checkNamespaceQuota(s, name, f.Regions); err != nil {
		return err
	}
	f.Families = nil
	for _, cf := range schema.GetColumnFamilies() {
		f.Families = append(f.Families, string(cf.GetName()))
	}
	slices.SortFunc(f.Families, func(a, b string) int { return bytes.Compare([]byte(a), []byte(b)) })
	t := &catalog.Table{Name: name, Schema: schema, State: pb.TableState_ENABLED, Formula: f}
	servers, err := m.serversFor(ctx, t)
	if err != nil {
		return err
	}
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		if tx.Namespace(name.Namespace) == nil {
			return namespaceNotFound(name.Namespace)
		}
		t.ID, f.ID = tx.NextTableID(), tx.NextRegionID()
		t.StateTime, f.CreatedAt = tx.Now(), tx.Now()
		tx.PutTable(t)
		tx.Place(name, pb.RegionState_OPEN, servers, m.nextSeq())
		return nil
	})
	if err != nil {
		return err
	}
	m.event(eventlog.Event{Method: "generate", Table: name.String(), Rows: f.Regions})
	return m.settlePlaced(ctx, t, servers)
}

// serversFor gives the servers for a table's regions, least loaded first. It
// waits until there is one.
func (m *Master) serversFor(ctx context.Context, t *catalog.Table) ([]meta.ServerName, error) {
	for {
		changed := m.cfg.Servers.Changed()
		s := m.state()
		if servers := byLoad(s, m.eligible(s, t)); len(servers) > 0 {
			var names []meta.ServerName
			for _, rs := range servers {
				names = append(names, rs.Name())
			}
			return names, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// settlePlaced assigns again what was placed by formula on servers that died
// before the catalog named them: their deaths may have been taken care of
// already. The caller holds the table's lock exclusively.
func (m *Master) settlePlaced(ctx context.Context, t *catalog.Table, servers []meta.ServerName) error {
	live := map[meta.ServerName]bool{}
	for _, rs := range m.cfg.Servers.Live() {
		live[rs.Name()] = rs.Alive()
	}
	if !slices.ContainsFunc(servers, func(n meta.ServerName) bool { return !live[n] }) {
		return nil
	}
	return m.assignSelected(ctx, t, func(r *catalog.Region) bool {
		return r.State == pb.RegionState_OPEN && !live[r.Target]
	})
}

// chunk is how many regions of a generated table are assigned in one change of
// the catalog.
const chunk = 1000

// assignSelected opens those of a table's regions that wanted chooses: those of
// an ordinary table in one change, those of a generated one bit by bit. The
// caller holds the table's lock exclusively.
func (m *Master) assignSelected(ctx context.Context, t *catalog.Table, wanted func(*catalog.Region) bool) error {
	assign := func(regions []*catalog.Region) error {
		if len(regions) == 0 {
			return nil
		}
		ps, err := m.place(ctx, t, regions)
		if err != nil {
			return err
		}
		return m.open(ctx, t, ps, publishOpen)
	}
	var regions []*catalog.Region
	for r := range m.state().Select(t.Name, wanted) {
		if regions = append(regions, r); t.Formula != nil && len(regions) == chunk {
			if err := assign(regions); err != nil {
				return err
			}
			regions = nil
		}
	}
	return assign(regions)
}

// generatedTable refuses what cannot be done to a generated table.
func generatedTable(t *catalog.Table, what string) error {
	if t.Formula != nil {
		return unsupported(what + " of " + t.Name.String() + ": its regions and rows are generated")
	}
	return nil
}
