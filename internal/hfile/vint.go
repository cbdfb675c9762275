package hfile

import "encoding/binary"

// appendVLong appends Hadoop's variable-length long (WritableUtils): one byte
// for -112..127, else a byte that tells sign and length, then the magnitude
// from its highest byte.
func appendVLong(dst []byte, v int64) []byte {
	if v >= -112 && v <= 127 {
		return append(dst, byte(v))
	}
	head := -112
	if v < 0 {
		v = ^v
		head = -120
	}
	n := 0
	for t := v; t != 0; t >>= 8 {
		n++
	}
	dst = append(dst, byte(head-n))
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte(v>>(8*i)))
	}
	return dst
}

// vLong reads a variable-length long; n is 0 if b ends too early.
func vLong(b []byte) (v int64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	first := int8(b[0])
	if first >= -112 {
		return int64(first), 1
	}
	size, negative := int(-112-int(first)), false
	if first < -120 {
		size, negative = int(-120-int(first)), true
	}
	if len(b) < 1+size {
		return 0, 0
	}
	for _, c := range b[1 : 1+size] {
		v = v<<8 | int64(c)
	}
	if negative {
		v = ^v
	}
	return v, 1 + size
}

// appendBytes appends bytes behind their length (Bytes.writeByteArray).
func appendBytes(dst, b []byte) []byte {
	return append(appendVLong(dst, int64(len(b))), b...)
}

// lead is a cursor over bytes whose lengths are not trusted: the first thing
// that does not fit sets bad, after which everything is empty.
type lead struct {
	b   []byte
	bad bool
}

func (l *lead) take(n int) []byte {
	if n < 0 || n > len(l.b) || l.bad {
		l.bad, l.b = true, nil
		return nil
	}
	out := l.b[:n:n]
	l.b = l.b[n:]
	return out
}

func (l *lead) u8() byte {
	if b := l.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (l *lead) u16() int {
	if b := l.take(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (l *lead) i32() int {
	if b := l.take(4); b != nil {
		return int(int32(binary.BigEndian.Uint32(b)))
	}
	return 0
}

func (l *lead) i64() int64 {
	if b := l.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// packed is an int in groups of seven bits, the lowest first.
func (l *lead) packed() int {
	v, n := binary.Uvarint(l.b)
	if n <= 0 || n > 5 || v > 1<<31-1 || l.bad {
		l.bad, l.b = true, nil
		return 0
	}
	l.b = l.b[n:]
	return int(v)
}

func (l *lead) vlong() int64 {
	v, n := vLong(l.b)
	l.take(max(n, 1))
	return v
}

func (l *lead) bytes() []byte {
	n := l.vlong()
	if n < 0 || n > int64(len(l.b)) {
		l.bad, l.b = true, nil
		return nil
	}
	return l.take(int(n))
}
