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
	// Replica is the replica of hbase:meta to read; nil for the primary.
	Replica *Replica
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

// MetaReplicas finds the secondary replicas of hbase:meta; none if there are
// none.
type MetaReplicas func(ctx context.Context) ([]meta.ReplicaLocation, error)

// MetaLocator finds the server of hbase:meta itself (the registry).
type MetaLocator func(ctx context.Context) (meta.ServerName, error)

// ChangeScan is one read of what has changed in hbase:meta: its region rows,
// forwards, but only cells written at or after Since.
type ChangeScan struct {
	// Since is in ms, by the clock of whoever wrote the cells (the master).
	Since int64
	// StartRow is inclusive, StopRow exclusive.
	StartRow, StopRow []byte
	// Limit bounds the rows of the answer; at least 1. Fewer may come.
	Limit int
	// Wanted says whether the regions of a table (its name as in region names)
	// are of interest; rows of other tables need not be read. nil: all are. It
	// must not keep the slice.
	Wanted func(table []byte) bool
}

// Changes is the answer to a ChangeScan.
type Changes struct {
	// Locations are what the rows of wanted tables say now, as far as it has
	// been written since: a row whose region has closed names no server. In
	// the order of rows.
	Locations []Change
	// Newest is the largest timestamp of a cell in the answer, wanted or not;
	// 0 if there was none.
	Newest int64
	// Rows and Bytes of the answer, wanted or not.
	Rows, Bytes int
	// Next is the row to go on at; nil when the range has been read to its end.
	Next []byte
}

// Change is one changed row.
type Change struct {
	meta.Location
	// NameOnly: the row's name was all that told the region, so its end is not
	// known. HBase 1.x does not write info:regioninfo when a region opens.
	NameOnly bool
}

// ChangeSource is an optional interface of a Source, for Config.WatchInterval.
type ChangeSource interface {
	// ScanChanges is one round trip. It must make progress within the
	// context's time however much there is to skip: by ending early, with
	// Next set.
	ScanChanges(ctx context.Context, scan ChangeScan) (Changes, error)
}
