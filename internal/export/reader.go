package export

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Reader reads a file from its beginning. Next answers false at its end, after
// all counts and checksums have been compared, or with an error. Not for
// concurrent use.
type Reader struct {
	in    *bufio.Reader
	name  string
	unzip *zstd.Decoder
	at    int64

	header Header
	count  counter
	parts  int
	last   Part  // the last part that is whole
	lastAt int64 // where it ends
	ended  bool
	err    error

	plain []byte // cells left of the present frame
	left  uint32
	prev  cells.Cell
	have  bool
	cell  cells.Cell
}

// NewReader reads the header. Errors are *CorruptError, or wrap ErrNewer,
// ErrIncomplete or in's.
func NewReader(in io.Reader, name string) (*Reader, error) {
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	r := &Reader{in: bufio.NewReaderSize(in, 64<<10), name: name, unzip: unzip}
	if err := r.begin(); err != nil {
		unzip.Close()
		return nil, err
	}
	return r, nil
}

func (r *Reader) corrupt(at int64, what string, err error) error {
	return &CorruptError{File: r.name, Offset: at, What: what, Err: err}
}

func (r *Reader) begin() error {
	head := make([]byte, len(magic))
	if n, err := io.ReadFull(r.in, head); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("export %s: %w", r.name, err)
	} else if string(head[:n]) != magic {
		return r.corrupt(0, "not an export of Holdfast", nil)
	}
	r.at = int64(len(magic))
	kind, body, err := r.frame()
	if err != nil {
		return err
	}
	if kind != frameHeader {
		return r.corrupt(r.at, "no header", nil)
	}
	// The number first: a newer header may have another form.
	var format struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &format); err != nil {
		return r.corrupt(int64(len(magic)), "header", err)
	}
	if format.Format > Version {
		return fmt.Errorf("export %s has format %d, this program reads up to %d: %w", r.name, format.Format, Version, ErrNewer)
	}
	if err := json.Unmarshal(body, &r.header); err != nil || format.Format < 1 {
		return r.corrupt(int64(len(magic)), "header", err)
	}
	r.lastAt = r.at
	return nil
}

// frame reads a frame. At the end of the file, and where a frame is cut off,
// the error wraps ErrIncomplete.
func (r *Reader) frame() (kind byte, body []byte, err error) {
	at := r.at
	short := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("export %s ends at offset %d after %d parts: %w", r.name, at, r.parts, ErrIncomplete)
		}
		return fmt.Errorf("export %s: read at offset %d: %w", r.name, at, err)
	}
	var head [frameHead]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return 0, nil, short(err)
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size > maxFrame {
		return 0, nil, r.corrupt(at, fmt.Sprintf("frame of %d bytes", size), nil)
	}
	// Memory grows as bytes arrive: the length may be a lie.
	var b bytes.Buffer
	b.Write(head[:])
	b.Grow(int(min(size+4, 1<<20)))
	if n, err := io.CopyN(&b, r.in, size+4); err != nil || n != size+4 {
		return 0, nil, short(err)
	}
	whole := b.Bytes()
	end := len(whole) - 4
	if crc32.Checksum(whole[:end], castagnoli) != binary.BigEndian.Uint32(whole[end:]) {
		return 0, nil, r.corrupt(at, "checksum of a frame does not match", nil)
	}
	r.at += int64(len(whole))
	return head[0], whole[frameHead:end:end], nil
}

// Header is the file's.
func (r *Reader) Header() *Header { return &r.header }

// Totals counts what has been read so far.
func (r *Reader) Totals() Totals { return r.count.Totals }

// Parts counts the parts read so far.
func (r *Reader) Parts() int { return r.parts }

// Cell is the present cell, valid until the next call of Next.
func (r *Reader) Cell() *cells.Cell { return &r.cell }

// Err is what ended the file early; nil if it was whole.
func (r *Reader) Err() error { return r.err }

// Close lets go of the decoder; the file is the caller's.
func (r *Reader) Close() { r.unzip.Close() }

// Next goes to the next cell.
func (r *Reader) Next() bool {
	for r.err == nil && !r.ended {
		if r.left > 0 {
			r.err = r.take()
			return r.err == nil
		}
		if len(r.plain) > 0 {
			r.err = r.corrupt(r.at, "bytes behind the last cell of a frame", nil)
			return false
		}
		at := r.at
		kind, body, err := r.frame()
		if err == nil {
			err = r.use(at, kind, body)
		}
		r.err = err
	}
	return false
}

func (r *Reader) use(at int64, kind byte, body []byte) error {
	switch kind {
	case frameCells:
		if len(body) < 8 {
			return r.corrupt(at, "frame of cells", io.ErrUnexpectedEOF)
		}
		size := binary.BigEndian.Uint32(body[4:])
		r.left = binary.BigEndian.Uint32(body)
		if size > maxFrame || r.left == 0 || r.left > size {
			return r.corrupt(at, fmt.Sprintf("%d cells in %d bytes", r.left, size), nil)
		}
		var err error
		if r.plain, err = unzip(r.unzip, body[8:], int(size)); err != nil {
			return r.corrupt(at, "decompress", err)
		}
		// Old bytes are gone with the last frame's.
		if r.have {
			r.prev = r.prev.Clone()
		}
	case framePart:
		var p Part
		if err := json.Unmarshal(body, &p); err != nil {
			return r.corrupt(at, "part", err)
		}
		if p.Totals != r.count.Totals {
			return r.corrupt(at, fmt.Sprintf("%+v found, the file says %+v", r.count.Totals, p.Totals), nil)
		}
		if r.have && len(p.End) > 0 && bytes.Compare(r.prev.Row, p.End) >= 0 {
			return r.corrupt(at, fmt.Sprintf("row %s in a part that ends at %s", cells.QuoteShort(r.prev.Row, 64), cells.QuoteShort(p.End, 64)), nil)
		}
		r.parts++
		r.last, r.lastAt = p, r.at
	case frameEnd:
		var e End
		if err := json.Unmarshal(body, &e); err != nil {
			return r.corrupt(at, "end", err)
		}
		if e.Totals != r.count.Totals || e.Parts != r.parts || e.Totals != r.last.Totals {
			return r.corrupt(at, fmt.Sprintf("%d parts, %+v found, the file says %d, %+v", r.parts, r.count.Totals, e.Parts, e.Totals), nil)
		}
		if _, err := r.in.ReadByte(); err == nil {
			return r.corrupt(r.at, "bytes behind the end", nil)
		}
		r.ended = true
	default:
		return r.corrupt(at, fmt.Sprintf("frame of unknown kind %q", kind), nil)
	}
	return nil
}

// unzip lets memory grow with what there is to unpack: size is only a claim.
func unzip(d *zstd.Decoder, body []byte, size int) ([]byte, error) {
	if err := d.Reset(bytes.NewReader(body)); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(min(size, 1<<20))
	n, err := out.ReadFrom(io.LimitReader(d, int64(size)+1))
	if err == nil && n != int64(size) {
		err = fmt.Errorf("%d bytes or more instead of %d", n, size)
	}
	return out.Bytes(), err
}

func (r *Reader) take() error {
	c, rest, err := cutCell(r.plain)
	if err != nil {
		return r.corrupt(r.at, fmt.Sprintf("cell %d", r.count.Cells+1), err)
	}
	r.plain, r.left = rest, r.left-1
	if r.have && cells.Compare(&r.prev, &c) > 0 {
		return r.corrupt(r.at, fmt.Sprintf("cell %v stands behind %v", &c, &r.prev), nil)
	}
	if w := &r.header.What; bytes.Compare(c.Row, w.Start) < 0 || len(w.Stop) > 0 && bytes.Compare(c.Row, w.Stop) >= 0 {
		return r.corrupt(r.at, fmt.Sprintf("cell %v is outside the rows exported", &c), nil)
	}
	r.prev, r.have, r.cell = c, true, c
	r.count.add(&c)
	return nil
}

// Verify reads a file to its end.
func Verify(in io.Reader, name string) (h Header, parts int, t Totals, err error) {
	r, err := NewReader(in, name)
	if err != nil {
		return h, 0, t, err
	}
	defer r.Close()
	for r.Next() {
	}
	return r.header, r.parts, r.count.Totals, r.err
}
