package filter

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Comparator judges bytes of a cell against what it was made with. Safe for
// concurrent use.
type Comparator interface {
	// Compare is negative, 0 or positive as the expected value is smaller
	// than, equal to or greater than b (ByteArrayComparable.compareTo).
	Compare(b []byte) (int, error)
	// Value is the expected value's bytes; conditions use nothing else.
	Value() []byte
}

// expected is the value all comparators have.
type expected struct{ value []byte }

func (e *expected) Value() []byte { return e.value }

// binary is BinaryComparator: unsigned bytes.
type binaryComparator struct{ expected }

func (c *binaryComparator) Compare(b []byte) (int, error) { return bytes.Compare(c.value, b), nil }

// prefixComparator is BinaryPrefixComparator: as many bytes as are expected.
type prefixComparator struct{ expected }

func (c *prefixComparator) Compare(b []byte) (int, error) {
	return bytes.Compare(c.value, b[:min(len(b), len(c.value))]), nil
}

// componentComparator is BinaryComponentComparator: bytes from an offset.
type componentComparator struct {
	expected
	offset uint32
}

func (c *componentComparator) Compare(b []byte) (int, error) {
	from := int64(c.offset)
	to := from + int64(len(c.value))
	if to > int64(len(b)) {
		return 0, cells.IOException("java.lang.ArrayIndexOutOfBoundsException: the component lies behind the end of the value")
	}
	return bytes.Compare(c.value, b[from:to]), nil
}

// bitComparator is BitComparator: equal if any bit of the combination is set.
type bitComparator struct {
	expected
	combine func(a, b byte) byte
}

func (c *bitComparator) Compare(b []byte) (int, error) {
	if len(b) != len(c.value) {
		return 1, nil
	}
	for i := range b {
		if c.combine(c.value[i], b[i]) != 0 {
			return 0, nil
		}
	}
	return 1, nil
}

// nullComparator is NullComparator: a cell that is there is not null.
type nullComparator struct{ expected }

func (*nullComparator) Compare(b []byte) (int, error) { return 1, nil }

// nextCell is how a cell of moderate size begins in memory: the lengths of its
// key and its value.
var nextCell = [8]byte{3: 24, 7: 8}

// longComparator is LongComparator: signed 8 bytes.
type longComparator struct {
	expected
	n int64
}

func (c *longComparator) Compare(b []byte) (int, error) {
	if len(b) < 8 {
		// HBase reads on behind the value, where the next cell begins.
		b = append(append(make([]byte, 0, 16), b...), nextCell[:]...)
	}
	m := int64(binary.BigEndian.Uint64(b))
	switch {
	case c.n < m:
		return -1, nil
	case c.n > m:
		return 1, nil
	}
	return 0, nil
}

// decimalComparator is BigDecimalComparator.
type decimalComparator struct {
	expected
	n decimal
}

// decimal is a BigDecimal: unscaled * 10^-scale.
type decimal struct {
	unscaled *big.Int
	scale    int32
}

func parseDecimal(b []byte) (decimal, bool) {
	if len(b) < 5 {
		return decimal{}, false
	}
	d := decimal{scale: int32(binary.BigEndian.Uint32(b)), unscaled: new(big.Int).SetBytes(b[4:])}
	if b[4]&0x80 != 0 {
		d.unscaled.Sub(d.unscaled, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b[4:]))))
	}
	return d, true
}

// magnitude is about log10 of the absolute value, for numbers too far apart to
// be brought to one scale.
func (d decimal) magnitude() int64 {
	return int64(float64(d.unscaled.BitLen())*0.30103) - int64(d.scale)
}

func (d decimal) compare(e decimal) int {
	if s, t := d.unscaled.Sign(), e.unscaled.Sign(); s != t || s == 0 {
		return s - t
	}
	// Scales come off the wire and may be billions apart: never raise ten to
	// more than is needed to tell.
	if m, n := d.magnitude(), e.magnitude(); m-n > 2 || n-m > 2 {
		if m > n {
			return d.unscaled.Sign()
		}
		return -d.unscaled.Sign()
	}
	a, b := d.unscaled, e.unscaled
	ten := big.NewInt(10)
	if diff := int64(d.scale) - int64(e.scale); diff > 0 {
		b = new(big.Int).Mul(b, new(big.Int).Exp(ten, big.NewInt(diff), nil))
	} else if diff < 0 {
		a = new(big.Int).Mul(a, new(big.Int).Exp(ten, big.NewInt(-diff), nil))
	}
	return a.Cmp(b)
}

func (c *decimalComparator) Compare(b []byte) (int, error) {
	d, ok := parseDecimal(b)
	if !ok {
		return 0, cells.IOException("java.lang.NumberFormatException: value is too short for a BigDecimal")
	}
	return c.n.compare(d), nil
}

// substringComparator is SubstringComparator: found, whatever the case.
type substringComparator struct {
	expected // lower-cased
}

func (c *substringComparator) Compare(b []byte) (int, error) {
	if strings.Contains(strings.ToLower(decodeUTF8(b)), string(c.value)) {
		return 0, nil
	}
	return 1, nil
}

// decodeUTF8 is Java's new String(bytes, UTF_8): broken bytes become U+FFFD.
func decodeUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
