package zkserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// What a peer can make the server hold. Everything a client can grow has a limit of its own in Config; the ones here are shared by all connections,
// so that many clients that each keep to theirs do not add up.
const (
	// largeFrame is the size from which a request's bytes are taken out of Config.MaxIncoming before they are read.
	largeFrame = 16 << 10
	// fairShare is what may wait for any one connection, however much waits for the others.
	fairShare = 64 << 10
	// maxCredential bounds what one auth request makes a connection remember.
	maxCredential = 4 << 10
	// nodeOverhead is about what a znode costs besides its path, data and ACL.
	nodeOverhead = 400
)

// budget is a number of bytes that connections share.
type budget struct {
	mu   sync.Mutex
	free int
	wait chan struct{} // closed when some are given back; nil while nobody waits
}

// take waits for n bytes; false: done was closed first. More than the whole budget is never asked for, as the caller sees to.
func (b *budget) take(n int, done <-chan struct{}) bool {
	for {
		b.mu.Lock()
		if b.free >= n {
			b.free -= n
			b.mu.Unlock()
			return true
		}
		if b.wait == nil {
			b.wait = make(chan struct{})
		}
		wait := b.wait
		b.mu.Unlock()
		select {
		case <-wait:
		case <-done:
			return false
		}
	}
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	if b.wait != nil {
		close(b.wait)
		b.wait = nil
	}
}

// readFrame reads one request. Between requests a connection may be silent for ever (its session's timeout ends that); a request once begun must be
// complete within Config.FrameTimeout, so that half a one cannot be held against us. held is what to give back to the budget when the request has been
// served.
func (c *conn) readFrame(br *bufio.Reader) (frame []byte, held int, err error) {
	head, err := br.Peek(4)
	if err != nil {
		return nil, 0, err
	}
	n := int(int32(binary.BigEndian.Uint32(head)))
	limit := c.s.cfg.MaxFrame + jute.FrameSlack
	if n < 0 || n > limit {
		return nil, 0, &jute.FrameError{Length: int32(n), Max: limit}
	}
	if n > largeFrame {
		if !c.s.incoming.take(n, c.done) {
			return nil, 0, io.ErrClosedPipe
		}
		held = n
	}
	if br.Buffered() < 4+n {
		if err := c.nc.SetReadDeadline(time.Now().Add(c.s.cfg.FrameTimeout)); err != nil {
			return nil, held, err
		}
		frame, err = jute.ReadFrame(br, limit)
		if err == nil {
			err = c.nc.SetReadDeadline(time.Time{})
		}
		return frame, held, err
	}
	frame, err = jute.ReadFrame(br, limit)
	return frame, held, err
}

// weight is about what a znode takes in memory.
func (n *node) weight(path string) int64 {
	w := int64(nodeOverhead + 2*len(path) + len(n.data))
	for _, a := range n.acl {
		w += int64(48 + len(a.Scheme) + len(a.ID))
	}
	return w
}

// outgrown says whether a client's write would make the tree larger than it may be; the embedder's own nodes are not refused.
func (t *tx) outgrown(who *conn, more int64) bool {
	return who != nil && more > 0 && t.s.weight+more > t.s.cfg.MaxTree
}

// weigh changes the tree's weight, and back if the transaction is taken back.
func (t *tx) weigh(more int64) {
	t.s.weight += more
	t.undo = append(t.undo, func() { t.s.weight -= more })
}
