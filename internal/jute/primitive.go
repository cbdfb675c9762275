package jute

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Writer appends Jute primitives to a buffer that grows as needed. The zero value is ready to use.
// A Writer is not safe for concurrent use.
type Writer struct {
	b []byte
}

// NewWriter returns a Writer that appends to buf[:0].
func NewWriter(buf []byte) *Writer { return &Writer{b: buf[:0]} }

// Bytes returns what was written so far; it aliases the Writer's buffer.
func (w *Writer) Bytes() []byte { return w.b }

// Len returns the number of bytes written so far.
func (w *Writer) Len() int { return len(w.b) }

// Reset forgets everything written and keeps the buffer.
func (w *Writer) Reset() { w.b = w.b[:0] }

// Bool appends one byte, 0 or 1.
func (w *Writer) Bool(v bool) {
	if v {
		w.b = append(w.b, 1)
		return
	}
	w.b = append(w.b, 0)
}

// Int appends a 4-byte big-endian integer.
func (w *Writer) Int(v int32) { w.b = binary.BigEndian.AppendUint32(w.b, uint32(v)) }

// Long appends an 8-byte big-endian integer.
func (w *Writer) Long(v int64) { w.b = binary.BigEndian.AppendUint64(w.b, uint64(v)) }

// Buffer appends a length and the bytes; nil is written as length -1, which the protocol keeps apart from an empty buffer.
func (w *Writer) Buffer(v []byte) {
	if v == nil {
		w.Int(-1)
		return
	}
	w.Int(int32(len(v)))
	w.b = append(w.b, v...)
}

// String appends a length and the UTF-8 bytes.
func (w *Writer) String(v string) {
	w.Int(int32(len(v)))
	w.b = append(w.b, v...)
}

// Strings appends a count and that many strings; nil is written as an empty vector.
func (w *Writer) Strings(v []string) {
	w.Int(int32(len(v)))
	for _, s := range v {
		w.String(s)
	}
}

// Raw appends bytes that are already encoded.
func (w *Writer) Raw(v []byte) { w.b = append(w.b, v...) }

// BeginFrame reserves the four length bytes of a frame and returns the mark that EndFrame needs.
func (w *Writer) BeginFrame() int {
	w.b = append(w.b, 0, 0, 0, 0)
	return len(w.b)
}

// EndFrame fills in the length of the frame begun at mark.
func (w *Writer) EndFrame(mark int) {
	binary.BigEndian.PutUint32(w.b[mark-4:mark], uint32(len(w.b)-mark))
}

// DecodeError says what was wrong with a frame and where. It is the only error type of the record decoders.
type DecodeError struct {
	What   string // what was being read: "int", "buffer", "vector", ...
	Reason string // why it could not be
	Offset int    // byte offset within the frame
	Size   int    // length of the frame
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("jute: %s at byte %d of %d: %s", e.What, e.Offset, e.Size, e.Reason)
}

// Reader takes Jute primitives from one frame. It keeps its first error and yields zero values from then on,
// so that a record is read field by field and checked once at the end with Err.
// A Reader is not safe for concurrent use.
type Reader struct {
	b   []byte
	off int
	err error
}

// NewReader returns a Reader over frame, which must not change while the Reader or anything it handed out is in use.
func NewReader(frame []byte) *Reader { return &Reader{b: frame} }

// Err returns the first decoding error, a *DecodeError, or nil.
func (r *Reader) Err() error { return r.err }

// Rest returns the bytes not read yet (none after an error).
func (r *Reader) Rest() []byte {
	if r.err != nil {
		return nil
	}
	return r.b[r.off:]
}

func (r *Reader) fail(what, format string, args ...any) {
	if r.err == nil {
		r.err = &DecodeError{What: what, Reason: fmt.Sprintf(format, args...), Offset: r.off, Size: len(r.b)}
	}
}

// take returns the next n bytes, or nil after recording an error. n is never negative.
func (r *Reader) take(what string, n int) []byte {
	if r.err != nil {
		return nil
	}
	if left := len(r.b) - r.off; n > left {
		r.fail(what, "needs %d bytes, %d left", n, left)
		return nil
	}
	s := r.b[r.off : r.off+n : r.off+n]
	r.off += n
	return s
}

// Bool reads one byte; anything but 0 is true, as in ZooKeeper itself.
func (r *Reader) Bool() bool {
	s := r.take("boolean", 1)
	return s != nil && s[0] != 0
}

// Int reads a 4-byte big-endian integer.
func (r *Reader) Int() int32 {
	s := r.take("int", 4)
	if s == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(s))
}

// Long reads an 8-byte big-endian integer.
func (r *Reader) Long() int64 {
	s := r.take("long", 8)
	if s == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(s))
}

// Buffer reads a length and that many bytes. Length -1 is nil, length 0 an empty slice. The result aliases the frame.
func (r *Reader) Buffer() []byte {
	n := r.Int()
	if r.err != nil {
		return nil
	}
	if n == -1 {
		return nil
	}
	if n < 0 {
		r.fail("buffer", "negative length %d", n)
		return nil
	}
	return r.take("buffer", int(n))
}

// String reads a length and that many bytes as a string. A null string reads as "".
func (r *Reader) String() string {
	n := r.Int()
	if r.err != nil || n == -1 {
		return ""
	}
	if n < 0 {
		r.fail("string", "negative length %d", n)
		return ""
	}
	return string(r.take("string", int(n)))
}

// Count reads the item count of a vector whose items take at least minItem bytes each, and rejects a count the rest of
// the frame cannot hold. A null vector counts 0.
func (r *Reader) Count(minItem int) int {
	n := r.Int()
	if r.err != nil || n == -1 {
		return 0
	}
	if n < 0 {
		r.fail("vector", "negative count %d", n)
		return 0
	}
	if left := len(r.b) - r.off; int64(n)*int64(minItem) > int64(left) {
		r.fail("vector", "%d items of at least %d bytes, %d bytes left", n, minItem, left)
		return 0
	}
	return int(n)
}

// Strings reads a vector of strings; null and empty vectors both read as nil.
func (r *Reader) Strings() []string {
	n := r.Count(4)
	if n == 0 {
		return nil
	}
	out := make([]string, 0, n)
	for range n {
		s := r.String()
		if r.err != nil {
			return nil
		}
		out = append(out, s)
	}
	return out
}

// MaxLen is the largest buffer the format can describe.
const MaxLen = math.MaxInt32
