package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// sample makes sorted cells of one family with the shapes that encodings treat
// in different ways.
func sample(seed uint64, n int) []cells.Cell {
	r := rand.New(rand.NewPCG(seed, 1))
	text := func(max int) []byte {
		b := make([]byte, r.IntN(max+1))
		for i := range b {
			b[i] = "ab\x00\xff"[r.IntN(4)]
		}
		return b
	}
	types := []cells.Type{cells.Put, cells.Put, cells.Put, cells.Delete, cells.DeleteColumn, cells.DeleteFamily}
	list := make([]cells.Cell, n)
	for i := range list {
		c := &list[i]
		c.Row = append(text(6), 'r')
		c.Family = []byte("fam")
		c.Qualifier = text(5)
		c.Timestamp = []int64{0, 1, 255, 1 << 20, 1700000000000 + r.Int64N(3), 1<<63 - 1}[r.IntN(6)]
		c.Type = types[r.IntN(len(types))]
		c.Value = [][]byte{nil, []byte("same"), text(300)}[r.IntN(3)]
		c.Seq = uint64(r.Int64N(3) * r.Int64N(1<<40))
		if r.IntN(3) == 0 {
			c.Tags = cells.AppendTag(cells.TTLTag(r.Int64N(200)), 70, text(3))
		}
	}
	slices.SortFunc(list, func(a, b cells.Cell) int { return cells.Compare(&a, &b) })
	return list
}

func write(t testing.TB, o WriterOptions, list []cells.Cell) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if err := w.Append(&list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func open(t testing.TB, file []byte) *Reader {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "memory")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	list := sample(7, 500)
	for enc := range encodingNames {
		for _, codec := range []Compression{CompressionNone, CompressionGZ, CompressionSnappy, CompressionLZ4, CompressionZstd} {
			for _, o := range []WriterOptions{
				{},
				{BlockBytes: 900, IndexBytes: 120, BloomBytes: 64, BytesPerChecksum: 100, Checksum: ChecksumCRC32, PlainTags: true},
			} {
				o.Encoding, o.Compression = enc, codec
				t.Run(fmt.Sprint(enc, codec, o.BlockBytes), func(t *testing.T) {
					r := open(t, write(t, o, list))
					got := readAll(t, r)
					for i := range max(len(got), len(list)) {
						if i >= len(got) || i >= len(list) || got[i] != dump(&list[i]) {
							t.Fatalf("cell %d of %d: got %s, want %v", i, len(list), at(got, i), &list[i])
						}
					}
					testSeek(t, r)
					if levels := r.Trailer().IndexLevels; (levels > 2) != (o.IndexBytes != 0) {
						t.Errorf("%d index levels", levels)
					}
				})
			}
		}
	}
}

func TestEmptyFile(t *testing.T) {
	r := open(t, write(t, WriterOptions{}, nil))
	if got := readAll(t, r); len(got) != 0 {
		t.Errorf("%d cells", len(got))
	}
	if _, ok, err := r.FirstKey(); ok || err != nil {
		t.Error(ok, err)
	}
	if _, ok, err := r.LastKey(); ok || err != nil {
		t.Error(ok, err)
	}
	if s, err := r.Seek([]byte("a")); err != nil || s.Next() || s.Err() != nil {
		t.Error(err, s.Err())
	}
}

func TestWriterRefuses(t *testing.T) {
	a := cells.Cell{Row: []byte("b"), Family: []byte("f"), Type: cells.Put}
	for name, c := range map[string]cells.Cell{
		"no row":       {Family: []byte("f"), Type: cells.Put},
		"long row":     {Row: make([]byte, 1<<15), Family: []byte("f")},
		"out of order": {Row: []byte("a"), Family: []byte("f"), Type: cells.Put},
		"other family": {Row: []byte("c"), Family: []byte("g"), Type: cells.Put},
		"broken tags":  {Row: []byte("c"), Family: []byte("f"), Tags: []byte{0, 9, 1}},
	} {
		w, err := NewWriter(io.Discard, WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&a); err != nil {
			t.Fatal(err)
		}
		if err := w.Append(&c); err == nil {
			t.Errorf("%s: taken", name)
		}
		if err := w.Close(); err != nil {
			t.Errorf("%s: a refused cell ended the file: %v", name, err)
		}
	}
	if _, err := NewWriter(io.Discard, WriterOptions{Compression: CompressionBrotli}); err == nil {
		t.Error("BROTLI taken")
	}
	w, err := NewWriter(failing{}, WriterOptions{BlockBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Append(&a), w.Close()); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestDamage flips every byte of a file in turn, and cuts it off everywhere:
// whatever a scan finds must be an error or what was written.
func TestDamage(t *testing.T) {
	list := sample(3, 40)
	for _, o := range []WriterOptions{
		{BlockBytes: 300, IndexBytes: 80, Encoding: EncodingFastDiff},
		{BlockBytes: 300, IndexBytes: 80, Compression: CompressionSnappy, Encoding: EncodingDiff},
	} {
		file := write(t, o, list)
		want := strings.Join(scan(t, file), "\n")
		blocks := len(file) - trailerLen
		silent := 0
		for i := range blocks {
			bad := bytes.Clone(file)
			bad[i] ^= 0x41
			if got := scan(t, bad); got != nil {
				silent++
				if strings.Join(got, "\n") != want {
					t.Fatalf("byte %d changed: other cells without an error", i)
				}
			}
		}
		// Blocks that a scan passes by (indexes and bloom chunks) are not read.
		if silent > blocks/2 {
			t.Errorf("%d of %d damages unnoticed", silent, blocks)
		}
		for i := 0; i < len(file); i += 7 {
			if got := scan(t, file[:i]); got != nil {
				t.Fatalf("cut off at %d: no error", i)
			}
		}
	}
}

// scan gives a file's cells; nil if it is refused, which must happen with a
// typed error.
func scan(t testing.TB, file []byte) []string {
	typed := func(err error) {
		t.Helper()
		var c *CorruptError
		var u *UnsupportedError
		if !errors.As(err, &c) && !errors.As(err, &u) {
			t.Fatalf("error of type %T: %v", err, err)
		}
		if !strings.Contains(err.Error(), "hfile memory: ") {
			t.Fatalf("error does not name the file: %v", err)
		}
	}
	r, err := NewReader(bytes.NewReader(file), int64(len(file)), "memory")
	if err != nil {
		typed(err)
		return nil
	}
	got := []string{}
	s := r.Scan()
	for s.Next() {
		got = append(got, dump(s.Cell()))
	}
	if err := s.Err(); err != nil {
		typed(err)
		return nil
	}
	return got
}

func TestRefuses(t *testing.T) {
	file := write(t, WriterOptions{}, sample(1, 10))
	version := func(major, minor uint32) []byte {
		b := bytes.Clone(file)
		binary.BigEndian.PutUint32(b[len(b)-4:], minor<<24|major)
		return b
	}
	for name, b := range map[string][]byte{"version 2": version(2, 3), "version 4": version(4, 0), "minor 9": version(3, 9)} {
		_, err := NewReader(bytes.NewReader(b), int64(len(b)), "f")
		var u *UnsupportedError
		if !errors.As(err, &u) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a directory opened")
	}
	if _, err := Open("testdata/none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestHadoopBlocks reads what other writers of Hadoop's block format may
// write: several blocks, and several pieces in one.
func TestHadoopBlocks(t *testing.T) {
	plain := bytes.Repeat([]byte("0123456789"), 50_000) // four pieces
	for _, codec := range []Compression{CompressionSnappy, CompressionLZ4} {
		packed, err := compress(codec, nil, plain)
		if err != nil {
			t.Fatal(err)
		}
		twice := append(bytes.Clone(packed), packed...)
		got, err := decompress(codec, twice, 2*len(plain))
		if err != nil || !bytes.Equal(got, append(bytes.Clone(plain), plain...)) {
			t.Errorf("%v: %d bytes, %v", codec, len(got), err)
		}
		if _, err := decompress(codec, packed, len(plain)+1); err == nil {
			t.Errorf("%v: wrong size taken", codec)
		}
		if _, err := decompress(codec, packed[:len(packed)-1], len(plain)); err == nil {
			t.Errorf("%v: cut off taken", codec)
		}
	}
	frame, err := compress(CompressionZstd, nil, plain)
	if err != nil {
		t.Fatal(err)
	}
	blocked := binary.BigEndian.AppendUint32(nil, uint32(len(plain)))
	blocked = binary.BigEndian.AppendUint32(blocked, uint32(len(frame)))
	if got, err := decompress(CompressionZstd, append(blocked, frame...), len(plain)); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("zstd in blocks: %d bytes, %v", len(got), err)
	}
	noise := make([]byte, 3000)
	for i := range noise {
		noise[i] = byte(i * i >> 3)
	}
	for n := range 600 {
		packed, err := compress(CompressionLZ4, nil, noise[:n])
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decompress(CompressionLZ4, packed, n); err != nil || !bytes.Equal(got, noise[:n]) {
			t.Fatalf("lz4 of %d: %v", n, err)
		}
	}
}

func TestTagDictEvicts(t *testing.T) {
	w, r := newTagDict(), newTagDict()
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		tag := fmt.Appendf(nil, "%d", rnd.IntN(200))
		n, known := w.find(tag)
		if !known {
			r.add(tag)
			continue
		}
		if got, ok := r.get(n); !ok || got != string(tag) {
			t.Fatalf("step %d: number %d is %q, not %q", i, n, got, tag)
		}
	}
	if _, ok := r.get(127); ok {
		t.Error("more entries than there may be")
	}
}

func TestVLong(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 127, 128, -112, -113, 255, 256, 1 << 40, -1 << 40, 1<<63 - 1, -1 << 63} {
		b := appendVLong(nil, v)
		if got, n := vLong(b); got != v || n != len(b) {
			t.Errorf("%d: %d from %x", v, got, b)
		}
		if _, n := vLong(b[:len(b)-1]); n != 0 {
			t.Errorf("%d cut off: %d", v, n)
		}
	}
}

// FuzzReader feeds whole files: no panic, no other error than the typed ones,
// and bounded time.
func FuzzReader(f *testing.F) {
	for enc := range encodingNames {
		f.Add(write(f, WriterOptions{Encoding: enc, BlockBytes: 200, IndexBytes: 60}, sample(5, 20)))
		f.Add(write(f, WriterOptions{Encoding: enc, Compression: CompressionLZ4}, sample(6, 9)))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		scan(t, file)
		r, err := NewReader(bytes.NewReader(file), int64(len(file)), "memory")
		if err != nil {
			return
		}
		if s, err := r.Seek([]byte("b")); err == nil {
			s.Next()
		}
		_, _ = r.MayContain([]byte("b"))
	})
}

// FuzzBlock feeds the cells of a data block, which checksums keep FuzzReader
// from reaching.
func FuzzBlock(f *testing.F) {
	for enc := range encodingNames {
		e := encoder{enc: enc, packedTags: true}
		e.start(nil)
		for _, c := range sample(9, 12) {
			e.add(&c)
		}
		b := e.finish()
		if enc != EncodingNone {
			b = b[idLen:]
		}
		f.Add(uint16(enc), b)
	}
	f.Fuzz(func(t *testing.T, enc uint16, payload []byte) {
		for _, packed := range []bool{true, false} {
			d := decoder{tags: true, mvcc: packed, packedTags: packed}
			if d.start(Encoding(enc), payload) != nil {
				continue
			}
			var c cells.Cell
			for n := 0; ; n++ {
				if ok, err := d.next(&c); !ok || err != nil {
					break
				}
				if n > len(payload) {
					t.Fatal("more cells than bytes")
				}
			}
		}
	})
}
