package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// RegionLocation is a region and where hbase:meta says it is.
type RegionLocation struct {
	Region Region
	// Server is zero if meta names none.
	Server ServerName
	// OpenSeq orders the locations of one region; -1 if unknown.
	OpenSeq int64
}

func locationOf(r *route.Route) RegionLocation {
	l := RegionLocation{Region: r.Region(), OpenSeq: r.OpenSeq()}
	if s := r.Server(); s != nil {
		l.Server = s.Name()
	}
	return l
}

// Regions lists the regions of a table in order of their start keys, read
// afresh from hbase:meta.
func (a *Admin) Regions(ctx context.Context, table string) ([]RegionLocation, error) {
	const op = "list regions"
	t, err := parseTable(op, table)
	if err != nil {
		return nil, err
	}
	return a.regions(ctx, op, t)
}

func (a *Admin) regions(ctx context.Context, op string, t TableName) ([]RegionLocation, error) {
	ctx, cancel := bound(ctx, a.cfg.OperationTimeout)
	defer cancel()
	routes, err := a.core.Routes().Regions(ctx, t, nil, nil)
	if err != nil {
		return nil, fault.Wrap(op, ofTable(t), err)
	}
	out := make([]RegionLocation, len(routes))
	for i, r := range routes {
		out[i] = locationOf(r)
	}
	return out, nil
}

// Locate gives the region of a row and its server, as the client believes it
// now: from its cache, or from hbase:meta.
func (a *Admin) Locate(ctx context.Context, table string, row []byte) (RegionLocation, error) {
	const op = "locate region"
	t, err := parseTable(op, table)
	if err != nil {
		return RegionLocation{}, err
	}
	ctx, cancel := bound(ctx, a.cfg.OperationTimeout)
	defer cancel()
	r, err := a.core.Routes().Locate(ctx, t, row)
	if err != nil {
		return RegionLocation{}, fault.Wrap(op, fmt.Sprintf("%s row %q", ofTable(t), cells.QuoteShort(row, 64)), err)
	}
	return locationOf(r), nil
}

// FindRegion finds a region by its full name or its encoded name. An encoded
// name does not tell the table, so all tables are looked through.
func (a *Admin) FindRegion(ctx context.Context, name string) (RegionLocation, error) {
	const op = "find region"
	encoded, err := encodedName(op, name)
	if err != nil {
		return RegionLocation{}, err
	}
	tables := []TableName{meta.MetaTable}
	if table, _, full := strings.Cut(name, ","); full {
		t, err := parseTable(op, table)
		if err != nil {
			return RegionLocation{}, err
		}
		tables = []TableName{t}
	} else if encoded != meta.MetaEncodedName {
		if tables, err = a.ListTables(ctx, "", true); err != nil {
			return RegionLocation{}, err
		}
	}
	for _, t := range tables {
		regions, err := a.regions(ctx, op, t)
		if errors.Is(err, fault.ErrTableNotFound) || errors.Is(err, route.ErrTableNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return RegionLocation{}, err
		}
		for _, r := range regions {
			if r.Region.EncodedName() == encoded {
				return r, nil
			}
		}
	}
	return RegionLocation{}, &fault.Error{Op: op, Object: name, Err: fault.ErrUnknownRegion}
}

// encodedName reads a full or an encoded region name.
func encodedName(op, name string) (string, error) {
	if strings.Contains(name, ",") {
		if e, ok := meta.EncodedNameOf([]byte(name)); ok {
			return e, nil
		}
		return "", invalid(op, "region "+name, "is no region name (table,start,id.md5.)")
	}
	if name == "" {
		return "", invalid(op, "region", "has no name")
	}
	return name, nil
}

// MoveRegion moves a region (full or encoded name) to a server, or to one the
// master chooses if dest is zero. It returns when the region is open there.
func (a *Admin) MoveRegion(ctx context.Context, region string, dest ServerName) error {
	const op = "move region"
	encoded, err := encodedName(op, region)
	if err != nil {
		return err
	}
	req := &pb.MoveRegionRequest{Region: regionByEncoded(encoded)}
	if !dest.IsZero() {
		req.DestServerName = dest.ToProto()
	}
	// Moving to where it is already is no move, so a repeat does no harm.
	err = a.slowMaster(ctx, op, "MoveRegion", req, &pb.MoveRegionResponse{}, session.Safe)
	return fault.Wrap(op, region, err)
}

// AssignRegion opens a region (full or encoded name) on a server of the
// master's choice.
func (a *Admin) AssignRegion(ctx context.Context, region string) error {
	const op = "assign region"
	spec, err := a.regionForMaster(ctx, op, region)
	if err != nil {
		return err
	}
	err = a.slowMaster(ctx, op, "AssignRegion", &pb.AssignRegionRequest{Region: spec}, &pb.AssignRegionResponse{}, session.Safe)
	return fault.Wrap(op, region, err)
}

// UnassignRegion closes a region (full or encoded name); it stays closed until
// AssignRegion.
func (a *Admin) UnassignRegion(ctx context.Context, region string) error {
	const op = "unassign region"
	spec, err := a.regionForMaster(ctx, op, region)
	if err != nil {
		return err
	}
	err = a.slowMaster(ctx, op, "UnassignRegion", &pb.UnassignRegionRequest{Region: spec}, &pb.UnassignRegionResponse{}, session.Safe)
	return fault.Wrap(op, region, err)
}

// regionForMaster names a region by its full name: assign and unassign, unlike
// move and merge, do not know regions by their encoded names.
func (a *Admin) regionForMaster(ctx context.Context, op, name string) (*pb.RegionSpecifier, error) {
	if strings.Contains(name, ",") {
		return regionByName([]byte(name)), nil
	}
	loc, err := a.FindRegion(ctx, name)
	if err != nil {
		return nil, fault.Wrap(op, name, err)
	}
	return regionByName(loc.Region.Name()), nil
}

// SplitRegion splits a region (full or encoded name) at a row, or, with no row,
// where the server thinks best.
func (a *Admin) SplitRegion(ctx context.Context, region string, row []byte) error {
	const op = "split region"
	loc, err := a.FindRegion(ctx, region)
	if err != nil {
		return fault.Wrap(op, region, err)
	}
	return a.split(ctx, op, loc.Region, row)
}

func (a *Admin) split(ctx context.Context, op string, r Region, row []byte) error {
	if len(row) > 0 {
		if bytes.Equal(row, r.Start) {
			return invalid(op, r.String(), "begins with the split row already")
		}
		if !r.Contains(row) {
			return invalid(op, r.String(), fmt.Sprintf("does not hold the split row %q", cells.QuoteShort(row, 64)))
		}
	}
	req := &pb.SplitTableRegionRequest{RegionInfo: r.ToProto()}
	if len(row) > 0 {
		req.SplitRow = row
	}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, r.String(), "SplitRegion", req, &pb.SplitTableRegionResponse{})
}

// SplitTable splits the region that holds row, or, with no row, every region
// of the table where the server thinks best; regions that cannot be split are
// passed over, unless none could.
func (a *Admin) SplitTable(ctx context.Context, table string, row []byte) error {
	const op = "split table"
	regions, err := a.Regions(ctx, table)
	if err != nil {
		return err
	}
	var errs []error
	done := 0
	for _, r := range regions {
		if len(row) > 0 && !r.Region.Contains(row) {
			continue
		}
		if err := a.split(ctx, op, r.Region, row); err != nil {
			errs = append(errs, err)
			continue
		}
		done++
	}
	if len(row) > 0 || done == 0 {
		return errors.Join(errs...)
	}
	return nil
}

// MergeRegions merges two or more regions (full or encoded names). They must be
// neighbours unless force is set.
func (a *Admin) MergeRegions(ctx context.Context, regions []string, force bool) error {
	const op = "merge regions"
	if len(regions) < 2 {
		return invalid(op, "regions", "are fewer than two")
	}
	req := &pb.MergeTableRegionsRequest{Forcible: &force}
	for _, r := range regions {
		encoded, err := encodedName(op, r)
		if err != nil {
			return err
		}
		req.Region = append(req.Region, regionByEncoded(encoded))
	}
	req.NonceGroup, req.Nonce = a.nonces()
	return a.run(ctx, op, strings.Join(regions, " "), "MergeTableRegions", req, &pb.MergeTableRegionsResponse{})
}

// Flush writes the memory of all regions of a table to files.
func (a *Admin) Flush(ctx context.Context, table string) error {
	return a.eachRegion(ctx, "flush", table, func(ctx context.Context, r Region) error {
		return a.flushRegion(ctx, "flush", r, "")
	})
}

// Compact asks all regions of a table to merge some of their files; family ""
// means all families. It does not wait for it: see [Admin.CompactionState].
func (a *Admin) Compact(ctx context.Context, table, family string) error {
	return a.compact(ctx, "compact", table, family, false)
}

// MajorCompact asks all regions of a table to rewrite all their files, dropping
// what is deleted and expired.
func (a *Admin) MajorCompact(ctx context.Context, table, family string) error {
	return a.compact(ctx, "major compact", table, family, true)
}

func (a *Admin) compact(ctx context.Context, op, table, family string, major bool) error {
	return a.eachRegion(ctx, op, table, func(ctx context.Context, r Region) error {
		return a.compactRegion(ctx, op, r, family, major)
	})
}

// CompactionState is what compactions run.
type CompactionState uint8

// The states; they are flags, so that those of regions can be joined.
const (
	NotCompacting   CompactionState = 0
	MinorCompacting CompactionState = 1
	MajorCompacting CompactionState = 2
)

// String gives HBase's name.
func (s CompactionState) String() string {
	return pb.GetRegionInfoResponse_CompactionState(s).String()
}

// CompactionState joins the states of all regions of a table.
func (a *Admin) CompactionState(ctx context.Context, table string) (CompactionState, error) {
	var mu sync.Mutex
	var state CompactionState
	err := a.eachRegion(ctx, "compaction state", table, func(ctx context.Context, r Region) error {
		one, err := a.compactionState(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		state |= one
		return err
	})
	return state, err
}

// regionAdmin performs an AdminService call where the region is.
func (a *Admin) regionAdmin(ctx context.Context, op, method string, r Region, param func(*pb.RegionSpecifier) wire.Marshaler, result wire.Unmarshaler) error {
	_, err := a.core.CallRegion(ctx, &session.RegionCall{
		Table: r.Table, Row: r.Start, Service: session.AdminService, Method: method, Op: op,
		Param:  func(region []byte, _ int) (wire.Marshaler, []byte) { return param(regionByName(region)), nil },
		Result: result, Idempotency: session.Safe,
	})
	return fault.Wrap(op, "region "+r.String(), err)
}

// regionWorkers bounds how many regions of a table are worked on at a time:
// enough to use all servers of a small cluster, few enough not to swamp one.
const regionWorkers = 8

// eachRegion does f for all regions of a table, several at a time.
func (a *Admin) eachRegion(ctx context.Context, op, table string, f func(context.Context, Region) error) error {
	regions, err := a.Regions(ctx, table)
	if err != nil {
		return fault.Wrap(op, table, err)
	}
	return inParallel(regions, func(r RegionLocation) error { return f(ctx, r.Region) })
}

// ServerRegions lists the regions a server has open, by name.
func (a *Admin) ServerRegions(ctx context.Context, server ServerName) ([]Region, error) {
	const op = "list regions of server"
	var resp pb.GetOnlineRegionResponse
	_, err := a.core.CallServer(ctx, server, &session.ServerCall{
		Service: session.AdminService, Method: "GetOnlineRegion", Op: op,
		Param: &pb.GetOnlineRegionRequest{}, Result: &resp, Idempotency: session.Safe,
	})
	if err != nil {
		return nil, fault.Wrap(op, server.String(), err)
	}
	out := make([]Region, len(resp.RegionInfo))
	for i, p := range resp.RegionInfo {
		out[i] = meta.RegionFromProto(p)
	}
	slices.SortFunc(out, func(a, b Region) int { return meta.CompareRows(a.Name(), b.Name()) })
	return out, nil
}

// StopServer asks a region server to stop, closing its regions in good order.
func (a *Admin) StopServer(ctx context.Context, server ServerName, reason string) error {
	_, err := a.core.CallServer(ctx, server, &session.ServerCall{
		Service: session.AdminService, Method: "StopServer", Op: "stop server",
		Param: &pb.StopServerRequest{Reason: &reason}, Result: &pb.StopServerResponse{}, Idempotency: session.Unsafe,
	})
	return fault.Wrap("stop server", server.String(), err)
}
