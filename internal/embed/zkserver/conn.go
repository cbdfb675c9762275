package zkserver

import (
	"bufio"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// conn is one client connection. The reading goroutine takes one frame at a time, applies it under Server.mu and queues the
// reply; the writing goroutine empties the queue. sess, auth and watches are guarded by Server.mu.
type conn struct {
	s      *Server
	m      *member
	nc     net.Conn
	remote string

	sess     *session
	auth     []authInfo
	watches  map[watchKey]struct{}
	readOnly bool // attached to a member in read-only mode

	established time.Time
	received    int64
	sentCount   int64
	lastOp      jute.OpCode
	lastXid     int32
	lastZxid    int64

	done      chan struct{} // closed by drop
	dropOnce  sync.Once
	lostBytes atomic.Bool // a black hole ate something; the stream cannot be continued

	qmu     sync.Mutex
	qcond   *sync.Cond
	queue   [][]byte
	qbytes  int
	last    bool // close after the queue
	stopped bool
	frames  int // frames sent, for Fault.HangAfter; writer only
}

func newConn(s *Server, m *member, nc net.Conn) *conn {
	c := &conn{s: s, m: m, nc: nc, lastOp: jute.OpCreateSession, watches: map[watchKey]struct{}{}, done: make(chan struct{}), established: s.cfg.Now()}
	if a := nc.RemoteAddr(); a != nil {
		c.remote = a.String()
	}
	if host, _, err := net.SplitHostPort(c.remote); err == nil {
		c.auth = []authInfo{{"ip", host}}
	}
	c.qcond = sync.NewCond(&c.qmu)
	return c
}

// drop closes the connection at once; queued frames are lost.
func (c *conn) drop() {
	c.dropOnce.Do(func() {
		close(c.done)
		c.nc.Close()
		c.qmu.Lock()
		c.stopped = true
		c.s.outgoing.Add(-int64(c.qbytes))
		c.queue, c.qbytes = nil, 0
		c.qcond.Broadcast()
		c.qmu.Unlock()
	})
}

// closeAfterQueue closes the connection once everything queued so far is written.
func (c *conn) closeAfterQueue() {
	c.qmu.Lock()
	c.last = true
	c.qcond.Broadcast()
	c.qmu.Unlock()
}

// send queues a whole frame. An overflowing queue ends the connection: the peer does not read, and memory is not ours to give.
func (c *conn) send(frame []byte) {
	c.qmu.Lock()
	if c.stopped || c.last {
		c.qmu.Unlock()
		return
	}
	// The reader waits at half of these limits, so only events can reach them.
	over := len(c.queue) >= c.s.cfg.MaxQueued || c.qbytes > 16*c.s.cfg.MaxFrame || c.qbytes > fairShare && c.s.outgoing.Load() > 2*c.s.cfg.MaxOutgoing
	if !over {
		c.queue = append(c.queue, frame)
		c.qbytes += len(frame)
		c.s.outgoing.Add(int64(len(frame)))
		c.qcond.Broadcast()
	}
	c.qmu.Unlock()
	if over {
		c.s.log.Warn("connection dropped: it does not read", "remote", c.remote)
		c.drop()
	}
}

// waitRoom blocks the reader until the peer has read enough of its replies.
func (c *conn) waitRoom() bool {
	c.qmu.Lock()
	defer c.qmu.Unlock()
	for !c.stopped && (len(c.queue) > c.s.cfg.MaxQueued/2 || c.qbytes > 8*c.s.cfg.MaxFrame || c.qbytes > fairShare && c.s.outgoing.Load() > c.s.cfg.MaxOutgoing) {
		c.qcond.Wait()
	}
	return !c.stopped
}

func (c *conn) sendEvent(e event) {
	var w jute.Writer
	mark := w.BeginFrame()
	h := jute.ReplyHeader{Xid: jute.XidNotify, Zxid: -1}
	h.Encode(&w)
	state := jute.StateSyncConnected
	if c.readOnly {
		state = jute.StateConnectedReadOnly
	}
	ev := jute.WatcherEvent{Type: e.typ, State: state, Path: e.path}
	ev.Encode(&w)
	w.EndFrame(mark)
	c.send(w.Bytes())
}

// gate waits while the member is frozen and returns its fault; ok is false when the connection is gone.
func (c *conn) gate() (f Fault, ok bool) {
	for {
		f, changed := c.m.current()
		if f.Mode != Frozen {
			select {
			case <-c.done:
				return f, false
			default:
				return f, true
			}
		}
		select {
		case <-changed:
		case <-c.done:
			return f, false
		}
	}
}

// waitChange waits until the member's mode is no longer one of those given.
func (c *conn) waitChange(modes ...Mode) (Fault, bool) {
	for {
		f, changed := c.m.current()
		stay := false
		for _, m := range modes {
			stay = stay || f.Mode == m
		}
		if !stay {
			return f, true
		}
		select {
		case <-changed:
		case <-c.done:
			return f, false
		}
	}
}

func (c *conn) writeLoop() {
	defer c.s.wg.Done()
	defer c.drop()
	for {
		c.qmu.Lock()
		for len(c.queue) == 0 && !c.last && !c.stopped {
			c.qcond.Wait()
		}
		if c.stopped {
			c.qmu.Unlock()
			return
		}
		batch, end := c.queue, c.last
		c.queue = nil
		c.qmu.Unlock()
		for _, frame := range batch {
			if !c.write(frame) {
				return
			}
			c.qmu.Lock()
			if !c.stopped { // drop has counted the rest
				c.qbytes -= len(frame)
				c.s.outgoing.Add(-int64(len(frame)))
			}
			c.qcond.Broadcast()
			c.qmu.Unlock()
		}
		if end { // nothing can have been queued since
			c.gate()
			return
		}
	}
}

// write sends one frame through the member's fault.
func (c *conn) write(frame []byte) bool {
	f, ok := c.gate()
	if !ok {
		return false
	}
	if f.Latency > 0 {
		t := time.NewTimer(f.Latency)
		select {
		case <-t.C:
		case <-c.done:
			t.Stop()
			return false
		}
		if f, ok = c.gate(); !ok {
			return false
		}
	}
	if f.Mode == BlackHole {
		c.lostBytes.Store(true)
		return true
	}
	c.frames++
	if f.HangAfter > 0 && c.frames > f.HangAfter {
		c.lostBytes.Store(true)
		return true
	}
	if f.HalfHandshake && c.frames == 1 {
		frame = frame[:4]
	} else if f.Truncate > 0 && c.frames > 1 && len(frame) > 4+f.Truncate {
		var w jute.Writer
		w.Int(int32(f.Truncate))
		w.Raw(frame[4 : 4+f.Truncate])
		frame = w.Bytes()
	}
	_, err := c.nc.Write(frame)
	return err == nil
}

func (c *conn) readLoop() {
	defer c.s.wg.Done()
	defer func() {
		c.s.mu.Lock()
		c.s.watches.removeAll(c)
		if c.sess != nil && c.sess.conn == c {
			c.sess.conn = nil
		}
		delete(c.s.conns, c)
		c.s.mu.Unlock()
	}()
	br := bufio.NewReaderSize(c.nc, 4096)
	// A reader that stops for its own reasons lets the queue out first: an "expired" answer or an error reply may be in it.
	if c.handshake(br) {
		for c.next(br) {
		}
	}
	c.closeAfterQueue()
	<-c.done
}

// next serves one request frame.
func (c *conn) next(br *bufio.Reader) bool {
	if !c.waitRoom() {
		return false
	}
	frame, held, err := c.readFrame(br)
	defer func() {
		if held > 0 {
			c.s.incoming.give(held)
		}
	}()
	if err != nil {
		c.drop()
		return false
	}
	f, ok := c.gate()
	if !ok {
		return false
	}
	if f.Mode == BlackHole {
		return c.swallow(br)
	}
	r := jute.NewReader(frame)
	var h jute.RequestHeader
	h.Decode(r)
	if r.Err() != nil {
		c.s.log.Warn("connection dropped: a request without a header", "remote", c.remote, "err", r.Err())
		return false
	}
	if f.StallPings && h.Op == jute.OpPing {
		return true
	}
	if f.Mode == Leaderless && needsLeader(h.Op) {
		if f, ok = c.waitChange(Leaderless, Frozen); !ok || f.Mode != Healthy {
			return false
		}
	}
	return c.process(h, r, f)
}

// swallow throws away what arrives until the connection ends; the stream is lost from here on.
func (c *conn) swallow(br *bufio.Reader) bool {
	c.lostBytes.Store(true)
	buf := make([]byte, 4096)
	for {
		if _, err := br.Read(buf); err != nil {
			c.drop()
			return false
		}
	}
}

// handshake answers a four-letter word or opens the session.
func (c *conn) handshake(br *bufio.Reader) bool {
	c.nc.SetReadDeadline(time.Now().Add(c.s.cfg.HandshakeTimeout))
	var head [4]byte
	for i := range head {
		b, err := br.ReadByte()
		if err != nil {
			c.drop()
			return false
		}
		head[i] = b
	}
	f, ok := c.gate()
	if !ok {
		return false
	}
	if f.Mode == BlackHole {
		return c.swallow(br)
	}
	if c.word(string(head[:]), f) {
		return false
	}
	frame, err := jute.ReadFrameBody(br, head, c.s.cfg.MaxFrame+jute.FrameSlack)
	if err != nil {
		c.drop()
		return false
	}
	if f, ok = c.gate(); !ok {
		return false
	}
	var req jute.ConnectRequest
	r := jute.NewReader(frame)
	req.Decode(r)
	if r.Err() != nil {
		c.s.log.Warn("connection dropped: not a handshake", "remote", c.remote, "err", r.Err())
		return false
	}
	c.nc.SetReadDeadline(time.Time{})
	if f.Mode == Leaderless || f.Mode == Silent {
		// The socket stays open and nothing is said. A follower that loses patience closes it.
		if f, ok = c.waitChange(Leaderless, Silent, Frozen); !ok || f.Mode != Healthy {
			return false
		}
	}
	if f.Mode == BlackHole {
		return c.swallow(br)
	}
	if f.Mode == Electing || f.Mode == ReadOnly && !req.ReadOnly {
		c.s.log.Info("handshake refused", "remote", c.remote, "mode", f.Mode)
		return false
	}
	return c.connect(&req, f)
}

// connect opens or resumes a session. Refusals without an answer are the protocol's own.
func (c *conn) connect(req *jute.ConnectRequest, f Fault) bool {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.stats.received++
	c.received++
	if req.LastZxidSeen > s.zxid {
		s.log.Info("refusing session request: the client has seen a later zxid", "remote", c.remote, "client", hexZxid(req.LastZxidSeen), "server", hexZxid(s.zxid))
		return false
	}
	timeout := s.clampTimeout(req.TimeoutMs)
	resp := jute.ConnectResponse{HasReadOnly: req.HasReadOnly}
	switch {
	case f.Mode == ReadOnly:
		// A read-only member tracks no sessions: whatever id the client has is repeated to it.
		c.readOnly, resp.ReadOnly = true, true
		resp.TimeoutMs, resp.SessionID, resp.Password = int32(timeout.Milliseconds()), req.SessionID, passwordOf(req.SessionID)
		c.sess = &session{id: req.SessionID, timeout: timeout, pinned: true, ephemerals: map[string]struct{}{}, conn: c}
	case req.SessionID == 0:
		if len(s.sessions) >= s.cfg.MaxSessions {
			s.log.Warn("handshake refused: too many sessions", "remote", c.remote, "sessions", len(s.sessions))
			return false
		}
		sess := s.newSession(timeout, false)
		c.attach(sess)
		s.touch(sess, c.m)
		resp.TimeoutMs, resp.SessionID, resp.Password = int32(timeout.Milliseconds()), sess.id, passwordOf(sess.id)
		s.log.Info("session opened", "session", hexZxid(sess.id), "remote", c.remote, "timeout", timeout)
	default:
		sess := s.sessions[req.SessionID]
		if sess != nil && sess.conn != nil && sess.conn != c && sess.conn.m == c.m {
			// The old socket of the session on this server goes before the password is looked at.
			sess.conn.drop()
			sess.conn = nil
		}
		if sess == nil || sess.pinned || string(req.Password) != string(passwordOf(sess.id)) {
			s.log.Info("invalid session: it has expired or the password is wrong", "session", hexZxid(req.SessionID), "remote", c.remote)
			resp.Password = make([]byte, 16)
			c.reply(&resp)
			return false
		}
		sess.timeout = timeout
		c.attach(sess)
		s.touch(sess, c.m)
		resp.TimeoutMs, resp.SessionID, resp.Password = int32(timeout.Milliseconds()), sess.id, passwordOf(sess.id)
		s.log.Info("session resumed", "session", hexZxid(sess.id), "remote", c.remote, "timeout", timeout)
	}
	c.reply(&resp)
	return true
}

func (c *conn) attach(sess *session) {
	c.sess = sess
	sess.conn = c
}

func (c *conn) reply(resp *jute.ConnectResponse) {
	var w jute.Writer
	mark := w.BeginFrame()
	resp.Encode(&w)
	w.EndFrame(mark)
	c.s.stats.sent++
	c.sentCount++
	c.send(w.Bytes())
}
