package cluster

import (
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/embed/catalog"
	"github.com/holdfast-hbase/holdfast/internal/embed/chaos"
	"github.com/holdfast-hbase/holdfast/internal/embed/master"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start brings a cluster up and closes it at the test's end.
func start(t testing.TB, o Options) *Cluster {
	t.Helper()
	c, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// client connects to one service of one server.
func client(t testing.TB, address, service string) *rpctest.Client {
	t.Helper()
	k, err := rpctest.Dial(address, rpctest.Options{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Conn.Close() })
	_ = k.Conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return k
}

func masterClient(t testing.TB, c *Cluster) *rpctest.Client {
	t.Helper()
	n := c.ActiveMaster()
	return client(t, n.Address(), "MasterService")
}

// finish polls a procedure as clients do and gives its exception.
func finish(t testing.TB, k *rpctest.Client, id uint64) *pb.ForeignExceptionMessage {
	t.Helper()
	for range 1000 {
		var r pb.GetProcedureResultResponse
		if _, err := k.Call("getProcedureResult", &pb.GetProcedureResultRequest{ProcId: &id}, &r); err != nil {
			t.Fatal(err)
		}
		switch r.GetState() {
		case pb.GetProcedureResultResponse_FINISHED:
			return r.Exception
		case pb.GetProcedureResultResponse_NOT_FOUND:
			t.Fatalf("procedure %d is not known", id)
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("procedure %d does not end", id)
	return nil
}

func schema(table string, families ...string) *pb.TableSchema {
	n, err := meta.ParseTableName(table)
	if err != nil {
		panic(err)
	}
	s := &pb.TableSchema{TableName: n.ToProto()}
	for _, f := range families {
		s.ColumnFamilies = append(s.ColumnFamilies, &pb.ColumnFamilySchema{Name: []byte(f)})
	}
	return s
}

func create(t testing.TB, c *Cluster, table string, splits ...string) {
	t.Helper()
	k := masterClient(t, c)
	q := &pb.CreateTableRequest{TableSchema: schema(table, "f")}
	for _, s := range splits {
		q.SplitKeys = append(q.SplitKeys, []byte(s))
	}
	var r pb.CreateTableResponse
	if _, err := k.Call("CreateTable", q, &r); err != nil {
		t.Fatal(err)
	}
	if e := finish(t, k, r.GetProcId()); e != nil {
		t.Fatal(e)
	}
}

// metaScan reads hbase:meta's rows of one table as a client does.
func metaScan(t testing.TB, c *Cluster, table meta.TableName) []meta.Location {
	t.Helper()
	n, _ := c.MetaLocation()
	k := client(t, n.Address(), "ClientService")
	q := &pb.ScanRequest{
		Region:       &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(meta.MetaRegionName)},
		Scan:         &pb.Scan{StartRow: meta.FirstRow(table), StopRow: meta.StopRow(table), Column: []*pb.Column{{Family: []byte("info")}}},
		NumberOfRows: new(uint32(1000)), CloseScanner: new(true),
	}
	var r pb.ScanResponse
	list, err := k.Call("Scan", q, &r)
	if err != nil {
		t.Fatal(err)
	}
	var out []meta.Location
	for _, n := range r.GetCellsPerResult() {
		loc, ok, err := meta.ParseLocation(list[:n])
		if err != nil || !ok {
			t.Fatalf("meta row %q: %v", list[0].Row, err)
		}
		out = append(out, loc)
		list = list[n:]
	}
	return out
}

func find(t testing.TB, c *Cluster, table meta.TableName, row string) meta.Location {
	t.Helper()
	for _, l := range metaScan(t, c, table) {
		if l.Region.Contains([]byte(row)) && !l.Region.Split {
			return l
		}
	}
	t.Fatalf("no region of %s holds %q", table, row)
	return meta.Location{}
}

func spec(r *meta.Region) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: r.Name()}
}

func put(t testing.TB, l meta.Location, row, value string) error {
	t.Helper()
	k := client(t, l.Server.Address(), "ClientService")
	_, err := k.Call("Mutate", &pb.MutateRequest{Region: spec(&l.Region), Mutation: &pb.MutationProto{
		Row: []byte(row), MutateType: pb.MutationProto_PUT.Enum(),
		ColumnValue: []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte("q"), Value: []byte(value)}}}},
	}}, &pb.MutateResponse{})
	return err
}

func get(t testing.TB, l meta.Location, row string) (string, error) {
	t.Helper()
	k := client(t, l.Server.Address(), "ClientService")
	var r pb.GetResponse
	list, err := k.Call("Get", &pb.GetRequest{Region: spec(&l.Region), Get: &pb.Get{Row: []byte(row)}}, &r)
	if err != nil || len(list) == 0 {
		return "", err
	}
	return string(list[0].Value), nil
}

func table(text string) meta.TableName {
	n, err := meta.ParseTableName(text)
	if err != nil {
		panic(err)
	}
	return n
}

func remote(err error) *wire.RemoteError {
	r, _ := err.(*wire.RemoteError)
	return r
}

// The whole way: start, create, meta, put, get.
func TestVertical(t *testing.T) {
	c := start(t, Options{})
	create(t, c, "t", "g", "p")
	locs := metaScan(t, c, table("t"))
	if len(locs) != 3 {
		t.Fatalf("%d regions, want 3", len(locs))
	}
	servers := map[string]bool{}
	for i, l := range locs {
		servers[l.Server.String()] = true
		if l.State != "OPEN" || l.SeqNum <= 0 || l.Server.IsZero() {
			t.Errorf("region %d: %+v", i, l)
		}
	}
	if len(servers) != 3 {
		t.Errorf("three regions on %d servers", len(servers))
	}
	for _, row := range []string{"a", "g", "z"} {
		l := find(t, c, table("t"), row)
		if err := put(t, l, row, "v"+row); err != nil {
			t.Fatal(err)
		}
		if v, err := get(t, l, row); err != nil || v != "v"+row {
			t.Errorf("get %s: %q, %v", row, v, err)
		}
	}
	// A region moves: the old server tells where to, and meta knows.
	l := find(t, c, table("t"), "a")
	m, err := c.Master()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Move(t.Context(), l.Region.EncodedName(), meta.ServerName{}); err != nil {
		t.Fatal(err)
	}
	_, err = get(t, l, "a")
	r := remote(err)
	n := find(t, c, table("t"), "a")
	if r == nil || r.Moved == nil || r.Moved.Port != n.Server.Port || r.Moved.StartCode != n.Server.StartCode || int64(r.Moved.SeqNum) != n.SeqNum {
		t.Errorf("old server answers %v; meta says %+v", err, n)
	}
	if n.Server == l.Server || n.SeqNum <= l.SeqNum {
		t.Errorf("moved from %+v to %+v", l, n)
	}
	if v, err := get(t, n, "a"); err != nil || v != "va" {
		t.Errorf("get after the move: %q, %v", v, err)
	}
}

func mustMaster(t testing.TB, c *Cluster) *master.Master {
	t.Helper()
	m, err := c.Master()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// holdPuts holds every mutation until it is released or removed.
func holdPuts() chaos.Rule {
	return chaos.Rule{Match: chaos.Match{Service: "ClientService", Method: "Mutate"}, Action: chaos.Hold}
}

// writeRow puts a row without a testing.T, for writers that live with errors.
func writeRow(n meta.ServerName, region, row, value string) error {
	k, err := rpctest.Dial(n.Address(), rpctest.Options{})
	if err != nil {
		return err
	}
	defer k.Conn.Close()
	_ = k.Conn.SetDeadline(time.Now().Add(time.Minute))
	_, err = k.Call("Mutate", &pb.MutateRequest{
		Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(region)},
		Mutation: &pb.MutationProto{Row: []byte(row), MutateType: pb.MutationProto_PUT.Enum(),
			ColumnValue: []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte("q"), Value: []byte(value)}}}}},
	}, &pb.MutateResponse{})
	return err
}

// TestBesideGenerated: what is done to ordinary tables does not look at each of
// the regions that a generated table beside them has.
func TestBesideGenerated(t *testing.T) {
	c, ctx := start(t, Options{}), t.Context()
	f := &catalog.Formula{Regions: 300_000, Rows: 10, Format: catalog.KeyFormat{Digits: 8, Base: 10}}
	if err := c.GenerateTable(ctx, table("g"), []string{"f"}, f); err != nil {
		t.Fatal(err)
	}
	m := mustMaster(t, c)
	region := func(row string) string {
		r, err := c.Locate(table("t"), []byte(row))
		if err != nil {
			t.Fatal(err)
		}
		return r.Encoded
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() error { return c.CreateTable(ctx, table("t"), []string{"f"}, 2, [][]byte{[]byte("m")}) }},
		{"put", func() error { return put(t, find(t, c, table("t"), "a"), "a", "1") }},
		{"move", func() error { return m.Move(ctx, region("a"), meta.ServerName{}) }},
		{"split", func() error { return m.Split(ctx, region("a"), []byte("g")) }},
		{"merge", func() error { return m.Merge(ctx, []string{region("g"), region("m")}) }},
		{"drop", func() error { return m.DropTable(ctx, table("t")) }},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		runtime.ReadMemStats(&after)
		// To have looked at all of them takes 30 MB and more.
		if n := after.TotalAlloc - before.TotalAlloc; n > 12<<20 {
			t.Errorf("%s: %d bytes", step.name, n)
		} else {
			t.Logf("%s: %d bytes", step.name, n)
		}
	}
}
