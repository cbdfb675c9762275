package vectors

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// The data operations, through the public client. What they give is in the
// form of the files' expect, with bytes as they are.

func (r *runner) row(s object) []byte { return data(s["row"]) }

func (r *runner) timeRange(v any) hbase.TimeRange {
	l, ok := v.([]any)
	if !ok || len(l) != 2 {
		r.bad("time range %v", v)
		return hbase.TimeRange{}
	}
	return hbase.TimeRange{From: r.stamp(l[0]), To: r.stamp(l[1])}
}

// rangeOf reads timeRange or timestamp.
func (r *runner) rangeOf(s object) hbase.TimeRange {
	if v, ok := s["timeRange"]; ok {
		return r.timeRange(v)
	}
	if v, ok := s["timestamp"]; ok {
		return hbase.At(r.stamp(v))
	}
	return hbase.TimeRange{}
}

func (r *runner) familyRanges(s object) map[string]hbase.TimeRange {
	o, ok := s["familyTimeRanges"].(object)
	if !ok {
		return nil
	}
	m := make(map[string]hbase.TimeRange, len(o))
	for f, v := range o {
		m[string(data(f))] = r.timeRange(v)
	}
	return m
}

func columns(s object) []hbase.Column {
	o, _ := s["families"].(object)
	var out []hbase.Column
	for _, f := range sorted(o) {
		c := hbase.Column{Family: data(f)}
		for _, q := range list(o, f) {
			c.Qualifiers = append(c.Qualifiers, data(q))
		}
		out = append(out, c)
	}
	return out
}

func versions(s object) int {
	if flag(s, "allVersions") {
		return hbase.AllVersions
	}
	return int(integer(s["maxVersions"]))
}

func loadOnDemand(s object) *bool {
	if v, ok := s["loadOnDemand"].(bool); ok {
		return &v
	}
	return nil
}

func isolation(s object) hbase.Isolation {
	if s["isolation"] == "READ_UNCOMMITTED" {
		return hbase.ReadUncommitted
	}
	return hbase.ReadCommitted
}

func (r *runner) options(s object, o *hbase.MutationOptions) {
	if v, ok := s["ttl"]; ok {
		o.TTL = time.Duration(integer(v)) * time.Millisecond
	}
	switch text(s, "durability") {
	case "SKIP_WAL":
		o.Durability = hbase.SkipWAL
	case "ASYNC_WAL":
		o.Durability = hbase.AsyncWAL
	case "SYNC_WAL":
		o.Durability = hbase.SyncWAL
	case "FSYNC_WAL":
		o.Durability = hbase.FsyncWAL
	}
}

// mutation makes a Put, Delete, Increment or Append.
func (r *runner) mutation(s object) hbase.Mutation {
	ts := int64(hbase.LatestTimestamp)
	if v, ok := s["ts"]; ok {
		ts = r.stamp(v)
	}
	at := func(l []any, i int) any {
		if i < len(l) {
			return l[i]
		}
		return nil
	}
	cells := func(f func(c []any)) {
		for _, c := range list(s, "cells") {
			l, ok := c.([]any)
			if !ok {
				r.bad("cell %v", c)
				continue
			}
			f(l)
		}
	}
	switch s["op"] {
	case "put":
		p := hbase.NewPut(r.row(s))
		cells(func(c []any) {
			t := ts
			if c[2] != nil {
				t = r.stamp(c[2])
			}
			p.SetAt(string(data(c[0])), string(data(c[1])), t, data(c[3]))
		})
		r.options(s, &p.MutationOptions)
		return p
	case "increment":
		i := hbase.NewIncrement(r.row(s))
		cells(func(c []any) {
			amount, wide := int64(0), true
			if _, raw := c[2].(string); raw {
				b := data(c[2])
				if wide = len(b) == 8; wide {
					amount = int64(binary.BigEndian.Uint64(b))
				}
			} else {
				amount = integer(c[2])
			}
			i.Add(string(data(c[0])), string(data(c[1])), amount)
			last := &i.Cells()[len(i.Cells())-1]
			last.Timestamp = ts
			if !wide {
				last.Value = data(c[2])
			}
		})
		if v, ok := s["timeRange"]; ok {
			i.TimeRange = r.timeRange(v)
		}
		if v, ok := s["returnResults"].(bool); ok {
			i.NoResult = !v
		}
		r.options(s, &i.MutationOptions)
		return i
	case "append":
		a := hbase.NewAppend(r.row(s))
		cells(func(c []any) {
			a.Add(string(data(c[0])), string(data(c[1])), data(c[2]))
			a.Cells()[len(a.Cells())-1].Timestamp = ts
		})
		if v, ok := s["timeRange"]; ok {
			a.TimeRange = r.timeRange(v)
		}
		if v, ok := s["returnResults"].(bool); ok {
			a.NoResult = !v
		}
		r.options(s, &a.MutationOptions)
		return a
	case "delete":
		// Java's addFamily throws away what was added for the family before.
		items := list(s, "items")
		for i, it := range items {
			if l, _ := it.([]any); at(l, 0) == "family" {
				items = slices.Concat(slices.DeleteFunc(slices.Clone(items[:i]), func(x any) bool {
					y, _ := x.([]any)
					return bytes.Equal(data(at(y, 1)), data(at(l, 1)))
				}), items[i:])
				break
			}
		}
		d := hbase.NewDelete(r.row(s))
		if _, ok := s["ts"]; ok {
			d.UpTo(ts)
		}
		for _, it := range items {
			l, _ := it.([]any)
			family, qualifier, t := string(data(at(l, 1))), string(data(at(l, 2))), ts
			if v := at(l, 3); v != nil {
				t = r.stamp(v)
			}
			switch at(l, 0) {
			case "version":
				d.Version(family, qualifier, t)
			case "column":
				d.ColumnUpTo(family, qualifier, t)
			case "family":
				d.FamilyUpTo(family, t)
			case "familyVersion":
				d.FamilyVersion(family, t)
			default:
				r.bad("item %v", it)
			}
		}
		r.options(s, &d.MutationOptions)
		return d
	}
	r.bad("%v is no mutation", s["op"])
	return hbase.NewPut(r.row(s))
}

func (r *runner) rowMutations(s object) *hbase.RowMutations {
	m := hbase.NewRowMutations(r.row(s))
	for _, x := range list(s, "mutations") {
		o, _ := x.(object)
		m.Add(r.mutation(o))
	}
	return m
}

func (r *runner) rowAction(s object) hbase.RowAction {
	if s["op"] == "mutateRow" {
		return r.rowMutations(s)
	}
	m := r.mutation(s)
	a, ok := m.(hbase.RowAction)
	if !ok {
		r.bad("%v is no action", s["op"])
	}
	return a
}

func (r *runner) mutate(s object) (any, error) {
	if v, ok := s["ts"]; ok && s["op"] == "put" && len(list(s, "cells")) > 0 && r.stamp(v) < 0 {
		return nil, errInexpressible // a Put has no timestamp beside its cells'
	}
	switch m := r.mutation(s).(type) {
	case *hbase.Put:
		return done(r.table(s).Put(r.ctx, m))
	case *hbase.Delete:
		return done(r.table(s).Delete(r.ctx, m))
	case *hbase.Increment:
		return resultOf(r.table(s).Increment(r.ctx, m))
	case *hbase.Append:
		return resultOf(r.table(s).Append(r.ctx, m))
	}
	return nil, nil
}

func done(err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object{"ok": true}, nil
}

func resultOf(res *hbase.Result, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return object{"cells": cellsOf(res.Cells)}, nil
}

// cellsOf writes cells as the files do, the bytes as they are.
func cellsOf(in []hbase.Cell) []any {
	out := make([]any, 0, len(in))
	for i := range in {
		c := &in[i]
		out = append(out, []any{raw(c.Row), raw(c.Family), raw(c.Qualifier), c.Timestamp, c.Type.String(), raw(c.Value)})
	}
	return out
}

// raw are bytes of an answer, not in the files' notation.
type raw string

func (r *runner) get(s object) (*hbase.Get, error) {
	g := &hbase.Get{
		Row: r.row(s), Columns: columns(s), TimeRange: r.rangeOf(s), FamilyTimeRange: r.familyRanges(s), MaxVersions: versions(s),
		MaxPerFamily: int(integer(s["storeLimit"])), OffsetPerFamily: int(integer(s["storeOffset"])),
		ExistenceOnly: flag(s, "existsOnly"), LoadOnDemand: loadOnDemand(s), Isolation: isolation(s),
	}
	if o, ok := s["filter"].(object); ok {
		f, err := buildFilter(o)
		if err != nil {
			return nil, err
		}
		g.Filter = f
	}
	return g, nil
}

func (r *runner) playGet(s object) (any, error) {
	g, err := r.get(s)
	if err != nil {
		return nil, err
	}
	if s["op"] == "exists" {
		ok, err := r.table(s).Exists(r.ctx, g)
		if err != nil {
			return nil, err
		}
		return object{"value": ok}, nil
	}
	res, err := r.table(s).Get(r.ctx, g)
	if err != nil {
		return nil, err
	}
	o := object{"cells": cellsOf(res.Cells)}
	if g.ExistenceOnly {
		o["exists"] = res.Exists
	}
	return o, nil
}

func (r *runner) scan(s object) (*hbase.Scan, error) {
	scan := &hbase.Scan{
		Start: data(s["startRow"]), Stop: data(s["stopRow"]), IncludeStop: flag(s, "includeStopRow"), Reversed: flag(s, "reversed"),
		Columns: columns(s), TimeRange: r.rangeOf(s), FamilyTimeRange: r.familyRanges(s), MaxVersions: versions(s),
		MaxPerFamily: int(integer(s["storeLimit"])), OffsetPerFamily: int(integer(s["storeOffset"])),
		Raw: flag(s, "raw"), Limit: int(integer(s["limit"])), Batch: int(integer(s["batch"])), AllowPartial: flag(s, "allowPartial"),
		Caching: int(integer(s["caching"])), MaxResultSize: integer(s["maxResultSize"]),
		LoadOnDemand: loadOnDemand(s), Isolation: isolation(s),
	}
	if v, ok := s["includeStartRow"].(bool); ok {
		scan.ExcludeStart = !v
	}
	if v, ok := s["rowPrefix"]; ok {
		scan.Start = data(v)
		scan.Stop = hbase.PrefixStop(scan.Start)
	}
	if flag(s, "oneRow") {
		scan.Limit = 1
	}
	switch text(s, "readType") {
	case "STREAM":
		scan.ReadType = hbase.ReadStream
	case "PREAD":
		scan.ReadType = hbase.ReadPositional
	}
	if o, ok := s["filter"].(object); ok {
		f, err := buildFilter(o)
		if err != nil {
			return nil, err
		}
		scan.Filter = f
		if flag(s, "batchFirst") {
			scan.Filter = unguarded{f}
		}
	}
	return scan, nil
}

func (r *runner) playScan(s object) (any, error) {
	scan, err := r.scan(s)
	if err != nil {
		return nil, err
	}
	results := []any{}
	for res, err := range r.table(s).Scan(r.ctx, scan).Rows() {
		if err != nil {
			return nil, err
		}
		o := object{"cells": cellsOf(res.Cells)}
		if res.Partial {
			o["more"] = true
		}
		results = append(results, o)
	}
	return object{"results": results}, nil
}

func (r *runner) playMutateRow(s object) (any, error) {
	res, err := r.table(s).MutateRow(r.ctx, r.rowMutations(s))
	if err != nil {
		return nil, err
	}
	return object{"exists": true, "cells": cellsOf(res.Cells)}, nil
}

// condition sets what a CheckAndMutate asks.
func (r *runner) condition(c *hbase.CheckAndMutate, v object) error {
	if x, ok := v["timeRange"]; ok {
		c.TimeRange = r.timeRange(x)
	}
	if o, ok := v["filter"].(object); ok {
		f, err := buildFilter(o)
		if err != nil {
			return err
		}
		c.IfFilter(f)
		return nil
	}
	family, qualifier := string(data(v["family"])), string(data(v["qualifier"]))
	if flag(v, "ifNotExists") {
		c.IfNotExists(family, qualifier)
		return nil
	}
	op, ok := map[string]hbase.CompareOp{
		"LESS": hbase.Less, "LESS_OR_EQUAL": hbase.LessOrEqual, "EQUAL": hbase.Equal, "NOT_EQUAL": hbase.NotEqual,
		"GREATER_OR_EQUAL": hbase.GreaterOrEqual, "GREATER": hbase.Greater,
	}[text(v, "op")]
	if !ok {
		r.bad("operator %v", v["op"])
	}
	value := data(v["value"])
	if o, ok := v["comparator"].(object); ok {
		if o["type"] != "binary" {
			r.bad("a condition of the client compares bytes, not %v", o["type"])
		}
		value = data(o["value"])
	}
	c.If(family, qualifier, op, value)
	return nil
}

func (r *runner) check(s object) (*hbase.CheckAndMutate, error) {
	c := hbase.NewCheckAndMutate(r.row(s))
	cond, _ := s["condition"].(object)
	if err := r.condition(c, cond); err != nil {
		return nil, err
	}
	m, _ := s["mutation"].(object)
	return c.Then(r.rowAction(m)), nil
}

func (r *runner) playCheck(s object) (any, error) {
	c, err := r.check(s)
	if err != nil {
		return nil, err
	}
	res, err := r.table(s).CheckAndMutate(r.ctx, c)
	if err != nil {
		return nil, err
	}
	return checked(res.Applied, res.Result), nil
}

func checked(applied bool, res *hbase.Result) object {
	o := object{"success": applied}
	if !res.Empty() {
		o["result"] = cellsOf(res.Cells)
	}
	return o
}

func (r *runner) playBatch(s object) (any, error) {
	var ops []hbase.Op
	for _, a := range list(s, "actions") {
		o, _ := a.(object)
		var op hbase.Op
		var err error
		switch o["op"] {
		case "get":
			op, err = r.get(o)
		case "checkAndMutate":
			op, err = r.check(o)
		case "mutateRow":
			op = r.rowMutations(o)
		default:
			op = r.mutation(o)
		}
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	outcomes := r.table(s).Batch(r.ctx, ops)
	results := make([]any, len(ops))
	failed := 0
	for i, o := range outcomes {
		switch op := ops[i].(type) {
		case *hbase.CheckAndMutate:
			results[i] = checked(o.Applied, o.Result)
		case *hbase.RowMutations:
			results[i] = object{"cells": []any{}, "exists": true}
		case *hbase.Get:
			res := object{"cells": []any{}}
			if op.ExistenceOnly && o.Err == nil {
				res["exists"] = o.Result.Exists
			}
			results[i] = res
		default:
			results[i] = object{"cells": []any{}}
		}
		if res, ok := results[i].(object); ok && o.Result != nil && res["cells"] != nil {
			res["cells"] = cellsOf(o.Result.Cells)
		}
		if o.Err != nil {
			failed++
			results[i] = failure(o.Err)
		}
	}
	out := object{"actions": results}
	if failed > 0 {
		out["failed"] = failed
	}
	return out, nil
}

// playMultiRow goes through MutateRows and CheckAndMutateRows; what they refuse
// or cannot say goes through CallService.
func (r *runner) playMultiRow(s object) (any, error) {
	tab := r.table(s)
	var ms []hbase.Mutation
	plain := true
	for _, x := range list(s, "mutations") {
		o, _ := x.(object)
		m := r.mutation(o)
		ms = append(ms, m)
		switch m.(type) {
		case *hbase.Put, *hbase.Delete:
		default:
			plain = false
		}
	}
	if _, via := s["via"]; via || !plain || len(ms) == 0 {
		return r.multiRowService(s)
	}
	conditions := list(s, "conditions")
	if len(conditions) == 0 {
		if err := tab.MutateRows(r.ctx, ms...); err != nil {
			return nil, err
		}
		return object{"processed": true}, nil
	}
	var cs []*hbase.CheckAndMutate
	for _, x := range conditions {
		o, _ := x.(object)
		c := hbase.NewCheckAndMutate(r.row(o))
		if err := r.condition(c, o); err != nil {
			return nil, err
		}
		cs = append(cs, c)
	}
	applied, err := tab.CheckAndMutateRows(r.ctx, cs, ms...)
	if err != nil {
		return nil, err
	}
	return object{"processed": applied}, nil
}

func (r *runner) multiRowService(s object) (any, error) {
	in := &pb.MutateRowsRequest{}
	var via []byte
	for i, x := range list(s, "mutations") {
		o, _ := x.(object)
		m := r.mutation(o)
		if i == 0 {
			via = m.RowKey()
		}
		in.MutationRequest = append(in.MutationRequest, r.inlineMutation(text(o, "op"), m))
	}
	for _, x := range list(s, "conditions") {
		o, _ := x.(object)
		in.Condition = append(in.Condition, r.protoCondition(o, nil))
	}
	if v, ok := s["via"]; ok {
		via = data(v)
	}
	b, err := in.MarshalVT()
	if err != nil {
		return nil, err
	}
	ans, err := r.table(s).CallService(r.ctx, via, &hbase.ServiceCall{Service: "MultiRowMutationService", Method: "MutateRows", Request: b})
	if err != nil {
		return nil, err
	}
	var out pb.MutateRowsResponse
	if err := out.UnmarshalVT(ans.Value); err != nil {
		return nil, err
	}
	return object{"processed": out.GetProcessed()}, nil
}

// inlineMutation is a mutation with its cells inside the message.
func (r *runner) inlineMutation(op string, m hbase.Mutation) *pb.MutationProto {
	kind := map[string]pb.MutationProto_MutationType{
		"put": pb.MutationProto_PUT, "delete": pb.MutationProto_DELETE, "increment": pb.MutationProto_INCREMENT, "append": pb.MutationProto_APPEND,
	}[op]
	p := &pb.MutationProto{Row: m.RowKey(), MutateType: &kind}
	c, ok := m.(interface{ Cells() []hbase.Cell })
	if !ok {
		r.bad("%T has no cells", m)
		return p
	}
	for _, c := range c.Cells() {
		qv := &pb.MutationProto_ColumnValue_QualifierValue{Qualifier: c.Qualifier, Value: c.Value}
		if c.Timestamp != hbase.LatestTimestamp {
			qv.Timestamp = new(uint64(c.Timestamp))
		}
		switch c.Type {
		case hbase.TypeDelete:
			qv.DeleteType = pb.MutationProto_DELETE_ONE_VERSION.Enum()
		case hbase.TypeDeleteColumn:
			qv.DeleteType = pb.MutationProto_DELETE_MULTIPLE_VERSIONS.Enum()
		case hbase.TypeDeleteFamily:
			qv.DeleteType = pb.MutationProto_DELETE_FAMILY.Enum()
		case hbase.TypeDeleteFamilyVersion:
			qv.DeleteType = pb.MutationProto_DELETE_FAMILY_VERSION.Enum()
		}
		p.ColumnValue = append(p.ColumnValue, &pb.MutationProto_ColumnValue{Family: c.Family, QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{qv}})
	}
	return p
}
