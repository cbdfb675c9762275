package torture

import (
	"fmt"
	"sync/atomic"

	"github.com/holdfast-hbase/holdfast/hbase"
)

const (
	family        = "f"
	staticColumn  = "s"
	counterColumn = "c"
	// wideCells is how many more cells the first row of a region has, so that
	// scans with a batch limit cut it.
	wideCells = 40
)

// counter is what may be stored in a counter: at least what was acknowledged,
// at most what was started.
type counter struct {
	started, acked atomic.Int64
}

type row struct {
	key     []byte
	region  int // of the table's first shape
	wide    bool
	counter *counter // nil for rows that stay as they are
}

// static is the value of a row's fixed cell.
func (r *row) static() string { return "value of " + string(r.key) }

// cells is how many cells a whole row has.
func (r *row) cells() int {
	n := 1
	if r.counter != nil {
		n++
	}
	if r.wide {
		n += wideCells
	}
	return n
}

func (r *row) put() *hbase.Put {
	p := hbase.NewPut(r.key).Set(family, staticColumn, []byte(r.static()))
	if r.counter != nil {
		p.Set(family, counterColumn, make([]byte, 8))
	}
	if r.wide {
		for i := range wideCells {
			p.Set(family, wideColumn(i), []byte(wideValue(i)))
		}
	}
	return p
}

func wideColumn(i int) string { return fmt.Sprintf("w%02d", i) }
func wideValue(i int) string  { return fmt.Sprintf("wide %d", i) }

// check compares a whole row with what must be in it; lo and hi bound the
// counter.
func (r *row) check(res *hbase.Result, lo, hi int64) error {
	if got := string(res.Value(family, staticColumn)); got != r.static() {
		return fmt.Errorf("row %s: fixed cell is %q (%d cells)", hbase.Quote(r.key), got, len(res.Cells))
	}
	if n := len(res.Cells); n != r.cells() {
		return fmt.Errorf("row %s: %d cells, want %d", hbase.Quote(r.key), n, r.cells())
	}
	if r.counter != nil {
		n, ok := res.Int64(family, counterColumn)
		if !ok || n < lo || n > hi {
			return fmt.Errorf("row %s: counter is %d (%v), want between %d and %d", hbase.Quote(r.key), n, ok, lo, hi)
		}
	}
	if r.wide {
		for i := range wideCells {
			if got := string(res.Value(family, wideColumn(i))); got != wideValue(i) {
				return fmt.Errorf("row %s: %s is %q", hbase.Quote(r.key), wideColumn(i), got)
			}
		}
	}
	return nil
}

// data is the table's contents: rows in key order.
type data struct {
	rows      []row
	counters  []*row
	splits    [][]byte
	regions   int
	perRegion int
}

// newData spreads the rows of each region evenly over its keys.
func newData(regions, rowsPerRegion int) *data {
	d := &data{regions: regions, perRegion: rowsPerRegion}
	for g := range regions {
		start := g * 0x10000 / regions
		width := (g+1)*0x10000/regions - start
		if g > 0 {
			d.splits = append(d.splits, fmt.Appendf(nil, "%04x", start))
		}
		for i := range rowsPerRegion {
			w := row{key: fmt.Appendf(nil, "%04x", start+i*width/rowsPerRegion), region: g, wide: i == 0}
			if i%4 == 1 {
				w.counter = &counter{}
			}
			d.rows = append(d.rows, w)
		}
	}
	for i := range d.rows {
		if d.rows[i].counter != nil {
			d.counters = append(d.counters, &d.rows[i])
		}
	}
	return d
}

// middle is the row in the middle of one of the table's first regions.
func (d *data) middle(region int) []byte { return d.rows[region*d.perRegion+d.perRegion/2].key }
