package admin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// ProcedureState is where a procedure of the master stands.
type ProcedureState uint8

// HBase's procedure states.
const (
	ProcInitializing   = ProcedureState(pb.ProcedureState_INITIALIZING)
	ProcRunnable       = ProcedureState(pb.ProcedureState_RUNNABLE)
	ProcWaiting        = ProcedureState(pb.ProcedureState_WAITING)
	ProcWaitingTimeout = ProcedureState(pb.ProcedureState_WAITING_TIMEOUT)
	ProcRolledBack     = ProcedureState(pb.ProcedureState_ROLLEDBACK)
	ProcSuccess        = ProcedureState(pb.ProcedureState_SUCCESS)
	ProcFailed         = ProcedureState(pb.ProcedureState_FAILED)
)

// String gives HBase's name.
func (s ProcedureState) String() string { return pb.ProcedureState(s).String() }

// Procedure is one of the master's procedures: what it does in steps that
// survive it, such as making a table or moving a region.
type Procedure struct {
	ID uint64
	// Parent is the procedure it is a part of; 0 if of none.
	Parent uint64
	// Class is the Java class, for instance
	// org.apache.hadoop.hbase.master.procedure.CreateTableProcedure.
	Class     string
	State     ProcedureState
	Owner     string
	Submitted time.Time
	Updated   time.Time
	// Timeout is after how long in WAITING_TIMEOUT it wakes; 0 if never.
	Timeout time.Duration
	// Err is the *RemoteError it failed of, or nil.
	Err error
	// Locked: it holds its lock. Bypassed: HBCK made it end without doing its
	// work.
	Locked, Bypassed bool
	// Parameters are the protobuf messages that are its state, which only the
	// master's own release can read.
	Parameters []ProcedureParameter
}

// ProcedureParameter is a message of a procedure's state.
type ProcedureParameter struct {
	// Type is the message's name, for instance hbase.pb.CreateTableStateData.
	Type  string
	Value []byte
}

func procedureFromProto(p *pb.Procedure) Procedure {
	out := Procedure{
		ID: p.GetProcId(), Parent: p.GetParentId(), Class: p.GetClassName(), State: ProcedureState(p.GetState()), Owner: p.GetOwner(),
		Submitted: time.UnixMilli(int64(p.GetSubmittedTime())), Updated: time.UnixMilli(int64(p.GetLastUpdate())),
		Timeout: time.Duration(p.GetTimeout()) * time.Millisecond, Locked: p.GetLocked(), Bypassed: p.GetBypass(),
	}
	if p.Exception != nil {
		out.Err = foreign(p.Exception)
	}
	for _, m := range p.GetStateMessage() {
		out.Parameters = append(out.Parameters, ProcedureParameter{Type: string(m.MessageName()), Value: m.GetValue()})
	}
	return out
}

// Procedures gives the master's procedures, running ones and those that ended
// less than about a quarter of an hour ago, in order of their ids.
func (a *Admin) Procedures(ctx context.Context) ([]Procedure, error) {
	const op = "list procedures"
	var resp pb.GetProceduresResponse
	err := a.master(ctx, op, "GetProcedures", &pb.GetProceduresRequest{}, &resp, session.Safe)
	if err != nil {
		return nil, fault.Wrap(op, "", fault.Since(err, "GetProcedures", "2.0 and later"))
	}
	out := make([]Procedure, len(resp.GetProcedure()))
	for i, p := range resp.GetProcedure() {
		out[i] = procedureFromProto(p)
	}
	slices.SortFunc(out, func(a, b Procedure) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// AbortProcedure asks the master to end a procedure and undo what it did, also
// in the middle of a step if interrupt is set. It says whether that was
// accepted; few of HBase's procedures can be aborted, and one that has ended or
// is unknown cannot.
func (a *Admin) AbortProcedure(ctx context.Context, procID uint64, interrupt bool) (bool, error) {
	const op = "abort procedure"
	var resp pb.AbortProcedureResponse
	err := a.master(ctx, op, "AbortProcedure", &pb.AbortProcedureRequest{ProcId: &procID, MayInterruptIfRunning: &interrupt}, &resp, session.Safe)
	return resp.GetIsProcedureAborted(), fault.Wrap(op, strconv.FormatUint(procID, 10), err)
}

// LockKind is what a lock of the master is on.
type LockKind uint8

// HBase's kinds of locked resources.
const (
	ServerLock    = LockKind(pb.LockedResourceType_SERVER)
	NamespaceLock = LockKind(pb.LockedResourceType_NAMESPACE)
	TableLock     = LockKind(pb.LockedResourceType_TABLE)
	RegionLock    = LockKind(pb.LockedResourceType_REGION)
	PeerLock      = LockKind(pb.LockedResourceType_PEER)
)

// String gives HBase's name.
func (k LockKind) String() string { return pb.LockedResourceType(k).String() }

// Lock is a lock a procedure holds, or several share.
type Lock struct {
	Kind     LockKind
	Resource string
	// Exclusive: one procedure, Owner, holds it; otherwise Shared do.
	Exclusive bool
	Owner     *Procedure
	Shared    int
	// Waiting are the procedures that wait for it, in their order.
	Waiting []Procedure
}

// Locks gives the locks of the master's procedures. HBase 2.0 and later.
func (a *Admin) Locks(ctx context.Context) ([]Lock, error) {
	const op = "list locks"
	var resp pb.GetLocksResponse
	err := a.master(ctx, op, "GetLocks", &pb.GetLocksRequest{}, &resp, session.Safe)
	if err != nil {
		return nil, fault.Wrap(op, "", fault.Since(err, "GetLocks", "2.0 and later"))
	}
	out := make([]Lock, len(resp.GetLock()))
	for i, p := range resp.GetLock() {
		l := Lock{Kind: LockKind(p.GetResourceType()), Resource: p.GetResourceName(),
			Exclusive: p.GetLockType() == pb.LockType_EXCLUSIVE, Shared: int(p.GetSharedLockCount())}
		if p.ExclusiveLockOwnerProcedure != nil {
			l.Owner = new(procedureFromProto(p.ExclusiveLockOwnerProcedure))
		}
		for _, w := range p.GetWaitingProcedures() {
			l.Waiting = append(l.Waiting, procedureFromProto(w))
		}
		out[i] = l
	}
	return out, nil
}

// ExecProcedure runs one of the master's globally barriered procedures, which
// all region servers take part in, and returns when it has ended: signature
// names its kind ("flush-table-proc", "online-snapshot", or one of a
// coprocessor), instance what it is about (a table's name), config its
// parameters. A master without that kind answers with an IOException.
func (a *Admin) ExecProcedure(ctx context.Context, signature, instance string, config map[string]string) error {
	const op = "exec procedure"
	object := signature + " of " + strconv.Quote(instance)
	ctx, cancel := bound(ctx, a.cfg.ProcedureTimeout)
	defer cancel()
	d := describe(signature, instance, config)
	var resp pb.ExecProcedureResponse
	if err := a.slowMaster(ctx, op, "ExecProcedure", &pb.ExecProcedureRequest{Procedure: d}, &resp, session.Unsafe); err != nil {
		return fault.Wrap(op, object, err)
	}
	if a.detached != nil {
		return nil
	}
	return a.poll(ctx, op, object, 0, func(ctx context.Context) (bool, error) { return a.procedureDone(ctx, op, d) })
}

// ExecProcedureWithReturn runs a procedure whose outcome is in the answer, and
// gives what it returns.
func (a *Admin) ExecProcedureWithReturn(ctx context.Context, signature, instance string, config map[string]string) ([]byte, error) {
	const op = "exec procedure"
	var resp pb.ExecProcedureResponse
	err := a.slowMaster(ctx, op, "ExecProcedureWithRet", &pb.ExecProcedureRequest{Procedure: describe(signature, instance, config)}, &resp, session.Unsafe)
	return resp.GetReturnData(), fault.Wrap(op, signature+" of "+strconv.Quote(instance), err)
}

// IsProcedureDone says whether a procedure started with [Admin.ExecProcedure]
// has ended; if it failed the error is what it failed of.
func (a *Admin) IsProcedureDone(ctx context.Context, signature, instance string, config map[string]string) (bool, error) {
	const op = "procedure done"
	done, err := a.procedureDone(ctx, op, describe(signature, instance, config))
	return done, fault.Wrap(op, signature+" of "+strconv.Quote(instance), err)
}

func (a *Admin) procedureDone(ctx context.Context, op string, d *pb.ProcedureDescription) (bool, error) {
	var resp pb.IsProcedureDoneResponse
	err := a.master(ctx, op, "IsProcedureDone", &pb.IsProcedureDoneRequest{Procedure: d}, &resp, session.Safe)
	return resp.GetDone(), err
}

func describe(signature, instance string, config map[string]string) *pb.ProcedureDescription {
	d := &pb.ProcedureDescription{Signature: &signature}
	if instance != "" {
		d.Instance = &instance
	}
	for _, k := range slices.Sorted(maps.Keys(config)) {
		d.Configuration = append(d.Configuration, &pb.NameStringPair{Name: new(k), Value: new(config[k])})
	}
	return d
}

// String is `7 CreateTableProcedure RUNNABLE`.
func (p Procedure) String() string {
	return fmt.Sprintf("%d %s %v", p.ID, p.Name(), p.State)
}

// Name is the class without its package.
func (p Procedure) Name() string {
	name := p.Class
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '.' {
			return name[i+1:]
		}
	}
	return name
}
