package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// cellList reads cells, sorted, and ends with err.
type cellList struct {
	list []cells.Cell
	at   int
	err  error
}

func listed(cs ...cells.Cell) *cellList {
	slices.SortFunc(cs, func(a, b cells.Cell) int { return cells.Compare(&a, &b) })
	return &cellList{list: cs, at: -1}
}

func (l *cellList) Next() bool        { l.at++; return l.at < len(l.list) }
func (l *cellList) Cell() *cells.Cell { return &l.list[l.at] }
func (l *cellList) Err() error        { return l.err }

func inRow(row string, c cells.Cell) cells.Cell {
	c.Row, c.Type = []byte(row), max(c.Type, cells.Put)
	return c
}

func TestBulkLoad(t *testing.T) {
	for _, onDisk := range []bool{false, true} {
		t.Run(fmt.Sprint(onDisk), func(t *testing.T) {
			o := Options{}
			if onDisk {
				o.Dir = t.TempDir()
			}
			s := testStore(t, o)
			tab := testTable(t, s)
			mutate(t, tab, "b", put(at("f:a", 5, "old"), at("f:a", 6, "newer")))
			open, err := tab.NewScan(whole(all()), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer open.Close()
			before := s.ReadPoint()
			n, err := tab.BulkLoad(context.Background(), []CellReader{
				listed(inRow("a", at("f:a", 1, "1")), inRow("b", at("f:a", 5, "loaded")), inRow("c", at("f:a", 1, "first"))),
				listed(inRow("a", at("g:b", 2, "2")), inRow("c", at("f:a", 1, "second")), inRow("c", marker(cells.DeleteColumn, "f:b", 7))),
				listed(),
			})
			if err != nil || n != 5 {
				t.Fatalf("%d cells, %v", n, err)
			}
			if s.ReadPoint() <= before {
				t.Error("the read point has not passed the load")
			}
			same(t, "a", get(t, tab, "a", all()), "f:a@1=1 g:b@2=2")
			if got := get(t, tab, "b", all()); !strings.Contains(got, "newer") || !strings.Contains(got, "loaded") || strings.Contains(got, "old") {
				t.Errorf("b: %s", got)
			}
			if got := get(t, tab, "c", all()); !strings.Contains(got, "first") || strings.Contains(got, "second") {
				t.Errorf("c: %s", got)
			}
			// A put below the loaded marker is hidden by it.
			mutate(t, tab, "c", put(at("f:b", 6, "hidden")))
			if got := get(t, tab, "c", all("f:b")); got != "" {
				t.Errorf("c, f:b: %s", got)
			}
			// Who had begun to read goes on seeing what there was.
			if got := drain(t, open); strings.Contains(got, "loaded") || strings.Contains(got, "f:a@1=1") {
				t.Errorf("an older scanner sees %s", got)
			}
			if err := s.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			if err := tab.MajorCompact(context.Background(), nil, nil, nil); err != nil {
				t.Fatal(err)
			}
			same(t, "a", get(t, tab, "a", all()), "f:a@1=1 g:b@2=2")
		})
	}
}

// TestBulkLoadFails: nothing of a load that fails is there, and no file is
// left.
func TestBulkLoadFails(t *testing.T) {
	fs := &fullFS{FS: vfs.NewMem()}
	fs.room.Store(1 << 30)
	s := testStore(t, Options{FS: fs})
	tab := testTable(t, s)
	broken := listed(inRow("a", at("f:a", 1, "1")), inRow("b", at("f:a", 1, "1")))
	broken.err = errors.New("broken file")
	if _, err := tab.BulkLoad(context.Background(), []CellReader{broken}); err == nil || !strings.Contains(err.Error(), "broken file") {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tab.BulkLoad(ended, []CellReader{listed(inRow("a", at("f:a", 1, "1")))}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	names, err := fs.List("store")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, bulkPrefix) {
			t.Errorf("%s is left", n)
		}
	}
	same(t, "a", get(t, tab, "a", all()), "")
	mutate(t, tab, "a", put(at("f:a", 1, "still writes")))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tab.BulkLoad(context.Background(), nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// bulkFullFS has no room for a bulk load's files.
type bulkFullFS struct{ vfs.FS }

func (f bulkFullFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.Contains(name, bulkPrefix) {
		return nil, syscall.ENOSPC
	}
	return f.FS.Create(name, c)
}

func TestBulkLoadDiskFull(t *testing.T) {
	s := testStore(t, Options{FS: bulkFullFS{vfs.NewMem()}})
	tab := testTable(t, s)
	if _, err := tab.BulkLoad(context.Background(), []CellReader{listed(inRow("a", at("f:a", 1, "1")))}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	// The store is none the worse for it.
	mutate(t, tab, "a", put(at("f:a", 1, "x")))
	same(t, "a", get(t, tab, "a", all()), "f:a@1=x")
}

// TestBulkLoadCrash ends the machine after a load was acknowledged, and with
// another one's files half written.
func TestBulkLoadCrash(t *testing.T) {
	mem := vfs.NewCrashableMem()
	s := testStore(t, Options{FS: mem})
	tab := testTable(t, s)
	mutate(t, tab, "0", put(at("f:a", 1, "put")))
	if _, err := tab.BulkLoad(context.Background(), []CellReader{listed(inRow("a", at("f:a", 1, "1")), inRow("b", at("f:a", 1, "1")))}); err != nil {
		t.Fatal(err)
	}
	f, err := mem.Create(mem.PathJoin("store", bulkPrefix+"99-0"), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	before := s.ReadPoint()
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	s2 := testStore(t, Options{FS: crashed})
	if s2.ReadPoint() < before {
		t.Errorf("numbers go back from %d to %d", before, s2.ReadPoint())
	}
	tab2 := testTable(t, s2)
	same(t, "0", get(t, tab2, "0", all()), "f:a@1=put")
	same(t, "b", get(t, tab2, "b", all()), "f:a@1=1")
	names, err := crashed.List("store")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if strings.HasPrefix(n, bulkPrefix) {
			t.Errorf("%s is left", n)
		}
	}
}

// TestBulkLoadBesideWrites loads while rows are written.
func TestBulkLoadBesideWrites(t *testing.T) {
	s := testStore(t, Options{})
	tab := testTable(t, s)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 50 {
				row := fmt.Appendf(nil, "w%d-%d", w, i)
				if _, err := tab.MutateRow(context.Background(), &RowMutation{Row: row, Ops: []Op{put(at("f:a", 1, "x"))}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 10 {
		if _, err := tab.BulkLoad(context.Background(), []CellReader{listed(inRow(fmt.Sprint("l", i), at("f:a", 1, "x")))}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	got := scanAll(t, tab, whole(all()), 0)
	if n := strings.Count(got, "=x"); n != 210 {
		t.Errorf("%d cells", n)
	}
}
