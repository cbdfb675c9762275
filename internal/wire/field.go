package wire

import "google.golang.org/protobuf/encoding/protowire"

// Fields walks the fields of a protobuf message without allocating, for the
// few answers that are read by hand since they come by the hundred thousand:
//
//	for f := wire.Fields("answer to a Get", b); f.Next(); {
//		switch {
//		case f.Err != nil:
//			return f.Err
//		case f.Num == 1 && f.Bytes != nil:
//			...
//
// Varints are in V, with Bytes nil; counted fields in Bytes, which is then not
// nil and aliases the message. Other types are passed over.
func Fields(what string, message []byte) Field { return Field{what: what, rest: message} }

// Field is where a walk over a message's fields stands.
type Field struct {
	// Num is the field's number; 0 with Err.
	Num   protowire.Number
	V     uint64
	Bytes []byte
	// Err is a *FormatError: the message is damaged. It comes as a last field.
	Err  error
	what string
	rest []byte
}

// Next goes to the next field, and gives false behind the last.
func (f *Field) Next() bool {
	for f.Err == nil && len(f.rest) > 0 {
		num, typ, n := protowire.ConsumeTag(f.rest)
		if n < 0 {
			return f.fail(n)
		}
		f.rest = f.rest[n:]
		f.Num, f.V, f.Bytes = num, 0, nil
		switch typ {
		case protowire.VarintType:
			f.V, n = protowire.ConsumeVarint(f.rest)
		case protowire.BytesType:
			if f.Bytes, n = protowire.ConsumeBytes(f.rest); f.Bytes == nil {
				f.Bytes = f.rest[:0]
			}
		default:
			if n = protowire.ConsumeFieldValue(num, typ, f.rest); n >= 0 {
				f.rest = f.rest[n:]
				continue
			}
		}
		if n < 0 {
			return f.fail(n)
		}
		f.rest = f.rest[n:]
		return true
	}
	return false
}

func (f *Field) fail(n int) bool {
	f.Num, f.Bytes = 0, nil
	f.Err = &FormatError{What: f.what, Detail: protowire.ParseError(n).Error()}
	return true
}
