package cluster

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// unsupported are the methods of MasterService that are refused by name.
var unsupportedMethods = []string{
	"TransitReplicationPeerSyncReplicationState", "RestoreBackupSystemTable", "rollAllWALWriters",
}

// Every method of MasterService is either answered or refused as unsupported,
// naming it, with an exception that clients do not retry.
func TestEveryMethod(t *testing.T) {
	c := start(t, Options{Servers: 1})
	k := masterClient(t, c)
	d, err := protoregistry.GlobalFiles.FindDescriptorByName("hbase.pb.MasterService")
	if err != nil {
		t.Fatal(err)
	}
	methods := d.(protoreflect.ServiceDescriptor).Methods()
	for i := range methods.Len() {
		m := methods.Get(i)
		name := string(m.Name())
		if name == "StopMaster" || name == "Shutdown" {
			continue
		}
		q := fill(t, m.Input())
		at, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
		if err != nil {
			t.Fatal(err)
		}
		_, err = k.Call(name, q.(wire.Marshaler), at.New().Interface().(wire.Unmarshaler))
		r := remote(err)
		refused := r != nil && strings.Contains(r.Message, "UnsupportedOperation") && strings.Contains(r.Message, name)
		switch want := slices.Contains(unsupportedMethods, name); {
		case want && (!refused || !r.DoNotRetry || r.Class != wire.ClassDoNotRetryIO):
			t.Errorf("%s: %v, want it refused by name", name, err)
		case !want && refused:
			t.Errorf("%s is refused: %v", name, err)
		case err != nil && r == nil:
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// fill makes a message with its required fields set to something.
func fill(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	m := mt.New()
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.Cardinality() != protoreflect.Required {
			continue
		}
		switch f.Kind() {
		case protoreflect.MessageKind:
			m.Set(f, protoreflect.ValueOfMessage(fill(t, f.Message()).ProtoReflect()))
		case protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte("x")))
		case protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString("x"))
		case protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(f.Enum().Values().Get(0).Number()))
		case protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		default:
			m.Set(f, f.Default())
		}
	}
	return m.Interface()
}

func TestStatus(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t", "m")
	k := masterClient(t, c)
	var r pb.GetClusterStatusResponse
	if _, err := k.Call("GetClusterStatus", &pb.GetClusterStatusRequest{}, &r); err != nil {
		t.Fatal(err)
	}
	s := r.GetClusterStatus()
	if s.GetHbaseVersion().GetVersion() != "2.6.4" || s.GetClusterId().GetClusterId() != c.ClusterID() || !s.GetBalancerOn() ||
		meta.ServerFromProto(s.GetMaster()) != c.ActiveMaster() || len(s.GetLiveServers()) != 3 || len(s.GetServersName()) != 3 || len(s.GetRegionsInTransition()) != 0 {
		t.Errorf("status %v", s)
	}
	regions := 0
	for _, l := range s.GetLiveServers() {
		load := l.GetServerLoad()
		regions += len(load.GetRegionLoads())
		if load.GetReportStartTime() == 0 || load.GetReportEndTime() < load.GetReportStartTime() || load.GetMaxHeap_MB() == 0 {
			t.Errorf("load %v", load)
		}
	}
	if regions != 4 { // meta, namespace, two of t
		t.Errorf("%d region loads", regions)
	}
	// The shell's alter fails on a table that is not counted.
	counted := map[string]*pb.RegionStatesCount{}
	for _, n := range s.GetTableRegionStatesCount() {
		counted[meta.TableFromProto(n.GetTableName()).String()] = n.GetRegionStatesCount()
	}
	if n := counted["t"]; n.GetOpenRegions() != 2 || n.GetTotalRegions() != 2 || counted["hbase:meta"].GetOpenRegions() != 1 {
		t.Errorf("counted %v", counted)
	}
	// Only what is asked for.
	if _, err := k.Call("GetClusterStatus", &pb.GetClusterStatusRequest{Options: []pb.Option{pb.Option_MASTER}}, &r); err != nil {
		t.Fatal(err)
	}
	r = pb.GetClusterStatusResponse{}
	if _, err := k.Call("GetClusterStatus", &pb.GetClusterStatusRequest{Options: []pb.Option{pb.Option_MASTER}}, &r); err != nil {
		t.Fatal(err)
	}
	if s := r.GetClusterStatus(); s.Master == nil || s.HbaseVersion != nil || len(s.LiveServers)+len(s.TableRegionStatesCount)+len(s.ServersName) != 0 {
		t.Errorf("asked for the master, got %v", s)
	}
}

func TestSwitches(t *testing.T) {
	c := start(t, Options{Servers: 1})
	k := masterClient(t, c)
	call := func(method string, q wire.Marshaler, a wire.Unmarshaler) {
		t.Helper()
		if _, err := k.Call(method, q, a); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
	}
	var norm pb.SetNormalizerRunningResponse
	call("SetNormalizerRunning", &pb.SetNormalizerRunningRequest{On: new(false)}, &norm)
	var is pb.IsNormalizerEnabledResponse
	call("IsNormalizerEnabled", &pb.IsNormalizerEnabledRequest{}, &is)
	if !norm.GetPrevNormalizerValue() || is.GetEnabled() {
		t.Errorf("normalizer: before %v, now %v", norm.GetPrevNormalizerValue(), is.GetEnabled())
	}
	var sm pb.SetSplitOrMergeEnabledResponse
	call("SetSplitOrMergeEnabled", &pb.SetSplitOrMergeEnabledRequest{Enabled: new(false), SwitchTypes: []pb.MasterSwitchType{pb.MasterSwitchType_SPLIT, pb.MasterSwitchType_MERGE}}, &sm)
	if !slices.Equal(sm.GetPrevValue(), []bool{true, true}) {
		t.Errorf("split and merge were %v", sm.GetPrevValue())
	}
	create(t, c, "t", "m")
	l := find(t, c, table("t"), "a")
	_, err := k.Call("SplitRegion", &pb.SplitTableRegionRequest{RegionInfo: l.Region.ToProto(), SplitRow: []byte("g")}, &pb.SplitTableRegionResponse{})
	if r := remote(err); r == nil || !strings.Contains(r.Message, "split switch off") {
		t.Errorf("split while off: %v", err)
	}
	var names []*pb.RegionSpecifier
	for _, r := range c.Regions(table("t"), 0) {
		names = append(names, &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(r.Encoded)})
	}
	_, err = k.Call("MergeTableRegions", &pb.MergeTableRegionsRequest{Region: names}, &pb.MergeTableRegionsResponse{})
	if r := remote(err); r == nil || r.Class != wire.ClassMergeRegion {
		t.Errorf("merge while off: %v", err)
	}
	var ex pb.SwitchExceedThrottleQuotaResponse
	call("SwitchExceedThrottleQuota", &pb.SwitchExceedThrottleQuotaRequest{ExceedThrottleQuotaEnabled: new(true)}, &ex)
	if ex.GetPreviousExceedThrottleQuotaEnabled() {
		t.Error("exceed throttle was on")
	}
	ex = pb.SwitchExceedThrottleQuotaResponse{}
	call("SwitchExceedThrottleQuota", &pb.SwitchExceedThrottleQuotaRequest{ExceedThrottleQuotaEnabled: new(false)}, &ex)
	if ex.GetPreviousExceedThrottleQuotaEnabled() {
		t.Error("without quotas there is nothing to exceed, and the switch was heeded")
	}
}

// A create that is sent again with its nonce is the same procedure.
func TestCreateNonce(t *testing.T) {
	c := start(t, Options{Servers: 1})
	k := masterClient(t, c)
	q := &pb.CreateTableRequest{TableSchema: schema("t", "f"), NonceGroup: new(uint64(1)), Nonce: new(uint64(2))}
	var a, b pb.CreateTableResponse
	for _, r := range []*pb.CreateTableResponse{&a, &b} {
		if _, err := k.Call("CreateTable", q, r); err != nil {
			t.Fatal(err)
		}
	}
	if a.GetProcId() == 0 || a.GetProcId() != b.GetProcId() {
		t.Errorf("procedures %d and %d", a.GetProcId(), b.GetProcId())
	}
	q.Nonce = new(uint64(3))
	if _, err := k.Call("CreateTable", q, &b); remote(err) == nil || remote(err).Class != wire.ClassTableExists {
		t.Errorf("another nonce: %v", err)
	}
}

// TestFailedNonce submits a procedure that fails once more: HBase answers a
// nonce it has a procedure for with the procedure, whatever became of that.
func TestFailedNonce(t *testing.T) {
	c := start(t, Options{Servers: 1})
	k := masterClient(t, c)
	q := &pb.DeleteTableRequest{TableName: meta.MetaTable.ToProto(), NonceGroup: new(uint64(1)), Nonce: new(uint64(2))}
	var first, again pb.DeleteTableResponse
	if _, err := k.Call("DeleteTable", q, &first); remote(err) == nil || remote(err).Class != wire.ClassIOException {
		t.Fatalf("deleting hbase:meta: %v", err)
	}
	if _, err := k.Call("DeleteTable", q, &again); err != nil {
		t.Fatal(err)
	}
	x := finish(t, k, again.GetProcId()).GetGenericException()
	if x.GetClassName() != wire.ClassIOException || x.GetMessage() != "Can't modify catalog tables" {
		t.Errorf("the procedure's exception: %v", x)
	}
	// Java programs look for a frame of the master's.
	if len(x.GetTrace()) == 0 || x.GetTrace()[0].GetDeclaringClass() != "org.apache.hadoop.hbase.master.procedure.DeleteTableProcedure" {
		t.Errorf("the exception's frames: %v", x.GetTrace())
	}
	// What is refused before there is a procedure is refused again.
	d := &pb.DeleteColumnRequest{TableName: meta.MetaTable.ToProto(), ColumnName: []byte("info"), NonceGroup: new(uint64(1)), Nonce: new(uint64(3))}
	for range 2 {
		if _, err := k.Call("DeleteColumn", d, &pb.DeleteColumnResponse{}); remote(err) == nil || remote(err).Class != wire.ClassHBaseIO {
			t.Errorf("deleting a family of hbase:meta: %v", err)
		}
	}
}

func TestNamespaces(t *testing.T) {
	c := start(t, Options{Servers: 1})
	k := masterClient(t, c)
	ns := func(config ...string) *pb.NamespaceDescriptor {
		d := &pb.NamespaceDescriptor{Name: []byte("ns")}
		for p := range slices.Chunk(config, 2) {
			d.Configuration = append(d.Configuration, &pb.NameStringPair{Name: &p[0], Value: &p[1]})
		}
		return d
	}
	refused := func(err error, class string) {
		t.Helper()
		if r := remote(err); r == nil || r.Class != class {
			t.Errorf("got %v, want %s", err, class)
		}
	}
	call := func(method string, q wire.Marshaler, a wire.Unmarshaler) error {
		_, err := k.Call(method, q, a)
		return err
	}
	if err := call("CreateNamespace", &pb.CreateNamespaceRequest{NamespaceDescriptor: ns("hbase.namespace.quota.maxtables", "1")}, &pb.CreateNamespaceResponse{}); err != nil {
		t.Fatal(err)
	}
	refused(call("CreateNamespace", &pb.CreateNamespaceRequest{NamespaceDescriptor: ns()}, &pb.CreateNamespaceResponse{}), wire.ClassNamespaceExist)
	create(t, c, "ns:t")
	// HBase looks at the namespace's quota when the call has been answered.
	var second pb.CreateTableResponse
	if err := call("CreateTable", &pb.CreateTableRequest{TableSchema: schema("ns:u", "f")}, &second); err != nil {
		t.Fatal(err)
	}
	if e := finish(t, k, second.GetProcId()); e.GetGenericException().GetClassName() != wire.ClassQuotaExceeded {
		t.Errorf("one table too many: %v", e)
	}
	refused(call("DeleteNamespace", &pb.DeleteNamespaceRequest{NamespaceName: new("ns")}, &pb.DeleteNamespaceResponse{}), wire.ClassConstraint)
	if err := call("ModifyNamespace", &pb.ModifyNamespaceRequest{NamespaceDescriptor: ns("k", "v")}, &pb.ModifyNamespaceResponse{}); err != nil {
		t.Error(err)
	}
	var d pb.GetNamespaceDescriptorResponse
	if err := call("GetNamespaceDescriptor", &pb.GetNamespaceDescriptorRequest{NamespaceName: new("ns")}, &d); err != nil || len(d.GetNamespaceDescriptor().GetConfiguration()) != 1 {
		t.Errorf("descriptor %v, %v", &d, err)
	}
	create(t, c, "ns:u")
	var names pb.ListTableNamesByNamespaceResponse
	if err := call("ListTableNamesByNamespace", &pb.ListTableNamesByNamespaceRequest{NamespaceName: new("ns")}, &names); err != nil || len(names.TableName) != 2 {
		t.Errorf("tables %v, %v", &names, err)
	}
	var list pb.ListNamespaceDescriptorsResponse
	if err := call("ListNamespaceDescriptors", &pb.ListNamespaceDescriptorsRequest{}, &list); err != nil || len(list.NamespaceDescriptor) != 3 {
		t.Errorf("namespaces %v, %v", &list, err)
	}
	for _, n := range []string{"ns:t", "ns:u"} {
		if err := mustMaster(t, c).DropTable(t.Context(), table(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := call("DeleteNamespace", &pb.DeleteNamespaceRequest{NamespaceName: new("ns")}, &pb.DeleteNamespaceResponse{}); err != nil {
		t.Error(err)
	}
	refused(call("GetNamespaceDescriptor", &pb.GetNamespaceDescriptorRequest{NamespaceName: new("ns")}, &d), wire.ClassNamespaceNotFound)
	refused(call("GetTableNames", &pb.GetTableNamesRequest{Namespace: new("ns")}, &pb.GetTableNamesResponse{}), wire.ClassNamespaceNotFound)
}

// An alter acts at once, and dropping a family drops its cells.
func TestAlter(t *testing.T) {
	c := start(t, Options{})
	k := masterClient(t, c)
	var r pb.CreateTableResponse
	if _, err := k.Call("CreateTable", &pb.CreateTableRequest{TableSchema: schema("t", "f", "g")}, &r); err != nil {
		t.Fatal(err)
	}
	finish(t, k, r.GetProcId())
	l := find(t, c, table("t"), "a")
	if err := put(t, l, "a", "1"); err != nil {
		t.Fatal(err)
	}
	done := func(method string, q wire.Marshaler, a interface {
		wire.Unmarshaler
		GetProcId() uint64
	}) {
		t.Helper()
		if _, err := k.Call(method, q, a); err != nil {
			t.Fatal(err)
		}
		if e := finish(t, k, a.GetProcId()); e != nil {
			t.Fatal(e)
		}
	}
	done("DeleteColumn", &pb.DeleteColumnRequest{TableName: nameProto("t"), ColumnName: []byte("f")}, &pb.DeleteColumnResponse{})
	n := find(t, c, table("t"), "a")
	if n.SeqNum <= l.SeqNum || n.Server != l.Server {
		t.Errorf("reopened as %+v, was %+v", n, l)
	}
	if err := put(t, n, "a", "2"); remote(err) == nil || remote(err).Class != wire.ClassNoSuchColumnFamily {
		t.Errorf("put into a dropped family: %v", err)
	}
	done("AddColumn", &pb.AddColumnRequest{TableName: nameProto("t"), ColumnFamilies: &pb.ColumnFamilySchema{Name: []byte("f")}}, &pb.AddColumnResponse{})
	n = find(t, c, table("t"), "a")
	if v, err := get(t, n, "a"); err != nil || v != "" {
		t.Errorf("a dropped family's cell is back: %q, %v", v, err)
	}
	s := schema("t", "f", "g")
	s.Attributes = []*pb.BytesBytesPair{{First: []byte("READONLY"), Second: []byte("true")}}
	done("ModifyTable", &pb.ModifyTableRequest{TableName: nameProto("t"), TableSchema: s}, &pb.ModifyTableResponse{})
	n = find(t, c, table("t"), "a")
	if err := put(t, n, "a", "3"); err == nil {
		t.Error("put into a READONLY table")
	}
}

func TestRegistry(t *testing.T) {
	c := start(t, Options{Servers: 2, BackupMasters: 1})
	for _, address := range append(c.Addresses(), c.MasterSlots()[0].Address, c.MasterSlots()[1].Address) {
		k := client(t, address, "ClientMetaService")
		var id pb.GetClusterIdResponse
		var am pb.GetActiveMasterResponse
		var ms pb.GetMastersResponse
		var loc pb.GetMetaRegionLocationsResponse
		var boot pb.GetBootstrapNodesResponse
		for _, x := range []struct {
			method string
			q      wire.Marshaler
			a      wire.Unmarshaler
		}{
			{"GetClusterId", &pb.GetClusterIdRequest{}, &id}, {"GetActiveMaster", &pb.GetActiveMasterRequest{}, &am}, {"GetMasters", &pb.GetMastersRequest{}, &ms},
			{"GetMetaRegionLocations", &pb.GetMetaRegionLocationsRequest{}, &loc}, {"GetBootstrapNodes", &pb.GetBootstrapNodesRequest{}, &boot},
		} {
			if _, err := k.Call(x.method, x.q, x.a); err != nil {
				t.Fatalf("%s at %s: %v", x.method, address, err)
			}
		}
		at, seq := c.MetaLocation()
		if id.GetClusterId() != c.ClusterID() || meta.ServerFromProto(am.GetServerName()) != c.ActiveMaster() || len(ms.MasterServers) != 2 || !ms.MasterServers[0].GetIsActive() ||
			len(loc.MetaLocations) != 1 || meta.ServerFromProto(loc.MetaLocations[0].GetServerName()) != at || loc.MetaLocations[0].GetSeqNum() != seq || len(boot.ServerName) != 2 {
			t.Errorf("registry at %s: %v %v %v %v %v", address, &id, &am, &ms, &loc, &boot)
		}
	}
}

// The master can be told to look as if it were starting, and ends when a client
// says so.
func TestMasterCalls(t *testing.T) {
	c := start(t, Options{Servers: 1})
	k := masterClient(t, c)
	c.controls.SetInitializing(true)
	_, err := k.Call("IsMasterRunning", &pb.IsMasterRunningRequest{}, &pb.IsMasterRunningResponse{})
	if r := remote(err); r == nil || r.Class != wire.ClassPleaseHold || r.DoNotRetry {
		t.Errorf("initializing: %v", err)
	}
	c.controls.SetInitializing(false)
	if _, err := k.Call("IsMasterRunning", &pb.IsMasterRunningRequest{}, &pb.IsMasterRunningResponse{}); err != nil {
		t.Error(err)
	}
	if _, err := k.Call("Shutdown", &pb.ShutdownRequest{}, &pb.ShutdownResponse{}); err != nil {
		t.Error(err)
	}
	<-c.Done()
	if _, err := k.Call("StopMaster", &pb.StopMasterRequest{}, &pb.StopMasterResponse{}); err != nil {
		t.Error(err)
	}
	eventually(t, "master gone", func() bool { n := c.ActiveMaster(); return n.IsZero() })
}
