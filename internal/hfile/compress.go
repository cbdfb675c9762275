package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// hadoopBuffer is how much Hadoop's block codecs compress at a time by default
// (io.compression.codec.snappy.buffersize, less its overhead).
const hadoopBuffer = 128 << 10

var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

var errSize = errors.New("unpacks to another size than the header says")

// decompress unpacks src, which must become exactly size bytes.
func decompress(codec Compression, src []byte, size int) ([]byte, error) {
	switch codec {
	case CompressionGZ:
		z, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		return readExactly(z, size)
	case CompressionZstd:
		if bytes.HasPrefix(src, zstdMagic) {
			return unzstd(src, size)
		}
		return unblock(src, size, unzstd)
	case CompressionSnappy:
		return unblock(src, size, unsnappy)
	case CompressionLZ4:
		return unblock(src, size, unlz4)
	}
	return nil, fmt.Errorf("unsupported: compression %v", codec)
}

// readExactly lets memory grow as bytes arrive: size is only a claim.
func readExactly(r io.Reader, size int) ([]byte, error) {
	var out bytes.Buffer
	out.Grow(min(size, 1<<20))
	n, err := out.ReadFrom(io.LimitReader(r, int64(size)+1))
	if err != nil {
		return nil, err
	}
	if n != int64(size) {
		return nil, errSize
	}
	return out.Bytes(), nil
}

func unzstd(src []byte, size int) ([]byte, error) {
	z, err := zstd.NewReader(bytes.NewReader(src), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBlockBytes), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	return readExactly(z, size)
}

func unsnappy(src []byte, size int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	// A byte can stand for at most 64 (a copy of three bytes for 64).
	if n > size || n > 64*len(src) {
		return nil, errSize
	}
	return snappy.Decode(nil, src)
}

func unlz4(src []byte, size int) ([]byte, error) {
	// A byte of length adds at most 255.
	out := make([]byte, min(size, 255*len(src)+64))
	n, err := lz4.UncompressBlock(src, out)
	if err != nil {
		return nil, err
	}
	return out[:n], nil
}

// unblock reads the frames of Hadoop's BlockCompressorStream: the size of a
// block, then pieces, each behind its compressed length, until they make up
// that size.
func unblock(src []byte, size int, piece func(src []byte, size int) ([]byte, error)) ([]byte, error) {
	var out []byte
	for len(src) > 0 {
		if len(src) < 4 {
			return nil, errShort
		}
		block := int64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if block > int64(size-len(out)) {
			return nil, errSize
		}
		for end := len(out) + int(block); len(out) < end; {
			if len(src) < 4 {
				return nil, errShort
			}
			n := int64(binary.BigEndian.Uint32(src))
			src = src[4:]
			if n == 0 || n > int64(len(src)) {
				return nil, errShort
			}
			plain, err := pieceOf(piece, src[:n], end-len(out))
			if err != nil {
				return nil, err
			}
			if len(plain) == 0 || len(plain) > end-len(out) {
				return nil, errSize
			}
			src = src[n:]
			if out == nil && len(plain) == size {
				out = plain
				continue
			}
			out = append(out, plain...)
		}
	}
	if len(out) != size {
		return nil, errSize
	}
	return out, nil
}

// pieceOf unpacks one piece of at most size bytes. Zstd's readers want to know
// the exact size; its frames say it themselves.
func pieceOf(piece func([]byte, int) ([]byte, error), src []byte, size int) ([]byte, error) {
	var h zstd.Header
	if bytes.HasPrefix(src, zstdMagic) && h.Decode(src) == nil && h.HasFCS && h.FrameContentSize <= uint64(size) {
		return piece(src, int(h.FrameContentSize))
	}
	return piece(src, size)
}

// compress packs src, appending to dst.
func compress(codec Compression, dst, src []byte) ([]byte, error) {
	switch codec {
	case CompressionNone:
		return append(dst, src...), nil
	case CompressionGZ:
		out := bytes.NewBuffer(dst)
		z := gzip.NewWriter(out)
		_, err := z.Write(src)
		err = errors.Join(err, z.Close())
		return out.Bytes(), err
	case CompressionZstd:
		z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(1<<20))
		if err != nil {
			return nil, err
		}
		dst = z.EncodeAll(src, dst)
		return dst, z.Close()
	case CompressionSnappy:
		return block(dst, src, func(dst, src []byte) ([]byte, error) { return append(dst, snappy.Encode(nil, src)...), nil })
	case CompressionLZ4:
		return block(dst, src, func(dst, src []byte) ([]byte, error) {
			var c lz4.Compressor
			buf := make([]byte, lz4.CompressBlockBound(len(src)))
			n, err := c.CompressBlock(src, buf)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				// It gives up on what does not shrink; LZ4's form of "as it is" is
				// one run of literals.
				buf, n = literals(buf[:0], src)
			}
			return append(dst, buf[:n]...), nil
		})
	}
	return nil, fmt.Errorf("unsupported: compression %v", codec)
}

// literals is an LZ4 block that holds src as it is.
func literals(dst, src []byte) ([]byte, int) {
	n := len(src)
	if n < 15 {
		dst = append(dst, byte(n<<4))
	} else {
		dst = append(dst, 0xf0)
		for n -= 15; n >= 255; n -= 255 {
			dst = append(dst, 255)
		}
		dst = append(dst, byte(n))
	}
	dst = append(dst, src...)
	return dst, len(dst)
}

// block writes src as Hadoop's BlockCompressorStream does.
func block(dst, src []byte, piece func(dst, src []byte) ([]byte, error)) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(src)))
	for len(src) > 0 {
		part := src[:min(len(src), hadoopBuffer)]
		src = src[len(part):]
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		var err error
		if dst, err = piece(dst, part); err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst, nil
}
