package session

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// combinedRequest is a MultiRequest made of GetRequests that are encoded
// already. It is put together and taken apart by hand: the parts of the one are
// parts of the others, byte for byte.
type combinedRequest struct {
	message []byte
	regions []combinedRegion
	// members lists everybody, those of the first region first. Who has got an
	// outcome is nil: a combined belongs to its caller from then on.
	members []*combined
}

// combinedRegion is what of the request goes to one region.
type combinedRegion struct {
	name    []byte // RegionSpecifier
	members int
	actions int // bytes
	last    int // the batch's latest member
}

// SizeVT and MarshalToSizedBufferVT make it a wire.Marshaler.
func (q *combinedRequest) SizeVT() int { return len(q.message) }

func (q *combinedRequest) MarshalToSizedBufferVT(b []byte) (int, error) {
	return copy(b[len(b)-len(q.message):], q.message), nil
}

// The fields of MultiRequest{1 regionAction*}, RegionAction{1 region, 3 action*}
// and Action{1 index, 3 get}.
const (
	tagRegionAction = 1<<3 | byte(protowire.BytesType)
	tagRegion       = 1<<3 | byte(protowire.BytesType)
	tagAction       = 3<<3 | byte(protowire.BytesType)
	tagIndex        = 1<<3 | byte(protowire.VarintType)
	tagGet          = 3<<3 | byte(protowire.BytesType)
)

// split finds the parts of GetRequest{1 region, 2 get}.
func (m *combined) split() error {
	for f := wire.Fields("GetRequest", m.request); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1:
			m.region = f.Bytes
		case f.Num == 2:
			m.get = f.Bytes
		}
	}
	return nil
}

// build writes the request. Gets of one region stand together, in the order in
// which they came.
func (q *combinedRequest) build(batch []*combined) {
	q.regions = make([]combinedRegion, 0, 8)
	before := make([]int, len(batch)) // the member before, of the same region
	size := 0
	for i, m := range batch {
		k := len(q.regions) - 1
		for k >= 0 && !bytes.Equal(q.regions[k].name, m.region) {
			k--
		}
		if k < 0 {
			k = len(q.regions)
			q.regions = append(q.regions, combinedRegion{name: m.region, last: -1})
		}
		r := &q.regions[k]
		m.index = r.members
		before[i], r.last = r.last, i
		r.members++
		r.actions += counted(actionSize(m))
	}
	for i := range q.regions {
		size += counted(q.regions[i].size())
	}
	b := make([]byte, 0, size)
	q.members = make([]*combined, len(batch))
	from := 0
	for i := range q.regions {
		r := &q.regions[i]
		members := q.members[from : from+r.members]
		from += r.members
		for at := r.last; at >= 0; at = before[at] {
			members[batch[at].index] = batch[at]
		}
		b = protowire.AppendVarint(append(b, tagRegionAction), uint64(r.size()))
		b = protowire.AppendBytes(append(b, tagRegion), r.name)
		for _, m := range members {
			b = protowire.AppendVarint(append(b, tagAction), uint64(actionSize(m)))
			b = protowire.AppendVarint(append(b, tagIndex), uint64(m.index))
			b = protowire.AppendBytes(append(b, tagGet), m.get)
		}
	}
	q.message = b
}

func (r *combinedRegion) size() int { return counted(len(r.name)) + r.actions }

func actionSize(m *combined) int {
	return 1 + protowire.SizeVarint(uint64(m.index)) + counted(len(m.get))
}

// counted is the size of a field of n bytes, whose tag is one byte.
func counted(n int) int { return 1 + protowire.SizeBytes(n) }

// rawAnswer is a message that is looked at later.
type rawAnswer []byte

func (a *rawAnswer) UnmarshalVT(b []byte) error { *a = b; return nil }

// answers gives every member its part of the answer: MultiResponse{1
// RegionActionResult*: {1 resultOrException*: {1 index, 2 result, 3 exception},
// 2 exception}}. The block is walked strictly in order, since every result says
// only how many cells are its own. An error means that the answer makes no
// sense; some members may have been served by then.
func (q *combinedRequest) answers(message rawAnswer, block []byte, at time.Time) error {
	r := wire.KeyValueCodec.Reader(block)
	region, from := 0, 0
	for f := wire.Fields(multiAnswerName, message); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num != 1 || f.Bytes == nil:
			continue
		}
		if region == len(q.regions) {
			return badAnswer("results of more than %d regions", region)
		}
		members := q.members[from : from+q.regions[region].members]
		if err := regionAnswers(f.Bytes, members, &r, block, at); err != nil {
			return err
		}
		from += len(members)
		region++
	}
	if region < len(q.regions) {
		return badAnswer("%d results for %d region actions", region, len(q.regions))
	}
	return nil
}

func regionAnswers(b []byte, members []*combined, r *wire.CellReader, block []byte, at time.Time) error {
	var all *pb.NameBytesPair
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes != nil:
			if err := oneAnswer(f.Bytes, members, r, block, at); err != nil {
				return err
			}
		case f.Num == 2 && f.Bytes != nil:
			all = new(pb.NameBytesPair)
			if err := all.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
		}
	}
	for i, m := range members {
		if m == nil {
			continue
		}
		members[i] = nil
		// The region's exception is for those without a word of their own.
		m.answered = at
		if all == nil {
			m.end(errNoResult, true)
		} else {
			m.end(wire.ParseNamed(all), true)
		}
	}
	return nil
}

// oneAnswer reads a ResultOrException.
func oneAnswer(b []byte, members []*combined, r *wire.CellReader, block []byte, at time.Time) error {
	index := 0
	var result []byte
	var exception *pb.NameBytesPair
	for f := wire.Fields(multiAnswerName, b); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 1 && f.Bytes == nil:
			index = int(min(f.V, 1<<31-1))
		case f.Num == 2 && f.Bytes != nil:
			result = f.Bytes
		case f.Num == 3 && f.Bytes != nil:
			exception = new(pb.NameBytesPair)
			if err := exception.UnmarshalVT(f.Bytes); err != nil {
				return err
			}
		}
	}
	if index >= len(members) || members[index] == nil {
		return badAnswer("index %d of %d, or twice", index, len(members))
	}
	m := members[index]
	if exception != nil {
		members[index], m.answered = nil, at
		m.end(wire.ParseNamed(exception), true)
		return nil
	}
	// Result{..., 2 associated_cell_count}
	count := 0
	for f := wire.Fields(multiAnswerName, result); f.Next(); {
		switch {
		case f.Err != nil:
			return f.Err
		case f.Num == 2 && f.Bytes == nil:
			count = int(int32(f.V))
		}
	}
	start := len(block) - r.Left()
	if err := r.Skip(count); err != nil {
		return err
	}
	// GetResponse{1 result}
	m.cells = block[start : len(block)-r.Left()]
	m.message = protowire.AppendBytes(append(m.message[:0], 1<<3|byte(protowire.BytesType)), result)
	members[index] = nil
	m.sent, m.answered = true, at
	m.done <- struct{}{}
	return nil
}
