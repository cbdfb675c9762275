package session

import (
	"fmt"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// chunk is one Multi request: what of a batch goes to one server at one time.
type chunk struct {
	srv   *health.Server
	parts []part
	bytes int
	count int // actions
	// unsafe chunks hold nothing but items that must not be repeated, so that
	// only they wait for a lost answer until the end.
	unsafe bool
	next   *chunk // to be sent after this one: it goes on with the same region

	// What came of it.
	seen bool // by hooks
	err  error
	x    exchange
	resp pb.MultiResponse
}

// part is one RegionAction: independent items of one region, or one item whose
// actions belong together.
type part struct {
	route *route.Route
	items []int
	group bool
}

func (c *chunk) entries() int {
	n := 0
	for i := range c.parts {
		n += len(c.parts[i].items)
	}
	return n
}

// request builds the message; cells follow in the order of the actions.
func (c *chunk) request(items []Item, nonceGroup uint64) (*pb.MultiRequest, []byte) {
	req := &pb.MultiRequest{NonceGroup: &nonceGroup, RegionAction: make([]*pb.RegionAction, len(c.parts))}
	n := 0
	for _, p := range c.parts {
		for _, i := range p.items {
			n += len(items[i].Cells)
		}
	}
	var block []byte
	if n > 0 {
		block = make([]byte, 0, n)
	}
	var name []byte
	var last *route.Route
	index := make([]uint32, c.count)
	for k, p := range c.parts {
		if p.route != last {
			name, last = p.route.Name(), p.route
		}
		ra := &pb.RegionAction{
			Region: &pb.RegionSpecifier{Type: pb.RegionSpecifier_REGION_NAME.Enum(), Value: name},
			Action: make([]*pb.Action, 0, len(p.items)),
		}
		for _, i := range p.items {
			it := &items[i]
			for _, a := range it.Actions {
				at := len(ra.Action)
				index[0] = uint32(at)
				a.Index = &index[0]
				index = index[1:]
				ra.Action = append(ra.Action, a)
			}
			block = append(block, it.Cells...)
		}
		if p.group {
			it := &items[p.items[0]]
			ra.Atomic, ra.Condition = new(true), it.Condition
		}
		req.RegionAction[k] = ra
	}
	return req, block
}

// answer is what the response says about one item.
type answer struct {
	results   []ActionResult
	processed bool
	err       error
}

func badAnswer(format string, args ...any) error {
	return &wire.FormatError{What: "answer to Multi", Detail: fmt.Sprintf(format, args...)}
}

// answers takes the response apart and calls f for each item, in the order of
// the parts. The cell block is walked strictly in order, since every result
// says only how many cells are its own.
func (c *chunk) answers(items []Item, f func(p *part, item int, a answer)) error {
	if len(c.resp.RegionActionResult) != len(c.parts) {
		return badAnswer("%d results for %d region actions", len(c.resp.RegionActionResult), len(c.parts))
	}
	r := wire.KeyValueCodec.Reader(c.x.cells)
	for k := range c.parts {
		p := &c.parts[k]
		res := c.resp.RegionActionResult[k]
		var got []answer
		var err error
		if p.group {
			got = make([]answer, 1)
			err = groupAnswer(&got[0], res, len(items[p.items[0]].Actions), &r)
			if res.Processed == nil && items[p.items[0]].Condition != nil && len(c.parts) == 1 {
				got[0].processed = c.resp.GetProcessed() // HBase before 2.4
			}
		} else {
			got = make([]answer, len(p.items))
			err = plainAnswers(got, res, &r)
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

// plainAnswers matches results with independent actions by index, never by
// position: HBase answers in the order of execution.
func plainAnswers(got []answer, res *pb.RegionActionResult, r *wire.CellReader) error {
	results := make([]ActionResult, len(got))
	seen := make([]bool, len(got))
	for _, roe := range res.ResultOrException {
		i := int(roe.GetIndex())
		if i >= len(got) || seen[i] {
			return badAnswer("index %d of %d, or twice", i, len(got))
		}
		seen[i] = true
		if roe.Exception != nil {
			got[i].err = wire.ParseNamed(roe.Exception)
			continue
		}
		if err := fillResult(&results[i], roe, r); err != nil {
			return err
		}
		got[i].results, got[i].processed = results[i:i+1:i+1], true
	}
	var failed error
	if res.Exception != nil {
		failed = wire.ParseNamed(res.Exception)
	}
	for i := range got {
		if !seen[i] {
			// The region's exception is for those without a word of their own.
			if got[i].err = failed; failed == nil {
				got[i].err = errNoResult
			}
		}
	}
	return nil
}

// groupAnswer reads the answer to an atomic or conditional region action.
func groupAnswer(got *answer, res *pb.RegionActionResult, actions int, r *wire.CellReader) error {
	if res.Exception != nil {
		got.err = wire.ParseNamed(res.Exception)
	}
	results := make([]ActionResult, actions)
	for n, roe := range res.ResultOrException {
		i := n
		if roe.Index != nil {
			i = int(*roe.Index)
		}
		if roe.Exception != nil {
			if got.err == nil {
				got.err = wire.ParseNamed(roe.Exception)
			}
			continue
		}
		if i >= actions {
			return badAnswer("index %d of %d", i, actions)
		}
		if err := fillResult(&results[i], roe, r); err != nil {
			return err
		}
	}
	if got.err == nil {
		got.results = results
		got.processed = res.GetProcessed()
	}
	return nil
}

func fillResult(dst *ActionResult, roe *pb.ResultOrException, r *wire.CellReader) error {
	dst.Service = roe.ServiceResult
	res := roe.Result
	if res == nil {
		return nil
	}
	dst.Exists, dst.Stale, dst.Partial = res.Exists, res.GetStale(), res.GetPartial()
	n := int(res.GetAssociatedCellCount())
	if len(res.Cell) > 0 {
		dst.Cells = appendCells(make([]cells.Cell, 0, len(res.Cell)+max(n, 0)), res.Cell)
	}
	if n == 0 {
		return nil
	}
	var err error
	dst.Cells, err = r.Take(n, dst.Cells)
	return err
}
