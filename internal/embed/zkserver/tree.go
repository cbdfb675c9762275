package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// node is one znode. All fields are guarded by Server.mu; data and acl are replaced, never changed in place.
type node struct {
	data      []byte
	acl       []jute.ACL
	czxid     int64
	mzxid     int64
	pzxid     int64
	ctime     int64
	mtime     int64
	version   int32
	aversion  int32
	created   int32 // children ever created: the sequence counter, and half of cversion
	owner     int64 // session of an ephemeral node
	container bool
	children  map[string]struct{}
}

func (n *node) stat() jute.Stat {
	return jute.Stat{
		Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime,
		Version: n.version, Cversion: 2*n.created - int32(len(n.children)), Aversion: n.aversion,
		EphemeralOwner: n.owner, DataLength: int32(len(n.data)), NumChildren: int32(len(n.children)), Pzxid: n.pzxid,
	}
}

// childNames returns the children in order; a real server returns them in any order.
func (n *node) childNames() []string {
	return slices.Sorted(maps.Keys(n.children))
}

type event struct {
	typ  jute.EventType
	path string
}

// tx is one write: it applies operations to the tree at once, remembers how to take them back, and collects the events and the
// changes to persist. It lives under one hold of Server.mu.
type tx struct {
	s       *Server
	zxid    int64
	now     int64
	undo    []func()
	events  []event
	touched []string // paths whose persistent state may have changed, in order
}

// begin consumes a zxid; failed writes consume one too, as in ZooKeeper.
func (s *Server) begin() *tx {
	s.zxid++
	return &tx{s: s, zxid: s.zxid, now: s.cfg.Now().UnixMilli()}
}

func (t *tx) rollback() {
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.undo, t.events, t.touched = nil, nil, nil
}

// commit persists, then lets the events out. If the persister refuses, nothing has happened.
func (t *tx) commit() jute.Code {
	if err := t.persist(); err != nil {
		t.s.log.Error("persisting a write failed, it is taken back", "zxid", hexZxid(t.zxid), "err", err)
		t.rollback()
		return jute.ErrSystem
	}
	for _, e := range t.events {
		t.s.fire(e)
	}
	return jute.OK
}

func splitPath(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	if i == 0 {
		return "/", path[1:]
	}
	return path[:i], path[i+1:]
}

func joinPath(parent, name string) string {
	if parent == "/" {
		return "/" + name
	}
	return parent + "/" + name
}

// create adds a node. who is nil for the embedder, who may do everything.
func (t *tx) create(who *conn, path string, data []byte, acl []jute.ACL, flags int32, owner int64) (string, *node, jute.Code) {
	s := t.s
	// The order of these checks is ZooKeeper's: a path with a missing parent is "no node" before it is "not a path".
	if !strings.HasPrefix(path, "/") || len(data) > s.cfg.MaxFrame {
		return "", nil, jute.ErrBadArguments
	}
	code := checkFlags(flags)
	if code != jute.OK {
		return "", nil, code
	}
	sequential := flags&jute.FlagSequential != 0 && flags < jute.FlagContainer
	if acl, code = s.fixACL(who, acl); code != jute.OK {
		return "", nil, code
	}
	parentPath, name := splitPath(path)
	parent := s.nodes[parentPath]
	if parent == nil {
		return "", nil, jute.ErrNoNode
	}
	if !s.allowed(who, parent.acl, jute.PermCreate) {
		return "", nil, jute.ErrNoAuth
	}
	if sequential {
		name += fmt.Sprintf("%010d", parent.created)
		path = joinPath(parentPath, name)
	}
	if jute.ValidatePath(path, false) != nil {
		return "", nil, jute.ErrBadArguments
	}
	if path == "/" || s.nodes[path] != nil {
		return "", nil, jute.ErrNodeExists
	}
	if parent.owner != 0 {
		return "", nil, jute.ErrNoChildrenForEphemerals
	}
	n := &node{
		data: clone(data), acl: acl, czxid: t.zxid, mzxid: t.zxid, pzxid: t.zxid, ctime: t.now, mtime: t.now,
		container: flags == jute.FlagContainer,
	}
	if t.outgrown(who, n.weight(path)) {
		return "", nil, jute.ErrQuotaExceeded
	}
	if flags == jute.FlagEphemeral || flags == jute.FlagEphemeralSequential {
		sess := s.sessions[owner]
		if sess == nil {
			return "", nil, jute.ErrSessionExpired
		}
		n.owner = owner
		sess.ephemerals[path] = struct{}{}
		t.undo = append(t.undo, func() { delete(sess.ephemerals, path) })
	}
	oldPzxid := parent.pzxid
	if parent.children == nil {
		parent.children = map[string]struct{}{}
	}
	parent.children[name] = struct{}{}
	parent.created++
	parent.pzxid = t.zxid
	s.nodes[path] = n
	t.weigh(n.weight(path))
	s.bytes += int64(len(path) + len(n.data))
	t.undo = append(t.undo, func() {
		delete(s.nodes, path)
		s.bytes -= int64(len(path) + len(n.data))
		delete(parent.children, name)
		parent.created--
		parent.pzxid = oldPzxid
	})
	t.events = append(t.events, event{jute.EventCreated, path}, event{jute.EventChildrenChanged, parentPath})
	if n.owner == 0 {
		t.touched = append(t.touched, parentPath, path)
	}
	return path, n, jute.OK
}

// checkFlags: a TTL needs extended types, which are not offered (nor are they by ZooKeeper's default configuration).
func checkFlags(flags int32) jute.Code {
	switch {
	case flags < 0 || flags > jute.FlagPersistentSequentialTTL:
		return jute.ErrBadArguments
	case flags > jute.FlagContainer:
		return jute.ErrUnimplemented
	}
	return jute.OK
}

// reserved nodes cannot be deleted.
func reserved(path string) bool {
	switch path {
	case "/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota":
		return true
	}
	return false
}

func (t *tx) delete(who *conn, path string, version int32) jute.Code {
	s := t.s
	if jute.ValidatePath(path, false) != nil || reserved(path) {
		return jute.ErrBadArguments
	}
	n := s.nodes[path]
	if n == nil {
		return jute.ErrNoNode
	}
	parentPath, name := splitPath(path)
	parent := s.nodes[parentPath]
	if !s.allowed(who, parent.acl, jute.PermDelete) {
		return jute.ErrNoAuth
	}
	if version != -1 && version != n.version {
		return jute.ErrBadVersion
	}
	if len(n.children) > 0 {
		return jute.ErrNotEmpty
	}
	sess := s.sessions[n.owner]
	if n.owner == 0 {
		sess = nil
	}
	oldPzxid := parent.pzxid
	delete(s.nodes, path)
	t.weigh(-n.weight(path))
	s.bytes -= int64(len(path) + len(n.data))
	delete(parent.children, name)
	parent.pzxid = t.zxid
	if sess != nil {
		delete(sess.ephemerals, path)
	}
	t.undo = append(t.undo, func() {
		s.nodes[path] = n
		s.bytes += int64(len(path) + len(n.data))
		parent.children[name] = struct{}{}
		parent.pzxid = oldPzxid
		if sess != nil {
			sess.ephemerals[path] = struct{}{}
		}
	})
	t.events = append(t.events, event{jute.EventDeleted, path}, event{jute.EventChildrenChanged, parentPath})
	if n.owner == 0 {
		t.touched = append(t.touched, path, parentPath)
	}
	return jute.OK
}

func (t *tx) setData(who *conn, path string, data []byte, version int32) (*node, jute.Code) {
	s := t.s
	if jute.ValidatePath(path, false) != nil || len(data) > s.cfg.MaxFrame {
		return nil, jute.ErrBadArguments
	}
	n := s.nodes[path]
	if n == nil {
		return nil, jute.ErrNoNode
	}
	if !s.allowed(who, n.acl, jute.PermWrite) {
		return nil, jute.ErrNoAuth
	}
	if version != -1 && version != n.version {
		return nil, jute.ErrBadVersion
	}
	oldData, oldMzxid, oldMtime := n.data, n.mzxid, n.mtime
	if t.outgrown(who, int64(len(data)-len(oldData))) {
		return nil, jute.ErrQuotaExceeded
	}
	t.weigh(int64(len(data) - len(oldData)))
	n.data, n.mzxid, n.mtime = clone(data), t.zxid, t.now
	n.version++
	s.bytes += int64(len(n.data) - len(oldData))
	t.undo = append(t.undo, func() {
		s.bytes -= int64(len(n.data) - len(oldData))
		n.data, n.mzxid, n.mtime = oldData, oldMzxid, oldMtime
		n.version--
	})
	t.events = append(t.events, event{jute.EventDataChanged, path})
	if n.owner == 0 {
		t.touched = append(t.touched, path)
	}
	return n, jute.OK
}

func (t *tx) setACL(who *conn, path string, acl []jute.ACL, version int32) (*node, jute.Code) {
	s := t.s
	if jute.ValidatePath(path, false) != nil {
		return nil, jute.ErrBadArguments
	}
	acl, code := s.fixACL(who, acl)
	if code != jute.OK {
		return nil, code
	}
	n := s.nodes[path]
	if n == nil {
		return nil, jute.ErrNoNode
	}
	if !s.allowed(who, n.acl, jute.PermAdmin) {
		return nil, jute.ErrNoAuth
	}
	if version != -1 && version != n.aversion {
		return nil, jute.ErrBadVersion
	}
	old := n.acl
	more := (&node{acl: acl}).weight("") - (&node{acl: old}).weight("")
	if t.outgrown(who, more) {
		return nil, jute.ErrQuotaExceeded
	}
	t.weigh(more)
	n.acl = acl
	n.aversion++
	t.undo = append(t.undo, func() { n.acl = old; n.aversion-- })
	if n.owner == 0 {
		t.touched = append(t.touched, path)
	}
	return n, jute.OK
}

func (s *Server) check(who *conn, path string, version int32) jute.Code {
	n := s.nodes[path]
	switch {
	case jute.ValidatePath(path, false) != nil:
		return jute.ErrBadArguments
	case n == nil:
		return jute.ErrNoNode
	case !s.allowed(who, n.acl, jute.PermRead):
		return jute.ErrNoAuth
	case version != -1 && version != n.version:
		return jute.ErrBadVersion
	}
	return jute.OK
}

// multi applies all operations or none. The results are what goes on the wire either way.
func (s *Server) multi(who *conn, ops []jute.Op, owner int64) (int64, []jute.OpResult, jute.Code) {
	t := s.begin()
	results := make([]jute.OpResult, len(ops))
	failed := -1
	for i := range ops {
		o, r := &ops[i], &results[i]
		r.Code = o.Code
		var n *node
		switch o.Code {
		case jute.OpCreate, jute.OpCreate2, jute.OpCreateContainer, jute.OpCreateTTL:
			r.Path, n, r.Err = t.create(who, o.Path, o.Data, o.ACL, o.Flags, owner)
		case jute.OpDelete:
			r.Err = t.delete(who, o.Path, o.Version)
		case jute.OpSetData:
			n, r.Err = t.setData(who, o.Path, o.Data, o.Version)
		case jute.OpCheck:
			r.Err = s.check(who, o.Path, o.Version)
		default:
			r.Err = jute.ErrUnimplemented
		}
		if r.Err != jute.OK {
			failed = i
			break
		}
		if n != nil {
			r.Stat = n.stat()
		}
	}
	code := jute.OK
	if failed >= 0 {
		code = results[failed].Err
		t.rollback()
	} else if c := t.commit(); c != jute.OK {
		code, failed = c, 0
		results[0].Err = c
	}
	if failed >= 0 {
		for i := range results {
			switch {
			case i < failed:
				results[i] = jute.OpResult{Code: jute.OpError}
			case i == failed:
				results[i] = jute.OpResult{Code: jute.OpError, Err: code}
			default:
				results[i] = jute.OpResult{Code: jute.OpError, Err: jute.ErrRuntimeInconsistency}
			}
		}
	}
	return t.zxid, results, code
}

// clone copies data out of the frame it arrived in and keeps nil apart from empty.
func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}

func hexZxid(z int64) string { return fmt.Sprintf("0x%x", uint64(z)) }
