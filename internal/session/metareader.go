package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// metaReader reads hbase:meta for the route cache: one request each, over
// meta's own route, never repeated here. It implements route.Source and
// route.TableStates.
type metaReader struct{ core *Core }

// maxMetaRows bounds what one page may ask for.
const maxMetaRows = 10_000

// call makes one attempt on meta's region, or on a replica of it.
func (m metaReader) call(ctx context.Context, replica *route.Replica, call *RegionCall) (Answer, error) {
	r := m.core.routes.Lookup(meta.MetaTable, nil)
	if r == nil && replica == nil {
		var err error
		if r, err = m.core.routes.Locate(ctx, meta.MetaTable, nil); err != nil {
			return Answer{}, err
		}
	}
	call.Table, call.Priority, call.Op, call.internal = meta.MetaTable, systemPriority, "read meta", true
	a, err := m.core.readMeta(ctx, r, replica, call)
	if err != nil {
		if attempt, ok := errors.AsType[*AttemptError](err); ok {
			err = attempt.Err
		}
		if replica != nil {
			return a, fmt.Errorf("%s on %s, replica %d: %w", call.Method, replica.Server.Name(), replica.ID, err)
		}
		return a, fmt.Errorf("%s on %s: %w", call.Method, r.Server().Name(), err)
	}
	return a, nil
}

// told tells the hooks of a read.
func (m metaReader) told(ctx context.Context, kind string, asked, found int, began time.Time, err error) {
	read := MetaRead{Kind: kind, Asked: max(asked, 1), Found: found, Start: began, Took: time.Since(began), Err: err}
	if r := m.core.routes.Lookup(meta.MetaTable, nil); r != nil && r.Server() != nil {
		read.Server = r.Server().Name()
	}
	m.core.hooks.metaRead(ctx, read)
}

func metaSpecifier() *pb.RegionSpecifier {
	return &pb.RegionSpecifier{
		Type:  pb.RegionSpecifier_REGION_NAME.Enum(),
		Value: []byte(meta.MetaRegionName),
	}
}

// ScanMeta opens, reads and closes a scanner in one request.
func (m metaReader) ScanMeta(ctx context.Context, scan route.MetaScan) (locs []meta.Location, err error) {
	if m.core.hooks != nil {
		began := time.Now()
		defer func() { m.told(ctx, "scan", scan.Limit, len(locs), began, err) }()
	}
	rows := uint32(min(max(scan.Limit, 1), maxMetaRows))
	region, consistency := metaSpecifier(), pb.Consistency_STRONG
	if scan.Replica != nil {
		region.Value, consistency = scan.Replica.Name(), pb.Consistency_TIMELINE
	}
	req := &pb.ScanRequest{
		Region: region,
		Scan: &pb.Scan{
			Column:         []*pb.Column{{Family: []byte(meta.FamilyInfo)}},
			StartRow:       scan.StartRow,
			StopRow:        scan.StopRow,
			Reversed:       new(scan.Reversed),
			IncludeStopRow: new(scan.Reversed),
			Caching:        new(rows),
			ReadType:       pb.Scan_PREAD.Enum(),
			Consistency:    consistency.Enum(),
		},
		NumberOfRows: new(rows),
		LimitOfRows:  new(rows),
		CloseScanner: new(true),
	}
	var resp pb.ScanResponse
	a, err := m.call(ctx, scan.Replica, &RegionCall{
		Method: "Scan",
		Param:  func([]byte, int) (wire.Marshaler, []byte) { return req, nil },
		Result: &resp,
	})
	if err != nil {
		return nil, err
	}
	locs = make([]meta.Location, 0, max(len(resp.CellsPerResult), len(resp.Results)))
	add := func(row []cells.Cell) error {
		loc, ok, err := meta.ParseLocation(row)
		if err != nil {
			// One broken row must not hide the others; HBase skips it too.
			m.core.cfg.Logger.Warn("hbase:meta holds a row that cannot be read", "err", err)
			return nil
		}
		if ok {
			locs = append(locs, loc)
		}
		return nil
	}
	if err := eachResult(&resp, a.Cells, add); err != nil {
		return nil, unreadable(fmt.Errorf("scan meta: %w", err))
	}
	return locs, nil
}

// unreadable is an answer whose cells make no sense: like one whose message
// makes none, it did not come, and is asked for again.
func unreadable(err error) error { return &rpc.ConnError{Addr: "hbase:meta", Cause: err, Sent: true} }

// eachResult walks the rows of a scan's answer, in cell-block or inline form.
// The cells are valid during the call only; what they point to stays.
func eachResult(resp *pb.ScanResponse, block []byte, f func(row []cells.Cell) error) error {
	var row []cells.Cell
	var err error
	r := wire.KeyValueCodec.Reader(block)
	for _, n := range resp.CellsPerResult {
		if row, err = r.Take(int(n), row[:0]); err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	for _, res := range resp.Results {
		row = appendCells(row[:0], res.Cell)
		if row, err = r.Take(int(res.GetAssociatedCellCount()), row); err != nil {
			return err
		}
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// appendCells converts inline cells.
func appendCells(dst []cells.Cell, list []*pb.Cell) []cells.Cell {
	for _, c := range list {
		dst = append(dst, cells.Cell{
			Row: c.Row, Family: c.Family, Qualifier: c.Qualifier,
			Timestamp: int64(c.GetTimestamp()), Type: cells.Type(c.GetCellType()),
			Value: c.Value, Tags: c.Tags,
		})
	}
	return dst
}

// refused learns from an exception inside the answer to a Multi: that is where
// a server says that it does not have the region, not in place of the answer.
// If nobody listened, hbase:meta would be asked there for ever.
func (m metaReader) refused(r *route.Route, err error) error {
	if r != nil {
		d := retry.Classify(err, retry.Attempt{})
		m.core.feedRoute(r, err, d)
		m.core.feedServer(r.Server(), nil, true, time.Time{}, err, d)
	}
	return err
}

// GetMeta reads exactly these rows in one Multi.
func (m metaReader) GetMeta(ctx context.Context, rows [][]byte) (locs []*meta.Location, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	if m.core.hooks != nil {
		began := time.Now()
		defer func() { m.told(ctx, "get", len(rows), len(locs), began, err) }()
	}
	action := &pb.RegionAction{Region: metaSpecifier(), Action: make([]*pb.Action, len(rows))}
	column := []*pb.Column{{Family: []byte(meta.FamilyInfo)}}
	for i, row := range rows {
		action.Action[i] = &pb.Action{Index: new(uint32(i)), Get: &pb.Get{Row: row, Column: column}}
	}
	req := &pb.MultiRequest{RegionAction: []*pb.RegionAction{action}}
	var resp pb.MultiResponse
	a, err := m.call(ctx, nil, &RegionCall{
		Method: "Multi",
		Param:  func([]byte, int) (wire.Marshaler, []byte) { return req, nil },
		Result: &resp,
	})
	if err != nil {
		return nil, err
	}
	if len(resp.RegionActionResult) != 1 {
		return nil, &wire.FormatError{What: "answer to Multi", Detail: fmt.Sprintf("%d results for 1 region", len(resp.RegionActionResult))}
	}
	result := resp.RegionActionResult[0]
	if result.Exception != nil {
		return nil, m.refused(a.Route, wire.ParseNamed(result.Exception))
	}
	locs = make([]*meta.Location, len(rows))
	seen := make([]bool, len(rows))
	r := wire.KeyValueCodec.Reader(a.Cells)
	for _, roe := range result.ResultOrException {
		i := int(roe.GetIndex())
		if i >= len(rows) {
			return nil, &wire.FormatError{What: "answer to Multi", Detail: fmt.Sprintf("index %d of %d", i, len(rows))}
		}
		if roe.Exception != nil {
			return nil, m.refused(a.Route, wire.ParseNamed(roe.Exception))
		}
		row := appendCells(nil, roe.Result.GetCell())
		if row, err = r.Take(int(roe.Result.GetAssociatedCellCount()), row); err != nil {
			return nil, unreadable(fmt.Errorf("read meta: %w", err))
		}
		seen[i] = true
		loc, ok, err := meta.ParseLocation(row)
		if err != nil {
			return nil, err
		}
		if ok {
			locs[i] = &loc
		}
	}
	for i, ok := range seen {
		if !ok {
			return nil, &wire.FormatError{What: "answer to Multi", Detail: fmt.Sprintf("no result for action %d of %d", i, len(rows))}
		}
	}
	return locs, nil
}

// TableDisabled reads the table's state row. A table without one (HBase 1.x)
// counts as enabled.
func (m metaReader) TableDisabled(ctx context.Context, table meta.TableName) (_ bool, err error) {
	if m.core.hooks != nil {
		began := time.Now()
		defer func() { m.told(ctx, "table state", 1, 0, began, err) }()
	}
	req := &pb.GetRequest{
		Region: metaSpecifier(),
		Get: &pb.Get{
			Row:    []byte(table.String()),
			Column: []*pb.Column{{Family: []byte(meta.FamilyTable), Qualifier: [][]byte{[]byte("state")}}},
		},
	}
	var resp pb.GetResponse
	a, err := m.call(ctx, nil, &RegionCall{
		Method: "Get",
		Param:  func([]byte, int) (wire.Marshaler, []byte) { return req, nil },
		Result: &resp,
	})
	if err != nil {
		return false, err
	}
	row := appendCells(nil, resp.Result.GetCell())
	r := wire.KeyValueCodec.Reader(a.Cells)
	if row, err = r.Take(int(resp.Result.GetAssociatedCellCount()), row); err != nil {
		return false, unreadable(fmt.Errorf("read table state: %w", err))
	}
	for i := range row {
		if string(row[i].Family) != meta.FamilyTable || string(row[i].Qualifier) != "state" {
			continue
		}
		var state pb.TableState
		if err := state.UnmarshalVT(row[i].Value); err != nil {
			return false, fmt.Errorf("read table state: %w", err)
		}
		s := state.GetState()
		return s == pb.TableState_DISABLED || s == pb.TableState_DISABLING, nil
	}
	return false, nil
}

var (
	_ route.Source      = metaReader{}
	_ route.TableStates = metaReader{}
)
