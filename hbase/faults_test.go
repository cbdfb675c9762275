package hbase_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// faulty is a cluster with a table "t" of three regions and a client whose
// attempts are short.
func faulty(t *testing.T, o minihbase.Options) (*minihbase.Cluster, *hbase.Table) {
	t.Helper()
	o.InMemory, o.ControlPort = true, -1
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.CreateTable(t.Context(), "t", []string{"f"}, []byte("r030"), []byte("r060")); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address(), hbase.WithRPCTimeout(150*time.Millisecond), hbase.WithOperationTimeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return c, tab
}

func rule(t *testing.T, c *minihbase.Cluster, r minihbase.Rule) {
	t.Helper()
	if r.Table == "" {
		r.Table = "t"
	}
	if _, err := c.AddRule(r); err != nil {
		t.Fatal(err)
	}
}

// TestIncrementsAreAppliedOnce: whatever happens to the answer, an increment
// that is reported as done was done once.
func TestIncrementsAreAppliedOnce(t *testing.T) {
	t.Parallel()
	c, tab := faulty(t, minihbase.Options{})
	for _, action := range []minihbase.Action{minihbase.DropReply, minihbase.CloseAfter, minihbase.Truncate, minihbase.DropRequest, minihbase.CloseConn} {
		t.Run(string(action), func(t *testing.T) {
			defer c.ClearRules()
			rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Mutate,Multi"}, Every: 4, Times: 6, Action: action})
			row := []byte("r-" + action)
			for i := range 20 {
				n, err := tab.IncrementColumn(t.Context(), row, "f", "n", 1)
				if err != nil {
					t.Fatal(err)
				}
				if n != int64(i+1) {
					t.Fatalf("increment %d gave %d", i+1, n)
				}
			}
			var ops []hbase.Op
			for range 10 {
				ops = append(ops, hbase.NewIncrement(row).Add("f", "n", 1))
			}
			if err := tab.Batch(t.Context(), ops).Err(); err != nil {
				t.Fatal(err)
			}
			r, err := tab.Get(t.Context(), hbase.NewGet(row))
			if n, _ := r.Int64("f", "n"); err != nil || n != 30 {
				t.Errorf("stored %d, %v; want 30", n, err)
			}
			if hits := c.Rules()[0].Hits; hits == 0 {
				t.Error("the rule was never met")
			}
		})
	}
}

// TestUnknownOutcomes: what must not be repeated is not, and the caller is
// told.
func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	c, tab := faulty(t, minihbase.Options{})
	put := func(row, v string) *hbase.Put { return hbase.NewPut(row).Set("f", "q", []byte(v)) }
	if err := tab.Put(t.Context(), put("a", "1")); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"check and put": func() error {
			_, err := tab.CheckAndMutate(t.Context(), hbase.NewCheckAndMutate("a").IfEquals("f", "q", []byte("1")).Then(put("a", "2")))
			return err
		},
		"check and row mutations": func() error {
			_, err := tab.CheckAndMutate(t.Context(), hbase.NewCheckAndMutate("b").IfNotExists("f", "q").Then(hbase.NewRowMutations("b").Add(put("b", "1"))))
			return err
		},
		"delete of the latest version": func() error { return tab.Delete(t.Context(), hbase.NewDelete("c").LatestVersion("f", "q")) },
		"in a batch": func() error {
			return tab.Batch(t.Context(), []hbase.Op{hbase.NewCheckAndMutate("d").IfNotExists("f", "q").Then(put("d", "1"))}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer c.ClearRules()
			rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Mutate,Multi"}, Action: minihbase.CloseAfter, Times: 1})
			err := f()
			if !errors.Is(err, hbase.ErrUnknownOutcome) {
				t.Fatalf("error %v, want ErrUnknownOutcome", err)
			}
			if hbase.SafeToRetry(err) {
				t.Errorf("%v is called safe to retry", err)
			}
			if hits := c.Rules()[0].Hits; hits != 1 {
				t.Errorf("%d requests were met, want 1", hits)
			}
		})
	}
	// It was applied, which is why nobody may guess.
	if r, err := tab.Get(t.Context(), hbase.NewGet("a")); err != nil || string(r.Value("f", "q")) != "2" {
		t.Errorf("after the lost answer: %v, %v", r, err)
	}
}

func TestRequestsThatDidNotArriveAreSentAgain(t *testing.T) {
	t.Parallel()
	c, tab := faulty(t, minihbase.Options{})
	for _, class := range []string{"NotServingRegionException", "RegionTooBusyException", "CallQueueTooBigException", "ServerNotRunningYetException", "RegionOpeningException", "PleaseHoldException"} {
		t.Run(class, func(t *testing.T) {
			defer c.ClearRules()
			rule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Get,Mutate,Multi,Scan"}, Every: 3, Times: 1, Action: minihbase.Fail, Exception: minihbase.Exception{Class: class}})
			row := []byte("r-" + class)
			for i := range 5 {
				v := fmt.Append(nil, i)
				if _, err := tab.CheckAndMutate(t.Context(), hbase.NewCheckAndMutate(row).IfNotExists("f", fmt.Sprint(i)).Then(hbase.NewPut(row).Set("f", fmt.Sprint(i), v))); err != nil {
					t.Fatal(err)
				}
				if r, err := tab.Get(t.Context(), hbase.NewGet(row)); err != nil || !bytes.Equal(r.Value("f", fmt.Sprint(i)), v) {
					t.Fatalf("%v, %v", r, err)
				}
			}
		})
	}
}

// TestScansSurvive: scans of every kind are complete, in order and without
// repetition under faults of every kind.
func TestScansSurvive(t *testing.T) {
	t.Parallel()
	c, tab := faulty(t, minihbase.Options{})
	const rows, columns = 90, 4
	var ops []hbase.Op
	for i := range rows {
		p := hbase.NewPut(fmt.Sprintf("r%03d", i))
		for q := range columns {
			p.Set("f", fmt.Sprintf("q%d", q), fmt.Appendf(nil, "%d.%d", i, q))
		}
		ops = append(ops, p)
	}
	if err := tab.Batch(t.Context(), ops).Err(); err != nil {
		t.Fatal(err)
	}
	fail := func(class string) minihbase.Rule {
		return minihbase.Rule{Action: minihbase.Fail, Exception: minihbase.Exception{Class: class}}
	}
	// Answers after which the client waits are few, so that the test is fast.
	few := func(class string) minihbase.Rule {
		return minihbase.Rule{Action: minihbase.Fail, Exception: minihbase.Exception{Class: class}, Times: 1}
	}
	failAfter := func(class string) minihbase.Rule {
		return minihbase.Rule{Action: minihbase.FailAfter, Exception: minihbase.Exception{Class: class}}
	}
	for name, r := range map[string]minihbase.Rule{
		"dropped answers":    {Action: minihbase.DropReply, Times: 2},
		"dropped requests":   {Action: minihbase.DropRequest, Times: 2},
		"closed connections": {Action: minihbase.CloseConn},
		"closed after":       {Action: minihbase.CloseAfter},
		"truncated answers":  {Action: minihbase.Truncate},
		"unknown scanner":    fail("UnknownScannerException"),
		"scanner reset":      failAfter("ScannerResetException"),
		"out of order":       failAfter("OutOfOrderScannerNextException"),
		"stopped":            few("RegionServerStoppedException"),
		"busy":               few("CallQueueTooBigException"),
		"plain exception":    failAfter("java.io.IOException"),
	} {
		t.Run(name, func(t *testing.T) {
			for kind, scan := range map[string]*hbase.Scan{
				"rows":     {Caching: 7},
				"reversed": {Caching: 7, Reversed: true},
				"partial":  {AllowPartial: true, MaxResultSize: 60},
				"batch":    {Batch: 3, Caching: 5, Reversed: true},
				"prefetch": {Caching: 7, Prefetch: hbase.PrefetchAlways},
			} {
				r.Method, r.Every = "Scan", 3
				if r.Times == 0 {
					r.Times = 9
				}
				rule(t, c, r)
				sc := tab.Scan(t.Context(), scan)
				seen := 0
				for res, err := range sc.Rows() {
					if err != nil {
						t.Fatalf("%s: %v", kind, err)
					}
					for _, cell := range res.Cells {
						row := seen / columns
						if scan.Reversed {
							row = rows - 1 - row
						}
						if want := fmt.Sprintf("%d.%d", row, seen%columns); string(cell.Value) != want {
							t.Fatalf("%s: cell %d is %s, want %s", kind, seen, cell.Value, want)
						}
						seen++
					}
				}
				if seen != rows*columns {
					t.Errorf("%s: %d cells, want %d", kind, seen, rows*columns)
				}
				if c.Rules()[0].Hits == 0 {
					t.Errorf("%s: the rule was never met", kind)
				}
				c.ClearRules()
			}
		})
	}
}

// TestSlowConsumerKeepsItsScanner: the lease is renewed while the caller
// thinks, so the scan goes on where it was, at its read point.
func TestSlowConsumerKeepsItsScanner(t *testing.T) {
	t.Parallel()
	// A lease that a crowded machine renews in time, too.
	_, tab := faulty(t, minihbase.Options{ScannerLease: 4 * time.Second})
	for i := range 20 {
		if err := tab.Put(t.Context(), hbase.NewPut(fmt.Sprintf("r%03d", i)).Set("f", "q", []byte("old"))); err != nil {
			t.Fatal(err)
		}
	}
	sc := tab.Scan(t.Context(), &hbase.Scan{Caching: 5})
	defer sc.Close()
	for i := range 20 {
		r, err := sc.Next()
		if err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			if err := tab.Put(t.Context(), hbase.NewPut("r015").Set("f", "q", []byte("new"))); err != nil {
				t.Fatal(err)
			}
			await(t, "two renewals", func() bool { return sc.Stats().Renewals >= 2 })
		}
		if string(r.Value("f", "q")) != "old" {
			t.Errorf("row %s shows a write made after the scanner was opened", r.Row)
		}
	}
	if st := sc.Stats(); st.Renewals < 2 || st.Reopened != 0 {
		t.Errorf("%+v, want renewals and no reopening", st)
	}
}

// TestDeadlinesHoldWhileServersHang: nothing answers, and still every call ends
// with its context.
func TestDeadlinesHoldWhileServersHang(t *testing.T) {
	// Not parallel: it measures real time. That calls end within 5 ms is shown on
	// virtual time (internal/session); this is about what virtual time leaves out.
	c, tab := faulty(t, minihbase.Options{})
	if err := tab.Put(t.Context(), hbase.NewPut("r").Set("f", "q", nil)); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Servers() {
		if err := c.HangRegionServer(s.Index); err != nil {
			t.Fatal(err)
		}
	}
	const limit = 400 * time.Millisecond
	for name, f := range map[string]func(context.Context) error{
		"get":   func(ctx context.Context) error { _, err := tab.Get(ctx, hbase.NewGet("r")); return err },
		"put":   func(ctx context.Context) error { return tab.Put(ctx, hbase.NewPut("r").Set("f", "q", nil)) },
		"batch": func(ctx context.Context) error { return tab.Batch(ctx, []hbase.Op{hbase.NewGet("r")}).Err() },
		"scan":  func(ctx context.Context) error { _, err := tab.Scan(ctx, nil).Next(); return err },
	} {
		// A call that waits for something else than its deadline is late by
		// seconds each time; a machine that does much else is not.
		const tries = 6
		for try := 1; ; try++ {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			start := time.Now()
			err := f(ctx)
			over := time.Since(start) - limit
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v, want a deadline", name, err)
			}
			if over <= 25*time.Millisecond<<try {
				break
			}
			if try == tries {
				t.Errorf("%s: ended %v after its deadline, and not sooner in %d tries", name, over, tries)
				break
			}
		}
	}
}
