package cells

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Type is the type byte of a cell (KeyValue.Type in HBase). Larger codes sort
// first at equal coordinates and timestamp, so a delete precedes the puts it
// hides.
type Type uint8

// The types that occur in stored cells, and the two bounds that occur only in
// search keys.
const (
	Minimum             Type = 0
	Put                 Type = 4
	Delete              Type = 8  // one version of a column
	DeleteFamilyVersion Type = 10 // every column of a family, at exactly one timestamp
	DeleteColumn        Type = 12 // all versions of a column up to a timestamp
	DeleteFamily        Type = 14 // every column of a family up to a timestamp
	Maximum             Type = 255
)

// String gives HBase's name of the type.
func (t Type) String() string {
	switch t {
	case Minimum:
		return "Minimum"
	case Put:
		return "Put"
	case Delete:
		return "Delete"
	case DeleteFamilyVersion:
		return "DeleteFamilyVersion"
	case DeleteColumn:
		return "DeleteColumn"
	case DeleteFamily:
		return "DeleteFamily"
	case Maximum:
		return "Maximum"
	}
	return "Type(" + strconv.Itoa(int(t)) + ")"
}

// IsDelete says whether cells of this type are delete markers.
func (t Type) IsDelete() bool {
	switch t {
	case Delete, DeleteFamilyVersion, DeleteColumn, DeleteFamily:
		return true
	}
	return false
}

// LatestTimestamp stands for "the server's clock" in a mutation
// (HConstants.LATEST_TIMESTAMP) and for "no upper bound" in a read.
const LatestTimestamp int64 = math.MaxInt64

// Limits of HBase's KeyValue format.
const (
	MaxRowLength    = math.MaxInt16
	MaxFamilyLength = math.MaxInt8
	MaxTagsLength   = math.MaxUint16
)

// Cell is one version of one column. The byte slices may alias a larger
// buffer; whoever made the cell says for how long they stay valid.
type Cell struct {
	Row       []byte
	Family    []byte
	Qualifier []byte
	// Timestamp is in milliseconds since the epoch unless the writer chose
	// otherwise; never negative in a stored cell.
	Timestamp int64
	Type      Type
	Value     []byte
	// Tags are in wire form (u16 length, u8 type, bytes; repeated).
	Tags []byte
	// Seq is the write's sequence number (mvcc): set by the server's store,
	// zero on the client.
	Seq uint64
}

// Compare orders cells as HBase's CellComparatorImpl does, sequence included.
func Compare(a, b *Cell) int {
	if c := bytes.Compare(a.Row, b.Row); c != 0 {
		return c
	}
	return CompareWithinRow(a, b)
}

// CompareWithinRow orders two cells of one row.
func CompareWithinRow(a, b *Cell) int {
	if c := bytes.Compare(a.Family, b.Family); c != 0 {
		return c
	}
	if c := bytes.Compare(a.Qualifier, b.Qualifier); c != 0 {
		return c
	}
	if a.Timestamp != b.Timestamp {
		if a.Timestamp > b.Timestamp {
			return -1
		}
		return 1
	}
	if a.Type != b.Type {
		if a.Type > b.Type {
			return -1
		}
		return 1
	}
	if a.Seq != b.Seq {
		if a.Seq > b.Seq {
			return -1
		}
		return 1
	}
	return 0
}

// SameColumn says whether two cells of one row lie in the same column.
func SameColumn(a, b *Cell) bool {
	return bytes.Equal(a.Qualifier, b.Qualifier) && bytes.Equal(a.Family, b.Family)
}

// HeapSize is the size by which result limits count a cell: the length of its
// KeyValue without tags (KeyValue.getSerializedSize).
func (c *Cell) HeapSize() int {
	return 20 + len(c.Row) + len(c.Family) + len(c.Qualifier) + len(c.Value)
}

// keyValueOverhead is what an ExtendedCell of HBase weighs beside its bytes.
const keyValueOverhead = 40

// ResultSize is the size by which a scan's limits count a cell: HBase looks at
// the serialized size and at the size in memory (KeyValue.heapSize), and the
// latter reaches a limit first.
func (c *Cell) ResultSize() int { return keyValueOverhead + c.HeapSize() }

// Clone copies the cell and its bytes into one fresh buffer.
func (c *Cell) Clone() Cell {
	n := len(c.Row) + len(c.Family) + len(c.Qualifier) + len(c.Value) + len(c.Tags)
	buf := make([]byte, 0, n)
	take := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		at := len(buf)
		buf = append(buf, b...)
		return buf[at:len(buf):len(buf)]
	}
	d := *c
	d.Row, d.Family, d.Qualifier = take(c.Row), take(c.Family), take(c.Qualifier)
	d.Value, d.Tags = take(c.Value), take(c.Tags)
	return d
}

// String prints the cell as HBase's tools do: row/family:qualifier/ts/type/vlen.
func (c *Cell) String() string {
	return fmt.Sprintf("%s/%s:%s/%d/%s/vlen=%d", Quote(c.Row), Quote(c.Family), Quote(c.Qualifier), c.Timestamp, c.Type, len(c.Value))
}

// Quote prints bytes as HBase's Bytes.toStringBinary: printable ASCII stands
// for itself, except the backslash; everything else is \xHH.
func Quote(b []byte) string {
	const hex = "0123456789ABCDEF"
	var s strings.Builder
	s.Grow(len(b))
	for _, c := range b {
		if c >= ' ' && c <= '~' && c != '\\' {
			s.WriteByte(c)
			continue
		}
		s.WriteString(`\x`)
		s.WriteByte(hex[c>>4])
		s.WriteByte(hex[c&15])
	}
	return s.String()
}

// QuoteShort is Quote cut to at most max bytes of input, for error texts.
func QuoteShort(b []byte, max int) string {
	if len(b) <= max {
		return Quote(b)
	}
	return Quote(b[:max]) + fmt.Sprintf("...(%d bytes)", len(b))
}
