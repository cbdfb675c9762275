package hbase_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// TestRouteSnapshotFile: a process that starts anew finds every row without
// asking hbase:meta, or the registry.
func TestRouteSnapshotFile(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ctx := t.Context()
	if err := c.CreateTable(ctx, "t", []string{"f"}, []byte("r3"), []byte("r6")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "routes")
	open := func(opts ...hbase.Option) (*hbase.Client, *hbase.Table) {
		t.Helper()
		client, err := hbase.Open(ctx, c.Address(), append(opts, hbase.WithRouteSnapshot(path))...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		tab, err := client.Table("t")
		if err != nil {
			t.Fatal(err)
		}
		return client, tab
	}
	use := func(tab *hbase.Table) {
		t.Helper()
		for i := range 9 {
			if err := tab.Put(ctx, hbase.NewPut(fmt.Appendf(nil, "r%d", i)).Set("f", "q", []byte("v"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, tab := open()
	use(tab)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(names) != 1 {
		t.Fatalf("files %v, %v; want the snapshot alone", names, err)
	}
	second, tab := open()
	if n := second.RouteStats().Routes; n != 3 {
		t.Fatalf("%d routes loaded, want 3", n)
	}
	use(tab)
	if s := second.RouteStats(); s.Scans+s.Gets+s.Registry != 0 {
		t.Errorf("%d scans, %d gets of hbase:meta, %d questions to the registry; want none", s.Scans, s.Gets, s.Registry)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	// Regions that moved meanwhile cost a call each, not an error.
	regions, err := c.Regions("t")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range regions {
		if err := c.MoveRegion(ctx, r.Encoded, (r.Index+1)%len(c.Servers())); err != nil {
			t.Fatal(err)
		}
	}
	third, tab := open()
	use(tab)
	if s := third.RouteStats(); s.Hints+s.Rejected != 3 {
		t.Errorf("%d hints, %d rejected; want one for each region that moved", s.Hints, s.Rejected)
	}
	third.Close()

	// It is written now and then.
	was, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	fourth, tab := open(hbase.WithRouteSnapshotEvery(time.Second))
	use(tab)
	await(t, "the file to be written", func() bool {
		now, err := os.Stat(path)
		return err == nil && now.ModTime().After(was.ModTime())
	})
	fourth.Close()

	// Damaged: a cold start, and a good file in the end.
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[len(bad)/2] ^= 1
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	fifth, tab := open()
	if n := fifth.RouteStats().Routes; n != 0 {
		t.Errorf("%d routes of a damaged file", n)
	}
	use(tab)
	if _, err := fifth.LoadRoutes(ctx, bytes.NewReader(bad)); !errors.Is(err, hbase.ErrSnapshotDamaged) {
		t.Errorf("damaged: %v", err)
	}
	fifth.Close()
	if sixth, _ := open(); sixth.RouteStats().Routes != 3 {
		t.Errorf("%d routes, want 3", sixth.RouteStats().Routes)
	}
}

func TestSaveAndLoadRoutes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var files []*bytes.Buffer
	var clients []*hbase.Client
	for range 2 {
		c := startCluster(t)
		if err := c.CreateTable(ctx, "t", []string{"f"}, []byte("m")); err != nil {
			t.Fatal(err)
		}
		client, err := hbase.Open(ctx, c.Address())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		tab, err := client.Table("t")
		if err != nil {
			t.Fatal(err)
		}
		if err := tab.Warm(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		s, err := client.SaveRoutes(ctx, &file)
		if err != nil || s.Routes != 2 || s.Cluster.ID == "" {
			t.Fatalf("saved %+v, %v", s, err)
		}
		tab.ForgetRoutes()
		files, clients = append(files, &file), append(clients, client)
	}
	if _, err := clients[0].LoadRoutes(ctx, files[1]); !errors.Is(err, hbase.ErrSnapshotForeign) {
		t.Errorf("another cluster's: %v", err)
	}
	if s, err := clients[0].LoadRoutes(ctx, files[0]); err != nil || s.Routes != 2 {
		t.Errorf("loaded %+v, %v", s, err)
	}
}
