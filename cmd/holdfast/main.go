// Command holdfast is HBase as its clients live it: an embedded cluster, a
// shell, faults on demand, and the reasoning of the client made visible.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes, the same for every command.
const (
	exitOK    = 0
	exitNo    = 1 // the answer is "no", or findings
	exitUsage = 2 // the command line makes no sense
)

// exitError ends the process with a code of its own; a nil cause says nothing.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string {
	if e.cause == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.cause.Error()
}

func (e *exitError) Unwrap() error { return e.cause }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRoot().ExecuteContext(ctx)
	stop()
	os.Exit(exitCode(err))
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.cause != nil {
			fmt.Fprintln(os.Stderr, "holdfast:", exit.cause)
		}
		return exit.code
	}
	fmt.Fprintln(os.Stderr, "holdfast:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitNo
}
