package regionserver

import (
	"context"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func mutationDetail(in *pb.MutateRequest) string {
	kind := strings.ToLower(in.GetMutation().GetMutateType().String())
	if in.Condition != nil {
		return "check and " + kind
	}
	return kind
}

// mutate is ClientService.Mutate.
func (s *Server) mutate(ctx context.Context, c *rpcserver.Call, in *pb.MutateRequest) (*pb.MutateResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	r, err := s.enter(in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	if err := checkKind(in.GetMutation()); err != nil {
		return nil, err
	}
	paid, err := s.admit(c, r, costOf(&pb.RegionAction{Action: []*pb.Action{{Mutation: in.GetMutation()}}}, in.Condition != nil))
	if err != nil {
		return nil, err
	}
	defer paid.end()
	block, err := c.Cells()
	if err != nil {
		return nil, err
	}
	list, err := takeCells(&block, in.GetMutation())
	if err != nil {
		return nil, err
	}
	paid.wrote(in.GetMutation(), list)
	if len(c.Target.Rows) > 0 && len(c.Target.Rows[0]) == 0 && len(list) > 0 {
		c.Target.Rows[0] = list[0].Row
	}
	if in.Condition != nil {
		res, err := s.checkAndMutate(ctx, r, in.GetCondition(), []*pb.Action{{Mutation: in.GetMutation()}}, [][]cells.Cell{list}, in.GetNonceGroup())
		if err != nil {
			return nil, err
		}
		out := &pb.MutateResponse{Processed: new(res.Processed)}
		if hasResults([]*pb.Action{{Mutation: in.GetMutation()}}) && res.Processed {
			out.Result = s.reply(c, res.Cells)
		}
		return out, nil
	}
	m, err := readMutation(in.GetMutation(), list, in.GetNonceGroup())
	if err != nil {
		return nil, err
	}
	res, err := s.apply(ctx, r, m)
	if err != nil {
		return nil, err
	}
	if m.op.Kind == store.Put || m.op.Kind == store.Delete {
		return &pb.MutateResponse{Processed: new(true)}, nil
	}
	return &pb.MutateResponse{Result: s.reply(c, res.Cells)}, nil
}

// hasResults says whether an Increment or Append is among the actions.
func hasResults(list []*pb.Action) bool {
	for _, a := range list {
		if t := a.GetMutation().GetMutateType(); a.Mutation != nil && (t == pb.MutationProto_INCREMENT || t == pb.MutationProto_APPEND) {
			return true
		}
	}
	return false
}

// reply puts cells where the connection wants them.
func (s *Server) reply(c *rpcserver.Call, list []cells.Cell) *pb.Result {
	if c.Conn.CellBlocks() {
		c.ReplyCells(list...)
		return blockResult(len(list))
	}
	return inlineResult(list, false)
}

// writable refuses regions clients cannot write, and makes a generated one
// ready to be written.
func (r *region) writable(ctx context.Context) error {
	if r.Virtual != nil {
		return wire.NewRemoteError(wire.ClassDoNotRetryIO, "unsupported: writing to "+r.table+" (its rows are rendered from the cluster's catalog)")
	}
	if r.ReadOnly() || r.Info.Replica != 0 {
		return wire.NewRemoteError(wire.ClassDoNotRetryIO, "region is read only")
	}
	if r.Generated != nil && !r.Generated.Stored() {
		return r.Generated.Store(ctx)
	}
	return nil
}

// checkPlace refuses a row that is not the region's. Puts and deletes outside
// are a failed sanity check, which clients do not retry; the others a wrong
// region, which they do. That is HBase's doing.
func (r *region) checkPlace(m *mutation) error {
	if r.contains(m.row) {
		return nil
	}
	text := r.outOfRange(m.row, "batchMutate")
	if m.op.Kind == store.Put || m.op.Kind == store.Delete {
		return wire.NewRemoteError(wire.ClassFailedSanityCheck, text)
	}
	return wire.NewRemoteError(wire.ClassWrongRegion, text)
}

// apply does one unconditional mutation.
func (s *Server) apply(ctx context.Context, r *region, m *mutation) (store.MutateResult, error) {
	if err := r.writable(ctx); err != nil {
		return store.MutateResult{}, err
	}
	if err := checkSizes(r.schema(), m); err != nil {
		return store.MutateResult{}, err
	}
	if err := spaceForbids(s.space(r), m.op); err != nil {
		return store.MutateResult{}, err
	}
	if err := r.checkPlace(m); err != nil {
		return store.MutateResult{}, err
	}
	r.writes.Add(1)
	res, err := r.Table.MutateRow(ctx, &store.RowMutation{Row: m.row, Ops: []store.Op{m.op}, Memstore: r.mem})
	return res, r.explain(err)
}

// unreadable is a failed check that in HBase is no IOException: in a Multi it
// ends the whole call.
type unreadable struct{ error }

func (u *unreadable) Unwrap() error { return u.error }

// checkAndMutate does one row's mutations if the condition holds. One action is
// read behind the condition, several before it, and none need none, as in
// HBase.
func (s *Server) checkAndMutate(ctx context.Context, r *region, cond *pb.Condition, actions []*pb.Action, lists [][]cells.Cell, nonceGroup uint64) (store.MutateResult, error) {
	var none store.MutateResult
	if len(actions) == 0 {
		return store.MutateResult{Processed: true}, nil
	}
	single := len(actions) == 1
	var c *store.Condition
	var err error
	if single {
		if err := checkRow(cond.GetRow()); err != nil {
			return none, wire.NewRemoteError(wire.ClassDoNotRetryIO, err.(*cells.Exception).Message)
		}
		if c, err = condition(cond); err != nil {
			return none, err
		}
	}
	list := make([]*mutation, len(actions))
	for i, a := range actions {
		p := a.Mutation
		switch {
		case !single:
			p, err = mutationOf(a)
		case p == nil:
			p = &pb.MutationProto{}
		default:
			err = checkKind(p)
		}
		if err != nil {
			return none, err
		}
		if list[i], err = readMutation(p, lists[i], nonceGroup); err != nil {
			switch {
			case !failsCall(err):
			case single:
				err = wire.NewRemoteError(wire.ClassDoNotRetryIO, err.(*cells.Exception).Message)
			default:
				err = &unreadable{err}
			}
			return none, err
		}
	}
	if !single {
		if c, err = condition(cond); err != nil {
			return none, err
		}
	}
	rm := &store.RowMutation{Row: c.Row, Condition: c, Memstore: r.mem, Ops: make([]store.Op, 0, len(list))}
	for _, m := range list {
		if err := checkSameRow(c, m.row); err != nil {
			return none, err
		}
		if err := checkSizes(r.schema(), m); err != nil {
			return none, err
		}
		if err := spaceForbids(s.space(r), m.op); err != nil {
			return none, err
		}
		rm.Ops = append(rm.Ops, m.op)
	}
	if err := r.writable(ctx); err != nil {
		return none, err
	}
	if err := r.checkRange(c.Row, "doCheckAndRowMutate"); err != nil {
		return none, err
	}
	r.reads.Add(1)
	r.writes.Add(1)
	res, err := r.Table.MutateRow(ctx, rm)
	return res, r.explain(err)
}
