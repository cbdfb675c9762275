package hbase

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// getAnswer reads a GetResponse without allocating, which the generated
// message cannot: a lone Get is what this client is measured by. Cells inside
// the message, which only servers without cell blocks send, are left to the
// generated code.
type getAnswer struct {
	cells                  int // in the block beside
	exists, stale, partial bool
	inline                 []*pb.Cell
}

// Reset forgets an earlier attempt's answer.
func (a *getAnswer) Reset() { *a = getAnswer{} }

// UnmarshalVT reads GetResponse{1 result: Result}.
func (a *getAnswer) UnmarshalVT(b []byte) error {
	for f := (field{rest: b}); f.next(); {
		switch {
		case f.err != nil:
			return f.err
		case f.num == 1 && f.sub != nil:
			if err := a.result(f.sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// result reads Result{1 cell*, 2 associated_cell_count, 3 exists, 4 stale,
// 5 partial}.
func (a *getAnswer) result(b []byte) error {
	for f := (field{rest: b}); f.next(); {
		switch {
		case f.err != nil:
			return f.err
		case f.num == 1 && f.sub != nil:
			c := new(pb.Cell)
			a.inline = append(a.inline, c)
			if err := c.UnmarshalVT(f.sub); err != nil {
				return err
			}
		case f.num == 2 && f.sub == nil:
			a.cells = int(int32(f.v))
		case f.num == 3 && f.sub == nil:
			a.exists = f.v != 0
		case f.num == 4 && f.sub == nil:
			a.stale = f.v != 0
		case f.num == 5 && f.sub == nil:
			a.partial = f.v != 0
		}
	}
	return nil
}

// field is one field of a message after another: varints in v with sub nil,
// counted fields in sub, not nil. Other types are passed over.
type field struct {
	rest []byte
	num  protowire.Number
	v    uint64
	sub  []byte
	err  error
}

// next gives false at the end; an error comes as a last field.
func (f *field) next() bool {
	for f.err == nil && len(f.rest) > 0 {
		num, typ, n := protowire.ConsumeTag(f.rest)
		if n < 0 {
			return f.fail(n)
		}
		f.rest = f.rest[n:]
		f.num, f.v, f.sub = num, 0, nil
		switch typ {
		case protowire.VarintType:
			f.v, n = protowire.ConsumeVarint(f.rest)
		case protowire.BytesType:
			if f.sub, n = protowire.ConsumeBytes(f.rest); f.sub == nil {
				f.sub = f.rest[:0]
			}
		default:
			n = protowire.ConsumeFieldValue(num, typ, f.rest)
			if n >= 0 {
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

func (f *field) fail(n int) bool {
	f.num, f.sub, f.err = 0, nil, malformedAnswer(n)
	return true
}

func malformedAnswer(n int) error {
	return &wire.FormatError{What: "answer to a Get", Detail: protowire.ParseError(n).Error()}
}

// read joins the answer with the cells that travelled beside it.
func (a *getAnswer) read(block []byte) (*Result, error) {
	var res *Result
	var room []Cell
	if a.cells == 1 {
		// The usual result, in one allocation instead of two.
		one := new(struct {
			res  Result
			cell [1]Cell
		})
		res, room = &one.res, one.cell[:0]
	} else {
		res = new(Result)
	}
	res.Stale, res.Partial = a.stale, a.partial
	if a.cells > 0 {
		var err error
		if res.Cells, err = decodeCells(block, a.cells, room); err != nil {
			return nil, err
		}
	}
	for _, c := range a.inline {
		res.Cells = append(res.Cells, inlineCell(c))
	}
	if len(res.Cells) > 0 {
		res.Row = res.Cells[0].Row
	}
	return res, nil
}
