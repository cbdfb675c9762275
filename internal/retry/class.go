package retry

import (
	"math"
	"time"
)

// Class is a reason to wait between two attempts, and a line of the ledger.
type Class uint8

const (
	// NoWait: go on at once.
	NoWait Class = iota
	// Relocate: the route was wrong, or the region is not there yet. The lookup
	// comes next, and it is what waits, for all callers of the region together.
	Relocate
	// Reconnect: there is no connection to the server any more. The first time
	// there is nothing to wait for.
	Reconnect
	// Transit: a region's replicas are on their way.
	Transit
	// RegionBusy: a region refuses writes for a moment (memstore full, row
	// lock, too many parallel writes).
	RegionBusy
	// ServerBusy: the server sheds load.
	ServerBusy
	// Throttled: a quota; the server says how long.
	Throttled
	// ServerDown: the target is known to be down.
	ServerDown
	// Reopen: a scanner has to be opened again.
	Reopen
	// MetaUnavailable: the region could not be looked up.
	MetaUnavailable
	// MasterUnavailable: no master is active, or it is starting.
	MasterUnavailable
	// Generic: everything else.
	Generic

	numClasses
)

var classNames = [numClasses]string{
	"none", "relocate", "reconnect", "transit", "region busy", "server busy", "throttled",
	"server down", "reopen", "meta unavailable", "master unavailable", "generic",
}

// String names the class as errors and traces show it.
func (c Class) String() string {
	if c < numClasses {
		return classNames[c]
	}
	return "invalid"
}

// Schedule is how long a class waits. With d = min(Base*Factor^(n-Free), Cap),
// the n-th wait of an operation in the class (from 0) is uniform in [d/2, d],
// and 0 while n < Free. There is no class without jitter.
type Schedule struct {
	Base, Cap time.Duration
	Factor    float64
	Free      int
}

// Schedule gives the class's waits. Half of a Base would double the load of
// those who wait on whoever is in trouble already; double would show as
// latency after a hiccup. A Cap bounds how long after the recovery the last
// waiter notices it.
func (c Class) Schedule() Schedule {
	switch c {
	case Relocate:
		// Two callers must not chase each other; the rest is the gate's.
		return Schedule{Base: 5 * time.Millisecond, Cap: 10 * time.Millisecond, Factor: 2, Free: 1}
	case Reconnect:
		return Schedule{Base: 10 * time.Millisecond, Cap: time.Second, Factor: 2, Free: 1}
	case Transit:
		return Schedule{Base: 10 * time.Millisecond, Cap: time.Second, Factor: 2}
	case RegionBusy:
		return Schedule{Base: 50 * time.Millisecond, Cap: 2 * time.Second, Factor: 2}
	case ServerBusy:
		return Schedule{Base: 100 * time.Millisecond, Cap: 5 * time.Second, Factor: 2}
	case Throttled:
		return Schedule{Base: 100 * time.Millisecond, Cap: 5 * time.Second, Factor: 2}
	case ServerDown:
		return Schedule{Base: 20 * time.Millisecond, Cap: time.Second, Factor: 2}
	case Reopen:
		return Schedule{Base: 10 * time.Millisecond, Cap: time.Second, Factor: 2, Free: 1}
	case MetaUnavailable:
		// Shared by all callers of a table, and what all notice after an outage.
		return Schedule{Base: 20 * time.Millisecond, Cap: 500 * time.Millisecond, Factor: 2}
	case MasterUnavailable:
		return Schedule{Base: 50 * time.Millisecond, Cap: time.Second, Factor: 2}
	case Generic:
		return Schedule{Base: 100 * time.Millisecond, Cap: 2 * time.Second, Factor: 2}
	}
	return Schedule{}
}

// Wait gives the n-th wait, from 0, for a random number in [0, 1).
func (s Schedule) Wait(n int, random float64) time.Duration {
	if n < s.Free || s.Base <= 0 {
		return 0
	}
	d := float64(s.Base) * math.Pow(s.Factor, float64(n-s.Free))
	d = min(d, float64(s.Cap))
	return time.Duration(d/2 + d/2*random)
}
