package regionserver_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver/rpctest"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// hfileOf writes a file with one cell f:q a row.
func hfileOf(t *testing.T, dir, family string, rows ...string) string {
	t.Helper()
	var out bytes.Buffer
	w, err := hfile.NewWriter(&out, hfile.WriterOptions{Encoding: hfile.EncodingFastDiff})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := w.Append(&cells.Cell{Row: []byte(row), Family: []byte(family), Qualifier: []byte("q"), Timestamp: 5, Type: cells.Put, Value: []byte("of " + row)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(dir, "hfile")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func paths(family string, list ...string) []*pb.BulkLoadHFileRequest_FamilyPath {
	var out []*pb.BulkLoadHFileRequest_FamilyPath
	for _, p := range list {
		out = append(out, &pb.BulkLoadHFileRequest_FamilyPath{Family: []byte(family), Path: &p})
	}
	return out
}

func TestBulkLoad(t *testing.T) {
	h := newHarness(t, nil)
	tab := h.create("t", oneFamily(), nil, "m")
	c := h.dial(rpctest.Options{})
	dir := t.TempDir()
	var prepared pb.PrepareBulkLoadResponse
	if _, err := c.Call("PrepareBulkLoad", &pb.PrepareBulkLoadRequest{TableName: tab.name.ToProto(), Region: specifier(tab.regions[0])}, &prepared); err != nil || prepared.GetBulkToken() == "" {
		t.Fatalf("%v, %v", &prepared, err)
	}
	load := func(keep bool, list []*pb.BulkLoadHFileRequest_FamilyPath) (bool, error) {
		t.Helper()
		var out pb.BulkLoadHFileResponse
		_, err := c.Call("BulkLoadHFile", &pb.BulkLoadHFileRequest{Region: specifier(tab.regions[0]), FamilyPath: list, AssignSeqNum: new(true), BulkToken: prepared.BulkToken, CopyFile: &keep}, &out)
		return out.GetLoaded(), err
	}
	value := func(row string) string {
		t.Helper()
		got, err := c.Call("Get", getOf(tab.regions[0], row), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			return ""
		}
		return string(got[0].Value)
	}
	exists := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}

	moved, kept := hfileOf(t, dir, "f", "a", "b"), hfileOf(t, dir, "f", "b", "c")
	if ok, err := load(false, paths("f", moved)); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if ok, err := load(true, paths("f", "file:"+kept)); err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if value("a") != "of a" || value("c") != "of c" {
		t.Errorf("a %q, c %q", value("a"), value("c"))
	}
	if exists(moved) || !exists(kept) {
		t.Errorf("moved exists: %v, kept exists: %v", exists(moved), exists(kept))
	}
	// A file that reaches into the next region, and another beside it.
	spans := hfileOf(t, dir, "f", "d", "n")
	beside := hfileOf(t, dir, "f", "e")
	if ok, err := load(false, append(paths("f", spans), paths("f", beside)...)); err != nil || ok {
		t.Errorf("a file over two regions: %v, %v", ok, err)
	}
	if value("e") != "" || !exists(spans) || !exists(beside) {
		t.Error("part of a refused load was done")
	}

	rubbish := filepath.Join(dir, "rubbish")
	if err := os.WriteFile(rubbish, bytes.Repeat([]byte("no hfile"), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
	whole[40] ^= 1 // inside the first data block
	damaged := filepath.Join(dir, "damaged")
	if err := os.WriteFile(damaged, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		list  []*pb.BulkLoadHFileRequest_FamilyPath
		class string
		dnr   bool
		says  string
	}{
		{"no such family", paths("nope", beside), "DoNotRetryIOException", true, "No such column family nope"},
		{"no such file", paths("f", dir+"/none"), "FileNotFoundException", false, "none"},
		{"not an HFile", paths("f", rubbish), "CorruptHFileException", true, rubbish},
		{"damaged", paths("f", damaged), "CorruptHFileException", true, "checksum"},
		{"two troubles", append(paths("f", rubbish), paths("nope", beside)...), "MultipleIOException", false, "2 exceptions"},
		{"elsewhere", paths("f", "hdfs://nn/x"), "DoNotRetryIOException", true, "hdfs://nn/x"},
		{"relative", paths("f", "x/y"), "IOException", false, "not absolute"},
		{"other family inside", paths("f", hfileOf(t, dir, "g", "a")), "DoNotRetryIOException", true, "family g"},
	} {
		_, err := load(false, tt.list)
		x := rpctest.Remote(err)
		if x == nil || x.Short() != tt.class || x.DoNotRetry != tt.dnr || !strings.Contains(x.Message, tt.says) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.class)
		}
	}
	if !exists(beside) || !exists(damaged) {
		t.Error("a file of a load that failed is gone")
	}
	if _, err := c.Call("CleanupBulkLoad", &pb.CleanupBulkLoadRequest{BulkToken: prepared.BulkToken}, nil); err != nil {
		t.Error(err)
	}
}
