package hbase

import (
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
	scanned                uint64
	res                    *Result // what ReadCells made of it
}

const getAnswerName = "answer to a Get"

// Reset forgets an earlier attempt's answer.
func (a *getAnswer) Reset() { *a = getAnswer{} }

// UnmarshalVT reads GetResponse{1 result: Result}.
func (a *getAnswer) UnmarshalVT(b []byte) error {
	for f := wire.Fields(getAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes != nil:
			if err := a.result(f.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// result reads Result{1 cell*, 2 associated_cell_count, 3 exists, 4 stale,
// 5 partial, 6 metrics}.
func (a *getAnswer) result(b []byte) error {
	for f := wire.Fields(getAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes != nil:
			c := new(pb.Cell)
			a.inline = append(a.inline, c)
			if err := c.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
		case f.Num == 2 && f.Bytes == nil:
			a.cells = int(int32(f.V))
		case f.Num == 3 && f.Bytes == nil:
			a.exists = f.V != 0
		case f.Num == 4 && f.Bytes == nil:
			a.stale = f.V != 0
		case f.Num == 5 && f.Bytes == nil:
			a.partial = f.V != 0
		case f.Num == 6 && f.Bytes != nil:
			var m pb.QueryMetrics
			if err := m.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
			a.scanned = m.GetBlockBytesScanned()
		}
	}
	return nil
}

// ReadCells is called while the answer can still be asked for again.
func (a *getAnswer) ReadCells(block []byte) (err error) {
	if a.cells > 0 {
		a.res, err = a.read(block)
	}
	return err
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
	res.Stale, res.Partial, res.BlockBytesScanned = a.stale, a.partial, a.scanned
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
