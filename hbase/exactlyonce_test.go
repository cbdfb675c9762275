package hbase_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// seedFlag is the same each time, so that nothing is found by chance while
// something else is being changed; make random takes new ones.
var seedFlag = flag.Uint64("seed", 1, "of random tests; 0 takes the clock's")

// newSeed gives the seed of a random test.
func newSeed(t *testing.T) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return seed
}

// The long form: go test ./hbase -run ManyIncrements -increments 100000
var increments = flag.Int("increments", 0, "perform so many, however long it takes")

// TestManyIncrementsAreAppliedOnce: answers are lost all the time, after the
// increment was applied; every value is given to exactly one caller all the
// same, and none is missing.
func TestManyIncrementsAreAppliedOnce(t *testing.T) {
	const callers, rows = 64, 40
	total, until := int64(20_000), time.Now().Add(2*time.Second)
	if *increments > 0 {
		total, until = int64(*increments), time.Now().Add(time.Hour)
	}
	c, _ := faulty(t, minihbase.Options{})
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithRPCTimeout(100*time.Millisecond), hbase.WithOperationTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	tab, _ := client.Table("t")
	for i, r := range []minihbase.Rule{
		{Action: minihbase.DropReply, Probability: 0.01},
		{Action: minihbase.DropRequest, Probability: 0.002},
		{Action: minihbase.CloseAfter, Probability: 0.001},
		{Action: minihbase.Truncate, Probability: 0.0005},
		{Action: minihbase.FailAfter, Probability: 0.002, Exception: minihbase.Exception{Class: "CallTimeoutException"}},
	} {
		r.Method, r.Seed = "Mutate,Multi", uint64(i+1)
		rule(t, c, r)
	}
	row := func(i int64) []byte { return fmt.Appendf(nil, "r%03d", i%rows*2) }
	var next atomic.Int64
	var given [rows]sync.Map
	var count [rows]atomic.Int64
	took := func(i, value int64) {
		count[i%rows].Add(1)
		if _, twice := given[i%rows].LoadOrStore(value, true); twice {
			t.Errorf("row %s: two increments gave %d", row(i), value)
		}
	}
	var wg sync.WaitGroup
	for w := range callers {
		wg.Go(func() {
			for time.Now().Before(until) {
				i := next.Add(1) - 1
				if i >= total {
					return
				}
				if w%8 > 0 {
					value, err := tab.IncrementColumn(t.Context(), row(i), "f", "n", 1)
					if err != nil {
						t.Errorf("increment %d: %v", i, err)
						return
					}
					took(i, value)
					continue
				}
				// As a batch of two rows, of which one may have to be sent again.
				next.Add(1)
				pair := []hbase.Op{hbase.NewIncrement(row(i)).Add("f", "n", 1), hbase.NewIncrement(row(i+1)).Add("f", "n", 1)}
				for k, out := range tab.Batch(t.Context(), pair) {
					value, ok := out.Result.Int64("f", "n")
					if out.Err != nil || !ok {
						t.Errorf("increment %d in a batch: %v", i, out.Err)
						return
					}
					took(i+int64(k), value)
				}
			}
		})
	}
	wg.Wait()
	lost := uint64(0)
	for _, r := range c.Rules() {
		lost += r.Hits
	}
	c.ClearRules()
	done := int64(0)
	for i := range int64(rows) {
		r, err := tab.Get(t.Context(), hbase.NewGet(row(i)))
		if err != nil {
			t.Fatal(err)
		}
		n, _ := r.Int64("f", "n")
		if want := count[i].Load(); n != want {
			t.Errorf("row %s holds %d after %d increments", row(i), n, want)
		}
		done += n
	}
	t.Logf("%d increments, %d answers lost", done, lost)
	if lost == 0 {
		t.Error("no answer was lost")
	}
}

// TestUnsafeIsNeverSentAgain: whichever way the answer is lost, whatever must
// not be repeated reaches the server once, and the caller is told that nobody
// knows.
func TestUnsafeIsNeverSentAgain(t *testing.T) {
	c, tab := faulty(t, minihbase.Options{})
	put := func(row string) *hbase.Put { return hbase.NewPut(row).Set("f", "q", []byte("v")) }
	once := func(row string) *hbase.Put { p := put(row); p.Unrepeatable = true; return p }
	absent := func(row string) *hbase.CheckAndMutate { return hbase.NewCheckAndMutate(row).IfNotExists("f", "q") }
	kinds := map[string]func(ctx context.Context, row string) error{
		"check and put": func(ctx context.Context, row string) error {
			_, err := tab.CheckAndMutate(ctx, absent(row).Then(put(row)))
			return err
		},
		"check and delete": func(ctx context.Context, row string) error {
			_, err := tab.CheckAndMutate(ctx, absent(row).Then(hbase.NewDelete(row)))
			return err
		},
		"check and increment": func(ctx context.Context, row string) error {
			_, err := tab.CheckAndMutate(ctx, absent(row).Then(hbase.NewIncrement(row).Add("f", "n", 1)))
			return err
		},
		"check and append": func(ctx context.Context, row string) error {
			_, err := tab.CheckAndMutate(ctx, absent(row).Then(hbase.NewAppend(row).Add("f", "a", []byte("v"))))
			return err
		},
		"check and row mutations": func(ctx context.Context, row string) error {
			_, err := tab.CheckAndMutate(ctx, absent(row).Then(hbase.NewRowMutations(row).Add(put(row), hbase.NewIncrement(row).Add("f", "n", 1))))
			return err
		},
		"check in a batch": func(ctx context.Context, row string) error {
			return tab.Batch(ctx, []hbase.Op{absent(row).Then(put(row))})[0].Err
		},
		"unrepeatable put": func(ctx context.Context, row string) error { return tab.Put(ctx, once(row)) },
		"unrepeatable put in a batch": func(ctx context.Context, row string) error {
			return tab.Batch(ctx, []hbase.Op{once(row)})[0].Err
		},
		"unrepeatable delete": func(ctx context.Context, row string) error {
			d := hbase.NewDelete(row).Column("f", "q")
			d.Unrepeatable = true
			return tab.Delete(ctx, d)
		},
		"delete of the latest version": func(ctx context.Context, row string) error {
			return tab.Delete(ctx, hbase.NewDelete(row).LatestVersion("f", "q"))
		},
		"row mutations with one of them": func(ctx context.Context, row string) error {
			_, err := tab.MutateRow(ctx, hbase.NewRowMutations(row).Add(put(row), hbase.NewDelete(row).LatestVersion("f", "z")))
			return err
		},
		"rows, one of them unrepeatable": func(ctx context.Context, row string) error {
			return tab.MutateRows(ctx, put(row), once(row+"x"))
		},
		"check and rows": func(ctx context.Context, row string) error {
			_, err := tab.CheckAndMutateRows(ctx, []*hbase.CheckAndMutate{absent(row)}, put(row))
			return err
		},
		"unrepeatable service": func(ctx context.Context, row string) error {
			_, err := tab.CallService(ctx, []byte(row), &hbase.ServiceCall{Service: "AggregateService", Method: "GetRowNum", Unrepeatable: true})
			return err
		},
		"mutator": func(ctx context.Context, row string) error {
			m, err := tab.Mutator(hbase.MutatorOptions{Timeout: time.Second})
			if err != nil {
				return err
			}
			if err := m.Add(ctx, once(row)); err != nil {
				return err
			}
			return m.Close(t.Context())
		},
	}
	n := 0
	for name, do := range kinds {
		for _, lost := range []minihbase.Rule{
			{Action: minihbase.CloseAfter}, {Action: minihbase.CloseConn}, {Action: minihbase.Truncate},
			{Action: minihbase.FailAfter, Exception: minihbase.Exception{Class: "CallTimeoutException"}},
			{Action: minihbase.FailAfter, Exception: minihbase.Exception{Class: "com.example.StrangeException"}},
		} {
			n++
			row := fmt.Sprintf("r%03d", n)
			t.Run(name+", "+string(lost.Action)+" "+lost.Exception.Class, func(t *testing.T) {
				if _, err := tab.Get(t.Context(), hbase.NewGet(row)); err != nil { // the connection is there
					t.Fatal(err)
				}
				lost.Match.Method = "Mutate,Multi,ExecService"
				rule(t, c, lost)
				defer c.ClearRules()
				err := do(t.Context(), row)
				if hits := c.Rules()[0].Hits; hits != 1 {
					t.Errorf("the server got it %d times", hits)
				}
				if !errors.Is(err, hbase.ErrUnknownOutcome) || hbase.SafeToRetry(err) {
					t.Errorf("error %v, safe to retry %v", err, hbase.SafeToRetry(err))
				}
			})
		}
	}
	// Who waits for an answer that does not come waits as long as there is time:
	// all at once.
	for _, action := range []minihbase.Action{minihbase.DropReply, minihbase.DropRequest} {
		t.Run(string(action), func(t *testing.T) {
			defer c.ClearRules()
			if _, err := tab.MultiGet(t.Context(), []*hbase.Get{hbase.NewGet("r000"), hbase.NewGet("r030"), hbase.NewGet("r060")}); err != nil {
				t.Fatal(err)
			}
			// On a loaded machine some may not even have been sent in a second.
			for limit := time.Second; ; limit *= 4 {
				rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Mutate,Multi,ExecService"}, Action: action})
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				var wg sync.WaitGroup
				var mu sync.Mutex
				ended := map[string]error{}
				for name, do := range kinds {
					n++
					row := fmt.Sprintf("r%03d", n)
					wg.Go(func() {
						err := do(ctx, row)
						mu.Lock()
						defer mu.Unlock()
						ended[name] = err
					})
				}
				wg.Wait()
				cancel()
				hits := c.Rules()[0].Hits
				c.ClearRules()
				if hits < uint64(len(kinds)) && limit < 10*time.Second {
					continue
				}
				for name, err := range ended {
					if !errors.Is(err, hbase.ErrUnknownOutcome) && !errors.Is(err, context.DeadlineExceeded) || hbase.SafeToRetry(err) {
						t.Errorf("%s: error %v, safe to retry %v", name, err, hbase.SafeToRetry(err))
					}
				}
				if hits != uint64(len(kinds)) {
					t.Errorf("the servers got %d requests for %d operations", hits, len(kinds))
				}
				break
			}
		})
	}
}
