package regionserver

import (
	"bytes"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/cells/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// Attributes of requests that mean something to the server.
const (
	attrRaw       = "_raw_"
	attrIsolation = "_isolationlevel_"
	attrTTL       = "_ttl"
	attrResults   = "_rr_"
)

// checkRow refuses rows HBase's clients refuse. On the server such a check is
// an IllegalArgumentException, which arrives as a plain IOException.
func checkRow(row []byte) error {
	if len(row) == 0 {
		return cells.IOException("Row length is 0")
	}
	if len(row) > cells.MaxRowLength {
		return cells.IOException(fmt.Sprintf("Row length %d is > %d", len(row), cells.MaxRowLength))
	}
	return nil
}

func timeRange(t *pb.TimeRange) (cells.TimeRange, error) {
	if t == nil {
		return cells.AllTime, nil
	}
	r := cells.AllTime
	if t.From != nil {
		r.Min = int64(t.GetFrom())
	}
	if t.To != nil {
		r.Max = int64(t.GetTo())
	}
	return cells.NewTimeRange(r.Min, r.Max)
}

func attribute(list []*pb.NameBytesPair, name string) ([]byte, bool) {
	for _, a := range list {
		if a.GetName() == name {
			return a.GetValue(), true
		}
	}
	return nil, false
}

// javaTrue reads a boolean attribute as Bytes.toBoolean does.
func javaTrue(b []byte) bool { return len(b) == 1 && b[0] != 0 }

// common fills what Get and Scan share.
func common(q *cells.Query, columns []*pb.Column, tr *pb.TimeRange, families []*pb.ColumnFamilyTimeRange, f *pb.Filter, attributes []*pb.NameBytesPair) (err error) {
	if q.Range, err = timeRange(tr); err != nil {
		return err
	}
	for _, ft := range families {
		r, err := timeRange(ft.GetTimeRange())
		if err != nil {
			return err
		}
		q.SetFamilyRange(ft.GetColumnFamily(), r)
	}
	if q.Filter, err = filter.Parse(f); err != nil {
		return err
	}
	for _, c := range columns {
		if len(c.GetQualifier()) == 0 {
			q.AddFamily(c.GetFamily())
		}
		for _, qualifier := range c.GetQualifier() {
			q.AddColumn(c.GetFamily(), qualifier)
		}
	}
	if b, ok := attribute(attributes, attrIsolation); ok && len(b) == 1 {
		q.Uncommitted = b[0] == 1
	}
	return nil
}

// getQuery reads a Get (ProtobufUtil.toGet).
func getQuery(g *pb.Get) (*cells.Query, error) {
	if g.GetClosestRowBefore() {
		return nil, wire.NewRemoteError(wire.ClassUnknownProtocol,
			"Is this a pre-hbase-1.0.0 or asynchbase client? Client is invoking getClosestRowBefore removed in hbase-2.0.0 replaced by reverse Scan.")
	}
	if err := checkRow(g.GetRow()); err != nil {
		return nil, err
	}
	q := cells.NewQuery()
	if g.MaxVersions != nil {
		if q.MaxVersions = int(int32(g.GetMaxVersions())); q.MaxVersions <= 0 {
			return nil, cells.IOException("versions must be positive")
		}
	}
	if g.StoreLimit != nil {
		q.StoreLimit = int(int32(g.GetStoreLimit()))
	}
	q.StoreOffset = int(int32(g.GetStoreOffset()))
	if err := common(q, g.GetColumn(), g.GetTimeRange(), g.GetCfTimeRange(), g.GetFilter(), g.GetAttribute()); err != nil {
		return nil, err
	}
	return q, nil
}

// scanSpec reads a Scan (ProtobufUtil.toScan); the region's bounds are the
// caller's to add.
func scanSpec(p *pb.Scan) (*cells.ScanSpec, error) {
	q := cells.NewQuery()
	spec := &cells.ScanSpec{
		Start: p.GetStartRow(), Stop: p.GetStopRow(),
		IncludeStart: p.GetIncludeStartRow(), IncludeStop: p.GetIncludeStopRow(),
		Reversed: p.GetReversed(), Query: q,
		LoadAll: p.LoadColumnFamiliesOnDemand != nil && !p.GetLoadColumnFamiliesOnDemand(),
	}
	for _, row := range [][]byte{spec.Start, spec.Stop} {
		if len(row) > cells.MaxRowLength {
			return nil, cells.IOException(fmt.Sprintf("row's length must be less than or equal to %d to meet the criteria for a row key.", cells.MaxRowLength))
		}
	}
	if p.IncludeStopRow == nil && len(spec.Start) > 0 && bytes.Equal(spec.Start, spec.Stop) {
		// Clients before 1.4 know no flag and mean a Get.
		spec.IncludeStop = true
	}
	if p.MaxVersions != nil {
		q.MaxVersions = int(int32(p.GetMaxVersions()))
	}
	if p.StoreLimit != nil {
		q.StoreLimit = int(int32(p.GetStoreLimit()))
	}
	q.StoreOffset = int(int32(p.GetStoreOffset()))
	if b, ok := attribute(p.GetAttribute(), attrRaw); ok {
		q.Raw = javaTrue(b)
	}
	if err := common(q, p.GetColumn(), p.GetTimeRange(), p.GetCfTimeRange(), p.GetFilter(), p.GetAttribute()); err != nil {
		return nil, err
	}
	if int32(p.GetBatchSize()) > 0 && q.Filter != nil && q.Filter.HasFilterRow() {
		return nil, cells.IOException("Cannot set batch on a scan using a filter that returns true for filter.hasFilterRow")
	}
	return spec, nil
}

// cellProto is a cell inside a message.
func cellProto(c *cells.Cell) *pb.Cell {
	t := pb.CellType(c.Type)
	return &pb.Cell{Row: c.Row, Family: notNil(c.Family), Qualifier: notNil(c.Qualifier), Timestamp: new(uint64(c.Timestamp)), CellType: &t, Value: notNil(c.Value)}
}

func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// inlineResult is a Result that holds its cells.
func inlineResult(list []cells.Cell, partial bool) *pb.Result {
	r := &pb.Result{Cell: make([]*pb.Cell, len(list)), Stale: new(false)}
	for i := range list {
		r.Cell[i] = cellProto(&list[i])
	}
	if partial {
		r.Partial = new(true)
	}
	return r
}

// blockResult is a Result whose n cells travel in the cell block.
func blockResult(n int) *pb.Result {
	return &pb.Result{AssociatedCellCount: new(int32(n)), Stale: new(false)}
}

// sizeOf is the size of cells as limits count it.
func sizeOf(list []cells.Cell) (n int64) {
	for i := range list {
		n += int64(list[i].HeapSize())
	}
	return n
}
