package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression names how cell blocks are compressed.
type Compression uint8

const (
	NoCompression Compression = iota
	Gzip
	Snappy
	LZ4
	Zstd
	Deflate
)

// compressions lists, per compression, the names it goes by in settings (the
// first is the canonical one) and its Hadoop codec class. The first class
// goes into connection headers.
var compressions = [...]struct {
	names, classes []string
}{
	NoCompression: {names: []string{"none", ""}, classes: []string{""}},
	Gzip:          {names: []string{"gzip", "gz"}, classes: []string{hadoopCodecs + "GzipCodec"}},
	Snappy:        {names: []string{"snappy"}, classes: []string{hadoopCodecs + "SnappyCodec"}},
	LZ4:           {names: []string{"lz4"}, classes: []string{hadoopCodecs + "Lz4Codec"}},
	Zstd:          {names: []string{"zstd", "zstandard"}, classes: []string{hadoopCodecs + "ZStandardCodec"}},
	Deflate:       {names: []string{"deflate", "zlib"}, classes: []string{hadoopCodecs + "DefaultCodec", hadoopCodecs + "DeflateCodec"}},
}

const hadoopCodecs = "org.apache.hadoop.io.compress."

// String is the name used in settings.
func (c Compression) String() string {
	if int(c) < len(compressions) {
		return compressions[c].names[0]
	}
	return "invalid"
}

// ClassName is the Java class for the connection header, "" for none.
func (c Compression) ClassName() string {
	if int(c) < len(compressions) {
		return compressions[c].classes[0]
	}
	return ""
}

// CompressionByName reads a setting: none, gzip, snappy, lz4, zstd, deflate.
func CompressionByName(name string) (Compression, error) {
	for c := range compressions {
		for _, n := range compressions[c].names {
			if strings.EqualFold(n, name) {
				return Compression(c), nil
			}
		}
	}
	return NoCompression, malformed("setting", "unknown compression %q: use none, gzip, snappy, lz4, zstd or deflate", cutText(name, 64))
}

// CompressionByClass finds the compressor of a connection header. The empty
// name is NoCompression; one we do not have gives the exception to answer with.
func CompressionByClass(class string) (Compression, error) {
	for c := range compressions {
		for _, n := range compressions[c].classes {
			if n == class {
				return Compression(c), nil
			}
		}
	}
	return NoCompression, NewRemoteError(ClassUnsupportedCompression, "unsupported: compression codec "+class)
}

// Compressor compresses and decompresses whole cell blocks in the stream form
// of Hadoop's codecs. It keeps coders for reuse; safe for concurrent use.
type Compressor struct {
	kind Compression
	// limit bounds a decompressed block.
	limit int

	writers sync.Pool // *gzip.Writer, *zlib.Writer or *lz4.Compressor
	readers sync.Pool // *gzip.Reader, zlib reader or *zstd.Decoder
	zstd    *zstd.Encoder
}

// NewCompressor makes a compressor. limit bounds a decompressed block in
// bytes, 0 = DefaultMaxCellBlock. With NoCompression both directions hand
// their input on.
func NewCompressor(kind Compression, limit int) (*Compressor, error) {
	if limit <= 0 {
		limit = DefaultMaxCellBlock
	}
	c := &Compressor{kind: kind, limit: limit}
	switch kind {
	case NoCompression, Gzip, Snappy, LZ4, Deflate:
	case Zstd:
		// EncodeAll may be called from many goroutines; the encoder makes one
		// state per concurrent call, up to the concurrency, and no goroutines.
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(2), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
		if err != nil {
			return nil, err
		}
		c.zstd = e
	default:
		return nil, malformed("setting", "unknown compression %d", kind)
	}
	return c, nil
}

// Kind says which compression this is.
func (c *Compressor) Kind() Compression { return c.kind }

// Largest pieces of a block stream, as Hadoop's codecs with their default
// buffer of 256 KiB have it.
const (
	snappyChunk = 262144 - (262144/6 + 32)
	lz4Chunk    = 262144 - (262144/255 + 16)
)

// Compress appends the compressed form of block to dst. An empty block stays
// empty.
func (c *Compressor) Compress(dst, block []byte) ([]byte, error) {
	if len(block) == 0 || c.kind == NoCompression {
		return append(dst, block...), nil
	}
	switch c.kind {
	case Snappy:
		return compressBlocks(dst, block, snappyChunk, func(dst, chunk []byte) ([]byte, error) {
			at := len(dst)
			dst = grow(dst, snappy.MaxEncodedLen(len(chunk)))
			enc := snappy.Encode(dst[at:cap(dst)], chunk)
			return dst[:at+len(enc)], nil
		})
	case LZ4:
		z, _ := c.writers.Get().(*lz4.Compressor)
		if z == nil {
			z = new(lz4.Compressor)
		}
		defer c.writers.Put(z)
		return compressBlocks(dst, block, lz4Chunk, func(dst, chunk []byte) ([]byte, error) {
			at := len(dst)
			dst = grow(dst, lz4.CompressBlockBound(len(chunk)))
			n, err := z.CompressBlock(chunk, dst[at:cap(dst)])
			if err == nil && n == 0 {
				err = errors.New("lz4: chunk does not fit its bound")
			}
			return dst[:at+n], err
		})
	case Zstd:
		return c.zstd.EncodeAll(block, dst), nil
	}
	buf := bytes.NewBuffer(dst)
	switch c.kind {
	case Gzip:
		w, _ := c.writers.Get().(*gzip.Writer)
		if w == nil {
			w = gzip.NewWriter(buf)
		} else {
			w.Reset(buf)
		}
		defer c.writers.Put(w)
		if _, err := w.Write(block); err != nil {
			return dst, err
		}
		if err := w.Close(); err != nil {
			return dst, err
		}
	case Deflate:
		w, _ := c.writers.Get().(*zlib.Writer)
		if w == nil {
			w = zlib.NewWriter(buf)
		} else {
			w.Reset(buf)
		}
		defer c.writers.Put(w)
		if _, err := w.Write(block); err != nil {
			return dst, err
		}
		if err := w.Close(); err != nil {
			return dst, err
		}
	}
	return buf.Bytes(), nil
}

// compressBlocks writes one block of several chunks, as a Hadoop stream does
// for a single large write:
//
//	i32 uncompressed length, then per chunk: i32 compressed length, bytes
func compressBlocks(dst, block []byte, chunk int, enc func(dst, chunk []byte) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(block)))
	for len(block) > 0 {
		n := min(chunk, len(block))
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		var err error
		if dst, err = enc(dst, block[:n]); err != nil {
			return dst[:start], err
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
		block = block[n:]
	}
	return dst, nil
}

// Decompress appends the decompressed form of data to dst. What passes the
// limit gives a *TooLargeError, anything else that is wrong a *FormatError.
// With NoCompression and an empty dst the data itself comes back.
func (c *Compressor) Decompress(dst, data []byte) ([]byte, error) {
	if c.kind == NoCompression {
		if len(data) > c.limit {
			return dst, c.tooLarge(len(data))
		}
		if len(dst) == 0 {
			return data, nil
		}
		return append(dst, data...), nil
	}
	if len(data) == 0 {
		return dst, nil
	}
	switch c.kind {
	case Snappy:
		return c.decompressBlocks(dst, data, func(dst, chunk []byte, left int) ([]byte, error) {
			n, err := snappy.DecodedLen(chunk)
			if err != nil {
				return dst, err
			}
			if n > left {
				return dst, errors.New("chunk is longer than its block")
			}
			// The decoder needs n bytes at once. Snappy stores at most 64 bytes
			// in three of input, so more is a lie.
			if n > 32*len(chunk) {
				return dst, snappy.ErrCorrupt
			}
			at := len(dst)
			dst = grow(dst, n)
			out, err := snappy.Decode(dst[at:at+n], chunk)
			return dst[:at+len(out)], err
		})
	case LZ4:
		return c.decompressBlocks(dst, data, func(dst, chunk []byte, left int) ([]byte, error) {
			// An LZ4 block does not say its size; a byte stands for at most
			// 255.
			room := min(left, 255*len(chunk)+64)
			at := len(dst)
			dst = grow(dst, room)
			n, err := lz4.UncompressBlock(chunk, dst[at:at+room])
			return dst[:at+max(n, 0)], err
		})
	case Gzip:
		r, _ := c.readers.Get().(*gzip.Reader)
		src := bytes.NewReader(data)
		var err error
		if r == nil {
			r, err = gzip.NewReader(src)
		} else {
			err = r.Reset(src)
		}
		if err != nil {
			return dst, malformed("gzip block", "%v", err)
		}
		defer c.readers.Put(r)
		return c.readAll(dst, r, "gzip block")
	case Deflate:
		r, _ := c.readers.Get().(io.ReadCloser)
		src := bytes.NewReader(data)
		var err error
		if r == nil {
			r, err = zlib.NewReader(src)
		} else {
			err = r.(zlib.Resetter).Reset(src, nil)
		}
		if err != nil {
			return dst, malformed("deflate block", "%v", err)
		}
		defer c.readers.Put(r)
		return c.readAll(dst, r, "deflate block")
	case Zstd:
		r, _ := c.readers.Get().(*zstd.Decoder)
		src := bytes.NewReader(data)
		var err error
		if r == nil {
			// Concurrency 1 decodes on the caller's goroutine.
			r, err = zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
		} else {
			err = r.Reset(src)
		}
		if err != nil {
			return dst, malformed("zstd block", "%v", err)
		}
		defer c.readers.Put(r)
		return c.readAll(dst, r, "zstd block")
	}
	return dst, malformed("setting", "unknown compression %d", c.kind)
}

func (c *Compressor) tooLarge(n int) error {
	return &TooLargeError{What: "decompressed cell block", Size: int64(n), Max: int64(c.limit)}
}

// decompressBlocks reads Hadoop's block stream. A length of zero ends it.
func (c *Compressor) decompressBlocks(dst, data []byte, dec func(dst, chunk []byte, left int) ([]byte, error)) ([]byte, error) {
	start := len(dst)
	what := c.kind.String() + " block"
	for len(data) > 0 {
		if len(data) < 4 {
			return dst[:start], malformed(what, "%d bytes where a length belongs", len(data))
		}
		size := binary.BigEndian.Uint32(data)
		data = data[4:]
		if size == 0 {
			break
		}
		if int64(size)+int64(len(dst)-start) > int64(c.limit) {
			return dst[:start], &TooLargeError{What: "decompressed cell block", Size: int64(size) + int64(len(dst)-start), Max: int64(c.limit)}
		}
		for left := int(size); left > 0; {
			if len(data) < 4 {
				return dst[:start], malformed(what, "ends with %d bytes missing", left)
			}
			n := binary.BigEndian.Uint32(data)
			data = data[4:]
			if uint64(n) > uint64(len(data)) || n == 0 {
				return dst[:start], malformed(what, "chunk of %d bytes, %d left", n, len(data))
			}
			at := len(dst)
			out, err := dec(dst, data[:n], left)
			if err != nil {
				return dst[:start], malformed(what, "%v", err)
			}
			if len(out) == at {
				return dst[:start], malformed(what, "empty chunk")
			}
			dst = out
			left -= len(dst) - at
			data = data[n:]
		}
	}
	return dst, nil
}

// readAll reads a decoder to its end, or to the limit.
func (c *Compressor) readAll(dst []byte, r io.Reader, what string) ([]byte, error) {
	start := len(dst)
	for {
		dst = grow(dst, 4096)
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		if len(dst)-start > c.limit {
			return dst[:start], c.tooLarge(len(dst) - start)
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return dst[:start], malformed(what, "%v", err)
		}
	}
}
