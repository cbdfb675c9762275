package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Kinds of findings.
const (
	FindFormat   = "format"   // the file that names the format
	FindFile     = "file"     // a file of the engine cannot be read
	FindLog      = "log"      // the log is damaged before its end
	FindCatalog  = "catalog"  // an entry does not decode, or contradicts another
	FindRegion   = "region"   // a table's regions have a hole or overlap
	FindSnapshot = "snapshot" // a snapshot is not complete
	FindCounter  = "counter"  // a number that was promised not to come again may
	FindSequence = "sequence" // likewise, of cells
	FindKey      = "key"
	FindValue    = "value"
	FindTable    = "table"  // cells of no table
	FindFamily   = "family" // cells of no family of their table
	FindZNode    = "znode"
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind string `json:"kind"`
	// Where it is: a file, a key, a table.
	Where string `json:"where"`
	What  string `json:"what"`
	// Count is of how many places this is the first; 1 if it is the only one.
	Count int64 `json:"count"`
}

// Report is the outcome of a check. A store without findings is one that Open
// takes and whose every cell can be read.
type Report struct {
	Dir       string `json:"dir"`
	Format    int    `json:"format"`
	Tables    int    `json:"tables"`
	Regions   int    `json:"regions"`
	Snapshots int    `json:"snapshots"`
	Catalog   int64  `json:"catalogEntries"`
	Cells     int64  `json:"cells"`
	Bytes     int64  `json:"bytes"` // of keys and values
	// SeqLimit is the promise below which all sequence numbers lie, MaxSeq the
	// largest one found.
	SeqLimit uint64 `json:"seqLimit"`
	MaxSeq   uint64 `json:"maxSeq"`
	// Complete is false if something kept the check from reading all.
	Complete bool      `json:"complete"`
	Findings []Finding `json:"findings"`
	// Notes are no damage: what the next start will clean up.
	Notes []string `json:"notes"`
}

// maxFindings bounds a report; what is alike is counted, not listed.
const maxFindings = 1000

// Find adds a finding; of one kind, what and group the first is kept and the
// others are counted.
func (r *Report) Find(kind, where, what string) {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Kind == kind && f.What == what {
			f.Count++
			return
		}
	}
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, Finding{kind, where, what, 1})
	}
}

// Owner is what the catalog says of a table id.
type Owner struct {
	// Name of the table or snapshot, for people.
	Name     string
	Families map[string]bool
	// Leaving says that the data is about to be dropped: it may be there or not.
	Leaving bool
	// FamiliesLeaving says so of families.
	FamiliesLeaving map[string]bool
}

// CheckOptions say what to check.
type CheckOptions struct {
	Dir string
	// FS replaces the file system (tests); the store is in Dir, or "store".
	FS vfs.FS
	// Catalog reads the catalog's pairs, in byte order, reports what is wrong
	// with them and says who owns which table id; nil checks no owners.
	Catalog func(r *Report, pairs iter.Seq2[[]byte, []byte]) map[uint32]Owner
	// Progress, if set, is called about once a second with the cells read and,
	// roughly, which part of all they are.
	Progress func(cells int64, part float64)
}

// Check opens a store for reading only, reads all of it and reports what is
// wrong. It changes nothing. Damage is in the report; the error is for what
// keeps the check from being made: ErrLocked while a cluster runs on the
// directory, ErrNotAStore, ErrNewerFormat, the file system's, or ctx's.
func Check(ctx context.Context, o CheckOptions) (_ *Report, err error) {
	fsys, dir := o.FS, o.Dir
	if fsys == nil {
		fsys = vfs.Default
	} else if dir == "" {
		dir = "store"
	}
	names, err := fsys.List(dir)
	if err != nil {
		return nil, dirError(dir, err)
	}
	c := &check{Report: &Report{Dir: dir, Findings: []Finding{}, Notes: []string{}}, o: &o, ctx: ctx}
	// Pebble's own files say that it is a store all the same.
	if !slices.ContainsFunc(names, func(n string) bool { return n == formatFile || strings.HasPrefix(n, "MANIFEST-") }) {
		return nil, fmt.Errorf("store %s: %w (it has no file %s)", dir, ErrNotAStore, formatFile)
	}
	lock, err := pebble.LockDirectory(dir, fsys)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || isReadOnlyFS(err) {
			return nil, dirError(dir, err)
		}
		return nil, fmt.Errorf("store %s: %w (%v)", dir, ErrLocked, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := c.format(fsys, names); err != nil {
		return nil, err
	}
	for _, n := range names {
		if strings.HasPrefix(n, bulkPrefix) {
			c.Notes = append(c.Notes, fmt.Sprintf("%s is left of a bulk load that did not end; the next start removes it", n))
		}
	}
	switch err := checkLog(fsys, dir); {
	case errors.Is(err, ErrCorrupted):
		c.Find(FindLog, dir, strings.TrimPrefix(err.Error(), "store "+dir+": "))
	case err != nil:
		return nil, err
	}
	switch err := checkManifest(fsys, dir, true); {
	case errors.Is(err, ErrCorrupted):
		c.Find(FindFile, dir, strings.TrimPrefix(err.Error(), "store "+dir+": "))
	case err != nil && !errors.Is(err, fs.ErrNotExist): // the engine will tell
		return nil, err
	}
	s := &Store{dir: dir}
	po := s.engineOptions(&Options{}, fsys, false)
	po.ReadOnly = true
	po.Lock = lock
	db, err := pebble.Open(dir, po)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) || ctx.Err() != nil {
			return nil, errors.Join(dirError(dir, err), ctx.Err())
		}
		c.Find(FindFile, dir, err.Error())
		return c.Report, nil
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c.db = db
	if err := c.run(); err != nil {
		return nil, err
	}
	return c.Report, nil
}

// check is one run of Check.
type check struct {
	*Report
	o      *CheckOptions
	ctx    context.Context
	db     *pebble.DB
	owners map[uint32]Owner

	told time.Time
	bufs [3][]byte
	key  []byte
}

func (c *check) format(fsys vfs.FS, names []string) error {
	c.Format = formatVersion
	if !slices.Contains(names, formatFile) {
		c.Find(FindFormat, formatFile, "the file is missing: the next start will not take this for a store")
		return nil
	}
	switch err := checkFormat(fsys, c.Dir); {
	case errors.Is(err, ErrNotAStore):
		c.Find(FindFormat, formatFile, "the file does not say which format this is")
	case err != nil:
		return err
	}
	return nil
}

// run reads everything, the catalog first.
func (c *check) run() error {
	for _, step := range []func() error{c.counters, c.catalog, c.cells, c.others} {
		switch err := step(); {
		case c.ctx.Err() != nil:
			return c.ctx.Err()
		case err != nil:
			// Damage that the engine found.
			c.Find(FindFile, c.Dir, err.Error())
			return nil
		}
	}
	c.Complete = true
	if c.MaxSeq > c.SeqLimit {
		c.Find(FindSequence, "sequence numbers", fmt.Sprintf("%d is in use, but only those up to %d are promised not to come again", c.MaxSeq, c.SeqLimit))
	}
	return nil
}

// pairs gives the keys of a space, without its byte, and their values.
func (c *check) pairs(space byte, failed *error) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: []byte{space}, UpperBound: []byte{space + 1}})
		if err != nil {
			*failed = err
			return
		}
		defer func() { *failed = errors.Join(*failed, it.Error(), it.Close()) }()
		for ok := it.First(); ok; ok = it.Next() {
			value, err := it.ValueAndErr()
			if err != nil {
				*failed = err
				return
			}
			if !yield(it.Key()[1:], value) {
				return
			}
		}
	}
}

// counters looks at the store's own keys.
func (c *check) counters() (err error) {
	limit := false
	for key, value := range c.pairs(spaceInternal, &err) {
		name := cells.QuoteShort(key, 64)
		switch {
		case len(key) == 0 || key[0] != keySeqLimit[1] && key[0] != prefixCounter[1] || key[0] == keySeqLimit[1] && len(key) > 1:
			c.Find(FindKey, name, "a key of the store's own that means nothing")
		case len(value) != 8:
			c.Find(FindCounter, name, fmt.Sprintf("the counter is %d bytes long, not 8", len(value)))
		case key[0] == keySeqLimit[1]:
			limit = true
			c.SeqLimit = binary.BigEndian.Uint64(value)
		case binary.BigEndian.Uint64(value) == 0:
			c.Find(FindCounter, name, "the counter is 0, which is never written")
		}
	}
	if err == nil && !limit {
		c.Find(FindCounter, "sequence numbers", "there is no promise which are not to come again")
	}
	return err
}

func (c *check) catalog() (err error) {
	counted := func(yield func([]byte, []byte) bool) {
		for key, value := range c.pairs(spaceCatalog, &err) {
			c.Catalog++
			if !yield(bytes.Clone(key), bytes.Clone(value)) {
				return
			}
		}
	}
	if c.o.Catalog == nil {
		for range counted {
			continue
		}
		return err
	}
	c.owners = c.o.Catalog(c.Report, counted)
	return err
}

// others are keys of no space.
func (c *check) others() error {
	for _, bounds := range [][2][]byte{{nil, {spaceCatalog}}, {{spaceInternal + 1}, {spaceCells}}, {{spaceCells + 1}, nil}} {
		it, err := c.db.NewIter(&pebble.IterOptions{LowerBound: bounds[0], UpperBound: bounds[1]})
		if err != nil {
			return err
		}
		for ok := it.First(); ok; ok = it.Next() {
			c.Find(FindKey, cells.QuoteShort(it.Key(), 64), "a key of no known kind")
		}
		if err := errors.Join(it.Error(), it.Close()); err != nil {
			return err
		}
	}
	return nil
}

// checkEvery is how often a check looks at the clock and at its context.
const checkEvery = 1 << 12

// cells reads every cell.
func (c *check) cells() (err error) {
	c.told = time.Now()
	leaving := map[uint32]int64{}
	for key, value := range c.pairs(spaceCells, &err) {
		if c.Cells%checkEvery == 0 {
			if c.ctx.Err() != nil {
				return c.ctx.Err()
			}
			c.progress(key)
		}
		c.Cells++
		c.Bytes += int64(1 + len(key) + len(value))
		c.key = append(append(c.key[:0], spaceCells), key...)
		id, cell, err := decodeCellKey(c.key, &c.bufs)
		if err != nil {
			c.Find(FindKey, cells.QuoteShort(c.key, 64), "the key of a cell that does not decode")
			continue
		}
		c.MaxSeq = max(c.MaxSeq, cell.Seq)
		if c.cell(id, &cell, value) {
			leaving[id]++
		}
	}
	for id, n := range leaving {
		c.Notes = append(c.Notes, fmt.Sprintf("%d cells of %s are to be dropped; the next start does it", n, c.owners[id].Name))
	}
	return err
}

// cell looks at one cell; true says that it is about to be dropped.
func (c *check) cell(id uint32, cell *cells.Cell, value []byte) (leaving bool) {
	owner, known := c.owners[id]
	name := owner.Name
	if !known {
		name = fmt.Sprintf("table id %d", id)
	}
	find := func(kind, format string, args ...any) {
		where := fmt.Sprintf("%s, row %s, column %s:%s, timestamp %d", name, cells.QuoteShort(cell.Row, 64), cells.Quote(cell.Family), cells.QuoteShort(cell.Qualifier, 64), cell.Timestamp)
		c.Find(kind, where, fmt.Sprintf(format, args...))
	}
	switch {
	case len(cell.Row) == 0 || len(cell.Row) > cells.MaxRowLength || len(cell.Family) == 0:
		find(FindKey, "%s: a cell with a row of %d bytes and a family of %d", name, len(cell.Row), len(cell.Family))
	case cell.Type != cells.Put && !cell.Type.IsDelete():
		find(FindKey, "%s: a cell of the unknown type %d", name, cell.Type)
	case cell.Timestamp < 0:
		find(FindKey, "%s: a cell with a negative timestamp", name)
	case cell.Seq == 0:
		find(FindSequence, "%s: a cell with the sequence number 0, which is never given", name)
	}
	stored := cells.Cell{}
	if err := decodeValue(value, &stored); err != nil {
		find(FindValue, "%s: %v", name, err)
	}
	for tags := stored.Tags; len(tags) > 0; {
		_, _, rest, ok := cells.NextTag(tags)
		if !ok {
			find(FindValue, "%s: malformed tags", name)
			break
		}
		tags = rest
	}
	switch {
	case c.owners == nil:
	case !known:
		find(FindTable, "cells of table id %d, which no table or snapshot has", id)
	case owner.Leaving, owner.FamiliesLeaving[string(cell.Family)] && !owner.Families[string(cell.Family)]:
		return true
	case len(cell.Family) > 0 && !owner.Families[string(cell.Family)]:
		find(FindFamily, "%s: cells of family %s, which it does not have", name, cells.Quote(cell.Family))
	}
	return false
}

// progress tells how far the check is, by the sizes of files.
func (c *check) progress(key []byte) {
	if c.o.Progress == nil || time.Since(c.told) < time.Second {
		return
	}
	c.told = time.Now()
	begin, at, end := []byte{spaceCells}, append([]byte{spaceCells}, key...), []byte{spaceCells + 1}
	all, err := c.db.EstimateDiskUsage(begin, end)
	if err != nil || all == 0 {
		c.o.Progress(c.Cells, 0)
		return
	}
	read, err := c.db.EstimateDiskUsage(begin, at)
	if err != nil {
		read = 0
	}
	c.o.Progress(c.Cells, min(1, float64(read)/float64(all)))
}
