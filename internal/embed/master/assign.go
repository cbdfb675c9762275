package master

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// closeWait bounds how long closing a region waits for writes that are still
// running. A write held up longer than that (by a chaos rule) goes on: it
// holds its row's lock, so it harms nobody.
const closeWait = 10 * time.Second

// settingDraining holds the addresses of decommissioned servers, one a line.
const settingDraining = "draining"

// eligible gives the servers that may host a table's regions: alive, not
// decommissioned, of the table's group. System tables whose group has no
// server go anywhere, so that the cluster stays usable.
func (m *Master) eligible(s *catalog.State, t *catalog.Table) []host.RegionServer {
	group, draining := s.GroupOfTable(t), m.draining(s)
	var in, other []host.RegionServer
	for _, rs := range m.cfg.Servers.Live() {
		if !rs.Alive() {
			continue
		}
		if a := rs.Name().Address(); !slices.Contains(draining, a) {
			if s.GroupOfServer(a) == group {
				in = append(in, rs)
			} else {
				other = append(other, rs)
			}
		}
	}
	if len(in) == 0 && t.Name.IsSystem() {
		return other
	}
	return in
}

// byLoad sorts servers by the regions they hold, fewest first.
func byLoad(s *catalog.State, servers []host.RegionServer) []host.RegionServer {
	out := slices.Clone(servers)
	slices.SortStableFunc(out, func(a, b host.RegionServer) int { return s.Held(a.Name()) - s.Held(b.Name()) })
	return out
}

// find gives the live server of that name.
func (m *Master) find(name meta.ServerName) host.RegionServer {
	for _, rs := range m.cfg.Servers.Live() {
		if rs.Name() == name {
			return rs
		}
	}
	return nil
}

// hosted makes the form in which servers get a region.
func (m *Master) hosted(t *catalog.Table, r *catalog.Region, seq int64) (*host.Region, error) {
	h := &host.Region{Info: r.Info, Encoded: r.Encoded, Name: r.Name, OpenSeq: seq, Attributes: catalog.AttributeMap(t.Schema)}
	if t.Virtual() {
		h.Virtual = m.cfg.Catalog.Virtual(t.Name)
		return h, nil
	}
	data, err := m.cfg.Tables.Handle(t)
	h.Table = data
	return h, err
}

// nextSeq gives an open sequence number.
func (m *Master) nextSeq() int64 { return int64(m.cfg.Store.NextSeq()) }

// placement is a region and the server it is to open on.
type placement struct {
	region *catalog.Region
	server host.RegionServer
	seq    int64
}

// opened gives the region as it stands once open there.
func (p *placement) opened(now int64) *catalog.Region {
	r := *p.region
	r.State, r.Server, r.Target = pb.RegionState_OPEN, p.server.Name(), p.server.Name()
	r.OpenSeq, r.StateTime = p.seq, now
	return &r
}

// place chooses servers for regions of one table, in turn, beginning with the
// least loaded one. It waits until there is a server.
func (m *Master) place(ctx context.Context, t *catalog.Table, regions []*catalog.Region) ([]placement, error) {
	for {
		changed := m.cfg.Servers.Changed()
		s := m.state()
		servers := m.eligible(s, t)
		if len(servers) == 0 {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		servers = byLoad(s, servers)
		out := make([]placement, len(regions))
		for i, r := range regions {
			out[i] = placement{region: r, server: servers[i%len(servers)], seq: m.nextSeq()}
		}
		return out, nil
	}
}

// open opens regions of one table where they were placed; publish, run in one
// catalog update, records them. Placements whose server died meanwhile are
// placed and opened again. The caller holds the lock that covers the regions.
func (m *Master) open(ctx context.Context, t *catalog.Table, ps []placement, publish func(*catalog.Tx, []placement) error) error {
	for range 100 {
		for i := range ps {
			if t.Formula != nil && m.lazy(ps[i].region) {
				continue
			}
			h, err := m.hosted(t, ps[i].region, ps[i].seq)
			if err != nil {
				return err
			}
			ps[i].server.OpenRegion(h)
		}
		if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error { return publish(tx, ps) }); err != nil {
			for i := range ps {
				m.closeOn(ctx, ps[i].server, ps[i].region.Encoded, nil)
			}
			return err
		}
		if t.Name == meta.MetaTable {
			m.cfg.MetaMoved(ps[0].server.Name())
		}
		if t.Formula != nil && len(ps) > 1 {
			// One by one they would drive everything else out of the log.
			m.event(eventlog.Event{Method: "open", Table: t.Name.String(), Rows: len(ps), Detail: "generated regions"})
		}
		for i := range ps {
			if t.Formula != nil && len(ps) > 1 {
				break
			}
			m.event(eventlog.Event{Method: "open", Server: ps[i].server.Name().Address(), Table: t.Name.String(), Region: ps[i].region.Encoded})
		}
		// A server that died before the catalog named it may have been taken
		// care of already, without these regions.
		var again []*catalog.Region
		for i := range ps {
			if !ps[i].server.Alive() {
				again = append(again, ps[i].region)
			}
		}
		if t.Replication() > 1 || slices.ContainsFunc(ps, func(p placement) bool { return len(p.region.Replicas) > 0 }) {
			names := make([]string, len(ps))
			for i := range ps {
				names[i] = ps[i].region.Encoded
			}
			if err := m.settleReplicas(ctx, t, names); err != nil {
				return err
			}
		}
		if len(again) == 0 {
			return nil
		}
		next, err := m.place(ctx, t, again)
		if err != nil {
			return err
		}
		ps, publish = next, publishOpen
	}
	return errors.New("servers died faster than regions could be opened")
}

// publishOpen records regions as open.
func publishOpen(tx *catalog.Tx, ps []placement) error {
	for i := range ps {
		// What else is in the catalog about the region (merge marks, say) is
		// newer than the placement's copy. A new one is not there yet; asked for
		// by its encoded name, it would be looked for among all generated ones.
		if r := tx.RegionNamed(ps[i].region.Name); r != nil {
			ps[i].region = r
		}
		tx.PutRegion(ps[i].opened(tx.Now()))
	}
	return nil
}

// closeOn closes a region on a server, if there is one. On a dead one this does
// no harm; one that is leaving remembers where the region went.
func (m *Master) closeOn(ctx context.Context, rs host.RegionServer, encoded string, moved *host.Moved) {
	if rs == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	if err := rs.CloseRegion(ctx, encoded, moved); err != nil {
		m.log.Warn("region closed while writes were running", "region", encoded, "server", rs.Name().String(), "err", err)
	}
}

// change publishes a region's new state.
func (m *Master) change(encoded string, f func(*catalog.Region)) error {
	return m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		old := tx.Region(encoded)
		if old == nil {
			return unknownRegion(encoded)
		}
		r := *old
		f(&r)
		r.StateTime = tx.Now()
		tx.PutRegion(&r)
		return nil
	})
}

// assignOne opens one region of a table, on the server wanted or, if that is
// nil, on the least loaded one. The caller holds the region's lock.
func (m *Master) assignOne(ctx context.Context, t *catalog.Table, r *catalog.Region, want host.RegionServer) error {
	if want == nil {
		ps, err := m.place(ctx, t, []*catalog.Region{r})
		if err != nil {
			return err
		}
		want = ps[0].server
	}
	if gap := m.cfg.Controls.transitionGap(); gap > 0 {
		if !m.lazy(r) {
			want.SetOpening(r.Encoded, true)
			defer want.SetOpening(r.Encoded, false)
		}
		if err := m.change(r.Encoded, func(r *catalog.Region) {
			r.State, r.Target = pb.RegionState_OPENING, want.Name()
		}); err != nil {
			return err
		}
		// Half-way, it is the master's business and no longer the caller's.
		ctx = m.ctx
		if err := wait(ctx, gap); err != nil {
			return err
		}
	}
	return m.open(ctx, t, []placement{{region: r, server: want, seq: m.nextSeq()}}, publishOpen)
}

// AssignUnassigned opens every region of an enabled table that is open
// nowhere: at start, and when a server joins a cluster that had none.
func (m *Master) AssignUnassigned(ctx context.Context) error {
	live := map[meta.ServerName]bool{}
	for _, rs := range m.cfg.Servers.Live() {
		live[rs.Name()] = rs.Alive()
	}
	wanted := func(r *catalog.Region) bool {
		switch r.State {
		case pb.RegionState_OFFLINE, pb.RegionState_OPEN, pb.RegionState_OPENING, pb.RegionState_CLOSING:
			return !r.Parent() && !live[r.Target]
		}
		return false
	}
	s := m.state()
	names := []meta.TableName{meta.MetaTable}
	for t := range s.Tables() {
		if t.Name != meta.MetaTable && (t.State == pb.TableState_ENABLED || t.State == pb.TableState_ENABLING) {
			names = append(names, t.Name)
		}
	}
	for _, name := range names {
		if err := m.assignTable(ctx, name, wanted); err != nil {
			return err
		}
	}
	return nil
}

// assignTable opens those of a table's regions that wanted chooses.
func (m *Master) assignTable(ctx context.Context, name meta.TableName, wanted func(*catalog.Region) bool) error {
	if m.state().Table(name) == nil || !anyRegion(m.state(), name, wanted) {
		return nil
	}
	// Exclusively, as in a DDL: all of them open in one change.
	unlock, err := m.lockTable(ctx, name.String(), true)
	if err != nil {
		return err
	}
	defer unlock()
	t := m.state().Table(name)
	if t == nil {
		return nil
	}
	if m.state().Unplaced(name) {
		servers, err := m.serversFor(ctx, t)
		if err != nil {
			return err
		}
		if err := m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
			tx.Place(name, pb.RegionState_OPEN, servers, m.nextSeq())
			return nil
		}); err != nil {
			return err
		}
		if err := m.settlePlaced(ctx, t, servers); err != nil {
			return err
		}
	}
	return m.assignSelected(ctx, t, wanted)
}

func anyRegion(s *catalog.State, name meta.TableName, wanted func(*catalog.Region) bool) bool {
	for range s.Select(name, wanted) {
		return true
	}
	return false
}

// ServerDied opens the regions of a dead server elsewhere, hbase:meta first.
// It is called after the server was taken out of the live list.
func (m *Master) ServerDied(ctx context.Context, dead meta.ServerName) error {
	tables := map[meta.TableName]bool{}
	for range m.state().Select(meta.TableName{}, func(r *catalog.Region) bool {
		if r.Target == dead && !r.Parent() {
			tables[r.Info.Table] = true
		}
		return false
	}) {
	}
	orphan := func(r *catalog.Region) bool {
		return r.Target == dead && !r.Parent() && (r.State == pb.RegionState_OPEN || r.InTransition())
	}
	if tables[meta.MetaTable] {
		if err := m.assignTable(ctx, meta.MetaTable, orphan); err != nil {
			return err
		}
		delete(tables, meta.MetaTable)
	}
	// Tables wait for their locks independently: one that is being altered
	// must not hold up the others.
	errs := make(chan error, len(tables))
	limit := make(chan struct{}, 16)
	n := 0
	replicated := replicatedTables(m.state())
	for name := range tables {
		if !m.goRun(func(ctx context.Context) {
			select {
			case limit <- struct{}{}:
				defer func() { <-limit }()
				errs <- m.assignTable(ctx, name, orphan)
			case <-ctx.Done():
				errs <- ctx.Err()
			}
		}) {
			break
		}
		n++
	}
	var err error
	for range n {
		err = errors.Join(err, <-errs)
	}
	for _, name := range replicated {
		err = errors.Join(err, m.settleTableReplicas(ctx, name))
	}
	m.event(eventlog.Event{Method: "recovered", Server: dead.Address(), Detail: dead.String()})
	return err
}

// Move opens a region on another server: the one named, or, with the zero
// name, one of the others.
func (m *Master) Move(ctx context.Context, encoded string, to meta.ServerName) error {
	if m.state().Region(encoded) == nil {
		return m.moveReplica(ctx, encoded, to)
	}
	r, t, unlock, err := m.lockedRegion(ctx, encoded)
	if err != nil {
		return err
	}
	defer unlock()
	if r.State != pb.RegionState_OPEN {
		return refuse(wire.ClassDoNotRetryRegion, "%s is not OPEN; state=%s", r.Encoded, r.State)
	}
	dst, err := m.destination(m.state(), t, r, to)
	if err != nil || dst == nil {
		return err
	}
	return m.move(ctx, t, r, dst)
}

// destination chooses where a region moves; nil means it may stay.
func (m *Master) destination(s *catalog.State, t *catalog.Table, r *catalog.Region, to meta.ServerName) (host.RegionServer, error) {
	servers := m.eligible(s, t)
	if to.IsZero() {
		servers = slices.DeleteFunc(servers, func(rs host.RegionServer) bool { return rs.Name() == r.Server })
		if len(servers) == 0 {
			return nil, nil
		}
		return byLoad(s, servers)[0], nil
	}
	if to == r.Server {
		return nil, nil
	}
	rs := m.find(to)
	switch {
	case rs == nil || !rs.Alive():
		return nil, refuse(wire.ClassDoNotRetryIO, "Cannot move %s: server %s is not online", r.Encoded, to)
	case !slices.Contains(servers, rs) && s.GroupOfServer(to.Address()) != s.GroupOfTable(t):
		// To one that is decommissioned it may be moved, as in HBase.
		return nil, refuse(wire.ClassConstraint, "Cannot move %s of table %s, which is in group %s, to server %s, which is in group %s",
			r.Encoded, t.Name, s.GroupOfTable(t), to, s.GroupOfServer(to.Address()))
	}
	return rs, nil
}

// move opens an open region elsewhere and closes it where it was. The caller
// holds its lock.
func (m *Master) move(ctx context.Context, t *catalog.Table, r *catalog.Region, dst host.RegionServer) error {
	src, seq := m.find(r.Server), m.nextSeq()
	moved := &host.Moved{To: dst.Name(), OpenSeq: seq}
	lazy := m.lazy(r)
	if lazy {
		moved = nil // servers see it in the catalog
	}
	gap := m.cfg.Controls.transitionGap()
	if gap > 0 {
		if err := m.change(r.Encoded, func(r *catalog.Region) { r.State = pb.RegionState_CLOSING }); err != nil {
			return err
		}
		// A caller that leaves now must not leave the region behind, half-way.
		ctx = m.ctx
		if !lazy {
			dst.SetOpening(r.Encoded, true)
			defer dst.SetOpening(r.Encoded, false)
		}
		m.closeOn(ctx, src, r.Encoded, moved)
		if err := m.change(r.Encoded, func(r *catalog.Region) { r.State, r.Target = pb.RegionState_OPENING, dst.Name() }); err != nil {
			return err
		}
		if err := wait(ctx, gap); err != nil {
			return err
		}
	}
	err := m.open(ctx, t, []placement{{region: r, server: dst, seq: seq}}, publishOpen)
	if err != nil {
		return err
	}
	if gap == 0 {
		m.closeOn(ctx, src, r.Encoded, moved)
	}
	m.event(eventlog.Event{Method: "move", Server: dst.Name().Address(), Table: t.Name.String(), Region: r.Encoded,
		Detail: r.Server.String() + " -> " + dst.Name().String()})
	return nil
}

// lockedRegion locks a region, and gives it and its table as they are then.
func (m *Master) lockedRegion(ctx context.Context, encoded string) (*catalog.Region, *catalog.Table, func(), error) {
	r := m.state().Region(encoded)
	if r == nil {
		return nil, nil, nil, unknownRegion(encoded)
	}
	unlock, err := m.lockRegion(ctx, r.Info.Table.String(), encoded)
	if err != nil {
		return nil, nil, nil, err
	}
	// The lock may have come in the moment in which the caller was called off.
	if err := ctx.Err(); err != nil {
		unlock()
		return nil, nil, nil, err
	}
	s := m.state()
	r, t := s.Region(encoded), s.Table(r.Info.Table)
	if r == nil || t == nil {
		unlock()
		return nil, nil, nil, unknownRegion(encoded)
	}
	return r, t, unlock, nil
}

// Assign opens a region that is open nowhere; one that is open stays.
func (m *Master) Assign(ctx context.Context, encoded string) error {
	r, t, unlock, err := m.lockedRegion(ctx, encoded)
	if err != nil {
		return err
	}
	defer unlock()
	if r.Parent() {
		return refuse(wire.ClassDoNotRetryRegion, "%s is split or merged; state=%s", encoded, r.State)
	}
	if rs := m.find(r.Target); r.State == pb.RegionState_OPEN && rs != nil && rs.Alive() {
		return nil
	}
	return m.assignOne(ctx, t, r, nil)
}

// Unassign closes a region and leaves it closed.
func (m *Master) Unassign(ctx context.Context, encoded string) error {
	r, _, unlock, err := m.lockedRegion(ctx, encoded)
	if err != nil {
		return err
	}
	defer unlock()
	if r.State != pb.RegionState_OPEN {
		return nil
	}
	if m.lazy(r) {
		// Or it would be opened again before the catalog says that it is closed.
		if err := m.change(encoded, func(r *catalog.Region) { r.State = pb.RegionState_CLOSING }); err != nil {
			return err
		}
	}
	m.closeOn(ctx, m.find(r.Server), encoded, nil)
	m.event(eventlog.Event{Method: "close", Server: r.Server.Address(), Table: r.Info.Table.String(), Region: encoded})
	return m.change(encoded, func(r *catalog.Region) { r.State = pb.RegionState_CLOSED })
}

// closeAll closes all of a table's open regions, eight at a time. The caller
// holds the table's lock exclusively.
func (m *Master) closeAll(ctx context.Context, name meta.TableName) {
	if t := m.state().Table(name); t == nil || t.Formula != nil {
		ctx, cancel := context.WithTimeout(ctx, closeWait)
		defer cancel()
		for _, rs := range m.cfg.Servers.Live() {
			if err := rs.CloseTable(ctx, name, false); err != nil {
				m.log.Warn("table closed while writes were running", "table", name.String(), "server", rs.Name().String(), "err", err)
			}
		}
		return
	}
	limit := make(chan struct{}, 8)
	var wg sync.WaitGroup
	for r := range m.state().RegionsOf(name) {
		if r.Target.IsZero() || r.Parent() {
			continue
		}
		rs := m.find(r.Target)
		limit <- struct{}{}
		wg.Go(func() {
			m.closeReplicas(ctx, r)
			m.closeOn(ctx, rs, r.Encoded, nil)
			<-limit
		})
	}
	wg.Wait()
}
