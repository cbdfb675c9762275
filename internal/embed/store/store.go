package store

import (
	"context"
	"errors"
	"iter"
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Options of a store. The zero value is a fresh store in memory.
type Options struct {
	// Dir is the directory of the store, made if missing; "" keeps everything
	// in memory.
	Dir string
	// NoFsync acknowledges writes before they are on disk. What was
	// acknowledged survives the end of the process, not that of the machine.
	NoFsync bool
	// Now is the clock for timestamps and TTLs in ms since the epoch; nil is
	// the system's.
	Now func() int64
	// CacheBytes is the block cache; 0 means 8 MiB in memory, 64 MiB on disk.
	CacheBytes int64
	// MemTableBytes is the largest memtable; 0 means 32 MiB. Memtables start
	// at 256 KiB and double, so a small store stays small.
	MemTableBytes uint64
	// Logger for the engine's troubles; nil discards.
	Logger *slog.Logger
	// FS replaces the file system (tests).
	FS vfs.FS
}

// Errors of opening and of closed stores.
var (
	ErrClosed = errors.New("store is closed")
)

// Store is an open store.
type Store struct {
	db *pebble.DB
}

// Open opens or makes a store.
func Open(o Options) (*Store, error) { return nil, errors.New("store: not there yet") }

// Close waits for running writes and closes the engine. Scanners not yet
// closed answer ErrClosed from then on.
func (s *Store) Close() error { return nil }

// Now is the store's clock in ms.
func (s *Store) Now() int64 { return 0 }

// ReadPoint is the largest sequence number with no unfinished write at or
// below it: what a reader that starts now may see.
func (s *Store) ReadPoint() uint64 { return 0 }

// NextSeq gives out a sequence number, larger than any before, also across
// restarts.
func (s *Store) NextSeq() uint64 { return 0 }

// NextID gives the next number (1, 2, ...) of a named, durable counter.
func (s *Store) NextID(counter string) (uint64, error) { return 0, nil }

// KV is one change of the catalog.
type KV struct {
	Key   []byte
	Value []byte
	// Delete removes Key; Value is not looked at.
	Delete bool
}

// Get reads a catalog key.
func (s *Store) Get(key []byte) (value []byte, found bool, err error) { return nil, false, nil }

// Apply writes catalog keys, all or none, and returns when they are on disk
// (NoFsync: in the log).
func (s *Store) Apply(changes []KV) error { return nil }

// Iterate gives the catalog's pairs whose key begins with prefix, in byte
// order, from one consistent state. The pairs are the consumer's to keep. An
// engine error ends the iteration and is given to failed, if not nil.
func (s *Store) Iterate(prefix []byte, failed *error) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}

// Flush writes the memtable to a file. It changes no answer.
func (s *Store) Flush(ctx context.Context) error { return nil }

// Table is the handle of a table's data. Handles are cheap; the one id must be
// used with one Table value at a time so that SetSchema reaches everybody.
func (s *Store) Table(id uint32, schema *cells.Schema) *Table { return &Table{} }

// DropData removes every cell of a table. Table ids are not used again.
func (s *Store) DropData(id uint32) error { return nil }

// CopyData copies every cell of a table, markers and surplus versions
// included, as of the present read point, to another one that is empty.
func (s *Store) CopyData(ctx context.Context, from, to uint32) error { return nil }
