package filter

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// rowRange is a range of MultiRowRangeFilter; an empty bound is open.
type rowRange struct {
	start, stop       []byte
	includeStart, inc bool // inc: the stop row is included
}

func (r *rowRange) valid() bool {
	if len(r.start) == 0 || len(r.stop) == 0 {
		return true
	}
	cmp := bytes.Compare(r.start, r.stop)
	return cmp < 0 || cmp == 0 && r.inc // (a, a] is taken, and empty
}

// before says that the row lies before the range, after that it lies behind.
func (r *rowRange) before(row []byte) bool {
	cmp := bytes.Compare(row, r.start)
	return cmp < 0 || cmp == 0 && !r.includeStart
}

func (r *rowRange) after(row []byte) bool {
	if len(r.stop) == 0 {
		return false
	}
	cmp := bytes.Compare(row, r.stop)
	return cmp > 0 || cmp == 0 && !r.inc
}

// rowRanges is MultiRowRangeFilter.
type rowRanges struct {
	base
	ranges []rowRange // sorted, apart from one another
	code   cells.ReturnCode
	hint   []byte
	done   bool
}

// newRowRanges sorts and merges. Of ranges with one start the first listed
// decides whether it is included, as in HBase.
func newRowRanges(ranges []rowRange) (*rowRanges, error) {
	if len(ranges) == 0 {
		return nil, cells.IOException("java.lang.IllegalArgumentException: No ranges found.")
	}
	bad := 0
	var names strings.Builder
	for i := range ranges {
		if !ranges[i].valid() {
			bad++
			names.WriteString("\nInvalid range: start row => " + cells.Quote(ranges[i].start) + ", stop row => " + cells.Quote(ranges[i].stop))
		}
	}
	if bad > 0 {
		return nil, cells.IOException("java.lang.IllegalArgumentException: " + strconv.Itoa(bad) + " invaild ranges." + names.String())
	}
	ranges = slices.Clone(ranges)
	slices.SortStableFunc(ranges, func(a, b rowRange) int { return bytes.Compare(a.start, b.start) })
	merged := ranges[:1:1]
	for _, r := range ranges[1:] {
		last := &merged[len(merged)-1]
		touch := len(last.stop) == 0
		if !touch {
			cmp := bytes.Compare(last.stop, r.start)
			touch = cmp > 0 || cmp == 0 && (last.inc || r.includeStart)
		}
		if !touch {
			merged = append(merged, r)
			continue
		}
		if len(last.stop) == 0 {
			continue
		}
		if len(r.stop) == 0 {
			last.stop, last.inc = nil, r.inc
			continue
		}
		switch cmp := bytes.Compare(r.stop, last.stop); {
		case cmp > 0:
			last.stop, last.inc = r.stop, r.inc
		case cmp == 0:
			last.inc = last.inc || r.inc
		}
	}
	return &rowRanges{ranges: merged}, nil
}

func (f *rowRanges) FilterAllRemaining() bool { return f.done }

func (f *rowRanges) FilterRowKey(c *cells.Cell) (bool, error) {
	if f.done {
		return true, nil
	}
	if f.reversed {
		f.enterReversed(c.Row)
	} else {
		f.enter(c.Row)
	}
	return false, nil
}

func (f *rowRanges) enter(row []byte) {
	for len(f.ranges) > 0 && f.ranges[0].after(row) {
		f.ranges = f.ranges[1:]
	}
	if len(f.ranges) == 0 {
		f.done, f.code = true, cells.NextRow
		return
	}
	f.place(row, &f.ranges[0], f.ranges[0].before(row), f.ranges[0].start)
}

func (f *rowRanges) enterReversed(row []byte) {
	n := len(f.ranges)
	for n > 0 && f.ranges[n-1].before(row) {
		n--
	}
	f.ranges = f.ranges[:n]
	if n == 0 {
		f.done, f.code = true, cells.NextRow
		return
	}
	f.place(row, &f.ranges[n-1], f.ranges[n-1].after(row), f.ranges[n-1].stop)
}

// place decides about a row that is in the range, or outside of it with the
// bound nearest to it given.
func (f *rowRanges) place(row []byte, r *rowRange, outside bool, bound []byte) {
	switch {
	case !outside:
		f.code = cells.Include
	case bytes.Equal(row, bound): // excluded itself
		f.code = cells.NextRow
	default:
		f.code, f.hint = cells.SeekNextUsingHint, bound
	}
}

func (f *rowRanges) FilterCell(*cells.Cell) (cells.ReturnCode, error) { return f.code, nil }

func (f *rowRanges) NextCellHint(*cells.Cell) (*cells.Cell, error) { return firstOfRow(f.hint), nil }
