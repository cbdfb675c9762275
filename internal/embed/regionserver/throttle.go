package regionserver

import (
	"math"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/cells"
	"github.com/holdfast-hbase/holdfast/internal/embed/host"
	"github.com/holdfast-hbase/holdfast/internal/embed/rpcserver"
	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// What a call is taken to cost before it has run, in bytes, and the size of a
// capacity unit: HBase's figures.
const (
	estimatedGet    = 100
	estimatedScan   = 1000
	estimatedChange = 100
	capacityUnit    = 1024
	// cellOverhead is what a cell is serialized to besides its fields.
	cellOverhead = 24
)

// maxLimiters bounds the targets a server keeps accounts of.
const maxLimiters = 10_000

// throttles are what a server's calls have spent of their limits. The zero
// value is ready; safe for concurrent use.
type throttles struct {
	mu sync.Mutex
	m  map[string]*limiter
}

// limiter is the account of one target.
type limiter struct {
	limits *pb.Throttle
	kinds  []account
}

// account is one of a target's limits.
type account struct {
	kind throttleKind
	rate
}

// rate is a limit per unit of time, of which what is free again grows evenly
// (HBase's AverageIntervalRateLimiter).
type rate struct {
	limit, free int64
	unit        time.Duration
	filled      time.Time // when free was last reckoned; zero before the first call
}

// has says whether amount is free now.
func (r *rate) has(amount int64, now time.Time) bool {
	var more int64
	if r.filled.IsZero() {
		r.filled, more = now, r.limit
	} else if d := now.Sub(r.filled); d >= r.unit {
		more = r.limit
	} else if d > 0 {
		more = int64(float64(d.Milliseconds()) / float64(r.unit.Milliseconds()) * float64(r.limit))
	}
	if more > 0 {
		r.filled = now
		if r.free > math.MaxInt64-more {
			r.free = r.limit
		} else {
			r.free = min(r.free+more, r.limit)
		}
	}
	return r.free >= amount
}

// wait is how long it takes until amount is free.
func (r *rate) wait(amount int64) time.Duration {
	ms := float64(amount-r.free) * float64(r.unit.Milliseconds()) / float64(r.limit)
	return time.Duration(min(ms, float64(math.MaxInt64/int64(time.Millisecond)))) * time.Millisecond
}

// take spends amount, which may be more than is free; a negative one gives back.
func (r *rate) take(amount int64) {
	if amount < 0 && r.free > math.MaxInt64+amount {
		r.free = r.limit
		return
	}
	r.free = r.free - amount
	if amount < 0 {
		r.free = min(r.free, r.limit)
	}
}

// cost is what a call is about to spend, or has.
type cost struct {
	writes, reads         int64 // requests
	writeBytes, readBytes int64
	atomic                bool
}

func units(bytes int64) int64 { return (bytes + capacityUnit - 1) / capacityUnit }

// throttleKind is one kind of limit: which of a target's settings it is, what a
// call spends of it, and what HBase says when it is spent.
type throttleKind struct {
	text  string
	quota func(*pb.Throttle) *pb.TimedQuota
	// amount is what c spends; counts says whether c is checked against it at all.
	amount func(c cost) int64
	counts func(c cost) bool
	// bytes says that the amount is known only after the call has run.
	bytes bool
}

func anyCall(cost) bool      { return true }
func atomicCall(c cost) bool { return c.atomic }
func writeCall(c cost) bool  { return c.writeBytes > 0 }
func readCall(c cost) bool   { return c.readBytes > 0 }

// throttleKinds are in the order in which HBase looks at them.
var throttleKinds = []throttleKind{
	{"number of requests exceeded", (*pb.Throttle).GetReqNum, func(c cost) int64 { return c.writes + c.reads }, anyCall, false},
	{"request size limit exceeded", (*pb.Throttle).GetReqSize, func(c cost) int64 { return c.writeBytes + c.readBytes }, anyCall, true},
	{"request capacity unit exceeded", (*pb.Throttle).GetReqCapacityUnit, func(c cost) int64 { return units(c.writeBytes) + units(c.readBytes) }, anyCall, true},
	{"atomic request number exceeded", (*pb.Throttle).GetAtomicReqNum, func(c cost) int64 { return c.writes + c.reads }, atomicCall, false},
	{"number of write requests exceeded", (*pb.Throttle).GetWriteNum, func(c cost) int64 { return c.writes }, writeCall, false},
	{"write size limit exceeded", (*pb.Throttle).GetWriteSize, func(c cost) int64 { return c.writeBytes }, writeCall, true},
	{"write capacity unit exceeded", (*pb.Throttle).GetWriteCapacityUnit, func(c cost) int64 { return units(c.writeBytes) }, writeCall, true},
	{"atomic write size exceeded", (*pb.Throttle).GetAtomicWriteSize, func(c cost) int64 { return c.writeBytes }, func(c cost) bool { return c.atomic && writeCall(c) }, true},
	{"number of read requests exceeded", (*pb.Throttle).GetReadNum, func(c cost) int64 { return c.reads }, readCall, false},
	{"read size limit exceeded", (*pb.Throttle).GetReadSize, func(c cost) int64 { return c.readBytes }, readCall, true},
	{"read capacity unit exceeded", (*pb.Throttle).GetReadCapacityUnit, func(c cost) int64 { return units(c.readBytes) }, readCall, true},
	{"atomic read size exceeded", (*pb.Throttle).GetAtomicReadSize, func(c cost) int64 { return c.readBytes }, func(c cost) bool { return c.atomic && readCall(c) }, true},
}

// timeUnits are the units of limits.
var timeUnits = map[pb.TimeUnit]time.Duration{
	pb.TimeUnit_NANOSECONDS: time.Nanosecond, pb.TimeUnit_MICROSECONDS: time.Microsecond, pb.TimeUnit_MILLISECONDS: time.Millisecond,
	pb.TimeUnit_SECONDS: time.Second, pb.TimeUnit_MINUTES: time.Minute, pb.TimeUnit_HOURS: time.Hour, pb.TimeUnit_DAYS: 24 * time.Hour,
}

// newLimiter opens the account of a target. servers is by how many a limit of
// the whole cluster is divided.
func newLimiter(limits *pb.Throttle, servers int) *limiter {
	l := &limiter{limits: limits}
	for _, k := range throttleKinds {
		q := k.quota(limits)
		if q == nil {
			continue
		}
		limit := int64(q.GetSoftLimit())
		if q.GetScope() == pb.QuotaScope_CLUSTER {
			limit = max(1, limit/int64(max(servers, 1)))
		}
		l.kinds = append(l.kinds, account{k, rate{limit: max(limit, 1), unit: max(timeUnits[q.GetTimeUnit()], time.Millisecond)}})
	}
	return l
}

// check says how long c has to wait for one of the limits, and for which.
func (l *limiter) check(c cost, now time.Time) (time.Duration, string) {
	for i := range l.kinds {
		a := &l.kinds[i]
		if !a.kind.counts(c) {
			continue
		}
		// What is more than the whole limit must be let through some time.
		amount := min(a.kind.amount(c), a.limit)
		if !a.has(amount, now) {
			if w := a.wait(amount); w > 0 {
				return w, a.kind.text
			}
		}
	}
	return 0, ""
}

func (l *limiter) spend(c cost) {
	for i := range l.kinds {
		if a := &l.kinds[i]; a.kind.counts(c) {
			a.take(a.kind.amount(c))
		}
	}
}

// settle corrects what was estimated of a call by what it came to.
func (l *limiter) settle(estimated, real cost) {
	for i := range l.kinds {
		if a := &l.kinds[i]; a.kind.bytes && a.kind.counts(estimated) {
			a.take(a.kind.amount(real) - a.kind.amount(estimated))
		}
	}
}

// charge is a call that was let through; nil if nothing limits it.
type charge struct {
	throttles *throttles
	on        []*limiter
	estimated cost
	real      cost
}

// admit lets a call through that passes its limits, or refuses it with how long
// to wait. The charge, which may be nil, is to be ended when the call has.
func (s *Server) admit(c *rpcserver.Call, r *region, asked cost) (*charge, error) {
	if s.cfg.Quotas == nil {
		return nil, nil
	}
	list := s.cfg.Quotas.Throttles(c.Conn.User(), r.Info.Table)
	if len(list) == 0 {
		return nil, nil
	}
	asked.writeBytes = asked.writes * estimatedChange
	if asked.readBytes == 0 {
		asked.readBytes = asked.reads * estimatedGet
	}
	t := &s.spent
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	on := make([]*limiter, len(list))
	for i, of := range list {
		on[i] = t.of(of, s.cfg.Cluster)
		if of.Exceedable {
			continue
		}
		if w, what := on[i].check(asked, now); w > 0 {
			return nil, wire.NewThrottling(what, w)
		}
	}
	for _, l := range on {
		l.spend(asked)
	}
	return &charge{throttles: t, on: on, estimated: asked, real: cost{atomic: asked.atomic}}, nil
}

// of gives a target's account. Called with the lock held.
func (t *throttles) of(target host.Throttle, cluster host.Cluster) *limiter {
	l := t.m[target.Target]
	if l == nil || l.limits != target.Limits {
		if t.m == nil || len(t.m) >= maxLimiters {
			t.m = map[string]*limiter{}
		}
		l = newLimiter(target.Limits, len(cluster.LiveServers()))
		t.m[target.Target] = l
	}
	return l
}

// read and wrote say what the call came to.
func (c *charge) read(list []cells.Cell) {
	if c != nil {
		c.real.readBytes += bytesOf(list)
	}
}

// wrote counts a mutation whose cells are in its message, or in list.
func (c *charge) wrote(p *pb.MutationProto, list []cells.Cell) {
	if c == nil {
		return
	}
	c.real.writeBytes += bytesOf(list)
	for _, f := range p.GetColumnValue() {
		for _, q := range f.GetQualifierValue() {
			c.real.writeBytes += int64(cellOverhead + len(p.GetRow()) + len(f.GetFamily()) + len(q.GetQualifier()) + len(q.GetValue()))
		}
	}
}

// end settles the account.
func (c *charge) end() {
	if c == nil {
		return
	}
	c.throttles.mu.Lock()
	defer c.throttles.mu.Unlock()
	for _, l := range c.on {
		l.settle(c.estimated, c.real)
	}
}

// bytesOf is the size of cells as HBase serializes them.
func bytesOf(list []cells.Cell) (n int64) {
	for i := range list {
		n += int64(wire.KeyValueCodec.CellSize(&list[i]))
	}
	return n
}

// costOf is what a region action asks for.
func costOf(ra *pb.RegionAction, conditional bool) cost {
	c := cost{atomic: conditional}
	for _, a := range ra.GetAction() {
		switch {
		case a.Get != nil:
			c.reads++
		case a.Mutation != nil:
			c.writes++
			if t := a.Mutation.GetMutateType(); conditional || t == pb.MutationProto_INCREMENT || t == pb.MutationProto_APPEND {
				c.reads++
				c.atomic = true
			}
		}
	}
	return c
}
