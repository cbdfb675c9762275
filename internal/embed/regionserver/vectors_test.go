package regionserver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

type obj = map[string]any

// TestVectors runs what was recorded from HBase 2.6.4 through this server: the
// data operations as a Java client sends them (cells in blocks), the raw calls
// as written (cells inside the messages).
func TestVectors(t *testing.T) {
	for theme, ran := range vectorThemes {
		t.Run(theme, func(t *testing.T) {
			t.Parallel()
			f, err := os.Open(filepath.Join("..", "..", "..", "testdata", "vectors", theme+".json"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			d := json.NewDecoder(f)
			d.UseNumber()
			var theme struct {
				Fixtures map[string]obj
				Cases    []struct {
					Name, Why string
					Table     obj
					Fixture   string
					Physical  bool
					Steps     []obj
				}
			}
			if err := d.Decode(&theme); err != nil {
				t.Fatal(err)
			}
			h := newHarness(t, nil)
			h.events.SetEnabled(false)
			client := h.dial(rpctest.Options{})
			fixtures := make(map[string]*runner)
			cases := 0
			for name, f := range theme.Fixtures {
				r := newRunner(t, h, client, f["table"].(obj))
				steps, _ := f["steps"].([]any)
				for _, s := range steps {
					r.step(s.(obj))
				}
				fixtures[name] = r
			}
			for _, c := range theme.Cases {
				// When cells are dropped physically is the store's business, and
				// some things take a master.
				if c.Physical || vectorsOtherwise[c.Name] != "" || slices.ContainsFunc(c.Steps, needsMaster) {
					continue
				}
				cases++
				t.Run(strings.ReplaceAll(c.Name, "/", "_"), func(t *testing.T) {
					var r *runner
					switch {
					case c.Table != nil:
						r = newRunner(t, h, client, c.Table)
					case c.Fixture != "":
						r = fixtures[c.Fixture]
						r.t = t
					default:
						r = &runner{t: t, h: h, client: client, t0: time.Now().UnixMilli()}
					}
					r.nonceGroup++
					for i, s := range c.Steps {
						if r.unknownTable(s) {
							continue // the client finds out by itself
						}
						if got, want := r.step(s), s["expect"]; !r.same(s, got, want) {
							t.Errorf("%s\nstep %d: %s\n got %s\nwant %s", c.Why, i, short(without(s, "expect")), short(got), short(want))
						}
					}
				})
			}
			if cases != ran {
				t.Errorf("%d cases ran, want %d", cases, ran)
			}
		})
	}
}

// vectorThemes says how many cases of each theme can run here.
var vectorThemes = map[string]int{
	"scans": 135, "batch": 54, "errors": 58, "atomic": 104, "mutations": 92, "versions": 78,
	"filters-column": 65, "filters-list": 56, "filters-row": 72, "filters-value": 63,
}

// vectorsOtherwise are cases answered otherwise on purpose.
var vectorsOtherwise = map[string]string{
	"filters-value/regex-java-lookaround": "look-around and back references are refused",
	"filters-value/regex-joni-lookaround": "look-around and back references are refused",
	"filters-row/rowfilter-component":     "HBase compares what happens to lie behind a short row's key; here that is an error",
}

// needsMaster says whether a step is for a master.
func needsMaster(s obj) bool {
	switch s["op"] {
	case "createTable", "describeTable", "disableTable", "enableTable", "tableExists", "rpcMaster", "split", "storeFiles", "compact", "encodeFilter":
		return true
	}
	return false
}

func without(o obj, key string) obj {
	c := make(obj, len(o))
	for k, v := range o {
		if k != key {
			c[k] = v
		}
	}
	return c
}

func short(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > 1500 {
		return string(b[:1500]) + "..."
	}
	return string(b)
}

// runner runs the steps of one case.
type runner struct {
	t          *testing.T
	h          *harness
	client     *rpctest.Client
	table      *table
	families   map[string]map[string]string
	t0         int64
	nonceGroup uint64
}

func attributes(v any) map[string]string {
	m := make(map[string]string)
	o, _ := v.(obj)
	for k, x := range o {
		m[k] = fmt.Sprint(x)
	}
	return m
}

func newRunner(t *testing.T, h *harness, c *rpctest.Client, def obj) *runner {
	r := &runner{t: t, h: h, client: c, t0: time.Now().UnixMilli(), families: make(map[string]map[string]string), nonceGroup: uint64(h.id) << 20}
	for name, a := range def["families"].(obj) {
		r.families[string(data(name))] = attributes(a)
	}
	var splits []string
	if list, ok := def["splits"].([]any); ok {
		for _, s := range list {
			splits = append(splits, string(data(s)))
		}
	}
	schema := families(t, r.families)
	r.table = h.create(def["name"].(string), schema, attributes(def["attributes"]), splits...)
	return r
}

func (r *runner) unknownTable(s obj) bool {
	name, ok := s["table"].(string)
	return ok && (r.table == nil || name != r.table.name.String())
}

// failure is an error as the vectors write it.
func failure(x *wire.RemoteError) obj {
	return obj{"error": x.Class, "doNotRetry": x.DoNotRetry, "message": x.Message}
}

func failed(err error) obj {
	if x := rpctest.Remote(err); x != nil {
		return failure(x)
	}
	return obj{"error": "broken: " + err.Error()}
}

func (r *runner) stamp(v any, absent int64) int64 {
	switch v := v.(type) {
	case nil:
		return absent
	case string:
		switch v {
		case "max":
			return math.MaxInt64
		case "min":
			return math.MinInt64
		}
	case obj:
		return r.t0 + integer(v["now"])
	case json.Number:
		return integer(v)
	}
	panic(fmt.Sprintf("timestamp %T %v", v, v))
}

// call does one RPC; the result comes back with the cells.
func (r *runner) call(method string, in wire.Marshaler, out wire.Unmarshaler, cs ...cells.Cell) ([]cells.Cell, error) {
	return r.client.Call(method, in, out, cs...)
}

func (r *runner) step(s obj) any {
	if clientSide(s) {
		return s["expect"] // never sent
	}
	switch op := s["op"].(string); op {
	case "put", "delete", "increment", "append":
		return r.mutate(s)
	case "get", "exists":
		return r.get(s, op == "exists")
	case "scan":
		return r.scan(s)
	case "mutateRow":
		return r.mutateRow(s)
	case "checkAndMutate":
		return r.checkAndMutate(s)
	case "batch":
		return r.batch(s)
	case "multiRow":
		return r.multiRow(s)
	case "rpcGet":
		return r.rpcGet(s)
	case "rpcMutate":
		return r.rpcMutate(s)
	case "rpcMulti":
		return r.rpcMulti(s)
	case "rpcScan":
		return r.rpcScan(s)
	case "sleep":
		time.Sleep(time.Duration(integer(s["ms"])) * time.Millisecond)
		return obj{"ok": true}
	case "flush":
		if err := r.h.store.Flush(context.Background()); err != nil {
			r.t.Fatal(err)
		}
		return obj{"ok": true}
	case "majorCompact":
		var families [][]byte
		if f, ok := s["family"]; ok {
			families = [][]byte{data(f)}
		}
		if err := r.table.data.MajorCompact(context.Background(), nil, nil, families); err != nil {
			r.t.Fatal(err)
		}
		return obj{"ok": true}
	case "modifyFamily":
		for k, v := range attributes(s["attributes"]) {
			r.families[string(data(s["family"]))][k] = v
		}
		r.table.data.SetSchema(families(r.t, r.families))
		for _, hr := range r.table.regions {
			r.h.reopen(hr)
		}
		return obj{"ok": true}
	case "unassignAssign":
		hr := r.table.regionOf(data(s["regionOf"]))
		if err := r.h.CloseRegion(context.Background(), hr.Encoded, nil); err != nil {
			r.t.Fatal(err)
		}
		r.h.reopen(hr)
		return obj{"ok": true}
	default:
		r.t.Fatalf("step %s is not known", op)
	}
	return nil
}

// proto makes a mutation as the Java client sends it: cells in the block.
func (r *runner) proto(s obj) (*pb.MutationProto, []cells.Cell) {
	row := data(s["row"])
	p := &pb.MutationProto{Row: row}
	ts := r.stamp(s["ts"], cells.LatestTimestamp)
	if v, ok := s["ttl"]; ok {
		p.Attribute = append(p.Attribute, &pb.NameBytesPair{Name: new("_ttl"), Value: binary.BigEndian.AppendUint64(nil, uint64(integer(v)))})
	}
	if v, ok := s["returnResults"].(bool); ok {
		b := byte(0xff)
		if !v {
			b = 0
		}
		p.Attribute = append(p.Attribute, &pb.NameBytesPair{Name: new("_rr_"), Value: []byte{b}})
	}
	if v, ok := s["durability"].(string); ok {
		p.Durability = pb.MutationProto_Durability(pb.MutationProto_Durability_value[v]).Enum()
	}
	if v, ok := s["timeRange"].([]any); ok {
		p.TimeRange = r.timeRange(v)
	}
	var list []cells.Cell
	add := func(family, qualifier any, ts int64, typ cells.Type, value []byte) {
		list = append(list, cells.Cell{Row: row, Family: data(family), Qualifier: data(qualifier), Timestamp: ts, Type: typ, Value: value})
	}
	in, _ := s["cells"].([]any)
	switch s["op"] {
	case "put":
		p.MutateType = pb.MutationProto_PUT.Enum()
		for _, c := range in {
			c := c.([]any)
			add(c[0], c[1], r.stamp(c[2], ts), cells.Put, data(c[3]))
		}
	case "increment":
		p.MutateType = pb.MutationProto_INCREMENT.Enum()
		for _, c := range in {
			c := c.([]any)
			var b []byte
			if _, raw := c[2].(string); raw {
				b = data(c[2])
			} else {
				b = binary.BigEndian.AppendUint64(nil, uint64(integer(c[2])))
			}
			add(c[0], c[1], ts, cells.Put, b)
		}
	case "append":
		p.MutateType = pb.MutationProto_APPEND.Enum()
		for _, c := range in {
			c := c.([]any)
			add(c[0], c[1], ts, cells.Put, data(c[2]))
		}
	case "delete":
		p.MutateType = pb.MutationProto_DELETE.Enum()
		items, _ := s["items"].([]any)
		for _, it := range items {
			it := it.([]any)
			at := func(i int) any {
				if i < len(it) {
					return it[i]
				}
				return nil
			}
			typ := map[string]cells.Type{"version": cells.Delete, "column": cells.DeleteColumn, "family": cells.DeleteFamily, "familyVersion": cells.DeleteFamilyVersion}[it[0].(string)]
			if typ == cells.DeleteFamily {
				// The Java client throws away what was added for the family.
				list = slices.DeleteFunc(list, func(c cells.Cell) bool { return bytes.Equal(c.Family, data(it[1])) })
			}
			add(it[1], at(2), r.stamp(at(3), ts), typ, nil)
		}
		slices.SortStableFunc(list, func(a, b cells.Cell) int { return bytes.Compare(a.Family, b.Family) })
	}
	if _, ok := s["ts"]; ok {
		p.Timestamp = new(uint64(ts))
	}
	p.AssociatedCellCount = new(int32(len(list)))
	return p, list
}

func (r *runner) timeRange(v []any) *pb.TimeRange {
	return &pb.TimeRange{From: new(uint64(r.stamp(v[0], 0))), To: new(uint64(r.stamp(v[1], 0)))}
}

func (r *runner) mutate(s obj) any {
	p, list := r.proto(s)
	hr := r.table.regionOf(p.Row)
	var out pb.MutateResponse
	got, err := r.call("Mutate", &pb.MutateRequest{Region: specifier(hr), Mutation: p}, &out, list...)
	if err != nil {
		return failed(err)
	}
	if s["op"] == "put" || s["op"] == "delete" {
		return obj{"ok": out.GetProcessed()}
	}
	return obj{"cells": r.cells(got)}
}

// cells writes cells as the vectors do.
func (r *runner) cells(list []cells.Cell) []any {
	out := []any{}
	for _, c := range list {
		out = append(out, []any{string(c.Row), string(c.Family), string(c.Qualifier), c.Timestamp, c.Type.String(), string(c.Value)})
	}
	return out
}

func columns(v any) []*pb.Column {
	var list []*pb.Column
	o, _ := v.(obj)
	for f, qs := range o {
		c := &pb.Column{Family: data(f)}
		if qs, ok := qs.([]any); ok {
			for _, q := range qs {
				c.Qualifier = append(c.Qualifier, data(q))
			}
		}
		list = append(list, c)
	}
	return list
}

// filterIn finds the filter of a step: its bytes as recorded, or built.
func filterIn(s obj) *pb.Filter {
	if e, ok := s["expect"].(obj); ok {
		if w, ok := e["filterWire"].(obj); ok {
			return rawFilter(w)
		}
	}
	if v, ok := s["rawFilter"].(obj); ok {
		return rawFilter(v)
	}
	if v, ok := s["filter"].(obj); ok {
		return filterOf(v)
	}
	return nil
}

func (r *runner) familyRanges(v any) []*pb.ColumnFamilyTimeRange {
	var list []*pb.ColumnFamilyTimeRange
	o, _ := v.(obj)
	for f, tr := range o {
		list = append(list, &pb.ColumnFamilyTimeRange{ColumnFamily: data(f), TimeRange: r.timeRange(tr.([]any))})
	}
	return list
}

func isolation(s obj) []*pb.NameBytesPair {
	if s["isolation"] != "READ_UNCOMMITTED" {
		return nil
	}
	return []*pb.NameBytesPair{{Name: new("_isolationlevel_"), Value: []byte{1}}}
}

func (r *runner) getProto(s obj) *pb.Get {
	g := &pb.Get{Row: data(s["row"]), Column: columns(s["families"]), CfTimeRange: r.familyRanges(s["familyTimeRanges"]), Attribute: isolation(s)}
	if v, ok := s["maxVersions"]; ok {
		g.MaxVersions = new(uint32(integer(v)))
	}
	if s["allVersions"] == true {
		g.MaxVersions = new(uint32(math.MaxInt32))
	}
	if v, ok := s["timeRange"].([]any); ok {
		g.TimeRange = r.timeRange(v)
	}
	if v, ok := s["timestamp"]; ok {
		ts := r.stamp(v, 0)
		g.TimeRange = &pb.TimeRange{From: new(uint64(ts)), To: new(uint64(ts + 1))}
	}
	if v, ok := s["storeLimit"]; ok {
		g.StoreLimit = new(uint32(integer(v)))
	}
	if v, ok := s["storeOffset"]; ok {
		g.StoreOffset = new(uint32(integer(v)))
	}
	if v, ok := s["existsOnly"].(bool); ok {
		g.ExistenceOnly = &v
	}
	if v, ok := s["closestRowBefore"].(bool); ok {
		g.ClosestRowBefore = &v
	}
	g.Filter = filterIn(s)
	return g
}

func (r *runner) get(s obj, exists bool) any {
	if clientSide(s) {
		return s["expect"]
	}
	g := r.getProto(s)
	if exists {
		g.ExistenceOnly = new(true)
	}
	var out pb.GetResponse
	got, err := r.call("Get", &pb.GetRequest{Region: specifier(r.table.regionOf(g.Row)), Get: g}, &out)
	if err != nil {
		return failed(err)
	}
	if exists {
		return obj{"value": out.GetResult().GetExists()}
	}
	res := obj{"cells": r.cells(got)}
	if out.GetResult().Exists != nil {
		res["exists"] = out.GetResult().GetExists()
	}
	return res
}

// clientSide says whether the Java client refused the step by itself.
func clientSide(s obj) bool {
	e, _ := s["expect"].(obj)
	return e["side"] == "client"
}

func (r *runner) mutateRow(s obj) any {
	ra, list := r.rowMutations(s)
	var out pb.MultiResponse
	if _, err := r.call("Multi", &pb.MultiRequest{RegionAction: []*pb.RegionAction{ra}}, &out, list...); err != nil {
		return failed(err)
	}
	return r.rowResult(out.RegionActionResult[0])
}

func (r *runner) rowMutations(s obj) (*pb.RegionAction, []cells.Cell) {
	var all []cells.Cell
	row := data(s["row"])
	ra := &pb.RegionAction{Region: specifier(r.table.regionOf(row)), Atomic: new(true)}
	for i, m := range s["mutations"].([]any) {
		p, list := r.proto(m.(obj))
		ra.Action = append(ra.Action, &pb.Action{Index: new(uint32(i)), Mutation: p})
		all = append(all, list...)
	}
	return ra, all
}

func (r *runner) rowResult(rar *pb.RegionActionResult) obj {
	if rar.Exception != nil {
		return failure(wire.ParseNamed(rar.Exception))
	}
	return obj{"exists": rar.GetProcessed(), "cells": r.inline(rar.ResultOrException[0].GetResult())}
}

func (r *runner) inline(res *pb.Result) []any {
	var list []cells.Cell
	for _, c := range res.GetCell() {
		list = append(list, cells.Cell{Row: c.Row, Family: c.Family, Qualifier: c.Qualifier, Timestamp: int64(c.GetTimestamp()), Type: cells.Type(c.GetCellType()), Value: c.Value})
	}
	return r.cells(list)
}

func (r *runner) conditionProto(v obj, row []byte) *pb.Condition {
	c := &pb.Condition{Row: row}
	if x, ok := v["row"]; ok {
		c.Row = data(x)
	}
	if x, ok := v["timeRange"].([]any); ok {
		c.TimeRange = r.timeRange(x)
	}
	if f, ok := v["filter"].(obj); ok {
		c.Filter = filterOf(f)
		return c
	}
	if f, ok := v["rawFilter"].(obj); ok {
		c.Filter = rawFilter(f)
		return c
	}
	c.Family, c.Qualifier = data(v["family"]), data(v["qualifier"])
	if op, ok := v["op"].(string); ok {
		c.CompareType = pb.CompareType(pb.CompareType_value[op]).Enum()
	}
	switch {
	case v["ifNotExists"] == true:
		c.CompareType = pb.CompareType_EQUAL.Enum()
		c.Comparator = comparatorOf(obj{"type": "binary", "value": ""})
	case v["rawComparator"] != nil:
		f := rawFilter(v["rawComparator"].(obj))
		c.Comparator = &pb.Comparator{Name: f.Name, SerializedComparator: f.SerializedFilter}
	case v["comparator"] != nil:
		c.Comparator = comparatorOf(v["comparator"].(obj))
	case v["value"] != nil:
		c.Comparator = comparatorOf(obj{"type": "binary", "value": v["value"]})
	default:
		if _, ok := v["value"]; ok {
			c.Comparator = comparatorOf(obj{"type": "binary", "value": ""})
		}
	}
	return c
}

func (r *runner) checkAndMutate(s obj) any {
	if clientSide(s) {
		return s["expect"]
	}
	m := s["mutation"].(obj)
	row := data(s["row"])
	cond := r.conditionProto(s["condition"].(obj), row)
	if m["op"] == "mutateRow" {
		ra, list := r.rowMutations(m)
		ra.Condition = cond
		var out pb.MultiResponse
		if _, err := r.call("Multi", &pb.MultiRequest{RegionAction: []*pb.RegionAction{ra}}, &out, list...); err != nil {
			return failed(err)
		}
		return r.checkResult(out.RegionActionResult[0])
	}
	p, list := r.proto(m)
	var out pb.MutateResponse
	got, err := r.call("Mutate", &pb.MutateRequest{Region: specifier(r.table.regionOf(row)), Mutation: p, Condition: cond}, &out, list...)
	if err != nil {
		return failed(err)
	}
	res := obj{"success": out.GetProcessed()}
	if out.Result != nil {
		res["result"] = r.cells(got)
	}
	return res
}

func (r *runner) checkResult(rar *pb.RegionActionResult) obj {
	if rar.Exception != nil {
		return failure(wire.ParseNamed(rar.Exception))
	}
	res := obj{"success": rar.GetProcessed()}
	if x := rar.ResultOrException[0].GetResult(); x != nil {
		res["result"] = r.inline(x)
	}
	return res
}

// batch sends each region's plain actions in one region action, then each
// RowMutations and each CheckAndMutate in one of its own, as the Java client
// does.
func (r *runner) batch(s obj) any {
	actions := s["actions"].([]any)
	results := make([]any, len(actions))
	in := &pb.MultiRequest{}
	plain := make(map[*host.Region]*pb.RegionAction)
	plainCells := make(map[*pb.RegionAction][]cells.Cell)
	var special []int
	for i, a := range actions {
		a := a.(obj)
		if e := s["expect"].(obj)["actions"].([]any)[i]; e != nil {
			if o, ok := e.(obj); ok && o["side"] == "client" {
				results[i] = e
				continue
			}
		}
		if a["op"] == "mutateRow" || a["op"] == "checkAndMutate" {
			special = append(special, i)
			continue
		}
		hr := r.table.regionOf(data(a["row"]))
		ra := plain[hr]
		if ra == nil {
			ra = &pb.RegionAction{Region: specifier(hr)}
			plain[hr] = ra
			in.RegionAction = append(in.RegionAction, ra)
		}
		act := &pb.Action{Index: new(uint32(i))}
		if a["op"] == "get" {
			act.Get = r.getProto(a)
		} else {
			p, list := r.proto(a)
			act.Mutation = p
			plainCells[ra] = append(plainCells[ra], list...)
		}
		ra.Action = append(ra.Action, act)
	}
	var all []cells.Cell
	for _, ra := range in.RegionAction {
		all = append(all, plainCells[ra]...)
	}
	for _, i := range special {
		a := actions[i].(obj)
		m := a
		if a["op"] == "checkAndMutate" {
			if m = a["mutation"].(obj); m["op"] != "mutateRow" {
				m = obj{"row": a["row"], "mutations": []any{m}}
			}
		}
		ra, list := r.rowMutations(m)
		if a["op"] == "checkAndMutate" {
			ra.Condition = r.conditionProto(a["condition"].(obj), data(a["row"]))
		}
		in.RegionAction = append(in.RegionAction, ra)
		all = append(all, list...)
	}
	var out pb.MultiResponse
	got, err := r.call("Multi", in, &out, all...)
	if err != nil {
		return failed(err)
	}
	for i, rar := range out.RegionActionResult[len(out.RegionActionResult)-len(special):] {
		if a := actions[special[i]].(obj); a["op"] == "mutateRow" {
			results[special[i]] = r.rowResult(rar)
		} else {
			results[special[i]] = r.checkResult(rar)
		}
	}
	for _, rar := range out.RegionActionResult[:len(out.RegionActionResult)-len(special)] {
		if rar.Exception != nil {
			return failure(wire.ParseNamed(rar.Exception))
		}
		for _, re := range rar.ResultOrException {
			i := re.GetIndex()
			if re.Exception != nil {
				results[i] = failure(wire.ParseNamed(re.Exception))
				continue
			}
			n := int(re.GetResult().GetAssociatedCellCount())
			res := obj{"cells": r.cells(got[:n])}
			got = got[n:]
			if re.GetResult().Exists != nil {
				res["exists"] = re.GetResult().GetExists()
			}
			results[i] = res
		}
	}
	return obj{"actions": results}
}

func (r *runner) multiRow(s obj) any {
	in := &pb.MutateRowsRequest{}
	var via []byte
	for i, m := range s["mutations"].([]any) {
		p, list := r.proto(m.(obj))
		if i == 0 {
			via = p.Row
		}
		in.MutationRequest = append(in.MutationRequest, inlineProto(p, list))
	}
	if list, ok := s["conditions"].([]any); ok {
		for _, c := range list {
			in.Condition = append(in.Condition, r.conditionProto(c.(obj), nil))
		}
	}
	if v, ok := s["via"]; ok {
		via = data(v)
	}
	hr := r.table.regionOf(via)
	body, err := in.MarshalVT()
	if err != nil {
		r.t.Fatal(err)
	}
	var out pb.CoprocessorServiceResponse
	_, err = r.call("ExecService", &pb.CoprocessorServiceRequest{Region: specifier(hr), Call: &pb.CoprocessorServiceCall{
		Row: via, ServiceName: new("MultiRowMutationService"), MethodName: new("MutateRows"), Request: body}}, &out)
	if err != nil {
		return failed(err)
	}
	var res pb.MutateRowsResponse
	if err := res.UnmarshalVT(out.GetValue().GetValue()); err != nil {
		r.t.Fatal(err)
	}
	return obj{"processed": res.GetProcessed()}
}

// inlineProto moves cells into the message.
func inlineProto(p *pb.MutationProto, list []cells.Cell) *pb.MutationProto {
	p.AssociatedCellCount = nil
	for i := range list {
		c := &list[i]
		qv := &pb.MutationProto_ColumnValue_QualifierValue{Qualifier: c.Qualifier, Value: c.Value, Timestamp: new(uint64(c.Timestamp))}
		if qv.Qualifier == nil {
			qv.Qualifier = []byte{}
		}
		switch c.Type {
		case cells.Delete:
			qv.DeleteType = pb.MutationProto_DELETE_ONE_VERSION.Enum()
		case cells.DeleteColumn:
			qv.DeleteType = pb.MutationProto_DELETE_MULTIPLE_VERSIONS.Enum()
		case cells.DeleteFamily:
			qv.DeleteType = pb.MutationProto_DELETE_FAMILY.Enum()
		case cells.DeleteFamilyVersion:
			qv.DeleteType = pb.MutationProto_DELETE_FAMILY_VERSION.Enum()
		default:
			if qv.Value == nil {
				qv.Value = []byte{}
			}
		}
		p.ColumnValue = append(p.ColumnValue, &pb.MutationProto_ColumnValue{Family: c.Family, QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{qv}})
	}
	return p
}
