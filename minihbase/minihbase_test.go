package minihbase_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func up(t testing.TB, o minihbase.Options) *minihbase.Cluster {
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
	return c
}

// write and read use a region as a client does that has just located it.
func call(t testing.TB, c *minihbase.Cluster, table, row, method string, q interface {
	SizeVT() int
	MarshalToSizedBufferVT([]byte) (int, error)
}, a interface{ UnmarshalVT([]byte) error }) (string, error) {
	t.Helper()
	r, err := c.Locate(table, []byte(row))
	if err != nil {
		t.Fatal(err)
	}
	k, err := rpctest.Dial(c.RegionServers()[r.Index], rpctest.Options{})
	if err != nil {
		return "", err
	}
	defer k.Conn.Close()
	_ = k.Conn.SetDeadline(time.Now().Add(time.Minute))
	cells, err := k.Call(method, q, a)
	if err != nil || len(cells) == 0 {
		return "", err
	}
	return string(cells[0].Value), nil
}

func region(t testing.TB, c *minihbase.Cluster, table, row string) *pb.RegionSpecifier {
	t.Helper()
	r, err := c.Locate(table, []byte(row))
	if err != nil {
		t.Fatal(err)
	}
	return &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: []byte(r.Name)}
}

func put(t testing.TB, c *minihbase.Cluster, table, row, value string) error {
	t.Helper()
	_, err := call(t, c, table, row, "Mutate", &pb.MutateRequest{Region: region(t, c, table, row), Mutation: &pb.MutationProto{
		Row: []byte(row), MutateType: pb.MutationProto_PUT.Enum(),
		ColumnValue: []*pb.MutationProto_ColumnValue{{Family: []byte("f"), QualifierValue: []*pb.MutationProto_ColumnValue_QualifierValue{{Qualifier: []byte("q"), Value: []byte(value)}}}},
	}}, &pb.MutateResponse{})
	return err
}

func get(t testing.TB, c *minihbase.Cluster, table, row string) string {
	t.Helper()
	v, err := call(t, c, table, row, "Get", &pb.GetRequest{Region: region(t, c, table, row), Get: &pb.Get{Row: []byte(row)}}, &pb.GetResponse{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestAddresses(t *testing.T) {
	c := up(t, minihbase.Options{Servers: 2, ControlPort: -1, ZNodeParent: "/h/base"})
	if a := c.Address(); a != "hbase://"+c.ZooKeeper()+"/h/base" || !strings.HasPrefix(c.ZooKeeper(), "127.0.0.1:") {
		t.Errorf("address %q", a)
	}
	if c.Control() != "" {
		t.Errorf("control port %q though it is off", c.Control())
	}
	for _, a := range append(c.RegionServers(), c.Master(), c.ZooKeeper()) {
		nc, err := net.Dial("tcp", a)
		if err != nil {
			t.Error(err)
			continue
		}
		nc.Close()
	}
	if x := c.SiteXML(); !strings.Contains(x, "<value>/h/base</value>") || !strings.Contains(x, "<value>127.0.0.1</value>") {
		t.Errorf("site: %s", x)
	}
	if !slices.Contains(mustChildren(t, c, "/h/base"), "hbaseid") {
		t.Error("no znodes below the parent")
	}
}

func mustChildren(t testing.TB, c *minihbase.Cluster, path string) []string {
	t.Helper()
	ch, err := c.ZooKeeperServer().Children(path)
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func TestFixedPorts(t *testing.T) {
	// Two ports in a row that are free now may be taken by the time they are
	// used: then others are tried.
	var c *minihbase.Cluster
	var base int
	for tries := 1; c == nil; tries++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		base = l.Addr().(*net.TCPAddr).Port
		l.Close()
		c, err = minihbase.Start(t.Context(), minihbase.Options{Servers: 2, RegionServerPort: base, Advertise: "localhost"})
		if err != nil && tries == 50 {
			t.Fatal(err)
		}
	}
	defer c.Close()
	want := []string{net.JoinHostPort("localhost", strconv.Itoa(base)), net.JoinHostPort("localhost", strconv.Itoa(base+1))}
	if got := c.RegionServers(); !slices.Equal(got, want) {
		t.Errorf("region servers at %v, want %v", got, want)
	}
	// A second cluster cannot have them, says so, and leaves nothing behind.
	if d, err := minihbase.Start(t.Context(), minihbase.Options{RegionServerPort: base}); err == nil {
		d.Close()
		t.Error("two clusters on one port")
	} else if !strings.Contains(err.Error(), "region server 0") || !strings.Contains(err.Error(), strconv.Itoa(base)) {
		t.Errorf("error does not name the server and the port: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	_, err := minihbase.Start(t.Context(), minihbase.Options{Servers: -1, MasterPort: 70000, ControlPort: -2, Dir: "x", InMemory: true, ZNodeParent: "hbase", RecoveryDelay: -1})
	if err == nil {
		t.Fatal("started")
	}
	for _, word := range []string{"Servers", "MasterPort", "ControlPort", "InMemory", "ZNodeParent", "RecoveryDelay"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not tell of %s: %v", word, err)
		}
	}
}

func TestTableLife(t *testing.T) {
	ctx := t.Context()
	c := up(t, minihbase.Options{})
	if err := c.CreateTable(ctx, "t", []string{"f"}, []byte("m")); err != nil {
		t.Fatal(err)
	}
	if err := put(t, c, "t", "a", "1"); err != nil {
		t.Fatal(err)
	}
	r, err := c.Locate("t", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	to := (r.Index + 1) % 3
	if err := c.MoveRegion(ctx, r.Encoded, to); err != nil {
		t.Fatal(err)
	}
	if n, _ := c.Locate("t", []byte("a")); n.Index != to || n.OpenSeq <= r.OpenSeq {
		t.Errorf("moved to %+v", n)
	}
	if err := c.Split(ctx, r.Encoded, []byte("g")); err != nil {
		t.Fatal(err)
	}
	rs, err := c.Regions("t")
	if err != nil || len(rs) != 4 {
		t.Fatalf("%d regions (%v), want parent, daughters and the other", len(rs), err)
	}
	var names []string
	for _, r := range rs {
		if !r.Parent {
			names = append(names, r.Encoded)
		}
	}
	if err := c.Merge(ctx, names...); err != nil {
		t.Fatal(err)
	}
	if rs, _ := c.Regions("t"); len(rs) != 1 {
		t.Errorf("%d regions after the merge", len(rs))
	}
	if v := get(t, c, "t", "a"); v != "1" {
		t.Errorf("get: %q", v)
	}
	if err := c.AddGroup(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	if err := c.MoveToGroup(ctx, "g", c.RegionServers()[:1], []string{"t"}); err != nil {
		t.Fatal(err)
	}
	if n, _ := c.Locate("t", []byte("a")); n.Index != 0 {
		t.Errorf("the table's region is on server %d, its group is server 0", n.Index)
	}
	if _, err := c.Balance(ctx); err != nil {
		t.Error(err)
	}
	if err := c.DropTable(ctx, "t"); err != nil {
		t.Fatal(err)
	}
	if err := c.DropTable(ctx, "t"); err != nil {
		t.Errorf("dropping nothing: %v", err)
	}
	if _, err := c.Regions("t"); err == nil {
		t.Error("regions of a dropped table")
	}
	if err := c.RemoveGroup("g"); err == nil {
		t.Error("a group with servers was removed")
	}
	if _, err := c.Regions("no such:table:name"); err == nil {
		t.Error("an illegal name was taken")
	}
}

func TestRulesAndEvents(t *testing.T) {
	c := up(t, minihbase.Options{})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	id, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "Mutate", Table: "t"}, Times: 1, Action: minihbase.Fail, Exception: minihbase.Exception{Class: "RegionTooBusyException"}})
	if err != nil {
		t.Fatal(err)
	}
	since := c.Events().LastSeq()
	if err := put(t, c, "t", "a", "1"); err == nil || !strings.Contains(err.Error(), "RegionTooBusy") {
		t.Errorf("first put: %v", err)
	}
	if err := put(t, c, "t", "a", "1"); err != nil {
		t.Errorf("second put: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := c.WaitRule(ctx, id, 1); err != nil {
		t.Error(err)
	}
	events, err := c.Events().Wait(ctx, minihbase.EventFilter{Method: "Mutate", Table: "t"}, since, 2)
	if err != nil || len(events) != 2 || events[0].Rule != id || string(events[1].Row) != "a" || events[1].Outcome != "ok" {
		t.Errorf("events %v, %v", events, err)
	}
	if err := c.RemoveRule(id); err != nil {
		t.Error(err)
	}
}

func TestClock(t *testing.T) {
	c := up(t, minihbase.Options{})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)
	c.Clock().Freeze(at)
	if err := put(t, c, "t", "a", "1"); err != nil {
		t.Fatal(err)
	}
	q := &pb.GetRequest{Region: region(t, c, "t", "a"), Get: &pb.Get{Row: []byte("a"), TimeRange: &pb.TimeRange{From: new(uint64(at.UnixMilli())), To: new(uint64(at.UnixMilli() + 1))}}}
	if v, err := call(t, c, "t", "a", "Get", q, &pb.GetResponse{}); err != nil || v != "1" {
		t.Errorf("get at the frozen time: %q, %v", v, err)
	}
	c.Clock().Advance(time.Hour)
	if n := c.Clock().Now(); !n.Equal(at.Add(time.Hour)) || !c.Clock().Frozen() {
		t.Errorf("advanced to %v", n)
	}
	c.Clock().Resume()
	if n := c.Clock().Now(); n.Before(at.Add(time.Hour)) || n.After(at.Add(2*time.Hour)) || c.Clock().Frozen() {
		t.Errorf("running at %v", n)
	}
	c.Clock().Reset()
	if d := time.Since(c.Clock().Now()).Abs(); d > time.Minute {
		t.Errorf("after the reset the clock is off by %v", d)
	}
}

// Start that is cancelled, and calls after Close, leave nothing and hang
// nowhere.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := minihbase.Start(ctx, minihbase.Options{}); err == nil {
		// Nothing of the start waits, so it may well have come up.
		c.Close()
	}
	c := up(t, minihbase.Options{})
	if err := c.CreateTable(t.Context(), "t", []string{"f"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	for name, f := range map[string]func() error{
		"kill": func() error { return c.KillRegionServer(0) }, "start": func() error { return c.StartRegionServer(0) },
		"move":   func() error { return c.MoveRegion(t.Context(), "x", 0) },
		"create": func() error { return c.CreateTable(t.Context(), "u", []string{"f"}) },
		"master": func() error { return c.StartMaster(0) },
		"reset":  func() error { return c.Reset(t.Context()) },
	} {
		if err := f(); err == nil {
			t.Errorf("%s on a closed cluster", name)
		}
	}
}

func BenchmarkStart(b *testing.B) {
	for name, o := range map[string]minihbase.Options{
		"memory": {}, "memory10servers": {Servers: 10}, "newdir": {Dir: "new"}, "reopen": {Dir: "old"},
	} {
		b.Run(name, func(b *testing.B) {
			old := b.TempDir()
			for b.Loop() {
				o := o
				b.StopTimer()
				switch o.Dir {
				case "new":
					o.Dir = b.TempDir()
				case "old":
					o.Dir = old
				}
				b.StartTimer()
				c, err := minihbase.Start(context.Background(), o)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
