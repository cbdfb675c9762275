package minihbase_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestClientNoticesCorruptCells: a cell block that makes no sense is never
// taken for data: the call is made again, and what was done is not done twice.
func TestClientNoticesCorruptCells(t *testing.T) {
	t.Parallel()
	c := lying(t)
	for _, compressor := range []string{"none", "snappy"} {
		table := fresh(t, c, hbase.WithCompressor(compressor))
		for _, tc := range []struct {
			name, method string
			call         func() error
		}{
			{"get", "Get", func() error { return readRow(t.Context(), table, "a") }},
			{"batch", "Multi", func() error {
				for i, o := range table.Batch(t.Context(), []hbase.Op{hbase.NewGet("a"), hbase.NewGet("h"), hbase.NewGet("z")}) {
					if want := "ahz"[i : i+1]; o.Err != nil || string(o.Result.Value("f", "q")) != want {
						return fmt.Errorf("row %s: %v, %v", want, o.Result, o.Err)
					}
				}
				return nil
			}},
			{"scan", "Scan", func() error {
				rows, err := scanned(t.Context(), table)
				if err == nil && strings.Replace(rows, "n", "", 1) != "ahz" {
					err = fmt.Errorf("rows %q", rows)
				}
				return err
			}},
			{"increment", "Mutate", func() error {
				before, err := table.Get(t.Context(), hbase.NewGet("n"))
				if err != nil {
					return err
				}
				n, _ := before.Int64("f", "n")
				after, err := table.IncrementColumn(t.Context(), []byte("n"), "f", "n", 1)
				if err == nil && after != n+1 {
					err = fmt.Errorf("%d became %d", n, after)
				}
				return err
			}},
		} {
			id := addRule(t, c, minihbase.Rule{Action: minihbase.CorruptCells, Match: minihbase.Match{Table: "t", Method: tc.method}, Every: 2})
			// Each way of damage comes up at least once.
			for calls := 0; c.Rules()[0].Hits < 6; calls++ {
				if err := tc.call(); err != nil {
					t.Errorf("%s, compressor %q, damage %d: %v", tc.name, compressor, c.Rules()[0].Hits, err)
				}
				if calls > 100 {
					t.Fatalf("%s: the rule is not met", tc.name)
				}
			}
			if err := c.RemoveRule(id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestLookupsNoticeCorruptCells: a row of hbase:meta that makes no sense is no
// place to go to.
func TestLookupsNoticeCorruptCells(t *testing.T) {
	t.Parallel()
	c := lying(t)
	id := addRule(t, c, minihbase.Rule{Action: minihbase.CorruptCells, Match: minihbase.Match{Table: "hbase:meta"}, Times: 6})
	for range 6 {
		if err := readRow(t.Context(), fresh(t, c), "h"); err != nil {
			t.Error(err)
		}
	}
	waitRule(t, c, id, 6)
}

// TestClientAndOversize: an answer that claims to be larger than any is refused
// and asked for again.
func TestClientAndOversize(t *testing.T) {
	t.Parallel()
	c := lying(t)
	table := fresh(t, c)
	for _, size := range []int64{0, 1 << 30} {
		id := addRule(t, c, minihbase.Rule{Action: minihbase.Oversize, Size: size, Match: minihbase.Match{Table: "t"}, Times: 1})
		if err := readRow(t.Context(), table, "a"); err != nil {
			t.Errorf("size %d: %v", size, err)
		}
		waitRule(t, c, id, 1)
	}
	id := addRule(t, c, minihbase.Rule{Action: minihbase.Oversize, Match: minihbase.Match{Table: "t"}})
	ctx, cancel := context.WithCancel(t.Context())
	met := make(chan error, 1)
	go func() { met <- c.WaitRule(ctx, id, 3); cancel() }()
	defer func() {
		cancel()
		if err := <-met; err != nil {
			t.Errorf("the rule was not met: %v", err)
		}
	}()
	if err := readRow(ctx, table, "a"); err == nil {
		t.Error("an answer that never comes")
	} else if !strings.Contains(err.Error(), "2147483647") {
		t.Errorf("the error does not say what was wrong: %v", err)
	}
}

// TestClientAndThrottle: a slow link makes calls slow, and fails those that it
// makes too slow.
func TestClientAndThrottle(t *testing.T) {
	t.Parallel()
	c := lying(t)
	value := strings.Repeat("v", 10_000)
	if err := put(t, c, "t", "b", value); err != nil {
		t.Fatal(err)
	}
	table := fresh(t, c, hbase.WithRPCTimeout(20*time.Second))
	get := func(ctx context.Context) error {
		r, err := table.Get(ctx, hbase.NewGet("b"))
		if err == nil && string(r.Value("f", "q")) != value {
			err = fmt.Errorf("a value of %d bytes", len(r.Value("f", "q")))
		}
		return err
	}
	id := addRule(t, c, minihbase.Rule{Action: minihbase.Throttle, BytesPerSecond: 50_000, Match: minihbase.Match{Table: "t"}, Times: 1})
	begin := time.Now()
	if err := get(t.Context()); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d < 190*time.Millisecond {
		t.Errorf("10 kB at 50 kB/s took %v", d)
	}
	waitRule(t, c, id, 1)
	addRule(t, c, minihbase.Rule{Action: minihbase.Throttle, BytesPerSecond: 100, Match: minihbase.Match{Table: "t"}})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := get(ctx); err == nil {
		t.Error("10 kB at 100 B/s within 200 ms")
	}
	c.ClearRules()
	if err := get(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRuleFields: each field of a match chooses calls as they come over the
// wire.
func TestRuleFields(t *testing.T) {
	t.Parallel()
	c := lying(t)
	if err := c.CreateTable(t.Context(), "u", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	h, err := c.Locate("t", []byte("h"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"a", "z"} {
		if r, err := c.Locate("t", []byte(row)); err != nil || r.Index == h.Index {
			t.Fatalf("rows h and %s are on one server: %v, %v", row, r, err)
		}
	}
	u, err := c.Locate("u", nil)
	if err != nil {
		t.Fatal(err)
	}
	if u.Index == h.Index {
		if err := c.MoveRegion(t.Context(), u.Encoded, -1); err != nil {
			t.Fatal(err)
		}
	}
	server := c.Servers()[h.Index]
	// No repetitions and no pings, however slow the machine is: calls are counted.
	patient := []hbase.Option{hbase.WithRPCTimeout(50 * time.Second), hbase.WithPingAfter(40 * time.Second)}
	ann, bob := fresh(t, c, append(patient, hbase.WithUser("ann"))...), fresh(t, c, append(patient, hbase.WithUser("bob"))...)
	other, err := bob.Client().Table("u")
	if err != nil {
		t.Fatal(err)
	}
	// Ten calls of ClientService, once the routes are known.
	calls := func() {
		t.Helper()
		for _, err := range []error{
			readRow(t.Context(), ann, "a"),
			readRow(t.Context(), ann, "h"),
			readRow(t.Context(), ann, "h"),
			ann.Put(t.Context(), hbase.NewPut("h").Set("f", "q", []byte("h"))),
			readRow(t.Context(), bob, "a"),
			readRow(t.Context(), bob, "z"),
			bob.Put(t.Context(), hbase.NewPut("a").Set("f", "q", []byte("a"))),
			other.Put(t.Context(), hbase.NewPut("h").Set("f", "q", []byte("h"))),
			readRow(t.Context(), other, "h"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		// A scan that ends in one call.
		for _, err := range bob.Scan(t.Context(), hbase.NewScanRange("h", "i").WithLimit(1)).Rows() {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	calls()
	for _, tc := range []struct {
		name string
		rule minihbase.Rule
		want uint64
	}{
		{"service", minihbase.Rule{Match: minihbase.Match{Service: "ClientService"}}, 10},
		{"another service", minihbase.Rule{Match: minihbase.Match{Service: "AdminService"}}, 0},
		{"method", minihbase.Rule{Match: minihbase.Match{Method: "Mutate"}}, 3},
		{"methods", minihbase.Rule{Match: minihbase.Match{Method: "Get,Scan"}}, 7},
		{"server by address", minihbase.Rule{Match: minihbase.Match{Server: server.Address}}, 4},
		{"server by name", minihbase.Rule{Match: minihbase.Match{Server: server.Name}}, 4},
		{"table", minihbase.Rule{Match: minihbase.Match{Table: "u"}}, 2},
		{"region", minihbase.Rule{Match: minihbase.Match{Region: h.Encoded}}, 4},
		{"rows", minihbase.Rule{Match: minihbase.Match{StartRow: []byte("h"), StopRow: []byte("h\x00")}}, 6},
		{"rows from", minihbase.Rule{Match: minihbase.Match{StartRow: []byte("i")}}, 1},
		{"rows up to", minihbase.Rule{Match: minihbase.Match{StopRow: []byte("h")}}, 3},
		{"user", minihbase.Rule{Match: minihbase.Match{User: "ann"}}, 4},
		{"all of them", minihbase.Rule{Match: minihbase.Match{Server: server.Address, Service: "ClientService", Method: "Get", Table: "t", Region: h.Encoded, StartRow: []byte("h"), StopRow: []byte("i"), User: "ann"}}, 2},
		{"the third", minihbase.Rule{Match: minihbase.Match{Table: "t"}, Skip: 2, Times: 1}, 1},
		{"every fourth", minihbase.Rule{Match: minihbase.Match{Table: "t"}, Every: 4}, 2},
		{"never", minihbase.Rule{Match: minihbase.Match{Table: "t"}, Probability: 1e-12, Seed: 1}, 0},
	} {
		tc.rule.Action, tc.rule.Delay = minihbase.DelayReply, time.Nanosecond
		id := addRule(t, c, tc.rule)
		calls()
		if got := c.Rules()[0].Hits; got != tc.want {
			t.Errorf("%s: %d calls were chosen, want %d", tc.name, got, tc.want)
		}
		if err := c.RemoveRule(id); err != nil {
			t.Fatal(err)
		}
	}
	// A chance with a seed picks the same calls each time, of calls that come in
	// the same order.
	var hits [2]uint64
	for i := range hits {
		id := addRule(t, c, minihbase.Rule{Action: minihbase.DelayReply, Delay: time.Nanosecond, Probability: 0.5, Seed: 7})
		calls()
		calls()
		hits[i] = c.Rules()[0].Hits
		if err := c.RemoveRule(id); err != nil {
			t.Fatal(err)
		}
	}
	if hits[0] != hits[1] || hits[0] == 0 || hits[0] == 20 {
		t.Errorf("by chance: %v of 20 calls", hits)
	}
}

// TestRuleMeetsBatches: a batch to several regions of a server is one call, and
// met by rules about any of them.
func TestRuleMeetsBatches(t *testing.T) {
	t.Parallel()
	c := up(t, minihbase.Options{ControlPort: -1, Servers: 1})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}, []byte("g"), []byte("p")); err != nil {
		t.Fatal(err)
	}
	table := fresh(t, c, hbase.WithRPCTimeout(50*time.Second), hbase.WithPingAfter(40*time.Second))
	for _, row := range []string{"a", "h", "z"} {
		r, err := c.Locate("t", []byte(row))
		if err != nil {
			t.Fatal(err)
		}
		id := addRule(t, c, minihbase.Rule{Action: minihbase.DelayReply, Delay: time.Nanosecond, Match: minihbase.Match{Method: "Multi", Region: r.Encoded}})
		var ops []hbase.Op
		for _, row := range []string{"a", "h", "z"} {
			ops = append(ops, hbase.NewPut(row).Set("f", "q", []byte(row)))
		}
		if err := table.Batch(t.Context(), ops).Err(); err != nil {
			t.Fatal(err)
		}
		if got := c.Rules()[0].Hits; got != 1 {
			t.Errorf("region of %s: %d hits", row, got)
		}
		if err := c.RemoveRule(id); err != nil {
			t.Fatal(err)
		}
	}
}
