package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// replicatedRegistry knows a replica of hbase:meta.
type replicatedRegistry struct {
	*fakeRegistry
	on meta.ServerName
}

func (r *replicatedRegistry) MetaReplicas(context.Context) ([]meta.ReplicaLocation, error) {
	return []meta.ReplicaLocation{{ID: 1, Server: r.on, SeqNum: meta.NoSeqNum}}, nil
}

// TestMetaReplicas: the replica answers first questions; when it goes away, the
// primary does, and nobody notices.
func TestMetaReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 3)
		table := f.table("t", "b", "c", "d", "e", "f", "g", "h")
		var primary, replica atomic.Int64
		var gone atomic.Bool
		f.hook(func(q *query) *reply {
			var m pb.ScanRequest
			if q.method != "Scan" || m.UnmarshalVT(q.param) != nil {
				return nil
			}
			switch string(m.Region.GetValue()) {
			case meta.MetaRegionName:
				primary.Add(1)
				if m.Scan.GetConsistency() != pb.Consistency_STRONG {
					t.Error("the primary is asked for what may be old")
				}
			case "hbase:meta,,1_0001":
				replica.Add(1)
				if q.srv != f.server(2) || gone.Load() {
					return &reply{err: wire.NewRemoteError(wire.ClassNotServingRegion, "hbase:meta,,1_0001 is not online")}
				}
				if m.Scan.GetConsistency() != pb.Consistency_TIMELINE {
					t.Error("the replica is asked for the latest")
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				return f.readMeta(q)
			}
			return nil
		})
		core := f.open(func(cfg *Config) {
			cfg.MetaReplicas = true
			cfg.Registry = &replicatedRegistry{cfg.Registry.(*fakeRegistry), f.server(2).name}
		})
		read := func(row string) {
			t.Helper()
			if _, _, err := get(t.Context(), core, table, row); err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Second)
		}
		for i := range 4 {
			read(fmt.Sprintf("%cx", 'a'+i))
		}
		// The first one finds meta, and with it the replica.
		if p, r := primary.Load(), replica.Load(); p != 1 || r != 3 {
			t.Errorf("%d reads of the primary, %d of the replica; want 1 and 3", p, r)
		}
		gone.Store(true)
		before := replica.Load()
		for i := 4; i < 8; i++ {
			read(fmt.Sprintf("%cx", 'a'+i))
		}
		if r := replica.Load() - before; r > 4 {
			t.Errorf("a replica that is gone was asked %d times for 4 rows", r)
		}
	})
}
