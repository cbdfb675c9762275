package route

import "github.com/holdfast-hbase/holdfast/internal/meta"

// Known gives the route for a row (with before, for the region before it)
// whether it is valid or not, nil if the index has a gap there. It is for those
// who want to know what else is known of the region, such as its replicas, while
// it is in transition.
func (c *Cache) Known(table meta.TableName, row []byte, before bool) *Route {
	t := c.lookupTable(table)
	if t == nil {
		return nil
	}
	p := position{key: row, before: before}
	r := t.root.Load().find(p)
	if r == nil || !p.in(r) {
		return nil
	}
	return r
}
