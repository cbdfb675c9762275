package hbase

import "context"

// A server that knows the nonce of an increment or append applies nothing and
// is to answer the present values. Servers that took the region over after a
// crash know the nonce from the log but not the answer: HBase 2.6 sends an empty
// result then. The change was applied once, which is what counts; what it made
// of the row is read here.

// reread completes the answer of a repeated change that came back empty. The
// values are the row's present ones: later changes of others may be in them.
func (t *Table) reread(ctx context.Context, o Op, res *Result, attempts int) (*Result, error) {
	if attempts < 2 || len(res.Cells) > 0 {
		return res, nil
	}
	g := wanted(o)
	if g == nil {
		return res, nil
	}
	return t.Get(ctx, g)
}

// wanted is a Get of the columns whose new values the operation asks for; nil
// if it asks for none.
func wanted(o Op) *Get {
	var ms []Mutation
	switch o := o.(type) {
	case *RowMutations:
		ms = o.Mutations
	case Mutation:
		ms = []Mutation{o}
	}
	var g *Get
	for _, m := range ms {
		switch m := m.(type) {
		case *Increment:
			if m.NoResult {
				continue
			}
		case *Append:
			if m.NoResult {
				continue
			}
		default:
			continue
		}
		if g == nil {
			g = NewGet(m.RowKey())
		}
		for _, c := range m.mutation().cells {
			g.Column(string(c.Family), string(c.Qualifier))
		}
	}
	return g
}
