package store

import (
	"context"
	"errors"
	"sync"
)

// nonceMillis is how long a nonce is remembered (ServerNonceManager: 10 min).
const nonceMillis = 10 * 60 * 1000

// maxNonces bounds the memory of nonces (about 100 bytes each); beyond it the
// oldest are forgotten early.
const maxNonces = 1 << 20

var errNonceBusy = errors.New("an operation with this nonce is under way")

type nonceKey struct{ group, nonce uint64 }

// nonces remembers which increments and appends were applied, so that one sent
// again after a lost answer is not applied twice.
type nonces struct {
	mu    sync.Mutex
	known map[nonceKey]*nonceEntry
	// queue holds known entries in order of their end, oldest at head.
	queue []nonceQueued
	head  int
	limit int
}

type nonceQueued struct {
	key   nonceKey
	entry *nonceEntry
	ended int64
}

type nonceEntry struct {
	done chan struct{} // closed when the operation has ended
	// readPoint of the application, valid once done is closed.
	readPoint uint64
	// lost: what was applied is gone again; whoever comes next applies it.
	lost bool
}

func (n *nonces) init(limit int) { n.known, n.limit = make(map[nonceKey]*nonceEntry), limit }

// begin claims a nonce. If it is taken, begin waits for the operation that has
// it to end; applied then says at which read point that one's result shows. An
// operation that failed frees its nonce. Without wait, errNonceBusy is the
// answer instead of waiting.
func (n *nonces) begin(ctx context.Context, key nonceKey, now int64, wait bool) (applied uint64, taken bool, err error) {
	for {
		n.mu.Lock()
		n.expire(now)
		e := n.known[key]
		if e == nil {
			n.known[key] = &nonceEntry{done: make(chan struct{})}
			n.mu.Unlock()
			return 0, false, nil
		}
		n.mu.Unlock()
		select {
		case <-e.done:
		default:
			if !wait {
				return 0, false, errNonceBusy
			}
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return 0, false, ctx.Err()
		}
		n.mu.Lock()
		still := n.known[key] == e
		n.mu.Unlock()
		if still {
			return e.readPoint, true, nil
		}
	}
}

// end says how an operation that claimed its nonce went.
func (n *nonces) end(key nonceKey, ok bool, readPoint uint64, now int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.known[key]
	if e == nil {
		return
	}
	if ok && !e.lost {
		e.readPoint = readPoint
		n.queue = append(n.queue, nonceQueued{key, e, now})
		if len(n.queue)-n.head > n.limit {
			n.drop()
		}
	} else {
		delete(n.known, key)
	}
	close(e.done)
}

// forget frees the nonce of an operation that was applied and is lost.
func (n *nonces) forget(key nonceKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.known[key]
	if e == nil {
		return
	}
	select {
	case <-e.done:
		delete(n.known, key)
	default:
		e.lost = true // end will find it
	}
}

func (n *nonces) expire(now int64) {
	for n.head < len(n.queue) && n.queue[n.head].ended+nonceMillis < now {
		n.drop()
	}
}

// drop forgets the oldest.
func (n *nonces) drop() {
	// One that was forgotten may have been claimed again.
	if q := n.queue[n.head]; n.known[q.key] == q.entry {
		delete(n.known, q.key)
	}
	n.queue[n.head].entry = nil
	n.head++
	if n.head > 1024 && n.head > len(n.queue)/2 {
		n.queue = append(n.queue[:0], n.queue[n.head:]...)
		n.head = 0
	}
}
