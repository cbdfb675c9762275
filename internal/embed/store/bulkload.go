package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// CellReader gives cells in HBase's order. The cell is valid until the next
// call of Next; after Next has answered false, Err says whether that is the
// end.
type CellReader interface {
	Next() bool
	Cell() *cells.Cell
	Err() error
}

const (
	// bulkPrefix begins the names of files a bulk load is writing. They are no
	// names of the engine's, and what is left of them is removed by Open.
	bulkPrefix = "bulkload-"
	// bulkFileBytes is the size from which the next file is begun.
	bulkFileBytes = 64 << 20
	// bulkCheck is how often a load looks whether its context has ended.
	bulkCheck = 1 << 12
)

// BulkLoad takes all cells of the readers into the table, at once: when it
// returns without error they are durable, and no reader has seen a part of
// them. On an error nothing of them is there. Their sequence numbers are
// replaced by one new number, so that they count as written now. Of cells with
// equal coordinates, timestamp and type the first reader's counts.
//
// Neither schema nor sizes are looked at. The cells go past the log into files
// of the engine. While those are written (about a million cells a second),
// answers to other writes wait: the read point passes numbers in their order.
func (t *Table) BulkLoad(ctx context.Context, readers []CellReader) (n int64, err error) {
	s := t.s
	if err := s.enter(); err != nil {
		return 0, err
	}
	defer s.leave()
	if err := s.failure(); err != nil {
		return 0, err
	}
	seq, limit := s.mvcc.begin()
	defer s.mvcc.wait(seq)
	defer s.mvcc.complete(seq)
	// The files are on disk at once, so the promise that this number is not
	// given out again has to be there before.
	if limit != 0 {
		err = s.db.Set(keySeqLimit, binary.BigEndian.AppendUint64(nil, limit), s.writeOptions(true))
	} else if s.sync {
		err = s.db.LogData(nil, pebble.Sync)
	}
	if err = errors.Join(err, s.failure()); err != nil {
		return 0, err
	}
	w := bulkWriter{t: t, seq: seq}
	defer func() { err = errors.Join(err, w.discard()) }()
	if err := w.merge(ctx, readers); err != nil {
		return 0, err
	}
	if len(w.paths) > 0 {
		if err := s.db.Ingest(ctx, w.paths); err != nil {
			return 0, err
		}
	}
	return w.n, s.failure()
}

// bulkWriter writes a load's cells into files of the engine.
type bulkWriter struct {
	t     *Table
	seq   uint64
	n     int64
	paths []string
	out   *sstable.Writer

	key, last, value []byte
}

// merge writes the cells of all readers in the store's order.
func (w *bulkWriter) merge(ctx context.Context, readers []CellReader) error {
	live := make([]CellReader, 0, len(readers))
	for _, r := range readers {
		if r.Next() {
			live = append(live, r)
		} else if err := r.Err(); err != nil {
			return err
		}
	}
	for step := 0; len(live) > 0; step++ {
		if step%bulkCheck == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		least := 0
		for i := 1; i < len(live); i++ {
			a, b := *live[i].Cell(), *live[least].Cell()
			a.Seq, b.Seq = 0, 0
			if cells.Compare(&a, &b) < 0 {
				least = i
			}
		}
		if err := w.add(live[least].Cell()); err != nil {
			return err
		}
		if !live[least].Next() {
			if err := live[least].Err(); err != nil {
				return err
			}
			live = append(live[:least], live[least+1:]...)
		}
	}
	return w.endFile()
}

func (w *bulkWriter) add(in *cells.Cell) error {
	c := *in
	c.Seq = w.seq
	w.key = appendCellKey(w.key[:0], w.t.id, &c)
	if bytes.Equal(w.key, w.last) {
		return nil
	}
	if w.out == nil {
		if err := w.beginFile(); err != nil {
			return err
		}
	}
	w.value = appendValue(w.value[:0], &c)
	if err := w.out.Set(w.key, w.value); err != nil {
		return err
	}
	w.key, w.last = w.last, w.key
	w.n++
	if w.out.Raw().EstimatedSize() >= bulkFileBytes {
		return w.endFile()
	}
	return nil
}

func (w *bulkWriter) beginFile() error {
	s := w.t.s
	path := s.fs.PathJoin(s.dir, fmt.Sprintf("%s%d-%d", bulkPrefix, w.seq, len(w.paths)))
	f, err := s.fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return dirError(s.dir, err)
	}
	w.paths = append(w.paths, path)
	w.out = sstable.NewWriter(objstorageprovider.NewFileWritable(f), s.tableOptions())
	return nil
}

func (w *bulkWriter) endFile() error {
	if w.out == nil {
		return nil
	}
	out := w.out
	w.out = nil
	return dirError(w.t.s.dir, out.Close())
}

// discard removes what the engine has not taken over.
func (w *bulkWriter) discard() error {
	s := w.t.s
	var err error
	if w.out != nil {
		// The error that led here is the one to tell of.
		_ = w.out.Close()
	}
	for _, path := range w.paths {
		if _, e := s.fs.Stat(path); e == nil {
			err = errors.Join(err, s.fs.Remove(path))
		}
	}
	return err
}

// tableOptions are those of the engine's own files.
func (s *Store) tableOptions() sstable.WriterOptions {
	return s.options.MakeWriterOptions(0, s.db.TableFormat())
}

// removeBulkFiles removes what a bulk load left that did not end.
func removeBulkFiles(fsys vfs.FS, dir string) error {
	names, err := fsys.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, bulkPrefix) {
			if err := fsys.Remove(fsys.PathJoin(dir, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// engineOptionsOf keeps what the writer of an engine's file has to know.
func engineOptionsOf(po *pebble.Options) *pebble.Options {
	c := po.Clone()
	c.EnsureDefaults()
	return c
}
