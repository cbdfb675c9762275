package store

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
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
	// CacheBytes is the block cache, what memtables hold included; 0 means 8 MiB
	// in memory (where it only saves decompression), 24 MiB on disk.
	CacheBytes int64
	// MemTableBytes is the largest memtable; 0 means 32 MiB in memory, 8 MiB on
	// disk, less than 1 MiB is raised to it. Up to four of them may wait to be
	// flushed. They start at 256 KiB and double, so that a small store stays
	// small.
	MemTableBytes uint64
	// Logger for the engine's troubles; nil discards.
	Logger *slog.Logger
	// FS replaces the file system (tests). With it and no Dir the store lives
	// in "store" there.
	FS vfs.FS
}

// ErrClosed is the answer of a closed store.
var ErrClosed = errors.New("store is closed")

// ErrLocked says that another process, or another store of this one, has the
// directory open.
var ErrLocked = errors.New("store directory is in use by another process")

// ErrNewerFormat says that the directory was written by a newer Holdfast.
var ErrNewerFormat = errors.New("store was written by a newer version of Holdfast")

// ErrNotAStore says that the directory holds something else.
var ErrNotAStore = errors.New("directory is not empty and holds no Holdfast store")

const (
	// formatVersion is that of the key and value encodings and of the store's
	// own keys. A store with a larger one is refused.
	formatVersion = 1
	formatFile    = "HOLDFAST"
	// engineFormat is pinned, so that a newer engine does not write files an
	// older Holdfast of the same formatVersion can't read.
	engineFormat = pebble.FormatValueSeparation
)

// The sizes of blocks, before compression. What is not cached is read a block at a
// time: larger ones cost lone Gets more, smaller ones scans.
const (
	blockBytes = 8 << 10
	indexBytes = 64 << 10
)

// Open opens or makes a store. Errors wrap ErrLocked, ErrNewerFormat,
// ErrNotAStore, ErrCorrupted, the engine's or the file system's, and name the
// directory.
func Open(o Options) (*Store, error) {
	s := &Store{dir: o.Dir, now: o.Now, locks: newRowLocks(), seed: maphash.MakeSeed()}
	if s.now == nil {
		s.now = func() int64 { return time.Now().UnixMilli() }
	}
	s.getters.New = newGetter
	s.gate.drained = make(chan struct{})
	s.nonces.init(maxNonces)
	s.mvcc.init()
	fsys := o.FS
	inMemory := o.Dir == "" && fsys == nil
	switch {
	case inMemory:
		fsys = vfs.NewMem()
		s.dir = "memory"
	case fsys == nil:
		fsys = vfs.Default
	case o.Dir == "":
		s.dir = "store"
	}
	s.sync = !o.NoFsync && !inMemory
	guard := &logGuard{FS: fsys, s: s}
	po := s.engineOptions(&o, guard, inMemory)
	if !inMemory {
		lock, err := prepareDir(fsys, s.dir)
		if err != nil {
			return nil, err
		}
		defer lock.Close() // the engine holds a reference of its own
		po.Lock = lock
		if err := removeBulkFiles(fsys, s.dir); err != nil {
			return nil, dirError(s.dir, err)
		}
		if err := checkLog(fsys, s.dir); err != nil {
			return nil, err
		}
		if err := checkManifest(fsys, s.dir, false); err != nil {
			return nil, err
		}
	}
	cache := pebble.NewCache(po.CacheSize)
	defer cache.Unref()
	po.Cache = cache
	db, err := pebble.Open(s.dir, po)
	if err != nil {
		return nil, dirError(s.dir, err)
	}
	s.db, s.fs, s.options = db, guard, engineOptionsOf(po)
	guard.open.Store(true)
	if err := s.loadCounters(); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w", s.dir, err), db.Close())
	}
	return s, nil
}

func (s *Store) engineOptions(o *Options, fsys vfs.FS, inMemory bool) *pebble.Options {
	cmp := comparer()
	schema := colblk.DefaultKeySchema(cmp, 16)
	po := &pebble.Options{
		FS:                 fsys,
		Comparer:           cmp,
		KeySchema:          schema.Name,
		KeySchemas:         sstable.MakeKeySchemas(&schema),
		FormatMajorVersion: engineFormat,
		CacheSize:          o.CacheBytes,
		MemTableSize:       max(o.MemTableBytes, 1<<20),
		// In memory the log would only double the memory: nothing reads it.
		DisableWAL:                  inMemory,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       32,
		MaxOpenFiles:                512,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		BlockPropertyCollectors:     []func() pebble.BlockPropertyCollector{newTSCollector},
		Logger:                      engineLogger{s, o.Logger},
		EventListener:               &pebble.EventListener{FlushEnd: s.flushed},
	}
	if o.CacheBytes <= 0 {
		po.CacheSize = 24 << 20
		if inMemory {
			po.CacheSize = 8 << 20
		}
	}
	if o.MemTableBytes == 0 {
		po.MemTableSize = 8 << 20
		if inMemory {
			po.MemTableSize = 32 << 20
		}
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].BlockSize = blockBytes
		// One index block for a file of a few ten megabytes: a Get looks into
		// one less.
		po.Levels[i].IndexBlockSize = indexBytes
	}
	// Cells of a row share a prefix but are no versions of one another: their
	// values stay beside the keys.
	po.Experimental.SpanPolicyFunc = func([]byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{DisableValueSeparationBySuffix: true, ValueStoragePolicy: pebble.ValueStorageLowReadLatency}, nil, nil
	}
	return po
}

// prepareDir makes the directory if need be, takes its lock and checks that it
// holds a store we can read.
func prepareDir(fsys vfs.FS, dir string) (*pebble.Lock, error) {
	if err := fsys.MkdirAll(dir, 0o755); err != nil {
		return nil, dirError(dir, err)
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, dirError(dir, err)
	}
	have, foreign := false, ""
	for _, n := range names {
		switch {
		case n == formatFile:
			have = true
		case n != "LOCK" && n != formatFile+".new":
			foreign = n
		}
	}
	if !have && foreign != "" {
		return nil, fmt.Errorf("store %s: %w (found %q)", dir, ErrNotAStore, foreign)
	}
	lock, err := pebble.LockDirectory(dir, fsys)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || isReadOnlyFS(err) {
			return nil, dirError(dir, err)
		}
		return nil, fmt.Errorf("store %s: %w (%v)", dir, ErrLocked, err)
	}
	if have {
		err = checkFormat(fsys, dir)
	} else {
		err = writeFormat(fsys, dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func checkFormat(fsys vfs.FS, dir string) error {
	f, err := fsys.Open(fsys.PathJoin(dir, formatFile))
	if err != nil {
		return dirError(dir, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err = errors.Join(err, f.Close()); err != nil {
		return dirError(dir, err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	number, ok := strings.CutPrefix(string(line), "holdfast store format ")
	version, err := strconv.Atoi(strings.TrimSpace(number))
	if !ok || err != nil || version < 1 {
		return fmt.Errorf("store %s: file %s does not say which format this is: %w", dir, formatFile, ErrNotAStore)
	}
	if version > formatVersion {
		return fmt.Errorf("store %s has format %d, this program reads up to %d: %w", dir, version, formatVersion, ErrNewerFormat)
	}
	return nil
}

func writeFormat(fsys vfs.FS, dir string) error {
	temp := fsys.PathJoin(dir, formatFile+".new")
	f, err := fsys.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return dirError(dir, err)
	}
	_, err = fmt.Fprintf(f, "holdfast store format %d\n", formatVersion)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return dirError(dir, err)
	}
	if err := fsys.Rename(temp, fsys.PathJoin(dir, formatFile)); err != nil {
		return dirError(dir, err)
	}
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return dirError(dir, err)
	}
	return dirError(dir, errors.Join(d.Sync(), d.Close()))
}

func dirError(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission) || isReadOnlyFS(err):
		return fmt.Errorf("store %s: directory is not writable: %w", dir, err)
	}
	return fmt.Errorf("store %s: %w", dir, err)
}

// isReadOnlyFS recognises EROFS without naming an operating system: Go gives
// it no portable value.
func isReadOnlyFS(err error) bool { return strings.Contains(err.Error(), "read-only file system") }

// engineLogger carries the engine's log to slog. A fatal error does not end
// the process, as the engine means it to: the store refuses all writes from
// then on.
type engineLogger struct {
	s   *Store
	log *slog.Logger
}

func (l engineLogger) Infof(format string, args ...any) {
	if l.log != nil {
		l.log.Debug(fmt.Sprintf(format, args...), "component", "engine")
	}
}

func (l engineLogger) Errorf(format string, args ...any) {
	if l.log != nil {
		l.log.Error(fmt.Sprintf(format, args...), "component", "engine")
	}
}

func (l engineLogger) Fatalf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	l.s.fatal.CompareAndSwap(nil, &err)
	if l.log != nil {
		l.log.Error(err.Error(), "component", "engine", "fatal", true)
	}
}

// fatalError holds the engine's first fatal error, if any.
type fatalError = atomic.Pointer[error]
