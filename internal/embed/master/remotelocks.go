package master

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// lockClass is the procedure that holds a lock for a client.
const lockClass = "LockProcedure"

// heartbeatTimeout is how long a client's lock lasts without a heartbeat
// (hbase.master.procedure.remote.locks.timeout.ms).
const heartbeatTimeout = 30 * time.Second

// maxRemoteLocks bounds the locks that clients have or wait for.
const maxRemoteLocks = 10_000

// remoteLocks are the locks clients asked for, by the procedures that hold
// them. The zero value is ready; safe for concurrent use.
type remoteLocks struct {
	mu sync.Mutex
	m  map[uint64]*remoteLock
}

type remoteLock struct {
	beat chan struct{} // room for one
	stop context.CancelFunc
	// Guarded by remoteLocks.mu: the lock is held; the client gave it up.
	locked, given bool
}

func (ls *remoteLocks) get(id uint64) *remoteLock {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.m[id]
}

// lockService is LockService: locks of namespaces, tables and regions for
// clients, who keep them by heartbeats.
func (m *Master) lockService() *rpcserver.Service {
	s := rpcserver.NewService("LockService")
	answer(m, s, "RequestLock", m.requestLock)
	answer(m, s, "LockHeartbeat", m.lockHeartbeat)
	return s
}

func (m *Master) requestLock(ctx context.Context, q *pb.LockRequest) (*pb.LockResponse, error) {
	if q.GetDescription() == "" {
		return nil, refuse(wire.ClassDoNotRetryIO, "java.lang.IllegalArgumentException: Empty description")
	}
	exclusive := q.GetLockType() == pb.LockType_EXCLUSIVE
	var take func(context.Context) (func(), error)
	switch {
	case len(q.GetRegionInfo()) > 0:
		table := ""
		var names []string
		for _, p := range q.GetRegionInfo() {
			r := meta.RegionFromProto(p)
			if t := r.Table.String(); table != "" && t != table {
				return nil, refuse(wire.ClassDoNotRetryIO, "java.lang.IllegalArgumentException: All regions should be from same table")
			}
			table, names = r.Table.String(), append(names, r.EncodedName())
		}
		take = func(ctx context.Context) (func(), error) { return m.lockRegions(ctx, table, names) }
	case q.TableName != nil:
		table := meta.TableFromProto(q.GetTableName()).String()
		take = func(ctx context.Context) (func(), error) { return m.lockTable(ctx, table, exclusive) }
	case q.Namespace != nil:
		take = func(ctx context.Context) (func(), error) { return m.lockNamespace(ctx, q.GetNamespace(), exclusive) }
	default:
		return nil, refuse(wire.ClassDoNotRetryIO, "java.lang.IllegalArgumentException: one of table/namespace/region should be specified")
	}
	p, _, err := m.begin(ctx, lockClass, q.GetNonceGroup(), q.GetNonce(), func(ctx context.Context, prepared func()) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		l := &remoteLock{beat: make(chan struct{}, 1), stop: stop}
		id := ownerOf(ctx).id
		if !m.remote.add(id, l) {
			return retriable(wire.ClassIOException, "%d locks are held or waited for by clients, which is the most there may be here", maxRemoteLocks)
		}
		defer m.remote.drop(id)
		prepared()
		return m.remote.hold(ctx, l, take, m.cfg.Procedures.waits)
	})
	if err != nil {
		return nil, err
	}
	// Until it can be found by a heartbeat.
	select {
	case <-p.prepared:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	m.cfg.Procedures.mu.Lock()
	defer m.cfg.Procedures.mu.Unlock()
	if p.prepareErr != nil {
		return nil, p.prepareErr
	}
	return &pb.LockResponse{ProcId: new(p.id)}, nil
}

func (ls *remoteLocks) add(id uint64, l *remoteLock) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if len(ls.m) >= maxRemoteLocks {
		return false
	}
	if ls.m == nil {
		ls.m = map[uint64]*remoteLock{}
	}
	ls.m[id] = l
	return true
}

func (ls *remoteLocks) drop(id uint64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.m, id)
}

// hold waits for a client's lock, and holds it until the client lets go of it
// or is not heard of any more.
func (ls *remoteLocks) hold(ctx context.Context, l *remoteLock, take func(context.Context) (func(), error), held func(*procedure)) error {
	end := func() error {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		l.locked = false
		if l.given {
			return nil
		}
		return ctx.Err()
	}
	release, err := take(ctx)
	if err != nil {
		return end()
	}
	defer release()
	held(ownerOf(ctx))
	ls.mu.Lock()
	l.locked = true
	ls.mu.Unlock()
	t := time.NewTimer(heartbeatTimeout)
	defer t.Stop()
	for {
		select {
		case <-l.beat:
			t.Reset(heartbeatTimeout)
		case <-t.C:
			return nil
		case <-ctx.Done():
			return end()
		}
	}
}

func (m *Master) lockHeartbeat(_ context.Context, q *pb.LockHeartbeatRequest) (*pb.LockHeartbeatResponse, error) {
	out := &pb.LockHeartbeatResponse{LockStatus: pb.LockHeartbeatResponse_UNLOCKED.Enum()}
	l := m.remote.get(q.GetProcId())
	if l == nil {
		return out, nil
	}
	select {
	case l.beat <- struct{}{}:
	default:
	}
	m.remote.mu.Lock()
	defer m.remote.mu.Unlock()
	if !q.GetKeepAlive() {
		l.given = true
		l.stop()
		return out, nil
	}
	if l.locked {
		out.LockStatus, out.TimeoutMs = pb.LockHeartbeatResponse_LOCKED.Enum(), new(uint32(heartbeatTimeout/time.Millisecond))
	}
	return out, nil
}

// getLocks answers GetLocks: who has what, and which clients wait for it.
func (m *Master) getLocks(context.Context, *pb.GetLocksRequest) (*pb.GetLocksResponse, error) {
	out := &pb.GetLocksResponse{}
	ps := m.cfg.Procedures
	list := m.locks.list()
	// In HBase, what waits for a table does not keep its namespace meanwhile, as
	// it does here: shared namespaces count by the tables that are locked.
	shared := map[string]int32{}
	for _, h := range list {
		if table, ok := strings.CutPrefix(h.name, onTable); ok {
			n := int32(h.readers)
			if h.writer {
				n++
			}
			shared[namespaceOfTable(table)] += n
		}
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, on := range []struct {
		prefix string
		kind   pb.LockedResourceType
	}{
		{onServer, pb.LockedResourceType_SERVER}, {onNamespace, pb.LockedResourceType_NAMESPACE}, {onTable, pb.LockedResourceType_TABLE}, {onRegion, pb.LockedResourceType_REGION},
	} {
		for _, h := range list {
			name, ok := strings.CutPrefix(h.name, on.prefix)
			if !ok {
				continue
			}
			n := int32(h.readers)
			if on.prefix == onNamespace {
				n = shared[name]
			}
			r := &pb.LockedResource{ResourceType: on.kind.Enum(), ResourceName: &name, LockType: pb.LockType_SHARED.Enum(), SharedLockCount: &n}
			if h.writer {
				r.LockType, r.SharedLockCount = pb.LockType_EXCLUSIVE.Enum(), new(int32(0))
				if h.owner != nil {
					r.ExclusiveLockOwnerProcedure = h.owner.toProto()
				}
			} else if n == 0 {
				continue
			}
			for _, p := range h.waiting {
				// HBase shows clients' locks only, and what waits for a table stands
				// in the table's queue.
				if p.class == lockClass && on.prefix != onTable {
					r.WaitingProcedures = append(r.WaitingProcedures, p.toProto())
				}
			}
			out.Lock = append(out.Lock, r)
		}
	}
	return out, nil
}
