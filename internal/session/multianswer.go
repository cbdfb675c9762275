package session

import (
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// multiAnswer reads a MultiResponse. The generated message would make five
// objects for every acknowledged Put, whose answer says nothing but "done";
// this makes two slices for all of a request. What is rare (exceptions,
// services, cells inside the message) is left to the generated code.
type multiAnswer struct {
	regions   []regionAnswer
	results   []resultAnswer // of all regions, in order
	processed bool           // HBase before 2.4 says it here

	// parts and actions are what was asked: an answer to more is not read. Two
	// bytes of an answer can make forty of memory. 0: no bound.
	parts, actions int
}

// regionAnswer is a RegionActionResult.
type regionAnswer struct {
	results      int // how many of multiAnswer.results are its own
	exception    *pb.NameBytesPair
	processed    bool
	hasProcessed bool
}

// resultAnswer is a ResultOrException with the Result in it.
type resultAnswer struct {
	index          int32 // -1: not said
	cells          int32 // in the block beside
	exists         int8  // -1: not said
	stale, partial bool
	rare           *rareAnswer
}

// rareAnswer is what most results do without.
type rareAnswer struct {
	exception *pb.NameBytesPair
	service   *pb.CoprocessorServiceResult
	inline    []*pb.Cell
}

const multiAnswerName = "answer to Multi"

// Reset forgets an earlier attempt's answer.
func (m *multiAnswer) Reset() { *m = multiAnswer{parts: m.parts, actions: m.actions} }

// UnmarshalVT reads MultiResponse{1 regionActionResult*, 2 processed}.
func (m *multiAnswer) UnmarshalVT(b []byte) error {
	regions, results := 0, 0
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		if f.Num == 1 && f.Bytes != nil {
			regions++
			for g := wire.Fields(multiAnswerName, f.Bytes); g.Next(); {
				if g.Num == 1 && g.Bytes != nil {
					results++
				}
			}
		}
	}
	if m.parts > 0 && (regions > m.parts || results > m.actions) {
		return badAnswer("%d results of %d regions for %d actions in %d", results, regions, m.actions, m.parts)
	}
	m.regions, m.results = make([]regionAnswer, 0, regions), make([]resultAnswer, 0, results)
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes != nil:
			if err := m.region(f.Bytes); err != nil {
				return err
			}
		case f.Num == 2 && f.Bytes == nil:
			m.processed = f.V != 0
		}
	}
	return nil
}

// region reads RegionActionResult{1 resultOrException*, 2 exception,
// 3 processed}.
func (m *multiAnswer) region(b []byte) error {
	var r regionAnswer
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes != nil:
			if err := m.result(f.Bytes); err != nil {
				return err
			}
			r.results++
		case f.Num == 2 && f.Bytes != nil:
			r.exception = new(pb.NameBytesPair)
			if err := r.exception.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
		case f.Num == 3 && f.Bytes == nil:
			r.processed, r.hasProcessed = f.V != 0, true
		}
	}
	m.regions = append(m.regions, r)
	return nil
}

// result reads ResultOrException{1 index, 2 result, 3 exception,
// 4 service_result}.
func (m *multiAnswer) result(b []byte) error {
	r := resultAnswer{index: -1, exists: -1}
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes == nil:
			r.index = int32(min(f.V, 1<<31-1))
		case f.Num == 2 && f.Bytes != nil:
			if err := r.read(f.Bytes); err != nil {
				return err
			}
		case f.Num == 3 && f.Bytes != nil:
			e := new(pb.NameBytesPair)
			if err := e.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
			r.seldom().exception = e
		case f.Num == 4 && f.Bytes != nil:
			s := new(pb.CoprocessorServiceResult)
			if err := s.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
			r.seldom().service = s
		}
	}
	m.results = append(m.results, r)
	return nil
}

// read reads Result{1 cell*, 2 associated_cell_count, 3 exists, 4 stale,
// 5 partial}.
func (r *resultAnswer) read(b []byte) error {
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes != nil:
			c := new(pb.Cell)
			if err := c.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
			r.seldom().inline = append(r.rare.inline, c)
		case f.Num == 2 && f.Bytes == nil:
			r.cells = int32(f.V)
		case f.Num == 3 && f.Bytes == nil:
			if r.exists = 0; f.V != 0 {
				r.exists = 1
			}
		case f.Num == 4 && f.Bytes == nil:
			r.stale = f.V != 0
		case f.Num == 5 && f.Bytes == nil:
			r.partial = f.V != 0
		}
	}
	return nil
}

func (r *resultAnswer) seldom() *rareAnswer {
	if r.rare == nil {
		r.rare = new(rareAnswer)
	}
	return r.rare
}

func (r *resultAnswer) exception() *pb.NameBytesPair {
	if r.rare == nil {
		return nil
	}
	return r.rare.exception
}

// answer is what the response says about one item.
type answer struct {
	results   []ActionResult
	processed bool
	err       error
}

func badAnswer(format string, args ...any) error {
	return &wire.FormatError{What: multiAnswerName, Detail: fmt.Sprintf(format, args...)}
}

// answers takes the response apart and calls f for each item, in the order of
// the parts. The cell block is walked strictly in order, since every result
// says only how many cells are its own.
func (c *chunk) answers(items []Item, f func(p *part, item int, a answer)) error {
	m := &c.resp
	if len(m.regions) != len(c.parts) {
		return badAnswer("%d results for %d region actions", len(m.regions), len(c.parts))
	}
	r := wire.KeyValueCodec.Reader(c.x.cells)
	// One slice for what the items of the request get, and one for each
	// region's answers by item.
	slab := make([]ActionResult, c.count)
	var got []answer
	from := 0
	for k := range c.parts {
		p, res := &c.parts[k], &m.regions[k]
		results := m.results[from : from+res.results]
		from += res.results
		var err error
		if p.group {
			got = reuse(got, 1)
			n := len(items[p.items[0]].Actions)
			err = groupAnswer(&got[0], res, results, slab[:n:n], &r)
			slab = slab[n:]
			if !res.hasProcessed && items[p.items[0]].Condition != nil && len(c.parts) == 1 {
				got[0].processed = m.processed
			}
		} else {
			n := len(p.items)
			got = reuse(got, n)
			err = plainAnswers(got, res, results, slab[:n:n], &r)
			slab = slab[n:]
		}
		if err != nil {
			return err
		}
		for j, i := range p.items {
			f(p, i, got[j])
		}
	}
	return nil
}

// reuse gives n zero answers.
func reuse(got []answer, n int) []answer {
	if cap(got) < n {
		return make([]answer, n)
	}
	got = got[:n]
	clear(got)
	return got
}

// plainAnswers matches results with independent actions by index, never by
// position: HBase answers in the order of execution. room takes the results.
func plainAnswers(got []answer, res *regionAnswer, results []resultAnswer, room []ActionResult, r *wire.CellReader) error {
	for k := range results {
		roe := &results[k]
		i := int(max(roe.index, 0))
		if i >= len(got) || got[i].results != nil || got[i].err != nil {
			return badAnswer("index %d of %d, or twice", i, len(got))
		}
		if e := roe.exception(); e != nil {
			got[i].err = wire.ParseNamed(e)
			continue
		}
		if err := fillResult(&room[i], roe, r); err != nil {
			return err
		}
		got[i].results, got[i].processed = room[i:i+1:i+1], true
	}
	var failed error
	if res.exception != nil {
		failed = wire.ParseNamed(res.exception)
	}
	for i := range got {
		if got[i].results == nil && got[i].err == nil {
			// The region's exception is for those without a word of their own.
			if got[i].err = failed; failed == nil {
				got[i].err = errNoResult
			}
		}
	}
	return nil
}

// groupAnswer reads the answer to an atomic or conditional region action.
func groupAnswer(got *answer, res *regionAnswer, results []resultAnswer, room []ActionResult, r *wire.CellReader) error {
	if res.exception != nil {
		got.err = wire.ParseNamed(res.exception)
	}
	for n := range results {
		roe := &results[n]
		i := n
		if roe.index >= 0 {
			i = int(roe.index)
		}
		if e := roe.exception(); e != nil {
			if got.err == nil {
				got.err = wire.ParseNamed(e)
			}
			continue
		}
		if i >= len(room) {
			return badAnswer("index %d of %d", i, len(room))
		}
		if err := fillResult(&room[i], roe, r); err != nil {
			return err
		}
	}
	if got.err == nil {
		got.results = room
		got.processed = res.processed
	}
	return nil
}

func fillResult(dst *ActionResult, res *resultAnswer, r *wire.CellReader) error {
	if res.exists >= 0 {
		dst.Exists = new(res.exists == 1)
	}
	dst.Stale, dst.Partial = res.stale, res.partial
	n := int(res.cells)
	if res.rare != nil {
		dst.Service = res.rare.service
		if len(res.rare.inline) > 0 {
			dst.Cells = appendCells(make([]cells.Cell, 0, len(res.rare.inline)+min(max(n, 0), 1024)), res.rare.inline)
		}
	}
	if n == 0 {
		return nil
	}
	var err error
	dst.Cells, err = r.Take(n, dst.Cells)
	return err
}
