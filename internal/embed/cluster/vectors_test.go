package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// The recorded answers of a real HBase 2.6.4 in testdata/vectors that concern
// the master are replayed over the wire. Steps a Java client refuses by itself
// are left out: they never reach a server.

type obj = map[string]any

type vectorCase struct {
	Name    string `json:"name"`
	Why     string `json:"why"`
	Table   obj    `json:"table"`
	Fixture string `json:"fixture"`
	Cleanup obj    `json:"cleanup"`
	Steps   []obj  `json:"steps"`
}

// masterOps are the operations this runner can play; a case with others is the
// region server's.
var masterOps = []string{
	"createTable", "createTableRange", "deleteTable", "disableTable", "enableTable", "truncateTable", "modifyTable",
	"addFamily", "modifyFamily", "deleteFamily", "tableExists", "isTableEnabled", "isTableDisabled", "isTableAvailable", "describeTable",
	"listTables", "listTablesByNamespace", "createNamespace", "deleteNamespace", "describeNamespace", "listNamespaces",
	"regions", "metaRows", "split", "merge", "move", "flush", "snapshot", "cloneSnapshot", "restoreSnapshot", "deleteSnapshot", "listSnapshots",
	"rpcMaster", "put", "get", "scan", "sleep",
}

func TestVectors(t *testing.T) {
	c := start(t, Options{})
	for _, theme := range []string{"admin", "errors"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "vectors", theme+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Cases []vectorCase `json:"cases"`
		}
		if err := json.Unmarshal(b, &f); err != nil {
			t.Fatal(err)
		}
		played := 0
		for _, vc := range f.Cases {
			if vc.Fixture != "" || vc.Table != nil || slices.ContainsFunc(vc.Steps, func(s obj) bool { return !slices.Contains(masterOps, s["op"].(string)) }) {
				continue
			}
			played++
			t.Run(theme+"/"+vc.Name, func(t *testing.T) {
				k := masterClient(t, c)
				defer k.Conn.Close()
				r := &runner{t: t, c: c, k: k, vc: &vc}
				for i, s := range vc.Steps {
					r.step(i, s)
				}
				if err := mustMaster(t, c).Reset(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
		}
		if theme == "admin" && played < 40 || theme == "errors" && played < 20 {
			t.Errorf("%s: only %d cases were played", theme, played)
		}
	}
}

type runner struct {
	t  *testing.T
	c  *Cluster
	k  *rpctest.Client
	vc *vectorCase
}

func (r *runner) step(i int, s obj) {
	r.t.Helper()
	want := s["expect"].(obj)
	if want["side"] == "client" {
		return
	}
	got, err := r.play(s)
	where := fmt.Sprintf("step %d %s (%s)", i, s["op"], r.vc.Why)
	if class, ok := want["error"].(string); ok {
		var e *wire.RemoteError
		if !errors.As(err, &e) {
			r.t.Errorf("%s: got %v, %v; want %s", where, got, err, class)
			return
		}
		if e.Class != class || e.DoNotRetry != want["doNotRetry"].(bool) || !strings.Contains(e.Message, want["messageContains"].(string)) {
			r.t.Errorf("%s: got %s (do not retry %v) %q\nwant %s (do not retry %v) with %q", where, e.Class, e.DoNotRetry, e.Message, class, want["doNotRetry"], want["messageContains"])
		}
		return
	}
	if err != nil {
		r.t.Errorf("%s: %v", where, err)
		return
	}
	switch {
	case want["value"] != nil:
		if diff := cmp.Diff(want["value"], plain(got)); diff != "" {
			r.t.Errorf("%s: %s", where, diff)
		}
	case want["cells"] != nil:
		if diff := cmp.Diff(want["cells"], plain(got)); diff != "" {
			r.t.Errorf("%s: %s", where, diff)
		}
	case want["results"] != nil:
		if diff := cmp.Diff(want["results"], plain(got)); diff != "" {
			r.t.Errorf("%s: %s", where, diff)
		}
	case want["response"] != nil || want["procedure"] != nil:
		delete(want, "messageContains")
		if diff := cmp.Diff(any(want), plain(got)); diff != "" {
			r.t.Errorf("%s: %s", where, diff)
		}
	}
}

// plain gives a value the form JSON gives it.
func plain(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

// data reads bytes in HBase's notation.
func data(v any) []byte {
	s, _ := v.(string)
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && s[i+1] == 'x' {
			if n, err := strconv.ParseUint(s[i+2:i+4], 16, 8); err == nil {
				out = append(out, byte(n))
				i += 3
				continue
			}
		}
		out = append(out, s[i])
	}
	return out
}

func quote(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '\\' {
			s.WriteByte(c)
		} else {
			fmt.Fprintf(&s, `\x%02X`, c)
		}
	}
	return s.String()
}

func str(s obj, key string) string { v, _ := s[key].(string); return v }

func nameProto(text string) *pb.TableName {
	ns, q, ok := strings.Cut(text, ":")
	if !ok {
		ns, q = "default", text
	}
	return &pb.TableName{Namespace: []byte(ns), Qualifier: []byte(q)}
}

func pairs(o any) (out []*pb.BytesBytesPair) {
	m, _ := o.(obj)
	for k, v := range m {
		out = append(out, &pb.BytesBytesPair{First: []byte(k), Second: []byte(v.(string))})
	}
	slices.SortFunc(out, func(a, b *pb.BytesBytesPair) int { return bytes.Compare(a.First, b.First) })
	return out
}

func descriptor(d obj) *pb.TableSchema {
	s := &pb.TableSchema{TableName: nameProto(str(d, "name")), Attributes: pairs(d["attributes"])}
	fs, _ := d["families"].(obj)
	for name, a := range fs {
		s.ColumnFamilies = append(s.ColumnFamilies, &pb.ColumnFamilySchema{Name: []byte(name), Attributes: pairs(a)})
	}
	return s
}

// call sends a request and waits for the procedure in its answer, if there is
// one: its exception becomes the error.
func (r *runner) call(method string, q wire.Marshaler, a interface {
	wire.Unmarshaler
	proto.Message
}) error {
	if _, err := r.k.Call(method, q, a); err != nil {
		return err
	}
	if f := a.ProtoReflect().Descriptor().Fields().ByName("proc_id"); f != nil && a.ProtoReflect().Has(f) {
		v := a.ProtoReflect().Get(f)
		id := uint64(0)
		if f.Kind() == protoreflect.Int64Kind {
			id = uint64(v.Int())
		} else {
			id = v.Uint()
		}
		if e := finish(r.t, r.k, id); e != nil {
			g := e.GetGenericException()
			return wire.NewRemoteError(g.GetClassName(), g.GetMessage())
		}
	}
	return nil
}

func (r *runner) play(s obj) (any, error) {
	table := str(s, "table")
	switch s["op"] {
	case "createTable", "createTableRange":
		d := s["descriptor"].(obj)
		q := &pb.CreateTableRequest{TableSchema: descriptor(d)}
		splits, _ := d["splits"].([]any)
		for _, k := range splits {
			q.SplitKeys = append(q.SplitKeys, data(k))
		}
		if s["op"] == "createTableRange" {
			q.SplitKeys = [][]byte{data(s["startKey"]), data(s["endKey"])}
		}
		return nil, r.call("CreateTable", q, &pb.CreateTableResponse{})
	case "deleteTable":
		return nil, r.call("DeleteTable", &pb.DeleteTableRequest{TableName: nameProto(table)}, &pb.DeleteTableResponse{})
	case "disableTable":
		return nil, r.call("DisableTable", &pb.DisableTableRequest{TableName: nameProto(table)}, &pb.DisableTableResponse{})
	case "enableTable":
		return nil, r.call("EnableTable", &pb.EnableTableRequest{TableName: nameProto(table)}, &pb.EnableTableResponse{})
	case "truncateTable":
		keep, _ := s["preserveSplits"].(bool)
		return nil, r.call("truncateTable", &pb.TruncateTableRequest{TableName: nameProto(table), PreserveSplits: &keep}, &pb.TruncateTableResponse{})
	case "modifyTable":
		d := descriptor(s["descriptor"].(obj))
		return nil, r.call("ModifyTable", &pb.ModifyTableRequest{TableName: d.TableName, TableSchema: d}, &pb.ModifyTableResponse{})
	case "addFamily", "modifyFamily":
		f := &pb.ColumnFamilySchema{Name: []byte(str(s, "family")), Attributes: pairs(s["attributes"])}
		if s["op"] == "addFamily" {
			return nil, r.call("AddColumn", &pb.AddColumnRequest{TableName: nameProto(table), ColumnFamilies: f}, &pb.AddColumnResponse{})
		}
		return nil, r.call("ModifyColumn", &pb.ModifyColumnRequest{TableName: nameProto(table), ColumnFamilies: f}, &pb.ModifyColumnResponse{})
	case "deleteFamily":
		return nil, r.call("DeleteColumn", &pb.DeleteColumnRequest{TableName: nameProto(table), ColumnName: []byte(str(s, "family"))}, &pb.DeleteColumnResponse{})
	case "createNamespace":
		return nil, r.call("CreateNamespace", &pb.CreateNamespaceRequest{NamespaceDescriptor: &pb.NamespaceDescriptor{Name: []byte(str(s, "namespace"))}}, &pb.CreateNamespaceResponse{})
	case "deleteNamespace":
		return nil, r.call("DeleteNamespace", &pb.DeleteNamespaceRequest{NamespaceName: new(str(s, "namespace"))}, &pb.DeleteNamespaceResponse{})
	case "describeNamespace":
		var a pb.GetNamespaceDescriptorResponse
		err := r.call("GetNamespaceDescriptor", &pb.GetNamespaceDescriptorRequest{NamespaceName: new(str(s, "namespace"))}, &a)
		config := obj{}
		for _, p := range a.GetNamespaceDescriptor().GetConfiguration() {
			config[p.GetName()] = p.GetValue()
		}
		return obj{"name": string(a.GetNamespaceDescriptor().GetName()), "configuration": config}, err
	case "listNamespaces":
		var a pb.ListNamespacesResponse
		err := r.call("ListNamespaces", &pb.ListNamespacesRequest{}, &a)
		re := regexp.MustCompile("^(?:" + str(s, "regex") + ")$")
		return slices.DeleteFunc(a.NamespaceName, func(n string) bool { return !re.MatchString(n) }), err
	case "listTables":
		system, _ := s["includeSystem"].(bool)
		var a pb.GetTableNamesResponse
		err := r.call("GetTableNames", &pb.GetTableNamesRequest{Regex: new(str(s, "regex")), IncludeSysTables: &system}, &a)
		return texts(a.TableNames), err
	case "listTablesByNamespace":
		var a pb.ListTableNamesByNamespaceResponse
		err := r.call("ListTableNamesByNamespace", &pb.ListTableNamesByNamespaceRequest{NamespaceName: new(str(s, "namespace"))}, &a)
		return texts(a.TableName), err
	case "tableExists":
		if table == "hbase:meta" {
			return true, nil
		}
		_, ok := r.tableState(table)
		return ok, nil
	case "isTableEnabled":
		return table == "hbase:meta" || r.is(table, pb.TableState_ENABLED), nil
	case "isTableDisabled":
		return r.is(table, pb.TableState_DISABLED), nil
	case "isTableAvailable":
		state, ok := r.tableState(table)
		return ok && state == 0, nil
	case "describeTable":
		var a pb.GetTableDescriptorsResponse
		if err := r.call("GetTableDescriptors", &pb.GetTableDescriptorsRequest{TableNames: []*pb.TableName{nameProto(table)}}, &a); err != nil {
			return nil, err
		}
		if len(a.TableSchema) != 1 {
			return nil, fmt.Errorf("%d descriptors of %s", len(a.TableSchema), table)
		}
		return described(a.TableSchema[0]), nil
	case "regions":
		out := []any{}
		for _, l := range metaScan(r.t, r.c, tableNamed(table)) {
			if l.Region.Split {
				continue // the client passes over them
			}
			name := l.Region.Name()
			out = append(out, obj{"startKey": quote(l.Region.Start), "endKey": quote(l.Region.End),
				"encodedIsMd5OfTableStartId": strings.Contains(string(name), "."+l.Region.EncodedName()),
				"nameEndsWithDotEncodedDot":  strings.HasSuffix(string(name), "."+l.Region.EncodedName()+".")})
		}
		return out, nil
	case "metaRows":
		return r.metaRows(table), nil
	case "split":
		l := find(r.t, r.c, tableNamed(table), string(data(s["regionOf"])))
		q := &pb.SplitTableRegionRequest{RegionInfo: l.Region.ToProto()}
		if v, ok := s["splitRow"]; ok {
			q.SplitRow = data(v)
		}
		return nil, r.call("SplitRegion", q, &pb.SplitTableRegionResponse{})
	case "merge":
		q := &pb.MergeTableRegionsRequest{}
		for _, v := range s["regionsOf"].([]any) {
			l := find(r.t, r.c, tableNamed(table), string(data(v)))
			q.Region = append(q.Region, &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(l.Region.EncodedName())})
		}
		return nil, r.call("MergeTableRegions", q, &pb.MergeTableRegionsResponse{})
	case "flush":
		return nil, r.call("FlushTable", &pb.FlushTableRequest{TableName: nameProto(table)}, &pb.FlushTableResponse{})
	case "snapshot":
		return nil, r.call("Snapshot", &pb.SnapshotRequest{Snapshot: &pb.SnapshotDescription{Name: new(str(s, "name")), Table: &table}}, &pb.SnapshotResponse{})
	case "cloneSnapshot", "restoreSnapshot":
		d := &pb.SnapshotDescription{Name: new(str(s, "name"))}
		if to := str(s, "to"); to != "" {
			d.Table = &to
		}
		return nil, r.call("RestoreSnapshot", &pb.RestoreSnapshotRequest{Snapshot: d}, &pb.RestoreSnapshotResponse{})
	case "deleteSnapshot":
		return nil, r.call("DeleteSnapshot", &pb.DeleteSnapshotRequest{Snapshot: &pb.SnapshotDescription{Name: new(str(s, "name"))}}, &pb.DeleteSnapshotResponse{})
	case "listSnapshots":
		var a pb.GetCompletedSnapshotsResponse
		err := r.call("GetCompletedSnapshots", &pb.GetCompletedSnapshotsRequest{}, &a)
		re, out := regexp.MustCompile("^(?:"+str(s, "regex")+")$"), []string{}
		for _, p := range a.Snapshots {
			if re.MatchString(p.GetName()) {
				out = append(out, p.GetName()+" "+p.GetTable())
			}
		}
		return out, err
	case "rpcMaster":
		return r.rpcMaster(s)
	case "put":
		return nil, r.put(table, s)
	case "get", "scan":
		return r.read(table, s)
	case "sleep":
		return nil, nil
	}
	return nil, fmt.Errorf("op %s is not played", s["op"])
}

func tableNamed(text string) meta.TableName { return meta.TableFromProto(nameProto(text)) }

func texts(list []*pb.TableName) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, meta.TableFromProto(p).String())
	}
	slices.Sort(out)
	return out
}

func described(s *pb.TableSchema) obj {
	attributes := func(list []*pb.BytesBytesPair, config []*pb.NameStringPair) obj {
		o := obj{}
		for _, p := range list {
			o[string(p.First)] = string(p.Second)
		}
		for _, p := range config {
			o["configuration:"+p.GetName()] = p.GetValue()
		}
		return o
	}
	families := obj{}
	for _, f := range s.ColumnFamilies {
		families[string(f.Name)] = attributes(f.Attributes, f.Configuration)
	}
	return obj{"name": meta.TableFromProto(s.TableName).String(), "attributes": attributes(s.Attributes, s.Configuration), "families": families}
}

// tableState reads table:state as clients do.
func (r *runner) tableState(table string) (pb.TableState_State, bool) {
	n, _ := r.c.MetaLocation()
	k := client(r.t, n.Address(), "ClientService")
	info := meta.MetaRegion
	list, err := k.Call("Get", &pb.GetRequest{Region: spec(&info), Get: &pb.Get{Row: []byte(table), Column: []*pb.Column{{Family: []byte("table"), Qualifier: [][]byte{[]byte("state")}}}}}, &pb.GetResponse{})
	if err != nil {
		r.t.Fatal(err)
	}
	if len(list) == 0 {
		return 0, false
	}
	return pb.TableState_State(list[0].Value[1]), true
}

func (r *runner) is(table string, want pb.TableState_State) bool {
	s, ok := r.tableState(table)
	return ok && s == want
}

func (r *runner) metaRows(table string) any {
	out := obj{"tableState": nil}
	if s, ok := r.tableState(table); ok {
		out["tableState"] = quote([]byte{8, byte(s)})
	}
	rows := []any{}
	v := r.c.catalog.Virtual(meta.MetaTable)
	for row := range v.Rows(meta.FirstRow(tableNamed(table)), false, 0) {
		if meta.CompareRows(row[0].Row, meta.StopRow(tableNamed(table))) >= 0 {
			break
		}
		columns, state := []string{}, ""
		for i := range row {
			columns = append(columns, string(row[i].Qualifier))
			if string(row[i].Qualifier) == "state" {
				state = string(row[i].Value)
			}
		}
		rows = append(rows, obj{"columns": columns, "state": state})
	}
	out["regions"] = rows
	return out
}

// rpcMaster sends a request written in protobuf's text form.
func (r *runner) rpcMaster(s obj) (any, error) {
	method, text := str(s, "method"), str(s, "request")
	text = regexp.MustCompile(`\{\{(encoded|name):([^}]*)\}\}`).ReplaceAllStringFunc(text, func(m string) string {
		kind, row, _ := strings.Cut(strings.Trim(m, "{}"), ":")
		l := find(r.t, r.c, tableNamed(str(s, "table")), row)
		if kind == "encoded" {
			return l.Region.EncodedName()
		}
		return string(l.Region.Name())
	})
	svc, err := protoregistry.GlobalFiles.FindDescriptorByName("hbase.pb.MasterService")
	if err != nil {
		return nil, err
	}
	d := svc.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(method))
	message := func(n protoreflect.FullName) proto.Message {
		t, err := protoregistry.GlobalTypes.FindMessageByName(n)
		if err != nil {
			r.t.Fatal(err)
		}
		return t.New().Interface()
	}
	q, a := message(d.Input().FullName()), message(d.Output().FullName())
	if err := prototext.Unmarshal([]byte(text), q); err != nil {
		return nil, err
	}
	if _, err := r.k.Call(method, q.(wire.Marshaler), a.(wire.Unmarshaler)); err != nil {
		return nil, err
	}
	out := obj{}
	if f := a.ProtoReflect().Descriptor().Fields().ByName("proc_id"); f != nil && a.ProtoReflect().Has(f) {
		out["hasProcId"], out["procedure"] = true, "FINISHED"
		if e := finish(r.t, r.k, a.ProtoReflect().Get(f).Uint()); e != nil {
			g := e.GetGenericException()
			want := s["expect"].(obj)["procedureException"].(obj)
			x := obj{"error": g.GetClassName(), "messageContains": g.GetMessage()}
			if strings.Contains(g.GetMessage(), want["messageContains"].(string)) {
				x["messageContains"] = want["messageContains"]
			}
			out["procedureException"] = x
		}
		a.ProtoReflect().Clear(f)
	}
	// The recorded text has one space between tokens; so has what we compare.
	out["response"] = strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(a)), " ")
	if w, ok := s["expect"].(obj)["response"].(string); ok && w != "" {
		b := message(d.Output().FullName())
		if err := prototext.Unmarshal([]byte(w), b); err != nil {
			return nil, err
		}
		if proto.Equal(a, b) {
			out["response"] = w
		}
	}
	return out, nil
}

func (r *runner) put(table string, s obj) error {
	l := find(r.t, r.c, tableNamed(table), string(data(s["row"])))
	m := &pb.MutationProto{Row: data(s["row"]), MutateType: pb.MutationProto_PUT.Enum()}
	for _, c := range s["cells"].([]any) {
		c := c.([]any)
		v := &pb.MutationProto_ColumnValue_QualifierValue{Qualifier: data(c[1]), Value: data(c[3])}
		if c[2] != nil {
			v.Timestamp = new(uint64(c[2].(float64)))
		}
		m.ColumnValue = append(m.ColumnValue, &pb.MutationProto_ColumnValue{Family: data(c[0]), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{v}})
	}
	k := client(r.t, l.Server.Address(), "ClientService")
	_, err := k.Call("Mutate", &pb.MutateRequest{Region: spec(&l.Region), Mutation: m}, &pb.MutateResponse{})
	return err
}

func (r *runner) read(table string, s obj) (any, error) {
	var rows [][]any
	for _, l := range metaScan(r.t, r.c, tableNamed(table)) {
		if l.Region.Split {
			continue
		}
		q := &pb.Scan{MaxVersions: new(uint32(1))}
		if s["allVersions"] == true {
			q.MaxVersions = new(uint32(1 << 30))
		}
		k := client(r.t, l.Server.Address(), "ClientService")
		var a pb.ScanResponse
		list, err := k.Call("Scan", &pb.ScanRequest{Region: spec(&l.Region), Scan: q, NumberOfRows: new(uint32(1000)), CloseScanner: new(true)}, &a)
		if err != nil {
			return nil, err
		}
		for _, n := range a.CellsPerResult {
			row := []any{}
			for _, c := range list[:n] {
				row = append(row, []any{quote(c.Row), quote(c.Family), quote(c.Qualifier), c.Timestamp, c.Type.String(), quote(c.Value)})
			}
			rows, list = append(rows, row), list[n:]
		}
	}
	if s["op"] == "get" {
		for _, row := range rows {
			if row[0].([]any)[0] == s["row"] {
				return row, nil
			}
		}
		return []any{}, nil
	}
	out := []any{}
	for _, row := range rows {
		out = append(out, obj{"cells": row})
	}
	return out, nil
}
