package rpc

import (
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Who reads the stream.
//
// A reader goroutine that hands each answer to the goroutine of its call costs
// a lone call a good part of its time: waking another goroutine makes the
// runtime wake another thread. So while calls come one at a time, the caller
// reads its answer itself (it leads), as it would from a socket of its own, and
// the reader goroutine stands by. As soon as calls overlap, or an answer is
// large or takes its time, the reader goroutine reads and everybody else waits.
//
// The right to read is a token: held by the reader, by a leader, or by nobody.
// Rules:
//
//   - Nobody holds it only while there are no calls: who lets go of it looks
//     for calls afterwards, who sends a call looks at the token afterwards, so
//     one of the two sees the other.
//   - A leader takes from the buffer only whole frames, so it can be interrupted
//     at any point and leaves nothing half read.
//   - A leader cannot watch its context while it reads. So the reader, which
//     looks up every standbyTick, takes the token from whoever has led for a
//     whole tick; the leader then waits like everybody else. A call whose
//     deadline is nearer than leadMargin does not lead in the first place.
//   - If nobody led for a whole tick the reader takes the token and waits for
//     data itself, so that the end of a quiet stream is noticed.

const (
	// standbyTick bounds how long a leader does not notice that its context was
	// canceled: two ticks, from when it began. (Deadlines are not late at all,
	// see leadMargin.) It is longer than the tick of common kernels, 4 ms: a
	// timer due before that has the kernel set the clock's hardware each time
	// the process waits for its answer, which costs a lone call 2 us and more
	// in a virtual machine.
	standbyTick = 5 * time.Millisecond
	leadMargin  = 4 * standbyTick
	// loneCalls is after how many calls in a row that overlapped no other the
	// reader stands by. Passing the token costs more than it saves, so two
	// callers who now and then miss each other must not pass it to and fro.
	loneCalls = 32
)

type tokenHolder int32

const (
	heldByReader tokenHolder = iota
	heldByLeader
	heldByNobody
)

type token struct {
	mu sync.Mutex
	// holder is written under mu, and read without it by callers who only want
	// to know that somebody reads.
	holder atomic.Int32
	// overlaps and lone are the reader's: since when calls have come one at a
	// time, and how many.
	overlaps uint64
	lone     int
	// leads counts the times somebody became leader, so that the reader can
	// tell one who stays from another.
	leads uint64
	// interrupted says that the read deadline was set to wake a leader.
	interrupted bool
	// wake tells the reader that the token is its own.
	wake chan struct{}
}

func (t *token) set(h tokenHolder)     { t.holder.Store(int32(h)) }
func (t *token) is(h tokenHolder) bool { return tokenHolder(t.holder.Load()) == h }

// seeRead sees to it that somebody reads, after a call was sent: the caller
// itself if it may, which then returns when its call is over or somebody else
// has taken over; else the reader. It says whether the call is over, and is
// the caller's to finish; else p.done will tell.
func (c *Conn) seeRead(p *pending, mayLead bool) (over bool) {
	t := &c.token
	if !t.is(heldByNobody) {
		return false
	}
	t.mu.Lock()
	if !t.is(heldByNobody) {
		t.mu.Unlock()
		return false
	}
	if !mayLead || c.calls.count.Load() != 1 {
		c.passToReader()
		t.mu.Unlock()
		return false
	}
	t.set(heldByLeader)
	t.leads++
	overlaps := c.calls.overlaps.Load()
	t.mu.Unlock()
	return c.lead(p, overlaps)
}

// lead reads answers until p is over, or up to a point where the reader has to
// go on. It says whether it was its own reading that ended the call.
func (c *Conn) lead(p *pending, overlaps uint64) (over bool) {
	for !over && len(p.done) == 0 {
		whole, err := c.awaitFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) || err == nil && !whole {
			break
		}
		if err == nil {
			over, err = c.readAnswer(p)
		}
		if err != nil {
			c.fail(readError(err), false)
			break
		}
	}
	t := &c.token
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.interrupted {
		// Set under this lock, so it cannot come late and hit the next reader.
		t.interrupted = false
		_ = c.nc.SetReadDeadline(time.Time{})
	}
	c.letGo((over || len(p.done) > 0) && overlaps == c.calls.overlaps.Load())
	return over
}

// letGo gives the token up, to nobody if that is allowed, else to the reader.
func (c *Conn) letGo(toNobody bool) {
	if toNobody && c.calls.count.Load() == 0 && c.reader.Buffered() == 0 {
		c.token.set(heldByNobody)
		if c.calls.count.Load() == 0 {
			return
		}
		// A call came in between and may have seen the old holder.
	}
	c.passToReader()
}

// passToReader is called with the token's lock.
func (c *Conn) passToReader() {
	c.token.set(heldByReader)
	select {
	case c.token.wake <- struct{}{}:
	default: // the reader has been told and did not look yet
	}
}

// awaitFrame waits until a whole frame is in the buffer, consuming nothing. A
// frame that is larger, or none at all, gives false.
func (c *Conn) awaitFrame() (bool, error) {
	b, err := c.reader.Peek(4)
	if err == nil {
		total := int64(b[0])<<24 | int64(b[1])<<16 | int64(b[2])<<8 | int64(b[3])
		if total > int64(c.reader.Size()-4) {
			return false, nil
		}
		_, err = c.reader.Peek(4 + int(total))
	}
	if err == io.EOF && c.reader.Buffered() > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err == nil, err
}

// standBy is the reader's part: after an answer, if calls have come one at a
// time for a while, it gives up the token and waits until it is needed again. It says whether the
// connection is still there.
func (c *Conn) standBy() bool {
	t := &c.token
	if c.w.try == nil {
		return true // a stream that has to be written by a goroutine anyway
	}
	if overlaps := c.calls.overlaps.Load(); overlaps != t.overlaps {
		t.overlaps, t.lone = overlaps, 0
	}
	if t.lone++; t.lone < loneCalls || c.calls.count.Load() != 0 || c.reader.Buffered() > 0 {
		return true
	}
	t.mu.Lock()
	select {
	case <-t.wake: // from before the token was ours
	default:
	}
	c.token.set(heldByNobody)
	if c.calls.count.Load() != 0 {
		t.set(heldByReader)
		t.mu.Unlock()
		return true
	}
	seen := t.leads
	t.mu.Unlock()

	tick := time.NewTimer(standbyTick)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return false
		case <-t.wake:
			return true
		case <-tick.C:
		}
		t.mu.Lock()
		if t.leads == seen {
			switch {
			case t.is(heldByNobody):
				t.set(heldByReader)
				t.mu.Unlock()
				return true
			case t.is(heldByLeader) && !t.interrupted:
				t.interrupted = true
				_ = c.nc.SetReadDeadline(time.Unix(1, 0))
			}
		}
		seen = t.leads
		t.mu.Unlock()
		tick.Reset(standbyTick)
	}
}
