package health

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/meta"
)

// ErrServerDown is matched (errors.Is) by every *DownError.
var ErrServerDown = errors.New("server is down")

// ErrBusy is matched by every *BusyError.
var ErrBusy = errors.New("too many calls wait for the server")

// ErrReplaced is the cause of death of an incarnation whose address has got a
// newer one.
var ErrReplaced = errors.New("replaced by a newer start code")

// DownError is the answer of a server known to be down, given without asking
// it.
type DownError struct {
	Server meta.ServerName
	// Since is when it went down; NextProbe when it will be asked next (zero
	// if it never will).
	Since, NextProbe time.Time
	// Cause is the evidence.
	Cause error
	// Dead says that this incarnation is over.
	Dead bool
	// Waiting, if not 0, says that so many callers wait for the server already,
	// which is as many as may: this one was turned away, although trying again
	// later may help. The server may be only suspected then.
	Waiting int
}

func (e *DownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server %s is ", e.Server)
	if e.Dead {
		b.WriteString("gone")
	} else if e.Waiting > 0 {
		fmt.Fprintf(&b, "not answering, and %d callers wait for it", e.Waiting)
	} else {
		b.WriteString("down")
	}
	if !e.Since.IsZero() {
		if e.Waiting > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" since ")
		b.WriteString(e.Since.Format("15:04:05.000"))
	}
	if e.Cause != nil {
		b.WriteString(": ")
		b.WriteString(e.Cause.Error())
	}
	return b.String()
}

// Unwrap gives the evidence.
func (e *DownError) Unwrap() error { return e.Cause }

// Is matches ErrServerDown.
func (e *DownError) Is(target error) bool { return target == ErrServerDown }

// BusyError says that a server's queue of waiting calls is full.
type BusyError struct {
	Server          meta.ServerName
	InFlight, Queue int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("server %s: %d calls in flight and %d waiting", e.Server, e.InFlight, e.Queue)
}

// Is matches ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }
