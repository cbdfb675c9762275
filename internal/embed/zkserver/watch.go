package zkserver

import (
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

type watchKind int

const (
	watchData watchKind = iota
	watchChild
	watchPersistent
	watchRecursive
	watchKinds
)

// watchTable holds who watches what, by kind and path, and by connection so that a connection's end is cheap.
type watchTable struct {
	byPath [watchKinds]map[string]map[*conn]struct{}
	// single is Config.OneWatchPerPath.
	single bool
}

func newWatchTable(single bool) *watchTable {
	w := &watchTable{single: single}
	for k := range w.byPath {
		w.byPath[k] = map[string]map[*conn]struct{}{}
	}
	return w
}

type watchKey struct {
	kind watchKind
	path string
}

func (w *watchTable) add(k watchKind, path string, c *conn) {
	if w.single {
		for other := range watchKinds {
			if other != k && (other >= watchPersistent || k >= watchPersistent) {
				w.remove(other, path, c)
			}
		}
	}
	set := w.byPath[k][path]
	if set == nil {
		set = map[*conn]struct{}{}
		w.byPath[k][path] = set
	}
	set[c] = struct{}{}
	c.watches[watchKey{k, path}] = struct{}{}
}

func (w *watchTable) has(k watchKind, path string, c *conn) bool {
	_, ok := w.byPath[k][path][c]
	return ok
}

func (w *watchTable) remove(k watchKind, path string, c *conn) bool {
	if !w.has(k, path, c) {
		return false
	}
	set := w.byPath[k][path]
	delete(set, c)
	if len(set) == 0 {
		delete(w.byPath[k], path)
	}
	delete(c.watches, watchKey{k, path})
	return true
}

func (w *watchTable) removeAll(c *conn) {
	for key := range c.watches {
		w.remove(key.kind, key.path, c)
	}
}

// fire queues an event to everybody who watches for it; each connection hears it once, however many of its watches match.
func (s *Server) fire(e event) {
	var told map[*conn]struct{}
	tell := func(c *conn) {
		if _, dup := told[c]; dup {
			return
		}
		if told == nil {
			told = map[*conn]struct{}{}
		}
		told[c] = struct{}{}
		c.sendEvent(e)
	}
	oneShot := func(k watchKind) {
		for c := range s.watches.byPath[k][e.path] {
			s.watches.remove(k, e.path, c)
			tell(c)
		}
	}
	switch e.typ {
	case jute.EventCreated, jute.EventDataChanged:
		oneShot(watchData)
	case jute.EventDeleted:
		oneShot(watchData)
		oneShot(watchChild)
	case jute.EventChildrenChanged:
		oneShot(watchChild)
	}
	for c := range s.watches.byPath[watchPersistent][e.path] {
		tell(c)
	}
	if e.typ == jute.EventChildrenChanged || len(s.watches.byPath[watchRecursive]) == 0 {
		return
	}
	for p := e.path; ; {
		for c := range s.watches.byPath[watchRecursive][p] {
			tell(c)
		}
		if p == "/" {
			return
		}
		if i := strings.LastIndexByte(p, '/'); i > 0 {
			p = p[:i]
		} else {
			p = "/"
		}
	}
}

// setWatches re-arms a reconnected client's watches; what changed while it was away is told at once.
func (s *Server) setWatches(c *conn, m *jute.SetWatches) {
	for _, p := range m.Data {
		switch n := s.nodes[p]; {
		case n == nil:
			c.sendEvent(event{jute.EventDeleted, p})
		case n.mzxid > m.RelativeZxid:
			c.sendEvent(event{jute.EventDataChanged, p})
		default:
			s.watches.add(watchData, p, c)
		}
	}
	for _, p := range m.Exist {
		if s.nodes[p] != nil {
			c.sendEvent(event{jute.EventCreated, p})
		} else {
			s.watches.add(watchData, p, c)
		}
	}
	for _, p := range m.Child {
		switch n := s.nodes[p]; {
		case n == nil:
			c.sendEvent(event{jute.EventDeleted, p})
		case n.pzxid > m.RelativeZxid:
			c.sendEvent(event{jute.EventChildrenChanged, p})
		default:
			s.watches.add(watchChild, p, c)
		}
	}
	for _, p := range m.Persistent {
		s.watches.add(watchPersistent, p, c)
	}
	for _, p := range m.Recursive {
		s.watches.add(watchRecursive, p, c)
	}
}

// watchKindsOf maps the watcher type of checkWatches and removeWatches.
func watchKindsOf(typ int32) []watchKind {
	switch typ {
	case jute.WatcherChildren:
		return []watchKind{watchChild}
	case jute.WatcherData:
		return []watchKind{watchData}
	case jute.WatcherAny:
		return []watchKind{watchData, watchChild, watchPersistent, watchRecursive}
	case jute.WatcherPersistent:
		return []watchKind{watchPersistent}
	case jute.WatcherRecursive:
		return []watchKind{watchRecursive}
	}
	return nil
}
