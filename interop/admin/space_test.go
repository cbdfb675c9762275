package admin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// spaceFile is what HBase 2.6.4 answered to playSpace.
var spaceFile = filepath.Join("testdata", "space-2.6.4.txt")

// TestSpaceQuotas: what each policy of a violated space quota forbids, of a table
// and of a namespace, in HBase's words; and that it ends with the quota.
func TestSpaceQuotas(t *testing.T) {
	compare(t, spaceFile, playSpace(t, embedded(t, minihbase.Options{InMemory: true, Servers: 1, ControlPort: -1, Quotas: true, SpaceQuotaPeriod: 50 * time.Millisecond})))
}

// spacePlayer plays space quotas on a cluster with one region server.
type spacePlayer struct {
	*player
	server hbase.ServerName
}

func playSpace(t *testing.T, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	client, err := hbase.Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	p := &spacePlayer{player: &player{t: t, ctx: ctx, client: client, adm: client.Admin(), user: u.Username, conns: map[string]*rpc.Conn{}}}
	defer p.close()
	p.until("a region server", func() bool { p.rs, err = p.adm.RegionServers(ctx); return err == nil && len(p.rs) == 1 })
	p.server = p.rs[0]
	p.tables()
	p.files()
	p.namespaces()
	return p.out.String()
}

// make makes a table with a row of 2000 bytes, in files.
func (p *spacePlayer) make(name string) {
	p.t.Helper()
	table, err := p.client.Table(name)
	if err == nil {
		err = errors.Join(p.adm.CreateTable(p.ctx, admin.NewTable(name, admin.NewFamily("f"))),
			table.Put(p.ctx, hbase.NewPut("row").Set("f", "q", []byte(strings.Repeat("v", 2000)))), p.adm.Flush(p.ctx, name))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// on waits until the table's region is open, and names it.
func (p *spacePlayer) on(name string) *pb.RegionSpecifier {
	p.t.Helper()
	var list []admin.RegionLocation
	p.until(name+" is open", func() (ok bool) {
		var err error
		list, err = p.adm.Regions(p.ctx, name)
		return err == nil && len(list) == 1 && !list[0].Server.IsZero()
	})
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(list[0].Region.String())}
}

// state waits until the region server acts upon a table's quota, and knows of its
// row.
func (p *spacePlayer) state(name string, limit int64, policy string) {
	p.t.Helper()
	p.until(fmt.Sprintf("%s under %d bytes, %q", name, limit, policy), func() bool {
		all, err := p.adm.RegionServerSpaceQuotas(p.ctx, p.server)
		if err != nil {
			return false
		}
		for table, s := range all {
			if table.String() == name {
				return s.Limit == limit && s.Usage >= 2000 && s.InViolation == (policy != "") && (policy == "" || s.Policy.String() == policy)
			}
		}
		return limit == 0
	})
}

func (p *spacePlayer) quota(target admin.QuotaTarget, limit int64, policy string) {
	p.t.Helper()
	var err error
	if limit == 0 {
		err = p.adm.RemoveSpaceQuota(p.ctx, target)
	} else {
		var of admin.SpacePolicy
		if of, err = admin.ParseSpacePolicy(policy); err == nil {
			err = p.adm.SetSpaceQuota(p.ctx, target, admin.SpaceQuota{Limit: limit, Policy: of})
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func spaceColumn(value string) []*pb.MutationProto_ColumnValue {
	return []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte("n"), Value: []byte(value)}}}}
}

func spaceMutation(kind pb.MutationProto_MutationType) *pb.MutationProto {
	m := &pb.MutationProto{Row: []byte("other"), MutateType: &kind, ColumnValue: spaceColumn("\x00\x00\x00\x00\x00\x00\x00\x01")}
	if kind == pb.MutationProto_DELETE {
		m.ColumnValue[0].QualifierValue[0].DeleteType = pb.MutationProto_DELETE_MULTIPLE_VERSIONS.Enum()
	}
	return m
}

const (
	spacePut    = pb.MutationProto_PUT
	spaceDelete = pb.MutationProto_DELETE
)

// calls makes one of each kind of call and notes what came of it.
func (p *spacePlayer) calls(name string) {
	p.t.Helper()
	region, at := p.on(name), p.server.Address()
	note := func(what string, err error) { p.write(what, "done", err) }
	for _, kind := range []pb.MutationProto_MutationType{spacePut, spaceDelete, pb.MutationProto_APPEND, pb.MutationProto_INCREMENT} {
		note(kind.String(), p.call(at, "ClientService", "Mutate", &pb.MutateRequest{Region: region, Mutation: spaceMutation(kind)}, &pb.MutateResponse{}))
	}
	note("GET", p.call(at, "ClientService", "Get", &pb.GetRequest{Region: region, Get: &pb.Get{Row: []byte("row")}}, &pb.GetResponse{}))
	check := &pb.Condition{Row: []byte("other"), Family: []byte("f"), Qualifier: []byte("absent"), CompareType: pb.CompareType_EQUAL.Enum(),
		Comparator: &pb.Comparator{Name: new("org.apache.hadoop.hbase.filter.NullComparator")}}
	for _, kind := range []pb.MutationProto_MutationType{spacePut, spaceDelete} {
		note("CHECK AND "+kind.String(), p.call(at, "ClientService", "Mutate", &pb.MutateRequest{Region: region, Mutation: spaceMutation(kind), Condition: check}, &pb.MutateResponse{}))
	}
	for _, atomic := range []bool{false, true} {
		for _, kinds := range [][]pb.MutationProto_MutationType{{spacePut, spaceDelete}, {spaceDelete, spacePut}, {spaceDelete}} {
			ra := &pb.RegionAction{Region: region, Atomic: &atomic}
			what := "MULTI"
			if atomic {
				what = "ATOMIC MULTI"
			}
			for i, kind := range kinds {
				ra.Action = append(ra.Action, &pb.Action{Index: new(uint32(i)), Mutation: spaceMutation(kind)})
				what += " " + kind.String()
			}
			resp := &pb.MultiResponse{}
			err := p.call(at, "ClientService", "Multi", &pb.MultiRequest{RegionAction: []*pb.RegionAction{ra}}, resp)
			if err != nil {
				note(what, err)
				continue
			}
			var parts []string
			for _, r := range resp.GetRegionActionResult() {
				parts = append(parts, "region "+refusal(r.GetException()))
				for _, a := range r.GetResultOrException() {
					parts = append(parts, fmt.Sprintf("action %d %s", a.GetIndex(), refusal(a.GetException())))
				}
			}
			p.write(what, strings.Join(parts, ", "), nil)
		}
	}
	note("COMPACT", p.call(at, "AdminService", "CompactRegion", &pb.CompactRegionRequest{Region: region, Major: new(true)}, &pb.CompactRegionResponse{}))
	note("FLUSH", p.adm.Flush(p.ctx, name))
}

// refusal is the class and the first line of an exception in an answer.
func refusal(e *pb.NameBytesPair) string {
	if e == nil {
		return "done"
	}
	text, _, _ := strings.Cut(string(e.GetValue()), "\n")
	return "refused: " + e.GetName() + ": " + text
}

func (p *spacePlayer) tables() {
	const name = "spaced"
	target := admin.QuotaTarget{Table: name}
	p.make(name)
	p.quota(target, 1<<30, "NO_INSERTS")
	p.state(name, 1<<30, "")
	p.quota(target, 1000, "NO_INSERTS")
	for _, policy := range []string{"NO_INSERTS", "NO_WRITES", "NO_WRITES_COMPACTIONS"} {
		fmt.Fprintf(&p.out, "# a table that violates %s\n", policy)
		p.quota(target, 1000, policy)
		p.state(name, 1000, policy)
		p.calls(name)
	}
	fmt.Fprintf(&p.out, "# a table that violates DISABLE\n")
	p.quota(target, 1000, "DISABLE")
	enabled := func(want admin.TableState) {
		p.until("table is "+want.String(), func() bool {
			s, err := p.adm.TableState(p.ctx, name)
			return err == nil && s == want
		})
	}
	enabled(admin.Disabled)
	p.write("enable", "done", p.adm.EnableTable(p.ctx, name))
	fmt.Fprintf(&p.out, "# the table without a quota\n")
	p.quota(target, 0, "")
	p.state(name, 0, "")
	enabled(admin.Enabled)
	p.calls(name)
}

// files loads HFiles in bulk into a table whose quota has room for none.
func (p *spacePlayer) files() {
	for i, limit := range []int64{1 << 30, 20_000, 1000} {
		name := fmt.Sprintf("loaded%d", i)
		p.make(name)
		fmt.Fprintf(&p.out, "# a file of more than 20000 bytes, a limit of %d\n", limit)
		p.quota(admin.QuotaTarget{Table: name}, limit, "NO_WRITES")
		policy := ""
		if limit == 1000 {
			policy = "NO_WRITES"
		}
		p.state(name, limit, policy)
		dir := p.t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			p.t.Fatal(err)
		}
		path := filepath.Join(dir, "file")
		p.file(path)
		q := &pb.BulkLoadHFileRequest{Region: p.on(name), FamilyPath: []*pb.BulkLoadHFileRequest_FamilyPath{{Family: []byte("f"), Path: new("file:" + path)}}, AssignSeqNum: new(true), CopyFile: new(true)}
		err := p.call(p.server.Address(), "ClientService", "BulkLoadHFile", q, &pb.BulkLoadHFileResponse{})
		before := p.out.Len()
		p.write("load", "done", err)
		line := strings.ReplaceAll(p.out.String()[before:], dir, "DIR")
		rest := p.out.String()[:before]
		p.out.Reset()
		p.out.WriteString(rest + line)
		p.quota(admin.QuotaTarget{Table: name}, 0, "")
		p.state(name, 0, "")
	}
}

func (p *spacePlayer) file(path string) {
	f, err := os.Create(path)
	if err != nil {
		p.t.Fatal(err)
	}
	w, err := hfile.NewWriter(f, hfile.WriterOptions{})
	if err == nil {
		err = w.Append(&cells.Cell{Row: []byte("z"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1, Type: cells.Put, Value: []byte(strings.Repeat("w", 20_000))})
	}
	if err = errors.Join(err, w.Close(), f.Close()); err != nil {
		p.t.Fatal(err)
	}
}

// namespaces: a namespace's quota holds for its tables, unless a table violates
// one of its own.
func (p *spacePlayer) namespaces() {
	if err := p.adm.CreateNamespace(p.ctx, admin.Namespace{Name: "spacens"}); err != nil {
		p.t.Fatal(err)
	}
	const one, two = "spacens:one", "spacens:two"
	p.make(one)
	p.make(two)
	ns := admin.QuotaTarget{Namespace: "spacens"}
	put := func(name string) {
		p.write("put into "+name, "done", p.call(p.server.Address(), "ClientService", "Mutate", &pb.MutateRequest{Region: p.on(name), Mutation: spaceMutation(spacePut)}, &pb.MutateResponse{}))
	}
	fmt.Fprintf(&p.out, "# a namespace that violates NO_WRITES\n")
	p.quota(ns, 1<<20, "NO_WRITES")
	p.state(one, 1<<20, "")
	p.state(two, 1<<20, "")
	put(one)
	p.quota(ns, 1000, "NO_WRITES")
	p.state(one, 1000, "NO_WRITES")
	p.state(two, 1000, "NO_WRITES")
	put(one)
	fmt.Fprintf(&p.out, "# one table has a quota of its own and room in it\n")
	p.quota(admin.QuotaTarget{Table: one}, 1<<21, "NO_INSERTS")
	p.state(one, 1000, "NO_WRITES")
	put(one)
	fmt.Fprintf(&p.out, "# and violates it\n")
	p.quota(admin.QuotaTarget{Table: one}, 1001, "NO_INSERTS")
	p.state(one, 1001, "NO_INSERTS")
	put(one)
	put(two)
	fmt.Fprintf(&p.out, "# the namespace has room, the table does not\n")
	p.quota(ns, 1<<20, "NO_WRITES")
	p.state(one, 1001, "NO_INSERTS")
	p.state(two, 1<<20, "")
	put(one)
	put(two)
	states := func() {
		tables, namespaces, err := p.adm.SpaceQuotaStates(p.ctx)
		for _, name := range []string{one, two} {
			for table, s := range tables {
				if table.String() == name {
					fmt.Fprintf(&p.out, "state of %s: limit %d, violated %v, policy %s\n", name, s.Limit, s.InViolation, s.Policy)
				}
			}
		}
		s, ok := namespaces["spacens"]
		fmt.Fprintf(&p.out, "state of the namespace: %v limit %d, violated %v, %v\n", ok, s.Limit, s.InViolation, err)
	}
	states()
	fmt.Fprintf(&p.out, "# the table is deleted, then the namespace\n")
	for _, name := range []string{one, two} {
		if err := errors.Join(p.adm.DisableTable(p.ctx, name), p.adm.DeleteTable(p.ctx, name)); err != nil {
			p.t.Fatal(err)
		}
	}
	quotas := func() {
		list, err := p.adm.ListQuotas(p.ctx, admin.QuotaFilter{})
		p.write("quotas", listed(list), err)
	}
	quotas()
	if err := p.adm.DeleteNamespace(p.ctx, "spacens"); err != nil {
		p.t.Fatal(err)
	}
	quotas()
}
