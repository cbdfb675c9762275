package regionserver_test

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/regionserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// panicCatcher fails a test when a handler panicked.
type panicCatcher struct{ t testing.TB }

func (p panicCatcher) Enabled(context.Context, slog.Level) bool { return true }
func (p panicCatcher) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		r.Attrs(func(a slog.Attr) bool { p.t.Errorf("%s: %s=%v", r.Message, a.Key, a.Value); return true })
	}
	return nil
}
func (p panicCatcher) WithAttrs([]slog.Attr) slog.Handler { return p }
func (p panicCatcher) WithGroup(string) slog.Handler      { return p }

// rawMessage is a param of any bytes.
type rawMessage []byte

func (m rawMessage) SizeVT() int { return len(m) }
func (m rawMessage) MarshalToSizedBufferVT(b []byte) (int, error) {
	return copy(b[len(b)-len(m):], m), nil
}

// FuzzCalls throws params and cell blocks at every method of the services: an
// answer comes to each call, nothing panics, and the server goes on.
func FuzzCalls(f *testing.F) {
	methods := []string{"Get", "Mutate", "Multi", "Scan", "ExecService", "GetRegionInfo", "FlushRegion", "CompactRegion"}
	info := meta.Region{Table: meta.TableName{Namespace: "default", Qualifier: "t"}, ID: 1}
	r := &host.Region{Info: info, Encoded: info.EncodedName(), Name: info.Name(), OpenSeq: 1}
	cell := cells.Cell{Row: []byte("a"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 5, Type: cells.Put, Value: []byte("v")}
	block, err := wire.KeyValueCodec.AppendCells(nil, []cells.Cell{cell, cell})
	if err != nil {
		f.Fatal(err)
	}
	add := func(method int, m interface{ MarshalVT() ([]byte, error) }, block []byte) {
		b, err := m.MarshalVT()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(method), b, block)
	}
	withCells := putOf(r, "a", "v").Mutation
	withCells.ColumnValue, withCells.AssociatedCellCount = nil, new(int32(1))
	filter := filterOf("FilterList", &pb.FilterList{Operator: pb.FilterList_MUST_PASS_ALL.Enum(), Filters: []*pb.Filter{
		rowFilter("RegexStringComparator", &pb.RegexStringComparator{Pattern: new("a+"), PatternFlags: new(int32(32)), Charset: new("UTF-8")}),
		filterOf("KeyOnlyFilter", &pb.KeyOnlyFilter{LenAsVal: new(false)}),
	}})
	add(0, getOf(r, "a"), nil)
	add(0, &pb.GetRequest{Region: specifier(r), Get: &pb.Get{Row: []byte("a"), Filter: filter, MaxVersions: new(uint32(3)), StoreLimit: new(uint32(1))}}, nil)
	add(1, putOf(r, "a", "v"), nil)
	add(1, &pb.MutateRequest{Region: specifier(r), Mutation: withCells}, block)
	add(1, &pb.MutateRequest{Region: specifier(r), Mutation: withCells, Condition: &pb.Condition{Row: []byte("a"), Filter: filter}}, block)
	add(2, &pb.MultiRequest{RegionAction: []*pb.RegionAction{{Region: specifier(r), Action: []*pb.Action{{Mutation: withCells}, {Get: &pb.Get{Row: []byte("a")}}, {}}},
		{Region: specifier(r), Atomic: new(true), Action: []*pb.Action{{Mutation: withCells}}}}}, block)
	add(3, &pb.ScanRequest{Region: specifier(r), Scan: &pb.Scan{Filter: filter, BatchSize: new(uint32(1)), Reversed: new(true)}, NumberOfRows: new(uint32(4))}, nil)
	add(3, &pb.ScanRequest{ScannerId: new(uint64(1)), NextCallSeq: new(uint64(1))}, nil)
	rows, err := (&pb.MutateRowsRequest{MutationRequest: []*pb.MutationProto{putOf(r, "a", "v").Mutation}}).MarshalVT()
	if err != nil {
		f.Fatal(err)
	}
	add(4, &pb.CoprocessorServiceRequest{Region: specifier(r), Call: &pb.CoprocessorServiceCall{Row: []byte("a"), ServiceName: new("MultiRowMutationService"), MethodName: new("MutateRows"), Request: rows}}, nil)
	add(5, &pb.GetRegionInfoRequest{Region: specifier(r), BestSplitRow: new(true)}, nil)

	// One store for all, since opening one costs more than a call.
	st, err := store.Open(store.Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { st.Close() })
	r.Table = st.Table(1, oneFamily())
	f.Fuzz(func(t *testing.T, which uint8, param, block []byte) {
		name := meta.ServerName{Host: "h", Port: 1, StartCode: 1}
		s := regionserver.New(regionserver.Config{Name: name, Store: st, Cluster: &fakeCluster{rs: name}, Logger: slog.New(panicCatcher{t})})
		s.OpenRegion(r)
		method := methods[int(which)%len(methods)]
		service := "ClientService"
		if int(which)%len(methods) > 4 {
			service = "AdminService"
		}
		mine, theirs := net.Pipe()
		s.RPC().ServeConn(theirs)
		c, err := rpctest.New(mine, rpctest.Options{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		mine.SetDeadline(time.Now().Add(time.Minute))
		b, err := wire.AppendRequest(nil, &wire.Request{CallID: 7, Method: method, Param: rawMessage(param), Cells: block})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if _, err := mine.Write(b); err != nil {
			t.Fatal(err)
		}
		if resp, err := c.Receive(); err != nil || resp.CallID != 7 {
			t.Errorf("%s: %+v, %v", method, resp, err)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("%s took %v", method, d)
		}
		mine.Close()
		s.Kill()
		s.Wait()
	})
}

type message interface{ MarshalVT() ([]byte, error) }

// filterOf is a filter of HBase's as it travels.
func filterOf(class string, m message) *pb.Filter {
	b, err := m.MarshalVT()
	if err != nil {
		panic(err) // a required field is missing
	}
	return &pb.Filter{Name: new("org.apache.hadoop.hbase.filter." + class), SerializedFilter: b}
}

// rowFilter keeps the rows that a comparator finds equal.
func rowFilter(comparator string, m message) *pb.Filter {
	c := filterOf(comparator, m)
	return filterOf("RowFilter", &pb.RowFilter{CompareFilter: &pb.CompareFilter{
		CompareOp: pb.CompareType_EQUAL.Enum(), Comparator: &pb.Comparator{Name: c.Name, SerializedComparator: c.SerializedFilter},
	}})
}
