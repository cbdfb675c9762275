//go:build interop

package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/torture"
	"github.com/holdfast-hbase/holdfast/interop/peers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// budget is what one call is given: HBase needs about 40 s to notice that a
// server was killed, and some more to replay its log.
const budget = 2 * time.Minute

// A cluster takes half a minute to start: what 2.6.4 alone is needed for comes
// first, before the faults.
func TestHBase26(t *testing.T) {
	t.Parallel() // most of the time goes by in waiting for HBase
	c := peers.Start(t, peers.HBase26)
	t.Run("meta watch", func(t *testing.T) { metaWatch(t, c) })
	t.Run("timeline reads", func(t *testing.T) { timelineReads(t, c) })
	t.Run("torture", func(t *testing.T) { run(t, c) })
}

func TestHBase24(t *testing.T) {
	t.Parallel()
	run(t, peers.Start(t, peers.HBase24))
}

func run(t *testing.T, c *peers.Cluster) {
	open := func() *hbase.Client {
		client, err := hbase.Open(t.Context(), c.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := client.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
		return client
	}
	f := &faults{cluster: c, admin: open().Admin()}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	// The balancer would move regions on its own account, and what happens
	// would no longer be what the report says.
	if _, err := f.admin.SetBalancer(ctx, false); err != nil {
		t.Fatal(err)
	}
	report(ctx, t, torture.Config{
		Client: open(), Cluster: f, Budget: budget, Pace: 20 * time.Millisecond,
		Plan: torture.DefaultPlan(20 * time.Second), Logf: t.Logf,
	})
}

// report runs the suite and fails the test for everything that went wrong.
func report(ctx context.Context, t *testing.T, cfg torture.Config) {
	t.Helper()
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
}

// faults does the faults to a real cluster: what a client can do through a
// client of its own, the rest to the processes.
type faults struct {
	cluster *peers.Cluster
	admin   *admin.Admin
}

var _ torture.Faults = (*faults)(nil)

func (f *faults) String() string {
	version := map[string]string{peers.HBase24: "2.4.17", peers.HBase26: "2.6.4"}[f.cluster.Set]
	return fmt.Sprintf("HBase %s with %d region servers", version, peers.RegionServers)
}

func (f *faults) Regions(ctx context.Context, table string) ([]torture.Region, error) {
	list, err := f.admin.Regions(ctx, table)
	if err != nil {
		return nil, err
	}
	var out []torture.Region
	for _, l := range list {
		r := torture.Region{Encoded: l.Region.EncodedName(), Start: l.Region.Start, End: l.Region.End}
		if !l.Server.IsZero() {
			r.Server = l.Server.Address()
		}
		out = append(out, r)
	}
	return out, nil
}

func (f *faults) Servers(ctx context.Context) ([]string, error) {
	live, err := f.admin.RegionServers(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, s := range live {
		out = append(out, s.Address())
	}
	return out, nil
}

func (f *faults) MetaServer(ctx context.Context) (string, error) {
	list, err := f.Regions(ctx, "hbase:meta")
	if err != nil {
		return "", err
	}
	return list[0].Server, nil
}

func (f *faults) Move(ctx context.Context, encoded, server string) error {
	live, err := f.admin.RegionServers(ctx)
	if err != nil {
		return err
	}
	for _, s := range live {
		if s.Address() == server {
			return f.admin.MoveRegion(ctx, encoded, s)
		}
	}
	return fmt.Errorf("%s does not live", server)
}

func (f *faults) Split(ctx context.Context, encoded string, row []byte) error {
	return f.admin.SplitRegion(ctx, encoded, row)
}

func (f *faults) Kill(_ context.Context, server string) error { return f.do(server, f.cluster.Kill) }

func (f *faults) Restart(_ context.Context, server string) error {
	return f.do(server, f.cluster.StartServer)
}

func (f *faults) Pause(_ context.Context, server string) error { return f.do(server, f.cluster.Pause) }

func (f *faults) Resume(_ context.Context, server string) error {
	return f.do(server, f.cluster.Resume)
}

func (f *faults) do(server string, action func(int)) error {
	n := f.cluster.ServerNumber(server)
	if n == 0 {
		return fmt.Errorf("%s is none of the cluster's region servers", server)
	}
	action(n)
	return nil
}

// MetaReads are not counted by real servers.
func (f *faults) MetaReads() (uint64, bool) { return 0, false }
