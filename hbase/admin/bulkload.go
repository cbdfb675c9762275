package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/hbase/internal/fault"
	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/session"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// BulkLoadOptions change how a bulk load works. The zero value does what
// HBase's tool does.
type BulkLoadOptions struct {
	// Copy leaves the files where they are; otherwise the servers take them
	// away (always_copy_files).
	Copy bool
	// Parallel is how many regions are loaded at a time; 0 means 4.
	Parallel int
	// Rounds is how often files are grouped anew because regions have split or
	// merged meanwhile; 0 means 10 (hbase.bulkload.retries.number).
	Rounds int
	// Progress, if set, is told after each region, on one goroutine at a time.
	Progress func(BulkLoadResult)
}

// BulkLoadResult is what a bulk load has done so far.
type BulkLoadResult struct {
	Files   int // found
	Split   int // of them, cut because they reached over several regions
	Regions int // loads that were acknowledged, a region each
	Cells   int64
}

// bulkTemp is the folder below the directory into which files are cut. Its
// name is one that bulk loads pass over.
const bulkTemp = "_holdfast_split"

// BulkLoad loads the HFiles of a directory, DIR/FAMILY/FILE, into a table:
// see [Admin.BulkLoadWith].
func (a *Admin) BulkLoad(ctx context.Context, table, dir string) (BulkLoadResult, error) {
	return a.BulkLoadWith(ctx, table, dir, BulkLoadOptions{})
}

// BulkLoadWith loads the HFiles of a directory, DIR/FAMILY/FILE, into a table,
// as HBase's bulk load tool does (BulkLoadHFilesTool): groups them by region,
// cuts those that reach over several, and gives each region its files in one
// call, which takes all or none of them. Names that begin with _ or . are
// passed over. The directory must be one that the region servers see under the
// same path.
//
// Regions are loaded one by one: if an error ends the load, the result says
// how many have their files. Files given are gone then, the others still
// there, so that the same call goes on with the rest. A load whose answer was
// lost (hbase.ErrUnknownOutcome) is not repeated.
//
// Files are read once before anything is loaded where they have to be cut;
// damage found then loads nothing.
func (a *Admin) BulkLoadWith(ctx context.Context, table, dir string, o BulkLoadOptions) (res BulkLoadResult, err error) {
	const op = "bulk load"
	t, err := parseTable(op, table)
	if err != nil {
		return res, err
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.Rounds <= 0 {
		o.Rounds = 10
	}
	fail := func(err error) (BulkLoadResult, error) { return res, fault.Wrap(op, ofTable(t), err) }
	if dir, err = filepath.Abs(dir); err != nil {
		return fail(err)
	}
	b := &bulkLoad{a: a, op: op, table: t, dir: dir, o: o, res: &res}
	if err := b.find(ctx); err != nil {
		return fail(err)
	}
	if len(b.files) == 0 {
		return fail(fmt.Errorf("no HFiles in %s (want %s)", dir, filepath.Join(dir, "FAMILY", "FILE")))
	}
	if err := b.prepare(ctx); err != nil {
		return fail(err)
	}
	defer func() {
		if e := os.RemoveAll(filepath.Join(dir, bulkTemp)); err == nil && e != nil {
			err = fault.Wrap(op, ofTable(t), e)
		}
	}()
	defer b.cleanup(ctx)
	todo := b.files
	for round := 0; len(todo) > 0; round++ {
		if round == o.Rounds {
			return fail(fmt.Errorf("%d files do not fit into a region after %d rounds: the table goes on splitting", len(todo), round))
		}
		if todo, err = b.round(ctx, todo); err != nil {
			return fail(err)
		}
	}
	return res, nil
}

// bulkLoad is one call of BulkLoadWith.
type bulkLoad struct {
	a     *Admin
	op    string
	table TableName
	dir   string
	o     BulkLoadOptions
	token *string
	files []loadFile

	mu  sync.Mutex
	res *BulkLoadResult
	cut int // files cut so far, for their names
}

type loadFile struct {
	path        string
	family      string
	first, last []byte // rows
	cells       int64
}

// find lists the files and reads their first and last rows.
func (b *bulkLoad) find(ctx context.Context) error {
	d, err := b.a.Describe(ctx, b.table.String())
	if err != nil {
		return err
	}
	var valid []string
	for _, f := range d.Families {
		valid = append(valid, f.Name)
	}
	families, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	var unknown []string
	for _, f := range families {
		name := f.Name()
		if passedOver(name) || !f.IsDir() {
			continue
		}
		list, err := os.ReadDir(filepath.Join(b.dir, name))
		if err != nil {
			return err
		}
		for _, e := range list {
			if passedOver(e.Name()) || e.IsDir() {
				continue
			}
			if !slices.Contains(valid, name) {
				unknown = append(unknown, name)
				break
			}
			file, any, err := inspect(filepath.Join(b.dir, name, e.Name()), name)
			if err != nil {
				return err
			}
			if any {
				b.files = append(b.files, file)
			}
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("there are HFiles for families %q, but the table has %q", unknown, valid)
	}
	b.res.Files = len(b.files)
	return nil
}

func passedOver(name string) bool {
	return strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".")
}

// inspect opens a file; false if it has no cells.
func inspect(path, family string) (f loadFile, any bool, err error) {
	r, err := hfile.Open(path)
	if err != nil {
		return f, false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	first, any, err := r.FirstKey()
	if err != nil || !any {
		return f, false, err
	}
	if string(first.Family) != family {
		return f, false, fmt.Errorf("%s holds cells of family %s", path, cells.Quote(first.Family))
	}
	last, _, err := r.LastKey()
	return loadFile{path: path, family: family, first: first.Row, last: bytes.Clone(last.Row), cells: r.Trailer().Cells}, true, err
}

// prepare asks for the token that servers of HBase 2 want to see.
func (b *bulkLoad) prepare(ctx context.Context) error {
	ctx, cancel := bound(ctx, b.a.cfg.OperationTimeout)
	defer cancel()
	var resp pb.PrepareBulkLoadResponse
	_, err := b.a.core.CallRegion(ctx, &session.RegionCall{
		Table: b.table, Method: "PrepareBulkLoad", Op: b.op, Result: &resp, Idempotency: session.Safe,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			return &pb.PrepareBulkLoadRequest{TableName: b.table.ToProto(), Region: regionByName(region)}, nil
		},
	})
	if fault.UnknownMethod(err) {
		return nil // HBase 1: no token
	}
	b.token = resp.BulkToken
	return err
}

// cleanup gives the token back. The load has been done or has failed by then.
func (b *bulkLoad) cleanup(ctx context.Context) {
	if b.token == nil {
		return
	}
	ctx, cancel := bound(context.WithoutCancel(ctx), b.a.cfg.OperationTimeout)
	defer cancel()
	_, _ = b.a.core.CallRegion(ctx, &session.RegionCall{
		Table: b.table, Method: "CleanupBulkLoad", Op: b.op, Result: &pb.CleanupBulkLoadResponse{}, Idempotency: session.Safe,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			return &pb.CleanupBulkLoadRequest{BulkToken: b.token, Region: regionByName(region)}, nil
		},
	})
}

// round groups files by region and loads them. What a region no longer covers
// comes back.
func (b *bulkLoad) round(ctx context.Context, files []loadFile) (again []loadFile, err error) {
	regions, err := b.a.regions(ctx, b.op, b.table)
	if err != nil {
		return nil, err
	}
	groups := make(map[int][]loadFile)
	for _, f := range files {
		at := regionAt(regions, f.first)
		if to := regionAt(regions, f.last); at == to {
			groups[at] = append(groups[at], f)
			continue
		}
		b.res.Split++
		if err := b.split(ctx, f, regions, groups); err != nil {
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	slots := make(chan struct{}, b.o.Parallel)
	for _, group := range groups {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			loaded, e := b.load(ctx, group)
			b.mu.Lock()
			defer b.mu.Unlock()
			switch {
			case e != nil:
				if err == nil {
					err = e
				}
				stop()
			case !loaded:
				again = append(again, group...)
			default:
				b.res.Regions++
				for _, f := range group {
					b.res.Cells += f.cells
				}
				if b.o.Progress != nil {
					b.o.Progress(*b.res)
				}
			}
		})
	}
	wg.Wait()
	return again, err
}

// regionAt is the index of the region a row lies in.
func regionAt(regions []RegionLocation, row []byte) int {
	lo, hi := 0, len(regions)
	for lo < hi {
		mid := (lo + hi) / 2
		if bytes.Compare(regions[mid].Region.Start, row) <= 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return max(0, lo-1)
}

// load gives a region its files; false if they do not fit into it.
func (b *bulkLoad) load(ctx context.Context, files []loadFile) (bool, error) {
	ctx, cancel := bound(ctx, b.a.cfg.ProcedureTimeout)
	defer cancel()
	req := &pb.BulkLoadHFileRequest{AssignSeqNum: new(true), BulkToken: b.token}
	if b.o.Copy {
		req.CopyFile = new(true)
	}
	for _, f := range files {
		req.FamilyPath = append(req.FamilyPath, &pb.BulkLoadHFileRequest_FamilyPath{Family: []byte(f.family), Path: new("file:" + filepath.ToSlash(f.path))})
	}
	var resp pb.BulkLoadHFileResponse
	_, err := b.a.core.CallRegion(ctx, &session.RegionCall{
		Table: b.table, Row: files[0].first, Method: "BulkLoadHFile", Op: b.op, Result: &resp, Idempotency: session.Unsafe,
		Timeout: b.a.cfg.ProcedureTimeout,
		Param: func(region []byte, _ int) (wire.Marshaler, []byte) {
			req.Region = regionByName(region)
			return req, nil
		},
	})
	return resp.GetLoaded(), err
}

// split cuts a file at the regions' boundaries.
func (b *bulkLoad) split(ctx context.Context, f loadFile, regions []RegionLocation, groups map[int][]loadFile) (err error) {
	r, err := hfile.Open(f.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	dir := filepath.Join(b.dir, bulkTemp, f.family)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	enc, err := hfile.ParseEncoding(string(r.Info()[hfile.InfoEncoding]))
	if err != nil {
		return err
	}
	part := &partFile{o: hfile.WriterOptions{Encoding: enc, Compression: r.Trailer().Compression}, at: -1}
	defer func() { err = errors.Join(err, part.discard()) }()
	end := func() error {
		p, err := part.end()
		if err == nil && p.cells > 0 {
			p.family = f.family
			groups[part.at] = append(groups[part.at], p)
		}
		return err
	}
	s := r.Scan()
	for n := 0; s.Next(); n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		c := s.Cell()
		if part.at < 0 || len(regions[part.at].Region.End) > 0 && bytes.Compare(c.Row, regions[part.at].Region.End) >= 0 {
			if err := end(); err != nil {
				return err
			}
			b.cut++
			if err := part.begin(filepath.Join(dir, fmt.Sprintf("%s.%d", filepath.Base(f.path), b.cut)), regionAt(regions, c.Row)); err != nil {
				return err
			}
		}
		if err := part.add(c); err != nil {
			return err
		}
	}
	if err := s.Err(); err != nil {
		return err
	}
	return end()
}

// partFile is a part being written.
type partFile struct {
	o    hfile.WriterOptions
	at   int // region
	file *os.File
	w    *hfile.Writer
	now  loadFile
}

func (p *partFile) begin(path string, region int) (err error) {
	if p.file, err = os.Create(path); err != nil {
		return err
	}
	p.at, p.now = region, loadFile{path: path}
	p.w, err = hfile.NewWriter(p.file, p.o)
	return err
}

func (p *partFile) add(c *cells.Cell) error {
	d := *c
	d.Seq = 0 // the number of the load will count
	if p.now.cells == 0 {
		p.now.first = bytes.Clone(c.Row)
	}
	p.now.last = append(p.now.last[:0], c.Row...)
	p.now.cells++
	return p.w.Append(&d)
}

func (p *partFile) end() (loadFile, error) {
	if p.file == nil {
		return loadFile{}, nil
	}
	f := p.file
	p.file = nil
	return p.now, errors.Join(p.w.Close(), f.Sync(), f.Close())
}

// discard closes what end has not.
func (p *partFile) discard() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}
