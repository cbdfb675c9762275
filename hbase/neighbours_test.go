package hbase_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestUnreadableRowHarmsNoNeighbour: a row that a server fails to read (a bad
// block, a coprocessor that throws) is the trouble of who asks for it. Others'
// calls to the region go on as ever, however stubbornly he asks.
func TestUnreadableRowHarmsNoNeighbour(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	table, _ := client.Table("t")
	if err := table.Put(t.Context(), hbase.NewPut("good").Set("f", "q", []byte("v"))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddRule(minihbase.Rule{
		Match:  minihbase.Match{Method: "Get", StartRow: []byte("bad"), StopRow: []byte("bae")},
		Action: minihbase.Fail, Exception: minihbase.Exception{Class: "java.io.IOException"},
	}); err != nil {
		t.Fatal(err)
	}
	// A gate would stall a Get for a second after the second and the third
	// failure each, every time; a machine that has other things to do may stall
	// some, now and then.
	var slow int
	for range 6 {
		if slow = besides(t, c, table); slow <= 1 {
			return
		}
	}
	t.Errorf("%d reads of another row took over 250ms, and no fewer in so many tries", slow)
}

// besides reads a good row while another caller asks for the bad one four times,
// and gives how many of those reads were slow.
func besides(t *testing.T, c *minihbase.Cluster, table *hbase.Table) (slow int) {
	t.Helper()
	before := c.Rules()[0].Hits
	bad, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := table.Get(bad, hbase.NewGet("bad"))
		ended <- err
	}()
	for asked := false; !asked; {
		asked = c.Rules()[0].Hits >= before+4
		began := time.Now()
		r, err := table.Get(t.Context(), hbase.NewGet("good"))
		if err != nil || string(r.Value("f", "q")) != "v" {
			t.Fatalf("%v, %v", r, err)
		}
		if time.Since(began) > 250*time.Millisecond {
			slow++
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	var remote *hbase.RemoteError
	if err := <-ended; !errors.As(err, &remote) || !errors.Is(err, context.Canceled) {
		t.Errorf("bad row: %v", err)
	}
	return slow
}
