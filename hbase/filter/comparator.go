package filter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Op compares a part of a cell with a comparator, in that order: Row(Greater,
// Binary("m")) keeps rows greater than "m".
type Op uint8

// HBase's operators. NoOp excludes everything.
const (
	Less Op = iota
	LessOrEqual
	Equal
	NotEqual
	GreaterOrEqual
	Greater
	NoOp
)

// String gives HBase's name.
func (o Op) String() string { return pb.CompareType(o).String() }

// Comparator is what a part of a cell is compared with.
type Comparator interface {
	// Name is the full Java class name.
	Name() string
	// Marshal gives the protobuf bytes of that class.
	Marshal() ([]byte, error)
}

func comparable[B Bytes](b B) *pb.ByteArrayComparable {
	v := []byte(b)
	if v == nil {
		v = []byte{}
	}
	return &pb.ByteArrayComparable{Value: v}
}

// Binary compares bytes in byte order.
func Binary[B Bytes](b B) Comparator {
	return &basic{class: "BinaryComparator", msg: &pb.BinaryComparator{Comparable: comparable(b)}}
}

// BinaryPrefix compares the first len(b) bytes.
func BinaryPrefix[B Bytes](b B) Comparator {
	return &basic{class: "BinaryPrefixComparator", msg: &pb.BinaryPrefixComparator{Comparable: comparable(b)}}
}

// Null compares with "nothing": Equal holds for an absent part.
func Null() Comparator { return &basic{class: "NullComparator", msg: &pb.NullComparator{}} }

// Substring holds for values that contain s, letter case aside. Use it with
// Equal or NotEqual.
func Substring(s string) Comparator {
	return &basic{class: "SubstringComparator", msg: &pb.SubstringComparator{Substr: new(strings.ToLower(s))}}
}

// dotAll is java.util.regex.Pattern.DOTALL, which HBase's Java client sets.
const dotAll = 32

// Regex holds for values in which the Java regular expression finds a match.
// Use it with Equal or NotEqual.
func Regex(pattern string) Comparator {
	return &basic{class: "RegexStringComparator", msg: &pb.RegexStringComparator{
		Pattern: &pattern, PatternFlags: new(int32(dotAll)), Charset: new("UTF-8"), Engine: new("JAVA"),
	}}
}

// Long compares 8-byte big-endian numbers.
func Long(n int64) Comparator {
	b := make([]byte, 8)
	for i := range b {
		b[i] = byte(uint64(n) >> (8 * (7 - i)))
	}
	return &basic{class: "LongComparator", msg: &pb.LongComparator{Comparable: comparable(b)}}
}

func compare(op Op, c Comparator) (*pb.CompareFilter, error) {
	m := &pb.CompareFilter{CompareOp: pb.CompareType(op).Enum()}
	if op > NoOp {
		return m, fmt.Errorf("operator %d is none of HBase's", op)
	}
	if c == nil {
		if op == NoOp {
			return m, nil
		}
		return m, errors.New("comparator is nil")
	}
	b, err := c.Marshal()
	m.Comparator = &pb.Comparator{Name: new(c.Name()), SerializedComparator: b}
	return m, err
}
