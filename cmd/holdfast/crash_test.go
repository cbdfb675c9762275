package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/embed/cluster"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/interop/upproc"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// crashState is what was acknowledged over all rounds: it must be there
// whenever the cluster comes up again.
type crashState struct {
	dir    string // of the cluster
	mu     sync.Mutex
	rows   map[string]string // key to value
	order  []string          // keys of rows, as they were acknowledged
	tables map[string]int    // those made, with how many of order they must hold
	gone   map[string]bool   // those dropped
	splits int
	bulk   map[string]bool // loads begun, which are there as a whole or not at all
	churn  churn

	// Per counter: acknowledged, and begun.
	acked, begun [4]atomic.Int64
}

const crashTable = "crash"

// TestKill9 kills the whole process in the middle of acknowledged writes and of
// one of crashOps, time and again: nothing acknowledged may be missing, of the
// rest every row is there as a whole or not at all, and fsck finds nothing.
// With the tag long it does so a hundred times: `make crash`.
func TestKill9(t *testing.T) {
	rounds := crashRounds
	if testing.Short() {
		rounds = 5
	}
	// This test's own binary is the command: another need not be built.
	t.Setenv(asCommand, "1")
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &crashState{dir: dir, rows: map[string]string{}, tables: map[string]int{}, gone: map[string]bool{}, bulk: map[string]bool{}, churn: newChurn()}
	began := time.Now()
	var startup time.Duration
	for round := range rounds {
		p := upproc.Up(t, bin, "--dir", dir)
		startup = max(startup, p.Start)
		s.round(t, p, round)
		if t.Failed() {
			return
		}
	}
	p := upproc.Up(t, bin, "--dir", dir)
	client, err := hbase.Open(t.Context(), p.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s.verify(t, client, rounds)
	// The directory is another process's: nobody else gets it.
	if _, err := cluster.Fsck(t.Context(), dir, nil); !errors.Is(err, store.ErrLocked) {
		t.Errorf("fsck of a running cluster's directory: %v", err)
	}
	if c, err := minihbase.Start(t.Context(), minihbase.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), store.ErrLocked.Error()) {
		t.Errorf("a second cluster on a running one's directory: %v, %v", c, err)
	}
	if len(s.rows) < 10*rounds {
		t.Errorf("only %d rows were acknowledged", len(s.rows))
	}
	var incs int64
	for i := range s.acked {
		incs += s.acked[i].Load()
	}
	t.Logf("%d kills in %v: %d rows, %d increments, %d rows put and deleted, %d tables made, %d dropped, %d loads and %d splits acknowledged, all there; slowest start %v",
		rounds, time.Since(began).Round(time.Millisecond), len(s.rows), incs, s.churn.done, len(s.tables)+len(s.gone), len(s.gone), len(s.bulk), s.splits, startup.Round(time.Millisecond))
}

// round verifies what earlier ones have left, writes, and kills.
func (s *crashState) round(t *testing.T, p *upproc.Process, round int) {
	client, err := hbase.Open(t.Context(), p.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if round == 0 {
		if err := client.Admin().CreateTable(t.Context(), admin.NewTable(crashTable, admin.NewFamily("f"), admin.NewFamily("g")), []byte("2"), []byte("4")); err != nil {
			t.Fatal(err)
		}
	} else {
		s.verify(t, client, round)
	}
	tab, err := client.Table(crashTable)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var killed atomic.Bool
	var wg sync.WaitGroup
	work := func(f func(n int) error) {
		wg.Go(func() {
			for n := 0; ; n++ {
				if err := f(n); err != nil {
					if !killed.Load() {
						t.Errorf("round %d: a write failed before the kill: %v", round, err)
					}
					return
				}
			}
		})
	}
	before := s.count()
	for w := range 6 {
		work(func(n int) error { return s.put(ctx, tab, fmt.Sprintf("%d/%03d/%06d", w, round, n)) })
	}
	work(func(n int) error { return s.batch(ctx, tab, fmt.Sprintf("6/%03d/%06d", round, n)) })
	for i := range s.acked {
		work(func(int) error {
			s.begun[i].Add(1)
			_, err := tab.IncrementColumn(ctx, fmt.Appendf(nil, "counter%d", i), "f", "n", 1)
			if err == nil {
				s.acked[i].Add(1)
			}
			return err
		})
	}
	work(func(n int) error { return s.churn.step(ctx, tab, n) })
	op := crashOps[round%len(crashOps)]
	load := t.TempDir()
	work(func(n int) error {
		if err := op.do(s, ctx, client, load, fmt.Sprintf("%03d-%d", round, n)); err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		return nil
	})
	// The kill comes in the middle of work, however slow the disk: some rows of
	// this round are in, and then some time goes by.
	for s.count()-before < 10 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	pause := time.NewTimer(100*time.Millisecond + rand.N(300*time.Millisecond))
	defer pause.Stop()
	<-pause.C
	killed.Store(true)
	p.Kill()
	cancel()
	wg.Wait()
	r, err := cluster.Fsck(t.Context(), s.dir, nil)
	if err != nil {
		t.Fatalf("after %d kills: %v", round+1, err)
	}
	for _, f := range r.Findings {
		t.Errorf("killed in the middle of %s: fsck: %+v", op.name, f)
	}
}

// acknowledged takes rows up. Called with mu held.
func (s *crashState) acknowledged(keys ...string) {
	for _, key := range keys {
		s.rows[key] = "value of " + key
	}
	s.order = append(s.order, keys...)
}

// put writes a row of two families, all or nothing.
func (s *crashState) put(ctx context.Context, tab *hbase.Table, key string) error {
	value := "value of " + key
	if err := tab.Put(ctx, hbase.NewPut(key).Set("f", "a", []byte(value)).Set("g", "b", []byte(value))); err != nil {
		return err
	}
	s.mu.Lock()
	s.acknowledged(key)
	s.mu.Unlock()
	return nil
}

// batch writes ten rows at once; each is acknowledged on its own.
func (s *crashState) batch(ctx context.Context, tab *hbase.Table, key string) error {
	var ops []hbase.Op
	keys := make([]string, 10)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%d", key, i)
		value := []byte("value of " + keys[i])
		ops = append(ops, hbase.NewPut(keys[i]).Set("f", "a", value).Set("g", "b", value))
	}
	out := tab.Batch(ctx, ops)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out {
		if out[i].Err == nil {
			s.acknowledged(keys[i])
		}
	}
	return out.Err()
}

func (s *crashState) verify(t *testing.T, client *hbase.Client, round int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tab, err := client.Table(crashTable)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]bool, len(s.rows))
	churned := map[string]string{}
	loaded := map[string]int{}
	counters := 0
	for row, err := range tab.Scan(ctx, hbase.NewScan()).Rows() {
		if err != nil {
			t.Fatalf("after %d kills: scan: %v", round, err)
		}
		key := string(row.Row)
		if n, ok := row.Int64("f", "n"); ok {
			var i int
			if _, err := fmt.Sscanf(key, "counter%d", &i); err != nil {
				t.Fatalf("row %q: %v", key, err)
			}
			counters++
			if lo, hi := s.acked[i].Load(), s.begun[i].Load(); n < lo || n > hi {
				t.Errorf("after %d kills: %s is %d, %d acknowledged, %d begun", round, key, n, lo, hi)
			}
			continue
		}
		if strings.HasPrefix(key, churnPrefix) {
			churned[key] = string(row.Value("f", "a"))
			continue
		}
		if i := strings.LastIndexByte(key, '/'); strings.HasPrefix(key, bulkPrefix) {
			loaded[key[:i]]++
		}
		want := "value of " + key
		if len(row.Cells) != 2 || string(row.Value("f", "a")) != want || string(row.Value("g", "b")) != want {
			t.Errorf("after %d kills: row %q is not whole: %v", round, key, row)
		}
		found[key] = true
	}
	if counters != len(s.acked) {
		t.Errorf("after %d kills: %d counters of %d", round, counters, len(s.acked))
	}
	missing := 0
	for key := range s.rows {
		if !found[key] {
			if missing++; missing <= 5 {
				t.Errorf("after %d kills: row %q was acknowledged and is missing", round, key)
			}
		}
	}
	if missing > 0 {
		t.Errorf("after %d kills: %d of %d acknowledged rows are missing", round, missing, len(s.rows))
	}
	for _, wrong := range s.churn.check(churned) {
		t.Errorf("after %d kills: %s", round, wrong)
	}
	for load, n := range loaded {
		if n != bulkRows {
			t.Errorf("after %d kills: %d rows of load %s, which has %d", round, n, load, bulkRows)
		}
	}
	if err := s.verifyTables(ctx, client); err != nil {
		t.Errorf("after %d kills: %v", round, err)
	}
	regions, err := client.Admin().Regions(ctx, crashTable)
	if err != nil {
		t.Errorf("after %d kills: %v", round, err)
	}
	if len(regions) < 3+s.splits {
		t.Errorf("after %d kills: %d regions after %d splits", round, len(regions), s.splits)
	}
	for i, r := range regions {
		if i > 0 && string(regions[i-1].Region.End) != string(r.Region.Start) {
			t.Errorf("after %d kills: a hole before region %v", round, r.Region)
		}
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after %d kills: verifying took two minutes", round)
	}
}
