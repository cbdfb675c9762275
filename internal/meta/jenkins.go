package meta

import (
	"math/bits"
	"strconv"
)

// jenkinsName encodes a region name that carries no md5 suffix: the absolute
// value of Bob Jenkins' lookup3 hash, in decimal (HBase's JenkinsHash).
func jenkinsName(name []byte) string {
	h := int64(int32(lookup3(name)))
	if h < 0 {
		h = -h
	}
	return strconv.FormatInt(h, 10)
}

// lookup3 is hashlittle() of Bob Jenkins' lookup3 with initval 0.
func lookup3(k []byte) uint32 {
	a := uint32(0xdeadbeef) + uint32(len(k))
	b, c := a, a
	word := func(i int) uint32 {
		var w uint32
		for j := range 4 {
			if i+j < len(k) {
				w |= uint32(k[i+j]) << (8 * j)
			}
		}
		return w
	}
	i := 0
	for ; len(k)-i > 12; i += 12 {
		a += word(i)
		b += word(i + 4)
		c += word(i + 8)
		a -= c
		a ^= bits.RotateLeft32(c, 4)
		c += b
		b -= a
		b ^= bits.RotateLeft32(a, 6)
		a += c
		c -= b
		c ^= bits.RotateLeft32(b, 8)
		b += a
		a -= c
		a ^= bits.RotateLeft32(c, 16)
		c += b
		b -= a
		b ^= bits.RotateLeft32(a, 19)
		a += c
		c -= b
		c ^= bits.RotateLeft32(b, 4)
		b += a
	}
	if i == len(k) {
		return c
	}
	a += word(i)
	b += word(i + 4)
	c += word(i + 8)
	c ^= b
	c -= bits.RotateLeft32(b, 14)
	a ^= c
	a -= bits.RotateLeft32(c, 11)
	b ^= a
	b -= bits.RotateLeft32(a, 25)
	c ^= b
	c -= bits.RotateLeft32(b, 16)
	a ^= c
	a -= bits.RotateLeft32(c, 4)
	b ^= a
	b -= bits.RotateLeft32(a, 14)
	c ^= b
	c -= bits.RotateLeft32(b, 24)
	return c
}
