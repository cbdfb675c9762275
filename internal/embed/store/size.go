package store

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// countedBytes is how much DataBytes counts cell by cell before it asks the
// engine for an estimate: some 50 ms.
const countedBytes = 64 << 20

// cellBytes is what HBase's serialized form of a cell takes besides its fields
// and tags: two lengths of four bytes, the row's of two, the family's of one,
// timestamp and type.
const cellBytes = 4 + 4 + 2 + 1 + 8 + 1

// DataBytes is the size of all cells of the rows [start, end), delete markers and
// surplus versions included, as HBase serializes them: what an HFile of them
// would hold. It counts what was written, in memory or in files. Beyond 64 MiB
// what the engine says of its files, if that is more, stands for the rest.
func (t *Table) DataBytes(ctx context.Context, start, end []byte) (uint64, error) {
	return t.dataBytes(ctx, start, end, countedBytes)
}

func (t *Table) dataBytes(ctx context.Context, start, end []byte, counted uint64) (n uint64, err error) {
	if err := t.s.enter(); err != nil {
		return 0, err
	}
	defer t.s.leave()
	lower, upper := t.bounds(start, end)
	it, err := t.s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := it.Close(); err == nil {
			err = e
		}
	}()
	var bufs [3][]byte
	for ok := it.First(); ok; ok = it.Next() {
		_, c, err := decodeCellKey(it.Key(), &bufs)
		if err != nil {
			return 0, err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return 0, err
		}
		if err := decodeValue(value, &c); err != nil {
			return 0, err
		}
		if n += sizeOnDisk(&c); n >= counted {
			files, err := t.s.db.EstimateDiskUsage(lower, upper)
			return max(n, files), err
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	return n, it.Error()
}

// sizeOnDisk is a cell's size as HBase serializes it.
func sizeOnDisk(c *cells.Cell) uint64 {
	n := uint64(cellBytes + len(c.Row) + len(c.Family) + len(c.Qualifier) + len(c.Value))
	if len(c.Tags) > 0 {
		n += 2 + uint64(len(c.Tags))
	}
	return n
}
