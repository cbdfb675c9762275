package master

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/eventlog"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// noProcedure is what HbckService gives for what it started no procedure for:
// Java's -1.
const noProcedure = ^uint64(0)

// transitClass and crashClass are the procedures that open or close a region,
// and that deal with a dead server.
const (
	transitClass = "TransitRegionStateProcedure"
	crashClass   = "ServerCrashProcedure"
)

// hbckService is HbckService: what HBCK2 repairs a cluster with.
func (m *Master) hbckService() *rpcserver.Service {
	s := rpcserver.NewService("HbckService")
	answer(m, s, "SetTableStateInMeta", m.setTableStateInMeta)
	answer(m, s, "SetRegionStateInMeta", m.setRegionStateInMeta)
	answer(m, s, "Assigns", func(ctx context.Context, q *pb.AssignsRequest) (*pb.AssignsResponse, error) {
		ids, err := m.transits(ctx, q.GetRegion(), q.GetOverride(), q.GetForce(), closedStates, m.reassign)
		return &pb.AssignsResponse{Pid: ids}, err
	})
	answer(m, s, "Unassigns", func(ctx context.Context, q *pb.UnassignsRequest) (*pb.UnassignsResponse, error) {
		ids, err := m.transits(ctx, q.GetRegion(), q.GetOverride(), q.GetForce(), openStates, m.Unassign)
		return &pb.UnassignsResponse{Pid: ids}, err
	})
	answer(m, s, "BypassProcedure", func(_ context.Context, q *pb.BypassProcedureRequest) (*pb.BypassProcedureResponse, error) {
		if len(q.GetProcId()) > 0 && int64(q.GetWaitTime()) <= 0 {
			return nil, retriable(wire.ClassIOException, "lockWait should be positive")
		}
		r := &pb.BypassProcedureResponse{}
		for _, id := range q.GetProcId() {
			r.Bypassed = append(r.Bypassed, m.cfg.Procedures.bypass(id))
		}
		return r, nil
	})
	answer(m, s, "ScheduleServerCrashProcedure", func(ctx context.Context, q *pb.ScheduleServerCrashProcedureRequest) (*pb.ScheduleServerCrashProcedureResponse, error) {
		r := &pb.ScheduleServerCrashProcedureResponse{}
		for _, n := range serversIn(q.GetServerName()) {
			id, err := m.scheduleCrash(ctx, n)
			if err != nil {
				return nil, err
			}
			r.Pid = append(r.Pid, id)
		}
		return r, nil
	})
	answer(m, s, "RunHbckChore", func(context.Context, *pb.RunHbckChoreRequest) (*pb.RunHbckChoreResponse, error) {
		return &pb.RunHbckChoreResponse{Ran: new(true)}, nil
	})
	answer(m, s, "FixMeta", func(context.Context, *pb.FixMetaRequest) (*pb.FixMetaResponse, error) {
		// The catalog admits no holes and no overlaps, and what a table was
		// replaced by goes with it in one change: there is nothing to mend.
		_, err := m.clean()
		return &pb.FixMetaResponse{}, err
	})
	answer(m, s, "ScheduleSCPsForUnknownServers", func(ctx context.Context, _ *pb.ScheduleSCPsForUnknownServersRequest) (*pb.ScheduleSCPsForUnknownServersResponse, error) {
		r := &pb.ScheduleSCPsForUnknownServersResponse{}
		for _, n := range m.unknownServers() {
			id, err := m.scheduleCrash(ctx, n)
			if err != nil {
				return nil, err
			}
			r.Pid = append(r.Pid, id)
		}
		return r, nil
	})
	return s
}

// setTableStateInMeta changes what hbase:meta says of a table, and nothing else.
func (m *Master) setTableStateInMeta(_ context.Context, q *pb.SetTableStateInMetaRequest) (*pb.GetTableStateResponse, error) {
	name, err := catalog.CheckTableName(q.GetTableName())
	if err != nil {
		return nil, err
	}
	var before pb.TableState_State
	err = m.cfg.Catalog.Update(func(tx *catalog.Tx) error {
		t := tx.Table(name)
		if t == nil {
			return refuse(wire.ClassTableNotFound, "No state found for %s", name)
		}
		before = t.State
		changed := *t
		changed.State, changed.StateTime = q.GetTableState().GetState(), tx.Now()
		tx.PutTable(&changed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.GetTableStateResponse{TableState: &pb.TableState{State: &before}}, nil
}

// setRegionStateInMeta changes what hbase:meta says of regions, and nothing
// else; it answers the states before of those that it changed.
func (m *Master) setRegionStateInMeta(_ context.Context, q *pb.SetRegionStateInMetaRequest) (*pb.SetRegionStateInMetaResponse, error) {
	out := &pb.SetRegionStateInMetaResponse{}
	for _, want := range q.GetStates() {
		spec := want.GetRegionSpecifier()
		r, err := m.regionOf(spec)
		if err != nil {
			return nil, retriable(wire.ClassIOException, "No existing state known for region 'type: %s\nvalue: \"%s\"\n'.", spec.GetType(), cells.QuoteShort(spec.GetValue(), 400))
		}
		if r.State == want.GetState() {
			continue
		}
		before := r.State
		if err := m.change(r.Encoded, func(r *catalog.Region) { r.State = want.GetState() }); err != nil {
			return nil, err
		}
		out.States = append(out.States, &pb.RegionSpecifierAndState{RegionSpecifier: spec, State: &before})
	}
	return out, nil
}

// From which states a region is opened and closed without being forced.
var (
	closedStates = []pb.RegionState_State{pb.RegionState_CLOSED, pb.RegionState_OFFLINE}
	openStates   = []pb.RegionState_State{pb.RegionState_OPEN}
)

// transits starts a procedure for each region that is known and, unless
// overridden, in one of the states from and nobody else's business.
func (m *Master) transits(ctx context.Context, specs []*pb.RegionSpecifier, override, force bool, from []pb.RegionState_State, f func(context.Context, string) error) ([]uint64, error) {
	var ids []uint64
	for _, spec := range specs {
		r, err := m.regionOf(spec)
		if err != nil {
			m.log.Info("unknown region", "region", cells.QuoteShort(spec.GetValue(), 400))
			continue
		}
		if !override && !force && (!slices.Contains(from, r.State) || m.locks.busy(onRegion+r.Encoded)) {
			ids = append(ids, noProcedure)
			continue
		}
		p, _, err := m.begin(ctx, transitClass, 0, 0, func(ctx context.Context, prepared func()) error {
			prepared()
			return f(ctx, r.Encoded)
		})
		if err != nil {
			return ids, err
		}
		ids = append(ids, p.id)
	}
	return ids, nil
}

// reassign opens a region whatever its state, where it is open already if it
// is.
func (m *Master) reassign(ctx context.Context, encoded string) error {
	r, t, unlock, err := m.lockedRegion(ctx, encoded)
	if err != nil {
		return err
	}
	defer unlock()
	var where host.RegionServer
	for _, rs := range m.cfg.Servers.Live() {
		if rs.Alive() && slices.ContainsFunc(rs.Regions(), func(h *host.Region) bool { return h.Encoded == encoded }) {
			where = rs
		}
	}
	return m.assignOne(ctx, t, r, where)
}

// unknownServers gives the servers that regions are said to be on and that are
// neither alive nor known to have died.
func (m *Master) unknownServers() []meta.ServerName {
	known := map[meta.ServerName]bool{{}: true}
	for _, rs := range m.cfg.Servers.Live() {
		known[rs.Name()] = true
	}
	for _, n := range m.cfg.Servers.Dead() {
		known[n] = true
	}
	var out []meta.ServerName
	for range m.state().Select(meta.TableName{}, func(r *catalog.Region) bool {
		if !r.Parent() && r.State != pb.RegionState_CLOSED && !known[r.Target] {
			known[r.Target] = true
			out = append(out, r.Target)
		}
		return false
	}) {
	}
	return out
}

// scheduleCrash treats a server as crashed: one that lives is put out, and what
// it held is opened elsewhere. It gives no procedure for one that is being dealt
// with.
func (m *Master) scheduleCrash(ctx context.Context, server meta.ServerName) (uint64, error) {
	name := onServer + server.String()
	if m.locks.busy(name) {
		return noProcedure, nil
	}
	p, _, err := m.begin(ctx, crashClass, 0, 0, func(ctx context.Context, prepared func()) error {
		unlock, err := m.locks.acquire(ctx, name, true)
		if err != nil {
			return err
		}
		defer unlock()
		prepared()
		m.event(eventlog.Event{Method: "server crash procedure", Server: server.Address(), Detail: server.String()})
		if m.find(server) != nil {
			m.cfg.Expire(server)
		}
		return m.recovered(ctx, server)
	})
	if err != nil {
		return 0, err
	}
	return p.id, nil
}

// recovered opens what a server held elsewhere, if nobody else is about to, and
// returns when nothing is left on it.
func (m *Master) recovered(ctx context.Context, server meta.ServerName) error {
	on := func(r *catalog.Region) bool {
		return r.Target == server && !r.Parent() && (r.State == pb.RegionState_OPEN || r.InTransition())
	}
	for anyRegion(m.state(), meta.TableName{}, on) {
		if m.find(server) == nil {
			if err := m.ServerDied(ctx, server); err != nil {
				return err
			}
			continue
		}
		// It was told to end, and is not out of the list yet.
		if err := wait(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
