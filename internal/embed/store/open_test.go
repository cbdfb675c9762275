package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

func TestCatalog(t *testing.T) {
	s := testStore(t, Options{})
	if err := s.Apply([]KV{{Key: []byte("t/a"), Value: []byte("1")}, {Key: []byte("t/b"), Value: []byte{}}, {Key: []byte("u\xff\xff"), Value: []byte("3")}, {Key: nil, Value: []byte("empty")}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Apply([]KV{{Key: []byte("t/a"), Value: []byte("2")}, {Key: []byte("u"), Value: []byte("x")}, {Key: []byte("u"), Delete: true}}); err != nil {
		t.Fatal(err)
	}
	v, found, err := s.Get([]byte("t/a"))
	if string(v) != "2" || !found || err != nil {
		t.Error(v, found, err)
	}
	if v, found, err := s.Get([]byte("t/b")); len(v) != 0 || !found || err != nil {
		t.Error(v, found, err)
	}
	if _, found, err := s.Get([]byte("u")); found || err != nil {
		t.Error(found, err)
	}
	list := func(prefix string) (out string) {
		var failed error
		for k, v := range s.Iterate([]byte(prefix), &failed) {
			out += fmt.Sprintf("%s=%s ", k, v)
			// The store can be used from inside.
			if got, ok, err := s.Get(k); !ok || err != nil || string(got) != string(v) {
				t.Errorf("inside: %q, %v, %v", got, ok, err)
			}
		}
		if failed != nil {
			t.Error(failed)
		}
		return out
	}
	same(t, "prefix", list("t/"), "t/a=2 t/b= ")
	same(t, "all", list(""), "=empty t/a=2 t/b= u\xff\xff=3 ")
	same(t, "nothing", list("zz"), "")
	for k := range s.Iterate(nil, nil) {
		_ = k
		break
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tab := testTable(t, s)
	mutate(t, tab, "r", put(at("f:q", 1, "v")))
	if err := s.Apply([]KV{{Key: []byte("k"), Value: []byte("v")}}); err != nil {
		t.Fatal(err)
	}
	seq := s.NextSeq()
	id, err := s.NextID("table")
	if err != nil || id != 1 {
		t.Fatal(id, err)
	}
	if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("open twice: %v", err)
	}
	sc, err := tab.NewScan(whole(all()), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// A closed store says so, everywhere.
	if _, _, err := sc.Next(nil, &cells.Limits{}); !errors.Is(err, ErrClosed) {
		t.Errorf("scanner: %v", err)
	}
	if err := errors.Join(sc.Pause(), sc.Close()); err != nil {
		t.Error(err)
	}
	if _, err := tab.Get([]byte("r"), all()); !errors.Is(err, ErrClosed) {
		t.Errorf("get: %v", err)
	}
	if _, err := tab.MutateRow(context.Background(), &RowMutation{Row: []byte("r")}); !errors.Is(err, ErrClosed) {
		t.Errorf("put: %v", err)
	}
	if _, errs := tab.MutateBatch(context.Background(), make([]*RowMutation, 1)); !errors.Is(errs[0], ErrClosed) {
		t.Errorf("batch: %v", errs)
	}
	if err := s.Apply(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("apply: %v", err)
	}

	s = testStore(t, Options{Dir: dir})
	tab = testTable(t, s)
	same(t, "row", get(t, tab, "r", all()), "f:q@1=v")
	if v, _, _ := s.Get([]byte("k")); string(v) != "v" {
		t.Errorf("catalog: %q", v)
	}
	if next := s.NextSeq(); next <= seq {
		t.Errorf("sequence %d after %d", next, seq)
	}
	if id, err := s.NextID("table"); id != 2 || err != nil {
		t.Errorf("id %d, %v", id, err)
	}
	if id, err := s.NextID("other"); id != 1 || err != nil {
		t.Errorf("id %d, %v", id, err)
	}
}

func TestFormat(t *testing.T) {
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, formatFile), []byte("holdfast store format 999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: newer}); !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), "999") {
		t.Errorf("newer: %v", err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, formatFile), []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: broken}); !errors.Is(err, ErrNotAStore) {
		t.Errorf("broken: %v", err)
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letters.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: foreign}); !errors.Is(err, ErrNotAStore) || !strings.Contains(err.Error(), "letters.txt") {
		t.Errorf("foreign: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: file}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file: %v", err)
	}
	// After each refusal the directory is free again.
	if err := os.Remove(filepath.Join(broken, formatFile)); err != nil {
		t.Fatal(err)
	}
	testStore(t, Options{Dir: broken})
}

// readOnlyFS refuses to make files.
type readOnlyFS struct{ vfs.FS }

func (readOnlyFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func (readOnlyFS) Lock(name string) (io.Closer, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func TestReadOnlyDirectory(t *testing.T) {
	mem := vfs.NewMem()
	s, err := Open(Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Open(Options{FS: readOnlyFS{mem}})
	if err == nil || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "not writable") {
		t.Errorf("read-only: %v", err)
	}
}

func TestCopyDropFamilies(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	ctx := context.Background()
	mutate(t, tab, "r", put(at("f:q", 1, "1"), at("f:q", 2, "2"), at("g:q", 3, "3")))
	mutate(t, tab, "r", del(marker(cells.Delete, "f:q", 2)))
	mutate(t, tab, "s\x00", put(at("g:q", 3, "3")))
	if err := s.CopyData(ctx, 1, 2); err != nil {
		t.Fatal(err)
	}
	raw := all()
	raw.Raw = true
	copied := s.Table(2, tab.Schema())
	want := "r{f:q@2=Delete f:q@2=2 f:q@1=1 g:q@3=3} s\x00{g:q@3=3}"
	same(t, "copy", scanAll(t, copied, whole(raw), 0), want)
	if err := tab.DropFamilies(ctx, [][]byte{[]byte("f")}); err != nil {
		t.Fatal(err)
	}
	same(t, "f dropped", scanAll(t, tab, whole(raw), 0), "r{g:q@3=3} s\x00{g:q@3=3}")
	if err := s.DropData(1); err != nil {
		t.Fatal(err)
	}
	same(t, "dropped", scanAll(t, testTable(t, s), whole(raw), 0), "")
	same(t, "the copy stays", scanAll(t, copied, whole(raw), 0), want)
}

func TestMidRow(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	if row, err := tab.MidRow(nil, nil); row != nil || err != nil {
		t.Error(row, err)
	}
	mutate(t, tab, "only", put(at("f:q", 1, "1")))
	if row, err := tab.MidRow(nil, nil); row != nil || err != nil {
		t.Error(row, err)
	}
	for i := range 5000 {
		mutate(t, tab, fmt.Sprintf("r%05d", i), put(at("f:q", 1, "1"), at("g:q", 1, "1")))
	}
	row, err := tab.MidRow([]byte("r"), nil)
	if err != nil || string(row) < "r02400" || string(row) > "r02600" {
		t.Errorf("%s, %v", row, err)
	}
	if row, err := tab.MidRow([]byte("r00100"), []byte("r00102")); string(row) != "r00101" || err != nil {
		t.Errorf("of two: %s, %v", row, err)
	}
	if err := s.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	size := tab.SizeBytes(nil, nil)
	if size == 0 {
		t.Error("no size")
	}
	// By what the engine knows of its files.
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: tab.prefix, UpperBound: tab.upper})
	if err != nil {
		t.Fatal(err)
	}
	it.First()
	row, err = tab.midBySize(it, bytes.Clone(it.Key()[:splitRow(it.Key())]), tab.prefix, tab.upper, size)
	if err != nil || string(row) < "r01500" || string(row) > "r03500" {
		t.Errorf("by size: %s, %v", row, err)
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}

// Sequence numbers go on over the block that is promised at once.
func TestSequenceLimit(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s, err := Open(Options{FS: mem})
	if err != nil {
		t.Fatal(err)
	}
	for range seqBlock + 10 {
		s.NextSeq()
	}
	tab := testTable(t, s)
	mutate(t, tab, "r", put(at("f:q", 1, "v"))) // durable, and the new limit before it
	last := s.NextSeq()
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = testStore(t, Options{FS: crashed})
	if next := s.NextSeq(); next <= last {
		t.Errorf("%d was given out before the crash, %d after it", last, next)
	}
}
