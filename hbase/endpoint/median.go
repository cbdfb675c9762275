package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Median gives what HBase's AggregationClient calls the median: walking the
// rows in their order and adding up values, the value of the last row at which
// not more than half of the sum is reached (of the first row with a value, if
// that alone is more). It is the median in the usual sense where the rows are
// in the order of their values, each standing for as much as its value says;
// with a second column in the Scan, which then holds the weights, each stands
// for as much as its weight. found is false if there is no value.
//
// The Scan names one family and one or two columns: the value's, and the
// weight's. (Java sorts the two by name, and takes the first for the value.)
//
// The regions are asked for their sums, and then the one where half is reached
// is scanned by the client. So values that change meanwhile may shift the
// result. Java asks for GetMedian instead of GetSum, which fails in regions
// without values and, with weights, adds up both columns.
func (a *Aggregate[T]) Median(ctx context.Context) (v T, found bool, err error) {
	s := a.scan
	if s == nil || len(s.Columns) != 1 || len(s.Columns[0].Qualifiers) < 1 || len(s.Columns[0].Qualifiers) > 2 {
		return v, false, &hbase.InvalidError{Op: "aggregate", Object: "median", Reason: "the scan names a column of values and perhaps one of weights, in one family"}
	}
	family, value := s.Columns[0].Family, s.Columns[0].Qualifiers[0]
	weight := s.Columns[0].Qualifiers[len(s.Columns[0].Qualifiers)-1]

	weights := *s
	weights.Columns = []hbase.Column{{Family: family, Qualifiers: [][]byte{weight}}}
	parts, err := New(a.t, a.in, &weights, a.o).sums(ctx)
	if err != nil {
		return v, false, err
	}
	var total sum[T]
	for _, p := range parts {
		total.join(p.sum, a.in.Add)
	}
	if !total.found {
		return v, false, nil
	}
	half := a.in.Float(total.v) / 2

	// The part in which half is passed; the last, if rounding hides it.
	var before float64
	at := 0
	for ; at < len(parts)-1; at++ {
		n := a.in.Float(parts[at].sum)
		if before+n > half {
			break
		}
		before += n
	}
	scan := *s
	scan.Start = parts[at].Start
	sc := a.t.Scan(ctx, &scan)
	defer sc.Close()
	for r, err := range sc.Rows() {
		if err != nil {
			return v, found, err
		}
		if c, ok := r.Cell(string(family), string(weight)); ok {
			if w, ok := a.in.Value(c.Value); ok {
				if before += a.in.Float(w); before > half {
					if found {
						return v, true, nil
					}
					return a.lastBefore(ctx, r, parts[at].Start, value)
				}
			}
		}
		if c, ok := r.Cell(string(family), string(value)); ok {
			if x, ok := a.in.Value(c.Value); ok {
				v, found = x, true
			}
		}
	}
	return v, found, nil
}

// lastBefore gives the last value before a part, whose first weight passed
// half: from the rows before, or else that row's own.
func (a *Aggregate[T]) lastBefore(ctx context.Context, first *hbase.Result, start, qualifier []byte) (v T, found bool, err error) {
	family := a.scan.Columns[0].Family
	if len(start) > 0 && !bytes.Equal(start, a.scan.Start) {
		back := *a.scan
		back.Columns = []hbase.Column{{Family: family, Qualifiers: [][]byte{qualifier}}}
		back.Reversed, back.Start, back.ExcludeStart = true, start, true
		back.Stop, back.IncludeStop = a.scan.Start, len(a.scan.Start) > 0
		sc := a.t.Scan(ctx, &back)
		defer sc.Close()
		for r, err := range sc.Rows() {
			if err != nil {
				return v, false, err
			}
			if c, ok := r.Cell(string(family), string(qualifier)); ok {
				if x, ok := a.in.Value(c.Value); ok {
					return x, true, nil
				}
			}
		}
	}
	if c, ok := first.Cell(string(family), string(qualifier)); ok {
		v, found = a.in.Value(c.Value)
	}
	return v, found, nil
}

// partSum is the sum over a part of the range.
type partSum[T any] struct {
	Part
	sum T
}

// sums gives the sums by part, in the order of the rows; parts without values
// are left out.
func (a *Aggregate[T]) sums(ctx context.Context) ([]partSum[T], error) {
	q, err := a.query()
	if err != nil {
		return nil, err
	}
	var parts []partSum[T]
	err = q.run(ctx, "GetSum", func(p *Partial, r *pb.AggregateResponse) error {
		if len(r.FirstPart) == 0 {
			return nil
		}
		x, err := a.in.Decode(r.FirstPart[0])
		parts = append(parts, partSum[T]{p.Part, x})
		return err
	})
	slices.SortFunc(parts, func(x, y partSum[T]) int { return cmp.Compare(string(x.Start), string(y.Start)) })
	return parts, err
}
