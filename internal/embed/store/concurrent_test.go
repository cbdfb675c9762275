package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Rule J11.
func TestConcurrentIncrements(t *testing.T) {
	tab := testTable(t, testStore(t, Options{Dir: t.TempDir(), NoFsync: true}))
	const workers, each = 16, 50
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				if w%4 == 0 {
					if _, errs := tab.MutateBatch(context.Background(), []*RowMutation{{Row: []byte("r"), Ops: []Op{inc("f:n", 1)}}}); errs[0] != nil {
						t.Error(errs[0])
					}
				} else if _, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte("r"), Ops: []Op{inc("f:n", 1)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := number(t, tab, "r", "f:n"); n != workers*each {
		t.Errorf("%d", n)
	}
}

// Rules I3, I4: rows are seen whole by gets and scans while they are written,
// compacted and flushed; a write is seen by whoever asks after its answer.
func TestConcurrentReaders(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	var writers, others sync.WaitGroup
	var written [4]atomic.Int64
	for w := range written {
		row := fmt.Sprintf("row%d", w)
		writers.Go(func() {
			for n := int64(1); n <= 200; n++ {
				v := fmt.Sprint(n)
				m := &RowMutation{Row: []byte(row), Ops: []Op{del(marker(cells.DeleteColumn, "f:v", n-1)), put(at("f:v", n, v), at("g:v", n, v))}}
				if _, err := tab.MutateRow(ctx, m); err != nil {
					t.Error(err)
					return
				}
				written[w].Store(n)
			}
		})
	}
	whole2 := func(got []cells.Cell) bool {
		return len(got) == 2 && got[0].Timestamp == got[1].Timestamp
	}
	for range 2 {
		others.Go(func() {
			for ctx.Err() == nil {
				w := rand.IntN(len(written))
				least := written[w].Load()
				got, err := tab.Get([]byte(fmt.Sprintf("row%d", w)), newest())
				if err != nil || least > 0 && (!whole2(got) || got[0].Timestamp < least) {
					t.Errorf("get: %s after %d, %v", show(got), least, err)
					return
				}
			}
		})
	}
	others.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			sc, err := tab.NewScan(&cells.ScanSpec{IncludeStart: true, Reversed: n%2 == 0, Query: newest()}, 0)
			if err != nil {
				t.Error(err)
				return
			}
			for {
				got, state, err := sc.Next(nil, &cells.Limits{})
				if err != nil || len(got) > 0 && !whole2(got) {
					t.Errorf("scan: %s, %v", show(got), err)
				}
				if state == cells.NoMoreRows || err != nil {
					break
				}
				if err := sc.Pause(); err != nil {
					t.Error(err)
				}
			}
			if err := sc.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	others.Go(func() {
		for ctx.Err() == nil {
			if err := tab.MajorCompact(ctx, nil, nil, nil); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	writers.Wait()
	cancel()
	others.Wait()
	for w := range written {
		same(t, "last", get(t, tab, fmt.Sprintf("row%d", w), newest()), "f:v@200=200 g:v@200=200")
	}
}

// Nonces that batches claim crosswise, and a store that closes under its users.
func TestConcurrentBatchesAndClose(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for n := range uint64(30) {
				var ms []*RowMutation
				for _, nonce := range rand.Perm(4) {
					op := inc("f:n", 1)
					op.NonceGroup, op.Nonce = n+1, uint64(nonce)+1
					ms = append(ms, &RowMutation{Row: []byte(fmt.Sprintf("r%d", nonce)), Ops: []Op{op}})
				}
				if _, errs := tab.MutateBatch(context.Background(), ms); errs[0] != nil {
					t.Errorf("worker %d: %v", w, errs)
				}
			}
		})
	}
	wg.Wait()
	for nonce := range 4 {
		if n := number(t, tab, fmt.Sprintf("r%d", nonce), "f:n"); n != 30 {
			t.Errorf("r%d: %d", nonce, n)
		}
	}
	for range 4 {
		wg.Go(func() {
			for {
				if _, err := tab.Get([]byte("r0"), newest()); err == ErrClosed {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
				if _, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte("x"), Ops: []Op{put(at("f:q", -1, "v"))}}); err != nil && err != ErrClosed {
					t.Error(err)
				}
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func TestMVCC(t *testing.T) {
	var m mvcc
	m.init()
	m.start(100)
	r := rand.New(rand.NewPCG(7, 7))
	open := map[uint64]bool{}
	for range 10_000 {
		if len(open) < 300 && r.IntN(2) == 0 {
			seq, _ := m.begin()
			open[seq] = true
		} else {
			for seq := range open { // any one
				m.complete(seq)
				delete(open, seq)
				break
			}
		}
		want := m.last
		for seq := range open {
			want = min(want, seq-1)
		}
		if got := m.readPoint(); got != want {
			t.Fatalf("read point %d, want %d", got, want)
		}
	}
	for seq := range open {
		m.complete(seq)
	}
	m.wait(m.last)
	if m.readPoint() != m.last {
		t.Errorf("read point %d of %d", m.readPoint(), m.last)
	}
}

// While a family is dropped, writers that were at it leave no cell of it behind.
func TestDropFamilyBesideWrites(t *testing.T) {
	s := testStore(t, Options{})
	both, one := cells.NewSchema(fam("f", 1), fam("g", 1)), cells.NewSchema(fam("f", 1))
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		tab := s.Table(uint32(10+round), both)
		var wg sync.WaitGroup
		var begun atomic.Int64
		ready := make(chan struct{})
		for w := range 6 {
			wg.Go(func() {
				for n := 0; ; n++ {
					m := &RowMutation{Row: fmt.Appendf(nil, "%d-%d", w, n), Ops: []Op{put(at("f:q", 1, "v"), at("g:q", 1, "v"))}}
					var err error
					switch w % 3 {
					case 0:
						_, err = tab.MutateRow(context.Background(), m)
					case 1:
						_, errs := tab.MutateBatch(context.Background(), []*RowMutation{m, m})
						err = errs[0]
					case 2:
						_, err = tab.MutateRows(context.Background(), []*RowMutation{m}, nil)
					}
					if err != nil {
						refused(t, "a write to a dropped family", err, cells.ClassNoSuchColumnFamily, true)
						return
					}
					if begun.Add(1) == 50 {
						close(ready)
					}
				}
			})
		}
		<-ready
		tab.SetSchema(one)
		if err := tab.DropFamilies(context.Background(), [][]byte{[]byte("g")}); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		tab.SetSchema(both)
		if left := scanAll(t, tab, whole(all("g")), 0); left != "" {
			t.Fatalf("round %d: left of the family: %s", round, left)
		}
	}
}
