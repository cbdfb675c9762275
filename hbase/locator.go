package hbase

import (
	"bytes"
	"context"
	"iter"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/route"
)

// RegionLocation is a region and where it is believed to be.
type RegionLocation struct {
	Region Region
	// Server serves the region; zero if hbase:meta names none.
	Server ServerName
	// OpenSeq orders the locations of one region; -1 if unknown.
	OpenSeq int64
	// InTransition: nobody is known to serve the region now.
	InTransition bool
	// Age is the time since this was last confirmed, to the second, and From by
	// whom: meta, hint, snapshot file, meta replica.
	Age  time.Duration
	From string
	// Replicas are the secondary replicas that hbase:meta named, by id.
	Replicas []ReplicaLocation
}

// ReplicaLocation is a secondary replica of a region. Its name differs from the
// primary's: [RegionLocation.Region] with the replica's id has it.
type ReplicaLocation struct {
	// ID is at least 1.
	ID     int
	Server ServerName
}

func (c *Client) locationOf(r *route.Route) RegionLocation {
	l := RegionLocation{
		Region: r.Region(), OpenSeq: r.OpenSeq(), InTransition: !r.Valid(),
		Age: r.Age(), From: r.Origin().String(),
	}
	l.Region.Start, l.Region.End = bytes.Clone(l.Region.Start), bytes.Clone(l.Region.End)
	if s := r.Server(); s != nil {
		l.Server = s.Name()
	}
	for _, p := range c.core.Routes().Replicas(r) {
		l.Replicas = append(l.Replicas, ReplicaLocation{p.ID, p.Server.Name()})
	}
	return l
}

// Regions lists the table's regions in order of their start keys, read from
// hbase:meta afresh in pages of up to 1000 while the loop runs. An error is the
// last thing it gives. (Java: RegionLocator.getAllRegionLocations.)
func (t *Table) Regions(ctx context.Context) iter.Seq2[RegionLocation, error] {
	return t.RegionsBetween(ctx, nil, nil)
}

// RegionsBetween is [Table.Regions] for the regions that hold rows from start
// (inclusive) to stop (exclusive; both may be empty).
func (t *Table) RegionsBetween(ctx context.Context, start, stop []byte) iter.Seq2[RegionLocation, error] {
	return func(yield func(RegionLocation, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, t.c.cfg.OperationTimeout)
		defer cancel()
		err := t.c.core.Routes().Pages(ctx, t.name, start, stop, func(page []*route.Route) bool {
			for _, r := range page {
				if !yield(t.c.locationOf(r), nil) {
					return false
				}
			}
			return true
		})
		if err != nil {
			yield(RegionLocation{}, t.wrap("list regions", err))
		}
	}
}

// StartEndKeys gives the boundaries of the table's regions in order: region i
// holds the rows from starts[i] (inclusive) to ends[i] (exclusive; empty is the
// table's beginning or end).
func (t *Table) StartEndKeys(ctx context.Context) (starts, ends [][]byte, err error) {
	for r, err := range t.Regions(ctx) {
		if err != nil {
			return nil, nil, err
		}
		starts, ends = append(starts, r.Region.Start), append(ends, r.Region.End)
	}
	return starts, ends, nil
}

// Locate gives the region that holds row and its location, as the client
// knows it; hbase:meta is read only if it does not.
func (t *Table) Locate(ctx context.Context, row []byte) (RegionLocation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.c.cfg.OperationTimeout)
	defer cancel()
	r, err := t.c.core.Routes().Locate(ctx, t.name, row)
	if err != nil {
		return RegionLocation{}, t.wrap("locate region", err)
	}
	return t.c.locationOf(r), nil
}

// Relocate is [Table.Locate], but reads the region's row in hbase:meta
// in any case. (Java: getRegionLocation with reload.)
func (t *Table) Relocate(ctx context.Context, row []byte) (RegionLocation, error) {
	ctx, cancel := context.WithTimeout(ctx, t.c.cfg.OperationTimeout)
	defer cancel()
	routes := t.c.core.Routes()
	r, err := routes.Locate(ctx, t.name, row)
	if err == nil {
		r, err = routes.Refresh(ctx, r)
	}
	if err == nil && !r.Contains(row) { // it has been split meanwhile
		r, err = routes.Locate(ctx, t.name, row)
	}
	if err != nil {
		return RegionLocation{}, t.wrap("locate region", err)
	}
	return t.c.locationOf(r), nil
}

// RefreshRoutes reads again, in hbase:meta, where the regions are that the
// client knows of this table, 200 to a read and behind everybody else, and says
// how many had moved, or been split or merged. Calls go on meanwhile. The client
// corrects wrong routes by itself, so this is for those who know of a large
// change before calls meet it; see also [Config.MetaWatch].
func (t *Table) RefreshRoutes(ctx context.Context) (wrong int, err error) {
	_, wrong, err = t.c.core.Routes().RefreshTable(ctx, t.name)
	return wrong, t.wrap("refresh routes", err)
}

// ForgetServer makes the client read again where each region is that it
// believes on this server, before it is used next, and gives their number. It is
// for operators who are about to drain a server. With start code 0 it means
// whatever runs at the address.
func (c *Client) ForgetServer(server ServerName) int { return c.core.Routes().ForgetServer(server) }
