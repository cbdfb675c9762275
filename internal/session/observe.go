package session

import (
	"time"
)

// Observer sees what the loop does, for traces and tests. Methods run on the
// goroutine of the call and should return at once.
type Observer interface {
	// Attempt is called after each request, answered or not.
	Attempt(AttemptEvent)
	// Wait is called after each pause between attempts.
	Wait(WaitEvent)
}

// AttemptEvent is one request.
type AttemptEvent struct {
	Op, Method string
	Table      string
	Region     string // encoded name; empty for calls to a server
	Server     string // host,port,startcode
	Attempt    int    // from 1
	Start      time.Time
	Took       time.Duration
	Sent       bool
	Err        error
	Decision   string // what the error table made of Err
}

// WaitEvent is one pause.
type WaitEvent struct {
	Op    string
	Class string // "transit", "server busy", "server down", ...
	Start time.Time
	Took  time.Duration
	Err   error // why the wait began
}
