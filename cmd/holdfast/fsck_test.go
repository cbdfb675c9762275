package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// populate makes a directory with everything in it that a cluster can hold.
func populate(t *testing.T, dir string) {
	t.Helper()
	ctx := t.Context()
	c, err := minihbase.Start(ctx, minihbase.Options{Dir: dir, Quotas: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client, err := hbase.Open(ctx, c.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	adm := client.Admin()
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	do("namespace", adm.CreateNamespace(ctx, admin.Namespace{Name: "ns"}))
	for _, name := range []string{"t", "ns:u", "dropped", "altered"} {
		do(name, adm.CreateTable(ctx, admin.NewTable(name, admin.NewFamily("f"), admin.NewFamily("g")), []byte("m"), []byte("t")))
		tab, err := client.Table(name)
		do(name, err)
		for i := range 50 {
			row := fmt.Sprintf("%c%d", 'a'+i%26, i)
			do("put", tab.Put(ctx, hbase.NewPut(row).Set("f", "q", []byte("v")).Set("g", "q", []byte("v"))))
			if i%10 == 0 {
				do("delete", tab.Delete(ctx, hbase.NewDelete(row)))
			}
		}
	}
	do("split", adm.SplitTable(ctx, "t", []byte("f")))
	regions, err := adm.Regions(ctx, "ns:u")
	do("regions", err)
	do("merge", adm.MergeRegions(ctx, []string{regions[0].Region.EncodedName(), regions[1].Region.EncodedName()}, false))
	do("snapshot", adm.Snapshot(ctx, "s", "t", admin.SnapshotOptions{}))
	do("clone", adm.CloneSnapshot(ctx, "s", "clone", admin.CloneOptions{}))
	do("disable", adm.DisableTable(ctx, "dropped"))
	do("drop", adm.DeleteTable(ctx, "dropped"))
	do("drop of a family", adm.DeleteFamily(ctx, "altered", "g"))
	do("disable", adm.DisableTable(ctx, "clone"))
	do("generate", c.GenerateTable(ctx, minihbase.GeneratedTable{Name: "big", Regions: 100}))
	big, err := client.Table("big")
	do("big", err)
	do("write to a generated table", big.Put(ctx, hbase.NewPut("00000007").Set("f", "x", []byte("v"))))
	do("split of a generated region", adm.SplitTable(ctx, "big", []byte("00000009-")))
	do("group", c.AddGroup(ctx, "apart"))
	do("to group", c.MoveToGroup(ctx, "apart", []string{c.RegionServers()[2]}, []string{"t"}))
	do("znode", c.ZooKeeperServer().Put("/mine", []byte("x"), 0))
}

func TestFsck(t *testing.T) {
	dir := t.TempDir()
	populate(t, dir)
	out, code := run(t, "fsck", dir)
	if code != exitOK || !strings.Contains(out, "nothing is wrong") {
		t.Fatalf("exit code %d: %s", code, out)
	}
	out, code = run(t, "fsck", dir, "-o", "json")
	var r store.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	if r.Tables < 7 || r.Regions < 100 || r.Snapshots != 1 || r.Cells < 300 || len(r.Findings) != 0 || len(r.Notes) != 0 || !r.Complete {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"fsck"}, {"fsck", dir, dir}, {"fsck", dir, "-o", "xml"}} {
		if _, code := run(t, args...); code != exitUsage {
			t.Errorf("%q: exit code %d", args, code)
		}
	}
	if out, code := run(t, "fsck", t.TempDir()); code != exitNo {
		t.Errorf("an empty directory: exit code %d, %s", code, out)
	}
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, code := run(t, "fsck", dir); code != exitNo {
		t.Errorf("in use: exit code %d", code)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFsckCatalog damages each kind of catalog entry.
func TestFsckCatalog(t *testing.T) {
	dir := t.TempDir()
	populate(t, dir)
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	entries := map[string][]byte{}
	var region, snapshot string // keys of a region, and of the snapshot
	var failed error
	for k, v := range s.Iterate(nil, &failed) {
		entries[string(k)] = v
		switch {
		case strings.HasPrefix(string(k), "c/r") && strings.Contains(string(v), "altered") && region == "":
			region = string(k)
		case strings.HasPrefix(string(k), "c/p"):
			snapshot = string(k)
		}
	}
	if failed != nil || region == "" || snapshot == "" {
		t.Fatal(failed, region, snapshot)
	}
	const broken = "\xff\xff\xff"
	for _, tt := range []struct {
		name, key, value, kind, what string
	}{
		{"a table", "c/tt", broken, store.FindCatalog, `"tt"`},
		{"a table under another name", "c/tother", string(entries["c/tt"]), store.FindCatalog, "the entry is that of tt"},
		{"a region", region, broken, store.FindCatalog, "corrupt entry"},
		{"a namespace", "c/nns", broken, store.FindCatalog, `"nns"`},
		{"no namespace", "c/nns", "", store.FindCatalog, "its namespace does not exist"},
		{"a group", "c/gapart", broken, store.FindCatalog, `"gapart"`},
		{"a snapshot", snapshot, broken, store.FindCatalog, `"ps"`},
		{"no table", "c/tt", "", store.FindRegion, "belongs to no table"},
		{"the data of no table", "c/tt", "", store.FindTable, "which no table or snapshot has"},
		{"a region is gone", region, "", store.FindRegion, "hole"},
		{"the counter of tables", "c/scounter.table", "1", store.FindCounter, "the last one given is 1"},
		{"the counter of regions", "c/scounter.region", "1", store.FindCounter, "the last one given is 1"},
		{"a counter", "c/scounter.region", "x", store.FindCounter, "not a number"},
		{"a slot", "c/aother\x00\x00\x00\x00\x01", "", store.FindCatalog, "no region of a generated table"},
		{"a mark", "c/sdrop.x", "1", store.FindCatalog, "not a table id"},
		{"a znode", "z/mine", "{", store.FindZNode, "/mine"},
		{"a znode elsewhere", "z/yours", string(entries["z/mine"]), store.FindZNode, "the entry is that of /mine"},
		{"a kind", "c/?", "x", store.FindCatalog, "no known kind"},
		{"a key", "q", "x", store.FindCatalog, "no known kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := store.KV{Key: []byte(tt.key), Value: []byte(tt.value), Delete: tt.value == "" && !strings.HasPrefix(tt.key, "c/a")}
			before, had := entries[tt.key]
			if err := s.Apply([]store.KV{change}); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			out, code := run(t, "fsck", dir)
			named := false
			for line := range strings.Lines(out) {
				named = named || strings.HasPrefix(line, tt.kind) && strings.Contains(line, tt.what)
			}
			if code != exitNo || !named {
				t.Errorf("exit code %d, want a finding %s with %q:\n%s", code, tt.kind, tt.what, out)
			}
			if s, err = store.Open(store.Options{Dir: dir}); err != nil {
				t.Fatal(err)
			}
			if err := s.Apply([]store.KV{{Key: []byte(tt.key), Value: before, Delete: !had}}); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, "fsck", dir); code != exitOK {
		t.Errorf("all mended: exit code %d:\n%s", code, out)
	}
}

// TestFsckFamilies: what a crash in the middle of dropping a family has left is
// no damage, and the next start removes it, so that a family of the same name
// begins empty.
func TestFsckFamilies(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	with := func(f func(*hbase.Client) error) {
		t.Helper()
		c, err := minihbase.Start(ctx, minihbase.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		client, err := hbase.Open(ctx, c.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if err := f(client); err != nil {
			t.Fatal(err)
		}
	}
	with(func(c *hbase.Client) error {
		return c.Admin().CreateTable(ctx, admin.NewTable("t", admin.NewFamily("f")))
	})
	// As a crash leaves it: the first table of a cluster has the id 1.
	s, err := store.Open(store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tab := s.Table(1, cells.NewSchema(cells.DefaultFamily([]byte("f")), cells.DefaultFamily([]byte("g"))))
	cell := func(family string) cells.Cell {
		return cells.Cell{Family: []byte(family), Qualifier: []byte("q"), Timestamp: 1, Type: cells.Put, Value: []byte("v")}
	}
	_, err = tab.MutateRow(ctx, &store.RowMutation{Row: []byte("r"), Ops: []store.Op{{Kind: store.Put, Cells: []cells.Cell{cell("f"), cell("g")}}}})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, "fsck", dir); code != exitNo || !strings.Contains(out, "cells of family g") {
		t.Errorf("without a mark: exit code %d:\n%s", code, out)
	}
	if s, err = store.Open(store.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Apply([]store.KV{{Key: []byte("c/sdropfamilies.1"), Value: []byte("g")}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if out, code := run(t, "fsck", dir); code != exitOK || !strings.Contains(out, "1 cells of table t are to be dropped") {
		t.Errorf("marked: exit code %d:\n%s", code, out)
	}
	with(func(c *hbase.Client) error {
		if err := c.Admin().AddFamily(ctx, "t", admin.NewFamily("g")); err != nil {
			return err
		}
		tab, err := c.Table("t")
		if err != nil {
			return err
		}
		r, err := tab.Get(ctx, hbase.NewGet("r"))
		if err == nil && (len(r.Cells) != 1 || string(r.Value("f", "q")) != "v") {
			t.Errorf("row %v", r)
		}
		return err
	})
	if out, code := run(t, "fsck", dir); code != exitOK || strings.Contains(out, "note") {
		t.Errorf("at the end: exit code %d:\n%s", code, out)
	}
}
