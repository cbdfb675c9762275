package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Event is the kind of a step.
type Event string

// The events.
const (
	// Quiet is no event: load alone, for For.
	Quiet Event = "quiet"
	// Move moves a random region to another server.
	Move Event = "move"
	// Split splits one of the table's first regions in the middle.
	Split Event = "split"
	// Kill ends a server, waits until its regions are open elsewhere, and
	// starts it again.
	Kill Event = "kill"
	// Pause freezes a server for For.
	Pause Event = "pause"
)

// Step is one event of a plan.
type Step struct {
	Event Event
	// Meta says that the server is the one that holds hbase:meta; else it is
	// one that does not.
	Meta bool
	// For is the length of Quiet and Pause.
	For time.Duration
}

// DefaultPlan is ten moves, three splits, two kills, of which one takes
// hbase:meta along, and one pause of the given length.
func DefaultPlan(pause time.Duration) []Step {
	move, split := Step{Event: Move}, Step{Event: Split}
	return []Step{
		{Event: Quiet, For: time.Second},
		move, move, move, split, move, move,
		{Event: Kill},
		move, split, move,
		{Event: Pause, For: pause},
		move, move,
		{Event: Kill, Meta: true},
		split, move,
	}
}

// ShortPlan has one of each, and a second kill that takes hbase:meta along.
func ShortPlan(pause time.Duration) []Step {
	return []Step{
		{Event: Quiet, For: 300 * time.Millisecond},
		{Event: Move}, {Event: Move}, {Event: Split}, {Event: Kill}, {Event: Pause, For: pause}, {Event: Move}, {Event: Kill, Meta: true}, {Event: Split}, {Event: Move},
	}
}

// play brings the events about, one after another; each begins when every
// worker has got through a whole call since the last one.
func (r *run) play(ctx context.Context) error {
	for i, s := range r.cfg.Plan {
		if err := r.step(ctx, s); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, s.Event, err)
		}
	}
	return r.complete(ctx)
}

// event opens an entry, brings it about, and lets the load calm down.
func (r *run) event(ctx context.Context, kind Event, text string, do func(ctx context.Context) error) error {
	meta, counted := r.cfg.Cluster.MetaReads()
	r.rec.begin(kind, text, meta, counted)
	limit, cancel := context.WithTimeout(ctx, 3*r.cfg.Budget)
	defer cancel()
	err := do(limit)
	r.rec.amend(func(e *EventReport) { e.Took = time.Since(r.began) - e.At })
	if err == nil {
		pause(ctx, r.cfg.Dwell)
		err = r.settle(limit)
	}
	meta, _ = r.cfg.Cluster.MetaReads()
	r.rec.amend(func(e *EventReport) { e.MetaReads = meta - e.metaBefore; r.cfg.Logf("%v", e) })
	return err
}

// settle waits until every worker has begun and ended a call.
func (r *run) settle(ctx context.Context) error {
	since := time.Since(r.began)
	t := time.NewTicker(5 * time.Millisecond)
	defer t.Stop()
	for {
		slow := -1
		for w := range r.rec.lanes {
			if time.Duration(r.rec.lanes[w].finished.Load()) <= since {
				slow = w
				break
			}
		}
		if slow < 0 {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("worker %d has not got through a call: %w", slow, ctx.Err())
		}
	}
}

func (r *run) step(ctx context.Context, s Step) error {
	c := r.cfg.Cluster
	if s.Event == Kill || s.Event == Pause {
		// One server may be gone at a time.
		if err := r.complete(ctx); err != nil {
			return err
		}
	}
	switch s.Event {
	case Quiet:
		return r.event(ctx, Quiet, "load alone", func(ctx context.Context) error { pause(ctx, s.For); return nil })
	case Move:
		regions, servers, err := r.look(ctx)
		if err != nil {
			return err
		}
		g := regions[r.rand.IntN(len(regions))]
		servers = slices.DeleteFunc(servers, func(s string) bool { return s == g.Server })
		if len(servers) == 0 {
			return errors.New("there is no other server to move to")
		}
		to := servers[r.rand.IntN(len(servers))]
		text := fmt.Sprintf("region %s at %q from %s to %s", g.Encoded, g.Start, g.Server, to)
		return r.event(ctx, Move, text, func(ctx context.Context) error { return c.Move(ctx, g.Encoded, to) })
	case Split:
		regions, _, err := r.look(ctx)
		if err != nil {
			return err
		}
		if len(r.split) == r.data.regions {
			return errors.New("every region has been split")
		}
		n := r.rand.IntN(r.data.regions)
		for r.split[n] {
			n = r.rand.IntN(r.data.regions)
		}
		r.split[n] = true
		key := r.data.middle(n)
		for _, g := range regions {
			if bytes.Compare(g.Start, key) < 0 && (len(g.End) == 0 || bytes.Compare(key, g.End) < 0) {
				return r.event(ctx, Split, fmt.Sprintf("region %s at %q", g.Encoded, key), func(ctx context.Context) error { return c.Split(ctx, g.Encoded, key) })
			}
		}
		return fmt.Errorf("no region holds %q", key)
	case Kill:
		server, err := r.victim(ctx, s.Meta)
		if err != nil {
			return err
		}
		err = r.event(ctx, Kill, r.describe(server, s.Meta), func(ctx context.Context) error {
			if err := c.Kill(ctx, server); err != nil {
				return err
			}
			return r.recovered(ctx, server)
		})
		if err != nil {
			return err
		}
		return r.event(ctx, "restart", server, func(ctx context.Context) error { return r.restart(ctx, server) })
	case Pause:
		server, err := r.victim(ctx, s.Meta)
		if err != nil {
			return err
		}
		err = r.event(ctx, Pause, r.describe(server, s.Meta), func(ctx context.Context) error {
			if err := c.Pause(ctx, server); err != nil {
				return err
			}
			pause(ctx, s.For)
			return c.Resume(ctx, server)
		})
		if err != nil {
			return err
		}
		// A server that was frozen for longer than its session ends when it
		// wakes up.
		servers, err := c.Servers(ctx)
		if err != nil || slices.Contains(servers, server) {
			return err
		}
		return r.event(ctx, "restart", server, func(ctx context.Context) error { return r.restart(ctx, server) })
	}
	return fmt.Errorf("there is no event %q", s.Event)
}

func (r *run) describe(server string, meta bool) string {
	if meta {
		return server + ", which holds hbase:meta"
	}
	return server
}

func (r *run) look(ctx context.Context) ([]Region, []string, error) {
	regions, err := r.cfg.Cluster.Regions(ctx, r.cfg.Table)
	if err != nil {
		return nil, nil, err
	}
	if len(regions) == 0 {
		return nil, nil, errors.New("the table has no regions")
	}
	servers, err := r.cfg.Cluster.Servers(ctx)
	return regions, servers, err
}

// victim chooses the server that holds hbase:meta, or of the others the one
// with most regions of the table.
func (r *run) victim(ctx context.Context, meta bool) (string, error) {
	holder, err := r.cfg.Cluster.MetaServer(ctx)
	if err != nil || meta {
		return holder, err
	}
	regions, _, err := r.look(ctx)
	if err != nil {
		return "", err
	}
	count := map[string]int{}
	best := ""
	for _, g := range regions {
		if g.Server == "" || g.Server == holder {
			continue
		}
		count[g.Server]++
		if count[g.Server] > count[best] {
			best = g.Server
		}
	}
	if best == "" {
		return "", errors.New("all regions are with the server that holds hbase:meta")
	}
	return best, nil
}

// recovered waits until hbase:meta and all regions of the table are with
// servers that live.
func (r *run) recovered(ctx context.Context, dead string) error {
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		holder, err := r.cfg.Cluster.MetaServer(ctx)
		if err == nil && holder != dead && holder != "" {
			regions, servers, err := r.look(ctx)
			if err == nil && !slices.Contains(servers, dead) && !slices.ContainsFunc(regions, func(g Region) bool { return !slices.Contains(servers, g.Server) }) {
				return nil
			}
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("regions of %s are not open elsewhere: %w", dead, ctx.Err())
		}
	}
}

// restart starts a server and does not wait for it: a Java process takes a
// quarter of a minute, in which the plan goes on with the others.
func (r *run) restart(ctx context.Context, server string) error {
	r.missing = server
	return r.cfg.Cluster.Restart(ctx, server)
}

// complete waits until the server that was started last is there.
func (r *run) complete(ctx context.Context) error {
	if r.missing == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Budget)
	defer cancel()
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for {
		servers, err := r.cfg.Cluster.Servers(ctx)
		if err == nil && slices.Contains(servers, r.missing) {
			r.missing = ""
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%s has not come up: %w", r.missing, ctx.Err())
		}
	}
}
