package store

import (
	"math"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// tsProperty is the block property that lets reads of a time range pass over
// blocks without a cell they could need. The name is stored in files.
const tsProperty = "hb.ts"

// tsMapper maps a put to its timestamp and a delete marker to everything from
// 0 up to its timestamp, since that is what it can hide: a block with a marker
// may not be passed over by a read of older cells.
type tsMapper struct{}

func (tsMapper) MapPointKey(key pebble.InternalKey, _ []byte) (sstable.BlockInterval, error) {
	k := key.UserKey
	if len(k) == 0 || k[0] != spaceCells {
		// The catalog is never read by time.
		return sstable.BlockInterval{}, nil
	}
	if len(k) < minCellKeyLen {
		return sstable.BlockInterval{Lower: 0, Upper: math.MaxUint64}, nil
	}
	var c cells.Cell
	if err := decodeSuffix(k[len(k)-suffixLen:], &c); err != nil {
		return sstable.BlockInterval{}, err
	}
	lower := uint64(c.Timestamp)
	if c.Type != cells.Put {
		lower = 0
	}
	return sstable.BlockInterval{Lower: lower, Upper: uint64(c.Timestamp) + 1}, nil
}

func (tsMapper) MapRangeKeys(sstable.Span) (sstable.BlockInterval, error) {
	return sstable.BlockInterval{}, nil
}

func newTSCollector() pebble.BlockPropertyCollector {
	return sstable.NewBlockIntervalCollector(tsProperty, tsMapper{}, nil)
}

// tsFilter selects blocks that a read of [r.Min, r.Max) may need.
func tsFilter(r cells.TimeRange) pebble.BlockPropertyFilter {
	return sstable.NewBlockIntervalFilter(tsProperty, uint64(max(r.Min, 0)), uint64(r.Max), nil)
}
