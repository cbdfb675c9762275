package minihbase_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/minihbase"
	"github.com/holdfast-hbase/holdfast/minihbase/control"
	"github.com/holdfast-hbase/holdfast/zk"
)

// TestEnsembleFaults: whatever is wrong with one member of the ensemble, a session
// that was on it goes on, and clients, old and new, find what they need. How fast
// and with how much of the session left is held on virtual time, in package zk.
func TestEnsembleFaults(t *testing.T) {
	t.Parallel()
	one := func(mode minihbase.ZooKeeperMode) func(*minihbase.Cluster) error {
		return func(c *minihbase.Cluster) error {
			return errors.Join(c.BreakZooKeeper(0, minihbase.ZooKeeperFault{Mode: mode}), dropUnlessCut(c, mode))
		}
	}
	for _, tc := range []struct {
		name  string
		spoil func(*minihbase.Cluster) error
	}{
		{"frozen leader", func(c *minihbase.Cluster) error {
			return c.StallZooKeeperLeader(100*time.Millisecond, 100*time.Millisecond)
		}},
		{"frozen", one(minihbase.ZooKeeperFrozen)},
		{"leaderless", one(minihbase.ZooKeeperLeaderless)},
		{"black hole", one(minihbase.ZooKeeperBlackHole)},
		{"refuse", one(minihbase.ZooKeeperRefuse)},
		{"hangup", one(minihbase.ZooKeeperHangup)},
		{"silent", one(minihbase.ZooKeeperSilent)},
		{"electing", one(minihbase.ZooKeeperElecting)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c := up(t, minihbase.Options{ZooKeepers: 3, ControlPort: -1})
			if err := c.CreateTable(ctx, "t", []string{"f"}); err != nil {
				t.Fatal(err)
			}
			if err := put(t, c, "t", "h", "h"); err != nil {
				t.Fatal(err)
			}
			before := fresh(t, c)
			if err := readRow(ctx, before, "h"); err != nil {
				t.Fatal(err)
			}
			open := func() *zk.Conn {
				s, err := zk.Open(ctx, zk.Config{Servers: c.ZooKeepers(), SessionTimeout: 6 * time.Second, KeepOrder: true})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			session := open()
			if on := session.Server(); on != c.ZooKeepers()[0] {
				t.Fatalf("the session began on %s of %v", on, c.ZooKeepers())
			}
			if err := tc.spoil(c); err != nil {
				t.Fatal(err)
			}
			// Written, and not only read: a follower without a leader answers reads.
			for n := 0; ; n++ {
				_, err := session.Create(ctx, "/written", nil, zk.PersistentNode, nil)
				if err == nil || errors.Is(err, zk.ErrNodeExists) {
					break
				}
				// This machine may stop for longer than the session lives.
				if errors.Is(err, zk.ErrSessionExpired) {
					session = open()
				} else if !errors.Is(err, zk.ErrConnectionLoss) {
					t.Fatalf("attempt %d: %v\n%v", n, err, session.Attempts())
				}
			}
			if on := session.Server(); on == c.ZooKeepers()[0] {
				t.Errorf("the write went through %s, the broken member", on)
			}
			if err := session.Close(ctx); err != nil {
				t.Error(err)
			}
			for _, table := range []struct {
				who string
				err error
			}{{"an old client", readRow(ctx, before, "h")}, {"a new one", readRow(ctx, fresh(t, c), "h")}} {
				if table.err != nil {
					t.Errorf("%s: %v", table.who, table.err)
				}
			}
			if err := c.MendZooKeeper(); err != nil {
				t.Fatal(err)
			}
			for _, m := range c.ZooKeeperMembers() {
				if m.Fault != (minihbase.ZooKeeperFault{}) {
					t.Errorf("once mended: %+v", m)
				}
			}
			mended, err := zk.Open(ctx, zk.Config{Servers: c.ZooKeepers()[:1]})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := mended.Get(ctx, "/hbase/hbaseid"); err != nil {
				t.Errorf("through the member that was broken: %v", err)
			}
			if err := mended.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// dropUnlessCut has modes that leave established connections alone meet the
// session of the test, too.
func dropUnlessCut(c *minihbase.Cluster, mode minihbase.ZooKeeperMode) error {
	switch mode {
	case minihbase.ZooKeeperFrozen, minihbase.ZooKeeperBlackHole, minihbase.ZooKeeperLeaderless:
		return nil
	}
	return c.DropZooKeeperConnections(0)
}

// TestEnsembleControls: addresses, the limits of the options, and everything over
// the control port.
func TestEnsembleControls(t *testing.T) {
	t.Parallel()
	c, k := controlled(t, minihbase.Options{ZooKeepers: 3})
	ctx := t.Context()
	quorum := strings.Join(c.ZooKeepers(), ",")
	if len(c.ZooKeepers()) != 3 || c.ZooKeeper() != quorum || c.Address() != "hbase://"+quorum+"/hbase" {
		t.Errorf("%v: quorum %s, address %s", c.ZooKeepers(), c.ZooKeeper(), c.Address())
	}
	if site := c.SiteXML(); !strings.Contains(site, "<value>"+quorum+"</value>") {
		t.Errorf("no quorum %s in %s", quorum, site)
	}
	describe := func() string {
		list, err := k.ZooKeeperMembers(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for i, m := range list {
			if m.Index != i || m.Address != c.ZooKeepers()[i] {
				t.Errorf("member %d is %+v", i, m)
			}
			s := m.Fault.Mode
			if m.Leader {
				s += " leader"
			}
			out = append(out, s)
		}
		return strings.Join(out, ", ")
	}
	expect := func(want string, err error) {
		t.Helper()
		if got := describe(); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	}
	expect("healthy leader, healthy, healthy", nil)
	expect("healthy leader, healthy, black hole", k.ZooKeeperFault(ctx, control.ZooKeeperFault{Mode: "black hole", Member: new(2)}))
	expect("frozen leader, frozen, frozen", k.ZooKeeperFault(ctx, control.ZooKeeperFault{Mode: "frozen"}))
	expect("healthy leader, healthy, healthy", k.MendZooKeeper(ctx))
	// The followers never notice, until Reset.
	expect("frozen leader, leaderless, leaderless", k.StallZooKeeperLeader(ctx, control.StallRequest{Notice: new(control.Duration(time.Hour))}))
	expect("healthy leader, healthy, healthy", k.Reset(ctx))
	if err := k.StallZooKeeperLeader(ctx, control.StallRequest{Notice: new(control.Duration(0)), Elect: new(control.Duration(0))}); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); describe() != "frozen, healthy leader, healthy"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s a minute after an election that takes no time", describe())
		}
	}
	if err := k.DropZooKeeperConnections(ctx); err != nil {
		t.Error(err)
	}
	if err := k.ZooKeeperFault(ctx, control.ZooKeeperFault{Mode: "frozen", Member: new(3)}); code(err) != http.StatusNotFound {
		t.Errorf("a member that is not there: %v", err)
	}
	if err := k.StallZooKeeperLeader(ctx, control.StallRequest{Elect: new(control.Duration(-1))}); err == nil {
		t.Error("a negative time was taken")
	}
	lone := up(t, minihbase.Options{ControlPort: -1})
	if err := lone.StallZooKeeperLeader(0, 0); err == nil {
		t.Error("a lone server elected another one")
	}
	if _, err := minihbase.Start(ctx, minihbase.Options{ZooKeepers: 16}); err == nil || !strings.Contains(err.Error(), "16 ZooKeepers") {
		t.Errorf("an ensemble of sixteen: %v", err)
	}
}
