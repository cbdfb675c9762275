package hbase

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// slowBatches notes which cells are written in which order; a quarter of the
// items fail.
type slowBatches struct {
	scriptedCore
	mu    sync.Mutex
	order map[string][]string
	now   map[string]int
	twice bool
}

func (c *slowBatches) Batch(ctx context.Context, _ meta.TableName, items []session.Item) []session.Outcome {
	out := make([]session.Outcome, len(items))
	c.mu.Lock()
	for _, it := range items {
		c.now[string(it.Row)]++
		c.twice = c.twice || c.now[string(it.Row)] > 1
	}
	c.mu.Unlock()
	select {
	case <-time.After(rand.N(2 * time.Millisecond)):
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, it := range items {
		c.now[string(it.Row)]--
		var list []cells.Cell
		list, err := wire.KeyValueCodec.DecodeCells(it.Cells, nil)
		if err != nil || len(list) != 1 {
			out[i].Err = fmt.Errorf("%d cells, %w", len(list), err)
			continue
		}
		c.order[string(it.Row)] = append(c.order[string(it.Row)], string(list[0].Value))
		out[i].Results, out[i].Processed = make([]session.ActionResult, 1), true
		if rand.IntN(4) == 0 {
			out[i] = session.Outcome{Err: context.DeadlineExceeded}
		}
	}
	return out
}

// TestMutatorWithCollisions: rows whose hashes are the same wait for each other,
// and nothing else comes of it.
func TestMutatorWithCollisions(t *testing.T) {
	t.Parallel()
	for _, hashes := range []uint64{1, 3} {
		c := &slowBatches{order: map[string][]string{}, now: map[string]int{}}
		tab := newClient(defaultConfig("hbase://test"), c).tableOf(meta.TableName{Namespace: "default", Qualifier: "t"})
		reported := map[string]int{}
		m, err := tab.Mutator(MutatorOptions{BufferBytes: 4 << 10, FlushInterval: time.Millisecond, OnError: func(f FailedMutation) {
			reported[string(f.Mutation.(*Put).Cells()[0].Value)]++
		}})
		if err != nil {
			t.Fatal(err)
		}
		const rows, rounds = 7, 40
		var work sync.WaitGroup
		for r := range rows {
			work.Go(func() {
				for n := range rounds {
					p := NewPut(fmt.Sprint("row", r)).Set("f", "q", fmt.Appendf(nil, "%d/%03d", r, n))
					m.mu.Lock()
					if err := m.admit(t.Context()); err != nil {
						t.Error(err)
					} else {
						m.take(p, MutationSize(p), uint64(r)%hashes)
						m.dispatch()
					}
					m.mu.Unlock()
				}
			})
		}
		work.Wait()
		if err := m.Flush(t.Context()); err == nil {
			t.Error("nothing failed")
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if c.twice {
			t.Error("two mutations of a row were under way at one time")
		}
		for row, got := range c.order {
			if len(got) != rounds {
				t.Errorf("%s: %d mutations sent, want %d", row, len(got), rounds)
			}
			for i := 1; i < len(got); i++ {
				if got[i-1] >= got[i] {
					t.Fatalf("%s: %s before %s", row, got[i-1], got[i])
				}
			}
		}
		s := m.Stats()
		if s.Added != rows*rounds || s.Failed != uint64(len(reported)) || s.Acknowledged+s.Failed != s.Added || s.Buffered != 0 || len(m.rows) != 0 {
			t.Errorf("%+v, %d reported, %d rows kept", s, len(reported), len(m.rows))
		}
	}
}
