package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// answersFile is what a plain HBase 2.6.4 with two region servers and quotas
// answered to the calls of play.
var answersFile = filepath.Join("testdata", "answers-2.6.4.txt")

// TestAnswers: services that only tools and operators call are answered as
// HBase answers them, message by message and refusal by refusal. On a real one
// TestAnswersRealHBase plays the same calls.
func TestAnswers(t *testing.T) {
	compare(t, answersFile, play(t, embedded(t, minihbase.Options{InMemory: true, Servers: 2, ControlPort: -1, Quotas: true})))
}

// embedded starts a cluster for the test and gives its address.
func embedded(t *testing.T, o minihbase.Options) string {
	t.Helper()
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c.Address()
}

// compare holds what was answered against what HBase 2.6.4 answered.
func compare(t *testing.T, file, got string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("answers differ from %s (- HBase, + now):\n%s", file, diff)
	}
}

// player calls services of a cluster, method by method, and writes down what
// they answer.
type player struct {
	t      *testing.T
	ctx    context.Context
	client *hbase.Client
	adm    *admin.Admin
	user   string
	master string
	rs     []hbase.ServerName
	// regions of the table, by start key.
	regions []admin.RegionLocation

	mu    sync.Mutex
	conns map[string]*rpc.Conn
	out   strings.Builder
}

const table = "answers"

// play makes the calls and gives the answers, a line each, without what differs
// between any two runs.
func play(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	client, err := hbase.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	p := &player{t: t, ctx: ctx, client: client, adm: client.Admin(), conns: map[string]*rpc.Conn{}}
	defer p.close()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	p.user = u.Username
	p.until("two region servers", func() bool { p.rs, err = p.adm.RegionServers(ctx); return err == nil && len(p.rs) == 2 })
	st, err := p.adm.ClusterStatus(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.master = st.Master.Address()
	if err := p.adm.CreateTable(ctx, admin.NewTable(table, admin.NewFamily("f")), []byte("m")); err != nil {
		t.Fatal(err)
	}
	p.locate()
	for _, part := range []struct {
		name string
		play func()
	}{
		{"access control and visibility labels that are not enabled", p.security},
		{"what is not there", p.unknown},
		{"locks", p.locks},
		{"repairs", p.repairs},
		{"orders to region servers", p.orders},
		{"logs", p.logs},
		{"servers taken out of service", p.decommission},
	} {
		fmt.Fprintf(&p.out, "# %s\n", part.name)
		part.play()
	}
	return p.out.String()
}

func (p *player) locate() {
	p.t.Helper()
	var err error
	p.until("the regions are open", func() bool {
		p.regions, err = p.adm.Regions(p.ctx, table)
		return err == nil && len(p.regions) == 2 && !p.regions[0].Server.IsZero() && !p.regions[1].Server.IsZero()
	})
}

func (p *player) close() {
	for _, c := range p.conns {
		if err := c.Close(); err != nil {
			p.t.Error(err)
		}
	}
}

// until waits for what happens in the cluster's own time.
func (p *player) until(what string, ok func() bool) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s did not come to be; so far:\n%s", what, p.out.String())
		}
	}
}

// message is what calls send and get.
type message interface {
	wire.Marshaler
	wire.Unmarshaler
	proto.Message
}

// call makes one call of a server's service.
func (p *player) call(address, service, method string, param, result message) error {
	p.mu.Lock()
	key := address + service
	c := p.conns[key]
	if c == nil {
		var err error
		if c, err = rpc.Dial(p.ctx, rpc.Config{Addr: address, Service: service, EffectiveUser: p.user}); err != nil {
			p.mu.Unlock()
			return err
		}
		p.conns[key] = c
	}
	p.mu.Unlock()
	return c.Do(p.ctx, &rpc.Call{Method: method, Param: param, Result: result})
}

// note makes a call and writes down what came of it.
func (p *player) note(address, service, method string, param, result message) error {
	err := p.call(address, service, method, param, result)
	p.write(service+"."+method, show(result), err)
	return err
}

func (p *player) write(what, answer string, err error) {
	if err != nil {
		answer = "refused: " + err.Error()
		if remote, ok := errors.AsType[*wire.RemoteError](err); ok {
			answer = "refused: " + remote.Class + ": " + remote.Message
			if remote.DoNotRetry {
				answer += " (do not retry)"
			}
		} else if remote, ok := errors.AsType[*hbase.RemoteError](err); ok {
			answer = "refused: " + remote.Class + ": " + remote.Message
		}
	}
	fmt.Fprintf(&p.out, "%s\n", scrub(what+": "+answer))
}

// volatile are what differs between two runs, and what stands for it.
var volatile = []struct {
	re *regexp.Regexp
	to string
}{
	// A server's name, in the fields of a message.
	{regexp.MustCompile(`host_name:"[^"]*" port:\d+ start_code:\d+`), "SERVER"},
	{regexp.MustCompile(`\b(?:localhost|127\.0\.0\.1)[,:]\d+,\d+\b`), "SERVER"},
	{regexp.MustCompile(`\b(?:localhost|127\.0\.0\.1):\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ENCODED"},
	{regexp.MustCompile(`\b1\d{12}\b`), "MILLIS"},
	{regexp.MustCompile(`\b(proc_id|parent_id|pid): ?\d{1,9}\b`), "$1:ID"},
	{regexp.MustCompile(`\bpid=\d+\b`), "pid=ID"},
}

func scrub(text string) string {
	for _, v := range volatile {
		text = v.re.ReplaceAllString(text, v.to)
	}
	return text
}

// show writes a message as text, fields in their order.
func show(m proto.Message) string {
	if m == nil {
		return "{}"
	}
	return showMessage(m.ProtoReflect())
}

func showMessage(m protoreflect.Message) string {
	var parts []string
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		if f.IsList() {
			list := m.Get(f).List()
			for j := range list.Len() {
				parts = append(parts, string(f.Name())+":"+showValue(f, list.Get(j)))
			}
			continue
		}
		parts = append(parts, string(f.Name())+":"+showValue(f, m.Get(f)))
	}
	return "{" + strings.Join(parts, " ") + "}"
}

func showValue(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return showMessage(v.Message())
	case protoreflect.BytesKind:
		return fmt.Sprintf("%q", v.Bytes())
	case protoreflect.StringKind:
		return fmt.Sprintf("%q", v.String())
	case protoreflect.EnumKind:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	}
	return fmt.Sprint(v.Interface())
}

// tableName is the table's name in a message.
func tableName() *pb.TableName {
	return meta.TableName{Namespace: "default", Qualifier: table}.ToProto()
}

// region names the i-th region by its full name.
func (p *player) region(i int) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(p.regions[i].Region.String())}
}

// encoded names it by its encoded name.
func (p *player) encoded(i int) *pb.RegionSpecifier {
	return encoded(p.regions[i].Region.EncodedName())
}

func encoded(name string) *pb.RegionSpecifier {
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_ENCODED_REGION_NAME.Enum(), Value: []byte(name)}
}

// nowhere is the encoded name of no region.
const nowhere = "0123456789abcdef0123456789abcdef"

func (p *player) security() {
	const master = "MasterService"
	permission := &pb.Permission{Type: pb.Permission_Global.Enum(), GlobalPermission: &pb.GlobalPermission{Action: []pb.Permission_Action{pb.Permission_READ}}}
	bob := &pb.UserPermission{User: []byte("bob"), Permission: permission}
	p.note(p.master, master, "Grant", &pb.GrantRequest{UserPermission: bob}, &pb.GrantResponse{})
	p.note(p.master, master, "Revoke", &pb.RevokeRequest{UserPermission: bob}, &pb.RevokeResponse{})
	p.note(p.master, master, "GetUserPermissions", &pb.GetUserPermissionsRequest{}, &pb.GetUserPermissionsResponse{})
	p.note(p.master, master, "HasUserPermissions", &pb.HasUserPermissionsRequest{UserName: []byte("bob"), Permission: []*pb.Permission{permission}}, &pb.HasUserPermissionsResponse{})
	p.note(p.master, master, "getSecurityCapabilities", &pb.SecurityCapabilitiesRequest{}, &pb.SecurityCapabilitiesResponse{})
	for _, s := range []struct {
		service string
		methods []string
	}{
		{"AccessControlService", []string{"Grant", "Revoke", "GetUserPermissions", "CheckPermissions", "HasPermission"}},
		{"VisibilityLabelsService", []string{"addLabels", "setAuths", "clearAuths", "getAuths", "listLabels"}},
		{"AuthenticationService", []string{"GetAuthenticationToken"}},
		{"org.example.NobodysService", []string{"call"}},
		{"MultiRowMutationService", []string{"noSuchMethod"}},
	} {
		for _, m := range s.methods {
			p.exec(p.address(0), "ExecService", p.region(0), s.service, m)
		}
		p.exec(p.address(0), "ExecRegionServerService", &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte{}}, s.service, s.methods[0])
		p.exec(p.master, "ExecMasterService", &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte{}}, s.service, s.methods[0])
	}
	// The client's own words for it.
	scope := admin.Scope{Table: table}
	grant := admin.Permission{User: "bob", Scope: scope, Actions: admin.Read}
	for _, c := range []struct {
		what string
		err  error
	}{
		{"client grant", p.adm.Grant(p.ctx, grant, false)},
		{"client revoke", p.adm.Revoke(p.ctx, grant)},
		{"client permissions", second(p.adm.Permissions(p.ctx, scope, ""))},
		{"client has", second(p.adm.HasPermissions(p.ctx, "bob", grant))},
		{"client check", p.adm.CheckPermissions(p.ctx, grant)},
		{"client add labels", p.adm.AddLabels(p.ctx, "A")},
		{"client labels", second(p.adm.ListLabels(p.ctx, ""))},
		{"client set auths", p.adm.SetAuths(p.ctx, "bob", "A")},
		{"client auths", second(p.adm.GetAuths(p.ctx, "bob"))},
		{"client clear auths", p.adm.ClearAuths(p.ctx, "bob", "A")},
	} {
		text, _, _ := strings.Cut(fmt.Sprint(c.err), "): ") // how long it took, and where, is behind
		fmt.Fprintf(&p.out, "%s: unsupported %v: %s)\n", c.what, errors.Is(c.err, hbase.ErrUnsupported), text)
	}
}

// address is that of the server of the i-th region.
func (p *player) address(i int) string { return p.regions[i].Server.Address() }

func (p *player) exec(address, method string, region *pb.RegionSpecifier, service, of string) {
	rpcService := "ClientService"
	if method == "ExecMasterService" {
		rpcService = "MasterService"
	}
	var resp pb.CoprocessorServiceResponse
	err := p.call(address, rpcService, method, &pb.CoprocessorServiceRequest{
		Region: region, Call: &pb.CoprocessorServiceCall{Row: []byte("a"), ServiceName: &service, MethodName: &of, Request: []byte{}},
	}, &resp)
	p.write(method+" "+service+"."+of, show(&resp), err)
}

func (p *player) unknown() {
	empty := &pb.IsMasterRunningRequest{}
	for _, m := range []string{"RestoreBackupSystemTable", "rollAllWALWriters", "NoSuchMethod"} {
		p.note(p.master, "MasterService", m, empty, &pb.IsMasterRunningResponse{})
	}
	for _, m := range []string{"SplitRegion", "MergeRegions", "ReplicateToReplica", "NoSuchMethod"} {
		p.note(p.address(0), "AdminService", m, empty, &pb.IsMasterRunningResponse{})
	}
}

func (p *player) locks() {
	const service = "LockService"
	lock := func(q *pb.LockRequest) uint64 {
		var r pb.LockResponse
		err := p.call(p.master, service, "RequestLock", q, &r)
		answer := "a procedure"
		if r.ProcId == nil {
			answer = show(&r)
		}
		p.write("LockService.RequestLock "+show(q), answer, err)
		return r.GetProcId()
	}
	beat := func(what string, id uint64, keep bool) *pb.LockHeartbeatResponse {
		var r pb.LockHeartbeatResponse
		err := p.call(p.master, service, "LockHeartbeat", &pb.LockHeartbeatRequest{ProcId: &id, KeepAlive: &keep}, &r)
		if what != "" {
			p.write(fmt.Sprintf("LockService.LockHeartbeat %s, keep %v", what, keep), show(&r), err)
		}
		return &r
	}
	held := func(what string, id uint64) {
		p.until(what+" is locked", func() bool { return beat("", id, true).GetLockStatus() == pb.LockHeartbeatResponse_LOCKED })
		beat(what, id, true)
	}
	list := func(what string) {
		var r pb.GetLocksResponse
		err := p.call(p.master, "MasterService", "GetLocks", &pb.GetLocksRequest{}, &r)
		if err != nil {
			p.write("GetLocks", "", err)
			return
		}
		for _, l := range r.Lock {
			// HBase says that it is locked a moment before it waits.
			if o := l.ExclusiveLockOwnerProcedure; o.GetState() == pb.ProcedureState_RUNNABLE && strings.HasSuffix(o.GetClassName(), ".LockProcedure") {
				o.State = pb.ProcedureState_WAITING_TIMEOUT.Enum()
			}
			p.write("GetLocks "+what, p.lock(l), nil)
		}
		if len(r.Lock) == 0 {
			p.write("GetLocks "+what, "none", nil)
		}
	}
	kind := func(k pb.LockType) *pb.LockType { return &k }
	exclusive, shared := kind(pb.LockType_EXCLUSIVE), kind(pb.LockType_SHARED)
	lock(&pb.LockRequest{LockType: exclusive, Description: new("")})
	lock(&pb.LockRequest{LockType: exclusive, Description: new("nothing")})
	beat("of nothing", 1<<40, true)
	list("before")
	id := lock(&pb.LockRequest{LockType: exclusive, TableName: tableName(), Description: new("a table")})
	held("table", id)
	list("of a table")
	// What wants the table waits.
	done := make(chan error, 1)
	go func() {
		done <- p.call(p.master, "MasterService", "DisableTable", &pb.DisableTableRequest{TableName: tableName()}, &pb.DisableTableResponse{})
	}()
	p.until("the procedure waits", func() bool { return p.procedure("DisableTableProcedure") != "" })
	p.write("GetProcedures while it waits", p.procedure("DisableTableProcedure"), nil)
	p.write("GetProcedures of the lock", p.procedure("LockProcedure"), nil)
	list("while a procedure waits")
	beat("table", id, false)
	beat("table once more", id, true)
	if err := <-done; err != nil {
		p.t.Error(err)
	}
	p.until("it is disabled", func() bool { st, err := p.adm.TableState(p.ctx, table); return err == nil && st == admin.Disabled })
	if err := p.adm.EnableTable(p.ctx, table); err != nil {
		p.t.Error(err)
	}
	a, b := lock(&pb.LockRequest{LockType: shared, TableName: tableName(), Description: new("one")}), lock(&pb.LockRequest{LockType: shared, TableName: tableName(), Description: new("two")})
	held("shared", a)
	held("shared", b)
	list("of two who share")
	beat("shared", a, false)
	beat("shared", b, false)
	n := lock(&pb.LockRequest{LockType: exclusive, Namespace: new("default"), Description: new("a namespace")})
	held("namespace", n)
	list("of a namespace")
	waits := lock(&pb.LockRequest{LockType: exclusive, Namespace: new("default"), Description: new("a namespace, later")})
	beat("that waits", waits, true)
	list("while another lock waits for the namespace")
	beat("namespace", n, false)
	held("the one that waited", waits)
	beat("the one that waited", waits, false)
	p.locate()
	r := lock(&pb.LockRequest{LockType: exclusive, RegionInfo: []*pb.RegionInfo{p.info(0), p.info(1)}, Description: new("regions")})
	held("regions", r)
	list("of regions")
	beat("regions", r, false)
	p.until("no locks are left", func() bool {
		var r pb.GetLocksResponse
		return p.call(p.master, "MasterService", "GetLocks", &pb.GetLocksRequest{}, &r) == nil && len(r.Lock) == 0
	})
}

func (p *player) info(i int) *pb.RegionInfo {
	r, ok := meta.ParseRegionName([]byte(p.regions[i].Region.String()))
	if !ok {
		p.t.Fatalf("region name %s", p.regions[i].Region.String())
	}
	r.End = p.regions[i].Region.End
	return r.ToProto()
}

// lock writes a lock as one line.
func (p *player) lock(l *pb.LockedResource) string {
	text := fmt.Sprintf("%s %q %s shared by %d", l.GetResourceType(), l.GetResourceName(), l.GetLockType(), l.GetSharedLockCount())
	if o := l.ExclusiveLockOwnerProcedure; o != nil {
		text += " owner " + p.proc(o)
	}
	for _, w := range l.WaitingProcedures {
		text += " waiting " + p.proc(w)
	}
	return text
}

func (p *player) proc(q *pb.Procedure) string {
	owner := q.GetOwner()
	if owner == p.user {
		owner = "USER"
	}
	return fmt.Sprintf("%s of %q %s bypass %v exception %v", q.GetClassName(), owner, q.GetState(), q.GetBypass(), q.Exception != nil)
}

// procedure gives the latest procedure of a class.
func (p *player) procedure(class string) string {
	var r pb.GetProceduresResponse
	if err := p.call(p.master, "MasterService", "GetProcedures", &pb.GetProceduresRequest{}, &r); err != nil {
		p.t.Error(err)
	}
	var last *pb.Procedure
	for _, q := range r.Procedure {
		if strings.HasSuffix(q.GetClassName(), "."+class) && (last == nil || q.GetProcId() > last.GetProcId()) {
			last = q
		}
	}
	if last == nil {
		return ""
	}
	return p.proc(last)
}
