package main

import (
	"encoding/binary"
	"math/rand/v2"
)

// lengths are what a peer that means harm writes where a length belongs: two
// gigabytes, minus one, nothing, the limits of ZooKeeper's and HBase's frames.
var lengths = []uint32{0x7fffffff, 0xffffffff, 0x80000000, 0, 1, 4, 0xfffff, 0x100000, 256 << 20, 256<<20 + 1, 0x48426173}

// spoil gives a damaged copy of a frame. With framed, the first four bytes are a
// length, and most copies get it right again, so that the damage reaches what is
// behind the framing.
func spoil(r *rand.Rand, frame []byte, framed bool) []byte {
	out := append([]byte(nil), frame...)
	for range 1 + r.IntN(4) {
		out = spoilOnce(r, out)
	}
	if framed && len(out) >= 4 && r.IntN(5) > 0 {
		binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	}
	return out
}

func spoilOnce(r *rand.Rand, b []byte) []byte {
	if len(b) == 0 {
		return noise(r, 1+r.IntN(16))
	}
	at := r.IntN(len(b))
	end := min(len(b), at+1+r.IntN(32))
	switch r.IntN(9) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
	case 1:
		b[at] = byte(r.Uint32())
	case 2:
		b[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
	case 3: // a length or a count that lies
		if at+4 <= len(b) {
			binary.BigEndian.PutUint32(b[at:], lengths[r.IntN(len(lengths))])
		}
	case 4: // bytes missing
		b = append(b[:at], b[end:]...)
	case 5: // bytes too many
		b = insert(b, at, noise(r, 1+r.IntN(32)))
	case 6: // bytes twice
		b = insert(b, at, append([]byte(nil), b[at:end]...))
	case 7: // off by a little
		b[at] += byte(r.IntN(5)) - 2
	case 8: // cut
		b = b[:at]
	}
	return b
}

func insert(b []byte, at int, more []byte) []byte {
	tail := append([]byte(nil), b[at:]...)
	return append(append(b[:at], more...), tail...)
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// pick gives one of a list.
func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// chance is true once in n.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }
