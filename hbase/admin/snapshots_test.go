package admin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

const unknownMethod = "java.lang.UnsupportedOperationException: "

// Up to HBase 2.5 a snapshot is no procedure: the client asks whether it is
// done.
func TestSnapshotWithoutProcedure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
			switch call.Method {
			case "Snapshot":
				d := call.Param.(*pb.SnapshotRequest).GetSnapshot()
				if d.GetName() != "s" || d.GetTable() != "t" || d.GetType() != pb.SnapshotDescription_SKIPFLUSH || d.GetTtl() != 60 || d.GetMaxFileSize() != 5 || d.GetOwner() != "me" {
					t.Errorf("asked for %v", d)
				}
				if call.Idempotency != session.Unsafe {
					t.Error("a snapshot may be taken twice")
				}
				return &pb.SnapshotResponse{ExpectedTimeout: new(int64(60000))}, nil
			case "IsSnapshotDone":
				asked++
				return &pb.IsSnapshotDoneResponse{Done: new(asked == 5)}, nil
			}
			return nil, errors.New(call.Method)
		})
		core.state = pb.TableState_ENABLED.Enum()
		o := SnapshotOptions{Type: SnapshotSkipFlush, TTL: time.Minute, MaxFileSize: 5, Owner: "me"}
		var last Progress
		if err := a.OnProgress(func(p Progress) { last = p }).Snapshot(t.Context(), "s", "t", o); err != nil || asked != 5 {
			t.Errorf("%v after %d questions", err, asked)
		}
		if !last.Done || last.Polls != 5 || last.Object != `snapshot "s"` {
			t.Errorf("progress %+v", last)
		}
		// Detached, nobody asks.
		asked, core.calls = 0, nil
		if err := a.Detached(func(uint64) { t.Error("an id") }).Snapshot(t.Context(), "s", "t", o); err != nil || !slices.Equal(core.calls, []string{"Snapshot"}) {
			t.Errorf("%v, calls %v", err, core.calls)
		}
		// One that does not end.
		asked = -1 << 30
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		if err := a.Snapshot(ctx, "s", "t", o); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestSnapshotIsRefused(t *testing.T) {
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) { return nil, errors.New(call.Method) })
	for _, o := range []SnapshotOptions{{TTL: -time.Second}, {TTL: time.Millisecond}, {MaxFileSize: -1}} {
		if err := a.Snapshot(t.Context(), "s", "t", o); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, name := range []string{"", "-s", ".s", "ns:s", "a b"} {
		for what, err := range map[string]error{
			"snapshot": a.Snapshot(t.Context(), name, "t", SnapshotOptions{}), "delete": a.DeleteSnapshot(t.Context(), name),
			"clone": a.CloneSnapshot(t.Context(), name, "t", CloneOptions{}), "restore": a.RestoreSnapshot(t.Context(), name, RestoreOptions{}),
		} {
			if !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
	// A table that is not there can end a master.
	if err := a.Snapshot(t.Context(), "s", "t", SnapshotOptions{}); !errors.Is(err, fault.ErrTableNotFound) {
		t.Errorf("no table: %v", err)
	}
	if len(core.calls) != 0 {
		t.Errorf("calls %v", core.calls)
	}
}

func TestSnapshotList(t *testing.T) {
	a, _ := scripted(t, func(*session.ServerCall) (wire.Marshaler, error) {
		return &pb.GetCompletedSnapshotsResponse{Snapshots: []*pb.SnapshotDescription{
			{Name: new("b"), Table: new("ns:t"), CreationTime: new(int64(1000)), Ttl: new(int64(60)), Type: pb.SnapshotDescription_DISABLED.Enum()},
			{Name: new("a"), Table: new("t"), Ttl: new(int64(-1)), Owner: new("o")},
			{Name: new("c"), Table: new("t"), Ttl: new(int64(1 << 62))},
		}}, nil
	})
	list, err := a.ListTableSnapshots(t.Context(), "", "[ab]")
	if err != nil || len(list) != 2 || list[0].Name != "a" || list[0].TTL != 0 || list[0].Owner != "o" || list[1].TTL != time.Minute ||
		list[1].Table.String() != "ns:t" || list[1].Type.String() != "DISABLED" || list[1].Created.UnixMilli() != 1000 {
		t.Errorf("%+v, %v", list, err)
	}
	// The expression is for whole names.
	if list, _ := a.ListTableSnapshots(t.Context(), "t", ""); len(list) != 2 {
		t.Errorf("%+v", list)
	}
}

// TestRestoreGoesBack: a restore that fails is undone with the failsafe
// snapshot, and if that fails too, the error names it.
func TestRestoreGoesBack(t *testing.T) {
	for _, rollback := range []bool{true, false} {
		var failsafe string
		var calls []string
		restores := 0
		a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
			calls = append(calls, call.Method)
			switch call.Method {
			case "GetCompletedSnapshots":
				return &pb.GetCompletedSnapshotsResponse{Snapshots: []*pb.SnapshotDescription{{Name: new("s.1"), Table: new("ns:t")}, {Name: new("sx1"), Table: new("u")}}}, nil
			case "Snapshot":
				failsafe = call.Param.(*pb.SnapshotRequest).GetSnapshot().GetName()
				return &pb.SnapshotResponse{ExpectedTimeout: new(int64(1)), ProcId: new(int64(5))}, nil
			case "getProcedureResult":
				return &pb.GetProcedureResultResponse{State: pb.GetProcedureResultResponse_FINISHED.Enum()}, nil
			case "RestoreSnapshot":
				d := call.Param.(*pb.RestoreSnapshotRequest).GetSnapshot()
				if d.GetTable() != "ns:t" || !call.Param.(*pb.RestoreSnapshotRequest).GetRestoreACL() {
					t.Errorf("restore of %v", d)
				}
				if restores++; restores == 1 {
					if d.GetName() != "s.1" {
						t.Errorf("restore of %v", d)
					}
					return nil, wire.NewRemoteError("org.apache.hadoop.hbase.snapshot.RestoreSnapshotException", "broken")
				}
				if d.GetName() != failsafe {
					t.Errorf("went back to %v", d)
				}
				if !rollback {
					return nil, errors.New("broken again")
				}
				return &pb.RestoreSnapshotResponse{ProcId: new(uint64(6))}, nil
			case "DeleteSnapshot":
				if n := call.Param.(*pb.DeleteSnapshotRequest).GetSnapshot().GetName(); n != failsafe {
					t.Errorf("deleted %s", n)
				}
				return &pb.DeleteSnapshotResponse{}, nil
			}
			return nil, errors.New(call.Method)
		})
		core.state = pb.TableState_DISABLED.Enum()
		err := a.RestoreSnapshot(t.Context(), "s.1", RestoreOptions{RestoreACL: true, FailsafeName: "safe-{snapshot.name}-{table.name}-{restore.timestamp}"})
		failed, ok := errors.AsType[*RestoreError](err)
		if !ok || !strings.HasPrefix(failsafe, "safe-s.1-ns.t-") || failed.Failsafe != failsafe || (failed.Rollback == nil) != rollback {
			t.Fatalf("%v, failsafe %q", err, failsafe)
		}
		if remote, ok := errors.AsType[*wire.RemoteError](err); !ok || remote.Message != "broken" {
			t.Errorf("%v", err)
		}
		want := "set back to what it was"
		if !rollback {
			want = "snapshot \"" + failsafe + "\" holds what it was"
		}
		if !strings.Contains(err.Error(), want) || slices.Contains(calls, "DeleteSnapshot") != rollback {
			t.Errorf("%v, calls %v", err, calls)
		}
	}
}

// TestCloneAsksForTheTable: the master would restore into a disabled table of
// that name.
func TestCloneAsksForTheTable(t *testing.T) {
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) { return nil, errors.New(call.Method) })
	core.state = pb.TableState_DISABLED.Enum()
	if err := a.CloneSnapshot(t.Context(), "s", "t", CloneOptions{}); !errors.Is(err, fault.ErrTableExists) || len(core.calls) != 0 {
		t.Errorf("%v, calls %v", err, core.calls)
	}
}

// TestOldServers: what an old master does not know is ErrUnsupported and says
// which release has it; what it would do otherwise is not asked for.
func TestOldServers(t *testing.T) {
	a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		if call.Method == "GetClusterStatus" {
			return &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{HbaseVersion: &pb.HBaseVersionFileContent{Version: new("2.3.7")}}}, nil
		}
		return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, unknownMethod+call.Method)
	})
	core.regions = true
	ctx, server := t.Context(), ServerName{Host: "h", Port: 1, StartCode: 1}
	second := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		"ListTableNamesByState needs HBase 2.6 and later":          second(a.TablesByState(ctx, true)),
		"ListTableDescriptorsByState needs HBase 2.6":              second(a.DescribeByState(ctx, true)),
		"GetLogEntries needs HBase 2.4":                            second(a.BalancerDecisions(ctx, 0)),
		"GetProcedures needs HBase 2.0":                            second(a.Procedures(ctx)),
		"GetLocks needs HBase 2.0":                                 second(a.Locks(ctx)),
		"SwitchSnapshotCleanup needs HBase 2.3":                    second(a.SetSnapshotCleanup(ctx, true)),
		"GetCachedFilesList needs HBase 2.6":                       second(a.CachedFiles(ctx, server)),
		"GetSlowLogResponses needs HBase 2.3":                      second(a.SlowLog(ctx, SlowLogQuery{Servers: []ServerName{server}})),
		"GetLargeLogResponses needs HBase 2.3":                     second(a.SlowLog(ctx, SlowLogQuery{Servers: []ServerName{server}, Large: true})),
		"FlushMasterStore needs HBase 2.5":                         a.FlushMasterStore(ctx),
		"RunHbckChore needs HBase 2.0":                             second(a.Hbck().RunChore(ctx)),
		"a dry run of the balancer needs HBase 2.5 and later":      second(a.BalanceWith(ctx, BalanceOptions{DryRun: true})),
		"normalizing chosen tables needs HBase 2.4":                second(a.Normalize(ctx, NormalizeFilter{Namespace: "n"})),
		"a list of unknown servers needs HBase 2.5":                second(a.UnknownServers(ctx)),
		"a modification without reopening regions needs HBase 2.5": a.ModifyTableLazily(ctx, NewTable("t", NewFamily("f"))),
	} {
		if !errors.Is(err, fault.ErrUnsupported) || !strings.Contains(err.Error(), want) || fault.Retriable(err) {
			t.Errorf("%v\nwant ErrUnsupported with %q", err, want)
		}
	}
	for _, never := range []string{"Balance", "Normalize", "ModifyTable"} {
		if slices.Contains(core.calls, never) {
			t.Errorf("%s was sent", never)
		}
	}
	// An error of another kind stays what it is.
	b, _ := scripted(t, func(*session.ServerCall) (wire.Marshaler, error) {
		return nil, wire.NewRemoteError(wire.ClassAccessDenied, "no")
	})
	if _, err := b.Procedures(ctx); !errors.Is(err, fault.ErrAccessDenied) || errors.Is(err, fault.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string][2]int{"2.6.4": {2, 6}, "3.0.0-beta-1": {3, 0}, "2.4": {2, 4}, "4.0-SNAPSHOT": {4, 0}, "2.10.0": {2, 10}} {
		if major, minor, ok := parseVersion(text); !ok || major != want[0] || minor != want[1] {
			t.Errorf("%s: %d %d %v", text, major, minor, ok)
		}
	}
	for _, text := range []string{"", "2", "x.y", "2.x", "-1.2", "2.-1"} {
		if _, _, ok := parseVersion(text); ok {
			t.Errorf("%q was read", text)
		}
	}
}

func TestUnknownServersByRelease(t *testing.T) {
	for version, want := range map[string]pb.Option{"2.6.4": pb.Option_DECOMMISSIONED_SERVERS, "3.0.0": pb.Option_UNKNOWN_SERVERS} {
		one := []*pb.ServerName{{HostName: new("u"), Port: new(uint32(1)), StartCode: new(uint64(2))}}
		other := []*pb.ServerName{{HostName: new("d")}}
		a, _ := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
			o := call.Param.(*pb.GetClusterStatusRequest).GetOptions()
			if o[0] == pb.Option_HBASE_VERSION {
				return &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{HbaseVersion: &pb.HBaseVersionFileContent{Version: &version}}}, nil
			}
			if len(o) != 1 || o[0] != want {
				t.Errorf("%s: asked for %v", version, o)
			}
			if version == "3.0.0" {
				return &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{UnknownServers: one, DecommissionedServers: other}}, nil
			}
			return &pb.GetClusterStatusResponse{ClusterStatus: &pb.ClusterStatus{DecommissionedServers: one}}, nil
		})
		if list, err := a.UnknownServers(t.Context()); err != nil || len(list) != 1 || list[0].Host != "u" {
			t.Errorf("%s: %v, %v", version, list, err)
		}
	}
}

func TestProceduresAreRead(t *testing.T) {
	p := &pb.Procedure{
		ClassName: new("org.x.CreateTableProcedure"), ProcId: new(uint64(7)), ParentId: new(uint64(3)), SubmittedTime: new(uint64(1000)), LastUpdate: new(uint64(2000)),
		State: pb.ProcedureState_ROLLEDBACK.Enum(), Owner: new("o"), Timeout: new(uint32(50)), Locked: new(true),
		Exception: &pb.ForeignExceptionMessage{GenericException: &pb.GenericExceptionMessage{ClassName: new(wire.ClassTableExists), Message: new("t")}},
	}
	a, _ := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		if call.Method == "GetLocks" {
			return &pb.GetLocksResponse{Lock: []*pb.LockedResource{
				{ResourceType: pb.LockedResourceType_TABLE.Enum(), ResourceName: new("t"), LockType: pb.LockType_EXCLUSIVE.Enum(), ExclusiveLockOwnerProcedure: p, WaitingProcedures: []*pb.Procedure{p, p}},
				{ResourceType: pb.LockedResourceType_PEER.Enum(), ResourceName: new("1"), LockType: pb.LockType_SHARED.Enum(), SharedLockCount: new(int32(2))},
			}}, nil
		}
		q := proto.CloneOf(p)
		q.ProcId = new(uint64(2))
		return &pb.GetProceduresResponse{Procedure: []*pb.Procedure{p, q}}, nil
	})
	list, err := a.Procedures(t.Context())
	if err != nil || len(list) != 2 || list[0].ID != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	if q := list[1]; q.String() != "7 CreateTableProcedure ROLLEDBACK" || q.Parent != 3 || q.Owner != "o" || q.Timeout != 50*time.Millisecond || !q.Locked ||
		q.Submitted.UnixMilli() != 1000 || q.Updated.UnixMilli() != 2000 || q.Err == nil {
		t.Errorf("%+v", q)
	}
	locks, err := a.Locks(t.Context())
	if err != nil || len(locks) != 2 || !locks[0].Exclusive || locks[0].Owner.ID != 7 || len(locks[0].Waiting) != 2 || locks[0].Kind.String() != "TABLE" ||
		locks[1].Exclusive || locks[1].Shared != 2 || locks[1].Kind != PeerLock {
		t.Errorf("%+v, %v", locks, err)
	}
}
