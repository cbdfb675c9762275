package regionserver

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/cells/filter"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// mutation is a MutationProto read together with its cells.
type mutation struct {
	row []byte
	op  store.Op
}

// takeCells takes a mutation's cells out of the block. It is done for every
// mutation of a request in order, whatever becomes of it: the next one's cells
// come after.
func takeCells(block *wire.CellReader, p *pb.MutationProto) ([]cells.Cell, error) {
	n := int(p.GetAssociatedCellCount())
	if n <= 0 {
		return nil, nil
	}
	list, err := block.Take(n, nil)
	if err != nil {
		return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("Cell count of %d but %v", n, err))
	}
	return list, nil
}

// readMutation reads a MutationProto (ProtobufUtil.toPut, toDelete, ...); list
// are its cells from the block.
func readMutation(p *pb.MutationProto, list []cells.Cell, nonceGroup uint64) (*mutation, error) {
	m := &mutation{row: p.GetRow(), op: store.Op{
		Kind:       store.Kind(p.GetMutateType()),
		Timestamp:  cells.LatestTimestamp,
		TTL:        store.NoTTL,
		Durability: cells.Durability(p.GetDurability()),
	}}
	if p.MutateType == nil {
		// The first value of the enum is the default, and it is APPEND.
		m.op.Kind = store.Append
	}
	if p.Row == nil {
		if len(list) == 0 {
			return nil, cells.IOException("row cannot be null")
		}
		m.row = list[0].Row
	}
	if err := checkRow(m.row); err != nil {
		return nil, err
	}
	// An Increment or Append goes by its cells' timestamps alone.
	if p.Timestamp != nil && (m.op.Kind == store.Put || m.op.Kind == store.Delete) {
		m.op.Timestamp = int64(p.GetTimestamp())
		if err := checkTimestamp(m.op.Timestamp); err != nil {
			return nil, err
		}
	}
	var err error
	if len(list) > 0 {
		m.op.Cells, err = m.blockCells(list)
	} else {
		m.op.Cells, err = m.protoCells(p)
	}
	if err != nil {
		return nil, err
	}
	if b, ok := attribute(p.GetAttribute(), attrTTL); ok {
		if len(b) != 8 {
			return nil, cells.IOException(fmt.Sprintf("offset (0) + length (8) exceed the capacity of the array: %d", len(b)))
		}
		m.op.TTL = int64(binary.BigEndian.Uint64(b))
	}
	if m.op.Kind == store.Increment || m.op.Kind == store.Append {
		if b, ok := attribute(p.GetAttribute(), attrResults); ok {
			m.op.NoResult = !javaTrue(b)
		}
		if p.TimeRange != nil {
			if m.op.Range, err = timeRange(p.TimeRange); err != nil {
				return nil, err
			}
		}
		m.op.NonceGroup, m.op.Nonce = nonceGroup, p.GetNonce()
	}
	return m, nil
}

func checkTimestamp(ts int64) error {
	if ts < 0 {
		return cells.IOException(fmt.Sprintf("Timestamp cannot be negative. ts=%d", ts))
	}
	return nil
}

// blockCells checks cells that came in the block.
func (m *mutation) blockCells(list []cells.Cell) ([]cells.Cell, error) {
	for i := range list {
		c := &list[i]
		if !bytes.Equal(c.Row, m.row) {
			return nil, wire.NewRemoteError(wire.ClassWrongRowIO, "The row in "+c.String()+" doesn't match the original one "+cells.QuoteShort(m.row, 512))
		}
		if len(c.Family) == 0 {
			return nil, cells.IOException("Family cannot be null")
		}
		if err := checkTimestamp(c.Timestamp); err != nil {
			return nil, err
		}
		switch m.op.Kind {
		case store.Delete:
			if !c.Type.IsDelete() {
				return nil, cells.IOException("The recently added KeyValue is not of type delete. Rowkey: " + cells.QuoteShort(m.row, 512))
			}
		case store.Put:
			if c.Timestamp == cells.LatestTimestamp {
				c.Timestamp = m.op.Timestamp
			}
		}
	}
	return list, nil
}

// protoCells reads the cells inside the message.
func (m *mutation) protoCells(p *pb.MutationProto) ([]cells.Cell, error) {
	n := 0
	for _, cv := range p.GetColumnValue() {
		n += len(cv.GetQualifierValue())
	}
	if n == 0 {
		return nil, nil
	}
	list := make([]cells.Cell, 0, n)
	for _, cv := range p.GetColumnValue() {
		if len(cv.GetFamily()) == 0 {
			return nil, cells.IOException("Family cannot be null")
		}
		if len(cv.GetFamily()) > math.MaxInt8 {
			return nil, cells.IOException(fmt.Sprintf("Family > %d", math.MaxInt8))
		}
		for _, qv := range cv.GetQualifierValue() {
			c := cells.Cell{Row: m.row, Family: cv.GetFamily(), Qualifier: qv.GetQualifier(), Value: qv.GetValue(), Tags: qv.GetTags(),
				Type: cells.Put, Timestamp: m.op.Timestamp}
			if m.op.Kind == store.Delete {
				// The mutation's own timestamp is for the whole row only.
				c.Timestamp, c.Value = cells.LatestTimestamp, nil
			}
			if qv.Timestamp != nil {
				c.Timestamp = int64(qv.GetTimestamp())
			}
			if err := checkTimestamp(c.Timestamp); err != nil {
				return nil, err
			}
			switch {
			case m.op.Kind != store.Delete && qv.Value == nil:
				return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, "Missing required field: qualifier value")
			case m.op.Kind == store.Delete, m.op.Kind == store.Put && qv.DeleteType != nil:
				switch qv.GetDeleteType() {
				case pb.MutationProto_DELETE_ONE_VERSION:
					c.Type = cells.Delete
				case pb.MutationProto_DELETE_MULTIPLE_VERSIONS:
					c.Type = cells.DeleteColumn
				case pb.MutationProto_DELETE_FAMILY:
					c.Type = cells.DeleteFamily
				case pb.MutationProto_DELETE_FAMILY_VERSION:
					c.Type = cells.DeleteFamilyVersion
				default:
					return nil, cells.IOException(fmt.Sprintf("Unknown delete type: %d", qv.GetDeleteType()))
				}
				if c.Type == cells.DeleteFamily || c.Type == cells.DeleteFamilyVersion {
					c.Qualifier = nil
				}
				if c.Type == cells.DeleteFamily && m.op.Kind == store.Delete {
					// In HBase, Delete.addFamily throws away what was added for the
					// family before.
					list = slices.DeleteFunc(list, func(b cells.Cell) bool { return bytes.Equal(b.Family, c.Family) })
				}
				c.Value = nil
			}
			list = append(list, c)
		}
	}
	return list, nil
}

// checkKind refuses a mutation type this server does not know.
func checkKind(p *pb.MutationProto) error {
	if t := p.GetMutateType(); t < pb.MutationProto_APPEND || t > pb.MutationProto_DELETE {
		return wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("Unsupported mutate type: %d", t))
	}
	return nil
}

// condition reads a Condition.
func condition(p *pb.Condition) (*store.Condition, error) {
	if err := checkRow(p.GetRow()); err != nil {
		return nil, err
	}
	c := &store.Condition{Row: p.GetRow(), Family: p.GetFamily(), Qualifier: p.GetQualifier(), Op: store.CompareOp(p.GetCompareType())}
	var err error
	if c.Range, err = timeRange(p.GetTimeRange()); err != nil {
		return nil, err
	}
	if p.Filter != nil {
		if c.Filter, err = filter.Parse(p.Filter); err != nil {
			return nil, err
		}
		return c, nil
	}
	cmp := p.GetComparator()
	if cmp == nil {
		cmp = &pb.Comparator{Name: new("")}
	}
	comparator, err := filter.ParseComparator(cmp)
	if err != nil {
		// Outside of a filter HBase does not wrap the failure: it is retryable.
		if x, ok := err.(*cells.Exception); ok {
			return nil, cells.IOException(x.Message)
		}
		return nil, err
	}
	// Whatever the comparator, only its bytes are compared.
	c.Value = comparator.Value()
	return c, nil
}

// checkSameRow refuses a mutation of another row than the condition's.
func checkSameRow(cond *store.Condition, row []byte) error {
	if bytes.Equal(cond.Row, row) {
		return nil
	}
	return wire.NewRemoteError(wire.ClassDoNotRetryIO, "The row of the action <"+cells.QuoteShort(row, 512)+"> doesn't match the original one <"+cells.QuoteShort(cond.Row, 512)+">")
}
