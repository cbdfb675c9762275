package store

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// First byte of every key: which space it belongs to.
const (
	spaceCatalog  byte = 0x01 // the master's keys, as they are
	spaceInternal byte = 0x02 // the store's own: counters, flags
	spaceCells    byte = 0x10
)

// A field inside a cell's key has its 0x00 bytes written as 0x00 0xFF and ends
// with 0x00 0x01, so that encoded keys sort as their fields do and a field
// sorts before its extensions.
const (
	escape     byte = 0x00
	escaped00  byte = 0xFF
	terminator byte = 0x01
	// afterTerminator in place of the terminator gives a key behind everything
	// that has the field, and before any longer field.
	afterTerminator byte = 0x02
)

const (
	tablePrefixLen = 5          // space, table id
	suffixLen      = 8 + 1 + 8  // timestamp, type, sequence
	minCellKeyLen  = 5 + 6 + 17 // three empty fields
)

var errBadKey = errors.New("malformed cell key")

func appendTablePrefix(dst []byte, id uint32) []byte {
	dst = append(dst, spaceCells)
	return binary.BigEndian.AppendUint32(dst, id)
}

// appendField appends an escaped field with its terminator.
func appendField(dst, field []byte) []byte {
	for {
		i := bytes.IndexByte(field, escape)
		if i < 0 {
			break
		}
		dst = append(dst, field[:i+1]...)
		dst = append(dst, escaped00)
		field = field[i+1:]
	}
	dst = append(dst, field...)
	return append(dst, escape, terminator)
}

// appendRowKey appends the part of a key that all cells of a row share.
func appendRowKey(dst []byte, id uint32, row []byte) []byte {
	return appendField(appendTablePrefix(dst, id), row)
}

func appendSuffix(dst []byte, ts int64, typ cells.Type, seq uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, ^uint64(ts))
	dst = append(dst, ^byte(typ))
	return binary.BigEndian.AppendUint64(dst, ^seq)
}

// appendCellKey appends the whole key of a cell.
func appendCellKey(dst []byte, id uint32, c *cells.Cell) []byte {
	dst = appendRowKey(dst, id, c.Row)
	dst = appendField(dst, c.Family)
	dst = appendField(dst, c.Qualifier)
	return appendSuffix(dst, c.Timestamp, c.Type, c.Seq)
}

// fieldEnd finds the end of the encoded field that key begins with, its
// terminator included, and whether anything in it is escaped.
func fieldEnd(key []byte) (end int, plain bool, err error) {
	plain = true
	for at := 0; ; {
		i := bytes.IndexByte(key[at:], escape)
		if i < 0 || at+i+1 >= len(key) {
			return 0, false, errBadKey
		}
		at += i + 2
		switch key[at-1] {
		case terminator:
			return at, plain, nil
		case escaped00:
			plain = false
		default:
			return 0, false, errBadKey
		}
	}
}

// decodeField reads the field that key begins with. The result aliases key
// where nothing is escaped, and otherwise buf, which is grown as needed.
func decodeField(key []byte, buf *[]byte) (field, rest []byte, err error) {
	end, plain, err := fieldEnd(key)
	if err != nil {
		return nil, nil, err
	}
	if plain {
		return key[: end-2 : end-2], key[end:], nil
	}
	out := (*buf)[:0]
	for in := key[:end-2]; ; {
		i := bytes.IndexByte(in, escape)
		if i < 0 {
			out = append(out, in...)
			break
		}
		out = append(out, in[:i+1]...)
		in = in[i+2:]
	}
	*buf = out
	return out[:len(out):len(out)], key[end:], nil
}

// decodeCellKey reads a whole key. Bufs hold what has to be unescaped.
func decodeCellKey(key []byte, bufs *[3][]byte) (id uint32, c cells.Cell, err error) {
	if len(key) < minCellKeyLen || key[0] != spaceCells {
		return 0, c, errBadKey
	}
	id = binary.BigEndian.Uint32(key[1:])
	rest := key[tablePrefixLen:]
	if c.Row, rest, err = decodeField(rest, &bufs[0]); err != nil {
		return 0, c, err
	}
	if c.Family, rest, err = decodeField(rest, &bufs[1]); err != nil {
		return 0, c, err
	}
	if c.Qualifier, rest, err = decodeField(rest, &bufs[2]); err != nil {
		return 0, c, err
	}
	if err := decodeSuffix(rest, &c); err != nil {
		return 0, c, err
	}
	return id, c, nil
}

func decodeSuffix(suffix []byte, c *cells.Cell) error {
	if len(suffix) != suffixLen {
		return errBadKey
	}
	c.Timestamp = int64(^binary.BigEndian.Uint64(suffix))
	c.Type = cells.Type(^suffix[8])
	c.Seq = ^binary.BigEndian.Uint64(suffix[9:])
	return nil
}

// A stored value is a byte of flags, the tags if flagTags says so (with their
// length as an unsigned varint before them), and the cell's value.
const flagTags byte = 1

func appendValue(dst []byte, c *cells.Cell) []byte {
	if len(c.Tags) == 0 {
		dst = append(dst, 0)
		return append(dst, c.Value...)
	}
	dst = append(dst, flagTags)
	dst = binary.AppendUvarint(dst, uint64(len(c.Tags)))
	dst = append(dst, c.Tags...)
	return append(dst, c.Value...)
}

func decodeValue(stored []byte, c *cells.Cell) error {
	if len(stored) == 0 {
		return errors.New("malformed cell value")
	}
	flags, rest := stored[0], stored[1:]
	if flags&^flagTags != 0 {
		return errors.New("cell value with unknown flags")
	}
	c.Tags = nil
	if flags&flagTags != 0 {
		n, used := binary.Uvarint(rest)
		if used <= 0 || n > uint64(len(rest)-used) {
			return errors.New("malformed cell tags")
		}
		c.Tags = rest[used : used+int(n) : used+int(n)]
		rest = rest[used+int(n):]
	}
	c.Value = rest[:len(rest):len(rest)]
	return nil
}

// comparer orders keys bytewise and tells the engine that the cells of a row
// belong together, so that its bloom filters are by row. Its name is written
// into the store: a change of order or split needs another name.
func comparer() *pebble.Comparer {
	c := *pebble.DefaultComparer
	c.Name = "holdfast.cells.v1"
	c.Split = splitRow
	c.Separator = func(dst, a, b []byte) []byte {
		// A separator between two cells of one row would not split like a
		// cell's key; between rows any shorter key will do.
		n := splitRow(a)
		if n == splitRow(b) && bytes.Equal(a[:n], b[:n]) {
			return append(dst, a...)
		}
		return pebble.DefaultComparer.Separator(dst, a, b)
	}
	c.ImmediateSuccessor = func(dst, prefix []byte) []byte {
		if n := len(prefix); n > 0 && prefix[0] == spaceCells && n >= 2 && prefix[n-1] == terminator && prefix[n-2] == escape {
			dst = append(dst, prefix...)
			dst[len(dst)-1] = afterTerminator
			return dst
		}
		return append(append(dst, prefix...), 0)
	}
	return &c
}

// splitRow is the length of the part of a key that the cells of a row share.
// Keys of the other spaces, and bounds that end inside a row, are whole.
func splitRow(key []byte) int {
	if len(key) < tablePrefixLen || key[0] != spaceCells {
		return len(key)
	}
	for at := tablePrefixLen; ; {
		i := bytes.IndexByte(key[at:], escape)
		if i < 0 || at+i+1 >= len(key) {
			return len(key)
		}
		at += i + 2
		if key[at-1] != escaped00 {
			return at
		}
	}
}
