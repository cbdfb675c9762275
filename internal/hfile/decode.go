package hfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// A flat key is a cell's key as HBase writes it: u16 length of the row, row,
// u8 length of the family, family, qualifier, i64 timestamp, u8 type.
const (
	keyFixed  = 2 + 1 + 8 + 1 // what is not row, family or qualifier
	suffixLen = 8 + 1         // timestamp and type
)

// maxKeyLen is that of the longest row, family and qualifier HBase takes.
const maxKeyLen = 1 << 20

func parseKey(key []byte, c *cells.Cell) error {
	if len(key) < keyFixed {
		return fmt.Errorf("key of %d bytes", len(key))
	}
	row := int(binary.BigEndian.Uint16(key))
	if row > cells.MaxRowLength || 2+row+1+suffixLen > len(key) {
		return fmt.Errorf("row of %d bytes in a key of %d", row, len(key))
	}
	family := int(key[2+row])
	at := 2 + row + 1
	if family > cells.MaxFamilyLength || at+family+suffixLen > len(key) {
		return fmt.Errorf("family of %d bytes in a key of %d", family, len(key))
	}
	end := len(key) - suffixLen
	c.Row = key[2 : 2+row : 2+row]
	c.Family = key[at : at+family : at+family]
	c.Qualifier = key[at+family : end : end]
	c.Timestamp = int64(binary.BigEndian.Uint64(key[end:]))
	c.Type = cells.Type(key[len(key)-1])
	return nil
}

func appendKey(dst []byte, c *cells.Cell) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(c.Row)))
	dst = append(dst, c.Row...)
	dst = append(dst, byte(len(c.Family)))
	dst = append(dst, c.Family...)
	dst = append(dst, c.Qualifier...)
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Timestamp))
	return append(dst, byte(c.Type))
}

// rowOfKey is the row of a flat key; nil if it is broken.
func rowOfKey(key []byte) []byte {
	if len(key) < 2 {
		return nil
	}
	n := int(binary.BigEndian.Uint16(key))
	if 2+n > len(key) {
		return nil
	}
	return key[2 : 2+n : 2+n]
}

// decoder reads the cells of one data block after the other, one at a time:
// key, value and tags are valid until the next cell.
type decoder struct {
	tags, mvcc bool
	packedTags bool

	enc  Encoding
	in   lead
	dict *tagDict

	first bool
	key   []byte
	// keys are the buffers in which keys take turns: the last one is needed to
	// make the next.
	keys   [2][]byte
	turn   int
	family []byte // DIFF keeps it once, with its length before it
	value  []byte
	tag    []byte
	tagBuf []byte
	seq    uint64
}

// start begins a block's cells. payload is what follows the header, unpacked.
func (d *decoder) start(enc Encoding, payload []byte) error {
	d.enc, d.in, d.first = enc, lead{b: payload}, true
	d.value, d.tag = nil, nil
	switch enc {
	case EncodingNone:
	case EncodingRowIndex:
		// Cells, then the offsets of the rows: n, n of them, length of the cells.
		n := len(payload)
		if n < 4 {
			return errShort
		}
		size := int64(binary.BigEndian.Uint32(payload[n-4:]))
		if size > int64(n-8) {
			return errShort
		}
		if rows := int64(binary.BigEndian.Uint32(payload[size:])); size+8+4*rows != int64(n) {
			return fmt.Errorf("index of %d rows behind %d bytes of cells in %d", rows, size, n)
		}
		d.in.b = payload[:size]
	default:
		d.in.take(4) // the length before encoding
		if d.in.bad {
			return errShort
		}
		if d.packedTags {
			if d.dict == nil {
				d.dict = newTagDict()
			}
			d.dict.reset()
		}
	}
	return nil
}

var errCell = errors.New("malformed cell")

// next reads a cell; false without an error is the end of the block.
func (d *decoder) next(c *cells.Cell) (bool, error) {
	if len(d.in.b) == 0 {
		return false, nil
	}
	var err error
	switch d.enc {
	case EncodingNone, EncodingRowIndex:
		err = d.plain()
	case EncodingPrefix:
		err = d.prefix()
	case EncodingDiff:
		err = d.diff()
	case EncodingFastDiff:
		err = d.fastDiff()
	default:
		err = fmt.Errorf("unsupported: encoding %v", d.enc)
	}
	if err == nil && d.in.bad {
		err = errCell
	}
	if err != nil {
		return false, err
	}
	d.first = false
	*c = cells.Cell{Value: d.value, Tags: d.tag, Seq: d.seq}
	return true, parseKey(d.key, c)
}

// trailing reads what follows a value: tags and sequence number.
func (d *decoder) trailing() error {
	d.tag, d.seq = nil, 0
	if d.tags {
		n := 0
		encoded := d.enc != EncodingNone && d.enc != EncodingRowIndex
		if encoded {
			n = d.in.packed()
		} else {
			n = d.in.u16()
		}
		if n > cells.MaxTagsLength {
			return fmt.Errorf("%d bytes of tags", n)
		}
		if n > 0 {
			if encoded && d.packedTags {
				if err := d.unpackTags(n); err != nil {
					return err
				}
			} else {
				d.tag = d.in.take(n)
			}
		}
	}
	if d.mvcc {
		d.seq = uint64(d.in.vlong())
	}
	return nil
}

func (d *decoder) unpackTags(n int) error {
	buf := d.tagBuf[:0]
	for len(buf) < n {
		var tag string
		if b := d.in.u8(); b == notInDict {
			raw := d.in.take(d.in.packed())
			if d.in.bad {
				return errCell
			}
			d.dict.add(raw)
			tag = string(raw)
		} else {
			var ok bool
			if tag, ok = d.dict.get(int(b)<<8 | int(d.in.u8())); !ok || d.in.bad {
				return errors.New("tag that is not in the dictionary")
			}
		}
		if len(buf)+2+len(tag) > n {
			return errors.New("tags longer than they say")
		}
		buf = binary.BigEndian.AppendUint16(buf, uint16(len(tag)))
		buf = append(buf, tag...)
	}
	d.tagBuf, d.tag = buf, buf[:n:n]
	return nil
}

func (d *decoder) plain() error {
	k, v := d.in.i32(), d.in.i32()
	d.key, d.value = d.in.take(k), d.in.take(v)
	return d.trailing()
}

// newKey is room for a key of n bytes that begins as the last one does.
func (d *decoder) newKey(n, common int) ([]byte, error) {
	last := d.key
	if d.first {
		last = nil
	}
	if n < keyFixed || n > maxKeyLen || common > len(last) || common > n || d.in.bad {
		return nil, fmt.Errorf("key of %d bytes with %d of the last one's %d", n, common, len(last))
	}
	d.turn ^= 1
	buf := append(d.keys[d.turn][:0], last[:common]...)
	d.keys[d.turn] = buf
	return buf, nil
}

func (d *decoder) gotKey(key []byte) {
	d.keys[d.turn] = key
	d.key = key
}

func (d *decoder) prefix() error {
	rest, v, common := d.in.packed(), d.in.packed(), d.in.packed()
	key, err := d.newKey(rest+common, common)
	if err != nil {
		return err
	}
	d.gotKey(append(key, d.in.take(rest)...))
	d.value = d.in.take(v)
	return d.trailing()
}

// Flags of DIFF.
const (
	diffSameKeyLen   = 1 << 0
	diffSameValueLen = 1 << 1
	diffSameType     = 1 << 2
	diffTimeIsDelta  = 1 << 3
	diffTimeShift    = 4
	diffTimeMask     = 7 << 4
	diffTimeNegative = 1 << 7
)

func (d *decoder) diff() error {
	if d.first {
		n := int(d.in.u8())
		name := d.in.take(n)
		d.family = append(append(d.family[:0], byte(n)), name...)
	}
	flag := d.in.u8()
	n, v, last := 0, 0, d.key
	if flag&diffSameKeyLen != 0 {
		n = len(last)
	} else {
		n = d.in.packed()
	}
	if flag&diffSameValueLen != 0 {
		v = len(d.value)
	} else {
		v = d.in.packed()
	}
	if d.first && flag&(diffSameKeyLen|diffSameValueLen|diffSameType|diffTimeIsDelta) != 0 {
		return errors.New("first cell refers to one before it")
	}
	common := d.in.packed()
	key, err := d.middle(n, common, d.family)
	if err != nil {
		return err
	}
	ts := d.little(int(flag&diffTimeMask>>diffTimeShift) + 1)
	if flag&diffTimeNegative != 0 {
		ts = -ts
	}
	if flag&diffTimeIsDelta != 0 {
		ts = timeOf(last) - ts
	}
	key = binary.BigEndian.AppendUint64(key, uint64(ts))
	if flag&diffSameType != 0 {
		key = append(key, last[len(last)-1])
	} else {
		key = append(key, d.in.u8())
	}
	d.gotKey(key)
	d.value = d.in.take(v)
	return d.trailing()
}

func timeOf(key []byte) int64 {
	return int64(binary.BigEndian.Uint64(key[len(key)-suffixLen:]))
}

// little reads a number of n bytes, the lowest first.
func (d *decoder) little(n int) int64 {
	var v uint64
	for i, b := range d.in.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return int64(v)
}

// middle builds a key of n bytes up to its qualifier: common bytes of the last
// one, what is new of the row, the family (not stored again), what is new of
// the qualifier.
func (d *decoder) middle(n, common int, family []byte) ([]byte, error) {
	last := d.key
	key, err := d.newKey(n, common)
	if err != nil {
		return nil, err
	}
	if d.first || common < 2+len(rowOfKey(last)) {
		if common < 2 {
			key = append(key, d.in.take(2-common)...)
		}
		if d.in.bad {
			return nil, errCell
		}
		row := int(binary.BigEndian.Uint16(key))
		rest := 2 + row - len(key)
		if rest < 0 || 2+row+len(family)+suffixLen > n {
			return nil, fmt.Errorf("row of %d bytes in a key of %d with %d of the last one's", row, n, common)
		}
		key = append(key, d.in.take(rest)...)
		key = append(key, family...)
	}
	rest := n - suffixLen - len(key)
	if rest < 0 || d.in.bad {
		return nil, errCell
	}
	return append(key, d.in.take(rest)...), nil
}

// Flags of FAST_DIFF; the lowest three bits count the bytes a timestamp has in
// common with the last one.
const (
	fastTimeMask     = 7
	fastSameKeyLen   = 1 << 3
	fastSameValueLen = 1 << 4
	fastSameType     = 1 << 5
	fastSameValue    = 1 << 6
)

func (d *decoder) fastDiff() error {
	flag := d.in.u8()
	n, v, last := 0, 0, d.key
	if flag&fastSameKeyLen != 0 {
		n = len(last)
	} else {
		n = d.in.packed()
	}
	if flag&fastSameValueLen != 0 {
		v = len(d.value)
	} else {
		v = d.in.packed()
	}
	common := d.in.packed()
	if d.first {
		if flag != 0 || common != 0 {
			return errors.New("first cell refers to one before it")
		}
		key, err := d.newKey(n, 0)
		if err != nil {
			return err
		}
		d.gotKey(append(key, d.in.take(n)...))
		if d.in.bad {
			return errCell
		}
		d.value = d.in.take(v)
		// Later cells take row and family out of this key.
		var c cells.Cell
		if err := parseKey(d.key, &c); err != nil {
			return err
		}
		return d.trailing()
	}
	row := len(rowOfKey(last))
	family := last[2+row : 3+row+int(last[2+row])]
	key, err := d.middle(n, common, family)
	if err != nil {
		return err
	}
	same := int(flag & fastTimeMask)
	at := len(last) - suffixLen
	key = append(key, last[at:at+same]...)
	key = append(key, d.in.take(8-same)...)
	if flag&fastSameType != 0 {
		key = append(key, last[len(last)-1])
	} else {
		key = append(key, d.in.u8())
	}
	d.gotKey(key)
	if flag&fastSameValue == 0 {
		d.value = d.in.take(v)
	}
	return d.trailing()
}
