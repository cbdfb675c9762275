package hbasetest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Rows are the contents of a table: row key to column ("family:qualifier") to
// value. They compare with maps, cmp.Diff, or as text.
type Rows map[string]map[string]string

// String prints a line a cell, sorted, bytes that are not printable as \xHH:
//
//	user-1 f:name = Ada
func (r Rows) String() string {
	var b strings.Builder
	for _, row := range slices.Sorted(maps.Keys(r)) {
		for _, column := range slices.Sorted(maps.Keys(r[row])) {
			fmt.Fprintf(&b, "%s %s = %s\n", cells.Quote([]byte(row)), cells.Quote([]byte(column)), cells.Quote([]byte(r[row][column])))
		}
	}
	return b.String()
}

// Table makes a table with families of default settings ("f" if none is named)
// and gives the client's handle of it. For other settings use the client's
// Admin, for a table of several regions SplitTable.
func (c *Cluster) Table(name string, families ...string) *hbase.Table {
	c.t.Helper()
	return c.SplitTable(name, families)
}

// SplitTable is Table with a region from each split key on.
func (c *Cluster) SplitTable(name string, families []string, splits ...string) *hbase.Table {
	c.t.Helper()
	if len(families) == 0 {
		families = []string{"f"}
	}
	keys := make([][]byte, len(splits))
	for i, k := range splits {
		keys[i] = []byte(k)
	}
	ctx, cancel := c.limit()
	defer cancel()
	if err := c.withMaster(ctx, func() error { return c.CreateTable(ctx, name, families, keys...) }); err != nil {
		c.t.Fatalf("hbasetest: create table %s: %v", name, err)
	}
	return c.handle(name)
}

// handle is the client's handle of a table.
func (c *Cluster) handle(name string) *hbase.Table {
	c.t.Helper()
	t, err := c.Client().Table(name)
	if err != nil {
		c.t.Fatalf("hbasetest: %v", err)
	}
	return t
}

// Load writes rows into a table.
func (c *Cluster) Load(table string, rows Rows) {
	c.t.Helper()
	c.load(table, func(yield func(hbase.Op) bool) {
		for _, row := range slices.Sorted(maps.Keys(rows)) {
			p := hbase.NewPut(row)
			for column, value := range rows[row] {
				family, qualifier, ok := strings.Cut(column, ":")
				if !ok {
					c.t.Fatalf("hbasetest: load %s, row %q: column %q is not family:qualifier", table, row, column)
				}
				p.Set(family, qualifier, []byte(value))
			}
			if !yield(p) {
				return
			}
		}
	})
}

// Fill writes n rows "row-000000", "row-000001", ... into a table, each with its
// own key as the value of the column, which is "family:qualifier".
func (c *Cluster) Fill(table, column string, n int) {
	c.t.Helper()
	family, qualifier, ok := strings.Cut(column, ":")
	if !ok {
		c.t.Fatalf("hbasetest: fill %s: column %q is not family:qualifier", table, column)
	}
	c.load(table, func(yield func(hbase.Op) bool) {
		for i := range n {
			key := fmt.Sprintf("row-%06d", i)
			if !yield(hbase.NewPut(key).Set(family, qualifier, []byte(key))) {
				return
			}
		}
	})
}

// loadBatch is how many rows go out together.
const loadBatch = 1000

func (c *Cluster) load(table string, ops iter.Seq[hbase.Op]) {
	c.t.Helper()
	t := c.handle(table)
	ctx, cancel := c.limit()
	defer cancel()
	send := func(batch []hbase.Op) {
		for _, o := range t.Batch(ctx, batch) {
			if o.Err != nil {
				c.t.Fatalf("hbasetest: load %s: %v", table, o.Err)
			}
		}
	}
	var batch []hbase.Op
	for o := range ops {
		if batch = append(batch, o); len(batch) == loadBatch {
			send(batch)
			batch = batch[:0]
		}
	}
	send(batch)
}

// Dump reads a whole table: the newest value of every column.
func (c *Cluster) Dump(table string) Rows {
	c.t.Helper()
	ctx, cancel := c.limit()
	defer cancel()
	out := Rows{}
	for row, err := range c.handle(table).Scan(ctx, hbase.NewScan()).Rows() {
		if err != nil {
			c.t.Fatalf("hbasetest: dump %s: %v", table, err)
		}
		columns := make(map[string]string, len(row.Cells))
		for i := range row.Cells {
			cell := &row.Cells[i]
			column := string(cell.Family) + ":" + string(cell.Qualifier)
			if _, newer := columns[column]; !newer {
				columns[column] = string(cell.Value)
			}
		}
		out[string(row.Row)] = columns
	}
	return out
}
