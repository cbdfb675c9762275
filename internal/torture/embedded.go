package torture

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/minihbase"
)

// Embedded does the faults to an embedded cluster.
type Embedded struct{ Mini *minihbase.Cluster }

var _ Faults = Embedded{}

// String names the cluster.
func (c Embedded) String() string {
	return fmt.Sprintf("embedded cluster of %d region servers", len(c.Mini.RegionServers()))
}

// Regions reads the cluster's own books, not hbase:meta.
func (c Embedded) Regions(_ context.Context, table string) ([]Region, error) {
	regions, err := c.Mini.Regions(table)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, s := range c.Mini.Servers() {
		names[s.Name] = s.Address
	}
	var out []Region
	for _, r := range regions {
		if !r.Parent {
			out = append(out, Region{Encoded: r.Encoded, Start: r.Start, End: r.End, Server: names[r.Server]})
		}
	}
	return out, nil
}

// Servers lists the servers that run.
func (c Embedded) Servers(context.Context) ([]string, error) {
	var out []string
	for _, s := range c.Mini.Servers() {
		if s.State == "running" {
			out = append(out, s.Address)
		}
	}
	return out, nil
}

// MetaServer finds the server that holds hbase:meta.
func (c Embedded) MetaServer(context.Context) (string, error) {
	i, err := c.Mini.FindServer("meta")
	if err != nil {
		return "", err
	}
	return c.Mini.RegionServers()[i], nil
}

// Move moves a region.
func (c Embedded) Move(ctx context.Context, encoded, server string) error {
	i, err := c.Mini.FindServer(server)
	if err != nil {
		return err
	}
	return c.Mini.MoveRegion(ctx, encoded, i)
}

// Split splits a region.
func (c Embedded) Split(ctx context.Context, encoded string, row []byte) error {
	return c.Mini.Split(ctx, encoded, row)
}

// Kill ends a server.
func (c Embedded) Kill(_ context.Context, server string) error {
	return c.do(server, c.Mini.KillRegionServer)
}

// Restart starts a server that was killed.
func (c Embedded) Restart(_ context.Context, server string) error {
	return c.do(server, c.Mini.StartRegionServer)
}

// Pause freezes a server.
func (c Embedded) Pause(_ context.Context, server string) error {
	return c.do(server, c.Mini.PauseRegionServer)
}

// Resume wakes a server up.
func (c Embedded) Resume(_ context.Context, server string) error {
	return c.do(server, c.Mini.ResumeRegionServer)
}

func (c Embedded) do(server string, f func(int) error) error {
	i, err := c.Mini.FindServer(server)
	if err != nil {
		return err
	}
	return f(i)
}

// MetaReads counts by the event log.
func (c Embedded) MetaReads() (uint64, bool) {
	return c.Mini.Events().Count(minihbase.EventFilter{Service: "ClientService", Table: "hbase:meta"}), true
}
