package zk

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// EventType says what a watch saw.
type EventType int32

// Event types.
const (
	EventCreated         EventType = EventType(jute.EventCreated)
	EventDeleted         EventType = EventType(jute.EventDeleted)
	EventDataChanged     EventType = EventType(jute.EventDataChanged)
	EventChildrenChanged EventType = EventType(jute.EventChildrenChanged)
	// EventMissed: events of a persistent watch may have been missed, because the connection was interrupted or the reader was slow. Read again.
	EventMissed EventType = -100
	// EventEnded: the Conn reached a terminal state, which Err tells. It is the last event of a watch.
	EventEnded EventType = -101
)

// String names the event type.
func (t EventType) String() string {
	switch t {
	case EventMissed:
		return "events missed"
	case EventEnded:
		return "session ended"
	}
	return jute.EventType(t).String()
}

// Event is what a watch delivers.
type Event struct {
	Type EventType
	Path string // as the caller sees it, without the chroot
	Err  error  // of EventEnded
}

// AddMode is how far a persistent watch reaches.
type AddMode int32

// Modes of AddWatch.
const (
	// Persistent sees the node's own changes and those of its list of children.
	Persistent AddMode = AddMode(jute.WatchPersistent)
	// Recursive sees creations, deletions and data changes of the node and everything below it.
	Recursive AddMode = AddMode(jute.WatchPersistentRecursive)
)

type watchKind int

const (
	kindData  watchKind = iota // data of a node that exists
	kindExist                  // a node that did not exist
	kindChild
	kindPersistent
	kindRecursive
	watchKinds
)

func (k watchKind) oneShot() bool { return k < kindPersistent }

// Watch is a registered interest. It survives reconnects: the client arms it again, and the server reports what changed meanwhile.
type Watch struct {
	conn *Conn
	path string // full
	kind watchKind
	ch   chan Event

	// Owned by the loop.
	registered bool
	closed     bool
	missed     bool // EventMissed is in ch and nothing may follow until it is read
	buffer     int
}

// C delivers the events and is closed after the last: a one-shot watch delivers one event, a persistent watch any number. The last
// event is EventEnded if the session ended first; after Cancel there is none.
func (w *Watch) C() <-chan Event { return w.ch }

// Path returns the watched path as the caller gave it.
func (w *Watch) Path() string { return w.conn.strip(w.path) }

// Cancel forgets the watch and closes C. It may be called at any time and more than once, and does not wait for the server.
func (w *Watch) Cancel() {
	select {
	case w.conn.unwatch <- w:
	case <-w.conn.done:
	}
}

// Events yields the events until the watch ends, ctx ends, or the consumer stops; then it cancels the watch.
func (w *Watch) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		defer w.Cancel()
		for {
			select {
			case e, ok := <-w.ch:
				if !ok || !yield(e) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (c *Conn) newWatch(path string, kind watchKind) *Watch {
	w := &Watch{conn: c, path: path, kind: kind, buffer: 1}
	if !kind.oneShot() {
		w.buffer = c.cfg.WatchBuffer
	}
	// Two more than the buffer: EventMissed and EventEnded always find room.
	w.ch = make(chan Event, w.buffer+2)
	return w
}

type watchTable [watchKinds]map[string][]*Watch

func newWatchTable() watchTable {
	var t watchTable
	for k := range t {
		t[k] = map[string][]*Watch{}
	}
	return t
}

// register enters a watch when its call was answered: here, in wire order, so that no event can come between.
func (l *loop) register(k *call, code Code) {
	w := k.watch
	switch {
	case code == jute.OK:
	case code == jute.ErrNoNode && w.kind == kindExist:
	default:
		return
	}
	if w.kind == kindExist && code == jute.OK {
		w.kind = kindData // exists on a node that is there watches its data
	}
	w.registered = true
	l.watches[w.kind][w.path] = append(l.watches[w.kind][w.path], w)
	if w.kind.oneShot() && k.body[len(k.body)-1] == 0 && !l.hasPersistent(w.path, kindPersistent, kindRecursive) {
		l.arm(w.path) // the persistent watch it relied on was refused, or went meanwhile
	}
}

func (l *loop) dropWatch(w *Watch) {
	if w.closed {
		return
	}
	w.closed = true
	close(w.ch)
	if !w.registered {
		return
	}
	m := l.watches[w.kind]
	left := slices.DeleteFunc(m[w.path], func(x *Watch) bool { return x == w })
	if len(left) > 0 {
		m[w.path] = left
		return
	}
	delete(m, w.path)
	if !w.kind.oneShot() && l.t != nil {
		l.removePersistent(w.path)
	}
}

// One watch per path. Servers before 3.9 keep one mode per client and path: a persistent watch swallows the one-shot watches on its path, and
// a one-shot watch set afterwards turns the persistent one into a one-shot. So, with every server:
//   - a one-shot watch is not sent for a path that has a persistent one (oneShotArmed); the persistent watch's events fire it;
//   - a recursive watch is not told of changed lists of children, so a child's creation or deletion fires the one-shot child watches of its parent;
//   - when the last persistent watch of a path goes, the one-shot watches left on it are armed.

// hasPersistent reports whether a persistent watch of one of the kinds is armed on path or about to be.
func (l *loop) hasPersistent(path string, kinds ...watchKind) bool {
	for _, k := range kinds {
		if len(l.watches[k][path]) > 0 {
			return true
		}
	}
	for _, k := range l.pending {
		if k.op == jute.OpAddWatch && k.watch != nil && k.watch.path == path && slices.Contains(kinds, k.watch.kind) {
			return true
		}
	}
	return false
}

// prepareWatch adapts a call that registers a watch to what is on its path already; false if the call cannot be sent.
func (l *loop) prepareWatch(k *call) bool {
	w := k.watch
	if w.kind.oneShot() {
		// The flag is the last byte of the body. It is set anew each time, because the call may be sent more than once.
		k.body[len(k.body)-1] = 1
		if l.hasPersistent(w.path, kindPersistent, kindRecursive) {
			k.body[len(k.body)-1] = 0
		}
		return true
	}
	other := kindPersistent
	if w.kind == kindPersistent {
		other = kindRecursive
	}
	return !l.hasPersistent(w.path, other)
}

// errWatchMode is the answer to a second persistent watch of another mode on one path.
var errWatchMode = errors.New("the path has a persistent watch of the other mode")

// removePersistent tells the server that a path's persistent watch is no longer wanted and arms what else is wanted there. Nobody waits for
// the answers.
func (l *loop) removePersistent(path string) {
	m := jute.PathMode{Path: path, Mode: jute.WatcherAny}
	var w jute.Writer
	m.Encode(&w)
	l.send(&call{op: jute.OpRemoveWatches, body: w.Bytes(), internal: true})
	l.arm(path)
}

// arm arms the one-shot watches of a path; what they missed since the newest zxid comes back as events.
func (l *loop) arm(path string) {
	q := jute.SetWatches{RelativeZxid: l.zxid}
	for kind, list := range map[watchKind]*[]string{kindData: &q.Data, kindExist: &q.Exist, kindChild: &q.Child} {
		if len(l.watches[kind][path]) > 0 {
			*list = []string{path}
		}
	}
	if len(q.Data)+len(q.Exist)+len(q.Child) > 0 {
		var w jute.Writer
		q.Encode(&w, jute.OpSetWatches)
		l.send(&call{op: jute.OpSetWatches, body: w.Bytes(), internal: true})
	}
}

// deliver never blocks: a one-shot watch has room for its event, a persistent one says EventMissed when its reader is slow.
func (w *Watch) deliver(e Event) {
	if w.missed {
		if len(w.ch) > 0 {
			return // EventMissed is still to be read; what happens before that is covered by it
		}
		w.missed = false
	}
	if len(w.ch) >= w.buffer {
		w.missed = true
		e = Event{Type: EventMissed, Path: w.conn.strip(w.path)}
	}
	w.ch <- e
}

func (w *Watch) end(err error) {
	if w.closed {
		return
	}
	w.closed = true
	w.ch <- Event{Type: EventEnded, Path: w.conn.strip(w.path), Err: err}
	close(w.ch)
}

func (l *loop) onEvent(e jute.WatcherEvent) {
	ev := Event{Type: EventType(e.Type), Path: l.strip(e.Path)}
	fire := func(ev Event, path string, kinds ...watchKind) {
		for _, k := range kinds {
			for _, w := range l.watches[k][path] {
				w.deliver(ev)
				w.closed = true
				close(w.ch)
			}
			delete(l.watches[k], path)
		}
	}
	parent := parentOf(e.Path)
	switch e.Type {
	case jute.EventDataChanged:
		fire(ev, e.Path, kindData, kindExist)
	case jute.EventCreated:
		fire(ev, e.Path, kindData, kindExist)
		fire(Event{Type: EventChildrenChanged, Path: l.strip(parent)}, parent, kindChild)
	case jute.EventDeleted:
		fire(ev, e.Path, kindData, kindExist, kindChild)
		fire(Event{Type: EventChildrenChanged, Path: l.strip(parent)}, parent, kindChild)
	case jute.EventChildrenChanged:
		fire(ev, e.Path, kindChild)
	default:
		return
	}
	for _, w := range l.watches[kindPersistent][e.Path] {
		w.deliver(ev)
	}
	if e.Type == jute.EventChildrenChanged || len(l.watches[kindRecursive]) == 0 {
		return
	}
	for p := e.Path; ; {
		for _, w := range l.watches[kindRecursive][p] {
			w.deliver(ev)
		}
		if p == "/" {
			return
		}
		p = parentOf(p)
	}
}

// parentOf returns the path above; "/" for whatever has none.
func parentOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

// rearmBatch is how many bytes of paths one setWatches carries, as in the Java client: a server's frame limit is 1 MiB.
const rearmBatch = 128 << 10

// rearm arms every watch on a new connection. Changes since the last zxid come back as events for one-shot watches; persistent watches are told
// that they may have missed some, because the server does not look back for them.
func (l *loop) rearm() {
	var paths [watchKinds][]string
	n := 0
	flush := func() {
		if n == 0 {
			return
		}
		m := jute.SetWatches{RelativeZxid: l.zxid, Data: paths[kindData], Exist: paths[kindExist], Child: paths[kindChild], Persistent: paths[kindPersistent], Recursive: paths[kindRecursive]}
		op := jute.OpSetWatches
		if len(m.Persistent)+len(m.Recursive) > 0 {
			op = jute.OpSetWatches2
		}
		var w jute.Writer
		m.Encode(&w, op)
		l.send(&call{op: op, body: w.Bytes(), internal: true})
		paths, n = [watchKinds][]string{}, 0
	}
	for k := range l.watches {
		for path, ws := range l.watches[k] {
			paths[k] = append(paths[k], path)
			if n += len(path) + 4; n >= rearmBatch {
				flush()
			}
			if !watchKind(k).oneShot() {
				for _, w := range ws {
					w.deliver(Event{Type: EventMissed, Path: l.strip(path)})
				}
			}
		}
	}
	flush()
}

func (l *loop) endWatches(err error) {
	for k := range l.watches {
		for _, ws := range l.watches[k] {
			for _, w := range ws {
				w.end(err)
			}
		}
		l.watches[k] = nil
	}
}
