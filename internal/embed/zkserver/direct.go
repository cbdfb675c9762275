package zkserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// CreateOptions modifies Create. The zero value creates a persistent node that anybody may do anything with.
type CreateOptions struct {
	// Owner makes the node ephemeral: it lives as long as this session (of OpenSession, or a client's).
	Owner int64
	// Sequential appends ten digits to the path.
	Sequential bool
	// Parents creates missing parents, persistent and empty.
	Parents bool
	// ACL is stored as it is. Default: world:anyone may do everything.
	ACL []jute.ACL
}

// pathErr names the operation and the node; errors.Is finds the jute.Code.
func pathErr(op, path string, code jute.Code) error {
	if code == jute.OK {
		return nil
	}
	return fmt.Errorf("zkserver: %s %q: %w", op, path, code)
}

// Create adds a node and returns its path, which differs from path if it is sequential. Watches fire as for a client's write.
// errors.Is recognises jute.ErrNodeExists, jute.ErrNoNode (no parent), jute.ErrNoChildrenForEphemerals, jute.ErrSessionExpired (no such owner),
// jute.ErrBadArguments (not a path) and jute.ErrSystem (the Persister refused).
func (s *Server) Create(path string, data []byte, o CreateOptions) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.begin()
	if o.Parents && jute.ValidatePath(path, o.Sequential) == nil {
		for i := 1; i < len(path); i++ {
			if path[i] != '/' || s.nodes[path[:i]] != nil {
				continue
			}
			if _, _, code := t.create(nil, path[:i], nil, nil, jute.FlagPersistent, 0); code != jute.OK {
				t.rollback()
				return "", pathErr("create", path[:i], code)
			}
		}
	}
	flags := jute.FlagPersistent
	if o.Owner != 0 {
		flags |= jute.FlagEphemeral
	}
	if o.Sequential {
		flags |= jute.FlagSequential
	}
	made, _, code := t.create(nil, path, data, o.ACL, flags, o.Owner)
	if code == jute.OK {
		code = t.commit()
	} else {
		t.rollback()
	}
	return made, pathErr("create", path, code)
}

// Set replaces a node's data; version -1 matches any. It returns the node's new Stat.
func (s *Server) Set(path string, data []byte, version int32) (jute.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.begin()
	n, code := t.setData(nil, path, data, version)
	if code == jute.OK {
		code = t.commit()
	}
	if code != jute.OK {
		return jute.Stat{}, pathErr("set", path, code)
	}
	return n.stat(), nil
}

// Put sets a node's data, creating the node and its parents if need be. With an owner the node is ephemeral; an
// existing node of another owner is replaced.
func (s *Server) Put(path string, data []byte, owner int64) error {
	s.mu.Lock()
	n := s.nodes[path]
	keep := n != nil && n.owner == owner
	s.mu.Unlock()
	if keep {
		_, err := s.Set(path, data, -1)
		return err
	}
	if n != nil {
		if err := s.Delete(path, -1); err != nil {
			return err
		}
	}
	_, err := s.Create(path, data, CreateOptions{Owner: owner, Parents: true})
	return err
}

// Delete removes a node without children; version -1 matches any.
func (s *Server) Delete(path string, version int32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.begin()
	code := t.delete(nil, path, version)
	if code == jute.OK {
		code = t.commit()
	}
	return pathErr("delete", path, code)
}

// DeleteTree removes a node and everything below it in one transaction. A node that does not exist is no error.
func (s *Server) DeleteTree(path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[path] == nil {
		return nil
	}
	var doomed []string
	for p := range s.nodes {
		if p == path || strings.HasPrefix(p, path+"/") {
			doomed = append(doomed, p)
		}
	}
	slices.Sort(doomed)
	t := s.begin()
	for _, p := range slices.Backward(doomed) {
		if code := t.delete(nil, p, -1); code != jute.OK {
			t.rollback()
			return pathErr("delete", p, code)
		}
	}
	return pathErr("delete", path, t.commit())
}

// Get returns a copy of a node's data and its Stat.
func (s *Server) Get(path string) ([]byte, jute.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[path]
	if n == nil {
		return nil, jute.Stat{}, pathErr("get", path, jute.ErrNoNode)
	}
	return clone(n.data), n.stat(), nil
}

// Exists reports whether there is such a node.
func (s *Server) Exists(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[path] != nil
}

// Children returns the names of a node's children in order.
func (s *Server) Children(path string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[path]
	if n == nil {
		return nil, pathErr("children", path, jute.ErrNoNode)
	}
	return n.childNames(), nil
}

// Zxid returns the last transaction's id.
func (s *Server) Zxid() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.zxid
}

// OpenSession makes a session that no client holds, to own ephemeral nodes for the embedder. It lives until
// CloseSession, or, after AbandonSession, until its timeout has run out.
func (s *Server) OpenSession(timeout time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newSession(timeout, true).id
}

// CloseSession ends a session and its ephemerals at once, as a client's orderly close does. It reports whether there was one.
func (s *Server) CloseSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil {
		return false
	}
	s.expire(sess, "closed")
	return true
}

// AbandonSession plays the sudden death of an internal session's owner: from now on nobody keeps it alive, and it expires
// at the boundary after its timeout.
func (s *Server) AbandonSession(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[id]
	if sess == nil || !sess.pinned {
		return false
	}
	sess.pinned = false
	s.schedule(sess, s.elapsed(s.cfg.Now()))
	return true
}

func (s *Server) sessionList() []*session {
	ids := slices.Sorted(maps.Keys(s.sessions))
	out := make([]*session, len(ids))
	for i, id := range ids {
		out[i] = s.sessions[id]
	}
	return out
}
