package filter

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// BigDecimalComparator compares numbers as Java's Bytes.toBytes(BigDecimal)
// writes them: a 4-byte scale, then the unscaled number in two's complement.
// 1 and 1.0 are equal. HBase 2.0 and later.
type BigDecimalComparator struct {
	// Unscaled times ten to the power of -Scale is the number. Nil is 0.
	Unscaled *big.Int
	Scale    int32
}

// BigDecimal compares with unscaled * 10^-scale; see [ParseBigDecimal].
func BigDecimal(unscaled *big.Int, scale int32) *BigDecimalComparator {
	return &BigDecimalComparator{unscaled, scale}
}

// maxDecimal bounds the text of a number: Java's parser has no bound, but
// nobody writes a thousand digits.
const maxDecimal = 1000

// ParseBigDecimal reads a decimal number with an optional exponent, such as
// -12.50 or 1e3, and keeps its scale: 12.50 has two places. Errors are
// *InvalidError.
func ParseBigDecimal(text string) (*BigDecimalComparator, error) {
	bad := func(why string) (*BigDecimalComparator, error) {
		return nil, invalid("BigDecimalComparator", "%q %s", text[:min(len(text), 40)], why)
	}
	if len(text) > maxDecimal {
		return bad("is longer than 1000 characters")
	}
	digits, scale := text, int64(0)
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		n, err := strconv.ParseInt(digits[i+1:], 10, 64)
		if err != nil || n < -math.MaxInt32 || n > math.MaxInt32 {
			return bad("has no usable exponent")
		}
		digits, scale = digits[:i], -n
	}
	if whole, places, ok := strings.Cut(digits, "."); ok {
		digits = whole + places
		scale += int64(len(places))
	}
	if scale < math.MinInt32 || scale > math.MaxInt32 {
		return bad("has no usable exponent")
	}
	// big.Int would take underscores and would not take a bare sign.
	for i := range len(digits) {
		if c := digits[i]; (c < '0' || c > '9') && (i > 0 || c != '-' && c != '+') {
			return bad("is no decimal number")
		}
	}
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return bad("is no decimal number")
	}
	return BigDecimal(n, int32(scale)), nil
}

// Name is the full Java class name.
func (c *BigDecimalComparator) Name() string { return javaPackage + "BigDecimalComparator" }

// Marshal gives the protobuf bytes.
func (c *BigDecimalComparator) Marshal() ([]byte, error) {
	b := binary.BigEndian.AppendUint32(nil, uint32(c.Scale))
	return pack("BigDecimalComparator", &pb.BigDecimalComparator{Comparable: comparable(appendTwosComplement(b, c.Unscaled))}, nil)
}

// appendTwosComplement appends n in the fewest bytes, at least one, as Java's
// BigInteger.toByteArray gives them.
func appendTwosComplement(b []byte, n *big.Int) []byte {
	if n == nil || n.Sign() == 0 {
		return append(b, 0)
	}
	if n.Sign() > 0 {
		magnitude := n.Bytes()
		if magnitude[0]&0x80 != 0 {
			b = append(b, 0)
		}
		return append(b, magnitude...)
	}
	// -n-1 inverted: the bits of ^n are those of n's two's complement, negated.
	inverted := new(big.Int).Not(n).Bytes()
	if len(inverted) == 0 || inverted[0]&0x80 != 0 {
		inverted = append([]byte{0}, inverted...)
	}
	for _, c := range inverted {
		b = append(b, ^c)
	}
	return b
}

// twosComplement is the reverse of appendTwosComplement.
func twosComplement(b []byte) *big.Int {
	n := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return n
}
