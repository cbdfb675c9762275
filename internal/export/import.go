package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"

	"github.com/holdfast-hbase/holdfast/hbase"
	"github.com/holdfast-hbase/holdfast/hbase/admin"
)

// ImportOptions of an import.
type ImportOptions struct {
	// Table to write to; "" means the one that was exported, whose name is
	// filled in.
	Table string
	// Create makes the table, with the exported one's families, attributes and
	// region boundaries, if it does not exist.
	Create bool
	// Check reads the file's rows back from the table and compares every cell.
	// The table must hold nothing else there.
	Check bool
	// Progress, if set, is told after every part.
	Progress func(Progress)
}

// rowBytes is the size from which a row is sent in several mutations.
const rowBytes = 1 << 20

// Import writes a file's cells into a table, with their timestamps. The file
// is first read to its end: if it is damaged, incomplete or newer, nothing is
// written. A second import of one file changes nothing more. It answers what
// was written.
func Import(ctx context.Context, client *hbase.Client, path string, o *ImportOptions) (Totals, error) {
	f, err := os.Open(path)
	if err != nil {
		return Totals{}, err
	}
	defer f.Close()
	h, parts, want, err := Verify(ctxReader{ctx, f}, path)
	if err != nil {
		return Totals{}, err
	}
	if o.Table == "" {
		o.Table = h.Table
	}
	if err := prepareTable(ctx, client, &h, o); err != nil {
		return Totals{}, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Totals{}, err
	}
	tab, err := client.Table(o.Table)
	if err != nil {
		return Totals{}, err
	}
	got, err := write(ctx, tab, ctxReader{ctx, f}, path, parts, o.Progress)
	if err != nil {
		return got, err
	}
	if got != want {
		return got, fmt.Errorf("import %s: %+v written, but %+v were there when it was verified: the file has changed", path, got, want)
	}
	if o.Check {
		err = check(ctx, tab, &h, want)
	}
	return got, err
}

// ctxReader ends reading with a context.
type ctxReader struct {
	ctx context.Context
	in  io.Reader
}

func (r ctxReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(b)
}

// prepareTable makes the table, or makes sure that it has the families.
func prepareTable(ctx context.Context, client *hbase.Client, h *Header, o *ImportOptions) error {
	adm := client.Admin()
	d, err := adm.Describe(ctx, o.Table)
	if err != nil {
		if !errors.Is(err, hbase.ErrTableNotFound) || !o.Create {
			return err
		}
		t := admin.NewTable(o.Table)
		t.Attributes = maps.Clone(h.Values)
		for _, f := range h.Families {
			fam := admin.NewFamily(f.Name)
			fam.Attributes = maps.Clone(f.Attributes)
			t.Families = append(t.Families, fam)
		}
		return adm.CreateTable(ctx, t, h.Splits...)
	}
	have := map[string]bool{}
	for _, f := range d.Families {
		have[f.Name] = true
	}
	for _, f := range h.Families {
		if wanted := len(h.What.Families) == 0; !have[f.Name] && wanted {
			return fmt.Errorf("table %s has no family %q, which the export has", o.Table, f.Name)
		}
	}
	for _, f := range h.What.Families {
		if !have[f] {
			return fmt.Errorf("table %s has no family %q, which the export has", o.Table, f)
		}
	}
	return nil
}

func write(ctx context.Context, tab *hbase.Table, in io.Reader, path string, parts int, progress func(Progress)) (t Totals, err error) {
	r, err := NewReader(in, path)
	if err != nil {
		return t, err
	}
	defer r.Close()
	m, err := tab.Mutator(hbase.MutatorOptions{})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, m.Close(ctx)) }()
	var put *hbase.Put
	var del *hbase.Delete
	var row []byte
	size, told := 0, 0
	send := func() error {
		var errs []error
		if put != nil {
			errs = append(errs, m.Add(ctx, put))
		}
		if del != nil {
			errs = append(errs, m.Add(ctx, del))
		}
		put, del, size = nil, nil, 0
		return errors.Join(errs...)
	}
	for r.Next() {
		c := r.Cell().Clone()
		if string(c.Row) != string(row) || size >= rowBytes {
			if err := send(); err != nil {
				return t, err
			}
			row = c.Row
		}
		size += c.HeapSize()
		if c.Type.IsDelete() {
			if del == nil {
				del = hbase.NewDelete(c.Row)
			}
			del.Add(c)
		} else {
			if put == nil {
				put = hbase.NewPut(c.Row)
			}
			put.Add(c)
		}
		if progress != nil && r.Parts() > told {
			told = r.Parts()
			progress(Progress{Parts: told, OfParts: parts, Totals: r.Totals(), Bytes: r.at})
		}
	}
	if err := errors.Join(r.Err(), send()); err != nil {
		return t, err
	}
	if err := m.Flush(ctx); err != nil {
		return t, err
	}
	if progress != nil {
		progress(Progress{Parts: r.Parts(), OfParts: parts, Totals: r.Totals(), Bytes: r.at})
	}
	return r.Totals(), nil
}

// check reads back what was exported, in the same way, and compares it by
// counts and checksum.
func check(ctx context.Context, tab *hbase.Table, h *Header, want Totals) error {
	w, err := newWriter(io.Discard)
	if err != nil {
		return err
	}
	if err := errors.Join(scan(ctx, tab, &h.What, h.What.Start, h.What.Stop, w), w.close()); err != nil {
		return err
	}
	if got := w.count.Totals; got != want {
		return fmt.Errorf("table %s has %d rows, %d cells with sum %08x where the file has %d, %d, %08x: it held something before, or drops versions the export had",
			tab.Name(), got.Rows, got.Cells, got.Sum, want.Rows, want.Cells, want.Sum)
	}
	return nil
}
