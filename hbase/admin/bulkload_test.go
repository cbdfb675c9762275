package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// writeHFile writes dir/family/name with one cell for each row numbered from
// to below to.
func writeHFile(t *testing.T, dir, family, name string, from, to int) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, family), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, family, name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := hfile.NewWriter(f, hfile.WriterOptions{Compression: hfile.CompressionSnappy, Encoding: hfile.EncodingDiff, BlockBytes: 512})
	if err != nil {
		t.Fatal(err)
	}
	for i := from; i < to; i++ {
		row := fmt.Appendf(nil, "%04d", i)
		if err := w.Append(&cells.Cell{Row: row, Family: []byte(family), Qualifier: []byte("q"), Timestamp: 7, Type: cells.Put, Value: append([]byte("v"), row...)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// count scans a table and checks its values.
func count(t *testing.T, tab *hbase.Table) int {
	t.Helper()
	n := 0
	sc := tab.Scan(t.Context(), hbase.NewScan())
	defer sc.Close()
	for r, err := range sc.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Cells {
			if string(c.Value) != "v"+string(c.Row) {
				t.Fatalf("%v is %q", c, c.Value)
			}
			n++
		}
	}
	return n
}

func TestBulkLoad(t *testing.T) {
	ctx := t.Context()
	c, err := minihbase.Start(ctx, minihbase.Options{InMemory: true, ControlPort: -1, Servers: 2})
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
	if err := adm.CreateTable(ctx, admin.NewTable("t", admin.NewFamily("f"), admin.NewFamily("g")), []byte("0100"), []byte("0200"), []byte("0300")); err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	whole := writeHFile(t, dir, "f", "inside", 0, 50)
	spans := writeHFile(t, dir, "f", "spans", 60, 350)
	writeHFile(t, dir, "g", "other", 120, 150)
	writeHFile(t, dir, "g", "empty", 0, 0)
	writeHFile(t, dir, "f", "_left", 5000, 5001)
	writeHFile(t, dir, "_logs", "x", 5000, 5001)
	told := 0
	res, err := adm.BulkLoadWith(ctx, "t", dir, admin.BulkLoadOptions{Progress: func(admin.BulkLoadResult) { told++ }})
	if err != nil {
		t.Fatal(err)
	}
	if want := (admin.BulkLoadResult{Files: 3, Split: 1, Regions: 4, Cells: 370}); res != want || told != 4 {
		t.Errorf("%+v told %d times, want %+v", res, told, want)
	}
	if n := count(t, tab); n != 370 {
		t.Errorf("%d cells", n)
	}
	if _, err := os.Stat(whole); !os.IsNotExist(err) {
		t.Errorf("a loaded file is there: %v", err)
	}
	if _, err := os.Stat(spans); err != nil {
		t.Errorf("a file that was cut: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	bad := t.TempDir()
	writeHFile(t, bad, "f", "good", 1000, 1001)
	damaged := writeHFile(t, bad, "f", "bad", 0, 400)
	b, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 1
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = adm.BulkLoad(ctx, "t", bad)
	var corrupt *hfile.CorruptError
	if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), damaged) {
		t.Errorf("damaged: %v", err)
	}
	if n := count(t, tab); n != 370 {
		t.Errorf("%d cells after a load that failed", n)
	}

	for what, load := range map[string]struct{ table, dir, says string }{
		"no table":  {"none", dir, "none"},
		"no files":  {"t", t.TempDir(), "no HFiles"},
		"no dir":    {"t", filepath.Join(dir, "nope"), "nope"},
		"no family": {"t", func() string { d := t.TempDir(); writeHFile(t, d, "h", "x", 1, 2); return d }(), `"h"`},
	} {
		if _, err := adm.BulkLoad(ctx, load.table, load.dir); err == nil || !strings.Contains(err.Error(), load.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := adm.BulkLoad(ended, "t", dir); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestBulkLoadWhileSplitting: regions split between grouping and loading.
func TestBulkLoadWhileSplitting(t *testing.T) {
	ctx := t.Context()
	c, err := minihbase.Start(ctx, minihbase.Options{InMemory: true, ControlPort: -1})
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
	if err := adm.CreateTable(ctx, admin.NewTable("t", admin.NewFamily("f")), []byte("0100")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeHFile(t, dir, "f", "a", 0, 90)
	writeHFile(t, dir, "f", "b", 110, 190)
	split := false
	res, err := adm.BulkLoadWith(ctx, "t", dir, admin.BulkLoadOptions{Parallel: 1, Progress: func(admin.BulkLoadResult) {
		if !split {
			split = true
			for _, at := range []string{"0040", "0150"} {
				if err := adm.SplitTable(ctx, "t", []byte(at)); err != nil {
					t.Error(err)
				}
			}
		}
	}})
	if err != nil || res.Cells != 170 || res.Split != 1 || res.Regions != 3 {
		t.Errorf("%+v, %v", res, err)
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	if n := count(t, tab); n != 170 {
		t.Errorf("%d cells", n)
	}
}
