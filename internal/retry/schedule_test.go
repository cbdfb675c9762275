package retry

import (
	"testing"
	"time"
)

var (
	v094  = Version{0, 94, 27}
	v098  = Version{0, 98, 0}
	v14   = Version{1, 4, 14}
	v26   = Version{2, 6, 4}
	ms    = time.Millisecond
	black = func(_ int, timeout time.Duration) (time.Duration, bool) { return timeout, false }
)

// The sums of client-behaviour.md 2.1, base 100 ms, in tenths of a second.
func TestJavaPausesModernTable(t *testing.T) {
	rows := []struct{ attempts, index0, index1, index2 int }{
		{2, 1, 2, 3}, {3, 3, 5, 8}, {4, 6, 10, 18}, {6, 21, 40, 78}, {8, 81, 180, 278}, {10, 281, 380, 478},
		{12, 481, 680, 878}, {14, 881, 1080, 1278}, {16, 1281, 1480, 1678}, {31, 4281, 4480, 4678},
		{32, 4481, 4680, 4878}, {35, 5081, 5280, 5478}, {36, 5281, 5480, 5678},
	}
	for _, r := range rows {
		for kind, want := range map[CallKind]int{MetaLookups: r.index0, OtherCalls: r.index1, RegionCalls: r.index2} {
			got := JavaPauses(v098, kind, 100*ms, r.attempts)
			if got != time.Duration(want)*100*ms {
				t.Errorf("%d attempts, kind %d: %v, want %d00ms", r.attempts, kind, got, want)
			}
		}
		if got := JavaPauses(v26, RegionCalls, 100*ms, r.attempts); got != time.Duration(r.index0)*100*ms {
			t.Errorf("2.6, %d attempts: %v, want %d00ms", r.attempts, got, r.index0)
		}
	}
}

func TestJavaPausesOldTables(t *testing.T) {
	rows := []struct {
		v        Version
		kind     CallKind
		attempts int
		want     time.Duration
	}{
		{Version{0, 94, 0}, RegionCalls, 10, 39 * time.Second},
		{Version{0, 94, 9}, RegionCalls, 10, 39 * time.Second},
		{Version{0, 94, 10}, RegionCalls, 14, 263 * time.Second},
		{v094, RegionCalls, 14, 326 * time.Second},
		{v094, MetaLookups, 14, 263 * time.Second},
		{Version{0, 96, 0}, MetaLookups, 7, 121 * time.Second},
	}
	for _, r := range rows {
		if got := JavaPauses(r.v, r.kind, time.Second, r.attempts); got != r.want {
			t.Errorf("%v kind %d, %d attempts: %v, want %v", r.v, r.kind, r.attempts, got, r.want)
		}
	}
}

func TestFirstIndex(t *testing.T) {
	rows := []struct {
		v             Version
		region, other int
	}{
		{Version{0, 94, 0}, 0, 0}, {Version{0, 94, 26}, 1, 1}, {Version{0, 95, 2}, 2, 1}, {Version{0, 98, 19}, 2, 1},
		{Version{0, 98, 20}, 0, 0}, {Version{1, 0, 3}, 2, 1}, {Version{1, 1, 5}, 2, 1}, {Version{1, 1, 6}, 0, 0},
		{Version{1, 2, 1}, 2, 1}, {Version{1, 2, 2}, 0, 0}, {Version{1, 3, 0}, 0, 0}, {v26, 0, 0}, {Version{3, 0, 0}, 0, 0},
	}
	for _, r := range rows {
		if got := FirstIndex(r.v, RegionCalls); got != r.region {
			t.Errorf("%v region calls: %d, want %d", r.v, got, r.region)
		}
		if got := FirstIndex(r.v, OtherCalls); got != r.other {
			t.Errorf("%v other calls: %d, want %d", r.v, got, r.other)
		}
		if got := FirstIndex(r.v, MetaLookups); got != 0 {
			t.Errorf("%v meta lookups: %d, want 0", r.v, got)
		}
	}
}

// The claims checked in client-behaviour.md 2.2 and 2.3.
func TestSimulateJava(t *testing.T) {
	min := time.Minute
	rows := []struct {
		name     string
		v        Version
		s        JavaSettings
		end      JavaEnd
		attempts int
		total    time.Duration // rounded down to a second
	}{
		{"2.x defaults, black hole", v26, JavaDefaults(v26), JavaAttempts, 16, 1088 * time.Second},
		{"1.4 defaults, black hole", v14, JavaDefaults(v14), JavaTimeout, 18, 1200 * time.Second},
		{"0.98.24 defaults", Version{0, 98, 24}, JavaDefaults(Version{0, 98, 24}), JavaTimeout, 17, 1168 * time.Second},
		{"0.98.12 has no operation timeout", Version{0, 98, 12}, JavaDefaults(Version{0, 98, 12}), JavaAttempts, 35, 2647 * time.Second},
		{"operation 3 s, rpc 60 s", v26, JavaSettings{100 * ms, 15, min, 3 * time.Second}, JavaTimeout, 1, 3 * time.Second},
		{"operation 3 s, rpc 1 s", v26, JavaSettings{100 * ms, 15, time.Second, 3 * time.Second}, JavaTimeout, 3, 3 * time.Second},
		{"operation 10 s, rpc 3 s", v26, JavaSettings{100 * ms, 15, 3 * time.Second, 10 * time.Second}, JavaTimeout, 4, 10 * time.Second},
	}
	for _, r := range rows {
		got := SimulateJava(r.v, RegionCalls, r.s, black)
		if got.End != r.end || got.Attempts != r.attempts || got.Total.Truncate(time.Second) != r.total {
			t.Errorf("%s: %+v, want end %d after %d attempts and %v", r.name, got, r.end, r.attempts, r.total)
		}
	}
}

// callDuration=1200108 with callTimeout=1200000, after 8 ms: the 0.98.21 bug.
func TestJavaCallTimeoutBug(t *testing.T) {
	s := JavaSettings{100 * ms, 35, 20 * time.Minute, 20 * time.Minute}
	fast := func(int, time.Duration) (time.Duration, bool) { return 8 * ms, false }
	got := SimulateJava(Version{0, 98, 21}, RegionCalls, s, fast)
	want := JavaRun{End: JavaTimeout, Attempts: 1, Total: 8 * ms, Duration: 1200108 * ms}
	if got != want {
		t.Errorf("0.98.21: %+v, want %+v", got, want)
	}
	if got := SimulateJava(Version{1, 0, 3}, RegionCalls, s, fast); got.Attempts != 35 {
		t.Errorf("1.0.3 has no such bug, but: %+v", got)
	}
}

func TestJavaAnswered(t *testing.T) {
	got := SimulateJava(v26, RegionCalls, JavaDefaults(v26), func(n int, _ time.Duration) (time.Duration, bool) { return 5 * ms, n == 3 })
	if got.Attempts != 3 || got.Total != 315*ms || got.End != JavaSucceeded {
		t.Errorf("%+v, want 3 attempts and 315ms", got)
	}
}

func TestJavaDefaultsAndCounts(t *testing.T) {
	if got := Attempts(v14, 35); got != 35 {
		t.Errorf("1.x: 35 retries are %d attempts, want 35", got)
	}
	if got := Attempts(v26, 15); got != 16 {
		t.Errorf("2.x: 15 retries are %d attempts, want 16", got)
	}
	if got := DeadServerFloor(Version{1, 3, 5}); got != 10*time.Second {
		t.Errorf("1.3 floor %v", got)
	}
	if got := DeadServerFloor(v14); got != 0 {
		t.Errorf("1.4 floor %v", got)
	}
	for _, r := range []struct {
		v    Version
		want time.Duration
	}{{Version{0, 98, 12}, 0}, {Version{0, 98, 13}, 20 * time.Minute}, {Version{1, 0, 1}, 0}, {Version{1, 0, 2}, 20 * time.Minute}, {Version{1, 1, 0}, 0}, {v26, 20 * time.Minute}} {
		if got := JavaDefaults(r.v).OperationTimeout; got != r.want {
			t.Errorf("%v operation timeout %v, want %v", r.v, got, r.want)
		}
	}
}
