package filter

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Comparator is what a part of a cell is compared with. [CustomComparator] is a
// class of one's own.
type Comparator interface {
	// Name is the full Java class name.
	Name() string
	// Marshal gives the protobuf bytes of that class. Errors are
	// *InvalidError.
	Marshal() ([]byte, error)
}

func comparable(b []byte) *pb.ByteArrayComparable { return &pb.ByteArrayComparable{Value: set(b)} }

// BinaryComparator compares bytes in byte order.
type BinaryComparator struct{ Value []byte }

// Binary compares bytes in byte order.
func Binary[B Bytes](b B) *BinaryComparator { return &BinaryComparator{[]byte(b)} }

// Name is the full Java class name.
func (c *BinaryComparator) Name() string { return javaPackage + "BinaryComparator" }

// Marshal gives the protobuf bytes.
func (c *BinaryComparator) Marshal() ([]byte, error) {
	return pack("BinaryComparator", &pb.BinaryComparator{Comparable: comparable(c.Value)}, nil)
}

// BinaryPrefixComparator compares the first len(Value) bytes.
type BinaryPrefixComparator struct{ Value []byte }

// BinaryPrefix compares the first len(b) bytes.
func BinaryPrefix[B Bytes](b B) *BinaryPrefixComparator { return &BinaryPrefixComparator{[]byte(b)} }

// Name is the full Java class name.
func (c *BinaryPrefixComparator) Name() string { return javaPackage + "BinaryPrefixComparator" }

// Marshal gives the protobuf bytes.
func (c *BinaryPrefixComparator) Marshal() ([]byte, error) {
	return pack("BinaryPrefixComparator", &pb.BinaryPrefixComparator{Comparable: comparable(c.Value)}, nil)
}

// BinaryComponentComparator compares len(Value) bytes from Offset on. What ends
// before is answered with an error by the server. HBase 2.2 and later.
type BinaryComponentComparator struct {
	Value  []byte
	Offset uint32
}

// BinaryComponent compares len(b) bytes from offset on.
func BinaryComponent[B Bytes](offset uint32, b B) *BinaryComponentComparator {
	return &BinaryComponentComparator{[]byte(b), offset}
}

// Name is the full Java class name.
func (c *BinaryComponentComparator) Name() string { return javaPackage + "BinaryComponentComparator" }

// Marshal gives the protobuf bytes.
func (c *BinaryComponentComparator) Marshal() ([]byte, error) {
	var err error
	if c.Offset > math.MaxInt32 {
		err = invalid("BinaryComponentComparator", "offset %d is above %d", c.Offset, math.MaxInt32)
	}
	return pack("BinaryComponentComparator", &pb.BinaryComponentComparator{Value: set(c.Value), Offset: &c.Offset}, err)
}

// BitOp combines bytes bit by bit.
type BitOp uint8

// HBase's bitwise operators.
const (
	BitAnd BitOp = iota + 1
	BitOr
	BitXor
)

// String gives HBase's name.
func (o BitOp) String() string { return pb.BitComparator_BitwiseOp(o).String() }

// BitComparator holds if any bit of "Value Op what is compared" is set. Bytes
// of another length than Value never match. Use it with Equal or NotEqual.
type BitComparator struct {
	Op    BitOp
	Value []byte
}

// Bit holds if any bit of "b op what is compared" is set.
func Bit[B Bytes](op BitOp, b B) *BitComparator { return &BitComparator{op, []byte(b)} }

// Name is the full Java class name.
func (c *BitComparator) Name() string { return javaPackage + "BitComparator" }

// Marshal gives the protobuf bytes.
func (c *BitComparator) Marshal() ([]byte, error) {
	var err error
	if c.Op < BitAnd || c.Op > BitXor {
		err = invalid("BitComparator", "operator %d is none of HBase's", c.Op)
	}
	return pack("BitComparator", &pb.BitComparator{Comparable: comparable(c.Value), BitwiseOp: pb.BitComparator_BitwiseOp(c.Op).Enum()}, err)
}

// LongComparator compares 8-byte big-endian signed numbers. What has fewer
// bytes does not match; of more, the first 8 count.
type LongComparator struct{ Value int64 }

// Long compares 8-byte big-endian signed numbers.
func Long(n int64) *LongComparator { return &LongComparator{n} }

// Name is the full Java class name.
func (c *LongComparator) Name() string { return javaPackage + "LongComparator" }

// Marshal gives the protobuf bytes.
func (c *LongComparator) Marshal() ([]byte, error) {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.Value))
	return pack("LongComparator", &pb.LongComparator{Comparable: comparable(b)}, nil)
}

// NullComparator compares with "nothing". A cell that is there is never null,
// even if its value is empty.
type NullComparator struct{}

// Null compares with "nothing": Equal holds for an absent part.
func Null() *NullComparator { return &NullComparator{} }

// Name is the full Java class name.
func (c *NullComparator) Name() string { return javaPackage + "NullComparator" }

// Marshal gives the protobuf bytes.
func (c *NullComparator) Marshal() ([]byte, error) {
	return pack("NullComparator", &pb.NullComparator{}, nil)
}

// SubstringComparator holds for values that contain Substring, letter case
// aside. Use it with Equal or NotEqual.
type SubstringComparator struct{ Substring string }

// Substring holds for values that contain s, letter case aside. Use it with
// Equal or NotEqual.
func Substring(s string) *SubstringComparator {
	if !utf8.ValidString(s) {
		return &SubstringComparator{s} // for Marshal to refuse
	}
	return &SubstringComparator{javaLower(s)}
}

// Name is the full Java class name.
func (c *SubstringComparator) Name() string { return javaPackage + "SubstringComparator" }

// Marshal gives the protobuf bytes.
func (c *SubstringComparator) Marshal() ([]byte, error) {
	var err error
	if !utf8.ValidString(c.Substring) {
		err = invalid("SubstringComparator", "the text is no valid UTF-8")
	}
	return pack("SubstringComparator", &pb.SubstringComparator{Substr: new(javaLower(c.Substring))}, err)
}

// CustomComparator is a class this package does not know, as opaque bytes.
type CustomComparator struct {
	// Class is the full Java class name; it must be on the servers' class path.
	Class string
	// Data is what the class's parseFrom takes.
	Data []byte
}

// Name is the class name.
func (c *CustomComparator) Name() string { return c.Class }

// Marshal gives the bytes as they are.
func (c *CustomComparator) Marshal() ([]byte, error) {
	if c.Class == "" {
		return nil, invalid("CustomComparator", "the class name is empty")
	}
	return set(c.Data), nil
}
