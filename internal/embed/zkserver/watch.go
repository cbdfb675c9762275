package zkserver

import (
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// ZooKeeper keeps watches of a node's data (its being there included) apart from those of its children; a persistent watch is one of both.
type watchKind int

const (
	watchData watchKind = iota
	watchChild
	watchKinds
)

// watchMode is how long a watch lives and how far it sees. A connection has a set of them on a path: one only before ZooKeeper 3.9.
type watchMode uint8

const (
	oneShot watchMode = 1 << iota
	persistent
	recursive
	anyMode = oneShot | persistent | recursive
)

// watchTable holds who watches what, by kind and path, and by connection so that a connection's end is cheap. Guarded by Server.mu.
type watchTable struct {
	byPath [watchKinds]map[string]map[*conn]watchMode
	// recursives counts recursive watches by kind: while there is none, nobody looks at a path's ancestors.
	recursives [watchKinds]int
	// separate is Config.SeparateWatchModes.
	separate bool
	// most is Config.MaxWatches, count the watches of all connections.
	most, count int
}

func newWatchTable(separate bool, most int) *watchTable {
	w := &watchTable{separate: separate, most: most}
	for k := range w.byPath {
		w.byPath[k] = map[string]map[*conn]watchMode{}
	}
	return w
}

type watchKey struct {
	kind watchKind
	path string
}

func (w *watchTable) add(k watchKind, path string, c *conn, mode watchMode) {
	old := w.byPath[k][path][c]
	if old == 0 && (len(c.watches) >= w.most || w.count >= 10*w.most) {
		c.s.log.Warn("connection dropped: too many watches", "remote", c.remote, "watches", len(c.watches), "all", w.count)
		c.drop()
		return
	}
	if w.separate {
		mode |= old
	}
	w.put(k, path, c, mode)
}

// addLasting adds a persistent or recursive watch. A recursive one hears nothing of children as such, and since 3.9 it is not kept with their watches.
func (w *watchTable) addLasting(path string, c *conn, mode watchMode) {
	w.add(watchData, path, c, mode)
	if mode != recursive || !w.separate {
		w.add(watchChild, path, c, mode)
	}
}

// put makes mode the connection's watches on a path; none at all if it is 0.
func (w *watchTable) put(k watchKind, path string, c *conn, mode watchMode) {
	set := w.byPath[k][path]
	old := set[c]
	w.recursives[k] += int(mode&recursive)/int(recursive) - int(old&recursive)/int(recursive)
	switch {
	case mode != 0 && set == nil:
		w.byPath[k][path] = map[*conn]watchMode{c: mode}
	case mode != 0:
		set[c] = mode
	case old != 0:
		if delete(set, c); len(set) == 0 {
			delete(w.byPath[k], path)
		}
	}
	switch {
	case old == 0 && mode != 0:
		w.count++
		c.watches[watchKey{k, path}] = struct{}{}
	case old != 0 && mode == 0:
		w.count--
		delete(c.watches, watchKey{k, path})
	}
}

func (w *watchTable) removeAll(c *conn) {
	for key := range maps.Clone(c.watches) {
		w.put(key.kind, key.path, c, 0)
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
	w := s.watches
	trigger := func(k watchKind) {
		for c, mode := range w.byPath[k][e.path] {
			if mode&oneShot != 0 {
				w.put(k, e.path, c, mode&^oneShot)
			}
			if mode&(oneShot|persistent) != 0 || e.typ != jute.EventChildrenChanged {
				tell(c)
			}
		}
		if w.recursives[k] == 0 || e.typ == jute.EventChildrenChanged {
			return
		}
		for p := e.path; p != "/"; {
			p, _ = splitPath(p)
			for c, mode := range w.byPath[k][p] {
				if mode&recursive != 0 {
					tell(c)
				}
			}
		}
	}
	switch e.typ {
	case jute.EventCreated, jute.EventDataChanged:
		trigger(watchData)
	case jute.EventDeleted:
		trigger(watchData)
		trigger(watchChild)
	case jute.EventChildrenChanged:
		trigger(watchChild)
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
			s.watches.add(watchData, p, c, oneShot)
		}
	}
	for _, p := range m.Exist {
		if s.nodes[p] != nil {
			c.sendEvent(event{jute.EventCreated, p})
		} else {
			s.watches.add(watchData, p, c, oneShot)
		}
	}
	for _, p := range m.Child {
		switch n := s.nodes[p]; {
		case n == nil:
			c.sendEvent(event{jute.EventDeleted, p})
		case n.pzxid > m.RelativeZxid:
			c.sendEvent(event{jute.EventChildrenChanged, p})
		default:
			s.watches.add(watchChild, p, c, oneShot)
		}
	}
	for _, p := range m.Persistent {
		s.watches.addLasting(p, c, persistent)
	}
	for _, p := range m.Recursive {
		s.watches.addLasting(p, c, recursive)
	}
}

// selection is what checkWatches and removeWatches mean by a watcher type: modes by kind of watch.
type selection [watchKinds]watchMode

// selectionOf gives the selection of a watcher type; false: there is no such type.
func (w *watchTable) selectionOf(typ int32) (selection, bool) {
	if !w.separate {
		// The one watch there is on the path goes, whatever its mode.
		switch typ {
		case jute.WatcherChildren:
			return selection{watchChild: anyMode}, true
		case jute.WatcherData:
			return selection{watchData: anyMode}, true
		case jute.WatcherAny:
			return selection{anyMode, anyMode}, true
		}
		return selection{}, false
	}
	switch typ {
	case jute.WatcherChildren:
		return selection{watchChild: oneShot}, true
	case jute.WatcherData:
		return selection{watchData: oneShot}, true
	case jute.WatcherAny:
		return selection{anyMode, anyMode}, true
	case jute.WatcherPersistent:
		return selection{persistent, persistent}, true
	case jute.WatcherRecursive:
		return selection{watchData: recursive}, true
	}
	return selection{}, false
}

// find says whether a connection has one of the watches selected, and removes them if it is told to.
func (w *watchTable) find(sel selection, path string, c *conn, remove bool) bool {
	found := false
	for k, modes := range sel {
		have := w.byPath[k][path][c]
		if have&modes == 0 {
			continue
		}
		found = true
		if remove {
			w.put(watchKind(k), path, c, have&^modes)
		}
	}
	return found
}

// dataCounts is for the word wchs, which counts the watches of data only, in ZooKeeper too.
func (w *watchTable) dataCounts() (conns, paths, total int) {
	who := map[*conn]struct{}{}
	for _, set := range w.byPath[watchData] {
		total += len(set)
		for c := range set {
			who[c] = struct{}{}
		}
	}
	return len(who), len(w.byPath[watchData]), total
}

// byConn is the answer to wchc: the paths that each session watches.
func (w *watchTable) byConn() string {
	groups := map[string][]string{}
	for path, set := range w.byPath[watchData] {
		for c := range set {
			id := hexZxid(c.sess.id)
			groups[id] = append(groups[id], path)
		}
	}
	return grouped(groups)
}

// bySession is the answer to wchp: the sessions that watch each path.
func (w *watchTable) bySession() string {
	groups := map[string][]string{}
	for path, set := range w.byPath[watchData] {
		for c := range set {
			groups[path] = append(groups[path], hexZxid(c.sess.id))
		}
	}
	return grouped(groups)
}

func grouped(groups map[string][]string) string {
	var b strings.Builder
	for _, head := range slices.Sorted(maps.Keys(groups)) {
		b.WriteString(head + "\n")
		slices.Sort(groups[head])
		for _, line := range groups[head] {
			b.WriteString("\t" + line + "\n")
		}
	}
	b.WriteString("\n")
	return b.String()
}
