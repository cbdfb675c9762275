package filter

import (
	"bytes"
	"math/rand/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// prefix is PrefixFilter. A nil prefix passes nothing.
type prefix struct {
	base
	prefix []byte
	passed bool // the rows with the prefix are behind us
	in     bool
}

func (f *prefix) Reset() error {
	f.in = false
	return nil
}

func (f *prefix) FilterAllRemaining() bool { return f.passed }

func (f *prefix) FilterRowKey(c *cells.Cell) (bool, error) {
	if f.prefix == nil || f.passed || len(c.Row) < len(f.prefix) {
		return true, nil
	}
	cmp := bytes.Compare(c.Row[:len(f.prefix)], f.prefix)
	if cmp > 0 && !f.reversed || cmp < 0 && f.reversed {
		f.passed = true
	}
	f.in = cmp == 0
	return !f.in, nil
}

func (f *prefix) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	if !f.in {
		return cells.NextRow, nil
	}
	return cells.Include, nil
}

func (f *prefix) FilterRow() (bool, error) { return !f.in, nil }

// inclusiveStop is InclusiveStopFilter.
type inclusiveStop struct {
	base
	stop []byte
	done bool
}

func (f *inclusiveStop) FilterAllRemaining() bool { return f.done }

func (f *inclusiveStop) FilterRowKey(c *cells.Cell) (bool, error) {
	if !f.done {
		cmp := bytes.Compare(c.Row, f.stop)
		f.done = cmp > 0 && !f.reversed || cmp < 0 && f.reversed
	}
	return f.done, nil
}

func (f *inclusiveStop) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	if f.done {
		return cells.NextRow, nil
	}
	return cells.Include, nil
}

// page is PageFilter: a number of rows, in each region.
type page struct {
	base
	size, rows int64
}

func (f *page) FilterAllRemaining() bool { return f.rows >= f.size }

func (f *page) FilterRow() (bool, error) {
	f.rows++
	return f.rows > f.size, nil
}

func (f *page) HasFilterRow() bool { return true }

// randomRow is RandomRowFilter.
type randomRow struct {
	base
	chance float32
	out    bool
}

func (f *randomRow) Reset() error {
	f.out = false
	return nil
}

func (f *randomRow) FilterRowKey(*cells.Cell) (bool, error) {
	switch {
	case f.chance < 0:
		f.out = true
	case f.chance > 1:
		f.out = false
	default:
		f.out = rand.Float32() >= f.chance
	}
	return f.out, nil
}

func (f *randomRow) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	if f.out {
		return cells.NextRow, nil
	}
	return cells.Include, nil
}

func (f *randomRow) FilterRow() (bool, error) { return f.out, nil }
func (f *randomRow) HasFilterRow() bool       { return true }

// all is FilterAllFilter.
type all struct{ base }

func (*all) FilterAllRemaining() bool               { return true }
func (*all) FilterRowKey(*cells.Cell) (bool, error) { return true, nil }
func (*all) FilterCell(*cells.Cell) (cells.ReturnCode, error) {
	return cells.Skip, nil
}
func (*all) FilterRow() (bool, error) { return true, nil }
func (*all) HasFilterRow() bool       { return true }
