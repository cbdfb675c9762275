package export

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// Options of an export.
type Options struct {
	Selection
	// Restart begins anew where a part of an export is there already.
	Restart bool
	// Progress, if set, is told after every part.
	Progress func(Progress)
}

// Progress is how far an export or import has got.
type Progress struct {
	Parts, OfParts int // OfParts is 0 if unknown; it changes as regions split
	Totals         Totals
	Bytes          int64 // of the file
}

// Run writes a table to a file. It scans region by region into path.part;
// after each region that file is on disk up to there. When all is written it
// becomes path. If path.part is there from a run that was interrupted, with
// the same selection, the export goes on behind its last whole region.
//
// Each region is read at another moment: the file is no snapshot of a table
// that is being written. Tags (a cell's own TTL among them) are not given to
// clients, and so not exported.
func Run(ctx context.Context, client *hbase.Client, table, path string, o Options) (Totals, error) {
	d, err := client.Admin().Describe(ctx, table)
	if err != nil {
		return Totals{}, err
	}
	if _, err := os.Stat(path); err == nil {
		return Totals{}, fmt.Errorf("%s exists already", path)
	}
	starts, err := startKeys(ctx, client, table)
	if err != nil {
		return Totals{}, err
	}
	h := headerOf(d, &o.Selection, starts)
	f, w, next, err := open(path+".part", h, o.Restart)
	if err != nil {
		return Totals{}, err
	}
	defer f.Close()
	defer w.close()
	tab, err := client.Table(table)
	if err != nil {
		return Totals{}, err
	}
	for next != nil {
		// The region's end may have moved since; the range is what counts.
		end, left := endOf(starts, *next)
		if len(o.Stop) > 0 && (end == nil || bytes.Compare(end, o.Stop) >= 0) {
			end, left = o.Stop, 0
		}
		if err := scan(ctx, tab, &o.Selection, *next, end, w); err != nil {
			return w.count.Totals, err
		}
		if next = &end; left == 0 {
			end, next = nil, nil
		}
		if err := errors.Join(w.part(end), f.Sync()); err != nil {
			return w.count.Totals, err
		}
		if o.Progress != nil {
			o.Progress(Progress{Parts: w.parts, OfParts: w.parts + left, Totals: w.count.Totals, Bytes: w.bytes})
		}
	}
	if err := errors.Join(w.end(), f.Sync(), f.Close()); err != nil {
		return w.count.Totals, err
	}
	if err := os.Rename(path+".part", path); err != nil {
		return w.count.Totals, err
	}
	return w.count.Totals, syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func startKeys(ctx context.Context, client *hbase.Client, table string) ([][]byte, error) {
	regions, err := client.Admin().Regions(ctx, table)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for _, r := range regions {
		if len(r.Region.Start) > 0 {
			keys = append(keys, r.Region.Start)
		}
	}
	return keys, nil
}

// endOf is the first boundary behind row, and how many regions follow it; nil
// and 0 for the last region.
func endOf(starts [][]byte, row []byte) (end []byte, left int) {
	for i, s := range starts {
		if bytes.Compare(s, row) > 0 {
			return s, len(starts) - i
		}
	}
	return nil, 0
}

func headerOf(d *admin.TableDescriptor, s *Selection, splits [][]byte) *Header {
	h := &Header{Format: Version, Table: d.Name.String(), Created: time.Now().UTC().Format(time.RFC3339), What: *s, Values: d.Attributes, Splits: splits}
	for _, f := range d.Families {
		h.Families = append(h.Families, Family{Name: f.Name, Attributes: f.Attributes})
	}
	return h
}

// open begins a file or goes on with one. next is the row to go on from; nil
// if every part is there.
func open(path string, h *Header, restart bool) (f *os.File, w *writer, next *[]byte, err error) {
	flags := os.O_RDWR | os.O_CREATE
	if restart {
		flags |= os.O_TRUNC
	}
	if f, err = os.OpenFile(path, flags, 0o644); err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if w, err = newWriter(f); err != nil {
		return nil, nil, nil, err
	}
	at, next, err := goOn(f, path, h, w)
	if err != nil {
		return nil, nil, nil, err
	}
	if err = f.Truncate(at); err != nil {
		return nil, nil, nil, err
	}
	if _, err = f.Seek(at, io.SeekStart); err != nil {
		return nil, nil, nil, err
	}
	if at == 0 {
		err = w.begin(h)
	}
	return f, w, next, err
}

// goOn reads what there is of a file, and says behind which offset and from
// which row to go on.
func goOn(f io.Reader, path string, h *Header, w *writer) (int64, *[]byte, error) {
	r, err := NewReader(f, path)
	if errors.Is(err, ErrIncomplete) {
		return 0, &h.What.Start, nil // not even a header
	}
	var c *CorruptError
	if errors.As(err, &c) && c.Offset == 0 && r == nil && emptyFile(f) {
		return 0, &h.What.Start, nil
	}
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	was, err := json.Marshal(r.header.What)
	if err != nil {
		return 0, nil, err
	}
	now, err := json.Marshal(h.What)
	if err != nil {
		return 0, nil, err
	}
	if r.header.Table != h.Table || string(was) != string(now) {
		return 0, nil, fmt.Errorf("%s is an unfinished export of table %s with %s, not %s with %s: restart it, or give another file", path, r.header.Table, was, h.Table, now)
	}
	for r.Next() {
	}
	// A frame that is cut off, or was not on disk in full, is written again.
	if err := r.Err(); err != nil && !errors.Is(err, ErrIncomplete) && !errors.As(err, &c) {
		return 0, nil, err
	}
	w.count.Totals, w.parts, w.bytes = r.last.Totals, r.parts, r.lastAt
	if r.parts == 0 {
		return r.lastAt, &h.What.Start, nil
	}
	if len(r.last.End) == 0 {
		return r.lastAt, nil, nil
	}
	return r.lastAt, &r.last.End, nil
}

func emptyFile(f io.Reader) bool {
	s, ok := f.(interface{ Stat() (os.FileInfo, error) })
	if !ok {
		return false
	}
	st, err := s.Stat()
	return err == nil && st.Size() == 0
}

// scan adds the cells of the rows [start, stop).
func scan(ctx context.Context, tab *hbase.Table, s *Selection, start, stop []byte, w *writer) (err error) {
	q := &hbase.Scan{Start: start, Stop: stop, MaxVersions: max(1, s.Versions), Raw: s.Raw, AllowPartial: true, SkipBlockCache: true}
	if s.MaxTime > 0 || s.MinTime > 0 {
		q.TimeRange = hbase.TimeRange{From: s.MinTime, To: s.MaxTime}
		if s.MaxTime == 0 {
			q.TimeRange.To = hbase.LatestTimestamp
		}
	}
	for _, f := range s.Families {
		q.Family(f)
	}
	sc := tab.Scan(ctx, q)
	defer func() { err = errors.Join(err, sc.Close()) }()
	for r, err := range sc.Rows() {
		if err != nil {
			return err
		}
		for i := range r.Cells {
			if err := w.add(&r.Cells[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
