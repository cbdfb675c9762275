package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// EmbeddedCluster does everything the demo wants to an embedded cluster, and
// counts what the client sent in the cluster's event log.
type EmbeddedCluster struct {
	*minihbase.Cluster
}

func (c *EmbeddedCluster) String() string {
	return fmt.Sprintf("an embedded cluster of %d region servers in memory", len(c.RegionServers()))
}

// Regions reads the cluster's own books, not hbase:meta.
func (c *EmbeddedCluster) Regions(_ context.Context, table string) ([]RegionAt, error) {
	regions, err := c.Cluster.Regions(table)
	if err != nil {
		return nil, err
	}
	live := map[string]string{} // server name -> host:port
	for _, s := range c.Cluster.Servers() {
		if s.State == "running" {
			live[s.Name] = s.Address
		}
	}
	var out []RegionAt
	for _, r := range regions {
		if !r.Parent {
			out = append(out, RegionAt{r.Start, r.End, live[r.Server]})
		}
	}
	return out, nil
}

// Servers lists the servers that run.
func (c *EmbeddedCluster) Servers(context.Context) ([]string, error) {
	var out []string
	for _, s := range c.Cluster.Servers() {
		if s.State == "running" {
			out = append(out, s.Address)
		}
	}
	return out, nil
}

// Move moves the region that holds start.
func (c *EmbeddedCluster) Move(ctx context.Context, table string, start []byte, server string) error {
	i, err := c.FindServer(server)
	if err != nil {
		return err
	}
	r, err := c.Locate(table, start)
	if err != nil {
		return err
	}
	return c.MoveRegion(ctx, r.Encoded, i)
}

// Split splits the region that holds key.
func (c *EmbeddedCluster) Split(ctx context.Context, table string, key []byte) error {
	r, err := c.Locate(table, key)
	if err != nil {
		return err
	}
	return c.Cluster.Split(ctx, r.Encoded, key)
}

// MoveToGroup makes a group of one server and moves the table into it.
func (c *EmbeddedCluster) MoveToGroup(ctx context.Context, table, server string) error {
	if err := c.AddGroup(ctx, demoGroup); err != nil {
		return err
	}
	return c.Cluster.MoveToGroup(ctx, demoGroup, []string{server}, []string{table})
}

// HomeGroup moves everything back.
func (c *EmbeddedCluster) HomeGroup(ctx context.Context, table string) error {
	group, err := c.Cluster.GroupServers(demoGroup)
	if err != nil {
		return err
	}
	// The table first: a group may not lose its last server while it has one.
	if err := c.Cluster.MoveToGroup(ctx, "default", nil, []string{table}); err != nil {
		return err
	}
	if err := c.Cluster.MoveToGroup(ctx, "default", group, nil); err != nil {
		return err
	}
	return c.RemoveGroup(demoGroup)
}

// Kill is kill -9 of one region server.
func (c *EmbeddedCluster) Kill(_ context.Context, server string) error {
	i, err := c.FindServer(server)
	if err != nil {
		return err
	}
	return c.KillRegionServer(i)
}

// Restart starts a killed server at its old port.
func (c *EmbeddedCluster) Restart(_ context.Context, server string) error {
	i, err := c.FindServer(server)
	if err != nil {
		return err
	}
	return c.StartRegionServer(i)
}

// Counters reads the event log: every call of ClientService but those of
// scanners, which take as many as they take, and of them those that read
// hbase:meta.
func (c *EmbeddedCluster) Counters() (Counters, bool) {
	var n Counters
	for _, k := range c.Events().Counters() {
		switch {
		case k.Service != "ClientService":
		case k.Table == "hbase:meta":
			n.MetaReads += int64(k.Calls)
		case strings.EqualFold(k.Method, "Scan"):
		default:
			n.RPCs += int64(k.Calls)
		}
	}
	return n, true
}
