package zkserver

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// needsLeader says which requests a follower cannot answer alone.
func needsLeader(op jute.OpCode) bool {
	switch op {
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL, jute.OpDelete, jute.OpSetData, jute.OpSetACL,
		jute.OpMulti, jute.OpSync, jute.OpCheck, jute.OpReconfig, jute.OpCloseSession:
		return true
	}
	return false
}

// body is what a request produced: an error code or a record to put behind the reply header.
type body struct {
	zxid int64 // of a write; 0: the last one processed
	code jute.Code
	enc  func(*jute.Writer)
	last bool // close the connection after the reply
}

// process applies one request and queues its reply, all under one hold of Server.mu, so that events and replies leave in the
// order the protocol promises.
func (c *conn) process(h jute.RequestHeader, r *jute.Reader, f Fault) bool {
	s := c.s
	began := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.stats.received++
	c.received++
	c.lastOp, c.lastXid = h.Op, h.Xid
	var b body
	switch {
	case h.Op == jute.OpAuth:
		var ok bool
		if b, ok = c.doAuth(r); !ok {
			return false
		}
	case !c.readOnly && s.sessions[c.sess.id] != c.sess:
		return false // it ended a moment ago
	case !c.readOnly && c.sess.conn != c:
		b = body{code: jute.ErrSessionMoved}
	case c.readOnly && needsLeader(h.Op) && h.Op != jute.OpSync && h.Op != jute.OpCloseSession:
		b = body{code: jute.ErrNotReadOnly}
	default:
		if !c.readOnly {
			s.touch(c.sess, c.m)
		}
		b = c.apply(h.Op, r)
	}
	var w jute.Writer
	mark := w.BeginFrame()
	rh := jute.ReplyHeader{Xid: h.Xid, Zxid: b.zxid, Err: b.code}
	switch {
	case h.Op == jute.OpAuth || h.Op == jute.OpSASL:
		rh.Zxid = 0
	case b.zxid == 0 && b.code == jute.ErrUnimplemented:
		rh.Zxid = -1
	case b.zxid == 0:
		rh.Zxid = s.zxid
	}
	rh.Encode(&w)
	if b.code == jute.OK && b.enc != nil {
		b.enc(&w)
	}
	w.EndFrame(mark)
	s.stats.sent++
	c.sentCount++
	c.lastZxid = rh.Zxid
	s.noteLatency(time.Since(began))
	c.send(w.Bytes())
	return !b.last
}

func (s *Server) noteLatency(d time.Duration) {
	st := &s.stats
	if st.latencyCount == 0 || d < st.latencyMin {
		st.latencyMin = d
	}
	st.latencyMax = max(st.latencyMax, d)
	st.latencySum += d
	st.latencyCount++
}

// doAuth reports false for a body that cannot be read, which is not answered.
func (c *conn) doAuth(r *jute.Reader) (body, bool) {
	var a jute.AuthPacket
	a.Decode(r)
	if r.Err() != nil {
		return body{}, false
	}
	if !c.authenticate(a.Scheme, a.Auth) {
		c.s.stats.authFailed++
		c.s.log.Info("authentication failed", "remote", c.remote, "scheme", a.Scheme)
		return body{code: jute.ErrAuthFailed, last: true}, true
	}
	return body{}, true
}

// fail is the reply to a body that cannot be read or a path that is none.
func fail(code jute.Code) body { return body{code: code} }

// malformed is the reply to a write whose body cannot be read; it consumes a zxid like any other write.
func (c *conn) malformed() body {
	return body{zxid: c.s.begin().zxid, code: jute.ErrMarshalling}
}

func encString(v string) func(*jute.Writer) { return func(w *jute.Writer) { w.String(v) } }

func (c *conn) apply(op jute.OpCode, r *jute.Reader) body {
	s := c.s
	switch op {
	case jute.OpPing:
		return body{}
	case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
		var q jute.CreateRequest
		q.Decode(r, op)
		if r.Err() != nil {
			return c.malformed()
		}
		return c.doCreate(op, &q)
	case jute.OpDelete:
		var q jute.PathVersion
		q.Decode(r)
		if r.Err() != nil {
			return c.malformed()
		}
		t := s.begin()
		return t.end(t.delete(c, q.Path, q.Version), nil)
	case jute.OpSetData:
		var q jute.SetDataRequest
		q.Decode(r)
		if r.Err() != nil {
			return c.malformed()
		}
		t := s.begin()
		n, code := t.setData(c, q.Path, q.Data, q.Version)
		return t.end(code, n)
	case jute.OpSetACL:
		var q jute.SetACLRequest
		q.Decode(r)
		if r.Err() != nil {
			return c.malformed()
		}
		t := s.begin()
		n, code := t.setACL(c, q.Path, q.ACL, q.Version)
		return t.end(code, n)
	case jute.OpMulti:
		return c.doMulti(r)
	case jute.OpMultiRead:
		return c.doMultiRead(r)
	case jute.OpExists, jute.OpGetData, jute.OpGetChildren, jute.OpGetChildren2:
		var q jute.PathWatch
		q.Decode(r)
		if r.Err() != nil {
			return fail(jute.ErrMarshalling)
		}
		return c.doRead(op, q)
	case jute.OpGetACL, jute.OpSync, jute.OpGetEphemerals, jute.OpGetAllChildrenNumber:
		path := r.String()
		if r.Err() != nil {
			return fail(jute.ErrMarshalling)
		}
		return c.doPath(op, path)
	case jute.OpSetWatches, jute.OpSetWatches2:
		var q jute.SetWatches
		q.Decode(r, op)
		if r.Err() != nil {
			return fail(jute.ErrMarshalling)
		}
		s.setWatches(c, &q)
		return body{}
	case jute.OpAddWatch, jute.OpCheckWatches, jute.OpRemoveWatches:
		var q jute.PathMode
		q.Decode(r)
		if r.Err() != nil {
			return fail(jute.ErrMarshalling)
		}
		return c.doWatch(op, q)
	case jute.OpReconfig:
		// Joining, leaving and new members, and the version they build on. The members are fixed, as on a server with reconfiguration off.
		_, _, _, _ = r.String(), r.String(), r.String(), r.Long()
		if r.Err() != nil {
			return fail(jute.ErrMarshalling)
		}
		return body{zxid: s.begin().zxid, code: jute.ErrReconfigDisabled}
	case jute.OpWhoAmI:
		return c.doWhoAmI()
	case jute.OpSASL:
		// A server without SASL answers with no token, and the client goes on unauthenticated.
		return body{enc: func(w *jute.Writer) { w.Buffer(nil) }}
	case jute.OpCloseSession:
		if !c.readOnly {
			c.sess.conn = nil
			s.endSession(c.sess, "closed by the client")
		}
		return body{last: true}
	}
	return body{code: jute.ErrUnimplemented, last: true} // and ZooKeeper closes
}

// end turns the outcome of a single write into its reply.
func (t *tx) end(code jute.Code, n *node) body {
	if code == jute.OK {
		code = t.commit()
	} else {
		t.rollback()
	}
	b := body{zxid: t.zxid, code: code}
	if n != nil && code == jute.OK {
		stat := n.stat()
		b.enc = stat.Encode
	}
	return b
}

func (c *conn) doCreate(op jute.OpCode, q *jute.CreateRequest) body {
	t := c.s.begin()
	path, n, code := t.create(c, q.Path, q.Data, q.ACL, q.Flags, c.sess.id)
	b := t.end(code, nil)
	if b.code != jute.OK {
		return b
	}
	stat := n.stat()
	b.enc = func(w *jute.Writer) {
		w.String(path)
		if op != jute.OpCreate {
			stat.Encode(w)
		}
	}
	return b
}

func (c *conn) doMulti(r *jute.Reader) body {
	ops := jute.DecodeMulti(r)
	if r.Err() != nil {
		return c.malformed()
	}
	for i := range ops {
		switch ops[i].Code {
		case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer:
			if checkFlags(ops[i].Flags) == jute.ErrBadArguments {
				return c.malformed()
			}
		case jute.OpGetData, jute.OpGetChildren:
			return c.malformed()
		}
	}
	zxid, results, _ := c.s.multi(c, ops, c.sess.id)
	return body{zxid: zxid, enc: func(w *jute.Writer) { jute.EncodeMultiResults(w, results) }}
}

func (c *conn) doMultiRead(r *jute.Reader) body {
	ops := jute.DecodeMulti(r)
	if r.Err() != nil {
		return fail(jute.ErrMarshalling)
	}
	results := make([]jute.OpResult, len(ops))
	size := 0
	for i := range ops {
		o, res := &ops[i], &results[i]
		res.Code = o.Code
		n := c.s.nodes[o.Path]
		switch {
		case o.Code != jute.OpGetData && o.Code != jute.OpGetChildren:
			return fail(jute.ErrMarshalling)
		case n == nil:
			res.Err = jute.ErrNoNode
		case !c.s.allowed(c, n.acl, jute.PermRead):
			res.Err = jute.ErrNoAuth
		case o.Code == jute.OpGetData:
			res.Data, res.Stat = n.data, n.stat()
			size += len(n.data)
		default:
			res.Children = n.childNames()
			for _, ch := range res.Children {
				size += len(ch) + 4
			}
		}
		if size > 16*c.s.cfg.MaxFrame {
			return fail(jute.ErrBadArguments)
		}
	}
	return body{enc: func(w *jute.Writer) { jute.EncodeMultiResults(w, results) }}
}

func (c *conn) doRead(op jute.OpCode, q jute.PathWatch) body {
	s := c.s // reads do not check paths, in ZooKeeper either: what is no path is no node
	n := s.nodes[q.Path]
	if n == nil {
		if op == jute.OpExists && q.Watch {
			s.watches.add(watchData, q.Path, c, oneShot)
		}
		return fail(jute.ErrNoNode)
	}
	if op != jute.OpExists && !s.allowed(c, n.acl, jute.PermRead) {
		return fail(jute.ErrNoAuth)
	}
	if q.Watch {
		kind := watchData
		if op == jute.OpGetChildren || op == jute.OpGetChildren2 {
			kind = watchChild
		}
		s.watches.add(kind, q.Path, c, oneShot)
	}
	stat := n.stat()
	switch op {
	case jute.OpExists:
		return body{enc: stat.Encode}
	case jute.OpGetData:
		return body{enc: func(w *jute.Writer) { w.Buffer(n.data); stat.Encode(w) }}
	case jute.OpGetChildren:
		return body{enc: func(w *jute.Writer) { w.Strings(n.childNames()) }}
	default:
		return body{enc: func(w *jute.Writer) { w.Strings(n.childNames()); stat.Encode(w) }}
	}
}

func (c *conn) doPath(op jute.OpCode, path string) body {
	s := c.s
	switch op {
	case jute.OpSync:
		return body{enc: encString(path)}
	case jute.OpGetEphemerals:
		var out []string
		for p := range c.sess.ephemerals {
			if strings.HasPrefix(p, path) {
				out = append(out, p)
			}
		}
		slices.Sort(out)
		return body{enc: func(w *jute.Writer) { w.Strings(out) }}
	}
	n := s.nodes[path]
	switch {
	case jute.ValidatePath(path, false) != nil:
		return fail(jute.ErrBadArguments)
	case n == nil:
		return fail(jute.ErrNoNode)
	case op == jute.OpGetACL:
		if !s.allowed(c, n.acl, jute.PermRead|jute.PermAdmin) {
			return fail(jute.ErrNoAuth)
		}
		stat, acl := n.stat(), n.acl
		if !s.allowed(c, n.acl, jute.PermAdmin) {
			acl = maskDigests(acl)
		}
		return body{enc: func(w *jute.Writer) { jute.EncodeACLs(w, acl); stat.Encode(w) }}
	}
	if !s.allowed(c, n.acl, jute.PermRead) {
		return fail(jute.ErrNoAuth)
	}
	below, prefix := int32(0), strings.TrimSuffix(path, "/")+"/"
	for p := range s.nodes {
		if p != path && strings.HasPrefix(p, prefix) {
			below++
		}
	}
	return body{enc: func(w *jute.Writer) { w.Int(below) }}
}

// maskDigests hides password hashes from those who may read a node but not administer it.
func maskDigests(acl []jute.ACL) []jute.ACL {
	out := slices.Clone(acl)
	for i := range out {
		if out[i].Scheme == "digest" {
			user, _, _ := strings.Cut(out[i].ID, ":")
			out[i].ID = user + ":x"
		}
	}
	return out
}

func (c *conn) doWatch(op jute.OpCode, q jute.PathMode) body {
	w := c.s.watches // these do not check paths: what is no path is not watched, or watched for nothing
	if op == jute.OpAddWatch {
		switch q.Mode {
		case jute.WatchPersistent:
			w.addLasting(q.Path, c, persistent)
		case jute.WatchPersistentRecursive:
			w.addLasting(q.Path, c, recursive)
		default:
			return fail(jute.ErrMarshalling)
		}
		return body{enc: func(w *jute.Writer) { w.Int(0) }}
	}
	sel, ok := w.selectionOf(q.Mode)
	if !ok {
		return fail(jute.ErrMarshalling)
	}
	if !w.find(sel, q.Path, c, op == jute.OpRemoveWatches) {
		return fail(jute.ErrNoWatcher)
	}
	return body{}
}

func (c *conn) doWhoAmI() body {
	ids := slices.Clone(c.auth)
	return body{enc: func(w *jute.Writer) {
		w.Int(int32(len(ids)))
		for _, id := range ids {
			user := id.id
			if id.scheme == "digest" {
				user, _, _ = strings.Cut(user, ":")
			}
			w.String(id.scheme)
			w.String(user)
		}
	}}
}
