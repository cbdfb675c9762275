package regionserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// aimMulti says what a Multi is about: its first region, and its rows (some).
func (s *Server) aimMulti(c *rpcserver.Call, in *pb.MultiRequest) {
	const some = 1024
	for i, ra := range in.GetRegionAction() {
		if i == 0 {
			s.aim(c, ra.GetRegion(), nil)
		}
		c.Target.NumRows += len(ra.GetAction())
		for _, a := range ra.GetAction() {
			if len(c.Target.Rows) == some {
				break
			}
			row := a.GetGet().GetRow()
			if a.Mutation != nil {
				row = a.GetMutation().GetRow()
			}
			if row != nil {
				c.Target.Rows = append(c.Target.Rows, row)
			}
		}
	}
	if n := len(in.GetRegionAction()); n > 1 {
		c.Target.Detail = fmt.Sprintf("%d region actions", n)
	}
}

// multiCall is a Multi at work.
type multiCall struct {
	s     *Server
	ctx   context.Context
	call  *rpcserver.Call
	block wire.CellReader
	group uint64 // nonce group
	size  int64  // of the answer's cells so far
	out   *pb.MultiResponse
	paid  *charge // of the region action at work
}

// multi is ClientService.Multi. Errors of regions and actions go into the
// answer; what fails the whole call is a server that is ending, or an action
// that cannot be read.
func (s *Server) multi(ctx context.Context, c *rpcserver.Call, in *pb.MultiRequest) (*pb.MultiResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	block, err := c.Cells()
	if err != nil {
		return nil, err
	}
	m := &multiCall{s: s, ctx: ctx, call: c, block: block, group: in.GetNonceGroup(), out: &pb.MultiResponse{}}
	for i, ra := range in.GetRegionAction() {
		cond := ra.GetCondition()
		// Before 2.4 the condition stood on the request, for one region action.
		old := in.Condition != nil
		if old {
			if i > 0 {
				break
			}
			cond = in.GetCondition()
		}
		rar := &pb.RegionActionResult{}
		m.out.RegionActionResult = append(m.out.RegionActionResult, rar)
		if err := m.region(ra, cond, old, rar); err != nil {
			return nil, err
		}
	}
	if in.Condition != nil && len(in.GetRegionAction()) == 0 {
		m.out.Processed = new(true)
	}
	return m.out, nil
}

// region does one region action. An error fails the whole call.
func (m *multiCall) region(ra *pb.RegionAction, cond *pb.Condition, old bool, out *pb.RegionActionResult) error {
	// The cells of this region action are taken first: whatever happens to it,
	// the next one's come behind them.
	lists := make([][]cells.Cell, len(ra.GetAction()))
	for i, a := range ra.GetAction() {
		if a.Mutation == nil {
			continue
		}
		var err error
		if lists[i], err = takeCells(&m.block, a.Mutation); err != nil {
			return err
		}
	}
	r, err := m.s.enter(ra.GetRegion())
	if err != nil {
		out.Exception = rpcserver.ToRemote(err).Named()
		return nil
	}
	defer r.leave()
	if m.paid, err = m.s.admit(m.call, r, costOf(ra, cond != nil)); err != nil {
		out.Exception = rpcserver.ToRemote(err).Named()
		return nil
	}
	defer m.paid.end()
	for i, list := range lists {
		m.paid.wrote(ra.GetAction()[i].GetMutation(), list)
	}
	switch {
	case cond != nil:
		return m.conditional(r, ra, cond, old, lists, out)
	case ra.GetAtomic():
		if err := m.atomic(r, ra, lists, out); err != nil {
			if failsCall(err) {
				return err
			}
			out.Exception = rpcserver.ToRemote(err).Named()
			out.ResultOrException = nil
		}
	default:
		return m.plain(r, ra, lists, out)
	}
	return nil
}

// mutationOf gives the mutation of an action that may be nothing else.
func mutationOf(a *pb.Action) (*pb.MutationProto, error) {
	switch {
	case a.Get != nil:
		return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, "Atomic put and/or delete only, not a Get=row: \""+protoText(a.GetGet().GetRow())+"\"")
	case a.Mutation == nil:
		return nil, wire.NewRemoteError(wire.ClassDoNotRetryIO, "Atomic put and/or delete only, not a service call")
	}
	return a.Mutation, checkKind(a.Mutation)
}

// protoText writes bytes as protobuf's text format does, cut to a reasonable
// length.
func protoText(b []byte) string {
	var out strings.Builder
	for _, c := range b[:min(len(b), 512)] {
		switch {
		case c == '"', c == '\'', c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\r':
			out.WriteString(`\r`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// conditional does a region action with a condition. Its results are inline,
// those of increments and appends together in the first entry.
func (m *multiCall) conditional(r *region, ra *pb.RegionAction, cond *pb.Condition, old bool, lists [][]cells.Cell, out *pb.RegionActionResult) error {
	res, err := m.s.checkAndMutate(m.ctx, r, cond, ra.GetAction(), lists, m.group)
	if err != nil {
		if x, ok := errors.AsType[*unreadable](err); ok {
			return x.error
		}
		out.Exception = rpcserver.ToRemote(err).Named()
		return nil
	}
	if old {
		m.out.Processed = new(res.Processed)
	} else {
		out.Processed = new(res.Processed)
	}
	for i := range ra.GetAction() {
		re := &pb.ResultOrException{Index: new(uint32(i))}
		if i == 0 && !old && res.Processed && hasResults(ra.GetAction()) {
			re.Result = inlineResult(res.Cells, false)
		}
		out.ResultOrException = append(out.ResultOrException, re)
	}
	return nil
}

// atomic does a region action all or nothing.
func (m *multiCall) atomic(r *region, ra *pb.RegionAction, lists [][]cells.Cell, out *pb.RegionActionResult) error {
	rows, err := m.rows(r, ra.GetAction(), lists)
	if err != nil {
		return err
	}
	if err := r.writable(m.ctx); err != nil {
		return err
	}
	for _, rm := range rows {
		if err := spaceForbids(m.s.space(r), rm.Ops...); err != nil {
			return err
		}
	}
	for _, rm := range rows {
		if err := r.checkRange(rm.Row, "batchMutate"); err != nil {
			return err
		}
	}
	r.writes.Add(1)
	var list []cells.Cell
	if len(rows) == 1 {
		res, err := r.Table.MutateRow(m.ctx, rows[0])
		if err != nil {
			return r.explain(err)
		}
		list = res.Cells
	} else if len(rows) > 1 {
		if _, err := r.Table.MutateRows(m.ctx, rows, nil); err != nil {
			return r.explain(err)
		}
	}
	out.Processed = new(true)
	m.out.Processed = new(true) // for clients before 2.4
	// Where there is nothing to do, HBase answers the first of it all the same.
	for i := range max(1, len(ra.GetAction())) {
		re := &pb.ResultOrException{Index: new(uint32(i))}
		if i == 0 && hasResults(ra.GetAction()) {
			re.Result = inlineResult(list, false)
		} else {
			re.Result = blockResult(0)
		}
		out.ResultOrException = append(out.ResultOrException, re)
	}
	return nil
}

// rows reads mutations and puts those of one row together, in the order of
// the rows' first mutations.
func (m *multiCall) rows(r *region, actions []*pb.Action, lists [][]cells.Cell) ([]*store.RowMutation, error) {
	var rows []*store.RowMutation
	byRow := make(map[string]*store.RowMutation, 1)
	for i, a := range actions {
		p, err := mutationOf(a)
		if err != nil {
			return nil, err
		}
		mu, err := readMutation(p, lists[i], m.group)
		if err != nil {
			return nil, err
		}
		rm := byRow[string(mu.row)]
		if rm == nil {
			rm = &store.RowMutation{Row: mu.row, Memstore: r.mem}
			byRow[string(mu.row)] = rm
			rows = append(rows, rm)
		}
		rm.Ops = append(rm.Ops, mu.op)
	}
	return rows, nil
}

// plain does a region action whose actions succeed or fail each on its own.
// Puts and deletes are collected and applied together before the next
// increment or append, and at the end; gets are answered at once. An error
// fails the whole call: that is what HBase does with an action whose check is
// an IllegalArgumentException.
func (m *multiCall) plain(r *region, ra *pb.RegionAction, lists [][]cells.Cell, out *pb.RegionActionResult) error {
	var collected []int
	flush := func() error {
		if len(collected) == 0 {
			return nil
		}
		err := m.batch(r, ra, collected, lists, out)
		collected = collected[:0]
		return err
	}
	limit := m.s.cfg.MaxResultBytes
	for i, a := range ra.GetAction() {
		if m.size > limit && m.call.Conn.Version().AtLeast(1, 2) {
			x := wire.NewRemoteError(wire.ClassMultiActionResultTooLarge, fmt.Sprintf("Max size exceeded CellSize: %d BlockSize: 0", m.size))
			out.ResultOrException = append(out.ResultOrException, &pb.ResultOrException{Index: a.Index, Exception: x.Named()})
			continue
		}
		var res *pb.Result
		var err error
		switch {
		case a.Get != nil:
			var list []cells.Cell
			if list, err = m.s.read(r, a.Get); err == nil {
				m.paid.read(list)
				if a.GetGet().GetExistenceOnly() {
					res = existsResult(r, len(list) > 0)
				} else {
					res = r.stamp(m.result(list))
				}
			}
		case a.ServiceCall != nil:
			if err = flush(); err != nil {
				return err
			}
			var value *pb.NameBytesPair
			if value, err = m.s.callService(m.ctx, r, a.ServiceCall); err == nil {
				out.ResultOrException = append(out.ResultOrException, &pb.ResultOrException{Index: a.Index,
					ServiceResult: &pb.CoprocessorServiceResult{Value: value}})
				continue
			}
		case a.Mutation == nil:
			err = wire.NewRemoteError(wire.ClassHBaseIO, "Unexpected Action type")
		case checkKind(a.Mutation) != nil:
			err = checkKind(a.Mutation)
		case a.Mutation.GetMutateType() == pb.MutationProto_PUT, a.Mutation.GetMutateType() == pb.MutationProto_DELETE:
			collected = append(collected, i)
			continue
		default:
			if err = flush(); err != nil {
				return err
			}
			var mu *mutation
			if mu, err = readMutation(a.Mutation, lists[i], m.group); err == nil {
				var done store.MutateResult
				if done, err = m.s.apply(m.ctx, r, mu); err == nil {
					res = m.result(done.Cells)
				}
			}
		}
		if failsCall(err) {
			return err
		}
		re := &pb.ResultOrException{Index: a.Index, Result: res}
		if err != nil {
			re.Exception = rpcserver.ToRemote(err).Named()
		}
		out.ResultOrException = append(out.ResultOrException, re)
	}
	return flush()
}

// failsCall tells the checks that in HBase are no IOExceptions: inside a Multi
// they end the whole call.
func failsCall(err error) bool {
	x, ok := err.(*cells.Exception)
	return ok && x.Class == cells.ClassIOException
}

// result puts a result's cells where the connection wants them.
func (m *multiCall) result(list []cells.Cell) *pb.Result {
	m.size += sizeOf(list)
	return m.s.reply(m.call, list)
}

// batch applies collected puts and deletes.
func (m *multiCall) batch(r *region, ra *pb.RegionAction, collected []int, lists [][]cells.Cell, out *pb.RegionActionResult) error {
	rows := make([]*store.RowMutation, 0, len(collected))
	errs := make([]error, len(collected))
	at := make([]int, 0, len(collected)) // of rows, in collected
	schema, space := r.schema(), m.s.space(r)
	var whole error // fails all of them
	if err := r.writable(m.ctx); err != nil {
		whole = err
	}
	for k, i := range collected {
		mu, err := readMutation(ra.Action[i].Mutation, lists[i], m.group)
		if err != nil {
			if failsCall(err) {
				return err
			}
			whole = err
			break
		}
		// One cell over the limit fails the whole collection, in HBase too.
		if err := checkSizes(schema, mu); err != nil {
			whole = err
			break
		}
		// So does one for which there is no room.
		if err := spaceForbids(space, mu.op); err != nil {
			whole = err
			break
		}
		if err := r.checkPlace(mu); err != nil {
			errs[k] = err
			continue
		}
		rows, at = append(rows, &store.RowMutation{Row: mu.row, Ops: []store.Op{mu.op}, Memstore: r.mem}), append(at, k)
	}
	if whole == nil && len(rows) > 0 {
		r.writes.Add(uint64(len(rows)))
		_, failed := r.Table.MutateBatch(m.ctx, rows)
		for j, k := range at {
			errs[k] = r.explain(failed[j])
		}
	}
	// HBase sorts them by row to lock in order, and answers in that order.
	order := make([]int, len(collected))
	for k := range order {
		order[k] = k
	}
	if whole == nil {
		rowOf := func(k int) []byte {
			p, list := ra.Action[collected[k]].Mutation, lists[collected[k]]
			if p.Row == nil && len(list) > 0 {
				return list[0].Row
			}
			return p.GetRow()
		}
		slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(rowOf(a), rowOf(b)) })
	}
	for _, k := range order {
		i := collected[k]
		re := &pb.ResultOrException{Index: ra.Action[i].Index}
		err := errs[k]
		if whole != nil {
			err = whole
		}
		if err != nil {
			re.Exception = rpcserver.ToRemote(err).Named()
		} else {
			re.Result = blockResult(0)
		}
		out.ResultOrException = append(out.ResultOrException, re)
	}
	return nil
}

// checkSizes refuses a mutation with a cell over the table's limit.
func checkSizes(schema *cells.Schema, m *mutation) error {
	if schema.MaxCellSize <= 0 {
		return nil
	}
	i := slices.IndexFunc(m.op.Cells, func(c cells.Cell) bool { return wire.KeyValueCodec.CellSize(&c) > schema.MaxCellSize })
	if i < 0 {
		return nil
	}
	c := &m.op.Cells[i]
	return wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("Cell[%s/seqid=0] with size %d exceeds limit of %d bytes",
		c, wire.KeyValueCodec.CellSize(c), schema.MaxCellSize))
}
