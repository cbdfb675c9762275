package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// defaultMemory is the default of --memory in MiB.
const defaultMemory = 64

// boundMemory keeps what the process holds besides its program near limit bytes:
// garbage is collected before it grows beyond. That alone would have the
// collector run without end once what must be held comes near the limit, a large
// catalog say; so it is raised to half more than that after each collection.
// What GOMEMLIMIT or GOGC in the environment say counts instead. stop undoes it.
func boundMemory(limit int64) (stop func()) {
	if limit <= 0 || os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetMemoryLimit(limit)
	b := &memoryBound{least: limit, now: limit}
	b.again()
	return func() {
		b.stopped.Store(true)
		debug.SetMemoryLimit(before)
	}
}

type memoryBound struct {
	least, now int64
	stopped    atomic.Bool
}

// collected is freed by each collection.
type collected struct {
	bound *memoryBound
	_     [16]byte
}

// again has adjust called after the next collection.
func (b *memoryBound) again() {
	runtime.SetFinalizer(&collected{bound: b}, func(c *collected) {
		if !c.bound.stopped.Load() {
			c.bound.adjust()
			c.bound.again()
		}
	})
}

// adjust sets the limit after a collection; only one runs at a time.
func (b *memoryBound) adjust() {
	held := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(held)
	live := int64(held[0].Value.Uint64())
	// Stacks, and what the runtime needs for itself.
	other := int64(held[1].Value.Uint64())
	for _, m := range held[2:] {
		other -= int64(m.Value.Uint64())
	}
	limit := boundFor(b.least, live, other)
	// Setting it stops the process for a moment, so not for every little.
	if d := limit - b.now; d > b.now/16 || -d > b.now/16 {
		b.now = limit
		debug.SetMemoryLimit(limit)
	}
}

// boundFor is the limit for a heap of which so much is live, beside other
// memory.
func boundFor(least, live, other int64) int64 { return max(least, live+live/2+other) }
