package hbase

import (
	"context"
	"fmt"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

const (
	multiRowService  = "MultiRowMutationService"
	multiRowEndpoint = "MultiRowMutationEndpoint"
)

// MutateRows applies Puts and Deletes of several rows of one region, all or
// nothing and unseen in between: the only transaction over rows that HBase has.
// Rows that lie in different regions are refused by the server. A table that
// wants it says so: it needs coprocessor MultiRowMutationEndpoint, and a split
// policy that keeps together what belongs together. (The embedded cluster has
// the endpoint everywhere.)
func (t *Table) MutateRows(ctx context.Context, ms ...Mutation) error {
	_, err := t.mutateRows(ctx, "mutate rows", nil, ms)
	return err
}

// CheckAndMutateRows is [Table.MutateRows] under conditions on rows of the same
// region, all of which must hold; applied says whether they did. It takes HBase
// 2.4.3 or later: older servers do not see conditions and apply the mutations
// regardless, which shows only afterwards, as [ErrUnsupported] with applied
// true. Conditions are CheckAndMutates without an action:
//
//	t.CheckAndMutateRows(ctx, []*hbase.CheckAndMutate{hbase.NewCheckAndMutate("a").IfNotExists("f", "q")}, put, del)
//
// Like CheckAndMutate it is not repeated once it may have been applied, and
// then returns [ErrUnknownOutcome].
func (t *Table) CheckAndMutateRows(ctx context.Context, conditions []*CheckAndMutate, ms ...Mutation) (applied bool, err error) {
	if len(conditions) == 0 {
		return false, invalid("check and mutate rows", "conditions", "are missing")
	}
	return t.mutateRows(ctx, "check and mutate rows", conditions, ms)
}

func (t *Table) mutateRows(ctx context.Context, op string, conditions []*CheckAndMutate, ms []Mutation) (bool, error) {
	if len(ms) == 0 {
		return false, invalid(op, "mutations", "are missing")
	}
	req := &pb.MutateRowsRequest{MutationRequest: make([]*pb.MutationProto, 0, len(ms)), NonceGroup: new(t.c.core.NonceGroup()), Nonce: new(t.c.core.NewNonce())}
	// The server checks no nonce here, so repeating is harmless only as far as
	// it is for each mutation.
	call := ServiceCall{Service: multiRowService, Method: "MutateRows", Unrepeatable: len(conditions) > 0}
	for _, m := range ms {
		if err := t.checkMutation(op, m); err != nil {
			return false, err
		}
		p, err := inlineMutation(op, m)
		if err != nil {
			return false, err
		}
		req.MutationRequest = append(req.MutationRequest, p)
		call.Unrepeatable = call.Unrepeatable || repeatable(m) != session.Safe
		call.Priority = max(call.Priority, m.options().Priority)
	}
	for i, c := range conditions {
		p, err := t.rowCondition(op, i, c)
		if err != nil {
			return false, err
		}
		req.Condition = append(req.Condition, p)
	}
	var err error
	if call.Request, err = req.MarshalVT(); err != nil {
		return false, err
	}
	ans, err := t.CallService(ctx, ms[0].RowKey(), &call)
	if err != nil {
		return false, t.wrap(op, err)
	}
	var resp pb.MutateRowsResponse
	if err := resp.UnmarshalVT(ans.Value); err != nil {
		return false, t.wrap(op, &fault.Unreadable{Err: err})
	}
	if resp.Processed == nil && len(conditions) > 0 {
		// Executed, and not what was asked for.
		return true, t.wrap(op, &fault.Unreadable{Err: fmt.Errorf("%w: it knows no conditions on several rows and has applied the mutations without looking at them", ErrUnsupported)})
	}
	return resp.Processed == nil || resp.GetProcessed(), nil
}

// rowCondition renders a condition that has no action.
func (t *Table) rowCondition(op string, i int, c *CheckAndMutate) (*pb.Condition, error) {
	if c == nil {
		return nil, invalid(op, fmt.Sprintf("condition %d", i), "is nil")
	}
	if c.Action != nil {
		return nil, invalid(op, fmt.Sprintf("condition %d", i), "has an action of its own")
	}
	whole := *c
	whole.Action = NewDelete(c.Row) // any, so that the rest can be checked
	if err := t.checkCheck(op, &whole); err != nil {
		return nil, err
	}
	return pbCondition(c)
}

// inlineMutation renders a Put or Delete with its cells inside, as services
// take it: they have no cell block.
func inlineMutation(op string, m Mutation) (*pb.MutationProto, error) {
	switch m.(type) {
	case *Put, *Delete:
	default:
		return nil, invalid(op, errRow(m.RowKey()), fmt.Sprintf("%T is none of Put, Delete: %s takes no other", m, multiRowEndpoint))
	}
	var room mutationRoom
	if _, err := fillMutation(&room, m, 0, nil); err != nil {
		return nil, err
	}
	p := &room.proto
	p.AssociatedCellCount = nil
	cs := m.mutation().cells
	for i := range cs {
		c := &cs[i]
		q := &pb.MutationProto_ColumnValue_QualifierValue{Qualifier: nonNil(c.Qualifier), Value: c.Value}
		if c.Timestamp != LatestTimestamp {
			q.Timestamp = new(uint64(c.Timestamp))
		}
		if c.Type != cells.Put {
			kind, ok := deleteTypes[c.Type]
			if !ok {
				return nil, invalid(op, cellName(c), "has type "+c.Type.String())
			}
			q.DeleteType = kind.Enum()
		} else {
			q.Value = nonNil(c.Value)
		}
		if len(c.Tags) > 0 {
			q.Tags = c.Tags
		}
		if n := len(p.ColumnValue); n > 0 && string(p.ColumnValue[n-1].Family) == string(c.Family) {
			p.ColumnValue[n-1].QualifierValue = append(p.ColumnValue[n-1].QualifierValue, q)
			continue
		}
		p.ColumnValue = append(p.ColumnValue, &pb.MutationProto_ColumnValue{Family: c.Family, QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{q}})
	}
	return p, nil
}

var deleteTypes = map[CellType]pb.MutationProto_DeleteType{
	cells.Delete:              pb.MutationProto_DELETE_ONE_VERSION,
	cells.DeleteColumn:        pb.MutationProto_DELETE_MULTIPLE_VERSIONS,
	cells.DeleteFamily:        pb.MutationProto_DELETE_FAMILY,
	cells.DeleteFamilyVersion: pb.MutationProto_DELETE_FAMILY_VERSION,
}
