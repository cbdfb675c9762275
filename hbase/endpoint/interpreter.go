package endpoint

import (
	"cmp"
	"encoding/binary"
	"math"

	"github.com/holdfast-hbase/holdfast/internal/decimal"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Decimal is the number Unscaled / 10^Scale: java.math.BigDecimal. Its String
// has all digits; scales are at most 10,000, of either sign.
type Decimal = decimal.Decimal

// Interpreter says how the values of a column are read: by a Java class in the
// server, and by these functions in the client. [Long], [Double] and
// [BigDecimal] are HBase's own; for another class, fill in the fields. Values
// and sums are of one type; a class that has two is called with [Run].
type Interpreter[T any] struct {
	// Class is the full name of the ColumnInterpreter.
	Class string
	// Params is the message the class is initialized with, serialized; nil if
	// it needs none.
	Params []byte
	// Value reads a cell's value; ok is false if it is none.
	Value func(b []byte) (v T, ok bool)
	// Decode reads the message in which the class sends values and sums.
	Decode  func(b []byte) (T, error)
	Add     func(a, b T) T
	Compare func(a, b T) int
	// Float gives the number that averages are made of.
	Float func(T) float64
}

const interpreterPackage = "org.apache.hadoop.hbase.client.coprocessor."

// Long reads 8-byte big-endian integers, as Increment writes them. Other values
// count as none. Sums wrap at the ends of int64.
func Long() Interpreter[int64] {
	return Interpreter[int64]{
		Class: interpreterPackage + "LongColumnInterpreter",
		Value: func(b []byte) (int64, bool) {
			if len(b) != 8 {
				return 0, false
			}
			return int64(binary.BigEndian.Uint64(b)), true
		},
		Decode: func(b []byte) (int64, error) {
			var m pb.LongMsg
			err := m.UnmarshalVT(b)
			return m.GetLongMsg(), err
		},
		Add:     func(a, b int64) int64 { return a + b },
		Compare: cmp.Compare[int64],
		Float:   func(v int64) float64 { return float64(v) },
	}
}

// Double reads 8-byte big-endian IEEE 754 numbers. Other values count as none.
func Double() Interpreter[float64] {
	return Interpreter[float64]{
		Class: interpreterPackage + "DoubleColumnInterpreter",
		Value: func(b []byte) (float64, bool) {
			if len(b) != 8 {
				return 0, false
			}
			return math.Float64frombits(binary.BigEndian.Uint64(b)), true
		},
		Decode: func(b []byte) (float64, error) {
			var m pb.DoubleMsg
			err := m.UnmarshalVT(b)
			return m.GetDoubleMsg(), err
		},
		Add: func(a, b float64) float64 { return a + b },
		// As Double.compare: NaN is above everything.
		Compare: func(a, b float64) int {
			if a != a || b != b {
				return cmp.Compare(b2i(a != a), b2i(b != b))
			}
			return cmp.Compare(a, b)
		},
		Float: func(v float64) float64 { return v },
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// BigDecimal reads numbers in the form of Bytes.toBytes(BigDecimal), a scale of
// 4 bytes and an integer. The server rounds every value and every square to
// two decimals, half to even, and fails on values that have another form.
func BigDecimal() Interpreter[Decimal] {
	return Interpreter[Decimal]{
		Class: interpreterPackage + "BigDecimalColumnInterpreter",
		Value: func(b []byte) (Decimal, bool) {
			d, err := decimal.Parse(b)
			if err != nil {
				return d, false
			}
			return d.Rescale(2), true
		},
		Decode: func(b []byte) (Decimal, error) {
			var m pb.BigDecimalMsg
			if err := m.UnmarshalVT(b); err != nil {
				return Decimal{}, err
			}
			return decimal.Parse(m.GetBigdecimalMsg())
		},
		Add:     decimal.Add,
		Compare: decimal.Cmp,
		Float:   Decimal.Float64,
	}
}
