package endpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/hbase"
)

// DefaultParallel is how many regions are asked at a time unless
// [Call.Parallel] says otherwise.
const DefaultParallel = 8

// maxParallel bounds Call.Parallel.
const maxParallel = 1024

// ErrOverlap: regions were merged under a call of a service that always answers
// for its whole region ([Call.WholeRegions]), when some of their rows had been
// merged into the result already. The result cannot be completed; begin again.
var ErrOverlap = errors.New("endpoint: a merged region's answer overlaps what has been merged already")

// Part is a part of the range of rows: Start (inclusive) to Stop (exclusive);
// empty is open.
type Part struct{ Start, Stop []byte }

// Partial is a region's answer for a part.
type Partial struct {
	// Part is what the answer covers. Parts do not overlap, and together are
	// the range of the call. With WholeRegions it is the region.
	Part
	// Region is the region that answered.
	Region hbase.Region
	// Value is the answer message, serialized.
	Value []byte
}

// Call describes a call over a range of rows. It is not changed by Run and may
// be used again.
type Call struct {
	// Service and Method are the names in the service's .proto file, as in
	// [hbase.ServiceCall].
	Service, Method string
	// Start and Stop bound the rows: [Start, Stop), empty is open.
	Start, Stop []byte
	// Request gives the serialized request for a part. The part begins in the
	// region that is asked, and may go on beyond its end if that has split
	// meanwhile; the service looks only at the rows it has. Request may run on
	// several goroutines at a time, and again for a smaller part.
	Request func(Part) ([]byte, error)
	// Reached, if set, reads from an answer how far it goes: the first row it
	// does not cover, nil if it covers all it was asked for, and how long to
	// wait before asking for the rest. For services that answer in pieces.
	Reached func(p Part, value []byte) (next []byte, wait time.Duration, err error)
	// WholeRegions is for services whose requests have no range: they answer
	// for their whole region, whatever part of it was asked for. If regions are
	// merged during the call, that may make the result impossible to complete:
	// [ErrOverlap].
	WholeRegions bool
	// Unrepeatable says that running the method twice on the same rows does
	// harm: it is then not sent again once it may have run, and the error is
	// [hbase.ErrUnknownOutcome]. With WholeRegions it takes the regions one
	// after another.
	Unrepeatable bool
	// Parallel is how many regions are asked at a time. Default 0: 8; 1 to
	// 1024.
	Parallel int
	// Timeout bounds one attempt in one region. Default 0: the client's
	// OperationTimeout. The calls of one region end with ctx; if that has no
	// deadline, OperationTimeout bounds each.
	Timeout time.Duration
	// Priority of the requests in the servers' queues. Default 0.
	Priority uint32
}

func (c *Call) check(t *hbase.Table) error {
	bad := func(object, reason string) error {
		return &hbase.InvalidError{Op: "endpoint", Object: object, Reason: reason}
	}
	switch {
	case t == nil:
		return bad("table", "is nil")
	case c == nil:
		return bad("call", "is nil")
	case c.Request == nil:
		return bad("request", "is nil")
	case c.Parallel < 0 || c.Parallel > maxParallel:
		return bad("parallel", fmt.Sprintf("%d is not between 0 and %d", c.Parallel, maxParallel))
	case len(c.Stop) > 0 && bytes.Compare(c.Start, c.Stop) >= 0:
		return bad("range", "start is not before stop")
	case c.WholeRegions && c.Reached != nil:
		return bad("whole regions", "do not go with Reached")
	}
	return nil
}

// Run calls the service in every region with rows in the range and hands each
// answer to merge, one at a time, in no particular order. It returns when all
// of the range is covered, or with the first error, also of merge; then the
// calls that are on their way are given up, and what was merged by then is a
// part of the result.
func Run(ctx context.Context, t *hbase.Table, c *Call, merge func(*Partial) error) error {
	if err := c.check(t); err != nil {
		return err
	}
	r := &run{t: t, c: c, merge: merge}
	parallel := c.Parallel
	if parallel == 0 {
		parallel = DefaultParallel
	}
	if c.WholeRegions && c.Unrepeatable {
		// Two parts that have become one region would both run it.
		parallel = 1
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		workers sync.WaitGroup
		once    sync.Once
		failed  error
	)
	fail := func(err error) {
		if err != nil {
			once.Do(func() { failed = err })
			cancel(err)
		}
	}
	slots := make(chan struct{}, parallel)
	for next, more := c.Start, true; more; {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			fail(context.Cause(ctx))
			break
		}
		region, err := t.RegionOf(ctx, next, c.Stop)
		if err != nil {
			fail(err)
			break
		}
		part := Part{Start: next, Stop: least(region.End, c.Stop)}
		workers.Go(func() {
			defer func() { <-slots }()
			fail(r.part(ctx, part))
		})
		next = region.End
		more = !past(next, c.Stop)
	}
	workers.Wait()
	return failed
}

// least gives the smaller of two ends; empty is open.
func least(a, b []byte) []byte {
	if len(a) == 0 || len(b) > 0 && bytes.Compare(b, a) < 0 {
		return b
	}
	return a
}

// run is a Run on its way.
type run struct {
	t *hbase.Table
	c *Call

	mu     sync.Mutex
	merge  func(*Partial) error
	failed error  // merge's first error: it is not called again
	whole  []Part // regions merged, with WholeRegions
}

// part covers one part of the range: what was one region when it was cut out.
// at is the first row that is not yet merged.
func (r *run) part(ctx context.Context, part Part) error {
	at := part.Start
	for {
		todo := Part{Start: at, Stop: part.Stop}
		if r.c.WholeRegions {
			if end, done := r.merged(at); done {
				if at = end; past(at, part.Stop) {
					return nil
				}
				continue
			}
		}
		req, err := r.c.Request(todo)
		if err != nil {
			return err
		}
		ans, err := r.t.CallService(ctx, at, &hbase.ServiceCall{
			Service: r.c.Service, Method: r.c.Method, Request: req,
			Unrepeatable: r.c.Unrepeatable, Timeout: r.c.Timeout, Priority: r.c.Priority,
		})
		if err != nil {
			return err
		}
		// The region that answered may be another than the part was cut for: a
		// daughter after a split, which has the first rows only; or a larger one
		// after a merge, of which the request asked for no more than the part.
		p := &Partial{Part: Part{Start: at, Stop: least(ans.Region.End, part.Stop)}, Region: ans.Region, Value: ans.Value}
		var wait time.Duration
		if r.c.WholeRegions {
			p.Part = Part{Start: ans.Region.Start, Stop: ans.Region.End}
		} else if r.c.Reached != nil {
			var next []byte
			if next, wait, err = r.c.Reached(todo, ans.Value); err != nil {
				return err
			}
			if next != nil && !past(next, p.Stop) {
				if bytes.Compare(next, at) <= 0 {
					return fmt.Errorf("endpoint: %s.%s of region %s answered up to row %s, asked from %s on",
						r.c.Service, r.c.Method, ans.Region.EncodedName(), hbase.Quote(next), hbase.Quote(at))
				}
				p.Stop = next
			}
		}
		if err := r.accept(ctx, p); err != nil {
			return err
		}
		at = p.Stop
		if past(at, part.Stop) {
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// past says whether a part that ends at stop is covered up to at, the end of
// what was answered; empty ends are open.
func past(at, stop []byte) bool {
	if len(at) == 0 {
		return true
	}
	return len(stop) > 0 && bytes.Compare(at, stop) >= 0
}

// accept merges an answer, unless the call has failed, or the region has been
// merged before.
func (r *run) accept(ctx context.Context, p *Partial) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.failed != nil:
		return r.failed // the context is about to end
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if r.c.WholeRegions {
		for _, w := range r.whole {
			if bytes.Equal(w.Start, p.Start) && bytes.Equal(w.Stop, p.Stop) {
				return nil
			}
			if (len(w.Stop) == 0 || bytes.Compare(p.Start, w.Stop) < 0) && (len(p.Stop) == 0 || bytes.Compare(w.Start, p.Stop) < 0) {
				return fmt.Errorf("%w: region %s", ErrOverlap, p.Region.EncodedName())
			}
		}
		r.whole = append(r.whole, p.Part)
	}
	r.failed = r.merge(p)
	return r.failed
}

// merged says whether a region that holds row was merged, and where it ends.
func (r *run) merged(row []byte) (end []byte, done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.whole {
		if bytes.Compare(w.Start, row) <= 0 && (len(w.Stop) == 0 || bytes.Compare(row, w.Stop) < 0) {
			return w.Stop, true
		}
	}
	return nil, false
}

// pause waits as long as a service asks, within reason.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(min(d, time.Minute))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
