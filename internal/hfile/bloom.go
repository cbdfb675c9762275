package hfile

import (
	"encoding/binary"
	"fmt"
	"math"
)

// bloomVersion is that of compound bloom filters, the only kind of version 3.
const bloomVersion = 3

const hashMurmur = 1

// Bloom describes a file's bloom filter: a run of chunks in the file, with an
// index of their first keys.
type Bloom struct {
	Type    string // ROW, ROWCOL, ...
	Bytes   int64
	Hashes  int
	Hash    int // 0 Jenkins, 1 Murmur, 2 Murmur3
	Keys    int64
	MaxKeys int64

	chunks []indexEntry
}

func parseBloom(payload []byte) (*Bloom, error) {
	l := lead{b: payload}
	if v := l.i32(); v != bloomVersion || l.bad {
		return nil, fmt.Errorf("bloom filter of version %d", v)
	}
	b := &Bloom{Bytes: l.i64(), Hashes: l.i32(), Hash: l.i32(), Keys: l.i64(), MaxKeys: l.i64()}
	n := l.i32()
	l.bytes() // comparator
	if l.bad || n < 0 {
		return nil, errShort
	}
	var err error
	b.chunks, err = rootEntries(&l, n)
	return b, err
}

func (b *Bloom) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, bloomVersion)
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.Bytes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Hashes))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Hash))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.Keys))
	dst = binary.BigEndian.AppendUint64(dst, uint64(b.MaxKeys))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b.chunks)))
	dst = appendBytes(dst, nil)
	for i := range b.chunks {
		dst = b.chunks[i].append(dst)
	}
	return dst
}

// bloomHashes are the two numbers from which all bits of a key follow.
func bloomHashes(key []byte) (a, b int32) {
	a = murmur(key, 0)
	return a, murmur(key, a)
}

// bloomBit is the place of bit i of a key in a chunk of so many bits.
func bloomBit(a, b int32, i, bits int) int {
	at := int(a+int32(i)*b) % bits
	if at < 0 {
		return -at
	}
	return at
}

func bloomHas(chunk []byte, hashes int, a, b int32) bool {
	if len(chunk) == 0 || len(chunk) > math.MaxInt32/8 {
		return true
	}
	for i := range hashes {
		at := bloomBit(a, b, i, len(chunk)*8)
		if chunk[at>>3]&(1<<(at&7)) == 0 {
			return false
		}
	}
	return true
}

// murmur is MurmurHash 2 as HBase computes it: bytes of the tail are signed.
func murmur(key []byte, seed int32) int32 {
	const m = 0x5bd1e995
	h := uint32(seed) ^ uint32(len(key))
	b := key
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		k ^= k >> 24
		h = h*m ^ k*m
	}
	if len(b) > 0 {
		for i := len(b) - 1; i >= 0; i-- {
			h ^= uint32(int32(int8(b[i])) << (8 * i))
		}
		h *= m
	}
	h ^= h >> 13
	h *= m
	return int32(h ^ h>>15)
}
