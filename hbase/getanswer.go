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
	return fields(b, func(num protowire.Number, _ uint64, sub []byte) error {
		if num == 1 && sub != nil {
			return a.result(sub)
		}
		return nil
	})
}

// result reads Result{1 cell*, 2 associated_cell_count, 3 exists, 4 stale,
// 5 partial}.
func (a *getAnswer) result(b []byte) error {
	return fields(b, func(num protowire.Number, v uint64, sub []byte) error {
		switch {
		case num == 1 && sub != nil:
			c := new(pb.Cell)
			a.inline = append(a.inline, c)
			return c.UnmarshalVT(sub)
		case num == 2 && sub == nil:
			a.cells = int(int32(v))
		case num == 3 && sub == nil:
			a.exists = v != 0
		case num == 4 && sub == nil:
			a.stale = v != 0
		case num == 5 && sub == nil:
			a.partial = v != 0
		}
		return nil
	})
}

// fields walks a message: varints come with sub nil, counted fields with sub
// not nil; other types are skipped.
func fields(b []byte, f func(num protowire.Number, v uint64, sub []byte) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return malformedAnswer(n)
		}
		b = b[n:]
		var v uint64
		var sub []byte
		use := true
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			if sub, n = protowire.ConsumeBytes(b); sub == nil {
				sub = b[:0]
			}
		default:
			n, use = protowire.ConsumeFieldValue(num, typ, b), false
		}
		if n < 0 {
			return malformedAnswer(n)
		}
		if use {
			if err := f(num, v, sub); err != nil {
				return err
			}
		}
		b = b[n:]
	}
	return nil
}

func malformedAnswer(n int) error {
	return &wire.FormatError{What: "answer to a Get", Detail: protowire.ParseError(n).Error()}
}

// read joins the answer with the cells that travelled beside it.
func (a *getAnswer) read(block []byte) (*Result, error) {
	res := &Result{Stale: a.stale, Partial: a.partial}
	if a.cells > 0 {
		var err error
		if res.Cells, err = decodeCells(block, a.cells); err != nil {
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
