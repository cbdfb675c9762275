package admin

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Hbck repairs a cluster whose regions are stuck, with the calls of HBCK2
// (Java's Hbck). They change hbase:meta and the master's procedures without the
// care the ordinary calls take; know what is wrong first. HBase 2.0 and later;
// the later ones say so.
type Hbck struct{ a *Admin }

// Hbck gives the repair calls.
func (a *Admin) Hbck() Hbck { return Hbck{a} }

const hbckService = "HbckService"

func (h Hbck) call(ctx context.Context, op, object, method, versions string, param wire.Marshaler, result wire.Unmarshaler) error {
	ctx, cancel := bound(ctx, h.a.cfg.ProcedureTimeout)
	defer cancel()
	_, err := h.a.core.CallMaster(ctx, &session.ServerCall{
		Service: hbckService, Method: method, Op: op, Param: param, Result: result,
		Idempotency: session.Unsafe, Timeout: h.a.cfg.ProcedureTimeout,
	})
	return fault.Wrap(op, object, fault.Since(err, method, versions))
}

// SetTableState writes a table's state into hbase:meta, and nothing else, and
// gives the state before.
func (h Hbck) SetTableState(ctx context.Context, table string, state TableState) (TableState, error) {
	const op = "set table state"
	t, err := parseTable(op, table)
	if err != nil {
		return 0, err
	}
	if state > Enabling {
		return 0, invalid(op, ofTable(t), fmt.Sprintf("cannot have state %v", state))
	}
	p := pb.TableState_State(state)
	var resp pb.GetTableStateResponse
	err = h.call(ctx, op, ofTable(t), "SetTableStateInMeta", "2.0 and later", &pb.SetTableStateInMetaRequest{
		TableName: t.ToProto(), TableState: &pb.TableState{State: &p},
	}, &resp)
	return TableState(resp.GetTableState().GetState()), err
}

// RegionState is the state of a region in hbase:meta, by HBase's name: OPEN,
// CLOSED, OPENING, ...
type RegionState string

// SetRegionState writes the state of a region (full or encoded name) into
// hbase:meta, and nothing else, and gives the state before. HBase 2.3 and
// later.
func (h Hbck) SetRegionState(ctx context.Context, region string, state RegionState) (RegionState, error) {
	const op = "set region state"
	value, ok := pb.RegionState_State_value[string(state)]
	if !ok {
		return "", invalid(op, "state "+strconv.Quote(string(state)), "is unknown to HBase")
	}
	encoded, err := encodedName(op, region)
	if err != nil {
		return "", err
	}
	p := pb.RegionState_State(value)
	var resp pb.SetRegionStateInMetaResponse
	err = h.call(ctx, op, region, "SetRegionStateInMeta", "2.3 and later", &pb.SetRegionStateInMetaRequest{
		States: []*pb.RegionSpecifierAndState{{RegionSpecifier: regionByEncoded(encoded), State: &p}},
	}, &resp)
	if err != nil {
		return "", err
	}
	if len(resp.GetStates()) == 0 {
		return state, nil // 2.6 leaves out what it did not have to change
	}
	return RegionState(resp.GetStates()[0].GetState().String()), nil
}

// noProcedure is what the master gives in place of an id for a region it did
// nothing about: Java's -1.
const noProcedure = ^uint64(0)

// Assign starts procedures that open regions (encoded names), whatever state
// they are in, and gives the procedures' ids in the same order, 0 for regions
// the master knows nothing of or has a procedure for already. With override it
// does so although a procedure has hold of the region. It does not wait: see
// [Admin.Await].
func (h Hbck) Assign(ctx context.Context, regions []string, override bool) ([]uint64, error) {
	return h.each(ctx, "hbck assign", regions, func(region string, spec []*pb.RegionSpecifier) ([]uint64, error) {
		var resp pb.AssignsResponse
		err := h.call(ctx, "hbck assign", region, "Assigns", "2.0 and later", &pb.AssignsRequest{Region: spec, Override: &override}, &resp)
		return resp.GetPid(), err
	})
}

// Unassign is Assign for closing regions.
func (h Hbck) Unassign(ctx context.Context, regions []string, override bool) ([]uint64, error) {
	return h.each(ctx, "hbck unassign", regions, func(region string, spec []*pb.RegionSpecifier) ([]uint64, error) {
		var resp pb.UnassignsResponse
		err := h.call(ctx, "hbck unassign", region, "Unassigns", "2.0 and later", &pb.UnassignsRequest{Region: spec, Override: &override}, &resp)
		return resp.GetPid(), err
	})
}

// each asks for one region at a time: HBase leaves regions it does not know out
// of its answer, so that one to several could not be told apart.
func (h Hbck) each(ctx context.Context, op string, regions []string, f func(string, []*pb.RegionSpecifier) ([]uint64, error)) ([]uint64, error) {
	if len(regions) == 0 {
		return nil, invalid(op, "regions", "are missing")
	}
	specs := make([]*pb.RegionSpecifier, len(regions))
	for i, r := range regions {
		encoded, err := encodedName(op, r)
		if err != nil {
			return nil, err
		}
		specs[i] = regionByEncoded(encoded)
	}
	out := make([]uint64, len(regions))
	for i, r := range regions {
		ids, err := f(r, specs[i:i+1])
		if err != nil {
			return out[:i], err
		}
		if len(ids) > 0 {
			out[i] = procIDs(ids)[0]
		}
	}
	return out, nil
}

func procIDs(ids []uint64) []uint64 {
	for i, id := range ids {
		if id == noProcedure {
			ids[i] = 0
		}
	}
	return ids
}

// BypassOptions are how procedures are to be bypassed.
type BypassOptions struct {
	// Wait is how long the master waits for a procedure's lock; 0 is taken for
	// 1 ms, which is the least HBase accepts.
	Wait time.Duration
	// Override does it although the lock was not to be had; Recursive to the
	// procedures that are part of it too.
	Override, Recursive bool
}

// BypassProcedures makes procedures end without doing what is left of their
// work, and says of which that was possible. The regions they were about are
// left as they are: assign them afterwards.
func (h Hbck) BypassProcedures(ctx context.Context, ids []uint64, o BypassOptions) ([]bool, error) {
	const op = "bypass procedures"
	if len(ids) == 0 {
		return nil, invalid(op, "procedures", "are missing")
	}
	if o.Wait < 0 {
		return nil, invalid(op, "wait", "is negative")
	}
	var resp pb.BypassProcedureResponse
	err := h.call(ctx, op, fmt.Sprint(ids), "BypassProcedure", "2.0 and later", &pb.BypassProcedureRequest{
		ProcId: ids, WaitTime: new(uint64(max(o.Wait, time.Millisecond) / time.Millisecond)), Override: &o.Override, Recursive: &o.Recursive,
	}, &resp)
	return resp.GetBypassed(), err
}

// ScheduleCrashes starts procedures that treat servers as crashed: their logs
// are split, their regions opened elsewhere. It gives the procedures' ids, 0
// for servers already dealt with.
func (h Hbck) ScheduleCrashes(ctx context.Context, servers ...ServerName) ([]uint64, error) {
	const op = "schedule server crash"
	if len(servers) == 0 {
		return nil, invalid(op, "servers", "are missing")
	}
	var resp pb.ScheduleServerCrashProcedureResponse
	err := h.call(ctx, op, serverList(servers), "ScheduleServerCrashProcedure", "2.0 and later", &pb.ScheduleServerCrashProcedureRequest{
		ServerName: serversToProto(servers),
	}, &resp)
	return procIDs(resp.GetPid()), err
}

// ScheduleCrashOfUnknownServers does so for all unknown servers (see
// [Admin.UnknownServers]). HBase 2.2 and later.
func (h Hbck) ScheduleCrashOfUnknownServers(ctx context.Context) ([]uint64, error) {
	var resp pb.ScheduleSCPsForUnknownServersResponse
	err := h.call(ctx, "schedule crash of unknown servers", "", "ScheduleSCPsForUnknownServers", "2.2 and later", &pb.ScheduleSCPsForUnknownServersRequest{}, &resp)
	return procIDs(resp.GetPid()), err
}

// RunChore makes the master look for inconsistencies between hbase:meta and the
// file system; it says whether it ran. What it finds is on the master's page
// /hbck.jsp.
func (h Hbck) RunChore(ctx context.Context) (bool, error) {
	var resp pb.RunHbckChoreResponse
	err := h.call(ctx, "hbck chore run", "", "RunHbckChore", "2.0 and later", &pb.RunHbckChoreRequest{}, &resp)
	return resp.GetRan(), err
}

// FixMeta makes the master close holes and remove overlaps in hbase:meta that
// the last run of the chore found.
func (h Hbck) FixMeta(ctx context.Context) error {
	return h.call(ctx, "fix meta", meta.MetaTable.String(), "FixMeta", "2.0 and later", &pb.FixMetaRequest{}, &pb.FixMetaResponse{})
}
