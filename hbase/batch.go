package hbase

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
)

// batch checks and renders every operation, sends those that are sound in one
// session batch, and puts the outcomes where they belong.
func (t *Table) batch(ctx context.Context, op string, ops []Op) Outcomes {
	out := make(Outcomes, len(ops))
	items := make([]session.Item, 0, len(ops))
	at := make([]int, 0, len(ops)) // items[i] is ops[at[i]]
	var pinned []int
	room := roomFor(ops)
	for i, o := range ops {
		if g, ok := o.(*Get); ok && g != nil && g.ReplicaID > 0 {
			pinned = append(pinned, i)
			continue
		}
		item, err := t.item(op, o, &room)
		if err != nil {
			out[i].Err = err
			continue
		}
		items = append(items, item)
		at = append(at, i)
	}
	defer t.getPinned(ctx, op, ops, pinned, out)()
	if len(items) == 0 {
		return out
	}
	dones := t.c.core.Batch(ctx, t.name, items)
	var results []Result // a few at a time, since who keeps one keeps its neighbours
	for i := range dones {
		done, o := &dones[i], &out[at[i]]
		if done.Err != nil {
			o.Err = t.wrap(op, done.Err)
			continue
		}
		o.Applied = done.Processed
		if len(results) == 0 {
			results = make([]Result, min(len(dones)-i, 64))
		}
		res := &results[0]
		results = results[1:]
		joinResults(res, done.Results)
		var err error
		if o.Result, err = t.reread(ctx, ops[at[i]], res, done.Attempts); err != nil {
			o.Result, o.Err = nil, t.wrap(op, err)
		}
	}
	return out
}

// maxPinned bounds the Gets of chosen replicas that are under way for one batch.
const maxPinned = 16

// getPinned starts the Gets that address a certain replica, one by one: they
// are for looking at replicas, not for speed. The function waits for them.
func (t *Table) getPinned(ctx context.Context, op string, ops []Op, pinned []int, out Outcomes) func() {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(len(pinned), maxPinned) {
		wg.Go(func() {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(pinned) {
					return
				}
				i := pinned[n]
				g := ops[i].(*Get)
				err := checkGet(op, g)
				if err == nil {
					out[i].Result, _, err = t.get(ctx, op, g, false)
				}
				if err != nil {
					out[i].Err = t.wrap(op, err)
				}
				out[i].Applied = err == nil
			}
		})
	}
	return wg.Wait
}

// joinResults merges the answers of one item: one for a single action; for a
// group, the answers to its increments and appends, wherever the server put
// them.
func joinResults(res *Result, rs []session.ActionResult) {
	for i := range rs {
		r := &rs[i]
		res.Stale = res.Stale || r.Stale
		res.Partial = res.Partial || r.Partial
		res.Exists = res.Exists || r.Exists != nil && *r.Exists
		if res.Cells == nil {
			res.Cells = r.Cells
		} else {
			res.Cells = append(res.Cells, r.Cells...)
		}
	}
	if len(res.Cells) > 0 {
		res.Row = res.Cells[0].Row
	}
}

// batchRoom is memory for what a batch's mutations are rendered into: one
// piece for all of them instead of several for each.
type batchRoom struct {
	mutations []mutationRoom
	cells     []byte // empty, with room for the cells of all
}

func roomFor(ops []Op) batchRoom {
	n, size := 0, 0
	count := func(m Mutation) {
		if !isNilMutation(m) {
			n++
			size += blockSize(m.mutation().cells)
		}
	}
	for _, o := range ops {
		switch o := o.(type) {
		case Mutation:
			count(o)
		case *RowMutations:
			if o != nil {
				for _, m := range o.Mutations {
					count(m)
				}
			}
		case *CheckAndMutate:
			if o == nil {
				continue
			}
			switch a := o.Action.(type) {
			case Mutation:
				count(a)
			case *RowMutations:
				if a != nil {
					for _, m := range a.Mutations {
						count(m)
					}
				}
			}
		}
	}
	return batchRoom{make([]mutationRoom, n), make([]byte, 0, size)}
}

// take gives room for one mutation. There is always some left for a mutation
// that has been counted; who comes uncounted gets his own.
func (r *batchRoom) take() *mutationRoom {
	if len(r.mutations) == 0 {
		return new(mutationRoom)
	}
	m := &r.mutations[0]
	r.mutations = r.mutations[1:]
	return m
}

func (t *Table) item(op string, o Op, room *batchRoom) (session.Item, error) {
	switch o := o.(type) {
	case *Get:
		if err := checkGet(op, o); err != nil {
			return session.Item{}, err
		}
		g := new(pb.Get)
		if err := fillGet(g, o, false); err != nil {
			return session.Item{}, err
		}
		return session.Item{
			Row: o.Row, Actions: []*pb.Action{{Get: g}}, Idempotency: session.Safe, Timeline: o.Consistency == Timeline,
			Priority: o.Priority,
		}, nil
	case *RowMutations:
		if err := t.checkRowMutations(op, o); err != nil {
			return session.Item{}, err
		}
		return t.group(o.Row, o.Mutations, room)
	case *CheckAndMutate:
		if err := t.checkCheck(op, o); err != nil {
			return session.Item{}, err
		}
		cond, err := pbCondition(o)
		if err != nil {
			return session.Item{}, err
		}
		ms, ok := o.Action.(*RowMutations)
		if !ok {
			ms = &RowMutations{Row: o.Row, Mutations: []Mutation{o.Action.(Mutation)}}
		}
		item, err := t.group(o.Row, ms.Mutations, room)
		item.Condition, item.Idempotency = cond, session.Unsafe
		return item, err
	case Mutation:
		if err := t.checkMutation(op, o); err != nil {
			return session.Item{}, err
		}
		item := session.Item{Row: o.RowKey(), Idempotency: session.Safe}
		m := room.take()
		item.Actions = m.actions[:0]
		err := t.render(&item, o, m, room)
		return item, err
	}
	return session.Item{}, invalid(op, "operation", "is nil")
}

// group renders mutations of one row that are applied together.
func (t *Table) group(row []byte, ms []Mutation, room *batchRoom) (session.Item, error) {
	item := session.Item{Row: row, Atomic: true, Actions: make([]*pb.Action, 0, len(ms)), Idempotency: session.Safe}
	for _, m := range ms {
		if err := t.render(&item, m, room.take(), room); err != nil {
			return session.Item{}, err
		}
	}
	return item, nil
}

// render adds a mutation to an item.
func (t *Table) render(item *session.Item, m Mutation, to *mutationRoom, room *batchRoom) error {
	idem := repeatable(m)
	var nonce uint64
	if idem == session.Nonced {
		nonce = t.c.core.NewNonce()
	}
	item.Idempotency = max(item.Idempotency, idem)
	item.Priority = max(item.Priority, m.options().Priority)
	from := len(room.cells)
	var err error
	if room.cells, err = fillMutation(to, m, nonce, room.cells); err != nil {
		return err
	}
	// The cells of an item lie one behind another.
	first := from - len(item.Cells)
	item.Cells = room.cells[first:len(room.cells):len(room.cells)]
	to.action.Mutation = &to.proto
	item.Actions = append(item.Actions, &to.action)
	return nil
}
