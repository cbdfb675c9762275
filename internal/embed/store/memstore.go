package store

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// SyncInterval is how long an ASYNC_WAL write waits at most, in ms of the
// store's clock, until the log is synced without anybody asking for it
// (hbase.regionserver.optionallogflushinterval).
const SyncInterval = 1000

// How many bytes of keys are remembered of writes that a kill would lose.
// Beyond that a region (of a log, the one with the most) is taken for flushed,
// as HBase flushes a memstore that has grown too large.
const (
	maxMemstoreBytes = 8 << 20
	maxLogBytes      = 32 << 20
)

// ErrLost is the answer to a write by a region server whose un-synced writes
// have been lost: it is dead, and nothing it does counts any more.
var ErrLost = errors.New("the region server was killed")

// Log stands for the write-ahead log of one region server's life. The engine
// beneath loses nothing when a region server is killed; the Log remembers what
// HBase would lose, so that Lose can take it away:
//
//   - ASYNC_WAL writes since the log's last sync. It is synced by every
//     SYNC_WAL or FSYNC_WAL write of the server, whatever the region, and
//     SyncInterval after the first write that waits for it;
//   - SKIP_WAL writes since the region's last flush.
//
// All methods are safe for concurrent use, and do nothing on a nil Log.
type Log struct {
	s *Store
	// alive is held, shared, from the moment a write is numbered until it is in
	// the memtable, and exclusively by Lose: after it, nothing comes.
	alive sync.RWMutex
	lost  bool // guarded by alive

	appended atomic.Uint64 // number of the newest entry
	synced   atomic.Uint64 // entries up to here are safe

	mu     sync.Mutex
	closed bool
	dirty  map[*Memstore]struct{} // those with something to lose
	bytes  int                    // of all memstores
	// last is the newest ASYNC_WAL entry; since, while it is not synced, when
	// the oldest of those was written that wait with it.
	last  uint64
	since int64
}

// Memstore is what is remembered of one region while it is open on a server.
// All methods are safe for concurrent use, and do nothing on a nil Memstore.
type Memstore struct {
	log          *Log
	table        *Table
	lower, upper []byte
	// Guarded by log.mu.
	closed         bool
	skipped, async pile
}

// pile is a list of cells that a kill would take away, in little memory:
// [log entry][length of key][key][0, or 1 + length of value][value], where a
// value is what the key had before, which comes back.
type pile struct {
	buf    []byte
	last   uint64 // entry of the newest
	nonces []looseNonce
}

type looseNonce struct {
	entry uint64
	key   nonceKey
}

const looseNonceBytes = 24

func (p *pile) size() int { return len(p.buf) + looseNonceBytes*len(p.nonces) }

// NewLog makes the log of a region server that starts.
func (s *Store) NewLog() *Log {
	l := &Log{s: s, dirty: make(map[*Memstore]struct{})}
	s.logs.Lock()
	defer s.logs.Unlock()
	if s.logs.open == nil {
		s.logs.open = make(map[*Log]struct{})
	}
	s.logs.open[l] = struct{}{}
	return l
}

// Open makes the memstore of the rows [start, end) (empty: open) of a table,
// which begin to be served. Whoever writes to them names it
// (RowMutation.Memstore). What was written to them elsewhere is safe: HBase has
// flushed it when it was closed there, or a kill has taken it.
func (l *Log) Open(t *Table, start, end []byte) *Memstore {
	if l == nil || t == nil {
		return nil
	}
	t.saved(start, end)
	return &Memstore{log: l, table: t, lower: start, upper: end}
}

// Flush makes everything safe that was written to the region before.
func (m *Memstore) Flush() {
	if m == nil {
		return
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	m.clear()
}

// clear forgets the region's writes. Called with log.mu held.
func (m *Memstore) clear() {
	m.log.bytes -= m.skipped.size() + m.async.size()
	m.skipped, m.async = pile{}, pile{}
	delete(m.log.dirty, m)
}

// Close is for a region that is served here no more: HBase flushes it then, so
// its writes are safe, and those still under way will be.
func (m *Memstore) Close() {
	if m == nil {
		return
	}
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	m.clear()
	m.closed = true
}

// Close ends a log in order: nothing of it is lost. A second call, or one after
// Lose, does nothing.
func (l *Log) Close() {
	if l == nil {
		return
	}
	l.s.logs.Lock()
	delete(l.s.logs.open, l)
	l.s.logs.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	clear(l.dirty)
	l.bytes = 0
}

// Lose ends a log as a kill of its server does: cells not yet synced or flushed
// vanish, and come back that they had replaced or hidden. It gives their
// number. Later writes that name a memstore of the log answer ErrLost.
//
// Nobody may serve the log's regions until it has returned. Increments and
// appends that were lost can be applied again under their nonces. On an error
// all of the cells are still there.
func (l *Log) Lose() (n int, err error) {
	if l == nil {
		return 0, nil
	}
	defer l.Close()
	if err := l.s.enter(); err != nil {
		return 0, err
	}
	defer l.s.leave()
	l.alive.Lock()
	defer l.alive.Unlock()
	if l.lost {
		return 0, nil
	}
	l.lost = true
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick(l.s.now())
	b := l.s.db.NewBatch()
	defer func() { err = errors.Join(err, b.Close()) }()
	synced := l.synced.Load()
	for m := range l.dirty {
		for _, p := range []struct {
			*pile
			synced uint64
		}{{&m.skipped, 0}, {&m.async, synced}} {
			k, err := p.undo(b, p.synced, l.s.has)
			if err != nil {
				return 0, err
			}
			n += k
		}
	}
	if n > 0 {
		if err := b.Commit(l.s.writeOptions(true)); err != nil {
			return 0, err
		}
	}
	for m := range l.dirty {
		m.skipped.forget(&l.s.nonces, 0)
		m.async.forget(&l.s.nonces, synced)
	}
	return n, l.s.failure()
}

// undo puts the removal of all entries behind synced into b. has says whether a
// key is there.
func (p *pile) undo(b *pebble.Batch, synced uint64, has func([]byte) (bool, error)) (n int, err error) {
	for rest := p.buf; len(rest) > 0; {
		var entry, k, v uint64
		entry, rest = takeUvarint(rest)
		k, rest = takeUvarint(rest)
		key := rest[:k]
		v, rest = takeUvarint(rest[k:])
		var before []byte
		if v > 0 {
			before, rest = rest[:v-1], rest[v-1:]
		}
		if entry <= synced {
			continue
		}
		if v > 0 {
			// Unless a compaction has found it hidden, and removed it.
			var there bool
			if there, err = has(key); there {
				err = b.Set(key, before, nil)
			}
		} else {
			err = b.Delete(key, nil)
		}
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// has says whether the engine has a key.
func (s *Store) has(key []byte) (bool, error) {
	_, closer, err := s.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, closer.Close()
}

func (p *pile) forget(n *nonces, synced uint64) {
	for _, e := range p.nonces {
		if e.entry > synced {
			n.forget(e.key)
		}
	}
}

// takeUvarint reads a number that add has written.
func takeUvarint(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

// tick lets the time pass for the syncs that nobody asks for. Called with mu
// held.
func (l *Log) tick(now int64) {
	if l.last <= l.synced.Load() {
		return
	}
	l.since = min(l.since, now) // a clock set back
	if now-l.since >= SyncInterval {
		l.sync(l.last)
	}
}

// sync says that entries up to this one are on disk.
func (l *Log) sync(entry uint64) {
	for {
		at := l.synced.Load()
		if at >= entry || l.synced.CompareAndSwap(at, entry) {
			return
		}
	}
}

// begin lets a write in whose cells are about to be numbered; end must follow
// when they are in the memtable.
func (m *Memstore) begin() error {
	if m == nil {
		return nil
	}
	m.log.alive.RLock()
	if m.log.lost {
		m.log.alive.RUnlock()
		return ErrLost
	}
	return nil
}

func (m *Memstore) end() {
	if m != nil {
		m.log.alive.RUnlock()
	}
}

// loose is what of one write would be lost.
type loose struct {
	cells  []looseCell
	nonces []nonceKey
	// durability of the strongest of the nonces' operations.
	nonceDurability cells.Durability
}

type looseCell struct {
	key    []byte
	before []byte // stored value that comes back; nil if none
	async  bool
}

// note remembers what of a write would be lost, before it is put into the
// memtable. The write is inside begin and end.
func (m *Memstore) note(w *loose, durable bool, now int64) {
	l := m.log
	if durable {
		// The log is written in order: with this entry all before it are there.
		l.sync(l.appended.Add(1))
		if len(w.cells) == 0 {
			return
		}
	}
	if len(w.cells) == 0 && len(w.nonces) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tick(now)
	if m.async.last <= l.synced.Load() {
		l.bytes -= m.async.size()
		m.async = pile{buf: m.async.buf[:0], nonces: m.async.nonces[:0]}
	}
	if m.closed || l.closed {
		return // the flush that goes with it has it all
	}
	before := m.skipped.size() + m.async.size()
	entry := l.appended.Load()
	if !durable {
		entry = l.appended.Add(1)
	}
	async := false
	for i := range w.cells {
		c := &w.cells[i]
		if c.key == nil {
			continue
		}
		p := &m.skipped
		if c.async {
			p, async = &m.async, true
		}
		p.add(entry, c)
	}
	if len(w.nonces) > 0 {
		p := &m.skipped
		if w.nonceDurability == cells.AsyncWAL {
			p, async = &m.async, true
		}
		for _, key := range w.nonces {
			p.nonces = append(p.nonces, looseNonce{entry, key})
		}
	}
	if async {
		if l.last <= l.synced.Load() {
			l.since = now
		}
		l.last, m.async.last = entry, entry
	}
	l.dirty[m] = struct{}{}
	l.bytes += m.skipped.size() + m.async.size() - before
	l.bound(m)
}

func (p *pile) add(entry uint64, c *looseCell) {
	p.buf = binary.AppendUvarint(p.buf, entry)
	p.buf = binary.AppendUvarint(p.buf, uint64(len(c.key)))
	p.buf = append(p.buf, c.key...)
	if c.before == nil {
		p.buf = append(p.buf, 0)
		return
	}
	p.buf = binary.AppendUvarint(p.buf, uint64(len(c.before))+1)
	p.buf = append(p.buf, c.before...)
}

// bound keeps the memory within its limits. Called with mu held.
func (l *Log) bound(m *Memstore) {
	if m.skipped.size()+m.async.size() > maxMemstoreBytes {
		m.clear()
	}
	if l.bytes <= maxLogBytes {
		return
	}
	largest := m
	for o := range l.dirty {
		if o.skipped.size()+o.async.size() > largest.skipped.size()+largest.async.size() {
			largest = o
		}
	}
	largest.clear()
}

// openLogs are the logs of servers that run.
type openLogs struct {
	sync.Mutex
	open map[*Log]struct{}
}

// saved makes everything safe that was written to the rows [start, end) of a
// table before.
func (t *Table) saved(start, end []byte) {
	t.s.logs.Lock()
	defer t.s.logs.Unlock()
	for l := range t.s.logs.open {
		l.mu.Lock()
		for m := range l.dirty {
			r := reading{table: m.table.id, lower: m.lower, upper: m.upper}
			if r.touches(t.id, start, end) {
				m.clear()
			}
		}
		l.mu.Unlock()
	}
}
