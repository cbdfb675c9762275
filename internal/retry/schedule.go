package retry

import (
	"cmp"
	"time"
)

// This file is the arithmetic of HBase's own Java clients, release by release:
// how long they pause, how often they try, when they give up. It is pure; the
// client proper does not use it. The diagnostic commands do, and side-by-side
// tests.

// Version is an HBase release.
type Version struct{ Major, Minor, Patch int }

// Compare orders releases.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

func (v Version) before(major, minor, patch int) bool {
	return v.Compare(Version{major, minor, patch}) < 0
}

// within says whether v lies in the given minor line, between two patches.
func (v Version) within(major, minor, from, to int) bool {
	return v.Major == major && v.Minor == minor && v.Patch >= from && v.Patch <= to
}

// CallKind is what a Java client's retry loop is for: the loops started at
// different places of the table.
type CallKind uint8

const (
	// RegionCalls are gets, puts, scans and the like.
	RegionCalls CallKind = iota
	// OtherCalls are all other retried calls, such as those to the master.
	OtherCalls
	// MetaLookups is the loop that looks rows up in hbase:meta.
	MetaLookups
)

// Multipliers gives RETRY_BACKOFF of a release; the last entry repeats
// (HBASE-8776, HBASE-8888, HBASE-9843).
func Multipliers(v Version) []int {
	switch {
	case v.before(0, 94, 10), v.within(0, 95, 0, 1):
		return []int{1, 1, 1, 2, 2, 4, 4, 8, 16, 32}
	case v.before(0, 95, 0):
		return []int{1, 1, 1, 2, 2, 4, 4, 8, 16, 32, 64}
	case v.before(0, 96, 2):
		return []int{1, 2, 3, 5, 10, 100}
	}
	return []int{1, 2, 3, 5, 10, 20, 40, 100, 100, 100, 100, 200, 200}
}

// FirstIndex is where in Multipliers the first pause stands. Until HBASE-15615
// caller and callable each added one to the count of tries. Of the 0.94 line
// only 0.94.0 and 0.94.26 are known; those between are taken to be like 0.94.0.
func FirstIndex(v Version, kind CallKind) int {
	if kind == MetaLookups {
		return 0
	}
	switch {
	case v.before(0, 94, 26):
		return 0
	case v.before(0, 95, 0):
		return 1
	case v.before(0, 95, 2):
		return 1
	case v.before(0, 98, 20), v.Major == 1 && v.Minor == 0, v.within(1, 1, 0, 5), v.within(1, 2, 0, 1):
		if kind == RegionCalls {
			return 2
		}
		return 1
	}
	return 0
}

// JavaPause is the pause after attempt n (from 1), without its jitter, which
// adds 0 to 1 %.
func JavaPause(v Version, kind CallKind, base time.Duration, n int) time.Duration {
	table := Multipliers(v)
	i := min(max(FirstIndex(v, kind)+n-1, 0), len(table)-1)
	return base * time.Duration(table[i])
}

// JavaPauses is the sum of all pauses of that many attempts, without jitter.
func JavaPauses(v Version, kind CallKind, base time.Duration, attempts int) time.Duration {
	var sum time.Duration
	for n := 1; n < attempts; n++ {
		sum += JavaPause(v, kind, base, n)
	}
	return sum
}

// DeadServerFloor is the least pause of a region call whose server is known to
// be dead; 0 if the release has none.
func DeadServerFloor(v Version) time.Duration {
	if v.Major == 0 && v.Minor == 98 || v.Major == 1 && v.Minor <= 3 {
		return 10 * time.Second
	}
	return 0
}

// Attempts translates hbase.client.retries.number: attempts up to 1.x, retries
// from 2.0 on (HBASE-14521).
func Attempts(v Version, retries int) int {
	if v.Major >= 2 {
		return max(retries, 0) + 1
	}
	return max(retries, 1)
}

// JavaSettings are the settings that decide how long a Java client tries.
type JavaSettings struct {
	Pause            time.Duration // hbase.client.pause
	Retries          int           // hbase.client.retries.number
	RPCTimeout       time.Duration // hbase.rpc.timeout; 0: unset
	OperationTimeout time.Duration // hbase.client.operation.timeout; 0: unlimited
}

// JavaDefaults gives the effective defaults of a release: those of the
// hbase-default.xml inside its jar, which differ from the constants in code.
func JavaDefaults(v Version) JavaSettings {
	s := JavaSettings{Pause: 100 * time.Millisecond, Retries: 35, RPCTimeout: time.Minute, OperationTimeout: 20 * time.Minute}
	switch {
	case v.before(0, 94, 10):
		s.Pause, s.Retries = time.Second, 10
	case v.before(0, 95, 0):
		s.Pause, s.Retries = time.Second, 14
	case v.Major >= 2:
		s.Retries = 15
	}
	if v.before(0, 98, 13) || v.within(1, 0, 0, 1) || v.within(1, 1, 0, 0) {
		s.OperationTimeout = 0
	}
	return s
}

// JavaEnd says why a simulated Java operation ended.
type JavaEnd uint8

const (
	// JavaSucceeded: an attempt was answered.
	JavaSucceeded JavaEnd = iota
	// JavaAttempts: RetriesExhaustedException.
	JavaAttempts
	// JavaTimeout: the operation timeout (SocketTimeoutException with
	// callTimeout and callDuration).
	JavaTimeout
)

// JavaRun is the course of a simulated operation.
type JavaRun struct {
	End      JavaEnd
	Attempts int
	// Total is the time until the caller hears of it.
	Total time.Duration
	// Duration is what the release compared with the operation timeout when it
	// gave up: the callDuration of its message.
	Duration time.Duration
}

// SimulateJava runs the synchronous retry loop of a release without jitter.
// call says how long attempt n (from 1) takes when given timeout (0: none) and
// whether it is answered; an attempt that takes longer fails at its timeout.
func SimulateJava(v Version, kind CallKind, s JavaSettings, call func(n int, timeout time.Duration) (took time.Duration, ok bool)) JavaRun {
	attempts := Attempts(v, s.Retries)
	var run JavaRun
	for n := 1; ; n++ {
		timeout := javaCallTimeout(v, s, run.Total)
		took, ok := call(n, timeout)
		if timeout > 0 && took >= timeout {
			took, ok = timeout, false
		}
		run.Attempts, run.Total = n, run.Total+took
		if ok {
			return run
		}
		if n >= attempts {
			run.End, run.Duration = JavaAttempts, run.Total
			return run
		}
		pause := JavaPause(v, kind, s.Pause, n)
		run.Duration = run.Total + javaGiveUpMargin(v, s) + pause
		if s.OperationTimeout > 0 && run.Duration > s.OperationTimeout {
			run.End = JavaTimeout
			return run
		}
		run.Total += pause
	}
}

// javaCallTimeout is the time one attempt gets.
func javaCallTimeout(v Version, s JavaSettings, elapsed time.Duration) time.Duration {
	if s.OperationTimeout <= 0 {
		return s.RPCTimeout
	}
	least := 2 * time.Second
	if !v.before(1, 3, 0) {
		least = time.Millisecond
	}
	left := max(s.OperationTimeout-elapsed, least)
	onlyLeft := v.before(0, 95, 0) || v.Major == 1 && v.Minor == 0 || v.within(1, 1, 0, 4) || v.within(1, 2, 0, 1)
	if onlyLeft || s.RPCTimeout <= 0 { // HBASE-15645
		return left
	}
	return min(s.RPCTimeout, left)
}

// javaGiveUpMargin is what a release adds to the time elapsed and the next
// pause before it compares with the operation timeout. HBASE-16352 made it the
// whole RPC timeout in 0.98.21 to 0.98.24: with an RPC timeout equal to the
// operation timeout those give up at the first failure.
func javaGiveUpMargin(v Version, s JavaSettings) time.Duration {
	switch {
	case v.within(0, 98, 21, 24) && s.RPCTimeout > 0:
		return s.RPCTimeout
	case v.before(0, 99, 0):
		return 2 * time.Second
	}
	return 0
}
