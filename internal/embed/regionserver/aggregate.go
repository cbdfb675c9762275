package regionserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/cells/filter"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// aggregateService is the name under which HBase's AggregateImplementation is
// called. It is loaded on every region, as if hbase.coprocessor.region.classes
// named it.
const aggregateService = "AggregateService"

// aggregateAnswer is the Java class of the service's answers.
const aggregateAnswer = "org.apache.hadoop.hbase.protobuf.generated.AggregateProtos$AggregateResponse"

// aggregate runs a method of AggregateService on a region the caller is in.
func (s *Server) aggregate(ctx context.Context, r *region, method string, request []byte) (*pb.AggregateResponse, error) {
	run, ok := map[string]func(context.Context, *region, *aggregation) (*pb.AggregateResponse, error){
		"GetMax":    s.aggregateExtreme(1),
		"GetMin":    s.aggregateExtreme(-1),
		"GetSum":    s.aggregateSum,
		"GetRowNum": s.aggregateRows,
		"GetAvg":    s.aggregateAvg,
		"GetStd":    s.aggregateStd,
		"GetMedian": s.aggregateMedian,
	}[method]
	if !ok {
		return nil, wire.NewRemoteError(wire.ClassUnknownProtocol, "Unknown method "+method+" called on service hbase.pb."+aggregateService)
	}
	var in pb.AggregateRequest
	if err := in.UnmarshalVT(request); err != nil {
		return nil, wire.NewRemoteError(wire.ClassIOException, "AggregateRequest: "+err.Error())
	}
	a, err := s.aggregation(r, &in, method == "GetRowNum")
	if err != nil {
		return nil, err
	}
	return run(ctx, r, a)
}

// aggregation is a request made ready: how values are read, which rows.
type aggregation struct {
	interpreter interpreter
	spec        *cells.ScanSpec
	columns     []*pb.Column
}

func (s *Server) aggregation(r *region, in *pb.AggregateRequest, countsRows bool) (*aggregation, error) {
	a := &aggregation{columns: in.GetScan().GetColumn()}
	var ok bool
	if a.interpreter, ok = interpreters[in.GetInterpreterClassName()]; !ok && !countsRows {
		return nil, wire.NewRemoteError(wire.ClassIOException, "java.lang.ClassNotFoundException: "+in.GetInterpreterClassName())
	}
	first := true
	if countsRows {
		first = a.dropQualifier(in)
	}
	var err error
	if a.spec, err = scanSpec(in.GetScan()); err != nil {
		return nil, err
	}
	if countsRows && first && a.spec.Filter == nil {
		if a.spec.Filter, err = filter.Parse(firstKeyOnly); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// dropQualifier does what HBase does before it counts rows: it takes the least
// qualifier of the least family out of the request, so that a count of rows
// that have one column is a count of those that have any of the family. It says
// whether there was none.
func (a *aggregation) dropQualifier(in *pb.AggregateRequest) (none bool) {
	type family struct {
		name       []byte
		qualifiers [][]byte
	}
	var families []family
	for _, c := range a.columns {
		i := slices.IndexFunc(families, func(f family) bool { return bytes.Equal(f.name, c.GetFamily()) })
		if i < 0 {
			i = len(families)
			families = append(families, family{name: c.GetFamily()})
		}
		if len(c.GetQualifier()) == 0 {
			families[i].qualifiers = nil // the whole family, whatever came before
		}
		families[i].qualifiers = append(families[i].qualifiers, c.GetQualifier()...)
	}
	if len(families) == 0 {
		return true
	}
	slices.SortFunc(families, func(x, y family) int { return bytes.Compare(x.name, y.name) })
	least := &families[0].qualifiers
	if len(*least) == 0 {
		return true
	}
	slices.SortFunc(*least, bytes.Compare)
	gone := (*least)[0]
	*least = slices.DeleteFunc(*least, func(q []byte) bool { return bytes.Equal(q, gone) })
	in.Scan.Column = in.Scan.Column[:0]
	for _, f := range families {
		in.Scan.Column = append(in.Scan.Column, &pb.Column{Family: f.name, Qualifier: f.qualifiers})
	}
	return false
}

var firstKeyOnly = &pb.Filter{Name: new("org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter"), SerializedFilter: []byte{}}

// nullPointer is how a NullPointerException inside an endpoint comes out.
func nullPointer(text string) error {
	return wire.NewRemoteError(wire.ClassIOException, "java.lang.NullPointerException: "+text)
}

// aggregateRow calls f with each row of the scan: once more, with nothing, if
// the scan ends in rows that its filter drops, or has none at all, as in HBase.
func (s *Server) aggregateRow(ctx context.Context, r *region, a *aggregation, f func(row []cells.Cell) error) error {
	sc, err := s.regionScanner(r, a.spec, 0)
	if err != nil {
		return err
	}
	defer sc.Close()
	lim := cells.Limits{Expired: func() bool { return r.closing() || ctx.Err() != nil }}
	var row []cells.Cell
	for {
		var state cells.State
		if row, state, err = sc.Next(row[:0], &lim); err != nil {
			return r.explain(err)
		}
		// A region waits for its calls before it closes; an aggregation may take
		// longer than anybody wants to wait.
		if r.closing() {
			return s.gone(r)
		}
		if ctx.Err() != nil {
			return wire.NewRemoteError(wire.ClassTimeoutIO, "nobody waits for the answer")
		}
		if state == cells.TimeReached {
			continue
		}
		r.reads.Add(1)
		if err := f(row); err != nil {
			return err
		}
		if state == cells.NoMoreRows {
			return nil
		}
	}
}

// aggregateExtreme is GetMax (1) or GetMin (-1): the answer is empty if there
// is no value.
func (s *Server) aggregateExtreme(sign int) func(context.Context, *region, *aggregation) (*pb.AggregateResponse, error) {
	return func(ctx context.Context, r *region, a *aggregation) (*pb.AggregateResponse, error) {
		var best value
		err := s.aggregateRow(ctx, r, a, func(row []cells.Cell) error {
			return a.values(row, func(v value) {
				if best == nil || v != nil && sign*a.interpreter.compare(v, best) > 0 {
					best = v
				}
			})
		})
		return a.answer(err, best)
	}
}

func (s *Server) aggregateSum(ctx context.Context, r *region, a *aggregation) (*pb.AggregateResponse, error) {
	var sum value
	err := s.aggregateRow(ctx, r, a, func(row []cells.Cell) error {
		return a.values(row, func(v value) { sum = a.add(sum, v) })
	})
	return a.answer(err, sum)
}

func (s *Server) aggregateRows(ctx context.Context, r *region, a *aggregation) (*pb.AggregateResponse, error) {
	n := uint64(0)
	err := s.aggregateRow(ctx, r, a, func(row []cells.Cell) error {
		if len(row) > 0 {
			n++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &pb.AggregateResponse{FirstPart: [][]byte{binary.BigEndian.AppendUint64(nil, n)}}, nil
}

func (s *Server) aggregateAvg(ctx context.Context, r *region, a *aggregation) (*pb.AggregateResponse, error) {
	var sum value
	rows := uint64(0)
	err := s.aggregateRow(ctx, r, a, func(row []cells.Cell) error {
		rows++
		return a.values(row, func(v value) { sum = a.add(sum, v) })
	})
	return a.counted(err, rows, sum)
}

func (s *Server) aggregateStd(ctx context.Context, r *region, a *aggregation) (*pb.AggregateResponse, error) {
	var sum, squares value
	rows := uint64(0)
	err := s.aggregateRow(ctx, r, a, func(row []cells.Cell) error {
		rows++
		var v value
		err := a.values(row, func(x value) { v = a.add(v, x) })
		sum = a.add(sum, v)
		if v != nil {
			squares = a.add(squares, a.interpreter.multiply(v, v))
		}
		return err
	})
	return a.counted(err, rows, sum, squares)
}

// aggregateMedian gives the sums of values and of weights. HBase's interpreters
// do not look at the qualifier, so with a weight column both are the sum of
// both columns; and without any value HBase fails, as here.
func (s *Server) aggregateMedian(ctx context.Context, r *region, a *aggregation) (*pb.AggregateResponse, error) {
	var sum, weights value
	weighted := len(a.columns) > 0 && len(a.columns[0].GetQualifier()) > 1
	err := s.aggregateRow(ctx, r, a, func(row []cells.Cell) error {
		return a.values(row, func(v value) {
			sum = a.add(sum, v)
			if weighted {
				weights = a.add(weights, v)
			}
		})
	})
	if err == nil && sum == nil {
		return nil, nullPointer("no value in region " + r.name)
	}
	if weights == nil {
		weights = a.interpreter.least
	}
	return a.answer(err, sum, weights)
}

// values gives the values of a row's cells to f; nil stands for a cell that the
// interpreter cannot read.
func (a *aggregation) values(row []cells.Cell, f func(value)) error {
	for i := range row {
		v, err := a.interpreter.read(row[i].Value)
		if err != nil {
			return nullPointer(fmt.Sprintf("value of %s: %v", &row[i], err))
		}
		f(v)
	}
	return nil
}

// add sums up; nil is nothing.
func (a *aggregation) add(x, y value) value {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return a.interpreter.add(x, y)
}

// answer is a response with the values, empty if the first is missing.
func (a *aggregation) answer(err error, parts ...value) (*pb.AggregateResponse, error) {
	if err != nil {
		return nil, err
	}
	out := &pb.AggregateResponse{}
	if parts[0] == nil {
		return out, nil
	}
	for _, v := range parts {
		b, err := a.interpreter.message(v)
		if err != nil {
			return nil, err
		}
		out.FirstPart = append(out.FirstPart, b)
	}
	return out, nil
}

// counted is answer with the number of rows.
func (a *aggregation) counted(err error, rows uint64, parts ...value) (*pb.AggregateResponse, error) {
	out, err := a.answer(err, parts...)
	if err == nil && len(out.FirstPart) > 0 {
		out.SecondPart = binary.BigEndian.AppendUint64(nil, rows)
	}
	return out, err
}
