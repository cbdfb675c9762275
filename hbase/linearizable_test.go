package hbase_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// rowState is a row of the model: a register and a counter.
type rowState struct {
	value string
	count int64
}

// rowInput is an operation on it.
type rowInput struct {
	kind, row        string
	expected, value  string // of a check-and-mutate; a put has only value
	adds, overwrites bool
}

type rowOutput struct {
	unknown bool
	applied bool
	state   rowState // what was read; of an increment only count
}

// rowModel says what one row may answer. An operation without an outcome is
// part of the history to its end, so it may have happened at any later time,
// and if nobody saw it, at the end.
var rowModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		rows := map[string][]porcupine.Operation{}
		for _, o := range history {
			row := o.Input.(rowInput).row
			rows[row] = append(rows[row], o)
		}
		var parts [][]porcupine.Operation
		for _, p := range rows {
			parts = append(parts, p)
		}
		return parts
	},
	Init: func() any { return rowState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(rowState), input.(rowInput), output.(rowOutput)
		if in.kind == "get" {
			return out.state == s, s
		}
		if in.kind == "check" {
			holds := in.expected == s.value
			if !out.unknown && out.applied != holds {
				return false, s
			}
			if !holds {
				return true, s
			}
		}
		if in.overwrites {
			s.value = in.value
		}
		if in.adds {
			s.count++
		}
		return out.unknown || !in.adds || out.state.count == s.count, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// do performs an operation; decided is false if it has no outcome.
func (in rowInput) do(ctx context.Context, t *hbase.Table) (out rowOutput, err error) {
	put := hbase.NewPut(in.row).Set("f", "v", []byte(in.value))
	put.Unrepeatable = true
	add := hbase.NewIncrement(in.row).Add("f", "n", 1)
	switch in.kind {
	case "get":
		var r *hbase.Result
		if r, err = t.Get(ctx, hbase.NewGet(in.row)); err == nil {
			out.state.value = string(r.Value("f", "v"))
			out.state.count, _ = r.Int64("f", "n")
		}
	case "put":
		err = t.Put(ctx, put)
	case "check":
		var r hbase.CheckResult
		c := hbase.NewCheckAndMutate(in.row).IfEquals("f", "v", []byte(in.expected))
		r, err = t.CheckAndMutate(ctx, c.Then(put))
		out.applied = r.Applied
	case "increment":
		out.state.count, err = t.IncrementColumn(ctx, []byte(in.row), "f", "n", 1)
	case "both":
		var r *hbase.Result
		if r, err = t.MutateRow(ctx, hbase.NewRowMutations(in.row).Add(put, add)); err == nil {
			out.state.count, _ = r.Int64("f", "n")
		}
	}
	return out, err
}

// hedgeCounter counts hedged reads.
type hedgeCounter struct{ atomic.Int64 }

func (c *hedgeCounter) Hedged(context.Context, hbase.Hedge) { c.Add(1) }

// TestRowsAreLinearizable: whatever is done to servers, regions and single
// calls, what the clients see of a row is what one client after another could
// have seen.
func TestRowsAreLinearizable(t *testing.T) {
	t.Run("plain", func(t *testing.T) { linearizable(t, 1) })
	// Hedges ask the primary again, over another connection, and never one of
	// the replicas, which are far behind.
	// Gets of many callers in one request are each a Get.
	t.Run("together", func(t *testing.T) {
		defer session.CombineAlways(4)()
		linearizable(t, 1)
	})
	t.Run("hedged", func(t *testing.T) { linearizable(t, 3, hbase.WithHedgedReads()) })
}

func linearizable(t *testing.T, replicas int, options ...hbase.Option) {
	seed := newSeed(t)
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CreateReplicatedTable(t.Context(), "t", []string{"f"}, replicas, []byte("r2")); err != nil {
		t.Fatal(err)
	}
	c.SetReplicaLag(time.Hour)
	var hedges hedgeCounter
	options = append(options, hbase.WithHooks(&hedges), hbase.WithRPCTimeout(100*time.Millisecond), hbase.WithPingAfter(50*time.Millisecond))
	for i, r := range []minihbase.Rule{
		{Action: minihbase.DropReply}, {Action: minihbase.DropRequest}, {Action: minihbase.CloseAfter}, {Action: minihbase.Truncate},
		{Action: minihbase.DelayReply, Delay: 20 * time.Millisecond},
		{Action: minihbase.FailAfter, Exception: minihbase.Exception{Class: "CallTimeoutException"}},
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "NotServingRegionException"}},
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "CallQueueTooBigException"}},
	} {
		r.Table, r.Probability, r.Seed = "t", 0.002, seed+uint64(i)
		if _, err := c.AddRule(r); err != nil {
			t.Fatal(err)
		}
	}
	if replicas > 1 { // slow reads are what is hedged
		r := minihbase.Rule{Match: minihbase.Match{Table: "t", Method: "Get"}, Action: minihbase.DelayReply, Delay: 15 * time.Millisecond, Probability: 0.04, Seed: seed}
		if _, err := c.AddRule(r); err != nil {
			t.Fatal(err)
		}
	}
	length := 1200 * time.Millisecond
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	began := time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	outcomes := map[string]int{}
	var wg sync.WaitGroup
	for w := range 8 {
		if w%4 != 0 {
			continue
		}
		client, err := hbase.Open(t.Context(), c.Address(), options...)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for g := w; g < w+4; g++ {
			wg.Go(func() {
				table, _ := client.Table("t")
				random := rand.New(rand.NewPCG(seed, uint64(g)))
				seen := map[string]string{}
				for n := 0; ctx.Err() == nil; n++ {
					in := rowInput{row: fmt.Sprintf("r%d", random.IntN(4)), kind: []string{"get", "get", "put", "check", "increment", "both"}[random.IntN(6)]}
					in.overwrites = in.kind == "put" || in.kind == "check" || in.kind == "both"
					in.adds = in.kind == "increment" || in.kind == "both"
					if in.overwrites {
						in.value = fmt.Sprintf("%d-%d", g, n)
					}
					if in.kind == "check" {
						in.expected = seen[in.row]
					}
					call, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
					op := porcupine.Operation{ClientId: g, Input: in, Call: int64(time.Since(began))}
					out, err := in.do(call, table)
					op.Return = int64(time.Since(began))
					cancel()
					kind := in.kind + " done"
					switch {
					case err == nil:
						if in.kind == "get" {
							seen[in.row] = out.state.value
						}
					case in.kind == "get" || hbase.SafeToRetry(err):
						continue // it did nothing
					default:
						kind = in.kind + " unknown"
						out, op.Return = rowOutput{unknown: true}, math.MaxInt64
					}
					op.Output = out
					mu.Lock()
					history = append(history, op)
					outcomes[kind]++
					mu.Unlock()
				}
			})
		}
	}
	random := rand.New(rand.NewPCG(seed, 100))
	for ctx.Err() == nil {
		i := random.IntN(3)
		switch random.IntN(4) {
		case 0, 1:
			if r, err := c.Locate("t", fmt.Appendf(nil, "r%d", random.IntN(4))); err == nil {
				_ = c.MoveRegion(ctx, r.Encoded, i) // it may be there, or the server gone
			}
		case 2:
			if err := errors.Join(c.KillRegionServer(i), c.StartRegionServer(i)); err != nil {
				t.Error(err)
			}
		case 3:
			if err := c.HangRegionServer(i); err != nil {
				t.Error(err)
			}
			time.Sleep(30 * time.Millisecond)
			if err := c.ResumeRegionServer(i); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Duration(random.IntN(40)) * time.Millisecond)
	}
	wg.Wait()
	t.Logf("%d operations: %v; %d hedges", len(history), outcomes, hedges.Load())
	switch result := porcupine.CheckOperationsTimeout(rowModel, history, 20*time.Second); result {
	case porcupine.Illegal:
		t.Errorf("no order explains what was seen")
		for _, part := range rowModel.Partition(history) {
			if porcupine.CheckOperationsTimeout(rowModel, part, 20*time.Second) == porcupine.Illegal {
				for _, o := range part {
					t.Logf("%10d %10d %v", o.Call/1000, o.Return/1000, rowModel.DescribeOperation(o.Input, o.Output))
				}
			}
		}
	case porcupine.Unknown:
		t.Log("too much was unknown to decide within 20s")
	}
}

// TestWhatARepeatedPutHides: a put whose answer was lost is sent again and
// hides what was written in between; not so if it is unrepeatable, and then the
// caller is told that it may have been applied.
func TestWhatARepeatedPutHides(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	for _, unrepeatable := range []bool{false, true} {
		for _, batch := range []bool{false, true} {
			// What is written in between must be in before the client repeats,
			// which a loaded machine may not do at the first try.
			repeat := func(t *testing.T, after time.Duration) (inTime bool) {
				client, err := hbase.Open(t.Context(), c.Address(), hbase.WithRPCTimeout(after))
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				table, _ := client.Table("t")
				row := fmt.Sprint(unrepeatable, batch, after)
				put := func(value string) *hbase.Put { return hbase.NewPut(row).Set("f", "q", []byte(value)) }
				id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "Mutate,Multi"}, Action: minihbase.DropReply, Times: 1})
				if err != nil {
					t.Fatal(err)
				}
				defer c.ClearRules()
				ctx, cancel := context.WithTimeout(t.Context(), 5*after)
				defer cancel()
				done := make(chan error, 1)
				began := time.Now()
				go func() {
					first := put("first")
					first.Unrepeatable = unrepeatable
					if batch {
						done <- table.Batch(ctx, []hbase.Op{first}).Err()
						return
					}
					done <- table.Put(ctx, first)
				}()
				if err := c.WaitRule(t.Context(), id, 1); err != nil {
					t.Fatal(err)
				}
				// The rule has the answer; see that the change itself is in.
				for seen := ""; seen != "first"; {
					r, err := table.Get(t.Context(), hbase.NewGet(row))
					if err != nil {
						t.Fatal(err)
					}
					seen = string(r.Value("f", "q"))
				}
				if err := table.Put(t.Context(), put("second")); err != nil {
					t.Fatal(err)
				}
				inTime = time.Since(began) < after
				err = <-done
				if !inTime {
					return false
				}
				r, getErr := table.Get(t.Context(), hbase.NewGet(row))
				if getErr != nil {
					t.Fatal(getErr)
				}
				got := string(r.Value("f", "q"))
				if !unrepeatable && (err != nil || got != "first") {
					t.Errorf("repeated: %v, then read %q", err, got)
				}
				if unrepeatable && (!errors.Is(err, hbase.ErrUnknownOutcome) || hbase.SafeToRetry(err) || got != "second") {
					t.Errorf("not repeated: %v, then read %q", err, got)
				}
				return true
			}
			t.Run(fmt.Sprintf("unrepeatable %v, batch %v", unrepeatable, batch), func(t *testing.T) {
				for after := 300 * time.Millisecond; !repeat(t, after); after *= 3 {
					if after > time.Minute {
						t.Fatal("not once was the second put in time")
					}
				}
			})
		}
	}
}
