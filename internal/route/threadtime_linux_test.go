package route

import (
	"syscall"
	"time"
)

// threadTime is the processor time this thread has had: what a benchmark costs
// on a machine that is busy with other things.
func threadTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(1 /* RUSAGE_THREAD */, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
