package hfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Reader is an open HFile. It may be shared by goroutines.
type Reader struct {
	src     io.ReaderAt
	closer  io.Closer
	name    string
	size    int64
	end     int64 // of the blocks
	trailer Trailer
	info    map[string][]byte
	root    []indexEntry
	bloom   *Bloom
	deletes *Bloom // of rows with delete-family markers

	tags, mvcc, packedTags bool
}

// Open opens a file. Errors are *CorruptError, *UnsupportedError or the file
// system's.
func Open(path string) (*Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var r *Reader
	st, err := f.Stat()
	if err == nil {
		if st.Mode().IsRegular() {
			r, err = NewReader(f, st.Size(), path)
		} else {
			err = &CorruptError{File: path, What: "not a regular file"}
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r.closer = f
	return r, nil
}

// NewReader opens what src holds; name stands in errors.
func NewReader(src io.ReaderAt, size int64, name string) (*Reader, error) {
	r := &Reader{src: src, name: name, size: size}
	if size < trailerLen {
		return nil, r.corrupt(0, fmt.Sprintf("%d bytes are too few for an HFile (empty, or cut off?)", size), nil)
	}
	r.end = size - trailerLen
	last := make([]byte, trailerLen)
	if err := r.readAt(last, r.end); err != nil {
		return nil, err
	}
	version := binary.BigEndian.Uint32(last[trailerLen-4:])
	r.trailer.Major, r.trailer.Minor = int(version&0xffffff), int(version>>24)
	if string(last[:8]) != magicTrailer {
		if r.trailer.Major == 2 && r.trailer.Minor <= minorVersion && bytes.Contains(last, []byte(magicTrailer)) {
			return nil, &UnsupportedError{File: name, What: "HFile version 2 (HBase 0.92 to 0.98)"}
		}
		return nil, r.corrupt(r.end, "no trailer: not an HFile, or cut off", nil)
	}
	if r.trailer.Major != majorVersion || r.trailer.Minor < 1 || r.trailer.Minor > minorVersion {
		return nil, &UnsupportedError{File: name, What: fmt.Sprintf("HFile version %d.%d", r.trailer.Major, r.trailer.Minor)}
	}
	if err := r.trailer.parse(last); err != nil {
		return nil, r.corrupt(r.end, "trailer", err)
	}
	if err := r.load(); err != nil {
		return nil, err
	}
	return r, nil
}

// load reads the part that is read when a file is opened.
func (r *Reader) load() error {
	t := &r.trailer
	if len(t.EncryptionKey) > 0 {
		return &UnsupportedError{File: r.name, What: "encryption"}
	}
	if !t.Compression.readable() {
		return &UnsupportedError{File: r.name, What: "compression " + t.Compression.String()}
	}
	if t.LoadOnOpenOffset < 0 || t.LoadOnOpenOffset >= r.end || t.Cells < 0 || t.IndexLevels < 1 || t.IndexLevels > 16 {
		return r.corrupt(r.end, fmt.Sprintf("trailer: index at %d, %d cells, %d levels", t.LoadOnOpenOffset, t.Cells, t.IndexLevels), nil)
	}
	at := t.LoadOnOpenOffset
	rootAt := at
	h, payload, next, err := r.block(at)
	if err != nil {
		return err
	}
	if h.magic != magicRoot {
		return r.corrupt(at, fmt.Sprintf("a block %q where the root index belongs", h.magic), nil)
	}
	if r.root, err = rootEntries(&lead{b: payload}, t.IndexEntries); err != nil {
		return r.corrupt(rootAt, "root index", err)
	}
	for at = next; at < r.end; at = next {
		if h, payload, next, err = r.block(at); err != nil {
			return err
		}
		switch h.magic {
		case magicFileInfo:
			if r.info, err = parseInfo(payload); err != nil {
				return r.corrupt(at, "file info", err)
			}
		case magicBloomMeta, magicDeleteBloom:
			b, err := parseBloom(payload)
			if err != nil {
				return r.corrupt(at, "bloom filter", err)
			}
			if h.magic == magicBloomMeta {
				r.bloom = b
			} else {
				r.deletes = b
			}
		}
	}
	if r.info == nil {
		return r.corrupt(t.LoadOnOpenOffset, "no file info", nil)
	}
	_, r.tags = r.info[InfoMaxTagsLen]
	r.packedTags = r.tags && truth(r.info[InfoTagsPacked])
	v := r.info[InfoKeyValueVer]
	r.mvcc = len(v) == 4 && binary.BigEndian.Uint32(v) == 1
	if r.bloom != nil {
		r.bloom.Type = string(r.info[InfoBloomType])
	}
	return nil
}

func truth(b []byte) bool { return len(b) == 1 && b[0] != 0 }

func (r *Reader) corrupt(offset int64, what string, err error) error {
	return &CorruptError{File: r.name, Offset: offset, What: what, Err: err}
}

func (r *Reader) readAt(b []byte, at int64) error {
	if n, err := r.src.ReadAt(b, at); n < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			return r.corrupt(at, "file ends here", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("hfile %s: read %d bytes at %d: %w", r.name, len(b), at, err)
	}
	return nil
}

// header reads a block's header.
func (r *Reader) header(at int64) (header, error) {
	if at < 0 || at > r.end-headerLen {
		return header{}, r.corrupt(at, "no room for a block", nil)
	}
	var raw [headerLen]byte
	if err := r.readAt(raw[:], at); err != nil {
		return header{}, err
	}
	h, err := parseHeader(raw[:])
	if err != nil {
		return h, r.corrupt(at, "block header", err)
	}
	if int64(h.onDisk) > r.end-at-headerLen {
		return h, r.corrupt(at, fmt.Sprintf("block of %d bytes with %d left in the file", h.onDisk, r.end-at-headerLen), nil)
	}
	return h, nil
}

// block reads the block at an offset, checks its checksums and unpacks it. The
// payload is fresh memory. next is where the following block begins.
func (r *Reader) block(at int64) (h header, payload []byte, next int64, err error) {
	if h, err = r.header(at); err != nil {
		return h, nil, 0, err
	}
	next = at + headerLen + int64(h.onDisk)
	b := make([]byte, headerLen+h.onDisk)
	if err := r.readAt(b, at); err != nil {
		return h, nil, 0, err
	}
	if err := verify(&h, b); err != nil {
		return h, nil, 0, r.corrupt(at, "block", err)
	}
	payload = b[headerLen:h.data:h.data]
	if r.trailer.Compression != CompressionNone {
		if payload, err = decompress(r.trailer.Compression, payload, h.unpacked); err != nil {
			return h, nil, 0, r.corrupt(at, "decompress "+r.trailer.Compression.String(), err)
		}
	}
	if len(payload) != h.unpacked {
		return h, nil, 0, r.corrupt(at, fmt.Sprintf("block has %d bytes, its header says %d", len(payload), h.unpacked), nil)
	}
	return h, payload, next, nil
}

// Close closes a file that Open opened.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// Name is the file's, as it stands in errors.
func (r *Reader) Name() string { return r.name }

// Size is the file's, in bytes.
func (r *Reader) Size() int64 { return r.size }

// Trailer is the file's trailer.
func (r *Reader) Trailer() Trailer { return r.trailer }

// Info is the file info: values in HBase's binary forms. Not to be changed.
func (r *Reader) Info() map[string][]byte { return r.info }

// Bloom describes the bloom filter; nil if there is none.
func (r *Reader) Bloom() *Bloom { return r.bloom }

// DeleteBloom describes the bloom filter of rows with delete-family markers;
// nil if there is none.
func (r *Reader) DeleteBloom() *Bloom { return r.deletes }

// FirstKey is the key of the first cell, without value; false without cells.
// Unlike LastKey it has to read a block.
func (r *Reader) FirstKey() (cells.Cell, bool, error) {
	s := r.Scan()
	if !s.Next() {
		return cells.Cell{}, false, s.Err()
	}
	c := s.Cell().Clone()
	c.Value, c.Tags = nil, nil
	return c, true, nil
}

// LastKey is the key of the last cell as the file info has it; false without
// cells.
func (r *Reader) LastKey() (cells.Cell, bool, error) {
	key, ok := r.info[InfoLastKey]
	if !ok || r.trailer.Cells == 0 {
		return cells.Cell{}, false, nil
	}
	var c cells.Cell
	if err := parseKey(key, &c); err != nil {
		return c, false, r.corrupt(r.trailer.FileInfoOffset, "last key", err)
	}
	return c, true, nil
}

// MayContain asks a ROW bloom filter. Without one that this package can ask,
// the answer is true.
func (r *Reader) MayContain(row []byte) (bool, error) {
	b := r.bloom
	if b == nil || b.Type != "ROW" || b.Hash != hashMurmur || b.Hashes <= 0 {
		return true, nil
	}
	i := lastBelow(b.chunks, row, func(key []byte) []byte { return key }, true)
	if i < 0 {
		return false, nil
	}
	h, chunk, _, err := r.block(b.chunks[i].offset)
	if err != nil {
		return false, err
	}
	if h.magic != magicBloomChunk {
		return false, r.corrupt(b.chunks[i].offset, fmt.Sprintf("a block %q where a bloom filter belongs", h.magic), nil)
	}
	x, y := bloomHashes(row)
	return bloomHas(chunk, b.Hashes, x, y), nil
}

// lastBelow is the last entry whose row is below row (or at it); -1 for none.
func lastBelow(list []indexEntry, row []byte, rowOf func([]byte) []byte, orAt bool) int {
	lo, hi := 0, len(list)
	for lo < hi {
		mid := (lo + hi) / 2
		if c := bytes.Compare(rowOf(list[mid].key), row); c < 0 || c == 0 && orAt {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// Scan reads the file's cells from the first.
func (r *Reader) Scan() *Scanner {
	s := &Scanner{r: r, at: r.trailer.FirstDataOffset, whole: true}
	s.dec.tags, s.dec.mvcc, s.dec.packedTags = r.tags, r.mvcc, r.packedTags
	return s
}

// Seek reads the file's cells from the first of row, or of the next row that
// has any. Only the number of cells is not checked at the end then.
func (r *Reader) Seek(row []byte) (*Scanner, error) {
	s := r.Scan()
	s.from = bytes.Clone(row)
	list := r.root
	for level := r.trailer.IndexLevels; len(list) > 0; level-- {
		e := &list[max(0, lastBelow(list, row, rowOfKey, false))]
		if level == 1 {
			// Cells before it are not wanted; the first block is where it was.
			s.at, s.whole = e.offset, false
			return s, nil
		}
		h, payload, _, err := r.block(e.offset)
		if err != nil {
			return nil, err
		}
		if h.magic != magicLeaf && h.magic != magicIntermediate {
			return nil, r.corrupt(e.offset, fmt.Sprintf("a block %q where an index belongs", h.magic), nil)
		}
		if list, err = leafEntries(payload); err != nil {
			return nil, r.corrupt(e.offset, "index", err)
		}
	}
	return s, nil
}

// Scanner reads cells in order. Not for concurrent use.
//
//	for s := r.Scan(); s.Next(); {
//		use(s.Cell())
//	}
//	err := s.Err()
type Scanner struct {
	r     *Reader
	at    int64 // of the next block
	block int64 // of the present one
	open  bool
	whole bool
	from  []byte
	dec   decoder
	cell  cells.Cell
	last  cells.Cell // its bytes are those of bufs
	buf   []byte
	n     int64
	err   error
}

// Next goes to the next cell; false is the end or an error.
func (s *Scanner) Next() bool {
	for s.err == nil {
		if s.open {
			ok, err := s.dec.next(&s.cell)
			if err != nil {
				s.err = s.r.corrupt(s.block, fmt.Sprintf("cell %d", s.n+1), err)
				return false
			}
			if ok {
				if s.err = s.inOrder(); s.err != nil {
					return false
				}
				if s.from != nil {
					if bytes.Compare(s.cell.Row, s.from) < 0 {
						continue
					}
					s.from = nil
				}
				return true
			}
			s.open = false
		}
		if !s.nextBlock() {
			return false
		}
	}
	return false
}

// inOrder compares a cell with the one before it, whose bytes may be gone by
// then: its key is kept.
func (s *Scanner) inOrder() error {
	s.n++
	if s.n > 1 {
		now := s.cell
		now.Seq = s.last.Seq // of no meaning for the order
		if cells.Compare(&s.last, &now) > 0 {
			return s.r.corrupt(s.block, fmt.Sprintf("cell %d, %v, stands behind %v", s.n, &s.cell, &s.last), nil)
		}
	}
	s.buf = append(s.buf[:0], s.dec.key...)
	return parseKey(s.buf, &s.last)
}

func (s *Scanner) nextBlock() bool {
	r, t := s.r, &s.r.trailer
	for {
		if t.Cells == 0 && t.FirstDataOffset <= 0 && s.n == 0 || s.at > t.LastDataOffset {
			if s.whole && s.n != t.Cells {
				s.err = r.corrupt(r.end, fmt.Sprintf("%d cells found, the trailer says %d", s.n, t.Cells), nil)
			}
			return false
		}
		h, err := r.header(s.at)
		if err != nil {
			s.err = err
			return false
		}
		if h.magic == magicData || h.magic == magicEncoded {
			break
		}
		s.at += headerLen + int64(h.onDisk)
	}
	h, payload, next, err := r.block(s.at)
	if err != nil {
		s.err = err
		return false
	}
	s.block, s.at = s.at, next
	enc := EncodingNone
	if h.magic == magicEncoded {
		if len(payload) < 2 {
			s.err = r.corrupt(s.block, "encoded block", errShort)
			return false
		}
		enc = Encoding(binary.BigEndian.Uint16(payload))
		if _, known := encodingNames[enc]; !known {
			s.err = &UnsupportedError{File: r.name, What: "data block encoding " + enc.String()}
			return false
		}
		payload = payload[2:]
	}
	if err := s.dec.start(enc, payload); err != nil {
		s.err = r.corrupt(s.block, "data block", err)
		return false
	}
	s.open = true
	return true
}

// Cell is the present cell; valid until the next call of Next.
func (s *Scanner) Cell() *cells.Cell { return &s.cell }

// Err is what ended the scan early; nil at the end of the file.
func (s *Scanner) Err() error { return s.err }
