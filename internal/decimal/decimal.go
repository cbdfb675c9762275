package decimal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Decimal is the number Unscaled / 10^Scale. The zero value is 0. Operations
// make new values and leave their operands alone.
type Decimal struct {
	Unscaled *big.Int
	Scale    int32
}

// MaxScale bounds scales, of either sign: adding two numbers whose scales
// differ by a billion would take a billion digits.
const MaxScale = 10_000

var errShort = errors.New("a decimal is a scale of 4 bytes and at least one byte more")

// Parse reads a big-endian scale of 4 bytes followed by a big-endian two's
// complement integer.
func Parse(b []byte) (Decimal, error) {
	if len(b) < 5 {
		return Decimal{}, errShort
	}
	scale := int32(binary.BigEndian.Uint32(b))
	if scale > MaxScale || scale < -MaxScale {
		return Decimal{}, fmt.Errorf("scale %d of a decimal is beyond %d", scale, MaxScale)
	}
	n := new(big.Int).SetBytes(b[4:])
	if b[4]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(len(b)-4)*8))
	}
	return Decimal{n, scale}, nil
}

// Append appends the form that Parse reads, with as few bytes as possible.
func (d Decimal) Append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(d.Scale))
	n := d.int()
	if n.Sign() >= 0 {
		m := n.Bytes()
		if len(m) == 0 || m[0]&0x80 != 0 {
			b = append(b, 0)
		}
		return append(b, m...)
	}
	// -n-1 in as many bytes as it takes, its sign bit free, then inverted.
	m := new(big.Int).Not(n).Bytes()
	if len(m) == 0 || m[0]&0x80 != 0 {
		b = append(b, 0xFF)
	}
	for _, x := range m {
		b = append(b, ^x)
	}
	return b
}

func (d Decimal) int() *big.Int {
	if d.Unscaled == nil {
		return new(big.Int)
	}
	return d.Unscaled
}

func pow10(n int32) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

// align brings two numbers to the larger of their scales.
func align(a, b Decimal) (x, y *big.Int, scale int32) {
	x, y = a.int(), b.int()
	switch {
	case a.Scale < b.Scale:
		return new(big.Int).Mul(x, pow10(b.Scale-a.Scale)), y, b.Scale
	case a.Scale > b.Scale:
		return x, new(big.Int).Mul(y, pow10(a.Scale-b.Scale)), a.Scale
	}
	return x, y, a.Scale
}

// Add gives a + b, with the larger scale.
func Add(a, b Decimal) Decimal {
	x, y, scale := align(a, b)
	return Decimal{new(big.Int).Add(x, y), scale}
}

// Mul gives a * b, with the sum of the scales.
func Mul(a, b Decimal) Decimal {
	return Decimal{new(big.Int).Mul(a.int(), b.int()), a.Scale + b.Scale}
}

// Cmp compares values; scales do not matter.
func Cmp(a, b Decimal) int {
	x, y, _ := align(a, b)
	return x.Cmp(y)
}

// Rescale gives the number with another scale, rounded half to even.
func (d Decimal) Rescale(scale int32) Decimal {
	if scale >= d.Scale {
		return Decimal{new(big.Int).Mul(d.int(), pow10(scale-d.Scale)), scale}
	}
	by := pow10(d.Scale - scale)
	q, r := new(big.Int).QuoRem(d.int(), by, new(big.Int))
	twice := new(big.Int).Abs(r)
	twice.Lsh(twice, 1)
	if c := twice.Cmp(by); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(int64(r.Sign())))
	}
	return Decimal{q, scale}
}

// Float64 gives the nearest float64.
func (d Decimal) Float64() float64 {
	r := new(big.Rat)
	if d.Scale >= 0 {
		r.SetFrac(d.int(), pow10(d.Scale))
	} else {
		r.SetInt(new(big.Int).Mul(d.int(), pow10(-d.Scale)))
	}
	f, _ := r.Float64()
	return f
}

// String prints the number with all its digits, without an exponent.
func (d Decimal) String() string {
	n := d.int()
	if d.Scale <= 0 {
		return new(big.Int).Mul(n, pow10(-d.Scale)).String()
	}
	s := new(big.Int).Abs(n).String()
	if short := int(d.Scale) + 1 - len(s); short > 0 {
		s = strings.Repeat("0", short) + s
	}
	at := len(s) - int(d.Scale)
	s = s[:at] + "." + s[at:]
	if n.Sign() < 0 {
		s = "-" + s
	}
	return s
}
