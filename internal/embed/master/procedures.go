package master

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
)

// How long results are kept, HBase's own figures: after finishing, and after a
// client has read them.
const (
	keepResult     = 15 * time.Minute
	keepReadResult = 5 * time.Minute
)

// maxResults bounds the results kept, whatever their age; the oldest go first.
const maxResults = 10_000

// answerWait is how long a submitting call waits for its procedure to end
// before it answers with the id. A client polls at once and then after 100 ms,
// so a procedure that ends within the wait costs two calls instead of three.
const answerWait = 50 * time.Millisecond

// Procedures remembers the results of procedures. It outlives a master, so
// that a client polling across a failover finds its answer. Safe for
// concurrent use.
type Procedures struct {
	nextID func() (uint64, error)
	now    func() time.Time

	// listing lets one caller at a time look at all of them: thousands that do
	// would take turns at mu with each who submits. Before mu.
	listing sync.Mutex

	mu     sync.Mutex
	byID   map[uint64]*procedure
	nonces map[[2]uint64]*procedure
	purged time.Time
	// crowded is from how many on the next submission looks for results to drop,
	// whenever the last one did.
	crowded int
	// unfinished counts the running ones by class.
	unfinished map[string]int
}

// NewProcedures makes an empty memory. nextID gives numbers never given
// before, also in earlier processes.
func NewProcedures(nextID func() (uint64, error), now func() time.Time) *Procedures {
	return &Procedures{nextID: nextID, now: now, byID: map[uint64]*procedure{}, nonces: map[[2]uint64]*procedure{},
		crowded: maxResults, unfinished: map[string]int{}}
}

// procedure is one run. Fields below mu are guarded by Procedures.mu.
type procedure struct {
	id        uint64
	class     string
	owner     string // the user who asked for it
	nonce     [2]uint64
	submitted time.Time
	// prepared is closed once the checks are done, done when all is.
	prepared, done chan struct{}

	// cancel ends the context of its body; nil before that runs.
	cancel   context.CancelFunc
	bypassed bool
	// waiting says that it does nothing until it is told to, or time is up.
	waiting bool

	isPrepared bool
	prepareErr error
	finished   bool
	err        error
	updated    time.Time
	expires    time.Time
}

// begin makes a procedure, or gives the one that has the same nonce.
func (ps *Procedures) begin(class, owner string, group, nonce uint64) (p *procedure, old bool, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.purge()
	key := [2]uint64{group, nonce}
	if nonce != 0 {
		if p := ps.nonces[key]; p != nil {
			return p, true, nil
		}
	}
	id, err := ps.nextID()
	if err != nil {
		return nil, false, err
	}
	now := ps.now()
	p = &procedure{id: id, class: class, owner: owner, nonce: key, submitted: now, updated: now, prepared: make(chan struct{}), done: make(chan struct{})}
	ps.byID[id] = p
	ps.unfinished[class]++
	if nonce != 0 {
		ps.nonces[key] = p
	}
	return p, false, nil
}

// setPrepared says how the checks went; only the first call counts.
func (ps *Procedures) setPrepared(p *procedure, err error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.isPrepared {
		return
	}
	p.isPrepared, p.prepareErr = true, err
	close(p.prepared)
}

func (ps *Procedures) finish(p *procedure, err error) {
	ps.setPrepared(p, err)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.finished, p.err, p.updated = true, err, ps.now()
	if ps.unfinished[p.class]--; ps.unfinished[p.class] == 0 {
		delete(ps.unfinished, p.class)
	}
	p.expires = p.updated.Add(keepResult)
	close(p.done)
}

// purge drops results that are too old or too many. Called with the lock held.
func (ps *Procedures) purge() {
	now := ps.now()
	if len(ps.byID) <= ps.crowded && now.Sub(ps.purged).Abs() < time.Second {
		return
	}
	ps.purged = now
	// Those that run are kept however many they are; looking through them each
	// time would hold up all who submit more.
	defer func() { ps.crowded = max(maxResults, len(ps.byID)+maxResults/10) }()
	drop := func(p *procedure) {
		delete(ps.byID, p.id)
		if ps.nonces[p.nonce] == p {
			delete(ps.nonces, p.nonce)
		}
	}
	for _, p := range ps.byID {
		if p.finished && now.After(p.expires) {
			drop(p)
		}
	}
	if len(ps.byID) <= maxResults {
		return
	}
	all := make([]*procedure, 0, len(ps.byID))
	for _, p := range ps.byID {
		if p.finished {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *procedure) int { return cmp.Compare(a.id, b.id) })
	// A tenth more than needed, so that not every submission sorts.
	for _, p := range all[:min(len(all), len(ps.byID)-maxResults+maxResults/10)] {
		drop(p)
	}
}

// result answers getProcedureResult.
func (ps *Procedures) result(id uint64) *pb.GetProcedureResultResponse {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.purge()
	p := ps.byID[id]
	if p == nil || p.finished && ps.now().After(p.expires) {
		return &pb.GetProcedureResultResponse{State: pb.GetProcedureResultResponse_NOT_FOUND.Enum()}
	}
	r := &pb.GetProcedureResultResponse{
		State:         pb.GetProcedureResultResponse_RUNNING.Enum(),
		SubmittedTime: new(uint64(p.submitted.UnixMilli())),
		LastUpdate:    new(uint64(p.updated.UnixMilli())),
	}
	if p.finished {
		r.State = pb.GetProcedureResultResponse_FINISHED.Enum()
		if p.err != nil {
			r.Exception = foreign(p)
		}
		if t := ps.now().Add(keepReadResult); t.Before(p.expires) {
			p.expires = t
		}
	}
	return r
}

// foreign is the exception a procedure ended with. Its one frame says where:
// Java programs tell by it that the exception is not their own client's.
func foreign(p *procedure) *pb.ForeignExceptionMessage {
	e := asException(p.err)
	return &pb.ForeignExceptionMessage{
		Source: new("master"),
		GenericException: &pb.GenericExceptionMessage{
			ClassName: new(e.Class), Message: new(e.Message),
			Trace: []*pb.StackTraceElementMessage{{DeclaringClass: new(p.javaClass()), MethodName: new("execute"), LineNumber: new(int32(-1))}},
		},
	}
}

// list answers GetProcedures: what runs now, and what ended lately.
func (ps *Procedures) list() []*pb.Procedure {
	// Only looked at under the lock: making ten thousand messages there would
	// hold up everybody who submits.
	ps.listing.Lock()
	defer ps.listing.Unlock()
	ps.mu.Lock()
	all := make([]procedure, 0, len(ps.byID))
	now := ps.now()
	for _, p := range ps.byID {
		if !p.finished || !now.After(p.expires) {
			all = append(all, *p)
		}
	}
	ps.mu.Unlock()
	out := make([]*pb.Procedure, 0, len(all))
	for i := range all {
		p := &all[i]
		out = append(out, p.toProto())
	}
	slices.SortFunc(out, func(a, b *pb.Procedure) int { return cmp.Compare(a.GetProcId(), b.GetProcId()) })
	return out
}

// packages are where HBase keeps the procedures that are not in
// org.apache.hadoop.hbase.master.procedure.
var packages = map[string]string{
	transitClass: "assignment", "SplitTableRegionProcedure": "assignment", "MergeTableRegionsProcedure": "assignment",
	lockClass:          "locking",
	"AddPeerProcedure": "replication", "RemovePeerProcedure": "replication", "EnablePeerProcedure": "replication",
	"DisablePeerProcedure": "replication", "UpdatePeerConfigProcedure": "replication",
}

func (p *procedure) javaClass() string {
	return "org.apache.hadoop.hbase.master." + cmp.Or(packages[p.class], "procedure") + "." + p.class
}

// toProto renders a procedure. Called with Procedures.mu held.
func (p *procedure) toProto() *pb.Procedure {
	r := &pb.Procedure{
		ClassName: new(p.javaClass()), ProcId: new(p.id),
		SubmittedTime: new(uint64(p.submitted.UnixMilli())), LastUpdate: new(uint64(p.updated.UnixMilli())),
		State: pb.ProcedureState_RUNNABLE.Enum(), Owner: new(p.owner), Bypass: new(p.bypassed),
	}
	if p.nonce[1] != 0 {
		r.NonceGroup, r.Nonce = new(p.nonce[0]), new(p.nonce[1])
	}
	switch {
	case p.finished && p.err != nil:
		r.State, r.Exception = pb.ProcedureState_ROLLEDBACK.Enum(), foreign(p)
	case p.finished:
		r.State = pb.ProcedureState_SUCCESS.Enum()
	case p.waiting:
		r.State = pb.ProcedureState_WAITING_TIMEOUT.Enum()
	}
	return r
}

// waits marks a procedure as one that waits until its time is up.
func (ps *Procedures) waits(p *procedure) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.waiting = true
}

// bypass makes a procedure that has not ended do nothing more, and says whether
// that was possible.
func (ps *Procedures) bypass(id uint64) bool {
	ps.mu.Lock()
	p := ps.byID[id]
	if p == nil || p.finished {
		ps.mu.Unlock()
		return false
	}
	p.bypassed = true
	cancel := p.cancel
	ps.mu.Unlock()
	if cancel != nil { // else its body has not begun, and ends as it begins
		cancel()
	}
	return true
}

// submit runs a procedure on the master's own time and gives its id. body
// calls prepared once its checks have passed; an error before that is the
// call's error, an error after it the procedure's. A procedure with the same
// nonce is not run again.
func (m *Master) submit(ctx context.Context, class string, group, nonce uint64, body func(ctx context.Context, prepared func()) error) (uint64, error) {
	p, old, err := m.begin(ctx, class, group, nonce, body)
	if err != nil {
		return 0, err
	}
	id, err := m.follow(ctx, p)
	if err != nil && old && ctx.Err() == nil {
		// The procedure is there, and its result tells of the error: as in HBase,
		// only who submitted it gets that for an answer.
		return p.id, nil
	}
	return id, err
}

// begin starts a procedure, or finds the old one with the nonce, and does not
// wait for anything.
func (m *Master) begin(ctx context.Context, class string, group, nonce uint64, body func(ctx context.Context, prepared func()) error) (p *procedure, old bool, err error) {
	ps := m.cfg.Procedures
	p, old, err = ps.begin(class, userOf(ctx), group, nonce)
	if err != nil || old {
		return p, old, err
	}
	if m.goRun(func(ctx context.Context) {
		ctx, cancel := context.WithCancel(context.WithValue(ctx, ownerKey{}, p))
		defer cancel()
		ps.mu.Lock()
		p.cancel = cancel
		if p.bypassed {
			cancel()
		}
		ps.mu.Unlock()
		err := body(ctx, func() { ps.setPrepared(p, nil) })
		if d := m.cfg.Controls.procedureDelay(); err == nil && d > 0 {
			err = wait(ctx, d)
		}
		if err == nil {
			err = m.cfg.Controls.takeFailure(class)
		}
		ps.mu.Lock()
		if p.bypassed {
			err = nil
		}
		ps.mu.Unlock()
		ps.finish(p, err)
		m.log.Debug("procedure ended", "id", p.id, "class", class, "err", err)
	}) {
		return p, false, nil
	}
	err = m.stopped()
	ps.finish(p, err)
	return nil, false, err
}

// follow waits until a procedure's checks are done, and a little for its end.
func (m *Master) follow(ctx context.Context, p *procedure) (uint64, error) {
	ps := m.cfg.Procedures
	select {
	case <-p.prepared:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	ps.mu.Lock()
	err := p.prepareErr
	ps.mu.Unlock()
	if err != nil {
		return 0, err
	}
	t := time.NewTimer(answerWait)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
	case <-ctx.Done():
	}
	return p.id, nil
}

// await waits for a procedure's end and gives its error: what a client does by
// polling.
func (m *Master) await(ctx context.Context, id uint64) error {
	ps := m.cfg.Procedures
	ps.mu.Lock()
	p := ps.byID[id]
	ps.mu.Unlock()
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		ps.mu.Lock()
		defer ps.mu.Unlock()
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for d or the context's end, whose error it gives.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
