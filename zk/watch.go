package zk

import (
	"context"
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
func (l *loop) register(w *Watch, code Code) {
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
		// Nobody waits for the answer, and a server that does not know the watch is as good. One-shot watches stay at the
		// server until they fire; there is at most one per path.
		typ := jute.WatcherPersistent
		if w.kind == kindRecursive {
			typ = jute.WatcherRecursive
		}
		l.sendRemoval(w.path, typ)
	}
}

// sendRemoval removes one kind of persistent watch. Servers before 3.9 know only "any"; a one-shot watch of this client on the
// same path would go with it, so then the persistent watch is left to fire into nothing.
func (l *loop) sendRemoval(path string, typ int32) {
	if len(l.watches[kindData][path])+len(l.watches[kindExist][path])+len(l.watches[kindChild][path]) == 0 {
		typ = jute.WatcherAny
	}
	m := jute.PathMode{Path: path, Mode: typ}
	var w jute.Writer
	m.Encode(&w)
	l.send(&call{op: jute.OpRemoveWatches, body: w.Bytes(), internal: true})
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
	fire := func(kinds ...watchKind) {
		for _, k := range kinds {
			for _, w := range l.watches[k][e.Path] {
				w.deliver(ev)
				w.closed = true
				close(w.ch)
			}
			delete(l.watches[k], e.Path)
		}
	}
	switch e.Type {
	case jute.EventCreated, jute.EventDataChanged:
		fire(kindData, kindExist)
	case jute.EventDeleted:
		fire(kindData, kindExist, kindChild)
	case jute.EventChildrenChanged:
		fire(kindChild)
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
		if p == "/" || p == "" {
			return
		}
		if i := strings.LastIndexByte(p, '/'); i > 0 {
			p = p[:i]
		} else {
			p = "/"
		}
	}
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
