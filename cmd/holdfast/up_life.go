package main

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"time"
)

// lifeline says with whom the process is to end: test runs that crash must not
// leave clusters behind.
type lifeline struct {
	parent bool // the process that started this one
	stdin  bool // who holds the other end of standard input
}

// Why a lifeline ends.
var (
	errStdinEnded = errors.New("standard input has ended (--die-with-stdin wants a pipe that stays open)")
	errParentGone = errors.New("the parent process has ended (--die-with-parent)")
)

// lifelineEnded gives why the lifeline behind a context ended; nil if it did not.
func lifelineEnded(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, errStdinEnded) || errors.Is(err, errParentGone) {
		return err
	}
	return nil
}

// parentEvery is how often it is asked whether the parent is still there.
const parentEvery = 100 * time.Millisecond

// follow gives a context that ends when the lifeline does, and what frees it.
func (l *lifeline) follow(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc, error) {
	if l.parent && runtime.GOOS == "windows" {
		// There a child keeps the number of a parent that has gone.
		return nil, nil, usage("--die-with-parent does not work on Windows; --die-with-stdin does")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if l.parent {
		go watchParent(ctx, firstParent, func() { cancel(errParentGone) })
	}
	if l.stdin {
		// The read cannot be called off; it ends with the process.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel(errStdinEnded)
		}()
	}
	return ctx, func() { cancel(nil) }, nil
}

// firstParent is who started this process. It is asked at once: whoever reads it
// later may read who got the orphan.
var firstParent = os.Getppid()

// watchParent calls gone when the process has another parent than the given one:
// the system gives orphans away.
func watchParent(ctx context.Context, parent int, gone func()) {
	t := time.NewTicker(parentEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if os.Getppid() != parent {
				gone()
				return
			}
		}
	}
}
