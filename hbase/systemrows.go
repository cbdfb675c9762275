package hbase

import (
	"context"
	"iter"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// systemRows reads rows of a system table for an Admin, which knows no scans.
func (c *Client) systemRows(ctx context.Context, table meta.TableName, family string, start, stop []byte) iter.Seq2[[]Cell, error] {
	return func(yield func([]Cell, error) bool) {
		for res, err := range c.tableOf(table).Scan(ctx, NewScanRange(start, stop).Family(family)).Rows() {
			var cells []Cell
			if res != nil {
				cells = res.Cells
			}
			if !yield(cells, err) {
				return
			}
		}
	}
}
