package store

import (
	"cmp"
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// DropData removes every cell of a table. Table ids are not used again.
func (s *Store) DropData(id uint32) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.forget(id)
	lower := appendTablePrefix(nil, id)
	if err := s.db.DeleteRange(lower, afterPrefix(lower), s.writeOptions(true)); err != nil {
		return err
	}
	return s.failure()
}

// DropRows removes every cell of the rows [start, end), durably, without a
// trace that readers could meet. Nobody may read or write them meanwhile.
func (t *Table) DropRows(start, end []byte) error {
	s := t.s
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	lower, upper := t.bounds(start, end)
	if err := s.db.DeleteRange(lower, upper, s.writeOptions(true)); err != nil {
		return err
	}
	return s.failure()
}

// copyBatchBytes is how much of a table is copied with one commit: large
// enough that commits cost nothing beside it, small enough not to hold up
// other writers.
const copyBatchBytes = 256 << 10

// CopyData copies every cell of a table, markers and surplus versions
// included, as of the present read point, to another one that is empty. The
// copy is durable when it returns; if it fails, part of it may be there.
func (s *Store) CopyData(ctx context.Context, from, to uint32) (err error) {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	lower := appendTablePrefix(nil, from)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: afterPrefix(lower)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	readPoint := s.mvcc.readPoint()
	(&Table{s: s, id: from}).saved(nil, nil) // HBase flushes before a snapshot
	b := s.db.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	key := appendTablePrefix(nil, to)
	var c cells.Cell
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		if len(k) < minCellKeyLen {
			return errBadKey
		}
		if err := decodeSuffix(k[len(k)-suffixLen:], &c); err != nil {
			return err
		}
		if c.Seq > readPoint {
			continue
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		key = append(key[:tablePrefixLen], k[tablePrefixLen:]...)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
		if b.Len() >= copyBatchBytes {
			if err := cmp.Or(ctx.Err(), s.room()); err != nil {
				return err
			}
			if err := b.Commit(pebble.NoSync); err != nil {
				return err
			}
			b.Reset()
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	if err := b.Commit(s.writeOptions(true)); err != nil {
		return err
	}
	return s.failure()
}
