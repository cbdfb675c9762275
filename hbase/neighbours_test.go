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
	id, err := c.AddRule(minihbase.Rule{
		Match:  minihbase.Match{Method: "Get", StartRow: []byte("bad"), StopRow: []byte("bae")},
		Action: minihbase.Fail, Exception: minihbase.Exception{Class: "java.io.IOException"},
	})
	if err != nil {
		t.Fatal(err)
	}
	bad, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := table.Get(bad, hbase.NewGet("bad"))
		ended <- err
	}()
	var slow int
	for asked := false; !asked; {
		rules := c.Rules()
		asked = rules[0].ID == id && rules[0].Hits >= 4
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
	// A gate would stall a Get for a second after the second and the third
	// failure each; a loaded machine may stall one.
	if slow > 1 {
		t.Errorf("%d reads of another row took over 250ms", slow)
	}
}
