package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Store is an open store.
type Store struct {
	db   *pebble.DB
	dir  string
	now  func() int64
	sync bool // commits wait for the disk if their durability asks for it
	seed maphash.Seed
	fs   vfs.FS // as the engine sees it
	// options are the engine's, for whoever writes files of its kind.
	options *pebble.Options

	mvcc   mvcc
	locks  *rowLocks
	nonces nonces
	fatal  fatalError
	// stuck is why the last flush could not write its file; nil if it could.
	stuck atomic.Pointer[error]

	gate gate // passed by every call that uses the engine

	tables struct {
		sync.Mutex
		byID map[uint32]*Table
	}
	ids     sync.Mutex // held while a counter is read and raised
	readers readers
	logs    openLogs
	getters sync.Pool
}

// gate lets calls in until it is closed, and then waits for those inside. (A
// read-write mutex would not do: a call inside that begins another one would
// wait for Close, which waits for it.)
type gate struct {
	// state counts the calls inside; gateClosed is added when closing.
	state   atomic.Int64
	drained chan struct{}
	last    sync.Once
}

const gateClosed = math.MinInt64

func (g *gate) enter() bool {
	if g.state.Add(1) >= 0 {
		return true
	}
	g.leave()
	return false
}

func (g *gate) leave() {
	if g.state.Add(-1) == gateClosed {
		g.last.Do(func() { close(g.drained) })
	}
}

// close shuts the gate and waits; only the first call answers true.
func (g *gate) close() bool {
	for {
		n := g.state.Load()
		if n < 0 {
			return false
		}
		if g.state.CompareAndSwap(n, n+gateClosed) {
			if n > 0 {
				<-g.drained
			}
			return true
		}
	}
}

// enter guards the engine against Close; call leave when it answers nil.
func (s *Store) enter() error {
	if !s.gate.enter() {
		return ErrClosed
	}
	return nil
}

func (s *Store) leave() { s.gate.leave() }

// Close waits for calls under way and closes the engine. Later calls, and
// scanners not yet closed, answer ErrClosed. A second call does nothing.
func (s *Store) Close() error {
	if !s.gate.close() {
		return nil
	}
	return errors.Join(s.readers.closeAll(), s.db.Close())
}

// Now is the store's clock in ms.
func (s *Store) Now() int64 { return s.now() }

// ReadPoint is the largest sequence number with no unfinished write at or
// below it: what a reader that starts now may see.
func (s *Store) ReadPoint() uint64 { return s.mvcc.readPoint() }

// Keys of the store's own.
var (
	keySeqLimit   = []byte{spaceInternal, 's'}
	prefixCounter = []byte{spaceInternal, 'c'}
)

// loadCounters goes on numbering behind everything given out before.
func (s *Store) loadCounters() error {
	limit, err := s.getUint(keySeqLimit)
	if err != nil {
		return err
	}
	next := s.mvcc.start(limit)
	return s.db.Set(keySeqLimit, binary.BigEndian.AppendUint64(nil, next), pebble.NoSync)
}

func (s *Store) getUint(key []byte) (uint64, error) {
	value, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer closer.Close()
	if len(value) != 8 {
		return 0, fmt.Errorf("counter %q is %d bytes long", key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// NextSeq gives out a sequence number, larger than any before, also across
// restarts. On a closed store the number is worth nothing.
func (s *Store) NextSeq() uint64 {
	seq, limit := s.mvcc.begin()
	defer s.mvcc.complete(seq)
	if limit != 0 && s.enter() == nil {
		defer s.leave()
		if err := s.db.Set(keySeqLimit, binary.BigEndian.AppendUint64(nil, limit), pebble.NoSync); err != nil {
			s.fatal.CompareAndSwap(nil, &err)
		}
	}
	return seq
}

// NextID gives the next number (1, 2, ...) of a named, durable counter.
func (s *Store) NextID(counter string) (uint64, error) {
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := s.failure(); err != nil {
		return 0, err
	}
	s.ids.Lock()
	defer s.ids.Unlock()
	key := append(bytes.Clone(prefixCounter), counter...)
	n, err := s.getUint(key)
	if err != nil {
		return 0, err
	}
	n++
	if err := s.db.Set(key, binary.BigEndian.AppendUint64(nil, n), s.writeOptions(true)); err != nil {
		return 0, err
	}
	return n, s.failure()
}

func (s *Store) writeOptions(durable bool) *pebble.WriteOptions {
	if durable && s.sync {
		return pebble.Sync
	}
	return pebble.NoSync
}

// failure is the engine's fatal error, if there was one: what was written
// since may be lost.
func (s *Store) failure() error {
	if err := s.fatal.Load(); err != nil {
		return fmt.Errorf("store %s: %w", s.dir, *err)
	}
	return nil
}

// room refuses writes of data while the engine cannot flush, on a full disk
// say: a few memtables later they would hang. The engine tries again and again,
// so writes go on as soon as there is room. The catalog's, which are few and
// cannot be half done, are let through.
func (s *Store) room() error {
	if err := s.stuck.Load(); err != nil {
		return fmt.Errorf("store %s: no write is taken until a flush succeeds: %w", s.dir, *err)
	}
	return s.failure()
}

// flushed is told how each flush ended.
func (s *Store) flushed(info pebble.FlushInfo) {
	// A flush of nothing makes no file, which the engine calls an error.
	if err := info.Err; err != nil && len(info.Output) == 0 && !strings.Contains(err.Error(), "empty table") {
		s.stuck.Store(&err)
		return
	}
	s.stuck.Store(nil)
}

// KV is one change of the catalog.
type KV struct {
	Key   []byte
	Value []byte
	// Delete removes Key; Value is not looked at.
	Delete bool
}

func catalogKey(key []byte) []byte {
	return append(append(make([]byte, 0, len(key)+1), spaceCatalog), key...)
}

// Get reads a catalog key. The value is the caller's.
func (s *Store) Get(key []byte) (value []byte, found bool, err error) {
	if err := s.enter(); err != nil {
		return nil, false, err
	}
	defer s.leave()
	v, closer, err := s.db.Get(catalogKey(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	value = append([]byte{}, v...)
	return value, true, closer.Close()
}

// Apply writes catalog keys, all or none, in order, and returns when they are
// on disk (NoFsync: in the log).
func (s *Store) Apply(changes []KV) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.failure(); err != nil {
		return err
	}
	b := s.db.NewBatch()
	defer b.Close()
	for _, c := range changes {
		var err error
		if c.Delete {
			err = b.Delete(catalogKey(c.Key), nil)
		} else {
			err = b.Set(catalogKey(c.Key), c.Value, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := b.Commit(s.writeOptions(true)); err != nil {
		return err
	}
	return s.failure()
}

// Iterate gives the catalog's pairs whose key begins with prefix, in byte
// order, from one consistent state. The pairs are the consumer's to keep. An
// error ends the iteration and is given to failed, if not nil. The consumer
// may use the store, but not close it, from inside.
func (s *Store) Iterate(prefix []byte, failed *error) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		err := s.iterate(prefix, yield)
		if failed != nil {
			*failed = err
		}
	}
}

func (s *Store) iterate(prefix []byte, yield func([]byte, []byte) bool) (err error) {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	lower := catalogKey(prefix)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: afterPrefix(lower)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if !yield(append([]byte{}, it.Key()[1:]...), append([]byte{}, value...)) {
			return nil
		}
	}
	return it.Error()
}

// afterPrefix is the smallest key behind all that begin with prefix, which is
// never all 0xFF here.
func afterPrefix(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xFF {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// Flush writes the memtable to a file. It changes no answer.
func (s *Store) Flush(ctx context.Context) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	done, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-done:
		return s.failure()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Table is the handle of a table's data: the one that exists, with the schema
// given, or a new one.
func (s *Store) Table(id uint32, schema *cells.Schema) *Table {
	s.tables.Lock()
	defer s.tables.Unlock()
	if t := s.tables.byID[id]; t != nil {
		t.SetSchema(schema)
		return t
	}
	t := &Table{s: s, id: id, prefix: appendTablePrefix(nil, id)}
	t.upper = afterPrefix(t.prefix)
	t.flushes.base = s.mvcc.begun()
	t.SetSchema(schema)
	if s.tables.byID == nil {
		s.tables.byID = make(map[uint32]*Table)
	}
	s.tables.byID[id] = t
	return t
}

func (s *Store) forget(id uint32) {
	s.tables.Lock()
	defer s.tables.Unlock()
	delete(s.tables.byID, id)
}
