package master

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// locks are named read-write locks that can be waited for with a context.
// Waiters are served in order of arrival, so that a stream of readers cannot
// starve a writer. The zero value is ready.
type locks struct {
	mu sync.Mutex
	m  map[string]*lock
}

type lock struct {
	readers int
	writer  bool
	owner   *procedure // the writer's; nil if it is none
	queue   []*waiter
}

type waiter struct {
	write bool
	owner *procedure
	ready chan struct{} // closed when the lock was handed over
}

// ownerKey finds the procedure that runs in a context.
type ownerKey struct{}

// ownerOf gives the procedure on whose behalf a context runs; nil if there is
// none.
func ownerOf(ctx context.Context) *procedure {
	p, _ := ctx.Value(ownerKey{}).(*procedure)
	return p
}

func (l *lock) free(write bool) bool { return !l.writer && (!write || l.readers == 0) }

func (l *lock) take(write bool, owner *procedure) {
	if write {
		l.writer, l.owner = true, owner
	} else {
		l.readers++
	}
}

// acquire takes the named lock and gives the function that releases it, or the
// context's error.
func (ls *locks) acquire(ctx context.Context, name string, write bool) (release func(), err error) {
	ls.mu.Lock()
	if ls.m == nil {
		ls.m = map[string]*lock{}
	}
	l := ls.m[name]
	if l == nil {
		l = &lock{}
		ls.m[name] = l
	}
	release = func() { ls.release(name, l, write) }
	owner := ownerOf(ctx)
	if len(l.queue) == 0 && l.free(write) {
		l.take(write, owner)
		ls.mu.Unlock()
		return release, nil
	}
	w := &waiter{write: write, owner: owner, ready: make(chan struct{})}
	l.queue = append(l.queue, w)
	ls.mu.Unlock()
	select {
	case <-w.ready:
		return release, nil
	case <-ctx.Done():
	}
	ls.mu.Lock()
	select {
	case <-w.ready:
		// Handed over at the same moment: give it back.
		ls.mu.Unlock()
		release()
		return nil, ctx.Err()
	default:
	}
	for i := range l.queue {
		if l.queue[i] == w {
			l.queue = append(l.queue[:i], l.queue[i+1:]...)
			break
		}
	}
	ls.handOver(name, l)
	ls.mu.Unlock()
	return nil, ctx.Err()
}

func (ls *locks) release(name string, l *lock, write bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if write {
		l.writer, l.owner = false, nil
	} else {
		l.readers--
	}
	ls.handOver(name, l)
}

// handOver gives the lock to as many waiters as can have it together.
func (ls *locks) handOver(name string, l *lock) {
	for len(l.queue) > 0 && l.free(l.queue[0].write) {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.take(w.write, w.owner)
		close(w.ready)
	}
	if len(l.queue) == 0 && l.readers == 0 && !l.writer {
		delete(ls.m, name)
	}
}

// What a lock is on is told by the first letter of its name.
const (
	onNamespace = "n:"
	onTable     = "t:"
	onRegion    = "r:"
	onServer    = "s:"
)

// lockNamespace takes a namespace's lock: exclusively for changes of the
// namespace itself, shared by what happens to its tables.
func (m *Master) lockNamespace(ctx context.Context, namespace string, write bool) (func(), error) {
	n, err := m.locks.acquire(ctx, onNamespace+namespace, write)
	if err != nil || !write {
		return n, err
	}
	// As in HBase, which keeps namespaces in a table.
	t, err := m.locks.acquire(ctx, onTable+meta.NamespaceTable.String(), false)
	if err != nil {
		n()
		return nil, err
	}
	return func() { t(); n() }, nil
}

func namespaceOfTable(table string) string {
	if namespace, _, ok := strings.Cut(table, ":"); ok {
		return namespace
	}
	return meta.DefaultNamespace
}

// lockTable takes a table's lock, and its namespace's shared.
func (m *Master) lockTable(ctx context.Context, table string, write bool) (func(), error) {
	n, err := m.lockNamespace(ctx, namespaceOfTable(table), false)
	if err != nil {
		return nil, err
	}
	t, err := m.locks.acquire(ctx, onTable+table, write)
	if err != nil {
		n()
		return nil, err
	}
	return func() { t(); n() }, nil
}

// lockRegion takes a table's lock shared and one region's exclusively.
func (m *Master) lockRegion(ctx context.Context, table, encoded string) (func(), error) {
	return m.lockRegions(ctx, table, []string{encoded})
}

// lockRegions is lockRegion for several regions of a table, in the order of
// their names, so that two who want the same ones do not wait for each other.
func (m *Master) lockRegions(ctx context.Context, table string, encoded []string) (func(), error) {
	t, err := m.lockTable(ctx, table, false)
	if err != nil {
		return nil, err
	}
	held := []func(){t}
	release := func() {
		for _, f := range slices.Backward(held) {
			f()
		}
	}
	for _, e := range slices.Compact(slices.Sorted(slices.Values(encoded))) {
		r, err := m.locks.acquire(ctx, onRegion+e, true)
		if err != nil {
			release()
			return nil, err
		}
		held = append(held, r)
	}
	return release, nil
}

// held is a lock as GetLocks tells of it.
type held struct {
	name    string
	readers int
	writer  bool
	owner   *procedure
	waiting []*procedure
}

// list gives the locks that somebody has, by name.
func (ls *locks) list() []held {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	out := make([]held, 0, len(ls.m))
	for name, l := range ls.m {
		h := held{name: name, readers: l.readers, writer: l.writer, owner: l.owner}
		for _, w := range l.queue {
			if w.owner != nil {
				h.waiting = append(h.waiting, w.owner)
			}
		}
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b held) int { return strings.Compare(a.name, b.name) })
	return out
}

// busy says whether somebody has a lock exclusively, or waits for it.
func (ls *locks) busy(name string) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.m[name]
	return l != nil && (l.writer || len(l.queue) > 0)
}
