package store

import (
	"context"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Table is one table's data.
type Table struct{}

// ID is the table's id in the store.
func (t *Table) ID() uint32 { return 0 }

// Schema is the present schema.
func (t *Table) Schema() *cells.Schema { return nil }

// SetSchema replaces the schema; reads and writes that start later use it.
func (t *Table) SetSchema(schema *cells.Schema) {}

// Get reads one row at the present read point. The cells are the caller's.
func (t *Table) Get(row []byte, q *cells.Query) ([]cells.Cell, error) { return nil, nil }

// NewScan opens a scanner over the table that sees what was written up to
// readPoint; 0 means the present one. The scanner holds no engine resources
// between calls. Queries with Uncommitted set ignore the read point.
func (t *Table) NewScan(spec *cells.ScanSpec, readPoint uint64) (*Scanner, error) { return nil, nil }

// MajorCompact removes what no reader can see any more in the rows
// [start, end) (empty: open), as HBase's major compaction does, but keeps what
// scanners now open may return. families nil means all.
func (t *Table) MajorCompact(ctx context.Context, start, end []byte, families [][]byte) error {
	return nil
}

// DropFamilies removes every cell of the families given.
func (t *Table) DropFamilies(ctx context.Context, families [][]byte) error { return nil }

// SizeBytes estimates the bytes the rows [start, end) take on disk.
func (t *Table) SizeBytes(start, end []byte) uint64 { return 0 }

// MidRow finds a row that halves the range [start, end) by size; nil if there
// are not two rows to part.
func (t *Table) MidRow(start, end []byte) ([]byte, error) { return nil, nil }

// Scanner reads a table at a fixed read point: a cells.Scanner that lets go of
// the engine between calls. It must be closed. Not safe for concurrent use.
type Scanner struct{}

// ReadPoint is what the scanner sees (mvcc_read_point).
func (s *Scanner) ReadPoint() uint64 { return 0 }

// Next appends the next row, or a part of it, to dst: see cells.Scanner.
func (s *Scanner) Next(dst []cells.Cell, lim *cells.Limits) ([]cells.Cell, cells.State, error) {
	return dst, cells.NoMoreRows, nil
}

// Pause lets go of the engine's resources until the next call of Next; call it
// when an RPC is answered.
func (s *Scanner) Pause() {}

// FilterDone and LastRow: see cells.Scanner.
func (s *Scanner) FilterDone() bool { return false }
func (s *Scanner) LastRow() []byte  { return nil }

// Close ends the scanner.
func (s *Scanner) Close() {}
