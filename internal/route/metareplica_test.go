package route

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// replicated gives a cache over a meta with two replicas, which say what stale
// says. asked gives the reads of the primary and of each replica.
func replicated(t *testing.T, stale *fakeMeta) (c *Cache, f *fakeMeta, asked func() string) {
	t.Helper()
	var counts [3]int
	c, f = newCache(t, Config{MetaReplicas: func(context.Context) ([]meta.ReplicaLocation, error) {
		return []meta.ReplicaLocation{{ID: 1, Server: server(71)}, {ID: 2, Server: server(72)}}, nil
	}})
	c.cfg.Source = &spread{f, stale, &counts}
	if _, err := c.Locate(t.Context(), meta.MetaTable, nil); err != nil {
		t.Fatal(err)
	}
	return c, f, func() string { return fmt.Sprint(counts) }
}

// spread sends the reads to the primary or the replicas.
type spread struct {
	*fakeMeta
	stale  *fakeMeta
	counts *[3]int
}

func (s *spread) ScanMeta(ctx context.Context, scan MetaScan) ([]meta.Location, error) {
	if scan.Replica == nil {
		s.counts[0]++
		return s.fakeMeta.ScanMeta(ctx, scan)
	}
	if want := fmt.Sprintf("hbase:meta,,1_%04X", scan.Replica.ID); string(scan.Replica.Name()) != want {
		return nil, fmt.Errorf("replica is called %q, want %q", scan.Replica.Name(), want)
	}
	s.counts[scan.Replica.ID]++
	return s.stale.ScanMeta(ctx, scan)
}

func TestMetaReplicasAnswerFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale := &fakeMeta{}
		c, f, asked := replicated(t, stale)
		f.fill(tbl, 300, 3)
		stale.fill(tbl, 300, 3)
		for i := range 20 {
			r, err := c.Locate(t.Context(), tbl, key(i*13))
			if err != nil || r.Origin() != FromMetaReplica {
				t.Fatalf("%v, %v", r, err)
			}
			time.Sleep(5 * second)
		}
		var primary, one, two int
		fmt.Sscanf(asked(), "[%d %d %d]", &primary, &one, &two)
		if primary != 0 || one+two != 20 || one < 3 || two < 3 {
			t.Errorf("reads of primary and replicas: %s", asked())
		}
		if s := c.Stats(); s.ReplicaReads != 20 || s.Scans != 20 {
			t.Errorf("%d reads of replicas, %d in all", s.ReplicaReads, s.Scans)
		}
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		if fmt.Sscanf(asked(), "[%d", &primary); primary != 0 {
			t.Errorf("warming asked the primary: %s", asked())
		}
		if _, err := c.Regions(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		if fmt.Sscanf(asked(), "[%d", &primary); primary == 0 {
			t.Error("what is to be read afresh was read from a replica")
		}
	})
}

// TestStaleMetaReplica: what a replica says wrong costs one call, and the next
// answer is the primary's.
func TestStaleMetaReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale := &fakeMeta{}
		c, f, asked := replicated(t, stale)
		f.fill(tbl, 4, 1)
		stale.fill(tbl, 4, 1)
		f.move(9, func(i int) bool { return i == 1 })
		a, b := regionOf(tbl, 2, 4), regionOf(tbl, 2, 4)
		f.delete(a)
		a.ID, b.ID = a.ID+1, b.ID+1
		a.End, b.Start = []byte("user-00000002-m"), []byte("user-00000002-m")
		f.put(meta.Location{Region: a, Server: server(1), SeqNum: 1, State: "OPEN"}, meta.Location{Region: b, Server: server(2), SeqNum: 1, State: "OPEN"})

		r, err := c.Locate(t.Context(), tbl, key(1))
		if err != nil || r.Server().Name() != server(1) {
			t.Fatalf("%v, %v", r, err)
		}
		c.Rejected(r)
		if r, err = c.Locate(t.Context(), tbl, key(1)); err != nil || r.Server().Name() != server(9) || r.Origin() != FromMeta {
			t.Errorf("after it was disowned: %v from %v, %v", r, r.Origin(), err)
		}
		time.Sleep(doubtTime + second)
		// The parent of a split: the lookup of its daughters goes to the primary.
		if r, err = c.Locate(t.Context(), tbl, key(2)); err != nil || r.RegionID() == a.ID {
			t.Fatalf("%v, %v; want the parent", r, err)
		}
		c.Rejected(r)
		if r, err = c.Locate(t.Context(), tbl, []byte("user-00000002-x")); err != nil || r.RegionID() != b.ID {
			t.Errorf("%v, %v; want a daughter", r, err)
		}
		// And a replica's answer does not bring the parent back.
		time.Sleep(doubtTime + second)
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		if r = c.Lookup(tbl, []byte("user-00000002-x")); r == nil || r.RegionID() != b.ID {
			t.Errorf("%v; want the daughter", r)
		}
		if r = c.Lookup(tbl, key(1)); r == nil || r.Server().Name() != server(9) {
			t.Errorf("a replica's older answer won: %v (%s)", r, asked())
		}
	})
}

func TestMetaReplicaThatKnowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale := &fakeMeta{}
		c, f, asked := replicated(t, stale)
		f.fill(tbl, 4, 1)
		// A new table: the replicas have not heard of it.
		if r, err := c.Locate(t.Context(), tbl, key(1)); err != nil || r.Origin() != FromMeta {
			t.Errorf("%v, %v", r, err)
		}
		time.Sleep(doubtTime + second)
		// Not there at all: the primary has the last word.
		none := meta.TableName{Namespace: "default", Qualifier: "none"}
		if _, err := c.Locate(t.Context(), none, nil); !errors.Is(err, ErrTableNotFound) {
			t.Errorf("%v", err)
		}
		// The replicas fail, or hang: nobody waits long, and meta counts as well.
		stale.before = func(*MetaScan, [][]byte) error { return errDown }
		for i := range 30 {
			name := meta.TableName{Namespace: "default", Qualifier: fmt.Sprint("x", i)}
			f.fill(name, 1, 1)
			if _, err := c.Locate(t.Context(), name, nil); err != nil {
				t.Fatal(err)
			}
		}
		if s := c.Stats(); s.Breaker != Closed {
			t.Errorf("breaker %v (%s)", s.Breaker, asked())
		}
		stale.before = nil
		stale.setDelay(time.Hour)
		f.fill(meta.TableName{Namespace: "default", Qualifier: "hang"}, 1, 1)
		began := time.Now()
		if _, err := c.Locate(t.Context(), meta.TableName{Namespace: "default", Qualifier: "hang"}, nil); err != nil || time.Since(began) > second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Error(err)
		}
	})
}
