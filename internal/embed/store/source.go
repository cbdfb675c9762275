package store

import (
	"bytes"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// source reads a table's cells from the engine: a cells.Source. Between calls
// its engine iterator may be closed (suspend); it is opened again where it
// stood, by key, at the next call.
//
// The position is one of: before the first row; at a cell of the current row;
// behind the current row's last cell; at the end.
type source struct {
	s         *Store
	prefix    []byte // of the table
	opts      pebble.IterOptions
	readPoint uint64
	reversed  bool
	// single: only one row is read, so that the engine may use its row bloom.
	single bool

	it *pebble.Iterator
	// moved: the iterator is not where (rowKey, at) say and has to be put there.
	moved bool

	rowKey []byte // encoded row, terminator included; empty before and after all
	row    []byte // decoded, nil at the end
	rowBuf []byte
	// at is the key of the current cell, empty behind the row's last.
	at      []byte
	cell    cells.Cell
	have    bool
	family  []byte // encoded family of cell, terminator included
	bufs    [2][]byte
	seekKey []byte
}

// nearby is how many keys are passed one by one before a seek: a seek costs
// about as much as eight steps.
const nearby = 8

func (r *source) open() error {
	if r.it == nil {
		it, err := r.s.db.NewIter(&r.opts)
		if err != nil {
			return err
		}
		r.it = it
	}
	return nil
}

// suspend lets go of the engine.
func (r *source) suspend() error {
	if r.it == nil {
		return nil
	}
	if r.have && !r.single {
		// What the cell points to goes away with the iterator.
		r.at = bytes.Clone(r.at)
		r.cell = r.cell.Clone()
	}
	err := r.it.Close()
	r.it = nil
	r.moved = true
	return err
}

// resume puts a new iterator where the old one was.
func (r *source) resume() error {
	if r.it != nil && !r.moved {
		return nil
	}
	if err := r.open(); err != nil {
		return err
	}
	r.moved = false
	switch {
	case r.row == nil:
	case r.have:
		r.seekGE(r.at)
	default:
		r.seekKey = append(r.seekKey[:0], r.rowKey...)
		r.seekKey[len(r.seekKey)-1] = afterTerminator
		r.it.SeekGE(r.seekKey)
	}
	return r.it.Error()
}

// release forgets everything but buffers of moderate size.
func (r *source) release() {
	keep := func(b []byte) []byte {
		if cap(b) > keptBytes {
			return nil
		}
		return b[:0]
	}
	*r = source{rowKey: keep(r.rowKey), rowBuf: keep(r.rowBuf), family: keep(r.family), seekKey: keep(r.seekKey),
		bufs: [2][]byte{keep(r.bufs[0]), keep(r.bufs[1])}}
}

func (r *source) seekGE(key []byte) bool {
	if r.single {
		return r.it.SeekPrefixGE(key)
	}
	return r.it.SeekGE(key)
}

// SeekRow implements cells.Source.
func (r *source) SeekRow(row []byte, inclusive bool) error {
	if err := r.open(); err != nil {
		return err
	}
	r.moved = false
	key := append(r.seekKey[:0], r.prefix...)
	var valid bool
	switch {
	case len(row) == 0 && r.reversed:
		valid = r.it.Last()
	case len(row) == 0:
		valid = r.it.First()
	default:
		key = appendField(key, row)
		if inclusive == r.reversed { // from behind the row
			key[len(key)-1] = afterTerminator
		}
		if r.reversed {
			valid = r.it.SeekLT(key)
		} else {
			valid = r.seekGE(key)
		}
	}
	r.seekKey = key
	return r.settle(valid)
}

// NextRow implements cells.Source.
func (r *source) NextRow() error {
	if err := r.resume(); err != nil {
		return err
	}
	if r.row == nil {
		return nil
	}
	if r.reversed {
		return r.settle(r.it.SeekLT(r.rowKey))
	}
	if !r.have { // the iterator is behind the row already
		return r.settle(r.it.Valid())
	}
	for range nearby {
		if !r.it.Next() || !bytes.HasPrefix(r.it.Key(), r.rowKey) {
			return r.settle(r.it.Valid())
		}
	}
	return r.settle(r.it.NextPrefix())
}

// settle takes up the row in which the iterator stands, or the nearest one in
// scan direction with a cell below the read point.
func (r *source) settle(valid bool) error {
	for valid {
		key := r.it.Key()
		n := splitRow(key)
		r.rowKey = append(r.rowKey[:0], key[:n]...)
		var err error
		if r.row, _, err = decodeField(r.rowKey[tablePrefixLen:], &r.rowBuf); err != nil {
			return err
		}
		r.family = r.family[:0]
		if r.reversed {
			r.it.SeekGE(r.rowKey)
		}
		if err := r.load(); err != nil {
			return err
		}
		if r.have {
			return nil
		}
		if r.reversed {
			valid = r.it.SeekLT(r.rowKey)
		} else {
			valid = r.it.Valid()
		}
	}
	r.row, r.rowKey, r.have = nil, r.rowKey[:0], false
	return r.it.Error()
}

// load takes up the cell at which the iterator stands, or the next one of the
// row that the read point lets us see.
func (r *source) load() error {
	r.have = false
	for {
		if !r.it.Valid() {
			return r.it.Error()
		}
		key := r.it.Key()
		if !bytes.HasPrefix(key, r.rowKey) {
			return nil
		}
		n := len(key) - suffixLen
		if n < len(r.rowKey) {
			return errBadKey
		}
		if err := decodeSuffix(key[n:], &r.cell); err != nil {
			return err
		}
		if r.cell.Seq > r.readPoint {
			r.it.Next()
			continue
		}
		rest := key[len(r.rowKey):n]
		if len(r.family) > 0 && bytes.HasPrefix(rest, r.family) {
			rest = rest[len(r.family):]
		} else {
			end, _, err := fieldEnd(rest)
			if err != nil {
				return err
			}
			// A copy, since the key's buffer is the iterator's.
			r.family = append(r.family[:0], rest[:end]...)
			if r.cell.Family, _, err = decodeField(r.family, &r.bufs[0]); err != nil {
				return err
			}
			rest = rest[end:]
		}
		var err error
		if r.cell.Qualifier, rest, err = decodeField(rest, &r.bufs[1]); err != nil {
			return err
		}
		if len(rest) != 0 {
			return errBadKey
		}
		value, err := r.it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := decodeValue(value, &r.cell); err != nil {
			return err
		}
		r.at = key
		r.cell.Row = r.row
		r.have = true
		return nil
	}
}

// Row implements cells.Source.
func (r *source) Row() []byte { return r.row }

// Cell implements cells.Source.
func (r *source) Cell() *cells.Cell {
	if !r.have {
		return nil
	}
	return &r.cell
}

// Next implements cells.Source.
func (r *source) Next() error {
	if err := r.resume(); err != nil {
		return err
	}
	if !r.have {
		return nil
	}
	r.it.Next()
	return r.load()
}

// SeekCell implements cells.Source.
func (r *source) SeekCell(family, qualifier []byte, ts int64, typ cells.Type) error {
	if err := r.resume(); err != nil {
		return err
	}
	if !r.have {
		return nil
	}
	key := append(r.seekKey[:0], r.rowKey...)
	key = appendField(key, family)
	key = appendField(key, qualifier)
	r.seekKey = appendSuffix(key, ts, typ, ^uint64(0))
	for range nearby {
		if !r.it.Valid() || bytes.Compare(r.it.Key(), r.seekKey) >= 0 {
			return r.load()
		}
		r.it.Next()
	}
	if r.it.Valid() && bytes.Compare(r.it.Key(), r.seekKey) < 0 {
		r.seekGE(r.seekKey)
	}
	return r.load()
}
