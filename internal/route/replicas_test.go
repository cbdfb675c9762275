package route

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// replicate gives every region of a table secondary replicas on other servers.
func (f *fakeMeta) replicate(n int) {
	f.change(func(l *meta.Location) bool {
		l.Replicas = nil
		for id := 1; id <= n; id++ {
			l.Replicas = append(l.Replicas, meta.ReplicaLocation{ID: int32(id), Server: server(100*id + 1), SeqNum: 1, State: "OPEN"})
		}
		return true
	})
}

func names(list []Replica) (s []string) {
	for _, p := range list {
		s = append(s, fmt.Sprintf("%d@%s", p.ID, p.Server.Name().Host))
	}
	return s
}

func TestReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 4, 2)
		f.replicate(2)
		f.change(func(l *meta.Location) bool {
			if string(l.Region.Start) == string(key(1)) {
				l.Replicas[1].Server = meta.ServerName{} // not assigned
			}
			if string(l.Region.Start) == string(key(2)) {
				l.Replicas[0].State = "CLOSED"
			}
			return true
		})
		other := meta.TableName{Namespace: "default", Qualifier: "plain"}
		f.fill(other, 1, 1)
		ctx := t.Context()
		for i, want := range []string{"[1@rs101 2@rs201]", "[1@rs101]", "[2@rs201]", "[1@rs101 2@rs201]"} {
			r, err := c.Locate(ctx, tbl, key(i))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(names(c.Replicas(r))); got != want {
				t.Errorf("region %d: replicas %s, want %s", i, got, want)
			}
		}
		r, err := c.Locate(ctx, other, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Replicas(r); got != nil {
			t.Errorf("a table without replicas has %v", got)
		}
		reads := f.reads()
		if got, err := c.LocateReplicas(ctx, r); err != nil || got != nil {
			t.Errorf("LocateReplicas: %v, %v", got, err)
		}
		if n := f.reads() - reads; n != 0 {
			t.Errorf("%d reads of meta for replicas that are known", n)
		}
	})
}

func TestReplicaNames(t *testing.T) {
	c, f := newCache(t, Config{})
	f.put(meta.Location{
		Region: meta.Region{Table: tbl, ID: 1700000000000}, Server: server(1), State: "OPEN",
		Replicas: []meta.ReplicaLocation{{ID: 1, Server: server(2)}, {ID: 0x1a, Server: server(3)}},
	})
	r, err := c.Locate(t.Context(), tbl, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range c.Replicas(r) {
		region := r.Region().WithReplica(int32(p.ID))
		if got, want := string(p.Name()), string(region.Name()); got != want {
			t.Errorf("replica %d: name %q, want %q", i, got, want)
		}
		if got, want := p.Encoded(), region.EncodedName(); got != want {
			t.Errorf("replica %d: encoded %q, want %q", i, got, want)
		}
	}
	if got := len(c.Replicas(r)); got != 2 {
		t.Errorf("%d replicas, want 2", got)
	}
}

func TestReplicasFollowTheRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 2, 1)
		f.replicate(1)
		ctx := t.Context()
		r, err := c.Locate(ctx, tbl, nil)
		if err != nil {
			t.Fatal(err)
		}
		// The primary moves: its replicas stay known, and cost no read.
		n := c.Moved(r, server(9), 11)
		if n == nil {
			t.Fatal("hint refused")
		}
		if got := fmt.Sprint(names(c.Replicas(n))); got != "[1@rs101]" {
			t.Errorf("replicas after a move: %s", got)
		}
		// The region is split: nothing of it stays.
		a, b := r.Region(), r.Region()
		a.ID, b.ID = a.ID+1, b.ID+1
		a.End, b.Start = []byte("user-00000000-m"), []byte("user-00000000-m")
		f.delete(r.Region())
		for _, x := range []meta.Region{a, b} {
			f.put(meta.Location{Region: x, Server: server(1), SeqNum: 1, State: "OPEN"})
		}
		c.Rejected(n)
		if n, err = c.Locate(ctx, tbl, nil); err != nil {
			t.Fatal(err)
		}
		if got := c.Replicas(n); got != nil {
			t.Errorf("a daughter has its parent's replicas: %v", names(got))
		}
		tab := c.lookupTable(tbl)
		tab.rep.RLock()
		defer tab.rep.RUnlock()
		if _, ok := tab.replicas[r.encoded]; ok {
			t.Error("replicas of a region that is gone are kept")
		}
	})
}

func TestReplicaRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 1, 1)
		f.replicate(2)
		ctx := t.Context()
		r, err := c.Locate(ctx, tbl, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.change(func(l *meta.Location) bool { l.Replicas[0].Server = server(300); return true })
		reads := f.reads()
		p := c.Replicas(r)[0]
		for range 10 {
			c.ReplicaRejected(p)
		}
		if got := fmt.Sprint(names(c.Replicas(r))); got != "[2@rs201]" {
			t.Errorf("replicas after one was disowned: %s", got)
		}
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if got := fmt.Sprint(names(c.Replicas(r))); got != "[1@rs300 2@rs201]" {
			t.Errorf("replicas a second later: %s", got)
		}
		if n := f.reads() - reads; n != 1 {
			t.Errorf("%d reads of meta, want 1", n)
		}
		// Somebody who waits for the region does not wait for that second.
		c.ReplicaRejected(c.Replicas(r)[0])
		c.Rejected(r)
		f.change(func(l *meta.Location) bool { l.Server, l.SeqNum = server(7), 20; return true })
		began := time.Now()
		if _, err := c.Locate(ctx, tbl, nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 0 {
			t.Errorf("waited %v for a read that is nobody's hurry", d)
		}
	})
}

func TestLocateReplicasOfDeadServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 1, 1)
		f.replicate(1)
		r, err := c.Locate(t.Context(), tbl, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := server(101)
		next.StartCode++
		c.cfg.Servers.Get(next) // the old one is dead
		f.change(func(l *meta.Location) bool { l.Replicas[0].Server = next; return true })
		list, err := c.LocateReplicas(context.Background(), r)
		if err != nil || len(list) != 1 || list[0].Server.Name() != next {
			t.Errorf("got %v, %v; want the replica on %s", names(list), err, next)
		}
	})
}

func TestReplicasAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, f := newCache(t, Config{})
		f.fill(tbl, 3, 1)
		f.replicate(1)
		if err := c.Warm(t.Context(), tbl, nil, nil); err != nil {
			t.Fatal(err)
		}
		tab := c.lookupTable(tbl)
		known := func() int {
			tab.rep.RLock()
			defer tab.rep.RUnlock()
			return len(tab.replicas)
		}
		if n := known(); n != 3 {
			t.Fatalf("replicas of %d regions, want 3", n)
		}
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		if n := known(); n != 0 {
			t.Errorf("replicas of %d regions that were forgotten", n)
		}
	})
}
