package route

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// doubtTime: for so long after one of a table's routes has turned out wrong,
// the table's rows are read from the primary. A replica of hbase:meta lags
// behind; asked again, it would tell what has just been disproved.
const doubtTime = 3 * time.Second

// doubt notes that something about the table has turned out wrong.
func (t *table) doubt() { t.doubted.Store(max(int64(time.Since(t.cache.began)), 1)) }

// origin is from whom the scan's answer comes.
func (s *MetaScan) origin() Origin {
	if s.Replica != nil {
		return FromMetaReplica
	}
	return FromMeta
}

// metaReplica chooses a replica of hbase:meta for a read of the table's rows
// that need not be the latest; nil for the primary.
func (c *Cache) metaReplica(t *table) *Replica {
	if c.cfg.MetaReplicas == nil || t.isMeta {
		return nil
	}
	if at := t.doubted.Load(); at != 0 && time.Since(c.began)-time.Duration(at) < doubtTime {
		return nil
	}
	m := c.lookupTable(meta.MetaTable)
	if m == nil {
		return nil // the primary's read finds them too
	}
	r := m.root.Load().floor(nil)
	if r == nil {
		return nil
	}
	list := c.Replicas(r)
	if len(list) == 0 {
		return nil
	}
	at := int(c.cfg.Rand() * float64(len(list)))
	for i := range list {
		if p := list[(at+i)%len(list)]; p.Server.Usable() {
			return &p
		}
	}
	return nil
}

// errReplicaLacks: a replica does not know a table; the primary is to say so.
var errReplicaLacks = errors.New("the replica of hbase:meta has no region of the table")

// readReplica reads from a replica. It gets a part of the time only, and what it
// does not know is not believed: an error means that the primary has to be
// asked.
func (c *Cache) readReplica(t *table, scan MetaScan) ([]meta.Location, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.ReadTimeout/4)
	defer cancel()
	locs, err := c.read(ctx, t, scan)
	if err == nil {
		for i := range locs {
			if locs[i].Region.Table == t.name {
				return locs, nil
			}
		}
		err = errReplicaLacks
	}
	t.doubt()
	return nil, err
}
