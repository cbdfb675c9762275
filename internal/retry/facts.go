package retry

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/health"
	"github.com/holdfast-hbase/holdfast/internal/rpc"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

// locateError is how this package knows a failed lookup (*route.LocateError
// and the like), whose packages use this one: no route, or no master, was
// found, and nothing was sent. Final says that another lookup will not help.
type locateError interface {
	error
	LocateFailed() (final bool, retryAfter time.Duration)
}

// facts are what Classify needs to know about an error.
type facts struct {
	rule       string
	doNotRetry bool
	hasHint    bool // of RegionMoved
	hint       time.Duration
	// sent overrides the rule's belief whether the request may have been
	// executed.
	sentKnown, sent bool
}

// factsOf is the only place that looks into errors. Order matters: an error
// that wraps another is judged by its outermost kind. A server's exception
// speaks for itself if it answers this very call. It does not as the reason why
// a region was not found, why the server is known to be down, or why the
// connection ended under the call: then it answered somebody else's, and says
// nothing about what became of this one.
func factsOf(err error) facts {
	if e, ok := errors.AsType[locateError](err); ok {
		final, after := e.LocateFailed()
		if final {
			return facts{rule: ruleLocateFinal, sentKnown: true}
		}
		return facts{rule: ruleLocate, hint: after, sentKnown: true}
	}
	if errors.Is(err, health.ErrServerDown) {
		if down, ok := errors.AsType[*health.DownError](err); ok && down.Waiting > 0 {
			return facts{rule: ruleTurnedAway, sentKnown: true}
		}
		return facts{rule: ruleServerDown, sentKnown: true}
	}
	conn, broken := errors.AsType[*rpc.ConnError](err)
	if remote, ok := errors.AsType[*wire.RemoteError](err); ok && !(broken && conn.Sent) {
		return remoteFacts(remote)
	}
	if errors.Is(err, health.ErrBusy) {
		return facts{rule: ruleQueueFull, sentKnown: true}
	}
	if _, ok := errors.AsType[*rpc.NotHBaseError](err); ok {
		return facts{rule: ruleNotHBase, sentKnown: true}
	}
	if broken {
		return facts{rule: ruleBroken, sentKnown: true, sent: conn.Sent}
	}
	if _, ok := errors.AsType[*rpc.DialError](err); ok {
		return facts{rule: ruleDial, sentKnown: true}
	}
	switch {
	case errors.Is(err, context.Canceled):
		// The caller left. What was sent may be executed all the same.
		return facts{rule: ruleContext, sentKnown: true, sent: true}
	case errors.Is(err, context.DeadlineExceeded):
		return facts{rule: ruleTimeout}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return facts{rule: ruleBroken, sentKnown: true, sent: true}
	}
	if e, ok := errors.AsType[net.Error](err); ok {
		if e.Timeout() {
			return facts{rule: ruleTimeout}
		}
		return facts{rule: ruleBroken, sentKnown: true, sent: true}
	}
	return facts{rule: ruleLocal, sentKnown: true}
}

func remoteFacts(e *wire.RemoteError) facts {
	f := facts{doNotRetry: e.DoNotRetry, hasHint: e.Moved != nil, hint: e.ThrottleWait}
	if r := ruleByClass[e.Class]; r != nil {
		f.rule = r.name
		return f
	}
	switch {
	case e.DoNotRetry:
		f.rule = ruleDoNotRetry
	case e.Overloaded:
		f.rule = ruleOverloaded
	default:
		f.rule = ruleUnknownClass
	}
	return f
}
