package vectors

import (
	"bytes"
	"fmt"
	"math"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The few operations that HBase's client sends and ours does not, or not in
// that order, as requests of their own: what the server answers to them is part
// of the rules all the same. See Options.AsJava.

func (r *runner) playAsJava(s object) (any, error) {
	switch s["op"] {
	case "scan":
		return r.scanAsJava(s)
	case "batch":
		return r.batchAsJava(s)
	case "createTable", "modifyTable":
		d, _ := s["descriptor"].(object)
		return r.schemaAsJava(text(s, "op"), d)
	case "split":
		l, err := r.locate(r.tableName(s), data(s["regionOf"]))
		if err != nil {
			return nil, err
		}
		var out pb.SplitTableRegionResponse
		if err := r.callMaster("SplitRegion", &pb.SplitTableRegionRequest{RegionInfo: l.Region.ToProto(), SplitRow: data(s["splitRow"])}, &out); err != nil {
			return nil, err
		}
		return done(r.finish(out.ProcId))
	}
	return r.play(s)
}

// finish waits for a procedure.
func (r *runner) finish(id *uint64) error {
	if id == nil {
		return nil
	}
	_, err := r.clients.plain.Admin().Await(r.ctx, *id)
	return err
}

func (r *runner) schemaAsJava(op string, d object) (any, error) {
	name, err := hbase.ParseTableName(text(d, "name"))
	if err != nil {
		return nil, err
	}
	pairs := func(v any) (out []*pb.BytesBytesPair) {
		attributesOf(v, func(k, v string) { out = append(out, &pb.BytesBytesPair{First: []byte(k), Second: []byte(v)}) })
		return out
	}
	schema := &pb.TableSchema{TableName: name.ToProto(), Attributes: pairs(d["attributes"])}
	families, _ := d["families"].(object)
	for _, f := range sorted(families) {
		schema.ColumnFamilies = append(schema.ColumnFamilies, &pb.ColumnFamilySchema{Name: data(f), Attributes: pairs(families[f])})
	}
	if op == "modifyTable" {
		var out pb.ModifyTableResponse
		if err := r.callMaster("ModifyTable", &pb.ModifyTableRequest{TableName: schema.TableName, TableSchema: schema}, &out); err != nil {
			return nil, err
		}
		return done(r.finish(out.ProcId))
	}
	in := &pb.CreateTableRequest{TableSchema: schema}
	for _, k := range list(d, "splits") {
		in.SplitKeys = append(in.SplitKeys, data(k))
	}
	var out pb.CreateTableResponse
	if err := r.callMaster("CreateTable", in, &out); err != nil {
		return nil, err
	}
	return done(r.finish(out.ProcId))
}

// scanAsJava reads a scan to its end over all regions, forwards.
func (r *runner) scanAsJava(s object) (any, error) {
	p := r.protoScan(s)
	limit := max(0, integer(s["limit"]))
	batch := int(max(0, integer(s["batch"])))
	var results []any
	var rows int64
	var lastRow []byte
	var whole []hbase.Cell
	var cut [][]hbase.Cell // with a batch: the results as they came
	flush := func() {
		if len(whole) > 0 {
			results = append(results, object{"cells": cellsOf(whole)})
			rows++
		}
		whole = nil
	}
	for {
		l, err := r.locate(r.tableName(s), p.StartRow)
		if err != nil {
			return nil, err
		}
		in := &pb.ScanRequest{Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: l.Region.Name()}, Scan: p,
			NumberOfRows: new(uint32(math.MaxInt32)), ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true)}
		for seq := uint64(0); ; seq++ {
			if limit > 0 {
				in.LimitOfRows = new(uint32(limit - rows))
			}
			var out pb.ScanResponse
			got, err := r.call(l.Server, "Scan", in, &out)
			if err != nil {
				return nil, err
			}
			for _, n := range out.CellsPerResult {
				if int(n) > len(got) {
					return nil, fmt.Errorf("a result has %d cells, %d are left", n, len(got))
				}
				part := got[:n]
				got = got[n:]
				if n == 0 {
					continue
				}
				if !bytes.Equal(part[0].Row, lastRow) {
					flush()
					lastRow = part[0].Row
				}
				whole = append(whole, part...)
				cut = append(cut, part)
			}
			if !out.GetMoreResults() {
				flush()
				return object{"results": inBatches(results, cut, batch)}, nil
			}
			if !out.GetMoreResultsInRegion() {
				break
			}
			in = &pb.ScanRequest{ScannerId: out.ScannerId, NumberOfRows: new(uint32(math.MaxInt32)), NextCallSeq: new(seq),
				ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true)}
		}
		end := l.Region.End
		if c := bytes.Compare(end, p.StopRow); len(end) == 0 || len(p.StopRow) > 0 && (c > 0 || c == 0 && !p.GetIncludeStopRow()) {
			flush()
			return object{"results": inBatches(results, cut, batch)}, nil
		}
		flush()
		p.StartRow, p.IncludeStartRow = end, new(true)
	}
}

// inBatches gives whole rows, or with a batch the results as they came.
func inBatches(rows []any, cut [][]hbase.Cell, batch int) []any {
	if batch == 0 {
		if rows == nil {
			return []any{}
		}
		return rows
	}
	out := []any{}
	for i, c := range cut {
		o := object{"cells": cellsOf(c)}
		if i+1 < len(cut) && bytes.Equal(cut[i+1][0].Row, c[0].Row) {
			o["more"] = true
		}
		out = append(out, o)
	}
	return out
}

// batchAsJava sends the plain actions in one region action, then each
// RowMutations and each CheckAndMutate in one of its own. All rows lie in the
// region of the first.
func (r *runner) batchAsJava(s object) (any, error) {
	actions := list(s, "actions")
	first, _ := actions[0].(object)
	l, err := r.locate(r.tableName(s), data(first["row"]))
	if err != nil {
		return nil, err
	}
	spec := &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: l.Region.Name()}
	plain := &pb.RegionAction{Region: spec}
	own := []*pb.RegionAction{}
	ownIndex := []int{}
	for i, a := range actions {
		o, _ := a.(object)
		p := &pb.Action{Index: new(uint32(i))}
		switch o["op"] {
		case "get":
			p.Get = r.protoGet(o)
		case "checkAndMutate", "mutateRow":
			ra := &pb.RegionAction{Region: spec, Atomic: new(true)}
			list := list(o, "mutations")
			if o["op"] == "checkAndMutate" {
				c, _ := o["condition"].(object)
				ra.Condition = r.protoCondition(c, data(o["row"]))
				list = []any{o["mutation"]}
			}
			for j, x := range list {
				m, _ := x.(object)
				ra.Action = append(ra.Action, &pb.Action{Index: new(uint32(j)), Mutation: r.inlineMutation(text(m, "op"), r.mutation(m))})
			}
			own, ownIndex = append(own, ra), append(ownIndex, i)
			continue
		default:
			p.Mutation = r.inlineMutation(text(o, "op"), r.mutation(o))
		}
		plain.Action = append(plain.Action, p)
	}
	in := &pb.MultiRequest{}
	if len(plain.Action) > 0 {
		in.RegionAction = append(in.RegionAction, plain)
	}
	in.RegionAction = append(in.RegionAction, own...)
	var out pb.MultiResponse
	got, err := r.call(l.Server, "Multi", in, &out)
	if err != nil {
		return nil, err
	}
	if len(out.RegionActionResult) != len(in.RegionAction) {
		return nil, fmt.Errorf("%d answers to %d region actions", len(out.RegionActionResult), len(in.RegionAction))
	}
	results := make([]any, len(actions))
	failed := 0
	for i, rar := range out.RegionActionResult {
		if in.RegionAction[i] != plain {
			at := ownIndex[i-(len(in.RegionAction)-len(own))]
			switch o, _ := actions[at].(object); {
			case rar.Exception != nil:
				failed++
				results[at] = remote(wire.ParseNamed(rar.Exception))
			case o["op"] == "mutateRow":
				results[at] = object{"cells": []any{}, "exists": rar.GetProcessed()}
			default:
				results[at] = object{"success": rar.GetProcessed()}
			}
			continue
		}
		if rar.Exception != nil {
			return nil, wire.ParseNamed(rar.Exception)
		}
		for _, re := range rar.ResultOrException {
			if int(re.GetIndex()) >= len(results) {
				return nil, fmt.Errorf("an answer to action %d of %d", re.GetIndex(), len(results))
			}
			if re.Exception != nil {
				failed++
				results[re.GetIndex()] = remote(wire.ParseNamed(re.Exception))
				continue
			}
			n := int(re.GetResult().GetAssociatedCellCount())
			if n > len(got) {
				return nil, fmt.Errorf("a result counts %d cells, the block has %d left", n, len(got))
			}
			o := object{"cells": cellsOf(got[:n])}
			got = got[n:]
			results[re.GetIndex()] = o
		}
	}
	o := object{"actions": results}
	if failed > 0 {
		o["failed"] = failed
	}
	return o, nil
}
