package master

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// TestRemoteLockExpires: a client's lock lasts as long as its heartbeats, and a
// procedure that waits for it can be bypassed.
func TestRemoteLockExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bare(t)
		defer m.Close()
		request := func() uint64 {
			t.Helper()
			r, err := m.requestLock(t.Context(), &pb.LockRequest{LockType: pb.LockType_EXCLUSIVE.Enum(), Namespace: new("n"), Description: new("d")})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return r.GetProcId()
		}
		locked := func(id uint64, keep bool) bool {
			t.Helper()
			r, err := m.lockHeartbeat(t.Context(), &pb.LockHeartbeatRequest{ProcId: &id, KeepAlive: &keep})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return r.GetLockStatus() == pb.LockHeartbeatResponse_LOCKED
		}
		first, second := request(), request()
		for range 4 {
			time.Sleep(heartbeatTimeout - time.Second)
			if !locked(first, true) || locked(second, true) {
				t.Fatal("the first client lost its lock, or both have it")
			}
		}
		time.Sleep(heartbeatTimeout + time.Second)
		if locked(first, true) || !locked(second, true) {
			t.Error("the first client kept its lock without a heartbeat")
		}
		third := request()
		if !m.cfg.Procedures.bypass(third) || m.cfg.Procedures.bypass(1<<40) {
			t.Error("bypass of one that waits, or of none")
		}
		synctest.Wait()
		if m.cfg.Procedures.bypass(third) {
			t.Error("bypassed twice")
		}
		if locked(second, false) || locked(second, true) {
			t.Error("the second client has its lock after giving it up")
		}
		if list := m.locks.list(); len(list) != 0 {
			t.Errorf("left: %v", list)
		}
	})
}
