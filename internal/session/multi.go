package session

import (
	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/route"
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
	// replicas says that the parts are for replicas of the regions: gets that
	// somebody else has been asked for as well.
	replicas bool

	// What came of it.
	seen bool // by hooks
	err  error
	x    exchange
	resp multiAnswer
}

// part is one RegionAction: independent items of one region, or one item whose
// actions belong together.
type part struct {
	route   *route.Route
	replica *route.Replica
	items   []int
	group   bool
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
		if p.replica != nil {
			name, last = p.replica.Name(), nil
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
				if c.replicas {
					a = &pb.Action{Get: a.Get} // the other one is in a request of its own
				}
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
