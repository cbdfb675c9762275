package hbase

import (
	"context"
	"errors"
	"strconv"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Table reads and writes one table. It holds nothing of its own, so there is
// nothing to close; it is safe for concurrent use.
type Table struct {
	c    *Client
	name meta.TableName
}

// Name is the table's name.
func (t *Table) Name() TableName { return t.name }

// Client is the client the table was made from.
func (t *Table) Client() *Client { return t.c }

// Get reads one row. A row that does not exist gives an empty Result.
func (t *Table) Get(ctx context.Context, g *Get) (*Result, error) {
	if err := checkGet("get", g); err != nil {
		return nil, err
	}
	res, _, err := t.get(ctx, "get", g, false)
	if err != nil {
		return nil, t.wrap("get", err)
	}
	return res, nil
}

// Exists says whether a Get would find anything; no cells travel.
func (t *Table) Exists(ctx context.Context, g *Get) (bool, error) {
	if err := checkGet("exists", g); err != nil {
		return false, err
	}
	_, found, err := t.get(ctx, "exists", g, true)
	if err != nil {
		return false, t.wrap("exists", err)
	}
	return found, nil
}

// MultiGet reads several rows at once, in parallel over the servers. The
// results are in the order of gets; those that failed are nil, and the error
// joins their [*ItemError]s.
func (t *Table) MultiGet(ctx context.Context, gets []*Get) ([]*Result, error) {
	ops := make([]Op, len(gets))
	for i, g := range gets {
		ops[i] = g
	}
	out := t.Batch(ctx, ops)
	results := make([]*Result, len(out))
	for i := range out {
		results[i] = out[i].Result
	}
	return results, out.Err()
}

// MultiExists is [Table.MultiGet] that asks only whether the rows hold anything
// (Java: exists with a list). The Gets are not changed.
func (t *Table) MultiExists(ctx context.Context, gets []*Get) ([]bool, error) {
	ops := make([]Op, len(gets))
	for i, g := range gets {
		if g == nil {
			ops[i] = g
			continue
		}
		only := *g
		only.ExistenceOnly = true
		ops[i] = &only
	}
	out := t.batch(ctx, "multi exists", ops)
	found := make([]bool, len(out))
	for i := range out {
		found[i] = out[i].Result != nil && out[i].Result.Exists
	}
	return found, out.Err()
}

// Put writes one row.
func (t *Table) Put(ctx context.Context, p *Put) error {
	_, err := t.mutate(ctx, "put", p)
	return err
}

// Delete deletes in one row.
func (t *Table) Delete(ctx context.Context, d *Delete) error {
	_, err := t.mutate(ctx, "delete", d)
	return err
}

// Increment adds to counters of one row and gives their new values (empty with
// NoResult).
func (t *Table) Increment(ctx context.Context, i *Increment) (*Result, error) {
	return t.mutate(ctx, "increment", i)
}

// IncrementColumn adds amount to one counter and gives its new value.
func (t *Table) IncrementColumn(ctx context.Context, row []byte, family, qualifier string, amount int64) (int64, error) {
	res, err := t.mutate(ctx, "increment", NewIncrement(row).Add(family, qualifier, amount))
	if err != nil {
		return 0, err
	}
	n, ok := res.Int64(family, qualifier)
	if !ok {
		return 0, t.wrap("increment", errors.New("the answer holds no 8-byte value of the column"))
	}
	return n, nil
}

// Append appends to values of one row and gives the new values (empty with
// NoResult).
func (t *Table) Append(ctx context.Context, a *Append) (*Result, error) {
	return t.mutate(ctx, "append", a)
}

// CheckAndMutate tests a condition on a row and, if it holds, changes the same
// row, in one atomic step.
func (t *Table) CheckAndMutate(ctx context.Context, c *CheckAndMutate) (CheckResult, error) {
	if err := t.checkCheck("check and mutate", c); err != nil {
		return CheckResult{}, err
	}
	res, err := t.checkAndMutate(ctx, c)
	return res, t.wrap("check and mutate", err)
}

// MutateRow applies several mutations to one row, all or nothing. The Result
// holds the new values of Increments and Appends among them.
func (t *Table) MutateRow(ctx context.Context, r *RowMutations) (*Result, error) {
	out := t.batch(ctx, "mutate row", []Op{r})
	if out[0].Err != nil {
		return nil, out[0].Err
	}
	return out[0].Result, nil
}

// Batch performs any mixture of operations, in parallel over the servers, and
// gives one outcome per operation, in their order. Each succeeds or fails
// alone. Puts, Deletes, Increments and Appends of one row are applied in their
// order, unless some of them have to be sent again. HBase lets a Get miss a Put
// or Delete before it in the same batch, and RowMutations and CheckAndMutates
// come before or after the rest: use several batches where that matters.
func (t *Table) Batch(ctx context.Context, ops []Op) Outcomes { return t.batch(ctx, "batch", ops) }

// Scan makes a scanner. Nothing is sent before the first row is asked for, and
// errors in the Scan itself come with it. ctx bounds the whole scan. Close the
// scanner, or range over [Scanner.Rows] to the end, which closes it.
func (t *Table) Scan(ctx context.Context, s *Scan) *Scanner { return newScanner(ctx, t, s) }

// wrap gives an error its operation and table.
func (t *Table) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(op, "table "+strconv.Quote(t.name.String()), err)
}

func wrap(op, object string, err error) error { return fault.Wrap(op, object, err) }
