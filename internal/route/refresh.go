package route

import (
	"context"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Pages is Regions in pages of up to 1000, as they are read; emit says whether
// to go on.
func (c *Cache) Pages(ctx context.Context, table meta.TableName, start, stop []byte, emit func([]*Route) bool) error {
	return c.readAll(ctx, table, start, stop, demand, emit)
}

// RefreshTable re-reads the rows of all routes held of a table, 200 to a read,
// behind everybody else, and gives how many were read and how many of them
// were wrong. Routes stay in use meanwhile. The error is a *LocateError.
func (c *Cache) RefreshTable(ctx context.Context, table meta.TableName) (read, wrong int, err error) {
	began := time.Now()
	t := c.lookupTable(table)
	if t == nil {
		return 0, 0, nil
	}
	if t.isMeta {
		r := t.root.Load().floor(nil)
		if r == nil {
			return 0, 0, nil
		}
		n, err := c.Refresh(ctx, r)
		if err == nil && n != r {
			wrong = 1
		}
		return 1, wrong, err
	}
	for _, ch := range t.root.Load().chunks {
		// A chunk holds up to 512 routes, so that three reads may not be full.
		for list := ch.routes; len(list) > 0; {
			n := min(len(list), repairBatch)
			batch := make([]*Route, 0, n)
			for _, r := range list[:n] {
				if r.current() {
					batch = append(batch, r)
				}
			}
			list = list[n:]
			if len(batch) == 0 {
				continue
			}
			if err := c.reread(ctx, batch); err != nil {
				return read, wrong, c.locateError(ctx, table, position{key: batch[0].startKey()}, began, err, nil)
			}
			read += len(batch)
			for _, r := range batch {
				if !r.current() {
					wrong++
				}
			}
		}
	}
	return read, wrong, nil
}

// ForgetServer makes every route to a server invalid, and gives their number:
// each is read again before it is used. With start code 0 it is whatever
// incarnation is known at the address.
func (c *Cache) ForgetServer(name meta.ServerName) (n int) {
	s := c.cfg.Servers.Lookup(name.Address())
	if s == nil || name.StartCode != 0 && s.Name().StartCode != name.StartCode {
		return 0
	}
	return c.InvalidateServer(s)
}
