package hbase

import (
	"context"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// regionSpec is a region specifier together with what its pointers point at.
type regionSpec struct {
	spec pb.RegionSpecifier
	kind pb.RegionSpecifier_RegionSpecifierType
}

// set names the region by its full name, as data calls must: a region server
// takes an encoded name for a full one and does not find it.
func (s *regionSpec) set(region []byte) {
	s.kind = pb.RegionSpecifier_REGION_NAME
	s.spec.Type, s.spec.Value = &s.kind, region
}

// getCall is a lone Get: request, answer and call in one. It is kept for the
// next Get, since nothing of it is looked at any more once the session has
// returned: the request has been written into the connection's buffer, and the
// answer's cells lie in memory of their own.
type getCall struct {
	call  session.RegionCall
	names session.RegionNames
	req   pb.GetRequest
	spec  regionSpec
	get   pb.Get
	resp  getAnswer
}

func newGetCall() *getCall {
	c := new(getCall)
	c.req.Region, c.req.Get = &c.spec.spec, &c.get
	c.call = session.RegionCall{
		Method: "Get", Param: c.param, Names: &c.names, Result: &c.resp, Idempotency: session.Safe,
	}
	return c
}

func (c *getCall) param(region []byte, _ int) (wire.Marshaler, []byte) {
	c.spec.set(region)
	return &c.req, nil
}

// get does a lone Get. If only the existence is asked for, it gives no Result.
func (t *Table) get(ctx context.Context, op string, g *Get, existence bool) (res *Result, exists bool, err error) {
	c, ok := t.c.gets.Get().(*getCall)
	if !ok {
		c = newGetCall()
	}
	defer func() {
		// What is the caller's is not kept.
		c.get, c.resp, c.call.Row = pb.Get{}, getAnswer{}, nil
		c.call.Timeline, c.call.Hedge, c.call.Replica = false, false, 0
		t.c.gets.Put(c)
	}()
	if err := fillGet(&c.get, g, existence); err != nil {
		return nil, false, err
	}
	c.call.Table, c.call.Row, c.call.Op, c.call.Priority = t.name, g.Row, op, g.Priority
	c.call.Timeline, c.call.Replica = g.Consistency == Timeline, g.ReplicaID
	c.call.Hedge = g.Hedge || t.c.cfg.HedgedReads
	c.call.Combine = !g.QueryMetrics // HBase keeps no such figures of a Get among others
	ans, err := t.c.core.CallRegion(ctx, &c.call)
	if err != nil {
		return nil, false, err
	}
	if existence {
		return nil, c.resp.exists, nil
	}
	if g.ExistenceOnly {
		return &Result{Exists: c.resp.exists, Stale: ans.Replica != nil, BlockBytesScanned: c.resp.scanned}, c.resp.exists, nil
	}
	if res = c.resp.res; res == nil {
		res, err = c.resp.read(ans.Cells)
	}
	if err == nil && ans.Replica != nil {
		res.Stale = true
	}
	return res, false, err
}

// mutateCall is a lone mutation, perhaps with a condition.
type mutateCall struct {
	call  session.RegionCall
	req   pb.MutateRequest
	spec  regionSpec
	mut   mutationRoom
	resp  mutateAnswer
	block []byte
}

// mutateAnswer is a MutateResponse with its cells.
type mutateAnswer struct {
	pb.MutateResponse
	res *Result
}

// ReadCells is called while the answer can still be asked for again.
func (a *mutateAnswer) ReadCells(block []byte) (err error) {
	a.res, err = resultOf(a.Result, block)
	return err
}

func (c *mutateCall) param(region []byte, _ int) (wire.Marshaler, []byte) {
	c.spec.set(region)
	return &c.req, c.block
}

func (c *mutateCall) run(ctx context.Context, t *Table, op string, m Mutation, cond *pb.Condition) (*Result, error) {
	core := t.c.core
	idem := repeatable(m)
	var nonce uint64
	if idem == session.Nonced {
		// Chosen once, before the first attempt: every repetition carries it.
		nonce = core.NewNonce()
		c.req.NonceGroup = new(core.NonceGroup())
	}
	var err error
	if c.block, err = fillMutation(&c.mut, m, nonce, make([]byte, 0, blockSize(m.mutation().cells))); err != nil {
		return nil, err
	}
	if cond != nil {
		// The first application may change what the condition sees, and the
		// server remembers no nonce for the verdict.
		idem = session.Unsafe
	}
	c.req.Region, c.req.Mutation, c.req.Condition = &c.spec.spec, &c.mut.proto, cond
	c.call = session.RegionCall{
		Table: t.name, Row: m.RowKey(), Method: "Mutate", Op: op,
		Param: c.param, Result: &c.resp, Idempotency: idem, Priority: m.options().Priority,
	}
	ans, err := core.CallRegion(ctx, &c.call)
	if err != nil {
		return nil, err
	}
	res := c.resp.res
	if res == nil {
		if res, err = resultOf(c.resp.Result, ans.Cells); err != nil {
			return nil, &fault.Unreadable{Err: err}
		}
	}
	if cond != nil {
		return res, nil
	}
	return t.reread(ctx, m, res, ans.Attempts)
}

func (t *Table) mutate(ctx context.Context, op string, m Mutation) (*Result, error) {
	if err := t.checkMutation(op, m); err != nil {
		return nil, err
	}
	var c mutateCall
	res, err := c.run(ctx, t, op, m, nil)
	if err != nil {
		return nil, t.wrap(op, err)
	}
	return res, nil
}

func (t *Table) checkAndMutate(ctx context.Context, cm *CheckAndMutate) (CheckResult, error) {
	m, ok := cm.Action.(Mutation)
	if !ok {
		// Several mutations under one condition travel as a batch of one.
		out := t.batch(ctx, "check and mutate", []Op{cm})
		return CheckResult{Applied: out[0].Applied, Result: out[0].Result}, out[0].Err
	}
	cond, err := pbCondition(cm)
	if err != nil {
		return CheckResult{}, err
	}
	var c mutateCall
	res, err := c.run(ctx, t, "check and mutate", m, cond)
	if err != nil {
		return CheckResult{}, err
	}
	res.BlockBytesScanned = c.resp.GetMetrics().GetBlockBytesScanned()
	return CheckResult{Applied: c.resp.GetProcessed(), Result: res}, nil
}

// resultOf joins what a Result message says with the cells that travelled
// beside it.
func resultOf(r *pb.Result, block []byte) (*Result, error) {
	res := &Result{}
	if r == nil {
		return res, nil
	}
	res.Stale, res.Partial = r.GetStale(), r.GetPartial()
	var err error
	if n := int(r.GetAssociatedCellCount()); n > 0 {
		if res.Cells, err = decodeCells(block, n, nil); err != nil {
			return nil, err
		}
	}
	for _, c := range r.Cell {
		res.Cells = append(res.Cells, inlineCell(c))
	}
	if len(res.Cells) > 0 {
		res.Row = res.Cells[0].Row
	}
	return res, nil
}

func inlineCell(c *pb.Cell) Cell {
	t := cells.Put
	if c.CellType != nil {
		t = cells.Type(c.GetCellType())
	}
	return Cell{
		Row: c.GetRow(), Family: c.GetFamily(), Qualifier: c.GetQualifier(), Timestamp: int64(c.GetTimestamp()),
		Type: t, Value: c.GetValue(), Tags: c.GetTags(),
	}
}
