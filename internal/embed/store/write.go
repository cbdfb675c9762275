package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// A write goes through these steps (steps 2 to 6 with the rows locked):
//
//  1. validate, claim nonces;
//  2. conditions: read, compare, maybe give up;
//  3. read the clock, behind markers it stamped on the rows;
//  4. stamp: whole-row deletes, newest versions, increments and appends become
//     plain cells;
//  5. take a sequence number;
//  6. put one batch into log and memtable;
//  7. unlock; wait for the disk; finish the number; wait until the read point
//     has passed it.
//
// Step 6 fixes the order of writes to a row in the log as that of their
// numbers, so a write that survives a crash never lacks one it was based on.
// Reads under the lock see what is in the memtable, whether finished or not.

// MutateRow applies one row's mutations atomically. When it returns without
// error, they are durable as asked and visible to every reader.
//
// Errors are *cells.Exception for what HBase would refuse, ErrClosed, or the
// engine's; then nothing was applied, except that after an error of the engine
// it may have been. ctx can end the call while it waits for another with the
// same nonce; once begun, the write is waited for.
func (t *Table) MutateRow(ctx context.Context, m *RowMutation) (MutateResult, error) {
	if err := t.s.enter(); err != nil {
		return MutateResult{}, err
	}
	defer t.s.leave()
	if err := ctx.Err(); err != nil {
		return MutateResult{}, err
	}
	p, err := t.mutateValid(ctx, m)
	if err != nil {
		return MutateResult{}, err
	}
	if err := t.s.finish(&p); err != nil {
		return MutateResult{}, err
	}
	return p.result, nil
}

// mutateValid validates and applies one mutation under one schema.
func (t *Table) mutateValid(ctx context.Context, m *RowMutation) (pending, error) {
	for {
		schema := t.Schema()
		if err := t.validate(schema, m); err != nil {
			return pending{}, err
		}
		p, err := t.mutateOne(ctx, schema, m, true)
		if err != errSchemaChanged {
			return p, err
		}
	}
}

// errSchemaChanged: the schema is another one since the mutation was validated.
// Whoever meets it begins again.
var errSchemaChanged = errors.New("the schema has changed")

// lockRows locks the rows of a write that was validated under a schema, if that
// is still the table's. From then until they are unlocked, DropFamilies waits.
func (t *Table) lockRows(rows *rowSet, schema *cells.Schema) error {
	t.s.locks.lock(rows)
	if t.Schema() != schema {
		t.s.locks.unlock(rows)
		return errSchemaChanged
	}
	return nil
}

// MutateBatch applies mutations of rows that have nothing to do with one
// another, with one commit where it can: results[i], errs[i] belong to ms[i].
// Those that fail leave the others alone. Mutations of one row apply in order,
// but as in HBase, those that follow one another without a condition,
// increment or append between them get one timestamp.
func (t *Table) MutateBatch(ctx context.Context, ms []*RowMutation) (results []MutateResult, errs []error) {
	results, errs = make([]MutateResult, len(ms)), make([]error, len(ms))
	if err := t.s.enter(); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return results, errs
	}
	defer t.s.leave()
	schema := t.Schema()
	var open []pending
	var owner []int // of open: index, or -1 for a run whose members share it
	var runs [][]int
	settle := func() {
		for k := range open {
			err := t.s.finish(&open[k])
			for _, i := range runs[k] {
				results[i], errs[i] = open[k].result, err
				if owner[k] < 0 {
					results[i] = MutateResult{Processed: true}
				}
			}
		}
		open, owner, runs = open[:0], owner[:0], runs[:0]
	}
	for i := 0; i < len(ms); {
		if ms[i].plain() {
			var run []int
			for ; i < len(ms) && ms[i].plain(); i++ {
				if errs[i] = t.validate(schema, ms[i]); errs[i] == nil {
					run = append(run, i)
				}
			}
			if len(run) == 0 {
				continue
			}
			p, err := t.mutatePlain(ctx, schema, ms, run)
			if err == errSchemaChanged {
				schema, i = t.Schema(), run[0]
				continue
			}
			if err != nil {
				for _, k := range run {
					errs[k] = err
				}
				continue
			}
			open, owner, runs = append(open, p), append(owner, -1), append(runs, run)
			continue
		}
		if errs[i] = t.validate(schema, ms[i]); errs[i] == nil {
			p, err := t.mutateOne(ctx, schema, ms[i], false)
			if err == errNonceBusy {
				// By one of ours, or by another batch that may be about to wait
				// for one of ours: be done with them first.
				settle()
				p, err = t.mutateOne(ctx, schema, ms[i], true)
			}
			if err == errSchemaChanged {
				schema = t.Schema()
				continue
			}
			if err != nil {
				errs[i] = err
			} else {
				open, owner, runs = append(open, p), append(owner, i), append(runs, []int{i})
			}
		}
		i++
	}
	settle()
	return results, errs
}

// MutateRows applies mutations of several rows atomically, if every condition
// (each with its Row) holds.
func (t *Table) MutateRows(ctx context.Context, ms []*RowMutation, conditions []*Condition) (processed bool, err error) {
	if err := t.s.enter(); err != nil {
		return false, err
	}
	defer t.s.leave()
	p, processed, err := t.mutateRows(ctx, t.Schema(), ms, conditions)
	for err == errSchemaChanged {
		p, processed, err = t.mutateRows(ctx, t.Schema(), ms, conditions)
	}
	if err == nil {
		err = t.s.finish(&p)
	}
	return processed && err == nil, err
}

func (t *Table) mutateRows(ctx context.Context, schema *cells.Schema, ms []*RowMutation, conditions []*Condition) (p pending, processed bool, err error) {
	var rows rowSet
	for _, m := range ms {
		if err := t.validate(schema, m); err != nil {
			return pending{}, false, err
		}
		rows.add(t.s.stripe(t.id, m.Row))
	}
	for _, c := range conditions {
		if err := c.validate(schema); err != nil {
			return pending{}, false, err
		}
		rows.add(t.s.stripe(t.id, c.Row))
	}
	if err := t.lockRows(&rows, schema); err != nil {
		return pending{}, false, err
	}
	defer t.s.locks.unlock(&rows)
	for _, c := range conditions {
		holds, _, err := t.holds(schema, c.Row, c)
		if err != nil || !holds {
			return pending{after: t.s.mvcc.begun()}, false, err
		}
	}
	w := t.newWriter(schema, t.s.clockPastMarkers(ctx, &rows))
	for _, m := range ms {
		w.mem = m.Memstore
		if err := w.stamp(m, math.MinInt64); err != nil {
			return pending{}, false, err
		}
	}
	p, err = w.commit()
	return p, true, err
}

// pending is a write in the memtable that is not finished yet.
type pending struct {
	result  MutateResult
	batch   *pebble.Batch
	seq     uint64
	wait    bool // for the disk
	nonce   nonceKey
	claimed bool
	// after is, of a write that came to nothing, what may have decided that: a
	// condition is read under the lock, and sees what readers do not see yet.
	after uint64
}

// finish waits for the disk and makes the write visible; or, if nothing was
// written, what the caller was refused for: else a Get that follows would show
// the row as it was before.
func (s *Store) finish(p *pending) error {
	if p.seq == 0 {
		s.mvcc.wait(p.after)
		return nil
	}
	var err error
	if p.batch != nil {
		if p.wait {
			err = p.batch.SyncWait()
		}
		if e := p.batch.Close(); err == nil {
			err = e
		}
	}
	if err == nil {
		err = s.failure()
	}
	s.mvcc.complete(p.seq)
	s.mvcc.wait(p.seq)
	if p.claimed {
		s.nonces.end(p.nonce, err == nil, p.seq, s.now())
	}
	return err
}

// plain says that a mutation is decided by itself: nothing read, no nonce.
func (m *RowMutation) plain() bool {
	if m.Condition != nil {
		return false
	}
	for i := range m.Ops {
		if k := m.Ops[i].Kind; k != Put && k != Delete {
			return false
		}
	}
	return true
}

// nonce is the first nonce among the mutation's increments and appends.
func (m *RowMutation) nonce() (nonceKey, bool) {
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.Nonce != 0 && (op.Kind == Increment || op.Kind == Append) {
			return nonceKey{op.NonceGroup, op.Nonce}, true
		}
	}
	return nonceKey{}, false
}

// mutatePlain applies a run of plain mutations as one write.
func (t *Table) mutatePlain(ctx context.Context, schema *cells.Schema, ms []*RowMutation, run []int) (pending, error) {
	var rows rowSet
	for _, i := range run {
		rows.add(t.s.stripe(t.id, ms[i].Row))
	}
	if err := t.lockRows(&rows, schema); err != nil {
		return pending{}, err
	}
	defer t.s.locks.unlock(&rows)
	w := t.newWriter(schema, t.s.clockPastMarkers(ctx, &rows))
	w.mem = ms[run[0]].Memstore
	for _, i := range run {
		if err := w.stamp(ms[i], math.MinInt64); err != nil {
			return pending{}, err
		}
	}
	return w.commit()
}

// mutateOne applies one mutation with all it may have. Without wait it gives up
// with errNonceBusy where it would wait for another one's nonce.
func (t *Table) mutateOne(ctx context.Context, schema *cells.Schema, m *RowMutation, wait bool) (p pending, err error) {
	key, has := m.nonce()
	if has {
		applied, taken, err := t.s.nonces.begin(ctx, key, t.s.now(), wait)
		if err != nil {
			return pending{}, err
		}
		if taken {
			return t.repeat(schema, m, applied)
		}
		defer func() {
			if p.seq == 0 { // failed, or nothing done
				t.s.nonces.end(key, false, 0, 0)
				return
			}
			p.nonce, p.claimed = key, true
		}()
	}
	var rows rowSet
	rows.add(t.s.stripe(t.id, m.Row))
	if err := t.lockRows(&rows, schema); err != nil {
		return pending{}, err
	}
	defer t.s.locks.unlock(&rows)
	seen := int64(math.MinInt64)
	if c := m.Condition; c != nil {
		row := c.Row
		if row == nil {
			row = m.Row
		}
		holds, ts, err := t.holds(schema, row, c)
		if err != nil || !holds {
			return pending{after: t.s.mvcc.begun()}, err
		}
		seen = ts
	}
	w := t.newWriter(schema, t.s.clockPastMarkers(ctx, &rows))
	w.mem = m.Memstore
	if err := w.stamp(m, seen); err != nil {
		return pending{}, err
	}
	if has {
		w.nonce(m)
	}
	p, err = w.commit()
	p.result = MutateResult{Processed: true, Cells: w.answer}
	return p, err
}

// repeat answers a mutation that was applied before under the same nonce: its
// columns as they were right after that.
func (t *Table) repeat(schema *cells.Schema, m *RowMutation, readPoint uint64) (pending, error) {
	p := pending{result: MutateResult{Processed: true}}
	for i := range m.Ops {
		op := &m.Ops[i]
		if op.NoResult || op.Kind != Increment && op.Kind != Append {
			continue
		}
		got, err := t.read(schema, m.Row, op.query(), readPoint, t.s.now())
		if err != nil {
			return pending{}, err
		}
		p.result.Cells = append(p.result.Cells, got...)
	}
	return p, nil
}

// query asks for the newest version of the columns an op names, in its range.
func (op *Op) query() *cells.Query {
	q := cells.NewQuery()
	if op.Range != (cells.TimeRange{}) {
		q.Range = op.Range
	}
	for i := range op.Cells {
		q.AddColumn(op.Cells[i].Family, op.Cells[i].Qualifier)
	}
	return q
}

// writer collects the cells of one write.
type writer struct {
	t       *Table
	schema  *cells.Schema
	now     int64
	cells   []cells.Cell // to be written, complete but for Seq
	answer  []cells.Cell
	durable bool
	mem     *Memstore
	spans   []span // of cells, those that a kill would lose; in order
	loose   loose
	fates   map[string]fate
}

func (t *Table) newWriter(schema *cells.Schema, now int64) *writer {
	return &writer{t: t, schema: schema, now: now}
}

// commit puts the cells into log and memtable.
func (w *writer) commit() (pending, error) {
	s := w.t.s
	if err := s.room(); err != nil {
		return pending{}, err
	}
	if err := w.mem.begin(); err != nil {
		return pending{}, err
	}
	defer w.mem.end()
	seq, limit := s.mvcc.begin()
	w.t.flushes.noteWrite(seq)
	b, err := w.encode(seq, limit)
	if err == nil {
		if w.mem != nil {
			w.mem.note(&w.loose, w.durable, w.now)
		}
		wait := w.durable && s.sync
		if wait {
			err = s.db.ApplyNoSyncWait(b, pebble.Sync)
		} else {
			err = s.db.Apply(b, pebble.NoSync)
		}
		if err == nil {
			return pending{batch: b, seq: seq, wait: wait}, nil
		}
	}
	s.mvcc.complete(seq)
	return pending{}, err
}

func (w *writer) encode(seq, limit uint64) (*pebble.Batch, error) {
	size := 32
	for i := range w.cells {
		c := &w.cells[i]
		size += len(c.Row) + len(c.Family) + len(c.Qualifier) + len(c.Value) + len(c.Tags) + 48
	}
	b := w.t.s.db.NewBatchWithSize(size)
	if limit != 0 {
		if err := b.Set(keySeqLimit, binary.BigEndian.AppendUint64(nil, limit), nil); err != nil {
			return nil, err
		}
	}
	var key, value []byte
	loose := len(w.spans) > 0 && w.mem != nil
	mixed := loose && w.mixed()
	if mixed {
		w.fates = make(map[string]fate, len(w.cells))
	}
	for i := range w.cells {
		c := &w.cells[i]
		c.Seq = seq
		key = appendCellKey(key[:0], w.t.id, c)
		value = appendValue(value[:0], c)
		if err := b.Set(key, value, nil); err != nil {
			return nil, err
		}
		if loose {
			w.sort(i, key, value, mixed)
		}
	}
	for i := range w.answer {
		w.answer[i].Seq = seq
	}
	return b, nil
}

// sort decides whether cell i would be lost by a kill; it is called for each in
// order. Of two cells with one key the later replaces the earlier; a kill that
// takes away the later brings the earlier back, if that one stays.
func (w *writer) sort(i int, key, value []byte, mixed bool) {
	for len(w.spans) > 0 && w.spans[0].to <= i {
		w.spans = w.spans[1:]
	}
	d := cells.SyncWAL
	if len(w.spans) > 0 && w.spans[0].from <= i {
		d = w.spans[0].durability
	}
	if d == cells.AsyncWAL && w.durable {
		d = cells.SyncWAL // one entry of the log holds them all
	}
	c := looseCell{async: d == cells.AsyncWAL}
	if mixed {
		f := w.fates[string(key)]
		if d == cells.SkipWAL {
			if f.skipped > 0 {
				return // one record of the key will do, and a later cell must find them all
			}
			c.before = f.value
			w.fates[string(key)] = fate{f.value, len(w.loose.cells) + 1}
		} else {
			if f.skipped > 0 {
				w.loose.cells[f.skipped-1].key = nil
			}
			w.fates[string(key)] = fate{value: bytes.Clone(value)}
		}
	}
	if d < cells.SyncWAL {
		c.key = bytes.Clone(key)
		w.loose.cells = append(w.loose.cells, c)
	}
}

// fate is what is known of a key in a write that the log holds only a part of.
type fate struct {
	value   []byte // the log's; nil if none
	skipped int    // 1 + its place among the loose cells, if not in the log; else 0
}

// mixed says whether some of the write's cells are in the log, and others not.
func (w *writer) mixed() bool {
	skipped := 0
	for _, s := range w.spans {
		if s.durability == cells.SkipWAL {
			skipped += s.to - s.from
		}
	}
	return skipped > 0 && skipped < len(w.cells)
}

// nonce notes the mutation's nonce if a kill would lose all that it stands for.
func (w *writer) nonce(m *RowMutation) {
	if w.mem == nil {
		return
	}
	strongest := cells.SkipWAL
	for i := range m.Ops {
		if op := &m.Ops[i]; op.Kind == Increment || op.Kind == Append {
			strongest = max(strongest, w.durability(op))
		}
	}
	if strongest == cells.AsyncWAL && w.durable || strongest >= cells.SyncWAL {
		return
	}
	key, _ := m.nonce()
	w.loose.nonces, w.loose.nonceDurability = append(w.loose.nonces, key), strongest
}
