package hbasetest_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbasetest"
	"github.com/holdfast-hbase/holdfast/minihbase"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
)

var shared *hbasetest.Shared

func TestMain(m *testing.M) {
	code := hbasetest.Main(m, &shared, hbasetest.WithServers(2))
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// TestRun goes once through what a test does with a cluster.
func TestRun(t *testing.T) {
	t.Parallel()
	c := hbasetest.Run(t, hbasetest.WithBackupMasters(1), hbasetest.WithClient(hbase.WithRPCTimeout(200*time.Millisecond)))
	orders := c.SplitTable("orders", []string{"f", "g"}, "m")
	want := hbasetest.Rows{
		"ada": {"f:name": "Ada", "g:n": "1"},
		"zoe": {"f:name": "Zoe\x00"},
	}
	c.Load("orders", want)
	if got := c.Dump("orders"); got.String() != want.String() {
		t.Errorf("dumped\n%swant\n%s", got, want)
	}
	if text := want.String(); text != "ada f:name = Ada\nada g:n = 1\nzoe f:name = Zoe\\x00\n" {
		t.Errorf("rows print as %q", text)
	}

	before := c.Region("orders", "ada")
	if after := c.Move("orders", "ada"); after.Index == before.Index || after.Encoded != before.Encoded {
		t.Errorf("moved from %+v to %+v", before, after)
	}
	c.SplitAt("orders", "g")
	if r := c.Region("orders", "h"); string(r.Start) != "g" {
		t.Errorf("after the split the row is in %+v", r)
	}
	i := c.Kill("orders", "ada")
	lost := c.Rule(minihbase.Rule{Match: minihbase.Match{Method: "Mutate"}, Action: minihbase.DropReply, Times: 1})
	if n, err := orders.IncrementColumn(t.Context(), []byte("ada"), "f", "count", 1); err != nil || n != 1 {
		t.Errorf("increment of which the answer is lost: %d, %v", n, err)
	}
	lost.WaitHits(1)
	if n := len(c.Calls(minihbase.EventFilter{Rule: lost.ID})); n != 1 || lost.Hits() != 1 {
		t.Errorf("%d calls were touched by the rule, %d hits", n, lost.Hits())
	}
	lost.Remove()
	if lost.Hits() != 0 {
		t.Error("a removed rule has hits")
	}
	if err := c.StartRegionServer(i); err != nil {
		t.Error(err)
	}
	if err := c.KillMaster(0); err != nil {
		t.Error(err)
	}
	c.Table("later")
	c.Fill("later", "f:q", 2500)
	if n := len(c.Dump("later")); n != 2500 {
		t.Errorf("%d rows of 2500", n)
	}
}

// TestHold: a held call goes on when it is let go.
func TestHold(t *testing.T) {
	t.Parallel()
	c := hbasetest.Run(t, hbasetest.WithOptions(minihbase.Options{Servers: 1, ControlPort: -1}))
	table := c.Table("t")
	hold := c.Rule(minihbase.Rule{Match: minihbase.Match{Method: "Get", Table: "t"}, Action: minihbase.Hold})
	done := make(chan error, 1)
	go func() { _, err := table.Get(t.Context(), hbase.NewGet("r")); done <- err }()
	hold.WaitHits(1)
	hold.Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOnDisk: what was written is there when the folder is opened again.
func TestOnDisk(t *testing.T) {
	dir := t.TempDir()
	t.Run("write", func(t *testing.T) {
		c := hbasetest.Run(t, hbasetest.WithDir(dir), hbasetest.WithRealPace(time.Minute, time.Second))
		c.Table("t")
		c.Fill("t", "f:q", 10)
	})
	t.Run("read", func(t *testing.T) {
		if n := len(hbasetest.Run(t, hbasetest.WithDir(dir)).Dump("t")); n != 10 {
			t.Errorf("%d rows", n)
		}
	})
}

// TestShared: each test finds the cluster as if it were new, also in parallel,
// whatever the others did.
func TestShared(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := shared.Use(t)
			for _, s := range c.Servers() {
				if s.State != "running" {
					t.Errorf("server %d is %s", s.Index, s.State)
				}
			}
			if len(c.Rules()) > 0 || c.Clock().Frozen() {
				t.Errorf("rules %v, frozen clock %v", c.Rules(), c.Clock().Frozen())
			}
			table := c.Table("t", "f")
			c.Load("t", hbasetest.Rows{fmt.Sprint(i): {"f:q": "v"}})
			if got := c.Dump("t"); len(got) != 1 {
				t.Errorf("the table holds rows of other tests:\n%s", got)
			}
			c.Clock().Freeze(time.Time{})
			c.Kill("t", "0")
			if _, err := c.AddRule(minihbase.Rule{Match: minihbase.Match{Method: "Get"}, Action: minihbase.Delay, Delay: time.Millisecond}); err != nil {
				t.Error(err)
			}
			if _, err := table.Get(t.Context(), hbase.NewGet("0")); err != nil {
				t.Error(err)
			}
		})
	}
}

// recorder is a test that others look at: what it logs, and how it ends.
type recorder struct {
	testing.TB
	failed   bool
	log      strings.Builder
	cleanups []func()
}

type stopped struct{}

func (r *recorder) Helper()          {}
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(args ...any)  { fmt.Fprintln(&r.log, args...) }
func (r *recorder) Fatal(args ...any) {
	r.failed = true
	fmt.Fprintln(&r.log, args...)
	panic(stopped{})
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	fmt.Fprintf(&r.log, format+"\n", args...)
}

// record runs a test and gives what it logged.
func record(t *testing.T, f func(r *recorder)) string {
	r := &recorder{TB: t}
	defer func() {
		for i := len(r.cleanups) - 1; i >= 0; i-- {
			r.cleanups[i]()
		}
	}()
	func() {
		defer func() {
			if e := recover(); e != nil && e != (stopped{}) {
				panic(e)
			}
		}()
		f(r)
	}()
	// The report is made when the test ends.
	for len(r.cleanups) > 0 {
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		last()
	}
	return r.log.String()
}

// TestReport: a test that fails prints what happened, and not more than one can
// read; one that passes prints nothing.
func TestReport(t *testing.T) {
	log := record(t, func(r *recorder) {
		c := hbasetest.Run(r, hbasetest.WithBackupMasters(1))
		table := c.Table("orders")
		c.Rule(minihbase.Rule{Name: "busy", Match: minihbase.Match{Method: "Get"}, Action: minihbase.Fail, Times: 1,
			Exception: minihbase.Exception{Class: "RegionTooBusyException"}})
		for range 100 {
			if _, err := table.Get(t.Context(), hbase.NewGet("user-1")); err != nil {
				t.Error(err)
			}
		}
		c.Kill("orders", "user-1")
		r.Errorf("something was wrong")
	})
	for _, want := range []string{": dead, 0 regions", "master 1", `rule 1 fail busy: matched`, "Get table=orders", "RegionTooBusyException rule=1", "more like it)", " kill "} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if n := strings.Count(log, "\n"); n > 60 {
		t.Errorf("the report has %d lines", n)
	}
	if log := record(t, func(r *recorder) { hbasetest.Run(r).Table("t") }); log != "" {
		t.Errorf("a test that passes logs %s", log)
	}
}

// TestHelpersFail: a helper that cannot do its work ends the test and says why.
func TestHelpersFail(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		do         func(r *recorder, c *hbasetest.Cluster)
	}{
		{"table twice", "TableExists", func(r *recorder, c *hbasetest.Cluster) { c.Table("t"); c.Table("t") }},
		{"bad name", "hbasetest", func(r *recorder, c *hbasetest.Cluster) { c.Table("a b") }},
		{"no such table", "none", func(r *recorder, c *hbasetest.Cluster) { c.Dump("none") }},
		{"load into nothing", "load none", func(r *recorder, c *hbasetest.Cluster) { c.Load("none", hbasetest.Rows{"r": {"f:q": "v"}}) }},
		{"column", "family:qualifier", func(r *recorder, c *hbasetest.Cluster) { c.Table("t"); c.Load("t", hbasetest.Rows{"r": {"q": "v"}}) }},
		{"fill column", "family:qualifier", func(r *recorder, c *hbasetest.Cluster) { c.Fill("t", "q", 1) }},
		{"region", "no table none", func(r *recorder, c *hbasetest.Cluster) { c.Move("none", "r") }},
		{"rule", "action", func(r *recorder, c *hbasetest.Cluster) { c.Rule(minihbase.Rule{}) }},
		{"removed rule", "no such rule", func(r *recorder, c *hbasetest.Cluster) {
			u := c.Rule(minihbase.Rule{Action: minihbase.CloseConn})
			u.Remove()
			u.WaitHits(1)
		}},
		{"used twice", "already", func(r *recorder, c *hbasetest.Cluster) { shared.Use(r) }},
	} {
		log := record(t, func(r *recorder) { tc.do(r, shared.Use(r)) })
		if !strings.Contains(log, tc.want) {
			t.Errorf("%s: no %q in\n%s", tc.name, tc.want, log)
		}
	}
	if log := record(t, func(r *recorder) { hbasetest.Run(r, hbasetest.WithServers(-1)) }); !strings.Contains(log, "Servers") {
		t.Errorf("a cluster that cannot start says %s", log)
	}
	if _, err := hbasetest.Start(t.Context(), hbasetest.WithServers(-1)); err == nil {
		t.Error("a cluster of -1 servers starts")
	}
}

// TestRowsCompare: rows are maps, and compare as such.
func TestRowsCompare(t *testing.T) {
	a := hbasetest.Rows{"r": {"f:q": "v"}}
	b := hbasetest.Rows{"r": {"f:q": "v"}}
	if !maps.EqualFunc(a, b, maps.Equal) || a.String() != b.String() {
		t.Error("equal rows differ")
	}
}

// BenchmarkRun is the cost of a cluster per test, BenchmarkReset that of a
// shared one between two tests, with a table, a row and a killed server to clear
// away; BenchmarkResetHTTP the same over the control port.
func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		s, err := hbasetest.Start(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkReset(b *testing.B) {
	c := hbasetest.Run(b)
	benchmarkReset(b, c, func() error { return c.Reset(b.Context()) })
}

func BenchmarkResetHTTP(b *testing.B) {
	c := hbasetest.Run(b)
	k, err := control.New(c.Control())
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	benchmarkReset(b, c, func() error { return k.Reset(b.Context()) })
}

func benchmarkReset(b *testing.B, c *hbasetest.Cluster, reset func() error) {
	for b.Loop() {
		b.StopTimer()
		c.Table("t")
		c.Load("t", hbasetest.Rows{"r": {"f:q": "v"}})
		c.Kill("t", "r")
		b.StartTimer()
		if err := reset(); err != nil {
			b.Fatal(err)
		}
	}
}
