package main

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestBoundFor(t *testing.T) {
	for _, c := range []struct{ least, live, other, want int64 }{
		{64, 10, 10, 64},
		{64, 36, 10, 64},
		{64, 100, 10, 160},
	} {
		if got := boundFor(c.least, c.live, c.other); got != c.want {
			t.Errorf("at least %d, live %d, other %d: %d, want %d", c.least, c.live, c.other, got, c.want)
		}
	}
}

// TestBoundMemory: the limit rises with what must be held, and is gone
// afterwards.
func TestBoundMemory(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	t.Setenv("GOGC", "")
	before := debug.SetMemoryLimit(-1)
	const limit = 16 << 20
	stop := boundMemory(limit)
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("limit %d", got)
	}
	held := make([]byte, 64<<20)
	for end := time.Now().Add(time.Minute); debug.SetMemoryLimit(-1) < int64(len(held))*3/2; {
		runtime.GC()
		if time.Now().After(end) {
			t.Fatalf("limit %d with %d bytes held", debug.SetMemoryLimit(-1), len(held))
		}
	}
	runtime.KeepAlive(held)
	stop()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("limit %d afterwards, want %d", got, before)
	}

	t.Setenv("GOGC", "50")
	boundMemory(limit)()
	if got := debug.SetMemoryLimit(-1); got != before || before == math.MinInt64 {
		t.Errorf("limit %d where the environment says GOGC", got)
	}
}
