package wire

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func sampleCells() []cells.Cell {
	return []cells.Cell{
		oneCell,
		{Row: []byte("r"), Type: cells.DeleteFamily, Family: []byte("fam"), Timestamp: cells.LatestTimestamp},
		{Row: bytes.Repeat([]byte("R"), cells.MaxRowLength), Family: bytes.Repeat([]byte("F"), cells.MaxFamilyLength), Qualifier: []byte{}, Type: cells.Put, Value: make([]byte, 70000)},
		{Row: []byte{0}, Family: []byte("f"), Qualifier: bytes.Repeat([]byte("q"), 70000), Timestamp: -1, Type: cells.Maximum, Tags: []byte("\x00\x02\x08x")},
	}
}

func TestCellsBothWays(t *testing.T) {
	list := sampleCells()
	for _, codec := range []Codec{KeyValueCodec, KeyValueCodecWithTags} {
		block, err := codec.AppendCells([]byte("x"), list)
		if err != nil {
			t.Fatal(err)
		}
		block = block[1:]
		size := 0
		want := make([]cells.Cell, len(list))
		for i := range list {
			size += codec.CellSize(&list[i])
			want[i] = list[i]
			if codec == KeyValueCodec {
				want[i].Tags = nil
			}
		}
		if size != len(block) {
			t.Errorf("%v: CellSize sums to %d, block has %d bytes", codec, size, len(block))
		}
		got, err := codec.DecodeCells(block, nil)
		if d := cmp.Diff(want, got, cmp.Comparer(bytes.Equal)); err != nil || d != "" {
			t.Errorf("%v: %v\n%s", codec, err, d)
		}
		if n, err := CountCells(block); n != len(list) || err != nil {
			t.Errorf("CountCells = %d, %v", n, err)
		}
		var each []cells.Cell
		for c, err := range codec.Cells(block) {
			if err != nil {
				t.Fatal(err)
			}
			each = append(each, c)
		}
		if d := cmp.Diff(want, each, cmp.Comparer(bytes.Equal)); d != "" {
			t.Errorf("%v: iterator: %s", codec, d)
		}
		r := codec.Reader(block)
		if err := r.Skip(2); err != nil {
			t.Fatal(err)
		}
		two, err := r.Take(2, nil)
		if d := cmp.Diff(want[2:], two, cmp.Comparer(bytes.Equal)); err != nil || d != "" || r.More() {
			t.Errorf("%v: after Skip: %v\n%s", codec, err, d)
		}
		if _, err := r.Take(1, nil); err == nil {
			t.Error("Take past the end: no error")
		}
		if err := r.Skip(1); err == nil {
			t.Error("Skip past the end: no error")
		}
	}
}

// A server with tags in its store may send them to a KeyValueCodec client.
func TestTagsAreDroppedWithoutTheirCodec(t *testing.T) {
	block, err := KeyValueCodecWithTags.AppendCells(nil, sampleCells()[3:])
	if err != nil {
		t.Fatal(err)
	}
	got, err := KeyValueCodec.DecodeCells(block, nil)
	if err != nil || len(got) != 1 || got[0].Tags != nil {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCellLimits(t *testing.T) {
	tests := []struct {
		name string
		cell cells.Cell
	}{
		{"row", cells.Cell{Row: make([]byte, cells.MaxRowLength+1)}},
		{"family", cells.Cell{Family: make([]byte, cells.MaxFamilyLength+1)}},
		{"tags", cells.Cell{Tags: make([]byte, cells.MaxTagsLength+1)}},
	}
	for _, tt := range tests {
		got, err := KeyValueCodecWithTags.AppendCell([]byte("a"), &tt.cell)
		var tl *TooLargeError
		if !errors.As(err, &tl) || tl.What != tt.name || string(got) != "a" {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}

func TestMalformedCells(t *testing.T) {
	good := unhex(t, oneCellHex)
	change := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	tests := []struct {
		name string
		in   []byte
	}{
		{"cut in the length", good[:3]},
		{"cut in the cell", good[:len(good)-1]},
		{"longer than the block", change(3, 0x1b)},
		{"negative length", change(0, 0xff)},
		{"key too short", change(7, 11)},
		{"key too long", change(7, 0x13)},
		{"negative key", change(4, 0x80)},
		{"value too long", change(11, 3)},
		{"negative value", change(8, 0xff)},
		{"row too long", change(13, 7)},
		{"negative row", change(12, 0x80)},
		{"family too long", change(16, 4)},
		{"negative family", change(16, 0x80)},
		{"trailing byte", change(11, 1)},
		{"second cell broken", append(bytes.Clone(good), 0, 0, 0, 1, 0)},
	}
	for _, tt := range tests {
		_, err := KeyValueCodec.DecodeCells(tt.in, nil)
		var fe *FormatError
		if !errors.As(err, &fe) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestDecodedCellsDoNotGrowIntoEachOther(t *testing.T) {
	block, _ := KeyValueCodec.AppendCells(nil, []cells.Cell{oneCell, oneCell})
	keep := bytes.Clone(block)
	got, err := KeyValueCodec.DecodeCells(block, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range got {
		_ = append(c.Row, "xxxx"...)
		_ = append(c.Family, "xxxx"...)
		_ = append(c.Qualifier, "xxxx"...)
		_ = append(c.Value, "xxxx"...)
	}
	if !bytes.Equal(block, keep) {
		t.Error("appending to a part of a cell changed the block")
	}
}

func TestCodecNames(t *testing.T) {
	for _, c := range []Codec{CodecNone, KeyValueCodec, KeyValueCodecWithTags} {
		if got, err := CodecByClass(c.ClassName()); got != c || err != nil {
			t.Errorf("CodecByClass(%q) = %v, %v", c.ClassName(), got, err)
		}
	}
	var re *RemoteError
	if _, err := CodecByClass("org.apache.hadoop.hbase.codec.MessageCodec"); !errors.As(err, &re) || re.Class != ClassUnsupportedCellCodec {
		t.Errorf("unknown codec: %v", err)
	}
}

func FuzzCells(f *testing.F) {
	for _, codec := range []Codec{KeyValueCodec, KeyValueCodecWithTags} {
		block, err := codec.AppendCells(nil, []cells.Cell{oneCell, sampleCells()[1], {Row: []byte("r"), Type: cells.Put, Tags: []byte("\x00\x02\x08x")}})
		if err != nil {
			f.Fatal(err)
		}
		spoil.Add(f, block)
		spoil.Add(f, block[:len(block)-1])
	}
	f.Fuzz(func(t *testing.T, block []byte) {
		plain, err := KeyValueCodec.DecodeCells(block, nil)
		list, err2 := KeyValueCodecWithTags.DecodeCells(block, nil)
		if fmt.Sprint(err) != fmt.Sprint(err2) || len(plain) != len(list) {
			t.Fatalf("codecs disagree: %v, %v", err, err2)
		}
		if err != nil {
			return
		}
		// What we accept we write again byte for byte, but for empty tags.
		again, err := KeyValueCodecWithTags.AppendCells(nil, list)
		if err != nil {
			t.Fatal(err)
		}
		back, err := KeyValueCodecWithTags.DecodeCells(again, nil)
		if d := cmp.Diff(list, back, cmp.Comparer(bytes.Equal)); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
		n, err := CountCells(block)
		if n != len(list) || err != nil {
			t.Fatalf("CountCells = %d, %v, want %d", n, err, len(list))
		}
	})
}

func BenchmarkAppendCell(b *testing.B) {
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = KeyValueCodec.AppendCell(buf[:0], &oneCell); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeCells1000(b *testing.B) {
	list := make([]cells.Cell, 1000)
	for i := range list {
		list[i] = oneCell
		list[i].Value = make([]byte, 100)
	}
	block, err := KeyValueCodec.AppendCells(nil, list)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(block)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := KeyValueCodec.DecodeCells(block, nil); err != nil {
			b.Fatal(err)
		}
	}
}
