package export

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast-hbase/holdfast/internal/cells"
)

// Version of the format that this package writes, and the newest it reads.
const Version = 1

const magic = "HFEXPORT"

// Kinds of frames.
const (
	frameHeader = 'H'
	frameCells  = 'C'
	framePart   = 'P'
	frameEnd    = 'E'
)

const (
	// cellFrameBytes is the size from which a frame of cells is ended, before
	// compression. One larger cell makes one larger frame.
	cellFrameBytes = 256 << 10
	// maxFrame bounds a frame, packed or unpacked: larger ones are refused
	// before memory is taken.
	maxFrame  = 256 << 20
	frameHead = 5 // kind and length
)

// ErrNewer says that a file was written by a newer Holdfast.
var ErrNewer = errors.New("file was written by a newer version of Holdfast")

// ErrIncomplete says that an export has not ended.
var ErrIncomplete = errors.New("export is not complete")

// CorruptError says that a file contradicts itself.
type CorruptError struct {
	File   string
	Offset int64
	What   string
	Err    error
}

func (e *CorruptError) Error() string {
	s := fmt.Sprintf("export %s: corrupted at offset %d: %s", e.File, e.Offset, e.What)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Header is what stands at the beginning of a file.
type Header struct {
	Format  int       `json:"format"`
	Table   string    `json:"table"`
	Created string    `json:"created,omitempty"` // RFC 3339
	From    string    `json:"from,omitempty"`    // address of the cluster
	What    Selection `json:"what"`
	// Families describe the table, so that import can make it; Attributes and
	// Values are HBase's.
	Families []Family          `json:"families"`
	Values   map[string]string `json:"values,omitempty"`
	// Splits are the boundaries of the table's regions.
	Splits [][]byte `json:"splits,omitempty"`
}

// Family is a column family of the exported table.
type Family struct {
	Name       string            `json:"name"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Selection says which cells of a table are meant.
type Selection struct {
	Start []byte `json:"start,omitempty"` // first row
	Stop  []byte `json:"stop,omitempty"`  // first row left out; none: to the end
	// MinTime and MaxTime bound the timestamps, in ms: from MinTime to below
	// MaxTime; MaxTime 0 means all.
	MinTime int64 `json:"minTime,omitempty"`
	MaxTime int64 `json:"maxTime,omitempty"`
	// Versions of a column; 0 means 1.
	Versions int `json:"versions,omitempty"`
	// Raw takes delete markers and what they hide, too.
	Raw bool `json:"raw,omitempty"`
	// Families to take; none means all.
	Families []string `json:"families,omitempty"`
}

// Totals count cells from the beginning of a file.
type Totals struct {
	Rows  int64 `json:"rows"`
	Cells int64 `json:"cells"`
	// Sum is the CRC-32C of all cells in their plain form, one after the other.
	Sum uint32 `json:"sum"`
}

// Part says that everything before row End is in the file; no End means that
// it is the last part.
type Part struct {
	End    []byte `json:"end,omitempty"`
	Totals Totals `json:"totals"`
}

// End is the last frame.
type End struct {
	Parts  int    `json:"parts"`
	Totals Totals `json:"totals"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendCell appends a cell in plain form: row, family, qualifier and value
// behind their lengths, before the value i64 timestamp and u8 type.
func appendCell(dst []byte, c *cells.Cell) []byte {
	for _, b := range [][]byte{c.Row, c.Family, c.Qualifier} {
		dst = binary.AppendUvarint(dst, uint64(len(b)))
		dst = append(dst, b...)
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Timestamp))
	dst = append(dst, byte(c.Type))
	dst = binary.AppendUvarint(dst, uint64(len(c.Value)))
	return append(dst, c.Value...)
}

var errCell = errors.New("malformed cell")

// cutCell reads the cell b begins with; its bytes are b's.
func cutCell(b []byte) (c cells.Cell, rest []byte, err error) {
	take := func() []byte {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			err, b = errCell, nil
			return nil
		}
		out := b[used : used+int(n) : used+int(n)]
		b = b[used+int(n):]
		return out
	}
	c.Row, c.Family, c.Qualifier = take(), take(), take()
	if err != nil || len(b) < 9 {
		return c, nil, errCell
	}
	c.Timestamp, c.Type = int64(binary.BigEndian.Uint64(b)), cells.Type(b[8])
	b = b[9:]
	c.Value = take()
	if len(c.Row) == 0 || len(c.Row) > cells.MaxRowLength || len(c.Family) > cells.MaxFamilyLength || c.Timestamp < 0 || c.Type != cells.Put && !c.Type.IsDelete() {
		err = errCell
	}
	return c, b, err
}

// counter keeps totals.
type counter struct {
	Totals
	row   []byte
	plain []byte
}

func (n *counter) add(c *cells.Cell) []byte {
	n.plain = appendCell(n.plain[:0], c)
	n.Sum = crc32.Update(n.Sum, castagnoli, n.plain)
	if n.Cells == 0 || string(n.row) != string(c.Row) {
		n.Rows++
		n.row = append(n.row[:0], c.Row...)
	}
	n.Cells++
	return n.plain
}

// writer writes frames.
type writer struct {
	out   io.Writer
	zip   *zstd.Encoder
	count counter
	parts int
	buf   []byte
	n     uint32 // cells in buf
	frame []byte
	bytes int64
}

func newWriter(out io.Writer) (*writer, error) {
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, err
	}
	return &writer{out: out, zip: zip}, nil
}

func (w *writer) begin(h *Header) error {
	if _, err := io.WriteString(w.out, magic); err != nil {
		return err
	}
	w.bytes += int64(len(magic))
	return w.json(frameHeader, h)
}

func (w *writer) json(kind byte, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return w.put(kind, b)
}

// put writes a frame: kind, length, body, and the CRC-32C of all that.
func (w *writer) put(kind byte, body []byte) error {
	if len(body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too large", len(body))
	}
	w.frame = append(w.frame[:0], kind)
	w.frame = binary.BigEndian.AppendUint32(w.frame, uint32(len(body)))
	w.frame = append(w.frame, body...)
	w.frame = binary.BigEndian.AppendUint32(w.frame, crc32.Checksum(w.frame, castagnoli))
	n, err := w.out.Write(w.frame)
	w.bytes += int64(n)
	return err
}

func (w *writer) add(c *cells.Cell) error {
	w.buf = append(w.buf, w.count.add(c)...)
	w.n++
	if len(w.buf) >= cellFrameBytes {
		return w.flush()
	}
	return nil
}

// flush writes the cells gathered: their number, their plain size, and them.
func (w *writer) flush() error {
	if w.n == 0 {
		return nil
	}
	body := binary.BigEndian.AppendUint32(nil, w.n)
	body = binary.BigEndian.AppendUint32(body, uint32(len(w.buf)))
	if len(w.buf) > maxFrame {
		return fmt.Errorf("cells of %d bytes are too large", len(w.buf))
	}
	body = w.zip.EncodeAll(w.buf, body)
	w.buf, w.n = w.buf[:0], 0
	return w.put(frameCells, body)
}

// part says that everything before end has been added.
func (w *writer) part(end []byte) error {
	if err := w.flush(); err != nil {
		return err
	}
	w.parts++
	return w.json(framePart, Part{End: end, Totals: w.count.Totals})
}

func (w *writer) end() error { return w.json(frameEnd, End{Parts: w.parts, Totals: w.count.Totals}) }

func (w *writer) close() error { return w.zip.Close() }
