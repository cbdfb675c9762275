package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// Request is one call as it goes over the wire.
type Request struct {
	CallID uint32
	Method string
	// Priority is HBase's: 0 leaves it to the server, 200 is for system tables.
	Priority uint32
	// Timeout is how long the client waits, in milliseconds; 0 = no limit.
	Timeout uint32
	// Param is the request message. Required when writing.
	Param Marshaler
	// Cells is the cell block as the connection's codec and compressor have it.
	Cells []byte
	// Attributes and Trace are seldom used and may be nil.
	Attributes []*pb.NameBytesPair
	Trace      *pb.RPCTInfo
}

// Field numbers of RequestHeader, ResponseHeader and CellBlockMeta. Headers
// are coded by hand, in the order protobuf writers use, since a message value
// would cost an allocation per field.
const (
	fieldCallID       = 1
	fieldTrace        = 2
	fieldMethod       = 3
	fieldRequestParam = 4
	fieldReqCellBlock = 5
	fieldPriority     = 6
	fieldTimeout      = 7
	fieldAttribute    = 8

	fieldException     = 2
	fieldRespCellBlock = 3

	fieldBlockLength = 1
)

// AppendRequest appends one whole frame. On error dst comes back as it was.
func AppendRequest(dst []byte, r *Request) ([]byte, error) {
	if r.Param == nil {
		return dst, fmt.Errorf("request %s without a param message", r.Method)
	}
	header := r.headerSize()
	param := r.Param.SizeVT()
	total := int64(protowire.SizeBytes(header)) + int64(protowire.SizeBytes(param)) + int64(len(r.Cells))
	if total > math.MaxInt32 {
		return dst, &TooLargeError{What: "request", Size: total, Max: math.MaxInt32}
	}
	at := len(dst)
	out := grow(dst, 4+int(total))
	out = binary.BigEndian.AppendUint32(out, uint32(total))
	out = protowire.AppendVarint(out, uint64(header))
	out, err := r.appendHeader(out)
	if err != nil {
		return out[:at], err
	}
	out = protowire.AppendVarint(out, uint64(param))
	if out, err = appendMessage(out, r.Param, param); err != nil {
		return out[:at], err
	}
	return append(out, r.Cells...), nil
}

// FrameSize is the number of bytes AppendRequest adds.
func (r *Request) FrameSize() int {
	n := 4 + protowire.SizeBytes(r.headerSize()) + len(r.Cells)
	if r.Param != nil {
		n += protowire.SizeBytes(r.Param.SizeVT())
	}
	return n
}

func (r *Request) headerSize() int {
	n := 1 + protowire.SizeVarint(uint64(r.CallID)) +
		1 + protowire.SizeBytes(len(r.Method)) +
		2
	if r.Trace != nil {
		n += 1 + protowire.SizeBytes(r.Trace.SizeVT())
	}
	if len(r.Cells) > 0 {
		n += 1 + protowire.SizeBytes(1+protowire.SizeVarint(uint64(len(r.Cells))))
	}
	if r.Priority > 0 {
		n += 1 + protowire.SizeVarint(uint64(r.Priority))
	}
	if r.Timeout > 0 {
		n += 1 + protowire.SizeVarint(uint64(r.Timeout))
	}
	for _, a := range r.Attributes {
		n += 1 + protowire.SizeBytes(a.SizeVT())
	}
	return n
}

func (r *Request) appendHeader(dst []byte) ([]byte, error) {
	dst = appendUint(dst, fieldCallID, uint64(r.CallID))
	if r.Trace != nil {
		var err error
		if dst, err = appendSub(dst, fieldTrace, r.Trace); err != nil {
			return dst, err
		}
	}
	dst = protowire.AppendTag(dst, fieldMethod, protowire.BytesType)
	dst = protowire.AppendString(dst, r.Method)
	dst = appendUint(dst, fieldRequestParam, 1)
	dst = appendCellBlockMeta(dst, fieldReqCellBlock, len(r.Cells))
	if r.Priority > 0 {
		dst = appendUint(dst, fieldPriority, uint64(r.Priority))
	}
	if r.Timeout > 0 {
		dst = appendUint(dst, fieldTimeout, uint64(r.Timeout))
	}
	for _, a := range r.Attributes {
		var err error
		if dst, err = appendSub(dst, fieldAttribute, a); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func appendUint(dst []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), v)
}

func appendSub(dst []byte, field protowire.Number, m Marshaler) ([]byte, error) {
	n := m.SizeVT()
	dst = protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.BytesType), uint64(n))
	return appendMessage(dst, m, n)
}

func appendCellBlockMeta(dst []byte, field protowire.Number, block int) []byte {
	if block == 0 {
		return dst
	}
	dst = protowire.AppendTag(dst, field, protowire.BytesType)
	dst = protowire.AppendVarint(dst, uint64(1+protowire.SizeVarint(uint64(block))))
	return appendUint(dst, fieldBlockLength, uint64(block))
}

// ReceivedRequest is a request as the server reads it. All slices alias the
// frame.
type ReceivedRequest struct {
	CallID     uint32
	Method     []byte
	HasParam   bool
	Priority   uint32
	Timeout    uint32 // milliseconds; 0 = none
	Attributes []*pb.NameBytesPair
	Trace      *pb.RPCTInfo
	Param      []byte
	Cells      []byte
}

// DecodeRequest takes a frame (without its total) apart. With an error, CallID
// is set if it could be read, so that the call can be answered.
func DecodeRequest(frame []byte, r *ReceivedRequest) error {
	*r = ReceivedRequest{}
	header, rest, err := cutDelimited(frame, "request header")
	if err != nil {
		return err
	}
	hasCells, block := false, uint32(0)
	err = eachField(header, "request header", func(num protowire.Number, v uint64, b []byte) (err error) {
		switch {
		case num == fieldCallID && b == nil:
			r.CallID = uint32(v)
		case num == fieldTrace && b != nil:
			r.Trace = new(pb.RPCTInfo)
			err = r.Trace.UnmarshalVT(b)
		case num == fieldMethod && b != nil:
			r.Method = b
		case num == fieldRequestParam && b == nil:
			r.HasParam = v != 0
		case num == fieldReqCellBlock && b != nil:
			hasCells = true
			block, err = cellBlockLength(b, block)
		case num == fieldPriority && b == nil:
			r.Priority = uint32(v)
		case num == fieldTimeout && b == nil:
			r.Timeout = uint32(v)
		case num == fieldAttribute && b != nil:
			a := new(pb.NameBytesPair)
			err = a.UnmarshalVT(b)
			r.Attributes = append(r.Attributes, a)
		}
		return err
	})
	if err != nil {
		return err
	}
	if r.HasParam {
		if r.Param, rest, err = cutDelimited(rest, "request param"); err != nil {
			return err
		}
	}
	r.Cells, err = cutCells(rest, hasCells, block, "request")
	return err
}

// AppendResponse appends the frame of a successful answer. A nil result means
// an empty message.
func AppendResponse(dst []byte, callID uint32, result Marshaler, cells []byte) ([]byte, error) {
	size := 0
	if result != nil {
		size = result.SizeVT()
	}
	header := 1 + protowire.SizeVarint(uint64(callID))
	if len(cells) > 0 {
		header += 1 + protowire.SizeBytes(1+protowire.SizeVarint(uint64(len(cells))))
	}
	total := int64(protowire.SizeBytes(header)) + int64(protowire.SizeBytes(size)) + int64(len(cells))
	if total > math.MaxInt32 {
		return dst, &TooLargeError{What: "response", Size: total, Max: math.MaxInt32}
	}
	at := len(dst)
	out := grow(dst, 4+int(total))
	out = binary.BigEndian.AppendUint32(out, uint32(total))
	out = protowire.AppendVarint(out, uint64(header))
	out = appendUint(out, fieldCallID, uint64(callID))
	out = appendCellBlockMeta(out, fieldRespCellBlock, len(cells))
	out = protowire.AppendVarint(out, uint64(size))
	if result != nil {
		var err error
		if out, err = appendMessage(out, result, size); err != nil {
			return out[:at], err
		}
	}
	return append(out, cells...), nil
}

// AppendException appends the frame of a failed answer.
func AppendException(dst []byte, callID uint32, e *RemoteError) []byte {
	x := e.Exception()
	size := x.SizeVT()
	header := 1 + protowire.SizeVarint(uint64(callID)) + 1 + protowire.SizeBytes(size)
	at := len(dst)
	out := grow(dst, 4+protowire.SizeBytes(header))
	out = binary.BigEndian.AppendUint32(out, uint32(protowire.SizeBytes(header)))
	out = protowire.AppendVarint(out, uint64(header))
	out = appendUint(out, fieldCallID, uint64(callID))
	out, err := appendSub(out, fieldException, x)
	if err != nil {
		// ExceptionResponse has no required fields; only a concurrent change
		// of e could lead here, and x is our own copy.
		return out[:at]
	}
	return out
}

// Response is an answer as the client reads it.
type Response struct {
	CallID uint32
	// Exception is set when the call failed; there is no result then.
	Exception *RemoteError
	// Result and Cells alias the frame. Cells is as the compressor left it.
	Result []byte
	Cells  []byte
}

// ResponseHeader is the first part of a response; the body (result and cells)
// follows it in the frame.
type ResponseHeader struct {
	CallID    uint32
	Exception *RemoteError
	// HasCells tells an announced block; CellBlock is its length in bytes.
	HasCells  bool
	CellBlock uint32
}

// CutResponseHeader reads the header of a frame (without its total) and gives
// the rest, which aliases the frame.
func CutResponseHeader(frame []byte, h *ResponseHeader) (body []byte, err error) {
	header, body, err := cutDelimited(frame, "response header")
	if err == nil {
		err = DecodeResponseHeader(header, h)
	}
	return body, err
}

// DecodeResponseHeader reads a header (without its length). Nothing in h
// aliases it.
func DecodeResponseHeader(header []byte, h *ResponseHeader) error {
	if h.decodeUsual(header) {
		return nil
	}
	return h.decodeAny(header)
}

func (h *ResponseHeader) decodeAny(header []byte) error {
	*h = ResponseHeader{}
	return eachField(header, "response header", func(num protowire.Number, v uint64, b []byte) (err error) {
		switch {
		case num == fieldCallID && b == nil:
			h.CallID = uint32(v)
		case num == fieldException && b != nil:
			var x pb.ExceptionResponse
			if err = x.UnmarshalVT(b); err == nil {
				h.Exception = ParseException(&x)
			}
		case num == fieldRespCellBlock && b != nil:
			h.HasCells = true
			h.CellBlock, err = cellBlockLength(b, h.CellBlock)
		}
		return err
	})
}

// decodeUsual reads the header of a successful answer as servers write it: call
// id, and the length of the cell block if there is one. Anything else gives
// false and is left to the general way.
func (h *ResponseHeader) decodeUsual(b []byte) bool {
	if len(b) < 2 || b[0] != fieldCallID<<3 {
		return false
	}
	id, n := binary.Uvarint(b[1:])
	if n <= 0 {
		return false
	}
	b = b[1+n:]
	if len(b) == 0 {
		*h = ResponseHeader{CallID: uint32(id)}
		return true
	}
	if len(b) < 4 || b[0] != fieldRespCellBlock<<3|2 || int(b[1]) != len(b)-2 || b[2] != fieldBlockLength<<3 {
		return false
	}
	block, n := binary.Uvarint(b[3:])
	if n != len(b)-3 || block > math.MaxInt32 {
		return false
	}
	*h = ResponseHeader{CallID: uint32(id), HasCells: true, CellBlock: uint32(block)}
	return true
}

// DecodeResponseBody takes what follows the header apart. A failed call may
// have no body.
func (h *ResponseHeader) DecodeResponseBody(body []byte) (result, cells []byte, err error) {
	if h.Exception == nil {
		if result, body, err = cutDelimited(body, "response message"); err != nil {
			return nil, nil, err
		}
	}
	cells, err = cutCells(body, h.HasCells, h.CellBlock, "response")
	return result, cells, err
}

// DecodeResponse takes a frame (without its total) apart.
func DecodeResponse(frame []byte, r *Response) error {
	*r = Response{}
	var h ResponseHeader
	rest, err := CutResponseHeader(frame, &h)
	if err != nil {
		return err
	}
	r.CallID, r.Exception = h.CallID, h.Exception
	r.Result, r.Cells, err = h.DecodeResponseBody(rest)
	return err
}

// cutDelimited splits a varint-counted part off the front.
func cutDelimited(b []byte, what string) (part, rest []byte, err error) {
	n, w := protowire.ConsumeVarint(b)
	if w < 0 {
		return nil, nil, malformed(what, "length: %v", protowire.ParseError(w))
	}
	b = b[w:]
	if n > uint64(len(b)) {
		return nil, nil, malformed(what, "%d bytes announced, %d left in the frame", n, len(b))
	}
	return b[:n:n], b[n:], nil
}

// cutCells checks that what is left of a frame is the announced cell block.
func cutCells(rest []byte, announced bool, length uint32, what string) ([]byte, error) {
	if uint64(length) != uint64(len(rest)) {
		return nil, malformed(what, "cell block of %d bytes announced, %d left in the frame", length, len(rest))
	}
	if !announced || length == 0 {
		return nil, nil
	}
	return rest[:len(rest):len(rest)], nil
}

func cellBlockLength(meta []byte, old uint32) (uint32, error) {
	length := uint64(old)
	err := eachField(meta, "cell block meta", func(num protowire.Number, v uint64, b []byte) error {
		if num == fieldBlockLength && b == nil {
			length = v
		}
		return nil
	})
	if length > math.MaxInt32 {
		return 0, malformed("cell block meta", "length %d", length)
	}
	return uint32(length), err
}

// eachField walks the fields of a message. Varints come with b nil, counted
// fields with b non-nil; fixed-width fields and groups, which no header has,
// are skipped.
func eachField(msg []byte, what string, f func(num protowire.Number, v uint64, b []byte) error) error {
	for len(msg) > 0 {
		num, typ, w := protowire.ConsumeTag(msg)
		if w < 0 {
			return malformed(what, "tag: %v", protowire.ParseError(w))
		}
		msg = msg[w:]
		var v uint64
		var b []byte
		switch typ {
		case protowire.VarintType:
			v, w = protowire.ConsumeVarint(msg)
		case protowire.BytesType:
			b, w = protowire.ConsumeBytes(msg)
			if w > 0 && b == nil {
				b = msg[:0]
			}
		default:
			w = protowire.ConsumeFieldValue(num, typ, msg)
		}
		if w < 0 {
			return malformed(what, "field %d: %v", num, protowire.ParseError(w))
		}
		if typ == protowire.VarintType || typ == protowire.BytesType {
			if err := f(num, v, b); err != nil {
				if _, ok := err.(*FormatError); ok {
					return err
				}
				return malformed(what, "field %d: %v", num, err)
			}
		}
		msg = msg[w:]
	}
	return nil
}

// firstStep is how much is allocated on the word of the peer alone; beyond it
// the buffer grows as bytes arrive.
const firstStep = 1 << 20

// ReadBody reads n bytes into buf if they fit, else into a new buffer. Large
// bodies are read in doubling steps, so that a length that is never filled
// costs at most twice what was sent, or 1 MiB. The caller has checked n against
// its limit.
func ReadBody(r io.Reader, n int, buf []byte) ([]byte, error) {
	if n <= cap(buf) {
		buf = buf[:n]
		_, err := io.ReadFull(r, buf)
		return buf, noEOF(err)
	}
	buf = make([]byte, min(n, firstStep))
	at := 0
	for {
		m, err := io.ReadFull(r, buf[at:])
		if err != nil {
			return buf[:at+m], noEOF(err)
		}
		if len(buf) == n {
			return buf, nil
		}
		at = len(buf)
		next := make([]byte, min(n, 2*at))
		copy(next, buf)
		buf = next
	}
}

// noEOF turns the end of the stream within a part into an error that says so.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// ReadTotal reads the length in front of a frame and checks it against the
// limit (0 = DefaultMaxFrame). io.EOF means the peer closed between frames.
func ReadTotal(r io.Reader, limit int) (int, error) {
	if p, ok := r.(peeker); ok {
		b, err := p.Peek(4)
		if len(b) < 4 {
			if err == io.EOF && len(b) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		total := binary.BigEndian.Uint32(b)
		if _, err := p.Discard(4); err != nil {
			return 0, err
		}
		return CheckTotal(total, limit)
	}
	return readTotal(r, limit)
}

// peeker is a *bufio.Reader: four bytes can be looked at in its buffer, while
// reading them through an io.Reader would cost an allocation per frame.
type peeker interface {
	Peek(n int) ([]byte, error)
	Discard(n int) (int, error)
}

func readTotal(r io.Reader, limit int) (int, error) {
	var b [4]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return CheckTotal(binary.BigEndian.Uint32(b[:]), limit)
}

// CheckTotal judges the length in front of a frame (limit 0 = DefaultMaxFrame).
func CheckTotal(total uint32, limit int) (int, error) {
	if limit <= 0 {
		limit = DefaultMaxFrame
	}
	if total > math.MaxInt32 {
		return 0, malformed("frame", "negative length %d", int32(total))
	}
	if int64(total) > int64(limit) {
		return 0, &TooLargeError{What: "frame", Size: int64(total), Max: int64(limit)}
	}
	return int(total), nil
}

// ReadFrame reads one frame and returns it without its total, in buf if it
// fits there. limit bounds its size (0 = DefaultMaxFrame). io.EOF means the
// peer closed between frames.
func ReadFrame(r io.Reader, limit int, buf []byte) ([]byte, error) {
	n, err := ReadTotal(r, limit)
	if err != nil {
		return nil, err
	}
	return ReadBody(r, n, buf)
}
