package main

import (
	"context"
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

// parentEvery is how often it is asked whether the parent is still there.
const parentEvery = 100 * time.Millisecond

// follow gives a context that ends when the lifeline does, and what frees it.
func (l *lifeline) follow(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc, error) {
	if l.parent && runtime.GOOS == "windows" {
		// There a child keeps the number of a parent that has gone.
		return nil, nil, usage("--die-with-parent does not work on Windows; --die-with-stdin does")
	}
	ctx, cancel := context.WithCancel(ctx)
	if l.parent {
		go watchParent(ctx, cancel)
	}
	if l.stdin {
		// The read cannot be called off; it ends with the process.
		go func() {
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}
	return ctx, cancel, nil
}

// watchParent calls gone when the process has another parent than it had: the
// system gives orphans away.
func watchParent(ctx context.Context, gone func()) {
	t := time.NewTicker(parentEvery)
	defer t.Stop()
	for parent := os.Getppid(); ; {
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
