package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/atomicfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// owned is a catalog that knows table 1 with the families f and g, table 2
// with f, and that table 3 is about to go.
func owned(r *Report, pairs iter.Seq2[[]byte, []byte]) map[uint32]Owner {
	for key, value := range pairs {
		if string(value) == "bad" {
			r.Find(FindCatalog, string(key), "bad")
		}
	}
	fg := map[string]bool{"f": true, "g": true}
	return map[uint32]Owner{1: {Name: "table t", Families: fg}, 2: {Name: "table u", Families: map[string]bool{"f": true}, FamiliesLeaving: map[string]bool{"h": true}}, 3: {Name: "table id 3", Leaving: true}}
}

// full has everything a store can have, in memtable and files.
func full(t *testing.T, s *Store) {
	t.Helper()
	tab := testTable(t, s)
	mutate(t, tab, "r\x00\x01\xff", put(at("f:\x00", 1, ""), at("g:q", 2, "v")), inc("f:n", 1), app("g:a", "x"))
	tagged := put(at("f:q", 3, "v"))
	tagged.TTL = 1 << 40
	tagged.Cells[0].Tags = cells.AppendTag(nil, cells.TagVisibility, []byte("v"))
	mutate(t, tab, "tagged", tagged)
	for _, typ := range []cells.Type{cells.Delete, cells.DeleteColumn} {
		mutate(t, tab, "markers", del(marker(typ, "f:q", 1)))
	}
	for _, typ := range []cells.Type{cells.DeleteFamily, cells.DeleteFamilyVersion} {
		mutate(t, tab, "markers", del(marker(typ, "f:", 1)))
	}
	mutate(t, tab, "markers", with(cells.SkipWAL, del()))
	if err := s.CopyData(t.Context(), 1, 3); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		mutate(t, tab, fmt.Sprintf("row%03d", i), put(at("f:q", 1, strings.Repeat("v", 100))))
	}
	if _, err := tab.BulkLoad(t.Context(), []CellReader{listed(inRow("bulk", at("f:q", 1, "v")))}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply([]KV{{Key: []byte("good"), Value: []byte("good")}, {Key: []byte("empty")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.NextID("procedures"); err != nil {
		t.Fatal(err)
	}
	l := newLossy(t, s)
	l.do(t, "lost", with(cells.SkipWAL, put(at("f:q", 1, "v"))))
	lose(t, l.log, 1)
}

func found(r *Report) string {
	var parts []string
	for _, f := range r.Findings {
		parts = append(parts, fmt.Sprintf("%s@%s: %s (%d)", f.Kind, f.Where, f.What, f.Count))
	}
	return strings.Join(parts, "; ")
}

func TestCheckHealthy(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, err := Open(Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	full(t, s)
	crashed := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(1, 2))})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, fsys := range map[string]*vfs.MemFS{"closed": mem, "crashed": crashed} {
		for range 2 { // the check has changed nothing
			r, err := Check(t.Context(), CheckOptions{FS: fsys, Catalog: owned})
			if err != nil || len(r.Findings) != 0 || !r.Complete {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			if r.Catalog != 2 || r.Cells < 310 || r.MaxSeq < 300 || r.MaxSeq > r.SeqLimit || r.Bytes < 30_000 || r.Format != 1 {
				t.Errorf("%s: %+v", name, r)
			}
			// A crash may also leave the name of a loaded file behind.
			if n := len(r.Notes); n == 0 || n > 2 || !strings.Contains(r.Notes[n-1], "cells of table id 3") {
				t.Errorf("%s: notes %q", name, r.Notes)
			}
		}
		s := testStore(t, Options{FS: fsys})
		if n := number(t, testTable(t, s), "r\x00\x01\xff", "f:n"); n != 1 {
			t.Errorf("%s: after the check: %d", name, n)
		}
	}
}

// TestCheckDamage makes each kind of damage and looks for its name.
func TestCheckDamage(t *testing.T) {
	cell := func(change func(*cells.Cell)) []byte {
		c := cells.Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: 1, Type: cells.Put, Seq: 7}
		change(&c)
		return appendCellKey(nil, 1, &c)
	}
	good := cell(func(*cells.Cell) {})
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	for _, tt := range []struct {
		name       string
		key, value []byte
		kind, what string
	}{
		{"a space", []byte{0x05, 'x'}, nil, FindKey, "no known kind"},
		{"a space behind the cells", []byte{0x77}, nil, FindKey, "no known kind"},
		{"an internal key", []byte{spaceInternal, 'x'}, number(1), FindKey, "means nothing"},
		{"a short counter", []byte{spaceInternal, 'c', 'x'}, []byte{1}, FindCounter, "1 bytes long"},
		{"a zero counter", []byte{spaceInternal, 'c', 'x'}, number(0), FindCounter, "is 0"},
		{"the limit of sequence numbers", keySeqLimit, number(3), FindSequence, "only those up to 3"},
		{"a short limit", keySeqLimit, []byte{1, 2}, FindCounter, "2 bytes long"},
		{"a catalog entry", catalogKey([]byte("k")), []byte("bad"), FindCatalog, "bad"},
		{"a short cell key", good[:12], []byte{0}, FindKey, "does not decode"},
		{"an escape", append(append([]byte{spaceCells, 0, 0, 0, 1}, 'r', 0, 7), good[len(good)-30:]...), []byte{0}, FindKey, "does not decode"},
		{"bytes too many", append(bytes.Clone(good), 1), []byte{0}, FindKey, "does not decode"},
		{"an empty row", cell(func(c *cells.Cell) { c.Row = nil }), []byte{0}, FindKey, "row of 0 bytes"},
		{"an empty family", cell(func(c *cells.Cell) { c.Family = nil }), []byte{0}, FindKey, "family of 0"},
		{"a type", cell(func(c *cells.Cell) { c.Type = 99 }), []byte{0}, FindKey, "unknown type 99"},
		{"a timestamp", cell(func(c *cells.Cell) { c.Timestamp = -5 }), []byte{0}, FindKey, "negative timestamp"},
		{"no sequence number", cell(func(c *cells.Cell) { c.Seq = 0 }), []byte{0}, FindSequence, "sequence number 0"},
		{"a sequence number", cell(func(c *cells.Cell) { c.Seq = 1 << 50 }), []byte{0}, FindSequence, "promised"},
		{"an empty value", good, nil, FindValue, "malformed cell value"},
		{"flags", good, []byte{0x80}, FindValue, "unknown flags"},
		{"the length of tags", good, []byte{flagTags, 200, 1}, FindValue, "malformed cell tags"},
		{"tags", good, []byte{flagTags, 3, 0, 9, 1, 'v'}, FindValue, "malformed tags"},
		{"a table", appendCellKey(nil, 9, &cells.Cell{Row: []byte("r"), Family: []byte("f"), Timestamp: 1, Type: cells.Put, Seq: 7}), []byte{0}, FindTable, "table id 9"},
		{"a family", appendCellKey(nil, 2, &cells.Cell{Row: []byte("r"), Family: []byte("g"), Timestamp: 1, Type: cells.Put, Seq: 7}), []byte{0}, FindFamily, "table u: cells of family g"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mem := vfs.NewMem()
			s, err := Open(Options{FS: mem})
			if err != nil {
				t.Fatal(err)
			}
			full(t, s)
			if err := s.db.Set(tt.key, tt.value, pebble.Sync); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r, err := Check(t.Context(), CheckOptions{FS: mem, Catalog: owned})
			if err != nil {
				t.Fatal(err)
			}
			ok := false
			for _, f := range r.Findings {
				ok = ok || f.Kind == tt.kind && strings.Contains(f.What, tt.what)
			}
			if !ok {
				t.Errorf("want a finding %s with %q, got %s", tt.kind, tt.what, found(r))
			}
			if len(r.Findings) > 1 && tt.name != "a short limit" {
				t.Errorf("one thing is wrong, found are %s", found(r))
			}
		})
	}
}

// TestCheckAlike: what is alike is counted, not listed.
func TestCheckAlike(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open(Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	other := s.Table(9, cells.NewSchema(fam("f", 1)))
	for i := range 100 {
		mutate(t, other, fmt.Sprintf("r%03d", i), put(at("f:q", 1, "v")))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Check(t.Context(), CheckOptions{FS: mem, Catalog: owned})
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Count != 100 || !strings.Contains(r.Findings[0].Where, "row r000") {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCheckFiles damages files.
func TestCheckFiles(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		where   float64
		kind    string
	}{
		{"*.sst", 0.3, FindFile}, {"*.sst", 0.99, FindFile}, {"MANIFEST-*", 0.1, FindFile}, {"MANIFEST-*", 0.5, FindFile}, {"MANIFEST-*", 0.98, FindFile}, {"*.log", 0.3, FindLog}, {"*.log", 0.9, FindLog},
		{formatFile, 0.2, FindFormat},
	} {
		t.Run(fmt.Sprint(tt.pattern, tt.where), func(t *testing.T) {
			dir := filled(t)
			name := damage(t, dir, tt.pattern, tt.where)
			r, err := Check(t.Context(), CheckOptions{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) == 0 || r.Findings[0].Kind != tt.kind {
				t.Errorf("%s damaged: %s", name, found(r))
			}
		})
	}
	for _, pattern := range []string{"*.sst", "MANIFEST-*", formatFile} {
		dir := filled(t)
		names, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		if err := os.Remove(names[len(names)-1]); err != nil {
			t.Fatal(err)
		}
		if r, err := Check(t.Context(), CheckOptions{Dir: dir}); err != nil || len(r.Findings) == 0 {
			t.Errorf("%s removed: %+v, %v", pattern, r, err)
		}
	}
	dir := filled(t)
	if err := os.WriteFile(filepath.Join(dir, bulkPrefix+"7-0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Check(t.Context(), CheckOptions{Dir: dir}); err != nil || len(r.Findings) != 0 || len(r.Notes) != 1 {
		t.Errorf("a file left of a bulk load: %+v, %v", r, err)
	}
}

// What is no store, or cannot be had, is not checked, and not changed.
func TestCheckRefused(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), CheckOptions{Dir: dir}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("in use: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ended, CheckOptions{Dir: filled(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, formatFile), []byte("holdfast store format 999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(t.Context(), CheckOptions{Dir: dir}); !errors.Is(err, ErrNewerFormat) {
		t.Errorf("newer: %v", err)
	}
	for name, dir := range map[string]string{"empty": t.TempDir(), "none": filepath.Join(t.TempDir(), "none"), "foreign": foreign(t)} {
		before, _ := filepath.Glob(filepath.Join(dir, "*"))
		_, err := Check(t.Context(), CheckOptions{Dir: dir})
		if !errors.Is(err, ErrNotAStore) && !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if after, _ := filepath.Glob(filepath.Join(dir, "*")); len(after) != len(before) {
			t.Errorf("%s: %q became %q", name, before, after)
		}
	}
}

func foreign(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "letters.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestManifestDamage: whatever byte of a manifest is not what was written, a
// check finds it; Open does unless it is in the last of its changes, which the
// machine may have stopped in.
func TestManifestDamage(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open(Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	tab := testTable(t, s)
	for i := range 30 {
		mutate(t, tab, fmt.Sprint("r", i), put(at("f:q", 1, "v")))
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	name, err := atomicfs.ReadMarker(mem, "store", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	f, err := mem.Open(mem.PathJoin("store", name))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err != nil || f.Close() != nil || len(content) < 1000 {
		t.Fatal(len(content), err)
	}
	last := 0
	for at := 0; at < len(content); {
		size, ok := manifestChunk(content[at:])
		if !ok {
			t.Fatalf("no chunk at %d", at)
		}
		last, at = at, at+size
	}
	for _, strict := range []bool{false, true} {
		if at, err := manifestDamagedAt(bytes.NewReader(content), strict); at != -1 || err != nil {
			t.Errorf("undamaged: %d, %v", at, err)
		}
		// A write that ends early, or as zeros, is none.
		torn := append(bytes.Clone(content[:last+20]), make([]byte, len(content)-last-20)...)
		for _, b := range [][]byte{content[:last+3], content[:last+20], torn, append(bytes.Clone(content), make([]byte, 3*logBlock)...)} {
			if at, err := manifestDamagedAt(bytes.NewReader(b), strict); at != -1 || err != nil {
				t.Errorf("torn: %d, %v", at, err)
			}
		}
		for i := range content {
			b := bytes.Clone(content)
			b[i] ^= 0x55
			at, err := manifestDamagedAt(bytes.NewReader(b), strict)
			if err != nil || (at < 0 || at > int64(i)) && (i < last || strict && i > last+6) {
				t.Errorf("byte %d of %d (the last change at %d), strict %v: %d, %v", i, len(content), last, strict, at, err)
			}
		}
	}
}
