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
//     data itself, so that the end of a quiet stream is noticed. A call that
//     comes before that, after a pause, looks whether the stream has ended: it
//     would else be sent into it, and might then not be repeated.

const (
	// standbyTick bounds how long a leader does not notice that its context was
	// canceled: two ticks, counted from when it began. (Deadlines are not late,
	// see leadMargin.) Half of it costs a lone call half a microsecond, since
	// each wait for an answer comes with a timer; a tick of less than the
	// kernel's own (4 ms is common) costs two, since then each wait sets the
	// clock's hardware.
	standbyTick = 20 * time.Millisecond
	// leadMargin is how far off the deadline of a leader is at least: it has
	// lost the token by then.
	leadMargin = 2*standbyTick + 10*time.Millisecond
	// quietFor is after how long without a byte a call looks whether the server
	// has closed the connection meanwhile, if nobody has been reading.
	quietFor = 2 * time.Millisecond
	// loneCalls is after how many calls in a row that overlapped no other the
	// reader stands by. Passing the token costs more than it saves, so two
	// callers who now and then miss each other must not pass it to and fro.
	loneCalls = 32
)

type tokenHolder uint64

const (
	heldByReader tokenHolder = iota
	heldByLeader
	heldByNobody
	// interrupted is held by a leader whose read was woken by a deadline in the
	// past, which it has to take back.
	interrupted

	holderBits = 2
)

// token says who reads. Whoever changes it does so by compare-and-swap, or
// holds it.
type token struct {
	// state is the holder, and above it the number of times somebody became
	// leader, so that the reader can tell one who stays from another.
	state atomic.Uint64
	// overlaps and lone are the reader's: since when calls have come one at a
	// time, and how many.
	overlaps uint64
	lone     int
	// mu is held while a read deadline is set, so that it does not come late
	// and hit the next reader.
	mu sync.Mutex
	// wake tells the reader that the token was passed to it, once each time.
	wake chan struct{}
}

func (t *token) is(h tokenHolder) bool       { return tokenHolder(t.state.Load()&(1<<holderBits-1)) == h }
func (t *token) leads() uint64               { return t.state.Load() >> holderBits }
func holding(h tokenHolder, s uint64) uint64 { return s>>holderBits<<holderBits | uint64(h) }

// swap passes the token from one holder to another; false if it was not the
// first one's. Becoming leader counts.
func (t *token) swap(from, to tokenHolder) bool {
	for {
		old := t.state.Load()
		if old != holding(from, old) {
			return false
		}
		s := holding(to, old)
		if to == heldByLeader {
			s += 1 << holderBits
		}
		if t.state.CompareAndSwap(old, s) {
			return true
		}
	}
}

// seeRead sees to it that somebody reads, after a call was sent: the caller
// itself if it may, which then returns when its call is over or somebody else
// has taken over; else the reader. It says whether the call is over, and is
// the caller's to finish; else p.done will tell.
func (c *Conn) seeRead(p *pending, mayLead bool) (over bool) {
	t := &c.token
	if !t.is(heldByNobody) {
		return false
	}
	if mayLead && c.calls.count.Load() == 1 {
		if t.swap(heldByNobody, heldByLeader) {
			return c.lead(p, c.calls.overlaps.Load())
		}
		// Somebody else's by now; but a leader may have come and gone.
	}
	c.wakeReader()
	return false
}

// look sees to it that a call is not sent into a stream that has ended, if
// nobody has read for a while. at counts from c.start.
func (c *Conn) look(at time.Duration) {
	if c.peek == nil || at-time.Duration(c.lastHeard.Load()) < quietFor || !c.token.swap(heldByNobody, heldByLeader) {
		return
	}
	to := heldByNobody
	if n, err := c.peek(); n > 0 {
		to = heldByReader // an answer that nobody waits for any more, or the server's last words
	} else if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) { // by an interrupt
		c.fail(readError(err), false)
		to = heldByReader
	}
	c.letGo(to)
}

// wakeReader passes the token to the reader, if nobody holds it.
func (c *Conn) wakeReader() {
	if c.token.swap(heldByNobody, heldByReader) {
		c.token.wake <- struct{}{}
	}
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
	to := heldByReader
	if over || len(p.done) > 0 {
		if overlaps == c.calls.overlaps.Load() && c.calls.count.Load() == 0 && c.reader.Buffered() == 0 {
			to = heldByNobody
		}
	}
	c.letGo(to)
	return over
}

// letGo takes the token from the calling leader.
func (c *Conn) letGo(to tokenHolder) {
	t := &c.token
	if !t.swap(heldByLeader, to) {
		c.takeBack()
		t.swap(interrupted, to)
	}
	switch {
	case to == heldByReader:
		t.wake <- struct{}{}
	case c.calls.count.Load() != 0:
		// A call came in between and may have seen the old holder.
		c.wakeReader()
	}
}

// interrupt wakes the leader.
func (c *Conn) interrupt() {
	t := &c.token
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.swap(heldByLeader, interrupted) {
		_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// takeBack undoes an interrupt of the calling leader.
func (c *Conn) takeBack() {
	t := &c.token
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = c.nc.SetReadDeadline(time.Time{})
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
// time for a while, it gives up the token and waits until it is needed again.
// It says whether the connection is still there.
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
	t.swap(heldByReader, heldByNobody)
	if c.calls.count.Load() != 0 && t.swap(heldByNobody, heldByReader) {
		return true
	}
	seen := t.leads()

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
		leads := t.leads()
		if leads == seen {
			if t.swap(heldByNobody, heldByReader) {
				return true
			}
			c.interrupt()
		}
		seen = leads
		tick.Reset(standbyTick)
	}
}
