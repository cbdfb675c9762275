package vectors

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The raw calls: one request as written, over a socket of the runner's own.

// place is the region a raw call is for, and the server that has it.
func (r *runner) place(s object) (*pb.RegionSpecifier, hbase.ServerName, error) {
	l, err := r.locate(r.tab, data(s["regionOf"]))
	if err != nil {
		return nil, hbase.ServerName{}, err
	}
	spec := &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: l.Region.Name()}
	if s["specifier"] == "ENCODED_REGION_NAME" {
		spec.Type = pb.RegionSpecifier_ENCODED_REGION_NAME.Enum()
		spec.Value = []byte(l.Region.EncodedName())
	}
	if v, ok := s["regionName"]; ok {
		spec.Value = data(v)
	}
	return spec, l.Server, nil
}

func (r *runner) protoRange(v any) *pb.TimeRange {
	t := r.timeRange(v)
	return &pb.TimeRange{From: new(uint64(t.From)), To: new(uint64(t.To))}
}

// query sets what Get and Scan have in common.
func (r *runner) query(s object) (cols []*pb.Column, tr *pb.TimeRange, byFamily []*pb.ColumnFamilyTimeRange, attributes []*pb.NameBytesPair) {
	for _, c := range columns(s) {
		cols = append(cols, &pb.Column{Family: c.Family, Qualifier: c.Qualifiers})
	}
	if v, ok := s["timeRange"]; ok {
		tr = r.protoRange(v)
	}
	if v, ok := s["timestamp"]; ok {
		ts := r.stamp(v)
		tr = &pb.TimeRange{From: new(uint64(ts)), To: new(uint64(ts + 1))}
	}
	o, _ := s["familyTimeRanges"].(object)
	for _, f := range sorted(o) {
		byFamily = append(byFamily, &pb.ColumnFamilyTimeRange{ColumnFamily: data(f), TimeRange: r.protoRange(o[f])})
	}
	if isolation(s) == hbase.ReadUncommitted {
		attributes = append(attributes, &pb.NameBytesPair{Name: new("_isolationlevel_"), Value: []byte{1}})
	}
	return cols, tr, byFamily, attributes
}

func uint32Of(s object, key string) *uint32 {
	if v, ok := s[key]; ok {
		return new(uint32(integer(v)))
	}
	return nil
}

func boolOf(s object, key string) *bool {
	if v, ok := s[key].(bool); ok {
		return &v
	}
	return nil
}

func protoVersions(s object) *uint32 {
	if flag(s, "allVersions") {
		return new(uint32(math.MaxInt32))
	}
	return uint32Of(s, "maxVersions")
}

func (r *runner) protoGet(s object) *pb.Get {
	g := &pb.Get{Row: data(s["row"]), MaxVersions: protoVersions(s), StoreLimit: uint32Of(s, "storeLimit"), StoreOffset: uint32Of(s, "storeOffset"),
		ExistenceOnly: boolOf(s, "existsOnly"), ClosestRowBefore: boolOf(s, "closestRowBefore"), Filter: r.protoFilter(s)}
	g.Column, g.TimeRange, g.CfTimeRange, g.Attribute = r.query(s)
	return g
}

func (r *runner) protoScan(s object) *pb.Scan {
	p := &pb.Scan{IncludeStartRow: boolOf(s, "includeStartRow"), IncludeStopRow: new(flag(s, "includeStopRow")), MaxVersions: protoVersions(s),
		StoreLimit: uint32Of(s, "storeLimit"), StoreOffset: uint32Of(s, "storeOffset"), BatchSize: uint32Of(s, "batch"), Reversed: boolOf(s, "reversed"),
		LoadColumnFamiliesOnDemand: boolOf(s, "loadOnDemand"), NeedCursorResult: boolOf(s, "needCursor"), Filter: r.protoFilter(s)}
	p.Column, p.TimeRange, p.CfTimeRange, p.Attribute = r.query(s)
	if v, ok := s["startRow"]; ok {
		p.StartRow = data(v)
	}
	if v, ok := s["stopRow"]; ok {
		p.StopRow = data(v)
	}
	if v, ok := s["rowPrefix"]; ok {
		p.StartRow = data(v)
		p.StopRow = hbase.PrefixStop(p.StartRow)
	}
	if flag(s, "omitIncludeStopRow") {
		p.IncludeStopRow = nil
	}
	if v := boolOf(s, "explicitIncludeStopRow"); v != nil {
		p.IncludeStopRow = v
	}
	if v, ok := s["maxResultSize"]; ok {
		p.MaxResultSize = new(uint64(integer(v)))
	}
	if flag(s, "raw") {
		p.Attribute = append(p.Attribute, &pb.NameBytesPair{Name: new("_raw_"), Value: []byte{0xff}})
	}
	return p
}

// protoMutation is a mutation as written, cells inside.
func (r *runner) protoMutation(m object) *pb.MutationProto {
	kind, ok := pb.MutationProto_MutationType_value[text(m, "type")]
	if !ok {
		r.bad("mutation type %v", m["type"])
	}
	p := &pb.MutationProto{MutateType: pb.MutationProto_MutationType(kind).Enum()}
	if v, ok := m["row"]; ok {
		p.Row = data(v)
	}
	if v, ok := m["ts"]; ok {
		p.Timestamp = new(uint64(r.stamp(v)))
	}
	if v, ok := m["nonce"]; ok {
		p.Nonce = new(uint64(integer(v)))
	}
	attributes, _ := m["attributes"].(object)
	for _, k := range sorted(attributes) {
		p.Attribute = append(p.Attribute, &pb.NameBytesPair{Name: &k, Value: data(attributes[k])})
	}
	for _, x := range list(m, "columns") {
		c, ok := x.([]any)
		if !ok || len(c) < 4 {
			r.bad("column %v", x)
			continue
		}
		qv := &pb.MutationProto_ColumnValue_QualifierValue{}
		if c[1] != nil {
			qv.Qualifier = data(c[1])
		}
		if c[2] != nil {
			qv.Timestamp = new(uint64(r.stamp(c[2])))
		}
		if c[3] != nil {
			qv.Value = data(c[3])
		}
		if len(c) > 4 {
			name, _ := c[4].(string)
			qv.DeleteType = pb.MutationProto_DeleteType(pb.MutationProto_DeleteType_value[name]).Enum()
		}
		p.ColumnValue = append(p.ColumnValue, &pb.MutationProto_ColumnValue{Family: data(c[0]), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{qv}})
	}
	return p
}

func (r *runner) protoCondition(v object, row []byte) *pb.Condition {
	c := &pb.Condition{Row: row}
	if x, ok := v["row"]; ok {
		c.Row = data(x)
	}
	if x, ok := v["timeRange"]; ok {
		c.TimeRange = r.protoRange(x)
	}
	if c.Filter = r.protoFilter(v); c.Filter != nil {
		return c
	}
	c.Family, c.Qualifier = data(v["family"]), data(v["qualifier"])
	if op := text(v, "op"); op != "" {
		c.CompareType = pb.CompareType(pb.CompareType_value[op]).Enum()
	}
	empty := object{"type": "binary", "value": ""}
	switch {
	case flag(v, "ifNotExists"):
		c.CompareType, c.Comparator = pb.CompareType_EQUAL.Enum(), r.protoComparator(empty)
	case v["rawComparator"] != nil:
		o, _ := v["rawComparator"].(object)
		c.Comparator = &pb.Comparator{Name: new(text(o, "name")), SerializedComparator: r.unhex(o)}
	case v["comparator"] != nil:
		o, _ := v["comparator"].(object)
		c.Comparator = r.protoComparator(o)
	case v["value"] != nil:
		c.Comparator = r.protoComparator(object{"type": "binary", "value": v["value"]})
	default:
		if _, ok := v["value"]; ok {
			c.Comparator = r.protoComparator(empty)
		}
	}
	return c
}

// protoResult writes a Result as the files do; block are the cells that came
// beside it.
func protoResult(res *pb.Result, block []hbase.Cell) any {
	if res == nil {
		return nil
	}
	o := object{"associatedCellCount": int(res.GetAssociatedCellCount())}
	if res.Exists != nil {
		o["exists"] = res.GetExists()
	}
	if res.GetAssociatedCellCount() > 0 {
		o["cells"] = cellsOf(block)
		return o
	}
	var inside []hbase.Cell
	for _, c := range res.GetCell() {
		inside = append(inside, hbase.Cell{Row: c.Row, Family: c.Family, Qualifier: c.Qualifier, Timestamp: int64(c.GetTimestamp()), Type: hbase.CellType(c.GetCellType()), Value: c.Value})
	}
	o["cells"] = cellsOf(inside)
	return o
}

func (r *runner) rpcGet(s object) (any, error) {
	spec, server, err := r.place(s)
	if err != nil {
		return nil, err
	}
	g, _ := s["get"].(object)
	var out pb.GetResponse
	got, err := r.call(server, "Get", &pb.GetRequest{Region: spec, Get: r.protoGet(g)}, &out)
	if err != nil {
		return nil, err
	}
	return object{"result": protoResult(out.Result, got)}, nil
}

func (r *runner) rpcMutate(s object) (any, error) {
	spec, server, err := r.place(s)
	if err != nil {
		return nil, err
	}
	m, _ := s["mutation"].(object)
	in := &pb.MutateRequest{Region: spec, Mutation: r.protoMutation(m)}
	if o, ok := s["condition"].(object); ok {
		in.Condition = r.protoCondition(o, in.Mutation.Row)
	}
	if v, ok := s["nonce"]; ok {
		in.Mutation.Nonce, in.NonceGroup = new(uint64(integer(v))), new(r.nonceGroup)
	}
	var out pb.MutateResponse
	got, err := r.call(server, "Mutate", in, &out)
	if err != nil {
		return nil, err
	}
	o := object{"result": protoResult(out.Result, got)}
	if out.Processed != nil {
		o["processed"] = out.GetProcessed()
	}
	return o, nil
}

// firstRow is the row of the first action, if that is a mutation.
func firstRow(ra *pb.RegionAction) []byte {
	if len(ra.Action) == 0 {
		return nil
	}
	return ra.Action[0].GetMutation().GetRow()
}

func (r *runner) rpcMulti(s object) (any, error) {
	in := &pb.MultiRequest{}
	if flag(s, "nonceGroup") {
		in.NonceGroup = new(r.nonceGroup)
	}
	var server hbase.ServerName
	for _, x := range list(s, "regionActions") {
		a, _ := x.(object)
		spec, at, err := r.place(a)
		if err != nil {
			return nil, err
		}
		if server == (hbase.ServerName{}) {
			server = at
		}
		ra := &pb.RegionAction{Region: spec, Atomic: boolOf(a, "atomic")}
		for i, y := range list(a, "actions") {
			act, _ := y.(object)
			p := &pb.Action{Index: new(uint32(i))}
			if g, ok := act["get"].(object); ok {
				p.Get = r.protoGet(g)
			} else {
				m, _ := act["mutation"].(object)
				p.Mutation = r.protoMutation(m)
			}
			ra.Action = append(ra.Action, p)
		}
		if o, ok := a["condition"].(object); ok {
			ra.Condition = r.protoCondition(o, firstRow(ra))
		}
		in.RegionAction = append(in.RegionAction, ra)
	}
	if o, ok := s["condition"].(object); ok {
		in.Condition = r.protoCondition(o, firstRow(in.RegionAction[0]))
	}
	var out pb.MultiResponse
	got, err := r.call(server, "Multi", in, &out)
	if err != nil {
		return nil, err
	}
	regions := []any{}
	for _, rar := range out.RegionActionResult {
		o := object{}
		if rar.Processed != nil {
			o["processed"] = rar.GetProcessed()
		}
		if rar.Exception != nil {
			o["regionException"] = remote(wire.ParseNamed(rar.Exception))
		}
		results := []any{}
		for _, re := range rar.ResultOrException {
			x := object{"index": int(re.GetIndex())}
			if re.Exception != nil {
				x["exception"] = remote(wire.ParseNamed(re.Exception))
			} else if re.Result != nil {
				n := int(re.GetResult().GetAssociatedCellCount())
				if n > len(got) {
					return nil, fmt.Errorf("a result counts %d cells, the block has %d left", n, len(got))
				}
				x["result"] = protoResult(re.Result, got[:n])
				got = got[n:]
			}
			results = append(results, x)
		}
		o["results"] = results
		regions = append(regions, o)
	}
	o := object{"regions": regions}
	if out.Processed != nil {
		o["processed"] = out.GetProcessed()
	}
	return o, nil
}

func (r *runner) rpcScan(s object) (any, error) {
	spec, server, err := r.place(s)
	if err != nil {
		return nil, err
	}
	scan, _ := s["scan"].(object)
	var calls []any
	var id, seq, readPoint uint64
	for i, x := range list(s, "calls") {
		c, _ := x.(object)
		if do, ok := c["do"].(object); ok {
			got, err := r.play(do)
			if err != nil {
				got = failure(err)
			}
			calls = append(calls, object{"did": got})
			continue
		}
		open := i == 0
		if v := boolOf(c, "open"); v != nil {
			open = *v
		}
		in := &pb.ScanRequest{ClientHandlesPartials: new(true), ClientHandlesHeartbeats: new(true), NumberOfRows: uint32Of(c, "numberOfRows"),
			LimitOfRows: uint32Of(c, "limitOfRows"), CloseScanner: boolOf(c, "close"), Renew: boolOf(c, "renew")}
		if v := boolOf(c, "clientHandlesPartials"); v != nil {
			in.ClientHandlesPartials = v
		}
		if v := boolOf(c, "clientHandlesHeartbeats"); v != nil {
			in.ClientHandlesHeartbeats = v
		}
		if open {
			in.Region, in.Scan = spec, r.protoScan(scan)
			if flag(c, "reuseReadPoint") {
				in.Scan.MvccReadPoint = new(readPoint)
			}
			seq = 0
		} else {
			in.ScannerId, in.NextCallSeq = new(id), new(seq)
			if v, ok := c["scannerId"]; ok {
				in.ScannerId = new(uint64(integer(v)))
			}
			if v, ok := c["nextCallSeq"]; ok {
				in.NextCallSeq = new(uint64(integer(v)))
			}
			seq++
		}
		var out pb.ScanResponse
		got, err := r.call(server, "Scan", in, &out)
		if err != nil {
			calls = append(calls, failure(err))
			continue
		}
		if out.ScannerId != nil {
			id = out.GetScannerId()
		}
		if out.MvccReadPoint != nil {
			readPoint = out.GetMvccReadPoint()
		}
		answer, err := scanAnswer(&out, got)
		if err != nil {
			return nil, err
		}
		calls = append(calls, answer)
	}
	return object{"calls": calls}, nil
}

func scanAnswer(out *pb.ScanResponse, got []hbase.Cell) (object, error) {
	results, counts := []any{}, []any{}
	for i, n := range out.CellsPerResult {
		if int(n) > len(got) || i >= len(out.PartialFlagPerResult) {
			return nil, fmt.Errorf("result %d has %d cells, %d are left, and there are %d flags", i, n, len(got), len(out.PartialFlagPerResult))
		}
		results = append(results, object{"cells": cellsOf(got[:n]), "partial": out.PartialFlagPerResult[i]})
		counts = append(counts, int(n))
		got = got[n:]
	}
	o := object{"results": results, "cellsPerResult": counts, "moreResults": out.GetMoreResults(),
		"hasScannerId": out.ScannerId != nil, "hasTtl": out.Ttl != nil, "hasMvccReadPoint": out.MvccReadPoint != nil}
	if out.MoreResultsInRegion != nil {
		o["moreResultsInRegion"] = out.GetMoreResultsInRegion()
	}
	if out.Stale != nil {
		o["stale"] = out.GetStale()
	}
	if out.HeartbeatMessage != nil {
		o["heartbeat"] = out.GetHeartbeatMessage()
	}
	if out.Cursor != nil {
		o["cursor"] = raw(out.Cursor.Row)
	}
	return o, nil
}

// placeholder stands for a region's name in a request to the master.
const placeholder = `\{\{(encoded|name):([^}]*)\}\}`

// rpcMaster sends a request written in protobuf's text form, and waits for the
// procedure it has started.
func (r *runner) rpcMaster(s object) (any, error) {
	var lost error
	request := regexp.MustCompile(placeholder).ReplaceAllStringFunc(text(s, "request"), func(m string) string {
		kind, row, _ := strings.Cut(strings.Trim(m, "{}"), ":")
		var l admin.RegionLocation
		if l, lost = r.locate(r.tableName(s), data(row)); kind == "encoded" {
			return l.Region.EncodedName()
		}
		return string(l.Region.Name())
	})
	if lost != nil {
		return nil, lost
	}
	d, err := protoregistry.GlobalFiles.FindDescriptorByName("hbase.pb.MasterService")
	if err != nil {
		return nil, err
	}
	method := d.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(text(s, "method")))
	if method == nil {
		return nil, fmt.Errorf("malformed step: no method %v", s["method"])
	}
	in, err := message(method.Input().FullName())
	if err != nil {
		return nil, err
	}
	out, err := message(method.Output().FullName())
	if err != nil {
		return nil, err
	}
	if err := prototext.Unmarshal([]byte(request), in); err != nil {
		return nil, err
	}
	if err := r.callMaster(text(s, "method"), in.(wire.Marshaler), out.(wire.Unmarshaler)); err != nil {
		return nil, err
	}
	o := object{}
	if f := out.ProtoReflect().Descriptor().Fields().ByName("proc_id"); f != nil && out.ProtoReflect().Has(f) {
		o["hasProcId"], o["procedure"] = true, "FINISHED"
		id := out.ProtoReflect().Get(f)
		out.ProtoReflect().Clear(f)
		n := uint64(0)
		if f.Kind() == protoreflect.Int64Kind {
			n = uint64(id.Int())
		} else {
			n = id.Uint()
		}
		if _, err := r.clients.plain.Admin().Await(r.ctx, n); err != nil {
			o["procedureException"] = failure(err)
		}
	}
	o["response"] = out
	return o, nil
}

func message(name protoreflect.FullName) (proto.Message, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(name)
	if err != nil {
		return nil, err
	}
	return t.New().Interface(), nil
}

// sameMessage compares a message with one in text form.
func sameMessage(got proto.Message, want string) bool {
	w := got.ProtoReflect().New().Interface()
	if err := prototext.Unmarshal([]byte(want), w); err != nil {
		return false
	}
	return proto.Equal(got, w)
}

// oneLine is a message in text form with single spaces, as recorded.
func oneLine(m proto.Message) string {
	return strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " ")
}
