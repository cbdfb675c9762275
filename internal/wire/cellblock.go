package wire

import (
	"encoding/binary"
	"iter"
	"math"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Codec is how cells are laid out in a cell block. Both sides use the one the
// connection header named.
type Codec uint8

const (
	// CodecNone: no cell blocks, every cell inline in its message.
	CodecNone Codec = iota
	// KeyValueCodec writes cells without tags and drops tags it reads.
	KeyValueCodec
	// KeyValueCodecWithTags writes and reads tags too.
	KeyValueCodecWithTags
)

const codecPackage = "org.apache.hadoop.hbase.codec."

// ClassName is the Java class for the connection header, "" for CodecNone.
func (c Codec) ClassName() string {
	switch c {
	case KeyValueCodec:
		return codecPackage + "KeyValueCodec"
	case KeyValueCodecWithTags:
		return codecPackage + "KeyValueCodecWithTags"
	}
	return ""
}

// String is the class name without its package.
func (c Codec) String() string {
	switch c {
	case CodecNone:
		return "none"
	case KeyValueCodec:
		return "KeyValueCodec"
	case KeyValueCodecWithTags:
		return "KeyValueCodecWithTags"
	}
	return "invalid"
}

// CodecByClass finds the codec of a connection header. The empty name is
// CodecNone; a name we do not speak gives the exception to answer with.
func CodecByClass(name string) (Codec, error) {
	switch name {
	case "":
		return CodecNone, nil
	case codecPackage + "KeyValueCodec":
		return KeyValueCodec, nil
	case codecPackage + "KeyValueCodecWithTags":
		return KeyValueCodecWithTags, nil
	}
	return CodecNone, NewRemoteError(ClassUnsupportedCellCodec, "unsupported: cell codec "+name)
}

// CodecByName reads a setting: KeyValueCodec (also when empty),
// KeyValueCodecWithTags, none, or one of their Java classes.
func CodecByName(name string) (Codec, error) {
	switch name {
	case "", "KeyValueCodec":
		return KeyValueCodec, nil
	case "KeyValueCodecWithTags":
		return KeyValueCodecWithTags, nil
	case "none":
		return CodecNone, nil
	}
	c, err := CodecByClass(name)
	if err != nil {
		return c, malformed("setting", "unknown cell codec %q: use KeyValueCodec, KeyValueCodecWithTags or none", cutText(name, 128))
	}
	return c, nil
}

// A KeyValue is
//
//	i32 keyLen | i32 valueLen | key | value [ | u16 tagsLen | tags ]
//	key := u16 rowLen | row | u8 familyLen | family | qualifier | u64 ts | u8 type
//
// and a cell block is i32 length + KeyValue, repeated.
const (
	kvPrefix   = 8             // keyLen, valueLen
	keyFixed   = 2 + 1 + 8 + 1 // rowLen, familyLen, timestamp, type
	lengthSize = 4             // in front of each KeyValue
	cellFixed  = lengthSize + kvPrefix + keyFixed
)

// CellSize is the number of bytes the cell takes in a block.
func (c Codec) CellSize(cell *cells.Cell) int {
	n := cellFixed + len(cell.Row) + len(cell.Family) + len(cell.Qualifier) + len(cell.Value)
	if c == KeyValueCodecWithTags && len(cell.Tags) > 0 {
		n += 2 + len(cell.Tags)
	}
	return n
}

// AppendCell appends one cell to a block. Parts that are too long for the
// format give a *TooLargeError and leave dst as it was.
func (c Codec) AppendCell(dst []byte, cell *cells.Cell) ([]byte, error) {
	if err := checkCell(cell); err != nil {
		return dst, err
	}
	key := keyFixed + len(cell.Row) + len(cell.Family) + len(cell.Qualifier)
	size := kvPrefix + key + len(cell.Value)
	tags := c == KeyValueCodecWithTags && len(cell.Tags) > 0
	if tags {
		size += 2 + len(cell.Tags)
	}
	at := len(dst)
	dst = grow(dst, lengthSize+size)[:at+lengthSize+size]
	b := dst[at:]
	binary.BigEndian.PutUint32(b, uint32(size))
	binary.BigEndian.PutUint32(b[4:], uint32(key))
	binary.BigEndian.PutUint32(b[8:], uint32(len(cell.Value)))
	binary.BigEndian.PutUint16(b[12:], uint16(len(cell.Row)))
	b = b[14:]
	b = b[copy(b, cell.Row):]
	b[0] = byte(len(cell.Family))
	b = b[1:]
	b = b[copy(b, cell.Family):]
	b = b[copy(b, cell.Qualifier):]
	binary.BigEndian.PutUint64(b, uint64(cell.Timestamp))
	b[8] = byte(cell.Type)
	b = b[9:]
	b = b[copy(b, cell.Value):]
	if tags {
		binary.BigEndian.PutUint16(b, uint16(len(cell.Tags)))
		copy(b[2:], cell.Tags)
	}
	return dst, nil
}

// AppendCells appends cells to a block, growing it once.
func (c Codec) AppendCells(dst []byte, list []cells.Cell) ([]byte, error) {
	n := 0
	for i := range list {
		n += c.CellSize(&list[i])
	}
	at := len(dst)
	dst = grow(dst, n)
	for i := range list {
		var err error
		if dst, err = c.AppendCell(dst, &list[i]); err != nil {
			return dst[:at], err
		}
	}
	return dst, nil
}

func checkCell(cell *cells.Cell) error {
	switch {
	case len(cell.Row) > cells.MaxRowLength:
		return &TooLargeError{What: "row", Size: int64(len(cell.Row)), Max: cells.MaxRowLength}
	case len(cell.Family) > cells.MaxFamilyLength:
		return &TooLargeError{What: "family", Size: int64(len(cell.Family)), Max: cells.MaxFamilyLength}
	case len(cell.Tags) > cells.MaxTagsLength:
		return &TooLargeError{What: "tags", Size: int64(len(cell.Tags)), Max: cells.MaxTagsLength}
	}
	// Each part is below 2^31, so the sum fits int64; the whole must fit the
	// int32 in front of it.
	n := int64(cellFixed) + int64(len(cell.Qualifier)) + int64(len(cell.Value)) +
		cells.MaxRowLength + cells.MaxFamilyLength + cells.MaxTagsLength + 2
	if n > math.MaxInt32 {
		return &TooLargeError{What: "cell", Size: n, Max: math.MaxInt32}
	}
	return nil
}

// CellReader walks a cell block. The zero value is an empty block; make one
// with Codec.Reader. Not safe for concurrent use.
type CellReader struct {
	rest  []byte
	codec Codec
	read  int
}

// Reader starts at the first cell of a block.
func (c Codec) Reader(block []byte) CellReader { return CellReader{rest: block, codec: c} }

// More says whether the block has bytes left.
func (r *CellReader) More() bool { return len(r.rest) > 0 }

// Left is how many bytes the block has left.
func (r *CellReader) Left() int { return len(r.rest) }

// Next reads the next cell into c; its slices alias the block. It may only be
// called while More. After an error the reader is at its end.
func (r *CellReader) Next(c *cells.Cell) error {
	kv, err := r.cut()
	if err == nil {
		err = r.codec.parseKeyValue(kv, c)
	}
	if err != nil {
		r.rest = nil
		return err
	}
	return nil
}

// Take appends the next n cells to dst.
func (r *CellReader) Take(n int, dst []cells.Cell) ([]cells.Cell, error) {
	if n < 0 || n > len(r.rest)/cellFixed {
		return dst, malformed("cell block", "%d cells expected in %d bytes", n, len(r.rest))
	}
	if cap(dst)-len(dst) < n {
		out := make([]cells.Cell, len(dst), len(dst)+n)
		copy(out, dst)
		dst = out
	}
	for range n {
		if len(r.rest) == 0 {
			return dst, malformed("cell block", "ends after %d cells, more expected", r.read)
		}
		dst = dst[:len(dst)+1]
		if err := r.Next(&dst[len(dst)-1]); err != nil {
			return dst[:len(dst)-1], err
		}
	}
	return dst, nil
}

// Check passes over n cells, looking at them as Take does.
func (r *CellReader) Check(n int) error {
	var c cells.Cell
	for range n {
		if len(r.rest) == 0 {
			return malformed("cell block", "ends after %d cells, more expected", r.read)
		}
		if err := r.Next(&c); err != nil {
			return err
		}
	}
	return nil
}

// Skip passes over n cells, looking at their lengths only.
func (r *CellReader) Skip(n int) error {
	for range n {
		if len(r.rest) == 0 {
			return malformed("cell block", "ends after %d cells, more expected", r.read)
		}
		if _, err := r.cut(); err != nil {
			r.rest = nil
			return err
		}
	}
	return nil
}

// cut takes one KeyValue off the block.
func (r *CellReader) cut() ([]byte, error) {
	if len(r.rest) < lengthSize {
		return nil, malformed("cell block", "%d bytes after cell %d", len(r.rest), r.read)
	}
	n := binary.BigEndian.Uint32(r.rest)
	if uint64(n) > uint64(len(r.rest)-lengthSize) {
		return nil, malformed("cell block", "cell %d of %d bytes, %d left", r.read, n, len(r.rest)-lengthSize)
	}
	kv := r.rest[lengthSize : lengthSize+int(n)]
	r.rest = r.rest[lengthSize+int(n):]
	r.read++
	return kv, nil
}

func (c Codec) parseKeyValue(kv []byte, cell *cells.Cell) error {
	if len(kv) < kvPrefix+keyFixed {
		return malformed("cell", "%d bytes are too few", len(kv))
	}
	keyLen, valueLen := binary.BigEndian.Uint32(kv), binary.BigEndian.Uint32(kv[4:])
	kv = kv[kvPrefix:]
	if keyLen < keyFixed || uint64(keyLen)+uint64(valueLen) > uint64(len(kv)) {
		return malformed("cell", "key of %d and value of %d bytes in %d", keyLen, valueLen, len(kv))
	}
	key, value, tail := kv[:keyLen], kv[keyLen:keyLen+valueLen:keyLen+valueLen], kv[keyLen+valueLen:]
	rowLen := int(binary.BigEndian.Uint16(key))
	if rowLen > cells.MaxRowLength || rowLen+keyFixed > len(key) {
		return malformed("cell", "row of %d bytes in a key of %d", rowLen, len(key))
	}
	row := key[2 : 2+rowLen : 2+rowLen]
	familyLen := int(key[2+rowLen])
	if familyLen > cells.MaxFamilyLength || rowLen+familyLen+keyFixed > len(key) {
		return malformed("cell", "family of %d bytes in a key of %d", familyLen, len(key))
	}
	key = key[2+rowLen+1:]
	end := len(key) - 9
	cell.Row, cell.Family, cell.Qualifier = row, key[:familyLen:familyLen], key[familyLen:end:end]
	cell.Timestamp, cell.Type = int64(binary.BigEndian.Uint64(key[end:])), cells.Type(key[end+8])
	cell.Value, cell.Tags, cell.Seq = value, nil, 0
	if len(tail) == 0 {
		return nil
	}
	if len(tail) < 2 || int(binary.BigEndian.Uint16(tail)) != len(tail)-2 {
		return malformed("cell", "%d bytes after the value are no tags", len(tail))
	}
	if c == KeyValueCodecWithTags && len(tail) > 2 {
		cell.Tags = tail[2:]
	}
	return nil
}

// CountCells counts the cells of a block, looking at their lengths only.
func CountCells(block []byte) (int, error) {
	r := CellReader{rest: block}
	for r.More() {
		if _, err := r.cut(); err != nil {
			return r.read, err
		}
	}
	return r.read, nil
}

// DecodeCells appends all cells of a block to dst, which grows at most once.
// The cells alias the block.
func (c Codec) DecodeCells(block []byte, dst []cells.Cell) ([]cells.Cell, error) {
	n, err := CountCells(block)
	if err != nil {
		return dst, err
	}
	r := c.Reader(block)
	return r.Take(n, dst)
}

// Cells yields the cells of a block one by one, ending with the error if it is
// malformed. The cells alias the block.
func (c Codec) Cells(block []byte) iter.Seq2[cells.Cell, error] {
	return func(yield func(cells.Cell, error) bool) {
		r := c.Reader(block)
		for r.More() {
			var cell cells.Cell
			err := r.Next(&cell)
			if !yield(cell, err) || err != nil {
				return
			}
		}
	}
}
