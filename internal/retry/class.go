package retry

import "time"

// Class is a reason to wait between two attempts, and a line of the ledger.
type Class uint8

const (
	// NoWait: go on at once.
	NoWait Class = iota
	// Transit: a region is between servers or still opening.
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
	// MetaUnavailable: the region could not be looked up.
	MetaUnavailable
	// MasterUnavailable: no master is active, or it is starting.
	MasterUnavailable
	// Generic: everything else.
	Generic

	numClasses
)

// Schedule is how long a class waits: the n-th wait (from 0) is uniform in
// [d/2, d] with d = min(Base*Factor^(n-Free), Cap), and 0 while n < Free.
type Schedule struct {
	Base, Cap time.Duration
	Factor    float64
	Free      int
}

// String names the class as errors and traces show it.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "invalid"
}

var classNames = [numClasses]string{"none", "transit", "regionBusy", "serverBusy", "throttled", "serverDown", "meta", "master", "generic"}
