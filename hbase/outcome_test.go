package hbase_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestAppliedButNeverAnswered: an increment that was applied, whose answer was
// lost, and whose server then fell silent, must not be called safe to repeat:
// a caller that believed it would count twice.
func TestAppliedButNeverAnswered(t *testing.T) {
	c, tab := faulty(t, minihbase.Options{})
	if _, err := tab.IncrementColumn(t.Context(), []byte("r001"), "f", "n", 1); err != nil {
		t.Fatal(err)
	}
	loc, err := c.Locate("t", []byte("r001"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "Mutate"}, Action: minihbase.DropReply, Times: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		_, err := tab.IncrementColumn(ctx, []byte("r001"), "f", "n", 1)
		failed <- err
	}()
	if err := c.WaitRule(ctx, id, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.PauseRegionServer(loc.Index); err != nil {
		t.Fatal(err)
	}
	err = <-failed
	if err == nil {
		t.Fatal("no error although the server stayed silent")
	}
	if hbase.SafeToRetry(err) {
		t.Errorf("called safe to repeat: %v", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, hbase.ErrRetriesExhausted) {
		t.Errorf("neither the deadline nor exhaustion: %v", err)
	}
	if err := c.ResumeRegionServer(loc.Index); err != nil {
		t.Fatal(err)
	}
	res, err := tab.Get(t.Context(), hbase.NewGet("r001"))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := res.Int64("f", "n"); n != 2 {
		t.Errorf("stored %d, want 2: applied once", n)
	}
}

// TestGivenUpForWhatAnotherWasTold: an increment that has been sent is given up
// when the server tells another call that it is stopping. That exception is no
// answer to the increment, which may have been applied.
func TestGivenUpForWhatAnotherWasTold(t *testing.T) {
	for _, batch := range []bool{false, true} {
		c, _ := faulty(t, minihbase.Options{})
		client, err := hbase.Open(t.Context(), c.Address(), hbase.WithMaxAttempts(1))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		tab, _ := client.Table("t")
		row := []byte("r001")
		if _, err := tab.Get(t.Context(), hbase.NewGet(row)); err != nil {
			t.Fatal(err)
		}
		hold, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Table: "t", Method: "Mutate,Multi"}, Action: minihbase.Hold})
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			if batch {
				failed <- tab.Batch(t.Context(), []hbase.Op{hbase.NewIncrement(row).Add("f", "n", 1)})[0].Err
				return
			}
			_, err := tab.IncrementColumn(t.Context(), row, "f", "n", 1)
			failed <- err
		}()
		if err := c.WaitRule(t.Context(), hold, 1); err != nil {
			t.Fatal(err)
		}
		if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Table: "t", Method: "Get"}, Action: minihbase.Fail, Times: 1,
			Exception: minihbase.Exception{Class: "RegionServerStoppedException"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := tab.Get(t.Context(), hbase.NewGet(row)); err == nil {
			t.Fatal("the rule did not work")
		}
		err = <-failed
		if hbase.SafeToRetry(err) || !errors.Is(err, hbase.ErrUnknownOutcome) {
			t.Errorf("batch %v: called safe to repeat: %v", batch, err)
		}
		if err := c.ReleaseRule(hold); err != nil {
			t.Fatal(err)
		}
		// It was on its way all the time: the server may still apply it, once, or
		// drop it with its connection.
		n := int64(0)
		for until := time.Now().Add(time.Second); n == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
			res, err := tab.Get(t.Context(), hbase.NewGet(row))
			if err != nil && !hbase.Retriable(err) {
				t.Fatal(err)
			}
			if err == nil {
				n, _ = res.Int64("f", "n")
			}
		}
		if n > 1 {
			t.Errorf("batch %v: applied %d times", batch, n)
		}
	}
}
