package filter

import (
	"bytes"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// fuzzyRow is FuzzyRowFilter: rows that agree with one of some patterns where
// its mask says so. A longer row is compared on the pattern's length, a shorter
// one as far as it goes.
//
// Forward scans are sent ahead by hints, which keep one candidate row for each
// pattern, as in HBase: so which shorter rows show depends on where the scan
// began. Reversed scans (where 2.6.4 can loop for ever) go row by row.
type fuzzyRow struct {
	base
	patterns []fuzzyPattern
	last     int // index of the pattern matched last
	out      bool
	done     bool
	next     []fuzzyNext // nil before the first hint
	asked    bool
}

type fuzzyPattern struct {
	key   []byte
	fixed []bool
}

type fuzzyNext struct {
	row     []byte
	pattern *fuzzyPattern
}

func (p *fuzzyPattern) matches(row []byte) bool {
	for i := range min(len(row), len(p.key)) {
		if p.fixed[i] && p.key[i] != row[i] {
			return false
		}
	}
	return true
}

func (f *fuzzyRow) Reset() error {
	f.out = false
	return nil
}

func (f *fuzzyRow) FilterAllRemaining() bool { return f.done }

func (f *fuzzyRow) FilterRowKey(*cells.Cell) (bool, error) { return f.done, nil }

func (f *fuzzyRow) FilterCell(c *cells.Cell) (cells.ReturnCode, error) {
	for n := range f.patterns {
		i := (f.last + n) % len(f.patterns)
		if f.patterns[i].matches(c.Row) {
			f.last = i
			return cells.Include, nil
		}
	}
	f.last = 0
	f.out = true
	if f.reversed {
		return cells.NextRow, nil
	}
	return cells.SeekNextUsingHint, nil
}

func (f *fuzzyRow) FilterRow() (bool, error) { return f.out, nil }

func (f *fuzzyRow) NextCellHint(c *cells.Cell) (*cells.Cell, error) {
	if !f.asked {
		f.asked = true
		for i := range f.patterns {
			f.candidate(c.Row, &f.patterns[i])
		}
	} else {
		for {
			k := f.nearest()
			if k < 0 || bytes.Compare(c.Row, f.next[k].row) < 0 {
				break
			}
			p := f.next[k].pattern
			f.next = append(f.next[:k], f.next[k+1:]...)
			f.candidate(c.Row, p)
		}
	}
	k := f.nearest()
	if k < 0 {
		f.done = true
		return nil, nil
	}
	return firstOfRow(f.next[k].row), nil
}

func (f *fuzzyRow) nearest() int {
	at := -1
	for i := range f.next {
		if at < 0 || bytes.Compare(f.next[i].row, f.next[at].row) < 0 {
			at = i
		}
	}
	return at
}

func (f *fuzzyRow) candidate(row []byte, p *fuzzyPattern) {
	if r := p.after(row); r != nil {
		f.next = append(f.next, fuzzyNext{r, p})
	}
}

// after is the smallest row that is larger than row and has the pattern; nil
// if there is none.
func (p *fuzzyPattern) after(row []byte) []byte {
	next := make([]byte, max(len(row), len(p.key)))
	copy(next, p.key)
	raise := -1 // last free place that can be raised
	raised := false
	for i := range next {
		var have byte
		if i < len(row) {
			have = row[i]
		}
		if i >= len(p.key) || !p.fixed[i] {
			next[i] = have
			if have != 0xFF {
				raise = i
			}
			continue
		}
		if have < p.key[i] || i >= len(row) {
			raised = true // the fixed byte itself makes it larger
			break
		}
		if have > p.key[i] {
			break
		}
	}
	if !raised {
		if raise < 0 {
			return nil
		}
		next[raise]++
		for i := raise + 1; i < len(next); i++ {
			if i >= len(p.key) || !p.fixed[i] {
				next[i] = 0
			}
		}
	}
	// Zeros at the end that the pattern does not ask for would skip rows that
	// end before them.
	end := min(len(next), len(p.key))
	for end > 0 && !p.fixed[end-1] {
		end--
	}
	end = max(end, raise+1)
	return next[:end]
}
