package hfile

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Types of blocks, by the eight bytes they begin with.
const (
	magicData         = "DATABLK*"
	magicEncoded      = "DATABLKE"
	magicLeaf         = "IDXLEAF2"
	magicIntermediate = "IDXINTE2"
	magicRoot         = "IDXROOT2"
	magicMeta         = "METABLKc"
	magicBloomChunk   = "BLMFBLK2"
	magicBloomMeta    = "BLMFMET2"
	magicDeleteBloom  = "DFBLMET2"
	magicFileInfo     = "FILEINF2"
	magicTrailer      = "TRABLK\"$"
)

const (
	headerLen = 33
	// maxBlockBytes bounds a block, packed or unpacked. HBase's own blocks are
	// 64 KiB, or as large as their largest cell (10 MiB by default).
	maxBlockBytes = 256 << 20
)

// header is what stands before a block.
type header struct {
	magic    string
	onDisk   int // behind the header, with checksums
	unpacked int
	prev     int64
	checksum Checksum
	perSum   int
	data     int // on disk, with header, without checksums
}

func parseHeader(b []byte) (h header, err error) {
	l := lead{b: b}
	h.magic = string(l.take(8))
	h.onDisk, h.unpacked, h.prev = l.i32(), l.i32(), l.i64()
	h.checksum, h.perSum, h.data = Checksum(l.u8()), l.i32(), l.i32()
	switch {
	case l.bad:
		return h, errShort
	case h.onDisk < 0 || h.onDisk > maxBlockBytes || h.unpacked < 0 || h.unpacked > maxBlockBytes:
		return h, fmt.Errorf("block of %d bytes, %d unpacked", h.onDisk, h.unpacked)
	case h.data < headerLen || h.data > headerLen+h.onDisk:
		return h, fmt.Errorf("%d bytes of data in a block of %d", h.data, headerLen+h.onDisk)
	case h.checksum > ChecksumCRC32C:
		return h, fmt.Errorf("checksums of unknown kind %d", h.checksum)
	}
	return h, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(kind Checksum, b []byte) uint32 {
	if kind == ChecksumCRC32 {
		return crc32.ChecksumIEEE(b)
	}
	return crc32.Checksum(b, castagnoli)
}

// verify compares a block, header included, with its checksums.
func verify(h *header, b []byte) error {
	if h.checksum == ChecksumNull {
		return nil
	}
	if h.perSum <= 0 {
		return fmt.Errorf("a checksum for every %d bytes", h.perSum)
	}
	data, sums := b[:h.data], b[h.data:]
	if want := 4 * ((len(data) + h.perSum - 1) / h.perSum); len(sums) != want {
		return fmt.Errorf("%d bytes of checksums, not %d", len(sums), want)
	}
	for i := 0; len(data) > 0; i++ {
		chunk := data[:min(len(data), h.perSum)]
		if sum(h.checksum, chunk) != binary.BigEndian.Uint32(sums[4*i:]) {
			return fmt.Errorf("checksum %d of the block does not match", i+1)
		}
		data = data[len(chunk):]
	}
	return nil
}

// appendBlock appends a finished block: header, packed payload, checksums.
func appendBlock(dst []byte, magic string, payload []byte, prev int64, codec Compression, kind Checksum, perSum int) ([]byte, error) {
	at := len(dst)
	dst = append(dst, make([]byte, headerLen)...)
	dst, err := compress(codec, dst, payload)
	if err != nil {
		return nil, err
	}
	data := len(dst) - at
	if kind != ChecksumNull {
		dst = append(dst, make([]byte, 4*((data+perSum-1)/perSum))...)
	}
	h := dst[at : at+headerLen]
	copy(h, magic)
	binary.BigEndian.PutUint32(h[8:], uint32(len(dst)-at-headerLen))
	binary.BigEndian.PutUint32(h[12:], uint32(len(payload)))
	binary.BigEndian.PutUint64(h[16:], uint64(prev))
	h[24] = byte(kind)
	binary.BigEndian.PutUint32(h[25:], uint32(perSum))
	binary.BigEndian.PutUint32(h[29:], uint32(data))
	if len(dst)-at > maxBlockBytes || len(payload) > maxBlockBytes {
		return nil, fmt.Errorf("block of %d bytes is too large", len(payload))
	}
	return sign(dst, at, data, kind, perSum), nil
}

// sign writes the checksums of a block whose header is in place.
func sign(dst []byte, at, data int, kind Checksum, perSum int) []byte {
	if kind == ChecksumNull {
		return dst
	}
	b, sums := dst[at:at+data], dst[at+data:]
	for i := 0; len(b) > 0; i++ {
		chunk := b[:min(len(b), perSum)]
		binary.BigEndian.PutUint32(sums[4*i:], sum(kind, chunk))
		b = b[len(chunk):]
	}
	return dst
}
