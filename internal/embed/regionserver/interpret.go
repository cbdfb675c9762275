package regionserver

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/big"

	"github.com/holdfast-hbase/holdfast/internal/decimal"
	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// value is a column's value as an interpreter reads it: int64, float64 or
// decimal.Decimal; nil is no value.
type value any

// interpreter is one of HBase's ColumnInterpreters.
type interpreter struct {
	// read gives nil for bytes of the wrong length; an error where HBase's
	// fails.
	read     func(b []byte) (value, error)
	compare  func(a, b value) int
	add      func(a, b value) value
	multiply func(a, b value) value
	message  func(v value) ([]byte, error)
	// least is what HBase calls the minimum (for floats the smallest positive
	// number).
	least value
}

// interpreters are those of HBase's client, by class.
var interpreters = map[string]interpreter{
	"org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter": {
		read: func(b []byte) (value, error) {
			if len(b) != 8 {
				return nil, nil
			}
			return int64(binary.BigEndian.Uint64(b)), nil
		},
		compare:  func(a, b value) int { return cmp.Compare(a.(int64), b.(int64)) },
		add:      func(a, b value) value { return a.(int64) + b.(int64) },
		multiply: func(a, b value) value { return a.(int64) * b.(int64) },
		message:  func(v value) ([]byte, error) { return (&pb.LongMsg{LongMsg: new(v.(int64))}).MarshalVT() },
		least:    int64(math.MinInt64),
	},
	"org.apache.hadoop.hbase.client.coprocessor.DoubleColumnInterpreter": {
		read: func(b []byte) (value, error) {
			if len(b) != 8 {
				return nil, nil
			}
			return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
		},
		compare:  func(a, b value) int { return javaCompare(a.(float64), b.(float64)) },
		add:      func(a, b value) value { return a.(float64) + b.(float64) },
		multiply: func(a, b value) value { return a.(float64) * b.(float64) },
		message:  func(v value) ([]byte, error) { return (&pb.DoubleMsg{DoubleMsg: new(v.(float64))}).MarshalVT() },
		least:    math.SmallestNonzeroFloat64,
	},
	"org.apache.hadoop.hbase.client.coprocessor.BigDecimalColumnInterpreter": {
		read: func(b []byte) (value, error) {
			d, err := decimal.Parse(b)
			if err != nil {
				return nil, err
			}
			return d.Rescale(2), nil
		},
		compare:  func(a, b value) int { return decimal.Cmp(a.(decimal.Decimal), b.(decimal.Decimal)) },
		add:      func(a, b value) value { return decimal.Add(a.(decimal.Decimal), b.(decimal.Decimal)) },
		multiply: func(a, b value) value { return decimal.Mul(a.(decimal.Decimal), b.(decimal.Decimal)).Rescale(2) },
		message: func(v value) ([]byte, error) {
			return (&pb.BigDecimalMsg{BigdecimalMsg: v.(decimal.Decimal).Append(nil)}).MarshalVT()
		},
		// BigDecimal.valueOf(Double.MIN_VALUE), which is 4.9E-324.
		least: decimal.Decimal{Unscaled: big.NewInt(49), Scale: 325},
	},
}

// javaCompare is Double.compare: NaN is above everything, -0 below 0.
func javaCompare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	bits := func(f float64) int64 {
		if f != f {
			return math.MaxInt64
		}
		return int64(math.Float64bits(f))
	}
	return cmp.Compare(bits(a), bits(b))
}
