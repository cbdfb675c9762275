package zkserver

import (
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Node is the stored form of a persistent znode.
type Node struct {
	Path string
	Data []byte
	ACL  []jute.ACL
	Stat jute.Stat
	// Created counts the children ever created below the node: the next sequence number.
	Created   int32
	Container bool
}

// Change is a persistent node's new state, or its end.
type Change struct {
	Path string
	Node *Node // nil: the node was deleted
}

// Persister stores persistent znodes for an embedder. Ephemeral nodes and sessions are never offered: they do not survive a restart.
type Persister interface {
	// Persist is called with the changes of one write, before anybody can see them and with the server locked; the write waits for it.
	// The changes belong together. An error takes the write back and is answered as a system error (-1).
	Persist(zxid int64, changes []Change) error
}

func (n *node) stored(path string) Node {
	return Node{Path: path, Data: n.data, ACL: n.acl, Stat: n.stat(), Created: n.created, Container: n.container}
}

func (t *tx) persist() error {
	p := t.s.cfg.Persister
	if p == nil || len(t.touched) == 0 {
		return nil
	}
	seen := make(map[string]bool, len(t.touched))
	changes := make([]Change, 0, len(t.touched))
	for _, path := range t.touched {
		if seen[path] {
			continue
		}
		seen[path] = true
		n := t.s.nodes[path]
		if n == nil {
			changes = append(changes, Change{Path: path})
			continue
		}
		if n.owner != 0 {
			continue
		}
		stored := n.stored(path)
		changes = append(changes, Change{Path: path, Node: &stored})
	}
	return p.Persist(t.zxid, changes)
}

// Snapshot returns the persistent nodes, parents before children, without the root and /zookeeper unless they were changed.
// The data slices are shared and must not be modified.
func (s *Server) Snapshot() []Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Node
	for path, n := range s.nodes {
		if n.owner == 0 && (n.czxid != 0 || n.mzxid != 0 || n.created != 0) {
			out = append(out, n.stored(path))
		}
	}
	slices.SortFunc(out, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// restore puts stored nodes into an empty tree. A node whose parent is missing is left out, since nothing could reach it.
func (s *Server) restore(nodes []Node) {
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b Node) int { return strings.Compare(a.Path, b.Path) })
	for _, st := range sorted {
		if jute.ValidatePath(st.Path, false) != nil {
			s.log.Warn("stored node left out: not a valid path", "path", st.Path)
			continue
		}
		n := s.nodes[st.Path]
		if n == nil {
			parentPath, name := splitPath(st.Path)
			parent := s.nodes[parentPath]
			if parent == nil {
				s.log.Warn("stored node left out: no parent", "path", st.Path)
				continue
			}
			if parent.children == nil {
				parent.children = map[string]struct{}{}
			}
			parent.children[name] = struct{}{}
			n = &node{}
			s.nodes[st.Path] = n
			s.bytes += int64(len(st.Path))
		} else {
			s.weight -= n.weight(st.Path)
		}
		s.bytes += int64(len(st.Data) - len(n.data))
		n.data, n.acl, n.created, n.container = clone(st.Data), st.ACL, st.Created, st.Container
		n.czxid, n.mzxid, n.pzxid = st.Stat.Czxid, st.Stat.Mzxid, st.Stat.Pzxid
		n.ctime, n.mtime, n.version, n.aversion = st.Stat.Ctime, st.Stat.Mtime, st.Stat.Version, st.Stat.Aversion
		s.zxid = max(s.zxid, n.czxid, n.mzxid, n.pzxid)
		s.weight += n.weight(st.Path)
	}
}
