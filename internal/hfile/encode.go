package hfile

import (
	"encoding/binary"
	"math/bits"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// encoder writes the cells of one data block after the other, with tags and
// sequence numbers.
type encoder struct {
	enc        Encoding
	packedTags bool
	dict       *tagDict

	out   []byte
	plain int // length before encoding
	first bool
	key   []byte // of the last cell
	spare []byte
	last  struct {
		row   int
		ts    int64
		value []byte
	}
	rows []uint32 // ROW_INDEX_V1: where rows begin
}

// start begins a block. buf is used again.
func (e *encoder) start(buf []byte) {
	e.out, e.plain, e.first, e.rows = buf[:0], 0, true, e.rows[:0]
	switch e.enc {
	case EncodingNone:
	case EncodingRowIndex:
		e.out = binary.BigEndian.AppendUint16(e.out, uint16(e.enc))
	default:
		e.out = binary.BigEndian.AppendUint16(e.out, uint16(e.enc))
		e.out = append(e.out, 0, 0, 0, 0)
		if e.packedTags {
			if e.dict == nil {
				e.dict = newTagDict()
			}
			e.dict.reset()
		}
	}
}

// idLen is the length of an encoding's number before the cells.
const idLen = 2

// finish gives the block's payload.
func (e *encoder) finish() []byte {
	switch e.enc {
	case EncodingNone:
	case EncodingRowIndex:
		size := len(e.out) - idLen
		e.out = binary.BigEndian.AppendUint32(e.out, uint32(len(e.rows)))
		for _, at := range e.rows {
			e.out = binary.BigEndian.AppendUint32(e.out, at)
		}
		e.out = binary.BigEndian.AppendUint32(e.out, uint32(size))
	default:
		binary.BigEndian.PutUint32(e.out[idLen:], uint32(e.plain))
	}
	return e.out
}

func (e *encoder) add(c *cells.Cell) {
	key := appendKey(e.spare[:0], c)
	seq := appendVLong(nil, int64(c.Seq))
	e.plain += 8 + len(key) + len(c.Value) + 2 + len(c.Tags) + len(seq)
	switch e.enc {
	case EncodingNone, EncodingRowIndex:
		if e.enc == EncodingRowIndex && (e.first || !sameRow(key, e.key)) {
			e.rows = append(e.rows, uint32(len(e.out)-idLen))
		}
		e.out = binary.BigEndian.AppendUint32(e.out, uint32(len(key)))
		e.out = binary.BigEndian.AppendUint32(e.out, uint32(len(c.Value)))
		e.out = append(append(e.out, key...), c.Value...)
	case EncodingPrefix:
		common := 0
		if !e.first {
			common = commonPrefix(key, e.key)
		}
		e.ints(len(key)-common, len(c.Value), common)
		e.out = append(append(e.out, key[common:]...), c.Value...)
	case EncodingDiff:
		e.diff(key, c)
	case EncodingFastDiff:
		e.fastDiff(key, c)
	}
	e.trailing(c, seq)
	e.spare, e.key, e.first = e.key, key, false
	e.last.row, e.last.ts = len(c.Row), c.Timestamp
	e.last.value = append(e.last.value[:0], c.Value...)
}

func sameRow(a, b []byte) bool { return string(rowOfKey(a)) == string(rowOfKey(b)) }

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func (e *encoder) ints(list ...int) {
	for _, v := range list {
		e.out = binary.AppendUvarint(e.out, uint64(v))
	}
}

func (e *encoder) trailing(c *cells.Cell, seq []byte) {
	encoded := e.enc != EncodingNone && e.enc != EncodingRowIndex
	if encoded {
		e.ints(len(c.Tags))
	} else {
		e.out = binary.BigEndian.AppendUint16(e.out, uint16(len(c.Tags)))
	}
	if encoded && e.packedTags {
		for tags := c.Tags; len(tags) >= 2; {
			n := int(binary.BigEndian.Uint16(tags))
			tag := tags[2 : 2+n]
			tags = tags[2+n:]
			if i, ok := e.dict.find(tag); ok {
				e.out = binary.BigEndian.AppendUint16(e.out, uint16(i))
				continue
			}
			e.out = append(e.out, notInDict)
			e.ints(len(tag))
			e.out = append(e.out, tag...)
		}
	} else {
		e.out = append(e.out, c.Tags...)
	}
	e.out = append(e.out, seq...)
}

// middle writes what is new of row and qualifier behind common bytes.
func (e *encoder) middle(key []byte, c *cells.Cell, common int) {
	at := 2 + len(c.Row)
	if e.first || common < 2+e.last.row {
		// The row may be new while the lengths are those of the last one.
		e.out = append(e.out, key[min(common, at):at]...)
		e.out = append(e.out, c.Qualifier...)
		return
	}
	e.out = append(e.out, key[common:len(key)-suffixLen]...)
}

// commonMiddle is how many bytes a key shares with the last one before
// timestamp and type: all of row and family, or less than the row. Within it,
// nothing may end between the row and the qualifier.
func (e *encoder) commonMiddle(key []byte, c *cells.Cell) int {
	n := commonPrefix(key[:len(key)-suffixLen], e.key[:len(e.key)-suffixLen])
	if n < 2+len(c.Row)+1+len(c.Family) {
		return min(n, 2+len(c.Row), 1+e.last.row)
	}
	return n
}

// bytesOf is how many bytes a number needs, at least one.
func bytesOf(v int64) int { return max(1, (bits.Len64(uint64(v))+7)/8) }

func (e *encoder) diff(key []byte, c *cells.Cell) {
	var flag byte
	common, v, size := 0, c.Timestamp, 0
	negative := v < 0
	if negative {
		v = -v
	}
	size = bytesOf(v)
	if e.first {
		e.out = append(append(e.out, byte(len(c.Family))), c.Family...)
	} else {
		common = e.commonMiddle(key, c)
		if len(key) == len(e.key) {
			flag |= diffSameKeyLen
		}
		if len(c.Value) == len(e.last.value) {
			flag |= diffSameValueLen
		}
		if key[len(key)-1] == e.key[len(e.key)-1] {
			flag |= diffSameType
		}
		delta := e.last.ts - c.Timestamp
		down := delta < 0
		if down {
			delta = -delta
		}
		if n := bytesOf(delta); n < size {
			flag |= diffTimeIsDelta
			v, size, negative = delta, n, down
		}
	}
	flag |= byte(size-1) << diffTimeShift
	if negative {
		flag |= diffTimeNegative
	}
	e.out = append(e.out, flag)
	if flag&diffSameKeyLen == 0 {
		e.ints(len(key))
	}
	if flag&diffSameValueLen == 0 {
		e.ints(len(c.Value))
	}
	e.ints(common)
	e.middle(key, c, common)
	for i := range size {
		e.out = append(e.out, byte(v>>(8*i)))
	}
	if flag&diffSameType == 0 {
		e.out = append(e.out, key[len(key)-1])
	}
	e.out = append(e.out, c.Value...)
}

func (e *encoder) fastDiff(key []byte, c *cells.Cell) {
	if e.first {
		e.out = append(e.out, 0)
		e.ints(len(key), len(c.Value), 0)
		e.out = append(append(e.out, key...), c.Value...)
		return
	}
	var flag byte
	common := e.commonMiddle(key, c)
	if len(key) == len(e.key) {
		flag |= fastSameKeyLen
	}
	if len(c.Value) == len(e.last.value) {
		flag |= fastSameValueLen
		if string(c.Value) == string(e.last.value) {
			flag |= fastSameValue
		}
	}
	if key[len(key)-1] == e.key[len(e.key)-1] {
		flag |= fastSameType
	}
	at, was := len(key)-suffixLen, len(e.key)-suffixLen
	same := min(fastTimeMask, commonPrefix(key[at:at+8], e.key[was:was+8]))
	flag |= byte(same)
	e.out = append(e.out, flag)
	if flag&fastSameKeyLen == 0 {
		e.ints(len(key))
	}
	if flag&fastSameValueLen == 0 {
		e.ints(len(c.Value))
	}
	e.ints(common)
	e.middle(key, c, common)
	e.out = append(e.out, key[at+same:at+8]...)
	if flag&fastSameType == 0 {
		e.out = append(e.out, key[len(key)-1])
	}
	if flag&fastSameValue == 0 {
		e.out = append(e.out, c.Value...)
	}
}
