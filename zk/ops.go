package zk

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Stat is a node's metadata; times are milliseconds since 1970.
type Stat = jute.Stat

// ACL is one entry of an access control list.
type ACL = jute.ACL

// Permissions of an ACL.
const (
	PermRead   = jute.PermRead
	PermWrite  = jute.PermWrite
	PermCreate = jute.PermCreate
	PermDelete = jute.PermDelete
	PermAdmin  = jute.PermAdmin
	PermAll    = jute.PermAll
)

// OpenACL lets anybody do anything.
func OpenACL() []ACL { return jute.OpenACL() }

// DigestACL gives perms to whoever proves to be user with password.
func DigestACL(perms int32, user, password string) []ACL {
	return []ACL{{Perms: perms, Scheme: "digest", ID: jute.DigestID(user + ":" + password)}}
}

// AnyVersion matches every version in Set, Delete and their multi forms.
const AnyVersion int32 = -1

// CreateMode is the kind of node to create.
type CreateMode int32

// Create modes. A sequential node gets ten digits behind its name.
const (
	PersistentNode          CreateMode = CreateMode(jute.FlagPersistent)
	EphemeralNode           CreateMode = CreateMode(jute.FlagEphemeral)
	SequentialNode          CreateMode = CreateMode(jute.FlagSequential)
	EphemeralSequentialNode CreateMode = CreateMode(jute.FlagEphemeralSequential)
	ContainerNode           CreateMode = CreateMode(jute.FlagContainer) // removed by the server some time after its last child; ZooKeeper 3.5
)

func (m CreateMode) sequential() bool {
	return m == SequentialNode || m == EphemeralSequentialNode
}

// strip takes the chroot off a path from the server.
func (c *Conn) strip(path string) string {
	root := c.cfg.Chroot
	if root == "" || len(path) < len(root) || path[:len(root)] != root {
		return path
	}
	switch rest := path[len(root):]; {
	case rest == "":
		return "/"
	case rest[0] == '/':
		return rest
	}
	return path
}

// full checks a caller's path and puts the chroot before it.
func (c *Conn) full(path string, sequential bool) (string, error) {
	if err := jute.ValidatePath(path, sequential); err != nil {
		return "", err
	}
	if c.cfg.Chroot == "" {
		return path, nil
	}
	if path == "/" && !sequential {
		return c.cfg.Chroot, nil
	}
	return c.cfg.Chroot + path, nil
}

func (c *Conn) opError(op, path string, err error, began time.Time) *OpError {
	v := c.view.Load()
	return &OpError{Op: op, Path: path, Err: err, State: v.state, Host: v.host, Budget: c.Budget(), Waited: time.Since(began), Attempts: c.ledger.list()}
}

// request describes a call to do.
type request struct {
	name  string // of the operation, for errors
	path  string // the caller's
	op    jute.OpCode
	write bool
	watch *Watch
	ident *AuthInfo
	body  func(*jute.Writer)
	// decode runs on the loop's goroutine, possibly after the caller has left: what it fills in may be read only if do returned nil.
	decode func(*jute.Reader)
}

// do sends a request and waits for its answer. Its error, if any, is an *OpError.
func (c *Conn) do(ctx context.Context, q request) error {
	began := time.Now()
	var w jute.Writer
	q.body(&w)
	if w.Len() > c.cfg.MaxFrame {
		return c.opError(q.name, q.path, &SizeError{w.Len(), c.cfg.MaxFrame}, began)
	}
	if err := ctx.Err(); err != nil {
		return c.opError(q.name, q.path, ctxError(ctx), began)
	}
	k := &call{op: q.op, body: w.Bytes(), idempotent: !q.write, decode: q.decode, watch: q.watch, ident: q.ident, result: make(chan result, 1)}
	select {
	case c.submit <- k:
	case <-ctx.Done():
		return c.opError(q.name, q.path, ctxError(ctx), began)
	case <-c.done:
		return c.opError(q.name, q.path, c.Err(), began)
	}
	var r result
	select {
	case r = <-k.result:
	case <-ctx.Done():
		select {
		case c.cancels <- k:
		case <-c.done:
		}
		// The loop answers at once, with the reply if that came first.
		if r = <-k.result; r.err != nil {
			r.err = ctxError(ctx)
		}
	}
	if r.err == nil && r.code == jute.OK {
		return nil
	}
	var oe *OpError
	if r.err == nil {
		oe = c.opError(q.name, q.path, r.code, began)
		oe.Answered = true
	} else {
		oe = c.opError(q.name, q.path, r.err, began)
		oe.MaybeApplied = q.write && r.sent
	}
	oe.Host = r.host
	return oe
}

func pathWatch(path string, watch bool) func(*jute.Writer) {
	q := jute.PathWatch{Path: path, Watch: watch}
	return q.Encode
}

// Get returns a node's data and metadata.
func (c *Conn) Get(ctx context.Context, path string) ([]byte, Stat, error) {
	return c.get(ctx, path, nil)
}

// GetW is Get with a one-shot watch on the node's data and its deletion. If the node does not exist there is no watch; see ExistsW.
func (c *Conn) GetW(ctx context.Context, path string) ([]byte, Stat, *Watch, error) {
	w := c.newWatch("", kindData)
	data, stat, err := c.get(ctx, path, w)
	if err != nil {
		return nil, stat, nil, err
	}
	return data, stat, w, nil
}

func (c *Conn) get(ctx context.Context, path string, w *Watch) ([]byte, Stat, error) {
	full, err := c.full(path, false)
	if err != nil {
		return nil, Stat{}, c.opError("get", path, err, time.Now())
	}
	if w != nil {
		w.path = full
	}
	var data []byte
	var stat Stat
	err = c.do(ctx, request{name: "get", path: path, op: jute.OpGetData, watch: w, body: pathWatch(full, w != nil), decode: func(r *jute.Reader) {
		data = r.Buffer()
		stat.Decode(r)
	}})
	if err != nil {
		return nil, Stat{}, err
	}
	return data, stat, nil
}

// Exists returns a node's metadata and whether it exists; a missing node is no error.
func (c *Conn) Exists(ctx context.Context, path string) (bool, Stat, error) {
	return c.exists(ctx, path, nil)
}

// ExistsW is Exists with a one-shot watch: on the node's data and deletion if it exists, on its creation otherwise.
func (c *Conn) ExistsW(ctx context.Context, path string) (bool, Stat, *Watch, error) {
	w := c.newWatch("", kindExist)
	ok, stat, err := c.exists(ctx, path, w)
	if err != nil {
		return false, stat, nil, err
	}
	return ok, stat, w, nil
}

func (c *Conn) exists(ctx context.Context, path string, w *Watch) (bool, Stat, error) {
	full, err := c.full(path, false)
	if err != nil {
		return false, Stat{}, c.opError("exists", path, err, time.Now())
	}
	if w != nil {
		w.path = full
	}
	var stat Stat
	err = c.do(ctx, request{name: "exists", path: path, op: jute.OpExists, watch: w, body: pathWatch(full, w != nil), decode: stat.Decode})
	if isNoNode(err) {
		return false, Stat{}, nil
	}
	if err != nil {
		return false, Stat{}, err
	}
	return true, stat, nil
}

// Children returns the names of a node's children, in no order, and the node's metadata.
func (c *Conn) Children(ctx context.Context, path string) ([]string, Stat, error) {
	return c.children(ctx, path, nil)
}

// ChildrenW is Children with a one-shot watch on the list of children and on the node's deletion.
func (c *Conn) ChildrenW(ctx context.Context, path string) ([]string, Stat, *Watch, error) {
	w := c.newWatch("", kindChild)
	names, stat, err := c.children(ctx, path, w)
	if err != nil {
		return nil, stat, nil, err
	}
	return names, stat, w, nil
}

func (c *Conn) children(ctx context.Context, path string, w *Watch) ([]string, Stat, error) {
	full, err := c.full(path, false)
	if err != nil {
		return nil, Stat{}, c.opError("children", path, err, time.Now())
	}
	if w != nil {
		w.path = full
	}
	var names []string
	var stat Stat
	err = c.do(ctx, request{name: "children", path: path, op: jute.OpGetChildren2, watch: w, body: pathWatch(full, w != nil), decode: func(r *jute.Reader) {
		names = r.Strings()
		stat.Decode(r)
	}})
	if err != nil {
		return nil, Stat{}, err
	}
	return names, stat, nil
}

// Create adds a node and returns its path, which differs from path if the mode is sequential. A nil acl lets anybody do anything.
// After ErrConnectionLoss a sequential node may exist under a name nobody was told.
func (c *Conn) Create(ctx context.Context, path string, data []byte, mode CreateMode, acl []ACL) (string, error) {
	full, err := c.full(path, mode.sequential())
	if err != nil {
		return "", c.opError("create", path, err, time.Now())
	}
	op := jute.OpCreate
	if mode == ContainerNode {
		op = jute.OpCreateContainer
	}
	if len(acl) == 0 {
		acl = OpenACL()
	}
	q := jute.CreateRequest{Path: full, Data: data, ACL: acl, Flags: int32(mode)}
	var made string
	err = c.do(ctx, request{
		name: "create", path: path, op: op, write: true,
		body:   func(w *jute.Writer) { q.Encode(w, op) },
		decode: func(r *jute.Reader) { made = r.String() },
	})
	if err != nil {
		return "", err
	}
	return c.strip(made), nil
}

// Set replaces a node's data if its version is the one given (or AnyVersion) and returns the new metadata.
func (c *Conn) Set(ctx context.Context, path string, data []byte, version int32) (Stat, error) {
	full, err := c.full(path, false)
	if err != nil {
		return Stat{}, c.opError("set", path, err, time.Now())
	}
	q := jute.SetDataRequest{Path: full, Data: data, Version: version}
	return c.statCall(ctx, request{name: "set", path: path, op: jute.OpSetData, write: true, body: q.Encode})
}

// Delete removes a node without children if its version is the one given (or AnyVersion).
func (c *Conn) Delete(ctx context.Context, path string, version int32) error {
	full, err := c.full(path, false)
	if err != nil {
		return c.opError("delete", path, err, time.Now())
	}
	q := jute.PathVersion{Path: full, Version: version}
	return c.do(ctx, request{name: "delete", path: path, op: jute.OpDelete, write: true, body: q.Encode})
}

// GetACL returns a node's access control list and metadata.
func (c *Conn) GetACL(ctx context.Context, path string) ([]ACL, Stat, error) {
	full, err := c.full(path, false)
	if err != nil {
		return nil, Stat{}, c.opError("getACL", path, err, time.Now())
	}
	var acl []ACL
	var stat Stat
	err = c.do(ctx, request{name: "getACL", path: path, op: jute.OpGetACL, body: func(w *jute.Writer) { w.String(full) }, decode: func(r *jute.Reader) {
		acl = jute.DecodeACLs(r)
		stat.Decode(r)
	}})
	if err != nil {
		return nil, Stat{}, err
	}
	return acl, stat, nil
}

// SetACL replaces a node's access control list if its ACL version is the one given (or AnyVersion).
func (c *Conn) SetACL(ctx context.Context, path string, acl []ACL, version int32) (Stat, error) {
	full, err := c.full(path, false)
	if err != nil {
		return Stat{}, c.opError("setACL", path, err, time.Now())
	}
	q := jute.SetACLRequest{Path: full, ACL: acl, Version: version}
	return c.statCall(ctx, request{name: "setACL", path: path, op: jute.OpSetACL, write: true, body: q.Encode})
}

func (c *Conn) statCall(ctx context.Context, q request) (Stat, error) {
	var stat Stat
	q.decode = stat.Decode
	if err := c.do(ctx, q); err != nil {
		return Stat{}, err
	}
	return stat, nil
}

// Sync waits until the server has caught up with the leader, so that a read after it sees everything written before it.
func (c *Conn) Sync(ctx context.Context, path string) error {
	full, err := c.full(path, false)
	if err != nil {
		return c.opError("sync", path, err, time.Now())
	}
	return c.do(ctx, request{name: "sync", path: path, op: jute.OpSync, body: func(w *jute.Writer) { w.String(full) }})
}

// AddWatch registers a persistent watch on a node, which need not exist. It needs ZooKeeper 3.6; older servers answer ErrUnimplemented.
// Within a Conn, a path has persistent watches of one mode
// only, since older servers keep one per client and path.
func (c *Conn) AddWatch(ctx context.Context, path string, mode AddMode) (*Watch, error) {
	full, err := c.full(path, false)
	if err != nil {
		return nil, c.opError("addWatch", path, err, time.Now())
	}
	kind := kindPersistent
	switch mode {
	case Persistent:
	case Recursive:
		kind = kindRecursive
	default:
		return nil, c.opError("addWatch", path, fmt.Errorf("mode %d is neither Persistent nor Recursive", mode), time.Now())
	}
	w := c.newWatch(full, kind)
	q := jute.PathMode{Path: full, Mode: int32(mode)}
	if err := c.do(ctx, request{name: "addWatch", path: path, op: jute.OpAddWatch, watch: w, body: q.Encode}); err != nil {
		return nil, err
	}
	return w, nil
}

// AddAuth offers another identity, now and on every later connection. A server that rejects it ends the Conn with ErrAuthFailed.
func (c *Conn) AddAuth(ctx context.Context, scheme string, auth []byte) error {
	a := &AuthInfo{Scheme: scheme, Auth: append([]byte(nil), auth...)}
	return c.do(ctx, request{name: "addAuth", op: jute.OpAuth, ident: a, body: func(w *jute.Writer) { w.Raw(a.encode()) }})
}
