package route

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// MetaScan is one read of consecutive rows of hbase:meta.
type MetaScan struct {
	// StartRow is inclusive. In a reversed scan it need not exist: the first
	// row is then the closest one before it.
	StartRow []byte
	// StopRow is exclusive in a forward scan and inclusive in a reversed one.
	StopRow  []byte
	Reversed bool
	// Limit bounds the region rows of the answer; at least 1. Fewer may come.
	Limit int
}

// Source reads hbase:meta. Reads are made with the context given, one attempt
// each: the cache repeats them. Errors of the connection and of the server are
// passed through, so that retry.Classify can judge them. Implementations are
// safe for concurrent use.
type Source interface {
	// ScanMeta gives the region rows of one round trip in the order asked
	// for, those of split parents and offline regions included; rows that are
	// not a region's are left out. An empty answer means that the range has no
	// (further) region rows.
	ScanMeta(ctx context.Context, scan MetaScan) ([]meta.Location, error)
	// GetMeta reads exactly these rows in one round trip; nil where a row is
	// gone. len(result) == len(rows).
	GetMeta(ctx context.Context, rows [][]byte) ([]*meta.Location, error)
}

// TableStates is an optional interface of a Source: it lets the wait for a
// region of a disabled table end with ErrTableNotEnabled instead of lasting
// until the deadline.
type TableStates interface {
	// TableDisabled says whether the table is disabled or being disabled.
	TableDisabled(ctx context.Context, table meta.TableName) (bool, error)
}

// MetaLocator finds the server of hbase:meta itself (the registry).
type MetaLocator func(ctx context.Context) (meta.ServerName, error)
