package hbasetest

import (
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// Rule is a chaos rule at work.
type Rule struct {
	c  *Cluster
	ID uint64
}

// Rule adds a chaos rule; it is removed when the test ends.
//
//	lost := c.Rule(minihbase.Rule{Match: minihbase.Match{Method: "Mutate"}, Action: minihbase.DropReply, Times: 1})
//	... write ...
//	lost.WaitHits(1)
func (c *Cluster) Rule(r minihbase.Rule) *Rule {
	c.t.Helper()
	id, err := c.AddRule(r)
	if err != nil {
		c.t.Fatalf("hbasetest: %v", err)
	}
	return &Rule{c: c, ID: id}
}

// WaitHits waits until the rule has been applied n times since it was added.
func (r *Rule) WaitHits(n uint64) {
	r.c.t.Helper()
	ctx, cancel := r.c.limit()
	defer cancel()
	if err := r.c.WaitRule(ctx, r.ID, n); err != nil {
		r.c.t.Fatalf("hbasetest: rule %d was applied %d times, waiting for %d: %v", r.ID, r.Hits(), n, err)
	}
}

// Hits is how often the rule was applied; 0 once it is removed.
func (r *Rule) Hits() uint64 {
	for _, s := range r.c.Rules() {
		if s.ID == r.ID {
			return s.Hits
		}
	}
	return 0
}

// Release lets the calls go on that a Hold rule holds; calls it picks later are
// held again.
func (r *Rule) Release() {
	r.c.t.Helper()
	if err := r.c.ReleaseRule(r.ID); err != nil {
		r.c.t.Fatalf("hbasetest: %v", err)
	}
}

// Remove ends the rule; calls it holds go on.
func (r *Rule) Remove() {
	r.c.t.Helper()
	if err := r.c.RemoveRule(r.ID); err != nil {
		r.c.t.Fatalf("hbasetest: %v", err)
	}
}

// Region describes the region of a table that holds a row.
func (c *Cluster) Region(table, row string) minihbase.Region {
	c.t.Helper()
	r, err := c.Locate(table, []byte(row))
	if err != nil {
		c.t.Fatalf("hbasetest: %v", err)
	}
	return r
}

// Move moves the region that holds a row to another server, and says where it
// is now.
func (c *Cluster) Move(table, row string) minihbase.Region {
	c.t.Helper()
	ctx, cancel := c.limit()
	defer cancel()
	r := c.Region(table, row)
	if err := c.withMaster(ctx, func() error { return c.MoveRegion(ctx, r.Encoded, -1) }); err != nil {
		c.t.Fatalf("hbasetest: move region %s of %s: %v", r.Encoded, table, err)
	}
	return c.Region(table, row)
}

// SplitAt splits the region that holds a row, at that row.
func (c *Cluster) SplitAt(table, row string) {
	c.t.Helper()
	ctx, cancel := c.limit()
	defer cancel()
	r := c.Region(table, row)
	if err := c.withMaster(ctx, func() error { return c.Split(ctx, r.Encoded, []byte(row)) }); err != nil {
		c.t.Fatalf("hbasetest: split region %s of %s: %v", r.Encoded, table, err)
	}
}

// Kill kills the server of the region that holds a row, and gives its index for
// StartRegionServer.
func (c *Cluster) Kill(table, row string) int {
	c.t.Helper()
	r := c.Region(table, row)
	if r.Index < 0 {
		c.t.Fatalf("hbasetest: region %s of %s has no server", r.Encoded, table)
	}
	if err := c.KillRegionServer(r.Index); err != nil {
		c.t.Fatalf("hbasetest: %v", err)
	}
	return r.Index
}

// Calls gives the calls that ended since the test got the cluster, as far as the
// event log remembers them (8192 events unless Options.Events says otherwise):
// "exactly one Get" is len(c.Calls(...)) == 1.
func (c *Cluster) Calls(f minihbase.EventFilter) []minihbase.Event {
	events, _ := c.Events().Query(f, c.since, 0)
	out := events[:0]
	for _, e := range events {
		if e.Kind.String() == "rpc" {
			out = append(out, e)
		}
	}
	return out
}
