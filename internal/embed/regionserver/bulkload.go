package regionserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/embed/store"
	"github.com/holdfast-hbase/holdfast/internal/hfile"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

const (
	classFileNotFound = "java.io.FileNotFoundException"
	classIO           = "java.io.IOException"
	classCorruptHFile = "org.apache.hadoop.hbase.io.hfile.CorruptHFileException"
	classMultipleIO   = "org.apache.hadoop.io.MultipleIOException"
)

// prepareBulkLoad gives a token. HBase makes a staging directory of that name;
// here files are read where they are, and the token says nothing.
func (s *Server) prepareBulkLoad(_ context.Context, _ *rpcserver.Call, in *pb.PrepareBulkLoadRequest) (*pb.PrepareBulkLoadResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	if in.GetRegion() != nil {
		r, err := s.enter(in.GetRegion())
		if err != nil {
			return nil, err
		}
		defer r.leave()
	}
	table := meta.TableFromProto(in.GetTableName())
	token := "staging/" + strings.ReplaceAll(table.String(), ":", "_") + "__" + strconv.FormatUint(rand.Uint64(), 36)
	return &pb.PrepareBulkLoadResponse{BulkToken: &token}, nil
}

// cleanupBulkLoad has nothing to clean up.
func (s *Server) cleanupBulkLoad(context.Context, *rpcserver.Call, *pb.CleanupBulkLoadRequest) (*pb.CleanupBulkLoadResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	return &pb.CleanupBulkLoadResponse{}, nil
}

// bulkLoad reads HFiles on this machine into a region, all or none (HRegion's
// bulkLoadHFiles). Loaded is false if a file does not fit inside the region:
// the caller splits it then. As in HBase the files are gone afterwards, unless
// copy_file asks for them to stay. The load always gets a sequence number of
// its own, also without assign_seq_num.
func (s *Server) bulkLoad(ctx context.Context, _ *rpcserver.Call, in *pb.BulkLoadHFileRequest) (*pb.BulkLoadHFileResponse, error) {
	if err := s.checkOpen(); err != nil {
		return nil, err
	}
	s.requests.Add(1)
	r, err := s.enter(in.GetRegion())
	if err != nil {
		return nil, err
	}
	defer r.leave()
	if err := r.writable(ctx); err != nil {
		return nil, err
	}
	if err := spaceForbidsFiles(s.space(r), in.GetFamilyPath()); err != nil {
		return nil, err
	}
	files, fits, err := r.openBulk(in.GetFamilyPath())
	defer func() {
		for _, f := range files {
			if e := f.r.Close(); e != nil {
				s.log.Warn("closing a loaded HFile", "file", f.path, "error", e)
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	if !fits {
		return &pb.BulkLoadHFileResponse{Loaded: new(false)}, nil
	}
	readers := make([]store.CellReader, len(files))
	for i, f := range files {
		readers[i] = &bulkReader{Scanner: f.r.Scan(), region: r, file: f}
	}
	if in.GetAssignSeqNum() {
		r.mem.Flush() // as HBase does, to give the files a number behind it
	}
	n, err := r.Table.BulkLoad(ctx, readers)
	if err != nil {
		return nil, bulkError(err)
	}
	r.writes.Add(uint64(n))
	s.log.Info("bulk load", "region", r.name, "files", len(files), "cells", n)
	if !in.GetCopyFile() {
		for _, f := range files {
			if err := os.Remove(f.path); err != nil {
				s.log.Warn("a loaded HFile stays where it is", "file", f.path, "error", err)
			}
		}
	}
	return &pb.BulkLoadHFileResponse{Loaded: new(true)}, nil
}

type bulkFile struct {
	path   string
	family []byte
	r      *hfile.Reader
}

// openBulk opens the files and compares their first and last rows with the
// region's. What was opened is the caller's to close, also on an error.
func (r *region) openBulk(paths []*pb.BulkLoadHFileRequest_FamilyPath) (files []bulkFile, fits bool, err error) {
	var wrong []error
	fits = true
	for _, p := range paths {
		if r.schema().Family(p.GetFamily()) == nil {
			wrong = append(wrong, wire.NewRemoteError(wire.ClassDoNotRetryIO, "No such column family "+cells.Quote(p.GetFamily())))
			continue
		}
		path, err := localPath(p.GetPath())
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		h, err := hfile.Open(path)
		if err != nil {
			wrong = append(wrong, bulkError(err))
			continue
		}
		files = append(files, bulkFile{path: path, family: p.GetFamily(), r: h})
		first, any, err := h.FirstKey()
		if err == nil && any {
			var last cells.Cell
			if last, any, err = h.LastKey(); any && !(r.contains(first.Row) && r.contains(last.Row)) {
				fits = false
			}
		}
		if err != nil {
			wrong = append(wrong, bulkError(err))
		}
	}
	switch len(wrong) {
	case 0:
		return files, fits, nil
	case 1:
		return files, false, wrong[0]
	}
	text := strconv.Itoa(len(wrong)) + " exceptions ["
	for i, e := range wrong {
		if i > 0 {
			text += ", "
		}
		text += e.Error()
	}
	return files, false, wire.NewRemoteError(classMultipleIO, text+"]")
}

// localPath is the file that a path or a file: URI names.
func localPath(path string) (string, error) {
	if scheme, _, ok := strings.Cut(path, ":"); ok && !strings.Contains(scheme, "/") {
		u, err := url.Parse(path)
		if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
			return "", rpcserver.Unsupported("unsupported: bulk load from %s (only files on this machine)", cells.QuoteShort([]byte(path), 512))
		}
		path = u.Path
	}
	if !filepath.IsAbs(path) {
		return "", wire.NewRemoteError(classIO, "bulk load of "+cells.QuoteShort([]byte(path), 512)+": the path is not absolute")
	}
	return filepath.Clean(path), nil
}

// bulkError is HBase's exception for a file that cannot be read.
func bulkError(err error) error {
	var corrupt *hfile.CorruptError
	var unsupported *hfile.UnsupportedError
	switch {
	case errors.As(err, &corrupt):
		x := wire.NewRemoteError(classCorruptHFile, "Problem reading HFile from file "+corrupt.File+": "+corrupt.Error())
		x.DoNotRetry = true
		return x
	case errors.As(err, &unsupported):
		return rpcserver.Unsupported("%s", unsupported.Error())
	case errors.Is(err, fs.ErrNotExist):
		var path *fs.PathError
		name := ""
		if errors.As(err, &path) {
			name = path.Path
		}
		return wire.NewRemoteError(classFileNotFound, "File "+name+" does not exist")
	case errors.Is(err, fs.ErrPermission):
		return wire.NewRemoteError(classIO, err.Error())
	}
	return err
}

// bulkReader refuses cells that the names of a file did not promise.
type bulkReader struct {
	*hfile.Scanner
	region *region
	file   bulkFile
	err    error
}

func (b *bulkReader) Next() bool {
	if b.err != nil || !b.Scanner.Next() {
		return false
	}
	c := b.Cell()
	switch {
	case !bytes.Equal(c.Family, b.file.family):
		b.err = wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("Bulk load file %s for family %s holds a cell of family %s", b.file.path, cells.Quote(b.file.family), cells.Quote(c.Family)))
	case !b.region.contains(c.Row):
		b.err = wire.NewRemoteError(wire.ClassWrongRegion, fmt.Sprintf("Bulk load file %s does not fit inside region %s", b.file.path, b.region.name))
	case c.Type != cells.Put && !c.Type.IsDelete():
		b.err = wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("unsupported: Bulk load file %s holds a cell of type %v", b.file.path, c.Type))
	case c.Timestamp < 0:
		b.err = wire.NewRemoteError(wire.ClassDoNotRetryIO, fmt.Sprintf("Bulk load file %s holds a cell with timestamp %d", b.file.path, c.Timestamp))
	}
	return b.err == nil
}

func (b *bulkReader) Err() error {
	if b.err != nil {
		return b.err
	}
	return b.Scanner.Err()
}
