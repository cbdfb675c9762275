//go:build interop && long

package hfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/interop/peers"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

var encodings = []hfile.Encoding{hfile.EncodingNone, hfile.EncodingPrefix, hfile.EncodingDiff, hfile.EncodingFastDiff, hfile.EncodingRowIndex}

func javaSource(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("HFilePeer.java")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// samples are the cells of the files that HBase wrote.
func samples(t *testing.T) []cells.Cell {
	t.Helper()
	r, err := hfile.Open("../../internal/hfile/testdata/none.hfile")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var list []cells.Cell
	s := r.Scan()
	for s.Next() {
		list = append(list, s.Cell().Clone())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// untagged takes the tags away: a cell's own TTL would have expired.
func untagged(list []cells.Cell) []cells.Cell {
	for i := range list {
		list[i].Tags = nil
	}
	return list
}

func writeFile(t *testing.T, path string, o hfile.WriterOptions, list []cells.Cell) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := hfile.NewWriter(f, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := w.Append(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func dump(c *cells.Cell) string {
	return fmt.Sprintf("cell %x %x %x %d %s %x %x %d", c.Row, c.Family, c.Qualifier, c.Timestamp, c.Type, c.Value, c.Tags, c.Seq)
}

// TestHBaseReadsOurs: HBase's reader finds in our files every cell, in order
// and by a seek through the index.
func TestHBaseReadsOurs(t *testing.T) {
	list := samples(t)
	var want strings.Builder
	for i := range list {
		want.WriteString(dump(&list[i]) + "\n")
	}
	dir := t.TempDir()
	var args []string
	for _, enc := range encodings {
		for i, o := range []hfile.WriterOptions{
			{Compression: hfile.CompressionGZ},
			{BlockBytes: 700, IndexBytes: 400, BloomBytes: 64, BytesPerChecksum: 300, Checksum: hfile.ChecksumCRC32, PlainTags: true},
		} {
			o.Encoding = enc
			path := filepath.Join(dir, fmt.Sprintf("%v-%d", enc, i))
			writeFile(t, path, o, list)
			args = append(args, "print", path)
		}
	}
	out, err := peers.Java(t, peers.HBase26, javaSource(t), "127.0.0.1:1", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range args {
		if path == "print" {
			continue
		}
		printed, rest, ok := strings.Cut(out, "file entries=")
		if !ok || printed != want.String() {
			t.Fatalf("%s: HBase reads\n%.2000s", path, printed)
		}
		line, after, _ := strings.Cut(rest, "\n")
		if !strings.HasPrefix(line, "306 midkey=row") || !strings.Contains(line, "bloom=true") {
			t.Errorf("%s: %s", path, line)
		}
		out = after
	}
}

// TestToolLoadsIntoEmbedded: HBase's own bulk load tool, unchanged, cuts and
// loads files into the embedded cluster.
func TestToolLoadsIntoEmbedded(t *testing.T) {
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, Servers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, set := range []string{peers.HBase26, peers.HBase24} {
		table := fmt.Sprintf("t%d", i)
		tab := makeTable(t, c.Address(), table, nil)
		dir := t.TempDir()
		source := javaSource(t)
		if set == peers.HBase24 {
			source = olderSource(t, source)
		}
		list := untagged(samples(t))
		writeFile(t, filepath.Join(dir, "cf", "file"), hfile.WriterOptions{Encoding: hfile.EncodingFastDiff}, list)
		out, err := peers.Java(t, set, source, c.ZooKeeper(), "load", dir, table)
		if err != nil || !strings.Contains(out, "exit 0") {
			t.Fatalf("%v\n%s", err, out)
		}
		same(t, tab, list)
	}
}

// olderSource is the program for HBase 2.4, where a scanner wants no
// configuration.
func olderSource(t *testing.T, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "HFilePeer.java")
	if err := os.WriteFile(path, bytes.Replace(text, []byte("getScanner(conf, "), []byte("getScanner("), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func makeTable(t *testing.T, address, table string, change func(*admin.FamilyDescriptor)) *hbase.Table {
	t.Helper()
	client, err := hbase.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	f := admin.NewFamily("cf").Versions(5)
	if change != nil {
		change(f)
	}
	if err := client.Admin().CreateTable(t.Context(), admin.NewTable(table, f), []byte("row020"), []byte("row040")); err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table(table)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// same compares what a raw scan of a table finds with a list, tags and
// sequence numbers aside (clients do not get them).
func same(t *testing.T, tab *hbase.Table, list []cells.Cell) {
	t.Helper()
	i := 0
	// Of deletes and puts of one version a raw scan shows all.
	sc := tab.Scan(t.Context(), &hbase.Scan{Raw: true, MaxVersions: hbase.AllVersions})
	defer sc.Close()
	for r, err := range sc.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range r.Cells {
			if i >= len(list) {
				t.Fatalf("more than %d cells: %v", i, got)
			}
			want := list[i]
			if !bytes.Equal(got.Row, want.Row) || !bytes.Equal(got.Qualifier, want.Qualifier) || got.Timestamp != want.Timestamp || !bytes.Equal(got.Value, want.Value) {
				t.Fatalf("cell %d: %v, want %v", i, got, &want)
			}
			i++
		}
	}
	if i != len(list) {
		t.Fatalf("%d cells, want %d", i, len(list))
	}
}

// TestRealHBase: our client loads files into real HBase, and reads the files
// that its region server flushed and compacted, with every encoding.
func TestRealHBase(t *testing.T) {
	c, err := peers.Open(peers.HBase26, 1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list := untagged(samples(t))
	for _, enc := range encodings {
		t.Run(enc.String(), func(t *testing.T) {
			table := "t_" + enc.String()
			tab := makeTable(t, c.Address(), table, func(f *admin.FamilyDescriptor) {
				f.Attributes["DATA_BLOCK_ENCODING"] = enc.String()
				f.Attributes["COMPRESSION"] = "GZ"
			})
			dir := t.TempDir()
			writeFile(t, filepath.Join(dir, "cf", "file"), hfile.WriterOptions{Encoding: enc, Compression: hfile.CompressionGZ, BlockBytes: 1000, IndexBytes: 500}, list)
			adm := tab.Client().Admin()
			res, err := adm.BulkLoad(t.Context(), table, dir)
			if err != nil || res.Cells != int64(len(list)) || res.Split != 1 || res.Regions != 3 {
				t.Fatalf("%+v, %v", res, err)
			}
			same(t, tab, list)
			// What a get finds passed HBase's reading of our bloom filter.
			for i := 0; i < len(list); i += 20 {
				if _, err := tab.Get(t.Context(), hbase.NewGet(list[i].Row)); err != nil {
					t.Fatal(err)
				}
			}
			put := hbase.NewPut([]byte("row010")).Set("cf", "late", []byte("flushed"))
			if err := tab.Put(t.Context(), put); err != nil {
				t.Fatal(err)
			}
			if err := adm.Flush(t.Context(), table); err != nil {
				t.Fatal(err)
			}
			found := 0
			root := filepath.Join(c.Dir, "data", "hbase", "data", "default", table)
			err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() || filepath.Base(filepath.Dir(path)) != "cf" || strings.HasPrefix(e.Name(), ".") {
					return err
				}
				r, err := hfile.Open(path)
				if err != nil {
					return err
				}
				defer r.Close()
				s := r.Scan()
				for s.Next() {
					if string(s.Cell().Qualifier) == "late" && string(s.Cell().Value) == "flushed" {
						found++
						if r.Trailer().Compression != hfile.CompressionGZ || (enc != hfile.EncodingNone) != (string(r.Info()[hfile.InfoEncoding]) == enc.String()) {
							t.Errorf("%s: %v, %q", path, r.Trailer().Compression, r.Info()[hfile.InfoEncoding])
						}
					}
				}
				return s.Err()
			})
			if err != nil || found != 1 {
				t.Errorf("the flushed cell was found %d times, %v", found, err)
			}
		})
	}
}
