package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

// TestFiles loads an HFile, prints it, exports the table and imports it again.
func TestFiles(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	addr := c.Address()
	dir := t.TempDir()
	path := filepath.Join(dir, "f", "one")
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := hfile.NewWriter(f, hfile.WriterOptions{Created: 1700000000000})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"a", "b\x00", "c"} {
		cell := cells.Cell{Row: []byte(row), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 5, Type: cells.Put, Value: []byte("v-" + row), Tags: cells.AppendTag(nil, 77, []byte("tag"))}
		if err := w.Append(&cell); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	works := func(wants string, args ...string) string {
		t.Helper()
		out, code := run(t, args...)
		if code != exitOK || !strings.Contains(out, wants) {
			t.Fatalf("holdfast %s: exit code %d, wants %q in\n%s", strings.Join(args, " "), code, wants, out)
		}
		return out
	}
	fails := func(args ...string) {
		t.Helper()
		if out, code := run(t, args...); code != exitNo {
			t.Errorf("holdfast %s: exit code %d\n%s", strings.Join(args, " "), code, out)
		}
	}

	works(`K: b\x00/f:q/5/Put/vlen=4/seqid=0 V: v-b\x00 T[77]: tag`, "hfile", "-p", path)
	works("entryCount                 3", "hfile", path)
	works("1700000000000 (2023-11-14T22:13:20Z)", "hfile", path)
	works("3 cells in 3 rows, 3 with tags", "hfile", "--stats", path)
	if out := works("K: c/", "hfile", "--row", "c", path); strings.Count(out, "K: ") != 1 {
		t.Errorf("one row:\n%s", out)
	}
	var printed struct {
		Version string `json:"version"`
		Cells   []struct{ Row, TagsHex string }
		Stats   struct{ Rows int }
	}
	if err := json.Unmarshal([]byte(works("", "hfile", "-p", "-m", "-s", path, "-o", "json")), &printed); err != nil || printed.Version != "3.3" || len(printed.Cells) != 3 || printed.Cells[1].Row != `b\x00` || printed.Stats.Rows != 3 {
		t.Errorf("%+v, %v", printed, err)
	}
	fails("hfile", filepath.Join(dir, "none"))
	fails("hfile", "files_test.go")

	works("", "shell", addr, "-e", "create 't', 'f'", "-n")
	fails("bulkload", addr, "none", dir)
	works("1 files (0 of them cut), 3 cells into 1 regions of t", "bulkload", addr, "t", dir)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the loaded file: %v", err)
	}

	out := filepath.Join(dir, "t.export")
	works("exported 3 rows, 3 cells (crc32c ", "export", addr, "t", out)
	works("whole: 3 rows", "import", "--verify", out)
	works("imported 3 rows, 3 cells", "import", addr, out, "--check")
	works("imported 3 rows, 3 cells", "import", addr, out, "copy", "--create", "--check")
	works(`"table": "copy"`, "import", addr, out, "copy", "-o", "json", "-q")
	works("exported 1 rows, 1 cells", "export", addr, "t", filepath.Join(dir, "part"), "--start", `b\x00`, "--stop", "c", "--from", "5", "--to", "1970-01-01T00:00:01Z", "--all-versions")
	fails("export", addr, "t", out)
	fails("export", addr, "none", filepath.Join(dir, "x"))
	fails("import", addr, "files_test.go", "t")
	for _, args := range [][]string{{"export", "t"}, {"export", addr, "t", "x", "--from", "soon"}, {"export", addr, "t", "x", "--from", "9", "--to", "3"}, {"import"}, {"hfile"}, {"bulkload", "t"}} {
		if out, code := run(t, args...); code != exitUsage {
			t.Errorf("holdfast %s: exit code %d\n%s", strings.Join(args, " "), code, out)
		}
	}
}
