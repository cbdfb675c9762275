package session

import (
	"bytes"
	"context"
	"fmt"
	"math"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// maxChangeBytes bounds an answer to a scan of changes.
const maxChangeBytes = 2 << 20

// ScanChanges opens, reads and closes a scanner in one request. All columns of
// the family are read, and of each only what was written since.
//
// Most of meta may be old, so that the server finds nothing for long: it is
// told that we can handle heartbeats, and answers in time with the row that it
// has come to. Answers may then be cut within a row, too; the row is read again.
func (m metaReader) ScanChanges(ctx context.Context, scan route.ChangeScan) (route.Changes, error) {
	rows := uint32(min(max(scan.Limit, 1), maxMetaRows))
	req := &pb.ScanRequest{
		Region: metaSpecifier(),
		Scan: &pb.Scan{
			Column:           []*pb.Column{{Family: []byte(meta.FamilyInfo)}},
			StartRow:         scan.StartRow,
			StopRow:          scan.StopRow,
			TimeRange:        &pb.TimeRange{From: new(uint64(max(scan.Since, 0))), To: new(uint64(math.MaxInt64))},
			Caching:          new(rows),
			MaxResultSize:    new(uint64(maxChangeBytes)),
			NeedCursorResult: new(true),
			ReadType:         pb.Scan_PREAD.Enum(),
		},
		NumberOfRows:            new(rows),
		CloseScanner:            new(true),
		ClientHandlesPartials:   new(true),
		ClientHandlesHeartbeats: new(true),
	}
	var resp pb.ScanResponse
	a, err := m.call(ctx, nil, &RegionCall{
		Method: "Scan",
		Param:  func([]byte, int) (wire.Marshaler, []byte) { return req, nil },
		Result: &resp,
	})
	if err != nil {
		return route.Changes{}, err
	}
	ch, err := m.changes(&resp, a.Cells, scan)
	if err != nil {
		return route.Changes{}, fmt.Errorf("scan changes of meta: %w", err)
	}
	return ch, nil
}

// changes reads the answer.
func (m metaReader) changes(resp *pb.ScanResponse, block []byte, scan route.ChangeScan) (route.Changes, error) {
	ch := route.Changes{Bytes: len(block)}
	results := max(len(resp.CellsPerResult), len(resp.Results))
	var last []byte // row of the last result
	cut := false    // the last result is only the beginning of its row
	i := 0
	var row []cells.Cell // of one row, in several results if they are partial
	flush := func() {
		if len(row) > 0 {
			m.change(&ch, row, scan.Wanted)
			row = row[:0]
		}
	}
	err := eachResult(resp, block, func(part []cells.Cell) error {
		partial := i < len(resp.PartialFlagPerResult) && resp.PartialFlagPerResult[i] ||
			i < len(resp.Results) && resp.Results[i].GetPartial()
		i++
		if len(part) == 0 {
			return nil
		}
		if !bytes.Equal(part[0].Row, last) {
			flush()
			ch.Rows++
		}
		last = part[0].Row
		row = append(row, part...)
		if cut = partial; !cut {
			flush()
		}
		return nil
	})
	if err != nil {
		return ch, err
	}
	switch {
	case cut:
		// The rest of this row is to come: it is read again. Its cells are not
		// lost to Newest, which would be wrong by what has not been read.
		ch.Next = last
		ch.Rows--
		if len(row) > 0 && ch.Rows == 0 && bytes.Equal(last, scan.StartRow) {
			return ch, &wire.FormatError{What: "answer to Scan", Detail: "one row of hbase:meta does not fit into an answer"}
		}
	case resp.GetHeartbeatMessage() && len(resp.GetCursor().GetRow()) > 0:
		ch.Next = resp.Cursor.GetRow()
	case resp.GetHeartbeatMessage() && last == nil:
		return ch, &wire.FormatError{What: "answer to Scan", Detail: "a heartbeat that does not say where it is"}
	case resp.GetHeartbeatMessage(), resp.GetMoreResultsInRegion() && resp.GetMoreResults() && last != nil:
		ch.Next = append(bytes.Clone(last), 0)
	case resp.MoreResultsInRegion == nil && results >= scan.Limit:
		ch.Next = append(bytes.Clone(last), 0) // HBase 1.0 does not say
	}
	if ch.Next != nil && meta.CompareRows(ch.Next, scan.StopRow) >= 0 {
		ch.Next = nil
	}
	return ch, nil
}

// change takes one row in.
func (m metaReader) change(ch *route.Changes, row []cells.Cell, wanted func([]byte) bool) {
	for i := range row {
		ch.Newest = max(ch.Newest, row[i].Timestamp)
	}
	table, _, named := bytes.Cut(row[0].Row, []byte(","))
	if !named || wanted != nil && !wanted(table) {
		return
	}
	loc, ok, err := meta.ParseLocation(row)
	if err != nil {
		m.core.cfg.Logger.Warn("hbase:meta holds a row that cannot be read", "err", err)
		return
	}
	c := route.Change{Location: loc}
	if !ok {
		region, good := meta.ParseRegionName(row[0].Row)
		if !good {
			return
		}
		if c.Location, good = meta.LocationOf(row, region); !good {
			return
		}
		c.NameOnly = true
	}
	ch.Locations = append(ch.Locations, c)
}

var _ route.ChangeSource = metaReader{}
