package admin

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// masterCore is a session whose master is a function.
type masterCore struct {
	t      *testing.T
	master func(call *session.ServerCall) (wire.Marshaler, error)
	calls  []string
	// state is that of every table; nil: there is none.
	state *pb.TableState_State
	// regions: calls to regions and servers go to master too.
	regions bool
	// refuse is the host of a server that refuses everything.
	refuse string
	routes *route.Cache

	mu sync.Mutex
}

// tableCell is hbase:meta's cell of a table's state.
func (c *masterCore) tableCell() *pb.GetResponse {
	if c.state == nil {
		return &pb.GetResponse{Result: &pb.Result{}}
	}
	value, err := (&pb.TableState{State: c.state}).MarshalVT()
	if err != nil {
		c.t.Fatal(err)
	}
	return &pb.GetResponse{Result: &pb.Result{Cell: []*pb.Cell{{Value: value}}}}
}

func (c *masterCore) CallMaster(ctx context.Context, call *session.ServerCall) (session.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call.Method)
	if err := ctx.Err(); err != nil {
		return session.Answer{}, err
	}
	answer, err := c.master(call)
	if err != nil {
		return session.Answer{}, err
	}
	b := make([]byte, answer.SizeVT())
	if _, err := answer.MarshalToSizedBufferVT(b); err != nil {
		c.t.Fatal(err)
	}
	return session.Answer{}, call.Result.UnmarshalVT(b)
}

func (c *masterCore) CallRegion(_ context.Context, call *session.RegionCall) (session.Answer, error) {
	if call.Method != "Get" || call.Table != meta.MetaTable {
		return session.Answer{}, errors.New("not scripted")
	}
	b, err := c.tableCell().MarshalVT()
	if err != nil {
		c.t.Fatal(err)
	}
	return session.Answer{}, call.Result.UnmarshalVT(b)
}

func (c *masterCore) CallServer(ctx context.Context, server meta.ServerName, call *session.ServerCall) (session.Answer, error) {
	if !c.regions || server.Host == c.refuse {
		return session.Answer{}, errors.New("not scripted")
	}
	return c.CallMaster(ctx, call)
}
func (c *masterCore) Routes() *route.Cache { return c.routes }
func (c *masterCore) NonceGroup() uint64   { return 7 }
func (c *masterCore) NewNonce() uint64     { return 8 }

func scripted(t *testing.T, master func(*session.ServerCall) (wire.Marshaler, error)) (*Admin, *masterCore) {
	c := &masterCore{t: t, master: master, routes: route.New(route.Config{})}
	t.Cleanup(c.routes.Close)
	return New(c, Config{ProcedureTimeout: time.Minute, OperationTimeout: time.Second}), c
}

func TestProcedureIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls := 0
		a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
			switch call.Method {
			case "CreateNamespace":
				req := call.Param.(*pb.CreateNamespaceRequest)
				if req.GetNonceGroup() != 7 || req.GetNonce() != 8 || call.Idempotency != session.Nonced {
					t.Errorf("submitted without nonces: %v", req)
				}
				return &pb.CreateNamespaceResponse{ProcId: new(uint64(42))}, nil
			case "getProcedureResult":
				if id := call.Param.(*pb.GetProcedureResultRequest).GetProcId(); id != 42 {
					t.Errorf("asked about procedure %d", id)
				}
				state := pb.GetProcedureResultResponse_RUNNING
				if polls++; polls == 12 {
					state = pb.GetProcedureResultResponse_FINISHED
				}
				return &pb.GetProcedureResultResponse{State: &state}, nil
			}
			return nil, errors.New(call.Method)
		})
		var last Progress
		start := time.Now()
		err := a.OnProgress(func(p Progress) { last = p }).CreateNamespace(t.Context(), Namespace{Name: "n"})
		if err != nil {
			t.Fatal(err)
		}
		if polls != 12 || len(core.calls) != 13 {
			t.Errorf("%d polls, %d calls", polls, len(core.calls))
		}
		// Eleven pauses: 2, 4, ... 256 ms, then 500 ms each, with jitter.
		if took := time.Since(start); took < 1000*time.Millisecond || took > 2100*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if !last.Done || last.Polls != 12 || last.ProcID != 42 || last.Op != "create namespace" || last.Object != `namespace "n"` {
			t.Errorf("progress %+v", last)
		}
	})
}

func TestProcedureFails(t *testing.T) {
	a, _ := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
		if call.Method == "DeleteNamespace" {
			return &pb.DeleteNamespaceResponse{ProcId: new(uint64(1))}, nil
		}
		return &pb.GetProcedureResultResponse{
			State: pb.GetProcedureResultResponse_FINISHED.Enum(),
			Exception: &pb.ForeignExceptionMessage{Source: new("master"), GenericException: &pb.GenericExceptionMessage{
				ClassName: new("org.apache.hadoop.hbase.NamespaceNotFoundException"), Message: new("n"),
			}},
		}, nil
	})
	err := a.DeleteNamespace(t.Context(), "n")
	var remote *wire.RemoteError
	if !errors.Is(err, fault.ErrNamespaceNotFound) || !errors.As(err, &remote) || !remote.DoNotRetry {
		t.Errorf("error %v", err)
	}
	if want := `delete namespace "n": NamespaceNotFoundException: n`; err.Error() != want {
		t.Errorf("error %q, want %q", err, want)
	}
	if fault.Retriable(err) {
		t.Error("called retriable")
	}
}

func TestProcedureThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
			if call.Method == "DeleteNamespace" {
				return &pb.DeleteNamespaceResponse{ProcId: new(uint64(9))}, nil
			}
			return &pb.GetProcedureResultResponse{State: pb.GetProcedureResultResponse_RUNNING.Enum()}, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		err := a.DeleteNamespace(ctx, "n")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "procedure 9 is still running") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took > 10*time.Second || took < 9*time.Second {
			t.Errorf("gave up after %v of 10s", took)
		}
		// And the admin's own bound.
		start = time.Now()
		if err := a.DeleteNamespace(t.Context(), "n"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("error %v after %v", err, time.Since(start))
		}
	})
}

func TestGroupsOfEitherKind(t *testing.T) {
	list := &pb.ListRSGroupInfosResponse{RSGroupInfo: []*pb.RSGroupInfo{
		{Name: new("z"), Servers: []*pb.ServerName{{HostName: new("h"), Port: new(uint32(2))}, {HostName: new("h"), Port: new(uint32(1))}}},
		{Name: new("default")},
	}}
	unknown := wire.NewRemoteError(wire.ClassUnknownProtocol, "No registered master coprocessor service found")
	unread := wire.NewRemoteError(wire.ClassDoNotRetryIO, "unable to read call parameter; java.lang.UnsupportedOperationException: ListRSGroupInfos")
	for _, test := range []struct {
		name     string
		old, new error
		calls    string
		want     error
	}{
		{"coprocessor", nil, unread, "ExecMasterService", nil},
		{"native", unknown, nil, "ExecMasterService ListRSGroupInfos", nil},
		{"none", unknown, unread, "ExecMasterService ListRSGroupInfos", fault.ErrUnsupported},
		{"refused", wire.NewRemoteError(wire.ClassAccessDenied, "no"), nil, "ExecMasterService", fault.ErrAccessDenied},
	} {
		a, core := scripted(t, func(call *session.ServerCall) (wire.Marshaler, error) {
			if call.Method == "ExecMasterService" {
				req := call.Param.(*pb.CoprocessorServiceRequest)
				if req.Call.GetServiceName() != "RSGroupAdminService" || req.Call.GetMethodName() != "ListRSGroupInfos" {
					t.Errorf("%v", req)
				}
				b, err := list.MarshalVT()
				if err != nil {
					t.Fatal(err)
				}
				return &pb.CoprocessorServiceResponse{Region: req.Region, Value: &pb.NameBytesPair{Name: new("x"), Value: b}}, test.old
			}
			return list, test.new
		})
		gs, err := a.ListRSGroups(t.Context())
		if got := strings.Join(core.calls, " "); got != test.calls {
			t.Errorf("%s: calls %s, want %s", test.name, got, test.calls)
		}
		if !errors.Is(err, test.want) {
			t.Errorf("%s: error %v, want %v", test.name, err, test.want)
		}
		if test.want == nil && (len(gs) != 2 || gs[0].Name != "default" || strings.Join(gs[1].Servers, " ") != "h:1 h:2") {
			t.Errorf("%s: %+v", test.name, gs)
		}
	}
}

func TestSchemaThroughItsMessage(t *testing.T) {
	d := NewTable("ns:t", NewFamily("g"), NewFamily("f").Versions(3).TTL(2*time.Hour).Compression("snappy").InMemory(true).Set("CUSTOM", "x").Configure("a.b", "c")).
		Set("READONLY", "true").Configure("hbase.x", "1")
	p := d.toProto()
	if len(p.ColumnFamilies) != 2 || string(p.ColumnFamilies[0].GetName()) != "f" {
		t.Errorf("families are not sorted: %v", p.ColumnFamilies)
	}
	if n := len(p.ColumnFamilies[1].GetAttributes()); n != len(familyDefaults()) {
		t.Errorf("%d attributes of a family of defaults, want every default spelt out (%d)", n, len(familyDefaults()))
	}
	back := tableFromProto(p)
	if back.Name != d.Name || back.Attributes["READONLY"] != "true" || back.Configuration["hbase.x"] != "1" {
		t.Errorf("%+v", back)
	}
	f := back.Family("f")
	for name, want := range map[string]string{"VERSIONS": "3", "TTL": "7200", "COMPRESSION": "SNAPPY", "IN_MEMORY": "true", "CUSTOM": "x", "BLOOMFILTER": "ROW", "NOTHING": ""} {
		if got := f.Attribute(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if f.Configuration["a.b"] != "c" {
		t.Errorf("configuration %v", f.Configuration)
	}
	c := back.Clone()
	c.Family("f").Versions(9)
	c.Set("READONLY", "false")
	if f.Attribute("VERSIONS") != "3" || back.Attributes["READONLY"] != "true" {
		t.Error("a clone shares its settings")
	}
}

func TestBadSchemas(t *testing.T) {
	a, core := scripted(t, func(*session.ServerCall) (wire.Marshaler, error) { return nil, errors.New("sent") })
	for want, d := range map[string]*TableDescriptor{
		"table: is nil":                 nil,
		"has no column family":          NewTable("t"),
		"illegal name":                  NewTable("a b", NewFamily("f")),
		"twice":                         NewTable("t", NewFamily("f"), NewFamily("f")),
		"holds ':'":                     NewTable("t", NewFamily("a:b")),
		"starts with a dot":             NewTable("t", NewFamily(".f")),
		"has no name":                   NewTable("t", NewFamily("")),
		"longer than 127":               NewTable("t", NewFamily(strings.Repeat("f", 128))),
		`VERSIONS => "0"`:               NewTable("t", NewFamily("f").Versions(0)),
		`TTL => "0"`:                    NewTable("t", NewFamily("f").TTL(time.Millisecond)),
		`BLOCKSIZE => "many"`:           NewTable("t", NewFamily("f").Set("BLOCKSIZE", "many")),
		"family: is nil":                NewTable("t", nil),
		`"recovered.edits": is a reser`: NewTable("t", NewFamily("recovered.edits")),
	} {
		err := a.CreateTable(t.Context(), d)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want ErrInvalid with %q", err, want)
		}
	}
	for want, keys := range map[string][][]byte{
		"is empty":    {[]byte("a"), {}},
		"given twice": {[]byte("b"), []byte("a"), []byte("b")},
		"longer than": {make([]byte, 40000)},
	} {
		err := a.CreateTable(t.Context(), NewTable("t", NewFamily("f")), keys...)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("split keys: error %v, want ErrInvalid with %q", err, want)
		}
	}
	if len(core.calls) != 0 {
		t.Errorf("something was sent: %v", core.calls)
	}
}

func TestEncodedName(t *testing.T) {
	r := meta.Region{Table: meta.TableName{Namespace: "default", Qualifier: "t"}, ID: 1, Start: []byte("a,b")}
	for name, want := range map[string]string{
		string(r.Name()): r.EncodedName(), r.EncodedName(): r.EncodedName(), "hbase:meta,,1": "1588230740", "1588230740": "1588230740",
	} {
		if got, err := encodedName("move", name); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
	for _, bad := range []string{"", "t,a,1", "t,a,1.abc."} {
		if got, err := encodedName("move", bad); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %s, %v; want ErrInvalid", bad, got, err)
		}
	}
}
