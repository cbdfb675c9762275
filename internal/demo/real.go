package demo

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// RealCluster does to a cluster what a client with admin rights can: it moves
// and splits, and uses rsgroups if the cluster has them. It kills nothing.
type RealCluster struct {
	Admin *admin.Admin
	Name  string
}

// demoGroup is the rsgroup the demo makes and removes.
const demoGroup = "holdfast_demo"

func (c *RealCluster) String() string { return c.Name }

// Regions reads hbase:meta.
func (c *RealCluster) Regions(ctx context.Context, table string) ([]RegionAt, error) {
	locations, err := c.Admin.Regions(ctx, table)
	if err != nil {
		return nil, err
	}
	out := make([]RegionAt, 0, len(locations))
	for _, l := range locations {
		at := RegionAt{Start: l.Region.Start, End: l.Region.End}
		if !l.Server.IsZero() {
			at.Server = l.Server.Address()
		}
		out = append(out, at)
	}
	return out, nil
}

// Servers lists the live servers of the default rsgroup's view.
func (c *RealCluster) Servers(ctx context.Context) ([]string, error) {
	live, err := c.Admin.RegionServers(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(live))
	for _, s := range live {
		out = append(out, s.Address())
	}
	return out, nil
}

func (c *RealCluster) server(ctx context.Context, address string) (hbase.ServerName, error) {
	live, err := c.Admin.RegionServers(ctx)
	if err != nil {
		return hbase.ServerName{}, err
	}
	for _, s := range live {
		if s.Address() == address {
			return s, nil
		}
	}
	return hbase.ServerName{}, fmt.Errorf("no live region server at %s", address)
}

// Move moves the region through the master.
func (c *RealCluster) Move(ctx context.Context, table string, start []byte, address string) error {
	to, err := c.server(ctx, address)
	if err != nil {
		return err
	}
	l, err := c.Admin.Locate(ctx, table, start)
	if err != nil {
		return err
	}
	return c.Admin.MoveRegion(ctx, l.Region.EncodedName(), to)
}

// Split splits through the master.
func (c *RealCluster) Split(ctx context.Context, table string, key []byte) error {
	return c.Admin.SplitTable(ctx, table, key)
}

// MoveToGroup needs rsgroups; without them it is not possible.
func (c *RealCluster) MoveToGroup(ctx context.Context, table, server string) error {
	if _, err := c.Admin.ListRSGroups(ctx); err != nil {
		return fmt.Errorf("%w: no rsgroups (%v)", ErrNotPossible, err)
	}
	if err := c.Admin.AddRSGroup(ctx, demoGroup); err != nil {
		return err
	}
	if err := c.Admin.MoveServersToRSGroup(ctx, demoGroup, server); err != nil {
		return err
	}
	return c.Admin.MoveTablesToRSGroup(ctx, demoGroup, table)
}

// HomeGroup puts the table and the server back and removes the group.
func (c *RealCluster) HomeGroup(ctx context.Context, table string) error {
	g, ok, err := c.Admin.RSGroup(ctx, demoGroup)
	if err != nil || !ok {
		return fmt.Errorf("%w: the group was not made", ErrNotPossible)
	}
	if err := c.Admin.MoveTablesToRSGroup(ctx, admin.DefaultRSGroup, table); err != nil {
		return err
	}
	if err := c.Admin.MoveServersToRSGroup(ctx, admin.DefaultRSGroup, g.Servers...); err != nil {
		return err
	}
	return c.Admin.RemoveRSGroup(ctx, demoGroup)
}

// Kill is not possible from outside.
func (c *RealCluster) Kill(context.Context, string) error {
	return fmt.Errorf("%w: a client cannot kill a server", ErrNotPossible)
}

// Restart is not possible from outside.
func (c *RealCluster) Restart(context.Context, string) error {
	return fmt.Errorf("%w: a client cannot start a server", ErrNotPossible)
}

// Counters are not to be had from a real cluster.
func (c *RealCluster) Counters() (Counters, bool) { return Counters{}, false }
