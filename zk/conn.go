package zk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/jute"
)

// Conn is a client with one session. All methods are safe for concurrent use. See the package comment.
type Conn struct {
	cfg  Config
	log  *slog.Logger
	base time.Time // zero of lastAnswered, with a monotonic reading

	submit  chan *call     // calls that want to be sent
	cancels chan *call     // calls whose callers have left
	unwatch chan *Watch    // watches whose owners have left
	closing chan time.Time // Close asks, with its deadline
	first   chan struct{}  // closed with the first session
	done    chan struct{}  // closed when the loop has ended

	view         atomic.Pointer[view]
	lastAnswered atomic.Int64 // nanoseconds since base
	ledger       ledger
	wg           sync.WaitGroup
}

// call is one request. The caller owns it until it is submitted; from then on the loop does, and answers exactly once.
type call struct {
	op         jute.OpCode
	body       []byte
	idempotent bool               // may be asked again after a lost connection
	decode     func(*jute.Reader) // takes the answer apart, on the loop\'s goroutine; nil if there is nothing in it
	watch      *Watch             // to register when the answer allows it
	internal   bool               // of the loop's own: nobody waits, not counted in loop.bytes
	ident      *AuthInfo          // for OpAuth: remember it

	xid      int32
	sentAt   time.Time
	sent     bool // on some connection, now or before
	host     string
	answered bool
	garbled  int         // answers that could not be decoded
	result   chan result // size one
}

type result struct {
	code Code  // the server's
	err  error // no answer came
	sent bool
	host string
}

func (k *call) finish(r result) {
	if k.answered {
		return
	}
	k.answered = true
	if k.internal {
		return
	}
	r.sent, r.host = k.sent, k.host
	k.result <- r
}

// New starts a Conn and returns at once; calls wait for the session. The error is about the configuration.
func New(cfg Config) (*Conn, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Conn{
		cfg: cfg, log: cfg.Logger, base: time.Now(),
		submit: make(chan *call), cancels: make(chan *call), unwatch: make(chan *Watch), closing: make(chan time.Time),
		first: make(chan struct{}), done: make(chan struct{}),
	}
	c.view.Store(&view{})
	l := &loop{Conn: c, frames: make(chan inbound), dialed: make(chan dialResult), hostOrder: cfg.Servers, watches: newWatchTable(), nextXid: 1, idents: slices.Clone(cfg.Auth)}
	c.wg.Add(1)
	go l.run()
	return c, nil
}

// Open starts a Conn and waits for its first session, at most until ctx ends or SessionTimeout has passed. On an error nothing is left
// behind; an *OpError carries the attempts.
func Open(ctx context.Context, cfg Config) (*Conn, error) {
	began := time.Now()
	c, err := New(cfg)
	if err != nil {
		return nil, err
	}
	limit := time.NewTimer(c.cfg.SessionTimeout)
	defer limit.Stop()
	select {
	case <-c.first:
		return c, nil
	case <-c.done:
		err = c.Err()
	case <-ctx.Done():
		err = ctxError(ctx)
	case <-limit.C:
		err = errNoSession
	}
	oe := c.opError("open", "", err, began)
	end, cancel := context.WithDeadline(context.WithoutCancel(ctx), time.Now())
	defer cancel()
	c.Close(end)
	return nil, oe
}

var errNoSession = errors.New("no server gave us a session within the session timeout")

// Close ends the session and its ephemeral nodes, fails every waiting call with ErrClosed and waits until all goroutines have ended. It asks the server to
// close the session and waits for the answer until ctx ends, at most 2 s; without an answer (or without a connection) the session ends at the server
// when its time runs out, and Close returns an error saying so. Further calls return nil.
func (c *Conn) Close(ctx context.Context) error {
	by := time.Now().Add(closePatience)
	if d, ok := ctx.Deadline(); ok && d.Before(by) {
		by = d
	}
	stop := context.AfterFunc(ctx, func() {
		select {
		case c.closing <- time.Now():
		case <-c.done:
		}
	})
	defer stop()
	mine := false
	select {
	case c.closing <- by:
		mine = true
	case <-c.done:
	}
	<-c.done
	c.wg.Wait()
	if v := c.view.Load(); mine && v.state == StateClosed && v.err != nil && !errors.Is(v.err, errCleanClose) && v.sessionID != 0 {
		return v.err
	}
	return nil
}

const closePatience = 2 * time.Second

// errCleanClose is ErrClosed after the server confirmed the end of the session.
var errCleanClose = fmt.Errorf("%w (session closed)", ErrClosed)
