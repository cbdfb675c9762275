package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// filled makes a store in a directory, with rows in a file of the engine and
// others in its log only, and copies it as a crash would leave it.
func filled(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	tab := testTable(t, s)
	var flushed []*RowMutation
	for i := range 200 {
		flushed = append(flushed, &RowMutation{Row: fmt.Appendf(nil, "flushed%03d", i), Ops: []Op{put(at("f:a", 1, strings.Repeat("v", 200)))}})
	}
	_, errs := tab.MutateBatch(t.Context(), flushed)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		mutate(t, tab, fmt.Sprintf("logged%03d", i), put(at("f:a", 1, strings.Repeat("w", 200))))
	}
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return crashed
}

// damage changes a byte of the newest file with that name.
func damage(t *testing.T, dir, pattern string, where float64) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	newest := slices.Max(names)
	content, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	// Logs are made larger than they are.
	used := len(bytes.TrimRight(content, "\x00"))
	content[int(float64(used)*where)] ^= 0x55
	if err := os.WriteFile(newest, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Base(newest)
}

// TestCorruptedFile: a damaged file is an error that names the directory or
// the file, never fewer rows.
func TestCorruptedFile(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		where   float64
	}{
		{"*.sst", 0.3}, {"*.sst", 0.99}, {"MANIFEST-*", 0.05}, {"MANIFEST-*", 0.3}, {"MANIFEST-*", 0.5}, {"MANIFEST-*", 0.7}, {"*.log", 0.01}, {"*.log", 0.3}, {"*.log", 0.9}, {"OPTIONS-*", 0.1},
	} {
		t.Run(fmt.Sprint(tt.pattern, tt.where), func(t *testing.T) {
			dir := filled(t)
			name := damage(t, dir, tt.pattern, tt.where)
			s, err := Open(Options{Dir: dir})
			if tt.pattern == "*.log" && !errors.Is(err, ErrCorrupted) {
				t.Errorf("%s: %v", name, err)
			}
			if err != nil {
				if !strings.Contains(err.Error(), dir) {
					t.Errorf("%s: %v does not name the directory", name, err)
				}
				return
			}
			defer s.Close()
			tab := testTable(t, s)
			sc, err := tab.NewScan(whole(all()), 0)
			if err != nil {
				return
			}
			defer sc.Close()
			n := 0
			for {
				list, state, err := sc.Next(nil, &cells.Limits{})
				n += len(list)
				if err != nil {
					if !strings.Contains(err.Error(), "checksum mismatch") {
						t.Errorf("%s: %v", name, err)
					}
					return
				}
				if state == cells.NoMoreRows {
					break
				}
			}
			if n != 250 {
				t.Errorf("%s: %d rows and no error", name, n)
			}
		})
	}
}

// TestTornLog: a log that ends in the middle of a chunk is no damage: that
// write was never acknowledged.
func TestTornLog(t *testing.T) {
	dir := filled(t)
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	newest := slices.Max(logs)
	b, err := os.ReadFile(newest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(newest, b[:len(bytes.TrimRight(b, "\x00"))-30], 0o600); err != nil {
		t.Fatal(err)
	}
	tab := testTable(t, testStore(t, Options{Dir: dir}))
	if n := strings.Count(scanAll(t, tab, whole(all()), 0), "f:a@1="); n != 249 {
		t.Errorf("%d rows", n)
	}
}
