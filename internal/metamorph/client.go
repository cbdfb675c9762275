package metamorph

import (
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
)

// This file turns the words of a history into those of the client.

func splitColumn(c string) (family, qualifier string, only bool) { return strings.Cut(c, ":") }

func (r *Read) get(row string) *hbase.Get {
	g := hbase.NewGet(row)
	for _, c := range r.Columns {
		if f, q, only := splitColumn(c); only {
			g.Column(f, q)
		} else {
			g.Family(f)
		}
	}
	g.TimeRange = r.timeRange()
	g.MaxVersions, g.MaxPerFamily, g.OffsetPerFamily, g.Filter = r.Versions, r.PerFamily, r.Offset, r.filter()
	return g
}

func (r *Read) timeRange() hbase.TimeRange { return hbase.TimeRange{From: r.From, To: r.To} }

func (r *Read) filter() hbase.Filter {
	switch r.Filter {
	case "first-key":
		return filter.FirstKeyOnly()
	case "column-prefix":
		return filter.ColumnPrefix(r.Prefix)
	}
	return nil
}

func (r *Read) scan(s *Scan) *hbase.Scan {
	out := &hbase.Scan{
		ExcludeStart: s.ExcludeStart, IncludeStop: s.IncludeStop, Reversed: s.Reversed, Limit: s.Limit, Batch: s.Batch,
		AllowPartial: s.Partial, Caching: s.Caching, MaxResultSize: int64(s.Size), Prefetch: hbase.Prefetch(s.Prefetch),
	}
	if s.Start != "" {
		out.Start = []byte(s.Start)
	}
	if s.Stop != "" {
		out.Stop = []byte(s.Stop)
	}
	g := r.get("x")
	out.Columns, out.TimeRange, out.MaxVersions = g.Columns, g.TimeRange, g.MaxVersions
	out.MaxPerFamily, out.OffsetPerFamily, out.Filter = g.MaxPerFamily, g.OffsetPerFamily, g.Filter
	return out
}

// action renders a change.
func (c *Change) action() hbase.RowAction {
	if c.Kind == "row" {
		r := hbase.NewRowMutations(c.Row)
		for i := range c.Parts {
			r.Add(c.Parts[i].mutation())
		}
		return r
	}
	return c.mutation().(hbase.RowAction)
}

func (c *Change) mutation() hbase.Mutation {
	switch c.Kind {
	case "put":
		p := hbase.NewPut(c.Row)
		p.Unrepeatable = c.Unrepeatable
		for _, x := range c.Cells {
			if x.Timestamp == 0 {
				p.Set(x.Family, x.Qualifier, []byte(x.Value))
			} else {
				p.SetAt(x.Family, x.Qualifier, x.Timestamp, []byte(x.Value))
			}
		}
		return p
	case "delete":
		d := hbase.NewDelete(c.Row)
		d.Unrepeatable = c.Unrepeatable
		if c.UpTo != 0 {
			d.UpTo(c.UpTo)
		}
		for _, x := range c.Cells {
			ts := x.Timestamp
			if ts == 0 {
				ts = hbase.LatestTimestamp
			}
			switch x.Mark {
			case "column":
				d.ColumnUpTo(x.Family, x.Qualifier, ts)
			case "version":
				d.Version(x.Family, x.Qualifier, ts)
			case "latest":
				d.LatestVersion(x.Family, x.Qualifier)
			case "family":
				d.FamilyUpTo(x.Family, ts)
			case "family-version":
				d.FamilyVersion(x.Family, ts)
			default:
				d.Add(hbase.Cell{}) // which the client refuses
			}
		}
		return d
	case "increment":
		i := hbase.NewIncrement(c.Row)
		i.NoResult = c.NoResult
		for _, x := range c.Cells {
			i.Add(x.Family, x.Qualifier, x.Amount)
		}
		return i
	case "append":
		a := hbase.NewAppend(c.Row)
		a.NoResult = c.NoResult
		for _, x := range c.Cells {
			a.Add(x.Family, x.Qualifier, []byte(x.Value))
		}
		return a
	}
	return hbase.NewPut(c.Row) // of nothing, which the client refuses
}

var compare = map[string]hbase.CompareOp{
	"=": hbase.Equal, "!=": hbase.NotEqual, "<": hbase.Less, "<=": hbase.LessOrEqual, ">": hbase.Greater, ">=": hbase.GreaterOrEqual,
}

func (c *Check) condition() *hbase.CheckAndMutate {
	var v []byte
	if c.Value != "" {
		v = []byte(c.Value)
	}
	return hbase.NewCheckAndMutate(c.Row).If(c.Family, c.Qualifier, compare[c.Op], v)
}

// cellsOf are what was found, with the timestamps that the history gave.
func cellsOf(list []hbase.Cell) []Cell {
	var out []Cell
	for _, c := range list {
		x := Cell{Family: string(c.Family), Qualifier: string(c.Qualifier), Value: string(c.Value)}
		if x.Family == familyV {
			x.Timestamp = c.Timestamp
		}
		if c.Type != hbase.TypePut {
			x.Mark = c.Type.String()
		}
		out = append(out, x)
	}
	return out
}

// show prints cells shortly.
func show(list []Cell) string {
	var b strings.Builder
	for _, c := range list {
		v := c.Value
		if len(v) > 12 {
			v = fmt.Sprintf("%s..(%d)", v[:12], len(v))
		}
		fmt.Fprintf(&b, " %s%s:%s@%d=%q", c.Mark, c.Family, c.Qualifier, c.Timestamp, v)
	}
	return "[" + strings.TrimSpace(b.String()) + "]"
}
