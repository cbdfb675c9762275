package endpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

const aggregateService = "AggregateService"

// Options are the settings of aggregations; the zero value is fine.
type Options struct {
	// Parallel, Timeout and Priority are those of [Call].
	Parallel int
	Timeout  time.Duration
	Priority uint32
}

// RowCount counts the rows that a Scan of the table would find (Java:
// AggregationClient.rowCount); a nil Scan counts all. No cells travel, and
// unless a Filter or the first family's qualifiers decide, the server looks at
// the first cell of each row only.
//
// Like every aggregation it takes Start, Stop, Columns, TimeRange, MaxVersions,
// Filter and the settings of reading from the Scan; it refuses Reversed, Limit,
// Batch and AllowPartial, and bounds that are not start-inclusive and
// stop-exclusive. It is consistent row by row: each region is read as it was
// when it was asked.
func RowCount(ctx context.Context, t *hbase.Table, s *hbase.Scan, o Options) (int64, error) {
	s, err := countable(s)
	if err != nil {
		return 0, err
	}
	q, err := newQuery(t, Long().Class, nil, s, o)
	if err != nil {
		return 0, err
	}
	var n int64
	err = q.run(ctx, "GetRowNum", func(p *Partial, r *pb.AggregateResponse) error {
		if len(r.FirstPart) == 0 {
			return nil
		}
		part, err := count(r.FirstPart[0])
		n += part
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// countable makes a scan whose rows HBase counts right. Before it counts, its
// AggregateImplementation takes the least qualifier of the least family out of
// the request, and so counts other rows than it was asked for. It is given one
// more, the empty one, to take.
func countable(s *hbase.Scan) (*hbase.Scan, error) {
	if s == nil || len(s.Columns) == 0 {
		return s, nil
	}
	least := slices.MinFunc(s.Columns, func(x, y hbase.Column) int { return bytes.Compare(x.Family, y.Family) }).Family
	var named [][]byte
	for _, c := range s.Columns {
		if !bytes.Equal(c.Family, least) {
			continue
		}
		if len(c.Qualifiers) == 0 {
			return s, nil // the whole family: nothing is taken
		}
		named = append(named, c.Qualifiers...)
	}
	out := *s
	if !slices.ContainsFunc(named, func(q []byte) bool { return len(q) == 0 }) {
		out.Columns = append(slices.Clip(s.Columns), hbase.Column{Family: least, Qualifiers: [][]byte{{}}})
		return &out, nil
	}
	// No qualifier is less than the empty one: name it to a filter.
	if s.Filter != nil {
		return nil, &hbase.InvalidError{Op: "aggregate", Object: "scan", Reason: "HBase cannot count the rows of a column with an empty name under a filter"}
	}
	out.Columns = slices.DeleteFunc(slices.Clone(s.Columns), func(c hbase.Column) bool { return bytes.Equal(c.Family, least) })
	any := filter.Or(filter.Family(filter.NotEqual, filter.Binary(least)))
	for _, q := range named {
		any.Filters = append(any.Filters, filter.Qualifier(filter.Equal, filter.Binary(q)))
	}
	out.Columns, out.Filter = append(out.Columns, hbase.Column{Family: least}), any
	return &out, nil
}

// Aggregate computes over the values of a column in the rows of a Scan: name
// the column in the Scan. HBase's server takes whatever cells the Scan finds
// together, so several columns and several families may be named, or none for
// all: Max is then the largest value in any of them, Sum the sum over all,
// Average that sum by the number of rows. (Java's client refuses more than one
// family, its server does not.)
//
// Cells whose value the interpreter cannot read count as absent. For averages
// rows count in which the Scan finds any cell, readable or not. Their number is
// asked for on its own, with a second call in each region: HBase's GetAvg and
// GetStd, and so Java's client, count one row too many in every region whose
// last rows lack the column or are dropped by the Filter.
//
// What it takes from the Scan: see [RowCount].
type Aggregate[T any] struct {
	in   Interpreter[T]
	t    *hbase.Table
	scan *hbase.Scan
	o    Options
}

// New makes an aggregation over the rows of a scan of the table. Errors in the
// scan come with the first call.
//
//	sum, found, err := endpoint.New(table, endpoint.Long(), hbase.NewScan().Column("f", "visits"), endpoint.Options{}).Sum(ctx)
func New[T any](t *hbase.Table, in Interpreter[T], s *hbase.Scan, o Options) *Aggregate[T] {
	return &Aggregate[T]{in: in, t: t, scan: s, o: o}
}

func (a *Aggregate[T]) query() (*query, error) {
	return newQuery(a.t, a.in.Class, a.in.Params, a.scan, a.o)
}

// Max gives the largest value; found is false if there is none.
func (a *Aggregate[T]) Max(ctx context.Context) (v T, found bool, err error) {
	return a.fold(ctx, "GetMax", func(x, y T) T {
		if a.in.Compare(y, x) > 0 {
			return y
		}
		return x
	})
}

// Min gives the smallest value; found is false if there is none.
func (a *Aggregate[T]) Min(ctx context.Context) (v T, found bool, err error) {
	return a.fold(ctx, "GetMin", func(x, y T) T {
		if a.in.Compare(y, x) < 0 {
			return y
		}
		return x
	})
}

// Sum gives the sum of all values; found is false if there is none.
func (a *Aggregate[T]) Sum(ctx context.Context) (v T, found bool, err error) {
	return a.fold(ctx, "GetSum", a.in.Add)
}

// fold joins the regions' values.
func (a *Aggregate[T]) fold(ctx context.Context, method string, join func(x, y T) T) (v T, found bool, err error) {
	q, err := a.query()
	if err != nil {
		return v, false, err
	}
	var total sum[T]
	err = q.run(ctx, method, func(p *Partial, r *pb.AggregateResponse) error {
		if len(r.FirstPart) == 0 {
			return nil
		}
		x, err := a.in.Decode(r.FirstPart[0])
		if err != nil {
			return err
		}
		total.join(x, join)
		return nil
	})
	if err != nil {
		return v, false, err
	}
	return total.v, total.found, nil
}

// sum is a value that may be missing.
type sum[T any] struct {
	v     T
	found bool
}

func (s *sum[T]) join(x T, join func(x, y T) T) {
	if !s.found {
		s.v, s.found = x, true
		return
	}
	s.v = join(s.v, x)
}

// Average gives the sum by the number of rows; NaN if there is no value.
func (a *Aggregate[T]) Average(ctx context.Context) (float64, error) {
	sum, found, err := a.Sum(ctx)
	if err != nil || !found {
		return math.NaN(), err
	}
	rows, err := RowCount(ctx, a.t, a.scan, a.o)
	if err != nil {
		return math.NaN(), err
	}
	return a.in.Float(sum) / float64(rows), nil
}

// StdDev gives the standard deviation of the rows' sums; NaN if there is no
// value.
func (a *Aggregate[T]) StdDev(ctx context.Context) (float64, error) {
	s, err := a.Statistics(ctx)
	return s.StdDev, err
}

// Statistics are what is known of the rows of a scan and their values.
type Statistics[T any] struct {
	// Rows counts the rows in which the Scan finds a cell; Found says whether
	// any has a value.
	Rows  int64
	Found bool
	// Sum of all values; Squares of the squares of each row's sum. Both are of
	// the interpreter's type, and may overflow like it.
	Sum, Squares T
	// Average is Sum by Rows, StdDev the square root of the average square less
	// the squared average; both NaN without values.
	Average, StdDev float64
}

// Statistics gives number, sum, average and standard deviation at once.
func (a *Aggregate[T]) Statistics(ctx context.Context) (s Statistics[T], err error) {
	s.Average, s.StdDev = math.NaN(), math.NaN()
	q, err := a.query()
	if err != nil {
		return s, err
	}
	var sums, squares sum[T]
	err = q.run(ctx, "GetStd", func(p *Partial, r *pb.AggregateResponse) error {
		if len(r.FirstPart) == 0 {
			return nil
		}
		if len(r.FirstPart) != 2 {
			return fmt.Errorf("%d values, want a sum and a sum of squares", len(r.FirstPart))
		}
		x, err := a.in.Decode(r.FirstPart[0])
		if err != nil {
			return err
		}
		y, err := a.in.Decode(r.FirstPart[1])
		if err != nil {
			return err
		}
		sums.join(x, a.in.Add)
		squares.join(y, a.in.Add)
		return nil
	})
	if err != nil {
		return s, err
	}
	if s.Rows, err = RowCount(ctx, a.t, a.scan, a.o); err != nil {
		return s, err
	}
	s.Found, s.Sum, s.Squares = sums.found, sums.v, squares.v
	if s.Found && s.Rows > 0 {
		n := float64(s.Rows)
		s.Average = a.in.Float(s.Sum) / n
		// Rounding may take the variance of equal values below zero.
		s.StdDev = math.Sqrt(max(a.in.Float(s.Squares)/n-s.Average*s.Average, 0))
	}
	return s, nil
}

// count reads a number of rows.
func count(b []byte) (int64, error) {
	if len(b) != 8 {
		return 0, fmt.Errorf("a count of %d bytes", len(b))
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// query is an aggregation's request, made ready for its parts.
type query struct {
	t      *hbase.Table
	class  string
	params []byte
	scan   []byte // serialized
	call   Call
}

// newQuery checks the scan.
func newQuery(t *hbase.Table, class string, params []byte, s *hbase.Scan, o Options) (*query, error) {
	if s == nil {
		s = &hbase.Scan{}
	}
	bad := func(object, reason string) error {
		return &hbase.InvalidError{Op: "aggregate", Object: object, Reason: reason}
	}
	switch {
	case s.Reversed || s.ExcludeStart || s.IncludeStop:
		return nil, bad("scan", "an aggregation reads [Start, Stop) upwards")
	case s.Limit != 0 || s.Batch != 0 || s.AllowPartial:
		return nil, bad("scan", "Limit, Batch and AllowPartial do not go with an aggregation")
	}
	b, err := hbase.MarshalScan(s)
	if err != nil {
		return nil, err
	}
	q := &query{t: t, class: class, params: params, scan: b}
	q.call = Call{
		Service: aggregateService, Start: s.Start, Stop: s.Stop, Request: q.request, Reached: q.reached,
		Parallel: o.Parallel, Timeout: o.Timeout, Priority: o.Priority,
	}
	return q, nil
}

func (q *query) request(p Part) ([]byte, error) {
	req := pb.AggregateRequest{InterpreterClassName: &q.class, InterpreterSpecificBytes: q.params, Scan: new(pb.Scan)}
	if err := req.Scan.UnmarshalVT(q.scan); err != nil {
		return nil, err
	}
	req.Scan.StartRow, req.Scan.StopRow = p.Start, p.Stop
	// HBase 2.6 and later then answer in pieces when a quota stops them, instead
	// of failing; older servers do not see it.
	req.ClientSupportsPartialResult = new(true)
	return req.MarshalVT()
}

func (q *query) reached(_ Part, value []byte) ([]byte, time.Duration, error) {
	var r pb.AggregateResponse
	if err := r.UnmarshalVT(value); err != nil {
		return nil, 0, err
	}
	const minute = 60_000 // the field is 64 bits wide, a Duration's milliseconds are not
	return r.NextChunkStartRow, time.Duration(min(r.GetWaitIntervalMs(), minute)) * time.Millisecond, nil
}

func (q *query) run(ctx context.Context, method string, merge func(*Partial, *pb.AggregateResponse) error) error {
	call := q.call
	call.Method = method
	return Run(ctx, q.t, &call, func(p *Partial) error {
		var r pb.AggregateResponse
		err := r.UnmarshalVT(p.Value)
		if err == nil {
			err = merge(p, &r)
		}
		if err != nil {
			return fmt.Errorf("endpoint: answer to %s.%s of region %s: %w", aggregateService, method, p.Region.EncodedName(), err)
		}
		return nil
	})
}
