package hbase_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestMutatorLosesNothing: while answers are lost, regions move and split, and
// a server is killed, every row that was acknowledged is there with its last
// value, and every one that was not is reported once.
func TestMutatorLosesNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rules []minihbase.Rule
		churn func(ctx context.Context, c *minihbase.Cluster) // once
	}{
		"lost answers": {rules: []minihbase.Rule{
			{Match: minihbase.Match{Method: "Multi"}, Every: 5, Times: 6, Action: minihbase.DropReply},
			{Match: minihbase.Match{Method: "Multi"}, Every: 7, Times: 8, Action: minihbase.CloseAfter},
			{Match: minihbase.Match{Method: "Multi"}, Every: 6, Times: 4, Action: minihbase.Truncate},
		}},
		"refusals": {rules: []minihbase.Rule{
			{Match: minihbase.Match{Method: "Multi"}, Every: 4, Times: 5, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "CallQueueTooBigException"}},
			{Match: minihbase.Match{Method: "Multi"}, Every: 9, Times: 3, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "DoNotRetryIOException"}},
		}},
		"moves": {churn: func(ctx context.Context, c *minihbase.Cluster) {
			for i := range 30 {
				if r, err := c.Locate("t", fmt.Appendf(nil, "r%03d", i*37%100)); err == nil && ctx.Err() == nil {
					_ = c.MoveRegion(ctx, r.Encoded, -1)
				}
			}
		}},
		"splits": {churn: func(ctx context.Context, c *minihbase.Cluster) {
			for i := range 12 {
				row := fmt.Appendf(nil, "r%03d", i*37%100)
				if r, err := c.Locate("t", row); err == nil && ctx.Err() == nil {
					_ = c.Split(ctx, r.Encoded, row) // refused where a region begins there
				}
			}
		}},
		"a kill": {churn: func(ctx context.Context, c *minihbase.Cluster) {
			r, err := c.Locate("t", []byte("r050"))
			if err != nil {
				return
			}
			if i, err := c.FindServer(r.Server); err == nil {
				_ = c.KillRegionServer(i)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, tab := faulty(t, minihbase.Options{RecoveryDelay: 100 * time.Millisecond})
			c.SetTransitionGap(5 * time.Millisecond)
			for _, r := range tt.rules {
				rule(t, c, r)
			}
			var mu sync.Mutex
			failed := map[string]int{} // "row/n" -> reports
			m, err := tab.Mutator(hbase.MutatorOptions{
				BufferBytes: 8 << 10, FlushInterval: 5 * time.Millisecond,
				OnError: func(f hbase.FailedMutation) {
					mu.Lock()
					defer mu.Unlock()
					p := f.Mutation.(*hbase.Put)
					failed[fmt.Sprintf("%s/%d", p.RowKey(), binary.BigEndian.Uint64(p.Cells()[0].Value))]++
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			const producers, rows, least, most = 4, 25, 12, 300
			var rounds [producers]int
			var work sync.WaitGroup
			churned, done := context.WithCancel(t.Context())
			if tt.churn == nil {
				done()
			} else {
				work.Go(func() {
					defer done()
					tt.churn(t.Context(), c)
				})
			}
			for p := range producers {
				work.Go(func() {
					for n := 0; n < least || n < most && churned.Err() == nil; n++ {
						rounds[p]++
						for i := range rows {
							row := fmt.Sprintf("r%03d", p*rows+i)
							put := hbase.NewPut(row).Set("f", "n", binary.BigEndian.AppendUint64(nil, uint64(n+1))).Set("f", fmt.Sprintf("n%d", n+1), nil)
							if err := m.Add(t.Context(), put); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			work.Wait()
			done()
			err = m.Close(t.Context())
			s := m.Stats()
			added := uint64(0)
			for _, n := range rounds {
				added += uint64(n * rows)
			}
			for _, r := range c.Rules() {
				if r.Hits == 0 {
					t.Errorf("%s was never met", r.Action)
				}
			}
			t.Logf("%d mutations in %d batches", s.Added, s.Batches)
			if e, ok := errors.AsType[*hbase.MutatorError](err); err != nil && (!ok || e.Count > len(failed)) || s.Failed != uint64(len(failed)) || s.Added != added || s.Acknowledged != s.Added-s.Failed {
				t.Fatalf("%v; %+v, %d reported", err, s, len(failed))
			}
			for what, n := range failed {
				if n != 1 {
					t.Errorf("%s was reported %d times", what, n)
				}
			}
			if name == "refusals" && len(failed) == 0 || name != "refusals" && len(failed) > 0 {
				t.Errorf("%d failed: %v", len(failed), err)
			}
			c.ClearRules()
			for i := range producers * rows {
				row := fmt.Sprintf("r%03d", i)
				r, err := tab.Get(t.Context(), hbase.NewGet(row))
				if err != nil {
					t.Fatal(err)
				}
				last := uint64(0)
				for n := 1; n <= rounds[i/rows]; n++ {
					switch ok := r.Has("f", fmt.Sprintf("n%d", n)); {
					case failed[fmt.Sprintf("%s/%d", row, n)] == 0 && !ok:
						t.Errorf("%s: write %d was acknowledged and is not there", row, n)
					case failed[fmt.Sprintf("%s/%d", row, n)] != 0 && ok:
						t.Errorf("%s: write %d was refused and is there", row, n)
					case ok:
						last = uint64(n)
					}
				}
				if n, _ := r.Int64("f", "n"); uint64(n) != last {
					t.Errorf("%s: the last value is %d, want %d", row, n, last)
				}
			}
		})
	}
}

// BenchmarkMutatorRows is rows per second into an embedded cluster, client and
// servers in one process.
func BenchmarkMutatorRows(b *testing.B) {
	c := startCluster(b)
	if err := c.CreateTable(b.Context(), "t", []string{"f"}, []byte("2"), []byte("4"), []byte("6"), []byte("8")); err != nil {
		b.Fatal(err)
	}
	client, err := hbase.Open(b.Context(), c.Address())
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	tab, err := client.Table("t")
	if err != nil {
		b.Fatal(err)
	}
	m, err := tab.Mutator(hbase.MutatorOptions{})
	if err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 100)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		// Spread over the regions, as hashed keys are.
		row := fmt.Sprintf("%d-%09d", n%10, n)
		if err := m.Add(b.Context(), hbase.NewPut(row).Set("f", "q", value)); err != nil {
			b.Fatal(err)
		}
		n++
	}
	if err := m.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

func ExampleMutator() {
	ctx := context.Background()
	client, err := hbase.Open(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	events, err := client.Table("events")
	if err != nil {
		log.Fatal(err)
	}
	m, err := events.Mutator(hbase.MutatorOptions{
		FlushInterval: 100 * time.Millisecond,
		OnError: func(f hbase.FailedMutation) {
			log.Printf("row %s: %v (safe to write again: %v)", f.Mutation.RowKey(), f.Err, hbase.SafeToRetry(f.Err))
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	for i := range 100_000 {
		// Waits while the buffer is full.
		if err := m.Add(ctx, hbase.NewPut(fmt.Sprintf("e%06d", i)).Set("f", "q", []byte("v"))); err != nil {
			log.Fatal(err)
		}
	}
	if err := m.Close(ctx); err != nil {
		log.Fatal(err)
	}
}
