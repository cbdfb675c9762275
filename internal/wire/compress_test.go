package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/snappy"
	"go.uber.org/goleak"

	"github.com/holdfast-hbase/holdfast/internal/spoil"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func compressors(t testing.TB, limit int) []*Compressor {
	t.Helper()
	var all []*Compressor
	for _, kind := range []Compression{NoCompression, Gzip, Snappy, LZ4, Zstd, Deflate} {
		c, err := NewCompressor(kind, limit)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

func blocks() map[string][]byte {
	random := make([]byte, 700_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	return map[string][]byte{
		"empty": {}, "one byte": {7}, "text": bytes.Repeat([]byte("row-0001/family:qualifier "), 40_000), "random": random,
		"exactly a snappy chunk": make([]byte, snappyChunk), "one more than an lz4 chunk": make([]byte, lz4Chunk+1),
	}
}

func TestCompressBothWays(t *testing.T) {
	for _, c := range compressors(t, 0) {
		for name, block := range blocks() {
			for range 2 { // the second time with a used coder
				packed, err := c.Compress([]byte("x"), block)
				if err != nil || packed[0] != 'x' {
					t.Fatalf("%v, %s: %v", c.Kind(), name, err)
				}
				packed = packed[1:]
				if len(block) == 0 && len(packed) != 0 {
					t.Errorf("%v: an empty block became %d bytes", c.Kind(), len(packed))
				}
				got, err := c.Decompress([]byte("y"), packed)
				if err != nil || got[0] != 'y' || !bytes.Equal(got[1:], block) {
					t.Errorf("%v, %s: %d bytes back of %d, %v", c.Kind(), name, len(got)-1, len(block), err)
				}
			}
		}
	}
}

func TestDecompressIsBounded(t *testing.T) {
	block := make([]byte, 1<<20)
	for _, small := range compressors(t, 1<<20-1) {
		exact, err := NewCompressor(small.Kind(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := exact.Compress(nil, block)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := exact.Decompress(nil, packed); err != nil || len(got) != len(block) {
			t.Errorf("%v at the limit: %d, %v", small.Kind(), len(got), err)
		}
		var tl *TooLargeError
		if _, err := small.Decompress(nil, packed); !errors.As(err, &tl) {
			t.Errorf("%v over the limit: %v", small.Kind(), err)
		}
		// The coder is still good.
		if got, err := small.Decompress(nil, nil); err != nil || len(got) != 0 {
			t.Errorf("%v after the error: %v", small.Kind(), err)
		}
	}
}

func TestBlockStreams(t *testing.T) {
	c, err := NewCompressor(Snappy, 1000)
	if err != nil {
		t.Fatal(err)
	}
	thirty := bytes.Repeat([]byte("a1"), 15)
	literal := append([]byte{0x1e, 29 << 2}, thirty...)
	u32 := func(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	one := join(u32(30), u32(0x20), literal)
	half := snappy.Encode(nil, thirty[:10])
	tests := []struct {
		name string
		in   []byte
		want []byte // nil = malformed
	}{
		{"one block, one chunk", one, thirty},
		{"two blocks", join(one, one), join(thirty, thirty)},
		{"two chunks of one block", join(u32(20), u32(uint32(len(half))), half, u32(uint32(len(half))), half), join(thirty[:10], thirty[:10])},
		{"ended by zero", join(one, u32(0), []byte("ignored")), thirty},
		{"only zero", u32(0), []byte{}},
		{"short length", one[:3], nil},
		{"no chunk", u32(30), nil},
		{"short chunk", one[:len(one)-1], nil},
		{"empty chunk", join(u32(30), u32(0)), nil},
		{"chunk longer than its block", join(u32(29), one[4:]), nil},
		{"block longer than its chunk", join(u32(31), one[4:]), nil},
		{"lying chunk", join(u32(900), u32(3), []byte{0x84, 0x07, 0}), nil},
		{"no snappy", join(u32(30), u32(2), []byte{0xff, 0xff}), nil},
	}
	for _, tt := range tests {
		got, err := c.Decompress(nil, tt.in)
		var fe *FormatError
		if tt.want != nil && (err != nil || !bytes.Equal(got, tt.want)) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		if tt.want == nil && !errors.As(err, &fe) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	var tl *TooLargeError
	if _, err := c.Decompress(nil, join(u32(1<<31), u32(1), []byte{0})); !errors.As(err, &tl) {
		t.Errorf("huge block: %v", err)
	}
}

func TestCompressionNames(t *testing.T) {
	for c := NoCompression; c <= Deflate; c++ {
		if got, err := CompressionByName(c.String()); got != c || err != nil {
			t.Errorf("CompressionByName(%q) = %v, %v", c.String(), got, err)
		}
		if got, err := CompressionByClass(c.ClassName()); got != c || err != nil {
			t.Errorf("CompressionByClass(%q) = %v, %v", c.ClassName(), got, err)
		}
	}
	if got, err := CompressionByClass("org.apache.hadoop.io.compress.DeflateCodec"); got != Deflate || err != nil {
		t.Errorf("DeflateCodec = %v, %v", got, err)
	}
	if _, err := CompressionByName("lzo"); err == nil {
		t.Error("lzo is known")
	}
	var re *RemoteError
	if _, err := CompressionByClass("com.hadoop.compression.lzo.LzoCodec"); !errors.As(err, &re) || re.Class != ClassUnsupportedCompression || !re.Fatal() {
		t.Errorf("LzoCodec: %v", err)
	}
	if _, err := NewCompressor(99, 0); err == nil {
		t.Error("compression 99 is known")
	}
}

func FuzzDecompress(f *testing.F) {
	all := compressors(f, 1<<20)
	for i, c := range all {
		packed, err := c.Compress(nil, []byte("hello hello hello hello"))
		if err != nil {
			f.Fatal(err)
		}
		spoil.Add(f, byte(i), packed)
	}
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		c := all[int(kind)%len(all)]
		got, err := c.Decompress(nil, data)
		if err == nil && len(got) > 1<<20 && c.Kind() != NoCompression {
			t.Fatalf("%d bytes over the limit", len(got))
		}
		var fe *FormatError
		var tl *TooLargeError
		if err != nil && !errors.As(err, &fe) && !errors.As(err, &tl) {
			t.Fatalf("untyped error %v", err)
		}
	})
}

func BenchmarkCompress(b *testing.B) {
	block := blocks()["text"]
	for _, c := range compressors(b, 0)[1:] {
		b.Run(c.Kind().String(), func(b *testing.B) {
			var packed, back []byte
			b.SetBytes(int64(len(block)))
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if packed, err = c.Compress(packed[:0], block); err != nil {
					b.Fatal(err)
				}
				if back, err = c.Decompress(back[:0], packed); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
