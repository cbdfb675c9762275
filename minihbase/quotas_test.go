package minihbase_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/wire"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestReckonSpace: when it returns, what was written counts; a table that has
// shrunk may be written again; and a Reset leaves nothing of it. What HBase says
// and does under each policy is held in interop/admin.
func TestReckonSpace(t *testing.T) {
	t.Parallel()
	// No round but those that are asked for, and those after a change of a quota.
	c, k := controlled(t, minihbase.Options{Quotas: true, SpaceQuotaPeriod: time.Hour})
	ctx := t.Context()
	client := open(t, c.Address())
	adm := client.Admin()
	if err := adm.CreateTable(ctx, admin.NewTable("s", admin.NewFamily("f"))); err != nil {
		t.Fatal(err)
	}
	s, err := client.Table("s")
	if err != nil {
		t.Fatal(err)
	}
	write := func(row string) error { return s.Put(ctx, hbase.NewPut(row).Set("f", "q", make([]byte, 600))) }
	refused := func(what string, want bool, err error) {
		t.Helper()
		var x *hbase.RemoteError
		if got := errors.As(err, &x) && x.Class == wire.ClassSpaceLimiting; got != want || err != nil && !got {
			t.Errorf("%s: %v", what, err)
		}
	}
	target := admin.QuotaTarget{Table: "s"}
	if err := adm.SetSpaceQuota(ctx, target, admin.SpaceQuota{Limit: 1000, Policy: admin.NoWrites}); err != nil {
		t.Fatal(err)
	}
	reckon := func() {
		t.Helper()
		if err := k.ReckonSpace(ctx); err != nil {
			t.Fatal(err)
		}
	}
	reckon()
	refused("into an empty table", false, write("a"))
	refused("before it was counted", false, write("b"))
	reckon()
	refused("into a full table", true, write("c"))
	if tables, _, err := adm.SpaceQuotaStates(ctx); err != nil || len(tables) != 1 {
		t.Errorf("states %v, %v", tables, err)
	}
	// Its data is gone, so there is room.
	if err := errors.Join(adm.DisableTable(ctx, "s"), adm.TruncateTable(ctx, "s", false)); err != nil {
		t.Fatal(err)
	}
	reckon()
	refused("into the table emptied", false, write("a"))
	refused("into the table emptied", false, write("b"))
	reckon()
	refused("full again", true, write("c"))
	if err := c.Reset(ctx); err != nil {
		t.Fatal(err)
	}
	if err := adm.CreateTable(ctx, admin.NewTable("s", admin.NewFamily("f"))); err != nil {
		t.Fatal(err)
	}
	reckon()
	refused("after a reset", false, write("a"))
	if sizes, err := adm.SpaceQuotaTableSizes(ctx); err != nil || len(sizes) == 0 {
		t.Errorf("sizes %v, %v", sizes, err)
	}
}
