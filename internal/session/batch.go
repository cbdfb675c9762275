package session

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/meta"
	"github.com/holdfast-hbase/holdfast/internal/retry"
	"github.com/holdfast-hbase/holdfast/internal/route"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
)

// locateSlice is how long the items of a batch that are located together wait
// for the slowest of them; the located ones then go ahead. It doubles with
// each try.
const locateSlice = 100 * time.Millisecond

var (
	// errNoResult: the server answered the request but not this action.
	errNoResult = errors.New("the server gave no result for this action")
	// errLost guards the loop's own books: every open item is waiting, being
	// located or in flight.
	errLost = errors.New("the batch lost track of this action")
)

// batch is a Batch on its way: an event loop on the caller's goroutine. Items
// wait, are being located, or are in flight; whatever comes back is judged by
// the same table as single calls, and only failed items go round again, each
// when its own pause is over. The other goroutines touch nothing of it but
// what they were given.
type batch struct {
	op
	tableName meta.TableName
	items     []Item
	out       []Outcome
	state     []itemState

	open    int   // items without an outcome
	queue   []int // those that wait, in row order
	flights int   // goroutines whose event is still to come
	events  chan event
	tries   int // of locating

	// waits are the servers among whose waiting callers the batch counts.
	waits map[*peer]bool

	// replicas are asked as well, if some items allow it; nil otherwise.
	replicas *batchReplicas

	// again collects what an event leaves to be tried again, until settle.
	again []retrial
	// told is the last evidence handed on, so that a thousand actions of one
	// region that fail alike count once.
	told evidence
}

// itemState is what the loop remembers of an item.
type itemState struct {
	at        retry.Attempt
	attempts  int
	counted   int // against MaxAttempts
	free      bool
	done      bool
	maybe     bool // some attempt may have been executed
	dear      bool // the last failure was of the kind that retries make worse
	class     retry.Class
	notBefore time.Time
	srv       *health.Server // of the last attempt
	route     *route.Route
	err       error // the last failure
	after     time.Duration
}

type retrial struct {
	item int
	d    retry.Decision
}

type evidence struct {
	route *route.Route
	rule  string
	chunk *chunk // that failed as a whole, nil for an error within an answer
}

// event is the end of a goroutine: a chunk that was sent, or rows located.
type event struct {
	flight bool
	chunk  *chunk
	items  []int
	routes []*route.Route
	errs   []error
	ended  bool // locating ran into its slice of time
}

// Batch performs the items, grouped by server and region, and gives one
// outcome per item, in the order of the items. Items of one region are sent in
// that order; between regions there is no order. It returns when every item
// has its outcome: at the latest when the context or the operation's time
// ends. Errors are *retry.Error.
func (c *Core) Batch(ctx context.Context, table meta.TableName, items []Item) []Outcome {
	if len(items) == 0 {
		return nil
	}
	b := &batch{
		tableName: table, items: items,
		out: make([]Outcome, len(items)), state: make([]itemState, len(items)),
		open: len(items), queue: make([]int, len(items)), events: make(chan event),
	}
	// Attempts are bounded per item, not for the whole.
	b.entries = len(items)
	b.start(c, ctx, retry.Config{Op: "batch", Table: table, MaxAttempts: math.MaxInt})
	timeline := false
	for i := range items {
		b.queue[i] = i
		b.state[i].at.Idempotency = items[i].Idempotency
		timeline = timeline || items[i].Timeline
	}
	if timeline {
		b.replicas = newBatchReplicas(b)
		defer b.replicas.stop()
	}
	b.sort()
	defer b.waitNoMore()
	b.run()
	var first error
	if b.seen != nil {
		for i := range b.out {
			if err := b.out[i].Err; err != nil {
				if b.op.failed++; first == nil {
					first = err
				}
			}
		}
	}
	b.end(first)
	return b.out
}

func (b *batch) sort() {
	byRow := func(i, j int) int { return bytes.Compare(b.items[i].Row, b.items[j].Row) }
	if !slices.IsSortedFunc(b.queue, byRow) {
		slices.SortStableFunc(b.queue, byRow)
	}
}

func (b *batch) run() {
	for b.open > 0 || b.flights > 0 {
		if len(b.queue) > 0 {
			if b.spent() {
				b.failWaiting()
			} else if ready := b.ready(); len(ready) > 0 {
				b.dispatch(ready)
				continue
			}
		}
		if b.replicas != nil {
			if b.open == 0 {
				b.replicas.cancel() // whoever is still asked has lost
			} else {
				b.askReplicas()
			}
		}
		switch {
		case len(b.queue) > 0:
			b.rest()
		case b.flights > 0 && b.replicas != nil:
			select {
			case e := <-b.events:
				b.handle(e)
			case <-b.replicas.timer.C:
			}
		case b.flights > 0:
			b.handle(<-b.events)
		default:
			for i := range b.items {
				b.finish(i, &retry.Error{Op: b.name, Table: b.tableName}, errLost)
			}
		}
	}
	b.budget.On(nil)
	b.budget.Succeeded()
}

// spent says whether no more attempts may be begun.
func (b *batch) spent() bool {
	return b.core.ctx.Err() != nil || b.ctx.Err() != nil || b.budget.Remaining() <= 0
}

// failWaiting ends everything that waits: time is up, or the caller has left.
func (b *batch) failWaiting() {
	var err error
	if b.ctx.Err() != nil {
		err = b.budget.Canceled(b.ctx)
	} else {
		err = b.budget.Exhausted()
	}
	for _, i := range b.queue {
		b.finish(i, err, b.state[i].err)
	}
	b.queue = nil
}

// dispatch sends the items whose route is known and has the others located.
func (b *batch) dispatch(ready []int) {
	routes := make([]*route.Route, len(ready))
	missing := 0
	var r *route.Route
	for k, i := range ready {
		row := b.items[i].Row
		if r == nil || !r.Contains(row) || !r.Valid() {
			r = b.core.routes.Lookup(b.tableName, row)
		}
		if routes[k] = r; r == nil {
			missing++
		}
	}
	if missing > 0 {
		b.locateMissing(ready, routes, missing)
	}
	b.sendAll(ready, routes)
}

// locateMissing starts the lookup of those that have no route.
func (b *batch) locateMissing(ready []int, routes []*route.Route, missing int) {
	items, rows := make([]int, 0, missing), make([][]byte, 0, missing)
	for k, i := range ready {
		if routes[k] == nil {
			if err := b.waitForRegion(b.items[i].Row); err != nil {
				b.failed(i, nil, nil, err, false)
				continue
			}
			items, rows = append(items, i), append(rows, b.items[i].Row)
		}
	}
	if len(items) == 0 {
		return
	}
	// Location must not eat the batch: half of what is left at most.
	slice := min(locateSlice<<min(b.tries, 10), max(b.budget.Remaining()/2, time.Millisecond))
	b.tries++
	waiting, cache, table := b.op.waiting(), b.core.routes, b.tableName
	b.spawn(func() event {
		began := time.Now()
		ctx, cancel := context.WithTimeout(waiting, slice)
		defer cancel()
		found, errs := cache.LocateMany(ctx, table, rows)
		if b.core.hooks != nil {
			b.core.lookedUp(b.ctx, Lookup{Op: b.name, Table: table, Row: rows[0], Rows: len(rows), Start: began, Err: errs[0]}, found[0])
		}
		return event{items: items, routes: found, errs: errs, ended: ctx.Err() != nil}
	})
}

// spawn runs f on a goroutine of its own, whose event run waits for.
func (b *batch) spawn(f func() event) {
	b.flights++
	go func() {
		e := f()
		e.flight = true
		b.events <- e
	}()
}

// sendAll groups the items that have a route and sends them.
func (b *batch) sendAll(ready []int, routes []*route.Route) {
	heads := chunks(b.items, ready, routes, &b.core.cfg)
	b.op.waiting() // made here, since exchange runs elsewhere
	for n, c := range heads {
		if !b.pay(c) {
			continue
		}
		// The error would be the deadline's, which spent sees too.
		_ = b.budget.Attempt(peerOf(c.srv).name, "")
		if c.srv.State() != health.Healthy {
			if c.err = b.waitFor(c.srv); c.err != nil {
				b.handle(event{chunk: c})
				continue
			}
		}
		if n == len(heads)-1 && b.flights == 0 && len(b.queue) == 0 && b.replicas == nil {
			b.handle(b.exchange(c)) // nothing else to do meanwhile
			return
		}
		b.spawn(func() event { return b.exchange(c) })
	}
}

// exchange sends one chunk. It may run on a goroutine of its own: it reads the
// batch's fixed fields and the items of the chunk, and writes to the chunk.
func (b *batch) exchange(c *chunk) event {
	param, block := c.request(b.items, b.core.nonceGroup)
	c.resp.parts, c.resp.actions = len(c.parts), c.count
	q := request{service: ClientService, method: "Multi", param: param, cells: block, result: &c.resp, yield: !c.unsafe, watched: b.replicas != nil}
	limit := b.core.cfg.RPCTimeout
	if !c.replicas {
		limit = attemptLimit(limit, b.budget.Timeout(), b.state[c.parts[0].items[0]].attempts)
	}
	if c.unsafe {
		limit = 0
	}
	if b.tableName.IsSystem() {
		q.priority = systemPriority
	}
	for k := range c.parts {
		for _, i := range c.parts[k].items {
			q.priority = max(q.priority, b.items[i].Priority)
		}
	}
	var seen *observing
	if c.err = c.srv.Err(); c.err == nil {
		var cn *conn
		if cn, c.err = peerOf(c.srv).get(b.slow, q.service, false); c.err == nil {
			c.x.began = time.Now()
			if h := b.core.hooks; h != nil {
				seen = h.observe(b.ctx, b.describe(c, b.budget.AttemptTimeoutFrom(c.x.began, limit)), &q)
			}
			c.err = b.core.exchange(b.ctx, b.slow, c.srv, cn, &q, b.budget.AttemptTimeoutFrom(c.x.began, limit), &c.x)
		}
	}
	if seen != nil {
		c.seen = true
		seen.end(b.core.hooks, &c.x, c.err, retry.Attempt{})
	}
	return event{chunk: c}
}

// describe is a chunk as hooks see it. Its fields are nobody else's now.
func (b *batch) describe(c *chunk, timeout time.Duration) Attempt {
	a := Attempt{
		Op: b.name, Table: b.tableName, Server: c.srv.Name(), Regions: len(c.parts), Items: c.entries(),
		Number: 1, Start: c.x.began, Timeout: timeout,
	}
	if !c.replicas { // else the state is somebody else's
		a.Number += b.state[c.parts[0].items[0]].attempts
	}
	if p := c.parts[0]; len(c.parts) == 1 {
		a.Region = p.route.Encoded()
		if p.replica != nil {
			a.Region = p.replica.Encoded()
		}
	}
	return a
}

// handle takes in what came back.
func (b *batch) handle(e event) {
	if e.flight {
		b.flights--
	}
	if e.chunk == nil {
		b.located(e)
		return
	}
	c := e.chunk
	if c.replicas {
		b.replicaAnswered(c)
		return
	}
	if next := c.next; next != nil {
		b.spawn(func() event { return b.exchange(next) })
	}
	b.answered(c)
}

// located sends what was found and puts the rest back.
func (b *batch) located(e event) {
	found, told := false, false
	for k, i := range e.items {
		err := e.errs[k]
		switch {
		case b.state[i].done:
			e.routes[k] = nil
		case err == nil:
			found = true
		case e.ended && !b.spent() && errors.Is(err, context.DeadlineExceeded):
			// Only its slice of time was over. It goes on at once, since
			// locating is waiting.
			s := &b.state[i]
			s.err, s.class, s.notBefore = err, retry.NoWait, time.Time{}
			b.queue = append(b.queue, i)
		default:
			b.failed(i, nil, nil, err, false)
			if h := b.core.hooks; h != nil && !told {
				told = true // once, however many rows the answer was for
				h.failure(b.ctx, Failure{
					Op: b.name, Table: b.tableName, Attempts: b.budget.Attempts(), At: time.Now(), Err: err,
					Decision: decisionOf(retry.Classify(err, retry.Attempt{})),
				})
			}
		}
	}
	b.settle()
	if found {
		b.sendAll(e.items, e.routes)
	}
}

// answered takes in the outcome of a chunk.
func (b *batch) answered(c *chunk) {
	if c.x.tried {
		for _, p := range c.parts {
			for _, i := range p.items {
				s := &b.state[i]
				s.attempts++
				if !s.free {
					s.counted++
				}
				s.free = false
			}
		}
	}
	err := c.err
	if err == nil {
		err = c.answers(b.items, func(p *part, i int, a answer) {
			if b.state[i].done {
				return // by a replica
			}
			if a.err != nil {
				b.failed(i, c, p, a.err, true)
				return
			}
			b.out[i] = Outcome{Results: a.results, Processed: a.processed, Attempts: b.state[i].attempts}
			b.state[i].done = true
			b.open--
		})
		if err == nil {
			if len(b.again) == 0 {
				peerOf(c.srv).tokens.Succeeded()
			}
			b.settle()
			return
		}
		// The answer cannot be read to its end: as good as lost.
		err = &rpc.ConnError{Addr: c.srv.Name().Address(), Cause: err, Sent: true}
	}
	for k := range c.parts {
		p := &c.parts[k]
		for _, i := range p.items {
			if s := &b.state[i]; !s.done && !b.trying(i) {
				b.failed(i, c, p, err, c.x.sent)
			}
		}
	}
	b.settle()
}

// trying says whether failed has seen the item in this event already.
func (b *batch) trying(i int) bool {
	return slices.ContainsFunc(b.again, func(r retrial) bool { return r.item == i })
}

// failed judges one item's failure and hands on the evidence.
func (b *batch) failed(i int, c *chunk, p *part, err error, sent bool) {
	s := &b.state[i]
	if s.done {
		return // by a replica
	}
	b.hurryReplicas(i)
	at := s.at
	at.Sent = sent
	if !sent {
		at.Idempotency = retry.Safe
	}
	if c == nil || s.srv != c.srv {
		at.Busy = 0
	}
	d := retry.Classify(err, at)
	if d.Wait == retry.ServerDown && c != nil {
		if away := b.waitFor(c.srv); away != nil {
			err = away
			d = retry.Classify(err, at)
		}
	}
	if !sent {
		d.MaybeApplied = false
	}
	s.err, s.after = err, b.budget.Elapsed()
	s.maybe = s.maybe || d.MaybeApplied
	s.free, s.dear = d.Free, d.Costly()
	s.at.Busy = 0
	if d.Server == retry.Overloaded {
		s.at.Busy = at.Busy + 1
	}
	if d.Rule == retry.RuleUnknownClass {
		s.at.Unknown++
	}
	if d.Route == retry.Replace {
		s.at.Hints++
	}
	if p != nil {
		s.srv, s.route = c.srv, p.route
		now := evidence{route: p.route, rule: d.Rule}
		if c.err != nil {
			now.chunk = c
		}
		if b.told != now {
			// A request that failed is one failure, however many regions it was
			// for: each region's route hears of it, the ledger and the server's
			// health once.
			again := now.chunk != nil && b.told.chunk == now.chunk
			b.told = now
			b.tell(c, p, err, d, again)
		}
	}
	if d.TurnedAway && b.mayGoElsewhere(i) {
		d.TurnedAway, d.Wait = false, retry.Transit
	}
	switch {
	case b.ctx.Err() != nil || !d.Retriable || d.TurnedAway:
		b.budget.Failed(err, d)
		b.finish(i, b.budget.Fail(b.ctx, d), err)
	case b.core.cfg.MaxAttempts > 0 && s.counted >= b.core.cfg.MaxAttempts && !s.free:
		b.finish(i, &retry.Error{
			Op: b.name, Table: b.tableName, Reason: retry.TooManyAttempts, Elapsed: b.budget.Elapsed(),
		}, err)
	default:
		b.again = append(b.again, retrial{i, d})
	}
}

// tell corrects routes and health; again says that the failure is in the
// ledger and the server knows of it.
func (b *batch) tell(c *chunk, p *part, err error, d retry.Decision, again bool) {
	if !again {
		b.budget.On(peerOf(c.srv).tokens)
		if h := b.core.hooks; h != nil && !c.seen {
			h.failure(b.ctx, Failure{
				Op: b.name, Table: b.tableName, Region: p.route.Encoded(), Server: c.srv.Name(),
				Attempts: b.budget.Attempts(), At: time.Now(), Err: err, Decision: decisionOf(d),
			})
		}
		b.budget.Failed(err, d)
		b.core.feedServer(c.srv, c.x.conn, c.x.sent, c.x.began, err, d)
	}
	b.core.feedRoute(p.route, err, d)
	if d.Server == retry.Overloaded && c.err == nil {
		c.srv.Overloaded() // said within an answer that was itself a success
	}
	if d.Wait == retry.ServerDown && p.route.Valid() {
		b.core.scout(c.srv, p.route)
	}
}

// settle gives those who go round again their pauses: one per class, so that
// they come back together.
func (b *batch) settle() {
	if len(b.again) == 0 {
		b.told = evidence{}
		return
	}
	type pause struct {
		hint time.Duration
		wait time.Duration
		ok   bool
		set  bool
	}
	pauses := map[retry.Class]*pause{}
	for _, r := range b.again {
		p := pauses[r.d.Wait]
		if p == nil {
			p = &pause{}
			pauses[r.d.Wait] = p
		}
		p.hint = max(p.hint, r.d.Hint)
	}
	now := time.Now()
	for _, r := range b.again {
		p, s := pauses[r.d.Wait], &b.state[r.item]
		if !p.set {
			p.set = true
			p.wait, p.ok = b.budget.Next(r.d.Wait, p.hint)
		}
		if !p.ok {
			b.finish(r.item, b.budget.Exhausted(), s.err)
			continue
		}
		s.class, s.notBefore = r.d.Wait, now.Add(p.wait)
		if s.class == retry.ServerDown {
			s.notBefore = now.Add(min(p.wait, peerOf(s.srv).untilScout()))
		}
		b.queue = append(b.queue, r.item)
	}
	b.again, b.told = b.again[:0], evidence{}
	b.sort()
}

// finish gives an item its error: the story of the whole, told of this item.
func (b *batch) finish(i int, story error, cause error) {
	s := &b.state[i]
	if s.done {
		return
	}
	s.done = true
	b.open--
	err := story
	if e, ok := story.(*retry.Error); ok {
		own := *e
		own.Row = cutRow(b.items[i].Row)
		own.Attempts, own.MaybeApplied, own.Idempotency = s.attempts, s.maybe, b.items[i].Idempotency
		own.Causes, own.Region, own.Servers = nil, "", nil
		if cause != nil {
			c := retry.Cause{After: s.after, Attempt: s.attempts, Err: cause}
			if s.srv != nil {
				c.Server = peerOf(s.srv).name
				own.Servers = []string{c.Server}
			}
			own.Causes = []retry.Cause{c}
		}
		if s.route != nil {
			own.Region = s.route.Encoded()
		}
		err = &own
	}
	b.out[i] = Outcome{Attempts: s.attempts, Err: b.op.over(err)}
}

// maxErrorRow is how much of a row an error keeps.
const maxErrorRow = 64

func cutRow(row []byte) []byte { return slices.Clone(row[:min(len(row), maxErrorRow)]) }
