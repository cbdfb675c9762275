package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// Faults is what the suite may do to a cluster from outside. Fields that are
// nil are not possible; the tests that need them are then not part of the run.
type Faults struct {
	// Kill ends a region server without warning (kill -9).
	Kill func(ctx context.Context, server hbase.ServerName) error
	// Start brings one more region server up.
	Start func(ctx context.Context) error
	// Pause stops a region server without ending it (SIGSTOP), Resume lets it
	// go on.
	Pause, Resume func(ctx context.Context, server hbase.ServerName) error
}

// Options adapt the suite to the cluster.
type Options struct {
	// Faults the cluster offers.
	Faults Faults
	// Patience is the time that one step of a test may take. Default 60 s; a
	// real cluster that loses a server needs 120 s.
	Patience time.Duration
	// Load is how long the tests under load run. Default 2 s.
	Load time.Duration
	// Freeze is how long a server is paused. Default 1 s.
	Freeze time.Duration
	// Prefix of the tables. Default "conf".
	Prefix string
	// Client options, for instance timeouts.
	Client []hbase.Option
}

type suite struct {
	t      *testing.T
	o      Options
	addr   string
	client *hbase.Client
	adm    *admin.Admin
	n      int
}

// Run runs the whole suite against the cluster at address.
func Run(t *testing.T, address string, o Options) {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	if o.Load == 0 {
		o.Load = 2 * time.Second
	}
	if o.Freeze == 0 {
		o.Freeze = time.Second
	}
	if o.Prefix == "" {
		o.Prefix = "conf"
	}
	client, err := hbase.Open(t.Context(), address, append([]hbase.Option{hbase.WithOperationTimeout(o.Patience)}, o.Client...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	s := &suite{t: t, o: o, addr: address, client: client, adm: client.Admin()}
	ctx, cancel := s.step(t)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		t.Fatalf("ping: %v", err)
	}
	for _, test := range []struct {
		name string
		f    func(*suite, *testing.T)
	}{
		{"Reads", (*suite).reads},
		{"Versions", (*suite).versions},
		{"Deletes", (*suite).deletes},
		{"Increments", (*suite).increments},
		{"Appends", (*suite).appends},
		{"CheckAndMutate", (*suite).checkAndMutate},
		{"MutateRow", (*suite).mutateRow},
		{"Batch", (*suite).batch},
		{"Options", (*suite).writeOptions},
		{"Scans", (*suite).scans},
		{"ScanSpecials", (*suite).scanSpecials},
		{"ScanFilters", (*suite).scanFilters},
		{"ScanUnderChange", (*suite).scanUnderChange},
		{"Tables", (*suite).tables},
		{"Schema", (*suite).schema},
		{"Namespaces", (*suite).namespaces},
		{"Regions", (*suite).regions},
		{"Cluster", (*suite).cluster},
		{"RSGroups", (*suite).rsgroups},
		{"Errors", (*suite).errors},
		{"Routes", (*suite).routes},
		{"Deadlines", (*suite).deadlines},
		{"LoadUnderMoves", (*suite).loadUnderMoves},
	} {
		t.Run(test.name, func(t *testing.T) { test.f(s, t) })
	}
	if o.Faults.Pause != nil {
		t.Run("LoadUnderPause", s.loadUnderPause)
	}
	if o.Faults.Kill != nil {
		t.Run("LoadUnderKill", s.loadUnderKill)
	}
}

// step gives a context for one step.
func (s *suite) step(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), s.o.Patience)
}

// table makes a table and drops it when the test ends.
func (s *suite) table(t *testing.T, families []*admin.FamilyDescriptor, splits ...[]byte) *hbase.Table {
	t.Helper()
	s.n++
	name := fmt.Sprintf("%s_%d_%s", s.o.Prefix, s.n, strings.ToLower(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]))
	s.drop(t, name)
	ctx, cancel := s.step(t)
	defer cancel()
	if err := s.adm.CreateTable(ctx, admin.NewTable(name, families...), splits...); err != nil {
		t.Fatalf("create %s: %v", name, err)
	}
	t.Cleanup(func() { s.drop(t, name) })
	tab, err := s.client.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// drop removes a table in whatever state it is. It runs in cleanups, after
// the test's context has ended.
func (s *suite) drop(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), s.o.Patience)
	defer cancel()
	ok, err := s.adm.TableExists(ctx, name)
	if err != nil {
		t.Errorf("drop %s: %v", name, err)
		return
	}
	if !ok {
		return
	}
	if err := s.adm.DisableTable(ctx, name); err != nil && !errors.Is(err, hbase.ErrTableNotEnabled) {
		t.Errorf("drop %s: %v", name, err)
	}
	if err := s.adm.DeleteTable(ctx, name); err != nil {
		t.Errorf("drop %s: %v", name, err)
	}
}

// plain is a family with HBase's defaults.
func plain(names ...string) []*admin.FamilyDescriptor {
	var out []*admin.FamilyDescriptor
	for _, n := range names {
		out = append(out, admin.NewFamily(n))
	}
	return out
}

func put(t *testing.T, tab *hbase.Table, ps ...*hbase.Put) {
	t.Helper()
	for _, p := range ps {
		if err := tab.Put(t.Context(), p); err != nil {
			t.Fatalf("put %q: %v", p.RowKey(), err)
		}
	}
}

func get(t *testing.T, tab *hbase.Table, g *hbase.Get) *hbase.Result {
	t.Helper()
	r, err := tab.Get(t.Context(), g)
	if err != nil {
		t.Fatalf("get %q: %v", g.Row, err)
	}
	return r
}

// show prints cells as f:q@ts=value, the timestamp only when it is small
// (given by the test), delete markers by their type.
func show(cs []hbase.Cell) string {
	var out []string
	for _, c := range cs {
		s := hbase.Quote(c.Family) + ":" + hbase.Quote(c.Qualifier)
		if c.Timestamp < 1e6 {
			s += fmt.Sprintf("@%d", c.Timestamp)
		}
		if c.Type != hbase.TypePut {
			s += "!" + c.Type.String()
		} else {
			s += "=" + hbase.Quote(c.Value)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func expect(t *testing.T, what string, r *hbase.Result, want string) {
	t.Helper()
	if got := show(r.Cells); got != want {
		t.Errorf("%s:\n got %s\nwant %s", what, got, want)
	}
}

// collect runs a scan to its end.
func collect(t *testing.T, tab *hbase.Table, s *hbase.Scan) []*hbase.Result {
	t.Helper()
	var out []*hbase.Result
	for r, err := range tab.Scan(t.Context(), s).Rows() {
		if err != nil {
			t.Fatalf("scan: %v", err)
		}
		out = append(out, r)
	}
	return out
}

// rowsOf joins the row keys of results.
func rowsOf(rs []*hbase.Result) string {
	keys := make([]string, len(rs))
	for i, r := range rs {
		keys[i] = hbase.Quote(r.Row)
	}
	return strings.Join(keys, " ")
}

func keys(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, "r%03d", i)
	}
	return out
}

func split(texts ...string) [][]byte {
	var out [][]byte
	for _, s := range texts {
		out = append(out, []byte(s))
	}
	return out
}

// locations lists a table's regions, and checks that they cover the key space
// without gaps.
func (s *suite) locations(t *testing.T, tab *hbase.Table) []admin.RegionLocation {
	t.Helper()
	ctx, cancel := s.step(t)
	defer cancel()
	rs, err := s.adm.Regions(ctx, tab.Name().String())
	if err != nil {
		t.Fatalf("regions of %s: %v", tab.Name(), err)
	}
	var edge []byte
	for i, r := range rs {
		if !bytes.Equal(r.Region.Start, edge) {
			t.Errorf("region %d starts at %q, the one before ended at %q", i, r.Region.Start, edge)
		}
		edge = r.Region.End
	}
	if len(rs) == 0 || len(edge) != 0 {
		t.Errorf("regions of %s do not reach the end: %d of them, the last ends at %q", tab.Name(), len(rs), edge)
	}
	return rs
}

// otherServer picks a live server that is not the given one.
func (s *suite) otherServer(t *testing.T, than hbase.ServerName) hbase.ServerName {
	t.Helper()
	ctx, cancel := s.step(t)
	defer cancel()
	servers, err := s.adm.RegionServers(ctx)
	if err != nil {
		t.Fatalf("region servers: %v", err)
	}
	i := slices.IndexFunc(servers, func(n hbase.ServerName) bool { return n != than })
	if i < 0 {
		t.Fatalf("the suite needs two region servers, there is only %v", servers)
	}
	return servers[i]
}

// until repeats f until it says true, for as long as a step may take.
func (s *suite) until(t *testing.T, what string, f func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := s.step(t)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := f(ctx)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v", what, s.o.Patience)
		case <-tick.C:
		}
	}
}
