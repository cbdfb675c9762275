package minihbase_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// lying is a cluster with a table "t" of three regions (to g, to p, to the end)
// and a row in each.
func lying(t *testing.T) *minihbase.Cluster {
	t.Helper()
	c := up(t, minihbase.Options{ControlPort: -1})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}, []byte("g"), []byte("p")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"a", "h", "z"} {
		if err := put(t, c, "t", row, row); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// fresh is a client that knows no routes yet.
func fresh(t *testing.T, c *minihbase.Cluster, o ...hbase.Option) *hbase.Table {
	t.Helper()
	client, err := hbase.Open(t.Context(), c.Address(), append([]hbase.Option{hbase.WithRPCTimeout(250 * time.Millisecond)}, o...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	table, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func addRule(t *testing.T, c *minihbase.Cluster, r minihbase.Rule) uint64 {
	t.Helper()
	id, err := c.AddRule(r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// waitRule waits until a rule has been met.
func waitRule(t *testing.T, c *minihbase.Cluster, id, n uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.WaitRule(ctx, id, n); err != nil {
		t.Fatal(err)
	}
}

// getRow reads a row that is its own value.
func readRow(ctx context.Context, table *hbase.Table, row string) error {
	r, err := table.Get(ctx, hbase.NewGet(row))
	if err == nil && string(r.Value("f", "q")) != row {
		err = fmt.Errorf("row %s has the value %q", row, r.Value("f", "q"))
	}
	return err
}

// scanned gives the rows of a scan.
func scanned(ctx context.Context, table *hbase.Table) (rows string, err error) {
	for r, err := range table.Scan(ctx, hbase.NewScan()).Rows() {
		if err != nil {
			return rows, err
		}
		rows += string(r.Row)
	}
	return rows, nil
}

// TestMetaLies: as long as hbase:meta lies about a region, its callers get
// nothing but errors that say so, and wrong data never; callers of its
// neighbours notice nothing; and all go on once the lie ends, also those who
// were waiting.
func TestMetaLies(t *testing.T) {
	middle := minihbase.Match{Table: "t", StartRow: []byte("h"), StopRow: []byte("h\x00")}
	for _, tc := range []struct {
		name string
		rule minihbase.Rule
		// calm: a client gets through all the same, by other evidence.
		calm   bool
		before func(c *minihbase.Cluster) error
	}{
		{name: "hole", rule: minihbase.Rule{Action: minihbase.MetaHole, Match: middle}},
		{name: "no server", rule: minihbase.Rule{Action: minihbase.MetaNoServer, Match: middle}},
		{name: "stale, moved since", rule: minihbase.Rule{Action: minihbase.MetaStale, Match: middle}, calm: true, before: func(c *minihbase.Cluster) error {
			r, err := c.Locate("t", []byte("h"))
			if err != nil {
				return err
			}
			return c.MoveRegion(t.Context(), r.Encoded, -1)
		}},
		{name: "stale, server dead since", rule: minihbase.Rule{Action: minihbase.MetaStale, Match: middle}, before: func(c *minihbase.Cluster) error {
			r, err := c.Locate("t", []byte("h"))
			if err != nil {
				return err
			}
			return c.KillRegionServer(r.Index)
		}},
		{name: "a server that never was", rule: minihbase.Rule{Action: minihbase.MetaStale, Match: middle, Location: "127.0.0.1,1,17"}},
		{name: "overlap", rule: minihbase.Rule{Action: minihbase.MetaOverlap, Match: middle}},
		{name: "overlap to the end", rule: minihbase.Rule{Action: minihbase.MetaOverlap, Match: middle, End: []byte("zz")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := lying(t)
			id := addRule(t, c, tc.rule)
			if tc.before != nil {
				if err := tc.before(c); err != nil {
					t.Fatal(err)
				}
			}
			table := fresh(t, c)
			// On a machine that has other things to do, the lie may not have been
			// met in that time.
			var err error
			for limit := 400 * time.Millisecond; ; limit *= 2 {
				if tc.calm {
					limit = 20 * time.Second
				}
				short, cancel := context.WithTimeout(t.Context(), limit)
				err = readRow(short, table, "h")
				cancel()
				if c.Rules()[0].Hits > 0 || limit > 10*time.Second {
					break
				}
			}
			var op *hbase.OpError
			switch {
			case tc.calm && err != nil:
				t.Errorf("not even by the server's hint: %v", err)
			case !tc.calm && (!errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &op)):
				t.Errorf("a row of the region: %v (%T)", err, err)
			}
			waitRule(t, c, id, 1)
			for _, row := range []string{"a", "z"} {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				if err := readRow(ctx, fresh(t, c), row); err != nil {
					t.Errorf("row %s of a neighbour: %v", row, err)
				}
				cancel()
			}

			// Who waits goes on, and a scan leaves nothing out.
			got, rows := make(chan error, 2), ""
			other := fresh(t, c)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			hits := c.Rules()[0].Hits
			go func() { got <- readRow(ctx, other, "h") }()
			go func() {
				var err error
				rows, err = scanned(ctx, table)
				got <- err
			}()
			waitRule(t, c, id, hits+1)
			if err := c.RemoveRule(id); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := <-got; err != nil {
					t.Errorf("once the lie has ended: %v", err)
				}
			}
			if rows != "ahz" {
				t.Errorf("the scan brought %q", rows)
			}
		})
	}
}

// TestMetaLiesEnd: a lie that is told so many times ends by itself.
func TestMetaLiesEnd(t *testing.T) {
	t.Parallel()
	c := lying(t)
	id := addRule(t, c, minihbase.Rule{Action: minihbase.MetaHole, Match: minihbase.Match{Table: "t", StartRow: []byte("h"), StopRow: []byte("i")}, Times: 3})
	if err := readRow(t.Context(), fresh(t, c), "h"); err != nil {
		t.Error(err)
	}
	if r := c.Rules(); len(r) != 1 || r[0].ID != id || !r[0].Resting || r[0].Hits != 3 {
		t.Errorf("rules %+v", r)
	}
}

// TestMetaAsReaders: what readers of hbase:meta are shown, forwards, backwards,
// and beginning behind a region.
func TestMetaAsReaders(t *testing.T) {
	t.Parallel()
	c := lying(t)
	names := func(reversed bool, from string) (out []string) {
		t.Helper()
		client := fresh(t, c).Client()
		metaTable, err := client.Table("hbase:meta")
		if err != nil {
			t.Fatal(err)
		}
		s := hbase.NewScanRange(from, "").Family("info")
		if reversed {
			s = hbase.NewScanRange("", from).Family("info").Reverse()
		}
		for r, err := range metaTable.Scan(t.Context(), s).Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Row) > 2 && string(r.Row[:2]) == "t," {
				out = append(out, fmt.Sprintf("%s@%s", r.Row[2:3], r.Value("info", "server")))
			}
		}
		return out
	}
	truth := names(false, "")
	if len(truth) != 3 {
		t.Fatalf("regions %v", truth)
	}
	middle, err := c.Locate("t", []byte("h"))
	if err != nil {
		t.Fatal(err)
	}
	match := minihbase.Match{Region: middle.Encoded}
	at := truth[1]
	for _, tc := range []struct {
		rule minihbase.Rule
		want []string
	}{
		{minihbase.Rule{Action: minihbase.MetaHole, Match: match}, []string{truth[0], truth[2]}},
		{minihbase.Rule{Action: minihbase.MetaNoServer, Match: match}, []string{truth[0], "g@", truth[2]}},
		{minihbase.Rule{Action: minihbase.MetaOverlap, Match: match}, []string{truth[0], at, at, truth[2]}},
		{minihbase.Rule{Action: minihbase.MetaStale, Match: match, Location: "h,1,1"}, []string{truth[0], "g@h:1", truth[2]}},
		{minihbase.Rule{Action: minihbase.MetaHole, Match: minihbase.Match{Table: "t"}}, nil},
	} {
		id := addRule(t, c, tc.rule)
		forwards, backwards := names(false, ""), names(true, "u")
		for i, j := 0, len(backwards)-1; i < j; i, j = i+1, j-1 {
			backwards[i], backwards[j] = backwards[j], backwards[i]
		}
		behind := names(false, middle.Name+"\x00")
		if fmt.Sprint(forwards) != fmt.Sprint(tc.want) || fmt.Sprint(backwards) != fmt.Sprint(tc.want) {
			t.Errorf("%s: forwards %v, backwards %v, want %v", tc.rule.Action, forwards, backwards, tc.want)
		}
		if n := max(len(tc.want)-2, 0); tc.rule.Action == minihbase.MetaOverlap && len(behind) != n {
			t.Errorf("%s: behind the region %v", tc.rule.Action, behind)
		}
		if err := c.RemoveRule(id); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []minihbase.Rule{
		{Action: minihbase.MetaStale, Location: "99"},
		{Action: minihbase.MetaStale, Location: "nowhere:1"},
		{Action: minihbase.MetaHole, Match: minihbase.Match{Method: "Scan"}},
	} {
		if _, err := c.AddRule(r); err == nil {
			t.Errorf("rule %+v was taken", r)
		}
	}
	// By index, the location is the server's name of now.
	id := addRule(t, c, minihbase.Rule{Action: minihbase.MetaStale, Match: match, Location: "0"})
	if r := c.Rules(); r[len(r)-1].ID != id || r[len(r)-1].Location != c.Servers()[0].Name {
		t.Errorf("location %+v", r)
	}
}

// TestSlowAndStuckMeta: lookups take longer, or wait until they are let go;
// what is known needs none.
func TestSlowAndStuckMeta(t *testing.T) {
	t.Parallel()
	c := lying(t)
	warm := fresh(t, c)
	if err := readRow(t.Context(), warm, "h"); err != nil {
		t.Fatal(err)
	}
	slow := addRule(t, c, minihbase.Rule{Action: minihbase.Delay, Delay: 100 * time.Millisecond, Match: minihbase.Match{Table: "hbase:meta"}})
	begin := time.Now()
	if err := readRow(t.Context(), fresh(t, c), "h"); err != nil {
		t.Error(err)
	}
	if d := time.Since(begin); d < 100*time.Millisecond {
		t.Errorf("a first call took %v", d)
	}
	waitRule(t, c, slow, 1)
	c.ClearRules()

	stuck := addRule(t, c, minihbase.Rule{Action: minihbase.Hold, Match: minihbase.Match{Table: "hbase:meta"}})
	cold, done := fresh(t, c, hbase.WithRPCTimeout(20*time.Second)), make(chan error, 1)
	go func() { done <- readRow(t.Context(), cold, "h") }()
	waitRule(t, c, stuck, 1)
	if err := readRow(t.Context(), warm, "h"); err != nil {
		t.Errorf("a client that knows the way: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("a lookup got through: %v", err)
	default:
	}
	if err := c.RemoveRule(stuck); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestMetaMoves: hbase:meta is a region like others.
func TestMetaMoves(t *testing.T) {
	t.Parallel()
	c := lying(t)
	from, err := c.FindServer("meta")
	if err != nil {
		t.Fatal(err)
	}
	table := fresh(t, c)
	if err := readRow(t.Context(), table, "a"); err != nil {
		t.Fatal(err)
	}
	if err := c.MoveRegion(t.Context(), "1588230740", (from+1)%3); err != nil {
		t.Fatal(err)
	}
	if to, err := c.FindServer("meta"); err != nil || to != (from+1)%3 {
		t.Errorf("meta is on %d, %v", to, err)
	}
	for _, row := range []string{"h", "z"} {
		if err := readRow(t.Context(), table, row); err != nil {
			t.Error(err)
		}
	}
	if err := c.KillRegionServer((from + 1) % 3); err != nil {
		t.Fatal(err)
	}
	if err := readRow(t.Context(), fresh(t, c), "h"); err != nil {
		t.Error(err)
	}
}
