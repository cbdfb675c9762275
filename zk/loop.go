package zk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// loop is the state that only the loop's goroutine touches.
type loop struct {
	*Conn
	state      State
	verdict    Verdict // last reported
	sessionID  int64
	password   []byte
	negotiated time.Duration
	zxid       int64
	nextXid    int32

	t       *transport
	frames  chan inbound
	queue   []*call // accepted, not sent, in order
	pending []*call // sent on t, in order
	pings   []time.Time
	auths   []*call
	idents  []AuthInfo // offered on every connection
	bytes   int        // bodies of queue and pending

	lastSend time.Time
	lastRecv time.Time

	cancelDial context.CancelFunc
	dialed     chan dialResult
	hostOrder  []string
	short      int // connections in a row that lasted less than shortLife

	watches watchTable
	closeBy time.Time // when closing: the moment to stop waiting
	closeX  *call     // the closeSession under way
	timer   *time.Timer
}

type dialResult struct {
	est *established
	err error
}

func (l *loop) run() {
	defer l.wg.Done()
	l.timer = time.NewTimer(time.Hour)
	defer l.timer.Stop()
	l.connect()
	for !l.state.Terminal() {
		l.onTime(time.Now())
		if l.state.Terminal() {
			break
		}
		l.timer.Reset(l.nextWake())
		var submit chan *call
		if len(l.queue)+len(l.pending) < l.cfg.MaxInFlight && l.bytes < maxInFlightBytes && l.closeX == nil {
			submit = l.submit
		}
		select {
		case k := <-submit:
			l.accept(k)
		case k := <-l.cancels:
			l.cancel(k)
		case w := <-l.unwatch:
			l.dropWatch(w)
		case in := <-l.frames:
			l.onInbound(in)
		case r := <-l.dialed:
			l.onDialed(r)
		case by := <-l.closing:
			l.onClose(by)
		case <-l.timer.C:
		}
	}
	l.shutdown()
}

// connect starts the connector.
func (l *loop) connect() {
	//holdfast:allow context the connector serves the Conn, which outlives every caller; shutdown cancels it
	ctx, cancel := context.WithCancel(context.Background())
	l.cancelDial = cancel
	timeout := l.negotiated
	deadline := l.base.Add(time.Duration(l.lastAnswered.Load()) + timeout)
	if l.sessionID == 0 {
		timeout = l.cfg.SessionTimeout
		deadline = time.Now().Add(timeout)
	}
	k := &connector{
		cfg: &l.cfg, log: l.log, ledger: &l.ledger, wg: &l.wg, hosts: slices.Clone(l.hostOrder),
		session: l.sessionID, password: l.password, zxid: l.zxid, timeout: timeout, deadline: deadline,
		failedLaps: max(0, l.short-len(l.hostOrder)),
	}
	dialed := l.dialed
	l.wg.Add(1)
	go func() {
		defer l.wg.Done()
		est, err := k.run(ctx)
		select {
		case dialed <- dialResult{est, err}:
		case <-ctx.Done():
			if est != nil {
				est.nc.Close()
			}
		}
	}()
}

func (l *loop) onDialed(r dialResult) {
	l.cancelDial()
	l.cancelDial = nil
	if r.err != nil {
		l.setTerminal(StateExpired, ErrSessionExpired)
		return
	}
	now := time.Now()
	l.t = newTransport(r.est, l.frames, answerFactor*l.cfg.MaxFrame)
	l.wg.Add(2)
	t := l.t
	go func() { defer l.wg.Done(); t.readLoop() }()
	go func() { defer l.wg.Done(); t.writeLoop() }()
	// The next time this host fails, the others come first.
	l.hostOrder = rotateAfter(l.hostOrder, r.est.host)
	isFirst := l.sessionID == 0
	l.sessionID, l.password = r.est.resp.SessionID, r.est.resp.Password
	l.negotiated = time.Duration(r.est.resp.TimeoutMs) * time.Millisecond
	l.noteAnswered(r.est.sentAt)
	l.lastSend, l.lastRecv = now, now
	l.setState(StateConnected, r.est.host, nil)
	if isFirst {
		close(l.first)
	}
	for _, a := range l.idents {
		l.send(&call{op: jute.OpAuth, body: a.encode(), internal: true})
	}
	l.rearm()
	queue := l.queue
	l.queue = nil
	for _, k := range queue {
		l.send(k)
	}
	if l.closeX != nil {
		l.send(l.closeX)
	}
}

// rotateAfter returns hosts beginning with the one after host.
func rotateAfter(hosts []string, host string) []string {
	i := slices.Index(hosts, host)
	if i < 0 {
		return hosts
	}
	return append(slices.Clone(hosts[i+1:]), hosts[:i+1]...)
}

func (l *loop) accept(k *call) {
	l.bytes += len(k.body)
	if k.ident != nil {
		l.idents = append(l.idents, *k.ident)
	}
	if l.t == nil {
		l.queue = append(l.queue, k)
		return
	}
	l.send(k)
}

// send puts a call on the wire; there is a transport.
func (l *loop) send(k *call) {
	if k.watch != nil && !l.prepareWatch(k) {
		l.release(k)
		k.finish(result{err: errWatchMode})
		return
	}
	k.sentAt, k.sent, k.host = time.Now(), true, l.t.est.host
	if k.op == jute.OpAuth {
		// Servers may answer an auth before requests sent earlier.
		k.xid = jute.XidAuth
		l.auths = append(l.auths, k)
		l.write(k.xid, k.op, k.body)
		return
	}
	k.xid = l.nextXid
	if l.nextXid++; l.nextXid <= 0 {
		l.nextXid = 1
	}
	l.pending = append(l.pending, k)
	l.write(k.xid, k.op, k.body)
}

func (l *loop) write(xid int32, op jute.OpCode, body []byte) {
	var w jute.Writer
	mark := w.BeginFrame()
	h := jute.RequestHeader{Xid: xid, Op: op}
	h.Encode(&w)
	w.Raw(body)
	w.EndFrame(mark)
	l.lastSend = time.Now()
	l.t.send(w.Bytes())
}

func (a AuthInfo) encode() []byte {
	p := jute.AuthPacket{Scheme: a.Scheme, Auth: a.Auth}
	var w jute.Writer
	p.Encode(&w)
	return w.Bytes()
}

// release takes a call's body out of the account.
func (l *loop) release(k *call) {
	if !k.internal {
		l.bytes -= len(k.body)
	}
}

// cancel answers a caller that has left: it learns whether its call had been sent.
func (l *loop) cancel(k *call) {
	if k.answered {
		return
	}
	if i := slices.Index(l.queue, k); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		l.release(k)
	}
	// A call on the wire stays in pending, so that its answer finds its place.
	k.watch = nil
	k.finish(result{err: context.Canceled})
}

func (l *loop) onInbound(in inbound) {
	if in.t != l.t {
		return // of a transport given up before
	}
	if in.err != nil {
		l.lose(in.err)
		return
	}
	l.lastRecv = time.Now()
	r := jute.NewReader(in.frame)
	var h jute.ReplyHeader
	h.Decode(r)
	if r.Err() != nil {
		l.lose(r.Err())
		return
	}
	if h.Zxid > l.zxid {
		l.zxid = h.Zxid
	}
	switch h.Xid {
	case jute.XidNotify:
		var e jute.WatcherEvent
		e.Decode(r)
		if r.Err() != nil {
			l.lose(r.Err())
			return
		}
		l.onEvent(e)
	case jute.XidPing:
		if len(l.pings) == 0 {
			l.lose(errors.New("an answer to no ping"))
			return
		}
		l.noteAnswered(l.pings[0])
		l.pings = l.pings[1:]
	case jute.XidAuth:
		if len(l.auths) == 0 {
			l.lose(errors.New("an answer to no auth"))
			return
		}
		k := l.auths[0]
		l.auths = l.auths[1:]
		l.release(k)
		l.noteAnswered(k.sentAt)
		k.finish(result{code: h.Err})
		if h.Err != jute.OK {
			l.setTerminal(StateAuthFailed, ErrAuthFailed)
		}
	default:
		l.onReply(h, r.Rest())
	}
}

func (l *loop) onReply(h jute.ReplyHeader, body []byte) {
	if len(l.pending) == 0 || l.pending[0].xid != h.Xid {
		l.lose(fmt.Errorf("an answer with xid %d out of order", h.Xid))
		return
	}
	k := l.pending[0]
	if k.decode != nil && h.Err == jute.OK && !k.answered {
		r := jute.NewReader(body)
		if k.decode(r); r.Err() != nil {
			// The stream is not to be trusted any further. A server that garbles one answer every time must not keep us busy for ever.
			if k.garbled++; k.garbled > maxGarbled {
				k.idempotent = false
			}
			l.lose(r.Err())
			return
		}
	}
	l.pending = l.pending[1:]
	l.release(k)
	l.noteAnswered(k.sentAt)
	switch h.Err {
	case jute.ErrSessionExpired:
		if k == l.closeX {
			break
		}
		k.finish(result{code: h.Err})
		l.setTerminal(StateExpired, ErrSessionExpired)
		return
	case jute.ErrSessionMoved:
		// It was not executed, so it may be asked again; but this connection has lost the session.
		if !k.answered {
			l.queue = append([]*call{k}, l.queue...)
			l.bytes += len(k.body)
			k.sent = false
		}
		l.lose(h.Err)
		return
	case jute.ErrAuthFailed, jute.ErrSessionClosedRequireSASL:
		k.finish(result{code: h.Err})
		l.setTerminal(StateAuthFailed, fmt.Errorf("%w: %w", ErrAuthFailed, h.Err))
		return
	}
	if k == l.closeX {
		l.setTerminal(StateClosed, errCleanClose)
		return
	}
	if k.watch != nil {
		l.register(k, h.Err)
	}
	k.finish(result{code: h.Err})
}

// maxGarbled is how often a read is asked again because its answer could not be decoded.
const maxGarbled = 3

// lose gives up the connection: reads go back to the head of the queue, writes fail, the connector starts.
func (l *loop) lose(err error) {
	t := l.t
	t.close()
	l.t = nil
	now := time.Now()
	l.ledger.add(Attempt{At: t.since, Took: now.Sub(t.since), Host: t.est.host, Addr: t.est.addr, Phase: PhaseServing, Outcome: outcomeOf(PhaseServing, err), Err: err})
	var again []*call
	for _, k := range append(l.auths, l.pending...) {
		if k.idempotent && !k.answered {
			again = append(again, k)
			continue
		}
		l.release(k)
		if k.garbled > 0 {
			k.finish(result{err: fmt.Errorf("%w: %w", ErrConnectionLoss, err)})
			continue
		}
		k.finish(result{err: ErrConnectionLoss})
	}
	l.queue = append(again, l.queue...)
	l.pending, l.pings, l.auths = nil, nil, nil
	if l.closeX != nil {
		l.setTerminal(StateClosed, fmt.Errorf("%w; the connection broke before the server confirmed it", ErrClosed))
		return
	}
	if now.Sub(t.since) < shortLife {
		l.short++
	} else {
		l.short = 0
	}
	l.setState(StateDisconnected, t.est.host, err)
	l.connect()
}

// shortLife: servers that take a session only to drop it at once are no better than servers that refuse it. When every one of them has done
// so, reconnecting pauses as after a failed lap.
const shortLife = time.Second

func (l *loop) onClose(by time.Time) {
	if l.closeBy.IsZero() || by.Before(l.closeBy) {
		l.closeBy = by
	}
	if l.closeX != nil {
		return
	}
	for _, k := range l.queue {
		k.finish(result{err: ErrClosed})
	}
	l.queue = nil
	if l.t == nil {
		err := errCleanClose
		if l.sessionID != 0 {
			err = fmt.Errorf("%w; there was no connection, the session ends with its timeout", ErrClosed)
		}
		l.setTerminal(StateClosed, err)
		return
	}
	l.closeX = &call{op: jute.OpCloseSession, internal: true}
	l.send(l.closeX)
}

func (l *loop) setState(s State, host string, err error) {
	l.state = s
	switch {
	case s == StateExpired:
		l.verdict = Expired
	case s == StateClosed:
		l.verdict = NoSession
	case l.sessionID == 0:
		l.verdict = NoSession
	case time.Now().Before(l.deadline()):
		l.verdict = Alive
	default:
		l.verdict = PresumedLost
	}
	v := &view{state: s, sessionID: l.sessionID, negotiated: l.negotiated}
	if s == StateConnected {
		v.host = host
	}
	if s.Terminal() {
		v.err = err
	}
	l.view.Store(v)
	l.log.Info("zookeeper session "+s.String(), "session", hex(l.sessionID), "host", host, "verdict", l.verdict.String(), "timeout", l.negotiated, "err", err)
	l.tell(StateChange{State: s, Verdict: l.verdict, SessionID: l.sessionID, Host: host, At: time.Now(), Err: err})
}

func (l *loop) tell(ch StateChange) {
	if l.cfg.OnState != nil {
		l.cfg.OnState(ch)
	}
}

func (l *loop) setTerminal(s State, err error) {
	host := ""
	if l.t != nil {
		host = l.t.est.host
	}
	l.setState(s, host, err)
}

// shutdown ends everything after the last state is published.
func (l *loop) shutdown() {
	if l.cancelDial != nil {
		l.cancelDial()
	}
	if l.t != nil {
		l.t.close()
	}
	err := l.Err()
	for _, k := range slices.Concat(l.auths, l.pending, l.queue) {
		k.finish(result{err: err})
	}
	l.endWatches(err)
	close(l.done)
}

func hex(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }
