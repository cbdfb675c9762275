package conformance

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// load runs writers, readers and a scanner against a table until stop, and
// then compares what was acknowledged with what is stored. Nothing may fail.
type load struct {
	s   *suite
	tab *hbase.Table

	rows   int
	acked  []atomic.Int64 // increments acknowledged, by row
	ops    atomic.Int64
	scans  atomic.Int64
	failed atomic.Int64
	worst  atomic.Int64 // longest operation, ns

	stop chan struct{}
	wg   sync.WaitGroup
}

func (s *suite) startLoad(t *testing.T, tab *hbase.Table, workers, rows int) *load {
	l := &load{s: s, tab: tab, rows: rows, acked: make([]atomic.Int64, rows), stop: make(chan struct{})}
	for i, row := range keys(rows) {
		p := hbase.NewPut(row).Set("f", "i", fmt.Append(nil, i))
		put(t, tab, p)
	}
	all := keys(rows)
	run := func(what string, f func(ctx context.Context, n int) error) {
		l.wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				ctx, cancel := s.step(t)
				start := time.Now()
				err := f(ctx, n)
				cancel()
				if took := int64(time.Since(start)); took > l.worst.Load() {
					l.worst.Store(took)
				}
				l.ops.Add(1)
				if err != nil {
					if l.failed.Add(1) <= 5 {
						t.Errorf("%s: %v", what, err)
					}
				}
			}
		})
	}
	for w := range workers {
		run("increment", func(ctx context.Context, n int) error {
			i := (n*7 + w*13) % rows
			_, err := tab.IncrementColumn(ctx, all[i], "f", "n", 1)
			if err == nil {
				l.acked[i].Add(1)
			}
			return err
		})
		run("get", func(ctx context.Context, n int) error {
			i := (n*5 + w) % rows
			before := l.acked[i].Load()
			r, err := tab.Get(ctx, hbase.NewGet(all[i]))
			if err != nil {
				return err
			}
			if got, _ := r.Int64("f", "n"); got < before {
				return fmt.Errorf("row %s: read %d after %d were acknowledged", all[i], got, before)
			}
			return nil
		})
	}
	for _, reversed := range []bool{false, true} {
		run("scan", func(ctx context.Context, n int) error {
			l.scans.Add(1)
			seen := 0
			var last []byte
			for r, err := range tab.Scan(ctx, &hbase.Scan{Caching: 10, Reversed: reversed}).Rows() {
				if err != nil {
					return err
				}
				if last != nil && (string(r.Row) <= string(last)) != reversed {
					return fmt.Errorf("row %s after %s (reversed %v)", r.Row, last, reversed)
				}
				last = r.Row
				seen++
			}
			if seen != rows {
				return fmt.Errorf("%d rows, want %d (reversed %v)", seen, rows, reversed)
			}
			return nil
		})
	}
	return l
}

// finish stops the load and takes the account.
func (l *load) finish(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.wg.Wait()
	for i, row := range keys(l.rows) {
		n, _ := get(t, l.tab, hbase.NewGet(row)).Int64("f", "n")
		if want := l.acked[i].Load(); n != want {
			t.Errorf("row %s: %d stored, %d acknowledged", row, n, want)
		}
	}
	t.Logf("%d operations and %d scans, %d failed, the longest took %v", l.ops.Load(), l.scans.Load(), l.failed.Load(),
		time.Duration(l.worst.Load()).Round(time.Millisecond))
}

func (s *suite) loadUnderMoves(t *testing.T) {
	tab := s.table(t, plain("f"), split("r020", "r040", "r060")...)
	name := tab.Name().String()
	l := s.startLoad(t, tab, 4, 80)
	end := time.Now().Add(s.o.Load)
	moves := 0
	for time.Now().Before(end) {
		for _, r := range s.locations(t, tab) {
			ctx, cancel := s.step(t)
			if err := s.adm.MoveRegion(ctx, r.Region.EncodedName(), s.otherServer(t, r.Server)); err != nil {
				t.Errorf("move: %v", err)
			}
			cancel()
			moves++
		}
	}
	ctx, cancel := s.step(t)
	defer cancel()
	for _, row := range []string{"r010", "r050"} {
		if err := s.adm.SplitTable(ctx, name, []byte(row)); err != nil {
			t.Errorf("split at %s: %v", row, err)
		}
	}
	// The third and fourth region of the creation are whole (never split).
	rs := s.locations(t, tab)
	if len(rs) != 6 {
		t.Errorf("%d regions after two splits of four", len(rs))
	}
	l.finish(t)
	t.Logf("%d moves, 2 splits", moves)
}

func (s *suite) loadUnderPause(t *testing.T) {
	tab := s.table(t, plain("f"), split("r020", "r040", "r060")...)
	l := s.startLoad(t, tab, 4, 80)
	ctx, cancel := s.step(t)
	defer cancel()
	rs := s.locations(t, tab)
	victim, elsewhere := s.notOfMeta(ctx, t, rs), 0
	others := s.o.others(rs, victim)
	if err := s.o.Faults.Pause(ctx, victim); err != nil {
		t.Errorf("pause %v: %v", victim, err)
	}
	// Regions elsewhere go on meanwhile. Whatever does not, the pause must not
	// get longer: a server that ZooKeeper has given up acknowledges writes,
	// before it finds out, that are in nobody's log.
	end := time.Now().Add(s.o.Freeze)
	frozen, thaw := context.WithDeadline(ctx, end)
	defer thaw()
	for time.Now().Before(end) && len(others) > 0 {
		for _, r := range others {
			// The clock, since a context notices its end a little later.
			if _, err := tab.Get(frozen, hbase.NewGet(r)); err != nil && time.Now().Before(end) {
				t.Errorf("get from a server that is not paused: %v", err)
			}
			elsewhere++
		}
	}
	<-frozen.Done()
	if err := s.o.Faults.Resume(ctx, victim); err != nil {
		t.Errorf("resume %v: %v", victim, err)
	}
	for _, row := range keys(80) {
		if _, err := tab.Get(ctx, hbase.NewGet(row)); err != nil {
			t.Errorf("get %s after the pause: %v", row, err)
		}
	}
	l.finish(t)
	t.Logf("paused for %v; meanwhile %d reads elsewhere", s.o.Freeze, elsewhere)
}

// notOfMeta gives a server of the regions that does not hold hbase:meta, as what
// is looked up meanwhile would wait for that; any if there is no other.
func (s *suite) notOfMeta(ctx context.Context, t *testing.T, rs []admin.RegionLocation) hbase.ServerName {
	root, err := s.adm.Regions(ctx, "hbase:meta")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if r.Server != root[0].Server {
			return r.Server
		}
	}
	return rs[0].Server
}

// others gives a row of each region that is not on a server.
func (o *Options) others(rs []admin.RegionLocation, server hbase.ServerName) [][]byte {
	var out [][]byte
	for _, r := range rs {
		if r.Server != server {
			out = append(out, append(bytes.Clone(r.Region.Start), 0))
		}
	}
	return out
}

func (s *suite) loadUnderKill(t *testing.T) {
	tab := s.table(t, plain("f"), split("r020", "r040", "r060")...)
	l := s.startLoad(t, tab, 4, 80)
	victim := s.locations(t, tab)[0].Server
	ctx, cancel := s.step(t)
	defer cancel()
	if err := s.o.Faults.Kill(ctx, victim); err != nil {
		t.Errorf("kill %v: %v", victim, err)
	}
	// The load has met the dead server once every region answers elsewhere.
	for _, row := range keys(80) {
		if _, err := tab.Get(ctx, hbase.NewGet(row)); err != nil {
			t.Errorf("get %s after the kill: %v", row, err)
		}
	}
	l.finish(t)
	for _, r := range s.locations(t, tab) {
		if r.Server == victim {
			t.Errorf("region %s is still on the dead server", r.Region.EncodedName())
		}
	}
	if s.o.Faults.Start != nil {
		if err := s.o.Faults.Start(ctx); err != nil {
			t.Errorf("start a server: %v", err)
		}
	}
}
