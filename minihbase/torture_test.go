package minihbase_test

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/torture"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// long says that the slow versions of tests are wanted: pauses of 20 s instead
// of 3.
func long() bool { return os.Getenv("HOLDFAST_LONG") != "" }

// start runs a cluster and a client for a test.
func start(t testing.TB, o minihbase.Options, opts ...hbase.Option) (*minihbase.Cluster, *hbase.Client) {
	t.Helper()
	c, err := minihbase.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the cluster: %v", err)
		}
	})
	return c, open(t, c.Address(), opts...)
}

// startCounted is start for who counts calls: one for each Get.
func startCounted(t testing.TB, o minihbase.Options, opts ...hbase.Option) (*minihbase.Cluster, *hbase.Client) {
	t.Helper()
	return start(t, o, append(opts, hbase.WithGetsTogether(1))...)
}

func open(t testing.TB, address string, opts ...hbase.Option) *hbase.Client {
	t.Helper()
	client, err := hbase.Open(t.Context(), address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return client
}

// runTorture runs the suite and fails the test for everything that went wrong.
func runTorture(t *testing.T, cfg torture.Config) *torture.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	rep, err := torture.Run(ctx, cfg)
	if rep != nil {
		t.Logf("\n%v", rep)
		if err := rep.Err(); err != nil {
			t.Error(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// TestTorture is the whole plan: deaths are noticed at once and a pause never,
// so that what is seen is the client's own doing.
func TestTorture(t *testing.T) {
	t.Parallel()
	c, client := start(t, minihbase.Options{ControlPort: -1})
	cfg := torture.Config{Client: client, Cluster: torture.Embedded{Mini: c}, Plan: torture.DefaultPlan(3 * time.Second)}
	switch {
	case long():
		cfg.Plan = torture.DefaultPlan(20 * time.Second)
	case testing.Short():
		cfg.Workers, cfg.Plan = 16, torture.ShortPlan(time.Second)
	}
	runTorture(t, cfg)
}

// TestTortureSlowDeaths runs on a cluster whose deaths take time, as real ones
// do: a second until the session has run out, then the recovery. One server is
// frozen for longer than that, so that it is declared dead and ends when it wakes
// up: calls must find its regions elsewhere before it does.
func TestTortureSlowDeaths(t *testing.T) {
	t.Parallel()
	// A machine that has other things to do may be as slow as a short freeze is
	// long; who waits for a frozen server waits for the end of a long one, too.
	for _, frozen := range []time.Duration{3 * time.Second, 20 * time.Second} {
		d := slowDeaths(t, frozen)
		if d < frozen || t.Failed() {
			return
		}
		t.Logf("frozen for %v: a call took %v", frozen, d)
	}
	t.Error("calls waited for a frozen server whose regions had long been open elsewhere")
}

// slowDeaths gives the longest that a call took while a server was frozen.
func slowDeaths(t *testing.T, frozen time.Duration) time.Duration {
	c, client := start(t, minihbase.Options{ControlPort: -1, SessionTimeout: time.Second, RecoveryDelay: 300 * time.Millisecond},
		hbase.WithPingAfter(200*time.Millisecond))
	// Regions that move are closed for a while, and hbase:meta says so.
	c.SetTransitionGap(100 * time.Millisecond)
	cfg := torture.Config{Client: client, Cluster: torture.Embedded{Mini: c}, Plan: []torture.Step{
		{Event: torture.Quiet, For: 300 * time.Millisecond}, {Event: torture.Move}, {Event: torture.Move}, {Event: torture.Kill}, {Event: torture.Pause, For: frozen}, {Event: torture.Split}, {Event: torture.Kill, Meta: true},
	}}
	if testing.Short() {
		cfg.Workers, cfg.Plan = 16, cfg.Plan[2:5]
	}
	return runTorture(t, cfg).Slowest(torture.Pause)
}

// chaosSeed is the same each time, so that nothing is found by chance while
// something else is being changed; make random takes new ones.
var chaosSeed = flag.Uint64("seed", 1, "of random tests; 0 takes the clock's")

// TestTortureChaos adds trouble on single calls: one in a hundred gets a lost
// request or answer, a lost connection, a delay or an exception that a client
// has to wait out, while regions move and split and servers die.
func TestTortureChaos(t *testing.T) {
	t.Parallel()
	o := minihbase.Options{ControlPort: -1, SessionTimeout: 300 * time.Millisecond, RecoveryDelay: 200 * time.Millisecond}
	c, client := start(t, o, hbase.WithRPCTimeout(500*time.Millisecond), hbase.WithPingAfter(300*time.Millisecond))
	c.SetTransitionGap(20 * time.Millisecond)
	seed := *chaosSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	for i, r := range []minihbase.Rule{
		{Action: minihbase.Delay, Delay: 20 * time.Millisecond, Probability: 0.003},
		{Action: minihbase.DelayReply, Delay: 20 * time.Millisecond, Probability: 0.003},
		{Action: minihbase.DropReply, Probability: 0.0005},
		{Action: minihbase.DropRequest, Probability: 0.0005},
		{Action: minihbase.CloseConn, Probability: 0.0005},
		{Action: minihbase.CloseAfter, Probability: 0.0005},
		{Action: minihbase.Truncate, Probability: 0.0005},
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "CallQueueTooBigException"}, Probability: 0.001},
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "RegionTooBusyException"}, Probability: 0.001},
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "RegionOpeningException"}, Probability: 0.0002},
		// A region that its server disowns while hbase:meta stands by it is taken
		// to be in transition for a second: rare, or nothing else happens.
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "NotServingRegionException"}, Probability: 0.0001},
		{Action: minihbase.Fail, Exception: minihbase.Exception{Class: "RpcThrottlingException", Wait: 20 * time.Millisecond}, Probability: 0.0005},
		{Action: minihbase.FailAfter, Exception: minihbase.Exception{Class: "CallTimeoutException"}, Probability: 0.0005},
	} {
		r.Method, r.Seed = "Get,Mutate,Multi,Scan", seed+uint64(i)
		if _, err := c.AddRule(r); err != nil {
			t.Fatal(err)
		}
	}
	cfg := torture.Config{Client: client, Cluster: torture.Embedded{Mini: c}, Seed: seed, Plan: torture.ShortPlan(500 * time.Millisecond)}
	if testing.Short() {
		cfg.Workers, cfg.Plan = 16, cfg.Plan[1:5]
	}
	runTorture(t, cfg)
	for _, r := range c.Rules() {
		t.Logf("%s %s: %d of %d calls", r.Action, r.Exception.Class, r.Hits, r.Matched)
	}
}
