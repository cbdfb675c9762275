package minihbase_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestSlowLog: a call that a rule delays is slow, and that it was is forgotten on
// request; without Options.SlowLog nothing is kept.
func TestSlowLog(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		c := up(t, minihbase.Options{ControlPort: -1, Servers: 1, SlowLog: on, SlowLogTime: 10 * time.Millisecond})
		ctx := t.Context()
		if err := c.CreateTable(ctx, "t", []string{"f"}); err != nil {
			t.Fatal(err)
		}
		client := open(t, c.Address())
		table, err := client.Table("t")
		if err != nil {
			t.Fatal(err)
		}
		addRule(t, c, minihbase.Rule{Match: minihbase.Match{Method: "Get", Table: "t"}, Action: minihbase.Delay, Delay: 20 * time.Millisecond})
		if _, err := table.Get(ctx, hbase.NewGet("a")); err != nil {
			t.Fatal(err)
		}
		query := admin.SlowLogQuery{Table: "t", Limit: 100}
		calls, err := client.Admin().SlowLog(ctx, query)
		if err != nil {
			t.Fatal(err)
		}
		var got *admin.SlowCall
		for i := range calls {
			if calls[i].Method == "Get" {
				got = &calls[i]
			}
		}
		if on != (got != nil) {
			t.Errorf("kept %v: %+v", on, calls)
		}
		if got != nil && (got.Processing < 20*time.Millisecond || got.Large || !strings.HasPrefix(got.Region, "t,") || !strings.HasSuffix(got.Param, ", row= a")) {
			t.Errorf("%+v", got)
		}
		cleared, err := client.Admin().ClearSlowLog(ctx)
		for _, ok := range cleared {
			if ok != on {
				t.Errorf("cleared %v, kept %v", cleared, on)
			}
		}
		if calls, e := client.Admin().SlowLog(ctx, query); err != nil || e != nil || len(cleared) != 1 || len(calls) != 0 {
			t.Errorf("%v, %v, %v after it was cleared: %v", err, e, cleared, calls)
		}
	}
}

// TestBalancerLog: what was moved, and that nothing was to be moved.
func TestBalancerLog(t *testing.T) {
	t.Parallel()
	c := up(t, minihbase.Options{ControlPort: -1, Servers: 2, BalancerLog: true})
	ctx := t.Context()
	if err := c.CreateTable(ctx, "t", []string{"f"}, []byte("b"), []byte("c"), []byte("d"), []byte("e"), []byte("f"), []byte("g")); err != nil {
		t.Fatal(err)
	}
	regions, err := c.Regions("t")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if err := c.MoveRegion(ctx, r.Encoded, 1); err != nil {
			t.Fatal(err)
		}
	}
	adm := open(t, c.Address()).Admin()
	for range 2 {
		if _, err := c.Balance(ctx); err != nil {
			t.Fatal(err)
		}
	}
	decisions, err := adm.BalancerDecisions(ctx, 10)
	if err != nil || len(decisions) != 1 {
		t.Fatalf("decisions %+v, %v", decisions, err)
	}
	d := decisions[0]
	if d.InitialTotal <= d.FinalTotal || d.Steps == 0 || len(d.Plans) != int(d.Steps) || !strings.HasPrefix(d.InitialCosts, "RegionCountSkewCostFunction : (multiplier=500.0, imbalance=") || !strings.HasPrefix(d.Plans[0], "table: t , region: ") {
		t.Errorf("decision %+v", d)
	}
	rejections, err := adm.BalancerRejections(ctx, 10)
	if err != nil || len(rejections) != 1 || !strings.Contains(rejections[0].Reason, "<= minCostNeedBalance(0.025)") || len(rejections[0].Costs) != 1 {
		t.Errorf("rejections %+v, %v", rejections, err)
	}
}
