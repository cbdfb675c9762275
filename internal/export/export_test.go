package export

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/minihbase"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cluster(t *testing.T) *hbase.Client {
	t.Helper()
	c, err := minihbase.Start(t.Context(), minihbase.Options{InMemory: true, ControlPort: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	client, err := hbase.Open(t.Context(), c.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// fill makes a table of four regions, with versions and delete markers.
func fill(t *testing.T, client *hbase.Client, name string) *hbase.Table {
	t.Helper()
	ctx := t.Context()
	if err := client.Admin().CreateTable(ctx, admin.NewTable(name, admin.NewFamily("f").Versions(3), admin.NewFamily("g")), []byte("r100"), []byte("r200"), []byte("r300")); err != nil {
		t.Fatal(err)
	}
	tab, err := client.Table(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := tab.Mutator(hbase.MutatorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		row := fmt.Appendf(nil, "r%03d", i)
		p := hbase.NewPut(row).SetAt("f", "a", 5, []byte("old")).SetAt("f", "a", 9, row).SetAt("g", "\x00b", 1, nil)
		if err := m.Add(ctx, p); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			if err := m.Add(ctx, hbase.NewDelete(row).ColumnUpTo("f", "gone", 77).FamilyVersion("g", 4)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := m.Close(ctx); err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestRoundTrip(t *testing.T) {
	ctx := t.Context()
	client := cluster(t)
	fill(t, client, "t")
	for _, tt := range []struct {
		name  string
		what  Selection
		rows  int64
		cells int64
		parts int
	}{
		{"newest", Selection{}, 400, 800, 4},
		{"all versions", Selection{Versions: hbase.AllVersions}, 400, 1200, 4},
		{"raw", Selection{Versions: hbase.AllVersions, Raw: true}, 400, 1216, 4},
		{"rows", Selection{Start: []byte("r150"), Stop: []byte("r250")}, 100, 200, 2},
		{"to a boundary", Selection{Stop: []byte("r200")}, 200, 400, 2},
		{"time", Selection{MinTime: 2, MaxTime: 9, Versions: 5}, 400, 400, 4},
		{"since", Selection{MinTime: 9}, 400, 400, 4},
		{"family", Selection{Families: []string{"g"}}, 400, 400, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.export")
			var last Progress
			got, err := Run(ctx, client, "t", path, Options{Selection: tt.what, Progress: func(p Progress) { last = p }})
			if err != nil {
				t.Fatal(err)
			}
			if got.Rows != tt.rows || got.Cells != tt.cells || last.Parts != tt.parts || last.OfParts != tt.parts || last.Totals != got {
				t.Fatalf("%+v, progress %+v", got, last)
			}
			if _, err := Run(ctx, client, "t", path, Options{Selection: tt.what}); err == nil || !strings.Contains(err.Error(), "exists already") {
				t.Errorf("over an export: %v", err)
			}
			copied := "copy_" + strings.ReplaceAll(tt.name, " ", "_")
			if _, err := Import(ctx, client, path, &ImportOptions{Table: copied}); !errors.Is(err, hbase.ErrTableNotFound) {
				t.Errorf("into no table: %v", err)
			}
			for range 2 { // the second time nothing changes
				back, err := Import(ctx, client, path, &ImportOptions{Table: copied, Create: true, Check: true})
				if err != nil || back != got {
					t.Fatalf("import: %+v, %v", back, err)
				}
			}
			d, err := client.Admin().Describe(ctx, copied)
			if err != nil || d.Family("f").Attribute("VERSIONS") != "3" {
				t.Errorf("%v, %v", d, err)
			}
			if starts, err := startKeys(ctx, client, copied); err != nil || len(starts) != 3 {
				t.Errorf("%q, %v", starts, err)
			}
		})
	}
	if _, err := Run(ctx, client, "none", filepath.Join(t.TempDir(), "x"), Options{}); !errors.Is(err, hbase.ErrTableNotFound) {
		t.Errorf("no such table: %v", err)
	}
}

// TestResume interrupts an export after its second region, damages what
// follows, and goes on.
func TestResume(t *testing.T) {
	client := cluster(t)
	tab := fill(t, client, "t")
	path := filepath.Join(t.TempDir(), "x")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, client, "t", path, Options{Progress: func(p Progress) {
		if p.Parts == 2 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := Import(t.Context(), client, path+".part", &ImportOptions{}); !errors.Is(err, ErrIncomplete) {
		t.Errorf("import of a part: %v", err)
	}
	f, err := os.OpenFile(path+".part", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("Chalf of a frame"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// What is read already is not read again.
	if err := tab.Put(t.Context(), hbase.NewPut("r001").SetAt("f", "late", 1, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), client, "t", path, Options{Selection: Selection{Versions: 2}}); err == nil || !strings.Contains(err.Error(), "unfinished export") {
		t.Errorf("with another selection: %v", err)
	}
	parts := 0
	got, err := Run(t.Context(), client, "t", path, Options{Progress: func(Progress) { parts++ }})
	if err != nil || got.Cells != 800 || parts != 2 {
		t.Fatalf("%+v after %d more parts, %v", got, parts, err)
	}
	if back, err := Import(t.Context(), client, path, &ImportOptions{Table: "copy", Create: true, Check: true}); err != nil || back != got {
		t.Errorf("%+v, %v", back, err)
	}
	// With Restart, from the beginning.
	if err := os.Rename(path, path+".part"); err != nil {
		t.Fatal(err)
	}
	if got, err := Run(t.Context(), client, "t", path, Options{Restart: true}); err != nil || got.Cells != 801 {
		t.Errorf("%+v, %v", got, err)
	}
	// A complete file under the name of a part becomes the export.
	if err := os.Rename(path, path+".part"); err != nil {
		t.Fatal(err)
	}
	if got, err := Run(t.Context(), client, "t", path, Options{}); err != nil || got.Cells != 801 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestImportRefuses(t *testing.T) {
	ctx := t.Context()
	client := cluster(t)
	fill(t, client, "t")
	path := filepath.Join(t.TempDir(), "x")
	if _, err := Run(ctx, client, "t", path, Options{}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Admin().CreateTable(ctx, admin.NewTable("u", admin.NewFamily("f"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(ctx, client, path, &ImportOptions{Table: "u"}); err == nil || !strings.Contains(err.Error(), `no family "g"`) {
		t.Errorf("without a family: %v", err)
	}
	bad := bytes.Clone(whole)
	bad[len(bad)*2/3] ^= 1
	badPath := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(badPath, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	var c *CorruptError
	if _, err := Import(ctx, client, badPath, &ImportOptions{Table: "v", Create: true}); !errors.As(err, &c) || !strings.Contains(err.Error(), badPath) {
		t.Errorf("damaged: %v", err)
	}
	if ok, err := client.Admin().TableExists(ctx, "v"); ok || err != nil {
		t.Errorf("a damaged file made a table: %v, %v", ok, err)
	}
	tab, err := client.Table("t")
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Put(ctx, hbase.NewPut("r000").SetAt("f", "more", 1, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(ctx, client, path, &ImportOptions{Check: true}); err == nil || !strings.Contains(err.Error(), "held something before") {
		t.Errorf("check of a table with more: %v", err)
	}
}

// file makes a small export without a cluster.
func file(t testing.TB, format int, list ...cells.Cell) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := newWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.begin(&Header{Format: format, Table: "t", Families: []Family{{Name: "f"}}}); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := w.add(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.part(nil), w.end(), w.close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func some(n int) []cells.Cell {
	list := make([]cells.Cell, n)
	for i := range list {
		list[i] = cells.Cell{Row: fmt.Appendf(nil, "%04d", i), Family: []byte("f"), Qualifier: []byte("q"), Timestamp: int64(i), Type: cells.Put, Value: bytes.Repeat([]byte{byte(i)}, i%50)}
	}
	return list
}

// TestDamage changes every byte of a file in turn, and cuts it off everywhere.
func TestDamage(t *testing.T) {
	var out bytes.Buffer
	w, err := newWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	list := some(20)
	if err := w.begin(&Header{Format: Version, Table: "t"}); err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := w.add(&list[i]); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			if err := w.part([]byte("0010")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.part(nil), w.end(), w.close()); err != nil {
		t.Fatal(err)
	}
	good := out.Bytes()
	if _, parts, got, err := Verify(bytes.NewReader(good), "x"); err != nil || got.Cells != 20 || got.Rows != 20 || parts != 2 {
		t.Fatalf("%d parts, %+v, %v", parts, got, err)
	}
	typed := func(err error) bool {
		var c *CorruptError
		return errors.As(err, &c) || errors.Is(err, ErrIncomplete) || errors.Is(err, ErrNewer)
	}
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if _, _, _, err := Verify(bytes.NewReader(bad), "x"); !typed(err) {
			t.Fatalf("byte %d changed: %v", i, err)
		}
		if _, _, _, err := Verify(bytes.NewReader(good[:i]), "x"); !typed(err) {
			t.Fatalf("cut off at %d: %v", i, err)
		}
	}
	if _, _, _, err := Verify(bytes.NewReader(append(bytes.Clone(good), 0)), "x"); !typed(err) {
		t.Errorf("a byte more: %v", err)
	}
	// Whole frames that are missing or stand in another order.
	frames := cut(t, good)
	for i := range frames {
		without := []byte(magic)
		for k, f := range frames {
			if k != i {
				without = append(without, f...)
			}
		}
		if _, _, _, err := Verify(bytes.NewReader(without), "x"); !typed(err) {
			t.Errorf("without frame %d: %v", i, err)
		}
	}
}

func cut(t *testing.T, file []byte) (frames [][]byte) {
	t.Helper()
	for b := file[len(magic):]; len(b) > 0; {
		n := frameHead + int(binary.BigEndian.Uint32(b[1:])) + 4
		frames = append(frames, b[:n])
		b = b[n:]
	}
	return frames
}

func TestNewerIsRefused(t *testing.T) {
	b := file(t, Version+1)
	if _, _, _, err := Verify(bytes.NewReader(b), "x"); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "format 2") {
		t.Error(err)
	}
	// A header of a form nobody knows yet, too.
	body := []byte(`{"format":7,"table":["a","b"]}`)
	raw := append([]byte{frameHeader}, binary.BigEndian.AppendUint32(nil, uint32(len(body)))...)
	raw = append(raw, body...)
	raw = binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
	if _, err := NewReader(bytes.NewReader(append([]byte(magic), raw...)), "x"); !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(file(f, Version, some(3)...))
	f.Add(file(f, Version, some(200)...))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _, totals, err := Verify(bytes.NewReader(b), "x")
		if err == nil && totals.Cells > int64(len(b))*maxFrame {
			t.Error("impossible")
		}
	})
}

// FuzzCells feeds the cells of a frame, which checksums keep FuzzReader from
// reaching; what is read is written again the same way.
func FuzzCells(f *testing.F) {
	list := some(2)
	f.Add(appendCell(appendCell(nil, &list[0]), &list[1]))
	f.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			c, rest, err := cutCell(b)
			if err != nil {
				return
			}
			again, _, err := cutCell(appendCell(nil, &c))
			if err != nil || cells.Compare(&again, &c) != 0 || !bytes.Equal(again.Value, c.Value) {
				t.Fatalf("%v became %v, %v", &c, &again, err)
			}
			b = rest
		}
	})
}
