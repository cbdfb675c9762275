package hfile

import (
	"fmt"
	"strconv"
	"strings"
)

// Encoding is how keys are stored inside a data block (DataBlockEncoding).
type Encoding uint16

// The encodings, by the numbers in encoded blocks.
const (
	EncodingNone     Encoding = 0
	EncodingPrefix   Encoding = 2
	EncodingDiff     Encoding = 3
	EncodingFastDiff Encoding = 4
	EncodingRowIndex Encoding = 7
)

// Compression is a codec, by its number in the trailer (Compression.Algorithm).
type Compression uint32

// The codecs. LZO, BZIP2, LZMA and BROTLI have numbers but no reader here.
const (
	CompressionLZO    Compression = 0
	CompressionGZ     Compression = 1
	CompressionNone   Compression = 2
	CompressionSnappy Compression = 3
	CompressionLZ4    Compression = 4
	CompressionBZip2  Compression = 5
	CompressionZstd   Compression = 6
	CompressionLZMA   Compression = 7
	CompressionBrotli Compression = 8
)

// Checksum is the kind of a block's checksums (ChecksumType).
type Checksum uint8

// The kinds of checksums, by their numbers in block headers.
const (
	ChecksumNull   Checksum = 0
	ChecksumCRC32  Checksum = 1
	ChecksumCRC32C Checksum = 2
)

var encodingNames = map[Encoding]string{
	EncodingNone: "NONE", EncodingPrefix: "PREFIX", EncodingDiff: "DIFF", EncodingFastDiff: "FAST_DIFF", EncodingRowIndex: "ROW_INDEX_V1",
}

var compressionNames = map[Compression]string{
	CompressionLZO: "LZO", CompressionGZ: "GZ", CompressionNone: "NONE", CompressionSnappy: "SNAPPY", CompressionLZ4: "LZ4",
	CompressionBZip2: "BZIP2", CompressionZstd: "ZSTD", CompressionLZMA: "LZMA", CompressionBrotli: "BROTLI",
}

// String gives HBase's name.
func (e Encoding) String() string {
	if s, ok := encodingNames[e]; ok {
		return s
	}
	return "Encoding(" + strconv.Itoa(int(e)) + ")"
}

// String gives HBase's name.
func (c Compression) String() string {
	if s, ok := compressionNames[c]; ok {
		return s
	}
	return "Compression(" + strconv.Itoa(int(c)) + ")"
}

// String gives HBase's name.
func (c Checksum) String() string {
	switch c {
	case ChecksumNull:
		return "NULL"
	case ChecksumCRC32:
		return "CRC32"
	case ChecksumCRC32C:
		return "CRC32C"
	}
	return "Checksum(" + strconv.Itoa(int(c)) + ")"
}

// ParseEncoding reads HBase's name of an encoding, in any case; "" is NONE.
func ParseEncoding(name string) (Encoding, error) {
	if name == "" {
		return EncodingNone, nil
	}
	for e, s := range encodingNames {
		if strings.EqualFold(s, name) {
			return e, nil
		}
	}
	return 0, fmt.Errorf("unsupported: data block encoding %q", name)
}

// ParseCompression reads HBase's name of a codec, in any case; "" is NONE.
func ParseCompression(name string) (Compression, error) {
	if name == "" {
		return CompressionNone, nil
	}
	for c, s := range compressionNames {
		if strings.EqualFold(s, name) && c.readable() {
			return c, nil
		}
	}
	return 0, fmt.Errorf("unsupported: compression %q", name)
}

func (c Compression) readable() bool {
	switch c {
	case CompressionNone, CompressionGZ, CompressionSnappy, CompressionLZ4, CompressionZstd:
		return true
	}
	return false
}
