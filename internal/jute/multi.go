package jute

// MultiHeader precedes each item of a multi and of its answer, and closes both with Done set.
type MultiHeader struct {
	Op   OpCode
	Done bool
	Err  Code
}

func (m *MultiHeader) Encode(w *Writer) {
	w.Int(int32(m.Op))
	w.Bool(m.Done)
	w.Int(int32(m.Err))
}

func (m *MultiHeader) Decode(r *Reader) {
	m.Op = OpCode(r.Int())
	m.Done = r.Bool()
	m.Err = Code(r.Int())
}

// Op is one operation of a multi or a multiRead. Which fields count depends on Code.
type Op struct {
	Code    OpCode
	Path    string
	Data    []byte
	ACL     []ACL
	Flags   int32
	TTLMs   int64
	Version int32
	Watch   bool // multiRead; ZooKeeper ignores it there
}

// OpResult is one item of the answer. Err is OK or the only field that counts.
type OpResult struct {
	Code     OpCode
	Err      Code
	Path     string
	Stat     Stat
	Data     []byte
	Children []string
}

var (
	multiEnd      = MultiHeader{Op: OpError, Done: true, Err: -1}
	maxMultiItems = DefaultMaxFrame / 9
)

// EncodeMulti appends the body of a multi or multiRead request.
func EncodeMulti(w *Writer, ops []Op) {
	for i := range ops {
		o := &ops[i]
		h := MultiHeader{Op: o.Code, Err: -1}
		h.Encode(w)
		switch o.Code {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			c := CreateRequest{Path: o.Path, Data: o.Data, ACL: o.ACL, Flags: o.Flags, TTLMs: o.TTLMs}
			c.Encode(w, o.Code)
		case OpSetData:
			s := SetDataRequest{Path: o.Path, Data: o.Data, Version: o.Version}
			s.Encode(w)
		case OpGetData, OpGetChildren:
			p := PathWatch{Path: o.Path, Watch: o.Watch}
			p.Encode(w)
		default: // delete, check
			p := PathVersion{Path: o.Path, Version: o.Version}
			p.Encode(w)
		}
	}
	multiEnd.Encode(w)
}

// DecodeMulti reads the body of a multi or multiRead request. An operation that cannot be part of one is a DecodeError,
// because where its body ends is not known.
func DecodeMulti(r *Reader) []Op {
	var ops []Op
	for len(ops) < maxMultiItems {
		var h MultiHeader
		h.Decode(r)
		if r.err != nil || h.Done {
			return ops
		}
		o := Op{Code: h.Op}
		switch h.Op {
		case OpCreate, OpCreate2, OpCreateContainer, OpCreateTTL:
			var c CreateRequest
			c.Decode(r, h.Op)
			o.Path, o.Data, o.ACL, o.Flags, o.TTLMs = c.Path, c.Data, c.ACL, c.Flags, c.TTLMs
		case OpSetData:
			var s SetDataRequest
			s.Decode(r)
			o.Path, o.Data, o.Version = s.Path, s.Data, s.Version
		case OpGetData, OpGetChildren:
			var p PathWatch
			p.Decode(r)
			o.Path, o.Watch = p.Path, p.Watch
		case OpDelete, OpCheck:
			var p PathVersion
			p.Decode(r)
			o.Path, o.Version = p.Path, p.Version
		default:
			r.fail("multi", "%v cannot be part of a multi", h.Op)
		}
		if r.err != nil {
			return nil
		}
		ops = append(ops, o)
	}
	r.fail("multi", "more than %d operations", maxMultiItems)
	return nil
}

// EncodeMultiResults appends the body of an answer to a multi or multiRead.
func EncodeMultiResults(w *Writer, results []OpResult) {
	for i := range results {
		s := &results[i]
		if s.Err != OK || s.Code == OpError {
			h := MultiHeader{Op: OpError, Err: s.Err}
			h.Encode(w)
			w.Int(int32(s.Err))
			continue
		}
		h := MultiHeader{Op: s.Code}
		h.Encode(w)
		switch s.Code {
		case OpCreate:
			w.String(s.Path)
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			w.String(s.Path)
			s.Stat.Encode(w)
		case OpSetData:
			s.Stat.Encode(w)
		case OpGetData:
			w.Buffer(s.Data)
			s.Stat.Encode(w)
		case OpGetChildren:
			w.Strings(s.Children)
		}
	}
	multiEnd.Encode(w)
}

// DecodeMultiResults reads the body of an answer to a multi or multiRead. Items of a failed multi have Code OpError;
// their Err is OK before the operation that failed, the error at it, and ErrRuntimeInconsistency after it.
func DecodeMultiResults(r *Reader) []OpResult {
	var out []OpResult
	for len(out) < maxMultiItems {
		var h MultiHeader
		h.Decode(r)
		if r.err != nil || h.Done {
			return out
		}
		s := OpResult{Code: h.Op}
		switch h.Op {
		case OpError:
			s.Err = Code(r.Int())
		case OpCreate:
			s.Path = r.String()
		case OpCreate2, OpCreateContainer, OpCreateTTL:
			s.Path = r.String()
			s.Stat.Decode(r)
		case OpSetData:
			s.Stat.Decode(r)
		case OpGetData:
			s.Data = r.Buffer()
			s.Stat.Decode(r)
		case OpGetChildren:
			s.Children = r.Strings()
		case OpDelete, OpCheck:
		default:
			r.fail("multi result", "%v cannot be part of a multi", h.Op)
		}
		if r.err != nil {
			return nil
		}
		out = append(out, s)
	}
	r.fail("multi result", "more than %d items", maxMultiItems)
	return nil
}
