package admin

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// rows reads the row keys of a table.
func (c *cluster) rows(t *testing.T, table string) []string {
	t.Helper()
	tab, err := c.client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for r, err := range tab.Scan(c.context(t), hbase.NewScan()).Rows() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(r.Row))
	}
	return out
}

// snapshotNames gives the names of all snapshots of a table.
func (c *cluster) snapshotNames(t *testing.T, table string) []string {
	t.Helper()
	list, err := c.adm.ListTableSnapshots(c.context(t), table, "")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

func TestSnapshots(t *testing.T) {
	each(t, func(t *testing.T, c *cluster) {
		ctx := c.context(t)
		table := c.table(t, "g", "n")
		c.put(t, table, "1", "a", "h", "z")
		s1, s2, s3 := table+"-s1", table+"-s2", table+"-s3"

		polls := 0
		err := c.adm.OnProgress(func(p admin.Progress) {
			if polls++; p.Op != "snapshot" || p.Polls != polls {
				t.Errorf("progress %+v", p)
			}
		}).Snapshot(ctx, s1, table, admin.SnapshotOptions{})
		if err != nil || polls == 0 {
			t.Fatalf("%v, %d polls", err, polls)
		}
		t.Cleanup(func() { _, _ = c.adm.DeleteSnapshots(context.WithoutCancel(ctx), table, "") })
		if done, err := c.adm.IsSnapshotFinished(ctx, s1, table); !done || err != nil {
			t.Errorf("finished: %v, %v", done, err)
		}
		if _, err := c.adm.IsSnapshotFinished(ctx, "unheard-of", table); exception(err) != "UnknownSnapshotException" {
			t.Errorf("unknown snapshot: %v", err)
		}
		if err := c.adm.Snapshot(ctx, s2, table, admin.SnapshotOptions{Type: admin.SnapshotSkipFlush, TTL: 24 * time.Hour, MaxFileSize: 1 << 30}); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.Snapshot(ctx, s1, table, admin.SnapshotOptions{}); exception(err) != "SnapshotExistsException" {
			t.Errorf("twice: %v", err)
		}
		if err := c.adm.Snapshot(ctx, s3, "nope", admin.SnapshotOptions{}); !errors.Is(err, hbase.ErrTableNotFound) {
			t.Errorf("no table: %v", err)
		}
		for _, bad := range []string{"", "-x", ".x", "a:b", "a b"} {
			if err := c.adm.Snapshot(ctx, bad, table, admin.SnapshotOptions{}); !errors.Is(err, hbase.ErrInvalid) {
				t.Errorf("name %q: %v", bad, err)
			}
		}

		list, err := c.adm.ListTableSnapshots(ctx, table, ".*-s[12]")
		if err != nil || len(list) != 2 {
			t.Fatalf("%v, %v", list, err)
		}
		if s := list[0]; s.Name != s1 || s.Table.String() != table || s.Type != admin.SnapshotFlush || s.TTL != 0 || time.Since(s.Created) > time.Minute {
			t.Errorf("%+v", s)
		}
		if s := list[1]; s.Name != s2 || s.Type != admin.SnapshotSkipFlush || s.TTL != 24*time.Hour || s.MaxFileSize != 1<<30 {
			t.Errorf("%+v", s)
		}
		if list, err := c.adm.ListSnapshots(ctx, "none.*"); len(list) != 0 || err != nil {
			t.Errorf("%v, %v", list, err)
		}
		if _, err := c.adm.ListSnapshots(ctx, "("); !errors.Is(err, hbase.ErrInvalid) {
			t.Errorf("bad pattern: %v", err)
		}

		// A clone has the rows, the regions and a life of its own.
		c.put(t, table, "2", "b")
		clone := c.fresh("clone")
		t.Cleanup(func() { c.drop(t, clone) })
		if err := c.adm.CloneSnapshot(ctx, s1, clone, admin.CloneOptions{}); err != nil {
			t.Fatal(err)
		}
		if rows := c.rows(t, clone); !slices.Equal(rows, []string{"a", "h", "z"}) {
			t.Errorf("rows of the clone %v", rows)
		}
		if regions, err := c.adm.Regions(ctx, clone); len(regions) != 3 || err != nil {
			t.Errorf("%d regions, %v", len(regions), err)
		}
		if err := c.adm.CloneSnapshot(ctx, s1, clone, admin.CloneOptions{}); !errors.Is(err, hbase.ErrTableExists) {
			t.Errorf("clone twice: %v", err)
		}
		if err := c.adm.CloneSnapshot(ctx, "unheard-of", c.fresh("x"), admin.CloneOptions{}); exception(err) != "SnapshotDoesNotExistException" {
			t.Errorf("clone of nothing: %v", err)
		}
		other := c.fresh("sft")
		t.Cleanup(func() { c.drop(t, other) })
		switch err := c.adm.CloneSnapshot(ctx, s1, other, admin.CloneOptions{RestoreACL: false, StoreFileTracker: "FILE"}); {
		case c.v26() && err != nil, !c.v26() && !errors.Is(err, hbase.ErrUnsupported):
			t.Errorf("clone with another tracker: %v", err)
		}

		// A restore needs a disabled table, and leaves no failsafe behind.
		if err := c.adm.RestoreSnapshot(ctx, s1, admin.RestoreOptions{}); !errors.Is(err, hbase.ErrTableNotDisabled) {
			t.Errorf("restore of an enabled table: %v", err)
		}
		if err := c.adm.RestoreSnapshot(ctx, "unheard-of", admin.RestoreOptions{}); !errors.Is(err, admin.ErrNoSnapshot) {
			t.Errorf("restore of nothing: %v", err)
		}
		if err := c.adm.DisableTable(ctx, table); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.RestoreSnapshot(ctx, s1, admin.RestoreOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.EnableTable(ctx, table); err != nil {
			t.Fatal(err)
		}
		if rows := c.rows(t, table); !slices.Equal(rows, []string{"a", "h", "z"}) {
			t.Errorf("rows after the restore %v", rows)
		}
		if names := c.snapshotNames(t, table); !slices.Equal(names, []string{s1, s2}) {
			t.Errorf("snapshots after the restore %v", names)
		}

		// A snapshot outlives its table, and its restore makes it again.
		gone := c.table(t)
		c.put(t, gone, "1", "r")
		if err := c.adm.DisableTable(ctx, gone); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.Snapshot(ctx, s3, gone, admin.SnapshotOptions{Type: admin.SnapshotDisabled}); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.DeleteTable(ctx, gone); err != nil {
			t.Fatal(err)
		}
		if err := c.adm.RestoreSnapshot(ctx, s3, admin.RestoreOptions{NoFailsafe: true}); err != nil {
			t.Fatal(err)
		}
		if rows := c.rows(t, gone); !slices.Equal(rows, []string{"r"}) {
			t.Errorf("rows %v", rows)
		}

		if err := c.adm.DeleteSnapshot(ctx, s3); err != nil {
			t.Error(err)
		}
		if err := c.adm.DeleteSnapshot(ctx, s3); exception(err) != "SnapshotDoesNotExistException" {
			t.Errorf("delete twice: %v", err)
		}
		deleted, err := c.adm.DeleteSnapshots(ctx, table, ".*-s1")
		if err != nil || len(deleted) != 1 || deleted[0].Name != s1 {
			t.Errorf("deleted %v, %v", deleted, err)
		}
		if names := c.snapshotNames(t, table); !slices.Equal(names, []string{s2}) {
			t.Errorf("left %v", names)
		}

		was, err := c.adm.SetSnapshotCleanup(ctx, false)
		if err != nil || !was {
			t.Errorf("cleanup was %v, %v", was, err)
		}
		if on, err := c.adm.SnapshotCleanupEnabled(ctx); on || err != nil {
			t.Errorf("cleanup %v, %v", on, err)
		}
		if was, err := c.adm.SetSnapshotCleanup(ctx, true); was || err != nil {
			t.Errorf("cleanup was %v, %v", was, err)
		}
	})
}
