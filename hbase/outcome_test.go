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
