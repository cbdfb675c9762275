package store

import (
	"fmt"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// flushRows gives what a raw scan finds, as "row/family@time", markers with
// their type.
func flushRows(t *testing.T, tab *Table) (found []string) {
	t.Helper()
	src := tab.rawSource(nil, nil)
	defer func() {
		if err := src.suspend(); err != nil {
			t.Error(err)
		}
	}()
	err := src.SeekRow(nil, true)
	for ; err == nil && src.Row() != nil; err = src.NextRow() {
		for c := src.Cell(); c != nil && err == nil; c = src.Cell() {
			text := fmt.Sprintf("%s/%s@%d", c.Row, c.Family, c.Timestamp)
			if c.Type.IsDelete() {
				text += "=" + c.Type.String()
			}
			found = append(found, text)
			err = src.Next()
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestFlushDrops shows that a flush judges what was written since the last one,
// and that alone.
func TestFlushDrops(t *testing.T) {
	ctx := t.Context()
	s := testStore(t, Options{})
	schema := cells.NewSchema(fam("f", 1), fam("g", 1))
	tab := s.Table(1, schema)
	write := func(row, family string, kind Kind, typ cells.Type, at int64) {
		t.Helper()
		c := cells.Cell{Row: []byte(row), Family: []byte(family), Qualifier: []byte("q"), Timestamp: at, Type: typ, Value: []byte("v")}
		if typ != cells.Put {
			c.Value = nil
		}
		if _, err := tab.MutateRow(ctx, &RowMutation{Row: []byte(row), Ops: []Op{{Kind: kind, Timestamp: cells.LatestTimestamp, TTL: NoTTL, Cells: []cells.Cell{c}}}}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		if got := flushRows(t, tab); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	flush := func(start, end string, families ...string) {
		t.Helper()
		var names [][]byte
		for _, f := range families {
			names = append(names, []byte(f))
		}
		if err := tab.Flush(ctx, []byte(start), []byte(end), names); err != nil {
			t.Fatal(err)
		}
	}
	write("a", "f", Put, cells.Put, 10)
	write("a", "f", Put, cells.Put, 20)
	write("a", "g", Put, cells.Put, 10)
	write("a", "g", Delete, cells.DeleteColumn, 15)
	write("m", "f", Put, cells.Put, 10)
	write("m", "f", Put, cells.Put, 20)
	flush("", "m", "f")
	check("one family of the first region", "a/f@20", "a/g@15=DeleteColumn", "a/g@10", "m/f@20", "m/f@10")
	flush("", "m")
	check("the rest of it", "a/f@20", "a/g@15=DeleteColumn", "m/f@20", "m/f@10")
	write("a", "f", Put, cells.Put, 30)
	flush("", "")
	check("both regions; what was flushed before counts no more", "a/f@30", "a/f@20", "a/g@15=DeleteColumn", "m/f@20")
	write("m", "f", Put, cells.Put, 5)
	flush("m", "")
	check("a version that a flushed one hides", "a/f@30", "a/f@20", "a/g@15=DeleteColumn", "m/f@20", "m/f@5")
	if n := len(tab.flushes.list); n != 2 {
		t.Errorf("%d flushes are remembered, 2 say all", n)
	}
	if err := tab.MajorCompact(ctx, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	check("a major compaction", "a/f@30", "m/f@20")
}

// TestFlushSparesReaders shows that a scanner open since before finds what it
// would have found.
func TestFlushSparesReaders(t *testing.T) {
	ctx := t.Context()
	s := testStore(t, Options{})
	tab := s.Table(1, cells.NewSchema(fam("f", 1)))
	put := func(at int64) {
		t.Helper()
		c := cells.Cell{Row: []byte("r"), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: at, Type: cells.Put, Value: []byte("v")}
		if _, err := tab.MutateRow(ctx, &RowMutation{Row: []byte("r"), Ops: []Op{{Kind: Put, Timestamp: cells.LatestTimestamp, TTL: NoTTL, Cells: []cells.Cell{c}}}}); err != nil {
			t.Fatal(err)
		}
	}
	put(10)
	var open Scanner
	s.readers.add(&open, reading{table: tab.id}, &s.mvcc)
	put(20)
	if err := tab.Flush(ctx, nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := flushRows(t, tab); len(got) != 2 {
		t.Errorf("%v are left, the reader has lost its version", got)
	}
	s.readers.remove(&open)
}
