package hfile

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// dump is a cell as HFilePeer.java prints it.
func dump(c *cells.Cell) string {
	return fmt.Sprintf("%x %x %x %d %s %x %x %d", c.Row, c.Family, c.Qualifier, c.Timestamp, c.Type, c.Value, c.Tags, c.Seq)
}

func readAll(t *testing.T, r *Reader) []string {
	t.Helper()
	var got []string
	s := r.Scan()
	for s.Next() {
		got = append(got, dump(s.Cell()))
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func golden(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []string
	for in := bufio.NewScanner(f); in.Scan(); {
		want = append(want, in.Text())
	}
	return want
}

// TestFilesOfHBase reads files that HBase's own writer wrote; the expected
// cells are what its own reader printed.
func TestFilesOfHBase(t *testing.T) {
	files, err := filepath.Glob("testdata/*.hfile")
	if err != nil || len(files) < 13 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	tagged, plain := golden(t, "cells.txt"), golden(t, "cells-plain.txt")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			want := tagged
			if strings.Contains(file, "plain") {
				want = plain
			}
			got := readAll(t, r)
			for i := range max(len(got), len(want)) {
				if i >= len(got) || i >= len(want) || got[i] != want[i] {
					t.Fatalf("cell %d: got %q, want %q", i, at(got, i), at(want, i))
				}
			}
			testSeek(t, r)
			if last, ok, err := r.LastKey(); err != nil || !ok || !strings.HasPrefix(want[len(want)-1], hex.EncodeToString(last.Row)+" ") {
				t.Errorf("last key %v %v %v", last, ok, err)
			}
			first, ok, err := r.FirstKey()
			if err != nil || !ok || !strings.HasPrefix(want[0], hex.EncodeToString(first.Row)+" ") {
				t.Errorf("first key %v %v %v", first, ok, err)
			}
		})
	}
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "(none)"
}

// testSeek looks for every row of a file, and for rows between them.
func testSeek(t *testing.T, r *Reader) {
	t.Helper()
	var rows [][]byte
	s := r.Scan()
	for s.Next() {
		if n := len(rows); n == 0 || string(rows[n-1]) != string(s.Cell().Row) {
			rows = append(rows, append([]byte(nil), s.Cell().Row...))
		}
	}
	absent := 0
	for i, row := range rows {
		s, err := r.Seek(row)
		if err != nil || !s.Next() || string(s.Cell().Row) != string(row) {
			t.Fatalf("seek %q: %v at %v", row, errors.Join(err, s.Err()), s.Cell())
		}
		if may, err := r.MayContain(row); err != nil || !may {
			t.Fatalf("bloom of %q: %v %v", row, may, err)
		}
		behind := append(append([]byte(nil), row...), 0)
		if i+1 < len(rows) {
			if s, err = r.Seek(behind); err != nil || !s.Next() || string(s.Cell().Row) != string(rows[i+1]) {
				t.Fatalf("seek behind %q: %v at %v", row, errors.Join(err, s.Err()), s.Cell())
			}
		}
		if may, err := r.MayContain(behind); err != nil {
			t.Fatal(err)
		} else if !may {
			absent++
		}
	}
	if b := r.Bloom(); b != nil && b.Type == "ROW" && absent < len(rows)*8/10 {
		t.Errorf("the bloom filter knows only of %d out of %d rows that they are absent", absent, len(rows))
	}
	s, err := r.Seek(bytes.Repeat([]byte{0xff}, 20))
	if err != nil || s.Next() || s.Err() != nil {
		t.Errorf("seek behind all: %v %v", err, s.Err())
	}
}
