package zk

import (
	"fmt"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// This file is the loop's sense of time: what the budget says, when to ping, when a connection counts as dead.

func (l *loop) noteAnswered(sentAt time.Time) {
	if d := int64(sentAt.Sub(l.base)); d > l.lastAnswered.Load() {
		l.lastAnswered.Store(d)
	}
}

func (l *loop) deadline() time.Time {
	return l.base.Add(time.Duration(l.lastAnswered.Load()) + l.negotiated)
}

// oldestUnanswered is when the oldest unanswered request was sent; zero if all are answered.
func (l *loop) oldestUnanswered() time.Time {
	var at time.Time
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if len(l.pending) > 0 {
		earlier(l.pending[0].sentAt)
	}
	if len(l.pings) > 0 {
		earlier(l.pings[0])
	}
	if len(l.auths) > 0 {
		earlier(l.auths[0].sentAt)
	}
	return at
}

// silenceLimit is when the connection counts as dead: AnswerLimit after the newest sign of life, and whatever arrives, twice that after the oldest
// unanswered request, since events do not keep a session alive. Zero if nothing is unanswered.
func (l *loop) silenceLimit() time.Time {
	oldest := l.oldestUnanswered()
	if oldest.IsZero() {
		return oldest
	}
	limit := AnswerLimit(l.negotiated)
	at := oldest.Add(limit)
	if r := l.lastRecv.Add(limit); r.After(at) {
		at = r
	}
	if hard := oldest.Add(2 * limit); hard.Before(at) {
		at = hard
	}
	return at
}

// nextWake is how long the loop may sleep.
func (l *loop) nextWake() time.Duration {
	now := time.Now()
	wake := now.Add(time.Hour)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(wake) {
			wake = t
		}
	}
	switch {
	case l.t != nil:
		earlier(l.lastSend.Add(PingInterval(l.negotiated)))
		earlier(l.silenceLimit())
	case l.verdict == Alive:
		earlier(l.deadline())
	}
	earlier(l.closeBy)
	return max(0, wake.Sub(now))
}

// onTime does what is due.
func (l *loop) onTime(now time.Time) {
	if !l.closeBy.IsZero() && !now.Before(l.closeBy) {
		l.setTerminal(StateClosed, fmt.Errorf("%w; the server did not confirm it, the session ends with its timeout", ErrClosed))
		return
	}
	if l.t == nil {
		if l.verdict == Alive && !now.Before(l.deadline()) {
			l.verdict = PresumedLost
			l.log.Warn("session presumed lost: its time has run out without an answer", "session", hex(l.sessionID), "timeout", l.negotiated)
			l.tell(StateChange{State: l.state, Verdict: l.verdict, SessionID: l.sessionID, At: now})
		}
		return
	}
	if at := l.silenceLimit(); !at.IsZero() && !now.Before(at) {
		l.lose(&silenceError{since: now.Sub(l.oldestUnanswered())})
		return
	}
	if !now.Before(l.lastSend.Add(PingInterval(l.negotiated))) {
		l.pings = append(l.pings, now)
		l.write(jute.XidPing, jute.OpPing, nil)
	}
}

// silenceError is the end of a connection whose requests are not answered.
type silenceError struct{ since time.Duration }

func (e *silenceError) Error() string {
	return fmt.Sprintf("a request is unanswered for %v", e.since.Round(time.Millisecond))
}
func (e *silenceError) Timeout() bool   { return true }
func (e *silenceError) Temporary() bool { return true }
