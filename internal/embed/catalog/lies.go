package catalog

import (
	"bytes"
	"iter"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// Liar says what readers of hbase:meta are shown in place of a region: nothing,
// other regions, or the region itself. What it gives must be in hbase:meta's
// order and lie between the region and its neighbours there. With behind, only
// what would be shown at or after that row, and after the region, is of
// interest. It is called for every row that is rendered, by many at a time.
type Liar func(s *State, r *Region, behind []byte) []*Region

// SetLiar has hbase:meta lie from now on; nil makes it honest again. State
// always tells the truth: servers and masters do not read hbase:meta.
func (c *Catalog) SetLiar(l Liar) {
	if l == nil {
		c.liar.Store(nil)
		return
	}
	c.liar.Store(&l)
}

// shown gives the regions of hbase:meta as its readers are to see them.
func (c *Catalog) shown(s *State, start []byte, reversed bool, since int64) iter.Seq[*Region] {
	truth := s.regionsFrom(start, reversed, since)
	l := c.liar.Load()
	if l == nil {
		return truth
	}
	lie := *l
	return func(yield func(*Region) bool) {
		// A reader that goes on behind a region may have what is shown behind
		// that region still before it.
		if !reversed && start != nil {
			for r := range s.regionsFrom(start, true, 0) {
				if bytes.Equal(r.Name, start) {
					continue
				}
				for _, x := range lie(s, r, start) {
					if meta.CompareRows(x.Name, start) >= 0 && !yield(x) {
						return
					}
				}
				break
			}
		}
		for r := range truth {
			list := lie(s, r, nil)
			for i := range list {
				x := list[i]
				if reversed {
					x = list[len(list)-1-i]
				}
				if start != nil {
					if order := meta.CompareRows(x.Name, start); reversed && order > 0 || !reversed && order < 0 {
						continue
					}
				}
				if !yield(x) {
					return
				}
			}
		}
	}
}
